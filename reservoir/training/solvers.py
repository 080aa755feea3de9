"""Solvers that use all data at once: L-BFGS, and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from reservoir._typing import Array
from reservoir.training._data import Data
from reservoir.training._evaluation import Evaluator, Report, Training
from reservoir.training._objective import Objective, check_no_dropout
from reservoir.training.bptt import Network
from reservoir.training.controls import Control
from reservoir.training.least_squares._credit import CreditSteps
from reservoir.training.least_squares._iterate import begin
from reservoir.training.least_squares._task import make_task
from reservoir.training.params import Params, flatten, unflatten

__all__ = ["train_lbfgs", "train_least_squares"]


def train_lbfgs(
    network: Network,
    params: Params,
    data: Data,
    *,
    max_iter: int = 200,
    batch_size: int = 32,
    l1: float = 0.0,
    l2: float = 0.0,
    control: Control | None = None,
    validation: Data | None = None,
    refit: bool = False,
    n_iter_no_change: int = 10,
    tol: float = 1e-4,
    random_state: Any = None,
    report: Report | None = None,
) -> Training:
    """Train on all data at once by SciPy's L-BFGS.

    The steps that gradient control samples are drawn only once, so that the objective does not
    change between iterations.

    Parameters
    ----------
    network : Network
        The network to train.
    params : dict of arrays
        Initial weights. Not changed.
    data : Data
        The training sequences.
    max_iter : int, default=200
        Maximal number of iterations.
    batch_size : int, default=32
        Number of sequences that are run in parallel; it affects only memory.
    l1, l2, control, validation, refit, n_iter_no_change, tol, random_state, report
        As in `reservoir.training.trainer.train`.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        If `control` does not return the exact gradient of the objective, or if the cell has
        dropout.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.initializers import initialize
    >>> from reservoir.training.solvers import train_lbfgs
    >>> from reservoir.training.trainer import Data
    >>> network = Network(SimpleCell(8), 1, 1)
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 1))
    >>> data = Data([X[1:]], [X[:-1]])
    >>> params = initialize(network.shapes(), "orthogonal", random_state=0)
    >>> done = train_lbfgs(network, params, data, max_iter=30)
    >>> done.losses[-1] < 0.01 * done.losses[0]
    True
    """
    _check_searchable(network, control)
    seed = np.random.default_rng(random_state).integers(2**63)
    objective = Objective(network, l1, l2, control=control)
    evaluator = Evaluator(objective, data, validation, batch_size, tol, refit, report)
    start, views = flatten(params)
    done = evaluator.begin(views)
    if max_iter == 0:
        return done
    # the objective of scipy's solver: all batches, weighted by their rows
    batches = [data.batch(index) for index in data.by_length(batch_size)]
    weight = sum(batch.total_weight for batch, _ in batches)

    def value_and_gradient(vector: Array) -> tuple[float, Array]:
        now = unflatten(vector.astype(start.dtype), params)
        generator = np.random.default_rng(seed)
        value, total = objective.penalty(now), {k: np.zeros_like(v) for k, v in now.items()}
        for batch, state in batches:
            share = batch.total_weight / weight
            part, grads, _ = objective.loss_and_gradient(now, batch, state, generator)
            value += share * part
            for name, grad in grads.items():
                total[name] += grad * grad.dtype.type(share)
        gradient = objective.gradient(now, total).astype(np.float64)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.inf, np.zeros(start.size)
        return value, gradient

    def after(vector: Array) -> None:
        evaluator.end_epoch(done, unflatten(vector.astype(start.dtype), params))
        if evaluator.unchanged >= n_iter_no_change:
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0, "gtol": 1e-10}
    with np.errstate(over="ignore", invalid="ignore"):
        x0 = start.astype(np.float64)
        minimize(value_and_gradient, x0, (), "L-BFGS-B", True, callback=after, options=options)
    return done


def _check_searchable(network: Network, control: Control | None) -> None:
    """Check that the objective has an exact gradient and is deterministic."""
    if control is not None and not control.is_gradient:
        raise ValueError(
            f"solver='lbfgs' uses line searches, which need the exact gradient; {control} does "
            "not return it. Use a solver of gradient steps, such as 'adam'."
        )
    check_no_dropout(network, "lbfgs")


def train_least_squares(
    network: Network,
    params: Params,
    data: Data,
    *,
    max_iter: int = 200,
    batch_size: int = 32,
    validation: Data | None = None,
    n_iter_no_change: int = 10,
    tol: float = 1e-4,
    tau: float = 0.05,
    report: Report | None = None,
) -> Training:
    """Train on all data at once by the steps of `reservoir.training.least_squares.credit_fit`.

    The first iteration solves for the readout. Each later iteration consists of a backward pass, a
    step that is preconditioned by second moments of regressors and slopes, and another solution for
    the readout. Its result is kept if the squared error falls and the network forgets its initial
    state.

    Parameters
    ----------
    network : Network
        A network with squared errors as the loss, and an output other than "softmax".
    params : dict of arrays
        Initial weights. Not changed.
    data : Data
        The training sequences.
    max_iter, batch_size, validation, n_iter_no_change, tol, report
        As in `train`.
    tau : float, default=0.05
        As in `reservoir.training.least_squares.ls_fit`.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        If the loss or the output of `network` is not supported, or if the cell has dropout.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.solvers import train_least_squares
    >>> from reservoir.training.starts import start
    >>> from reservoir.training.trainer import Data
    >>> network = Network(SimpleCell(8), 1, 1)
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    >>> data = Data([X[1:]], [X[:-1] ** 2])
    >>> params = start(network, data.inputs, data.targets, scheme="esn", random_state=1).params
    >>> done = train_least_squares(network, params, data, max_iter=30)
    >>> done.losses[-1] < 0.2 * done.losses[0]
    True
    """
    if network.loss != "mse" or network.output == "softmax":
        raise ValueError(
            f"solver='least_squares' needs loss='mse' and an output other than 'softmax'; got "
            f"loss={network.loss!r}, output={network.output!r}. Use solver='lbfgs' or 'adam'."
        )
    check_no_dropout(network, "least_squares")
    evaluator = Evaluator(Objective(network), data, validation, batch_size, tol, False, report)
    done = evaluator.begin(params)
    task, weights = make_task(
        params,
        list(data.inputs),
        list(data.targets),
        cell=network.cell,
        output=network.output,
        include_input=network.include_input,
        target="last" if data.last else "step",
        sample_weight=None if data.weights is None else list(data.weights),
        start=data.starts,
    )
    current, steps = begin(task, weights, tau), CreditSteps(task, tau)
    for k in range(max_iter):
        new = steps.step(current) if k else current
        if new is None:
            break
        current = new
        evaluator.end_epoch(done, current.params)
        if evaluator.unchanged >= n_iter_no_change:
            break
    return done
