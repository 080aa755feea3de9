"""Differences of a series over one lag, without units; and the way back to its levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

_LEAST = 1e-12  # a spread, relative to the size of the levels, below which there is none


@saved
@dataclass(frozen=True, eq=False)
class Differences:
    """Differences over `lag` rows, standardised; the levels themselves for lag 0.

    Attributes
    ----------
    lag : int
        1 takes off a level that wanders, a season's length what repeats itself.
    mean, spread : arrays of shape (n_outputs,)
        Of the differences.
    """

    lag: int
    mean: Array
    spread: Array

    @classmethod
    def of(cls, levels: Array, lag: int, told: Array | None = None) -> Differences:
        """Return the differences that suit levels, (n_rows, n_outputs) with n_rows > lag.

        Only those that are `told`, an array of bool of shape (n_rows - lag, n_outputs), count; all
        of a column in which none is.
        """
        rows = levels[lag:] - levels[: len(levels) - lag] if lag else levels
        counts = np.ones(rows.shape, bool) if told is None else told | ~told.any(axis=0)
        # squares of sizes that a float holds may be more than it holds
        size = np.maximum(np.abs(levels).max(axis=0), np.finfo(float).tiny)
        mean = (rows / size).mean(axis=0, where=counts)
        spread = (rows / size).std(axis=0, where=counts)
        return cls(lag, mean * size, np.where(spread > _LEAST, spread * size, size))

    def take(self, levels: Array) -> Array:
        """Return the differences, (n_rows - lag, n_outputs)."""
        rows = levels[self.lag :] - levels[: len(levels) - self.lag] if self.lag else levels
        return (rows - self.mean) / self.spread

    def undo(self, levels: Array, places: Array, rows: Array) -> Array:
        """Return the levels that differences lead to.

        Parameters
        ----------
        levels : array of shape (n_rows, n_outputs)
        places : array of int of shape (n_places,)
            How many of the levels are known at each place.
        rows : array of shape (n_places, n_steps, n_outputs)
            Differences of the steps behind each place.

        Returns
        -------
        array of shape (n_places, n_steps, n_outputs)
        """
        rows = rows * self.spread + self.mean
        if self.lag == 0:
            return rows
        n_steps = rows.shape[1]
        found = np.empty_like(rows)
        for begin in range(0, n_steps, self.lag):
            end = min(begin + self.lag, n_steps)
            if begin:
                before = found[:, begin - self.lag : end - self.lag]
            else:
                before = levels[np.add.outer(places - self.lag, np.arange(end))]
            found[:, begin:end] = before + rows[:, begin:end]
        return found
