"""Boxes that every trajectory enters: one for all inputs, or one per step of a periodic drive.

A box is an interval for each unit's state. The proofs of contraction start from bounds of the
activation's slopes in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import TINY
from reservoir.stability.proofs._interval_network import IntervalNetwork

# The iterations stop once a box shrinks by less than this: every earlier box is valid, too.
_CLOSE = 1e-9


class Box(NamedTuple):
    """Bounds of states, of pre-activations and of slopes; each field has shape (n_units,).

    The pre-activations z = W x + p + b are those for states inside the box, the slopes those of the
    activation at such z.
    """

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
    """Return a box for all inputs whose drive stays between its bounds: theorem C1.

    From the activation's range on, the box is intersected with its image under one step, without
    leak, in interval arithmetic, until no bound moves by more than `tol`. For any leak, a
    trajectory from inside stays inside, and all others come arbitrarily close. An unbounded range
    gives an unbounded box, with the slopes over all states. Trajectories may add errors of up to
    `pad` to pre-activations and `margin` to values of the activation at each step, floats or
    (n_units,).
    """
    if not network.enclosure.bounded:
        ends = np.full(network.n_units, np.inf)
        reach = np.full((2, network.n_units), [[network.enclosure.low], [network.enclosure.high]])
        return boxed(network, reach[0], reach[1], -ends, ends)
    # The drive and the bias as a centre and a radius, which covers the rounding of z.
    enclosure, W, A = network.enclosure, network.W, network.A
    p_low, p_high = network.drive_min, network.drive_max
    centre = 0.5 * p_low + 0.5 * p_high + network.bias
    radius = 0.5 * p_high - 0.5 * p_low
    radius += network.rounding(np.maximum(np.abs(p_low), np.abs(p_high))) + pad
    low = np.full(network.n_units, enclosure.low) - margin
    high = np.full(network.n_units, enclosure.high) + margin
    # Image and intersection.
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
    # The bounds of z are for the box before the last intersection, which contains the final box.
    return boxed(network, low, high, z_low, z_high)


def boxed(network: IntervalNetwork, low: Array, high: Array, z_low: Array, z_high: Array) -> Box:
    """Return the box with these bounds and the resulting bounds of the slopes."""
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
    """Return a box for each step of a periodic drive: entry t bounds the state before step t.

    The boxes follow `drives`, (period, n_units), whose rounding errors are at most `error`,
    (n_units,), period after period; each is intersected with the box of the same step a period
    before. Unlike the box for all inputs they depend on the leak. Each step may add an error of up
    to `margin` to the states.
    """
    # Errors of the pre-activations, and initial boxes that contain every state.
    enclosure, W, A, leak = network.enclosure, network.W, network.A, network.leak
    padding = network.rounding(np.abs(drives).max(axis=0)) + error
    kept, n_steps = 1 - leak, len(drives)
    beyond = np.zeros(network.n_units) + margin / leak  # the sum of such errors over all steps
    low = np.tile(enclosure.low - beyond, (n_steps + 1, 1))
    high = np.tile(enclosure.high + beyond, (n_steps + 1, 1))
    margin = margin + 4 * EPS * max(abs(enclosure.low), abs(enclosure.high)) + TINY
    z_low, z_high = np.empty_like(drives), np.empty_like(drives)
    # One period after another.
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
        # The box after the last step bounds the state before the first step of the next period.
        low[0], high[0] = np.maximum(low[0], low[-1]), np.minimum(high[0], high[-1])
        if change < _CLOSE:
            break
    return [boxed(network, low[t], high[t], z_low[t], z_high[t]) for t in range(n_steps)]
