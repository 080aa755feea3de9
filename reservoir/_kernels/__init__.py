"""Compiled loops over time: everything that numba does, imported when a kernel is first asked for.

NumPy arrays go in and come out; the functions here check nothing. Without numba, or where it is
told not to compile, `usable` is False and nobody calls them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from reservoir._kernels._calls import CODES, FilesChanged, call, compiled, slope_below
from reservoir._kernels._layout import LANES, Dense, Rows, Sell, aligned, pack, pack_rows
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
    "Leaks",
    "Dense",
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
    "load",
    "lstm_backward",
    "lstm_forward",
    "multiply",
    "pack",
    "pack_rows",
    "repeat_leaks",
    "simple_backward",
    "simple_forward",
    "usable",
]

_CHUNK = 64  # units of a block of eight columns whose activation is taken while they are in L1
Leaks = tuple[Array, Array]  # leak rate and its complement per unit; both empty without a leak
_failure: list[BaseException] = []  # why numba could not be imported, if it was tried


def installed() -> bool:
    """Whether numba is there at all."""
    return "numba" in sys.modules or importlib.util.find_spec("numba") is not None


def disabled() -> bool:
    """Whether numba is told not to compile."""
    if "numba" in sys.modules:
        return bool(sys.modules["numba"].config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def usable() -> bool:
    """Whether kernels can be compiled: numba is there, imports, and is not told to do without."""
    return not _failure and installed() and not disabled()


def load() -> bool:
    """Import the kernels; False, with a warning the first time, if numba cannot be imported."""
    if not usable():
        return False
    try:
        _compiled()
        return not disabled()  # numba may have read so in a file of its own
    except FilesChanged:
        raise
    except Exception as error:  # numba refuses versions of NumPy it does not know, in several ways
        _failure.append(error)
        warnings.warn(
            f"numba is installed but cannot be imported ({error}); the NumPy engine is used. "
            "Install a version that fits NumPy's, or none.",
            RuntimeWarning,
            stacklevel=caller_level(),
        )
        return False


def keeps_code() -> bool:
    """Whether compiled kernels are kept on disk for the next process; needs `load`."""
    return type(_compiled().advance._cache).__name__ != "NullCache"


def _compiled() -> ModuleType:
    return compiled("_time_loops")


def _call(name: str, *args: Any) -> Any:
    return call(getattr(_compiled(), name), *args)


def repeat_leaks(leak_rate: Any, n_units: int, dtype: Any, lanes: int = 1) -> Leaks:
    """Return a and 1 - a per unit (each repeated `lanes` times); empty without a leak."""
    if np.all(np.equal(leak_rate, 1.0)):
        return np.empty(0, dtype), np.empty(0, dtype)
    leak, keep = np.empty(n_units, dtype), np.empty(n_units, dtype)
    leak[:], keep[:] = leak_rate, 1 - np.asarray(leak_rate)
    return np.repeat(leak, lanes), np.repeat(keep, lanes)


def _padded(n_units: int) -> int:
    return -(-n_units // LANES) * LANES


def activate(z: Array, code: int) -> Array:
    """Return the activation of a vector."""
    out = np.zeros(_padded(z.size), z.dtype)
    out[: z.size] = z.ravel()
    _call("activate", out, code, slope_below(z.dtype))
    return out[: z.size].reshape(z.shape)


def multiply(W: Sell | Dense, x: Array) -> Array:
    """Return W x."""
    z = np.zeros(_padded(x.size), x.dtype)
    _call("multiply", z, W, x)
    return z[: x.size]


def advance(
    buffer: Array,
    state: Array,
    inputs: Array | None,
    weights: Array | None,
    W: Sell | Dense,
    code: int,
    leaks: Leaks,
    kicks: Array | None,
) -> None:
    """Write the states that follow `state` into the first columns of a C-ordered buffer.

    ``weights`` of shape (1 + n_inputs, n_units) holds the bias, then a row per input. Without
    inputs the buffer holds the whole drive, bias included.
    """
    dtype = buffer.dtype
    if inputs is None or weights is None:
        inputs, weights = np.empty((0, 0), dtype), np.empty((0, 0), dtype)
    kicks = np.empty((0, 0), dtype) if kicks is None else kicks
    x, z = aligned((2, _padded(state.size)), dtype)
    x[: state.size] = state
    _call(
        "advance",
        buffer,
        x,
        z,
        state.size,
        inputs,
        weights,
        kicks,
        W,
        code,
        slope_below(dtype),
        *leaks,
    )


def advance_lanes(
    block: Array, state: Array, inputs: Array, W: Rows, code: int, leaks: Leaks
) -> None:
    """Step eight sequences at once.

    Parameters
    ----------
    block : array of shape (8, n_steps, n_units)
        Written: the states. The rows of a sequence follow each other in memory.
    state : array of shape (n_units, 8)
    inputs : array of shape (n_steps, n_inputs, 8)
    leaks : pair of arrays of shape (8 n_units,)
    W : Rows of [W, W_in, ...], n_units + n_inputs columns
    """
    n_units = state.shape[0]
    x, y = (aligned(((n_units + inputs.shape[1]) * LANES,), block.dtype) for _ in range(2))
    x[: state.size] = state.ravel()
    chunk = aligned((min(_CHUNK, _padded(n_units)) * LANES,), block.dtype)
    stride = block.strides[0] // block.itemsize
    flat = np.lib.stride_tricks.as_strided(
        block, (stride * (LANES - 1) + block.shape[1] * n_units,), (block.itemsize,)
    )
    slope = slope_below(block.dtype)
    _call("advance_lanes", flat, stride, n_units, x, y, chunk, inputs, W, code, slope, *leaks)


def closed_loop(
    outputs: Array,
    state: Array,
    output: Array,
    *,
    drive: Array,
    from_output: Array,
    exog: Array,
    coef: Array,
    intercept: Array,
    n_fed: int,
    clip: tuple[Array, Array] | None,
    bounded: bool,
    limit: float,
    W: Sell | Dense,
    code: int,
    leaks: Leaks,
) -> tuple[int, Array]:
    """Fill `outputs` step by step; return how many rows are sound, and the state there.

    ``coef`` reads the state and, where it has more columns, the fed-back outputs and exog;
    ``from_output`` of shape (n_units, n_outputs) is what an output does to the units; ``clip``
    bounds outputs where they are fed back.
    """
    n_units, dtype = state.size, outputs.dtype
    size = _padded(n_units)
    x = aligned((3, size), dtype)
    x[0, :n_units] = state
    fed = np.zeros((output.size, size), dtype)
    fed[:, :n_units] = from_output.T
    reads = aligned((output.size, size), dtype)
    reads[:, :n_units] = coef[:, :n_units]
    tail = np.ascontiguousarray(coef[:, n_units:])
    intercept = np.ascontiguousarray(np.broadcast_to(intercept, output.shape))
    bounds = np.empty((2, 0), dtype)
    if clip is not None:
        bounds = np.stack([np.broadcast_to(end, output.shape) for end in clip]).astype(dtype)
    done = _call(
        "closed_loop", outputs, output.copy(), x, drive, fed, exog, reads, tail, intercept, n_fed,
        bounds, bounded, dtype.type(limit), n_units, W, code, slope_below(dtype), *leaks,
    )  # fmt: skip
    return done, x[0 if done == len(outputs) else 1, :n_units].copy()
