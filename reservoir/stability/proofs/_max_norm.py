"""Contraction in a weighted maximum norm: theorem C2.

Two states of the network without leak under the same input differ by e, and after a step by at most
``diag(d)|W| |e|``, d the largest slopes of the activation in a box that contains both states. If
``diag(d)|W| v <= r v`` for a vector v > 0 and r < 1, then ``max_i |e_i| / v_i`` shrinks by r.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from reservoir._typing import Array, Matrix
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import FLOOR, OVERFLOWS, SMALL
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import MAX_DENSE_UNITS, IntervalNetwork


def max_norm_proof(network: IntervalNetwork, box: Box) -> tuple[float, Array]:
    """Return the proved rate per step inside the box, and the weights of the norm: theorem C2."""
    r, v = max_norm_rate(network, box.largest_slope)
    return network.leaky_rate(r), v


def max_norm_rate(network: IntervalNetwork, largest: Array, **options: Any) -> tuple[float, Array]:
    """Return r and v > 0 with diag(largest)|W| v <= r v: the rate without leak (`perron_bound`)."""
    # The margin of perron_bound covers the rounding of the products with the slopes, too.
    return perron_bound(scaled_rows(largest, network.A), **options)


@OVERFLOWS
def perron_bound(
    M: Matrix, *, start: Array | None = None, decide: float | None = None, max_iter: int = 1000
) -> tuple[float, Array]:
    """Return r and v > 0 with M v <= r v for a non-negative matrix M, rounding included.

    The largest ratio (M v)_i / v_i of any positive v bounds the spectral radius of M from above,
    the least from below (Collatz and Wielandt). A power iteration, from `start` or ones, lets both
    converge to it. With `decide` it stops as soon as the radius is known to be above or below that
    number.
    """
    n_terms = np.diff(M.indptr).max() if sp.issparse(M) else M.shape[1]
    slack = 1 + (float(n_terms) + 8) * EPS
    v = np.ones(M.shape[0]) if start is None else np.maximum(start, FLOOR)
    best, best_v = np.inf, v
    for k in range(max_iter):
        u = M @ v
        ratio = u / v
        high, low = float(ratio.max()), float(ratio.min())
        if not np.isfinite(high):
            break
        if high < best:
            best, best_v = high, v
        if high - low <= 1e-4 * high:
            break
        if decide is not None and (best * slack < decide or low > decide):
            break
        # Adding a multiple of v makes the iteration converge for periodic graphs, too. It is not
        # needed in the first step: if all row sums are equal, ones are already the Perron vector.
        v = u + (0.05 * high * v if k else 0.0)
        v = np.maximum(v / v.max(), FLOOR)
    # Power iterations converge slowly for feed-forward parts; there a series may show r < 1.
    if best * slack >= 1 > low and np.isfinite(best):
        best, best_v = _resolvent_bound(M, best, best_v)
    return best * slack + SMALL, best_v


def _resolvent_bound(M: Matrix, best: float, best_v: Array) -> tuple[float, Array]:
    """Return r and v, or `best` and `best_v` if no lower r is found, from v = (I - M / s)^-1 1.

    For this v and s < 1, M v = s (v - 1) < s v, so that r is below s. It is summed as the series
    sum_k (M / s)^k 1, which ends after finitely many terms for feed-forward networks. For a chain
    of units with self-connections the terms grow for long before they decay; then the linear system
    is solved.
    """
    # The series, for some s from below.
    n_terms = min(4 * M.shape[0], 2000 if sp.issparse(M) else 400)
    for s in (0.5, 0.9, 0.99, 0.999):
        term = v = np.ones(M.shape[0])
        for _ in range(n_terms):
            term = (M @ term) / s
            v = v + term
            if not term.max() > 1e-16 * v.min() or v.max() > 1e250:
                break
        if np.isfinite(v).all():
            high = float(np.max((M @ v) / v))
            if high < best:
                best, best_v = high, v
        if best < 1:
            return best, best_v
    # The linear system, for values of s so near 1 that the series has not converged.
    for s in (0.999, 1 - 1e-6):
        v = _resolvent(M, s)
        high = float(np.max((M @ v) / v)) if np.all(v > 0) else np.inf
        if high < best:
            best, best_v = high, v
        if best < 1:
            break
    return best, best_v


def _resolvent(M: Matrix, s: float) -> Array:
    """Return (I - M / s)^-1 1, scaled to a largest entry of 1.

    Zeros if the system is singular or too large, or its solution not positive: nothing is proved.
    """
    n = M.shape[0]
    if n > MAX_DENSE_UNITS:
        return np.zeros(n)
    try:
        if sp.issparse(M):
            v = splu(sp.csc_array(sp.eye_array(n) - M / s)).solve(np.ones(n))
        else:
            v = np.linalg.solve(np.eye(n) - M / s, np.ones(n))
    except (RuntimeError, np.linalg.LinAlgError):  # singular
        return np.zeros(n)
    return np.maximum(v / v.max(), FLOOR) if np.isfinite(v).all() and v.min() > 0 else np.zeros(n)
