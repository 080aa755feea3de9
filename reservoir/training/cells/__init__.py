"""Recurrent cells: the update of the state, and its back-propagation.

Arrays have time first: inputs X (n_steps, n_sequences, n_features), states (n_steps + 1,
n_sequences, n_units), the first row being the initial state. A cell does not store weights: they
are passed and returned as a dict by name. The weights of the built-in cells are ``W_in``
(g n_units, n_features), ``W`` (g n_units, n_units) and ``bias`` (g n_units,) with g gates as blocks
of rows. A cell describes its weights in `Cell.weights`; its other methods declare everything else
that the rest of the package needs (`Cell`).

Input projections and weight gradients are one matrix product each, over all steps at once; only one
product per step remains for the loop over time. Each cell is in a separate file, with its loops in
NumPy. If numba is installed and the job is large enough, the compiled loops of `reservoir._kernels`
are used instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reservoir._saving import saved
from reservoir.training.cells.bidirectional_cell import BidirectionalCell
from reservoir.training.cells.cell import Cell, TorchLayer, Trace, Weight
from reservoir.training.cells.deep_transition import DeepTransitionCell
from reservoir.training.cells.feedforward import FeedforwardCell
from reservoir.training.cells.gated_feedback import GatedFeedbackCell
from reservoir.training.cells.gru import GRUCell
from reservoir.training.cells.layer import Layer
from reservoir.training.cells.lstm import LSTMCell
from reservoir.training.cells.recipes import Recipe, bidirectional, stacked
from reservoir.training.cells.scrn import SCRNCell
from reservoir.training.cells.simple import SimpleCell, curvature, slope
from reservoir.training.cells.stacked_cell import StackedCell
from reservoir.training.cells.timed_leaky_cell import TimedLeakyCell

__all__ = [
    "CELLS",
    "BidirectionalCell",
    "Cell",
    "DeepTransitionCell",
    "FeedforwardCell",
    "GRUCell",
    "GatedFeedbackCell",
    "LSTMCell",
    "Layer",
    "SCRNCell",
    "Recipe",
    "SimpleCell",
    "StackedCell",
    "TimedLeakyCell",
    "TorchLayer",
    "Trace",
    "Weight",
    "bidirectional",
    "curvature",
    "saved",
    "slope",
    "stacked",
]


def _elman(n_units: int, activation: str = "tanh") -> Cell:
    return SimpleCell(n_units, activation)


def _scrn(n_units: int, activation: str = "tanh") -> Cell:
    return SCRNCell(n_units, activation=activation)


def _leaky(n_units: int, activation: str = "tanh", leak_rate: Any = 1.0) -> Cell:
    return SimpleCell(n_units, activation, leak_rate)


#: Cells by name, each a function of n_units; if it has an argument `activation` or `leak_rate`, the
#: estimator's value is passed.
CELLS: dict[str, Callable[..., Cell]] = {
    "rnn": _elman,
    "leaky": _leaky,
    "lstm": LSTMCell,
    "gru": GRUCell,
    "scrn": _scrn,
    "gated_feedback": GatedFeedbackCell,
}
