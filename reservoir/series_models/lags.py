"""Lags of a series: rows as features without a reservoir, and standardised differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run

_BLOCK = 16_384  # rows whose features are in memory at once
_LEAST = 1e-12  # spread, relative to the size of the levels, below which it counts as zero


@saved
@dataclass(frozen=True)
class LagSource(FeatureSource):
    """The fed-back inputs of the last `n_lags` rows, and the known inputs of the current row.

    Lags count the current row; fed-back inputs are the first columns, and known inputs the last.
    """

    n_lags: int
    n_outputs: int
    n_known: int

    @property
    def n_features(self) -> int:
        """Number of columns of the input."""
        return self.n_outputs + self.n_known

    @property
    def width(self) -> int:
        """Number of features: the lags, the current row first, followed by the known inputs."""
        return self.n_lags * self.n_outputs + self.n_known

    @property
    def state_size(self) -> int:
        """Size of the state, which contains the rows before the current one, the latest first."""
        return (self.n_lags - 1) * self.n_outputs

    @property
    def memory(self) -> int:  # type: ignore[override]
        """Number of rows after which an earlier state has no influence."""
        return self.n_lags - 1

    @property
    def dtype(self) -> Any:
        """Dtype of features and states."""
        return np.dtype(np.float64)

    def initial_state_of(self, row: Array) -> Array:
        """Return the state after enough repetitions of a single row."""
        return np.tile(row[: self.n_outputs], self.n_lags - 1)

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Yield the features of long blocks of rows; no reservoir is run."""
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            before = state.reshape(self.n_lags - 1, self.n_outputs)[::-1]
            every = np.concatenate([before, part[:, : self.n_outputs]])
            lags = [every[self.n_lags - 1 - k :][: len(part)] for k in range(self.n_lags)]
            state = every[len(part) :][::-1].ravel()
            yield start, np.hstack([*lags, part[:, self.n_outputs :]]), state

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Return features and next states after one step of several parallel runs."""
        fed, known = inputs[:, : self.n_outputs], inputs[:, self.n_outputs :]
        lags = np.hstack([fed, states])
        return np.hstack([lags, known]), lags[:, : self.state_size]


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
