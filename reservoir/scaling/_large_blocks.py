"""Spectral radius of large blocks: of any by Arnoldi's method, of symmetric ones by Lanczos'.

Blocks with the radius of |W| are the easy case: for a non-negative matrix and any positive x, the
spectral radius is between the smallest and the largest quotient (W x)_i / x_i (Collatz and
Wielandt).

Arnoldi's method is power-filtered, for a large matrix whose spectrum has no gap. The spectrum of a
random reservoir fills a disc, and near its edge hundreds of eigenvalues have almost the same
modulus. Restarted methods, which keep a few dozen vectors, converge to some of these eigenvalues,
with tiny residuals, and miss larger ones. Here nothing is restarted. First the start vector is
multiplied by W thousands of times, which is cheap for a sparse W and leaves only components near
the edge of the disc. Then a Krylov basis is built with W^p instead of W, so that a few vectors span
a space of high degree; they must be orthogonalised, which is the expensive part. The results are
the eigenvalues of W itself, projected on this space.

Symmetric and normal matrices have their 2-norm as spectral radius.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from reservoir._typing import Array
from reservoir._validation import dense
from reservoir.scaling._checks import row_of_entries

_EPS = float(np.finfo(np.float64).eps)
# largest relative uncertainty of an accepted result: a tenth of the guaranteed accuracy; and of the
# change from m to 2 m steps of Lanczos' method, of which the error is at most a third
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


def symmetric_form(block: sp.csr_array) -> sp.csr_array | None:
    """Return D^-1 W D with the positive diagonal D that makes its moduli symmetric, or None.

    The entries of the result are sign(w_ij) sqrt(|w_ij w_ji|). It exists if the pattern of W is
    symmetric and log |w_ij / w_ji| = p_i - p_j for some numbers p. If the graph is a tree, as for a
    tridiagonal matrix, there are always such numbers.
    """
    transposed = block.T.tocsr()
    transposed.sort_indices()
    if not np.array_equal(transposed.indptr, block.indptr) or not np.array_equal(
        transposed.indices, block.indices
    ):
        return None
    one, two = np.abs(block.data), np.abs(transposed.data)
    if not _is_difference(block, 0.5 * (np.log(one) - np.log(two))):
        return None
    out = block.copy()
    out.data = np.sign(block.data) * (np.sqrt(one) * np.sqrt(two))
    return out


def has_symmetric_signs(S: sp.csr_array) -> bool:
    """Whether entries (i, j) and (j, i) of a matrix with symmetric pattern have the same sign."""
    transposed = S.T.tocsr()
    transposed.sort_indices()
    return bool(np.all(np.sign(transposed.data) == np.sign(S.data)))


def _is_difference(block: sp.csr_array, edge: Array) -> bool:
    """Whether there are numbers p with edge = p_i - p_j for every connection (i, j) of the block.

    `edge` contains a number for each stored entry. The candidate p is computed along a spanning
    tree.
    """
    if not edge.any():
        return True
    n_units = block.shape[0]
    _, parent = breadth_first_order(block, 0)
    parent[0] = 0
    graph = sp.csr_array((edge, block.indices, block.indptr), shape=block.shape)
    step = np.asarray(graph[np.arange(n_units), parent]).ravel()
    step[0] = 0.0
    potential = along_tree(parent, step)
    difference = potential[row_of_entries(block)] - potential[block.indices]
    return bool(np.all(np.abs(difference - edge) < 1e-9))


def along_tree(parent: Array, step: Array) -> Array:
    """Return, for each node of a tree, the sum of `step` over its path to the root.

    `parent` contains the parent of each node; the root is its own parent, with a step of 0. The
    length of the paths is doubled in every round, so that the number of rounds is logarithmic in
    their length.
    """
    total = step.copy()
    while parent.any():
        total = total + total[parent]
        parent = parent[parent]
    return total


def symmetric_radius(S: sp.csr_array) -> float | None:
    """Return the radius of a symmetric matrix; None if Lanczos' method does not converge."""
    n_units = S.shape[0]
    if np.max(np.abs(row_of_entries(S) - S.indices)) <= 1:
        return _largest_end(S.diagonal(), S.diagonal(1))
    if n_units <= 500:
        return float(np.max(np.abs(la.eigvalsh(S.toarray()))))
    matrix = as_operand(S)
    return lanczos_norm(lambda x: matrix @ x, n_units)


