"""Records of saturated units: how often activations are at their bounds, and what drives them.

The steps of a run that such records receive are `Steps`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.activations import get_activation
from reservoir.dynamics._many import lockstep, make_plan
from reservoir.dynamics.growth import Growth
from reservoir.dynamics.reference import leaks_of
from reservoir.dynamics.reservoir import Reservoir


class Names(NamedTuple):
    """Text for messages: functions that name input and output columns, and advice on scaling."""

    input: Callable[[int], str]
    output: Callable[[int], str]
    scale: str = "scale X (StandardScaler in a pipeline)"


class Steps(NamedTuple):
    """Consecutive steps of one run, with the inputs of the units.

    `states`, (n_rows, n_units), are those after each step; `before` is the one before the first.
    `received`, (n_rows, n_outputs), are the outputs that were fed back, or None. `leak` is the leak
    rate, a float or (n_units,), or the effective leak of each step, (n_rows, 1 or n_units), if
    steps differ in duration. `noisy` says whether noise was added to the states.
    """

    states: Array
    before: Array
    inputs: Array
    received: Array | None
    leak: Array | float
    noisy: bool

    def activations(self, rows: Array, reservoir: Reservoir) -> Array:
        """Return the activations of the units in the steps with indices `rows`."""
        states = self.states[rows]
        leak = np.asarray(self.leak, dtype=np.float64)
        if not self.noisy and leak.ndim == 0 and leak == 1:
            return states
        before = self.states[rows - 1].astype(np.float64)
        if rows[0] == 0:  # index -1 has read the last state
            before[0] = self.before
        if not self.noisy:
            return before + (states - before) / (leak[rows] if leak.ndim == 2 else leak)
        # noise is added to the states, not to the activations: compute activations from the inputs
        z = before @ reservoir.W.T + self.inputs[rows] @ reservoir.W_in.T + reservoir.bias
        if self.received is not None:
            z += self.received[rows] @ reservoir.W_fb.T  # type: ignore[union-attr]
        return get_activation(reservoir.activation).function(z)


STRIDE = 29  # rows from one sampled row to the next; a prime, as few seasons are a multiple of it
_SOME = 16  # number of sampled rows up to which the stride is shorter and no block is skipped
_BLOCK, _EVERY = 512, 8  # rows per block; to save time, one in 8 blocks is sampled
_ENOUGH = 10  # number of rows that are needed for a warning
_NEAR = 5e-4  # fraction of the distance between the bounds that counts as at a bound: |tanh| > .999
_NEAR_ALONE = 0.015  # the same fraction for activations of the bias alone
_STILL = 0.97  # fraction of the sampled rows at one bound from which a unit is stuck there
_NAMED = 0.75  # fraction of the total drive that the columns named in a warning must exceed
_MOST_NAMED = 3  # largest number of columns named in a warning
_STANDS_OUT = 4.0  # least ratio of the squared drives of the last named column and the next one
_BOUNDS = {"tanh": (-1.0, 1.0), "logistic": (0.0, 1.0)}


def rows_to_look_at(n_rows: int, n_passed: int, n_looked: int) -> Array:
    """Return which of the next rows to sample, if `n_looked` of `n_passed` rows before were."""
    if n_looked >= _SOME and n_passed // _BLOCK % _EVERY:
        return np.arange(0)
    stride = STRIDE if n_looked >= _SOME else max(1, min(STRIDE, n_rows // _ENOUGH))
    return np.arange(-n_passed % stride, n_rows, stride)


@saved
class Activity:
    """Counts of the steps at which each unit's activation was at a bound, in a sample of the steps.

    Activations are recorded instead of states, which with a small leak rate move away from zero
    slowly, and include the noise. `low` and `high`, (n_units,), count sampled steps at the bounds;
    `n_looked` of `n_rows` steps were sampled. `inputs` and `received`, (n_features,) and
    (n_outputs,), are sums of their squares over the sampled steps; 0.0 before the first step.
    """

    def __init__(self, n_units: int) -> None:
        self.n_rows = self.n_looked = 0
        self.low, self.high = np.zeros((2, n_units), dtype=np.int64)
        self.inputs: Any = 0.0
        self.received: Any = 0.0

    def add(self, reservoir: Reservoir, skip: int, steps: Steps) -> None:
        """Record a sample of the steps from index `skip` on, or of all steps if it is negative."""
        n_rows = len(steps.states) - max(skip, 0)
        if n_rows <= 0:
            return
        rows = rows_to_look_at(n_rows, self.n_rows, self.n_looked) + max(skip, 0)
        self.n_rows += n_rows
        if len(rows) == 0:
            return
        values = steps.activations(rows, reservoir)
        low, high = _at_bounds(values, get_activation(reservoir.activation).name)
        self.n_looked += len(rows)
        # not in place, because copies of the record share the arrays, which workers may not write
        self.low = self.low + low.sum(axis=0)
        self.high = self.high + high.sum(axis=0)
        self.inputs = self.inputs + _squares(steps.inputs[rows])
        if steps.received is not None:
            self.received = self.received + _squares(steps.received[rows])

    def merge(self, other: Activity) -> None:
        """Add the counts of another record to this one."""
        self.n_rows += other.n_rows
        self.n_looked += other.n_looked
        self.low, self.high = self.low + other.low, self.high + other.high
        self.inputs = self.inputs + other.inputs
        self.received = self.received + other.received

    def warn(self, reservoir: Reservoir, names: Names) -> bool:
        """Warn if most activations are at their bounds; return whether it was issued."""
        looks = self.n_looked * reservoir.n_units
        at_bounds = self.low + self.high
        if self.n_rows < _ENOUGH or 2 * at_bounds.sum() <= max(looks, 1):
            return False
        name = get_activation(reservoir.activation).name
        lower, upper = _BOUNDS[name]
        share = int(100 * at_bounds.sum() / looks)
        still = np.maximum(self.low, self.high) >= _STILL * self.n_looked
        if 2 * at_bounds[still].sum() > at_bounds.sum():
            verb, lost = "are stuck at", "Units that are stuck have no memory"
        else:
            verb, lost = (
                "flip between",
                "Such units retain little more than the sign of their input",
            )
        cause, remedy = self._cause(reservoir, names)
        warnings.warn(
            f"The units {verb} the bounds of {name}, {lower:g} and {upper:g}: {share} % of their "
            f"activations are there, driven by {cause}. {lost}. If this is not intended, {remedy}.",
            UserWarning,
            stacklevel=caller_level(),
        )
        return True

    def _cause(self, reservoir: Reservoir, names: Names) -> tuple[str, str]:
        """Return text that names the units' strongest drive, and text that advises a remedy."""
        of_inputs = _mean_squares(reservoir.W_in) * (self.inputs / self.n_looked)
        drives = {
            "inputs": of_inputs.sum(),
            "bias": np.mean(np.square(reservoir.bias, dtype=np.float64)),
            "other units": _mean_squares(reservoir.W).sum(),
        }
        of_received = np.zeros(0)
        if reservoir.W_fb is not None:
            of_received = _mean_squares(reservoir.W_fb) * (self.received / self.n_looked)
            drives["outputs"] = of_received.sum()
        strongest = max(drives, key=lambda name: drives[name])
        if strongest == "bias":
            return "the bias", "lower bias_scaling, or use a smaller bias"
        if strongest == "other units":
            return "one another", "lower spectral_radius"
        if strongest == "outputs":
            found = _named(of_received, names.output)
            scale = "scale y (TransformedTargetRegressor)"
            return f"the outputs that are fed back{found}", f"{scale}, or lower feedback_scaling"
        found = _named(of_inputs, names.input)
        return f"the inputs{found}", f"{names.scale}, or lower input_scaling"


