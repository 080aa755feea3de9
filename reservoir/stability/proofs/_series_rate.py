"""Contraction by a series about the mean slopes: theorem C4.

Two states under the same input differ by e, and after a step by (1 - a) e + a D W e, where a is the
leak rate and D a diagonal of slopes. Let D_c be the midpoint of the slopes in the box, and D_r
their largest distance from it. Then the step is J e + q with J = (1 - a) I + a D_c W and
``|q| <= a D_r |W e|``. Powers of J keep the signs of the weights, which theorem C2 discards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._max_norm import max_norm_rate, perron_bound


def series_proof(network: IntervalNetwork, box: Box) -> tuple[float, None]:
    """Return the proved rate per step, infinity if there is none; no norm shrinks at each step."""
    start = max_norm_rate(network, box.largest_slope)[1]
    return series_rate(network, box.least_slope, box.largest_slope, start), None


@OVERFLOWS
def series_rate(network: IntervalNetwork, least: Array, largest: Array, start: Array) -> float:
    """Return a proved rate below 1 at which differences decay, or infinity.

    With S_j = a D_r W J^j the proof is a vector v > 0 with (sum_{j<n} |S_j| + |J^n|) v < v. If this
    still holds with the j-th term multiplied by s^-(j+1), and the last by s^-n, the rate is s. The
    slopes are between `least` and `largest`; `start` is a positive vector to try first, such as the
    weights of theorem C2.
    """
    series = _Series(network, least, largest)
    v = np.maximum(start / start.max(), 1e-100)
    terms, total = series.terms(v)
    if terms is not None and not (terms.sum(axis=0) < v).all():
        # The sum may still have a spectral radius below 1: then its Perron vector is the proof.
        bound, v = perron_bound(total + TINY, start=v, decide=1.0)
        terms = series.terms(v, len(terms) - 1)[0] if bound < 1 else None
    return np.inf if terms is None else _weighted_rate(terms / v)


class _Series:
    """J and S_0 = a D_r W of theorem C4, and bounds of the rounding errors of their products."""

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
        # Errors are relative to |J|, without cancellation on its diagonal, and to a D_r |W|.
        self.K: Any = kept + scaled_rows(leak * centre, network.A)
        self.B: Any = scaled_rows(leak * radius * (1 + 8 * EPS), network.A)
        # Relative error of an entry of a product, the rounding of J and S included.
        self.unit = (float(network.row_sizes.max()) + 13) * EPS
        self.n_units = network.n_units
        self.longest = int(np.clip(12 / max(leak.min(), 0.1), 16, 120))

    def terms(self, v: Array, n_terms: int | None = None) -> tuple[Array | None, Array]:
        """Return bounds of |S_0| v, ..., |S_{n-1}| v and |J^n| v as rows, and the sum of matrices.

        The matrices are all |S_j| and |J^n|. Without `n_terms` the series ends once the powers of J
        are small, or no longer decay. The rows are None if they grow beyond all bounds.
        """
        power = np.eye(self.n_units)
        total, rows = np.zeros_like(power), []
        slack = 1 + (self.n_units + 8) * EPS
        # The error of the computed J^j v, and K^j v with K = |J|, which bounds |J^j| v.
        lost, bound = np.zeros(self.n_units), v
        sizes = [1.0]
        for n in range(1, (n_terms or self.longest) + 1):
            # The next term.
            product = np.abs(self.S @ power)
            total += product
            off = lost + self.unit * (bound + lost)
            rows.append((product @ v + self.B @ off) * slack + TINY)
            # The next power of J, and its error.
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
    """Return the least rate s that the series proves, by bisection; infinity if it proves none.

    `ratios` are the rows of `_Series.terms`, divided by v.
    """
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
