"""Ridge coefficients from a Gram matrix, by Cholesky; all work in the matrix that is given."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from reservoir._typing import Array
from reservoir.readouts.eigen import EPS, NOISE, predictive_variance
from reservoir.readouts.sums import Solved


def by_cholesky(gram: Array, cross: Array, alpha: float, mean: Array) -> Solved | None:
    """Solve for one penalty; None where neither data nor penalty fix all coefficients.

    Parameters
    ----------
    gram : array of shape (n_features, n_features)
        Overwritten.
    cross : array of shape (n_features, n_outputs)
    alpha : float, at least 0
    mean : array of shape (n_features,)
        What the features were taken about.
    """
    varies = np.diagonal(gram) > 0
    # the Frobenius norm bounds the largest eigenvalue: a penalty above the rounding errors makes
    # the Gram matrix positive definite, whatever its condition
    with np.errstate(over="ignore"):
        covered = alpha > NOISE * linalg.norm(gram, check_finite=False)
    gram[np.diag_indices(len(gram))] += alpha
    scale = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(np.float64).tiny))
    gram /= scale  # unit diagonal: columns in large units must not make others look singular
    gram /= scale[:, None]
    try:
        factor = linalg.cholesky(gram, check_finite=False)
    except linalg.LinAlgError:
        return None
    if not covered:
        rcond, _ = linalg.lapack.dpocon(factor, linalg.norm(gram, 1), uplo="U")
        if rcond <= len(gram) * EPS:
            return None
    scaled = linalg.cho_solve((factor, False), cross / scale[:, None], check_finite=False)

    def leverage(rows: Array) -> Array:
        about = np.where(varies, rows - mean, 0.0) / scale
        part = linalg.solve_triangular(factor, about.T, trans="T", check_finite=False)
        return np.einsum("ij,ij->j", part, part)

    return Solved((scaled / scale[:, None]).T, leverage)


def along_path(gram: Array, cross: Array, alphas: Array) -> Array:
    """Return the coefficients under each penalty, from one tridiagonal reduction.

    That is a quarter of the work of an eigendecomposition, and each penalty then costs the solution
    of a tridiagonal system.

    Parameters
    ----------
    gram : array of shape (n_features, n_features)
        Symmetric; overwritten.
    cross : array of shape (n_features, n_outputs)
    alphas : array of shape (n_alphas,)
        Above the rounding errors of the Gram matrix.

    Returns
    -------
    array of shape (n_alphas, n_outputs, n_features)
    """
    n, n_outputs = cross.shape
    if n == 1:
        return cross.T / (gram + alphas[:, None, None])
    zeros = ~gram.any(axis=0)
    reduced = _Tridiagonal(gram)
    targets = reduced.rotated(cross.copy(), "T")
    found = np.empty((n, len(alphas), n_outputs), order="F")
    for k, alpha in enumerate(alphas):
        found[:, k], _ = reduced.solve(alpha, targets)
    coefs = reduced.rotated(found.reshape(n, -1), "N").reshape(n, len(alphas), n_outputs)
    coefs[zeros] = 0.0  # columns of zeros get zeros, not rounding errors over the penalty
    return np.ascontiguousarray(coefs.transpose(1, 2, 0))


class _Tridiagonal:
    """A symmetric matrix as Q T Q' with T tridiagonal; more than one row, overwritten."""

    def __init__(self, matrix: Array) -> None:
        # Q is a product of reflections that leave the first coordinate alone: LAPACK keeps them
        # in the place of the zeros of T, as those of a QR decomposition
        lwork = int(linalg.lapack.dsytrd_lwork(len(matrix), lower=1)[0])
        packed, self.diagonal, self.beside, self.tau, _ = linalg.lapack.dsytrd(
            np.asfortranarray(matrix), lower=1, lwork=lwork, overwrite_a=True
        )
        self.reflections = np.asfortranarray(packed[1:, :-1])

    def rotated(self, columns: Array, transposed: str) -> Array:
        """Return Q ("N") or Q' ("T") times columns, which may be overwritten."""
        columns = np.asfortranarray(columns)
        room = 64 * max(columns.shape[1], 1)
        columns[1:] = linalg.lapack.dormqr(
            "L", transposed, self.reflections, self.tau, columns[1:], room
        )[0]
        return columns

    def solve(self, alpha: float, targets: Array) -> tuple[Array, Array]:
        """Return ``(T + alpha)^-1 targets``, and the pivots of ``T + alpha``."""
        pivots, factors, _ = linalg.lapack.dpttrf(self.diagonal + alpha, self.beside)
        return linalg.lapack.dpttrs(pivots, factors, targets)[0], pivots


class TridiagonalPath:
    """The restricted likelihood of any penalty, from one tridiagonal reduction.

    Parameters
    ----------
    gram : array of shape (n_features, n_features)
        Symmetric, of two features or more; overwritten.
    cross : array of shape (n_features, n_outputs)
    sum_y2 : array of shape (n_outputs,)
    m : float
        Contrasts that the likelihood is of.
    """

    def __init__(self, gram: Array, cross: Array, sum_y2: Array, m: float) -> None:
        self.reduced = _Tridiagonal(gram)
        self.targets = self.reduced.rotated(cross.copy(), "T")
        self.sum_y2, self.m = sum_y2, m

    def reml(self, alpha: float) -> Array:
        """Return `PenaltyPath.reml` of a penalty above the rounding errors of the Gram matrix."""
        solved, pivots = self.reduced.solve(alpha, self.targets)
        floor = 16 * np.sqrt(len(pivots)) * EPS * self.sum_y2  # as in `Eigenbasis`
        objective = np.maximum(self.sum_y2 - (self.targets * solved).sum(axis=0), floor)
        return predictive_variance(objective, float(np.log(pivots / alpha).sum()), self.m)


def penalised(gram: Array, cross: Array, alpha: float) -> tuple[Array, Array]:
    """Return R with ``R'R = gram + alpha I`` and Z with ``R'Z = cross``.

    Where the penalty is within rounding errors of the Gram matrix, directions that are, too, get
    the coefficient zero.

    Parameters
    ----------
    gram : array of shape (n_features, n_features)
        Overwritten.
    cross : array of shape (n_features, n_outputs)
    alpha : float > 0
    """
    if alpha > NOISE * linalg.norm(gram, check_finite=False):
        gram[np.diag_indices(len(gram))] += alpha
        R = linalg.cholesky(gram, check_finite=False)
        return R, linalg.solve_triangular(R, cross, trans="T", check_finite=False)
    values, vectors = linalg.eigh(gram, check_finite=False)
    kept = values > NOISE * values[-1]
    lengths = np.sqrt(np.where(kept, values, 0.0) + alpha)
    Q, R = linalg.qr(lengths[:, None] * vectors.T, check_finite=False)
    return R, Q.T @ (np.where(kept[:, None], vectors.T @ cross, 0.0) / lengths[:, None])
