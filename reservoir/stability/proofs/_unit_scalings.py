"""Scalings of the units, e^x W e^-x, with small norms of W, computed in milliseconds.

`searched_scaling` searches for the best one in the Euclidean norm, which takes far longer.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.linalg import ArpackError, svds

from reservoir._typing import Array, Matrix
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix
from reservoir.stability.proofs._max_norm import perron_bound
from reservoir.stability.proofs._two_norm import perron_scaling

_SWEEPS = 200  # of Osborne's balancing
_ROUNDS = 60  # of the power method
_FEW = 1e-6  # share of the mean below which the squared vectors of a unit are unreliable
_NORM_STEPS = 12  # of the power method that compares the norms of two scalings
_DENSE = 200  # up to so many units all singular values are computed
_LEADING = 6  # number of singular values computed for more units, the largest ones
_RESTARTS = 40  # of Arnoldi's method; if it fails (values too close), the matrix is decomposed
_BASIS = 40  # vectors in the basis of Arnoldi's method
_FARTHEST = 300.0  # largest modulus of log P
_SMOOTHING = 60.0  # the exponent of the smooth maximum of the singular values


def good_scaling(W: Matrix) -> Array:
    """Return the better of the two scalings x of this module, by the norm of e^x W e^-x.

    With many connections per unit this is the balanced one; with few connections the other.
    """
    x = balanced(W)
    other, _ = aligned(W, x)
    return other if _norm(W, other) < _norm(W, x) else x


def balanced(W: Matrix) -> Array:
    """Return x such that rows and columns of e^x W e^-x have equal norms (Osborne 1960)."""
    squares = _squares_of_others(W)
    transposed, n = squares.T, W.shape[0]
    # Weak connections between all units, so that units without connections have a scale, too.
    weak = 1e-12 * (float(squares.sum()) / n**2 + TINY)
    x = np.zeros(n)
    for _ in range(_SWEEPS):
        scale = np.exp(2 * x)
        rows = scale * (squares @ (1 / scale) + weak * (1 / scale).sum())
        columns = (transposed @ scale + weak * scale.sum()) / scale
        step = 0.22 * np.log(columns / rows)
        x = x + step
        if np.abs(step).max() < 1e-6:
            break
    return x - x.mean()


def _squares_of_others(W: Matrix) -> Matrix:
    """Return the squares of the weights between different units, relative to the largest weight."""
    size = abs(W)
    squares = (size / max(float(size.max()), TINY)) ** 2
    if sp.issparse(squares):
        return sp.csr_array(squares - sp.diags_array(squares.diagonal()))
    np.fill_diagonal(squares, 0.0)
    return squares


@OVERFLOWS
def aligned(W: Matrix, x: Array) -> tuple[Array, float]:
    """Return another scaling, and a lower bound of ``||e^x W e^-x||_2`` over all scalings.

    In the best scaling a leading pair of singular vectors is equal in modulus in each unit: both
    are found by the power method of Packard, Fan and Doyle (1988), in the units scaled by `x`, and
    their moduli are made equal. For the bound: vectors b with ``sum |W b|_i^2 >= r^2 sum |b|_i^2``
    in every unit satisfy this with weights ``P_i^2`` as well, so that ``||P W P^-1||_2 >= r``.
    """
    n = W.shape[0]
    rng = np.random.default_rng(0)
    b, left = (np.exp(2j * np.pi * rng.random(n)) / np.sqrt(n) for _ in range(2))
    of_b, of_image, of_left = np.zeros(n), np.zeros(n), np.zeros(n)
    for k in range(_ROUNDS):
        image = _scaled_product(W, x, b)
        if k >= _ROUNDS // 2:
            of_b += np.abs(b) ** 2
            of_image += np.abs(image) ** 2
            of_left += np.abs(left) ** 2
        right = image / max(float(np.linalg.norm(image)), TINY)
        left = _scaled_product(W.T, -x, np.abs(left) * np.exp(1j * np.angle(right)))
        left = left / max(float(np.linalg.norm(left)), TINY)
        b = np.abs(right) * np.exp(1j * np.angle(left))
    active = of_b > TINY
    if not active.any() or not np.isfinite(of_image).all():
        return x, 0.0
    least = float(np.sqrt((of_image[active] / of_b[active]).min())) * (1 - 1e-9)
    ratio = (of_left + _FEW * of_left.mean() + TINY) / (of_b + _FEW * of_b.mean())
    moved = x + 0.25 * np.log(ratio)
    return moved - moved.mean(), least


def _scaled_product(W: Matrix, x: Array, v: Array) -> Array:
    """Return e^x W e^-x v."""
    v = np.exp(-x) * v
    return np.exp(x) * (W @ v.real + 1j * (W @ v.imag))


@OVERFLOWS
def _norm(W: Matrix, x: Array) -> float:
    """Return a lower bound on ``||e^x W e^-x||_2``, good to a few per cent; inf on overflow."""
    v = np.random.default_rng(0).standard_normal(W.shape[0])
    size = 0.0
    for _ in range(_NORM_STEPS):
        u = np.exp(x) * (W @ (np.exp(-x) * (v / max(float(np.linalg.norm(v)), TINY))))
        size = float(np.linalg.norm(u))
        v = np.exp(-x) * (W.T @ (np.exp(x) * u))
    return size if np.isfinite(size) else np.inf


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