def _named(drives: Array, name_of: Callable[[int], str]) -> str:
    """Return text that names the columns that drive the units most; empty unless a few dominate."""
    if not np.isfinite(drives).all():
        return ""
    order = np.argsort(-drives, kind="stable")
    largest, share = drives[order], np.cumsum(drives[order]) / drives.sum()
    for n in range(1, min(_MOST_NAMED, len(drives) - 1) + 1):
        if share[n - 1] > _NAMED and largest[n - 1] > _STANDS_OUT * largest[n]:
            return f", most of all {', '.join(name_of(int(column)) for column in order[:n])}"
    return ""


def _squares(rows: Array) -> Array:
    with np.errstate(over="ignore"):  # columns whose squares overflow are not named
        return np.square(rows, dtype=np.float64).sum(axis=0)


def _mean_squares(weights: Any) -> Array:
    """Return the mean over all units of the squared weights in each column."""
    squares = weights.power(2) if sp.issparse(weights) else np.square(weights)
    return np.asarray(squares.mean(axis=0), dtype=np.float64).ravel()


def _at_bounds(values: Array, activation: str) -> tuple[Array, Array]:
    """Return two masks: activations that are at the lower bound, and at the upper bound."""
    lower, upper = _BOUNDS[activation]
    near = _NEAR * (upper - lower)
    return values < lower + near, values > upper - near


def held_by_bias(reservoir: Reservoir) -> bool:
    """Return whether the bias alone drives the activation of any unit close to a bound."""
    activation = get_activation(reservoir.activation)
    if activation.name not in _BOUNDS:
        return False
    lower, upper = _BOUNDS[activation.name]
    alone = np.array(reservoir.bias, dtype=np.float64)
    activation.function(alone, out=alone)
    near = _NEAR_ALONE * (upper - lower)
    return bool(((alone < lower + near) | (alone > upper - near)).any())


#: A record of the units' activity during runs.
Record = Activity | Growth


def new_record(reservoir: Reservoir) -> Record | None:
    """Return an empty record of the units' activity; None if its bounds are unknown."""
    activation = get_activation(reservoir.activation)
    if not activation.bounded:
        return Growth()
    return Activity(reservoir.n_units) if activation.name in _BOUNDS else None


def record_of(
    reservoir: Reservoir,
    series: Sequence[Array],
    *,
    dt: Sequence[Array] | None,
    name_of: Callable[[int], str],
) -> Record | None:
    """Return a record of the units' activity in runs over series, each from the zero state."""
    record = new_record(reservoir)
    if record is None:
        return None
    plan = make_plan(reservoir, series, None, None, "numpy", name_of, dt)
    before = dict.fromkeys(range(len(series)), np.zeros(reservoir.n_units))
    for group in plan.groups:
        for i, start, states in lockstep(plan, group):
            rows = slice(start, start + len(states))
            leak = reservoir.leak_rate
            if dt is not None:
                leak = leaks_of(leak, dt[i][rows], reservoir.dtype)[0]
            record.add(reservoir, 0, Steps(states, before[i], series[i][rows], None, leak, False))
            before[i] = states[-1].copy()
    return record
