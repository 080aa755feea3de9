"""Closed loop of an ensemble: the median of its predictions is fed back to all networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.network_trial import Clip, Member

_ROUNDING = 1e-9  # of the distance of the bounds: a level may exceed them by this much (rounding)


class EnsembleRun(NamedTuple):
    """Results of loops from several starts.

    Attributes
    ----------
    levels : array of shape (n_steps, n_starts, n_outputs)
        Levels that were fed back, within the bounds.
    states : list of arrays of shape (n_starts, state_size)
        The state of each member before the last level.
    n_free : array of int of shape (n_starts,)
        Number of steps before a loop was first clipped at its bounds; n_steps if it never was.
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
) -> EnsembleRun:
    """Run networks in closed loop with the median of their outputs, from several starts at once.

    Parameters
    ----------
    members : sequence of Member
    states : sequence of arrays of shape (n_starts, state_size)
        The state of each member before `rows`.
    rows : array of shape (n_starts, n_outputs)
        The last known levels.
    n_steps : int
    exog : array of shape (n_steps, n_starts, n_exog)
    clip : (low, high)
        Bounds of the levels.

    Returns
    -------
    EnsembleRun
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
            clipped = (np.abs(predicted - rows) > leeway).any(axis=1)
            n_free[clipped & (n_free > k)] = k
            levels[k] = rows
    return EnsembleRun(levels, now, n_free)
