"""A training run: its data, initial states and solver, and the warnings about its result."""

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

from reservoir._tables import Sequences
from reservoir._typing import Array
from reservoir._validation import caller_level, resolve_washout
from reservoir.activations import ACTIVATIONS
from reservoir.estimators.reading import TrainingData
from reservoir.estimators.reporting import log
from reservoir.estimators.rnn._network_parameters import (
    WHOLE,
    first_rate,
    name_of_solver,
    place_of_rate,
)
from reservoir.estimators.rnn.network_model import BATCH_SIZE, NetworkModel, Recent
from reservoir.estimators.rnn.start import filled, known_rows, read_control, rows_per_step
from reservoir.training.bptt import Network
from reservoir.training.cells import Cell
from reservoir.training.hessian_free import HessianFree, train_hessian_free
from reservoir.training.loop_engines import choose, numpy_seconds
from reservoir.training.optimizers import Optimizer, get_optimizer
from reservoir.training.params import Params
from reservoir.training.schedules import get_schedule
from reservoir.training.solvers import train_lbfgs, train_least_squares
from reservoir.training.trainer import Data, Training, train
from reservoir.training.variable_projection import (
    FEWEST_TARGETS,
    n_targets,
    train_from_data,
    train_variable_projection,
)

TRUNCATION = 50  # steps of one update, with a target at every step
#: Solvers that use all data at once; each receives the settings that its signature names.
_WHOLE: dict[str, Callable[..., Training]] = {
    "variable_projection": train_variable_projection,
    "lbfgs": train_lbfgs,
    "least_squares": train_least_squares,
    "hessian_free": train_hessian_free,
}
_STARTING_RUNS = 20  # cost of a least-squares start, about, in runs over the data
_FLAT = 3.0  # pre-activations beyond which the slope of tanh is below .01
_MOST = 0.5  # largest share of saturated pre-activations; outliers saturate fewer
_LONGEST = 0.5  # largest change of the pre-activation of a bounded unit by one update
_INSPECTED = 1000  # rows in total, at most
_FEWEST_ROWS = 10  # rows: fewer are not conclusive
# Settings of gradient steps and penalties: if one is not at its default, "auto" is "adam".
_BY_STEPS = (
    "batch_size",
    "truncation",
    "learning_rate_init",
    "learning_rate",
    "clip_norm",
    "clip_value",
    "curriculum",
    "alpha",
    "l1",
    "gradient_control",
)
_BY_RATE = ("adam", "nadam", "rmsprop", "adagrad")  # change each weight by about the rate
_FELL = 0.9  # share of the training loss after a clear gain
_REMEDY = "Scale X (StandardScaler in a pipeline, within PerStep for sequences)"


# Whether the cell has a start from data -> why "auto" has drawn random weights, and the remedy.
_WHY_DRAWN = {
    False: "starts from data do not support {}. Set max_iter above 0, or set init to a fitted "
    "network.",
    True: 'for labels at every step "auto" takes them with {}. Set max_iter above 0, or '
    'init="least_squares".',
}


class Task(NamedTuple):
    """The data that a network learns from, and the held-out data that stop its training.

    `kept` are the indices of the sequences in `learned`. All else has an entry per sequence, held
    out or not: `targets` with missing ones filled, masks `known` of rows with a target (None if all
    have one), `weights` of rows, 0 where a target is missing, washouts `skips`, and
    `initial_states`.
    """

    learned: Data
    validation: Data | None
    kept: list[int]
    sequences: Sequences
    targets: list[Array]
    known: list[Array] | None
    weights: list[Array] | None
    skips: list[int]
    initial_states: list[Array]


def training_task(
    estimator: Any, model: NetworkModel, data: TrainingData, generator: np.random.Generator
) -> Task:
    """Return the training data, with washout, missing targets and held-out rows separated."""
    sequences, known = data.sequences, known_rows(data.targets)
    weights, targets = weights_of_known(data.weights, known), filled(data.targets, known)
    skips = washout_lengths(estimator, sequences.lengths)
    initial_states = model.initial_states(estimator.initial_state, sequences)
    learned, validation, kept = _split(
        estimator, sequences, targets, weights, skips, initial_states, model.dtype, generator
    )
    return Task(
        learned, validation, kept, sequences, targets, known, weights, skips, initial_states
    )


