"""Online least squares over a window of recent rows, used only if it improves predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.bptt import forward, make_batch
from reservoir.training.least_squares import ls_online_step
from reservoir.training.losses import apply_output, loss_of
from reservoir.training.online._learner import Learner
from reservoir.training.params import Params

# Thresholds of the trial weights' lead, in standard errors. They were chosen on systems with and
# without drift, with noise of 0 to 50 %: the systems of examples/benchmarks/trained_online.py with
# other seeds, and the slow sweep of the tests. With a threshold of 3 instead of 4, the trial
# weights are used sooner, but one constant system in twenty loses 4 %.
_FOLLOW = 4.0  # at or above: use the trial weights
_RETURN = 0.0  # below: use the reference weights
_RENEW = 5.0  # at or above: the trial weights replace the reference weights
_DROP = -2.0  # at or below: reset the trial weights to the reference weights
_FEWEST = 20  # with fewer rows, the lead is 0


@saved
class WindowedLeastSquares(Learner):
    """Learner that takes a least-squares step over a window of rows after each `truncation` rows.

    A step also fits the noise of its window, which adds up over many steps. Therefore all steps
    change the trial weights only, and `held` are reference weights; both predict each row before it
    is learned. Trial weights with significantly smaller errors are used, and with an even larger
    lead replace the reference weights. Without earlier rows (no previous `fit`), they are used at
    once.
    """

    held: Params | None = None  # None until the first rows are learnt
    trial: Params

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.follows = False
        self.errors = PairedErrors(self.window_length)

    def restart(self, state: Array) -> None:
        super().restart(state)
        self.held_state = self.trial_state = state

    def learn(
        self, params: Params, state: Array, rows: Array, targets: Array, n_skipped: int
    ) -> tuple[float, Params, Array]:
        past = self.past
        if self.held is None:
            self.held = self.trial = params
            self.held_state = self.trial_state = state
            self.follows = not len(past.inputs)
        past.forget(self.trial, self.trial_state, max(self.window_length - len(rows), 0))
        new = past.add(rows, targets, n_skipped)
        # both sets of weights predict the new rows, then the trial weights are trained on them
        before, held_loss, self.held_state = self._run_over(self.held, self.held_state, len(rows))
        after, loss, self.trial_state = self._run_over(self.trial, self.trial_state, len(rows))
        loss = loss if self.follows else held_loss
        if len(new.targets):
            self._compare(before - after)
            if np.count_nonzero(past.known()) > 1:
                self._step()
        if self.follows:
            return loss, self.trial, self.trial_state
        return loss, self.held, self.held_state

    def _run_over(self, params: Params, state: Array, n_rows: int) -> tuple[Array, float, Array]:
        """Return squared errors and mean loss on the window's last rows, and the final state."""
        past, network = self.past, self.network
        known, targets = past.known(), past.filled()
        rows, new = [past.inputs[-n_rows:]], [targets[-n_rows:]]
        batch = make_batch(rows, new, weights=[known[-n_rows:]], dtype=targets.dtype)
        trace, _, scores = forward(network, params, batch, state[None])
        if not len(scores):
            return np.empty(0), np.nan, trace.end[0]
        loss = loss_of(scores, batch.targets, network.output, network.loss)
        residual = (apply_output(scores, network.output) - batch.targets).astype(np.float64)
        if network.output == "identity":  # so that outputs in large units do not count more
            spread = targets[known].std(axis=0, dtype=np.float64)
            residual /= np.where(spread > 0, spread, 1.0)
        return np.mean(residual**2, axis=1), loss, trace.end[0]

    def _compare(self, differences: Array) -> None:
        """Choose the weights to use, given the differences between the squared errors."""
        if not np.isfinite(differences).all():
            lead = -np.inf  # the predictions of the trial weights overflowed
        else:
            self.errors.add(differences)
            lead = self.errors.lead()
        if lead >= _FOLLOW:
            self.follows = True
        elif lead < _RETURN:
            self.follows = False
        if lead >= _RENEW:
            self.held, self.held_state = self.trial, self.trial_state
            self.errors.clear()
        elif lead <= _DROP:
            assert self.held is not None
            self.trial, self.trial_state = self.held, self.held_state
            self.errors.clear()

    def _step(self) -> None:
        """Update the trial weights by one step over the window."""
        network, past = self.network, self.past
        known = past.known()
        known[: past.n_skipped] = True  # these rows are already excluded by `washout`
        done = ls_online_step(
            self.trial,
            past.inputs,
            past.filled(),
            output=network.output,
            cell=network.cell,
            include_input=network.include_input,
            credit=True,
            shrink=1.0,
            tau=0.0,
            state=past.start,
            washout=past.n_skipped,
            sample_weight=None if known.all() else known,
        )
        self.trial, self.trial_state = done.params, done.state[0]


@saved
class PairedErrors:
    """Differences between the squared errors of two networks, with exponential forgetting.

    After `memory` rows, the weight of a row has decayed to 1 / e.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.clear()

    def clear(self) -> None:
        """Discard all differences."""
        self.n, self.total, self.squares = 0.0, 0.0, 0.0

    def add(self, differences: Array) -> None:
        """Add the differences of new rows, from the oldest to the newest."""
        weights = np.exp(-np.arange(len(differences))[::-1] / self.memory)
        fade = float(np.exp(-len(differences) / self.memory))
        self.n = fade * self.n + float(weights.sum())
        self.total = fade * self.total + float(weights @ differences)
        self.squares = fade * self.squares + float(weights @ differences**2)

    def lead(self) -> float:
        """Return the mean difference in units of its standard error: Student's paired t."""
        if self.n < _FEWEST * np.exp(-_FEWEST / self.memory):
            return 0.0
        spread = self.squares - self.total * self.total / self.n
        if spread <= 1e-12 * self.squares:
            return float(np.sign(self.total)) * np.inf if self.total else 0.0
        return self.total / float(np.sqrt(spread))
