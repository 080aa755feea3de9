"""Standardised differences of a series over one lag, and their conversion back to levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

_LEAST = 1e-12  # spread, relative to the size of the levels, below which it counts as zero


@saved
@dataclass(frozen=True, eq=False)
class Differences:
    """Standardised differences over `lag` rows; standardised levels if the lag is 0.

    A lag of 1 removes a drifting level, and the length of a season removes the seasonal pattern.
    `mean` and `spread`, the standard deviation, are (n_outputs,).
    """

    lag: int
    mean: Array
    spread: Array

    @classmethod
    def of(cls, levels: Array, lag: int, observed: Array | None = None) -> Differences:
        """Return the transformation that standardises the differences of given levels.

        The levels have shape (n_rows, n_outputs), with n_rows > lag. Mean and spread of a column
        are computed from its `observed` differences, (n_rows - lag, n_outputs), or from all of its
        differences if none is observed.
        """
        rows = levels[lag:] - levels[: len(levels) - lag] if lag else levels
        counts = np.ones(rows.shape, bool) if observed is None else observed | ~observed.any(axis=0)
        # dividing by the largest value first keeps squares in range
        largest = np.abs(levels).max(axis=0)
        # later rows of a column that begins with zeros are divided by the size, too
        size = np.where(largest > 0, np.maximum(largest, np.finfo(float).tiny), 1.0)
        mean = (rows / size).mean(axis=0, where=counts)
        spread = (rows / size).std(axis=0, where=counts)
        return cls(lag, mean * size, np.where(spread > _LEAST, spread * size, size))

    def take(self, levels: Array) -> Array:
        """Return the standardised differences of levels, (n_rows - lag, n_outputs)."""
        rows = levels[self.lag :] - levels[: len(levels) - self.lag] if self.lag else levels
        return (rows - self.mean) / self.spread

    def undo(self, levels: Array, origins: Array, rows: Array) -> Array:
        """Return the levels of standardised differences, both (n_origins, n_steps, n_outputs).

        `levels` are known up to the last origin or later; each origin is its number of known
        levels.
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
                before = levels[np.add.outer(origins - self.lag, np.arange(end))]
            found[:, begin:end] = before + rows[:, begin:end]
        return found
