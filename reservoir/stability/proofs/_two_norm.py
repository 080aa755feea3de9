"""Contraction in a weighted Euclidean norm: theorem C3.

Two states of the network without leak under the same input differ by e, and after a step by D W e,
with D a diagonal of slopes between 0 and d, the largest in a box that contains both states. If
``||P diag(d) W P^-1||_2 <= r < 1`` for a positive diagonal P, then ``||P e||_2`` shrinks by r.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import ArpackError, svds

from reservoir._typing import Array, Matrix
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix, scaled_rows
from reservoir.stability.proofs._interval_network import MAX_DENSE_UNITS, IntervalNetwork
from reservoir.stability.proofs._max_norm import max_norm_rate, perron_bound

_LARGEST_LOG = 300.0  # of a scaling: its square is far from overflow


def two_norm_proof(network: IntervalNetwork, box: Box) -> tuple[float, Array]:
    """Return the proved rate per step inside the box, and the weights of the norm: theorem C3."""
    r, P = two_norm_rate(network, box.largest_slope)
    return network.leaky_rate(r), P


def two_norm_rate(network: IntervalNetwork, largest: Array) -> tuple[float, Array]:
    """Return r and P with ||P diag(largest) W P^-1||_2 <= r; r is infinite if none is below 1.

    Two scalings are compared. P = 1 gives the least norm for orthogonal and for symmetric matrices,
    and all units have the same weight. Perron's scaling is used if its norm is lower.
    """
    # No scaling.
    P = np.ones(network.n_units)
    r = norm_rate(largest, network.W, P)
    # Perron's scaling; its norm is not proved unless it is lower.
    v = max_norm_rate(network, largest)[1]
    scaling = perron_scaling(scaled_rows(largest, network.A), v)
    scaled = norm_rate(largest, network.W, scaling, below=min(r, 1.0))
    return (scaled, scaling) if scaled < r else (r, P)


@OVERFLOWS
def norm_rate(d: Array, W: Matrix, P: Array, *, below: float = 1.0) -> float:
    """Return a proved bound of ||P diag(d) W P^-1||_2; infinity unless it is below `below`."""
    with np.errstate(over="ignore", invalid="ignore"):
        B = scaled_matrix(d, W, P)
        values = B.data if sp.issparse(B) else B
        if not np.isfinite(values).all():
            return np.inf
    bound = norm_bound(B, below=below)
    # Each entry of B has at most four rounding errors, which change its norm by at most that share
    # of the Frobenius norm.
    frobenius = float(np.sqrt((values * values).sum()))
    return bound * (1 + 4 * EPS) + 8 * EPS * frobenius


def perron_scaling(M: Matrix, v: Array) -> Array:
    """Return P = sqrt(y / x), x and y the right and left Perron vectors of a non-negative matrix M.

    Among all diagonals this one minimises the Euclidean norm of P M P^-1: it is then the spectral
    radius of M.
    """
    _, y = perron_bound(sp.csr_array(M.T) if sp.issparse(M) else M.T.copy())
    # In logarithms: the ratio of x and y may exceed the range of doubles.
    logs = 0.5 * (np.log(np.maximum(y, 1e-150)) - np.log(np.maximum(v, 1e-150)))
    return np.exp(np.clip(logs - logs.mean(), -_LARGEST_LOG, _LARGEST_LOG))


@OVERFLOWS
def norm_bound(B: Matrix, *, below: float = np.inf) -> float:
    """Return a proved upper bound of ||B||_2; infinity unless it is below `below`.

    ||B||_2 <= theta if theta^2 I - B'B is positive definite. That is proved if the Cholesky
    factorisation of theta^2 I - B'B - c I succeeds, where c covers the rounding of the product and
    of the factorisation (Rump 2006). For more than MAX_DENSE_UNITS units the moduli of B'B are
    used, which proves less.
    """
    # Estimate the norm, first cheaply: most matrices that fail are far above `below`.
    n = B.shape[0]
    estimate = _norm_from_below(B)
    if estimate < below:
        estimate = _norm_estimate(B)
    if not estimate < below:
        return np.inf
    if estimate == 0.0 and not abs(B).max():
        return TINY
    if n > MAX_DENSE_UNITS:
        return _norm_by_moduli(B)
    # Prove the least theta of a few just above the estimate.
    dense = B.toarray() if sp.issparse(B) else B
    size = float((dense * dense).sum()) * (1 + (n * n + 4.0) * EPS)
    gram = dense.T @ dense
    diagonal = np.diag_indices(n)
    for slack in (1e-6, 1e-5, 1e-4, 1e-3):
        theta = estimate * (1 + slack) + TINY
        # c, with gamma_n = n EPS / (1 - n EPS): at most gamma_n ||B||_F^2 for the product, and
        # gamma_{n+1} times the trace, which n theta^2 bounds, for the factorisation.
        shift = (n + 8) * EPS * (size + n * theta**2) + TINY
        matrix = -gram
        matrix[diagonal] += theta**2 * (1 - 4 * EPS) - shift
        try:
            linalg.cholesky(matrix, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return theta
    return np.inf


def _norm_by_moduli(B: Matrix) -> float:
    """Return a proved bound for a B too large to factor: ||B||^2 = rho(B'B) <= rho(|B'B|)."""
    gram = B.T @ B
    n_terms = np.diff(sp.csc_array(B).indptr).max() if sp.issparse(B) else B.shape[0]
    rounding = abs(B).T @ abs(B) * ((float(n_terms) + 8) * EPS)
    moduli = abs(gram) + rounding
    bound, _ = perron_bound(sp.csr_array(moduli) if sp.issparse(moduli) else moduli)
    return float(np.sqrt(bound)) * (1 + 4 * EPS)


def _norm_from_below(B: Matrix, n_steps: int = 6) -> float:
    """Return a lower bound of ||B||_2, by a few steps of the power method."""
    v = np.random.default_rng(0).standard_normal(B.shape[1])
    size = 0.0
    for _ in range(n_steps):
        v = v / max(float(np.linalg.norm(v)), TINY)
        u = B @ v
        size = float(np.linalg.norm(u))
        v = B.T @ u
    return size


def _norm_estimate(B: Matrix) -> float:
    """Return ||B||_2 to a relative error of about 1e-4, or better."""
    dense = B.toarray() if sp.issparse(B) and B.shape[0] <= 300 else B
    if B.shape[0] <= 300:
        return float(np.linalg.norm(dense, 2))
    start = np.random.default_rng(0).standard_normal(B.shape[0])
    try:
        return float(svds(B, k=1, ncv=30, v0=start, tol=1e-4, return_singular_vectors=False)[0])
    except ArpackError:  # singular values too close together
        return float(np.linalg.norm(B.toarray() if sp.issparse(B) else B, 2))
