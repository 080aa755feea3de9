"""Whether the units of a reservoir move at all."""

from __future__ import annotations

import warnings

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.activations import get_activation
from reservoir.dynamics import Reservoir

_EVERY = 8  # of a block's rows one in eight is looked at: what stands still does so in all of them
_MANY = 64  # rows; of fewer, all are
_ENOUGH = 10  # rows that must have been seen before anything is said
_NEAR = 0.01  # of the distance between the bounds: closer to one of them is at it
_BOUNDS = {"tanh": (-1.0, 1.0), "logistic": (0.0, 1.0)}


class Extent:
    """Between which states each unit was, over the rows that were looked at.

    Attributes
    ----------
    bounds : array of shape (2, n_units)
        The least and the largest state.
    n_rows : int
    """

    def __init__(self, bounds: Array, n_rows: int = 0) -> None:
        self.bounds, self.n_rows = bounds, n_rows

    @classmethod
    def of_nothing(cls, n_units: int) -> Extent:
        """Return the extent of no rows."""
        return cls(np.repeat([[np.inf], [-np.inf]], n_units, axis=1))

    def add(self, states: Array) -> None:
        """Look at a block of states, (n_rows, n_units)."""
        if len(states):
            rows = states[::_EVERY] if len(states) >= _MANY else states
            self.merge(Extent(np.array([rows.min(axis=0), rows.max(axis=0)]), len(rows)))

    def merge(self, other: Extent) -> None:
        """Add what another one has seen."""
        least = np.minimum(self.bounds[0], other.bounds[0])
        self.bounds = np.array([least, np.maximum(self.bounds[1], other.bounds[1])])
        self.n_rows += other.n_rows


def n_saturated(extent: Extent, activation: str) -> int:
    """Return how many units of a bounded activation have stood at one of its bounds throughout."""
    if activation not in _BOUNDS:
        return 0
    lower, upper = _BOUNDS[activation]
    near = _NEAR * (upper - lower)
    low, high = extent.bounds
    return int(((high < lower + near) | (low > upper - near)).sum())


def warn_of_saturation(extent: Extent, reservoir: Reservoir) -> bool:
    """Say so where most units stand still at their bounds; return whether it was said.

    A network with ``bias="stable"`` saturates by design and is not asked.
    """
    name = get_activation(reservoir.activation).name
    n_units = reservoir.n_units
    if extent.n_rows < _ENOUGH or 2 * (still := n_saturated(extent, name)) <= n_units:
        return False
    lower, upper = _BOUNDS[name]
    fed = ", and y or feedback_scaling likewise" if reservoir.n_outputs else ""
    warnings.warn(
        f"{still} of {n_units} units stand still at the bounds of {name}, {lower:g} and {upper:g}: "
        "the inputs drive them there, and what does not move remembers nothing. Scale X "
        "(StandardScaler in a pipeline), or lower input_scaling" + fed + ".",
        UserWarning,
        stacklevel=caller_level(),
    )
    return True
