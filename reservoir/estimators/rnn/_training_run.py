"""A training run: what to learn from, with which solver, and what to say of it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from reservoir._typing import Array
from reservoir._validation import Sequences, caller_level
from reservoir.estimators._reporting import say
from reservoir.estimators.rnn._network_parameters import WHOLE, name_of_solver
from reservoir.estimators.rnn._starting_weights import rows_per_step
from reservoir.training.bptt import Network
from reservoir.training.hessian_free import HessianFree, train_hessian_free
from reservoir.training.loop_engines import choose, numpy_seconds
from reservoir.training.optimizers import get_optimizer
from reservoir.training.params import Params
from reservoir.training.schedules import get_schedule
from reservoir.training.solvers import train_lbfgs, train_least_squares
from reservoir.training.trainer import Data, Training, train

BATCH_SIZE = 32
TRUNCATION = 50  # steps of one update, where the targets come at every step
# solvers that take all data at once, and what they have no use for
_WHOLE: dict[str, tuple[Callable[..., Training], tuple[str, ...]]] = {
    "lbfgs": (train_lbfgs, ()),
    "least_squares": (train_least_squares, ("l1", "l2", "control", "refit", "random_state")),
    "hessian_free": (train_hessian_free, ("control",)),
}
_STARTING_RUNS = 20  # of a least-squares start, about


def split(
    estimator: Any,
    sequences: Sequences,
    targets: list[Array],
    weights: list[Array] | None,
    skips: list[int],
    starts: list[Array],
    generator: np.random.Generator,
) -> tuple[Data, Data | None]:
    """Return what to learn from, and what to stop by."""
    last = estimator.target == "last"
    inputs, share = list(sequences.arrays), estimator.validation_fraction
    rows = _weights_of_rows(inputs, weights, skips, last)
    plain = weights is None and not any(skips)
    dtype = estimator._dtype_asked_for()
    whole = Data(inputs, targets, None if plain else rows, np.stack(starts), last, dtype)
    if not estimator.early_stopping:
        require_targets(rows)
        return whole, None
    # of several sequences some are held out, of a single one its end
    if len(inputs) > 1:
        labels = None
        if last and is_classifier(estimator):  # one-hot; -1 for what does not count
            counts = np.array([(row > 0).any() for row in rows])
            labels = np.where(counts, np.stack(targets).argmax(axis=1), -1)
        kept, out = _drawn_apart(len(inputs), share, generator, labels)
        require_targets([rows[i] for i in kept])
        require_targets([rows[i] for i in out], "stop by")
        return whole.picked(kept), whole.picked(out)
    if last:
        raise ValueError(
            "early_stopping needs at least two sequences where target='last'; X holds one."
        )
    cut = len(inputs[0]) - max(1, round(share * len(inputs[0])))
    head, tail = rows[0][:cut].copy(), rows[0].copy()
    tail[:cut] = 0
    require_targets([head])
    require_targets([tail], "stop by")
    begin = Data([inputs[0][:cut]], [targets[0][:cut]], [head], whole.starts, last, whole.dtype)
    return begin, Data(inputs, targets, [tail], whole.starts, last, whole.dtype)


def _weights_of_rows(
    inputs: list[Array], weights: list[Array] | None, skips: list[int], last: bool
) -> list[Array]:
    """Return how much each target counts: 1 at most, 0 in the washout."""
    rows = [np.ones(1 if last else len(X)) for X in inputs]
    if weights is not None:
        largest = max(float(w.max(initial=0.0)) for w in weights) or 1.0
        rows = [np.asarray(w, dtype=np.float64) / largest for w in weights]
    for row, skip in zip(rows, skips, strict=True):
        row[:skip] = 0
    return rows


def _drawn_apart(
    n: int, share: float, generator: np.random.Generator, labels: Array | None = None
) -> tuple[Array, Array]:
    """Return which of n sequences are learned from, and which are held out.

    With labels (codes; -1 for sequences that do not count) the last sequence of a class is not held
    out as long as there is another one to hold out in its place.
    """
    n_held, order = max(1, round(share * n)), generator.permutation(n)
    if n_held >= n:
        raise ValueError(
            f"validation_fraction={share} leaves none of {n} sequences to learn from. Lower it."
        )
    if labels is not None:
        left = Counter(labels.tolist())
        last_ones = []
        for i in order:
            last_ones.append(labels[i] >= 0 and left[labels[i]] == 1)
            left[labels[i]] -= 1
        order = order[np.argsort(last_ones, kind="stable")]
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def require_targets(rows: list[Array], what: str = "fit") -> None:
    """Refuse data of which no row counts."""
    if not any((row > 0).any() for row in rows):
        raise ValueError(f"No rows to {what}: every row has weight 0 or lies in the washout.")


def run_training(
    estimator: Any,
    network: Network,
    params: Params,
    data: Data,
    validation: Data | None,
    generator: np.random.Generator,
) -> Training:
    """Train as the estimator's parameters say."""
    size = size_of_batch(estimator)
    options: dict[str, Any] = {
        "max_iter": estimator.max_iter,
        "batch_size": size,
        "l1": estimator.l1,
        "l2": estimator.alpha,
        "control": estimator._control,
        "validation": validation,
        "refit": estimator.refit_readout,
        "n_iter_no_change": estimator.n_iter_no_change,
        "tol": estimator.tol,
        "random_state": generator,
        "report": partial(_show, total=estimator.max_iter) if estimator.verbose else None,
    }
    # solvers that take all data at once have no steps to size
    solver = name_of_solver(estimator.solver)
    if solver in _WHOLE:
        solve, unused = _WHOLE[solver]
        if isinstance(estimator.solver, HessianFree):
            options |= asdict(estimator.solver)
        used = {name: value for name, value in options.items() if name not in unused}
        return solve(network, params, data, **used)
    # schedules count epochs, optimizers updates
    truncation = steps_of_update(estimator) if network.cell.causal else None
    n_updates = sum(
        -(-max(len(data.inputs[i]) for i in index) // (truncation or 10**9))
        for index in data.by_length(size)
    )
    schedule = get_schedule(
        estimator.learning_rate, estimator.learning_rate_init, max(estimator.max_iter, 1)
    )
    optimizer = get_optimizer(estimator.solver, learning_rate=lambda n: schedule(n / n_updates))
    return train(
        network,
        params,
        data,
        optimizer,
        truncation=truncation,
        clip_norm=estimator.clip_norm,
        **options,
    )


def engine_for_training(estimator: Any, network: Network, data: Data) -> str:
    """Choose who loops over time, by how long all of the training would take NumPy."""
    size = min(size_of_batch(estimator), len(data))
    n_steps = sum(len(X) for X in data.inputs) / size
    seconds = numpy_seconds((1, size, rows_per_step(network.cell)))
    return choose("auto", seconds * n_steps * (estimator.max_iter + _STARTING_RUNS))


def size_of_batch(estimator: Any) -> int:
    """Return how many sequences are played side by side."""
    return BATCH_SIZE if estimator.batch_size == "auto" else estimator.batch_size


def steps_of_update(estimator: Any) -> int | None:
    """Return the steps of one update; None for whole sequences."""
    if estimator.truncation == "auto":
        whole = estimator.target == "last" or name_of_solver(estimator.solver) in WHOLE
        return None if whole else TRUNCATION
    return estimator.truncation


def warn_of_trouble(estimator: Any, done: Training) -> bool:
    """Say what went wrong, if something did; return whether it was said."""
    # the worst first: at most one is said
    if done.trouble:
        text = (
            f"Training diverged: {done.trouble}. The weights of epoch {done.best_epoch} are "
            f"kept, loss {estimator.best_loss_:.3g}. Lower learning_rate_init="
            f"{estimator.learning_rate_init:g}, or clip_norm."
        )
    elif (
        done.n_epochs
        and done.best_epoch == 0
        and estimator._drawn_at_random
        and estimator.best_loss_
    ):
        best = int(np.argmin(done.criterion[1:])) + 1
        text = (
            f"Training did not improve on its start in {done.n_epochs} epochs: loss "
            f"{done.criterion[0]:.3g} there, at best {done.criterion[best]:.3g} in epoch "
            f"{best}. The start is kept. Lower learning_rate_init="
            f"{estimator.learning_rate_init:g}, "
            'or use solver="lbfgs".'
        )
    elif not done.n_epochs and estimator.init == "auto" and estimator._drawn_at_random:
        text = (
            f"max_iter=0 leaves the weights as they were drawn, which know nothing: starts from "
            f"data do not know {type(estimator.network_.cell).__name__}. Set max_iter above 0, or "
            "give init= a fitted network."
        )
    else:
        return False
    warnings.warn(text, ConvergenceWarning, stacklevel=caller_level())
    return True


def _show(done: Training, *, total: int) -> None:
    """Report an epoch."""
    valid = ""
    if done.validation_losses:
        valid = f", validation {done.validation_losses[-1]:.6g}"
    best = done.criterion[done.best_epoch]
    say(
        f"Epoch {done.n_epochs} of {total}: loss {done.losses[-1]:.6g}{valid}; best {best:.6g} "
        f"in epoch {done.best_epoch}"
    )
