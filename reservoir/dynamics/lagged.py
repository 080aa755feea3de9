"""Feature sources whose states contain past rows of the input."""

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
    """A source whose state contains past rows of its input, then the state of an inner source.

    Parameters
    ----------
    source : FeatureSource
        The inner source.
    n_lags : int
        Number of rows in use: the present row and the rows `skip`, 2 `skip`, ... steps before it.
    skip : int, default=1
        Number of steps from one of these rows to the next.
    """

    source: Any
    n_lags: int
    skip: int = 1

    @property
    def n_past(self) -> int:
        """Number of rows before the present one that a state contains."""
        return (self.n_lags - 1) * self.skip

    @property
    def past_in_words(self) -> str:
        """Text for messages: the number of past rows in use and the parameters that set it."""
        return f"n_lags={self.n_lags} and skip={self.skip} use {self.n_past} rows"

    @property
    def n_held(self) -> int:
        """Number of entries of a state that are past rows."""
        return self.n_past * self.n_features

    @property
    def state_size(self) -> int:
        """Length of a state: the past rows, oldest first, and the state of the inner source."""
        return self.n_held + self.source.state_size

    @property
    def dtype(self) -> Any:
        """Data type of the features and of the states."""
        return self.source.dtype

    def initial_state_of(self, row: Array) -> Array:
        """Return a state with all past rows equal to `row`, and zeros for the inner source."""
        return self.after_equal_rows(row, np.zeros(self.source.state_size))

    def after_equal_rows(self, row: Array, state: Array) -> Array:
        """Return a state with all past rows equal to `row`, and `state` for the inner source."""
        return np.concatenate([np.tile(row, self.n_past), state])

    def _known(self, rows: Array, state: Array) -> Array:
        """Return the past rows of a state, followed by further rows."""
        past = state[: self.n_held].reshape(self.n_past, self.n_features)
        return np.concatenate([past, rows])

    def _ages(self) -> list[int]:
        """Return the indices of the rows in use, present row first, in past and present rows."""
        return [self.n_past - k * self.skip for k in range(self.n_lags)]


@saved
@dataclass(frozen=True, eq=False)
class LaggedSource(HoldsPast):
    """A source that passes past rows to an inner source, as inputs in addition to the present row.

    It is meant for systems of which one row does not determine the state: delayed values of the few
    observed variables replace the variables that are not observed (Takens 1981).

    Parameters
    ----------
    source : FeatureSource
        The inner source, whose inputs are the present row, then the rows `skip`, 2 `skip`, ...
        steps before it.
    n_lags, skip : int
        As in `HoldsPast`.
    """

    @property
    def n_features(self) -> int:
        """Number of columns of the input, not counting past rows."""
        return self.source.n_features // self.n_lags

    @property
    def width(self) -> Any:
        """Number of columns of the features."""
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
