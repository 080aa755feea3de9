"""Floquet multipliers: the eigenvalues of the product of Jacobians over a cycle."""

from __future__ import annotations

import contextlib

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs

from reservoir._typing import Array
from reservoir.stability.measures._cycle_search import NEWTON_UNITS
from reservoir.stability.measures._tangents import Tangent

DENSE_UNITS = 1000  # up to here all multipliers, from the dense product of Jacobians
_N_LEADING = 10


def floquet_multipliers(tangent: Tangent, *, leading: bool = False) -> Array:
    """Return the eigenvalues of a product of Jacobians by descending modulus.

    All of them up to 1000 units, ten above or if only the `leading` ones are asked for.
    """
    n = len(tangent.kept)
    if n <= (NEWTON_UNITS if leading else DENSE_UNITS):
        values = np.linalg.eigvals(tangent.matrix()).astype(complex)
    else:
        values = _leading(tangent, n)
    return values[np.argsort(-np.abs(values), kind="stable")]


def _leading(tangent: Tangent, n: int) -> Array:
    start = np.random.default_rng(0).standard_normal((n, 3 * _N_LEADING))
    image = tangent.apply(start)
    if np.abs(image).max() > 1e-100:  # else Arnoldi's first vector is zero to rounding
        operator = LinearOperator((n, n), matvec=tangent.apply, dtype=float)
        with contextlib.suppress(ArpackNoConvergence, ArpackError):
            return eigs(operator, k=_N_LEADING, v0=start[:, 0], return_eigenvectors=False)
    # a nearly nilpotent product: its range holds all that is left of a block of vectors
    for _ in range(3):
        basis, _ = np.linalg.qr(image)
        image = tangent.apply(basis)
    values = np.linalg.eigvals(basis.T @ image).astype(complex)
    return values[np.argsort(-np.abs(values), kind="stable")][:_N_LEADING]
