"""What learns online after a fit: the learner, and the rows of the fit that it looks back to."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences
from reservoir.estimators.rnn._training_run import TRUNCATION, steps_of_update
from reservoir.training.online import OnlineLearner

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
