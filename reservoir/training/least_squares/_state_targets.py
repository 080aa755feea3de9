"""Targets for the states, and the regression of the recurrent layer on them."""

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

_GAUGE = 0.7  # 99 % of the targets must be within this share of the half width of f's range
_CLIP = 0.1  # distance from the bounds of the range, in half widths
_LITERAL_CLIP = 1e-3
_INVERSE_PENALTY = 0.1  # in units of the mean squared singular value of the readout
_SAMPLE = 2048  # number of rows from which the 99 % quantile is computed

Targets = Callable[[Array], Array]  # maps indices of targets to target pre-activations


def inverse_readout(C: Array, penalty: float) -> Array:
    """Return the regularised inverse ``C+ = C' (C C' + m I)^-1`` of shape (width, n_outputs).

    m is `penalty` times the mean eigenvalue. With penalty 0, this is the pseudo-inverse.
    """
    n_outputs, width = C.shape
    size = float((C**2).sum())
    if size < 1e-200:  # the squares have lost precision by underflow
        return np.zeros((width, n_outputs))
    if penalty == 0.0:
        return np.linalg.pinv(C)
    small = C @ C.T if n_outputs <= width else C.T @ C
    small[np.diag_indices(len(small))] += penalty * size / len(small)
    if n_outputs <= width:
        return np.linalg.solve(small, C).T
    return np.linalg.solve(small, C.T)


class _StateTargets:
    """Target pre-activations f^-1(H*), for ``H* = H S + (Z - c - D x) C+'``, which is clipped."""

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
        """Return targets for f(z), relative to the midpoint of its range."""
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
        # a lasting change of f(z) changes the state by the same amount; to divide by the leak, so
        # that one step reaches the target state, did not help (measured at .1, .3 and .7)
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
        assert self.layer.inverse is not None  # checked by `fitted_layer`
        return self.layer.inverse(values + self.layer.centre)


def mixed_targets(task: Task, layer: Layer, iterate: Iterate, delta: float) -> Targets:
    """Return target pre-activations for states between minimum change and minimum norm.

    The target states are ``H* = (1 - d) H + (Z - c - (1 - d) H C') C+'``. With d = 0, states change
    as little as the outputs allow; with d = 1, they have least norm; in between, components without
    effect on the readout shrink by the share d. If the 99 % quantile of the targets exceeds .7 of
    the half width of f's range, all targets are scaled down, so that f^-1 stays far from its poles.
    Values beyond .9 of the half width are clipped.
    """
    targets = _StateTargets(task, layer, iterate, penalty=_INVERSE_PENALTY, delta=delta, clip=_CLIP)
    if np.isfinite(layer.radius):
        sample = task.fit[:: max(1, len(task.fit) // _SAMPLE)]
        largest = float(np.quantile(np.abs(targets.values(sample)), 0.99))
        targets.shrink = min(1.0, _GAUGE * layer.radius / max(largest, 1e-300))
    return targets


def backward_states(task: Task, layer: Layer, iterate: Iterate) -> Targets:
    """Return target pre-activations for the states of least norm, ``C+ (Z - c)`` (Bay, eq. 5.1)."""
    return _StateTargets(task, layer, iterate, penalty=0.0, delta=1.0, clip=_LITERAL_CLIP)


def recurrent_gram(
    task: Task,
    iterate: Iterate,
    targets: Targets,
    prior: tuple[Array, Array] | None = None,
) -> GramAccumulator:
    """Return the summed products of the regressors [x(t), h(t-1)] and the targets.

    The inputs are divided by their standard deviations. With `prior`, a pair of coefficients and
    intercept, the targets are replaced by the residuals of the prior regression.
    """
    width, n_channels = task.cell.width, task.network.n_channels

    def residuals(places: Array, block: tuple[Array, Array]) -> Array:
        rows = targets(places)
        if prior is not None:
            rows -= np.hstack(block) @ prior[0].T + prior[1]
        return rows

    rows = ((task.fit[where], take) for where, take in blocks(task.steps(task.fit)))
    inputs = ((places, regressors(task, iterate.trace, take)) for places, take in rows)
    parts = ((block, residuals(places, block), task.weights(places)) for places, block in inputs)
    return sum_rows(parts, n_channels + width, width)


def layer_weights(task: Task, layer: Layer, coef: Array, intercept: Array) -> Params:
    """Return the weights W_in, W and bias of the layer, given regression coefficients."""
    p = task.network.n_channels
    return {
        layer.inputs: coef[:, :p] / task.input_scale,
        layer.recurrent: coef[:, p:] / layer.gain,
        layer.bias: intercept,
    }


def layer_coef(task: Task, layer: Layer, params: Params) -> tuple[Array, Array]:
    """Return regression coefficients, given a layer's weights; the inverse of `layer_weights`."""
    W_in, W = params[layer.inputs][layer.rows], params[layer.recurrent][layer.rows]
    coef = np.hstack([W_in * task.input_scale, W * layer.gain]).astype(np.float64)
    return coef, params[layer.bias][layer.rows].astype(np.float64)


def toward(params: Params, layer: Layer, goal: Params, step: float) -> Params:
    """Return the weights with the layer's weights moved by the share `step` towards `goal`."""
    moved = {name: array.copy() for name, array in params.items()}
    for name, values in goal.items():
        block = moved[name][layer.rows]
        block += (step * (values - block)).astype(block.dtype)
    return moved
