"""Online learning by truncated BPTT, real-time recurrent learning, or least squares.

Each method is a class in a separate file, `_by_*.py`, and an entry of `LEARNERS`. `OnlineLearner`
selects one of these learners, cuts the rows into chunks, and passes them to the learner.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level, check_choice, check_count
from reservoir.training._objective import Objective
from reservoir.training.bptt import Network
from reservoir.training.controls import Control
from reservoir.training.online._by_gradients import RealTimeRecurrentLearning, TruncatedBPTT
from reservoir.training.online._by_least_squares import WindowedLeastSquares
from reservoir.training.online._learner import Descent, Learner
from reservoir.training.optimizers import Optimizer
from reservoir.training.params import Params, flatten

__all__ = ["METHODS", "OnlineLearner"]

LEARNERS: dict[str, type[Learner]] = {
    "bptt": TruncatedBPTT,
    "rtrl": RealTimeRecurrentLearning,
    "least_squares": WindowedLeastSquares,
}

#: Names of online learning methods.
METHODS = tuple(LEARNERS)

_DIVERGED = 1e6  # a loss so many times that of before, or of outputs of zero, is no bad luck


@saved
class OnlineLearner:
    """A network that is trained online, while it runs.

    - "bptt": after every `truncation` rows, a step is taken down the gradient of their loss. The
      gradient is back-propagated over `truncation` rows, including earlier rows if fewer rows are
      passed at a time.
    - "rtrl": after every row, a step is taken down the exact gradient of its loss, from
      `reservoir.training.rtrl`.
    - "least_squares": after every `truncation` rows, one relaxed least-squares step is taken over
      the last `window` rows, by `reservoir.training.least_squares.ls_online_step` with
      ``shrink=1``. The steps change the trial weights. If `look_back` has provided earlier rows,
      the initial weights are kept as reference weights. In this case, `params` are the reference
      weights until the trial weights predict new rows better by four standard errors, in a paired
      comparison in which the weight of a row decays over `window` rows. From then on, `params` are
      the trial weights; once their lead is large enough, they become the reference weights. If the
      predictions of the trial weights become worse, they are reset to the reference weights.

    Parameters
    ----------
    network : Network
        The network to train.
    params : dict of arrays
        Initial weights, which are copied.
    method : {"bptt", "rtrl", "least_squares"}, default="bptt"
        The learning method.
    solver : str or Optimizer, default="adam"
        Optimizer of the gradient steps: a name in `reservoir.training.optimizers.OPTIMIZERS`, or an
        object with its own learning rate.
    learning_rate : float, default=1e-3
        Learning rate of an optimizer that is given by name.
    truncation : int, default=50
        Number of rows between two updates, except with "rtrl".
    window : int, default=300
        Number of recent rows that "least_squares" uses.
    clip_norm : float or None, default=1.0
        Maximal norm of the gradient. None: the gradient is not clipped.
    clip_value : float or None, default=None
        Largest magnitude of a component of the gradient, applied before `clip_norm`.
    l1, l2 : float, default=0
        Strengths of the penalties on the weights; see `reservoir.training.regularizers.penalty`.
    control : Control, optional
        A method against vanishing gradients, such as `GradientControl`.
    seed : int, default=0
        Seed of the random steps to which gradient control is applied.

    Attributes
    ----------
    params : dict of arrays
        Current weights of the network.
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
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1001, 1))
    >>> params = initialize(network.shapes(), "orthogonal", random_state=0)
    >>> learner = OnlineLearner(network, params, method="rtrl", learning_rate=0.01)
    >>> learner.restart()
    >>> first, *_, last = [learner.learn(X[i + 1 : i + 101], X[i : i + 100])
    ...                    for i in range(0, 1000, 100)]
    >>> last < 0.1 * first
    True
    """

    usual_loss: float = 0.0  # missing in files of earlier versions

    def __init__(
        self,
        network: Network,
        params: Params,
        *,
        method: str = "bptt",
        solver: str | Optimizer = "adam",
        learning_rate: float = 1e-3,
        truncation: int = 50,
        window: int = 300,
        clip_norm: float | None = 1.0,
        clip_value: float | None = None,
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
        self.network, self.method, self.running, self.usual_loss = network, method, False, 0.0
        self.params = flatten(params, network.shapes())[1]
        objective = Objective(network, l1, l2, clip_norm, control, clip_value)
        descent = Descent(objective, self.params, solver, learning_rate)
        self.learner = LEARNERS[method](descent, truncation, window, seed)

    def restart(self, state: Array | None = None) -> None:
        """Start a new sequence.

        Parameters
        ----------
        state : array of shape (state_size,), optional
            Initial state; zeros by default. For a `TimedLeakyCell`, its last entry is the time of
            the previous row.
        """
        dtype = self.network.cell.held_in(self.params["coef"].dtype)
        size = self.network.cell.state_size
        start = np.zeros(size, dtype) if state is None else np.array(state, dtype=dtype)
        self.state, self.running = start, True
        self.learner.restart(start)

    def look_back(self, X: Array, Y: Array, start: Array, skip: int = 0) -> None:
        """Store earlier rows, which the weights have already been trained on, in the window.

        The state of the network does not change. Only "least_squares" uses these rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The input rows, of which the last one directly precedes the next row of `learn`.
        Y : array of shape (n_samples, n_outputs)
            The targets; NaN in rows without a target.
        start : array of shape (state_size,)
            The state before the first row.
        skip : int, default=0
            Number of washout rows at the start, which are not trained on.
        """
        self.learner.past.fill(X, Y, start, skip)

    def learn(self, X: Array, Y: Array, skip: int = 0) -> float:
        """Run the network over the next rows of the sequence, and train it on them.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The input rows.
        Y : array of shape (n_samples, n_outputs)
            The targets. Rows with NaN drive the network, but are not trained on.
        skip : int, default=0
            Number of washout rows at the start, which drive the network, but are not trained on.

        Returns
        -------
        float
            The mean loss of the predictions, which are made before training on their targets; NaN
            if all rows are skipped or have no target.

        Warns
        -----
        ConvergenceWarning
            If a step overflows, or if the loss grows to a million times the first loss and the mean
            square of the targets.
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
                if not np.isfinite(self.state).all():  # the run cannot continue from this state
                    nothing = np.zeros_like(self.state)
                    self.restart(self.network.cell.before(rows[-1], nothing))
                n_known = int(np.count_nonzero(~np.isnan(targets[n_skipped:]).any(axis=1)))
                if n_known:
                    losses.append(loss)
                    weights.append(n_known)
                    if not self.usual_loss and np.isfinite(loss):
                        self.usual_loss = float(loss)
            if losses:
                self._warn_of_divergence(max(losses), Y)
            return float(np.average(losses, weights=weights)) if losses else np.nan

    def _warn_of_divergence(self, loss: float, Y: Array) -> None:
        """Warn if the loss is far above the first one and what outputs of zero would lose."""
        self.usual_loss = max(self.usual_loss, float(np.nanmean(np.square(Y, dtype=np.float64))))
        if _DIVERGED * self.usual_loss < loss < np.inf:  # of overflows the learner itself warns
            warnings.warn(
                f"The loss grew to {loss:.3g}, over a million times the {self.usual_loss:.3g} of "
                "before: learning diverged, or rows are far outside of earlier ones. Lower "
                f"learning_rate={self.learner.descent.rate():g}, and go on from a fit or a copy.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
