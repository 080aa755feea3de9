"""Parameters of the estimator of a network that comes from elsewhere, such as from torch."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from reservoir.training.bptt import Network
from reservoir.training.cells import CELLS, Cell, TimedLeakyCell
from reservoir.training.params import Params


def params_of_network(network: Network, weights: Params) -> dict[str, Any]:
    """Return the parameters of an estimator whose network is this one, for further training."""
    cell = network.cell
    timed = isinstance(cell, TimedLeakyCell)
    found = {
        "n_units": cell.n_units,
        "cell": "leaky" if timed else _name_of(cell),
        "activation": getattr(cell, "activation", "tanh"),
        "include_input": network.include_input,
        "warm_start": True,
        "dtype": str(weights["coef"].dtype),
    }
    if timed or found["cell"] == "leaky":
        rate = cell.leak_rate  # type: ignore[attr-defined]
        found["leak_rate"] = np.array(rate) if isinstance(rate, tuple) else rate
    if timed:
        found |= {"time_column": cell.place, "time_step": 1.0}  # type: ignore[attr-defined]
    return found


def _name_of(cell: Cell) -> Any:
    """Return the name of a cell, whatever its activation; the cell itself if it has no name."""
    options = {
        "activation": getattr(cell, "activation", "tanh"),
        "leak_rate": getattr(cell, "leak_rate", 1.0),
    }
    for name, make in CELLS.items():
        taken = {key: options[key] for key in options if key in signature(make).parameters}
        if make(cell.n_units, **taken) == cell:
            return name
    return cell
