"""Panels: series in the containers that users pass, and forecasts in the same containers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._tables.frames import (
    bool_columns,
    check_shape,
    dtype_of,
    is_collection,
    n_dimensions,
    n_levels,
    place_of,
)
from reservoir._tables.reading import some
from reservoir._typing import Array
from reservoir._validation import caller_level, index_of
from reservoir._validation.index import show
from reservoir.estimators.series.calendar import (
    Calendar,
    Calendars,
    calendars_of,
    check_ordered,
    with_outer_levels,
)
from reservoir.estimators.series.containers import SeriesContainer, check_same_columns
from reservoir.estimators.series.known_inputs import (
    Categories,
    as_numbers,
    categories_of,
    check_lengths,
    check_n_tables,
    fill_known,
)
from reservoir.estimators.series.tables import KINDS, Division, divide, name_of_series, read_values


class PanelRows(NamedTuple):
    """The rows of each series of a panel as arrays.

    The calendars of `panel` end with these rows. `values` are (n_samples_i, n_columns), NaN where
    one is missing; `known` are (n_samples_i, n_exog). If they `are_trajectories` of one system, the
    panel describes the last one. `are_bool`, (n_columns,) for each series, or for all trajectories
    together, is empty for rows that follow those of `fit`.
    """

    panel: Panel
    values: list[Array]
    known: list[Array]
    are_trajectories: bool = False
    are_bool: Sequence[Array] = ()


@saved
@dataclass(frozen=True)
class Panel:
    """The containers, calendars and ids of one or several series, in one container of a `kind`.

    "one" is one series; "columns" a table whose columns are series; "list", "objects" and "stack" a
    list, an object array and a 3-D array of tables; "levels" a table with the ids in the first
    levels of its MultiIndex; "long" a table with a column of ids.
    """

    kind: str
    ids: tuple[Any, ...]  # strings, numbers, or tuples of these
    containers: tuple[SeriesContainer, ...]
    calendars: tuple[Calendar, ...]
    whole: SeriesContainer  # of the whole table, without ids; else that of the first series
    levels: tuple[Any, ...] = ()  # names of the levels of the MultiIndex
    id_name: Any = None  # of the column of ids, like its number
    id_place: int = 0
    exog: SeriesContainer | None = None
    categories: Categories = ()

    def __len__(self) -> int:
        return len(self.ids)

    def name_of_series(self, i: int) -> str:
        """Return the name of a series in messages: "y" if there is only one."""
        return f"series {self.ids[i]!r} of y" if len(self) > 1 else "y"

    def name_of_row(self, i: int, row: int) -> str:
        """Return the number of a row of a series, with its stamp if it has one."""
        calendar = self.calendars[i]
        return str(row) if calendar.numbered else f"{row} ({show(calendar.index[row])})"

    def describe_columns(self, estimator: Any) -> None:
        """Set the number and the names of the variables of an estimator, or of series in columns.

        For other panels the number is 1, without names.
        """
        n, names = (len(self), self.ids) if self.kind == "columns" else (1, ())
        if self.kind == "one":
            n, names = self.containers[0].n_outputs, self.containers[0].names
        estimator.n_features_in_ = n
        vars(estimator).pop("feature_names_in_", None)
        if names and all(isinstance(name, str) for name in names):
            estimator.feature_names_in_ = np.array(names, dtype=object)

    # ------------------------------------------------------------------ reading

    @classmethod
    def read(
        cls,
        y: Any,
        exog: Any = None,
        *,
        panel: str | None = None,
        sequence_column: Any = None,
        missing_values: str = "raise",
    ) -> PanelRows:
        """Read series and their known inputs, with a row for each row of y, in any container.

        Without `panel`, y is one series, or several tables, trajectories of one system. Series may
        differ in length and end at different times; columns that are series have all rows of the
        table. Rows of one id must be adjacent, unless the table has dates. `missing_values` fills
        gaps in known inputs: "raise", "hold" or "interpolate".
        """
        # a list without `panel` contains trajectories of one system: only the last is continued
        if panel is None and is_collection(y):
            tables = list(y)
            values = _read_trajectories(tables)
            made = cls._of_trajectories(tables)._with_known(exog)
            lengths = [len(rows) for rows in values]
            known = made._known_of_trajectories(exog, lengths, missing_values)
            are_bool: Array = np.all([bool_columns(table) for table in tables], axis=0)
            return PanelRows(made, values, known, True, [are_bool])
        one = panel is None
        division = Division("one", (0,), [y]) if one else divide("y", y, sequence_column)
        return cls.read_series(division, y, exog, sequence_column, missing_values)

    @classmethod
    def read_series(
        cls,
        division: Division,
        y: Any,
        exog: Any = None,
        sequence_column: Any = None,
        missing_values: str = "raise",
    ) -> PanelRows:
        """Read the series of a container that was divided, or some of them; others as in `read`."""
        made, values = cls._of(division, y)
        # `read_known` compares exog with the container in the panel: set this first
        made = made._with_known(exog, sequence_column)
        known = made.read_known(
            exog, [len(rows) for rows in values], sequence_column, missing_values
        )
        return PanelRows(made, values, known, are_bool=division.are_bool)

    def _with_known(self, exog: Any, sequence_column: Any = None) -> Panel:
        """Return the panel with the container and the categories of known inputs."""
        container = SeriesContainer.of_known(exog)
        if container is None:
            return self
        tables = list(exog) if is_collection(exog) else [exog]
        place = self._id_place_of(exog, sequence_column)
        return replace(self, exog=container, categories=categories_of(tables, place))

    @classmethod
    def _of(cls, division: Division, y: Any) -> tuple[Panel, list[Array]]:
        """Return the panel of the series in a container, and the values of each series."""
        kind, ids = division.kind, division.ids
        names = division.names("y")
        values = division.values(names)
        if division.by_id:
            whole = SeriesContainer.of(division.whole, spelled=kind == "long")
            containers = [whole] * len(ids)
        else:
            containers = [SeriesContainer.of(table) for table in division.tables]
            check_same_columns(names, values, containers)
            whole = containers[0]
            if kind == "columns":
                whole = SeriesContainer.of(y).of_columns(ids, containers)
        # the longest series determines the frequency: one or two rows do not have one themselves
        longest = int(np.argmax([len(rows) for rows in values]))
        which = "y" if kind == "columns" else names[longest]
        like = Calendar.of(which, division.table(longest))
        calendars = (like,) * len(ids)  # one series, or columns, which share the index of the table
        if kind not in ("one", "columns"):
            calendars = calendars_of(names, division, like)
        panel = cls(
            kind,
            ids,
            tuple(containers),
            calendars,
            whole,
            division.levels,
            division.id_name,
            division.id_place,
        )
        return panel, values

    @classmethod
    def _of_trajectories(cls, tables: list[Any]) -> Panel:
        """Return the panel of the last of several trajectories of one system."""
        name = f"trajectory {len(tables) - 1} of y"
        container, calendar = SeriesContainer.of(tables[-1]), Calendar.of(name, tables[-1])
        if any(dtype_of(table) != container.dtype for table in tables):
            container = replace(container, dtype="float64")
        return cls("one", (0,), (container,), (calendar,), container)

    def follow(
        self,
        y: Any,
        exog: Any = None,
        *,
        sequence_column: Any = None,
        missing_values: str = "raise",
    ) -> PanelRows:
        """Read later rows of each series and their known inputs, in the order of `ids`.

        They must begin right after the last row of the series; in a table with ids, a series may
        have none. Others as in `read`.
        """
        division = divide("y", y, sequence_column)
        # `divide` does not know about `panel`: the columns are variables of one series
        if division.kind == "columns" and self.kind == "one":
            division = Division("one", self.ids, [y])
        self.check_same_series(division)
        found = {each: i for i, each in enumerate(division.ids if division.by_id else self.ids)}
        names = [name_of_series("y", division.kind, each, alone=len(self) == 1) for each in found]
        # a table with ids has the same columns for all series: check it once, before its values
        for i, name in enumerate(names):
            if i == 0 or not division.by_id:
                container = self.containers[0 if division.by_id else i]
                container.check_same(name, division.table(i))
        rows = division.values(names)
        calendars, values = list(self.calendars), []
        for i, each in enumerate(self.ids):
            if each not in found:  # no new rows: the calendar of the series stays the same
                values.append(np.zeros((0, self.containers[i].n_outputs)))
                continue
            j = found[each]
            calendars[i] = calendars[i].check_follows(names[j], division.table(j))
            values.append(rows[j])
        lengths = [len(each) for each in values]
        known = self.read_known(exog, lengths, sequence_column, missing_values, following=True)
        return PanelRows(replace(self, calendars=tuple(calendars)), values, known)

    def check_same_series(self, division: Division) -> None:
        """Check that later rows are those of the same series, in a container of the same kind."""
        ids, mine = division.ids, self.kind in ("levels", "long")
        if division.by_id != mine or (not mine and len(ids) != len(self)):
            raise ValueError(
                f"y contains {len(ids)} series ({KINDS[division.kind]}), but fit had {len(self)} "
                f"({KINDS[self.kind]}). Give the same series in a container of the same kind."
            )
        known = set(self.ids)
        new = [each for each in ids if each not in known] if mine else []
        if new:
            raise ValueError(
                f"y has the series {new[0]!r}, which is not among the series of fit: "
                f"{some(self.ids)}. Omit it, or join a model of it (ESNForecaster.concat)."
            )

    def read_context(
        self, context: Any, exog: Any, n_steps: int, *, missing_values: str = "raise"
    ) -> PanelRows:
        """Read a context, which forecasts continue, and the known inputs of its rows and the steps.

        The panel that is returned has the calendar of the context.
        """
        if is_collection(context) and len(context) != 1:
            raise ValueError(
                f"context contains {len(context)} trajectories, but a forecast continues only one. "
                "Call forecast for each of them."
            )
        table = context[0] if is_collection(context) else context
        container = self.whole if self.kind == "columns" else self.containers[0]
        rows = read_values("context", table, allow_nan=False)
        container.check_same("context", table)
        names = container.names
        named = len(names) > 1 and all(isinstance(each, str) for each in names)
        if named and not hasattr(table, "columns"):
            warnings.warn(
                "context has no column names, but y had names in fit. Its columns are taken to be "
                f"{', '.join(names)}, in this order.",
                UserWarning,
                stacklevel=caller_level(),
            )
        calendar = Calendar.of("context", table, like=self.calendars[0])
        known = self._known_of_trajectories(
            None if exog is None else [exog],
            [len(rows) + n_steps],
            missing_values,
            "the context and the forecast after it",
        )
        return PanelRows(replace(self, calendars=(calendar,)), [rows], known)

    # ------------------------------------------------------------------ some series, and more

    def some(self, which: Sequence[int]) -> Panel:
        """Return the panel of some of the series, by their numbers."""
        fields = ("ids", "containers", "calendars")
        parts: Any = {name: tuple(getattr(self, name)[i] for i in which) for name in fields}
        if self.kind == "columns":
            parts["whole"] = self.whole.of_columns(parts["ids"], parts["containers"])
        return replace(self, **parts)

    def joined(self, other: Panel) -> Panel:
        """Return the panel with the series of another, which must have the same columns."""
        for mine, others in zip(self._form(), other._form(), strict=False):
            if mine != others:
                raise ValueError(
                    f"The models were fitted to different tables: one has {mine!r}, another "
                    f"{others!r}. Fit all to tables of the same form."
                )
        ids, whole = (*self.ids, *other.ids), self.whole
        named = self.kind in ("levels", "long") or (self.kind == "columns" and whole.names)
        twice = set(self.ids).intersection(other.ids)
        if twice and named:
            which = repr(min(twice, key=str))
            raise ValueError(f"The series {which} is in two models. Leave it out of one (select).")
        containers = (*self.containers, *other.containers)
        if self.kind == "columns":
            whole = whole.of_columns(ids, containers)
        return replace(
            self,
            ids=ids if named else tuple(range(len(ids))),
            containers=containers,
            calendars=(*self.calendars, *other.calendars),
            whole=whole,
        )

    def _form(self) -> tuple[Any, ...]:
        """Return what panels have in common whose series can be in one table."""
        one, exog = self.containers[0], self.exog
        inputs = () if exog is None else (exog.n_outputs, exog.names)
        form = KINDS[self.kind], self.levels, self.id_name, self.id_place, inputs, self.categories
        if self.kind == "columns":  # which share one index
            return *form, one.kind, one.dtype, self.calendars[0]
        return *form, one.kind, one.dtype, one.n_outputs, () if one.flat else one.names

    # ------------------------------------------------------------------ known inputs

    def read_known(
        self,
        exog: Any,
        lengths: Sequence[int],
        sequence_column: Any = None,
        missing_values: str = "raise",
        *,
        following: bool = False,
        partner: str = "y",
    ) -> list[Array]:
        """Return the known inputs of each series, without columns if there are none.

        One table without ids is used for all series; otherwise each has its rows, in a list or by
        ids: `lengths[i]`, those of the series, or with `following` those after them. `partner` is
        the name of these rows. Raise if `exog` is missing or given unlike in fit, if its columns
        differ, or its rows have the wrong number or times.
        """
        if self._has_no_known(exog, lengths):
            return [np.zeros((length, 0)) for length in lengths]
        several = is_collection(exog)
        if several:
            check_n_tables(len(exog), len(self))
        names = [name_of_series("exog", "list", each, alone=not several) for each in self.ids]
        exog = self._as_in_fit(names, exog, sequence_column)
        names, tables, values = self._divide_known(names, exog, sequence_column)
        for i, (calendar, table) in enumerate(zip(self.calendars, tables, strict=True)):
            series = name_of_series("y", self.kind, self.ids[i], alone=len(self) == 1)
            which = f"the rows after {series}" if following else series
            calendar.check_matches(names[i], table, which, lengths[i], following=following)
        # `check_matches` also compares the times of additional rows, so that a wrong time is
        # reported before a wrong number of rows
        check_lengths(names, values, lengths, partner)
        return fill_known(names, values, missing_values, self.categories)

    def _as_in_fit(self, names: Sequence[str], exog: Any, sequence_column: Any = None) -> Any:
        """Return known inputs with numbers for categories; check that their columns are of fit."""
        several, found = is_collection(exog), []
        place = self._id_place_of(exog, sequence_column)
        for name, table in zip(names, exog if several else [exog], strict=False):
            check_shape(name, table)
            self.exog.check_same(name, table, self._n_ids_of_exog)  # type: ignore[union-attr]
            found.append(as_numbers(name, table, self.categories, place))
        return found[0] if not several else found if self.categories else exog

    def _id_place_of(self, exog: Any, sequence_column: Any) -> int | None:
        """Return the number of the column of ids in known inputs; None if there is none."""
        has_ids = self.kind == "long" and sequence_column is not None and n_levels(exog) == 1
        if not has_ids or is_collection(exog) or n_dimensions(exog) != 2:
            return None
        return place_of("exog", exog, sequence_column)

    def _divide_known(
        self, names: list[str], exog: Any, sequence_column: Any
    ) -> tuple[list[str], list[Any], list[Array]]:
        """Return the name, the table and the values of the known inputs of each series."""
        several = is_collection(exog) or n_levels(exog) > 1
        if sequence_column is not None and not several:
            several = self.kind == "long"
        if not several:
            n = len(self)
            return names, [exog] * n, [read_values("exog", exog)] * n
        division = divide("exog", exog, sequence_column if self.kind == "long" else None)
        if not division.by_id:
            return names, division.tables, division.values(names)
        names = [name_of_series("exog", division.kind, each) for each in division.ids]
        found = {each: i for i, each in enumerate(division.ids)}
        for each in self.ids:
            if each not in found:
                raise ValueError(
                    f"exog has no rows of series {each!r}; it has rows of {some(division.ids)}. "
                    "Give the missing rows, or one table without ids for all series."
                )
        values, order = division.values(names), [found[each] for each in self.ids]
        tables = [division.table(i) for i in order]
        return [names[i] for i in order], tables, [values[i] for i in order]

    def _known_of_trajectories(
        self, exog: Any, lengths: Sequence[int], missing_values: str, partner: str = "y"
    ) -> list[Array]:
        """Return known inputs of trajectories, or of a context and the rows after it."""
        if self._has_no_known(exog, lengths):
            return [np.zeros((length, 0)) for length in lengths]
        if not is_collection(exog) or len(exog) != len(lengths):
            n_tables = len(exog) if is_collection(exog) else 1
            raise ValueError(
                f"exog contains {n_tables} table{'s' * (n_tables != 1)}, but there are "
                f"{len(lengths)} trajectories. Give one table for each of them."
            )
        names = [f"table {i} of exog" if len(exog) > 1 else "exog" for i in range(len(exog))]
        exog = self._as_in_fit(names, exog)
        tables = [read_values(name, table) for name, table in zip(names, exog, strict=True)]
        check_lengths(names, tables, lengths, partner)
        return fill_known(names, tables, missing_values, self.categories)

    def _has_no_known(self, exog: Any, lengths: Sequence[int]) -> bool:
        """Whether there are no known inputs; raise if there were some in fit, or the reverse."""
        if exog is None and self.exog is not None:
            n = self.exog.n_outputs - self._n_ids_of_exog
            raise ValueError(
                f"exog is missing, but fit had {n} column{'s' * (n != 1)} of exog. Give exog with "
                f"{lengths[0]} rows."
            )
        if exog is not None and self.exog is None:
            raise ValueError("exog was given, but the models were fitted without exog. Omit it.")
        return exog is None

    @property
    def _n_ids_of_exog(self) -> int:
        """Number of columns of ids among those of the container of known inputs, 0 or 1."""
        names = () if self.exog is None else self.exog.names
        return int(self.kind == "long" and (not names or self.id_name in names))

    # ------------------------------------------------------------------ forecasts in containers

    def wrap(self, rows: Sequence[Array]) -> Any:
        """Return the forecasts of all series in the container of y.

        `rows` contains an array of shape (n_steps, n_outputs) for each series. Dates continue the
        calendar of each series; a MultiIndex or a column of ids is restored.
        """
        return self._wrapped(SeriesContainer.wrap, [rows])

    def wrap_all(
        self, points: Sequence[Array], bands: Sequence[Array], coverages: Sequence[float]
    ) -> Any:
        """Return forecasts as `wrap` does, or with coverages as `wrap_bands` does."""
        return self.wrap_bands(points, bands, coverages) if coverages else self.wrap(points)

    def wrap_past(self, rows: Sequence[Array]) -> Any:
        """Return the last rows of one series in the container of y, or a dict of them by id."""
        if self.kind == "columns":
            return self.whole.wrap_past(np.hstack(rows), self.calendars[0])
        series = zip(self.containers, rows, self.calendars, strict=True)
        made = [one.wrap_past(part, calendar) for one, part, calendar in series]
        return made[0] if self.kind == "one" else dict(zip(self.ids, made, strict=True))

    def wrap_bands(
        self, points: Sequence[Array], bands: Sequence[Array], coverages: Sequence[float]
    ) -> Any:
        """Return the forecasts of all series with intervals, as `SeriesContainer.wrap_bands` does.

        In an array with a column of ids, which has two dimensions, the forecast and the bounds of
        one output are followed by those of the next.
        """
        arrays = [points, bands]
        return self._wrapped(SeriesContainer.wrap_bands, arrays, coverages, is_flat=True)

    def wrap_paths(self, paths: Sequence[Array]) -> Any:
        """Return the sample paths of all series, as `SeriesContainer.wrap_paths` does.

        `paths` contains an array of shape (n_paths, n_steps, n_outputs) for each series.
        """
        return self._wrapped(SeriesContainer.wrap_paths, [paths])

    def _wrapped(
        self,
        method: Callable[..., Any],
        arrays: Sequence[Sequence[Array]],
        *options: Any,
        is_flat: bool = False,
    ) -> Any:
        """Return the results of all series, which a method of their containers makes of arrays.

        Their last axes are rows and columns; each of `arrays` has an array for each series. With
        `is_flat`, an array with a column of ids has two dimensions.
        """
        if self.kind == "columns":
            parts = [np.concatenate(each, axis=-1) for each in arrays]
            return method(self.whole, *parts, *options, self.calendars[0])
        if self.by_id:  # a table for each series would take most of the time
            parts = [np.concatenate(each, axis=-2) for each in arrays]
            made = method(self.whole, *parts, *options, Calendars(self.calendars))
            flat = is_flat and self.whole.kind == "array"
            return self._with_ids(made.reshape(len(made), -1) if flat else made)
        every = zip(self.containers, *arrays, self.calendars, strict=True)
        return self._assembled([method(one, *each, *options, end) for one, *each, end in every])

    def generator_of(self, i: int, seed: int) -> np.random.Generator:
        """Return random numbers that depend on the id of a series, not on the other series."""
        if self.kind == "one":
            return np.random.default_rng(seed)
        digest = blake2b(repr(self.ids[i]).encode(), digest_size=8).digest()
        return np.random.default_rng([seed, int.from_bytes(digest, "big")])

    def _assembled(self, made: list[Any]) -> Any:
        """Return the results of all series in one container."""
        if self.kind == "one":
            return made[0]
        if self.kind == "stack":
            return np.stack(made)
        if self.kind == "objects":
            packed = np.empty(len(made), dtype=object)
            packed[:] = made
            return packed
        return made

    @property
    def by_id(self) -> bool:
        """Whether the series are in one table, in which each row has the id of its series."""
        return self.kind in ("levels", "long")

    def _with_ids(self, rows: Any) -> Any:
        """Return a table of equally many rows of each series with their ids in their place."""
        n = np.shape(rows)[0 if self.whole.kind != "array" else rows.ndim - 2] // len(self)
        if self.whole.kind == "array":
            column = np.repeat(np.array(self.ids), n)
            dtype = np.result_type(rows, column) if column.dtype.kind in "biuf" else object
            return np.insert(rows.astype(dtype), self.id_place, column, axis=-1)
        if self.kind == "levels":
            return rows.set_axis(with_outer_levels(rows.index, self.ids, self.levels), axis=0)
        ids, place = (
            [each for each in self.ids for _ in range(n)],
            min(self.id_place, rows.shape[1]),
        )
        if self.whole.kind == "polars":
            import polars as pl

            return rows.insert_column(place, pl.Series(self.id_name, ids))
        table = rows.reset_index(drop=True) if self.calendars[0].numbered else rows
        table.insert(place, self.id_name, ids)
        return table


def _read_trajectories(tables: list[Any]) -> list[Array]:
    """Return the values of trajectories of one system after checking values, columns and order."""
    several = len(tables) > 1
    names = [f"trajectory {i} of y" if several else "y" for i in range(len(tables))]
    values = [
        read_values(name, table, allow_nan=False) for name, table in zip(names, tables, strict=True)
    ]
    check_same_columns(names, values, [SeriesContainer.of(table) for table in tables])
    for name, table in zip(names[:-1], tables[:-1], strict=True):
        index = index_of(table)
        if index is not None:
            check_ordered(name, index)
    return values
