"""Open loops: runs of a reservoir that is driven by a given series."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_number, check_numbers, check_unmasked, room_for
from reservoir._validation.arrays import joined, together
from reservoir._validation.kinds import check_has_rows, check_numeric, na_as_nan
from reservoir.activations import get_activation
from reservoir.dynamics import _compiled, reference
from reservoir.dynamics._extremes import check_states, largest_of, may_overflow
from reservoir.dynamics.engines import uses_kernels
from reservoir.dynamics.reservoir import Reservoir, as_real, as_vector

_BLOCK_ROWS = 512  # enough rows for matrix products at full speed, few enough for the cache
_BLOCK_SIZE = 2**22  # largest number of entries in a block of states: 32 MiB of doubles


def run(
    reservoir: Reservoir,
    X: ArrayLike,
    *,
    initial_state: ArrayLike | None = None,
    feedback: ArrayLike | None = None,
    dt: ArrayLike | None = None,
    engine: str = "auto",
) -> Array:
    """Drive the reservoir with an input series and return every state.

    Parameters
    ----------
    reservoir : Reservoir
    X : array of shape (n_samples, n_features)
        Row t is the input of step t. There may be no rows, which lead to no states.
    initial_state : array of shape (n_units,), optional
        The state before the first step; zero by default.
    feedback : array of shape (n_samples, n_outputs), optional
        Row t is the previous output y[t-1] that step t receives (teacher forcing); row 0 is zero if
        there is no previous output. Required if the reservoir has feedback weights; not allowed
        otherwise.
    dt : array of shape (n_samples,), optional
        Duration of each step, in multiples of the step for which `leak_rate` is defined: in step t,
        the leak rate is replaced by ``1 - (1 - leak_rate) ** dt[t]``. Entry 0 is the time since
        `initial_state`. A duration of 1 gives exactly the same bits as a run without `dt`. Runs
        with `dt` always use NumPy, because kernels use one leak rate for all steps.
    engine : {"auto", "numpy", "numba"}, default="auto"
        Engine that computes the steps. "numpy" uses NumPy, and "numba" uses compiled kernels (extra
        ``fast``). "auto" uses kernels if numba is installed and NumPy would take longer than .01 s:
        for smaller jobs, reading the kernels from the disk takes more time than they save. The
        choice depends only on the sizes, so that the same call returns the same bits. The engines
        agree up to rounding.

    Returns
    -------
    array of shape (n_samples, n_units)
        Row t is the state after step t.

    Raises
    ------
    ValueError
        If shapes disagree, an input is NaN or infinite, or the states overflow, which only an
        unbounded activation allows. If inputs are so large that the sum that a unit receives has
        infinite terms of both signs and is undefined; if only the positive or only the negative
        terms overflow, a bounded activation saturates, and no error is raised. If an entry of `dt`
        is not positive and finite, or if `dt` is used with ``engine="numba"`` or when every leak
        rate is 1, so that it would have no effect.
    ImportError
        If ``engine="numba"`` and numba is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, run
    >>> res = Reservoir(np.zeros((2, 2)), [[1.0], [-1.0]], np.zeros(2), activation="identity")
    >>> run(res, [[1.0], [2.0]])
    array([[ 1., -1.],
           [ 2., -2.]])

    A step of twice the duration decays the state twice, as two steps would:

    >>> slow = Reservoir([[0.0]], [[1.0]], [0.0], leak_rate=0.5, activation="identity")
    >>> run(slow, [[1.0], [0.0]], dt=[1.0, 2.0])
    array([[0.5  ],
           [0.125]])
    """
    X = as_series("X", X, reservoir.n_features, reservoir.dtype)
    with room_for_states(1, len(X), reservoir.n_units, reservoir.dtype):
        states = np.empty((len(X), reservoir.n_units), dtype=reservoir.dtype)
    for _ in iter_states(
        reservoir,
        X,
        initial_state=initial_state,
        feedback=feedback,
        dt=dt,
        out=states,
        engine=engine,
    ):
        pass
    return states


def room_for_states(
    n_series: int, n_steps: int, n_units: int, dtype: Any
) -> contextlib.AbstractContextManager[None]:
    """Return a context manager that raises if the states of `n_series` series exceed the memory."""
    several = f"{n_series} series of " if n_series > 1 else ""
    return room_for(
        f"The states of {several}{n_steps} steps x {n_units} units in {np.dtype(dtype)}",
        float(n_series) * n_steps * n_units * np.dtype(dtype).itemsize,
        'Pass fewer rows at a time, use fewer units or dtype="float32", or read states block by '
        "block (dynamics.iter_states).",
    )


def iter_states(
    reservoir: Reservoir,
    X: ArrayLike,
    *,
    initial_state: ArrayLike | None = None,
    feedback: ArrayLike | None = None,
    dt: ArrayLike | None = None,
    noise: float = 0.0,
    generator: np.random.Generator | None = None,
    out: Array | None = None,
    buffer: Array | None = None,
    engine: str = "auto",
) -> Iterator[tuple[int, Array]]:
    """Drive the reservoir and yield its states block by block, so that they need not all be stored.

    Parameters
    ----------
    reservoir, X, initial_state, feedback, dt
        As in `run`.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise that is added to the state after each step.
    generator : numpy.random.Generator, optional
        Source of the noise; required when `noise` is positive.
    out : array of shape (n_samples, n_units), optional
        Array that the states are written to. By default one buffer is reused for all blocks: copy
        the states that you keep.
    buffer : array of shape (rows, n_columns), optional
        C-ordered array of the reservoir's dtype, with at least n_units columns, that is used as
        this buffer. The states are written to its first n_units columns; the other columns are not
        changed and can be filled with further features.
    engine : {"auto", "numpy", "numba"}, default="auto"
        As in `run`.

    Yields
    ------
    start : int
        First row of X in the block.
    block : array of shape (rows, n_units)
        The states of the steps from `start` on.

    Raises
    ------
    ValueError, ImportError
        In the same cases as `run`, and if `out` or `buffer` has a wrong shape, dtype or memory
        order, if `noise` is negative, or if `noise` is positive and there is no `generator`.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, iter_states
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> [(start, block.shape) for start, block in iter_states(res, np.zeros((600, 1)))]
    [(0, (512, 1)), (512, (88, 1))]
    """
    # check the arguments
    dtype = reservoir.dtype
    X = _as_rows("X", X, reservoir.n_features, dtype)
    feedback = as_feedback(reservoir, feedback, len(X))
    gaps = None if dt is None else as_gaps("dt", reservoir, dt, len(X), engine)
    noise = check_number("noise", noise, low=0.0)
    if noise > 0 and generator is None:
        raise ValueError(f"noise={noise} needs a generator: pass a numpy.random.Generator.")
    _check_memory(reservoir, len(X), out, buffer)
    if out is not None and np.may_share_memory(out, X):
        X = X.copy()  # states must not overwrite inputs of later steps
    state = np.zeros(reservoir.n_units, dtype)
    if initial_state is not None:
        state = as_vector("initial_state", initial_state, reservoir.n_units, dtype)
    # a sum that overflows depends on the order of its terms, so the reference engine computes it
    bounded = get_activation(reservoir.activation).bounded
    extreme = may_overflow(reservoir, X, feedback, state, noise)
    if extreme:
        _check_finite("X", X)
    chosen = "numpy" if gaps is not None else engine
    compiled = uses_kernels(reservoir, len(X), chosen) and not (bounded and extreme)
    engine_of = _compiled if compiled else reference
    if out is None and buffer is None:
        buffer = np.empty((block_rows(reservoir.n_units, len(X)), reservoir.n_units), dtype)
    rows = block_rows(reservoir.n_units, len(X)) if buffer is None else len(buffer)
    # for each block, choose the memory of its states, draw its noise, and run its steps
    for start in range(0, len(X), rows):
        stop = min(start + rows, len(X))
        place = out[start:stop] if out is not None else buffer[: stop - start]  # type: ignore[index]
        block = place[:, : reservoir.n_units]
        kicks = None
        if noise > 0:
            kicks = noise * generator.standard_normal(block.shape)  # type: ignore[union-attr]
            kicks = kicks.astype(dtype, copy=False)
        received = None if feedback is None else feedback[start:stop]
        leaks: tuple[Any, ...] = ()
        if gaps is not None:
            leaks = (reference.leaks_of(reservoir.leak_rate, gaps[start:stop], dtype),)
        engine_of.advance(reservoir, state, place, X[start:stop], received, kicks, *leaks)
        if extreme or not bounded:
            check_states(reservoir, state, X[start:stop], received, block, start)
        state = block[-1].copy()  # before the caller may change the block
        yield start, block


def as_gaps(name: str, reservoir: Reservoir, dt: Any, n_samples: int, engine: str) -> Array:
    """Return the durations of steps, `name` in messages, as float64, (n_samples,), after checks."""
    gaps = check_numbers(name, dt)
    if gaps.shape != (n_samples,):
        raise ValueError(f"{name} must have shape (n_samples={n_samples},); got {gaps.shape}.")
    good = (gaps > 0) & np.isfinite(gaps)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"{name} must be positive and finite; got {gaps[row]:g} in row {row}. Sort the rows by "
            "time, and merge rows that have the same time."
        )
    if np.all(np.equal(reservoir.leak_rate, 1.0)):
        raise ValueError(
            "dt has no effect with leak_rate=1: each step replaces the whole state, whatever its "
            "duration. Omit dt, or use a leak rate below 1."
        )
    if engine == "numba":
        raise ValueError('engine="numba" does not support dt: use engine="auto" or "numpy".')
    return gaps.astype(np.float64)


def _check_memory(
    reservoir: Reservoir, n_samples: int, out: Array | None, buffer: Array | None
) -> None:
    """Raise if `out` or `buffer` has a wrong shape, dtype or memory order."""
    dtype, n_units = reservoir.dtype, reservoir.n_units
    if out is not None and buffer is not None:
        raise ValueError("Pass either out or buffer, not both: states are written to one of them.")
    if out is not None and (out.shape != (n_samples, n_units) or out.dtype != dtype):
        raise ValueError(
            f"out must have shape ({n_samples}, {n_units}) and dtype {dtype}; got {out.shape}, "
            f"{out.dtype}."
        )
    if buffer is None:
        return
    fits = buffer.ndim == 2 and len(buffer) > 0 and buffer.shape[1] >= n_units
    if not fits or buffer.dtype != dtype or not buffer.flags.c_contiguous:
        raise ValueError(
            f"buffer must be a C-ordered array of shape (rows, at least {n_units}) and dtype "
            f"{dtype}; got {buffer.shape}, {buffer.dtype}."
        )


def block_rows(n_units: int, n_samples: int) -> int:
    """Return the number of steps per block, such that its states take at most 32 MiB."""
    return max(1, min(_BLOCK_ROWS, _BLOCK_SIZE // n_units, n_samples))


def as_series(name: str, X: Any, n_columns: int, dtype: Any) -> Array:
    """Return a series as an array of `dtype` and of shape (n_samples, n_columns), after checks."""
    X = _as_rows(name, X, n_columns, dtype)
    _check_finite(name, X)
    return X


def as_many_series(
    name_of: Callable[[int], str], series: Sequence[Any], n_columns: int, dtype: Any
) -> tuple[list[Array], float]:
    """Return several series as arrays, checked as by `as_series`, and their largest modulus."""
    check_has_rows("series", series, f"(n_series, n_samples, {n_columns}), or a list of them,")
    inputs = [_as_rows(name_of(i), X, n_columns, dtype) for i, X in enumerate(series)]
    sizes = [largest_of(joined(some)) for some in together(inputs)]
    if not np.isfinite(sizes).all():
        for i, X in enumerate(inputs):
            _check_finite(name_of(i), X)
    return inputs, max(sizes, default=0.0)


def _as_rows(name: str, X: Any, n_columns: int, dtype: Any) -> Array:
    if not isinstance(X, np.ndarray) or X.ndim == 0 or X.dtype.kind not in "biuf":
        check_unmasked(name, X)
        check_has_rows(name, X, f"(n_samples, {n_columns})")
        check_numeric(name, X, has_ids=True)
        X = na_as_nan(X)
    X = as_real(name, X, dtype)
    if X.ndim != 2 or X.shape[1] != n_columns:
        advice = ""
        if X.ndim == 1 and 1 in (n_columns, len(X) - n_columns + 1):
            advice = " `np.reshape(X, (1, -1))` is one row."
            if n_columns == 1:
                advice = " `np.reshape(X, (-1, 1))` is a series of one input."
        raise ValueError(f"{name} must have shape (n_samples, {n_columns}); got {X.shape}.{advice}")
    return X


def _check_finite(name: str, X: Array) -> None:
    """Raise if X contains NaN or infinity."""
    if not np.isfinite(X).all():
        row = int(np.argmin(np.isfinite(X).all(axis=1)))
        raise ValueError(f"{name} contains NaN or infinity as {X.dtype.name}, first in row {row}.")


def as_feedback(reservoir: Reservoir, feedback: Any, n_samples: int) -> Array | None:
    """Return the outputs fed back, (n_samples, n_outputs), after checks; None without W_fb."""
    if reservoir.W_fb is None:
        if feedback is not None:
            raise ValueError("feedback was given, but the reservoir has no feedback weights W_fb.")
        return None
    if feedback is None:
        raise ValueError(
            "The reservoir has feedback weights: pass feedback, an array of shape "
            f"({n_samples}, {reservoir.n_outputs}) whose row t is the output of step t - 1."
        )
    feedback = as_series("feedback", feedback, reservoir.n_outputs, reservoir.dtype)
    if len(feedback) != n_samples:
        raise ValueError(
            f"feedback has {len(feedback)} rows, but X has n_samples={n_samples}. Both need one "
            "row per step."
        )
    return feedback
