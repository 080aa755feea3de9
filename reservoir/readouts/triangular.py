"""Triangular factors: rows added to them, and ridge coefficients from them with all digits."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from reservoir._typing import Array
from reservoir._workers import one_blas_thread
from reservoir.readouts.eigen import NOISE

_PANEL = 32  # columns that LAPACK eliminates at a time: the fastest of 16, 32, 64 and 128


def eliminated(R: Array, rows: Array, *, triangular: bool = False, n_trapezoidal: int = 0) -> Array:
    """Return the triangular factor of R with more rows below it.

    Parameters
    ----------
    R : array of shape (n, n), Fortran order
        Upper triangular; overwritten.
    rows : array of shape (m, n), Fortran order
        Overwritten.
    triangular : bool, default=False
        Whether the rows are upper triangular themselves, which saves half of the work.
    n_trapezoidal : int, default=0
        Of how many rows, the last ones, the first has no zeros before its first column, the
        second none but there, and so on.
    """
    pentagonal = min(len(rows), len(R)) if triangular else n_trapezoidal
    panel = min(_PANEL, len(R))
    # LAPACK multiplies narrow panels here: waiting for other BLAS threads takes longer than the
    # work itself, a thousand times as long where cores are busy
    with one_blas_thread():
        R, _, _, info = lapack.dtpqrt(
            pentagonal, panel, R, rows, overwrite_a=True, overwrite_b=True
        )
    if info != 0:
        raise linalg.LinAlgError(f"dtpqrt refused its arguments: info={info}.")
    return R


class TriangularSystem:
    """Least squares with a triangular matrix: minimise ``||Z - R C'||^2 + alpha ||C||^2``.

    Parameters
    ----------
    R : array of shape (n, n)
        Upper triangular.
    Z : array of shape (n, n_outputs)
    size : array of shape (n,)
        Lengths that the rounding errors of R's columns are relative to.
    noise : float
        Those errors, relative.
    """

    def __init__(self, R: Array, Z: Array, *, size: Array, noise: float) -> None:
        self.R, self.Z, self.noise = R, Z, noise
        self.size = np.where(size > 0, size, 1.0)

    def coef(self, alpha: float) -> Array:
        """Return C, (n_outputs, n).

        By a QR decomposition of R over ``sqrt(alpha) I``. Where neither R nor the penalty fixes
        all coefficients, directions of R within its rounding errors are left out first.
        """
        if self.is_fixed(alpha):
            return self._direct(alpha)
        return self._least_norm(alpha)

    def is_fixed(self, alpha: float) -> bool:
        """Whether R or the penalty fixes all coefficients."""
        return bool(alpha > NOISE * np.vdot(self.R, self.R) or self._is_well_conditioned)

    def leverage(self, rows: Array, alpha: float) -> Array:
        """Return ``h' (R'R + alpha)^-1 h`` for each row h, where all coefficients are fixed."""
        R, _ = self._penalised(alpha)
        part = linalg.solve_triangular(R, rows.T, trans="T", check_finite=False)
        return np.einsum("ij,ij->j", part, part)

    @cached_property
    def _is_well_conditioned(self) -> bool:
        n, scaled = len(self.R), self.R / self.size
        # one over the 1-norm of the inverse: an upper triangular matrix is its own LU decomposition
        least, _ = lapack.dgecon(scaled, 1.0)  # SciPy 1.12 lacks that of triangles
        # 1-norm to 2-norm takes sqrt(n), and the estimate may miss a bit
        return bool(least > 10 * n * self.noise)

    def _direct(self, alpha: float) -> Array:
        return linalg.solve_triangular(*self._penalised(alpha), check_finite=False).T

    def _penalised(self, alpha: float) -> tuple[Array, Array]:
        """Return R over ``sqrt(alpha) I``, made triangular again, and Z to match."""
        n = len(self.R)
        R, Z = self.R, self.Z
        if alpha > 0:
            above = np.zeros((n + Z.shape[1],) * 2, order="F")
            above[:n, :n], above[:n, n:] = R, Z
            below = np.zeros((n, len(above)), order="F")
            np.fill_diagonal(below, np.sqrt(alpha))
            both = eliminated(above, below, triangular=True)
            R, Z = both[:n, :n], both[:n, n:]
        return R, Z

    @cached_property
    def _revealed(self) -> tuple[Array, Array, Array]:
        """Rows of R without those that are rounding errors, in the order of pivots; Z to match."""
        Z, R, order = linalg.qr_multiply(self.R / self.size, self.Z.T, mode="right", pivoting=True)
        # squared lengths of what is left of each column, from each row on
        left = np.cumsum((R * R)[::-1], axis=0)[::-1].max(axis=1)
        rank = int(np.sum(left > self.noise**2))
        return R[:rank] * self.size[order], Z.T[:rank], order

    def _least_norm(self, alpha: float) -> Array:
        """Return coefficients in the row space of what is more than rounding errors."""
        rows, Z, order = self._revealed
        rank, n = rows.shape
        if rank == n:  # nothing is left out: the direct way has a digit more
            return self._direct(alpha)
        coef = np.zeros((n, Z.shape[1]))
        if rank:
            # with QR = [A'; sqrt(alpha) I], C' = Q1 R^-T Z; long rows first keep the digits of
            # columns in small units
            tall = np.vstack([rows.T, np.sqrt(alpha) * np.eye(rank)])
            sorted_ = np.argsort(-np.abs(tall).max(axis=1), kind="stable")
            Q, R = linalg.qr(tall[sorted_], mode="economic", check_finite=False)

            def dual(Z: Array) -> tuple[Array, Array]:
                """Return C' = A' W and W, where (A A' + alpha I) W = Z."""
                half = linalg.solve_triangular(R, Z, trans="T", check_finite=False)
                back = np.empty((len(Q), Z.shape[1]))
                back[sorted_] = Q @ half
                return back[:n], linalg.solve_triangular(R, half, check_finite=False)

            C, W = dual(Z)
            # what rounding errors have left, once more
            C += dual(Z - rows @ C - alpha * W)[0]
            coef[order] = C
        return coef.T
