"""Least squares over a window of recent rows."""

from __future__ import annotations

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.least_squares import ls_online_step
from reservoir.training.online._learner import Learner
from reservoir.training.params import Params


@saved
class WindowedLeastSquares(Learner):
    """After each `truncation` rows one relaxed step of least squares over the last `window`."""

    def learn(
        self, params: Params, state: Array, rows: Array, targets: Array, n_skipped: int
    ) -> tuple[float, Params, Array]:
        network, past = self.network, self.past
        past.forget(params, state, max(self.window_length - len(rows), 0))
        loss, state = past.play(params, past.add(rows, targets, n_skipped))
        if n_skipped < len(rows) and len(past.inputs) - past.n_skipped > 1:
            done = ls_online_step(
                params,
                past.inputs,
                past.targets,
                output=network.output,
                cell=network.cell,
                include_input=network.include_input,
                credit=True,
                state=past.start,
                washout=past.n_skipped,
            )
            params, state = done.params, done.state[0]
        return loss, params, state
