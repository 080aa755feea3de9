"""The loop of FORCE learning, on arrays: run, compare, correct the readout, feed back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics.closed_loop import loop_limit
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.saturation import Record
from reservoir.readouts.penalised_factor import PenalisedFactor


class Loop(NamedTuple):
    """Where a closed loop stands: its state and the output that the next step receives.

    Attributes
    ----------
    state : array of shape (state_size,)
    output : array of shape (n_outputs,)
    """

    state: Array
    output: Array


class LinearReadout(NamedTuple):
    """Coefficients, (n_outputs, n_features), and intercepts, (n_outputs,), both float64."""

    coef: Array
    intercept: Array

    @classmethod
    def of_zeros(cls, n_outputs: int, n_features: int) -> LinearReadout:
        """Return a readout that says zero."""
        return cls(np.zeros((n_outputs, n_features)), np.zeros(n_outputs))

    @classmethod
    def of_float64(cls, coef: Array, intercept: Array) -> LinearReadout:
        """Return a readout with weights of any dtype."""
        return cls(coef.astype(np.float64), intercept.astype(np.float64))

    def outputs(self, features: Array) -> Array:
        """Return the outputs of rows of features."""
        return features @ self.coef.T + self.intercept

    def plus(self, coef: Array, intercept: Array) -> LinearReadout:
        """Return the readout with something added to its weights."""
        return LinearReadout(self.coef + coef, self.intercept + intercept)

    def norm(self) -> float:
        """Return the Euclidean norm of all weights."""
        return float(np.hypot(np.linalg.norm(self.coef), np.linalg.norm(self.intercept)))


@dataclass
class ForceRun:
    """A run in which the readout is corrected.

    Attributes
    ----------
    readout : LinearReadout
        As it is after the last correction.
    loop : Loop
        Where the loop stands; afterwards, where it ended.
    outputs : array of shape (n_samples, n_outputs)
        Before the correction of each step.
    weight_norm, weight_change : arrays of shape (n_samples,)
        Of all weights after each step, and how far the step has moved them.
    marked : Loop or None
        Where the loop stood before the marked row.
    """

    readout: LinearReadout
    loop: Loop
    outputs: Array
    weight_norm: Array
    weight_change: Array
    marked: Loop | None = None

    @classmethod
    def begin(cls, readout: LinearReadout, loop: Loop, n_samples: int) -> ForceRun:
        """Return a run of so many steps that has not begun."""
        shape = (n_samples, len(loop.output))
        return cls(readout, loop, np.empty(shape), np.empty(n_samples), np.zeros(n_samples))


def force_loop(
    source: FeatureSource,
    inputs: Array,
    targets: Array,
    run: ForceRun,
    factor: PenalisedFactor,
    activity: Record | None,
    *,
    skip: int,
    updates: Array,
    feed_corrected: bool,
    mark: int,
    steps: Iterable[int],
) -> None:
    """Run on own outputs, and correct the readout in the steps of `updates`.

    What is added to the weights that the run began with is the ridge solution of what they left of
    the targets, for the rows of all corrections so far.

    Parameters
    ----------
    source : FeatureSource
        With outputs that are fed back.
    inputs : array of shape (n_samples, n_features)
    targets : array of shape (n_samples, n_outputs)
    run : ForceRun
        Written.
    factor : PenalisedFactor
        Gets the rows of the corrections.
    activity : Activity, Growth or None
        Told of what the units do, from step `skip` on.
    skip : int
    updates : bool array of shape (n_samples,)
    feed_corrected : bool
        Whether the output is said again after a correction, before it is fed back.
    mark : int
        The row before which the loop is remembered.
    steps : iterable
        The numbers of the rows, in order.
    """
    first, dtype, limit = run.readout, source.dtype, loop_limit(source.dtype)
    state, fed = run.loop.state[None], run.loop.output[None]
    size, n_held = first.norm(), source.n_past * source.n_features
    for t in steps:
        if t == mark:
            run.marked = Loop(state[0], fed[0])
        before, row = state[0], inputs[t : t + 1]
        features, state = source.advance(state, row, fed)
        if activity is not None:
            units = state[:, n_held:]
            source.watch_run(activity, skip - t, row, units, before, received=fed)
        with np.errstate(over="ignore", invalid="ignore"):
            output = run.readout.outputs(features)
        _refuse_divergence(t, limit, state, output)
        run.outputs[t] = output[0]
        if updates[t]:
            factor.add(features, targets[t : t + 1] - first.outputs(features))
            earlier, run.readout = run.readout, first.plus(*factor.coef())
            run.weight_change[t] = run.readout.plus(-earlier.coef, -earlier.intercept).norm()
            size = run.readout.norm()
            if feed_corrected:
                output = run.readout.outputs(features)
        run.weight_norm[t] = size
        _refuse_divergence(t, limit, output)
        fed = output.astype(dtype)
    run.loop = Loop(state[0], fed[0])


def _refuse_divergence(step: int, limit: float, *values: Array) -> None:
    """Refuse to go on where states or outputs have left what a closed loop may hold."""
    if not all((np.abs(part) < limit).all() for part in values):
        raise ValueError(
            f"The loop diverged at step {step} of the training: states or outputs left the range "
            f'+-{limit:.1e}. A bounded activation such as "tanh", scaled targets, a smaller '
            "feedback_scaling or a larger alpha help."
        )
