"""Functions shared by cells: projections, final states, gradients, runs of parts, torch names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reservoir._typing import Array
from reservoir.training.cells.cell import Cell, PartFit
from reservoir.training.codes import are_codes, indicators, mean_and_spread, places_of
from reservoir.training.params import Params

PASSED = 0.3  # size of values that tanh passes on nearly unchanged
_BATCH = 32  # sequences that are run in parallel


def project(X: Array, weights: Array, bias: Array) -> Array:
    """Return W_in x + bias for all steps, by one product with a column of ones for the bias.

    If X is a single column of codes, but W_in has several columns, the columns are looked up.
    """
    if are_codes(X, weights.shape[1]):
        rows = weights.T[places_of(X)]
        rows += bias
        return rows.reshape(*X.shape[:2], -1)
    both = np.vstack([weights.T, bias])
    return (with_ones(X) @ both).reshape(*X.shape[:2], -1)


def with_ones(*arrays: Array) -> Array:
    """Return the rows of arrays concatenated, with a column of ones appended."""
    parts = [as_rows(A) for A in arrays]
    return np.hstack([*parts, np.ones((len(parts[0]), 1), parts[0].dtype)])


def as_rows(A: Array) -> Array:
    """Return an array (n_steps, n_sequences, k) reshaped to rows, (n_steps * n_sequences, k)."""
    return A.reshape(-1, A.shape[-1])


def ends_of(X: Array, lengths: Array | None) -> Array:
    """Return the number of steps of each sequence: `lengths`, or all steps if it is None."""
    return np.full(X.shape[1], len(X)) if lengths is None else np.asarray(lengths)


def states_at(states: Array, ends: Array) -> Array:
    """Return the state of each sequence after its last step."""
    return states[ends, np.arange(states.shape[1])]


def enter(dH: Array, ends: Array, d_end: Array | None) -> None:
    """Add the gradient with respect to the final states to the one with respect to the outputs."""
    if d_end is not None:
        running = np.flatnonzero(ends > 0)
        dH[ends[running] - 1, running] += d_end[running]


def tangent_of_projection(d_params: Params, X: Array, before: Array) -> Array:
    """Return the derivative of W h + W_in x + bias along a direction in the weights; h is fixed."""
    moved = project(X, d_params["W_in"], d_params["bias"])
    moved += before @ d_params["W"].T
    return moved


def input_gradients(D: Array, X: Array, n_features: int) -> tuple[Array, Array]:
    """Return the gradients for W_in and bias, given the one for the pre-activations."""
    flat = as_rows(D)
    if are_codes(X, n_features):
        parts = (indicators(X, n_features).T @ flat).T, flat.sum(axis=0)
    else:
        whole = (with_ones(X).T @ flat).T
        parts = whole[:, :-1], whole[:, -1]
    return np.ascontiguousarray(parts[0]), np.ascontiguousarray(parts[1])


def weight_gradients(D: Array, X: Array, before: Array, n_features: int) -> Params:
    """Return the gradients for W_in, W and bias, given the one for the pre-activations."""
    flat, n, p = as_rows(D), before.shape[2], X.shape[2]
    if are_codes(X, n_features):
        W_in, bias = input_gradients(D, X, n_features)
        return {"W_in": W_in, "W": flat.T @ as_rows(before), "bias": bias}
    if flat.shape[1] == n:
        parts = flat.T @ as_rows(X), flat.T @ as_rows(before), flat.sum(axis=0)
    else:  # many gates: one transposed product is up to 1.4 times faster
        whole = (with_ones(before, X).T @ flat).T
        parts = whole[:, n : n + p], whole[:, :n], whole[:, n + p]
    return dict(zip(("W_in", "W", "bias"), map(np.ascontiguousarray, parts), strict=True))


def torch_arrays(params: Params, recurrent_bias: Array | None = None) -> Params:
    """Return weights by torch's names; torch has a second bias, which is 0 unless it is passed."""
    second = np.zeros_like(params["bias"])
    if recurrent_bias is not None:
        second[-len(recurrent_bias) :] = recurrent_bias
    return {
        "weight_ih_l0": params["W_in"],
        "weight_hh_l0": params["W"],
        "bias_ih_l0": params["bias"],
        "bias_hh_l0": second,
    }


def from_torch_arrays(arrays: Params) -> Params:
    """Return torch's weights by the names of this package, with the two biases added."""
    return {
        "W_in": arrays["weight_ih_l0"],
        "W": arrays["weight_hh_l0"],
        "bias": arrays["bias_ih_l0"] + arrays["bias_hh_l0"],
    }


def states_over(cell: Cell, params: Params, inputs: Sequence[Array]) -> list[Array]:
    """Return the states of a cell over each of several sequences, from a state of zeros."""
    order = np.argsort([len(X) for X in inputs], kind="stable")  # little padding in each batch
    states = [np.empty(0)] * len(inputs)
    for first in range(0, len(order), _BATCH):
        index = order[first : first + _BATCH].tolist()
        lengths = np.array([len(inputs[i]) for i in index])
        X = np.zeros((lengths.max(), len(index), inputs[0].shape[1]), inputs[0].dtype)
        for k, i in enumerate(index):
            X[: len(inputs[i]), k] = inputs[i]
        run = cell.forward(params, X, None, lengths).states[1:]
        for k, i in enumerate(index):
            states[i] = np.ascontiguousarray(run[: len(inputs[i]), k])
    return states


def passing_on(cell: Cell, n_below: int, n_features: int) -> Params | None:
    """Return weights of a cell that passes on its first `n_below` inputs, nearly linearly.

    None if its layer is not linear around 0, or has another number of units.
    """
    layer = cell.layer()
    if layer is None or layer.inverse is None or layer.centre or cell.n_units != n_below:
        return None
    params = {name: np.zeros(shape) for name, shape in cell.shapes(n_features).items()}
    params[layer.inputs][layer.rows, :n_below] = PASSED * np.eye(n_below)
    return cell.open_gates(params)


def drawn_weights(fit: PartFit, n_units: int, inputs: Sequence[Array]) -> tuple[Array, Array]:
    """Draw input weights, and return them with the biases that cancel the inputs' means.

    The sums over the columns of X have mean 0 and a variance of about 1.
    """
    n_features = inputs[0].shape[1]
    mean, spread = mean_and_spread(np.concatenate(inputs), n_features)
    scale = np.sqrt(n_features) * np.where(spread > 0, spread, 1.0)
    W = fit.generator.standard_normal((n_units, n_features)) / scale
    return W, -W @ mean
