"""Search for the scaling of the units, e^x W e^-x, with the least numerical radius.

The numerical radius of M is the largest modulus of x* M x over unit vectors x. With leak rates M is
multiplied by the units' filters. The radius is computed, not proved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal
from scipy.optimize import minimize

from reservoir._typing import Array, Matrix
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix

_ROUNDS = 10  # of the search: later rounds gain little
_GAIN = 1.1  # factor by which the search never lowers the radius
_SEARCHED = 400  # up to so many units a scaling is searched for
_FARTHEST = 300.0  # largest modulus of x: beyond, e^x M e^-x might overflow
_STEPS = 32  # of Lanczos's method
_LEADING = 3  # eigenvectors for each angle
_SMOOTHING = 200.0  # the exponent of the smooth maximum over angles and eigenvalues
DENSE = 24  # up to so many units all eigenvalues are computed
_INTERVALS = 24  # of the first grid of angles: between them at most .2 % of the radius is missed
_CLOSER = 9  # angles of the second grid, around the best angle
_LEAST_LEAK = 1e-8  # smaller leaks are replaced by this one: their filters hardly differ
# of Lanczos's method on the first grid of angles, on the second, at the best angle
_GRID_STEPS = (24, 40, 320)
_CLOSE = 1e-7  # relative change over 40 steps below which Lanczos's method stops


def scaled_radius(W: Matrix, leak: Array, x: Array, enough: float = np.inf) -> float:
    """Return the `numerical_radius` of e^x W e^-x, with the units' leaky means."""
    return numerical_radius(scaled_matrix(np.ones(len(x)), W, np.exp(x)), leak, enough=enough)


def is_within_reach(W: Matrix, leak: Array, x: Array, bound: float) -> bool:
    """Whether a search from x may find a scaling with a numerical radius below `bound`."""
    return scaled_radius(W, leak, x, enough=_GAIN * bound) < _GAIN * bound


def turning_scaling(W: Matrix, leak: Array, x: Array) -> Array:
    """Return the scaling with the least numerical radius that a search from `x` finds.

    As in `searched_scaling` a smooth maximum is minimised, here of the leading eigenvalues over a
    grid of angles: the derivative of an eigenvalue by x_i is ``Re conj(v_i) (A v)_i`` minus
    ``Re conj(A* v)_i v_i``, with A = e^x W e^-x F and F the filters of the leaky means.
    """
    if len(x) > _SEARCHED:
        return x
    leak = np.maximum(leak, _LEAST_LEAK)
    filters = filters_of(leak, _first_angles(leak)[::2])
    found = minimize(
        _smooth_maximum,
        x,
        (W, filters),
        jac=True,
        method="L-BFGS-B",
        options={"maxfun": _ROUNDS},
    ).x
    # The search may have ended at a worse scaling.
    found = found - found.mean()
    near = bool((np.abs(found) < _FARTHEST).all())
    better = near and scaled_radius(W, leak, found) < scaled_radius(W, leak, x)
    return found if better else x


def _smooth_maximum(x: Array, W: Matrix, filters: Array) -> tuple[float, Array]:
    """Return the logarithm of the smooth maximum at x, and its gradient."""
    if not (np.abs(x) < _FARTHEST).all():
        return 1e300, np.zeros(len(x))
    with np.errstate(over="ignore", invalid="ignore"):
        M = scaled_matrix(np.ones(len(x)), W, np.exp(x))
    if not np.isfinite(M.data if sp.issparse(M) else M).all():
        return 1e300, np.zeros(len(x))
    values, vectors = _leading_pairs(M, filters)
    top = float(values.max())
    if top <= 0:
        return -1e300, np.zeros(len(x))
    shares = np.exp(_SMOOTHING * np.log(np.maximum(values / top, 1e-300)))
    total = shares.sum()
    # One column for each pair of an angle and an eigenvector.
    of_columns = np.repeat(filters, vectors.shape[2], axis=1)
    v = vectors.reshape(len(x), -1)
    ahead = times(M, of_columns * v)
    back = np.conj(of_columns) * times(M.T, v)
    gradient = (np.conj(v) * ahead - np.conj(back) * v).real @ (shares.ravel() / total)
    return float(np.log(top) + np.log(total) / _SMOOTHING), gradient / top


def _leading_pairs(M: Matrix, filters: Array) -> tuple[Array, Array]:
    """Return the largest eigenvalues of each Hermitian part, (n_angles, k), and their vectors.

    The vectors have shape (n_units, n_angles, k).
    """
    n, n_angles = filters.shape
    if n <= DENSE:
        values, vectors = np.linalg.eigh(hermitian_parts(M, filters))
        k = min(_LEADING, n)
        return values[:, -k:], vectors[:, :, -k:].transpose(1, 0, 2)
    steps = list(lanczos(M, filters, _STEPS))
    basis = np.array([v for v, _, _ in steps])
    values, vectors = np.empty((n_angles, _LEADING)), np.empty((n, n_angles, _LEADING), complex)
    for k in range(n_angles):
        diagonal = np.array([d[k] for _, d, _ in steps])
        off_diagonal = np.array([b[k] for _, _, b in steps[:-1]])
        last = (_STEPS - _LEADING, _STEPS - 1)
        values[k], small = eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=last)
        vectors[:, k] = basis[:, :, k].T @ small
    return values, vectors


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
    leak = np.maximum(leak, _LEAST_LEAK)
    # M is real, so angles of opposite sign give the same eigenvalue.
    angles = _first_angles(leak)
    at_once = float(_largest_eigenvalues(M, leak, angles[[0, -1]], _GRID_STEPS[0]).max())
    if at_once >= enough:
        return at_once
    values = _largest_eigenvalues(M, leak, angles, _GRID_STEPS[0])
    best = int(np.argmax(values))
    around = angles[max(best - 1, 0)], angles[min(best + 1, len(angles) - 1)]
    angles = np.linspace(*around, _CLOSER)
    values = _largest_eigenvalues(M, leak, angles, _GRID_STEPS[1])
    at = _peak(angles, values)
    return max(float(values.max()), float(_largest_eigenvalues(M, leak, at, _GRID_STEPS[2])[0]))


def _first_angles(leak: Array) -> Array:
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
