"""The network that proofs apply to: given weights, and any drive between two bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, Matrix
from reservoir.activations import Enclosure
from reservoir.activations.enclosures import EPS
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.stability._arguments import as_double, enclosure_of, read_range
from reservoir.stability._rounding import LARGEST, TINY, is_small, row_sums

MAX_DENSE_UNITS = 3000  # up to here proofs may form dense n_units x n_units matrices: 72 MB each


class Lengths(NamedTuple):
    """The lengths of a network's steps, if they differ.

    `share` is the slowest unit's leak rate at the shortest step over that at the longest.
    `together` says whether all units have the same leak rate: then every step is a weighted mean of
    the old state and the longest step, with the same weights in every unit.
    """

    share: float
    together: bool


@dataclass(frozen=True, eq=False)
class IntervalNetwork:
    """A reservoir in double precision, with an interval for each unit's drive.

    Its state x becomes (1 - a) x + a f(z), with the pre-activation z = W x + p + b, the leak rate
    a, the bias b, and a drive p = W_in u + W_fb y that may be any vector between `drive_min` and
    `drive_max`, a different one at every step.
    """

    W: Matrix
    A: Matrix  # the modulus of W
    drive_min: Array
    drive_max: Array
    bias: Array
    leak: Array  # of the longest step, if they have different `lengths`
    enclosure: Enclosure  # range of f, with bounds of f and its slope over intervals of z
    lengths: Lengths | None = None

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.W.shape[0]

    @property
    def row_sizes(self) -> Array:
        """Number of stored weights in each row of W: the terms of that unit's sum in W x."""
        if sp.issparse(self.W):
            return np.diff(self.W.indptr).astype(float)
        return np.full(self.n_units, float(self.n_units))

    def rounding(self, drive_size: Array) -> Array:
        """Return a bound of the rounding error of z, whatever the order of summation.

        z is computed over a box of states as a centre and a radius; `drive_size` bounds ``|p|``.
        The sum for unit i has as many terms as row i has weights, and six more for the centre, the
        radius, the drive and the bias. Each operation loses at most 2^-53 of the sum of the terms'
        absolute values; EPS is 2^-52, which leaves a margin of two.
        """
        reach = max(abs(self.enclosure.low), abs(self.enclosure.high), 1.0)
        sizes = reach * row_sums(self.A) + drive_size + np.abs(self.bias)
        return (self.row_sizes + 6) * EPS * sizes + TINY

    def leaky_rate(self, r: float) -> float:
        """Return the rate of the map with leak, rounded up, from the rate r of the map without.

        Below 1 the slowest unit determines it, 1 - a_min (1 - r); above 1 the fastest, with a_max.
        """
        a = self.leak.min() if r < 1 else self.leak.max()
        return float(1 - a * (1 - r)) + 4 * EPS if np.isfinite(r) else np.inf

    def biased(self, bias: Array) -> IntervalNetwork:
        """Return the same network with another bias."""
        return replace(self, bias=bias)

    def with_steps(self, shortest: float, longest: float) -> IntervalNetwork:
        """Return the network with steps of any length between two, in units of the usual step.

        In a step of length dt a unit of leak rate a covers the share 1 - (1 - a)^dt of the way.
        These rates have rounding errors, so they are rounded up for the longest step and down for
        the shortest.
        """
        # With a leak rate of 1 the decay is log1p(-1) = -inf: nothing of the old state remains.
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            decay = np.log1p(-self.leak)
            fast = np.clip(-np.expm1(longest * decay) * (1 + 32 * EPS), TINY, 1.0)
            slow = -np.expm1(shortest * decay) * (1 - 32 * EPS)
        lengths = Lengths(float(slow.min() / fast.min()), bool(np.ptp(self.leak) == 0))
        return replace(self, leak=fast, lengths=lengths)

    def rate_of_all(self, rate: float) -> float:
        """Return the rate over steps of all lengths, rounded up, from the rate of the longest step.

        The proof for the longest step must extend to the others: see `Proof.lengths`.
        """
        if self.lengths is None or not rate < 1:
            return rate
        return 1 - self.lengths.share * (1 - rate) + 4 * EPS


def read_network(
    model: Any, drive_min: ArrayLike, drive_max: ArrayLike, *, unbounded: bool = False
) -> IntervalNetwork:
    """Check a reservoir and the bounds of its drive, and return the network in double precision.

    Its activation must be bounded, unless `unbounded` is set because no box of states is needed.
    """
    reservoir = as_reservoir(model)
    n_units = reservoir.n_units
    low, high = read_range(drive_min, drive_max, n_units)
    W = as_double(reservoir.W)
    return IntervalNetwork(
        W,
        abs(W),
        low,
        high,
        reservoir.bias.astype(float),
        np.broadcast_to(np.asarray(reservoir.leak_rate, dtype=float), (n_units,)),
        enclosure_of(reservoir.activation, unbounded=unbounded),
    )


def is_manageable(network: IntervalNetwork) -> bool:
    """Whether weights, drive and bias are so small that no sum or product in a proof overflows."""
    vectors = network.drive_min, network.drive_max, network.bias
    return is_small(network.A) and all((np.abs(v) < LARGEST).all() for v in vectors)
