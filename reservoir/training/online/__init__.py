"""Online learning: truncated BPTT, real-time recurrent learning, least squares.

Each method is a class in a separate file, `_by_*.py`, and an entry of `LEARNERS`. `OnlineLearner`
selects one, cuts the rows into pieces and passes them to it.
"""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_choice, check_count
from reservoir.training._objective import Objective
from reservoir.training.bptt import Network
from reservoir.training.controls import Control
from reservoir.training.online._by_bptt import TruncatedBPTT
from reservoir.training.online._by_least_squares import WindowedLeastSquares
from reservoir.training.online._by_rtrl import RealTimeRecurrentLearning
from reservoir.training.online._learner import Descent, Learner
from reservoir.training.params import Params, flatten

__all__ = ["METHODS", "OnlineLearner"]

LEARNERS: dict[str, type[Learner]] = {
    "bptt": TruncatedBPTT,
    "rtrl": RealTimeRecurrentLearning,
    "least_squares": WindowedLeastSquares,
}

#: Names of online learning methods.
METHODS = tuple(LEARNERS)


@saved
class OnlineLearner:
    """A network that is trained online, while it runs.

    - "bptt": after every `truncation` rows a step down the gradient of their loss, which covers
      `truncation` rows; if fewer are passed at a time, it also covers earlier rows.
    - "rtrl": after every row a step down its exact gradient, from `reservoir.training.rtrl`.
    - "least_squares": after every `truncation` rows one relaxed step of least squares over the last
      `window` rows, `reservoir.training.least_squares.ls_online_step` with ``shrink=1``. The steps
      change trial weights. If `look_back` provided earlier rows, the initial weights are kept as
      reference weights, and `params` are the reference weights until the trial weights have
      predicted new rows better by four standard errors, in a paired comparison in which the weight
      of a row decays over `window` rows. From then on `params` are the trial weights; once their
      lead is large enough they become the reference weights. If the trial weights fall behind, they
      are reset to the reference weights.

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
        Rows used by least squares.
    clip_norm : float or None, default=1.0
    l1, l2 : float, default=0
    control : Control, optional
    seed : int, default=0
        Draws the steps to which gradient control is applied.

    Attributes
    ----------
    params : dict of arrays
    state : array of shape (state_size,)
        Current state of the network.

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
        control: Control | None = None,
        seed: int = 0,
    ) -> None:
        check_choice("method", method, LEARNERS)
        check_count("truncation", truncation)
        check_count("window", window)
        if not network.cell.causal:
            raise ValueError(
                f"{type(network.cell).__name__} uses future rows, which are not available in "
                "online learning. Use a causal cell."
            )
        self.network, self.method, self.running = network, method, False
        self.params = flatten(params, network.shapes())[1]
        objective = Objective(network, l1, l2, clip_norm, control)
        descent = Descent(objective, self.params, solver, learning_rate)
        self.learner = LEARNERS[method](descent, truncation, window, seed)

    def restart(self, state: Array | None = None) -> None:
        """Start a new sequence.

        Parameters
        ----------
        state : array of shape (state_size,), optional
            Initial state, zeros by default. The last entry of the state of a `TimedLeakyCell` is
            the time of the previous row.
        """
        dtype = self.network.cell.held_in(self.params["coef"].dtype)
        size = self.network.cell.state_size
        start = np.zeros(size, dtype) if state is None else np.array(state, dtype=dtype)
        self.state, self.running = start, True
        self.learner.restart(start)

    def look_back(self, X: Array, Y: Array, start: Array, skip: int = 0) -> None:
        """Store earlier rows, which the weights were trained on before, in the window.

        The state of the network does not change. Only "least_squares" uses the rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The last of these rows directly precedes the next row of `learn`.
        Y : array of shape (n_samples, n_outputs)
            NaN in rows without a target.
        start : array of shape (state_size,)
            The state before the first row.
        skip : int, default=0
            Washout rows at the start.
        """
        self.learner.past.fill(X, Y, start, skip)

    def learn(self, X: Array, Y: Array, skip: int = 0) -> float:
        """Run over the next rows of the sequence, and train on them.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        Y : array of shape (n_samples, n_outputs)
            Rows with NaN drive the network, but are not trained on.
        skip : int, default=0
            Washout: rows at the start that drive the network, but are not trained on.

        Returns
        -------
        float
            The mean loss of predictions made before training on their targets; NaN if all rows
            were skipped or have no target.
        """
        losses: list[float] = []
        weights: list[int] = []
        n = self.learner.rows_at_once
        with np.errstate(over="ignore", invalid="ignore"):
            for begin in range(0, len(X), n):
                rows, targets = X[begin : begin + n], Y[begin : begin + n]
                n_skipped = min(max(skip - begin, 0), len(rows))
                loss, self.params, self.state = self.learner.learn(
                    self.params, self.state, rows, targets, n_skipped
                )
                if not np.isfinite(self.state).all():  # cannot continue from this state
                    nothing = np.zeros_like(self.state)
                    self.restart(self.network.cell.before(rows[-1], nothing))
                n_known = int(np.count_nonzero(~np.isnan(targets[n_skipped:]).any(axis=1)))
                if n_known:
                    losses.append(loss)
                    weights.append(n_known)
            return float(np.average(losses, weights=weights)) if losses else np.nan
