"""Solvers for one strongly connected block: each returns the radius, or None if it cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from reservoir._typing import Array
from reservoir.scaling._checks import row_of_entries
from reservoir.scaling._krylov import as_operand

_EPS = float(np.finfo(np.float64).eps)
# relative uncertainty at which a result is given up: a tenth of the promised accuracy
_ACCURACY = 1e-7


def dense_radius(A: Array) -> float | None:
    """Radius from all eigenvalues, if rounding cannot have moved it.

    Eigenvalue i is uncertain by eps * norm / s_i, where s_i is the cosine between its left and
    right eigenvectors (Wilkinson 1965). If some eigenvalue may so reach beyond the radius, which
    defective ones deep inside always seem to, two small random perturbations decide.
    """
    A = la.matrix_balance(A, permute=False, separate=False)[0]
    values, left, right = la.eig(A, left=True, right=True)
    modulus = np.abs(values)
    radius = float(modulus.max())
    cosine = np.abs(np.sum(left.conj() * right, axis=0))
    noise = 4 * _EPS * la.norm(A)
    margin = noise / np.maximum(cosine, _EPS)
    if np.max(modulus - margin) < (1 - _ACCURACY) * radius:
        return None
    if np.max(modulus + margin) <= (1 + _ACCURACY) * radius:
        return radius
    generator = np.random.default_rng(0)
    for _ in range(2):
        moved = A + noise / np.sqrt(A.shape[0]) * generator.standard_normal(A.shape)
        if abs(np.max(np.abs(la.eigvals(moved))) - radius) > _ACCURACY * radius:
            return None
    return radius


def symmetric_form(block: sp.csr_array) -> sp.csr_array | None:
    """Return the symmetric matrix D^-1 W D with D diagonal, if there is one.

    Its entries are sign(w_ij) sqrt(w_ij w_ji): it exists if these signs agree and log(w_ij / w_ji)
    is a difference of potentials, as on every tree, so for every tridiagonal matrix.
    """
    transposed = block.T.tocsr()
    transposed.sort_indices()
    if not np.array_equal(transposed.indptr, block.indptr) or not np.array_equal(
        transposed.indices, block.indices
    ):
        return None
    if np.any(np.sign(transposed.data) != np.sign(block.data)):
        return None
    log_ratio = 0.5 * (np.log(np.abs(block.data)) - np.log(np.abs(transposed.data)))
    if not _is_difference(block, log_ratio):
        return None
    out = block.copy()
    root = np.sqrt(np.abs(block.data)) * np.sqrt(np.abs(transposed.data))
    out.data = np.sign(block.data) * root
    return out


def _is_difference(block: sp.csr_array, edge: Array) -> bool:
    # is edge[i, j] = potential[i] - potential[j]? The potential along a spanning tree decides.
    if not edge.any():
        return True
    n_units = block.shape[0]
    _, parent = breadth_first_order(block, 0)
    parent = np.maximum(parent, 0)
    graph = sp.csr_array((edge, block.indices, block.indptr), shape=block.shape)
    potential = np.asarray(graph[np.arange(n_units), parent]).ravel()
    potential[0] = 0.0
    while parent.any():  # add up the way to the root by doubling
        potential = potential + potential[parent]
        parent = parent[parent]
    rows = row_of_entries(block)
    return bool(np.all(np.abs(potential[rows] - potential[block.indices] - edge) < 1e-9))


def symmetric_radius(S: sp.csr_array) -> float | None:
    """Radius of a symmetric matrix, which is its norm."""
    n_units = S.shape[0]
    rows = row_of_entries(S)
    if np.max(np.abs(rows - S.indices)) <= 1:
        diagonal, beside = S.diagonal(), S.diagonal(1)
        return max(
            abs(la.eigvalsh_tridiagonal(diagonal, beside, select="i", select_range=(i, i))[0])
            for i in (0, n_units - 1)
        )
    if n_units <= 500:
        return float(np.max(np.abs(la.eigvalsh(S.toarray()))))
    matrix = as_operand(S)
    return lanczos_norm(lambda x: matrix @ x, n_units)


def is_normal(block: sp.csr_array) -> bool:
    """Whether W W' = W' W, tested on two random vectors."""
    transposed = block.T.tocsr()
    generator = np.random.default_rng(0)
    for _ in range(2):
        x = generator.standard_normal(block.shape[0])
        one, two = block @ (transposed @ x), transposed @ (block @ x)
        if np.max(np.abs(one - two)) > 1e-14 * np.max(np.abs(one)):
            return False
    return True


def largest_singular_value(W: Any) -> float | None:
    """Spectral norm of a matrix of any shape, by Lanczos' method on W' W."""
    matrix, transposed = as_operand(W), as_operand(W.T)
    square = lanczos_norm(lambda x: transposed @ (matrix @ x), W.shape[1])
    return None if square is None else float(np.sqrt(square))


def lanczos_norm(product: Callable[[Array], Array], n: int, max_steps: int = 2**15) -> float | None:
    """Largest modulus of an eigenvalue of a symmetric operator.

    Plain Lanczos: without orthogonalisation copies of eigenvalues appear, but the extreme one is
    right, and m steps reach a relative error of about (log(n) / m)^2 with no gap at all
    (Kuczynski and Wozniakowski 1992). Ends when twice the steps change nothing.
    """
    v = np.random.default_rng(1).standard_normal(n)
    v /= np.linalg.norm(v)
    before = np.zeros(n)
    alpha: list[float] = []
    beta: list[float] = []
    check, last = 64, 0.0
    while len(alpha) < max_steps:
        w = product(v)
        alpha.append(float(v @ w))
        w -= alpha[-1] * v
        if beta:
            w -= beta[-1] * before
        size = float(np.linalg.norm(w))
        closed = size <= 1e-13 * max(map(abs, alpha[:1] + alpha[-1:] + beta[-1:]))
        if closed or len(alpha) == check:
            ends = [
                la.eigvalsh_tridiagonal(alpha, beta, select="i", select_range=(i, i))[0]
                for i in (0, len(alpha) - 1)
            ]
            value = float(np.max(np.abs(ends)))
            if closed or abs(value - last) <= _ACCURACY * value:
                return value
            check, last = 2 * check, value
        beta.append(size)
        before, v = v, w / size
    return None


def perron_root(B: sp.csr_array, tol: float) -> float | None:
    """Radius of a non-negative irreducible matrix, enclosed by min and max of (B x)_i / x_i."""
    for matrix in (B, B.T.tocsr()):  # constant sums of the rows or columns end at once
        x = np.ones(B.shape[0])
        n_steps = 60 if matrix is B else 1
        for step in range(n_steps):
            y = matrix @ x
            ratio = y / x
            low, high = float(ratio.min()), float(ratio.max())
            if high - low <= tol * high:
                return 0.5 * (low + high)
            # a shift makes the iteration converge on periodic graphs
            x = y + (0.5 * high * x if step >= 20 else 0.0)
            x /= x.max()
            if x.min() < 1e-200:
                break
    return _noda(B, tol) if B.shape[0] <= 1000 or _is_narrow(B) else None


def _is_narrow(B: sp.csr_array, bandwidth: int = 100) -> bool:
    order = reverse_cuthill_mckee(B, symmetric_mode=False)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    rows = row_of_entries(B)
    return bool(np.max(np.abs(place[rows] - place[B.indices])) <= bandwidth)


def _noda(B: sp.csr_array, tol: float) -> float | None:
    # inverse iteration with the upper bound as shift; the iterate is absorbed into the matrix, so
    # that eigenvectors which span thousands of orders of magnitude do no harm
    M, identity = B.tocsc(), sp.eye_array(B.shape[0], format="csc")
    for _ in range(100):
        sums = M.sum(axis=1)
        low, high = float(sums.min()), float(sums.max())
        if high - low <= tol * high:
            return 0.5 * (low + high)
        z = splu((high * (1 + 1e-13)) * identity - M).solve(np.ones(B.shape[0]))
        if not np.all(np.isfinite(z)) or z.min() <= 0:
            return None
        M = (sp.diags_array(1 / z) @ M @ sp.diags_array(z)).tocsc()
    return None
