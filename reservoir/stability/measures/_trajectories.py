"""Trajectories of a reservoir under one series from many initial states, shared by all measures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._typing import Array, Matrix
from reservoir._validation import as_generator, caller_level, check_count
from reservoir.activations import get_activation
from reservoir.dynamics import Reservoir, run, run_many
from reservoir.dynamics.engines import engine_for
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.dynamics.open_loop import as_feedback, as_series
from reservoir.dynamics.reference import project, recurrent_matrix
from reservoir.dynamics.reservoir import as_vector
from reservoir.stability._arguments import warn_of_open_loop

_BLOCK_SIZE = 2**22  # numbers in a block of trajectories: 32 MiB
_BLOCK_ROWS = 512  # rows in a block, at most
_CONVERGED = 1e-2  # responses have converged where their distance shrank to this share
_AUTO_WASHOUT = 100  # rows of washout="auto"; a tenth of the series if that is less


@dataclass(frozen=True, eq=False)
class Drive:
    """A reservoir in double precision with the checked series that drives it.

    `X` is (n_steps, n_features). `feedback`, (n_steps, n_outputs), is what is fed back at each
    step, or None.
    """

    reservoir: Reservoir
    X: Array
    feedback: Array | None

    def __len__(self) -> int:
        return len(self.X)

    def repeated(self, n: int) -> Drive:
        """Return the series repeated `n` times."""
        feedback = None if self.feedback is None else np.tile(self.feedback, (n, 1))
        return Drive(self.reservoir, np.tile(self.X, (n, 1)), feedback)

    def states(self, start: Array) -> Array:
        """Return the states after each step from the state `start`, of shape (n_steps, n_units)."""
        return run(self.reservoir, self.X, initial_state=start, feedback=self.feedback)

    def projected(self, begin: int = 0, end: int | None = None) -> Array:
        """Return W_in u + bias + W_fb y of steps `begin` to `end`, of shape (n_steps, n_units)."""
        X = self.X[begin:end]
        out = np.empty((len(X), self.reservoir.n_units))
        project(self.reservoir, X, None if self.feedback is None else self.feedback[begin:end], out)
        return out

    def tangent(self, start: Array, states: Array, begin: int = 0) -> Tangent:
        """Return the product of the step Jacobians along a trajectory.

        `states` are the states after each step from row `begin` of the series, and `start` is the
        state before row `begin`.
        """
        reservoir = self.reservoir
        W, leak = recurrent_matrix(reservoir), np.asarray(reservoir.leak_rate)
        before = np.vstack([start, states[:-1]])
        z = (W @ before.T).T + self.projected(begin, begin + len(states))
        slopes = leak * get_activation(reservoir.activation).derivative(z)
        return Tangent(W, np.broadcast_to(1 - leak, (reservoir.n_units,))[:, None], slopes)


def read_drive_series(model: Any, name: str, X: Any, feedback: Any) -> Drive:
    """Check a reservoir (or fitted estimator), the series called `name`, and the feedback."""
    reservoir = as_reservoir(model).astype("float64")
    X = as_series(name, X, reservoir.n_features, np.float64)
    if not len(X):
        raise ValueError(f"{name} has no rows (n_samples=0); at least 1 is required.")
    warn_of_open_loop(model, X)
    return Drive(reservoir, X, as_feedback(reservoir, feedback, len(X)))


def read_state(reservoir: Reservoir, state: Any) -> Array:
    """Return a checked initial state of shape (n_units,), or zeros if `state` is None."""
    if state is None:
        return np.zeros(reservoir.n_units)
    return as_vector("initial_state", state, reservoir.n_units, np.float64)


def state_range(reservoir: Reservoir) -> tuple[float, float]:
    """Return the range of initial states: the activation's if it is bounded, else [-1, 1]."""
    activation = get_activation(reservoir.activation)
    if activation.enclosure is not None and activation.enclosure.bounded:
        return activation.enclosure.low, activation.enclosure.high
    if activation.bounded:
        ends = activation.function(np.array([-1e6, 1e6]))
        return float(ends.min()), float(ends.max())
    return -1.0, 1.0


