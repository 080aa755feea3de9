"""Tables of any library: their kind, their axes, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._tables.reading import as_floats, as_table, column_number, container_of
from reservoir._typing import Array
from reservoir._validation.kinds import (
    check_dense,
    check_has_rows,
    check_no_dates,
    check_not_complex,
    check_readable,
    is_polars,
)
from reservoir._validation.plain import FILL, as_finite


def is_pandas(table: Any) -> bool:
    """Whether a table is a Series or DataFrame of pandas."""
    return hasattr(table, "iloc")


def library_of(table: Any) -> str:
    """Return the library of a table: "pandas", "polars" or "array"."""
    return "pandas" if is_pandas(table) else "polars" if is_polars(table) else "array"


def is_collection(data: Any) -> bool:
    """Whether data contain several tables; a list of lists of numbers is one table."""
    return container_of(data, "tables") != "table" and len(data) > 0


def n_levels(table: Any) -> int:
    """Return the number of levels of the index of a table; 1 if it has none."""
    return getattr(getattr(table, "index", None), "nlevels", 1) if is_pandas(table) else 1


def n_dimensions(table: Any) -> int | None:
    """Return the number of axes of a table; None if its rows differ in length."""
    shape = getattr(table, "shape", None)
    if shape is not None:
        return len(shape)
    try:
        return int(np.ndim(table))
    except ValueError:
        return None


def columns_of(table: Any) -> list[Any]:
    """Return the columns of a table of pandas or polars, or a Series itself; none of an array."""
    if is_polars(table):
        return [table] if len(table.shape) == 1 else table.get_columns()
    if not is_pandas(table):
        return []
    return [table] if table.ndim == 1 else [table.iloc[:, i] for i in range(table.shape[1])]


def take_rows(table: Any, rows: Any) -> Any:
    """Return some rows of a table, a slice or an array of numbers; of lists as an array."""
    if is_pandas(table):
        return table.iloc[rows]
    return (table if hasattr(table, "shape") else np.asarray(table))[rows]


def take_columns(table: Any, places: Any) -> Any:
    """Return columns of a table, by numbers in a list or a slice; of lists as an array."""
    if is_pandas(table):
        return table.iloc[:, places]
    if is_polars(table):
        return table[:, places]
    return np.asarray(table)[:, places]


def column_values(table: Any, place: int) -> Array:
    """Return the values of one column of a table as an array."""
    column = table[:, place] if is_polars(table) else take_columns(table, place)
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def with_columns(table: Any, changed: dict[int, Array]) -> Any:
    """Return a copy of a table with other values in some columns, which are given by number."""
    table = table if hasattr(table, "shape") else np.asarray(table)
    if len(table.shape) == 1:  # a single column
        if is_pandas(table):
            return type(table)(changed[0], index=table.index, name=table.name)
        return type(table)(table.name, changed[0]) if is_polars(table) else changed[0]
    if is_polars(table):
        return table.with_columns(**{table.columns[i]: values for i, values in changed.items()})
    copied: Any = table.copy(deep=False) if is_pandas(table) else np.array(table)
    for place, values in changed.items():
        if is_pandas(table):
            copied.isetitem(place, values)
        else:
            copied[:, place] = values
    return copied


def stacked(tables: Sequence[Any], **options: Any) -> Any:
    """Return the rows of several tables: a frame if all are of one library, else an array.

    `options` are those of `concat` of pandas.
    """
    by_type = {type(table): table for table in tables}  # there may be many thousands
    library, *others = set(map(library_of, by_type.values()))
    if library == "pandas" and not others:
        import pandas as pd

        return pd.concat(list(tables), **options)
    if library == "polars" and not others:
        import polars as pl

        return pl.concat(tables)
    return np.concatenate([np.asarray(table) for table in tables])


def dtype_of(table: Any) -> str:
    """Return the dtype of forecasts: "float32" if all columns have this dtype, else "float64"."""
    dtypes = getattr(table, "dtypes", None)
    if dtypes is None or np.ndim(dtypes) == 0:
        dtypes = [getattr(table, "dtype", "float64")]
    return "float32" if {str(each).lower() for each in dtypes} == {"float32"} else "float64"


def bool_columns(table: Any) -> Array:
    """Return for each column of a table whether its values are bool; some of them may be missing.

    The table, whose values were checked, is an array, a list, or of pandas or polars.
    """
    columns = columns_of(table)
    if not columns:
        rows = np.asarray(table)
        columns = list(rows.reshape(len(rows), -1).T)
    return np.array([_is_bool(column) for column in columns])


def _is_bool(column: Any) -> bool:
    if is_polars(column):
        return str(column.dtype) == "Boolean"
    if column.dtype != object:
        return column.dtype.kind == "b"
    # bool with gaps: pandas makes a column of objects of it
    there = [each for each in column if not is_missing(each)]
    return len(there) > 0 and all(isinstance(each, (bool, np.bool_)) for each in there)


def is_missing(value: Any) -> bool:
    """Whether a Python object is None, NaN, NaT, or pandas' NA."""
    # NaN differs from itself; a comparison with NA returns NA, which has no truth value
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def check_shape(name: str, table: Any) -> None:
    """Check that a table has rows in memory, one or two axes, and is not empty.

    What is no table (None, a number, text, a dict, an iterator, sparse, masked or on disk) is a
    TypeError or, where `check_has_rows` says so, a ValueError, as are wrong shapes.
    """
    # a pandas table with sparse columns is read like any other
    (check_readable if is_pandas(table) else check_dense)(name, table)
    n_axes = n_dimensions(table)
    check_has_rows(name, table, "(n_samples,) or (n_samples, n_columns)")
    if n_axes is None:
        as_table(name, table)  # raises
    shape = tuple(getattr(table, "shape", None) or np.shape(table))
    if n_axes not in (1, 2):
        raise ValueError(
            f"{name} has the shape {shape}, but (n_samples,) or (n_samples, n_columns) is needed: "
            "one row for each time step. Reshape it."
        )
    if 0 in shape:
        what = "rows (n_samples=0)" if shape[0] == 0 else "columns"
        raise ValueError(f"{name} has no {what}; its shape is {shape}. Give at least one.")


def check_moved(name: str, table: Any) -> None:
    """Check a table whose rows are only moved: text may be symbols, and NaN may be filled later.

    Dates and complex numbers raise, and what `check_shape` raises for.
    """
    check_shape(name, table)
    check_no_dates(name, table)
    check_not_complex(name, table)


def read_one(
    name: str, table: Any, *, allow_nan: bool = True, fill: str = FILL, **options: Any
) -> Array:
    """Return the values of one series as a new float64 array of shape (n_samples, n_columns).

    Missing values (NaN, NA, None, null) become NaN, or raise without `allow_nan`, with the advice
    `fill`. `options` are those of `check_numeric`.
    """
    check_shape(name, table)
    rows = as_floats(name, as_table(name, table), **{"has_ids": True} | options)
    rows = np.array(rows.reshape(len(rows), -1), dtype=np.float64, order="C")
    names = list(table.columns) if hasattr(table, "columns") else None
    return as_finite(name, rows, np.float64, names, if_nan=lambda _: fill, allow_nan=allow_nan)


def place_of(name: str, table: Any, column: Any, parameter: str = "sequence_column") -> int:
    """Return the number of the column that a parameter names, by default that of ids."""
    names = getattr(table, "columns", None)
    return column_number(parameter, column, names, np.shape(table)[1], name)
