"""Search for the diagonal P with the least ||P W P^-1||_2."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.linalg import ArpackError, svds

from reservoir._typing import Array, Matrix
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix
from reservoir.stability.proofs._max_norm import perron_bound
from reservoir.stability.proofs._two_norm import perron_scaling
from reservoir.stability.proofs._unit_scalings import aligned, balanced

_DENSE = 200  # up to so many units all singular values are computed
_LEADING = 6  # number of singular values computed for more units, the largest ones
_RESTARTS = 40  # of Arnoldi's method; if it fails (values too close), the matrix is decomposed
_BASIS = 40  # vectors in the basis of Arnoldi's method
_FARTHEST = 300.0  # largest modulus of log P
_SMOOTHING = 60.0  # the exponent of the smooth maximum of the singular values


def leading_singular(B: Matrix) -> tuple[Array, Array, Array]:
    """Return left singular vectors, singular values and right vectors, by descending value."""
    if B.shape[0] <= _DENSE:
        return _all_singular(B)
    start = np.random.default_rng(0).standard_normal(B.shape[0])
    for tol in (1e-4, 1e-2):  # relative error of the vectors; that of the values is its square
        try:
            U, s, Vt = svds(B, k=_LEADING, ncv=_BASIS, v0=start, tol=tol, maxiter=_RESTARTS)
        except ArpackError:  # values too close together, as they are near the optimum
            continue
        order = np.argsort(-s)
        return U[:, order], s[order], Vt[order].T
    return _all_singular(B)


def _all_singular(B: Matrix) -> tuple[Array, Array, Array]:
    """Return the full singular value decomposition, in the form of `leading_singular`."""
    U, s, Vt = np.linalg.svd(B.toarray() if sp.issparse(B) else B)
    return U, s, Vt.T


def searched_scaling(W: Matrix, A: Matrix, norm: float) -> tuple[Array, float]:
    """Return the diagonal P with the least ||P W P^-1||_2 that is found, and that norm.

    `A` is the modulus of W, `norm` is ||W||_2. The norm is convex in log P (Sezginer and Overton
    1990), but has kinks where singular values meet: a smooth maximum of the leading ones is
    minimised instead. The search starts from the best of P = 1, Perron's scaling, whose norm is at
    most the spectral radius of |W|, and that of `aligned`, whose norm is mostly within a tenth of
    the least.
    """
    n = W.shape[0]
    _, v = perron_bound(A)
    if not np.any(v) or norm == 0.0:
        return np.ones(n), norm
    perron = np.log(np.clip(perron_scaling(A, v), 1e-100, 1e100))
    best, best_log = float(norm), np.zeros(n)

    def smooth_maximum(log_p: Array) -> tuple[float, Array]:
        """Return its logarithm and gradient; keep the best norm and its P."""
        nonlocal best, best_log
        with np.errstate(over="ignore", invalid="ignore"):
            B = scaled_matrix(np.ones(n), W, _exponential(log_p))
        values = B.data if sp.issparse(B) else B
        if not np.isfinite(values).all():
            return 1e300, np.zeros(n)
        U, s, V = leading_singular(B)
        if s[0] < best:
            best, best_log = float(s[0]), log_p.copy()
        if s[0] == 0.0:
            return -1e300, np.zeros(n)
        logs = np.log(np.maximum(s / s[0], 1e-300))
        shares = np.exp(_SMOOTHING * logs)
        value = float(np.log(s[0]) + np.log(shares.sum()) / _SMOOTHING)
        shares /= shares.sum()
        return value, (U**2 - V**2)[:, : len(shares)] @ shares

    for start in (perron, aligned(W, balanced(W))[0]):
        smooth_maximum(start)
    rounds = 200 if n <= _DENSE else max(10, 40_000 // n)
    if best > 0:
        minimize(smooth_maximum, best_log, jac=True, method="L-BFGS-B", options={"maxfun": rounds})
    return _exponential(best_log), best


def _exponential(log_p: Array) -> Array:
    """Return P, within bounds so that it and its inverse do not overflow.

    Without bounds the entries of units that lack connections would grow for ever.
    """
    return np.exp(np.clip(log_p, -_FARTHEST, _FARTHEST))
