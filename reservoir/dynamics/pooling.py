"""Pooling: the states of a series are reduced to a few numbers per unit without being stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._kernels import LaneSums, lanes_for
from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_n_jobs
from reservoir._workers import n_workers, run_jobs
from reservoir.dynamics import _compiled
from reservoir.dynamics._many import Plan, by_number, lockstep, make_plan
from reservoir.dynamics.reservoir import Reservoir


class Pool(ABC):
    """A running summary of the states of one series, which are added block by block.

    `thresholds`, (n_thresholds, n_units), are those of the `Pooling`, or None. A class that needs
    them sets `needs_thresholds`.
    """

    needs_thresholds = False

    def __init__(self, n_units: int, thresholds: Array | None) -> None:
        self.n_units, self.thresholds = n_units, thresholds

    @staticmethod
    def labels(name: str, n_thresholds: int) -> list[str]:
        """Return one label for each number that the pool computes per unit."""
        return [name]

    @abstractmethod
    def add(self, states: Array) -> None:
        """Add the next block of states, (rows, n_units), whose memory is reused afterwards."""

    @abstractmethod
    def result(self) -> Array:
        """Return the summary of all states added so far, (n_labels, n_units) or (n_units,)."""


class Mean(Pool):
    """The mean of the states."""

    def __init__(self, n_units: int, thresholds: Array | None) -> None:
        super().__init__(n_units, thresholds)
        self.n_steps, self.mean = 0, np.zeros(n_units)

    def add(self, states: Array) -> None:
        """Move the mean towards the mean of the block."""
        self.n_steps += len(states)
        gap = states.mean(axis=0, dtype=np.float64) - self.mean
        self.mean += gap * (len(states) / self.n_steps)

    def result(self) -> Array:
        """Return the mean."""
        return self.mean


class Std(Pool):
    """The population standard deviation of the states: the divisor is the number of steps.

    The means and squared deviations of blocks are merged by the formula of Chan, Golub and LeVeque
    (1983). They are computed relative to the first state, so that a large mean does not reduce the
    precision.
    """

    def __init__(self, n_units: int, thresholds: Array | None) -> None:
        super().__init__(n_units, thresholds)
        self.n_steps, self.first = 0, np.zeros(n_units)
        self.mean, self.squares = np.zeros(n_units), np.zeros(n_units)

    def add(self, states: Array) -> None:
        """Merge the block's mean and squared deviations."""
        if self.n_steps == 0:
            self.first = states[0].astype(np.float64)
        before, new = self.n_steps, len(states)
        self.n_steps += new
        deviations = states.astype(np.float64)
        deviations -= self.first
        mean = deviations.mean(axis=0)
        gap = mean - self.mean
        deviations -= mean
        self.squares += np.einsum("ij,ij->j", deviations, deviations)
        self.squares += gap**2 * (before * new / self.n_steps)
        self.mean += gap * (new / self.n_steps)

    def result(self) -> Array:
        """Return the standard deviation."""
        return np.sqrt(self.squares / self.n_steps)


class Max(Pool):
    """The largest state."""

    fold: Any = np.maximum

    def __init__(self, n_units: int, thresholds: Array | None) -> None:
        super().__init__(n_units, thresholds)
        self.end: Array | None = None

    def add(self, states: Array) -> None:
        """Update the extreme value."""
        end = self.fold.reduce(states, axis=0)
        self.end = end if self.end is None else self.fold(self.end, end)

    def result(self) -> Array:
        """Return the extreme value."""
        assert self.end is not None
        return self.end


class Min(Max):
    """The smallest state."""

    fold = np.minimum


class Last(Pool):
    """The state after the last step."""

    def add(self, states: Array) -> None:
        """Store the last state of the block."""
        self.state = states[-1].copy()

    def result(self) -> Array:
        """Return the last state."""
        return self.state


