"""Truncated back-propagation through time, a piece of the sequence at a time."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.online._learner import Learner
from reservoir.training.params import Params


@saved
class TruncatedBPTT(Learner):
    """After each `truncation` rows a step down the gradient of their loss."""

    def learn(
        self, params: Params, state: Array, rows: Array, targets: Array, n_skipped: int
    ) -> tuple[float, Params, Array]:
        # the gradient looks back `rows_at_once` rows, to earlier ones where fewer come
        self.past.forget(params, state, self.rows_at_once - len(rows))
        batch = self.past.add(rows, targets, n_skipped)
        loss, state = self.past.play(params, batch)
        if len(batch.targets):
            self.seed += 1  # the controlled steps are drawn anew for each update
            value, grads, _ = self.descent.objective.loss_and_gradient(
                params, batch, self.past.start[None], np.random.default_rng(self.seed)
            )
            params = self.descent.step(params, value, grads) or params
        return loss, params, state
