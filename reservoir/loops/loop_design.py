"""Trajectories as training data of networks, and the design of closed loops within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from reservoir._typing import Array

_ROOM = 200  # consecutive rows that a segment must have, unless all trajectories are shorter

#: Position of a row: (index of the trajectory, row within it).
Place = tuple[int, int]


@dataclass(frozen=True)
class Trajectories:
    """Standardised series as training data: the targets are the increments to the next row.

    `levels`, (n_samples, n_outputs), are the series to forecast. Row t of `exog`, (n_samples,
    n_exog), is known when row t of the levels is forecast; n_exog may be 0.
    """

    levels: list[Array]
    exog: list[Array]

    @property
    def n_outputs(self) -> int:
        """Number of columns that are forecast."""
        return self.levels[0].shape[1]

    @property
    def n_inputs(self) -> int:
        """Number of columns of a network's input."""
        return self.n_outputs + self.exog[0].shape[1]

    @property
    def n_rows(self) -> int:
        """Total number of rows of all trajectories."""
        return sum(map(len, self.levels))

    @cached_property
    def inputs(self) -> list[Array]:
        """Inputs of networks: n_samples - 1 rows of the level and of the next exogenous row."""
        pairs = zip(self.levels, self.exog, strict=True)
        return [np.hstack([level[:-1], known[1:]]) for level, known in pairs]

    @cached_property
    def increments(self) -> list[Array]:
        """Differences between consecutive levels, one array per trajectory."""
        return [np.diff(level, axis=0) for level in self.levels]

    def input_at(self, places: Sequence[Place]) -> Array:
        """Return the inputs of networks at positions, all of which must have a next row."""
        return np.array([self.inputs[i][t] for i, t in places])

    def known_after(self, places: Sequence[Place], k: int) -> Array:
        """Return the exogenous columns of the network's input k steps after each position."""
        return np.array([self.exog[i][t + 1 + k] for i, t in places])

    def followed(self, places: Sequence[Place], n_steps: int) -> Array:
        """Return the levels after each position, (n_steps, n_places, n_outputs)."""
        return np.stack([self.levels[i][t + 1 : t + 1 + n_steps] for i, t in places], axis=1)

    def last_rows(self, n_rows: int) -> Trajectories:
        """Return the last `n_rows` rows, from the end of the last trajectories.

        If the last trajectories are too short for loops, the rows are taken from the longest one.
        """
        levels, exog, remaining = [], [], n_rows
        for level, known in zip(self.levels[::-1], self.exog[::-1], strict=True):
            if remaining < 2:
                break
            levels.append(level[-remaining:])
            exog.append(known[-remaining:])
            remaining -= len(level)
        i = int(np.argmax([len(level) for level in self.levels]))
        if max(map(len, levels)) < min(len(self.levels[i]), _ROOM):
            return Trajectories([self.levels[i][-n_rows:]], [self.exog[i][-n_rows:]])
        return Trajectories(levels[::-1], exog[::-1])


@dataclass(frozen=True)
class LoopDesign:
    """The training rows of networks, and the starts of the loops that score them.

    The first `washout` rows of each trajectory are not used for training. `blocks` are the training
    rows, in consecutive blocks of about the same size: lists of pieces, rows ``low:high`` of a
    trajectory. `recycled` are starts of loops that are compared with training rows (Racca and Magri
    2021); `left_out`, for each block, starts within it, for a network fitted on the other blocks.
    """

    washout: int
    n_steps: int
    blocks: list[list[tuple[int, int, int]]]
    recycled: list[Place]
    left_out: list[list[Place]]

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        *,
        washout: int,
        n_steps: int,
        n_starts: int,
        n_blocks: int,
        n_starts_per_block: int,
    ) -> LoopDesign:
        """Return a design whose blocks and starts are spread evenly over trajectories."""
        whole = [(i, washout, n - 1) for i, n in enumerate(lengths) if n - 1 > washout]
        n_rows = sum(high - low for _, low, high in whole)
        edges = np.linspace(0, n_rows, n_blocks + 1).round().astype(int)
        blocks = [_between(whole, *pair) for pair in pairwise(edges.tolist())]
        recycled = _spread(whole, n_starts, n_steps)
        left_out = [
            _spread(block, n_starts_per_block, _steps_within(block, n_steps)) for block in blocks
        ]
        return cls(washout, n_steps, blocks, recycled, left_out)

    def n_steps_left_out(self, n_block: int) -> int:
        """Return the number of steps per loop in block `n_block`."""
        return _steps_within(self.blocks[n_block], self.n_steps)


Pieces = list[tuple[int, int, int]]


def _steps_within(pieces: Pieces, n_steps: int) -> int:
    """Return the number of steps per loop within pieces: at most half of the longest piece."""
    longest = max(high - low for _, low, high in pieces)
    return max(1, min(n_steps, longest // 2))


def _between(pieces: Pieces, begin: int, end: int) -> Pieces:
    """Return the parts of pieces between two rows, where rows are counted over all pieces."""
    found, before = [], 0
    for i, low, high in pieces:
        first, last = max(low, low + begin - before), min(high, low + end - before)
        if first < last:
            found.append((i, first, last))
        before += high - low
    return found


def _spread(pieces: Pieces, n_starts: int, n_steps: int) -> list[Place]:
    """Return evenly spread rows at which loops of `n_steps` steps within their piece can start."""
    room = [(i, low, high - n_steps + 1) for i, low, high in pieces if high - n_steps >= low]
    total = sum(high - low for _, low, high in room)
    if total == 0:
        return []
    wanted = np.unique(np.linspace(0, total - 1, n_starts).astype(int))
    return [_between(room, row, row + 1)[0][:2] for row in wanted.tolist()]