class Quantiles(Pool):
    """For each threshold of a unit, the fraction of steps at which the state exceeds it."""

    needs_thresholds = True

    def __init__(self, n_units: int, thresholds: Array | None) -> None:
        super().__init__(n_units, thresholds)
        assert self.thresholds is not None
        self.n_steps, self.above = 0, np.zeros((len(self.thresholds), n_units), np.int64)

    @staticmethod
    def labels(name: str, n_thresholds: int) -> list[str]:
        """Return one label per threshold."""
        return [f"above{k}" for k in range(n_thresholds)]

    def add(self, states: Array) -> None:
        """Count the steps above each threshold."""
        assert self.thresholds is not None
        self.n_steps += len(states)
        above = states > self.thresholds[:, None]
        self.above += np.add.reduce(above.view(np.uint8), axis=1, dtype=np.uint32)

    def result(self) -> Array:
        """Return the fraction of steps above each threshold."""
        return self.above / self.n_steps


#: Value of the parameter `pool` -> class that pools the states of a series.
POOLS: dict[str, type[Pool]] = {
    "mean": Mean,
    "std": Std,
    "max": Max,
    "min": Min,
    "last": Last,
    "quantiles": Quantiles,
}


@saved
@dataclass(frozen=True, eq=False)
class Pooling:
    """The summary statistics to which the states of a series are reduced, per unit.

    Parameters
    ----------
    names : tuple of str
        Any of "mean", "std" (the population standard deviation), "max", "min", "last" (the state
        after the last step) and "quantiles" (the fraction of steps above each threshold).
    thresholds : array of shape (n_thresholds, n_units), optional
        Thresholds of each unit, required for "quantiles"; `state_quantiles` computes them from
        series.

    Raises
    ------
    ValueError
        If there are no names, a name is unknown or repeated, or there are no thresholds for
        "quantiles".

    Examples
    --------
    >>> from reservoir.dynamics import Pooling
    >>> Pooling(("mean", "max")).labels(2)
    ['mean_unit0', 'mean_unit1', 'max_unit0', 'max_unit1']
    """

    names: tuple[str, ...]
    thresholds: Array | None = None

    def __post_init__(self) -> None:
        check_pools("names", self.names)
        if self.thresholds is None and any(POOLS[name].needs_thresholds for name in self.names):
            raise ValueError(
                '"quantiles" needs thresholds, an array of shape (n_thresholds, n_units): '
                "state_quantiles computes them."
            )

    def labels(self, n_units: int) -> list[str]:
        """Return the name of each column of the result.

        Parameters
        ----------
        n_units : int

        Returns
        -------
        list of str
        """
        return [f"{label}_unit{i}" for label in self._labels() for i in range(n_units)]

    def n_columns(self, n_units: int) -> int:
        """Return the number of columns of the result.

        Parameters
        ----------
        n_units : int

        Returns
        -------
        int
        """
        return len(self._labels()) * n_units

    def _labels(self) -> list[str]:
        n_thresholds = 0 if self.thresholds is None else len(self.thresholds)
        return [label for name in self.names for label in POOLS[name].labels(name, n_thresholds)]


