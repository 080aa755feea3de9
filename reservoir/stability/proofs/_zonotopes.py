"""Boxes narrowed by zonotopes, which preserve the dependence between units.

A zonotope is the set of all ``centre + G s`` with every ``|s_k| <= 1``; the columns of G are its
generators. A box loses the information that two units move together; a zonotope keeps it.
"""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import TINY
from reservoir.stability.proofs._boxes import Box, boxed
from reservoir.stability.proofs._interval_network import IntervalNetwork

_STILL = 1e-6  # the iteration stops once no bound narrows by more; bounds are valid at every step
_GENERATORS = 6  # at most so many per unit: the smallest are replaced by a box around them
_FEWEST_STEPS = 8  # the first steps narrow nothing: they turn the box into a zonotope
_PERIODS = 10  # at most so many periods of a drive are followed
_SETTLED = 1e-4  # used instead of _STILL if steps are counted


class _Zonotope:
    """A zonotope that contains the state of a network, advanced step by step.

    Each step adds a box of generators for the nonlinear remainder and all rounding errors.
    """

    def __init__(self, network: IntervalNetwork, low: Array, high: Array, leak: Array) -> None:
        self.network, self.leak = network, leak
        self.centre = 0.5 * low + 0.5 * high
        self.G = np.diag(0.5 * high - 0.5 * low + EPS * (np.abs(low) + np.abs(high)))
        self.factor = (network.row_sizes + 6) * EPS

    def step(
        self,
        z_low: Array,
        z_high: Array,
        drive: Array,
        radius: Array,
        shared: Array,
        late: Array | float = 0.0,
    ) -> tuple[Array, Array]:
        """Advance by one step, and return bounds of the pre-activations z in it.

        The result is intersected with known bounds of z. `drive` is its centre, `radius` the
        largest deviation of each unit's drive, independently of the others, and `shared`, (n_units,
        n_generators), generators that the units share. `late` is the largest distance of the state
        from the zonotope after the step. All others are (n_units,).
        """
        # Bounds of z: the image of the zonotope under W, plus drive, bias and rounding.
        net, leak = self.network, self.leak
        spread = np.abs(self.G).sum(axis=1)
        z = net.W @ self.centre + drive + net.bias
        size = np.abs(drive) + np.abs(shared).sum(axis=1) + np.abs(net.bias)
        error = self.factor * (net.A @ (np.abs(self.centre) + spread) + size) + TINY
        separate = radius * (1 + 4 * EPS) + error
        Gz = np.hstack([net.W @ self.G, shared])
        reach = np.abs(Gz).sum(axis=1) * (1 + (Gz.shape[1] + 6) * EPS) + separate
        z_low = np.maximum(z_low, z - reach - EPS * np.abs(z))
        z_high = np.minimum(z_high, z + reach + EPS * np.abs(z))
        # Between these bounds the activation is slope z + middle, up to a remainder.
        slope, middle, remainder = net.enclosure.lines(z_low, z_high)
        # Add to the remainder each unit's separate drive and the rounding, here and below.
        remainder = leak * (remainder + slope * separate * (1 + 4 * EPS))
        lost = slope * (np.abs(z) + reach) + np.abs(middle) + np.abs(self.centre) + spread + 1.0
        remainder += 8 * EPS * lost + late
        # The zonotope after the step.
        kept = 1 - leak
        Gz *= (leak * slope)[:, None]
        if kept.any():
            Gz[:, : self.G.shape[1]] += kept[:, None] * self.G
        self.centre = kept * self.centre + leak * (slope * z + middle)
        self.G = _reduced(Gz, remainder)
        return z_low, z_high

    @property
    def is_finite(self) -> bool:
        """Whether nothing has overflowed."""
        return bool(np.isfinite(self.centre).all() and np.isfinite(self.G).all())


def _reduced(G: Array, remainder: Array) -> Array:
    """Append a box to the generators; if there are too many, it replaces the smallest of them."""
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
    """Narrow the box that `interval_box` returns for all inputs in a range.

    With equal leak rates the zonotope follows the map without leak: its image is convex, and the
    distance of the leaky trajectory to it decays. `inputs` is the set of drives, as from
    `shared_inputs`; without it each unit's drive may vary independently. Every trajectory comes
    arbitrarily close to the returned box, but one that starts inside may leave it for a while; it
    is the given box if the zonotope grows beyond all bounds.
    """
    leak = np.ones_like(network.leak) if _is_equal(network.leak) else network.leak
    return _followed(network, box, inputs, leak)[0]


