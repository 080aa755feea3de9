"""The diagonal scaling in which the norm of a matrix is least."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.linalg import ArpackError, svds

from reservoir._typing import Array, Matrix
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix
from reservoir.stability.proofs._two_norm import perron_scaling

_DENSE = 200  # up to here all singular values at once
_LEADING, _BASIS = 6, 40  # beyond, as many, from a basis of so many vectors
_FARTHEST = 300.0  # of a logarithm from zero
_SMOOTHING = 60.0  # sharpness of the maximum over singular values that the search works on


def leading_singular(B: Matrix) -> tuple[Array, Array, Array]:
    """Return the leading left vectors, values and right vectors, largest first."""
    if B.shape[0] <= _DENSE:
        return _all_singular(B)
    start = np.random.default_rng(0).standard_normal(B.shape[0])
    for tol in (1e-4, 1e-2):  # of the vectors; the values are right to its square
        try:
            U, s, Vt = svds(B, k=_LEADING, ncv=_BASIS, v0=start, tol=tol)
        except ArpackError:  # values that lie too close together, as they do near the optimum
            continue
        order = np.argsort(-s)
        return U[:, order], s[order], Vt[order].T
    return _all_singular(B)


def _all_singular(B: Matrix) -> tuple[Array, Array, Array]:
    U, s, Vt = np.linalg.svd(B.toarray() if sp.issparse(B) else B)
    return U, s, Vt.T


def best_scaling(W: Matrix, A: Matrix, v: Array, norm: float) -> tuple[Array, float]:
    """Search the diagonal P of least ||P W P^-1||_2: convex in log P (Sezginer and Overton 1990).

    Starts from the better of P = 1 and Perron's scaling, whose norm is at most rho(|W|), and
    descends a smooth maximum of the leading singular values.
    """
    n = W.shape[0]
    if not np.any(v) or norm == 0.0:
        return np.ones(n), norm
    perron = np.log(np.clip(perron_scaling(A, v), 1e-100, 1e100))
    best, best_log = float(norm), np.zeros(n)

    def smooth_maximum(log_p: Array) -> tuple[float, Array]:
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

    smooth_maximum(perron)
    rounds = 200 if n <= _DENSE else max(10, 40_000 // n)
    if best > 0:
        minimize(smooth_maximum, best_log, jac=True, method="L-BFGS-B", options={"maxfun": rounds})
    return _exponential(best_log), best


def _exponential(log_p: Array) -> Array:
    """Return P, held to where it and its inverse are floats: units without connections run away."""
    return np.exp(np.clip(log_p, -_FARTHEST, _FARTHEST))
