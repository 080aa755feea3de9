"""The loops over time, compiled. Nothing here is imported before a kernel is called for."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import math
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.caching import FunctionCache
from numba.extending import overload

from reservoir._kernels import _vector
from reservoir._kernels._vector import (
    dot8,
    gather_dot8,
    logistic8,
    row_times_lanes,
    store_transposed,
    tanh8,
)

# contraction alone: anything that reorders sums would undo the rounding tricks
_OPTIONS = {"fastmath": {"contract", "nsz"}, "error_model": "numpy"}


def _inner(function: Callable[..., Any]) -> Any:
    return njit(**_OPTIONS)(function)


class _Cache(FunctionCache):
    """numba's cache on disk, which knows a kernel by its own file alone: add what it is made of."""

    made_of = hashlib.sha256(inspect.getsource(_vector).encode()).hexdigest()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), self.made_of)


def _kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use; kept on disk where there is a place for it."""
    dispatcher = njit(nogil=True, **_OPTIONS)(function)
    with contextlib.suppress(RuntimeError):  # no directory that may be written
        dispatcher._cache = _Cache(function)
    return dispatcher


@_inner
def _relu(z: Any) -> None:
    for i in range(z.shape[0]):
        if z[i] < 0:  # NaN stays NaN
            z[i] = 0


@_inner
def _leaky_relu(z: Any, slope: Any) -> None:
    for i in range(z.shape[0]):
        if z[i] < 0:
            z[i] *= slope


@_inner
def _softplus(z: Any) -> None:
    for i in range(z.shape[0]):
        rest = math.log1p(math.exp(-abs(z[i])))
        z[i] = z[i] + rest if z[i] > 0 else rest


@_inner
def _activate(z: Any, code: int, slope: Any) -> None:
    """Replace z by f(z); the size is a multiple of eight."""
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


@_inner
def _add(z: Any, row: Any, n: int) -> None:
    for i in range(n):
        z[i] += row[i]


@_inner
def _add_times(z: Any, row: Any, factor: Any) -> None:
    for i in range(row.shape[0]):
        z[i] += row[i] * factor


@_inner
def _add_affine(z: Any, offset: Any, row: Any, factor: Any) -> None:
    for i in range(row.shape[0]):
        z[i] += offset[i] + row[i] * factor


@_inner
def _copy(out: Any, z: Any, n: int) -> None:
    for i in range(n):
        out[i] = z[i]


@_inner
def _leak(out: Any, x: Any, z: Any, leak: Any, keep: Any) -> None:
    for i in range(leak.shape[0]):
        out[i] = keep[i] * x[i] + leak[i] * z[i]


@_inner
def _four_columns(z: Any, a: Any, b: Any, c: Any, d: Any, p: Any, q: Any, r: Any, s: Any) -> None:
    for i in range(a.shape[0]):
        z[i] += (a[i] * p + b[i] * q) + (c[i] * r + d[i] * s)


def product(z: Any, W: Any, x: Any) -> None:
    """Write W x into z; the layout of W decides how."""
    raise NotImplementedError


@overload(product, jit_options=_OPTIONS)
def _product(z: Any, W: Any, x: Any) -> Any:
    if isinstance(W, types.NamedTuple) and "rows" in W.fields:

        def sparse(z: Any, W: Any, x: Any) -> None:
            for s in range(W.rows.shape[0]):
                start, stop = W.offsets[s], W.offsets[s + 1]
                gather_dot8(z, W.rows, W.data, W.indices, start, stop, s, x)

        return sparse

    def dense(z: Any, W: Any, x: Any) -> None:
        columns = W.transposed
        n = columns.shape[0]
        for i in range(z.shape[0]):
            z[i] = 0
        whole = n - n % 4
        for j in range(0, whole, 4):
            _four_columns(
                z, columns[j], columns[j + 1], columns[j + 2], columns[j + 3],
                x[j], x[j + 1], x[j + 2], x[j + 3],
            )  # fmt: skip
        for j in range(whole, n):
            _add_times(z, columns[j], x[j])

    return dense


@_kernel
def multiply(z: Any, W: Any, x: Any) -> None:
    """Write W x into z, for a step whose activation is a Python function."""
    product(z, W, x)


@_kernel
def activate(z: Any, code: int, slope: Any) -> None:
    """Replace z, of a size that is a multiple of eight, by the activation."""
    _activate(z, code, slope)


@_kernel
def advance(
    buffer: Any, state: Any, z: Any, inputs: Any, weights: Any, kicks: Any,
    W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> None:  # fmt: skip
    """Write states into the first columns of `buffer`, row by row.

    `weights` holds the bias and a row per input; where it is empty, the buffer holds the drive.
    `z` is room for W x, padded to a multiple of eight. `leak` of size 0 means no leak, `kicks` of
    size 0 no noise.
    """
    n_units = state.shape[0]
    x = state
    for t in range(buffer.shape[0]):
        row = buffer[t]
        product(z, W, x)
        if weights.shape[0] == 0:
            _add(z, row, n_units)
        elif weights.shape[0] == 2:  # the usual case, in one pass
            _add_affine(z, weights[0], weights[1], inputs[t, 0])
        else:
            _add(z, weights[0], n_units)
            for i in range(1, weights.shape[0]):
                _add_times(z, weights[i], inputs[t, i - 1])
        _activate(z, code, slope)
        if leak.shape[0] == 0:
            _copy(row, z, n_units)
        else:
            _leak(row, x, z, leak, keep)
        if kicks.shape[0] > 0:
            _add(row, kicks[t], n_units)
        x = row


@_kernel
def advance_lanes(
    block: Any, x: Any, chunk: Any, inputs: Any, W: Any, code: int, slope: Any, leak: Any, keep: Any
) -> None:
    """Step eight sequences at once.

    `block` (8, n_steps, n_units) receives the states. `x` (2, n_columns, 8) holds the state, then
    room for the inputs, one sequence per lane, and is written in turns; `inputs` (n_steps, n, 8)
    are what stands behind the state (the constant of the bias included); `chunk` is room for a
    few units; `leak` and `keep` are repeated eight times per unit.
    """
    _, n_steps, n_units = block.shape
    flat_block, flat = block.reshape(-1), x.reshape(2, -1)
    now = 0
    for t in range(n_steps):
        old, new = flat[now], flat[1 - now]
        for i in range(inputs.shape[1]):
            for lane in range(8):
                old[(n_units + i) * 8 + lane] = inputs[t, i, lane]
        for begin in range(0, n_units, chunk.shape[0] // 8):
            rows = min(chunk.shape[0] // 8, n_units - begin)
            for i in range(rows):
                start, stop = W.offsets[begin + i], W.offsets[begin + i + 1]
                row_times_lanes(chunk, i, W.data, W.indices, start, stop, old)
            z = chunk[: rows * 8]
            _activate(z, code, slope)
            here = slice(begin * 8, (begin + rows) * 8)
            if leak.shape[0] == 0:
                _copy(new[here], z, rows * 8)
            else:
                _leak(new[here], old[here], z, leak[here], keep[here])
            whole = rows - rows % 8
            for i in range(0, whole, 8):
                start = t * n_units + begin + i
                store_transposed(flat_block, start, n_steps * n_units, new, (begin + i) * 8)
            for i in range(whole, rows):
                for lane in range(8):
                    block[lane, t, begin + i] = new[(begin + i) * 8 + lane]
        now = 1 - now


@_inner
def _within(values: Any, limit: Any, n: int) -> bool:
    inside = True
    for i in range(n):
        inside &= abs(values[i]) < limit
    return inside


@_kernel
def closed_loop(
    outputs: Any, x: Any, output: Any, drive: Any, from_output: Any, exog: Any, coef: Any,
    coef_tail: Any, intercept: Any, n_fed: int, bounded: bool, limit: Any,
    n_units: int, W: Any, code: int, slope: Any, leak: Any, keep: Any,
) -> Any:  # fmt: skip
    """Run on own outputs; return how many steps stayed inside the limit, and which x is the state.

    `x` (3, padded size) holds the state in its first row; `drive` is what does not depend on the
    outputs, one row per step or one for all; `coef` (n_outputs, padded size) reads the state,
    `coef_tail` (n_outputs, n) the fed-back outputs and the exogenous inputs, if any.
    """
    n_steps, n_outputs = outputs.shape
    z = x[2]
    now = 0
    for k in range(n_steps):
        old, new = x[now], x[1 - now]
        product(z, W, old)
        _add(z, drive[k if drive.shape[0] > 1 else 0], n_units)
        for j in range(n_outputs):
            _add_times(z, from_output[j], output[j])
        _activate(z, code, slope)
        if leak.shape[0] == 0:
            _copy(new, z, n_units)
        else:
            _leak(new, old, z, leak, keep)
        if not bounded and not _within(new, limit, n_units):
            return k, now
        row = outputs[k]
        for j in range(n_outputs):
            value = intercept[j] + dot8(coef, j * coef.shape[1], new, coef.shape[1])
            if coef_tail.shape[1] > 0:
                for i in range(n_fed):
                    value += coef_tail[j, i] * output[i]
                for i in range(exog.shape[1]):
                    value += coef_tail[j, n_fed + i] * exog[k, i]
            row[j] = value
        if not _within(row, limit, n_outputs):
            return k, now
        output = row
        now = 1 - now
    return n_steps, now
