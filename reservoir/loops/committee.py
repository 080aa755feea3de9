"""Several networks in one loop: the median of what they say is fed back to all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.network_trial import Clip, Member

_ROUNDING = 1e-9  # widths of the bounds that a level may be beyond them by rounding


class CommitteeRun(NamedTuple):
    """What came of a loop.

    Attributes
    ----------
    levels : array of shape (n_steps, n_outputs)
        As they were fed back: within the bounds.
    states : list of arrays of shape (state_size,)
        One for each member, before the last of the levels.
    n_free : int
        Steps before the loop was first held at its bounds; n_steps if it never was.
    """

    levels: Array
    states: list[Array]
    n_free: int


def run_committee(
    members: Sequence[Member],
    states: Sequence[Array],
    row: Array,
    n_steps: int,
    *,
    exog: Array,
    clip: Clip,
) -> CommitteeRun:
    """Run networks on the median of their outputs.

    Parameters
    ----------
    members : sequence of Member
    states : sequence of arrays of shape (state_size,)
        One for each member, before `row`.
    row : array of shape (n_outputs,)
        The last level that is known.
    n_steps : int
    exog : array of shape (n_steps, n_exog)
    clip : (low, high)
        Bounds of the levels.

    Returns
    -------
    CommitteeRun
    """
    low, high = clip
    leeway = _ROUNDING * (high - low)
    n_free = n_steps
    levels = np.empty((n_steps, len(row)))
    now = [state[None] for state in states]
    turned = [np.ascontiguousarray(member.coef.T) for member in members]
    said = np.empty((len(members), len(row)))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_steps):
            given = np.concatenate([row, exog[k]])[None]
            for m, member in enumerate(members):
                features, now[m] = member.source.advance(now[m], given)
                said[m] = features[0] @ turned[m] + member.intercept
            wanted = row + np.nan_to_num(np.median(said, axis=0))
            row = np.clip(wanted, low, high)
            if n_free > k and (np.abs(wanted - row) > leeway).any():
                n_free = k
            levels[k] = row
    return CommitteeRun(levels, [state[0] for state in now], n_free)
