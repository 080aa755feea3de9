"""The engine "numpy": the reference that other engines must reproduce up to rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, Matrix
from reservoir.activations import get_activation
from reservoir.dynamics.reservoir import Reservoir

try:  # private routines that save one allocation per step; `W @ x` is used if they are missing
    from scipy.sparse._sparsetools import csr_matvec as _csr_matvec
    from scipy.sparse._sparsetools import csr_matvecs as _csr_matvecs
except ImportError:  # pragma: no cover
    _csr_matvec = _csr_matvecs = None


@np.errstate(over="ignore", invalid="ignore")
def advance(
    reservoir: Reservoir,
    state: Array,
    place: Array,
    X: Array,
    feedback: Array | None,
    kicks: Array | None,
    leaks: tuple[Array, Array] | None = None,
) -> None:
    """Run a block of steps and write the states into the first columns of `place`.

    `state` is the one before the first step; row t of `place`, (n_steps, at least n_units), becomes
    that after step t. Row t of `feedback` is y[t-1]; None without feedback weights. `kicks`,
    (n_steps, n_units), is noise added to the state after each step, or None. `leaks` is as from
    `leaks_of`; None if all steps have duration 1.
    """
    block = place[:, : reservoir.n_units]
    project(reservoir, X, feedback, block)
    step_through(reservoir, state, block, kicks, recurrence(recurrent_matrix(reservoir)), leaks)


def leaks_of(leak_rate: Any, dt: Array, dtype: Any) -> tuple[Array, Array]:
    """Return the weights of the new activation and of the old state in steps of durations `dt`.

    For leak rate a they are 1 - (1 - a)^dt and (1 - a)^dt. Each of the two arrays has one axis more
    than `dt`, of length 1, or of length n_units if there is a leak rate per unit. Where `dt` is 1,
    they contain exactly the bits that a run without `dt` uses.
    """
    leak = np.atleast_1d(np.asarray(leak_rate))
    gaps = dt[..., None]
    with np.errstate(divide="ignore", under="ignore"):  # with a leak rate of 1, log1p(-1) is -inf
        decay = gaps * np.log1p(-leak.astype(np.float64))
        takes = np.where(gaps == 1, leak, -np.expm1(decay)).astype(dtype)
        keeps = np.where(gaps == 1, 1 - leak, np.exp(decay)).astype(dtype)
    return takes, keeps


def step_many(reservoir: Reservoir, states: Array, inputs: Array, feedback: Array | None) -> Array:
    """Return the states of many runs after one step, (n_runs, n_units).

    The other arrays have a row for each run too: states before the step, inputs, and the previous
    outputs that are fed back, None without feedback weights.
    """
    z = np.empty((len(states), reservoir.n_units), reservoir.dtype)
    project(reservoir, inputs, feedback, z)
    z += (recurrent_matrix(reservoir) @ states.T).T
    get_activation(reservoir.activation).function(z, out=z)
    leak = reservoir.leak_rate
    z *= leak
    z += (1 - leak) * states
    return z


def recurrent_matrix(reservoir: Reservoir) -> Matrix:
    """Return W in the fastest form for products: dense if over half of its entries are stored."""
    return reservoir._product_W


def project(reservoir: Reservoir, X: Array, feedback: Array | None, out: Array) -> None:
    """Write the drive W_in u[t] + bias + W_fb y[t-1] of each step into a row of `out`.

    `X`, `feedback` and `out` have one row per step, and one matrix product computes all rows.
    """
    if sp.issparse(reservoir.W_in):
        out[:] = (reservoir.W_in @ X.T).T
    else:
        np.matmul(X, reservoir.W_in.T, out=out)
    out += reservoir.bias
    if feedback is not None:
        out += feedback @ reservoir.W_fb.T  # type: ignore[union-attr]


def recurrence(W: Matrix) -> Callable[[Array, Array], None]:
    """Return a function ``add(x, z)`` that adds W x to z in place.

    The function allocates no memory, unless W is sparse and SciPy's private routine is missing.
    """
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


def step_through(
    reservoir: Reservoir,
    state: Array,
    block: Array,
    kicks: Array | None,
    add_recurrence: Callable[[Array, Array], None],
    leaks: tuple[Array, Array] | None = None,
) -> None:
    """Replace the drives in `block`, as written by `project`, by the states, row by row.

    `add_recurrence` is a function returned by `recurrence`; the other parameters are as in
    `advance`.
    """
    activate = get_activation(reservoir.activation).function
    leak: float | Array = reservoir.leak_rate
    # a number is compared as such: by NumPy it takes longer, which a session would pay in each step
    leaky = leak != 1.0 if isinstance(leak, float) else np.any(np.not_equal(leak, 1.0))
    keep = np.asarray(1 - leak, dtype=block.dtype)
    kept = np.empty_like(state)
    # `row` is first the drive, then the pre-activation, then the state
    for t, row in enumerate(block):
        add_recurrence(state, row)
        activate(row, out=row)
        if leaks is not None:
            leak, keep = leaks[0][t], leaks[1][t]
        if leaky:
            np.multiply(row, leak, out=row)
            np.multiply(state, keep, out=kept)
            np.add(row, kept, out=row)
        if kicks is not None:
            np.add(row, kicks[t], out=row)
        state = row


def advance_many(
    reservoir: Reservoir,
    states: Array,
    inputs: Array,
    place: Array,
    leaks: tuple[Array, Array] | None = None,
) -> None:
    """Run several sequences of equal length side by side, and write their states to `place`.

    `states`, (n_sequences, n_units), are those before the first step. `inputs`, (n_sequences,
    n_steps, n_features + n_outputs), are the features, then outputs that are fed back. `place` is
    (at least n_sequences, n_steps, n_units). `leaks` are results of `leaks_of`, stacked along a
    last axis of sequences; None if all steps have duration 1.
    """
    n_sequences, n_steps, _ = inputs.shape
    W, k = recurrent_matrix(reservoir), reservoir.n_features
    # the drives of all steps are written into the memory of the states, which replace them below
    block = place[:n_sequences]
    for rows, given in zip(block, inputs, strict=True):
        project(reservoir, given[:, :k], None if reservoir.W_fb is None else given[:, k:], rows)
    activate = get_activation(reservoir.activation).function
    leak = np.asarray(reservoir.leak_rate, block.dtype)[..., None]
    leaky, keep = np.any(np.not_equal(leak, 1.0)), np.asarray(1 - leak, block.dtype)
    x = np.array(states.T, order="C")  # one sequence per column
    # one product with W per step, for all sequences
    for t in range(n_steps):
        z = np.array(block[:, t].T, order="C")
        if sp.issparse(W) and _csr_matvecs is not None:
            _csr_matvecs(*W.shape, n_sequences, W.indptr, W.indices, W.data, x.ravel(), z.ravel())
        else:
            z += W @ x
        activate(z, out=z)
        if leaks is not None:
            leak, keep = leaks[0][t], leaks[1][t]
        if leaky:
            z *= leak
            x *= keep
            z += x
        block[:, t] = z.T
        x = z
