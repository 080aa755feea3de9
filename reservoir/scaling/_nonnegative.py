"""Blocks that have the spectral radius of |W|, and bounds on the radius of non-negative matrices.

This is the easy case: for a non-negative matrix and any positive x, the spectral radius is between
the smallest and the largest quotient (W x)_i / x_i (Collatz and Wielandt).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from reservoir._typing import Array
from reservoir.scaling._checks import row_of_entries
from reservoir.scaling._symmetric import along_tree


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
