"""Learning from rows as they come: truncated BPTT, real-time recurrent learning, least squares.

Each way is a class in a file of its own, `_by_*.py`, and an entry of `LEARNERS`. `OnlineLearner`
looks one up, cuts the rows to pieces and hands them on.
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

#: Names of ways to learn online.
METHODS = tuple(LEARNERS)


@saved
class OnlineLearner:
    """A network that learns while it runs.

    - "bptt": after every `truncation` rows a step down the gradient of their loss, which looks back
      as many rows; where fewer come at a time, to the rows before them.
    - "rtrl": after every row a step down its exact gradient, from `reservoir.training.rtrl`.
    - "least_squares": after every `truncation` rows one relaxed step of least squares over the last
      `window` rows, `reservoir.training.least_squares.ls_online_step` with ``shrink=1``. The
      weights that take these steps are on trial: where there were rows to look back to
      (`look_back`), those given at first are held, and `params` are the held ones until the trial
      has predicted new rows better, by four standard errors of a paired comparison in which a row
      fades over `window` rows. Then the trial is used, and held in its turn; where it falls behind,
      it begins anew at the weights that are held.

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
    control : Control, optional
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
        control: Control | None = None,
        seed: int = 0,
    ) -> None:
        check_choice("method", method, LEARNERS)
        check_count("truncation", truncation)
        check_count("window", window)
        if not network.cell.causal:
            raise ValueError(
                f"{type(network.cell).__name__} reads rows to come, which are not there yet where "
                "rows are learned from as they come. Use a cell that is causal."
            )
        self.network, self.method, self.running = network, method, False
        self.params = flatten(params, network.shapes())[1]
        objective = Objective(network, l1, l2, clip_norm, control)
        descent = Descent(objective, self.params, solver, learning_rate)
        self.learner = LEARNERS[method](descent, truncation, window, seed)

    def restart(self, state: Array | None = None) -> None:
        """Begin a sequence.

        Parameters
        ----------
        state : array of shape (state_size,), optional
            Zeros by default. That of a `TimedLeakyCell` ends with the time of the row before.
        """
        dtype = self.network.cell.held_in(self.params["coef"].dtype)
        size = self.network.cell.state_size
        start = np.zeros(size, dtype) if state is None else np.array(state, dtype=dtype)
        self.state, self.running = start, True
        self.learner.restart(start)

    def look_back(self, X: Array, Y: Array, start: Array, skip: int = 0) -> None:
        """Take rows that came before, and were learned from elsewhere, for those to look back to.

        The network goes on from where it stands. Only "least_squares" looks back so far.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The last of these rows is the one before the next row to come.
        Y : array of shape (n_samples, n_outputs)
            NaN in rows that are not learned from.
        start : array of shape (state_size,)
            The state before the first of them.
        skip : int, default=0
            Rows at the start that are washout.
        """
        self.learner.past.fill(X, Y, start, skip)

    def learn(self, X: Array, Y: Array, skip: int = 0) -> float:
        """Go through the next rows of the sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        Y : array of shape (n_samples, n_outputs)
            Rows with NaN are run through, not learned from.
        skip : int, default=0
            Rows at the start that are run through, not learned from.

        Returns
        -------
        float
            The mean loss of the predictions made before learning from their targets; NaN if all
            rows were skipped or have no target.
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
                if not np.isfinite(self.state).all():  # nothing can follow from it
                    nothing = np.zeros_like(self.state)
                    self.restart(self.network.cell.before(rows[-1], nothing))
                n_known = int(np.count_nonzero(~np.isnan(targets[n_skipped:]).any(axis=1)))
                if n_known:
                    losses.append(loss)
                    weights.append(n_known)
            return float(np.average(losses, weights=weights)) if losses else np.nan
