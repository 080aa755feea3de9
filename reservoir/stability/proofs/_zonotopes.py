"""Boxes narrowed by zonotopes, which remember how the units depend on each other.

A zonotope is a centre and a matrix G of generators: all centre + G s with every |s_k| <= 1.
"""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import TINY
from reservoir.stability.proofs._boxes import Box, boxed
from reservoir.stability.proofs._interval_network import IntervalNetwork

_STILL = 1e-6  # bounds that narrow by less are left as they are: stopping early is harmless
_GENERATORS = 6  # per unit; the smallest are put together
_FEWEST_STEPS = 8  # the first ones only turn a box into a zonotope
_PERIODS = 10


class _Zonotope:
    """States that are followed through the network, rounding put into the remainder."""

    def __init__(self, network: IntervalNetwork, low: Array, high: Array, leak: Array) -> None:
        self.network, self.leak = network, leak
        self.centre = 0.5 * low + 0.5 * high
        self.G = np.diag(0.5 * high - 0.5 * low + EPS * (np.abs(low) + np.abs(high)))
        self.factor = (network.row_sizes + 6) * EPS

    def step(
        self, z_low: Array, z_high: Array, drive: Array, radius: Array, shared: Array
    ) -> tuple[Array, Array]:
        """Advance by one step; return bounds of z, intersected with those that are known.

        The drive is its centre, a radius for each unit alone, and generators that units share.
        """
        net, leak = self.network, self.leak
        spread = np.abs(self.G).sum(axis=1)
        z = net.W @ self.centre + drive + net.bias
        size = np.abs(drive) + np.abs(shared).sum(axis=1) + np.abs(net.bias)
        error = self.factor * (net.A @ (np.abs(self.centre) + spread) + size) + TINY
        own = radius * (1 + 4 * EPS) + error
        Gz = np.hstack([net.W @ self.G, shared])
        reach = np.abs(Gz).sum(axis=1) * (1 + (Gz.shape[1] + 6) * EPS) + own
        z_low = np.maximum(z_low, z - reach - EPS * np.abs(z))
        z_high = np.minimum(z_high, z + reach + EPS * np.abs(z))
        slope, middle, remainder = net.enclosure.lines(z_low, z_high)
        # the drive and the rounding of z pass through the slope; then what the products below lose
        remainder = leak * (remainder + slope * own * (1 + 4 * EPS))
        lost = slope * (np.abs(z) + reach) + np.abs(middle) + np.abs(self.centre) + spread + 1.0
        remainder += 8 * EPS * lost
        kept = 1 - leak
        Gz *= (leak * slope)[:, None]
        if kept.any():
            Gz[:, : self.G.shape[1]] += kept[:, None] * self.G
        self.centre = kept * self.centre + leak * (slope * z + middle)
        self.G = _reduced(Gz, remainder)
        return z_low, z_high

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.centre).all() and np.isfinite(self.G).all())


def _reduced(G: Array, remainder: Array) -> Array:
    """Append a box to the generators; put the smallest into it where there are too many."""
    n_units, n_generators = G.shape
    room = (_GENERATORS - 1) * n_units
    if n_generators > room:
        order = np.argsort(-np.abs(G).sum(axis=0), kind="stable")
        dropped = np.abs(G[:, order[room:]]).sum(axis=1)
        remainder = remainder + dropped * (1 + (n_generators + 6) * EPS)
        G = G[:, order[:room]]
    return np.hstack([G, np.diag(remainder * (1 + 4 * EPS))])


def zonotope_box(
    network: IntervalNetwork, box: Box, inputs: tuple[Array, Array] | None = None
) -> Box:
    """Narrow a box that holds for all inputs.

    With one leak rate for all units the map without leak is followed: the distance to its convex
    image decays, whatever the leak. With several the leaky map itself is. `inputs` is the centre of
    the drive and the generators that the units share; without it each unit's drive is its own.
    """
    p_low, p_high = network.drive_min, network.drive_max
    if inputs is None:
        drive, radius = 0.5 * p_low + 0.5 * p_high, 0.5 * p_high - 0.5 * p_low
        shared = np.zeros((network.n_units, 0))
        radius = radius + 2 * EPS * (np.abs(p_low) + np.abs(p_high))
    else:
        (drive, shared), radius = inputs, np.zeros(network.n_units)
    equal = bool((network.leak == network.leak[0]).all())
    leak = np.ones_like(network.leak) if equal else network.leak
    zonotope = _Zonotope(network, box.low, box.high, leak)
    z_low, z_high = box.z_low, box.z_high
    for k in range(int(40 / max(leak.min(), 0.1))):
        before = z_low, z_high
        z_low, z_high = zonotope.step(z_low, z_high, drive, radius, shared)
        if not zonotope.is_finite:
            return box  # nothing gained, nothing lost
        gain = max(np.max(z_low - before[0]), np.max(before[1] - z_high))
        if k >= _FEWEST_STEPS and gain < _STILL:
            break
    below, above = network.enclosure.values(z_low, z_high)
    low, high = np.maximum(box.low, below), np.minimum(box.high, above)
    return boxed(network, low, high, z_low, z_high)


def zonotope_tube(
    network: IntervalNetwork, boxes: list[Box], drives: Array, error: Array
) -> list[Box]:
    """Narrow the boxes over the period of a given drive; only z and the slopes are narrowed."""
    zonotope = _Zonotope(network, boxes[0].low, boxes[0].high, network.leak)
    none = np.zeros((network.n_units, 0))
    bounds = [(box.z_low, box.z_high) for box in boxes]
    for k in range(_PERIODS):
        gain = 0.0
        for t, drive in enumerate(drives):
            before = bounds[t]
            bounds[t] = zonotope.step(*before, drive, error, none)
            change = np.max(bounds[t][0] - before[0]), np.max(before[1] - bounds[t][1])
            gain = max(gain, *change)
        if not zonotope.is_finite:
            return boxes
        if (k + 1) * len(drives) >= _FEWEST_STEPS and gain < _STILL:
            break
    return [
        boxed(network, box.low, box.high, *ends) for box, ends in zip(boxes, bounds, strict=True)
    ]
