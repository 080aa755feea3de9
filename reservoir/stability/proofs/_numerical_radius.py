"""The numerical radius of a matrix: the largest modulus of x* M x over unit vectors x.

With leak rates M is multiplied by the units' filters. The radius is computed, not proved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh_tridiagonal

from reservoir._typing import Array, Matrix

DENSE = 24  # up to so many units all eigenvalues are computed
_INTERVALS = 24  # of the first grid of angles: between them at most .2 % of the radius is missed
_CLOSER = 9  # angles of the second grid, around the best angle
LEAST_LEAK = 1e-8  # smaller leaks are replaced by this one: their filters hardly differ
_STEPS = (24, 40, 320)  # of Lanczos's method on the first grid, on the second, at the best angle
_CLOSE = 1e-7  # relative change over 40 steps below which Lanczos's method stops


def numerical_radius(M: Matrix, leak: Array | None = None, *, enough: float = np.inf) -> float:
    """Return the numerical radius of a real matrix, from below, to 2e-3 or (mostly) much better.

    It is the largest eigenvalue of the Hermitian part of ``exp(-i t) M`` over all angles t: a grid
    locates the maximum, and a finer grid and a parabola refine it. With leak rates a, ``exp(-i t)``
    is the diagonal of ``a / (exp(i t) - 1 + a)``, the response of each unit's leaky mean to a wave
    of angular frequency t. Once the radius is known to be at least `enough`, a lower bound is
    returned.
    """
    if leak is None:
        leak = np.ones(M.shape[0])
    leak = np.maximum(leak, LEAST_LEAK)
    # M is real, so angles of opposite sign give the same eigenvalue.
    angles = first_angles(leak)
    at_once = float(_largest_eigenvalues(M, leak, angles[[0, -1]], _STEPS[0]).max())
    if at_once >= enough:
        return at_once
    values = _largest_eigenvalues(M, leak, angles, _STEPS[0])
    best = int(np.argmax(values))
    around = angles[max(best - 1, 0)], angles[min(best + 1, len(angles) - 1)]
    angles = np.linspace(*around, _CLOSER)
    values = _largest_eigenvalues(M, leak, angles, _STEPS[1])
    at = _peak(angles, values)
    return max(float(values.max()), float(_largest_eigenvalues(M, leak, at, _STEPS[2])[0]))


def first_angles(leak: Array) -> Array:
    """Return angles from 0 to pi, dense enough for the filter of each size of leak."""
    low, high = float(leak.min()), float(leak.max())
    sizes = np.geomspace(low, high, 1 + int(np.ceil(np.log2(high / low) / 2)))
    turned = np.tan(np.linspace(0.0, np.pi, _INTERVALS + 1)[:-1] / 2)
    angles = [2 * np.arctan(turned * a / (2 - a)) for a in sizes]
    return np.unique(np.append(np.concatenate(angles), np.pi))


def _peak(angles: Array, values: Array) -> Array:
    """Return the maximum's position on a parabola through the largest value and its neighbours."""
    best = int(np.argmax(values))
    if best in (0, len(values) - 1):
        return angles[[best]]
    before, here, after = values[best - 1 : best + 2]
    bend = 2 * here - before - after
    shift = 0.5 * (after - before) / bend if bend > 0 else 0.0
    return angles[[best]] + shift * (angles[1] - angles[0])


def _largest_eigenvalues(M: Matrix, leak: Array, angles: Array, n_steps: int) -> Array:
    """Return the largest eigenvalue of (M F + F* M') / 2 for each angle, F the units' filters."""
    filters = filters_of(leak, angles)
    if M.shape[0] <= DENSE:
        return np.linalg.eigvalsh(hermitian_parts(M, filters))[:, -1]
    diagonals, others, values = [], [], np.full(len(angles), -np.inf)
    for _, diagonal, length in lanczos(M, filters, n_steps):
        diagonals.append(diagonal)
        others.append(length)
        if len(diagonals) % 40 == 0 or len(diagonals) == n_steps:
            known, values = values, _of_tridiagonals(np.array(diagonals), np.array(others[:-1]))
            if (np.abs(values - known) <= _CLOSE * np.abs(values)).all():
                break
    return values


def filters_of(leak: Array, angles: Array) -> Array:
    """Return a / (exp(i t) - 1 + a): a row for each unit, a column for each angle t."""
    return leak[:, None] / (np.expm1(1j * angles) + leak[:, None])


def hermitian_parts(M: Matrix, filters: Array) -> Array:
    """Return (M F + F* M') / 2 for each column F of the filters, stacked and dense."""
    dense = M.toarray() if sp.issparse(M) else M
    return np.array([0.5 * (dense * f + (dense * f).conj().T) for f in filters.T])


def lanczos(M: Matrix, filters: Array, n_steps: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the vectors of Lanczos's method on these matrices, for all filters at once.

    Each comes with the diagonal and the off-diagonal entry of the tridiagonal matrix. Vectors are
    not made orthogonal again, which only adds copies of eigenvalues already found.
    """
    shape, transposed = filters.shape, M.T
    rng = np.random.default_rng(0)
    start = rng.standard_normal((2, shape[0])).T.copy().view(complex)
    v = np.tile(start / np.linalg.norm(start), shape[1])
    before, length = np.zeros(shape, complex), np.zeros(shape[1])
    for _ in range(n_steps):
        w = 0.5 * (times(M, filters * v) + np.conj(filters) * times(transposed, v))
        w -= length * before
        diagonal = (np.conj(v) * w).real.sum(axis=0)
        w -= diagonal * v
        length = np.linalg.norm(w, axis=0)
        yield v, diagonal, length
        before, v = v, w / np.maximum(length, 1e-300)


def _of_tridiagonals(diagonals: Array, others: Array) -> Array:
    """Return the largest eigenvalue of each symmetric tridiagonal matrix: one for each column."""
    last, n = len(diagonals) - 1, diagonals.shape[1]
    pairs = ((diagonals[:, k], others[:, k]) for k in range(n))
    found = [eigvalsh_tridiagonal(d, e, select="i", select_range=(last, last)) for d, e in pairs]
    return np.concatenate(found)


def times(M: Matrix, v: Array) -> Array:
    """Return M v for a real M and complex v, without a complex copy of M."""
    flat = np.ascontiguousarray(v).view(float)
    return np.ascontiguousarray(M @ flat).view(complex)