def check_pools(name: str, value: Any) -> tuple[str, ...]:
    """Return the names of pools as a tuple, after checking that they are valid and distinct."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (tuple, list)) or not len(names):
        raise ValueError(
            f"{name}={value!r} must be one or several of these names: "
            f"{', '.join(map(repr, POOLS))}."
        )
    for each in names:
        check_choice(name, each, POOLS)
    if len(set(names)) < len(names):
        raise ValueError(f"{name}={value!r} names a pool twice. Omit one of them.")
    return tuple(names)


def pool_many(
    reservoir: Reservoir,
    series: Sequence[Any],
    pooling: Pooling,
    *,
    initial_states: ArrayLike | None = None,
    dt: Sequence[Any] | None = None,
    engine: str = "auto",
    n_jobs: int | None = None,
) -> Array:
    """Drive the reservoir with several series and pool the states of each over its steps.

    The states are pooled as they are computed and are never stored: apart from the result, the
    memory required grows neither with the length of the series nor with their number.

    Parameters
    ----------
    reservoir : Reservoir
    series : sequence of arrays of shape (n_steps, n_features)
        The inputs of each series. The lengths may differ; each series must have at least one step.
    pooling : Pooling
        The summary statistics to compute.
    initial_states : array of shape (n_series, n_units), optional
        The states before the first steps; zero by default.
    dt : sequence of arrays of shape (n_steps,), optional
        Duration of each step, as in `run_many`. Every step counts once in the pools, whatever its
        duration.
    engine : {"auto", "numpy", "numba"}, default="auto"
        As in `run`. With compiled kernels the result for a series does not depend on the other
        series; with NumPy it depends on them through rounding errors.
    n_jobs : int, optional
        Number of joblib threads that the series are distributed over. The result does not depend
        on it.

    Returns
    -------
    array of shape (n_series, n_columns), of the reservoir's dtype
        One row per series; ``pooling.labels(n_units)`` names the columns.

    Raises
    ------
    ValueError
        In the same cases as `run`, and if a series has no steps, if thresholds do not fit the
        reservoir, or if a pooled value is not finite, which only an unbounded activation allows.
    ImportError
        If ``engine="numba"`` and numba is not installed.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample
       variance: analysis and recommendations", The American Statistician 37, 1983, eq. (2.1).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Pooling, Reservoir, pool_many
    >>> res = Reservoir(np.zeros((1, 1)), [[1.0]], [0.0], activation="identity")
    >>> pool_many(res, [[[1.0], [3.0]], [[5.0]]], Pooling(("mean", "std", "last")))
    array([[2., 1., 3.],
           [5., 0., 5.]])
    """
    pooled = np.empty((len(series), pooling.n_columns(reservoir.n_units)), reservoir.dtype)
    pool_into(
        pooled,
        np.arange(len(series)),
        reservoir,
        series,
        pooling,
        initial_states=initial_states,
        dt=dt,
        engine=engine,
        n_jobs=n_jobs,
    )
    return pooled


def pool_into(
    table: Array,
    rows: Array,
    reservoir: Reservoir,
    series: Sequence[Any],
    pooling: Pooling,
    *,
    initial_states: ArrayLike | None = None,
    dt: Sequence[Any] | None = None,
    engine: str = "auto",
    n_jobs: int | None = None,
    name_of: Callable[[int], str] = by_number,
) -> None:
    """Write the result of `pool_many` into a table, one row per series.

    `table`, (n_rows, n_columns), is changed in place; `rows` are the indices of its rows for the
    series. `name_of` returns the name of a series in messages, given its index. The other arguments
    are as in `pool_many`.
    """
    check_n_jobs(n_jobs)
    workers = n_workers(n_jobs)
    plan = make_plan(reservoir, series, initial_states, None, engine, name_of, dt, workers)
    for i, X in enumerate(plan.inputs):
        if len(X) == 0:
            raise ValueError(f"{name_of(i)} has 0 steps; at least 1 is required. Omit it.")
    n_units, thresholds = reservoir.n_units, pooling.thresholds
    if thresholds is not None and (thresholds.ndim != 2 or thresholds.shape[1] != n_units):
        raise ValueError(
            f"thresholds must have shape (n_thresholds, n_units={n_units}); got {thresholds.shape}."
        )
    known = all(POOLS[name] in _FROM_LANES for name in pooling.names)
    pool = _pool_lanes if plan.lanes and known and not plan.check else _pool_blocks

    def fill(groups: list[list[int]]) -> list[int]:
        """Write the rows of some groups; return the indices of the series that overflow."""
        bad = []
        for group, pooled in pool(plan, groups, pooling):
            table[rows[group]] = pooled
            finite = np.isfinite(pooled).all(axis=1)
            bad += [group[k] for k in np.flatnonzero(~finite)]
        return bad

    n_shares = max(min(workers, len(plan.groups)), 1)
    shares = [(plan.groups[k::n_shares],) for k in range(n_shares)]
    found = run_jobs(fill, shares, n_jobs, in_threads=True)
    bad = [i for each in found for i in each]
    if bad:
        raise ValueError(
            f"The pooled states of {name_of(min(bad))} overflow {reservoir.dtype}. Scale the "
            'inputs down, or use a bounded activation such as "tanh".'
        )


#: Class of a pool -> function that converts the kernels' sums for some series into the pool's
#: results: ``f(sums, n_steps)``, of arrays of shape (n_units, n_labels, n_series) and (n_series,).
_FROM_LANES: dict[type[Pool], Callable[[LaneSums, Array], Array]] = {
    Mean: lambda sums, n_steps: sums.mean,
    Std: lambda sums, n_steps: np.sqrt(np.maximum(sums.squares, 0.0) / n_steps),
    Max: lambda sums, n_steps: sums.high,
    Min: lambda sums, n_steps: sums.low,
    Last: lambda sums, n_steps: sums.last,
    Quantiles: lambda sums, n_steps: _shares(sums.counts, n_steps),
}


def _shares(counts: Array, n_steps: Array) -> Array:
    """Return counts / n_steps, divided in rows longer than eight, in a third of the time."""
    n_units, n_labels, lanes = counts.shape
    shares = counts.reshape(n_units, n_labels * lanes) / np.tile(n_steps, n_labels)
    return shares.reshape(counts.shape)


def _pool_lanes(
    plan: Plan, groups: list[list[int]], pooling: Pooling
) -> Iterator[tuple[list[int], Array]]:
    """Yield each group of series with its rows, computed by the kernel for lanes."""
    kinds = [POOLS[name] for name in pooling.names]
    n_units, inputs, dtype = plan.reservoir.n_units, plan.inputs, plan.reservoir.dtype
    thresholds = np.empty((0, n_units))
    if Quantiles in kinds and pooling.thresholds is not None:
        thresholds = pooling.thresholds
    wanted = {
        "moments": Mean in kinds or Std in kinds,
        "ends": Max in kinds or Min in kinds,
        "last": Last in kinds,
    }
    for group in groups:
        series = [inputs[i] for i in group]
        sums = _compiled.pool_lanes(
            plan.reservoir, thresholds, plan.starts[group], series, **wanted
        )
        # one lane per series: remove unused lanes, and the padding of the number of thresholds
        width = lanes_for(len(group), dtype)
        tables = (each.reshape(n_units, -1, width)[:, :, : len(group)] for each in sums)
        parts = LaneSums(*tables)
        parts = parts._replace(counts=parts.counts[:, : len(thresholds)])
        n_steps = np.array([len(X) for X in series])
        rows = [_FROM_LANES[kind](parts, n_steps).astype(dtype, copy=False) for kind in kinds]
        # the lanes become the first axis, the units the last
        by_lane = np.concatenate([each.T for each in rows], axis=1)
        yield group, by_lane.reshape(len(group), -1)


def _pool_blocks(
    plan: Plan, groups: list[list[int]], pooling: Pooling
) -> Iterator[tuple[list[int], Array]]:
    """Yield each group of series with its rows, pooled block by block of states."""
    n_units, dtype = plan.reservoir.n_units, plan.reservoir.dtype
    for group in groups:
        pools = {
            i: [POOLS[name](n_units, pooling.thresholds) for name in pooling.names] for i in group
        }
        # the caller raises if a value overflowed
        with np.errstate(over="ignore", invalid="ignore"):
            for i, _, states in lockstep(plan, group):
                for pool in pools[i]:
                    pool.add(states)
            rows = [np.concatenate([p.result().ravel() for p in pools[i]]) for i in group]
            yield group, np.array(rows, dtype)
