"""Proof that a quadratic form shrinks in a step, for all slopes between bounds: the lemma of C7.

A difference e becomes ``A e + B q`` with ``q = D w``, ``w = K e`` and D a diagonal of slopes
between L and H. Each slope satisfies ``(q_i - L_i w_i)(q_i - H_i w_i) <= 0``. If for symmetric P
and P+ and a positive diagonal Lambda

    N = [[s^2 P - A' P+ A + K' Lambda L H K,  . ],
         [-B' P+ A - Lambda (L + H) K / 2,  Lambda - B' P+ B]]

is positive definite, ``e' P+ e`` after the step is at most s^2 times ``e' P e`` before it:
(e, q)' N (e, q) is s^2 times the latter minus the former, plus a sum that is at most zero.

This module does not search: it proves a given claim, rounding included, or does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY

_SMALLEST = 1e-140  # with smaller entries of A, B and K nothing is proved: products may underflow


class Step(NamedTuple):
    """One step of a difference: ``A e + B q`` with ``q = D K e``.

    `A`, (n, n), and `B`, (n, k), are (n,) if diagonal; their entries may have a relative error of
    EPS. `K` is (k, n). `least` and `largest`, (k,), bound the slopes, L and H, 0 at least.
    """

    A: Array
    B: Array
    K: Array
    least: Array
    largest: Array

    def scaled(self, powers: Array) -> Step:
        """Return the step with entry i of e, and entry i of q, multiplied by powers[i].

        Multiplying each entry once by a power of two is exact. Entries that would underflow become
        NaN. The entries of q belong to the first entries of e, in the same order.
        """
        A, B, K, least, largest = self
        exponents = np.frexp(powers)[1]
        of_slopes = exponents[: len(K)]
        K = _shifted(K, of_slopes[:, None] - exponents)
        if A.ndim > 1:
            A = _shifted(A, exponents[:, None] - exponents)
            B = _shifted(B, exponents[:, None] - of_slopes)
        return Step(A, B, K, least, largest)

    @property
    def is_manageable(self) -> bool:
        """Whether all entries are finite, and large enough for products not to underflow."""
        return all(
            np.isfinite(M).all() and not ((np.abs(M) < _SMALLEST) & (M != 0)).any()
            for M in (self.A, self.B, self.K)
        )


def _shifted(M: Array, exponents: Array) -> Array:
    """Return M times powers of two, with NaN for non-zero entries that would underflow."""
    with np.errstate(over="ignore", under="ignore"):
        made = np.ldexp(M, exponents)
    return np.where((M != 0) & (np.abs(made) < _SMALLEST), np.nan, made)


@OVERFLOWS
def is_proved(step: Step, square: float, now: Array, after: Array, multipliers: Array) -> bool:
    """Whether N and `now` are proved to be positive definite, rounding included.

    `square` is s^2; `now` and `after` are P and P+, of which only the lower triangles are used, and
    mirrored; `multipliers`, (k,), are the diagonal of Lambda.
    """
    if not (step.is_manageable and (multipliers >= 0).all()):
        return False
    A, B, K, least, largest = step
    now, after = mirrored(now), mirrored(after)
    n, k = len(now), len(K)
    product, mean = multipliers * least * largest, 0.5 * multipliers * (least + largest)
    N = np.zeros((n + k, n + k), order="F")
    N[:n, :n] = square * now - _between(A, after, A) + K.T @ (product[:, None] * K)
    N[n:, :n] = -_between(B, after, A) - mean[:, None] * K
    N[n:, n:] = -_between(B, after, B)
    N[np.arange(n, n + k), np.arange(n, n + k)] += multipliers
    error = _of_entries(step, square, now, after, (multipliers, product, mean))
    return is_definite(N, error) and is_definite(now, 0.0)


def mirrored(P: Array) -> Array:
    """Return the symmetric matrix with the lower triangle of P."""
    lower = np.tril(P)
    return lower + np.tril(lower, -1).T


def _between(left: Array, P: Array, right: Array) -> Array:
    """Return left' P right; arrays of one dimension are diagonals."""
    return left[:, None] * P * right if left.ndim == 1 else left.T @ (P @ right)


def _of_entries(
    step: Step, square: float, now: Array, after: Array, of_slopes: tuple[Array, Array, Array]
) -> float:
    """Return a bound of the Euclidean norm of the rounding errors of N.

    It is the largest row sum of bounds of the entries' errors. With m the length of the sums in the
    products with A and B, or 1 if these are diagonal, a term with P+ has an error of at most
    (m + 3) EPS times its moduli: by m roundings in each of two products, EPS for the error of each
    of the two factors A and B, and two additions. Other terms have errors of at most 3 / 2 EPS,
    2 EPS or, for sums over the k slopes, (k + 5) / 2 EPS; the code uses twice as much for them.
    1.01 covers higher orders and the rounding of the bound.
    """
    A, B, K = np.abs(step.A), np.abs(step.B), np.abs(step.K)
    multipliers, product, mean = of_slopes
    m = len(A) if A.ndim > 1 else 1
    of_K = K.sum(axis=1)
    through = np.abs(after) @ (A.sum(axis=1) + B.sum(axis=1) if A.ndim > 1 else A + B)
    upper = (m + 4) * (A.T @ through if A.ndim > 1 else A * through)
    upper += 4 * square * np.abs(now).sum(axis=1) + 4 * (K.T @ mean)
    upper += (len(K) + 6) * (K.T @ (product * of_K))
    lower = (m + 4) * (B.T @ through if B.ndim > 1 else B * through)
    lower += 4 * mean * of_K + 2 * multipliers
    largest = 1 + max(float(M.max()) for M in (A, B, K))
    underflow = (len(now) + len(K)) * TINY * largest * largest
    return 1.01 * EPS * float(max(upper.max(), lower.max())) + underflow


def is_definite(M: Array, error: float) -> bool:
    """Whether every symmetric matrix within `error` of M, in Euclidean norm, is positive definite.

    That is proved if the Cholesky factorisation of M - c I succeeds (Rump 2006): c covers
    gamma_{n+1} / (1 - gamma_{n+1}) times the trace, (n + 1) / 2 EPS of it, twice over, and the
    rounding of the subtraction. Only the lower triangle of M is used.
    """
    diagonal = np.diagonal(M).copy()
    if not (diagonal > 0).all():
        return False
    shift = error + 1.01 * (len(M) + 8) * EPS * float(diagonal.sum()) + len(M) * TINY
    M = np.array(M, order="F")
    M[np.diag_indices(len(M))] -= shift
    try:
        factor = linalg.cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return False
    return bool(np.isfinite(np.diagonal(factor)).all())


@OVERFLOWS
def is_below(smaller: Array, larger: Array, factor: float) -> bool:
    """Whether ``factor * larger - smaller``, of mirrored lower triangles, is positive definite."""
    smaller, larger = mirrored(smaller), mirrored(larger)
    size = factor * np.abs(larger).sum(axis=1) + np.abs(smaller).sum(axis=1)
    return is_definite(factor * larger - smaller, 2 * EPS * float(size.max()) + len(size) * TINY)
