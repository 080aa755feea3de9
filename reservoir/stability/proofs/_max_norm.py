"""Contraction in a weighted maximum norm: theorem C2."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from reservoir._typing import Array, Matrix
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import FLOOR, OVERFLOWS, SMALL
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import MAX_DENSE_UNITS, IntervalNetwork


def max_norm_rate(network: IntervalNetwork, largest: Array, **options: Any) -> tuple[float, Array]:
    """Return r and v of diag(d)|W| v <= r v: form 1 (theorem C2)."""
    # both the slope's product and its sum are inside the slack of the bound
    return perron_bound(scaled_rows(largest, network.A), **options)


@OVERFLOWS
def perron_bound(
    M: Matrix, *, start: Array | None = None, decide: float | None = None, max_iter: int = 1000
) -> tuple[float, Array]:
    """Return r and v > 0 with M v <= r v for a non-negative M, rounding included.

    Collatz and Wielandt's bound: r is at least the spectral radius of M, whatever v is; v comes
    from a shifted power iteration, so that r is close to it. With `decide` the iteration ends as
    soon as it is known on which side of that number the radius lies.
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
        # a shift for periodic graphs; none at first, so that constant sums end at once
        v = u + (0.05 * high * v if k else 0.0)
        v = np.maximum(v / v.max(), FLOOR)
    if best * slack >= 1 > low and np.isfinite(best):  # undecided: feed-forward parts are slow
        best, best_v = _resolvent_bound(M, best, best_v)
    return best * slack + SMALL, best_v


def _resolvent_bound(M: Matrix, best: float, best_v: Array) -> tuple[float, Array]:
    """Try v = sum_k (M / s)^k 1, for which M v < s v; the sum ends for feed-forward networks.

    With self-connections along a line its terms grow long before they fade: there v is solved for.
    """
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
    for s in (0.999, 1 - 1e-6):
        v = _resolvent(M, s)
        high = float(np.max((M @ v) / v)) if np.all(v > 0) else np.inf
        if high < best:
            best, best_v = high, v
        if best < 1:
            break
    return best, best_v


def _resolvent(M: Matrix, s: float) -> Array:
    """Return (I - M / s)^-1 1 where it can be had, scaled to a largest entry of 1; else zeros."""
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
