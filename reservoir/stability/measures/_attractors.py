"""Attracting cycles under a periodic drive, sampled from many initial states."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, caller_level, check_count, check_number
from reservoir.dynamics import Reservoir, iter_many
from reservoir.dynamics.engines import engine_for
from reservoir.stability.measures._cycle_search import SAME, accepted, closed_cycle, polish
from reservoir.stability.measures._multipliers import floquet_multipliers
from reservoir.stability.measures._trajectories import Drive, read_drive_series, spread_states

# Distances are relative to the largest state, where that exceeds 1.
_NEAR = 1e-2  # largest distance between a settled trajectory and the cycle that it approaches
_NUDGE = 1e-4  # largest random displacement off an unstable cycle
_AT_REST = 1e-8  # a trajectory nearer to an unstable cycle would take too long to leave it
# A cycle attracts if its multipliers are below this. Where one is near 1, rounding may move the
# cycle by up to SAME, and the multiplier by the square of that.
_ATTRACTS = 1 - 10 * SAME**2
_ROUND = 25  # least number of periods between two checks for settled trajectories
_LONGER = 50  # longest time, in n_periods, of a trajectory that still converges after n_periods:
_SHRUNK = 0.9  # while the time doubles, its movements shrink below this share


@dataclass(frozen=True, eq=False, repr=False)
class Attractors:
    """The attracting cycles that were found, the largest basin first.

    Attributes
    ----------
    count : int
        Number of different cycles: a lower bound of the number of attractors.
    states : list of arrays of shape (multiples[i] * period, n_units)
        The cycles; row t is the state after step t of the drive.
    multiples : int array of shape (count,)
        Number of periods of the drive that each cycle takes.
    moduli : array of shape (count,)
        Largest modulus of each cycle's Floquet multipliers, below 1.
    labels : int array of shape (n_initial_states,)
        Index of the cycle that each initial state leads to; -1 if the trajectory reached no cycle:
        it is chaotic or quasi-periodic, has a larger multiple, or converges too slowly.
    basins : array of shape (count,)
        Fraction of the initial states that lead to each cycle.
    initial_states, final_states : arrays of shape (n_initial_states, n_units)
        The first and the last states of the trajectories, the last at the end of a period.

    Examples
    --------
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import sample_attractors
    >>> found = sample_attractors(Reservoir([[2.0]], [[1.0]], [0.0]), [[0.0]], random_state=0)
    >>> found.count, sorted(round(float(cycle[0, 0]), 4) for cycle in found.states)
    (2, [-0.9575, 0.9575])
    """

    count: int
    states: list[Array]
    multiples: Array
    moduli: Array
    labels: Array
    basins: Array
    initial_states: Array = field(repr=False)
    final_states: Array = field(repr=False)

    @property
    def n_unsettled(self) -> int:
        """Number of initial states that led to none of the cycles."""
        return int((self.labels < 0).sum())

    @property
    def n_responses(self) -> int:
        """Number of different responses to one drive: a cycle of multiple k has k of them."""
        return int(self.multiples.sum())

    def __repr__(self) -> str:
        return (
            f"Attractors(count={self.count}, multiples={self.multiples.tolist()}, "
            f"basins={self.basins.round(3).tolist()}, n_unsettled={self.n_unsettled})"
        )


def sample_attractors(
    reservoir: Any,
    inputs: ArrayLike,
    *,
    n_initial_states: int = 50,
    n_periods: int = 200,
    max_multiple: int = 8,
    tol: float = 1e-6,
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Attractors:
    """Sample the attracting cycles of the open reservoir under a periodic drive.

    This is a heuristic: it gives a lower bound of the number of attractors. There may be others,
    whose basins contain none of the initial states. Only a certificate (`certify`,
    `certify_cycle`) proves that there is just one.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A float32 reservoir is converted to float64.
    inputs : array of shape (period, n_features)
        One period of the inputs; a single row of zeros for an autonomous network.
    n_initial_states : int, default=50
        Number of initial states: zeros, all units at the upper and all at the lower bound of the
        activation's range ([-1, 1] for an unbounded one), then three uniform states for each random
        corner of this range. A basin that covers a fraction p of the range is missed by n uniform
        states with probability (1 - p)^n: 50 states find a basin with p = 0.1 in 99 % of the cases.
    n_periods : int, periods of the drive, default=200
        Longest time that a trajectory may take to settle. A trajectory that has not settled by
        then, but moves less and less, is run on, up to 50 times as long: with a multiplier of 0.99
        it needs 920 periods.
    max_multiple : int, periods of the drive, default=8
        Length of the longest cycle that is recognised.
    tol : float, default=1e-6
        A trajectory has settled once two of its states, k periods apart, differ by at most `tol`
        in every unit (in units of the largest state, if that exceeds 1); cycles that differ by at
        most `tol` are counted as one.
    feedback : array of shape (period, n_outputs), optional
        Outputs that are fed back at each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the initial states.

    Returns
    -------
    Attractors

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, an input is NaN or infinite, a parameter is out of range, or the states
        of an unbounded activation overflow.

    Warns
    -----
    RuntimeWarning
        If no trajectory settles.
    UserWarning
        If the drive is constant and an estimator was trained to predict its next input.

    Notes
    -----
    A trajectory that has settled may still be far from its cycle: with a multiplier near 1 it moves
    by less than `tol` in a period, and different trajectories would look like different cycles. So
    each is refined by Newton's method as in `find_limit_cycle`, and the refined cycles are
    compared; two that differ by a shift of whole periods are the same cycle. A trajectory at rest
    on an unstable cycle is displaced slightly. Neutral cycles (a multiplier of modulus 1) are not
    counted.

    References
    ----------
    .. [1] A. Ceni, P. Ashwin, L. Livi and C. Postlethwaite, "The echo index and multistability in
       input-driven recurrent neural networks", Physica D 412, 2020.

    Examples
    --------
    A drive within [0, 2], and a bias that suits a drive within [-2, 2]:

    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import sample_attractors
    >>> unit = Reservoir([[3.78]], [[1.0]], [-2.0075])
    >>> found = sample_attractors(unit, [[0.0], [2.0]], random_state=0)
    >>> found.count, found.multiples.tolist(), found.n_unsettled
    (2, [1, 1], 0)
    """
    found, n_rows = attractors_of(
        reservoir, inputs, n_initial_states, n_periods, max_multiple, tol, feedback, random_state
    )
    if not found.count:
        warnings.warn(
            f"None of {len(found.labels)} trajectories settled within {n_rows} rows: they are "
            "chaotic, quasi-periodic or neutral, have cycles of more than max_multiple periods, or "
            "converge too slowly. Raise n_periods.",
            RuntimeWarning,
            stacklevel=caller_level(),
        )
    return found


def attractors_of(
    reservoir: Any,
    inputs: ArrayLike,
    n_initial_states: int,
    n_periods: int,
    max_multiple: int,
    tol: float,
    feedback: ArrayLike | None,
    random_state: RandomState,
) -> tuple[Attractors, int]:
    """Return the result of `sample_attractors`, and the rows of the longest trajectory."""
    drive = read_drive_series(reservoir, "inputs", inputs, feedback)
    n_units, n_columns = drive.reservoir.n_units, drive.X.shape[1]
    n_initial_states = check_count("n_initial_states", n_initial_states, size=_ROUND * n_units)
    n_periods = check_count("n_periods", n_periods, minimum=2)
    size = len(drive) * n_columns + 2 * n_initial_states * n_units
    max_multiple = check_count("max_multiple", max_multiple, size=size)
    tol = check_number("tol", tol, low=0.0, low_open=True)
    if n_periods <= max_multiple:
        raise ValueError(
            f"n_periods={n_periods} must exceed max_multiple={max_multiple}: a cycle is recognised "
            "by its repetition. Raise n_periods."
        )
    generator = as_generator(random_state)
    starts = spread_states(drive.reservoir, n_initial_states, generator)
    sample = _Sample(drive, starts, tol, generator)
    n_done = sample.settle(n_periods, max_multiple)
    return sample.result(starts), n_done * len(drive)


class _Sample:
    """Running trajectories, and the cycles that they have reached so far.

    `ends` contains the latest states, at the end of a period, and `labels` the cycles that the
    trajectories have reached, -1 for none. The cycles are in the order in which they were found.
    """

    def __init__(
        self, drive: Drive, starts: Array, tol: float, generator: np.random.Generator
    ) -> None:
        self.drive, self.tol, self.generator = drive, tol, generator
        self.ends = starts.copy()
        self.labels = np.full(len(starts), -1)
        self.cycles: list[Array] = []
        self.multiples: list[int] = []
        self.moduli: list[float] = []

    def settle(self, n_periods: int, max_multiple: int) -> int:
        """Run trajectories until they settle, or converge no more; return the most periods run."""
        done, stage, moving = 0, n_periods, np.arange(len(self.ends))
        before = np.full((len(moving), max_multiple), np.inf)  # movements one stage before
        while len(moving):
            n = max(_ROUND, max_multiple + 1, done // 4 if done >= n_periods else 0)
            n = stage - done if stage - done < 2 * n else n
            tails = _last_ends(self.drive, self.ends[moving], n, min(n, 2 * max_multiple + _ROUND))
            self.ends[moving] = tails[:, -1]
            for i, tail in zip(moving.tolist(), tails, strict=True):
                self._label(i, tail[-max_multiple - 1 :])
            kept = self.labels[moving] < 0
            movements = _movements(tails, max_multiple)
            done += n
            if done == stage:
                shrink = (movements < _SHRUNK * before) & (movements > self.tol)
                kept &= shrink.any(axis=1) & (done < _LONGER * n_periods)
                stage = min(2 * stage, _LONGER * n_periods)
                before = movements
            elif done == n:
                before = movements
            moving, before = moving[kept], before[kept]
        return done

    def _label(self, i: int, tail: Array) -> None:
        """Label trajectory i if it has settled; `tail` contains its last states at period ends."""
        # It has settled if its state was the same some periods before.
        distances = np.abs(tail[-2::-1] - tail[-1]).max(axis=1)
        scale = max(1.0, float(np.abs(tail[-1]).max()))
        settled = np.flatnonzero(distances <= self.tol * scale)
        if not len(settled):
            return
        # It may be on a known cycle.
        known = self._known(tail[-1], self.tol * scale)
        if known >= 0:
            self.labels[i] = known
            return
        # Else refine its state to a cycle. If that is far away, the trajectory only passes slowly.
        multiple = int(settled[0]) + 1
        point, residual = polish(self.drive.repeated(multiple), tail[-1])
        if not accepted(point, residual) or np.abs(point - tail[-1]).max() > _NEAR * scale:
            return
        # The refined cycle is known, new, or unstable; a trajectory at rest on an unstable one
        # would stay there for ever, so it is displaced.
        known = self._known(point, max(self.tol, SAME) * scale)
        if known < 0:
            known = self._add(point, multiple)
        if known < 0 and np.abs(point - tail[-1]).max() <= _AT_REST * scale:
            kick = self.generator.uniform(-_NUDGE, _NUDGE, len(point))
            self.ends[i] = tail[-1] + scale * kick
        self.labels[i] = known

    def _known(self, point: Array, within: float) -> int:
        """Return the index of the cycle through a point at the end of a period; -1 if none."""
        period = len(self.drive)
        for k, cycle in enumerate(self.cycles):
            if np.abs(cycle[period - 1 :: period] - point).max(axis=1).min() <= within:
                return k
        return -1

    def _add(self, point: Array, multiple: int) -> int:
        """Add the cycle through a point, and return its index; -1 if it does not attract."""
        cycle, multiple = closed_cycle(self.drive, point, multiple)[:2]
        whole = self.drive.repeated(multiple)
        tangent = whole.tangent(cycle[-1], cycle)
        values = floquet_multipliers(tangent.apply, cycle.shape[1], leading=True)
        modulus = float(abs(values[0]))
        if not modulus < _ATTRACTS:
            return -1
        self.cycles.append(cycle)
        self.multiples.append(multiple)
        self.moduli.append(modulus)
        return len(self.cycles) - 1

    def result(self, starts: Array) -> Attractors:
        """Return the attractors that were found, the largest basin first."""
        sizes = Counter(self.labels.tolist())
        order = sorted(range(len(self.cycles)), key=lambda k: -sizes[k])
        position = {k: new for new, k in enumerate(order)} | {-1: -1}
        return Attractors(
            len(order),
            [self.cycles[k] for k in order],
            np.array([self.multiples[k] for k in order], dtype=int),
            np.array([self.moduli[k] for k in order], dtype=float),
            np.array([position[k] for k in self.labels.tolist()]),
            np.array([sizes[k] / len(starts) for k in order], dtype=float),
            starts,
            self.ends,
        )


def _movements(tails: Array, max_multiple: int) -> Array:
    """Return how far trajectories move in 1, 2, ... periods at most, (n, max_multiple)."""
    largest = [
        np.abs(tails[:, k:] - tails[:, :-k]).max(axis=(1, 2)) for k in range(1, max_multiple + 1)
    ]
    return np.column_stack(largest)


def _last_ends(drive: Drive, starts: Array, n_periods: int, n_kept: int) -> Array:
    """Return the last states at ends of periods, of shape (n_trajectories, n_kept, n_units)."""
    reservoir: Reservoir = drive.reservoir
    period, whole = len(drive), drive.repeated(n_periods)
    kept = np.empty((len(starts), n_kept, reservoir.n_units))
    first = n_periods - n_kept
    blocks = iter_many(
        reservoir,
        [whole.X] * len(starts),
        initial_states=starts,
        feedback=None if whole.feedback is None else [whole.feedback] * len(starts),
        # Chosen for the longest call, so that all trajectories are run by the same engine.
        engine=engine_for(reservoir, len(starts) * len(whole)),
    )
    for i, begin, block in blocks:
        ends = np.arange(-(-(begin + 1) // period) * period - 1, begin + len(block), period)
        ends = ends[ends // period >= first]
        kept[i, ends // period - first] = block[ends - begin]
    return kept
