"""Whether the inputs, or the bias, hold the units of a reservoir at their bounds."""

from __future__ import annotations

import warnings

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.activations import get_activation
from reservoir.dynamics.reservoir import Reservoir

_ENOUGH = 10  # steps that must have been seen before anything is said
_NEAR = 0.015  # of the distance between the bounds: a mean that is closer to one of them is at it
_BOUNDS = {"tanh": (-1.0, 1.0), "logistic": (0.0, 1.0)}


@saved
class Activity:
    """The sum of each unit's activations over the steps that were looked at.

    A bounded activation whose mean lies at a bound was there at nearly every step. Activations,
    not states: these take a long way from zero with a small leak, and carry the noise.

    Attributes
    ----------
    total : array of shape (n_units,)
    n_steps : int
    """

    def __init__(self, total: Array, n_steps: int = 0) -> None:
        self.total, self.n_steps = total, n_steps

    @classmethod
    def of_nothing(cls, n_units: int) -> Activity:
        """Return the activity of no steps."""
        return cls(np.zeros(n_units))

    def add(self, states: Array, before: Array, leak: Array | float) -> None:
        """Look at a block of states, (n_rows, n_units), and at the state before it.

        `leak` holds for all rows, or has a row for each.
        """
        if len(states) == 0:
            return
        if np.ndim(leak) == 2:
            self._add_rows(states, before, np.asarray(leak, dtype=np.float64))
            return
        # x' = (1 - a) x + a f, summed over the block: what goes on from step to step cancels
        with np.errstate(over="ignore", invalid="ignore"):  # units without bounds may be anywhere
            ends = states[-1].astype(np.float64) - before
            total = states.sum(axis=0, dtype=np.float64) + (1 - leak) / leak * ends
        self.merge(Activity(total, len(states)))

    def _add_rows(self, states: Array, before: Array, leak: Array) -> None:
        """Look at rows of which each has leaks of its own."""
        with np.errstate(over="ignore", invalid="ignore"):
            change = np.diff(states.astype(np.float64), axis=0, prepend=before[None])
            self.merge(Activity((states - change + change / leak).sum(axis=0), len(states)))

    def add_behind(self, skip: int, states: Array, before: Array, leak: Array | float) -> None:
        """Look at the rows of a block from number `skip` on, all of them if that is negative."""
        if skip > 0:
            before = states[min(skip, len(states)) - 1]
        skip = max(skip, 0)
        self.add(states[skip:], before, leak[skip:] if np.ndim(leak) == 2 else leak)  # type: ignore[index]

    def merge(self, other: Activity) -> None:
        """Add what another one has seen."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.total = self.total + other.total
        self.n_steps += other.n_steps


def at_bounds(values: Array, activation: str) -> int:
    """Return how many values of a bounded activation lie at one of its bounds."""
    if activation not in _BOUNDS:
        return 0
    lower, upper = _BOUNDS[activation]
    near = _NEAR * (upper - lower)
    return int(((values < lower + near) | (values > upper - near)).sum())


def held_by_bias(reservoir: Reservoir) -> int:
    """Return how many units the bias alone would hold at their bounds."""
    activation = get_activation(reservoir.activation)
    alone = np.array(reservoir.bias, dtype=np.float64)
    activation.function(alone, out=alone)
    return at_bounds(alone, activation.name)


def warn_of_saturation(activity: Activity, reservoir: Reservoir) -> bool:
    """Say so where most units stand still at their bounds; return whether it was said."""
    activation, n_units = get_activation(reservoir.activation), reservoir.n_units
    if activity.n_steps < _ENOUGH or activation.name not in _BOUNDS:
        return False
    still = at_bounds(activity.total / activity.n_steps, activation.name)
    if 2 * still <= n_units:
        return False
    lower, upper = _BOUNDS[activation.name]
    by, verb = "inputs", "hold"
    remedy = "Scale X (StandardScaler in a pipeline), or lower input_scaling"
    if 2 * held_by_bias(reservoir) > n_units:
        by, verb, remedy = "bias", "holds", "Lower bias_scaling, or give a smaller bias"
    fed = ", and y or feedback_scaling likewise" if reservoir.n_outputs else ""
    warnings.warn(
        f"{still} of {n_units} units stand still at the bounds of {activation.name}, {lower:g} and "
        f"{upper:g}, where the {by} {verb} them: what does not move remembers nothing. "
        f"{remedy}{fed}.",
        UserWarning,
        stacklevel=caller_level(),
    )
    return True
