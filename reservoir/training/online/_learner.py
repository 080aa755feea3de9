"""What all ways to learn online have in common: their interface, and steps down a gradient."""

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
from reservoir.training.optimizers import OptimizerState, get_optimizer
from reservoir.training.params import Params, all_finite


class Learner(ABC):
    """One way to learn online: it is handed the next rows, and moves the weights.

    What it remembers are attributes that can be saved: arrays, numbers, and objects of the classes
    marked by `reservoir._saving.saved`.

    Parameters
    ----------
    descent : Descent
        Takes steps down gradients, for the ways that have one.
    truncation, window, seed : int
        As in `OnlineLearner`.

    Attributes
    ----------
    rows_at_once : int
        Rows between two changes of the weights: `learn` gets as many, fewer at the end.
    past : Window
        The last rows of the sequence.
    """

    def __init__(self, descent: Descent, truncation: int, window: int, seed: int) -> None:
        self.descent, self.network = descent, descent.objective.network
        self.rows_at_once, self.window_length, self.seed = truncation, window, seed

    def restart(self, state: Array) -> None:
        """Begin a sequence at a state of shape (state_size,): forget the rows before."""
        self.past = Window(self.network, state)

    @abstractmethod
    def learn(
        self, params: Params, state: Array, rows: Array, targets: Array, n_skipped: int
    ) -> tuple[float, Params, Array]:
        """Run through the next rows of the sequence, and learn from them.

        Parameters
        ----------
        params : dict of arrays
            Not to be written to.
        state : array of shape (state_size,)
            The state before the rows.
        rows : array of shape (n_rows, n_features)
        targets : array of shape (n_rows, n_outputs)
        n_skipped : int
            How many rows at the start are run through, not learned from; n_rows at most.

        Returns
        -------
        loss : float
            The mean loss of the predictions of the other rows, made before learning from them;
            any number if there are none.
        params : dict of arrays
        state : array of shape (state_size,)
            The state after the rows.
        """


@saved
class Descent:
    """Steps of an optimizer, one after another, down gradients that are handed to it."""

    def __init__(
        self, objective: Objective, params: Params, solver: str, learning_rate: float
    ) -> None:
        self.objective, self.solver, self.learning_rate = objective, solver, learning_rate
        self.slots: tuple[Any, ...] = tuple(get_optimizer(solver, learning_rate).init(params))

    def step(self, params: Params, loss: float, grads: Params) -> Params | None:
        """Return the weights after a step; None, and a warning, where something overflowed."""
        # looked up each time: an optimizer cannot be saved, its name can
        optimizer, state = get_optimizer(self.solver, self.learning_rate), self.slots
        done = self.objective.step(optimizer, OptimizerState(*state), params, loss, grads)
        if done is not None and all_finite(done[0]):
            self.slots = tuple(done[1])
            return done[0]
        warnings.warn(
            "The loss, its gradient or the step overflowed: the weights stay as they are. Lower "
            f"learning_rate={self.learning_rate:g}.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
        return None
