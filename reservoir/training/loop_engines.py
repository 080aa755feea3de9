"""Choice of the engine for a network's loops over time: NumPy, or compiled kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from reservoir import _kernels
from reservoir._validation import check_choice
from reservoir.dynamics.engines import ENGINES, demand

# Time in seconds that NumPy takes for a forward and backward step: a constant, a time per sequence
# and gate of a unit, and a time per sequence and connection. Measured by
# examples/benchmarks/training.py; only the orders of magnitude matter.
_PER_STEP, _PER_GATE, _PER_CONNECTION = 2e-5, 1e-8, 1e-10
# Kernels are used for jobs that would take NumPy at least this many seconds. Once per process, it
# takes .3 s to import numba and to load compiled code; without a cache on disk, each process has to
# compile, which takes 6 s per cell.
_WORTH_LOADING, _WORTH_COMPILING = 0.3, 12.0

_Loop = TypeVar("_Loop", bound=Callable[..., Any])
#: Names of the compiled kernels, by the equivalent loop in NumPy.
TWINS: dict[Any, str] = {}

_engine: ContextVar[str] = ContextVar("reservoir.training engine", default="auto")


def numpy_seconds(shape: tuple[int, ...]) -> float:
    """Return an estimate of the time of NumPy's loops for (n_steps, n_sequences, g n_units)."""
    n_steps, n_sequences, n_gates = shape
    products = _PER_CONNECTION * n_sequences * n_gates**2
    return n_steps * (_PER_STEP + _PER_GATE * n_sequences * n_gates + products)


def choose(engine: str, seconds: float) -> str:
    """Return "numpy" or "numba" for a job that would take `seconds` with NumPy, over all batches.

    The choice depends on the job alone, not on earlier calls, so that a repeated call returns
    identical results.
    """
    check_choice("engine", engine, ENGINES)
    if engine == "numba":
        return "numba" if demand() else "numpy"
    if engine == "numpy" or seconds < _WORTH_LOADING or not _kernels.load():
        return "numpy"
    return "numba" if seconds >= _WORTH_COMPILING or _kernels.keeps_code() else "numpy"


def kept(engine: str) -> str:
    """Return the engine for a loaded model: "auto" instead of "numba" if numba is missing."""
    return engine if engine != "numba" or _kernels.load() else "auto"


@contextlib.contextmanager
def using(engine: str) -> Iterator[None]:
    """Use the given engine for all loops in the context."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def compiled_as(name: str) -> Callable[[_Loop], _Loop]:
    """Return a decorator that registers the compiled kernel that can replace a loop in NumPy."""

    def mark(loop: _Loop) -> _Loop:
        TWINS[loop] = name
        return loop

    return mark


def loop_for(loop: _Loop, shape: tuple[int, ...], dtype: Any) -> _Loop:
    """Return a loop in NumPy, or its compiled version if there is one and the job is large enough.

    `shape` is the size of the job, (n_steps, n_sequences, n_gates * n_units).
    """
    twin = TWINS.get(loop)
    if twin is None or np.dtype(dtype) not in (np.float64, np.float32):
        return loop
    if choose(_engine.get(), numpy_seconds(shape)) != "numba":
        return loop
    compiled: _Loop = getattr(_kernels, twin)
    return compiled
