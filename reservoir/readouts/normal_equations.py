"""Ridge coefficients from a Gram matrix, by Cholesky; all work in the matrix that is given."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from reservoir._typing import Array
from reservoir.readouts.eigen import EPS, NOISE
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
