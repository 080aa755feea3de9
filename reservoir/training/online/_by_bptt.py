"""Online learning by truncated back-propagation through time."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.online._learner import Learner
from reservoir.training.params import Params


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
