"""Where the states should be, and the regression that takes them there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator
from reservoir.training.cells import Layer
from reservoir.training.cells.cell_parts import as_rows
from reservoir.training.least_squares._iterate import Iterate, regressors
from reservoir.training.least_squares._regression import sum_rows
from reservoir.training.least_squares._task import Task, blocks, take_of
from reservoir.training.params import Params

_GAUGE = 0.7  # share of the half width that 99 % of the targets may fill
_CLIP = 0.1  # distance from the ends of the range, in half widths
_LITERAL_CLIP = 1e-3
_INVERSE_PENALTY = 0.1  # in units of the mean squared singular value of the readout
_SAMPLE = 2048  # rows from which the gauge is read

Targets = Callable[[Array], Array]  # places in the targets -> wanted pre-activations


def inverse_readout(C: Array, penalty: float) -> Array:
    """Return ``C+ = C' (C C' + m I)^-1``, m in units of the mean eigenvalue; (width, n_outputs).

    With penalty 0 it is the pseudo-inverse.
    """
    n_outputs, width = C.shape
    size = float((C**2).sum())
    if size < 1e-200:  # squares of what is left have lost their digits
        return np.zeros((width, n_outputs))
    if penalty == 0.0:
        return np.linalg.pinv(C)
    small = C @ C.T if n_outputs <= width else C.T @ C
    small[np.diag_indices(len(small))] += penalty * size / len(small)
    if n_outputs <= width:
        return np.linalg.solve(small, C).T
    return np.linalg.solve(small, C.T)


class _StateTargets:
    """``H* = H S + (Z - c - D x) C+'``, then pulled into the range of f, then f^-1."""

    def __init__(
        self,
        task: Task,
        layer: Layer,
        iterate: Iterate,
        *,
        penalty: float,
        delta: float,
        clip: float,
    ) -> None:
        self.task, self.layer, self.trace, self.clip = task, layer, iterate.trace, clip
        width = task.cell.width
        coef = iterate.params["coef"].astype(np.float64) / task.scale[:, None]
        C, self.D = coef[:, :width], coef[:, width:]
        self.offset = iterate.params["intercept"] / task.scale + C.sum(axis=1) * layer.centre
        self.back = inverse_readout(C, penalty).T
        self.stay = (1 - delta) * (np.eye(width) - C.T @ self.back)
        self.shrink = 1.0

    def values(self, places: Array) -> Array:
        """Return targets for f(z), counted from the middle of its range."""
        task, layer = self.task, self.layer
        take = take_of(task.steps(places))
        after = as_rows(self.trace.states[1:])[take] - layer.centre
        wanted = task.latent[places] - self.offset
        if task.network.include_input:
            wanted -= task.inputs[take] @ self.D.T
        target = after @ self.stay
        target += wanted @ self.back
        if layer.leak is None:
            return target
        # a change of f(z) that lasts moves the state by as much: dividing by the leak, to have it
        # at once, gained nothing (measured at .1, .3 and .7)
        before = as_rows(self.trace.states[:-1])[take] - layer.centre
        target += layer.values(after, before)
        target -= after
        return target

    def __call__(self, places: Array) -> Array:
        values = self.values(places)
        if np.isfinite(self.layer.radius):
            values *= self.shrink
            bound = (1 - self.clip) * self.layer.radius
            np.clip(values, -bound, bound, out=values)
        assert self.layer.inverse is not None  # `fitted_layer` has looked
        return self.layer.inverse(values + self.layer.centre)


def mixed_targets(task: Task, layer: Layer, iterate: Iterate, delta: float) -> Targets:
    """Targets between minimum change and minimum norm.

    ``H* = (1 - d) H + (Z - c - (1 - d) H C') C+'``: with d = 0 states move as little as the outputs
    ask for, with d = 1 they are those of least norm; between, what the readout does not see shrinks
    by d. If 99 % of the targets need more than .7 of the half width of f's range, all are made
    smaller, so that f^-1 stays far from its poles; what is left beyond .9 is cut off.
    """
    targets = _StateTargets(task, layer, iterate, penalty=_INVERSE_PENALTY, delta=delta, clip=_CLIP)
    if np.isfinite(layer.radius):
        sample = task.fit[:: max(1, len(task.fit) // _SAMPLE)]
        reach = float(np.quantile(np.abs(targets.values(sample)), 0.99))
        targets.shrink = min(1.0, _GAUGE * layer.radius / max(reach, 1e-300))
    return targets


def backward_states(task: Task, layer: Layer, iterate: Iterate) -> Targets:
    """Targets of least norm, ``C+ (Z - c)``: Bay 2017, eq. (5.1)."""
    return _StateTargets(task, layer, iterate, penalty=0.0, delta=1.0, clip=_LITERAL_CLIP)


def recurrent_gram(
    task: Task,
    iterate: Iterate,
    targets: Targets,
    prior: tuple[Array, Array] | None = None,
) -> GramAccumulator:
    """Sum the products of [x(t), h(t-1)], inputs in units of their spread, and targets.

    With `prior`, coefficients and intercept, what these leave of the targets.
    """
    width, n_channels = task.cell.width, task.network.n_channels

    def wanted(places: Array, seen: tuple[Array, Array]) -> Array:
        rows = targets(places)
        if prior is not None:
            rows -= np.hstack(seen) @ prior[0].T + prior[1]
        return rows

    rows = ((task.fit[where], take) for where, take in blocks(task.steps(task.fit)))
    seen = ((places, regressors(task, iterate.trace, take)) for places, take in rows)
    parts = ((look, wanted(places, look), task.weights(places)) for places, look in seen)
    return sum_rows(parts, n_channels + width, width)


def layer_weights(task: Task, layer: Layer, coef: Array, intercept: Array) -> Params:
    """Return regression coefficients as W_in, W and bias of the layer."""
    p = task.network.n_channels
    return {
        layer.inputs: coef[:, :p] / task.input_scale,
        layer.recurrent: coef[:, p:] / layer.gain,
        layer.bias: intercept,
    }


def layer_coef(task: Task, layer: Layer, params: Params) -> tuple[Array, Array]:
    """Return a layer's weights as regression coefficients and intercept: `layer_weights` undone."""
    W_in, W = params[layer.inputs][layer.rows], params[layer.recurrent][layer.rows]
    coef = np.hstack([W_in * task.input_scale, W * layer.gain]).astype(np.float64)
    return coef, params[layer.bias][layer.rows].astype(np.float64)


def toward(params: Params, layer: Layer, goal: Params, step: float) -> Params:
    """Move the layer's weights part of the way to a goal."""
    moved = {name: array.copy() for name, array in params.items()}
    for name, values in goal.items():
        block = moved[name][layer.rows]
        block += (step * (values - block)).astype(block.dtype)
    return moved
