"""Floquet multipliers: the eigenvalues of the product of Jacobians over a cycle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs

from reservoir._typing import Array
from reservoir.stability.measures._cycle_search import NEWTON_UNITS

DENSE_UNITS = 1000  # up to so many units all multipliers are computed, from the dense product
_N_LEADING = 10


def floquet_multipliers(apply: Callable[[Array], Array], n: int, *, leading: bool = False) -> Array:
    """Return the eigenvalues of a product of Jacobians, the largest moduli first.

    `apply` returns the product times vectors, of shape (n,) or (n, n_columns). Up to 1000 units all
    are returned, above that the ten largest. With `leading` only the largest are needed: above 200
    units no more than ten are computed.
    """
    if n <= (NEWTON_UNITS if leading else DENSE_UNITS):
        values = np.linalg.eigvals(apply(np.eye(n))).astype(complex)
    else:
        values = _leading(apply, n)
    return values[np.argsort(-np.abs(values), kind="stable")]


def _leading(apply: Callable[[Array], Array], n: int) -> Array:
    """Return the ten eigenvalues of largest modulus, by Arnoldi's method or subspace iteration."""
    start = np.random.default_rng(0).standard_normal((n, 3 * _N_LEADING))
    image = apply(start)
    # Arnoldi's method, unless its first vector is zero to rounding.
    if np.abs(image).max() > 1e-100:
        operator = LinearOperator((n, n), matvec=apply, dtype=float)
        with contextlib.suppress(ArpackNoConvergence, ArpackError):
            return eigs(operator, k=_N_LEADING, v0=start[:, 0], return_eigenvectors=False)
    # Arnoldi's method fails for nearly nilpotent products. Their range is small, and a few
    # applications to a block of vectors span it.
    for _ in range(3):
        basis, _ = np.linalg.qr(image)
        image = apply(basis)
    values = np.linalg.eigvals(basis.T @ image).astype(complex)
    return values[np.argsort(-np.abs(values), kind="stable")][:_N_LEADING]
