"""How learning online begins: the learner, the rows that it looks back to, the first chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences, as_generator
from reservoir.estimators._progress import Progress
from reservoir.estimators.rnn._large_inputs import rate_of, warn_of_large_inputs
from reservoir.estimators.rnn._missing_rows import filled, known_rows, weights_of_known
from reservoir.estimators.rnn._starting_weights import name_of_start, starting_weights
from reservoir.estimators.rnn._training_run import TRUNCATION, require_targets, steps_of_update
from reservoir.training.bptt import Network
from reservoir.training.initializers import INITIALIZERS
from reservoir.training.online import OnlineLearner
from reservoir.training.trainer import Data

Recent = tuple[Array, Array, Array, int]  # rows, targets, the state before, washout left


def new_learner(estimator: Any) -> OnlineLearner:
    """Return what learns row by row from the weights as they are."""
    return OnlineLearner(
        estimator.network_,
        estimator.params_,
        method=estimator.online,
        solver=estimator.solver,
        learning_rate=estimator.learning_rate_init,
        truncation=steps_of_update(estimator) or TRUNCATION,
        window=estimator.online_window,
        clip_norm=estimator.clip_norm,
        l1=estimator.l1,
        l2=estimator.alpha,
        control=estimator._control,
    )


def last_rows(
    estimator: Any,
    sequences: Sequences,
    targets: list[Array],
    weights: list[Array] | None,
    skips: list[int],
    starts: list[Array],
) -> Recent | None:
    """Return the rows that `partial_fit` looks back to after `fit`; None if it does not.

    Targets of rows of weight 0 are NaN.
    """
    if estimator.online != "least_squares" or estimator.target == "last":
        return None
    rows, values = sequences.arrays[-1], targets[-1].astype(estimator._dtype)
    if weights is not None:
        values[weights[-1] == 0] = np.nan
    first, start = max(len(rows) - estimator.online_window, 0), starts[-1]
    if first:
        start = estimator._run(Sequences((rows[:first],), "table"), starts[-1:])[1][0]
    return rows[first:].copy(), values[first:].copy(), start, max(skips[-1] - first, 0)


def start_online(estimator: Any, sequences: Sequences, targets: list[Array], data: Any) -> None:
    """Start an estimator's network from the first chunk; `data` is that, as the user gave it."""
    network = estimator._begin(sequences, targets)
    generator = as_generator(estimator.random_state)
    washout = estimator._washout_of_chunks(sequences.lengths[0])
    progress = estimator._new_progress(network, washout)
    estimator.init_ = name_of_start(estimator, network.cell)
    first = _first_data(estimator, progress, network, sequences, targets)
    X, y = data
    params = starting_weights(estimator, network, X, y, first, generator=generator.spawn(1)[0])
    rate = 0.0 if estimator.online == "least_squares" else rate_of(estimator)
    warn_of_large_inputs(network, params, first, rate=rate)
    estimator._hold(network, params, [])
    estimator.n_iter_ = 0
    estimator.washout_ = np.array([washout], dtype=np.int64)
    estimator._online, estimator._recent, estimator._progress = None, None, progress


def _first_data(
    estimator: Any,
    progress: Progress,
    network: Network,
    sequences: Sequences,
    targets: list[Array],
) -> Data:
    """Return what learning online starts from."""
    washout = progress.washout
    rows = [(np.arange(n) >= washout).astype(np.float64) for n in sequences.lengths]
    known = known_rows(targets)
    plain = known is None and not washout
    rows = weights_of_known(rows, known) or rows
    if estimator.init_ not in INITIALIZERS:
        require_targets(rows)
    spec = estimator.initial_state
    starts = estimator._states_before(progress, network, spec, sequences, None)
    values = filled(targets, known)
    weights, dtype = None if plain else rows, estimator._dtype_asked_for()
    return Data(list(sequences.arrays), values, weights, np.stack(starts), dtype=dtype)
