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
_FEW_INPUTS = 32  # largest number of inputs that the kernel adds itself; above it a GEMM is faster


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
        with np.errstate(over="ignore", invalid="ignore"):
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
        with np.errstate(over="ignore", invalid="ignore"):
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
    """Run sequences side by side, one per lane of a vector, and write their states to `place`.

    `states`, (n_sequences, n_units), are those before the first step. `inputs`, (n_sequences,
    n_steps, n_features + n_outputs), are the features, then outputs that are fed back. `place` is
    (at least n_sequences, a multiple of 8, n_steps, n_units); the rows of one sequence must be
    contiguous, but different sequences need not be adjacent.
    """
    n_sequences, n_steps, n_inputs = inputs.shape
    # the kernel reads lanes along the last axis; unused lanes receive 0
    width = _kernels.lanes_for(n_sequences, reservoir.dtype)
    received = np.zeros((n_steps, n_inputs, width), reservoir.dtype)
    received[:, :, :n_sequences] = inputs.transpose(1, 2, 0)
    code = code_of(reservoir)
    assert code is not None
    _kernels.advance_lanes(place, states, received, reservoir._packed_rows, code, reservoir._leaks)


def loop_lanes(
    reservoir: Reservoir,
    readouts: Array,
    states: Array,
    inputs: Array,
    clip: tuple[Array, Array],
) -> Array:
    """Run closed loops side by side; the parameters are those of `FeatureSource.run_lanes`.

    `readouts` has shape (n_loops, n_outputs, n_units + 1 + n_inputs), with the intercepts between
    the weights of units and inputs.
    """
    code, dtype = code_of(reservoir), reservoir.dtype
    assert code is not None
    n_steps, n_loops, _ = inputs.shape
    outputs = np.empty((n_steps, n_loops, readouts.shape[1]))
    at_once = _kernels.lanes_for(n_loops, dtype)
    for begin in range(0, n_loops, at_once):
        part = slice(begin, begin + at_once)
        n = len(states[part])
        width = _kernels.lanes_for(n, dtype)

        # the kernel reads lanes along the last axis; unused lanes receive 0
        def lanes(rows: Array, n: int = n, width: int = width) -> Array:
            padded = np.zeros((*rows.shape[1:], width), dtype)
            padded[..., :n] = np.moveaxis(rows, 0, -1)
            return padded

        low, high = (lanes(bound[part]) for bound in clip)
        received = lanes(inputs[:, part].transpose(1, 0, 2))
        found = _kernels.loop_lanes(
            states[part].astype(dtype), received, lanes(readouts[part]), low, high,
            reservoir._packed_rows, code, reservoir._leaks,
        )  # fmt: skip
        outputs[:, part] = found[:, :, :n].transpose(0, 2, 1)
    return outputs


def pool_lanes(
    reservoir: Reservoir, thresholds: Array, states: Array, series: Sequence[Array], **wanted: bool
) -> _kernels.LaneSums:
    """Run sequences side by side and return sums of their states.

    `thresholds`, (n_thresholds, n_units), are the levels above which states are counted. `states`,
    (n_sequences, n_units), are those before the first step. Series, (n_steps_i, n_features), may
    differ in length. `wanted` says whether to compute `moments`, `ends` and `last`, as in
    `_kernels.lane_sums`.
    """
    n_units, n_inputs, dtype = reservoir.n_units, reservoir.n_features, reservoir.dtype
    width, code = _kernels.lanes_for(len(series), dtype), code_of(reservoir)
    assert code is not None
    levels = np.full((n_units, -(-len(thresholds) // 4) * 4), np.inf, dtype)
    levels[:, : len(thresholds)] = thresholds.T
    # unused lanes run as well, with inputs of zero
    longest = max(map(len, series))
    lengths, done = np.full(width, longest, np.int64), np.zeros(width)
    lengths[: len(series)] = [len(X) for X in series]
    n_steps = min(longest, _LANE_STEPS)
    sums = _kernels.lane_sums(n_units, len(thresholds), width, dtype, **wanted)
    work = _kernels.lane_work(states, n_inputs, n_steps, width)
    memory = np.empty((n_steps, n_inputs, width), dtype)
    # run in blocks of steps; lanes are the last axis
    for begin in range(0, longest, _LANE_STEPS):
        received = memory[: longest - begin]
        received[:] = 0.0
        for lane, X in enumerate(series):
            part = X[begin : begin + len(received)]
            received[: len(part), :, lane] = part
        _kernels.pool_lanes(
            sums, levels, done, lengths - begin, work, received,
            reservoir._packed_rows, code, reservoir._leaks,
        )  # fmt: skip
    return sums


def recurrence(reservoir: Reservoir) -> Callable[[Array, Array], None]:
    """Return a function ``add(x, z)`` that adds W x to z in place with a compiled product."""

    def add(x: Array, z: Array) -> None:
        z += _kernels.multiply(reservoir._packed, x)

    return add
