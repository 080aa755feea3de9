"""Contraction in a weighted Euclidean norm: theorem C3."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import ArpackError, svds

from reservoir._typing import Array, Matrix
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix, scaled_rows
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._max_norm import max_norm_rate, perron_bound


def two_norm_rate(network: IntervalNetwork, largest: Array) -> tuple[float, Array]:
    """Return r and P with ||P diag(d) W P^-1||_2 <= r, r infinite if none is below 1: theorem C3.

    P = 1 first: the plain norm is the least of all for orthogonal and for symmetric matrices, and
    its weights have no ratio. Perron's scaling is taken where it proves less than that.
    """
    P = np.ones(network.n_units)
    r = norm_rate(largest, network.W, P)
    v = max_norm_rate(network, largest)[1]
    scaling = perron_scaling(scaled_rows(largest, network.A), v)
    scaled = norm_rate(largest, network.W, scaling, below=min(r, 1.0))
    return (scaled, scaling) if scaled < r else (r, P)


@OVERFLOWS
def norm_rate(d: Array, W: Matrix, P: Array, *, below: float = 1.0) -> float:
    """Return a proved bound of ||P diag(d) W P^-1||_2, or inf if it is not below `below`."""
    with np.errstate(over="ignore", invalid="ignore"):
        B = scaled_matrix(d, W, P)
        values = B.data if sp.issparse(B) else B
        if not np.isfinite(values).all():
            return np.inf
    bound = norm_bound(B, below=below)
    # each entry of B is off by four roundings at most: by the Frobenius norm
    frobenius = float(np.sqrt((values * values).sum()))
    return bound * (1 + 4 * EPS) + 8 * EPS * frobenius


def perron_scaling(M: Matrix, v: Array) -> Array:
    """Return P = sqrt(y / x) from the right and left Perron vectors of a non-negative M."""
    _, y = perron_bound(sp.csr_array(M.T) if sp.issparse(M) else M.T.copy())
    x = np.maximum(v, 1e-150)
    y = np.maximum(y, 1e-150)
    scaling = np.sqrt(y / x)
    return scaling / np.exp(np.mean(np.log(scaling)))


@OVERFLOWS
def norm_bound(B: Matrix, *, below: float = np.inf) -> float:
    """Return an upper bound of ||B||_2, proved by a Cholesky factorisation; inf if above `below`.

    theta^2 I - B'B - c I is factored; by Rump (2006) a factorisation that ends shows that the
    matrix is positive definite if c covers the rounding of the product and of the factorisation.
    """
    n = B.shape[0]
    estimate = _norm_from_below(B)  # most that fail do so by far, and are spared the dear part
    if estimate < below:
        estimate = _norm_estimate(B)
    if not estimate < below:
        return np.inf
    if estimate == 0.0 and not abs(B).max():
        return TINY
    dense = B.toarray() if sp.issparse(B) else B
    size = float((dense * dense).sum()) * (1 + (n * n + 4.0) * EPS)
    gram = dense.T @ dense
    diagonal = np.diag_indices(n)
    for slack in (1e-6, 1e-5, 1e-4, 1e-3):
        theta = estimate * (1 + slack) + TINY
        # product: gamma_n ||B||_F^2; factorisation: gamma_{n+1} trace <= gamma_{n+1} n theta^2
        shift = (n + 8) * EPS * (size + n * theta**2) + TINY
        matrix = -gram
        matrix[diagonal] += theta**2 * (1 - 4 * EPS) - shift
        try:
            linalg.cholesky(matrix, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            continue
        return theta
    return np.inf


def _norm_from_below(B: Matrix, n_steps: int = 6) -> float:
    """Return ||B v|| / ||v|| after a few steps of the power method."""
    v = np.random.default_rng(0).standard_normal(B.shape[1])
    size = 0.0
    for _ in range(n_steps):
        v = v / max(float(np.linalg.norm(v)), TINY)
        u = B @ v
        size = float(np.linalg.norm(u))
        v = B.T @ u
    return size


def _norm_estimate(B: Matrix) -> float:
    dense = B.toarray() if sp.issparse(B) and B.shape[0] <= 300 else B
    if B.shape[0] <= 300:
        return float(np.linalg.norm(dense, 2))
    start = np.random.default_rng(0).standard_normal(B.shape[0])
    try:
        return float(svds(B, k=1, ncv=30, v0=start, tol=1e-4, return_singular_vectors=False)[0])
    except ArpackError:  # values that lie too close together
        return float(np.linalg.norm(B.toarray() if sp.issparse(B) else B, 2))