def washout_lengths(estimator: Any, lengths: list[int]) -> list[int]:
    """Return the number of rows at the start of each sequence that the loss excludes."""
    several = len(lengths) > 1 and isinstance(estimator.washout, str)  # each starts from zeros
    if several or estimator.target == "last":
        return [0] * len(lengths)
    return resolve_washout(estimator.washout, lengths)


def weights_of_known(weights: list[Array] | None, known: list[Array] | None) -> list[Array] | None:
    """Return the weights of rows, 0 where a target is missing; None if all are equal."""
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
    initial_states: list[Array],
    dtype: str,
    generator: np.random.Generator,
) -> tuple[Data, Data | None, list[int]]:
    """Return the data to learn from, the held-out data, and indices of sequences to learn from."""
    last = estimator.target == "last"
    inputs, share = list(sequences.arrays), estimator.validation_fraction
    rows = _weights_of_rows(inputs, weights, skips, last)
    plain = weights is None and not any(skips)
    whole = Data(inputs, targets, None if plain else rows, np.stack(initial_states), last, dtype)
    if not estimator.early_stopping:
        require_targets(rows)
        return whole, None, list(range(len(inputs)))
    # hold out some of several sequences, or the end of a single one
    if len(inputs) > 1:
        labels = None
        if last and is_classifier(estimator):  # one-hot; -1 for sequences of weight 0
            counts = np.array([(row > 0).any() for row in rows])
            labels = np.where(counts, np.stack(targets).argmax(axis=1), -1)
        kept, held_out = _draw_held_out(len(inputs), share, generator, labels)
        require_targets([rows[i] for i in kept])
        require_targets([rows[i] for i in held_out], "validate on")
        return whole.picked(kept), whole.picked(held_out), kept.tolist()
    if last:
        raise ValueError(
            "early_stopping with target='last' needs at least two sequences, but X contains one."
        )
    cut = len(inputs[0]) - max(1, round(share * len(inputs[0])))
    head, tail = rows[0][:cut].copy(), rows[0].copy()
    tail[:cut] = 0  # validation runs over the head too, so that its states are warmed up
    require_targets([head])
    require_targets([tail], "validate on")
    begin = Data([inputs[0][:cut]], [targets[0][:cut]], [head], whole.starts, last, whole.dtype)
    return begin, Data(inputs, targets, [tail], whole.starts, last, whole.dtype), [0]


def _weights_of_rows(
    inputs: list[Array], weights: list[Array] | None, skips: list[int], last: bool
) -> list[Array]:
    """Return the weight of each target in the loss: 1 at most, 0 in the washout."""
    rows = [np.ones(1 if last else len(X)) for X in inputs]
    if weights is not None:
        largest = max(float(w.max(initial=0.0)) for w in weights) or 1.0
        rows = [np.asarray(w, dtype=np.float64) / largest for w in weights]
    for row, skip in zip(rows, skips, strict=True):
        row[:skip] = 0
    return rows


def _draw_held_out(
    n: int, share: float, generator: np.random.Generator, labels: Array | None = None
) -> tuple[Array, Array]:
    """Draw which of n sequences to learn from and which to hold out, and return both indices.

    With labels (codes; -1 for sequences of weight 0) the last sequence of a class is held out only
    if no other sequence is left to hold out.
    """
    n_held_out, order = max(1, round(share * n)), generator.permutation(n)
    if n_held_out >= n:
        raise ValueError(
            f"validation_fraction={share} leaves none of {n} sequences to learn from. Lower it."
        )
    if labels is not None:
        remaining = Counter(labels.tolist())
        last_ones = []
        for i in order:
            last_ones.append(labels[i] >= 0 and remaining[labels[i]] == 1)
            remaining[labels[i]] -= 1
        order = order[np.argsort(last_ones, kind="stable")]
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def require_targets(rows: list[Array], what: str = "fit") -> None:
    """Check that at least one row has a positive weight."""
    if not any((row > 0).any() for row in rows):
        raise ValueError(f"No rows to {what}: every row has weight 0 or is in the washout.")


