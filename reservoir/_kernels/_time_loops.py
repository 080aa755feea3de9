"""Kernels of reservoirs: the loops over time. Imported, with numba, at the first call of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import overload

from reservoir._kernels._compile import OPTIONS, inner, kernel, named
from reservoir._kernels._finish import (
    copy_line,
    diagonals_of_line,
    diagonals_of_lines,
    finish_line,
    finish_lines,
    line_size,
    lines_size,
)
from reservoir._kernels._vector import (
    dense_dot8,
    dot8,
    gather_dot8,
    logistic8,
    row_times_lanes,
    store_transposed,
    tanh8,
    tanh_lines,
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
        whole = z.shape[0] // lines_size(z) * lines_size(z)
        for i in range(0, whole, lines_size(z)):
            tanh_lines(z, i)
        for i in range(whole, z.shape[0], 8):
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


@inner
def _driven_softplus(
    z: Any, n: int, base: Any, base_at: int, weights: Any, weights_at: int, size: int,
    factors: Any, first: int, n_factors: int,
) -> None:  # fmt: skip
    """Replace the products W x in z by the values of softplus; there is no vector logarithm."""
    for i in range(n):
        z[i] += base[np.uint64(base_at) + np.uint64(i)]  # signed indices are not vectorised
    for k in range(n_factors):
        begin, factor = np.uint64(weights_at + k * size), factors[first + k]
        for i in range(n):
            z[i] += weights[begin + np.uint64(i)] * factor
    _softplus(z)


def product(z: Any, W: Any, x: Any, at: int) -> None:
    """Write the product of W and the vector that begins at ``x[at]`` into z.

    Compiled code calls the version for the layout of W, selected below.
    """


def _sparse_product(z: Any, W: Any, x: Any, at: int) -> None:
    for s in range(W.offsets.shape[0] - 1):
        start, stop = W.offsets[s], W.offsets[s + 1]
        gather_dot8(z, W.rows, W.data, W.indices, start, stop, s, x, at)


def _dense_product(z: Any, W: Any, x: Any, at: int) -> None:
    n_slices, n_units, _ = W.data.shape
    for s in range(n_slices):
        dense_dot8(z, W.data, s, n_units, x, at)


def _diagonal_product(z: Any, W: Any, x: Any, at: int) -> None:
    n, n_diagonals, line, lines = W.n_units, W.offsets.shape[0], line_size(z), lines_size(z)
    # behind the vector, its first numbers again: as many as are loaded at a time
    if n < lines:
        for i in range(lines):
            x[at + n + i] = x[at + i]
    else:
        for i in range(0, lines, line):
            copy_line(x, at + n + i, x, at + i)
    whole = n // lines * lines
    for i in range(0, whole, lines):
        diagonals_of_lines(z, i, n, W.data, W.offsets, n_diagonals, x, at)
    for i in range(whole, z.shape[0], line):
        diagonals_of_line(z, i, n, W.data, W.offsets, n_diagonals, x, at)


@overload(product, jit_options=OPTIONS)
def _product(z: Any, W: Any, x: Any, at: int) -> Any:
    if "rows" in W.fields:
        return named(_sparse_product)
    return named(_diagonal_product if "n_units" in W.fields else _dense_product)


@kernel
def multiply(z: Any, W: Any, x: Any) -> None:
    """Write W x into z: one product, for steps whose activation is a Python function."""
    product(z, W, x, 0)


@kernel
def activate(z: Any, code: int, slope: Any) -> None:
    """Replace z, whose size is a multiple of eight, by f(z)."""
    _activate(z, code, slope)


@kernel
def advance(
    buffer: Any, stride: int, n_units: int, x: Any, z: Any, inputs: Any, weights: Any,
    driven: bool, kicks: Any, W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Run one sequence: write the states into `buffer`, `stride` numbers apart, step by step.

    `x` is the state before the first step and `z` working memory for W x. `weights` contains the
    bias, a row per input and a row of zeros; if `driven`, `buffer` contains the drive, and
    `weights` is working memory of two rows, of zeros. `inputs` are those of all steps. `x`, `z`
    and the rows of `weights` are padded to whole cache lines. An empty `leak` means no leak, an
    empty `kicks` no noise. After a state there is room for `REPEATED` bytes.
    """
    size, line, lines = z.shape[0], line_size(z), lines_size(z)
    whole, n_inputs, leaky = n_units // lines * lines, weights.shape[0] // size - 2, leak.shape[0]
    for t in range(buffer.shape[0] // stride):
        row, base, n_factors, f = t * stride, 0, n_inputs, code
        product(z, W, x, 0)
        if driven:
            for i in range(n_units):
                weights[i] = buffer[row + i]
        if code == 5:
            _driven_softplus(
                z, n_units, weights, 0, weights, size, size, inputs, t * n_inputs, n_inputs
            )
            # what remains is the leak: the drive is zero, and the activation the identity
            base, n_factors, f = weights.shape[0] - size, 0, 4
        for i in range(0, whole, lines):
            finish_lines(
                z, i, n_units, x, 0, 0, buffer, row, weights, base, weights, size, size,
                inputs, t * n_inputs, n_factors, leak, keep, leaky, f, slope,
            )  # fmt: skip
        for i in range(whole, size, line):
            finish_line(
                z, i, n_units, x, 0, 0, buffer, row, weights, base, weights, size, size,
                inputs, t * n_inputs, n_factors, leak, keep, leaky, f, slope,
            )  # fmt: skip
        if kicks.shape[0] > 0:
            for i in range(n_units):
                x[i] += kicks[row // stride * n_units + i]
                buffer[row + i] = x[i]
        elif n_units < line:
            for i in range(n_units):
                buffer[row + i] = x[i]
        elif n_units % line != 0:  # the last units, with some that have been stored
            copy_line(buffer, row + n_units - line, x, n_units - line)


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
def _within(x: Any, at: int, n: int, limit: Any) -> bool:
    """Whether the n numbers from ``x[at]`` on are below the limit in modulus; False for NaN."""
    inside = True
    for i in range(n):
        inside &= abs(x[at + i]) < limit
    return inside


@inner
def _square(z: Any, x: Any, at: int) -> None:
    """Write the squares of the numbers from ``x[at]`` on into z."""
    for i in range(z.shape[0]):
        number = x[np.uint64(at) + np.uint64(i)]
        z[i] = number * number


@kernel
def closed_loop(
    outputs: Any, output: Any, x: Any, z: Any, drive: Any, from_output: Any, exog: Any, coef: Any,
    coef_squares: Any, coef_tail: Any, intercept: Any, n_fed: int, clip: Any, bounded: bool,
    limit: Any, n_units: int, W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> Any:  # fmt: skip
    """Run a reservoir in closed loop; return the number of steps that stayed within the limit.

    `x` contains two states, each with room for `REPEATED` bytes, which alternate as old and new
    one: after k steps the first half is the current one if k is even, or the last valid one if the
    run ends early. `output`, of shape (n_outputs,), is fed back in the first step, and is changed.
    `outputs` is flat. `drive` is the part of the pre-activations that does not depend on the
    outputs, one row per step or one for all, then a row of zeros; `from_output` has a row per
    output. The readout consists of `coef`, with a row per output, for the state; `coef_squares`,
    like it or empty, for the squares of its entries, which are written into the working memory `z`;
    `coef_tail`, of shape (n_outputs, n_fed + n_exog) or without columns, for fed-back outputs and
    exogenous inputs. `clip`, of shape (2, n_outputs) or without columns, contains the bounds of
    outputs that are fed back. Rows are padded to whole cache lines. Other parameters are described
    in `reservoir._kernels.closed_loop`.
    """
    size, n_outputs, line, lines = z.shape[0], output.shape[0], line_size(z), lines_size(z)
    whole, half, leaky = n_units // lines * lines, x.shape[0] // 2, leak.shape[0]
    for k in range(outputs.shape[0] // n_outputs):
        old, new = (k & 1) * half, (1 - (k & 1)) * half
        # clip the outputs that are fed back
        for j in range(clip.shape[1]):
            output[j] = min(max(output[j], clip[0, j]), clip[1, j])
        # the step of the reservoir, as in `advance`
        product(z, W, x, old)
        base, n_factors, f = k * size if drive.shape[0] > 2 * size else 0, n_outputs, code
        if code == 5:
            _driven_softplus(z, n_units, drive, base, from_output, 0, size, output, 0, n_outputs)
            base, n_factors, f = drive.shape[0] - size, 0, 4
        for i in range(0, whole, lines):
            finish_lines(
                z, i, n_units, x, old, new, x, new, drive, base, from_output, 0, size,
                output, 0, n_factors, leak, keep, leaky, f, slope,
            )  # fmt: skip
        for i in range(whole, size, line):
            finish_line(
                z, i, n_units, x, old, new, x, new, drive, base, from_output, 0, size,
                output, 0, n_factors, leak, keep, leaky, f, slope,
            )  # fmt: skip
        if not bounded and not _within(x, new, n_units, limit):
            return k
        # the readout: from the state, its squares and the input, if it has coefficients for them
        if coef_squares.shape[0] > 0:
            _square(z, x, new)
        for j in range(n_outputs):
            value = intercept[j] + dot8(coef, j * size, x, new, size)
            if coef_squares.shape[0] > 0:
                value += dot8(coef_squares, j * size, z, 0, size)
            if coef_tail.shape[1] > 0:
                for i in range(n_fed):
                    value += coef_tail[j, i] * output[i]
                for i in range(exog.shape[1]):
                    value += coef_tail[j, n_fed + i] * exog[k, i]
            outputs[k * n_outputs + j] = value
        if not _within(outputs, k * n_outputs, n_outputs, limit):
            return k
        for j in range(n_outputs):
            output[j] = outputs[k * n_outputs + j]
    return outputs.shape[0] // n_outputs
