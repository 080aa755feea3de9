"""Functions shared by cells whose weights are computed from data: runs of parts, random weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reservoir._typing import Array
from reservoir.training.cells.cell import Cell, PartFit
from reservoir.training.codes import mean_and_spread
from reservoir.training.params import Params

PASSED = 0.3  # size of values that tanh passes on nearly unchanged
_BATCH = 32  # sequences that are run in parallel


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
