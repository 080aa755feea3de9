"""Training over epochs of gradient steps; the best weights seen are returned.

An epoch runs over all sequences, in batches that are cut into chunks of `truncation` steps; the
weights are updated after every chunk. At the end of the epoch, the loss over all data is measured
at the current weights. The best weights seen, including the initial ones, are kept, so that
training never returns a worse model than it started from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.training._data import Data
from reservoir.training._evaluation import Evaluator, Report, Training, data_loss, refit_readout
from reservoir.training._objective import Objective
from reservoir.training.bptt import Batch, Network, loss_value
from reservoir.training.controls import Control
from reservoir.training.curricula import Curriculum, GrowingLength
from reservoir.training.optimizers import Optimizer
from reservoir.training.params import Params, flatten

__all__ = ["Data", "Training", "data_loss", "refit_readout", "train"]

Batches = Iterable[tuple[Batch, Array | None]]  # with the initial states

_LOST, _SHORTER, _LONGER, _SHORTEST = 2.0, 0.2, 1.3, 1e-8  # see _Steps
_DIVERGED = 1e3  # times the larger of the initial loss and the loss with all scores 0


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
    clip_value: float | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    control: Control | None = None,
    curriculum: Curriculum | None = None,
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
        The network to train.
    params : dict of arrays
        Initial weights. Not changed.
    data : Data
        The training sequences.
    optimizer : Optimizer
        The rule for the updates of the weights.
    max_iter : int, default=200
        Maximal number of epochs.
    batch_size : int, default=32
        Number of sequences per batch, which are run in parallel.
    truncation : int, optional
        Number of steps between two updates, over which the gradient is back-propagated; the state
        is carried over from one chunk to the next. By default, the gradient covers whole sequences,
        which is required for a cell that is not `causal`.
    clip_norm : float or None, default=1.0
        Maximal norm of the gradient: a gradient with a larger norm is scaled down to it. None: the
        gradient is not clipped.
    clip_value : float or None, default=None
        Largest magnitude of a component of the gradient: larger components are set to it, with
        their sign, before `clip_norm` is applied.
    l1, l2 : float, default=0
        Strengths of the penalties on the weights; see `reservoir.training.regularizers.penalty`.
    control : Control, optional
        A method against vanishing gradients, such as `GradientControl`.
    curriculum : Curriculum, optional
        Selection of the data for the first epochs; see `reservoir.training.curricula`. Losses are
        always measured on all the data.
    validation : Data, optional
        Validation data. If given, their loss determines the best weights and when to stop.
    refit : bool, default=False
        Whether to solve for the readout after each epoch (`refit_readout`), and to keep the
        solution if it lowers the loss. Only for squared errors with output "identity", "tanh" or
        "logistic"; ignored otherwise.
    n_iter_no_change : int, default=10
        Number of epochs without improvement after which training stops.
    tol : float, default=1e-4
        Minimal improvement relative to the best loss; smaller improvements do not count.
    random_state : int, Generator or None
        Source of the random order of the sequences, and of the random steps to which gradient
        control is applied.
    report : callable, optional
        Function that is called with the `Training` so far, at the start and after each epoch.

    Returns
    -------
    Training

    Raises
    ------
    TypeError
        If `curriculum` is not a `Curriculum`.
    ValueError
        If `truncation` or a `GrowingLength` is combined with a cell that reads the rows after each
        step, or if `max_iter` does not exceed the number of epochs of the curriculum.

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
    >>> data = Data([X[1:]], [X[:-1]])  # predict the input one step before
    >>> params = initialize(network.shapes(), "orthogonal", random_state=0)
    >>> done = train(network, params, data, adam(0.01), max_iter=30, truncation=50)
    >>> done.losses[-1] < 0.05 * done.losses[0]
    True
    """
    n_easy = _length_of(curriculum, network, truncation, max_iter)
    generator = np.random.default_rng(random_state)
    objective = Objective(network, l1, l2, clip_norm, control, clip_value)
    evaluator = Evaluator(objective, data, validation, batch_size, tol, refit, report)
    now = flatten(params)[1]  # a fixed memory layout, on which the rounding of products depends
    done = evaluator.begin(now)
    limit = _DIVERGED * max(done.losses[0], evaluator.loss_of_zero_scores(now))
    steps = _Steps(objective, optimizer, now, n_iter_no_change)
    for epoch in range(1, max_iter + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            # one pass over the sequences, then the loss at the new weights
            part = data if curriculum is None else curriculum.of_epoch(data, epoch)
            batches = map(part.batch, part.groups(batch_size, generator))
            moved = steps.run(now, batches, truncation, generator)
            if moved is None:
                done.trouble = f"in epoch {epoch} the loss or its gradient overflowed"
                return done
            done.optimizer_state = steps.state
            now = flatten(evaluator.end_epoch(done, moved))[1]
        if epoch <= n_easy:  # a high loss on data not trained on yet does not mean bad steps
            evaluator.count_from_here(done, now)
        elif steps.go_back(done, evaluator):
            now = flatten(evaluator.home)[1]
        # stop if the loss diverges or no longer falls
        if not done.losses[-1] <= limit:
            done.trouble = f"in epoch {epoch} the loss rose to {done.losses[-1]:.3g}"
            return done
        if evaluator.unchanged >= n_iter_no_change:
            break
    return done


def _length_of(
    curriculum: Curriculum | None, network: Network, truncation: int | None, max_iter: int
) -> int:
    """Return the number of epochs of a curriculum; raise an error if training cannot follow it."""
    if curriculum is not None and not isinstance(curriculum, Curriculum):
        raise TypeError(
            f"curriculum={curriculum!r} must be an object of reservoir.training.curricula, such as "
            "EasyFirst or GrowingLength."
        )
    cuts = isinstance(curriculum, GrowingLength)
    if (truncation is not None or cuts) and not network.cell.causal:
        what = curriculum if cuts else f"truncation={truncation}"
        raise ValueError(
            f"{what} shortens sequences, but {type(network.cell).__name__} also needs the rows "
            "after each step. "
            f"Use {'EasyFirst' if cuts else 'truncation=None'}."
        )
    n_easy = 0 if curriculum is None else curriculum.n_epochs
    if 0 < max_iter <= n_easy:
        raise ValueError(
            f"max_iter={max_iter} is too small: {curriculum} leaves out part of the data in the "
            f"first {n_easy} epochs. Set a larger max_iter."
        )
    return n_easy


class _Steps:
    """Optimizer steps, which are shortened and restarted from the best weights if training is lost.

    Training is lost if the loss is more than twice the best one, or if half of the patience
    (`n_iter_no_change` epochs) has passed without an improvement. The steps are then shortened to a
    fifth of their length; with every improvement they grow by a factor of 1.3, up to their full
    length. Near a good start, such as a least-squares solution, full first steps lead far away: it
    takes a few epochs to find a suitable length, and these do not use up the patience.
    """

    def __init__(
        self, objective: Objective, optimizer: Optimizer, params: Params, patience: int
    ) -> None:
        self.objective, self.optimizer, self.patience = objective, optimizer, patience
        self.state = optimizer.init(params)
        self.scale = 1.0

    def run(
        self, params: Params, batches: Batches, truncation: int | None, rng: np.random.Generator
    ) -> Params | None:
        """Return the weights after one step per chunk, or None if loss or gradient overflows."""
        for batch, state in batches:
            for chunk in batch.chunks(truncation):
                if len(chunk.targets) == 0:
                    state = loss_value(self.objective.network, params, chunk, state)[1]
                    continue
                loss, grads, state = self.objective.loss_and_gradient(params, chunk, state, rng)
                moved = self._step(params, loss, grads)
                if moved is None:
                    return None
                params = moved
        return params

    def _step(self, params: Params, loss: float, grads: Params) -> Params | None:
        done = self.objective.step(self.optimizer, self.state, params, loss, grads)
        if done is None:
            return None
        moved, self.state = done
        if self.scale == 1:
            return moved
        scale = params["coef"].dtype.type(self.scale)
        return {name: old + scale * (moved[name] - old) for name, old in params.items()}

    def go_back(self, done: Training, evaluator: Evaluator) -> bool:
        """Adapt the length of the steps; return whether to restart from the best weights."""
        if evaluator.unchanged == 0:
            self.scale = min(1.0, self.scale * _LONGER)
        lost = done.criterion[-1] > _LOST * evaluator.least(done)
        if not lost and evaluator.unchanged != (self.patience + 1) // 2:
            return False
        self.scale *= _SHORTER
        if lost and self.scale > _SHORTEST:
            evaluator.unchanged -= 1
        return True
