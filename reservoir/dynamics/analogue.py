"""Past rows of a series that are followed by what followed them, as a source of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run

_NOT_FOLLOWED = -1.0  # in a state: the next step looks for an analogue


@saved
@dataclass(frozen=True, eq=False)
class Analogue(FeatureSource):
    """The known rows that are most like the last `n_lags` rows of the input, and their successors.

    The features are the difference between the row after the analogue and the input. In closed loop
    an analogue is followed to the end of its trajectory, where the next is looked for (E. N.
    Lorenz, "Atmospheric predictability as revealed by naturally occurring analogues", Journal of
    the Atmospheric Sciences 26, 1969). It is a local minimum of the distance over time, if there is
    one: rows next to a more similar row, or just before the forecast, are similar only because they
    are near in time.
    """

    rows: Array  # of all trajectories, one after the other
    followed: Array  # False at the end of each trajectory
    n_lags: int

    @property
    def n_features(self) -> int:
        """Number of columns of the input."""
        return self.rows.shape[1]

    @property
    def width(self) -> int:
        """Number of columns of the features, as many as of the input."""
        return self.rows.shape[1]

    @property
    def n_past(self) -> int:
        """Number of rows before the present one that a state contains."""
        return self.n_lags - 1

    @property
    def memory(self) -> int:
        """Number of rows after which an earlier state has no influence."""
        return self.n_lags

    @property
    def n_held(self) -> int:
        """Number of entries of a state that are past rows."""
        return self.n_past * self.n_features

    @property
    def state_size(self) -> int:
        """Length of a state: the past rows, oldest first, and the number of the row followed."""
        return self.n_held + 1

    @property
    def dtype(self) -> Any:
        """Data type of the features and of the states."""
        return self.rows.dtype

    def initial_state_of(self, row: Array) -> Array:
        """Return a state with all past rows equal to `row` that follows no analogue."""
        return np.append(np.tile(row, self.n_past), _NOT_FOLLOWED)

    @cached_property
    def candidates(self) -> Array:
        """The last row of each run of `n_lags` consecutive rows that a known row follows."""
        joined = sliding_window_view(self.followed, self.n_lags).all(axis=1)
        return np.flatnonzero(joined) + self.n_past

    def nearest(self, recent: Array) -> int:
        """Return the last row of the analogue of recent rows, of shape (n_lags, n_features)."""
        ends = self.candidates
        distances = np.zeros(len(ends))
        for age in range(self.n_lags):
            distances += ((self.rows[ends - age] - recent[-1 - age]) ** 2).sum(axis=1)
        before, after = distances[:-2], distances[2:]
        least = (distances[1:-1] <= before) & (distances[1:-1] <= after)
        least &= ends[2:] - ends[:-2] == 2  # the neighbours in time are candidates, too
        inner = np.flatnonzero(least) + 1
        among = inner if len(inner) else np.arange(len(ends))
        return int(ends[among[distances[among].argmin()]])

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence row by row, and look for an analogue of each row."""
        state = np.append(state[:-1], _NOT_FOLLOWED)
        for k, row in enumerate(rows):
            features, after = self.advance(state[None], row[None])
            state = np.append(after[0, :-1], _NOT_FOLLOWED)
            yield k, features, state

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        recent = np.hstack([states[:, : self.n_held], inputs]).reshape(len(inputs), self.n_lags, -1)
        at = states[:, -1].astype(int)
        for run in np.flatnonzero(at < 0):
            at[run] = self.nearest(recent[run])
        features = self.rows[at + 1] - inputs
        following = np.where(self.followed[at + 1], at + 1, _NOT_FOLLOWED)
        past = recent[:, 1:].reshape(len(inputs), -1)
        return features, np.hstack([past, following[:, None]])
