"""Containers of series, and forecasts in the same container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._tables.frames import check_shape, dtype_of, is_collection, library_of, n_dimensions
from reservoir._tables.reading import some
from reservoir._typing import Array
from reservoir._validation.index import plain_name
from reservoir.estimators.series.calendar import Calendar, Calendars


@saved
@dataclass(frozen=True)
class SeriesContainer:
    """Container of one series, in which its forecasts are returned.

    `names` are those of the columns, or that of a Series: strings, numbers, None, or tuples of
    these; there are none for arrays. With `spelled`, as in polars, columns of intervals are named
    by a single string rather than by two levels.
    """

    kind: str  # the library: "array", "pandas" or "polars"
    flat: bool  # whether there is no column axis, as in a Series
    n_outputs: int
    names: tuple[Any, ...]
    levels: tuple[Any, ...]  # names of the levels of the columns of a pandas DataFrame
    dtype: str  # of forecasts: "float32" if all columns have it, else "float64"
    spelled: bool = False

    @classmethod
    def of(cls, table: Any, *, spelled: bool = False) -> SeriesContainer:
        """Return the container of a table, whose values are not checked."""
        flat = n_dimensions(table) == 1
        kind = library_of(table)
        names: Sequence[Any] = ()
        if kind != "array":
            names = [table.name] if flat else table.columns
        levels = tuple(table.columns.names) if kind == "pandas" and not flat else ()
        return cls(
            kind,
            flat,
            1 if flat else int(np.shape(table)[1]),
            tuple(plain_name(name) for name in names),
            tuple(plain_name(name) for name in levels),
            dtype_of(table),
            spelled or kind == "polars",
        )

    @classmethod
    def of_known(cls, exog: Any) -> SeriesContainer | None:
        """Return the container of known inputs, or of their first table; None without any."""
        if exog is None:
            return None
        tables = list(exog) if is_collection(exog) else [exog]
        for table in tables:
            check_shape("exog", table)
        return cls.of(tables[0])

    def of_columns(self, ids: tuple[Any, ...], each: Sequence[SeriesContainer]) -> SeriesContainer:
        """Return the container of some of the columns, which are series with ids, or of more."""
        dtype = "float32" if all(one.dtype == "float32" for one in each) else "float64"
        names = ids if self.names else ()
        return replace(self, n_outputs=len(ids), names=names, dtype=dtype)

    def check_same(self, name: str, table: Any, n_ids: int = 0) -> None:
        """Check that a later table has the same number of columns, and the same column names.

        Names are compared only if both tables have column names. `n_ids` is the number of columns
        of ids, which the message does not count.
        """
        other = SeriesContainer.of(table)
        if other.n_outputs != self.n_outputs:
            n, n_before = other.n_outputs - n_ids, self.n_outputs - n_ids
            raise ValueError(
                f"{name} has {n} column{'s' * (n != 1)}{' besides the ids' * n_ids}, but in fit "
                f"it had {n_before}. Give the same columns, in the same order."
            )
        named = bool(self.names) and bool(other.names) and not (self.flat or other.flat)
        if named and other.names != self.names:
            column = next(i for i, each in enumerate(self.names) if other.names[i] != each)
            raise ValueError(
                f"Column {column} of {name} is {other.names[column]!r}, but in fit it was "
                f"{self.names[column]!r}. Give the same columns, in the same order."
            )

    def wrap(self, rows: Array, calendar: Calendar | Calendars) -> Any:
        """Return forecasts of shape (n_steps, n_outputs) in the container of the series.

        Their index continues `calendar`, the calendar of the rows before the forecasts.
        """
        return self._wrapped(rows, calendar.following(len(rows)))

    def wrap_past(self, rows: Array, calendar: Calendar) -> Any:
        """Return the last rows of a series, (n_rows, n_outputs), in its container."""
        return self._wrapped(rows, calendar.preceding(len(rows)))

    def _wrapped(self, rows: Array, index: Any) -> Any:
        if self.flat:
            return self._vector(rows[:, 0], index)
        return self._table(rows, self.names, self.levels, index)

    def wrap_bands(
        self, point: Array, bands: Array, coverages: Sequence[float], calendar: Calendar | Calendars
    ) -> Any:
        """Return forecasts, `point` (n_steps, n_outputs), with the bounds of their intervals.

        `bands` is (n_coverages, 2, n_steps, n_outputs), lower before upper; `calendar` ends before
        the forecasts. Names are "forecast", "lower 90%", "upper 90%" and so on: columns for a
        Series, the last level of columns for a DataFrame, behind the name for polars; for arrays
        the last axis, (n_steps, 1 + 2 n_coverages) or (n_steps, n_outputs, 1 + 2 n_coverages).
        """
        n_steps, n_outputs = point.shape
        ends = bands.reshape(-1, n_steps, n_outputs)
        every = np.moveaxis(np.concatenate([point[None], ends]), 0, -1)
        if self.kind == "array":
            return (every[:, 0] if self.flat else every).astype(self.dtype)
        labels = band_labels(coverages)
        if self.flat:
            return self._table(every[:, 0], labels, (None,), calendar.following(n_steps))
        names = [self._both(name, label) for name in self.names for label in labels]
        levels = (None,) if self.spelled else (*self.levels, None)
        index = calendar.following(n_steps)
        return self._table(every.reshape(n_steps, -1), names, levels, index)

    def wrap_paths(self, paths: Array, calendar: Calendar | Calendars) -> Any:
        """Return sample paths, given as an array of shape (n_paths, n_steps, n_outputs).

        A Series has a column for each path, numbered from 0; a DataFrame the number as the first
        level of its columns, polars before the name ("0 name"); arrays have shape (n_paths,
        n_steps) or (n_paths, n_steps, n_outputs).
        """
        if self.kind == "array":
            return (paths[:, :, 0] if self.flat else paths).astype(self.dtype)
        numbers: list[Any] = list(range(len(paths)))
        rows = np.moveaxis(paths, 0, 1).reshape(paths.shape[1], -1)
        index = calendar.following(len(rows))
        if self.flat:
            return self._table(rows, numbers, ("path",), index)
        names = [self._both(number, name) for number in numbers for name in self.names]
        levels = (None,) if self.spelled else ("path", *self.levels)
        return self._table(rows, names, levels, index)

    def _vector(self, values: Array, index: Any) -> Any:
        values = values.astype(self.dtype)
        if self.kind == "array":
            return values
        if self.kind == "polars":
            import polars as pl

            return pl.Series(self.names[0], values)
        import pandas as pd

        return pd.Series(values, index, name=self.names[0])

    def _table(self, rows: Array, names: Sequence[Any], levels: Sequence[Any], index: Any) -> Any:
        """Return rows as a table with the given column names and the given index."""
        rows = rows.astype(self.dtype)
        if self.kind == "array":
            return rows
        if self.kind == "polars":
            import polars as pl

            return pl.DataFrame(rows, schema=[str(name) for name in names])
        import pandas as pd

        if len(levels) > 1:
            columns = pd.MultiIndex.from_tuples(names, names=levels)
        else:
            columns = pd.Index(list(names), name=levels[0], tupleize_cols=False)
        return pd.DataFrame(rows, index, columns)

    def _both(self, first: Any, second: Any) -> Any:
        """Return the name of a column composed of two names, each of one level or several."""
        if self.spelled:
            return f"{first} {second}"
        if len(self.levels) > 1:
            parts = [part if isinstance(part, tuple) else (part,) for part in (first, second)]
            return (*parts[0], *parts[1])
        return first, second


def band_labels(coverages: Sequence[float]) -> list[str]:
    """Return the names of the columns of a forecast with intervals, in their order."""
    shares = [f"{100 * coverage:.10g}%" for coverage in coverages]
    return ["forecast", *(f"{end} {share}" for share in shares for end in ("lower", "upper"))]


def check_same_columns(
    names: Sequence[str], values: list[Array], containers: list[SeriesContainer]
) -> None:
    """Check that all series have the same columns as the first one."""
    for name, rows, container in zip(names, values, containers, strict=True):
        if rows.shape[1] != values[0].shape[1]:
            raise ValueError(
                f"{name} has {rows.shape[1]} columns, but {names[0]} has {values[0].shape[1]}. "
                "Give all series the same columns."
            )
        both = container.names, containers[0].names
        if not container.flat and all(both) and both[0] != both[1]:
            raise ValueError(
                f"{name} has the columns {some(both[0])}, but {names[0]} has {some(both[1])}. "
                "Give all series the same columns, in the same order."
            )
