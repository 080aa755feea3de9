"""Whether inputs are so large that they hold the units of a trained network at their bounds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.activations import ACTIVATIONS
from reservoir.training.bptt import Network
from reservoir.training.params import Params
from reservoir.training.trainer import Data

_FLAT = 3.0  # a sum beyond which tanh has a slope below .01
_LOOKED_AT = 1000  # rows in all, at most


def warn_of_large_inputs(network: Network, params: Params, data: Data) -> bool:
    """Say so where inputs drive most units to where they are flat; return whether it was said."""
    driven = _drive(network, params, data)
    if driven <= _FLAT:
        return False
    warnings.warn(
        f"The inputs hold most units at their bounds: |W_in u + bias| is {driven:.3g} in the median"
        f" unit, and beyond {_FLAT:g} tanh and gates are flat. What does not move learns nothing. "
        "Scale X (StandardScaler in a pipeline).",
        UserWarning,
        stacklevel=caller_level(),
    )
    return True


def _drive(network: Network, params: Params, data: Data) -> float:
    """Return the mean size of ``W_in u + bias`` of the median unit; 0 if scaling u is no help."""
    if network.coded or not _bounded(network):
        return 0.0
    cell = network.cell
    some = data.inputs[:_LOOKED_AT]
    each = _LOOKED_AT // len(some)  # rows of each sequence, from all of its length
    parts = [cell.channels(X[:: -(-len(X) // each)]) for X in some]
    rows = np.concatenate(parts).astype(np.float64)
    if np.sqrt(np.mean(rows**2, axis=0)).max() <= _FLAT:
        return 0.0
    read = _readers(network, params)
    sums = [np.abs(rows @ W_in.T + bias).mean(axis=0) for W_in, bias in read]
    return float(np.median(np.concatenate(sums))) if sums else 0.0


def _readers(network: Network, params: Params) -> list[tuple[Array, Any]]:
    """Return the weights that read the inputs, each with the bias that may take their mean away."""
    layer = network.cell.layer()
    if layer is not None:
        return [(params[layer.inputs][layer.rows], params[layer.bias][layer.rows])]
    return [
        (params[name], 0.0)
        for name, weight in network.weights().items()
        if (weight.role, weight.shape[-1]) == ("input", network.n_channels)
    ]


def _bounded(network: Network) -> bool:
    """Say whether units have bounds, as gates have; those of an activation without do not."""
    name = getattr(network.cell, "activation", "tanh")
    enclosure = ACTIVATIONS[name].enclosure if name in ACTIVATIONS else None
    return enclosure is not None and enclosure.bounded
