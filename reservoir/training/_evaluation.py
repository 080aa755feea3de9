"""Evaluation of weights on all the data: the loss, a readout solved for, the training record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reservoir._validation import SumError
from reservoir.readouts import GramAccumulator
from reservoir.training._data import Data
from reservoir.training._objective import Objective
from reservoir.training.bptt import Network, forward
from reservoir.training.least_squares._regression import choose_ridge
from reservoir.training.losses import invert_output, loss_of
from reservoir.training.params import Params

_CHUNK_STEPS = 2048  # steps per chunk: no gradient is needed here
_TAU = 0.05  # for solving for the readout, as in least squares


@dataclass(eq=False)
class Training:
    """Result of training.

    Parameters
    ----------
    params : dict of arrays
        The best weights seen.
    losses : list of float
        The loss over the training data, including penalties on weights, at the start and after
        each epoch.
    validation_losses : list of float
        The loss over the validation data, if there is any, without penalties.
    best_epoch : int
        Epoch of `params`; 0 is the start.
    trouble : str
        Reason for ending early, if training did; empty otherwise.
    optimizer_state : object
        Current state of the optimizer.

    Examples
    --------
    >>> from reservoir.training.trainer import Training
    >>> Training({}, [0.5]).n_epochs
    0
    """

    params: Params
    losses: list[float]
    validation_losses: list[float] = field(default_factory=list)
    best_epoch: int = 0
    trouble: str = ""
    optimizer_state: Any = None

    @property
    def n_epochs(self) -> int:
        """Number of completed epochs."""
        return len(self.losses) - 1

    @property
    def criterion(self) -> list[float]:
        """Losses that determine the best iterate: on validation data if there is any."""
        return self.validation_losses or self.losses


Report = Callable[[Training], None]


def data_loss(network: Network, params: Params, data: Data, batch_size: int = 32) -> float:
    """Return the mean loss over all targets of all sequences.

    Parameters
    ----------
    network : Network
    params : dict of arrays
    data : Data
    batch_size : int, default=32

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.trainer import Data, data_loss
    >>> network = Network(SimpleCell(1), 1, 1)
    >>> weights = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    >>> data_loss(network, weights, Data([np.zeros((2, 1))], [np.ones((2, 1))]))
    1.0
    """
    return _run_over(network, params, data, batch_size, sums=False)[0]


def refit_readout(
    network: Network, params: Params, data: Data, *, batch_size: int = 32, tau: float = 0.05
) -> Params:
    """Return weights with the readout solved by ridge regression, its penalty chosen by GCV.

    Parameters
    ----------
    network : Network
    params : dict of arrays
        Not changed.
    data : Data
    batch_size : int, default=32
    tau : float, default=0.05
        The largest penalty whose score is within a factor ``1 + tau`` of the best one is chosen.

    Returns
    -------
    dict of arrays

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.initializers import initialize
    >>> from reservoir.training.trainer import Data, data_loss, refit_readout
    >>> network = Network(SimpleCell(30), 1, 1)
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    >>> data = Data([X[1:]], [X[:-1]])
    >>> params = initialize(network.shapes(), "orthogonal", random_state=0)
    >>> solved = refit_readout(network, params, data)
    >>> data_loss(network, solved, data) < 0.1 * data_loss(network, params, data)
    True
    """
    return _solved(params, _run_over(network, params, data, batch_size, sums=True)[1], tau)


def _run_over(
    network: Network, params: Params, data: Data, batch_size: int, *, sums: bool
) -> tuple[float, GramAccumulator]:
    """Return the mean loss over the data and, with `sums`, the Gram sums for a readout."""
    gram = GramAccumulator(network.shapes()["coef"][1], network.n_outputs)
    total = weight = 0.0
    for index in data.by_length(batch_size):
        batch, state = data.batch(index)
        for chunk in batch.chunks(_CHUNK_STEPS if network.cell.causal else None):
            trace, features, scores = forward(network, params, chunk, state)
            state = trace.end
            if len(scores) == 0:
                continue
            value = loss_of(scores, chunk.targets, network.output, network.loss, chunk.weights)
            total += value * chunk.total_weight
            weight += chunk.total_weight
            if sums:
                latent = invert_output(chunk.targets.astype(np.float64), network.output)
                gram.update(features, latent, chunk.weights)
    return total / weight, gram


def _solved(params: Params, gram: GramAccumulator, tau: float, least: float = 0.0) -> Params:
    """Return weights with the readout solved for, with a penalty of at least `least`."""
    coef, intercept, chosen = choose_ridge(gram, tau)
    if chosen < least:
        solution = gram.solve(least)
        coef, intercept = solution.coef, solution.intercept
    dtype = params["coef"].dtype
    return {**params, "coef": coef.astype(dtype), "intercept": intercept.astype(dtype)}


@dataclass
class Evaluator:
    """Evaluator of the weights after each epoch; records the best in a `Training` and reports it.

    Parameters
    ----------
    objective : Objective
    data : Data
    validation : Data or None
        If given, its loss determines which weights are best.
    batch_size : int
    tol : float
        Improvements by less than this share of the best loss do not count.
    refit : bool
        Whether to solve for the readout, if the loss is the squared error.
    report : callable or None
        Called with the `Training` so far, at the start and after each epoch.
    unchanged : int, default=0
        Epochs since the last improvement larger than `tol`.
    since : int, default=0
        First epoch whose loss later ones are compared with.
    home : dict of arrays
        The best weights since that epoch.
    """

    objective: Objective
    data: Data
    validation: Data | None
    batch_size: int
    tol: float
    refit: bool
    report: Report | None
    unchanged: int = 0
    since: int = 0
    home: Params = field(default_factory=dict)

    def begin(self, params: Params) -> Training:
        """Return a `Training` of no epochs, with the losses at the start."""
        done = self._record(params, self._loss(params))
        self.home = done.params
        if self.report is not None:
            self.report(done)
        return done

    def end_epoch(self, done: Training, params: Params) -> Params:
        """Solve for the readout if that helps, measure the loss, and record the best weights.

        Returns the weights from which training continues.
        """
        network = self.objective.network
        # the loss, with the present readout or the one solved for
        refit = self.refit and network.loss == "mse" and network.output != "softmax"
        try:
            loss, gram = _run_over(network, params, self.data, self.batch_size, sums=refit)
        except SumError:  # squares of the states overflow: the readout cannot be solved for
            refit = False
            loss, gram = _run_over(network, params, self.data, self.batch_size, sums=False)
        loss += self.objective.penalty(params)
        if refit and np.isfinite(loss):
            # the ridge penalty equal to l2: ridge sums squared errors, the loss averages them
            least = self.objective.l2 / 2 * network.n_outputs * gram.weight
            solved = _solved(params, gram, _TAU, least)
            other = self._loss(solved)
            if other < loss:
                params, loss = solved, other
        # the record, and whether this epoch counts as an improvement
        best, least = done.criterion[done.best_epoch], self.least(done)
        now = self._record(params, loss)
        done.losses += now.losses
        done.validation_losses += now.validation_losses
        value = done.criterion[-1]
        if value < best:
            done.params, done.best_epoch = now.params, done.n_epochs
        if value < least:
            self.home = now.params
        self.unchanged = 0 if value < least - self.tol * abs(least) else self.unchanged + 1
        if self.report is not None:
            self.report(done)
        return params

    def least(self, done: Training) -> float:
        """Return the least loss of the epochs that count."""
        return min(done.criterion[self.since :])

    def count_from_here(self, done: Training, params: Params) -> None:
        """Count improvements from the present epoch; the best weights of all epochs are kept."""
        self.since, self.unchanged = done.n_epochs, 0
        self.home = {name: array.copy() for name, array in params.items()}

    def loss_of_zero_scores(self, params: Params) -> float:
        """Return the loss, without penalties, of the same network with a readout of zeros."""
        zeros = {name: np.zeros_like(params[name]) for name in ("coef", "intercept")}
        return data_loss(self.objective.network, {**params, **zeros}, self.data, self.batch_size)

    def _loss(self, params: Params) -> float:
        loss = data_loss(self.objective.network, params, self.data, self.batch_size)
        return loss + self.objective.penalty(params)

    def _record(self, params: Params, loss: float) -> Training:
        done = Training({name: array.copy() for name, array in params.items()}, [loss])
        if self.validation is not None:
            network = self.objective.network
            done.validation_losses = [data_loss(network, params, self.validation, self.batch_size)]
        return done
