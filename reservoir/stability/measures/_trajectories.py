"""Trajectories of a reservoir under a given series: their start, their states, their tangents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import as_generator, check_count
from reservoir.activations import get_activation
from reservoir.dynamics import Reservoir, run, run_many
from reservoir.dynamics.engines import engine_for
from reservoir.dynamics.open_loop import as_feedback, as_series
from reservoir.dynamics.reference import project
from reservoir.dynamics.reservoir import as_vector
from reservoir.stability._arguments import as_reservoir
from reservoir.stability.measures._tangents import Tangent

_BLOCK_SIZE = 2**22  # numbers in a block of trajectories: 32 MiB
_BLOCK_ROWS = 512
_AUTO_WASHOUT = 100  # as the estimators': this many steps, or a tenth of a short series


@dataclass(frozen=True, eq=False)
class Drive:
    """A reservoir in double precision and a checked series that drives it."""

    reservoir: Reservoir
    X: Array
    feedback: Array | None

    def __len__(self) -> int:
        return len(self.X)

    def repeated(self, n: int) -> Drive:
        """Return the series played `n` times."""
        feedback = None if self.feedback is None else np.tile(self.feedback, (n, 1))
        return Drive(self.reservoir, np.tile(self.X, (n, 1)), feedback)

    def states(self, start: Array) -> Array:
        """Return the states that follow `start`, of shape (n_steps, n_units)."""
        return run(self.reservoir, self.X, initial_state=start, feedback=self.feedback)

    def projected(self, begin: int = 0, end: int | None = None) -> Array:
        """Return W_in u + bias + W_fb y of the steps."""
        X = self.X[begin:end]
        out = np.empty((len(X), self.reservoir.n_units))
        project(self.reservoir, X, None if self.feedback is None else self.feedback[begin:end], out)
        return out

    def tangent(self, start: Array, states: Array, begin: int = 0) -> Tangent:
        """Return the product of the steps' Jacobians along a trajectory from row `begin` on."""
        reservoir = self.reservoir
        W, leak = reservoir._product_W, np.asarray(reservoir.leak_rate)
        before = np.vstack([start, states[:-1]])
        z = (W @ before.T).T + self.projected(begin, begin + len(states))
        slopes = leak * get_activation(reservoir.activation).derivative(z)
        return Tangent(W, np.broadcast_to(1 - leak, (reservoir.n_units,))[:, None], slopes)


def read_drive_series(model: Any, name: str, X: Any, feedback: Any) -> Drive:
    """Check a reservoir (or fitted estimator), a series and what is fed back."""
    reservoir = as_reservoir(model).astype("float64")
    X = as_series(name, X, reservoir.n_features, np.float64)
    if not len(X):
        raise ValueError(f"{name} has no rows (n_samples=0); at least 1 is required.")
    return Drive(reservoir, X, as_feedback(reservoir, feedback, len(X)))


def read_state(reservoir: Reservoir, state: Any) -> Array:
    """Return a checked initial state; zeros for None."""
    if state is None:
        return np.zeros(reservoir.n_units)
    return as_vector("initial_state", state, reservoir.n_units, np.float64)


def state_range(reservoir: Reservoir) -> tuple[float, float]:
    """Return the range to draw initial states from: that of a bounded activation, else [-1, 1]."""
    activation = get_activation(reservoir.activation)
    if activation.enclosure is not None:
        return activation.enclosure.low, activation.enclosure.high
    if activation.bounded:
        ends = activation.function(np.array([-1e6, 1e6]))
        return float(ends.min()), float(ends.max())
    return -1.0, 1.0


def spread_states(reservoir: Reservoir, n: int, generator: np.random.Generator) -> Array:
    """Return `n` initial states: zeros, corners of the range, and uniform ones.

    In this order: zeros, the two extreme corners, and then alternately three uniform ones and a
    random corner. Corners reach what contracts the least; uniform states measure basins.
    """
    low, high = state_range(reservoir)
    states = generator.uniform(low, high, (n, reservoir.n_units))
    corners = np.where(generator.random((n, reservoir.n_units)) < 0.5, low, high)
    states[6::4] = corners[6::4]
    states[0] = 0.0
    for i, end in ((1, high), (2, low)):
        if i < n:
            states[i] = end
    return states


def side_by_side(
    drive: Drive, starts: Array, *, begin: int = 0, first_rows: int = _BLOCK_ROWS
) -> Iterator[tuple[int, Array]]:
    """Yield blocks of all trajectories in step: the row they begin with, and their states.

    A block has shape (n_trajectories, rows, n_units); the blocks grow from `first_rows` on, so
    that who stops early has not run far ahead.
    """
    reservoir, n = drive.reservoir, len(starts)
    most = int(np.clip(_BLOCK_SIZE // (n * reservoir.n_units), 1, _BLOCK_ROWS))
    rows, states = min(first_rows, most), starts
    engine = engine_for(reservoir, n * len(drive))
    while begin < len(drive):
        end = min(begin + rows, len(drive))
        feedback = None if drive.feedback is None else [drive.feedback[begin:end]] * n
        block = np.stack(
            run_many(
                reservoir,
                [drive.X[begin:end]] * n,
                initial_states=states,
                feedback=feedback,
                engine=engine,
            )
        )
        yield begin, block
        states, begin, rows = block[:, -1], end, min(2 * rows, most)


def read_washout(washout: Any, n_samples: int) -> int:
    """Return how many rows are left out; refuse what leaves none."""
    if isinstance(washout, str):
        if washout != "auto":
            raise ValueError(f'washout={washout!r} is not known. Give a number of rows or "auto".')
        return min(_AUTO_WASHOUT, n_samples // 10)
    skip = check_count("washout", washout, minimum=0)
    if skip >= n_samples:
        raise ValueError(
            f"washout={skip} leaves no row: X has n_samples={n_samples}. Lower it or use "
            'washout="auto".'
        )
    return skip


def read_comparison(
    reservoir: Any, X: Any, n_states: int, washout: Any, feedback: Any, random_state: Any
) -> tuple[Drive, Array, int]:
    """Check what the comparisons of trajectories share; return drive, initial states, washout."""
    drive = read_drive_series(reservoir, "X", X, feedback)
    skip = read_washout(washout, len(drive))
    return drive, spread_states(drive.reservoir, n_states, as_generator(random_state)), skip
