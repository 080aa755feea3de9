"""Training data of candidate networks, closed loops within them, and the networks' parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dpstrf

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.building import build_reservoir
from reservoir.dynamics.features import DrivenReservoir, FeatureSource
from reservoir.dynamics.past_inputs import LaggedSource
from reservoir.dynamics.radial_units import RadialUnits

_ROOM = 200  # consecutive rows that a segment must have, unless all trajectories are shorter
_IN_DEGREE = 10
_FEW_INPUTS = 3  # with more inputs, their scaling is lowered so that their sum has the same size
_TOLERANCE = 1e-8  # a unit is omitted if other units explain all but this fraction of its square
_CANDIDATES = 2000  # rows among which the centres of units are chosen

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


@saved
@dataclass(frozen=True)
class NetworkPlan:
    """Parameters of a candidate reservoir for standardised rows.

    The features are the states, followed by the inputs. Parameters are as in ESNRegressor; with
    ``spectral_radius=0``, units have no recurrent connections. The network receives `n_lags` rows
    at once, `skip` steps apart.
    """

    n_units: int
    spectral_radius: float
    input_scaling: float
    bias_scaling: float = 1.0
    leak_rate: float = 1.0
    augment: str | None = None
    n_lags: int = 1
    skip: int = 1

    def build(self, data: Trajectories, seed: int) -> FeatureSource:
        """Return the source of features for the given data."""
        n_inputs = data.n_inputs
        n_seen = n_inputs * self.n_lags
        crowd = np.sqrt(max(n_inputs / _FEW_INPUTS, 1.0) * self.n_lags)
        reservoir = build_reservoir(
            self.n_units,
            n_seen,
            in_degree=min(_IN_DEGREE, self.n_units),
            spectral_radius=self.spectral_radius,
            input_scaling=self.input_scaling / crowd,
            leak_rate=self.leak_rate,
            bias_scaling=self.bias_scaling,
            random_state=seed,
        )
        source = DrivenReservoir(reservoir, include_input=True, augment=self.augment)
        if self.n_lags == 1:
            return source
        return LaggedSource(source, self.n_lags, self.skip)


@dataclass(frozen=True)
class RadialPlan:
    """Radial units with the present and past rows as inputs, centred at training data.

    There are `n_units`, or as many as training rows. At the distance `width`, the root of the
    weighted mean squared difference of all inputs, a response is exp(-1/2); the weight of a row
    decreases by a factor of e with each `memory` steps of its age. A unit receives `n_lags` rows,
    `skip` steps apart.
    """

    n_units: int
    width: float
    memory: float
    n_lags: int
    skip: int = 1

    def build(self, data: Trajectories, seed: int) -> LaggedSource:
        """Return the source of features for the given data; the seed is not used.

        The centres are pivots of the Cholesky factorisation of the kernel matrix: each further
        centre is the row whose response the previous units explain least.
        """
        ages = np.arange(self.n_lags) * self.skip
        weights = np.repeat(np.exp(-ages / self.memory), data.n_inputs)
        scaling = np.sqrt(weights / weights.sum()) / self.width
        seen = np.array([data.inputs[i][t - ages].ravel() for i, t in self._places(data)])
        every = RadialUnits(seen * scaling, scaling)
        _, pivots, rank, _ = dpstrf(every.answers(seen), tol=_TOLERANCE, lower=1)
        chosen = np.sort(pivots[: min(rank, self.n_units)] - 1)
        return LaggedSource(RadialUnits(every.centres[chosen], scaling), self.n_lags, self.skip)

    def _places(self, data: Trajectories) -> list[Place]:
        """Return the positions of rows with all past rows available, or a subset if many."""
        past = (self.n_lags - 1) * self.skip
        firsts = np.cumsum([0] + [max(len(rows) - past, 0) for rows in data.inputs])
        rows = np.arange(firsts[-1])
        if len(rows) > _CANDIDATES:
            rows = np.linspace(0, len(rows) - 1, _CANDIDATES).astype(int)
        which = np.searchsorted(firsts, rows, side="right") - 1
        return list(zip(which.tolist(), (rows - firsts[which] + past).tolist(), strict=True))
