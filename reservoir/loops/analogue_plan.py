"""The parameters of an analogue as a candidate, and its trial by closed loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reservoir.dynamics.analogue import Analogue
from reservoir.loops.loop_design import LoopDesign, Pieces, Trajectories
from reservoir.loops.network_trial import ROUNDING, Clip, Member, states_at
from reservoir.loops.path_loops import log_errors, run_path_loops


@dataclass(frozen=True)
class AnaloguePlan:
    """Parameters of the analogue of the last `n_lags` rows, whose continuation is the forecast."""

    n_lags: int
    skip: ClassVar[int] = 1

    def member(self, data: Trajectories, without: Pieces | None = None) -> Member:
        """Return the member of an ensemble that repeats rows of `data`, but not those `without`."""
        rows = np.concatenate(data.levels)
        firsts = np.cumsum([0, *map(len, data.levels)])
        followed = np.ones(len(rows), bool)
        followed[firsts[1:] - 1] = False
        for i, low, high in without or []:
            # the row before a piece is followed by its first row, which may not be repeated either
            followed[max(firsts[i] + low - 1, 0) : firsts[i] + high + 1] = False
        source = Analogue(rows, followed, self.n_lags)
        return Member(source, np.eye(data.n_outputs), np.zeros(data.n_outputs))

    def score(
        self, data: Trajectories, design: LoopDesign, least_error: float, clip: Clip
    ) -> float:
        """Return the score of loops in each block that repeat rows outside it.

        Where values recur, as in counts, a repeated row is often exactly right by chance, which
        would outweigh its other errors: these are averaged before the logarithm.
        """
        recur, means = _values_recur(data), []
        for k, (block, places) in enumerate(zip(design.blocks, design.left_out, strict=True)):
            n_steps = design.n_steps_left_out(k)
            member = self.member(data, block)
            rows = run_path_loops(
                member.source,
                member.coef[None],
                member.intercept[None],
                states_at(member.source, data, places),
                data.input_at(places),
                n_steps,
                clip=clip,
                increments=True,
            )
            followed = data.followed(places, n_steps)[:, None]
            high = np.inf if recur else 1.0
            errors = log_errors(rows, followed, np.ones(data.n_outputs), low=ROUNDING, high=high)
            if recur:
                errors = np.log10(np.mean(10**errors))
            means.append(np.maximum(errors, np.log10(least_error)).mean())
        return -float(np.mean(means))


def _values_recur(data: Trajectories) -> bool:
    """Whether at most half of the values of a column are different ones."""
    levels = np.concatenate(data.levels)
    return any(2 * len(np.unique(column)) <= len(levels) for column in levels.T)
