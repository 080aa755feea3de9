"""Base class of online learners, and the gradient steps that they share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.training._objective import Objective
from reservoir.training.bptt import Batch, Network, forward, make_batch
from reservoir.training.losses import loss_of
from reservoir.training.optimizers import Optimizer, OptimizerState, get_optimizer
from reservoir.training.params import Params, all_finite


class Learner(ABC):
    """Base class of online learners, which update the weights after each `rows_at_once` rows.

    All state must be in attributes that can be saved: arrays, numbers, and objects of classes
    decorated with `reservoir._saving.saved`. `past` holds the last rows of the sequence; `descent`
    takes the steps of learners that compute a gradient. The rest is as in `OnlineLearner`.
    """

    def __init__(self, descent: Descent, truncation: int, window: int, seed: int) -> None:
        self.descent, self.network = descent, descent.objective.network
        self.rows_at_once, self.window_length, self.seed = truncation, window, seed

    def restart(self, state: Array) -> None:
        """Start a new sequence from a state of shape (state_size,), and discard earlier rows."""
        self.past = Window(self.network, state)

    @abstractmethod
    def learn(
        self, params: Params, state: Array, rows: Array, targets: Array, n_skipped: int
    ) -> tuple[float, Params, Array]:
        """Run over rows, and train on them; return the mean loss, new weights and the end state.

        `params` must not be changed in place. `state` is (state_size,), `rows` (n_rows,
        n_features), and `targets` (n_rows, n_outputs), with NaN in rows without one. There are at
        most `rows_at_once` rows, of which the first `n_skipped` drive the network only. The loss is
        of predictions for the others, each made before training on it, and any number if there are
        none.
        """


@saved
class Descent:
    """Optimizer steps down successive gradients, with the state of the optimizer."""

    def __init__(
        self,
        objective: Objective,
        params: Params,
        solver: str | Optimizer,
        learning_rate: float,
    ) -> None:
        self.objective, self.solver, self.learning_rate = objective, solver, learning_rate
        self.slots: tuple[Any, ...] = tuple(self._optimizer().init(params))

    def _optimizer(self) -> Optimizer:
        """Return the optimizer; from its name, since files of earlier versions have only that."""
        if isinstance(self.solver, Optimizer):
            return self.solver
        return get_optimizer(self.solver, self.learning_rate)

    def rate(self) -> float:
        """Return the learning rate of the next step."""
        return self._optimizer().rate(self.slots[0])

    def step(self, params: Params, loss: float, grads: Params) -> Params | None:
        """Return the weights after a step, or warn and return None if there was an overflow."""
        optimizer, state = self._optimizer(), self.slots
        done = self.objective.step(optimizer, OptimizerState(*state), params, loss, grads)
        if done is not None and all_finite(done[0]):
            self.slots = tuple(done[1])
            return done[0]
        warnings.warn(
            "The loss, its gradient or the step overflowed. The weights are unchanged. Lower "
            f"learning_rate={self.rate():g}.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
        return None


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
