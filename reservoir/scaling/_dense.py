"""Spectral radius of small blocks from all eigenvalues, with bounds on the rounding errors."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.scaling._checks import row_of_entries

_EPS = float(np.finfo(np.float64).eps)
# largest relative uncertainty of an accepted result: a tenth of the guaranteed accuracy
_ACCURACY = 1e-7


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
