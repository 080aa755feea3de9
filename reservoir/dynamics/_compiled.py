"""The engine "numba": compiled kernels that run on a reservoir's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from reservoir import _kernels
from reservoir._typing import Array
from reservoir.dynamics import reference
from reservoir.dynamics.engines import code_of
from reservoir.dynamics.reservoir import Reservoir

_LANE_STEPS = 1024  # steps of pooled sequences in one kernel call; must be even
_FEW_INPUTS = 8  # largest number of inputs that the kernel adds itself; above it a GEMM is faster


def advance(
    reservoir: Reservoir,
    state: Array,
    place: Array,
    X: Array,
    feedback: Array | None,
    kicks: Array | None,
) -> None:
    """Run one block of steps with a kernel; the parameters are those of `reference.advance`.

    For an activation that the kernels do not support, only the product W x is compiled.
    """
    code = code_of(reservoir)
    block = place[:, : reservoir.n_units]
    if code is None:
        reference.project(reservoir, X, feedback, block)
        reference.step_through(reservoir, state, block, kicks, recurrence(reservoir))
        return
    # the kernel writes to C-ordered memory only; any other memory is filled from such a buffer
    ready = place.flags.c_contiguous and place.flags.writeable
    buffer = place if ready else np.empty_like(place, order="C")
    # the kernel adds few inputs itself; many inputs enter by one matrix product per block
    inputs = X if feedback is None else np.hstack([X, feedback])
    few = inputs.shape[1] <= _FEW_INPUTS and not sp.issparse(reservoir.W_in)
    if not few:
        reference.project(reservoir, X, feedback, buffer[:, : reservoir.n_units])
    _kernels.advance(
        buffer,
        state,
        np.ascontiguousarray(inputs) if few else None,
        reservoir._drive_weights if few else None,
        reservoir._packed,
        code,
        reservoir._leaks,
        kicks,
    )
    if buffer is not place:
        block[:] = buffer[:, : reservoir.n_units]


def advance_lanes(reservoir: Reservoir, states: Array, inputs: Array, place: Array) -> None:
    """Run up to eight sequences side by side, one per lane of a vector.

    Parameters
    ----------
    reservoir : Reservoir
        With a sparse W and an activation that the kernels support.
    states : array of shape (n_sequences, n_units)
        The states before the first step.
    inputs : array of shape (n_sequences, n_steps, n_features + n_outputs)
        The features, then the outputs that are fed back, if any.
    place : array of shape (8, n_steps, n_units)
        Memory that the states are written to. The rows of one sequence must be contiguous;
        different sequences need not be adjacent.
    """
    n_sequences, n_steps, n_inputs = inputs.shape
    lanes = _kernels.LANES
    state = np.zeros((reservoir.n_units, lanes), reservoir.dtype)
    state[:, :n_sequences] = states.T
    # the kernel reads lanes along the last axis; the last input is 1, for the bias; unused lanes
    # receive 0
    received = np.ones((n_steps, n_inputs + 1, lanes), reservoir.dtype)
    received[:, :n_inputs, :n_sequences] = inputs.transpose(1, 2, 0)
    received[:, :n_inputs, n_sequences:] = 0.0
    code = code_of(reservoir)
    assert code is not None
    _kernels.advance_lanes(
        place, state, received, reservoir._packed_rows, code, reservoir._lane_leaks
    )


class PooledLanes:
    """Runs up to eight sequences side by side and pools their states; can be called repeatedly.

    Parameters
    ----------
    reservoir : Reservoir
        With a sparse W and an activation that the kernels support.
    thresholds : array of shape (n_thresholds, n_units)
        For each unit, the levels above which its states are counted.
    longest : int
        Number of steps of the longest sequence in any call.
    wanted : bool
        Whether to compute each kind of sum: `moments`, `ends` and `last`, as in
        `_kernels.lane_sums`.
    """

    def __init__(
        self, reservoir: Reservoir, thresholds: Array, longest: int, **wanted: bool
    ) -> None:
        n_units, n_inputs, dtype = reservoir.n_units, reservoir.n_features + 1, reservoir.dtype
        self.reservoir = reservoir
        self.levels = np.full((n_units, -(-len(thresholds) // 4) * 4), np.inf, dtype)
        self.levels[:, : len(thresholds)] = thresholds.T
        n_steps = min(longest, _LANE_STEPS)
        self.sums = _kernels.lane_sums(n_units, len(thresholds), dtype, **wanted)
        self.work = _kernels.lane_work(n_units, n_inputs, n_steps, dtype)
        self.received = np.empty((n_steps, n_inputs, _kernels.LANES), dtype)

    def __call__(self, states: Array, series: Sequence[Array]) -> _kernels.LaneSums:
        """Return the sums for sequences of any lengths; the next call overwrites them.

        Parameters
        ----------
        states : array of shape (n_sequences, n_units)
            The states before the first step.
        series : sequence of arrays of shape (n_steps_i, n_features)
            The inputs of each sequence.
        """
        reservoir, code = self.reservoir, code_of(self.reservoir)
        assert code is not None
        _kernels.begin_lanes(self.sums, self.work, states)
        # unused lanes run as well, with inputs of zero
        longest = max(map(len, series))
        lengths = np.full(_kernels.LANES, longest, np.int64)
        lengths[: len(series)] = [len(X) for X in series]
        done = np.zeros(_kernels.LANES)
        # run in blocks of steps; lanes are the last axis, and the last input is 1, for the bias
        for begin in range(0, longest, _LANE_STEPS):
            received = self.received[: longest - begin]
            received[:, :-1], received[:, -1] = 0.0, 1.0
            for lane, X in enumerate(series):
                part = X[begin : begin + len(received)]
                received[: len(part), :-1, lane] = part
            _kernels.pool_lanes(
                self.sums, self.levels, done, lengths - begin, self.work, received,
                reservoir._packed_rows, code, reservoir._lane_leaks,
            )  # fmt: skip
        return self.sums


def recurrence(reservoir: Reservoir) -> Callable[[Array, Array], None]:
    """Return a function ``add(x, z)`` that adds W x to z in place with a compiled product."""

    def add(x: Array, z: Array) -> None:
        z += _kernels.multiply(reservoir._packed, x)

    return add
