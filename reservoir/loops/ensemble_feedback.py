"""Several networks in one loop: the median of what they say is fed back to all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.network_trial import Clip, Member

_ROUNDING = 1e-9  # widths of the bounds that a level may be beyond them by rounding


class EnsembleRun(NamedTuple):
    """What came of loops from several starts.

    Attributes
    ----------
    levels : array of shape (n_steps, n_starts, n_outputs)
        As they were fed back: within the bounds.
    states : list of arrays of shape (n_starts, state_size)
        One for each member, before the last of the levels.
    n_free : array of int of shape (n_starts,)
        Steps before a loop was first held at its bounds; n_steps if it never was.
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
    """Run networks on the median of their outputs, side by side from several starts.

    Parameters
    ----------
    members : sequence of Member
    states : sequence of arrays of shape (n_starts, state_size)
        One for each member, before `rows`.
    rows : array of shape (n_starts, n_outputs)
        The last levels that are known.
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
    turned = [np.ascontiguousarray(member.coef.T) for member in members]
    said = np.empty((len(members), *rows.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_steps):
            given = np.hstack([rows, exog[k]])
            for m, member in enumerate(members):
                features, now[m] = member.source.advance(now[m], given)
                said[m] = features @ turned[m] + member.intercept
            wanted = rows + np.nan_to_num(np.median(said, axis=0))
            rows = np.clip(wanted, low, high)
            held = (np.abs(wanted - rows) > leeway).any(axis=1)
            n_free[held & (n_free > k)] = k
            levels[k] = rows
    return EnsembleRun(levels, now, n_free)
