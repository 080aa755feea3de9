"""Online learning of trained networks: the first chunk, later chunks, and sessions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import (
    as_generator,
    check_count,
    check_fixed,
    fixed_parameters,
    resolve_washout,
)
from reservoir.estimators.reading import TrainingData
from reservoir.estimators.rnn._network_parameters import WHOLE, first_rate, name_of_solver
from reservoir.estimators.rnn.network_model import NetworkModel
from reservoir.estimators.rnn.start import (
    check_values,
    filled,
    known_rows,
    name_of_start,
    starting_weights,
)
from reservoir.estimators.rnn.start_trials import Start, StartTable
from reservoir.estimators.rnn.training_run import (
    TRUNCATION,
    rate_of,
    require_targets,
    steps_of_update,
    warn_of_large_inputs,
    weights_of_known,
)
from reservoir.estimators.stream import NewRows, SessionLearner
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.online import OnlineLearner
from reservoir.training.optimizers import Optimizer
from reservoir.training.starts import STARTS
from reservoir.training.trainer import Data


def check_online(estimator: Any, name: str) -> None:
    """Check that an estimator can learn row by row; `name` is the method that needs it."""
    if estimator.target == "last":
        raise ValueError(
            f"{name} learns from a target at every step, but target='last' has one target per "
            "sequence. Use fit."
        )
    if name_of_solver(estimator.solver) in WHOLE:
        raise ValueError(
            f"{name} makes one pass over the data, but solver={estimator.solver!r} needs all data "
            "at once. Use solver='adam', or call fit."
        )


def online_solver(estimator: Any) -> str:
    """Return the name of the optimizer of online learning; "auto" is "adam"."""
    solver = name_of_solver(estimator.solver)
    return "adam" if solver == "auto" else solver


def new_learner(estimator: Any, model: NetworkModel) -> OnlineLearner:
    """Return an online learner that starts from the present weights."""
    own = isinstance(estimator.solver, Optimizer)
    return OnlineLearner(
        model.network,
        model.params,
        method=estimator.online,
        solver=estimator.solver if own else online_solver(estimator),
        learning_rate=first_rate(estimator),
        truncation=steps_of_update(estimator) or TRUNCATION,
        window=estimator.online_window,
        clip_norm=estimator.clip_norm,
        clip_value=estimator.clip_value,
        l1=estimator.l1,
        l2=estimator.alpha,
        control=model.control,
    )


def started_online(
    estimator: Any, model: NetworkModel, data: TrainingData, given: tuple[Any, Any]
) -> tuple[NetworkModel, Start]:
    """Return a model with initial weights, and their start; `given` is the first chunk, (X, y)."""
    model = model.copy()
    step = None if model.clock is None else model.clock.step
    generator, washout = as_generator(estimator.random_state), estimator.washout
    length = data.sequences.lengths[0]
    if isinstance(washout, str):
        model.progress.washout = resolve_washout(washout, [length])[0]
    else:
        model.progress.washout = check_count("washout", washout, minimum=0)
    init = name_of_start(estimator, model.network.cell)
    first = _first_data(estimator, model, data, init)
    spawned = generator.spawn(1)[0]
    table = StartTable()
    kept = table.add(
        *starting_weights(estimator, model.network, *given, first, step=step, generator=spawned),
    )
    model.params, init = kept.params, kept.row["init"]
    by_rate = estimator.online != "least_squares"
    rate = rate_of(estimator, online_solver(estimator)) if by_rate else 0.0
    warn_of_large_inputs(model.network, model.params, first, rate=rate)
    results = table.results(kept) if init in STARTS else None
    return model, Start(init, kept.params, drawn=init in INITIALIZERS, results=results)


def _first_data(estimator: Any, model: NetworkModel, data: TrainingData, init: str | None) -> Data:
    """Return the first chunk as data for the initial weights."""
    washout, lengths = model.progress.washout, data.sequences.lengths
    rows = [(np.arange(n) >= washout).astype(np.float64) for n in lengths]
    known = known_rows(data.targets)
    plain = known is None and not washout
    rows = weights_of_known(rows, known) or rows
    if init not in INITIALIZERS:
        require_targets(rows)
    starts = model.initial_states(estimator.initial_state, data.sequences)
    values, weights = filled(data.targets, known), None if plain else rows
    arrays = list(data.arrays)
    return Data(arrays, values, weights, np.stack(starts), dtype=np.dtype(model.dtype))


def learned_online(
    estimator: Any, model: NetworkModel, data: TrainingData, *, new_sequence: bool
) -> NetworkModel:
    """Return the model after it has learned from a chunk."""
    one = model.copy()
    if one.online is None:
        one.online, one.online_fixed = (
            new_learner(estimator, one),
            fixed_parameters(estimator, "online"),
        )
    check_fixed(estimator, one.online_fixed or {})
    # if the first sequence continues, so do its state and washout; the others are new
    progress, sequences = one.progress, data.sequences
    starts = one.initial_states(estimator.initial_state, sequences)
    continues = progress.enter(sequences, new_sequence)
    skips = progress.skips(sequences, continues)
    for i, (rows, targets) in enumerate(zip(data.arrays, data.targets, strict=True)):
        start = starts[i] if i or not continues else None
        loss = learn_sequence(one, one.online, rows, targets, skips[i], start)
        if np.isfinite(loss):
            one.losses.append(loss)
    one.params = one.online.params
    one.state = one.online.state.copy()
    one.n_iter += 1
    progress.add(sequences, data.targets, continues=continues)
    progress.continues = True
    return one


def learn_sequence(
    model: NetworkModel,
    online: OnlineLearner,
    rows: Array,
    targets: Array,
    skip: int,
    start: Array | None,
) -> float:
    """Learn from rows, and return the loss; without `start` the last sequence continues."""
    if start is not None:
        online.restart(start)
    elif not online.running:  # after fit: the learner has not run yet
        online.restart(model.state)
        if model.recent is not None:
            online.look_back(*model.recent)
    model.require_later([rows], [online.state])
    return online.learn(rows, targets.astype(model.dtype), skip)


@saved
class NetworkLearner(SessionLearner):
    """Session learner that trains all weights by an `OnlineLearner` that no estimator shares."""

    def __init__(self, online: OnlineLearner) -> None:
        self.online = online

    @classmethod
    def of(cls, estimator: Any) -> NetworkLearner:
        """Return a learner that continues from a fitted network."""
        check_online(estimator, "session.learn")
        model: NetworkModel = estimator._shown_model()
        online = model.online
        check_fixed(estimator, model.online_fixed or {})
        return cls(new_learner(estimator, model) if online is None else copy.deepcopy(online))

    def learn(self, estimator: Any, new: NewRows) -> Array:
        """Learn from rows, and return the state after the last one."""
        if new.weights is not None:
            raise TypeError(
                f"{type(estimator).__name__} does not support sample_weight in session.learn: its "
                "online learner gives all rows the same weight. Omit it, or use an echo state "
                "network."
            )
        model: NetworkModel = estimator._shown_model()
        check_values([new.rows], [new.targets], model.network, model.dtype)
        start = None if new.follows else new.start
        learn_sequence(model, self.online, new.rows, new.targets, new.skip, start)
        return self.online.state.copy()

    def settle(self, estimator: Any) -> None:
        """Set the weights of the estimator to the learned ones."""
        model = copy.copy(estimator._model)
        model.params = self.online.params
        estimator._model, estimator.params_ = model, model.params

    def _without(self, what: str) -> str:
        return (
            f"A trained network has no {what} in a session: it keeps no weights of earlier rows. "
            "Echo state networks with the built-in ridge do."
        )

    def finish(self, estimator: Any, *, complete: bool) -> None:
        """Set the weights and the online learner of the estimator.

        If not `complete`, the learner continues after the rows that still wait for targets.
        """
        self.settle(estimator)
        model: NetworkModel = copy.copy(estimator._model)
        model.losses, model.online = list(model.losses), copy.deepcopy(self.online)
        if model.online_fixed is None:
            model.online_fixed = fixed_parameters(estimator, "online")
        model.state = estimator.state_
        if not complete:
            model.online.restart(np.array(estimator.state_))
        estimator._model, estimator.loss_curve_ = model, model.losses
