"""A source of features without a reservoir: the last rows of a series, and the known inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run

_BLOCK = 16_384  # rows whose features are in memory at once


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