def is_normal(block: sp.csr_array) -> bool:
    """Whether W W' = W' W (a normal matrix), tested on two random vectors."""
    matrix, transposed = as_operand(block), as_operand(block.T)
    generator = np.random.default_rng(0)
    for _ in range(2):
        x = generator.standard_normal(block.shape[0])
        one, two = matrix @ (transposed @ x), transposed @ (matrix @ x)
        if np.max(np.abs(one - two)) > 1e-14 * np.max(np.abs(one)):
            return False
    return True


def largest_singular_value(W: Any) -> float | None:
    """Return the 2-norm of a matrix of any shape; None if Lanczos' method does not converge."""
    matrix, transposed = as_operand(W), as_operand(W.T)
    square = lanczos_norm(lambda x: transposed @ (matrix @ x), W.shape[1])
    return None if square is None else float(np.sqrt(square))


def lanczos_norm(product: Callable[[Array], Array], n: int, max_steps: int = 2**15) -> float | None:
    """Return the largest modulus of an eigenvalue of a symmetric operator; None if not converged.

    ``product(v)`` applies it to a vector of `n` numbers. This is Lanczos' method without
    reorthogonalisation: copies of eigenvalues appear, but the extreme eigenvalues are correct.
    After m steps the relative error is about (log(n) / m)^2, even if the spectrum has no gap
    (Kuczynski and Wozniakowski 1992). It stops when twice as many steps change the result by less
    than 1e-7.
    """
    v = np.random.default_rng(1).standard_normal(n)
    v /= np.linalg.norm(v)
    before = np.zeros(n)
    alpha: list[float] = []
    beta: list[float] = []
    check, last = 64, 0.0
    while len(alpha) < max_steps:
        # one Lanczos step: alpha and beta become the diagonals of a tridiagonal matrix
        w = product(v)
        alpha.append(float(v @ w))
        w -= alpha[-1] * v
        if beta:
            w -= beta[-1] * before
        size = float(np.linalg.norm(w))
        closed = size <= 1e-13 * max(map(abs, alpha[:1] + alpha[-1:] + beta[-1:]))
        # its extreme eigenvalue, after 64, 128, ... steps; if the Krylov space is closed under the
        # operator, the eigenvalue is exact and returned at once
        if closed or len(alpha) == check:
            value = _largest_end(np.array(alpha), np.array(beta))
            if closed or abs(value - last) <= _ACCURACY * value:
                return value
            check, last = 2 * check, value
        beta.append(size)
        before, v = v, w / size
    return None


def _largest_end(diagonal: Array, off_diagonal: Array) -> float:
    """Return the largest modulus of an eigenvalue of a symmetric tridiagonal matrix."""
    if diagonal.size == 1:  # older SciPy rejects an empty off-diagonal
        return float(abs(diagonal[0]))
    ends = ((0, 0), (diagonal.size - 1, diagonal.size - 1))
    return float(
        max(
            abs(la.eigvalsh_tridiagonal(diagonal, off_diagonal, select="i", select_range=end)[0])
            for end in ends
        )
    )


def has_radius_of_modulus(block: sp.csr_array) -> bool:
    """Whether a strongly connected W has the spectral radius of |W|.

    It does if and only if W = exp(i theta) D |W| D^-1 for some angle theta and a diagonal D whose
    entries have modulus 1 (Wielandt 1950; Horn and Johnson 2013, theorem 8.4.5). This holds if
    k theta = pi c modulo 2 pi for every connection, where k and c are the numbers of connections
    and of minus signs around the loop that the connection closes in a spanning tree.
    """
    negative = (block.data < 0).astype(np.int64)
    if negative.all() or not negative.any():
        return True
    # the spanning tree, with the number of minus signs on each unit's path from the root
    n_units = block.shape[0]
    _, parent = breadth_first_order(block, 0)
    parent[0] = 0
    graph = sp.csr_array((negative, block.indices, block.indptr), shape=block.shape)
    step = np.asarray(graph[parent, np.arange(n_units)]).ravel()
    step[0] = 0
    signs = along_tree(parent, step)
    depth = along_tree(parent, (np.arange(n_units) > 0).astype(np.int64))
    # every connection closes a loop; one of two angles must satisfy the condition for all loops
    rows, columns = row_of_entries(block), block.indices
    k = 1 + depth[rows] - depth[columns]
    c = negative + signs[rows] - signs[columns]
    turns = k // np.gcd.reduce(k)
    return any(np.all((turns * t - c) % 2 == 0) for t in (0, 1))


