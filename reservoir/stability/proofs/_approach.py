"""Boxes of all trajectories and bounds of their differences, step by step from any state."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import TINY
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._interval_network import IntervalNetwork

_REST = 1e-10  # a box that moves by less in a step, without leak, is no longer updated
_STRIDE = 0.04  # so many steps are combined that their number times the leak rate is below this


class Approach:
    """Boxes of all trajectories, and bounds of their differences, from any state, step by step.

    The arrays are (n_units, period): column t is for steps at phase t, whatever the phase of the
    start. The bounds hold for all steps from `steps` on, since a longer trajectory is also one with
    a later start: each may be intersected with earlier ones. `low`, `high` bound the states,
    `apart` the difference of two trajectories under one input; `moved` is how far the ends of the
    box moved in the last step, without leak. Other bounds are of pre-activations and slopes before
    the present step. The drive of `network` is not used.
    """

    def __init__(self, network: IntervalNetwork, drive_min: Array, drive_max: Array) -> None:
        self.network, self.steps = network, 0
        size = np.maximum(np.abs(drive_min), np.abs(drive_max)).max(axis=1)
        self._centre = 0.5 * drive_min + 0.5 * drive_max + network.bias[:, None]
        self._radius = 0.5 * drive_max - 0.5 * drive_min + network.rounding(size)[:, None]
        enclosure = network.enclosure
        self.low = np.full_like(drive_min, enclosure.low)
        self.high = np.full_like(drive_min, enclosure.high)
        width = enclosure.high - enclosure.low
        exact = enclosure.low + width == enclosure.high and enclosure.high - width == enclosure.low
        self.apart = np.full_like(drive_min, width if exact else width * (1 + 4 * EPS))
        self.z_low = np.full_like(drive_min, -np.inf)
        self.z_high = np.full_like(drive_min, np.inf)
        self.stride, self._kept, self._share = _stride(network.leak, drive_min.shape[1])
        self._margin = 4 * EPS * max(abs(enclosure.low), abs(enclosure.high)) + TINY
        self._slack = 1 + (float(network.row_sizes.max()) + 16) * EPS
        self.moved = np.inf
        self._bound_z()

    @property
    def period(self) -> int:
        """Number of steps after which the drive's intervals recur."""
        return self.low.shape[1]

    @property
    def box(self) -> Box:
        """The present box of a drive without a period."""
        fields = self.low, self.high, self.z_low, self.z_high, self.least_slope, self.largest_slope
        return Box(*(field[:, 0] for field in fields))

    @property
    def boxes(self) -> list[Box]:
        """The present boxes of all phases."""
        fields = self.low, self.high, self.z_low, self.z_high, self.least_slope, self.largest_slope
        return [Box(*columns) for columns in zip(*(field.T for field in fields), strict=True)]

    def advance(self) -> None:
        """Advance the bounds by `stride` steps; boxes that hardly move stay, and remain valid."""
        pushed = self.largest_slope * (self.network.A @ self.apart)
        apart = (self._kept * self.apart + self._share * pushed) * self._slack + TINY
        self.steps += self.stride
        if self.moved <= _REST:
            self.apart = np.minimum(self.apart, _next(apart))
            return
        below, above = self.network.enclosure.values(self.z_low, self.z_high)
        low = np.maximum(
            self.low, _next(self._kept * self.low + self._share * below - self._margin)
        )
        high = np.minimum(
            self.high, _next(self._kept * self.high + self._share * above + self._margin)
        )
        self.moved = float(
            max((low - self.low).max(), (self.high - high).max()) / self._share.min()
        )
        self.low, self.high = low, high
        self.apart = np.minimum(np.minimum(self.apart, _next(apart)), self._widths())
        self._bound_z()

    def narrow(self, z_low: Array, z_high: Array, steps: int) -> None:
        """Intersect with bounds of the pre-activations that hold `steps` steps later."""
        self.steps += steps
        self.moved = np.inf
        self.z_low = np.maximum(self.z_low, z_low)
        self.z_high = np.minimum(self.z_high, z_high)
        self._bound_z()

    def _bound_z(self) -> None:
        """Bound the pre-activations and the slopes in the present boxes."""
        net = self.network
        z = net.W @ (0.5 * self.low + 0.5 * self.high) + self._centre
        reach = net.A @ (0.5 * self.high - 0.5 * self.low) + self._radius
        self.z_low = np.maximum(self.z_low, z - reach)
        self.z_high = np.minimum(self.z_high, z + reach)
        self.least_slope, self.largest_slope = net.enclosure.slopes(self.z_low, self.z_high)

    def _widths(self) -> Array:
        return (self.high - self.low) * (1 + 4 * EPS)


def _next(columns: Array) -> Array:
    """Move the result of each phase to the next phase."""
    return np.roll(columns, 1, axis=1) if columns.shape[1] > 1 else columns


def _stride(leak: Array, period: int) -> tuple[int, Array, Array]:
    """Return a number of steps m to combine, (1 - a)^m and 1 - (1 - a)^m.

    While f(z) stays within an interval, m steps bring a unit as close to it as one step with leak
    rate 1 - (1 - a)^m, here rounded down.
    """
    a = leak[:, None]
    m = max(int(_STRIDE / a.max()), 1) if period == 1 else 1
    if m == 1:
        return 1, 1 - a, a
    share = -np.expm1(m * np.log1p(-a)) * (1 - 16 * EPS)
    return m, (1 - share) * (1 + 4 * EPS), share
