"""Bounds between a quadratic norm ``sqrt(e' P e)`` and single units, rounding included."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY


@OVERFLOWS
def unit_bounds(P: Array) -> Array:
    """Return u with ``|e_i| <= u_i sqrt(e' P e)`` for every e: bounds of the roots of (P^-1)_ii.

    They are infinite if the symmetric P is not shown to be positive definite. With X near the
    inverse of its Cholesky factor, ``X P X'`` is near the identity. If it differs by less than d in
    the Euclidean norm, P is at least (1 - d) times the inverse of ``X' X``, and (P^-1)_ii at most
    ``(X' X)_ii / (1 - d)``. Each product in ``X P X'`` has an error of at most n / 2 EPS times
    ``|X| |P| |X'|``.
    """
    n = len(P)
    diagonal = np.diagonal(P)
    if not (np.isfinite(P).all() and (diagonal > TINY).all()):
        return np.full(n, np.inf)
    # Scaling by powers of two makes the diagonal about one without rounding errors.
    scale = np.exp2(-np.round(0.5 * np.log2(diagonal)))
    P = scale[:, None] * P * scale
    try:
        factor = linalg.cholesky(P, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return np.full(n, np.inf)
    X = np.tril(lapack.dtrtri(factor, lower=1)[0])
    moduli = np.abs(X)
    away = np.abs(X @ P @ X.T - np.eye(n)).sum(axis=1)
    away += (n + 4) * EPS * (moduli @ (np.abs(P) @ moduli.sum(axis=0))) + n * TINY
    left = 1 - 1.01 * float(away.max())
    if not left > 0:  # infinite and NaN as well
        return np.full(n, np.inf)
    return scale * np.sqrt((X * X).sum(axis=0) / left) * (1 + (n + 8) * EPS)


def largest_norm(P: Array, sizes: Array) -> float:
    """Return a bound of ``sqrt(e' P e)`` over all e with ``|e| <= sizes``."""
    square = float(sizes @ (np.abs(P) @ sizes))
    return float(np.sqrt(square * (1 + 2 * (len(P) + 2) * EPS) + TINY)) * (1 + 2 * EPS)
