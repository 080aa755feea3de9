"""A series in its own units, and the scales on which models see it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History

_FIRST = 0.55  # part of the rows that the first of the fits that are compared has seen
_LEAST_FIRST = 3


def first_cut(n_rows: int) -> int:
    """Return how many of the rows of a series models are first fitted to to be compared."""
    return max(int(_FIRST * n_rows), _LEAST_FIRST)


@saved
@dataclass(frozen=True, eq=False)
class SeriesData:
    """Rows of a series in its own units.

    Attributes
    ----------
    values : array of shape (n_rows, n_outputs)
        Gaps are filled.
    observed : array of bool of shape (n_rows, n_outputs)
        False where a gap was filled.
    known : array of shape (n_rows_ahead, n_known)
        Inputs known beforehand, without units; n_rows_ahead is n_rows or more.
    seasons : tuple of float
        Rows per period, ascending.
    positive : array of bool of shape (n_outputs,)
        Columns that may be seen on a logarithmic scale.
    first : int, default=0
        The number of the first row, from which the phase of seasons is counted.
    """

    values: Array
    observed: Array
    known: Array
    seasons: tuple[float, ...]
    positive: Array
    first: int = 0

    @property
    def n_rows(self) -> int:
        """Rows."""
        return len(self.values)

    @property
    def first_cut(self) -> int:
        """Rows that models are first fitted to where they are compared."""
        return first_cut(self.n_rows)

    def until(self, n_rows: int) -> SeriesData:
        """Return the first rows; known inputs are kept whole."""
        return replace(self, values=self.values[:n_rows], observed=self.observed[:n_rows])

    def with_room(self, n_rows: int) -> SeriesData:
        """Return the series with known inputs for so many rows; beyond their end the last one."""
        missing = n_rows - len(self.known)
        if missing <= 0:
            return self
        last = self.known[-1:].repeat(missing, axis=0)
        return replace(self, known=np.concatenate([self.known, last]))

    def history(self, log: bool) -> History:
        """Return what models see, with logarithms of positive columns if so asked."""
        levels = np.array(self.values)
        if log:
            levels[:, self.positive] = np.log(levels[:, self.positive])
        return History(levels, self.observed, self.known, self.seasons, self.first)

    def in_units(self, levels: Array, log: bool) -> Array:
        """Return levels, (..., n_outputs), in the units of the series."""
        if not log:
            return levels
        with np.errstate(over="ignore"):
            return np.where(self.positive, np.exp(np.where(self.positive, levels, 0.0)), levels)


@saved
@dataclass(frozen=True, eq=False)
class Bounds:
    """What forecasts are held within, on both scales; arrays of shape (n_outputs,)."""

    low: Array
    high: Array

    @classmethod
    def of(cls, values: Array, positive: Array, widths: float) -> Bounds:
        """Return the range of values, widened by so many widths.

        What was never negative stays so, and what was always positive stays above its least value
        divided by so many of its ratios from end to end.
        """
        least, most = values.min(axis=0), values.max(axis=0)
        low, high = least - widths * (most - least), most + widths * (most - least)
        low = np.where(least >= 0, np.maximum(low, 0.0), low)
        with np.errstate(over="ignore", under="ignore"):
            ratio = np.where(positive, least / np.where(positive, most, 1.0), 1.0)
            floor = np.where(positive, least * ratio**widths, low)
        return cls(np.maximum(low, floor), high)

    def hold(self, rows: Array) -> Array:
        """Return rows held within the bounds."""
        return np.clip(rows, self.low, self.high)
