"""Kernels of reservoirs: the loops over time. Imported, with numba, at the first call of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from reservoir._kernels._compile import OPTIONS, inner, kernel, named
from reservoir._kernels._finish import (
    activate_eight,
    activate_lines,
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
)


@inner
def _activate(z: Any, code: int, slope: Any) -> None:
    """Replace z, of a size that is a multiple of eight, by f(z); `slope` is for leaky_relu."""
    whole = z.shape[0] // lines_size(z) * lines_size(z)
    for i in range(0, whole, lines_size(z)):
        activate_lines(z, i, code, slope)
    for i in range(whole, z.shape[0], 8):
        activate_eight(z, i, code, slope)


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
    bias and a row per input; if `driven`, `buffer` contains the drive, and `weights` is working
    memory of one row, of zeros. `inputs` are those of all steps. `x`, `z`
    and the rows of `weights` are padded to whole cache lines. An empty `leak` means no leak, an
    empty `kicks` no noise. After a state there is room for `REPEATED` bytes.
    """
    size, line, lines = z.shape[0], line_size(z), lines_size(z)
    whole, n_inputs, leaky = n_units // lines * lines, weights.shape[0] // size - 1, leak.shape[0]
    for t in range(buffer.shape[0] // stride):
        row = t * stride
        product(z, W, x, 0)
        if driven:
            for i in range(n_units):
                weights[i] = buffer[row + i]
        for i in range(0, whole, lines):
            finish_lines(
                z, i, n_units, x, 0, 0, buffer, row, weights, 0, weights, size, size,
                inputs, t * n_inputs, n_inputs, leak, keep, leaky, code, slope,
            )  # fmt: skip
        for i in range(whole, size, line):
            finish_line(
                z, i, n_units, x, 0, 0, buffer, row, weights, 0, weights, size, size,
                inputs, t * n_inputs, n_inputs, leak, keep, leaky, code, slope,
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


@inner
def _dot(a: Any, start: int, x: Any, at: int, n: int) -> Any:
    """Return the scalar product of ``a[start : start + n]`` and ``x[at : at + n]`` for any n."""
    whole = n // 8 * 8
    total = dot8(a, start, x, at, whole)
    for i in range(whole, n):
        total += a[start + i] * x[at + i]
    return total


@kernel
def closed_loop(
    outputs: Any, output: Any, x: Any, z: Any, drive: Any, from_output: Any, rows: Any,
    n_columns: int, coef: Any, coef_squares: Any, coef_tail: Any, coef_older: Any, intercept: Any,
    n_fed: int, clip: Any, bounded: bool, limit: Any, n_units: int, W: Any, code: int, slope: Any,
    leak: Any, keep: Any,
) -> Any:  # fmt: skip
    """Run a reservoir in closed loop; return the number of steps that stayed within the limit.

    `x` contains two states, each with room for `REPEATED` bytes, which alternate as old and new:
    after k steps the first half is current if k is even, or the last valid one if the run ends
    early. `output` is changed. `outputs` is flat. `drive` has one row per step or one for all;
    `from_output`, `coef` (for the state) and `coef_squares` (empty, or for its squares, which are
    written into `z`) have a row per output. `coef_tail` is (n_outputs, n_columns) or without
    columns; `coef_older` is flat, with as many weights per output as it uses numbers before the
    input in `rows`, which is flat, with `n_columns` per row. `clip` is (2, n_outputs) or without
    columns. Rows of other arrays are padded to whole cache lines. The rest is as in
    `reservoir._kernels.closed_loop`.
    """
    size, n_outputs, line, lines = z.shape[0], output.shape[0], line_size(z), lines_size(z)
    whole, half, leaky = n_units // lines * lines, x.shape[0] // 2, leak.shape[0]
    n_steps, n_older = outputs.shape[0] // n_outputs, coef_older.shape[0] // n_outputs
    n_before = rows.shape[0] - n_steps * n_columns
    for k in range(n_steps):
        old, new, now = (k & 1) * half, (1 - (k & 1)) * half, n_before + k * n_columns
        # clip the outputs that are fed back, and write those that are inputs
        for j in range(clip.shape[1]):
            output[j] = min(max(output[j], clip[0, j]), clip[1, j])
        for i in range(n_fed):
            rows[now + i] = output[i]
        # the step of the reservoir, as in `advance`
        product(z, W, x, old)
        base = k * size if drive.shape[0] > size else 0
        for i in range(0, whole, lines):
            finish_lines(
                z, i, n_units, x, old, new, x, new, drive, base, from_output, 0, size,
                output, 0, n_outputs, leak, keep, leaky, code, slope,
            )  # fmt: skip
        for i in range(whole, size, line):
            finish_line(
                z, i, n_units, x, old, new, x, new, drive, base, from_output, 0, size,
                output, 0, n_outputs, leak, keep, leaky, code, slope,
            )  # fmt: skip
        if not bounded and not _within(x, new, n_units, limit):
            return k
        # the readout: from the state, its squares, the input and older ones, if they have weights
        if coef_squares.shape[0] > 0:
            _square(z, x, new)
        for j in range(n_outputs):
            value = intercept[j] + dot8(coef, j * size, x, new, size)
            if coef_squares.shape[0] > 0:
                value += dot8(coef_squares, j * size, z, 0, size)
            for i in range(coef_tail.shape[1]):
                value += coef_tail[j, i] * rows[now + i]
            if n_older > 0:
                value += _dot(coef_older, j * n_older, rows, now - n_older, n_older)
            outputs[k * n_outputs + j] = value
        if not _within(outputs, k * n_outputs, n_outputs, limit):
            return k
        for j in range(n_outputs):
            output[j] = outputs[k * n_outputs + j]
    return n_steps
