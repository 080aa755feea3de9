"""Whether inputs are so large that they hold the units of a trained network at their bounds."""

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
_MOST = 0.75  # of the sums; less does little harm, nor do outliers
_LOOKED_AT = 1000  # rows in all, at most


def warn_of_large_inputs(network: Network, params: Params, data: Data) -> bool:
    """Say so where inputs drive most units to where they are flat; return whether it was said."""
    share = _share_of_flat(network, params, data)
    if share <= _MOST:
        return False
    warnings.warn(
        f"X is too large for this network: its columns alone take {share:.0%} of the units' sums "
        f"beyond {_FLAT:g}, where tanh and gates are flat and hardly learn. Scale X "
        "(StandardScaler in a pipeline).",
        UserWarning,
        stacklevel=caller_level(),
    )
    return True


def _share_of_flat(network: Network, params: Params, data: Data) -> float:
    """Return the share of sums ``W_in u + bias`` that are flat; 0 where scaling u is no help."""
    if network.coded or not _bounded(network.cell):
        return 0.0
    rows = _some_rows(network.cell, data)
    if np.sqrt(np.mean(rows**2, axis=0)).max() <= _FLAT:
        return 0.0
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
