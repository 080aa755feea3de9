"""Tables of any library: the series that they contain, names for messages, and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._tables.frames import (
    bool_columns,
    check_shape,
    columns_of,
    is_collection,
    is_pandas,
    n_dimensions,
    n_levels,
    place_of,
    read_one,
    take_columns,
    take_rows,
)
from reservoir._tables.reading import check_ids
from reservoir._typing import Array
from reservoir._validation.index import is_plain, plain_name
from reservoir._validation.order import check_levels

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
            return self._unnumbered(take_rows(given, rows))
        if self.kind == "columns":
            return take_columns(given, list(which))
        return given[list(which)] if isinstance(given, np.ndarray) else [given[i] for i in which]

    @property
    def tables(self) -> list[Any]:
        """A table for each series."""
        return [self.table(i) for i in range(len(self.ids))]

    def table(self, i: int) -> Any:
        """Return the table of one series."""
        if not self.by_id:
            return self.whole[i]
        return self._unnumbered(take_rows(self.whole, self.rows[i]))

    def _unnumbered(self, part: Any) -> Any:
        """Return some rows of a table without the numbers that they had in the whole table."""
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
    columns = columns_of(y)
    if not columns:
        return Division("columns", tuple(range(np.shape(y)[1])), np.asarray(y).T)
    ids = [plain_name(each.name) for each in columns]
    twice = repeated(ids)
    if twice:
        raise ValueError(
            f"{name} has the column {twice[0]!r} twice, but column names must be unique, since "
            "they are the ids of series. Rename one of the two."
        )
    return Division("columns", tuple(ids), columns)


def _by_levels(name: str, y: Any) -> Division:
    """Divide a table by all levels of its index but the last."""
    check_levels(name, y, fewest=MIN_VALUES)
    codes = np.array(y.index.codes[:-1])
    check_ids(name, (codes < 0).any(axis=0))
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
    whole = take_columns(y, [i for i in range(np.shape(y)[1]) if i != place])
    columns, dated = columns_of(y), False
    id_name = plain_name(columns[place].name) if columns else None
    if is_pandas(y):
        found = columns[place].astype(object).where(columns[place].notna(), None).tolist()
        dated = not is_plain(y.index, np.zeros(1, dtype=int))
    else:
        found = columns[place].to_list() if columns else np.asarray(y)[:, place].tolist()
    column = np.empty(len(found), dtype=object)
    column[:] = found
    missing = np.array([each is None for each in found]) | (column != column)
    check_ids(name, missing, sequence_column)
    begins = _begins(column[1:] != column[:-1])
    ids, rows = _groups(name, column[begins].tolist(), begins, len(column), dated=dated)
    return Division("long", ids, whole, rows, id_name=id_name, id_place=place)


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


def read_values(name: str, table: Any, *, allow_nan: bool = True) -> Array:
    """Return the values of a series as a new float64 array of shape (n_samples, n_columns).

    Missing values (NaN, NA, None, null) become NaN, or raise without `allow_nan`. The last word of
    `name` is the parameter. The table has no column of ids.
    """
    remedy = _ON_EXOG if name.split()[-1] == "exog" else _ON_TEXT
    options: Any = {"remedy": remedy, "dates": _ADVICE_ON_DATES, "numerals": False}
    return read_one(name, table, allow_nan=allow_nan, **options)
