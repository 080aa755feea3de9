"""Rates at which differences of states shrink over one period of a drive: theorem C5.

Each step t has a separate box, from `tube`, with bounds of the slopes in it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import FLOOR, OVERFLOWS, SMALL, TINY
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._interval_network import IntervalNetwork

MAX_SERIES_UNITS = 500  # the series stores some _WINDOW^2 / 2 dense matrices for each window
_WINDOW = 8  # steps over which products of Jacobians are formed
_ITERATIONS = 60  # of the power iteration


@OVERFLOWS
def cycle_rate(network: IntervalNetwork, boxes: list[Box]) -> tuple[float, Array]:
    """Return r and v > 0 such that ``max_i |e_i| / v_i`` is multiplied by at most r in a period.

    They satisfy M_T ... M_1 v <= r v with M_t = (1 - a) I + a diag(d_t)|W|, where d_t are the
    largest slopes of step t and a the leak rates.
    """
    leak, A = network.leak, network.A
    kept = 1 - leak
    slack = (1 + (float(network.row_sizes.max()) + 10) * EPS) ** len(boxes)

    def over_period(v: Array) -> Array:
        for box in boxes:
            v = kept * v + leak * (box.largest_slope * (A @ v))
        return v

    return _best_ratio(over_period, np.ones(network.n_units), slack)


def _best_ratio(
    over_period: Callable[[Array], Array], v: Array, slack: float
) -> tuple[float, Array]:
    """Return the least r found by a power iteration, and its v > 0, with over_period(v) <= r v.

    `slack` is the factor that covers the rounding of `over_period`.
    """
    best, best_v = np.inf, v
    for _ in range(_ITERATIONS):
        u = over_period(v)
        ratio = u / v
        high, low = float(ratio.max()), float(ratio.min())
        if not np.isfinite(high):
            break
        if high < best:
            best, best_v = high, v
        if high - low <= 1e-3 * high:
            break
        v = u + 0.02 * high * v
        v = np.maximum(v / v.max(), FLOOR)
    return best * slack + SMALL, best_v


def series_cycle_rate(network: IntervalNetwork, boxes: list[Box], start: Array) -> float:
    """Return a bound of the contraction over a period by a series about the mean slopes."""
    return series_cycle_norm(network, boxes, start)[0]


@OVERFLOWS
def series_cycle_norm(
    network: IntervalNetwork, boxes: list[Box], start: Array, *, window: int = _WINDOW
) -> tuple[float, Array]:
    """Return r and v > 0 as `cycle_rate` does, by a series about the mean slopes.

    With D_c the midpoint of the slopes of a step, one of `boxes`, and D_r their largest distance
    from it, the difference e of two states becomes C_t e + q_t with C_t = (1 - a) I + a D_c W and
    ``|q_t| <= a D_r |W e|``. Within `window` steps products of the C_t are formed, which keeps the
    signs of the weights; from one window to the next only bounds of ``|e|`` are kept. `start` is
    positive.
    """
    if network.n_units > MAX_SERIES_UNITS:
        raise ValueError(
            f"The series over a cycle forms dense products: n_units={network.n_units} exceeds "
            f'{MAX_SERIES_UNITS}. Use method="max_norm".'
        )
    windows = [
        _Window(network, boxes[begin : begin + window]) for begin in range(0, len(boxes), window)
    ]

    def over_period(v: Array) -> Array:
        for window in windows:
            v = window.advance(v)
        return v

    return _best_ratio(over_period, np.maximum(start, 1e-100), 1 + 8 * EPS)


class _Window:
    """A few steps that bounds of |e| pass through; their products of C_t are formed once."""

    def __init__(self, network: IntervalNetwork, boxes: list[Box]) -> None:
        # C_t of each step as `centres`, |C_t| without cancellation as `sizes`, a D_r as `radii`.
        leak, n = network.leak, network.n_units
        W = network.W.toarray() if not isinstance(network.W, np.ndarray) else network.W
        A, identity = np.abs(W), np.eye(n)
        self.slack = 1 + (n + 8) * EPS
        unit = (n + 13) * EPS
        centres, radii, sizes = [], [], []
        for box in boxes:
            centre = 0.5 * box.least_slope + 0.5 * box.largest_slope
            radius = np.maximum(box.largest_slope - centre, centre - box.least_slope)
            centres.append((1 - leak)[:, None] * identity + (leak * centre)[:, None] * W)
            sizes.append((1 - leak)[:, None] * identity + (leak * centre)[:, None] * A)
            radii.append(leak * radius * (1 + 8 * EPS) + TINY)
        # With Q(j, t) = C_{t-1} ... C_j, which carries a difference from step j to step t:
        # reach[j][t - j] bounds |W Q(j, t)|, and ends[j] bounds |Q(j, T)|, T the window's length.
        self.reach: list[list[Array]] = []
        self.ends: list[Array] = []
        self.radii = radii
        for j in range(len(boxes) + 1):
            product, size, error = identity, identity, np.zeros((n, n))
            row = []
            for t in range(j, len(boxes)):
                row.append(self._padded(W @ product, A @ (error + unit * (size + error))))
                error = sizes[t] @ (error + unit * (size + error)) * self.slack
                product, size = centres[t] @ product, sizes[t] @ size * self.slack
            self.reach.append(row)
            self.ends.append(self._padded(product, error))

    def _padded(self, product: Array, error: Array) -> Array:
        """Return a bound of the exact product's absolute values."""
        return (np.abs(product) + error) * self.slack

    def advance(self, v: Array) -> Array:
        """Return bounds of |e| after the window from bounds v before it."""
        # Bounds of |q_t|, step by step: q_t depends on e, to which earlier q_j have contributed.
        pushes: list[Array] = []
        for t, radius in enumerate(self.radii):
            z = self.reach[0][t] @ v
            for j, push in enumerate(pushes):
                z = z + self.reach[j + 1][t - j - 1] @ push
            pushes.append(radius * z * self.slack)
        # The remaining effect of v and of each q_t at the end.
        out = self.ends[0] @ v
        for j, push in enumerate(pushes):
            out = out + self.ends[j + 1] @ push
        return out * self.slack * (1 + 2 * len(pushes) * EPS)
