"""Driving a reservoir with a given series: the NumPy reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, Matrix
from reservoir._validation import check_choice, check_number
from reservoir.activations import get_activation
from reservoir.dynamics._reservoir import Reservoir, _as_vector, _refuse_complex

try:  # private: saves one allocation per step; `W @ x` stands in where it is missing
    from scipy.sparse._sparsetools import csr_matvec as _csr_matvec
except ImportError:  # pragma: no cover
    _csr_matvec = None

_BLOCK_ROWS = 512  # long enough for one GEMM and one rank-k update, short enough for the cache
_BLOCK_SIZE = 2**22  # at most so many numbers in a block of states: 32 MiB of doubles


def run(
    reservoir: Reservoir,
    X: ArrayLike,
    *,
    initial_state: ArrayLike | None = None,
    feedback: ArrayLike | None = None,
    engine: str = "auto",
) -> Array:
    """Drive the reservoir with an input series and return every state.

    Parameters
    ----------
    reservoir : Reservoir
    X : array of shape (n_samples, n_features)
        Row t is the input of step t.
    initial_state : array of shape (n_units,), optional
        The state before the first step; zero by default.
    feedback : array of shape (n_samples, n_outputs), optional
        Row t is what step t receives as the previous output, y[t-1] (teacher forcing); row 0 is
        zero for a series that starts fresh. Required if and only if the reservoir has feedback
        weights.
    engine : {"auto", "numpy"}, default="auto"

    Returns
    -------
    array of shape (n_samples, n_units)
        Row t is the state after step t.

    Raises
    ------
    ValueError
        If shapes disagree, an input is NaN or infinite, or the states leave the range of floating
        point (an unbounded activation, or inputs near the largest float).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, run
    >>> res = Reservoir(np.zeros((2, 2)), [[1.0], [-1.0]], np.zeros(2), activation="identity")
    >>> run(res, [[1.0], [2.0]])
    array([[ 1., -1.],
           [ 2., -2.]])
    """
    check_choice("engine", engine, ("auto", "numpy"))
    X = _as_series("X", X, reservoir.n_features, reservoir.dtype)
    states = np.empty((len(X), reservoir.n_units), dtype=reservoir.dtype)
    for _ in iter_states(reservoir, X, initial_state=initial_state, feedback=feedback, out=states):
        pass
    return states


def iter_states(
    reservoir: Reservoir,
    X: ArrayLike,
    *,
    initial_state: ArrayLike | None = None,
    feedback: ArrayLike | None = None,
    noise: float = 0.0,
    generator: np.random.Generator | None = None,
    out: Array | None = None,
) -> Iterator[tuple[int, Array]]:
    """Drive the reservoir block by block, so that the state matrix need not be stored.

    Parameters
    ----------
    reservoir, X, initial_state, feedback
        As in `run`.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise that is added to the state after each step.
    generator : numpy.random.Generator, optional
        Where the noise comes from; required when `noise` is positive.
    out : array of shape (n_samples, n_units), optional
        Where the states go. By default one buffer is used again and again: copy what you keep.

    Yields
    ------
    start : int
        The row of X that the block begins with.
    block : array of shape (rows, n_units)
        The states of the steps from `start` on.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir, iter_states
    >>> res = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> [(start, block.shape) for start, block in iter_states(res, np.zeros((600, 1)))]
    [(0, (512, 1)), (512, (88, 1))]
    """
    dtype = reservoir.dtype
    X = _as_series("X", X, reservoir.n_features, dtype)
    feedback = _as_feedback(reservoir, feedback, len(X))
    noise = check_number("noise", noise, low=0.0)
    if noise > 0 and generator is None:
        raise ValueError(f"noise={noise} needs a generator: give a numpy.random.Generator.")
    state = np.zeros(reservoir.n_units, dtype)
    if initial_state is not None:
        state = _as_vector("initial_state", initial_state, reservoir.n_units, dtype)
    rows = max(1, min(_BLOCK_ROWS, _BLOCK_SIZE // reservoir.n_units, len(X)))
    buffer = np.empty((rows, reservoir.n_units), dtype) if out is None else None
    for start in range(0, len(X), rows):
        stop = min(start + rows, len(X))
        block = out[start:stop] if buffer is None else buffer[: stop - start]  # type: ignore[index]
        kicks = None
        if noise > 0:
            kicks = noise * generator.standard_normal(block.shape)  # type: ignore[union-attr]
            kicks = kicks.astype(dtype, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            _project(reservoir, X[start:stop], block)
            if feedback is not None:
                block += feedback[start:stop] @ reservoir.W_fb.T  # type: ignore[union-attr]
            _advance(reservoir, state, block, kicks)
            _check_finite_states(reservoir, block, start)
        state = block[-1].copy()
        yield start, block


def _project(reservoir: Reservoir, X: Array, out: Array) -> None:
    """Write W_in u[t] + bias into `out`: one GEMM for the whole block."""
    if sp.issparse(reservoir.W_in):
        out[:] = (reservoir.W_in @ X.T).T
    else:
        np.matmul(X, reservoir.W_in.T, out=out)
    out += reservoir.bias


def _recurrence(W: Matrix) -> Callable[[Array, Array], None]:
    """Return ``add(x, z)``, which adds W x to z in place, without allocating where it can."""
    n_units = W.shape[0]
    if sp.issparse(W) and _csr_matvec is not None:
        indptr, indices, data = W.indptr, W.indices, W.data

        def add(x: Array, z: Array) -> None:
            _csr_matvec(n_units, n_units, indptr, indices, data, x, z)

    else:
        product = np.empty(n_units, W.dtype)

        def add(x: Array, z: Array) -> None:
            if sp.issparse(W):
                z += W @ x
            else:
                np.dot(W, x, out=product)
                z += product

    return add


def _advance(reservoir: Reservoir, state: Array, block: Array, kicks: Array | None) -> None:
    """Turn the projected inputs in `block` into states, row by row, in place."""
    add_recurrence = _recurrence(reservoir.W)
    activate = get_activation(reservoir.activation).function
    leak = reservoir.leak_rate
    leaky = np.any(np.not_equal(leak, 1.0))
    keep = np.asarray(1 - leak, dtype=block.dtype)
    kept = np.empty_like(state)
    for t, row in enumerate(block):
        add_recurrence(state, row)
        activate(row, out=row)
        if leaky:
            np.multiply(row, leak, out=row)
            np.multiply(state, keep, out=kept)
            np.add(row, kept, out=row)
        if kicks is not None:
            np.add(row, kicks[t], out=row)
        state = row


def _check_finite_states(reservoir: Reservoir, block: Array, start: int) -> None:
    if np.isfinite(block.sum()):  # cheap; a sum may overflow where no state does
        return
    finite = np.isfinite(block).all(axis=1)
    if finite.all():
        return
    name = get_activation(reservoir.activation).name
    raise ValueError(
        f"The states are not finite from step {start + int(np.argmin(finite))} on "
        f"(activation={name!r}, dtype={reservoir.dtype}). Scale the inputs down, lower the "
        "spectral radius, or use a bounded activation such as 'tanh'."
    )


def _as_series(name: str, X: Any, n_columns: int, dtype: Any) -> Array:
    _refuse_complex(name, X)
    with np.errstate(over="ignore"):
        X = np.asarray(X, dtype=dtype)
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise ValueError(f"{name} must have shape (n_samples, {n_columns}); got {X.shape}.")
    if not np.isfinite(X).all():
        row = int(np.argmin(np.isfinite(X).all(axis=1)))
        raise ValueError(
            f"{name} holds NaN or infinity as {np.dtype(dtype).name}, first in row {row}."
        )
    return X


def _as_feedback(reservoir: Reservoir, feedback: Any, n_samples: int) -> Array | None:
    if reservoir.W_fb is None:
        if feedback is not None:
            raise ValueError("feedback was given, but the reservoir has no feedback weights W_fb.")
        return None
    if feedback is None:
        raise ValueError(
            "The reservoir has feedback weights: give feedback, an array of shape "
            f"({n_samples}, {reservoir.n_outputs}) whose row t is the output of step t - 1."
        )
    feedback = _as_series("feedback", feedback, reservoir.n_outputs, reservoir.dtype)
    if len(feedback) != n_samples:
        raise ValueError(f"feedback has {len(feedback)} rows, X has n_samples={n_samples}.")
    return feedback