def resolve_solver(estimator: Any, network: Network, data: Data, *, drawn: bool) -> str:
    """Return the name of the solver; `drawn` states whether the initial weights are random.

    "auto" is "variable_projection" where it was better in benchmarks, unless a setting of gradient
    steps or penalties differs from its default.
    """
    if not (isinstance(estimator.solver, str) and estimator.solver == "auto"):
        return name_of_solver(estimator.solver)
    by_steps = any(
        getattr(estimator, name) != parameter.default
        for name, parameter in signature(type(estimator)).parameters.items()
        if name in _BY_STEPS
    )
    projects = (
        (network.loss, network.output) == ("mse", "identity")
        and not (by_steps or drawn or data.last or network.cell.drops_out)
        and n_targets(data) >= FEWEST_TARGETS
    )
    return "variable_projection" if projects else "adam"


def run_training(
    estimator: Any,
    network: Network,
    params: Params,
    data: Data,
    validation: Data | None,
    generator: np.random.Generator,
    *,
    solver: str,
    began: Callable[[Data], Params] | None = None,
) -> Training:
    """Train the network with a solver and the settings of the estimator.

    `began` computes the start from part of the data, if the weights were computed from data.
    """
    size = size_of_batch(estimator)
    options: dict[str, Any] = {
        "max_iter": estimator.max_iter,
        "batch_size": size,
        "l1": estimator.l1,
        "l2": estimator.alpha,
        "control": read_control(estimator.gradient_control),
        "validation": validation,
        "refit": estimator.refit_readout,
        # errors on held-out rows fluctuate
        "n_iter_no_change": estimator.n_iter_no_change * (1 + (solver == "variable_projection")),
        "tol": estimator.tol,
        "random_state": generator,
        "report": partial(_show, total=estimator.max_iter) if estimator.verbose else None,
    }
    # solvers that use all data at once have no learning rate, and name the settings they use
    if solver in _WHOLE:
        solve = _WHOLE[solver]
        if began is not None and validation is None and solver == "variable_projection":
            solve = partial(train_from_data, began=began)
        if isinstance(estimator.solver, HessianFree):
            options |= asdict(estimator.solver)
        known = signature(solve).parameters
        used = {name: value for name, value in options.items() if name in known}
        return solve(network, params, data, **used)
    # schedules count epochs, but optimizers updates: find the number of updates in an epoch
    truncation = steps_of_update(estimator) if network.cell.causal else None
    n_updates = sum(
        -(-max(len(data.inputs[i]) for i in index) // (truncation or 10**9))
        for index in data.by_length(size)
    )
    return train(
        network,
        params,
        data,
        _optimizer(estimator, solver, n_updates),
        truncation=truncation,
        clip_norm=estimator.clip_norm,
        clip_value=estimator.clip_value,
        curriculum=estimator.curriculum,
        **options,
    )


def _optimizer(estimator: Any, solver: str, n_updates: int) -> Optimizer:
    """Return the optimizer of gradient steps; `n_updates` is the number of updates in an epoch."""
    if isinstance(estimator.solver, Optimizer):
        return estimator.solver
    schedule = estimator.learning_rate
    if not callable(schedule):
        n_epochs = max(estimator.max_iter, 1)
        schedule = get_schedule(schedule, estimator.learning_rate_init, n_epochs)
    return get_optimizer(solver, learning_rate=lambda n: schedule(n / n_updates))


def engine_for_training(estimator: Any, network: Network, data: Data) -> str:
    """Choose the engine of the loop over time, by the estimated training time in NumPy."""
    size = min(size_of_batch(estimator), len(data))
    n_steps = sum(len(X) for X in data.inputs) / size
    seconds = numpy_seconds((1, size, rows_per_step(network.cell)))
    return choose("auto", seconds * n_steps * (estimator.max_iter + _STARTING_RUNS))


def size_of_batch(estimator: Any) -> int:
    """Return the number of sequences that are run in parallel."""
    return BATCH_SIZE if estimator.batch_size == "auto" else estimator.batch_size


def steps_of_update(estimator: Any) -> int | None:
    """Return the number of steps per update; None for whole sequences."""
    if estimator.truncation == "auto":
        whole = estimator.target == "last" or name_of_solver(estimator.solver) in WHOLE
        return None if whole else TRUNCATION
    return estimator.truncation


def last_rows(estimator: Any, model: NetworkModel, task: Task) -> Recent | None:
    """Return the last rows of `fit`, for a `partial_fit` that uses them; None if it does not.

    Targets of rows of weight 0 are NaN.
    """
    if estimator.online != "least_squares" or estimator.target == "last":
        return None
    rows, values = task.sequences.arrays[-1], task.targets[-1].astype(model.dtype)
    if task.weights is not None:
        values[task.weights[-1] == 0] = np.nan
    first, start = max(len(rows) - estimator.online_window, 0), task.initial_states[-1]
    if first:
        start = model.run(Sequences((rows[:first],), "table"), task.initial_states[-1:])[1][0]
    return rows[first:].copy(), values[first:].copy(), start, max(task.skips[-1] - first, 0)


def check_loss_finite(done: Training) -> None:
    """Check that the loss of a run was finite in at least one epoch."""
    if not np.isfinite(done.criterion[done.best_epoch]):
        raise ValueError(
            "The loss overflows even with the initial weights. Scale X and y, or use a bounded "
            'activation such as "tanh".'
        )


def warn_of_trouble(
    estimator: Any, network: Network, done: Training, *, solver: str, drawn: bool
) -> bool:
    """Warn if training failed, and return whether a warning was given.

    `solver` is the name of the solver that was used, and `drawn` states whether the initial weights
    were random.
    """
    loss = done.criterion[done.best_epoch]
    # in the order of severity, since at most one warning is given
    if done.trouble:
        text = (
            f"Training diverged: {done.trouble}. Kept the weights of epoch {done.best_epoch} "
            f"(loss {loss:.3g}). Lower {place_of_rate(estimator)}, or clip_norm."
        )
    elif done.n_epochs and done.best_epoch == 0 and drawn and loss:
        best = int(np.argmin(done.criterion[1:])) + 1
        text = (
            f"Training did not improve on its start in {done.n_epochs} epochs: the initial loss is "
            f"{done.criterion[0]:.3g}, and the smallest later loss is "
            f"{done.criterion[best]:.3g}, in epoch {best}. The initial weights are kept. "
            f"{_remedy_for(estimator, solver)}"
        )
    elif solver == "variable_projection" and not drawn and _learned_in_vain(estimator, done):
        text = (
            "Training kept its start: the loss of the rows to learn from fell from "
            f"{done.losses[0]:.3g} to {min(done.losses):.3g}, but that of the held-out rows, "
            f"{done.validation_losses[0]:.3g}, did not fall. Use more rows, or compare "
            "solver='adam'."
        )
    elif not done.n_epochs and estimator.init == "auto" and drawn:
        text = (
            "max_iter=0 keeps the random initial weights, which have learned nothing: "
            f"{_WHY_DRAWN[network.cell.starts_from_data].format(type(network.cell).__name__)}"
        )
    else:
        return False
    warnings.warn(text, ConvergenceWarning, stacklevel=caller_level())
    return True


def _learned_in_vain(estimator: Any, done: Training) -> bool:
    """Whether the training loss fell by a tenth, but the held-out loss is least at the start.

    False if `max_iter` ended training, since more iterations could have lowered it.
    """
    held_out = done.validation_losses
    if not held_out or done.n_epochs >= estimator.max_iter:
        return False
    return int(np.argmin(held_out)) == 0 and min(done.losses) < _FELL * done.losses[0]


def _remedy_for(estimator: Any, solver: str) -> str:
    """Return the advice for a run that did not improve on random initial weights."""
    if solver not in _WHOLE:
        return f'Lower {place_of_rate(estimator)}, or use solver="lbfgs".'
    return 'Use a start from data, such as init="least_squares", or solver="adam".'


def _show(done: Training, *, total: int) -> None:
    """Report an epoch."""
    valid = ""
    if done.validation_losses:
        valid = f", validation {done.validation_losses[-1]:.6g}"
    best = done.criterion[done.best_epoch]
    log(
        f"Epoch {done.n_epochs} of {total}: loss {done.losses[-1]:.6g}{valid}; best {best:.6g} "
        f"in epoch {done.best_epoch}"
    )


# ---------------------------------------------------------------------- inputs that are too large


def rate_of(estimator: Any, solver: str) -> float:
    """Return the learning rate if it is about the change of a weight per update, otherwise 0."""
    return first_rate(estimator) if solver in _BY_RATE else 0.0


def warn_of_large_inputs(
    network: Network, params: Params, data: Data, *, rate: float = 0.0
) -> bool:
    """Warn if inputs are too large for the weights or the updates; return whether it warned.

    Saturated units hardly learn, and updates that take a unit from one bound to the other miss the
    values between.
    """
    if network.coded or not _bounded(network.cell):
        return False  # scaling would not help
    rows = _some_rows(network.cell, data)
    with np.errstate(over="ignore"):
        if len(rows) < _FEWEST_ROWS or np.sqrt(np.mean(rows**2, axis=0)).max() <= _FLAT:
            return False  # inputs are of order 1
        share = _saturated_share(network, params, rows)
        move = rate * float(np.median(np.linalg.norm(rows, axis=1)))
    if share > _MOST:
        text = (
            f"X is too large for this network: its columns alone drive {share:.0%} of the "
            f"pre-activations beyond {_FLAT:g}, where tanh and gates are saturated and hardly "
            f"learn. {_REMEDY}."
        )
    elif move > _LONGEST:
        text = (
            f"X is too large for learning_rate_init={rate:g}: one update changes pre-activations "
            f"by up to {move:.2g}, and {_LONGEST:g} is already large. {_REMEDY}, or lower the "
            "learning rate."
        )
    else:
        return False
    warnings.warn(text, UserWarning, stacklevel=caller_level())
    return True


def _saturated_share(network: Network, params: Params, rows: Array) -> float:
    """Return the share of pre-activations ``W_in u + bias`` that saturate units."""
    found = [rows @ W_in.T + bias for W_in, bias in _input_weights(network, params)]
    return float(np.mean(np.abs(np.hstack(found)) > _FLAT)) if found else 0.0


def _some_rows(cell: Cell, data: Data) -> Array:
    """Draw rows at random: evenly spaced ones could all be of the same hour of the day."""
    rng = np.random.default_rng(0)
    some = rng.permutation(len(data))[:_INSPECTED]
    each = _INSPECTED // len(some)
    inputs = (data.inputs[i] for i in some)
    rows = [X[np.sort(rng.permutation(len(X))[:each])] for X in inputs]
    return cell.channels(np.concatenate(rows)).astype(np.float64)


def _input_weights(network: Network, params: Params) -> list[tuple[Array, Any]]:
    """Return the input weights, each with the bias that may cancel the mean of inputs."""
    cell, n = network.cell, network.n_features
    layer = cell.layer()
    if layer is not None:
        return [(params[layer.inputs][layer.rows], params[layer.bias][layer.rows])]
    # weights with one more column if the inputs have one more; those columns come last
    wider, found = cell.weights(n + 1), []
    for name, weight in cell.weights(n).items():
        if weight.role == "input" and weight.shape[1:] != wider[name].shape[1:]:
            found.append((params[name][:, -network.n_channels :], 0.0))
    return found


def _bounded(cell: Cell) -> bool:
    """Whether units are bounded, as gates are; with some activations they are not."""
    parts = getattr(cell, "cells", None)
    if parts is not None:
        return all(_bounded(part) for part in parts)
    name = getattr(cell, "activation", "tanh")
    return isinstance(name, str) and name in ACTIVATIONS and ACTIVATIONS[name].bounded
