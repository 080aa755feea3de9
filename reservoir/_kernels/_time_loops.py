"""Kernels of reservoirs: the loops over time. Imported, with numba, at the first call of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from reservoir._kernels._compile import OPTIONS, inner, kernel, named
from reservoir._kernels._vector import (
    dense_dot8,
    dot8,
    gather_dot8,
    logistic8,
    row_times_lanes,
    store_transposed,
    tanh8,
)


@inner
def _relu(z: Any) -> None:
    for i in range(z.shape[0]):
        if z[i] < 0:  # NaN stays NaN
            z[i] = 0


@inner
def _leaky_relu(z: Any, slope: Any) -> None:
    for i in range(z.shape[0]):
        if z[i] < 0:
            z[i] *= slope


@inner
def _softplus(z: Any) -> None:
    for i in range(z.shape[0]):
        rest = math.log1p(math.exp(-abs(z[i])))
        z[i] = z[i] + rest if z[i] > 0 else rest


@inner
def _activate(z: Any, code: int, slope: Any) -> None:
    """Replace z, of a size that is a multiple of eight, by f(z); `slope` is for leaky_relu."""
    if code == 0:
        for i in range(0, z.shape[0], 8):
            tanh8(z, i)
    elif code == 1:
        for i in range(0, z.shape[0], 8):
            logistic8(z, i)
    elif code == 2:
        _relu(z)
    elif code == 3:
        _leaky_relu(z, slope)
    elif code == 5:
        _softplus(z)


# Rows are passed as array and index, never as slices: numba counts references to a slice, which
# costs as much as a step of a small reservoir.


@inner
def _add_row(z: Any, rows: Any, k: int, n: int) -> None:
    for i in range(n):
        z[i] += rows[k, i]


@inner
def _add_row_times(z: Any, rows: Any, k: int, factor: Any) -> None:
    for i in range(rows.shape[1]):
        z[i] += rows[k, i] * factor


@inner
def _add_affine(z: Any, rows: Any, factor: Any) -> None:
    for i in range(rows.shape[1]):
        z[i] += rows[0, i] + rows[1, i] * factor


@inner
def _update(x: Any, z: Any, leak: Any, keep: Any, n: int) -> None:
    """Replace the state x by (1 - a) x + a z, z the activations; an empty `leak` means a = 1."""
    if leak.shape[0] == 0:
        for i in range(n):
            x[i] = z[i]
    else:
        for i in range(n):
            x[i] = keep[i] * x[i] + leak[i] * z[i]


@inner
def _copy(rows: Any, k: int, x: Any, n: int) -> None:
    for i in range(n):
        rows[k, i] = x[i]


def product(z: Any, W: Any, x: Any) -> None:
    """Write W x into z. Compiled code calls the version for the layout of W, selected below."""


def _sparse_product(z: Any, W: Any, x: Any) -> None:
    for s in range(W.rows.shape[0]):
        start, stop = W.offsets[s], W.offsets[s + 1]
        gather_dot8(z, W.rows, W.data, W.indices, start, stop, s, x)


def _dense_product(z: Any, W: Any, x: Any) -> None:
    n_slices, n_units, _ = W.data.shape
    for s in range(n_slices):
        dense_dot8(z, W.data, s, n_units, x)


@overload(product, jit_options=OPTIONS)
def _product(z: Any, W: Any, x: Any) -> Any:
    sparse = isinstance(W, types.NamedTuple) and "rows" in W.fields
    return named(_sparse_product if sparse else _dense_product)


@kernel
def multiply(z: Any, W: Any, x: Any) -> None:
    """Write W x into z: one product, for steps whose activation is a Python function."""
    product(z, W, x)


@kernel
def activate(z: Any, code: int, slope: Any) -> None:
    """Replace z, whose size is a multiple of eight, by f(z)."""
    _activate(z, code, slope)


@kernel
def advance(
    buffer: Any, x: Any, z: Any, n_units: int, inputs: Any, weights: Any, kicks: Any,
    W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Run one sequence: write the states into the first columns of `buffer`, row by row.

    `x` is the state before the first step and `z` working memory for W x, both padded to a multiple
    of eight. `weights` contains the bias and a row per input; if it is empty, `buffer` contains the
    drive. An empty `leak` means no leak, an empty `kicks` no noise.
    """
    for t in range(buffer.shape[0]):
        # the pre-activation: the recurrent part, then the drive
        product(z, W, x)
        if weights.shape[0] == 0:
            _add_row(z, buffer, t, n_units)
        elif weights.shape[0] == 2:  # a single input, the most common case, in one pass
            _add_affine(z, weights, inputs[t, 0])
        else:
            _add_row(z, weights, 0, n_units)
            for k in range(1, weights.shape[0]):
                _add_row_times(z, weights, k, inputs[t, k - 1])
        _activate(z, code, slope)
        _update(x, z, leak, keep, n_units)
        if kicks.shape[0] > 0:
            _add_row(x, kicks, t, n_units)
        _copy(buffer, t, x, n_units)


@inner
def _update_lanes(new: Any, old: Any, begin: int, z: Any, n: int, leak: Any, keep: Any) -> None:
    for i in range(n):
        j = np.uint64(begin) + np.uint64(i)  # a signed index would prevent vectorisation
        if leak.shape[0] == 0:
            new[j] = z[i]
        else:
            new[j] = keep[j] * old[j] + leak[j] * z[i]


@inner
def receive(inputs: Any, t: int, n_units: int, x: Any) -> None:
    """Store the inputs of a step after the states of eight sequences, as in [W, W_in, ...]."""
    for i in range(inputs.shape[1]):
        for lane in range(8):
            x[(n_units + i) * 8 + lane] = inputs[t, i, lane]


