"""A network whose drive is known by its bounds: what the proofs are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, Matrix
from reservoir.activations import Enclosure
from reservoir.activations.enclosures import EPS
from reservoir.stability._arguments import as_double, as_reservoir, enclosure_of, read_range
from reservoir.stability._rounding import LARGEST, TINY, is_small, row_sums

MAX_DENSE_UNITS = 3000  # dense factorisations and N x N series: 72 MB a matrix


@dataclass(frozen=True, eq=False)
class IntervalNetwork:
    """z = W x + p + b with p in [drive_min, drive_max], in double precision.

    Attributes
    ----------
    W, A : matrices of shape (n_units, n_units)
        The weights, sparse or dense as given, and their absolute values.
    drive_min, drive_max, bias, leak : arrays of shape (n_units,)
    enclosure : Enclosure
    """

    W: Matrix
    A: Matrix
    drive_min: Array
    drive_max: Array
    bias: Array
    leak: Array
    enclosure: Enclosure

    @property
    def n_units(self) -> int:
        """Number of units N."""
        return self.W.shape[0]

    @property
    def row_sizes(self) -> Array:
        """Return the number of terms in each row's sum."""
        if sp.issparse(self.W):
            return np.diff(self.W.indptr).astype(float)
        return np.full(self.n_units, float(self.n_units))

    def rounding(self, drive_size: Array) -> Array:
        """Return what rounding may do to z: any order of summation, centre and radius apart.

        The sums have n_i terms and a few more for the centre, the radius and the drive; each
        contributes a relative 2^-53 of at most the sum of the moduli, so that the factor 2^-52
        leaves a margin of two.
        """
        reach = max(abs(self.enclosure.low), abs(self.enclosure.high), 1.0)
        sizes = reach * row_sums(self.A) + drive_size + np.abs(self.bias)
        return (self.row_sizes + 6) * EPS * sizes + TINY

    def biased(self, bias: Array) -> IntervalNetwork:
        """Return the network with another bias."""
        return IntervalNetwork(
            self.W, self.A, self.drive_min, self.drive_max, bias, self.leak, self.enclosure
        )


def read_network(model: Any, drive_min: ArrayLike, drive_max: ArrayLike) -> IntervalNetwork:
    """Check a reservoir and the range of its drive, and return them in double precision."""
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
        enclosure_of(reservoir.activation),
    )


def is_manageable(network: IntervalNetwork) -> bool:
    """Whether weights, drive and bias are far from where sums and products overflow."""
    vectors = network.drive_min, network.drive_max, network.bias
    return is_small(network.A) and all((np.abs(v) < LARGEST).all() for v in vectors)
