"""Online learning by gradients: truncated back-propagation through time, or the exact gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.online._learner import Learner
from reservoir.training.params import Params
from reservoir.training.rtrl import Sensitivities, rtrl_start, rtrl_step


@saved
class TruncatedBPTT(Learner):
    """Learner that takes a step down the gradient of the loss after each `truncation` rows."""

    def learn(
        self, params: Params, state: Array, rows: Array, targets: Array, n_skipped: int
    ) -> tuple[float, Params, Array]:
        # the gradient covers `rows_at_once` rows, including earlier ones if fewer are passed
        self.past.forget(params, state, self.rows_at_once - len(rows))
        batch = self.past.add(rows, targets, n_skipped)
        loss, state = self.past.loss(params, batch)
        if len(batch.targets):
            self.seed += 1  # so that each update draws different steps for gradient control
            value, grads, _ = self.descent.objective.loss_and_gradient(
                params, batch, self.past.start[None], np.random.default_rng(self.seed)
            )
            params = self.descent.step(params, value, grads) or params
        return loss, params, state


@saved
class RealTimeRecurrentLearning(Learner):
    """Learner that takes a step down the exact gradient of the loss after each row."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.rows_at_once = 1
        rtrl_start(self.network)  # raises an error for cells with gates

    def restart(self, state: Array) -> None:
        self.derivatives = rtrl_start(self.network, state).derivatives

    def learn(
        self, params: Params, state: Array, rows: Array, targets: Array, n_skipped: int
    ) -> tuple[float, Params, Array]:
        before = Sensitivities(state, self.derivatives)
        missing = n_skipped > 0 or bool(np.isnan(targets[0]).any())
        target = None if missing else targets[0]
        loss, grads, after = rtrl_step(self.network, params, before, rows[0], target)
        state, self.derivatives = after
        if not missing:
            moved = self.descent.step(params, loss, grads)
            if moved is None:  # the derivatives may have overflowed: reset them to zero
                self.restart(state)
            params = moved or params
        return loss, params, state