def spread_states(reservoir: Reservoir, n: int, generator: np.random.Generator) -> Array:
    """Return `n` initial states of shape (n, n_units), spread over the activation's range.

    They are zeros, all units at the upper end, all at the lower end, and then in turn three states
    with uniform units and one with each unit at a random end. Corners find responses that uniform
    states miss; the fractions of uniform states that lead to each cycle estimate the sizes of the
    basins.
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
    """Run all trajectories together, and yield their states block by block.

    `starts`, (n_trajectories, n_units), are the states before row `begin`. Yield the block's first
    row in the series, and the states after each of its rows, (n_trajectories, rows, n_units). The
    first block has `first_rows` rows and each has twice those of the one before, up to a limit, so
    that a caller that needs only the first rows does not compute many more.
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


def read_washout(washout: Any, n_samples: int, *, least: int = 2) -> int:
    """Return the number of washout rows from `washout`; of the samples, `least` rows remain."""
    if isinstance(washout, str):
        if washout != "auto":
            raise ValueError(f'washout={washout!r} is not known. Give a number of rows or "auto".')
        skip = min(_AUTO_WASHOUT, n_samples // 10)
    else:
        skip = check_count("washout", washout, minimum=0)
    if n_samples - skip < least:
        raise ValueError(
            f"washout={skip} leaves {max(0, n_samples - skip)} rows of n_samples={n_samples}; at "
            f"least {least} are required. Give a longer X (of a constant input, its row repeated) "
            "or a smaller washout."
        )
    return skip


def read_comparison(
    reservoir: Any,
    X: Any,
    n_states: int,
    washout: Any,
    feedback: Any,
    random_state: Any,
    *,
    least: int = 2,
) -> tuple[Drive, Array, int]:
    """Check the arguments of a measure that compares trajectories from `n_states` initial states.

    Returns the drive, the initial states of shape (n_states, n_units), and the washout in rows.
    """
    drive = read_drive_series(reservoir, "X", X, feedback)
    skip = read_washout(washout, len(drive), least=least)
    check_count("n_initial_states", n_states, size=3 * drive.reservoir.n_units)
    return drive, spread_states(drive.reservoir, n_states, as_generator(random_state)), skip


class Convergence:
    """The largest distances between responses, in the first counted row and in the latest."""

    def __init__(self) -> None:
        self.first = self.last = np.nan

    def add(self, block: Array) -> None:
        """Add counted rows of all responses, of shape (n, rows, n_units)."""
        if np.isnan(self.first):
            self.first = float(np.ptp(block[:, 0], axis=0).max())
        self.last = float(np.ptp(block[:, -1], axis=0).max())

    def warn_of_transient(self, washout: int) -> None:
        """Warn if responses converge within the rows that are counted."""
        if self.last < _CONVERGED * self.first:
            warnings.warn(
                f"The responses differ by {self.first:.2g} after washout={washout} rows and by "
                f"{self.last:.2g} in the last row: they converge, and the result describes this "
                "transient. Give a longer X and a larger washout.",
                RuntimeWarning,
                stacklevel=caller_level(),
            )


@dataclass(frozen=True, eq=False)
class Tangent:
    """The product J[T] ... J[1] of the Jacobians J[t] = (1 - a) I + diag(a f'(z[t])) W of T steps.

    It maps a small difference of states to the difference after the steps. Only `matrix` forms it.
    `kept`, (n_units, 1), is 1 - a, where a are the leak rates; `slopes`, (n_steps, n_units), are a
    f'(z[t]), where z are the pre-activations.
    """

    W: Matrix
    kept: Array
    slopes: Array

    def advance(self, V: Array, t: int) -> Array:
        """Return the Jacobian of step t times V, of shape (n_units, n_columns)."""
        out = self.W @ V
        out *= self.slopes[t][:, None]
        if self.kept.any():
            out += self.kept * V
        return out

    def apply(self, V: Array) -> Array:
        """Return the whole product times V, of shape (n_units,) or (n_units, n_columns)."""
        out = V.reshape(len(V), -1)
        for t in range(len(self.slopes)):
            out = self.advance(out, t)
        return out.reshape(V.shape)

    def matrix(self) -> Array:
        """Return the product as a dense matrix of shape (n_units, n_units)."""
        return self.apply(np.eye(len(self.kept)))
