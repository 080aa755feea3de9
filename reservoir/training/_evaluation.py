"""Evaluation of weights on all the data: the loss, the least-squares readout, the history."""

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
_TAU = 0.05  # `tau` of `refit_readout`, the same as in least-squares training


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
        The loss over the validation data, without penalties, at the start and after each epoch;
        empty if there are no validation data.
    best_epoch : int
        Epoch after which `params` were recorded; 0 is the start.
    trouble : str
        Reason why training failed and ended early; empty if it did not.
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
        """Losses that determine the best weights: on the validation data, if there are any."""
        return self.validation_losses or self.losses


Report = Callable[[Training], None]


def data_loss(network: Network, params: Params, data: Data, batch_size: int = 32) -> float:
    """Return a network's mean loss over all targets of all sequences.

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
    """Return the weights with a new readout, solved for by ridge regression.

    The ridge penalty is chosen by generalised cross-validation (GCV).

    Parameters
    ----------
    network : Network
    params : dict of arrays
        Not changed.
    data : Data
    batch_size : int, default=32
    tau : float, default=0.05
        Tolerance of the choice: the largest penalty whose GCV score is within a factor ``1 + tau``
        of the best score is chosen.

    Returns
    -------
    dict of arrays
        The weights, with new values of "coef" and "intercept".

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
    """Return the weights with a readout solved for with a ridge penalty of at least `least`."""
    coef, intercept, chosen = choose_ridge(gram, tau)
    if chosen < least:
        solution = gram.solve(least)
        coef, intercept = solution.coef, solution.intercept
    dtype = params["coef"].dtype
    return {**params, "coef": coef.astype(dtype), "intercept": intercept.astype(dtype)}


@dataclass
class Evaluator:
    """Evaluator of the weights after each epoch, which records the best ones in a `Training`.

    The loss over `validation`, if given, otherwise over `data`, decides which weights are best. An
    improvement below `tol` times the best loss does not count. With `refit`, the readout is solved
    for if the loss is the squared error.
    """

    objective: Objective
    data: Data
    validation: Data | None
    batch_size: int
    tol: float
    refit: bool
    report: Report | None
    unchanged: int = 0  # epochs since the last improvement that counted
    since: int = 0  # first epoch whose loss is compared with later ones
    home: Params = field(default_factory=dict)  # the best weights from epoch `since` on

    def begin(self, params: Params) -> Training:
        """Return a `Training` of zero epochs, with the losses of the initial weights."""
        done = self._record(params, self._loss(params))
        self.home = done.params
        if self.report is not None:
            self.report(done)
        return done

    def end_epoch(self, done: Training, params: Params) -> Params:
        """Measure the loss after an epoch, record the best weights, and return the current ones.

        With `refit`, the readout is solved for, and the solution is kept if it lowers the loss.
        """
        network = self.objective.network
        # the loss, with the present readout or the least-squares one
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
        """Return the smallest loss since epoch `since`."""
        return min(done.criterion[self.since :])

    def count_from_here(self, done: Training, params: Params) -> None:
        """Compare later losses only with those from this epoch; keep the best weights of all."""
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
