"""Power-filtered Arnoldi: the leading eigenvalues of a large matrix whose spectrum has no gap.

The spectrum of a random reservoir fills a disc, and near its edge hundreds of eigenvalues compete
in modulus. Restarted methods, which keep a few dozen vectors, settle on some of them and miss
others with residuals that look perfect. Here nothing is restarted. The start is multiplied by W
thousands of times, which a sparse matrix makes cheap and which leaves only the edge of the disc;
then a basis is built with W^p in place of W, so that few vectors (the costly part: they must be
orthogonalised) span a Krylov space of high degree; and the eigenvalues are those of W itself,
projected on that space.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from reservoir._typing import Array

_EPS = float(np.finfo(np.float64).eps)
# relative uncertainty at which a result is given up: a tenth of the promised accuracy
_ACCURACY = 1e-7
# how many of the leading Ritz values must be settled
_N_LEADING = 8
# multiplications of the start, power p, number of basis vectors
_EFFORTS = ((0, 1, 60), (500, 8, 80), (2000, 16, 100), (8000, 32, 150), (30000, 64, 200))


class _Ritz(NamedTuple):
    values: Array  # (n_leading,), largest modulus first
    vectors: Array  # (n_units, n_leading)
    residuals: Array  # (n_leading,), relative


def krylov_radius(block: sp.csr_array, tol: float) -> tuple[float | None, bool]:
    """Radius from two runs, on W and from another start on its transpose, that must agree.

    Returns the radius or None, and whether that is because it is too sensitive to rounding.
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
    """Return the form in which products with vectors are fastest."""
    if not sp.issparse(matrix):
        return matrix
    return matrix.toarray() if matrix.nnz > 0.1 * np.prod(matrix.shape) else matrix.tocsr()


def _leading(A: Any, effort: tuple[int, int, int], seed: int) -> _Ritz | None:
    n_filter, power, n_vectors = effort
    step = A
    if not sp.issparse(A) and power > 1:  # a few products of dense matrices save many with vectors
        step, n_filter, power = np.linalg.matrix_power(A, power), n_filter // power, 1
    v = np.random.default_rng(seed).standard_normal(A.shape[0])
    basis = np.empty((n_vectors, A.shape[0]))
    filtered = _apply(step, v, n_filter)
    for k in range(n_vectors):
        if filtered is None:
            return None
        basis[k] = _orthonormal(filtered, basis[:k])
        filtered = _apply(step, basis[k], power)
    image = A @ basis.T
    values, small = la.eig(basis @ image)
    order = np.argsort(-np.abs(values), kind="stable")[:_N_LEADING]
    values, small = values[order], small[:, order]
    vectors = basis.T @ small
    size = np.maximum(np.abs(values), np.finfo(np.float64).tiny)
    return _Ritz(values, vectors, la.norm(image @ small - vectors * values, axis=0) / size)


def _apply(A: Any, v: Array, times: int) -> Array | None:
    # A^times v up to a factor; None if it underflows
    for k in range(times):
        v = A @ v
        if k % 8 == 7 or k == times - 1:
            size = np.linalg.norm(v)
            if not np.isfinite(size) or size < 1e-200:
                return None
            v /= size
    return v


def _orthonormal(v: Array, basis: Array) -> Array:
    # repeated until nothing is lost: what the first pass leaves may be rounding noise
    v = v / np.linalg.norm(v)
    for _ in range(5):
        v = v - (basis @ v) @ basis
        size = np.linalg.norm(v)
        v /= max(size, np.finfo(np.float64).tiny)
        if size > 0.7:
            break
    return v


def _settled(ritz: _Ritz, tol: float) -> bool:
    # the first has converged, and each of the next has too or lies too far inside to matter
    modulus = np.abs(ritz.values)
    inside = modulus * (1 + 5 * ritz.residuals) < modulus[0]
    return bool(ritz.residuals[0] <= 0.1 * tol and np.all((ritz.residuals <= tol) | inside))


def _agree(right: _Ritz, left: _Ritz, n_same: int = 3) -> bool:
    one, two = np.abs(right.values[:n_same]), np.abs(left.values[:n_same])
    same = np.abs(one - two) <= _ACCURACY * one[0]
    return bool(same[0] and np.all(same | (right.residuals[:n_same] > 1e-8)))


def _is_sure(A: Any, right: _Ritz, left: _Ritz) -> bool:
    # the error of an eigenvalue is the residual over the cosine between left and right vector
    value, x = right.values[0], right.vectors[:, 0]
    y = left.vectors[:, np.argmin(np.abs(left.values - value))]
    cosine = abs(y @ x) / (la.norm(x) * la.norm(y))
    norm = np.sqrt(np.sum(np.square(A.data if sp.issparse(A) else A)))
    error = right.residuals[0] + _EPS * norm / abs(value)
    return bool(error <= _ACCURACY * cosine)
