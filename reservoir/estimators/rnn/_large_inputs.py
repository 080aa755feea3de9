"""Whether inputs are so large that they hold units at their bounds, or that steps are too long."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.activations import ACTIVATIONS
from reservoir.training.bptt import Network
from reservoir.training.cells import Cell
from reservoir.training.params import Params
from reservoir.training.trainer import Data

_FLAT = 3.0  # a sum beyond which tanh has a slope below .01
_MOST = 0.5  # of the sums; outliers take fewer
_LONGEST = 0.5  # what a step may move the sum of a bounded unit by
_LOOKED_AT = 1000  # rows in all, at most
_FEWEST = 10  # rows: fewer say nothing
_BY_RATE = ("adam", "nadam", "rmsprop", "adagrad")  # move each weight by about the rate
_REMEDY = "Scale X (StandardScaler in a pipeline, within PerStep for sequences)"


def rate_of(estimator: Any) -> float:
    """Return how far an update moves each weight of a network, about; 0 where none can tell."""
    return estimator.learning_rate_init if estimator.solver in _BY_RATE else 0.0


def warn_of_large_inputs(
    network: Network, params: Params, data: Data, *, rate: float = 0.0
) -> bool:
    """Say so where inputs are too large for the weights, or for the steps; return whether it was.

    Sums that are flat are beyond learning; steps that move them from one end to the other find
    nothing between.
    """
    if network.coded or not _bounded(network.cell):
        return False  # scaling is no help
    rows = _some_rows(network.cell, data)
    with np.errstate(over="ignore"):
        if len(rows) < _FEWEST or np.sqrt(np.mean(rows**2, axis=0)).max() <= _FLAT:
            return False  # of order 1
        share = _share_of_flat(network, params, rows)
        move = rate * float(np.median(np.linalg.norm(rows, axis=1)))
    if share > _MOST:
        text = (
            f"X is too large for this network: its columns alone take {share:.0%} of the units' "
            f"sums beyond {_FLAT:g}, where tanh and gates are flat and hardly learn. {_REMEDY}."
        )
    elif move > _LONGEST:
        text = (
            f"X is too large for learning_rate_init={rate:g}: an update moves the sums of units "
            f"by up to {move:.2g}, where {_LONGEST:g} is much. {_REMEDY}, or lower the rate."
        )
    else:
        return False
    warnings.warn(text, UserWarning, stacklevel=caller_level())
    return True


def _share_of_flat(network: Network, params: Params, rows: Array) -> float:
    """Return the share of sums ``W_in u + bias`` that are flat."""
    sums = [rows @ W_in.T + bias for W_in, bias in _readers(network, params)]
    return float(np.mean(np.abs(np.hstack(sums)) > _FLAT)) if sums else 0.0


def _some_rows(cell: Cell, data: Data) -> Array:
    """Draw rows of sequences; evenly spaced ones may all be of the same hour of the day."""
    rng = np.random.default_rng(0)
    some = rng.permutation(len(data))[:_LOOKED_AT]
    each = _LOOKED_AT // len(some)
    inputs = (data.inputs[i] for i in some)
    rows = [X[np.sort(rng.permutation(len(X))[:each])] for X in inputs]
    return cell.channels(np.concatenate(rows)).astype(np.float64)


def _readers(network: Network, params: Params) -> list[tuple[Array, Any]]:
    """Return the weights that read the inputs, each with the bias that may take their mean away."""
    cell, n = network.cell, network.n_features
    layer = cell.layer()
    if layer is not None:
        return [(params[layer.inputs][layer.rows], params[layer.bias][layer.rows])]
    # those with a column more where the inputs have one; it is behind those of states
    wider, found = cell.weights(n + 1), []
    for name, weight in cell.weights(n).items():
        if weight.role == "input" and weight.shape[1:] != wider[name].shape[1:]:
            found.append((params[name][:, -network.n_channels :], 0.0))
    return found


def _bounded(cell: Cell) -> bool:
    """Say whether units have bounds, as gates have; those of some activations do not."""
    parts = getattr(cell, "cells", None)
    if parts is not None:
        return all(_bounded(part) for part in parts)
    name = getattr(cell, "activation", "tanh")
    return isinstance(name, str) and name in ACTIVATIONS and ACTIVATIONS[name].bounded
