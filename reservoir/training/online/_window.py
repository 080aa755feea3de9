"""The last rows of a sequence, for learners that use earlier rows."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.bptt import Batch, Network, forward, make_batch
from reservoir.training.losses import loss_of
from reservoir.training.params import Params


@saved
class Window:
    """The last rows of a sequence, their targets, and the state before the first of them.

    Rows without a target (NaN) drive the network, but are not trained on. At first, `state`,
    (state_size,), is the initial state of the sequence.
    """

    def __init__(self, network: Network, state: Array) -> None:
        self.network, self.start = network, state
        self.inputs = np.zeros((0, network.n_columns), state.dtype)
        self.targets = np.zeros((0, network.n_outputs), np.float32)  # until rows are added
        self.n_skipped = 0  # rows at the start of the window that are not trained on

    def forget(self, params: Params, state: Array, n_kept: int) -> None:
        """Discard all but the last `n_kept` rows; `state` is the state after the last row."""
        n_dropped = max(len(self.inputs) - n_kept, 0)
        if n_dropped == len(self.inputs):
            self.start = state
        elif n_dropped:
            run = self.network.cell.forward(params, self.inputs[:n_dropped, None], self.start[None])
            self.start = run.end[0]
        self.inputs, self.targets = self.inputs[n_dropped:], self.targets[n_dropped:]
        self.n_skipped = max(self.n_skipped - n_dropped, 0)

    def fill(self, rows: Array, targets: Array, start: Array, n_skipped: int) -> None:
        """Replace the rows of the window; `start` is the state before the first new row."""
        self.inputs, self.targets = rows, targets
        self.start, self.n_skipped = start, n_skipped

    def add(self, rows: Array, targets: Array, n_skipped: int) -> Batch:
        """Append rows, and return the window as a batch with targets for the new rows only."""
        before = len(self.inputs)
        self.inputs = np.concatenate([self.inputs, rows])
        self.targets = np.concatenate([self.targets, targets])
        self.n_skipped += n_skipped
        new = self.known()
        new[: before + n_skipped] = False
        dtype = self.targets.dtype
        return make_batch([self.inputs], [self.filled()], weights=[new], dtype=dtype)

    def known(self) -> Array:
        """Return a mask of the rows that can be trained on."""
        known: Array = np.logical_not(np.isnan(self.targets).any(axis=1))
        known[: self.n_skipped] = False
        return known

    def filled(self) -> Array:
        """Return the targets, with zeros in place of missing values."""
        return np.nan_to_num(self.targets, nan=0.0)

    def loss(self, params: Params, batch: Batch) -> tuple[float, Array]:
        """Return the mean loss over the batch's targets (NaN without any), and the final state."""
        trace, _, scores = forward(self.network, params, batch, self.start[None])
        if len(scores) == 0:
            return np.nan, trace.end[0]
        loss = loss_of(scores, batch.targets, self.network.output, self.network.loss)
        return loss, trace.end[0]
