"""Contraction by the series about the mean slopes: theorem C4."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._max_norm import perron_bound


@OVERFLOWS
def series_rate(network: IntervalNetwork, least: Array, largest: Array, start: Array) -> float:
    """Return a rate below 1 at which differences decay by the series of theorem C4, or inf.

    With the slopes' middle in J = (1-a) I + a D_c W and their radius in S_j = a D_r W J^j, the
    proof is a vector v > 0 with (sum_{j<n} |S_j| + |J^n|) v < v. Weighting the j-th term by
    s^-(j+1) and the last by s^-n gives the rate s.
    """
    series = _Series(network, least, largest)
    v = np.maximum(start / start.max(), 1e-100)
    terms, total = series.terms(v)
    if terms is not None and not (terms.sum(axis=0) < v).all():
        # worth a second pass only if other weights can succeed
        bound, v = perron_bound(total + TINY, start=v, decide=1.0)
        terms = series.terms(v, len(terms) - 1)[0] if bound < 1 else None
    return np.inf if terms is None else _weighted_rate(terms / v)


class _Series:
    """J and S_0 = a D_r W of a box, with bounds of what rounding does to their products."""

    def __init__(self, network: IntervalNetwork, least: Array, largest: Array) -> None:
        leak, W = network.leak, network.W
        centre = 0.5 * least + 0.5 * largest
        radius = np.maximum(largest - centre, centre - least) * (1 + 4 * EPS) + TINY
        identity = sp.eye_array(network.n_units, format="csr")
        if not sp.issparse(W):
            identity = identity.toarray()
        kept = scaled_rows(1 - leak, identity)
        self.J: Any = kept + scaled_rows(leak * centre, W)
        self.S: Any = scaled_rows(leak * radius, W)
        # |J| without cancellation on the diagonal: what errors are relative to
        self.K: Any = kept + scaled_rows(leak * centre, network.A)
        self.B: Any = scaled_rows(leak * radius * (1 + 8 * EPS), network.A)
        # relative error of an entry of a product, sums and the making of J and S included
        self.unit = (float(network.row_sizes.max()) + 13) * EPS
        self.n_units = network.n_units
        self.longest = int(np.clip(12 / max(leak.min(), 0.1), 16, 120))

    def terms(self, v: Array, n_terms: int | None = None) -> tuple[Array | None, Array]:
        """Return the bounds of |S_j| v, then of |J^n| v, and the sum of the matrices.

        Without `n_terms` it ends when the powers of J have faded; None if they do not.
        """
        power = np.eye(self.n_units)
        total, rows = np.zeros_like(power), []
        slack = 1 + (self.n_units + 8) * EPS
        lost, bound = np.zeros(self.n_units), v  # what the power times v is off; K^j v
        sizes = [1.0]
        for n in range(1, (n_terms or self.longest) + 1):
            product = np.abs(self.S @ power)
            total += product
            off = lost + self.unit * (bound + lost)
            rows.append((product @ v + self.B @ off) * slack + TINY)
            power = self.J @ power
            lost, bound = (self.K @ off) * slack, (self.K @ bound) * slack
            size = float(np.abs(power).sum(axis=1).max())
            if not size < 1e4 or not (np.isfinite(lost).all() and np.isfinite(bound).all()):
                return None, total
            sizes.append(size)
            if n_terms is None and (size < 0.02 or (n >= 16 and size > 0.95 * sizes[n // 2])):
                break
        power = np.abs(power)
        rows.append((power @ v + lost) * slack + TINY)
        return np.array(rows), total + power


def _weighted_rate(ratios: Array) -> float:
    """Return the least rate s that the series proves, by bisection; inf if none below 1."""
    n = len(ratios) - 1
    exponents = -np.append(np.arange(1.0, n + 1), n)
    slack = 1 + (6 * n + 20) * EPS

    def proves(s: float) -> bool:
        with np.errstate(over="ignore"):
            return bool(((s**exponents) @ ratios).max() * slack < 1)

    if not proves(1.0):
        return np.inf
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle > 0 and proves(middle) else (middle, high)
    return high
