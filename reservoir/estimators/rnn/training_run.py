"""A training run: what to learn from, where it starts, with which solver, and what to say of it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from reservoir._typing import Array
from reservoir._validation import Sequences, caller_level, resolve_washout
from reservoir.activations import ACTIVATIONS
from reservoir.estimators.reading import TrainingData
from reservoir.estimators.reporting import say
from reservoir.estimators.rnn._network_parameters import WHOLE, name_of_solver
from reservoir.estimators.rnn.network_model import BATCH_SIZE, NetworkModel, Recent
from reservoir.estimators.rnn.start import filled, known_rows, read_control, rows_per_step
from reservoir.training.bptt import Network
from reservoir.training.cells import Cell
from reservoir.training.hessian_free import HessianFree, train_hessian_free
from reservoir.training.loop_engines import choose, numpy_seconds
from reservoir.training.optimizers import get_optimizer
from reservoir.training.params import Params
from reservoir.training.schedules import get_schedule
from reservoir.training.solvers import train_lbfgs, train_least_squares
from reservoir.training.trainer import Data, Training, train

TRUNCATION = 50  # steps of one update, where the targets come at every step
#: Solvers that take all data at once; of the settings each takes those that it names.
_WHOLE: dict[str, Callable[..., Training]] = {
    "lbfgs": train_lbfgs,
    "least_squares": train_least_squares,
    "hessian_free": train_hessian_free,
}
_STARTING_RUNS = 20  # of a least-squares start, about
_FLAT = 3.0  # a sum beyond which tanh has a slope below .01
_MOST = 0.5  # of the sums; outliers take fewer
_LONGEST = 0.5  # what a step may move the sum of a bounded unit by
_LOOKED_AT = 1000  # rows in all, at most
_FEWEST_ROWS = 10  # rows: fewer say nothing
_BY_RATE = ("adam", "nadam", "rmsprop", "adagrad")  # move each weight by about the rate
_REMEDY = "Scale X (StandardScaler in a pipeline, within PerStep for sequences)"


class Task(NamedTuple):
    """The data that a network learns, and the held-out data that stop its training.

    Attributes
    ----------
    learned : Data
    validation : Data or None
    sequences : Sequences
        All of them, those held out too.
    targets : list of arrays
        Without NaN: `known` says which rows have one; None if all have.
    known : list of arrays or None
    weights : list of arrays or None
        0 where a target is missing.
    skips : list of int
        Rows of each sequence that are washout.
    starts : list of arrays
        The state before each sequence.
    """

    learned: Data
    validation: Data | None
    sequences: Sequences
    targets: list[Array]
    known: list[Array] | None
    weights: list[Array] | None
    skips: list[int]
    starts: list[Array]


def training_task(
    estimator: Any, model: NetworkModel, data: TrainingData, generator: np.random.Generator
) -> Task:
    """Return what a network is to learn: washout, missing targets and held-out rows apart."""
    sequences, known = data.sequences, known_rows(data.targets)
    weights, targets = weights_of_known(data.weights, known), filled(data.targets, known)
    skips = washout_lengths(estimator, sequences.lengths)
    starts = model.initial_states(estimator.initial_state, sequences)
    learned, validation = _split(
        estimator, sequences, targets, weights, skips, starts, model.dtype, generator
    )
    return Task(learned, validation, sequences, targets, known, weights, skips, starts)


def washout_lengths(estimator: Any, lengths: list[int]) -> list[int]:
    """Return how many rows at the start of each sequence have no part in the loss."""
    several = len(lengths) > 1 and isinstance(estimator.washout, str)  # each starts from zeros
    if several or estimator.target == "last":
        return [0] * len(lengths)
    return resolve_washout(estimator.washout, lengths)


def weights_of_known(weights: list[Array] | None, known: list[Array] | None) -> list[Array] | None:
    """Return the weights of rows, 0 where a target is missing; None where all are equal."""
    if known is None:
        return weights
    if weights is None:
        return [rows.astype(np.float64) for rows in known]
    return [w * rows for w, rows in zip(weights, known, strict=True)]


def _split(
    estimator: Any,
    sequences: Sequences,
    targets: list[Array],
    weights: list[Array] | None,
    skips: list[int],
    starts: list[Array],
    dtype: str,
    generator: np.random.Generator,
) -> tuple[Data, Data | None]:
    """Return what to learn from, and what to stop by."""
    last = estimator.target == "last"
    inputs, share = list(sequences.arrays), estimator.validation_fraction
    rows = _weights_of_rows(inputs, weights, skips, last)
    plain = weights is None and not any(skips)
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
        "control": read_control(estimator.gradient_control),
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
        solve = _WHOLE[solver]
        if isinstance(estimator.solver, HessianFree):
            options |= asdict(estimator.solver)
        known = signature(solve).parameters
        used = {name: value for name, value in options.items() if name in known}
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


def last_rows(estimator: Any, model: NetworkModel, task: Task) -> Recent | None:
    """Return the rows that `partial_fit` looks back to after `fit`; None if it does not.

    Targets of rows of weight 0 are NaN.
    """
    if estimator.online != "least_squares" or estimator.target == "last":
        return None
    rows, values = task.sequences.arrays[-1], task.targets[-1].astype(model.dtype)
    if task.weights is not None:
        values[task.weights[-1] == 0] = np.nan
    first, start = max(len(rows) - estimator.online_window, 0), task.starts[-1]
    if first:
        start = model.run(Sequences((rows[:first],), "table"), task.starts[-1:])[1][0]
    return rows[first:].copy(), values[first:].copy(), start, max(task.skips[-1] - first, 0)


def check_loss_finite(done: Training) -> None:
    """Refuse a run whose loss was never finite."""
    if not np.isfinite(done.criterion[done.best_epoch]):
        raise ValueError(
            "The loss overflows from the start on. Scale X and y, or use a bounded activation "
            'such as "tanh".'
        )


def warn_of_trouble(estimator: Any, network: Network, done: Training, *, drawn: bool) -> bool:
    """Say what went wrong, if something did; return whether it was said.

    `drawn` says whether the weights were random at the start.
    """
    loss = done.criterion[done.best_epoch]
    # the worst first: at most one is said
    if done.trouble:
        text = (
            f"Training diverged: {done.trouble}. The weights of epoch {done.best_epoch} are "
            f"kept, loss {loss:.3g}. Lower learning_rate_init="
            f"{estimator.learning_rate_init:g}, or clip_norm."
        )
    elif done.n_epochs and done.best_epoch == 0 and drawn and loss:
        best = int(np.argmin(done.criterion[1:])) + 1
        text = (
            f"Training did not improve on its start in {done.n_epochs} epochs: loss "
            f"{done.criterion[0]:.3g} there, at best {done.criterion[best]:.3g} in epoch "
            f"{best}. The start is kept. Lower learning_rate_init="
            f"{estimator.learning_rate_init:g}, "
            'or use solver="lbfgs".'
        )
    elif not done.n_epochs and estimator.init == "auto" and drawn:
        text = (
            f"max_iter=0 leaves the weights as they were drawn, which know nothing: starts from "
            f"data do not know {type(network.cell).__name__}. Set max_iter above 0, or "
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


# ---------------------------------------------------------------------- inputs that are too large


def rate_of(estimator: Any) -> float:
    """Return how far an update moves each weight of a network, about; 0 where none can tell."""
    return estimator.learning_rate_init if estimator.solver in _BY_RATE else 0.0


def warn_of_large_inputs(
    network: Network, params: Params, data: Data, *, rate: float = 0.0
) -> bool:
    """Say so where inputs are too large for the weights, or for the steps; return whether it was.

    Sums that are flat are beyond learning; steps that move them from one end to the other find
    nothing between.
    """
    if network.coded or not _bounded(network.cell):
        return False  # scaling is no help
    rows = _some_rows(network.cell, data)
    with np.errstate(over="ignore"):
        if len(rows) < _FEWEST_ROWS or np.sqrt(np.mean(rows**2, axis=0)).max() <= _FLAT:
            return False  # of order 1
        share = _share_of_flat(network, params, rows)
        move = rate * float(np.median(np.linalg.norm(rows, axis=1)))
    if share > _MOST:
        text = (
            f"X is too large for this network: its columns alone take {share:.0%} of the units' "
            f"sums beyond {_FLAT:g}, where tanh and gates are flat and hardly learn. {_REMEDY}."
        )
    elif move > _LONGEST:
        text = (
            f"X is too large for learning_rate_init={rate:g}: an update moves the sums of units "
            f"by up to {move:.2g}, where {_LONGEST:g} is much. {_REMEDY}, or lower the rate."
        )
    else:
        return False
    warnings.warn(text, UserWarning, stacklevel=caller_level())
    return True


def _share_of_flat(network: Network, params: Params, rows: Array) -> float:
    """Return the share of sums ``W_in u + bias`` that are flat."""
    sums = [rows @ W_in.T + bias for W_in, bias in _readers(network, params)]
    return float(np.mean(np.abs(np.hstack(sums)) > _FLAT)) if sums else 0.0


def _some_rows(cell: Cell, data: Data) -> Array:
    """Draw rows of sequences; evenly spaced ones may all be of the same hour of the day."""
    rng = np.random.default_rng(0)
    some = rng.permutation(len(data))[:_LOOKED_AT]
    each = _LOOKED_AT // len(some)
    inputs = (data.inputs[i] for i in some)
    rows = [X[np.sort(rng.permutation(len(X))[:each])] for X in inputs]
    return cell.channels(np.concatenate(rows)).astype(np.float64)


def _readers(network: Network, params: Params) -> list[tuple[Array, Any]]:
    """Return the weights that read the inputs, each with the bias that may take their mean away."""
    cell, n = network.cell, network.n_features
    layer = cell.layer()
    if layer is not None:
        return [(params[layer.inputs][layer.rows], params[layer.bias][layer.rows])]
    # those with a column more where the inputs have one; it is behind those of states
    wider, found = cell.weights(n + 1), []
    for name, weight in cell.weights(n).items():
        if weight.role == "input" and weight.shape[1:] != wider[name].shape[1:]:
            found.append((params[name][:, -network.n_channels :], 0.0))
    return found


def _bounded(cell: Cell) -> bool:
    """Say whether units have bounds, as gates have; those of some activations do not."""
    parts = getattr(cell, "cells", None)
    if parts is not None:
        return all(_bounded(part) for part in parts)
    name = getattr(cell, "activation", "tanh")
    return isinstance(name, str) and name in ACTIVATIONS and ACTIVATIONS[name].bounded
