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
    """Base class of online learners, which update the weights after each chunk of rows.

    All state must be stored in attributes that can be saved: arrays, numbers, and objects of
    classes decorated with `reservoir._saving.saved`.

    Parameters
    ----------
    descent : Descent
        Object that takes the gradient steps, for learners that compute a gradient.
    truncation, window, seed : int
        As in `OnlineLearner`.

    Attributes
    ----------
    rows_at_once : int
        Number of rows between two updates of the weights. `learn` receives this many rows, or fewer
        at the end.
    past : Window
        The last rows of the sequence.
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
        """Run the network over the next rows of the sequence, and train it on them.

        Parameters
        ----------
        params : dict of arrays
            Current weights, which must not be changed in place.
        state : array of shape (state_size,)
            The state before the rows.
        rows : array of shape (n_rows, n_features)
            The input rows.
        targets : array of shape (n_rows, n_outputs)
            The targets; NaN in rows without a target.
        n_skipped : int
            Number of rows at the start, at most n_rows, that drive the network but are not trained
            on.

        Returns
        -------
        loss : float
            The mean loss of the predictions for the rows that are trained on, made before training
            on them; any number if there are no such rows.
        params : dict of arrays
            The new weights.
        state : array of shape (state_size,)
            The state after the rows.
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
