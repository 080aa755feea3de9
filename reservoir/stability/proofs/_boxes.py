"""Boxes that hold every trajectory in the end: for all inputs, and over the period of one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import TINY
from reservoir.stability.proofs._interval_network import IntervalNetwork

# a box that shrinks by less is left as it is: stopping early is harmless
_CLOSE = 1e-9


class Box(NamedTuple):
    """Bounds of the states and of the pre-activations, and of the slopes they allow."""

    low: Array
    high: Array
    z_low: Array
    z_high: Array
    least_slope: Array
    largest_slope: Array


def interval_box(
    network: IntervalNetwork,
    *,
    tol: float = _CLOSE,
    max_iter: int = 2000,
    pad: Array | float = 0.0,
    margin: Array | float = 0.0,
) -> Box:
    """Iterate the interval image of the activation's range, without leak, intersecting.

    Whatever the leak, every trajectory's limits inferior and superior lie in every box so computed,
    and a trajectory that starts inside stays inside (theorem C1). With errors up to `pad` of what
    the units receive, and up to `margin` of the activation's values, the same is true of them.
    """
    enclosure, W, A = network.enclosure, network.W, network.A
    p_low, p_high = network.drive_min, network.drive_max
    centre = 0.5 * p_low + 0.5 * p_high + network.bias
    radius = 0.5 * p_high - 0.5 * p_low
    radius += network.rounding(np.maximum(np.abs(p_low), np.abs(p_high))) + pad
    low = np.full(network.n_units, enclosure.low) - margin
    high = np.full(network.n_units, enclosure.high) + margin
    for _ in range(max_iter):
        z = W @ (0.5 * low + 0.5 * high) + centre
        reach = A @ (0.5 * high - 0.5 * low) + radius
        z_low, z_high = z - reach, z + reach
        below, above = enclosure.values(z_low, z_high)
        below, above = np.maximum(low, below - margin), np.minimum(high, above + margin)
        change = max(np.max(below - low), np.max(high - above))
        low, high = below, above
        if change < tol:
            break
    # z is that of the box before the last intersection, which holds the last one
    return boxed(network, low, high, z_low, z_high)


def boxed(network: IntervalNetwork, low: Array, high: Array, z_low: Array, z_high: Array) -> Box:
    least, largest = network.enclosure.slopes(z_low, z_high)
    return Box(low, high, z_low, z_high, least, largest)


def tube(
    network: IntervalNetwork,
    drives: Array,
    error: Array,
    *,
    max_periods: int = 1000,
    margin: Array | float = 0.0,
) -> list[Box]:
    """Follow the box over the period of a drive, from the activation's range at its start.

    The drive is known up to an error, from the product that made it; states may be off by `margin`
    after each step. Unlike a box for all inputs the boxes depend on the leak. Entry t bounds the
    state before step t, and z in that step.
    """
    enclosure, W, A, leak = network.enclosure, network.W, network.A, network.leak
    padding = network.rounding(np.abs(drives).max(axis=0)) + error
    kept, n_steps = 1 - leak, len(drives)
    beyond = np.zeros(network.n_units) + margin / leak  # where such errors add up to
    low = np.tile(enclosure.low - beyond, (n_steps + 1, 1))
    high = np.tile(enclosure.high + beyond, (n_steps + 1, 1))
    margin = margin + 4 * EPS * max(abs(enclosure.low), abs(enclosure.high)) + TINY
    z_low, z_high = np.empty_like(drives), np.empty_like(drives)
    for _ in range(max_periods):
        change = 0.0
        for t, drive in enumerate(drives):
            z = W @ (0.5 * low[t] + 0.5 * high[t]) + (drive + network.bias)
            reach = A @ (0.5 * high[t] - 0.5 * low[t]) + padding
            z_low[t], z_high[t] = z - reach, z + reach
            below, above = enclosure.values(z_low[t], z_high[t])
            below = np.maximum(low[t + 1], kept * low[t] + leak * below - margin)
            above = np.minimum(high[t + 1], kept * high[t] + leak * above + margin)
            change = max(change, np.max(below - low[t + 1]), np.max(high[t + 1] - above))
            low[t + 1], high[t + 1] = below, above
        # one period on, the box after the last step is that before the first
        low[0], high[0] = np.maximum(low[0], low[-1]), np.minimum(high[0], high[-1])
        if change < _CLOSE:
            break
    return [boxed(network, low[t], high[t], z_low[t], z_high[t]) for t in range(n_steps)]
