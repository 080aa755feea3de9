"""Tables of any library: the series that they contain, names for messages, and values."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._tables.reading import as_floats, as_table
from reservoir._typing import Array
from reservoir._validation.index import is_plain, plain_name
from reservoir._validation.kinds import (
    check_dense,
    check_has_rows,
    check_readable,
    is_polars,
)
from reservoir._validation.order import check_levels
from reservoir._validation.plain import as_finite

KINDS = {
    "one": "one series",
    "columns": "columns of a table",
    "list": "a list",
    "objects": "an object array",
    "stack": "a 3-D array",
    "levels": "a MultiIndex",
    "long": "a column of ids",
}
_ADVICE_ON_DATES = (
    "Name a column of dates by time_column, make it the index (set_index), or drop it; replace it "
    "by numbers if it is an input, such as the hour of the day."
)
_ON_EXOG = (
    "Give categories as a column of the dtype category without an order (pl.Categorical in "
    'polars); `pd.to_numeric(column, errors="coerce")` reads numbers, and NaN for the rest.'
)
_ON_TEXT = (
    'Read numbers by `pd.to_numeric(column, errors="coerce")`, which gives NaN for the rest; name '
    "a column of dates by time_column, and one of ids by sequence_column."
)
MIN_VALUES = 5  # least number of observed rows of a series


def name_of_series(variable: str, kind: str, key: Any, *, alone: bool = False) -> str:
    """Return the name in messages of the series with the id `key`, or of the variable if `alone`.

    `kind` is the kind of the container, as in `Panel.kind`.
    """
    which = "column" if kind == "columns" else "series"
    return variable if alone else f"{which} {key!r} of {variable}"


@dataclass(frozen=True)
class Division:
    """The series in a container, in their order, before their values are read.

    The fields are as in `Panel`, but `whole` is a table for each series, or one with the rows of
    all, without ids, if its kind is "levels" or "long": then `rows` are those of each series in it.
    """

    kind: str
    ids: tuple[Any, ...]
    whole: Any
    rows: tuple[Array, ...] = ()  # row numbers
    levels: tuple[Any, ...] = ()
    id_name: Any = None
    id_place: int = 0

    @property
    def by_id(self) -> bool:
        """Whether the series are in one table, in which each row has the id of its series."""
        return self.kind in ("levels", "long")

    def names(self, variable: str) -> list[str]:
        """Return the name of each series in messages."""
        alone = len(self.ids) == 1
        return [name_of_series(variable, self.kind, each, alone=alone) for each in self.ids]

    def some(self, which: Sequence[int]) -> Division:
        """Return the division of some of the series, by their numbers; they keep their ids."""
        ids = tuple(self.ids[i] for i in which)
        if not self.by_id:
            return replace(self, ids=ids, whole=[self.whole[i] for i in which])
        ends = np.cumsum([len(self.rows[i]) for i in which])
        rows = tuple(np.split(np.arange(ends[-1]), ends[:-1]))
        return replace(self, ids=ids, whole=self.part_of(self.whole, which), rows=rows)

    def part_of(self, given: Any, which: Sequence[int]) -> Any:
        """Return some of the series in the container that was divided, one after the other."""
        if self.by_id:
            rows = np.concatenate([self.rows[i] for i in which])
            if not is_pandas(given):
                return given[rows]
            part = given.iloc[rows]
            return part.reset_index(drop=True) if self.numbered else part
        if self.kind == "columns":
            columns = [self.ids[i] for i in which]
            if is_polars(given):
                return given.select(columns)
            return given.iloc[:, list(which)] if is_pandas(given) else np.asarray(given)[:, which]
        return given[list(which)] if isinstance(given, np.ndarray) else [given[i] for i in which]

    @property
    def tables(self) -> list[Any]:
        """A table for each series."""
        return [self.table(i) for i in range(len(self.ids))]

    def table(self, i: int) -> Any:
        """Return the table of one series."""
        if not self.by_id:
            return self.whole[i]
        if not is_pandas(self.whole):
            return self.whole[self.rows[i]]
        part = self.whole.iloc[self.rows[i]]
        return part.reset_index(drop=True) if self.numbered else part

    @property
    def numbered(self) -> bool:
        """Whether a pandas table with a column of ids has an index that merely numbers its rows.

        The numbering does not restart with each series, so that it is no index of time.
        """
        is_table = self.kind == "long" and is_pandas(self.whole)
        return is_table and is_plain(self.whole.index, np.zeros(1, dtype=int))

    @property
    def are_bool(self) -> list[Array]:
        """Whether the values of each column are bool, for each series."""
        if self.by_id:
            return [bool_columns(self.whole)] * len(self.ids)
        return [bool_columns(table) for table in self.tables]

    def values(self, names: Sequence[str]) -> list[Array]:
        """Return the values of each series, (n_samples_i, n_columns)."""
        if self.by_id:
            # read all rows at once, which is faster; after an error read each series separately, so
            # that the message names the series that caused it
            try:
                every = read_values("y", self.whole)
            except (TypeError, ValueError):
                pass
            else:
                return [every[rows] for rows in self.rows]
        return [read_values(*item) for item in zip(names, self.tables, strict=True)]


def divide(name: str, y: Any, sequence_column: Any = None) -> Division:
    """Divide a container, a table or a collection of tables, into its series.

    Raise if it is a mapping, if an id is missing, if the rows of an id are not adjacent in a table
    without dates, or if there is no column `sequence_column`, a number or a name.
    """
    if isinstance(y, Mapping):
        raise TypeError(
            f"{name} is a {type(y).__name__} of series. Give a list, `list({name}.values())`, or a "
            f"table with the keys as ids, `pd.concat({name})`."
        )
    several, levels = is_collection(y), n_levels(y)
    if not several:
        check_shape(name, y)
    if sequence_column is not None:
        if levels > 1 or several or n_dimensions(y) != 2:
            raise ValueError(
                f"sequence_column={sequence_column!r} is a column of ids in one table, but {name} "
                "is not one table, or has its ids in a MultiIndex. Set sequence_column=None."
            )
        return _by_column(name, y, sequence_column)
    if levels > 1:
        return _by_levels(name, y)
    if several:
        kind = "list"
        if isinstance(y, np.ndarray):
            kind = "objects" if y.dtype == object else "stack"
        return Division(kind, tuple(range(len(y))), y)
    if n_dimensions(y) == 2:
        return _by_columns(name, y)
    return Division("one", (0,), [y])


def _by_columns(name: str, y: Any) -> Division:
    """Divide a table into its columns."""
    if is_polars(y):
        return Division("columns", tuple(y.columns), y.get_columns())
    n_columns = np.shape(y)[1]
    if not is_pandas(y):
        return Division("columns", tuple(range(n_columns)), np.asarray(y).T)
    ids = [plain_name(each) for each in y.columns]
    twice = repeated(ids)
    if twice:
        raise ValueError(
            f"{name} has the column {twice[0]!r} twice, but column names must be unique, since "
            "they are the ids of series. Rename one of the two."
        )
    return Division("columns", tuple(ids), [y.iloc[:, i] for i in range(n_columns)])


def _by_levels(name: str, y: Any) -> Division:
    """Divide a table by all levels of its index but the last."""
    check_levels(name, y, fewest=MIN_VALUES)
    codes = np.array(y.index.codes[:-1])
    missing = (codes < 0).any(axis=0)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"The index of {name} has no id in row {row} (NaN). Give this row an id.")
    outer = y.index.droplevel(-1)
    begins = _begins((codes[:, 1:] != codes[:, :-1]).any(axis=0))
    ids, rows = _groups(name, outer[begins].tolist(), begins, len(y), dated=True)
    whole = y.set_axis(y.index.get_level_values(-1), axis=0)
    return Division("levels", ids, whole, rows, tuple(plain_name(each) for each in y.index.names))


def _by_column(name: str, y: Any, sequence_column: Any) -> Division:
    """Divide a table by the ids in one of its columns."""
    place = place_of(name, y, sequence_column)
    if np.shape(y)[1] < 2:
        raise ValueError(
            f"{name} has no column besides the column of ids, but at least 1 column of values is "
            "needed."
        )
    id_name, dated = None, False
    if is_polars(y):
        id_name = y.columns[place]
        found, whole = y[id_name].to_list(), y.drop(id_name)
    elif is_pandas(y):
        id_name = plain_name(y.columns[place])
        column = y.iloc[:, place]
        found = column.astype(object).where(column.notna(), None).tolist()
        whole = y.iloc[:, [i for i in range(y.shape[1]) if i != place]]
        dated = not is_plain(y.index, np.zeros(1, dtype=int))
    else:
        table = np.asarray(y)
        found, whole = table[:, place].tolist(), np.delete(table, place, axis=1)
    column = np.empty(len(found), dtype=object)
    column[:] = found
    missing = np.array([each is None for each in found]) | (column != column)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{name} has no id in row {row} of column {sequence_column!r} (NaN).")
    begins = _begins(column[1:] != column[:-1])
    ids, rows = _groups(name, column[begins].tolist(), begins, len(column), dated=dated)
    return Division("long", ids, whole, rows, id_name=id_name, id_place=place)


def place_of(name: str, y: Any, column: Any, parameter: str = "sequence_column") -> int:
    """Return the number of the column that a parameter names, by default that of ids."""
    n_columns = np.shape(y)[1]
    if isinstance(column, str):
        names = list(getattr(y, "columns", ()))
        if column not in names:
            having = f"its columns are {some(names)}" if names else "it has no column names"
            raise ValueError(f"{parameter}={column!r} is not in {name}; {having}.")
        return names.index(column)
    if isinstance(column, bool) or not isinstance(column, numbers.Integral):
        raise TypeError(f"{parameter} must be an int or a column name; got {column!r}.")
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"{parameter}={column} is out of range for {name}, which has {n_columns} columns."
        )
    return int(column) % n_columns


def _begins(changes: Array) -> Array:
    """Return the rows in which runs of equal ids begin.

    `changes` states for each row but the first whether its id differs from the id before it.
    """
    return np.append(0, np.flatnonzero(changes) + 1)


def _groups(
    name: str, found: list[Any], begins: Array, n_rows: int, *, dated: bool
) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
    """Return the ids in the order of their first rows, and the row numbers of each id.

    `found` contains the ids of runs of rows that begin at `begins`. Without dates (`dated` is
    False), the rows of each id must be adjacent: otherwise they may have been shuffled.
    """
    groups: dict[Any, list[Array]] = {}
    for each, begin, end in zip(found, begins, [*begins[1:], n_rows], strict=True):
        runs = groups.setdefault(plain_name(each), [])
        if runs and not dated:
            raise ValueError(
                f"The id {each!r} occurs again in row {begin} of {name}, after rows of other "
                "series. Without dates, the rows of each series must be adjacent and in order of "
                "time. Sort the rows by id and time, or set an index of dates."
            )
        runs.append(np.arange(begin, end))
    rows = (runs[0] if len(runs) == 1 else np.concatenate(runs) for runs in groups.values())
    return tuple(groups), tuple(rows)


def repeated(names: Sequence[Any]) -> list[Any]:
    """Return the names that occur more than once."""
    return [each for each, n in Counter(names).items() if n > 1]


def some(names: Sequence[Any]) -> str:
    """Return the first five names as a string."""
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def is_collection(values: Any) -> bool:
    """Whether `values` contains several tables; a list of lists of numbers is one table."""
    if isinstance(values, np.ndarray):
        one = values.dtype == object and values.ndim == 1 and len(values) > 0
        return (values.ndim == 3 and len(values) > 0) or (one and _has_rows(values[0]))
    if not isinstance(values, (list, tuple)) or not len(values):
        return False
    first = values[0]
    if isinstance(first, (list, tuple)):
        return len(first) > 0 and isinstance(first[0], (list, tuple))
    return _has_rows(first)


def _has_rows(item: Any) -> bool:
    kind = type(item)  # a LazyFrame of polars warns if it is asked for its columns
    return getattr(item, "ndim", 0) > 0 or hasattr(kind, "to_frame") or hasattr(kind, "columns")


def dtype_of(table: Any) -> str:
    """Return the dtype of forecasts: "float32" if all columns have this dtype, else "float64"."""
    dtypes = getattr(table, "dtypes", None)
    if dtypes is None or np.ndim(dtypes) == 0:
        dtypes = [getattr(table, "dtype", "float64")]
    return "float32" if {str(each).lower() for each in dtypes} == {"float32"} else "float64"


def columns_of(table: Any) -> list[Any]:
    """Return the columns of a table of pandas or polars, or a Series itself; none of an array."""
    if is_polars(table):
        return [table] if len(table.shape) == 1 else table.get_columns()
    if not is_pandas(table):
        return []
    return [table] if table.ndim == 1 else [table.iloc[:, i] for i in range(table.shape[1])]


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
    values = column.to_numpy(object, na_value=None) if is_pandas(column) else column
    there = [each for each in values if not _is_missing(each)]
    return len(there) > 0 and all(isinstance(each, (bool, np.bool_)) for each in there)


def _is_missing(value: Any) -> bool:
    """Whether a Python object is None, NA, NaT or NaN."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def n_levels(table: Any) -> int:
    """Return the number of levels of the index of a table; 1 if it has none."""
    return getattr(getattr(table, "index", None), "nlevels", 1) if is_pandas(table) else 1


def read_values(name: str, table: Any, *, allow_nan: bool = True) -> Array:
    """Return the values of a series as a new float64 array of shape (n_samples, n_columns).

    Missing values (NaN, NA, None, null) become NaN, or raise without `allow_nan`. The last word of
    `name` is the parameter. The table has no column of ids.
    """
    check_shape(name, table)
    remedy = _ON_EXOG if name.split()[-1] == "exog" else _ON_TEXT
    data = as_table(name, table)
    rows = as_floats(name, data, remedy=remedy, dates=_ADVICE_ON_DATES, numerals=False)
    rows = np.array(rows.reshape(len(rows), -1), dtype=np.float64, order="C")
    names = list(table.columns) if hasattr(table, "columns") else None
    return as_finite(name, rows, np.float64, names, allow_nan=allow_nan)


def is_pandas(table: Any) -> bool:
    """Whether a table is a pandas Series or DataFrame."""
    return hasattr(table, "iloc")


def n_dimensions(table: Any) -> int | None:
    """Return the number of axes of a table; None if its rows differ in length."""
    shape = getattr(table, "shape", None)
    if shape is not None:
        return len(shape)
    try:
        return int(np.ndim(table))
    except ValueError:
        return None


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
