"""A cell as one layer that a regression can fit: targets for states become pre-activations.

Layer-wise least squares needs states of the form ``h = (1 - a) h_prev + a f(z)`` with ``z = g W
h_prev + W_in x + bias`` and an f that can be inverted. Simple and leaky cells are of that form.
Gated cells are when their gates do not move, that is with gate weights 0:

- GRU, ``h = (1 - z) candidate + z h_prev``, with reset bias +6 and update bias -6: a leaky cell
  with ``a = g = logistic(6)`` = .9975, exactly.
- LSTM, ``h = o tanh(f c_prev + i tanh(z))``, with input and output bias +6 and forget bias -6:
  ``f(z) = o tanh(i tanh(z))``, up to the forget gate's .0025.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array
from reservoir.activations import ACTIVATIONS
from reservoir.training.cells import Cell, GRUCell, LSTMCell, SimpleCell
from reservoir.training.params import Params

GATE_BIAS = 6.0
OPEN = float(1 / (1 + np.exp(-GATE_BIAS)))
# middle and half width of the range of f
_RANGES = {"tanh": (0.0, 1.0), "logistic": (0.5, 0.5), "identity": (0.0, np.inf)}


@dataclass(frozen=True, eq=False)
class Layer:
    """What the regression for the recurrent weights needs to know about a cell.

    Parameters
    ----------
    rows : slice
        Where the fitted block stands in W_in, W and bias.
    inverse : callable
        f^-1, elementwise.
    centre, radius : float
        Middle and half width of the range of f.
    leak : array of shape (n_units,) or None
        None without a leak.
    gain : float
        Factor on ``W h_prev``.
    """

    rows: slice
    inverse: Callable[[Array], Array]
    centre: float
    radius: float
    leak: Array | None = None
    gain: float = 1.0

    def values(self, after: Array, before: Array) -> Array:
        """Return f(z) of states and those before them."""
        return after if self.leak is None else (after - (1 - self.leak) * before) / self.leak


def layer_of(cell: Cell) -> Layer | None:
    """Return the cell as a layer; None if it has no such form."""
    n = cell.n_units
    if isinstance(cell, SimpleCell) and cell.activation in _RANGES:
        inverse = ACTIVATIONS[cell.activation].inverse
        assert inverse is not None
        return Layer(slice(0, n), inverse, *_RANGES[cell.activation], leak=cell.leaks())
    if isinstance(cell, GRUCell):
        rows = slice(2 * n, 3 * n)
        return Layer(rows, np.arctanh, 0.0, 1.0, leak=np.full(n, OPEN), gain=OPEN)
    if isinstance(cell, LSTMCell):
        return Layer(slice(2 * n, 3 * n), _invert_open_lstm, 0.0, OPEN * float(np.tanh(OPEN)))
    return None


def _invert_open_lstm(h: Array) -> Array:
    return np.arctanh(np.arctanh(h / OPEN) / OPEN)


def gates_stand_open(cell: Cell, params: Params) -> bool:
    """Return whether the cell is, with these weights, the layer of `layer_of`."""
    opened = open_gates(cell, params)
    return all(np.array_equal(opened[name], params[name]) for name in params)


def open_gates(cell: Cell, params: Params) -> Params:
    """Return weights with gates that stand open; those of other cells unchanged."""
    n = cell.n_units
    biases: tuple[float | None, ...]
    if isinstance(cell, GRUCell):
        biases = (GATE_BIAS, -GATE_BIAS, None)
    elif isinstance(cell, LSTMCell):
        biases = (GATE_BIAS, -GATE_BIAS, None, GATE_BIAS)
    else:
        return params
    opened = {name: array.copy() for name, array in params.items()}
    for gate, bias in enumerate(biases):
        if bias is not None:
            rows = slice(gate * n, (gate + 1) * n)
            opened["W_in"][rows], opened["W"][rows], opened["bias"][rows] = 0.0, 0.0, bias
    if isinstance(cell, GRUCell):
        # one bias is enough: with an open gate they add up
        opened["bias"][2 * n :] += OPEN * opened["bias_recurrent"]
        opened["bias_recurrent"][:] = 0.0
    elif "peephole" in opened:
        opened["peephole"][:] = 0.0
    return opened
