"""Training: epochs of gradient steps that end with the best iterate.

An epoch plays all sequences, in batches, each cut into chunks of `truncation` steps; behind every
chunk the weights move. Then the loss over everything is measured at the weights as they stand: the
best ones are kept, the start among them, so that training never returns a worse model than it was
given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator
from reservoir.training._optimizer import Optimizer
from reservoir.training.bptt import (
    Batch,
    Network,
    forward,
    loss_and_gradient,
    loss_value,
    make_batch,
)
from reservoir.training.gradient_control import GradientControl, control_penalty
from reservoir.training.least_squares._regression import choose_ridge
from reservoir.training.losses import invert_output, loss_of
from reservoir.training.params import Params, flatten, global_norm, unflatten
from reservoir.training.regularizers import penalty

__all__ = ["Data", "Training", "data_loss", "refit_readout", "train"]

_EVALUATED_STEPS = 2048  # at a time, where only the loss is wanted
_TAU = 0.05  # of the readout that is solved for, as in least squares
_LOST, _SHORTER, _LONGER, _SHORTEST = 2.0, 0.2, 1.3, 1e-8  # see _Pace
_DIVERGED = 1e3  # times the loss at the start, or that of outputs 0, whichever is larger


@dataclass(frozen=True, eq=False)
class Data:
    """Sequences to learn from.

    Parameters
    ----------
    inputs : sequence of arrays of shape (n_steps_i, n_features)
    targets : sequence of arrays of shape (n_steps_i, n_outputs), or with `last` (n_outputs,)
    weights : sequence of arrays of shape (n_steps_i,), or with `last` of numbers, optional
    starts : array of shape (n_sequences, state_size), optional
        The state before each sequence; zeros by default.
    last : bool, default=False
        Whether a sequence has one target, for its last step.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.trainer import Data
    >>> len(Data([np.ones((3, 1))], [np.ones((3, 1))]))
    1
    """

    inputs: Sequence[Array]
    targets: Sequence[Array]
    weights: Sequence[Array] | None = None
    starts: Array | None = None
    last: bool = False

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, index: Array) -> tuple[Batch, Array | None]:
        """Return the sequences of an index side by side, and the states before them."""
        of = [int(i) for i in index]
        batch = make_batch(
            [self.inputs[i] for i in of],
            [self.targets[i] for i in of],
            weights=None if self.weights is None else [self.weights[i] for i in of],
            last=self.last,
        )
        return batch, None if self.starts is None else self.starts[index]

    def by_length(self, size: int) -> list[Array]:
        """Return the indices in groups of a size and of like lengths: little is padded."""
        order = np.argsort([len(X) for X in self.inputs], kind="stable")
        return [order[i : i + size] for i in range(0, len(order), size)]

    def groups(self, size: int, generator: np.random.Generator) -> list[Array]:
        """Return groups of a size and of like lengths, in an order that the generator draws."""
        n = len(self)
        if n <= size:
            return [np.arange(n)]
        mixed = generator.permutation(n)
        lengths = np.array([len(self.inputs[i]) for i in mixed])
        order = mixed[np.argsort(lengths, kind="stable")]
        groups = [order[i : i + size] for i in range(0, n, size)]
        return [groups[i] for i in generator.permutation(len(groups))]


@dataclass(eq=False)
class Training:
    """What training leaves behind.

    Parameters
    ----------
    params : dict of arrays
        The best weights seen.
    losses : list of float
        The loss over the training data, penalties on weights included: at the start, and after
        each epoch.
    validation_losses : list of float
        The same on the validation data, without penalties, if there is any.
    best_epoch : int
        Where `params` come from; 0 is the start.
    trouble : str
        Why training ended before its time, if it did; empty otherwise.
    optimizer_state : object
        Where the optimizer stands.

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
        """Epochs done."""
        return len(self.losses) - 1

    @property
    def criterion(self) -> list[float]:
        """What the best iterate is chosen by: validation if there is any."""
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
    return _play(network, params, data, batch_size, sums=False)[0]


