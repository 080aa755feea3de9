"""Trajectories as networks are driven by them, and where closed loops begin in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from reservoir._typing import Array

_ROOM = 200  # rows in a row that loops of a stretch need, if there are so many at all

#: A row of a trajectory: (which trajectory, which row).
Place = tuple[int, int]


@dataclass(frozen=True)
class Trajectories:
    """Standardised series, and what networks make of them: a row in, the increment to the next out.

    Attributes
    ----------
    levels : list of arrays of shape (n_samples, n_outputs)
    exog : list of arrays of shape (n_samples, n_exog)
        Row t is known when row t of the levels is forecast; n_exog may be 0.
    """

    levels: list[Array]
    exog: list[Array]

    @property
    def n_outputs(self) -> int:
        """Columns that are forecast."""
        return self.levels[0].shape[1]

    @property
    def n_inputs(self) -> int:
        """Columns of a row that goes into a network."""
        return self.n_outputs + self.exog[0].shape[1]

    @property
    def n_rows(self) -> int:
        """Rows of all trajectories."""
        return sum(map(len, self.levels))

    @cached_property
    def inputs(self) -> list[Array]:
        """For each trajectory, n_samples - 1 rows: the level, and what is known of the next row."""
        pairs = zip(self.levels, self.exog, strict=True)
        return [np.hstack([level[:-1], known[1:]]) for level, known in pairs]

    @cached_property
    def increments(self) -> list[Array]:
        """For each trajectory, what is to be added to a level to have the next one."""
        return [np.diff(level, axis=0) for level in self.levels]

    def input_at(self, places: Sequence[Place]) -> Array:
        """Return what goes into a network at places that have a row behind them."""
        return np.array([self.inputs[i][t] for i, t in places])

    def known_after(self, places: Sequence[Place], k: int) -> Array:
        """Return the exogenous columns that go in k steps after each place."""
        return np.array([self.exog[i][t + 1 + k] for i, t in places])

    def followed(self, places: Sequence[Place], n_steps: int) -> Array:
        """Return the levels behind each place, (n_steps, n_places, n_outputs)."""
        return np.stack([self.levels[i][t + 1 : t + 1 + n_steps] for i, t in places], axis=1)

    def last_rows(self, n_rows: int) -> Trajectories:
        """Return the end of the trajectories: so many rows, of the last ones.

        Of the longest alone where the last ones are short, and loops would have no room in them.
        """
        levels, exog, left = [], [], n_rows
        for level, known in zip(self.levels[::-1], self.exog[::-1], strict=True):
            if left < 2:
                break
            levels.append(level[-left:])
            exog.append(known[-left:])
            left -= len(level)
        i = int(np.argmax([len(level) for level in self.levels]))
        if max(map(len, levels)) < min(len(self.levels[i]), _ROOM):
            return Trajectories([self.levels[i][-n_rows:]], [self.exog[i][-n_rows:]])
        return Trajectories(levels[::-1], exog[::-1])


@dataclass(frozen=True)
class LoopDesign:
    """What networks are fitted on, and where their loops begin.

    Attributes
    ----------
    washout : int
        Rows at the start of each trajectory that nothing is learned from.
    n_steps : int
        Of a loop.
    blocks : list of lists of (trajectory, low, high)
        The rows that are learned from, in consecutive blocks of about the same size.
    recycled : list of places
        Starts of loops that are compared with the rows that were fitted (Racca and Magri
        2021).
    left_out : list of lists of places
        For each block, starts of loops that end in it: for a network fitted on the others.
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
        """Spread blocks and starts evenly over trajectories of these lengths."""
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
        """Return how many steps the loops of a block have."""
        return _steps_within(self.blocks[n_block], self.n_steps)


Pieces = list[tuple[int, int, int]]


def _steps_within(pieces: Pieces, n_steps: int) -> int:
    """Return how long loops within pieces are: half of the longest piece at most."""
    longest = max(high - low for _, low, high in pieces)
    return max(1, min(n_steps, longest // 2))


def _between(pieces: Pieces, begin: int, end: int) -> Pieces:
    """Return what lies between two rows, counted over all pieces."""
    found, before = [], 0
    for i, low, high in pieces:
        first, last = max(low, low + begin - before), min(high, low + end - before)
        if first < last:
            found.append((i, first, last))
        before += high - low
    return found


def _spread(pieces: Pieces, n_starts: int, n_steps: int) -> list[Place]:
    """Return evenly spread rows with `n_steps` rows of their piece behind them."""
    room = [(i, low, high - n_steps + 1) for i, low, high in pieces if high - n_steps >= low]
    total = sum(high - low for _, low, high in room)
    if total == 0:
        return []
    wanted = np.unique(np.linspace(0, total - 1, n_starts).astype(int))
    return [_between(room, row, row + 1)[0][:2] for row in wanted.tolist()]
