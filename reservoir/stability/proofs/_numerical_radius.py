"""The numerical radius of a matrix: the largest modulus of x* M x over unit vectors x."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import ArpackError, eigsh

from reservoir._typing import Array, Matrix

_DENSE = 200  # up to so many units all eigenvalues are computed
_ANGLES = {True: 24, False: 12}  # first looked at, of small and of large matrices


def numerical_radius(M: Matrix) -> float:
    """Return the numerical radius of a real matrix, as computed, to about 1e-6.

    It is the largest eigenvalue of the Hermitian part of ``exp(i t) M`` over all angles t. Between
    angles that lie d apart the largest is missed by a share of ``1 - cos(d / 2)`` at most, so that
    a grid finds the right place, and a search between its neighbours the rest.
    """
    small = M.shape[0] <= _DENSE
    even, odd = 0.5 * (M + M.T), 0.5j * (M - M.T)
    if small and sp.issparse(M):
        even, odd = even.toarray(), odd.toarray()

    def largest(angle: float) -> float:
        return _largest_eigenvalue(np.cos(angle) * even + np.sin(angle) * odd, small)

    # M is real: angles of opposite sign are alike.
    angles = np.linspace(0.0, np.pi, _ANGLES[small] + 1)
    values = [largest(angle) for angle in angles]
    best = int(np.argmax(values))
    around = angles[max(best - 1, 0)], angles[min(best + 1, len(angles) - 1)]
    found = minimize_scalar(
        lambda angle: -largest(angle), bounds=around, method="bounded", options={"xatol": 1e-3}
    )
    return float(max(values[best], -found.fun))


def _largest_eigenvalue(H: Array, small: bool) -> float:
    if small:
        return float(np.linalg.eigvalsh(H)[-1])
    start = np.random.default_rng(0).standard_normal(H.shape[0])
    try:
        return float(eigsh(H, k=1, which="LA", v0=start, tol=1e-7, return_eigenvectors=False)[0])
    except ArpackError:  # eigenvalues that lie too close together
        return float(np.linalg.eigvalsh(H.toarray() if sp.issparse(H) else H)[-1])
