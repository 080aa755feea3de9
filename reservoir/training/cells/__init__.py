"""Recurrent cells: the update of the state, and its back-propagation.

The first axis of all arrays is time: inputs X have shape (n_steps, n_sequences, n_features), and
states have shape (n_steps + 1, n_sequences, n_units), where the first row is the initial state. A
cell does not store weights: they are passed and returned as a dict from names to arrays. Most
built-in cells have weights ``W_in`` (g n_units, n_features), ``W`` (g n_units, n_units) and
``bias`` (g n_units,), where the g gates are blocks of rows. A cell describes its weights in
`Cell.weights`; its other methods declare everything else that the rest of the package needs (see
`Cell`).

Input projections and weight gradients are computed by one matrix product each, over all steps at
once; only one product per step remains for the loop over time. Each cell is defined in a separate
file, with its loops in NumPy. If numba is installed and the job is large enough, the compiled loops
of `reservoir._kernels` are used instead.
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


#: Functions of n_units that create the cells, by name. If a function has a parameter `activation`
#: or `leak_rate`, the estimator's value is passed.
CELLS: dict[str, Callable[..., Cell]] = {
    "rnn": _elman,
    "leaky": _leaky,
    "lstm": LSTMCell,
    "gru": GRUCell,
    "scrn": _scrn,
    "gated_feedback": GatedFeedbackCell,
}