def perron_root(B: sp.csr_array, tol: float) -> float | None:
    """Return the spectral radius of a non-negative irreducible matrix, or None.

    The minimum and the maximum of (B x)_i / x_i enclose the radius. Power iteration is used first.
    If it converges too slowly, inverse iteration follows, but only if the matrix is small or has a
    small bandwidth, so that it is cheap to factorise; otherwise the result is None.
    """
    # a single step with the transpose is sufficient if all column sums are equal
    for matrix in (B, B.T.tocsr()):
        x = np.ones(B.shape[0])
        for step in range(60 if matrix is B else 1):
            y = matrix @ x
            ratio = y / x
            low, high = float(ratio.min()), float(ratio.max())
            if high - low <= 0.01 * tol * high:
                return 0.5 * (low + high)
            # a shift makes the iteration converge on periodic graphs, too
            x = y + (0.5 * high * x if step >= 20 else 0.0)
            x /= x.max()
            if x.min() < 1e-200:
                break
    return _inverse_iteration(B, tol) if B.shape[0] <= 1000 or _is_narrow(B) else None


def _is_narrow(B: sp.csr_array, bandwidth: int = 100) -> bool:
    """Whether a reordering of the units (reverse Cuthill-McKee) makes B a narrow band matrix."""
    order = reverse_cuthill_mckee(B, symmetric_mode=False)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return bool(np.max(np.abs(place[row_of_entries(B)] - place[B.indices])) <= bandwidth)


def _inverse_iteration(B: sp.csr_array, tol: float) -> float | None:
    """Return the spectral radius of a non-negative irreducible matrix by Noda's (1971) iteration.

    The result is None if the iteration has not converged to `tol` in 400 steps. The solution z of
    (shift I - B) z = 1 is positive if and only if the shift is above the radius. If it is, B is
    replaced by Z^-1 B Z with Z = diag(z), whose row sums are closer bounds. So the product of all z
    is never formed, which would overflow if the eigenvector covers thousands of orders of
    magnitude.
    """
    n_units = B.shape[0]
    M, identity = B.tocsc(), sp.eye_array(n_units, format="csc")
    columns = np.repeat(np.arange(n_units), np.diff(M.indptr))
    fraction, low = 0.5, 0.0
    for _ in range(400):
        sums = M.sum(axis=1)
        low, high = max(low, float(sums.min())), float(sums.max())
        if high - low <= 0.01 * tol * high:
            return 0.5 * (low + high)
        # the closer the shift to the radius, the faster the convergence
        shift = high - fraction * (high - low)
        z = _solved(shift * identity - M)
        if z.min() > 1e-290:  # above the radius
            M.data *= z[columns] / z[M.indices]
            fraction = min(0.5, 2 * fraction)
        elif z.min() < 0:  # below the radius: a lower bound
            low, fraction = shift, 0.5
        else:  # z overflows: farther from the radius
            fraction *= 0.25
    return None


def _solved(M: sp.csc_array) -> Array:
    """Return the solution z of M z = 1, scaled to a largest modulus of 1; zeros if it overflows.

    M is shift I - B with a non-negative B. If the shift exceeds the radius of B, elimination
    without pivoting has no cancellation off the diagonal, so even tiny entries of z are accurate.
    """
    try:
        factors = splu(
            M, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
        z = factors.solve(np.ones(M.shape[0]))
    except RuntimeError:  # singular
        z = np.full(M.shape[0], np.nan)
    peak = np.max(np.abs(z))
    return z / peak if 0 < peak < np.inf else np.zeros_like(z)
