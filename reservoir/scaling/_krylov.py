"""Power-filtered Arnoldi: the leading eigenvalues of a large matrix whose spectrum has no gap.

The spectrum of a random reservoir fills a disc, and near its edge hundreds of eigenvalues have
almost the same modulus. Restarted methods, which keep a few dozen vectors, converge to some of
these eigenvalues, with tiny residuals, and miss larger ones. Here nothing is restarted. First the
start vector is multiplied by W thousands of times, which is cheap for a sparse W and leaves only
components near the edge of the disc. Then a Krylov basis is built with W^p instead of W, so that a
few vectors span a space of high degree; they must be orthogonalised, which is the expensive part.
The results are the eigenvalues of W itself, projected on this space.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir._validation import dense

_EPS = float(np.finfo(np.float64).eps)
# largest relative uncertainty of an accepted result: a tenth of the guaranteed accuracy
_ACCURACY = 1e-7
# number of leading Ritz values that must have converged
_N_LEADING = 8
# in order of cost: multiplications of the start vector, power p, number of basis vectors
_EFFORTS = ((0, 1, 60), (500, 8, 80), (2000, 16, 100), (8000, 32, 150), (30000, 64, 200))


class _Ritz(NamedTuple):
    """Leading Ritz values and vectors: approximations to eigenvalues and eigenvectors."""

    values: Array  # (n_leading,), largest modulus first
    vectors: Array  # (n_units, n_leading)
    residuals: Array  # (n_leading,), relative


def krylov_radius(block: sp.csr_array, tol: float) -> tuple[float | None, bool]:
    """Return the spectral radius of a large block from two independent runs that must agree.

    One run uses W, a strongly connected block; the other its transpose and another start vector.
    Both are repeated with more effort until they agree. `tol` is the largest relative residual of a
    converged eigenpair. The radius is None if they do not agree, or if it is too sensitive to
    rounding, in which case the second result is True.
    """
    matrix, transposed = as_operand(block), as_operand(block.T)
    for effort in _EFFORTS:
        right = _leading(matrix, effort, seed=0)
        if right is None or not _settled(right, tol):
            continue
        left = _leading(transposed, effort, seed=1)
        if left is None or not _settled(left, tol):
            continue
        if _agree(right, left):
            sure = _is_sure(matrix, right, left)
            return (float(abs(right.values[0])) if sure else None), not sure
    return None, False


def as_operand(matrix: Any) -> Any:
    """Return a matrix in the format with the fastest products: dense if its density exceeds 0.1."""
    if not sp.issparse(matrix):
        return matrix
    return dense(matrix) if matrix.nnz > 0.1 * np.prod(matrix.shape) else matrix.tocsr()


def _leading(A: Any, effort: tuple[int, int, int], seed: int) -> _Ritz | None:
    """Return the leading eigenpairs of A by power-filtered Arnoldi; None if a product underflows.

    `effort` is one of `_EFFORTS`; `seed` determines the start vector.
    """
    n_filter, power, n_vectors = effort
    step = A
    if not sp.issparse(A) and power > 1:  # a few matrix products replace many with vectors
        step, n_filter, power = np.linalg.matrix_power(A, power), n_filter // power, 1
    # the filtered start vector, then an orthonormal basis
    v = np.random.default_rng(seed).standard_normal(A.shape[0])
    basis = np.empty((n_vectors, A.shape[0]))
    filtered = _apply(step, v, n_filter)
    for k in range(n_vectors):
        if filtered is None:
            return None
        basis[k] = _orthonormal(filtered, basis[:k])
        filtered = _apply(step, basis[k], power)
    # eigenpairs of A projected on the basis, and their residuals
    image = A @ basis.T
    values, small = la.eig(basis @ image)
    order = np.argsort(-np.abs(values), kind="stable")[:_N_LEADING]
    values, small = values[order], small[:, order]
    vectors = basis.T @ small
    size = np.maximum(np.abs(values), np.finfo(np.float64).tiny)
    return _Ritz(values, vectors, la.norm(image @ small - vectors * values, axis=0) / size)


def _apply(A: Any, v: Array, times: int) -> Array | None:
    """Return A^times v, scaled to length 1 (v itself for 0 times); None if it underflows."""
    for k in range(times):
        v = A @ v
        if k % 8 == 7 or k == times - 1:
            size = np.linalg.norm(v)
            if not np.isfinite(size) or size < 1e-200:
                return None
            v /= size
    return v


def _orthonormal(v: Array, basis: Array) -> Array:
    """Return the part of v orthogonal to the rows of `basis`, scaled to length 1.

    Orthogonalisation is repeated until a pass removes little, because after the first pass v may be
    mostly rounding error.
    """
    v = v / np.linalg.norm(v)
    for _ in range(5):
        v = v - (basis @ v) @ basis
        size = np.linalg.norm(v)
        v /= max(size, np.finfo(np.float64).tiny)
        if size > 0.7:
            break
    return v


def _settled(ritz: _Ritz, tol: float) -> bool:
    """Whether the largest Ritz value has converged, and the others have or are certainly smaller.

    `tol` is the largest relative residual of a converged value.
    """
    modulus = np.abs(ritz.values)
    inside = modulus * (1 + 5 * ritz.residuals) < modulus[0]
    return bool(ritz.residuals[0] <= 0.1 * tol and np.all((ritz.residuals <= tol) | inside))


def _agree(right: _Ritz, left: _Ritz, n_same: int = 3) -> bool:
    """Whether two runs agree in the largest moduli of the Ritz values that have converged."""
    one, two = np.abs(right.values[:n_same]), np.abs(left.values[:n_same])
    same = np.abs(one - two) <= _ACCURACY * one[0]
    return bool(same[0] and np.all(same | (right.residuals[:n_same] > 1e-8)))


def _is_sure(A: Any, right: _Ritz, left: _Ritz) -> bool:
    """Whether the leading eigenvalue is certain to a relative accuracy of 1e-7.

    Its error is at most the residual, rounding included, divided by the cosine of the angle between
    its left and right eigenvectors.
    """
    value, x = right.values[0], right.vectors[:, 0]
    y = left.vectors[:, np.argmin(np.abs(left.values - value))]
    cosine = abs(y @ x) / (la.norm(x) * la.norm(y))
    norm = np.sqrt(np.sum(np.square(A.data if sp.issparse(A) else A)))
    error = right.residuals[0] + _EPS * norm / abs(value)
    return bool(error <= _ACCURACY * cosine)
