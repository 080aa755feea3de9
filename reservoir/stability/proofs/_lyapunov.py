"""Contraction in a quadratic norm that uses the signs of W: theorem C7.

Two states of the network under the same input differ by e, and after a step by (I - a) e + a q with
q = D W e, D a diagonal of slopes between L and H. Each slope obeys
``(q_i - L_i w_i)(q_i - H_i w_i) <= 0`` with w = W e. If P and a positive diagonal Lambda make

    N = [[s^2 P - (I - a) P (I - a) + W' Lambda L H W,  . ],
         [-a P (I - a) - Lambda (L + H) W / 2,  Lambda - a P a]]

positive definite, and P is, then ``e' P e`` shrinks by s^2 at every step: (e, q)' N (e, q) is
``s^2 e'Pe`` less that of the next step, plus a sum that is at most zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.linalg import lapack

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._interval_network import IntervalNetwork

_ROUNDS = 10  # of doubling: 2^10 steps of the Riccati recursion; what is proved takes five to eight
_SLACK = 1e-4  # the matrices are chosen for inputs larger by this share, to leave room for rounding
_FLOOR = 1e-7  # least eigenvalue of the forcing term, relative to its mean, so that P is definite
_SHRINKS = 1e-4  # the weakest contraction that is tried: 1 - s, per step at leak 1
_SWEEPS = 200  # of Osborne's balancing
_SMALLEST = 1e-140  # weights below are not balanced, and prove nothing: squares might underflow
_LEAST_ENTRY = 1e-290  # entries of P below may have been rounded
_SEARCHED = 400  # up to so many units the rate is searched for in five more attempts, else in one


class _Found(NamedTuple):
    """P of units scaled by `powers`, of which the lower triangle counts."""

    P: Array
    powers: Array


def lyapunov_proof(network: IntervalNetwork, box: Box) -> tuple[float, Array | None]:
    """Return the proved rate per step inside the box, and P of the norm that shrinks: theorem C7.

    P is None where it cannot be written down: where units differ so much in scale that its entries
    overflow or underflow.
    """
    W = network.W.toarray() if sp.issparse(network.W) else network.W
    least, largest = np.maximum(box.least_slope, 0.0), box.largest_slope
    leak = np.array(network.leak)
    ones = np.ones_like(leak)
    # A proof at leak 1 carries to all equal leaks, and its numbers are the best conditioned.
    if np.ptp(leak) == 0:
        found, P = _least_rate(W, ones, least, largest)
        rate = network.leaky_rate(found)
        if rate < 1 or leak[0] == 1:
            return rate, P
    found, P = _least_rate(W, leak, least, largest)
    return found * (1 + 4 * EPS), P


def _least_rate(W: Array, leak: Array, least: Array, largest: Array) -> tuple[float, Array | None]:
    """Return the least rate s that a short search proves, and P; infinity if none below 1 is."""
    scaling = balanced(largest[:, None] * W)

    def proved(shrinks: float) -> _Found | None:
        return contraction(W, leak, least, largest, 1 - shrinks, scaling)

    low, high = _SHRINKS * float(leak.min()), 1.0
    best = proved(low)
    if best is None:
        return np.inf, None
    for _ in range(5 if len(W) <= _SEARCHED else 1):
        middle = float(np.sqrt(low * high))
        found = proved(middle)
        low, high = (low, middle) if found is None else (middle, high)
        best = best if found is None else found
    return 1 - low, unscaled(*best)


def unscaled(P: Array, powers: Array) -> Array | None:
    """Return P in the units' own scale, ``diag(powers) P diag(powers)``, times a power of two.

    None if that cannot be done without rounding. The lower triangle of P is read.
    """
    P = np.tril(P) + np.tril(P, -1).T
    with np.errstate(over="ignore", under="ignore"):
        P = powers[:, None] * P * powers
        P = P * np.exp2(-np.round(np.log2(np.diagonal(P).max())))
    lost = (np.abs(P) < _LEAST_ENTRY) & (P != 0)
    return P if np.isfinite(P).all() and (np.diagonal(P) > 0).all() and not lost.any() else None


def balanced(M: Array) -> Array:
    """Return x with which rows and columns of e^x M e^-x have equal norms (Osborne 1960)."""
    size = np.abs(M)
    squares = (size / max(float(size.max()), TINY)) ** 2
    np.fill_diagonal(squares, 0.0)
    # Weak connections everywhere, so that units without any have a scale, too.
    squares += 1e-12 * (squares.mean() + TINY)
    x = np.zeros(len(M))
    for _ in range(_SWEEPS):
        scale = np.exp(2 * x)
        rows, columns = scale * (squares @ (1 / scale)), (scale @ squares) / scale
        step = 0.22 * np.log(columns / rows)
        x = x + step
        if np.abs(step).max() < 1e-6:
            break
    return x - x.mean()


@OVERFLOWS
def contraction(
    W: Array, leak: Array, least: Array, largest: Array, s: float, scaling: Array
) -> _Found | None:
    """Return a P for which ``e' P e`` is proved to shrink by s^2 at every step, or None.

    It is that of units scaled by powers of two, which are returned with it.

    Parameters
    ----------
    W : array of shape (n_units, n_units)
    leak, least, largest : arrays of shape (n_units,)
        Leak rates, and bounds of the slopes, 0 at least.
    s : float
    scaling : array of shape (n_units,)
        From `balanced`: the logarithms of a scaling of the units.
    """
    # By powers of two the units are scaled without rounding; what is left goes into Lambda.
    powers = np.exp2(np.round(scaling / np.log(2)))
    rest = np.exp(scaling) / powers
    scaled = powers[:, None] * W / powers
    if not np.isfinite(scaled).all() or (np.abs(scaled) < _SMALLEST)[W != 0].any():
        return None
    P = _riccati(scaled, leak, least, largest, s, rest)
    if P is None or not is_proved(scaled, leak, least, largest, s, P, (s * rest) ** 2):
        return None
    return _Found(P, powers)


def _riccati(
    W: Array, leak: Array, least: Array, largest: Array, s: float, rest: Array
) -> Array | None:
    """Return the P that the slopes ask for in floating point; None if there is none.

    With the middle slope taken into the linear part, P solves the Riccati equation of the bounded
    real lemma, by structured doubling (Chu, Fan, Lin and Wang 2004).
    """
    n = len(W)
    middle, radius = 0.5 * (least + largest), 0.5 * (largest - least)
    A = (np.diag(1 - leak) + (leak * middle)[:, None] * W) / s
    of_outputs = (rest * radius)[:, None] * W
    H = of_outputs.T @ of_outputs
    H[np.diag_indices(n)] += _FLOOR * (np.trace(H) / n + 1)
    of_inputs = (leak / (rest * s * (1 - _SLACK))) ** 2
    G = np.diag(-of_inputs)
    for _ in range(_ROUNDS):
        # H only grows: once an input has too large a gain on its own unit there is no solution
        if not (of_inputs * np.diagonal(H) < 1).all():
            return None
        *_, solved, info = lapack.dgesv(np.eye(n) + G @ H, np.hstack([A, G]))
        if info != 0:
            return None
        more = A.T @ (H @ solved[:, :n])
        G = G + A @ solved[:, n:] @ A.T
        H = H + 0.5 * (more + more.T)
        G = 0.5 * (G + G.T)
        A = A @ solved[:, :n]
        if not linalg.norm(more, check_finite=False) > 1e-10 * linalg.norm(H, check_finite=False):
            break
    return H if np.isfinite(H).all() else None


@OVERFLOWS
def is_proved(
    W: Array, leak: Array, least: Array, largest: Array, s: float, P: Array, multipliers: Array
) -> bool:
    """Whether N and P are positive definite: rounding included, for P and Lambda as they are given.

    Parameters
    ----------
    W, leak, least, largest, s
        As in `is_contraction`; W without entries whose squares underflow.
    P : array of shape (n_units, n_units)
        Its lower triangle is read, and mirrored.
    multipliers : array of shape (n_units,)
        The diagonal of Lambda.
    """
    n = len(W)
    P = np.tril(P) + np.tril(P, -1).T
    kept, square = 1 - leak, s * s
    product = multipliers * least * largest
    N = np.zeros((2 * n, 2 * n), order="F")
    N[:n, :n] = square * P - kept[:, None] * P * kept + W.T @ (product[:, None] * W)
    N[n:, :n] = -leak[:, None] * P * kept - (0.5 * multipliers * (least + largest))[:, None] * W
    N[n:, n:] = -leak[:, None] * P * leak
    N[np.arange(n, 2 * n), np.arange(n, 2 * n)] += multipliers
    return _is_definite(N, _of_entries(W, P, square, multipliers, largest, product)) and (
        _is_definite(P.copy(order="F"), 0.0)
    )


def _of_entries(
    W: Array, P: Array, square: float, multipliers: Array, largest: Array, product: Array
) -> float:
    """Return a bound of the Euclidean norm of what rounding has changed in N.

    It is the largest sum of the errors over a row. Each entry is a sum of terms that went through
    six roundings at most, 3 EPS of their moduli, but for the product with W, a sum over n units:
    (n + 6) / 2 EPS. Below, 4 EPS and (n + 8) EPS are taken.
    """
    n, moduli, of_P = len(W), np.abs(W), np.abs(P).sum(axis=1)
    steep = multipliers * largest
    upper = 4 * EPS * ((square + 2) * of_P + steep @ moduli)
    upper += (n + 8) * EPS * (moduli.T @ (product * moduli.sum(axis=1)))
    lower = 4 * EPS * (2 * of_P + multipliers + steep * moduli.sum(axis=1))
    return 1.01 * float(max(upper.max(), lower.max())) + n * TINY


def _is_definite(M: Array, error: float) -> bool:
    """Whether a symmetric matrix within `error` of M, in the Euclidean norm, is positive definite.

    Shown by a Cholesky factorisation of M - c I that runs to its end (Rump 2006): c covers
    gamma_{m+1} / (1 - gamma_{m+1}) times the trace, (m + 1) / 2 EPS of it, twice over, and the
    rounding of the subtraction. M is overwritten; its lower triangle is read.
    """
    diagonal = np.diagonal(M).copy()
    if not (diagonal > 0).all():
        return False
    shift = error + 1.01 * (len(M) + 8) * EPS * float(diagonal.sum()) + len(M) * TINY
    M[np.diag_indices(len(M))] -= shift
    try:
        linalg.cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return False
    return True
