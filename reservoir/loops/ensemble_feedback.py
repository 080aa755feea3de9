"""Closed loops of an ensemble: the median of the predictions is fed back to all networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.network_trial import Clip, Member

_ROUNDING = 1e-9  # rounding error, relative to high - low, by which levels may exceed the bounds


class EnsembleRun(NamedTuple):
    """Results of an ensemble's loops from several starts.

    `levels`, (n_steps, n_starts, n_outputs), are predictions, clipped as they were fed back.
    `states` are those of each member, (n_starts, state_size), after the last step, which precedes
    the last level. `n_free`, (n_starts,), is the number of steps before a level was first clipped,
    or n_steps.
    """

    levels: Array
    states: list[Array]
    n_free: Array


def run_ensemble(
    members: Sequence[Member],
    states: Sequence[Array],
    rows: Array,
    n_steps: int,
    *,
    exog: Array,
    clip: Clip,
    counted: Any = True,
) -> EnsembleRun:
    """Run networks in closed loop with the median of their outputs, from several starts at once.

    `rows`, (n_starts, n_outputs), are the last known levels, and `states` those of each member
    before them, (n_starts, state_size). `exog` is (n_steps, n_starts, n_exog); `clip` bounds the
    levels. `counted`, one bool or (n_outputs,), is False for outputs that `n_free` does not depend
    on, as they cannot exceed their bounds, such as probabilities.
    """
    low, high = clip
    leeway = _ROUNDING * (high - low)
    n_free = np.full(len(rows), n_steps)
    levels = np.empty((n_steps, *rows.shape))
    now = list(states)
    transposed = [np.ascontiguousarray(member.coef.T) for member in members]
    increments = np.empty((len(members), *rows.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_steps):
            given = np.hstack([rows, exog[k]])
            for m, member in enumerate(members):
                features, now[m] = member.source.advance(now[m], given)
                increments[m] = features @ transposed[m] + member.intercept
            predicted = rows + np.nan_to_num(np.median(increments, axis=0))
            rows = np.clip(predicted, low, high)
            clipped = (counted & (np.abs(predicted - rows) > leeway)).any(axis=1)
            n_free[clipped & (n_free > k)] = k
            levels[k] = rows
    return EnsembleRun(levels, now, n_free)
