"""Spectral radius of symmetric and normal matrices, which is their 2-norm, by Lanczos' method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from reservoir._typing import Array
from reservoir.scaling._checks import row_of_entries
from reservoir.scaling._krylov import as_operand

# converged if the relative change from m to 2 m steps is below this; the error is at most a third
_ACCURACY = 1e-7


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
