"""Learning from rows as they come: truncated BPTT, real-time recurrent learning, least squares."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir._typing import Array
from reservoir._validation import caller_level, check_choice, check_count
from reservoir.training._optimizer import OptimizerState
from reservoir.training.bptt import Batch, Network, forward, loss_and_gradient, make_batch
from reservoir.training.gradient_control import GradientControl, control_penalty
from reservoir.training.least_squares import ls_online_step
from reservoir.training.losses import loss_of
from reservoir.training.optimizers import get_optimizer
from reservoir.training.params import Params, flatten, unflatten
from reservoir.training.rtrl import Sensitivities, rtrl_start, rtrl_step
from reservoir.training.trainer import total_gradient

__all__ = ["METHODS", "OnlineLearner"]

#: Names of ways to learn online.
METHODS = ("bptt", "rtrl", "least_squares")


class OnlineLearner:
    """A network that learns while it runs.

    - "bptt": after every `truncation` rows a step down the gradient of their loss, which looks back
      as many rows; where fewer come at a time, to the rows before them.
    - "rtrl": after every row a step down its exact gradient, from `reservoir.training.rtrl`.
    - "least_squares": after every `truncation` rows one relaxed step of least squares over the last
      `window` rows, `reservoir.training.least_squares.ls_online_step`.

    Parameters
    ----------
    network : Network
    params : dict of arrays
        Copied.
    method : {"bptt", "rtrl", "least_squares"}, default="bptt"
    solver : str, default="adam"
        A name in `reservoir.training.optimizers.OPTIMIZERS`.
    learning_rate : float, default=1e-3
    truncation : int, default=50
    window : int, default=300
        Rows that least squares looks at.
    clip_norm : float or None, default=1.0
    l1, l2 : float, default=0
    control : GradientControl, optional
    seed : int, default=0
        Draws the steps that are controlled.

    Attributes
    ----------
    params : dict of arrays
    state : array of shape (state_size,)
        Where the network stands.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.initializers import initialize
    >>> from reservoir.training.online import OnlineLearner
    >>> network = Network(SimpleCell(8), 1, 1)
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3001, 1))
    >>> params = initialize(network.shapes(), "orthogonal", random_state=0)
    >>> learner = OnlineLearner(network, params, method="rtrl", learning_rate=0.01)
    >>> learner.restart()
    >>> first, *_, last = [learner.learn(X[i + 1 : i + 101], X[i : i + 100])
    ...                    for i in range(0, 3000, 100)]
    >>> last < 0.1 * first
    True
    """

    def __init__(
        self,
        network: Network,
        params: Params,
        *,
        method: str = "bptt",
        solver: str = "adam",
        learning_rate: float = 1e-3,
        truncation: int = 50,
        window: int = 300,
        clip_norm: float | None = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        control: GradientControl | None = None,
        seed: int = 0,
    ) -> None:
        self.network = network
        self.method = check_choice("method", method, METHODS)
        self.solver, self.learning_rate = solver, learning_rate
        self.truncation = check_count("truncation", truncation)
        self.window = check_count("window", window)
        self.clip_norm, self.l1, self.l2 = clip_norm, l1, l2
        self.control, self.seed = control, seed
        vector, self.params = flatten(params, network.shapes())
        self.slots: tuple[Any, ...] = tuple(self._optimizer().init({"all": vector}))
        self.running = False
        if method == "rtrl":
            rtrl_start(network)  # refuses cells it cannot be done for

    def _optimizer(self) -> Any:
        return get_optimizer(self.solver, learning_rate=self.learning_rate)

    def restart(self, state: Array | None = None) -> None:
        """Begin a sequence.

        Parameters
        ----------
        state : array of shape (state_size,), optional
            Zeros by default.
        """
        dtype = self.params["coef"].dtype
        size = self.network.cell.state_size
        start = np.zeros(size, dtype) if state is None else np.array(state, dtype=dtype)
        self.state = start
        self.derivatives = (
            rtrl_start(self.network, start).derivatives if self.method == "rtrl" else None
        )
        # rows that gradients or regressions look back to, and the state before the first of them
        self.past = np.zeros((0, self.network.n_features), dtype)
        self.past_targets = np.zeros((0, self.network.n_outputs), dtype)
        self.past_state = start
        self.quiet = 0  # of these rows, those at the start that are not learned from
        self.running = True

    def learn(self, X: Array, Y: Array, skip: int = 0) -> float:
        """Go through the next rows of the sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        Y : array of shape (n_samples, n_outputs)
        skip : int, default=0
            Rows at the start that are run through, not learned from.

        Returns
        -------
        float
            The mean loss of the predictions made before learning from their targets; NaN if all
            rows were skipped.
        """
        losses: list[float] = []
        weights: list[int] = []
        length = 1 if self.method == "rtrl" else self.truncation
        learn = self._step if self.method == "rtrl" else self._piece
        with np.errstate(over="ignore", invalid="ignore"):
            for begin in range(0, len(X), length):
                piece = slice(begin, begin + length)
                rows, targets = X[piece], Y[piece]
                quiet = min(max(skip - begin, 0), len(rows))
                loss = learn(rows, targets, quiet)
                if not np.isfinite(self.state).all():  # nothing can follow from it
                    self.restart()
                if quiet < len(rows):
                    losses.append(loss)
                    weights.append(len(rows) - quiet)
            return float(np.average(losses, weights=weights)) if losses else np.nan

    # ------------------------------------------------------------------ one update

    def _step(self, rows: Array, targets: Array, quiet: int) -> float:
        """Learn from one row, or run through it."""
        memory = Sensitivities(self.state, self.derivatives)  # type: ignore[arg-type]
        y = None if quiet else targets[0]
        loss, grads, memory = rtrl_step(self.network, self.params, memory, rows[0], y)
        self.state, self.derivatives = memory
        if not quiet and not self._descend(loss, grads):
            self.restart(self.state)
        return loss

    def _descend(self, loss: float, grads: Params) -> bool:
        """Take a step; False if there is none to take."""
        gradient = total_gradient(
            self.params, grads, l1=self.l1, l2=self.l2, clip_norm=self.clip_norm
        )
        vector, _ = flatten(self.params)
        if np.isfinite(loss) and np.isfinite(gradient).all():
            updated, state = self._optimizer().update(
                {"all": vector}, {"all": gradient}, OptimizerState(*self.slots)
            )
            if np.isfinite(updated["all"]).all():
                self.slots = tuple(state)
                self.params = unflatten(updated["all"], self.params)
                return True
        warnings.warn(
            "The loss, its gradient or the step overflowed: the weights stay as they are. Lower "
            f"learning_rate={self.learning_rate:g}.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
        return False

    def _piece(self, rows: Array, targets: Array, quiet: int) -> float:
        """Learn from up to `truncation` rows, the first `quiet` of them run through only."""
        back = max((self.window if self.method == "least_squares" else self.truncation), len(rows))
        self._forget(back - len(rows))
        X = np.concatenate([self.past, rows])
        Y = np.concatenate([self.past_targets, targets])
        batch = make_batch([X], [Y], washout=len(self.past) + quiet)
        start = self.past_state[None]
        loss, end = self._loss(batch, start)
        self.state = end[0]
        self.quiet += quiet
        if quiet < len(rows):
            if self.method == "bptt":
                value, grads, _ = loss_and_gradient(
                    self.network, self.params, batch, start, control=self._controller()
                )
                self._descend(value, grads)
            elif len(X) - self.quiet > 1:
                done = ls_online_step(
                    self.params,
                    X,
                    Y,
                    output=self.network.output,
                    cell=self.network.cell,
                    include_input=self.network.include_input,
                    credit=True,
                    state=self.past_state,
                    washout=self.quiet,
                )
                self.params, self.state = done.params, done.state[0]
        self.past, self.past_targets = X, Y
        return loss

    def _forget(self, n_kept: int) -> None:
        """Let go of rows further back; the state before the rest moves on."""
        gone = max(len(self.past) - n_kept, 0)
        if gone == len(self.past):
            self.past_state = self.state
        elif gone:
            run = self.network.cell.forward(
                self.params, self.past[:gone, None], self.past_state[None]
            )
            self.past_state = run.end[0]
        self.past, self.past_targets = self.past[gone:], self.past_targets[gone:]
        self.quiet = max(self.quiet - gone, 0)

    def _loss(self, batch: Batch, start: Array) -> tuple[float, Array]:
        trace, _, scores = forward(self.network, self.params, batch, start)
        if len(scores) == 0:
            return np.nan, trace.end
        loss = loss_of(scores, batch.targets, self.network.output, self.network.loss)
        return loss, trace.end

    def _controller(self) -> Any:
        if self.control is None:
            return None
        self.seed += 1
        generator, control = np.random.default_rng(self.seed), self.control
        return lambda params, trace: control_penalty(
            self.network.cell, params, trace, control, generator
        )
