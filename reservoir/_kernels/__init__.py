"""Compiled loops over time (kernels). numba is imported when a kernel is first needed.

The functions take and return NumPy arrays and do not check their arguments. Callers check `usable`
first: it is False without numba, and if numba is disabled (``NUMBA_DISABLE_JIT``).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from reservoir._kernels._calls import CODES, FilesChanged, call, compiled, slope_below
from reservoir._kernels._layout import (
    CACHE_LINE,
    LANES,
    REPEATED,
    Dense,
    Diagonals,
    LaneSums,
    LaneWork,
    Rows,
    Sell,
    aligned,
    lanes_for,
    pack,
    pack_drive,
    pack_rows,
    padded,
)
from reservoir._kernels._networks import (
    gru_backward,
    gru_forward,
    lstm_backward,
    lstm_forward,
    simple_backward,
    simple_forward,
)
from reservoir._typing import Array
from reservoir._validation import caller_level

__all__ = [
    "CODES",
    "LANES",
    "LaneSums",
    "LaneWork",
    "Leaks",
    "Packed",
    "Dense",
    "Diagonals",
    "Rows",
    "Sell",
    "activate",
    "advance",
    "advance_lanes",
    "closed_loop",
    "disabled",
    "gru_backward",
    "gru_forward",
    "installed",
    "keeps_code",
    "lane_states",
    "lane_sums",
    "lane_work",
    "lanes_for",
    "load",
    "loop_lanes",
    "lstm_backward",
    "lstm_forward",
    "multiply",
    "pack",
    "pack_drive",
    "pack_rows",
    "pool_lanes",
    "repeat_leaks",
    "simple_backward",
    "simple_forward",
    "usable",
]

# largest number of steps whose states are kept before they are pooled, and their largest size in
# bytes: half of the L2 cache of most processors
_POOLED_STEPS, _POOLED = 32, 2**19
Packed = Sell | Dense | Diagonals  # recurrent weights, as `pack` returns them
Leaks = tuple[Array, Array]  # leak rates a and 1 - a, one per unit; both empty if all a are 1
_failure: list[BaseException] = []  # why the import of numba failed, if it did


def installed() -> bool:
    """Whether numba is installed."""
    return "numba" in sys.modules or _found()


@cache
def _found() -> bool:
    """Whether Python finds numba; cached, because the search takes as long as a hundred steps."""
    return importlib.util.find_spec("numba") is not None


def disabled() -> bool:
    """Whether compilation by numba is disabled (``NUMBA_DISABLE_JIT``)."""
    if "numba" in sys.modules:
        return bool(sys.modules["numba"].config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def usable() -> bool:
    """Whether numba is installed, not disabled and not known to fail, without importing it."""
    return not _failure and installed() and not disabled()


def load() -> bool:
    """Import the kernels and return whether they can be used.

    If numba cannot be imported, all calls return False, and the first one warns.
    """
    if not usable():
        return False
    try:
        _compiled()
        return not disabled()  # once imported, numba has also read its configuration file
    except FilesChanged:
        raise
    except Exception as error:  # numba raises various errors for unsupported versions of NumPy
        _failure.append(error)
        warnings.warn(
            f"numba is installed but cannot be imported ({error}); the NumPy engine is used. "
            "Install a version that supports this NumPy, or uninstall numba.",
            RuntimeWarning,
            stacklevel=caller_level(),
        )
        return False


def keeps_code() -> bool:
    """Whether compiled kernels are cached on disk for later processes. Call `load` first."""
    return type(_compiled().advance._cache).__name__ != "NullCache"


def _compiled() -> ModuleType:
    return compiled("_time_loops")


def _call(name: str, *args: Any) -> Any:
    return call(getattr(_compiled(), name), *args)


def repeat_leaks(leak_rate: Any, n_units: int, dtype: Any) -> Leaks:
    """Return the leak rates a and 1 - a, one per unit, padded with zeros to whole cache lines.

    If every leak rate is 1, both are empty, and the kernels skip the leak.
    """
    if np.all(np.equal(leak_rate, 1.0)):
        return np.empty(0, dtype), np.empty(0, dtype)
    leak, keep = np.empty(n_units, dtype), np.empty(n_units, dtype)
    leak[:], keep[:] = leak_rate, 1 - np.asarray(leak_rate)
    size = padded(n_units, dtype)
    return np.pad(leak, (0, size - n_units)), np.pad(keep, (0, size - n_units))


def _room(n_units: int, dtype: Any, n_states: int = 1) -> Array:
    """Return flat working memory for states: padded, with numbers that are repeated behind it."""
    size = padded(n_units, dtype) + REPEATED // np.dtype(dtype).itemsize
    return aligned((n_states * size,), dtype)


def activate(z: Array, code: int) -> Array:
    """Return f(z) for an array of any shape; `code` is the number of the activation in `CODES`."""
    out = np.zeros(padded(z.size, z.dtype), z.dtype)
    out[: z.size] = z.ravel()
    _call("activate", out, code, slope_below(z.dtype))
    return out[: z.size].reshape(z.shape)


def multiply(W: Packed, x: Array) -> Array:
    """Return W x, of shape (n_units,); `W` is packed by `pack`."""
    n_units, dtype = x.size, x.dtype
    state, z = _room(n_units, dtype), np.zeros(padded(n_units, dtype), dtype)
    state[:n_units] = x
    _call("multiply", z, W, state)
    return z[: x.size]


def advance(
    buffer: Array,
    state: Array,
    inputs: Array | None,
    weights: Array | None,
    W: Packed,
    code: int,
    leaks: Leaks,
    kicks: Array | None,
) -> None:
    """Run one sequence: write the states that follow `state` into the first columns of `buffer`.

    `buffer`, (n_steps, at least n_units), is C-ordered; without `inputs`, (n_steps, n_inputs),
    which contain outputs fed back too, it must hold the drive, W_in u[t] + bias + W_fb y[t-1].
    `weights`, from `pack_drive`, are the bias, then those of each input; W is from `pack`, `leaks`
    from `repeat_leaks`, `code` from `CODES`. `kicks` is noise added to the state after each step.
    """
    dtype, n_units = buffer.dtype, state.size
    size = padded(n_units, dtype)
    driven = inputs is None or weights is None
    if inputs is None or weights is None:
        inputs, weights = np.empty(0, dtype), np.zeros(size, dtype)
    kicks = np.empty(0, dtype) if kicks is None else kicks
    # the state and the pre-activations
    memory = _room(n_units, dtype, 2)
    x, z = memory[:-size], memory[-size:]
    x[:n_units] = state
    _call(
        "advance", buffer.ravel(), buffer.shape[1], n_units, x, z, inputs.ravel(), weights, driven,
        kicks.ravel(), W, code, slope_below(dtype), *leaks,
    )  # fmt: skip


def lane_states(states: Array, n_inputs: int, width: int) -> Array:
    """Return memory for the states of sequences side by side, of which the first is filled.

    It is (2 (n_units + 1 + n_inputs) width,): the current and the next state, which alternate, each
    a row of lanes per unit, one of ones, for the bias, and one per input (or output fed back).
    `states`, (n_sequences, n_units), are those before the first step; unused lanes begin with
    zeros.
    """
    n_sequences, n_units = states.shape
    x = aligned((2, n_units + 1 + n_inputs, width), states.dtype)
    x[0, :n_units, :n_sequences], x[:, n_units] = states.T, 1.0
    return x.ravel()


def advance_lanes(
    block: Array, states: Array, inputs: Array, W: Rows, code: int, leaks: Leaks
) -> None:
    """Run sequences side by side, one per lane, and write their states to `block`.

    `block` is (at least n_sequences, a multiple of 8, n_steps, n_units); the rows of a sequence are
    contiguous, with gaps between sequences allowed. `states`, (n_sequences, n_units), are those
    before the first step. `inputs`, (n_steps, n_inputs, width), have outputs fed back last; width
    is from `lanes_for`. W is [W, bias, W_in, W_fb] side by side; `code` and `leaks` are as in
    `advance`.
    """
    n_sequences, n_units = states.shape
    x = lane_states(states, *inputs.shape[1:])
    # the block as one flat array, in which sequences are `stride` numbers apart
    stride = block.strides[0] // block.itemsize
    last = -(-n_sequences // LANES) * LANES - 1
    flat = np.lib.stride_tricks.as_strided(
        block, (stride * last + block.shape[1] * n_units,), (block.itemsize,)
    )
    call(
        compiled("_lanes").advance_lanes, flat, stride, n_units, n_sequences, x, inputs, W, code,
        slope_below(block.dtype), *leaks,
    )  # fmt: skip


def loop_lanes(
    states: Array, inputs: Array, coef: Array, low: Array, high: Array, W: Rows, code: int,
    leaks: Leaks,
) -> Array:  # fmt: skip
    """Run closed loops side by side, one per lane, and return their clipped outputs.

    Parameters
    ----------
    states : array of shape (n_sequences, n_units)
        The states before the first step.
    inputs : array of shape (n_steps, n_inputs, width)
        Inputs; width is ``lanes_for(n_sequences, dtype)``. The first n_outputs are written from the
        second step on: the outputs of the step before.
    coef : array of shape (n_outputs, n_units + 1 + n_inputs, width)
        The readout of each lane: weights of the units, intercept, weights of the inputs.
    low, high : arrays of shape (n_outputs, width)
        Bounds to which outputs are clipped.
    W, code, leaks
        As in `advance_lanes`.

    Returns
    -------
    array of shape (n_steps, n_outputs, width)
    """
    outputs = aligned((len(inputs), *low.shape), states.dtype)
    x = lane_states(states, *inputs.shape[1:])
    call(
        compiled("_lanes").loop_lanes, outputs.ravel(), states.shape[1], x, inputs, coef.ravel(),
        low.ravel(), high.ravel(), W, code, slope_below(states.dtype), *leaks,
    )  # fmt: skip
    return outputs


def lane_sums(
    n_units: int, n_thresholds: int, width: int, dtype: Any, *, moments: bool, ends: bool,
    last: bool,
) -> LaneSums:  # fmt: skip
    """Return empty sums for `pool_lanes`, with `width` lanes.

    Means and squared deviations are computed if `moments`, the largest and smallest states if
    `ends`, the last states if `last`. `dtype` is that of the states.
    """
    size = n_units * width
    mean, squares = (aligned((size * moments,), np.float64) for _ in range(2))
    high, low, keep = (aligned((size * wanted,), dtype) for wanted in (ends, ends, last))
    counts = aligned((size * (-(-n_thresholds // 4) * 4),), np.float64)
    high[:], low[:] = -np.inf, np.inf
    return LaneSums(mean, squares, high, low, keep, counts)


def lane_work(states: Array, n_inputs: int, n_steps: int, width: int) -> LaneWork:
    """Return memory for `pool_lanes`, for up to `n_steps` steps; else as `lane_states`."""
    # the number of steps that are pooled at once does not depend on the width: bits depend on it
    n_units, dtype = states.shape[1], states.dtype
    item = dtype.itemsize
    rows = min(max(_POOLED // (n_units * LANES * item), 8), _POOLED_STEPS, n_steps)
    # an odd number of cache lines from step to step, so that the states of a unit at different
    # steps are in different sets of the cache
    line = CACHE_LINE // item
    stride = (n_units * width // line | 1) * line
    block, sums = aligned((rows * stride,), dtype), aligned((4 * LANES,), dtype)
    return LaneWork(lane_states(states, n_inputs, width), block, stride, sums, np.zeros((5, width)))


def pool_lanes(
    sums: LaneSums,
    thresholds: Array,
    done: Array,
    lengths: Array,
    work: LaneWork,
    inputs: Array,
    W: Rows,
    code: int,
    leaks: Leaks,
) -> None:
    """Run sequences side by side and pool their states, in the order of the lanes.

    `sums` and `done`, (width,), the float64 number of steps pooled so far, are updated.
    `thresholds`, (n_units, a multiple of four), are infinite where unused. `lengths`, (width,),
    int64, are numbers of steps within this call; they may be negative, or larger than its number of
    steps. To continue with `work`, the last call must have had an even number of steps. The rest is
    as in `advance_lanes`.
    """
    call(
        compiled("_pooling").pool_lanes, sums, thresholds.ravel(), done, lengths, work.block,
        work.stride, work.sums, work.shares, len(thresholds), work.x, inputs, W, code,
        slope_below(work.x.dtype), *leaks,
    )  # fmt: skip


def closed_loop(
    outputs: Array,
    state: Array,
    output: Array,
    *,
    drive: Array,
    from_output: Array,
    rows: Array,
    coef: Array,
    squares: Array | None,
    older: Array,
    intercept: Array,
    n_fed: int,
    clip: tuple[Array, Array] | None,
    bounded: bool,
    limit: float,
    W: Packed,
    code: int,
    leaks: Leaks,
) -> tuple[int, Array]:
    """Run a closed loop; return the number of steps that stayed within the limit, and the state.

    Row k of `outputs` becomes y[k]; `output` is y[-1]. `drive`, (n_steps or 1, n_units), is the
    bias and the exogenous inputs times their weights; `from_output` is (n_units, n_outputs).
    `rows`, (n_past + n_steps, n_features), C-ordered, are inputs of earlier steps, then of the
    loop, whose first `n_fed` columns (0 with feedback weights) are written.

    `coef` has n_units columns, and n_features more if the readout uses the input; `squares` are
    weights of squared states or None; `older`, (n_outputs, n_older n_features), those of the rows
    before the present one. `clip` bounds what is fed back. The run ends when the modulus of an
    output, or of a state unless the activation is `bounded`, reaches `limit`. The rest is as in
    `advance`.
    """
    n_units, dtype = state.size, outputs.dtype
    size = padded(n_units, dtype)
    # two states, which alternate, and the pre-activations
    x, z = _room(n_units, dtype, 2).reshape(2, -1), aligned((size,), dtype)
    x[0, :n_units] = state
    # weights of the outputs and of the readout, padded like the state
    fed, reads = pack_drive(from_output.T, dtype), pack_drive(coef[:, :n_units], dtype)
    of_squares = np.empty(0, dtype) if squares is None else pack_drive(squares, dtype)
    tail = np.ascontiguousarray(coef[:, n_units:])
    intercept = np.ascontiguousarray(np.broadcast_to(intercept, output.shape))
    bounds = np.empty((2, 0), dtype)
    if clip is not None:
        bounds = np.stack([np.broadcast_to(end, output.shape) for end in clip]).astype(dtype)
    done = _call(
        "closed_loop", outputs.ravel(), output.copy(), x.ravel(), z, pack_drive(drive, dtype), fed,
        rows.ravel(), rows.shape[1], reads, of_squares, tail, older.ravel(), intercept, n_fed,
        bounds, bounded, dtype.type(limit), n_units, W, code, slope_below(dtype), *leaks,
    )  # fmt: skip
    return done, x[done % 2, :n_units].copy()