def refit_readout(
    network: Network, params: Params, data: Data, *, batch_size: int = 32, tau: float = 0.05
) -> Params:
    """Return weights whose readout is solved for, given the states: ridge, penalty by GCV.

    Parameters
    ----------
    network : Network
    params : dict of arrays
        Not changed.
    data : Data
    batch_size : int, default=32
    tau : float, default=0.05
        The largest penalty within ``1 + tau`` of the best score is taken.

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
    return _solved(params, _play(network, params, data, batch_size, sums=True)[1], tau)


def _play(
    network: Network, params: Params, data: Data, batch_size: int, *, sums: bool
) -> tuple[float, GramAccumulator]:
    """Return the mean loss and, if asked, what a readout is solved from, in one run."""
    gram = GramAccumulator(network.shapes()["coef"][1], network.n_outputs)
    total = weight = 0.0
    for index in data.by_length(batch_size):
        batch, state = data.batch(index)
        for chunk in batch.chunks(_EVALUATED_STEPS):
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
    """Return weights with a readout solved for, under a penalty of `least` or more."""
    coef, intercept, chosen = choose_ridge(gram, tau)
    if chosen < least:
        solution = gram.solve(least)
        coef, intercept = solution.coef, solution.intercept
    dtype = params["coef"].dtype
    return {**params, "coef": coef.astype(dtype), "intercept": intercept.astype(dtype)}


def controller_of(
    network: Network, control: GradientControl | None, generator: np.random.Generator
) -> Any:
    """Return what `loss_and_gradient` takes as `control`."""
    if control is None or control.weight == 0:
        return None
    return lambda params, trace: control_penalty(network.cell, params, trace, control, generator)


def train(
    network: Network,
    params: Params,
    data: Data,
    optimizer: Optimizer,
    *,
    max_iter: int = 200,
    batch_size: int = 32,
    truncation: int | None = None,
    clip_norm: float | None = 1.0,
    l1: float = 0.0,
    l2: float = 0.0,
    control: GradientControl | None = None,
    validation: Data | None = None,
    refit: bool = False,
    n_iter_no_change: int = 10,
    tol: float = 1e-4,
    random_state: Any = None,
    report: Report | None = None,
) -> Training:
    """Train by gradient steps on mini-batches of sequences.

    Parameters
    ----------
    network : Network
    params : dict of arrays
        Where to start. Not changed.
    data : Data
    optimizer : Optimizer
    max_iter : int, default=200
        Epochs.
    batch_size : int, default=32
        Sequences that are played side by side.
    truncation : int, optional
        Steps between two updates, and those that the gradient looks back; the state goes on. By
        default whole sequences.
    clip_norm : float or None, default=1.0
        The longest gradient that is taken as it is; longer ones are scaled to that norm.
    l1, l2 : float, default=0
        Penalties on the weights, see `reservoir.training.regularizers.penalty`.
    control : GradientControl, optional
    validation : Data, optional
        If given, its loss chooses the best iterate and when to stop.
    refit : bool, default=False
        Whether to solve for the readout after each epoch (`refit_readout`), and to keep that where
        it lowers the loss. For squared errors behind "identity", "tanh" and "logistic"; nothing is
        done for other losses.
    n_iter_no_change : int, default=10
        Epochs without improvement after which training stops.
    tol : float, default=1e-4
        Improvements by less than this share of the best loss do not count.
    random_state : int, Generator or None
        Draws the order of sequences, and the steps that are controlled.
    report : callable, optional
        Called with the `Training` so far, at the start and after each epoch.

    Returns
    -------
    Training

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.initializers import initialize
    >>> from reservoir.training.optimizers import adam
    >>> from reservoir.training.trainer import Data, train
    >>> network = Network(SimpleCell(8), 1, 1)
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    >>> data = Data([X[1:]], [X[:-1]])  # say what came one step before
    >>> params = initialize(network.shapes(), "orthogonal", random_state=0)
    >>> done = train(network, params, data, adam(0.01), max_iter=30, truncation=50)
    >>> done.losses[-1] < 0.05 * done.losses[0]
    True
    """
    generator = np.random.default_rng(random_state)
    judge = Judge(network, data, validation, batch_size, l1, l2, tol, refit)
    vector, views = flatten(params)
    done = judge.begin(views)
    limit = _DIVERGED * max(done.losses[0], judge.silent_loss(views))
    controller = controller_of(network, control, generator)
    if report is not None:
        report(done)
    state, pace = optimizer.init({"all": vector}), _Pace(n_iter_no_change)
    for epoch in range(1, max_iter + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            for index in data.groups(batch_size, generator):
                batch, carried = data.batch(index)
                for chunk in batch.chunks(truncation):
                    if len(chunk.targets) == 0:
                        carried = loss_value(network, views, chunk, carried)[1]
                        continue
                    value, grads, carried = loss_and_gradient(
                        network, views, chunk, carried, control=controller
                    )
                    gradient = total_gradient(views, grads, l1=l1, l2=l2, clip_norm=clip_norm)
                    if not (np.isfinite(value) and np.isfinite(gradient).all()):
                        done.trouble = f"in epoch {epoch} the loss or its gradient overflowed"
                        return done
                    new, state = optimizer.update({"all": vector}, {"all": gradient}, state)
                    vector = pace.step(vector, new["all"])
                    views = unflatten(vector, params)
            views, improved = judge.settle(done, views)
            vector, views = flatten(views)
        done.optimizer_state = state
        if pace.goes_back(done, improved):
            vector, views = flatten(done.params)
        if report is not None:
            report(done)
        if not done.losses[-1] <= limit:
            done.trouble = f"in epoch {epoch} the loss rose to {done.losses[-1]:.3g}"
            return done
        if pace.unchanged >= n_iter_no_change:
            break
    return done


class _Pace:
    """How large steps are. Training that has lost its way goes back to the best weights.

    That is where the loss is twice the best, or half of the patience is used up; steps are then a
    fifth as long, and grow by 1.3 with every improvement, up to their usual length. Near a good
    start, such as a least-squares one, the usual first step leads far away: it takes a few epochs
    to find how long steps may be, and they do not count.
    """

    def __init__(self, patience: int) -> None:
        self.patience, self.scale, self.unchanged = patience, 1.0, 0

    def goes_back(self, done: Training, improved: bool) -> bool:
        self.unchanged = 0 if improved else self.unchanged + 1
        if improved:
            self.scale = min(1.0, self.scale * _LONGER)
        lost = done.criterion[-1] > _LOST * done.criterion[done.best_epoch]
        if not lost and self.unchanged != (self.patience + 1) // 2:
            return False
        self.scale *= _SHORTER
        if lost and self.scale > _SHORTEST:
            self.unchanged -= 1
        return True

    def step(self, old: Array, new: Array) -> Array:
        return new if self.scale == 1 else old + old.dtype.type(self.scale) * (new - old)


def total_gradient(
    views: Params, grads: Params, *, l1: float, l2: float, clip_norm: float | None
) -> Array:
    """Return the gradient with that of the penalties on weights, as one vector, clipped."""
    if l1 or l2:
        _, more = penalty(views, l1=l1, l2=l2)
        grads = {name: grad + more.get(name, 0) for name, grad in grads.items()}
    gradient = np.concatenate([grads[name].ravel() for name in views])
    norm = global_norm({"all": gradient})
    if clip_norm is None or not clip_norm < norm < np.inf:
        return gradient
    return gradient * gradient.dtype.type(clip_norm / norm)


class Judge:
    """Measures weights, and keeps the best."""

    def __init__(
        self,
        network: Network,
        data: Data,
        validation: Data | None,
        batch_size: int,
        l1: float,
        l2: float,
        tol: float,
        refit: bool,
    ) -> None:
        self.network, self.data, self.validation = network, data, validation
        self.batch_size, self.l1, self.l2, self.tol = batch_size, l1, l2, tol
        self.refit = refit and network.loss == "mse" and network.output != "softmax"

    def begin(self, views: Params) -> Training:
        """Return a training that has not begun: the losses at the start."""
        loss = data_loss(self.network, views, self.data, self.batch_size)
        return self._measured(views, loss + self._penalty(views))

    def settle(self, done: Training, views: Params) -> tuple[Params, bool]:
        """End an epoch: solve for the readout if that helps, measure, keep what is best.

        Returns
        -------
        views : dict of arrays
            Where training goes on.
        improved : bool
            Whether the improvement counts.
        """
        loss, gram = _play(self.network, views, self.data, self.batch_size, sums=self.refit)
        loss += self._penalty(views)
        if self.refit and np.isfinite(loss):
            # what the penalty on the readout asks of a ridge, whose errors are summed, not averaged
            least = self.l2 / 2 * self.network.n_outputs * gram.weight
            solved = _solved(views, gram, _TAU, least)
            other = data_loss(self.network, solved, self.data, self.batch_size)
            other += self._penalty(solved)
            if other < loss:
                views, loss = solved, other
        best, now = done.criterion[done.best_epoch], self._measured(views, loss)
        done.losses += now.losses
        done.validation_losses += now.validation_losses
        value = done.criterion[-1]
        if value < best:
            done.params, done.best_epoch = now.params, done.n_epochs
        return views, value < best - self.tol * abs(best)

    def _penalty(self, views: Params) -> float:
        return penalty(views, l1=self.l1, l2=self.l2)[0]

    def _measured(self, views: Params, loss: float) -> Training:
        done = Training({name: array.copy() for name, array in views.items()}, [loss])
        if self.validation is not None:
            done.validation_losses.append(
                data_loss(self.network, views, self.validation, self.batch_size)
            )
        return done

    def silent_loss(self, views: Params) -> float:
        """Return the loss of a readout that says nothing."""
        silent = dict(views)
        for name in ("coef", "intercept"):
            silent[name] = np.zeros_like(views[name])
        return data_loss(self.network, silent, self.data, self.batch_size)
