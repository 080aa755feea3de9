"""Panels: several series that are forecast one by one, and forecasts as the panel came."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import code
from reservoir._validation.index import is_plain
from reservoir._validation.order import Handling, column_code
from reservoir.estimators.series._calendar import Calendar, plain_name
from reservoir.estimators.series._series_container import SeriesContainer
from reservoir.estimators.series._series_names import SeriesName
from reservoir.estimators.series._series_tables import is_collection
from reservoir.estimators.series._series_values import (
    is_pandas,
    is_polars,
    n_dimensions,
    read_values,
)

_KINDS = {
    "one": "one series",
    "columns": "columns of a table",
    "list": "a list",
    "objects": "an object array",
    "stack": "a 3-D array",
    "levels": "a MultiIndex",
    "long": "a column of ids",
}


@saved
@dataclass(frozen=True)
class Panel:
    """Which series a panel holds, and how it came.

    Attributes
    ----------
    kind : {"one", "columns", "list", "objects", "stack", "levels", "long"}
        One series; the columns of a table; a list, an object array or a 3-D array of tables; a
        table whose MultiIndex has the ids as its first levels, or one with a column of ids.
    ids : tuple
        Of the series: text, numbers, tuples of these.
    containers : tuple of SeriesContainer
    calendars : tuple of Calendar
    whole : SeriesContainer
        Of the table whose columns are the series.
    levels : tuple
        The names of the levels of a MultiIndex.
    id_name : str, number or None
    id_place : int
        Name and number of the column of ids.
    """

    kind: str
    ids: tuple[Any, ...]
    containers: tuple[SeriesContainer, ...]
    calendars: tuple[Calendar, ...]
    whole: SeriesContainer
    levels: tuple[Any, ...] = ()
    id_name: Any = None
    id_place: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def wrap(self, rows: Sequence[Array]) -> Any:
        """Return forecasts, one array of shape (n_steps, n_outputs) per series, as the panel came.

        Dates go on from those of each series, a MultiIndex and a column of ids are as they were.
        """
        if self.kind == "columns":
            return self.whole.wrap(np.hstack(rows), self.calendars[0])
        return self._assembled(
            [
                container.wrap(part, calendar)
                for container, calendar, part in zip(
                    self.containers, self.calendars, rows, strict=True
                )
            ]
        )

    def wrap_bands(
        self, points: Sequence[Array], bands: Sequence[Array], coverages: Sequence[float]
    ) -> Any:
        """Return forecasts with intervals; of each series as `SeriesContainer.wrap_bands`.

        Arrays with a column of ids get the quantities of each output side by side.
        """
        if self.kind == "columns":
            every = np.concatenate(bands, axis=-1)
            return self.whole.wrap_bands(np.hstack(points), every, coverages, self.calendars[0])
        made = [
            container.wrap_bands(point, ends, coverages, calendar)
            for container, calendar, point, ends in zip(
                self.containers, self.calendars, points, bands, strict=True
            )
        ]
        if self.kind == "long" and self.whole.kind == "array":
            made = [part.reshape(len(part), -1) for part in made]
        return self._assembled(made)

    def wrap_paths(self, paths: Sequence[Array]) -> Any:
        """Return sample paths, (n_paths, n_steps, n_outputs) per series, as `SeriesContainer`."""
        if self.kind == "columns":
            return self.whole.wrap_paths(np.concatenate(paths, axis=-1), self.calendars[0])
        return self._assembled(
            [
                container.wrap_paths(part, calendar)
                for container, calendar, part in zip(
                    self.containers, self.calendars, paths, strict=True
                )
            ]
        )

    def follow(self, name: str, y: Any, sequence_column: Any = None) -> tuple[Panel, list[Array]]:
        """Return the panel after later rows of its series, and these rows, in the order of `ids`.

        Each series must begin right after its end. Where ids tell, a series may have no new rows.

        Parameters
        ----------
        name : str
            What messages call the rows.
        y : table or tables, as the panel
        sequence_column : int or str, optional

        Raises
        ------
        ValueError
            If an id is new, or rows do not follow.
        """
        kind, ids, parts, _ = _split(name, y, sequence_column)
        if kind == "columns" and self.kind == "one":  # which are variables of the one series
            ids, parts = list(self.ids), [y]
        if _by_id(kind) != _by_id(self.kind) or (not _by_id(kind) and len(ids) != len(self)):
            raise ValueError(
                f"{name} holds {len(ids)} series ({_KINDS[kind]}), and fit had {len(self)} "
                f"({_KINDS[self.kind]}). Give the same series in the same way."
            )
        if _by_id(kind):
            known = set(self.ids)
            strange = [each for each in ids if each not in known]
            if strange:
                raise ValueError(
                    f"{name} has the series {strange[0]!r}, which is new; fit had "
                    f"{_some(self.ids)}. Leave it out, or fit anew."
                )
        found = dict(zip(ids if _by_id(kind) else self.ids, parts, strict=True))
        calendars = list(self.calendars)
        values: list[Array] = []
        for i, (each, container) in enumerate(zip(self.ids, self.containers, strict=True)):
            if each not in found:
                values.append(np.zeros((0, container.n_outputs)))
                continue
            which = SeriesName.of(name, kind, each, self.id_name, alone=len(self) == 1)
            container.check_same(which, found[each])
            values.append(read_values(which, found[each]))
            handling = _handling(name, kind, y, sequence_column)
            calendars[i] = calendars[i].check_follows(which, found[each], handling=handling)
        return replace(self, calendars=tuple(calendars)), values

    def read_exog(
        self, name: str, exog: Any, sequence_column: Any = None, *, following: bool = False
    ) -> list[Array]:
        """Return known inputs, a table for each series; their lengths are checked elsewhere.

        One table without ids serves all series.

        Parameters
        ----------
        name : str
            What messages call it.
        exog : table, or as many as there are series: a list, with a MultiIndex, with ids
        sequence_column : int or str, optional
            The column of ids, where the panel has one.
        following : bool, default=False
            Whether its rows are those behind the series.

        Raises
        ------
        ValueError
            If a series has none, or at other times.
        """
        names, parts = self._parts_of_exog(name, exog, sequence_column)
        tables: list[Array] = []
        for i, (calendar, part) in enumerate(zip(self.calendars, parts, strict=True)):
            which = SeriesName.of("y", self.kind, self.ids[i], alone=len(self) == 1)
            after = "the rows after " if following else ""
            own = names[i]
            calendar.check_matches(own, part, f"{after}{which}", following=following)
            shared = i > 0 and part is parts[i - 1]
            tables.append(tables[-1] if shared else read_values(own, part))
        return tables

    def _parts_of_exog(
        self, name: str, exog: Any, sequence_column: Any
    ) -> tuple[list[str], list[Any]]:
        """Return known inputs for each series, and what messages call them."""
        several = is_collection(exog) or getattr(getattr(exog, "index", None), "nlevels", 1) > 1
        if sequence_column is not None and not several:
            several = self.kind == "long"
        if not several:
            return [name] * len(self), [exog] * len(self)
        column = sequence_column if self.kind == "long" else None
        kind, ids, parts, more = _split(name, exog, column)
        names = [SeriesName.of(name, kind, each, more.get("id_name")) for each in ids]
        if kind in ("list", "objects", "stack"):
            if len(parts) != len(self):
                raise ValueError(
                    f"{name} holds {len(parts)} tables, and there are {len(self)} series. Give "
                    "one for each, or one for all."
                )
            return list(names), parts
        found = dict(zip(ids, zip(names, parts, strict=True), strict=True))
        for each in self.ids:
            if each not in found:
                raise ValueError(
                    f"{name} has no rows of series {each!r}; it has {_some(ids)}. Give them, or "
                    "one table without ids for all."
                )
        own, tables = zip(*(found[each] for each in self.ids), strict=True)
        return list(own), list(tables)

    def _assembled(self, made: list[Any]) -> Any:
        """Return what was made of each series in one container."""
        if self.kind == "one":
            return made[0]
        if self.kind == "stack":
            return np.stack(made)
        if self.kind == "objects":
            packed = np.empty(len(made), dtype=object)
            packed[:] = made
            return packed
        if self.kind == "levels":
            import pandas as pd

            return pd.concat(made, keys=self.ids, names=self.levels)
        return self._with_ids(made) if self.kind == "long" else made

    def _with_ids(self, made: list[Any]) -> Any:
        """Return one table with the column of ids where it was."""
        if self.whole.kind == "array":
            axis = made[0].ndim - 2
            lengths = [part.shape[axis] for part in made]
            column = np.repeat(np.array(self.ids), lengths)
            rows = np.concatenate(made, axis=axis)
            dtype = np.result_type(rows, column) if column.dtype.kind in "biuf" else object
            return np.insert(rows.astype(dtype), self.id_place, column, axis=-1)
        lengths = [len(part) for part in made]
        ids = [each for each, n in zip(self.ids, lengths, strict=True) for _ in range(n)]
        place = min(self.id_place, len(made[0].columns))
        if self.whole.kind == "polars":
            import polars as pl

            return pl.concat(made).insert_column(place, pl.Series(self.id_name, ids))
        import pandas as pd

        table = pd.concat(made, ignore_index=self.calendars[0].numbered)
        table.insert(place, self.id_name, ids)
        return table


def read_panel(name: str, y: Any, sequence_column: Any = None) -> tuple[Panel, list[Array]]:
    """Return the series of a panel: what it is, and their values, (n_samples_i, n_columns) each.

    Series may differ in length, and end at different times; of a table's columns each is a series
    with all its rows, NaN included.

    Parameters
    ----------
    name : str
        What messages call it.
    y : table, list of tables, object array or 3-D array
        Tables and series of pandas or polars, or arrays.
    sequence_column : int or str, optional
        The column of a table that holds the ids of series, by number or name. Rows of one id must
        be adjacent, unless the table has an index of dates.
    """
    kind, ids, parts, extra = _split(name, y, sequence_column)
    id_name = extra.get("id_name")
    names = [SeriesName.of(name, kind, each, id_name, alone=len(ids) == 1) for each in ids]
    values = [read_values(*item) for item in zip(names, parts, strict=True)]
    containers = [SeriesContainer.of(part, spelled=kind == "long") for part in parts]
    _check_same_columns(names, values, containers)
    # one or two rows have the frequency of the longest series
    longest = int(np.argmax([len(rows) for rows in values]))
    handling = _handling(name, kind, y, sequence_column)
    which = name if kind == "columns" else names[longest]
    like = Calendar.of(which, parts[longest], handling=handling)
    calendars = [like] * len(ids)
    if kind != "columns":
        calendars = [
            Calendar.of(*item, like=like, handling=handling)
            for item in zip(names, parts, strict=True)
        ]
    whole = SeriesContainer.of(y) if kind == "columns" else containers[0]
    return Panel(kind, tuple(ids), tuple(containers), tuple(calendars), whole, **extra), values


def _handling(name: str, kind: str, y: Any, sequence_column: Any) -> Handling:
    """Return how a user changes the rows of all series of a panel."""
    if kind in ("list", "objects"):
        return Handling(name, kind="list")
    if kind == "long" and is_pandas(y):
        return Handling(name, kind="ids", ids=column_code(name, sequence_column))
    return Handling(name, kind="levels" if kind == "levels" else "table")


def _by_id(kind: str) -> bool:
    """Whether series are told apart by ids in the rows of one table."""
    return kind in ("levels", "long")


def _some(ids: Sequence[Any]) -> str:
    return ", ".join(map(repr, ids[:5])) + (", ..." if len(ids) > 5 else "")


def _check_same_columns(
    names: Sequence[str], values: list[Array], containers: list[SeriesContainer]
) -> None:
    """Refuse series with other columns than the first."""
    for name, rows, container in zip(names, values, containers, strict=True):
        if rows.shape[1] != values[0].shape[1]:
            raise ValueError(
                f"{name} has {rows.shape[1]} columns, and {names[0]} has {values[0].shape[1]}. "
                "Give all series the same."
            )
        both = container.names, containers[0].names
        if not container.flat and all(both) and both[0] != both[1]:
            raise ValueError(
                f"{name} has the columns {_some(both[0])}, and {names[0]} has {_some(both[1])}. "
                "Give all series the same, in the same order."
            )


def _split(
    name: str, y: Any, sequence_column: Any
) -> tuple[str, list[Any], list[Any], dict[str, Any]]:
    """Return the kind of a panel, its ids, a table for each, and further attributes of `Panel`."""
    if isinstance(y, Mapping):
        raise TypeError(
            f"{name} is a {type(y).__name__} of series. Give a list, "
            f"{code(f'{name} = list({name}.values())')}, or a table with their names as ids, "
            f"{code(f'{name} = pd.concat({name})')}."
        )
    levels = getattr(getattr(y, "index", None), "nlevels", 1) if is_pandas(y) else 1
    if sequence_column is not None:
        if levels > 1 or is_collection(y) or n_dimensions(y) != 2:
            raise ValueError(
                f"sequence_column={sequence_column!r} tells the series of one table apart, and "
                f"{name} is none, or has a MultiIndex that does. Give sequence_column=None."
            )
        return _split_by_column(name, y, sequence_column)
    if levels > 1:
        return _split_by_levels(name, y)
    if is_collection(y):
        kind = "list"
        if isinstance(y, np.ndarray):
            kind = "objects" if y.dtype == object else "stack"
        return kind, list(range(len(y))), list(y), {}
    if n_dimensions(y) == 2:
        return "columns", *_columns(name, y), {}
    return "one", [0], [y], {}


def _columns(name: str, y: Any) -> tuple[list[Any], list[Any]]:
    """Return the names of the columns of a table, and the columns."""
    n_columns = np.shape(y)[1]
    if is_polars(y):
        return list(y.columns), y.get_columns()
    if not is_pandas(y):
        return list(range(n_columns)), list(np.asarray(y).T)
    ids = [plain_name(each) for each in y.columns]
    twice = [each for each, n in Counter(ids).items() if n > 1]
    if twice:
        raise ValueError(
            f"{name} has the column {twice[0]!r} twice, and each column is a series. Rename it."
        )
    return ids, [y.iloc[:, i] for i in range(n_columns)]


def _split_by_levels(name: str, y: Any) -> tuple[str, list[Any], list[Any], dict[str, Any]]:
    """Split a table by all levels of its index but the last."""
    outer = y.index.droplevel(-1)
    missing = (np.array(y.index.codes[:-1]) < 0).any(axis=0)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"The index of {name} has no id in row {row} (NaN). Give it one.")
    ids, groups = _groups(name, outer.tolist(), dated=True)
    last = y.index.get_level_values(-1)
    parts = [y.iloc[rows].set_axis(last[rows], axis=0) for rows in groups]
    names = tuple(plain_name(each) for each in y.index.names)
    return "levels", ids, parts, {"levels": names}


def _split_by_column(
    name: str, y: Any, sequence_column: Any
) -> tuple[str, list[Any], list[Any], dict[str, Any]]:
    """Split a table by the ids in one of its columns."""
    place = _place(name, y, sequence_column)
    if np.shape(y)[1] < 2:
        raise ValueError(f"{name} has no column besides that of the ids; at least 1 is needed.")
    id_name = None
    plain = True
    if is_polars(y):
        id_name = y.columns[place]
        found, table = y[id_name].to_list(), y.drop(id_name)
    elif is_pandas(y):
        id_name = plain_name(y.columns[place])
        column = y.iloc[:, place]
        found = column.astype(object).where(column.notna(), None).tolist()
        table = y.iloc[:, [i for i in range(y.shape[1]) if i != place]]
        plain = is_plain(y.index, np.zeros(1, dtype=int))
        if plain:
            table = table.reset_index(drop=True)
    else:
        rows = np.asarray(y)
        found, table = rows[:, place].tolist(), np.delete(rows, place, axis=1)
    for row, each in enumerate(found):
        if each is None or each != each:
            raise ValueError(f"{name} has no id in row {row} of column {sequence_column!r} (NaN).")
    ids, groups = _groups(name, found, dated=not plain)
    take: Callable[[list[int]], Any] = table.__getitem__
    if is_pandas(table):
        take = table.iloc.__getitem__
    parts = [take(rows) for rows in groups]
    if plain and is_pandas(table):  # rows that were numbered across series say nothing
        parts = [part.reset_index(drop=True) for part in parts]
    return "long", ids, parts, {"id_name": id_name, "id_place": place}


def _place(name: str, y: Any, column: Any) -> int:
    """Return the number of the column of ids."""
    n_columns = np.shape(y)[1]
    if isinstance(column, str):
        names = list(getattr(y, "columns", ()))
        if column not in names:
            having = f"its columns are {_some(names)}" if names else "it has no column names"
            raise ValueError(f"sequence_column={column!r} is not in {name}; {having}.")
        return names.index(column)
    if isinstance(column, bool) or not isinstance(column, numbers.Integral):
        raise TypeError(f"sequence_column must be an int or a column name; got {column!r}.")
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"sequence_column={column} is outside {name}, which has {n_columns} columns."
        )
    return int(column) % n_columns


def _groups(name: str, found: list[Any], *, dated: bool) -> tuple[list[Any], list[list[int]]]:
    """Return ids in the order in which they first come, and the rows of each.

    Without dates an id that returns after others is refused: rows may have been shuffled.
    """
    groups: dict[Any, list[int]] = {}
    for row, each in enumerate(found):
        rows = groups.setdefault(plain_name(each), [])
        if rows and rows[-1] != row - 1 and not dated:
            raise ValueError(
                f"The id {each!r} returns in row {row} of {name} after other series: without dates "
                "the rows of one series must be adjacent, in order of time. Sort by id and time, "
                "or set an index of dates."
            )
        rows.append(row)
    return list(groups), list(groups.values())
