"""Sources whose states contain past rows, among them one that passes them to another source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.saturation import Record


@dataclass(frozen=True, eq=False)
class HoldsPast(FeatureSource):
    """A source whose state contains past rows of its input, then the state of another source.

    Parameters
    ----------
    source : FeatureSource
    n_lags : int
        Number of rows in use: the present one and the rows `skip`, 2 `skip`, ... steps before.
    skip : int, default=1
        Steps from one of these rows to the next.
    """

    source: Any
    n_lags: int
    skip: int = 1

    @property
    def n_past(self) -> int:
        """Rows before the present one that a state contains."""
        return (self.n_lags - 1) * self.skip

    @property
    def past_in_words(self) -> str:
        """The number of past rows in use, in words, with the parameters that set it."""
        return f"n_lags={self.n_lags} and skip={self.skip} use {self.n_past} rows"

    @property
    def n_held(self) -> int:
        """Numbers in the past rows of a state."""
        return self.n_past * self.n_features

    @property
    def state_size(self) -> int:
        """Numbers in a state: the past rows, the oldest first, then the state of the source."""
        return self.n_held + self.source.state_size

    @property
    def dtype(self) -> Any:
        """Type of features and states."""
        return self.source.dtype

    def initial_state_of(self, row: Array) -> Array:
        """Return the state whose past rows all equal the given row, with zeros for the source."""
        return self.after_equal_rows(row, np.zeros(self.source.state_size))

    def after_equal_rows(self, row: Array, state: Array) -> Array:
        """Return a state whose past rows all equal `row`, with `state` for the source."""
        return np.concatenate([np.tile(row, self.n_past), state])

    def _known(self, rows: Array, state: Array) -> Array:
        """Return the past rows of a state, followed by further rows."""
        past = state[: self.n_held].reshape(self.n_past, self.n_features)
        return np.concatenate([past, rows])

    def _ages(self) -> list[int]:
        """Return the indices of the lagged rows in past and present rows, the present row first."""
        return [self.n_past - k * self.skip for k in range(self.n_lags)]


@saved
@dataclass(frozen=True, eq=False)
class LaggedSource(HoldsPast):
    """A source that receives past rows as inputs, for systems whose state one row does not contain.

    Delays of a few observed variables replace the variables that are not observed (Takens 1981).

    Parameters
    ----------
    source : FeatureSource
        Its inputs are the present row, then the rows `skip`, 2 `skip`, ... steps before.
    n_lags, skip : int
        As in `HoldsPast`.
    """

    @property
    def n_features(self) -> int:
        """Columns of the input, without its past."""
        return self.source.n_features // self.n_lags

    @property
    def width(self) -> Any:
        """Columns of the features."""
        return self.source.width

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
        every = self._known(rows, state)
        lagged = np.hstack([every[k : k + len(rows)] for k in self._ages()])
        for start, features, end in self.source.iter_features(
            lagged,
            state[self.n_held :],
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
        n_runs, size = len(states), self.n_held
        every = np.hstack([states[:, :size], inputs]).reshape(n_runs, self.n_past + 1, -1)
        lagged = every[:, self._ages()].reshape(n_runs, -1)
        features, after = self.source.advance(states[:, size:], lagged, teachers)
        return features, np.hstack([every[:, 1:].reshape(n_runs, -1), after])
