"""Boxes that hold every trajectory in the end: intervals, zonotopes, and the tube of a cycle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.activations._enclosures import EPS
from reservoir.stability._network import TINY, Network

# a box that shrinks by less is left as it is: stopping early is harmless
_CLOSE = 1e-9
_STILL = 1e-6  # the same for zonotopes, whose steps cost more
MAX_GENERATORS = 6  # per unit; the smallest are put together


class Box(NamedTuple):
    """Bounds of the states and of the pre-activations, and of the slopes they allow."""

    low: Array
    high: Array
    z_low: Array
    z_high: Array
    least_slope: Array
    largest_slope: Array


def interval_box(network: Network, *, tol: float = _CLOSE, max_iter: int = 2000) -> Box:
    """Iterate the interval image of the activation's range, without leak, intersecting.

    Whatever the leak, every trajectory's limits inferior and superior lie in every box so computed,
    and a trajectory that starts inside stays inside (theorem C1).
    """
    enclosure, W, A = network.enclosure, network.W, network.A
    p_low, p_high = network.drive_min, network.drive_max
    centre = 0.5 * p_low + 0.5 * p_high + network.bias
    radius = 0.5 * p_high - 0.5 * p_low
    radius += network.rounding(np.maximum(np.abs(p_low), np.abs(p_high)))
    low = np.full(network.n_units, enclosure.low)
    high = np.full(network.n_units, enclosure.high)
    for _ in range(max_iter):
        z = W @ (0.5 * low + 0.5 * high) + centre
        reach = A @ (0.5 * high - 0.5 * low) + radius
        z_low, z_high = z - reach, z + reach
        below, above = enclosure.values(z_low, z_high)
        below, above = np.maximum(low, below), np.minimum(high, above)
        change = max(np.max(below - low), np.max(high - above))
        low, high = below, above
        if change < tol:
            break
    # z is that of the box before the last intersection, which holds the last one
    return _boxed(network, low, high, z_low, z_high)


def _boxed(network: Network, low: Array, high: Array, z_low: Array, z_high: Array) -> Box:
    least, largest = network.enclosure.slopes(z_low, z_high)
    return Box(low, high, z_low, z_high, least, largest)


def zonotope_box(network: Network, box: Box) -> Box:
    """Narrow a box by zonotopes, which remember how the units depend on each other.

    With one leak rate for all units the map without leak is followed: the distance to its convex
    image decays, whatever the leak. With several the leaky map itself is.
    """
    W, A, enclosure = network.W, network.A, network.enclosure
    p_low, p_high = network.drive_min, network.drive_max
    p_centre, p_radius = 0.5 * p_low + 0.5 * p_high, 0.5 * p_high - 0.5 * p_low
    p_size = np.maximum(np.abs(p_low), np.abs(p_high)) + np.abs(network.bias)
    equal = bool((network.leak == network.leak[0]).all())
    leak = np.ones_like(network.leak) if equal else network.leak
    centre, G = 0.5 * box.low + 0.5 * box.high, np.diag(0.5 * box.high - 0.5 * box.low + EPS)
    z_low, z_high = box.z_low, box.z_high
    factor = (network.row_sizes + 6) * EPS
    for k in range(int(min(40 / leak.min(), 400))):
        spread = np.abs(G).sum(axis=1)
        z, Gz = W @ centre + p_centre + network.bias, W @ G
        error = factor * (A @ (np.abs(centre) + spread) + p_size) + TINY
        own = p_radius * (1 + 4 * EPS) + error
        reach = np.abs(Gz).sum(axis=1) * (1 + (G.shape[1] + 6) * EPS) + own
        before = z_low, z_high
        z_low = np.maximum(z_low, z - reach - EPS * np.abs(z))
        z_high = np.minimum(z_high, z + reach + EPS * np.abs(z))
        slope, middle, remainder = enclosure.lines(z_low, z_high)
        # the drive and the rounding of z pass through the slope; then what the products below lose
        remainder = leak * (remainder + slope * own * (1 + 4 * EPS))
        lost = slope * (np.abs(z) + reach) + np.abs(middle) + np.abs(centre) + spread + 1.0
        remainder += 8 * EPS * lost
        kept = 1 - leak
        Gz *= (leak * slope)[:, None]
        if not equal:
            Gz += kept[:, None] * G
        centre = kept * centre + leak * (slope * z + middle)
        G = _reduced(Gz, remainder)
        if not np.isfinite(centre).all():
            return box  # nothing gained, nothing lost
        # the first steps only turn the box into a zonotope
        if k > 7 and max(np.max(z_low - before[0]), np.max(before[1] - z_high)) < _STILL:
            break
    below, above = enclosure.values(z_low, z_high)
    low, high = np.maximum(box.low, below), np.minimum(box.high, above)
    return _boxed(network, low, high, z_low, z_high)


def _reduced(G: Array, remainder: Array) -> Array:
    """Append a box to the generators; put the smallest into it where there are too many."""
    n_units, n_generators = G.shape
    room = (MAX_GENERATORS - 1) * n_units
    if n_generators > room:
        order = np.argsort(-np.abs(G).sum(axis=0), kind="stable")
        dropped = np.abs(G[:, order[room:]]).sum(axis=1)
        remainder = remainder + dropped * (1 + (n_generators + 6) * EPS)
        G = G[:, order[:room]]
    return np.hstack([G, np.diag(remainder * (1 + 4 * EPS))])


def tube(network: Network, drives: Array, *, max_periods: int = 1000) -> list[Box]:
    """Follow the box over the period of a drive, from the activation's range at its start.

    Unlike a box for all inputs it depends on the leak. Entry t bounds the state before step t and
    the pre-activation of that step.
    """
    enclosure, W, A, leak = network.enclosure, network.W, network.A, network.leak
    padding = network.rounding(np.abs(drives).max(axis=0))
    kept, n_steps = 1 - leak, len(drives)
    low = np.tile(np.full(network.n_units, enclosure.low), (n_steps + 1, 1))
    high = np.tile(np.full(network.n_units, enclosure.high), (n_steps + 1, 1))
    margin = 4 * EPS * max(abs(enclosure.low), abs(enclosure.high)) + TINY
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
    return [_boxed(network, low[t], high[t], z_low[t], z_high[t]) for t in range(n_steps)]
