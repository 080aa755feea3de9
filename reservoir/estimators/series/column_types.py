"""Types of columns of ids and times, in pandas and polars, which forecasts keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._tables.frames import is_pandas, is_polars
from reservoir._validation.index import plain_name


@saved
@dataclass(frozen=True)
class ColumnType:
    """Type of a column, stored as strings and numbers so that it can be saved."""

    kind: str  # the library: "pandas" or "polars"
    label: Any  # name of the column: a string, a number, or a tuple of these
    name: str  # of the dtype
    categories: tuple[Any, ...] | None = None  # in their order
    ordered: bool = False

    @classmethod
    def of(cls, table: Any, place: int, label: Any) -> ColumnType:
        """Return the type of a column of a table, by its number."""
        if is_polars(table):
            dtype = table.dtypes[place]
            name = str(dtype).partition("(")[0]
            categories = dtype.categories.to_list() if name == "Enum" else None
            return cls("polars", label, name, None if categories is None else tuple(categories))
        return cls.of_pandas(list(table.dtypes)[place], label)

    @classmethod
    def of_pandas(cls, dtype: Any, label: Any) -> ColumnType:
        """Return the type of a column or a level of an index with a dtype of pandas."""
        categories = getattr(dtype, "categories", None)
        if categories is None:
            return cls("pandas", label, str(dtype))
        known = tuple(plain_name(each) for each in categories)
        return cls("pandas", label, str(dtype), known, bool(dtype.ordered))

    def restored(self, values: Any) -> Any:
        """Return values as a column of this type: a Series of pandas or polars.

        `values` is a list of ids, or a pandas index of times.
        """
        if self.kind == "polars":
            return self._of_polars(values)
        import pandas as pd

        if self.categories is not None:
            every = list(dict.fromkeys([*self.categories, *values]))
            return pd.Series(pd.Categorical(values, every, ordered=self.ordered))
        if self.name == "object" or isinstance(values, list):
            column = pd.Series(values, dtype=object)
        else:
            column = pd.Series(values)
        is_same = str(column.dtype) == self.name or self.name.startswith("interval")
        return column if is_same else column.astype(self.name)

    def _of_polars(self, values: Any) -> Any:
        import polars as pl

        zone = getattr(values, "tz", None)
        if hasattr(values, "to_numpy"):
            values = (values if zone is None else values.tz_convert(None)).to_numpy()
            if values.dtype == "M8[s]":  # which polars has not
                values = values.astype("M8[ms]")
        column = pl.Series(str(self.label), values)
        if zone is not None:
            column = column.dt.replace_time_zone("UTC").dt.convert_time_zone(str(zone))
        if self.categories is not None:
            return column.cast(pl.Enum(self.categories))
        dtype = getattr(pl, self.name, None)
        return column if dtype is None or self.name == "Datetime" else column.cast(dtype)


def as_pandas(table: Any) -> Any:
    """Return a table as one of pandas, without an Arrow library; sort categories of polars."""
    import pandas as pd

    if is_pandas(table):
        return table
    if not is_polars(table):
        return pd.DataFrame(np.asarray(table)).infer_objects()
    columns = [_column_as_pandas(column) for column in table.get_columns()]
    return pd.concat(columns, axis=1, keys=range(len(columns)))


def _column_as_pandas(column: Any) -> Any:
    import pandas as pd

    kind = str(column.dtype).partition("(")[0]
    if kind in ("Categorical", "Enum"):
        known = column.dtype.categories if kind == "Enum" else sorted(column.drop_nulls().unique())
        return pd.Series(pd.Categorical(column.to_list(), list(known)))
    if kind == "Datetime" and column.dtype.time_zone:
        naive = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
        return pd.Series(naive).dt.tz_localize("UTC").dt.tz_convert(column.dtype.time_zone)
    is_number = column.dtype.is_numeric() or kind in ("Date", "Datetime", "Duration")
    if kind == "Boolean":
        is_number = column.null_count() == 0
    return pd.Series(column.to_numpy() if is_number else column.to_list(), dtype=None)