def timed_zonotope_box(
    network: IntervalNetwork, box: Box, inputs: tuple[Array, Array] | None, rest: float
) -> tuple[Box, int]:
    """Return a narrower box for trajectories that stay in the given box, and the steps to enter it.

    With equal leak rates below 1 the zonotope follows the map without leak. All values f(z) are in
    its image, which is convex; after m steps, the least with ``(1 - a)^m <= rest``, the state's
    distance from it is at most (1 - a)^m times the box's width, which is added before the next
    image is computed. The number of steps is 0 if the zonotope grows beyond all bounds.
    """
    leak, m = network.leak, 1
    late = np.zeros(network.n_units)
    if _is_equal(leak) and leak[0] < 1:
        m = int(np.ceil(np.log(rest) / np.log1p(-leak[0]))) + 1
        late = rest * (box.high - box.low) * (1 + 4 * EPS)
        leak = np.ones_like(leak)
    narrow, n_images = _followed(network, box, inputs, leak, late=late, still=_SETTLED)
    return narrow, m * n_images


def _is_equal(leak: Array) -> bool:
    return bool((leak == leak[0]).all())


def _followed(
    network: IntervalNetwork,
    box: Box,
    inputs: tuple[Array, Array] | None,
    leak: Array,
    *,
    late: Array | float = 0.0,
    still: float = _STILL,
) -> tuple[Box, int]:
    """Return the box narrowed by a zonotope that starts as that box, and the number of images."""
    # The drive: shared generators, or a radius for each unit.
    p_low, p_high = network.drive_min, network.drive_max
    if inputs is None:
        drive, radius = 0.5 * p_low + 0.5 * p_high, 0.5 * p_high - 0.5 * p_low
        shared = np.zeros((network.n_units, 0))
        radius = radius + 2 * EPS * (np.abs(p_low) + np.abs(p_high))
    else:
        (drive, shared), radius = inputs, np.zeros(network.n_units)
    # Follow the zonotope until it narrows no more.
    zonotope = _Zonotope(network, box.low, box.high, leak)
    z_low, z_high = box.z_low, box.z_high
    n_images = 0
    for k in range(int(40 / max(leak.min(), 0.1))):
        before = z_low, z_high
        z_low, z_high = zonotope.step(z_low, z_high, drive, radius, shared, late)
        if not zonotope.is_finite:
            return box, 0
        n_images = k + 1
        gain = max(np.max(z_low - before[0]), np.max(before[1] - z_high))
        if k >= _FEWEST_STEPS and gain < still:
            break
    # Bounds of z are bounds of the states, too.
    below, above = network.enclosure.values(z_low, z_high)
    low, high = np.maximum(box.low, below), np.minimum(box.high, above)
    return boxed(network, low, high, z_low, z_high), n_images


def zonotope_tube(
    network: IntervalNetwork, boxes: list[Box], drives: Array, error: Array
) -> list[Box]:
    """Narrow the pre-activations and slopes of the boxes of `tube`, given its `drives` and `error`.

    The bounds of the states are unchanged.
    """
    return timed_zonotope_tube(network, boxes, drives, error)[0]


def timed_zonotope_tube(
    network: IntervalNetwork, boxes: list[Box], drives: Array, error: Array
) -> tuple[list[Box], int]:
    """Return the boxes of `zonotope_tube`, and the number of periods to enter them from `boxes`."""
    zonotope = _Zonotope(network, boxes[0].low, boxes[0].high, network.leak)
    none = np.zeros((network.n_units, 0))
    bounds = [(box.z_low, box.z_high) for box in boxes]
    n_periods = 0
    for k in range(_PERIODS):
        gain = 0.0
        for t, drive in enumerate(drives):
            before = bounds[t]
            bounds[t] = zonotope.step(*before, drive, error, none)
            change = np.max(bounds[t][0] - before[0]), np.max(before[1] - bounds[t][1])
            gain = max(gain, *change)
        if not zonotope.is_finite:
            return boxes, 0
        n_periods = k + 1
        if (k + 1) * len(drives) >= _FEWEST_STEPS and gain < _STILL:
            break
    narrow = [
        boxed(network, box.low, box.high, *ends) for box, ends in zip(boxes, bounds, strict=True)
    ]
    return narrow, n_periods