@inner
def step_units(
    begin: int, rows: int, old: Any, new: Any, z: Any,
    W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Step a few units of eight sequences, from the states and inputs `old` to the states `new`."""
    for i in range(rows):
        start, stop = W.offsets[begin + i], W.offsets[begin + i + 1]
        row_times_lanes(z, i, W.data, W.indices, start, stop, old)
    _activate(z, code, slope)
    _update_lanes(new, old, begin * 8, z, rows * 8, leak, keep)


@inner
def _step_lanes(
    flat: Any, stride: int, n_units: int, t: int, old: Any, new: Any, z: Any, inputs: Any,
    W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Step eight sequences once, from the states `old` to `new`; `flat` receives the new ones."""
    receive(inputs, t, n_units, old)
    # a few units at a time, so that their pre-activations stay in the L1 cache
    for begin in range(0, n_units, z.shape[0] // 8):
        rows = min(z.shape[0] // 8, n_units - begin)
        step_units(begin, rows, old, new, z, W, code, slope, leak, keep)
        # in memory the units of a sequence are adjacent: transpose, by tiles of 8 x 8
        whole = rows - rows % 8
        for i in range(begin, begin + whole, 8):
            store_transposed(flat, t * n_units + i, stride, new, i * 8)
        for i in range(begin + whole, begin + rows):
            for lane in range(8):
                flat[lane * stride + t * n_units + i] = new[i * 8 + lane]


@kernel
def advance_lanes(
    flat: Any, stride: int, n_units: int, x: Any, y: Any, z: Any, inputs: Any,
    W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Run eight sequences side by side.

    `flat` receives the states; the states of a sequence are contiguous, and sequences are `stride`
    numbers apart. `x` contains the states before the first step, one sequence per lane, then room
    for the inputs; `y` has the same size, and the two alternate as old and new state. `inputs`, of
    shape (n_steps, n_inputs, 8), includes the constant 1 for the bias. `z` is working memory for a
    few units, so that they stay in the L1 cache. `leak` and `keep` are a and 1 - a, each repeated
    eight times per unit; both are empty without a leak.
    """
    for t in range(inputs.shape[0]):
        if t % 2 == 0:
            _step_lanes(flat, stride, n_units, t, x, y, z, inputs, W, code, slope, leak, keep)
        else:
            _step_lanes(flat, stride, n_units, t, y, x, z, inputs, W, code, slope, leak, keep)


@inner
def _within(rows: Any, k: int, n: int, limit: Any) -> bool:
    """Whether the first n numbers of a row are below the limit in modulus; False for NaN."""
    inside = True
    for i in range(n):
        inside &= abs(rows[k, i]) < limit
    return inside


@kernel
def closed_loop(
    outputs: Any, output: Any, x: Any, drive: Any, from_output: Any, exog: Any, coef: Any,
    coef_squares: Any, coef_tail: Any, intercept: Any, n_fed: int, clip: Any, bounded: bool,
    limit: Any, n_units: int, W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> Any:  # fmt: skip
    """Run a reservoir in closed loop; return the number of steps that stayed within the limit.

    `x`, of shape (3, padded size), contains the state, the previous state (the last valid one if
    the run ends early) and working memory for W x. `output`, of shape (n_outputs,), is fed back in
    the first step, and is changed. `drive` is the part of the pre-activations that does not depend
    on the outputs, one row per step or one for all. The readout consists of `coef`, of shape
    (n_outputs, padded size), for the state; `coef_squares`, of the same shape or without columns,
    for the squares of its entries, which are written into the working memory; `coef_tail`, of shape
    (n_outputs, n_fed + n_exog) or without columns, for fed-back outputs and exogenous inputs.
    `clip`, of shape (2, n_outputs) or without columns, contains the bounds of outputs that are fed
    back. Other parameters are described in `reservoir._kernels.closed_loop`.
    """
    n_steps, n_outputs = outputs.shape
    state, before, z = x[0], x[1], x[2]
    for k in range(n_steps):
        # clip the outputs that are fed back
        for j in range(clip.shape[1]):
            output[j] = min(max(output[j], clip[0, j]), clip[1, j])
        # the step of the reservoir
        product(z, W, state)
        _add_row(z, drive, k if drive.shape[0] > 1 else 0, n_units)
        for j in range(n_outputs):
            _add_row_times(z, from_output, j, output[j])
        _activate(z, code, slope)
        for i in range(n_units):
            before[i] = state[i]
        _update(state, z, leak, keep, n_units)
        if not bounded and not _within(x, 0, n_units, limit):
            return k
        # the readout: from the state, its squares and the input, if it has coefficients for them
        if coef_squares.shape[1] > 0:
            for i in range(coef_squares.shape[1]):
                z[i] = state[i] * state[i]
        for j in range(n_outputs):
            value = intercept[j] + dot8(coef, j * coef.shape[1], state, coef.shape[1])
            if coef_squares.shape[1] > 0:
                value += dot8(coef_squares, j * coef.shape[1], z, coef_squares.shape[1])
            if coef_tail.shape[1] > 0:
                for i in range(n_fed):
                    value += coef_tail[j, i] * output[i]
                for i in range(exog.shape[1]):
                    value += coef_tail[j, n_fed + i] * exog[k, i]
            outputs[k, j] = value
        if not _within(outputs, k, n_outputs, limit):
            return k
        for j in range(n_outputs):
            output[j] = outputs[k, j]
    return n_steps
