"""Rows of the past beside the present one, in front of another source of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.saturation import Record


@saved
@dataclass(frozen=True, eq=False)
class LaggedSource(FeatureSource):
    """A source whose input holds rows of the past: where one row does not tell the state.

    Delays of a few observed variables stand in for those that are not observed (Takens 1981).

    Parameters
    ----------
    source : FeatureSource
        Its inputs are the present row, then the rows `skip`, 2 `skip`, ... steps before.
    n_lags : int
        Rows that it sees, the present one included.
    skip : int, default=1
        Steps between two of them.
    """

    source: FeatureSource
    n_lags: int
    skip: int = 1

    @property
    def n_features(self) -> int:
        """Columns of the input, without its past."""
        return self.source.n_features // self.n_lags

    @property
    def width(self) -> Any:
        """Columns of the features."""
        return self.source.width

    @property
    def n_past(self) -> int:
        """Rows before the present one that a state holds."""
        return (self.n_lags - 1) * self.skip

    @property
    def state_size(self) -> int:
        """The past rows, the oldest first, then the state of the source."""
        return self.n_past * self.n_features + self.source.state_size

    @property
    def dtype(self) -> Any:
        """Of features and states."""
        return self.source.dtype

    def iter_features(
        self,
        rows: Array,
        state: Array,
        *,
        teacher: Array | None = None,
        noise: float = 0.0,
        generator: np.random.Generator | None = None,
        engine: str = "auto",
        activity: Record | None = None,
        skip: int = 0,
    ) -> Iterator[tuple[int, Array, Array]]:
        """Run over one sequence, block by block."""
        size = self.n_past * self.n_features
        every = np.concatenate([state[:size].reshape(self.n_past, -1), rows])
        lagged = np.hstack([every[k : k + len(rows)] for k in self._ages()])
        for start, features, end in self.source.iter_features(
            lagged,
            state[size:],
            teacher=teacher,
            noise=noise,
            generator=generator,
            engine=engine,
            activity=activity,
            skip=skip,
        ):
            past = every[start + len(features) :][: self.n_past]
            yield start, features, np.concatenate([past.ravel(), end])

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        n_runs, size = len(states), self.n_past * self.n_features
        every = np.hstack([states[:, :size], inputs]).reshape(n_runs, self.n_past + 1, -1)
        lagged = every[:, self._ages()].reshape(n_runs, -1)
        features, after = self.source.advance(states[:, size:], lagged, teachers)
        return features, np.hstack([every[:, 1:].reshape(n_runs, -1), after])

    def fresh_state(self, row: Array) -> Array:
        """Return the state of a source that has seen nothing but one row, again and again."""
        return np.concatenate([np.tile(row, self.n_past), np.zeros(self.source.state_size)])

    def _ages(self) -> list[int]:
        """Return where the lagged rows stand in a past, the present one first."""
        return [self.n_past - k * self.skip for k in range(self.n_lags)]
