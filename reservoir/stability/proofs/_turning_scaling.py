"""Search for the scaling of the units, e^x W e^-x, with the least numerical radius."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import minimize

from reservoir._typing import Array, Matrix
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix
from reservoir.stability.proofs._numerical_radius import (
    DENSE,
    LEAST_LEAK,
    filters_of,
    first_angles,
    hermitian_parts,
    lanczos,
    numerical_radius,
    times,
)

_ROUNDS = 10  # of the search: later rounds gain little
_GAIN = 1.1  # factor by which the search never lowers the radius
_SEARCHED = 400  # up to so many units a scaling is searched for
_FARTHEST = 300.0  # largest modulus of x: beyond, e^x M e^-x might overflow
_STEPS = 32  # of Lanczos's method
_LEADING = 3  # eigenvectors for each angle
_SMOOTHING = 200.0  # the exponent of the smooth maximum over angles and eigenvalues


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
    leak = np.maximum(leak, LEAST_LEAK)
    filters = filters_of(leak, first_angles(leak)[::2])
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
