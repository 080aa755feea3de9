"""Base class of online learners, and the gradient steps that they share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.training._objective import Objective
from reservoir.training.online._window import Window
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
