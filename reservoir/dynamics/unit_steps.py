"""Steps of a run, which records of activity receive, and names of columns for messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.activations import get_activation
from reservoir.dynamics.reservoir import Reservoir


class Names(NamedTuple):
    """Text for messages: functions that name input and output columns, and advice on scaling."""

    input: Callable[[int], str]
    output: Callable[[int], str]
    scale: str = "scale X (StandardScaler in a pipeline)"


class Steps(NamedTuple):
    """Consecutive steps of one run, with the inputs of the units.

    `states`, (n_rows, n_units), are those after each step; `before` is the one before the first.
    `received`, (n_rows, n_outputs), are the outputs that were fed back, or None. `leak` is the leak
    rate, a float or (n_units,), or the effective leak of each step, (n_rows, 1 or n_units), if
    steps differ in duration. `noisy` says whether noise was added to the states.
    """

    states: Array
    before: Array
    inputs: Array
    received: Array | None
    leak: Array | float
    noisy: bool

    def activations(self, rows: Array, reservoir: Reservoir) -> Array:
        """Return the activations of the units in the steps with indices `rows`."""
        states = self.states[rows]
        leak = np.asarray(self.leak, dtype=np.float64)
        if not self.noisy and leak.ndim == 0 and leak == 1:
            return states
        before = self.states[rows - 1].astype(np.float64)
        if rows[0] == 0:  # index -1 has read the last state
            before[0] = self.before
        if not self.noisy:
            return before + (states - before) / (leak[rows] if leak.ndim == 2 else leak)
        # noise is added to the states, not to the activations: compute activations from the inputs
        z = before @ reservoir.W.T + self.inputs[rows] @ reservoir.W_in.T + reservoir.bias
        if self.received is not None:
            z += self.received[rows] @ reservoir.W_fb.T  # type: ignore[union-attr]
        return get_activation(reservoir.activation).function(z)
