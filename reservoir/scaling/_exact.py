"""Spectral radius of a small matrix from its exact characteristic polynomial.

This is for matrices whose eigenvalues cannot be computed in floating point. Such matrices are
defective; they occur among random matrices of -1 and +1.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np

from reservoir._typing import Array

#: Largest number of units; for more units the arithmetic with long integers takes seconds.
EXACT_UNITS = 40
# number of squarings of the roots: the bounds on the radius then differ by a factor (2 n)^(2^-36)
_N_SQUARINGS = 36


def exact_radius(A: Array) -> float | None:
    """Return the spectral radius to about 1e-9, even if the eigenvalues are very sensitive.

    Graeffe's iteration squares the roots of the characteristic polynomial. After many squarings,
    close bounds on the largest modulus follow from the coefficients. The computation is repeated at
    higher precision until two successive results agree; None if no two do.
    """
    # the matrix times a power of two that makes all entries integers
    mantissa, exponent = np.frexp(A)
    lowest = int(exponent[A != 0].min())
    whole = [
        int(m * 2.0**53) << (int(e) - lowest) if m else 0
        for m, e in zip(mantissa.ravel(), exponent.ravel(), strict=True)
    ]
    # its characteristic polynomial without the roots at zero
    coefficients = _characteristic(np.array(whole, dtype=object).reshape(A.shape))
    while not coefficients[-1]:
        coefficients.pop()
    if len(coefficients) == 1:
        return 0.0
    last = math.nan
    for digits in (200, 400, 1600):
        log_radius = _log_largest_root(coefficients, digits)
        if abs(log_radius - last) < 1e-9:
            return math.exp(log_radius + (lowest - 53) * math.log(2.0))
        last = log_radius
    return None


def _characteristic(M: Any) -> list[int]:
    """Return the coefficients of det(x I - M), the leading one first, for a matrix of integers.

    They are computed by the method of Faddeev and LeVerrier, whose divisions leave no remainder.
    """
    identity = np.array([[int(i == j) for j in range(len(M))] for i in range(len(M))], dtype=object)
    B, out = identity, [1]
    for k in range(1, len(M) + 1):
        product = M @ B
        out.append(-int(np.trace(product)) // k)
        B = product + out[-1] * identity
    return out


def _log_largest_root(coefficients: list[int], digits: int) -> float:
    """Return the logarithm of the largest modulus of a root (Graeffe); powers are descending."""
    context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    with decimal.localcontext(context):
        a = [+decimal.Decimal(c) for c in coefficients]
        n = len(a) - 1
        # p(x) p(-x), as a polynomial in x^2, has the squares of the roots of p as its roots
        for _ in range(_N_SQUARINGS):
            a = [
                (-1) ** j
                * sum(
                    (-1) ** ((i + j) % 2) * a[i] * a[2 * j - i]
                    for i in range(max(0, 2 * j - n), min(n, 2 * j) + 1)
                )
                for j in range(n + 1)
            ]
        logs = [(j, _log(a[j])) for j in range(1, n + 1) if a[j]]
    # bounds on the largest root r: |a_j| <= C(n, j) r^j, and r <= 2 max |a_j|^(1/j)
    low = max((log - math.log(math.comb(n, j))) / j for j, log in logs)
    high = math.log(2.0) + max(log / j for j, log in logs)
    return 0.5 * (low + high) / 2.0**_N_SQUARINGS


def _log(x: decimal.Decimal) -> float:
    return x.adjusted() * math.log(10.0) + math.log(abs(x.scaleb(-x.adjusted())))
