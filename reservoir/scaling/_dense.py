"""Spectral radius of small blocks, from all eigenvalues or the exact characteristic polynomial.

The polynomial is for matrices whose eigenvalues cannot be computed in floating point. Such matrices
are defective; they occur among random matrices of -1 and +1.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.scaling._checks import row_of_entries

_EPS = float(np.finfo(np.float64).eps)
# largest relative uncertainty of an accepted result: a tenth of the guaranteed accuracy
_ACCURACY = 1e-7
#: Largest number of units; for more units the arithmetic with long integers takes seconds.
EXACT_UNITS = 40
# number of squarings of the roots: the bounds on the radius then differ by a factor (2 n)^(2^-36)
_N_SQUARINGS = 36


def dense_radius(A: Array, floor: float = 0.0) -> float | None:
    """Return the spectral radius from all eigenvalues, or None if it is too sensitive to rounding.

    The result may be inexact if it is certainly below `floor`, the radius of another block. If the
    leading eigenvalue is too sensitive, the computation is repeated after a diagonal similarity
    transform that makes it as insensitive as possible, computed from its left and right
    eigenvectors.
    """
    for _ in range(3 if len(A) <= 1000 else 1):
        A = la.matrix_balance(A, permute=False, separate=False)[0]
        values, left, right = la.eig(A, left=True, right=True)
        modulus = np.abs(values)
        cosine = np.abs(np.sum(left.conj() * right, axis=0))
        if _is_sure(A, modulus, cosine, floor):
            return float(modulus.max())
        # rescale each unit by the ratio of its entries in the leading right and left eigenvector
        first = np.argmax(modulus)
        x, y = np.abs(right[:, first]), np.abs(left[:, first])
        units = np.sqrt((x + 1e-12 * x.max()) / (y + 1e-12 * y.max()))
        A = A * units / units[:, None]
    return None


def _is_sure(A: Array, modulus: Array, cosine: Array, floor: float) -> bool:
    """Whether rounding has changed the spectral radius by at most a relative 1e-7.

    `modulus` contains the moduli of the eigenvalues, and `cosine` contains |y' x| for their
    normalised left and right eigenvectors y and x. A radius that is certainly below `floor` need
    not be accurate.
    """
    # Eigenvalue i is uncertain by eps norm(A) / cosine[i] (Wilkinson 1965).
    radius = float(modulus.max())
    noise = 4 * _EPS * la.norm(A)
    margin = noise / np.maximum(cosine, _EPS)
    low, high = np.max(modulus - margin), np.max(modulus + margin)
    if high <= floor or (low >= (1 - _ACCURACY) * radius and high <= (1 + _ACCURACY) * radius):
        return True
    if len(A) > 1000:  # the test below would take minutes
        return False
    # For defective eigenvalues this bound is far too large, even if they are well inside the
    # radius. So test how far random perturbations of the size of rounding errors move the radius.
    generator = np.random.default_rng(0)
    for _ in range(2):
        step = noise / np.sqrt(len(A)) * generator.standard_normal(A.shape)
        moved = float(np.max(np.abs(la.eigvals(A + step))))
        if abs(moved - radius) > _ACCURACY * radius and max(moved, radius) > 0.9 * floor:
            return False
    return True


def is_nilpotent(block: sp.csr_array, prime: int = 2**31 - 1) -> bool:
    """Whether W^n = 0 exactly, as for [[1, -1], [1, -1]], whose computed eigenvalues are 1e-8.

    Floats are integers times powers of two, so W^n v can be computed exactly modulo a prime. If W
    is not nilpotent, it is zero for a random v with a probability of 5e-10.
    """
    # the weights as integers modulo the prime, all multiplied by the same power of two
    n_units = block.shape[0]
    mantissa, exponent = np.frexp(block.data)
    powers, which = np.unique(exponent, return_inverse=True)
    factor = np.array([pow(2, int(e - powers[0]), prime) for e in powers])[which]
    weights = (mantissa * 2.0**53).astype(np.int64) % prime * factor % prime
    # W v, W^2 v, ... until it vanishes
    rows = row_of_entries(block)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))  # every row of the block has an entry
    v = np.random.default_rng(0).integers(0, prime, n_units)
    for _ in range(n_units):
        v = np.add.reduceat(weights * v[block.indices] % prime, starts) % prime
        if not v.any():
            return True
    return False


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
