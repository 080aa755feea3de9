"""The radius of a small matrix from its exact characteristic polynomial.

For matrices whose eigenvalues floats cannot resolve: defective ones, as weights of -1 and +1
produce now and then.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np

from reservoir._typing import Array

#: Beyond this size the integers take seconds.
EXACT_UNITS = 40
# squarings: the bounds then differ by a factor (2 n)^(2^-36)
_N_SQUARINGS = 36


def exact_radius(A: Array) -> float | None:
    """Radius to about 1e-9, whatever the condition of the eigenvalues.

    Graeffe's iteration squares the roots of the polynomial; after many squarings its coefficients
    enclose the largest modulus. Done with two precisions that must agree.
    """
    mantissa, exponent = np.frexp(A)
    lowest = int(exponent[A != 0].min())
    whole = [
        int(m * 2.0**53) << (int(e) - lowest) if m else 0
        for m, e in zip(mantissa.ravel(), exponent.ravel(), strict=True)
    ]
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
    # Faddeev and LeVerrier: coefficients of det(x - M), leading one first; divisions are exact
    identity = np.array([[int(i == j) for j in range(len(M))] for i in range(len(M))], dtype=object)
    B, out = identity, [1]
    for k in range(1, len(M) + 1):
        product = M @ B
        out.append(-int(np.trace(product)) // k)
        B = product + out[-1] * identity
    return out


def _log_largest_root(coefficients: list[int], digits: int) -> float:
    context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    with decimal.localcontext(context):
        a = [+decimal.Decimal(c) for c in coefficients]
        n = len(a) - 1
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
    # |a_j| <= C(n, j) r^j, and r <= 2 max |a_j|^(1/j)
    low = max((log - math.log(math.comb(n, j))) / j for j, log in logs)
    high = math.log(2.0) + max(log / j for j, log in logs)
    return 0.5 * (low + high) / 2.0**_N_SQUARINGS


def _log(x: decimal.Decimal) -> float:
    return x.adjusted() * math.log(10.0) + math.log(abs(x.scaleb(-x.adjusted())))
