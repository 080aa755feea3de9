"""Descriptions of cells as a single layer that can be drawn as a reservoir or fitted.

Layer-wise least squares converts targets for states to targets for pre-activations. It needs states
of the form ``h = (1 - a) h_prev + a f(z)`` with ``z = g W h_prev + W_in x + bias`` and an
invertible f. Simple and leaky cells have this form. Gated cells have it if their gates are
constant, that is, if the weights of the gates are 0:

- A GRU, ``h = (1 - z) candidate + z h_prev``, with reset bias +6 and update bias -6, is exactly a
  leaky cell with ``a = g = logistic(6)`` = .9975.
- An LSTM, ``h = o tanh(f c_prev + i tanh(z))``, with input and output bias +6 and forget bias -6,
  has ``f(z) = o tanh(i tanh(z))``, up to the forget gate's .0025.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array
from reservoir.training.params import Params

GATE_BIAS = 6.0
OPEN = float(1 / (1 + np.exp(-GATE_BIAS)))


@dataclass(frozen=True, eq=False)
class Layer:
    """Description of a cell as a layer, for starts from data and for least squares.

    The weights in the layer's rows are drawn as a reservoir, and are fitted by regressions if f can
    be inverted.

    Parameters
    ----------
    rows : slice
        Rows of W_in, W and bias that belong to the layer.
    centre, radius : float
        Midpoint and half width of the range of f.
    inverse : callable or None
        The elementwise inverse of f. None: the layer cannot be fitted by a regression.
    leak : array of shape (n_units,) or None
        Leak rate a of each unit. None: there is no leak.
    gain : float
        Factor g of ``W h_prev``.
    inputs, recurrent, bias : str
        Names of the weights W_in, W and bias.
    second_bias : str or None
        Name of a second bias, which is added to ``W h_prev`` only. None: there is no such bias.

    Examples
    --------
    >>> from reservoir.training.cells import GRUCell
    >>> layer = GRUCell(5).layer()
    >>> layer.rows, layer.recurrent, layer.second_bias
    (slice(10, 15, None), 'W', 'bias_recurrent')
    """

    rows: slice
    centre: float = 0.0
    radius: float = 1.0
    inverse: Callable[[Array], Array] | None = None
    leak: Array | None = None
    gain: float = 1.0
    inputs: str = "W_in"
    recurrent: str = "W"
    bias: str = "bias"
    second_bias: str | None = None

    def values(self, after: Array, before: Array) -> Array:
        """Return f(z), given the states `after` a step and `before` it."""
        return after if self.leak is None else (after - (1 - self.leak) * before) / self.leak


def with_open_gates(
    params: Params, layer: Layer, biases: Sequence[float | None], others: Sequence[str] = ()
) -> Params:
    """Return a copy of the weights with open gates: the gated cell is then equivalent to its layer.

    `biases` has one entry per gate: its new bias, with its other weights set to 0, or None for the
    candidate, which keeps its weights. The weights named in `others` are set to 0, too.
    """
    opened = {name: array.copy() for name, array in params.items()}
    n = len(opened[layer.bias]) // len(biases)
    for gate, bias in enumerate(biases):
        if bias is not None:
            rows = slice(gate * n, (gate + 1) * n)
            opened[layer.inputs][rows], opened[layer.recurrent][rows] = 0.0, 0.0
            opened[layer.bias][rows] = bias
    if layer.second_bias is not None:  # with an open gate, only the sum of both biases matters
        opened[layer.bias][layer.rows] += layer.gain * opened[layer.second_bias]
        opened[layer.second_bias][:] = 0.0
    for name in others:
        opened[name][:] = 0.0
    return opened
