"""Recurrent cells: how a state follows from the one before, and the transpose of that.

Arrays are time first: inputs X (n_steps, n_sequences, n_features), states (n_steps + 1,
n_sequences, n_units), the first row being the start. A cell holds no weights: they go in and come
out by name. Those of the built-in cells are ``W_in`` (g n_units, n_features), ``W`` (g n_units,
n_units) and ``bias`` (g n_units,) with g gates one below the other; what each is, a cell declares
(`Cell.weights`), as it does all else that others ask of it (`Cell`).

Input projections and weight gradients are one matrix product each, over all steps at once; what is
left for the loop over time is one product a step. Each cell stands in a file of its own, with its
loops in NumPy. Where numba is installed and the job is worth it, `reservoir._kernels` does the
same, compiled.
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


#: Cells by name, each a function of n_units; where it has an argument `activation` or `leak_rate`,
#: it is given the estimator's, too.
CELLS: dict[str, Callable[..., Cell]] = {
    "rnn": _elman,
    "leaky": _leaky,
    "lstm": LSTMCell,
    "gru": GRUCell,
    "scrn": _scrn,
    "gated_feedback": GatedFeedbackCell,
}
