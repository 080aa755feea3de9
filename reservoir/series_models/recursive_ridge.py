"""Models that forecast in closed loop, by a ridge whose features are driven by differences.

The features are the states of a reservoir or the last few differences, and calendar terms.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._workers import one_blas_thread
from reservoir.building import build_reservoir
from reservoir.dynamics.feature_source import FeatureSource, Run
from reservoir.dynamics.features import DrivenReservoir
from reservoir.series_models.growth_sums import MaskedSums, masked_ridge
from reservoir.series_models.history import History, most_terms_of
from reservoir.series_models.lags import Differences, LagSource
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past

_UNITS, _RADIUS, _LEAK_RATE, _SCALING = 100, 0.8, 0.5, 0.3
# rows by which columns are sorted, and their digits: not more than are certain at a large level
_COMPARED, _DIGITS = 99, 6
_FEW_TERMS = 4  # more than 4 terms enter a reservoir with smaller weights
_WASHOUT, _MOST_WASHED = 20, 5  # rows of washout: 20, or a fifth of a short series
# expected number of runs over a series, which repay the start of compiled code: of 21 rows or more;
# the first fit of a process takes .4 s longer than in NumPy, each forecast half as long
_RUNS = 100
_NUMBERS = 2**20  # up to this number of features they are in memory at once: 8 MiB
_LAGS = (4, 24)  # smallest and largest number of lags of an autoregression
_PART_SEEN = 5  # there are at most a fifth as many lags as rows to learn from,
_PART_LOST = 2  # and at most half as many as rows of the longest series: its first rows lack lags


@dataclass(frozen=True)
class ClosedLoopModel(SeriesModel):
    """A ridge from features to the next difference over `lag` rows (0: levels), which is fed back.

    The penalty `alpha` is not divided by the number of rows.
    """

    lag: int = 1
    alpha: float = 1.0
    simple: ClassVar[bool] = False

    @property
    def min_rows(self) -> int:  # type: ignore[override]
        """Least number of rows for a fit."""
        return self.lag + 8

    @abstractmethod
    def sources(
        self, histories: Sequence[History], n_inputs: int, seed: int
    ) -> list[tuple[Any, list[int]]]:
        """Return the sources of features, each paired with a list of the washouts of the series."""

    def fit(self, history: History, seed: int) -> FittedLoops:
        """Fit one readout for each source of features."""
        return self.fit_shared([history], seed)[0]

    def fit_shared(self, histories: Sequence[History], seed: int) -> list[FittedLoops]:
        """Fit one readout for each source to the rows of all series, which are standardised."""
        lag, most_terms = self.lag, most_terms_of(histories)
        scales = [
            Differences.of(each.levels, lag, observed_differences(each, lag)) for each in histories
        ]
        drives = [
            Drive.of(each, scale, most_terms) for each, scale in zip(histories, scales, strict=True)
        ]
        members = [
            (source, *_readout(source, washouts, drives, self.alpha))
            for source, washouts in self.sources(histories, drives[0].inputs.shape[1], seed)
        ]
        return [
            FittedLoops(scale, most_terms, members, *drive.bounds(len(drive.rows)))
            for scale, drive in zip(scales, drives, strict=True)
        ]


@dataclass(frozen=True)
class LoopNetwork(ClosedLoopModel):
    """Echo state networks in closed loop, whose median forecast over `n_networks` is used."""

    n_networks: int = 3

    @property
    def cost(self) -> float:  # type: ignore[override]
        """Rough time of fits and forecasts, relative to Theta."""
        return 10.0 * self.n_networks

    def sources(
        self, histories: Sequence[History], n_inputs: int, seed: int
    ) -> list[tuple[Any, list[int]]]:
        """Return reservoirs, whose features are states and inputs, with their washouts."""
        return network_sources(histories, n_inputs, range(seed, seed + self.n_networks))


@dataclass(frozen=True)
class Autoregression(ClosedLoopModel):
    """Linear autoregression on the last standardised differences and on calendar terms.

    The number of lags is two seasons, at least 4 and at most 24. It is also at most a fifth of the
    number of observed differences of all series, and at most half of the number of observed
    differences of the longest series.
    """

    cost: ClassVar[float] = 4.0

    def sources(
        self, histories: Sequence[History], n_inputs: int, seed: int
    ) -> list[tuple[Any, list[int]]]:
        """Return the source of lagged differences, with its washouts."""
        longest = round(max(histories[0].seasons, default=1.0))
        n_lags = int(np.clip(2 * longest, *_LAGS))
        counts = [int(observed_differences(each, self.lag).sum(axis=0).max()) for each in histories]
        n_lags = max(1, min(n_lags, sum(counts) // _PART_SEEN, max(counts) // _PART_LOST))
        n_outputs = histories[0].n_outputs
        source = LagSource(n_lags, n_outputs, n_inputs - n_outputs)
        return [(source, [n_lags - 1] * len(histories))]


@saved
@dataclass(frozen=True, eq=False)
class FittedLoops(FittedModel):
    """Sources with their readouts, and bounds, (n_outputs,), on the fed-back differences."""

    differences: Differences
    most_terms: int
    members: list[tuple[Any, Array, Array]]
    low: Array
    high: Array

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Run closed loops of all members from all origins, and return their median forecasts."""
        check_enough_past(origins, self.differences.lag + 1)
        drive = Drive.of(history, self.differences, self.most_terms)
        at = origins - self.differences.lag - 1
        found = []
        n = len(origins)
        clip = self.low[None].repeat(n, axis=0), self.high[None].repeat(n, axis=0)
        for source, coef, intercept in self.members:
            rows = source.run_lanes(
                np.broadcast_to(coef, (n, *coef.shape)),
                np.broadcast_to(intercept, (n, *intercept.shape)),
                states=states_before(source, drive.inputs, at),
                inputs=drive.ahead(at, n_steps),
                clip=clip,
                engine=engine_of(source, len(drive.inputs)),
            )
            found.append(self.differences.undo(history.levels, origins, rows.transpose(1, 0, 2)))
        return np.median(found, axis=0)


@dataclass(frozen=True, eq=False)
class Drive:
    """Inputs of a source of features: a difference, and the terms known for the next row.

    `rows` and `observed`, whether both levels are, have shape (n_rows - lag, n_outputs). `terms`,
    (n_rows_ahead - lag, n_terms), are known for each difference and for later ones. `inputs` are
    the differences, followed by the terms of the next row.
    """

    rows: Array
    observed: Array
    terms: Array
    inputs: Array

    @classmethod
    def of(
        cls,
        history: History,
        differences: Differences,
        most_terms: int,
        terms: Array | None = None,
    ) -> Drive:
        """Return the inputs over a history, with at most `most_terms` calendar terms.

        `terms` may contain the result of `terms_of`, if it is known.
        """
        lag, n_rows = differences.lag, history.n_rows
        rows = differences.take(history.levels)
        terms = terms_of(history, lag, most_terms) if terms is None else terms
        inputs = np.hstack([rows, terms[lag + 1 : n_rows + 1]])
        return cls(rows, observed_differences(history, lag), terms[lag:], inputs)

    def bounds(self, n_rows: int) -> tuple[Array, Array]:
        """Return the range of the first differences, extended by its width on either side."""
        low, high = self.rows[:n_rows].min(axis=0), self.rows[:n_rows].max(axis=0)
        return low - (high - low), high + (high - low)

    def ahead(self, at: Array, n_steps: int) -> Array:
        """Return the inputs of closed loops that begin with the inputs at given positions.

        They have shape (n_steps, n_positions, n_outputs + n_terms). Differences are 0 from the
        second step on.
        """
        found = np.zeros((n_steps, len(at), self.inputs.shape[1]))
        found[0] = self.inputs[at]
        found[1:, :, self.rows.shape[1] :] = self.terms[np.add.outer(np.arange(2, n_steps + 1), at)]
        return found


def terms_of(history: History, lag: int, most_terms: int) -> Array:
    """Return the terms known for the rows of a history and later ones, (n_rows_ahead, n_terms)."""
    known = history.known
    n_ahead = max(len(known), history.n_rows + 1)
    # differences over a season have no seasonal pattern
    calendar = history.calendar(n_ahead, most_terms) if lag <= 1 else np.zeros((n_ahead, 0))
    known = np.concatenate([known, known[-1:].repeat(n_ahead - len(known), axis=0)])
    parts = [calendar, known]
    if lag:
        parts.append(known - np.concatenate([known[:1].repeat(lag, axis=0), known])[:n_ahead])
    return np.hstack(parts)


def observed_differences(history: History, lag: int) -> Array:
    """Return whether both levels of each difference are observed, (n_rows - lag, n_outputs)."""
    observed = history.observed
    return observed[lag:] & observed[: history.n_rows - lag]


def network_sources(
    histories: Sequence[History], n_inputs: int, seeds: Any
) -> list[tuple[Any, list[int]]]:
    """Return a reservoir for each seed, whose features are states and inputs, with its washouts.

    Which column has which input weights depends on the columns' values, not on their order.
    """
    washouts = [min(_WASHOUT, each.n_rows // _MOST_WASHED) for each in histories]
    n_outputs, places = histories[0].n_outputs, _places_of(histories[0].levels)
    return [(_network(n_outputs, n_inputs - n_outputs, seed, places), washouts) for seed in seeds]


def _places_of(levels: Array) -> tuple[int, ...]:
    """Return the number of each column after sorting them by their first standardised levels."""
    standard = Differences.of(levels, 0).take(levels)
    order = np.lexsort(np.round(standard[_COMPARED::-1], _DIGITS))
    return tuple(np.argsort(order).tolist())


def _readout(
    source: FeatureSource, washouts: Sequence[int], drives: Sequence[Drive], alpha: float
) -> tuple[Array, Array]:
    """Return coefficients and intercepts of the ridge from features to the next differences."""
    if len(drives) == 1 and drives[0].rows.size * source.width <= _NUMBERS:
        blocks = [features.copy() for _, features in features_of(source, drives[0].inputs[:-1])]
        features, later = np.concatenate(blocks)[washouts[0] :], slice(1 + washouts[0], None)
        return masked_ridge(features, drives[0].rows[later], drives[0].observed[later], alpha)
    wanted = []
    for drive, washout in zip(drives, washouts, strict=True):
        wanted.append(drive.observed[1:].copy())
        wanted[-1][:washout] = False
    sums, begin = MaskedSums(source.width, np.concatenate(wanted)), 0
    for drive in drives:
        for start, features in features_of(source, drive.inputs[:-1]):
            targets = drive.rows[1 + start :][: len(features)]
            sums.update(features, targets, begin + start)
        begin += len(drive.rows) - 1
    return sums.solve(alpha)


@lru_cache(maxsize=32)
@one_blas_thread()  # also if a pickle is read, so that the bits are the same
def _network(n_outputs: int, n_terms: int, seed: int, places: tuple[int, ...]) -> DrivenReservoir:
    of_terms = _SCALING * np.sqrt(_FEW_TERMS / max(n_terms, _FEW_TERMS))
    reservoir = build_reservoir(
        _UNITS,
        n_outputs + n_terms,
        spectral_radius=_RADIUS,
        leak_rate=_LEAK_RATE,
        input_scaling=np.repeat([_SCALING, of_terms], [n_outputs, n_terms]),
        bias_scaling=_SCALING,
        random_state=seed,
    )
    columns = [*places, *range(n_outputs, n_outputs + n_terms)]
    reservoir = replace(reservoir, W_in=reservoir.W_in[:, columns])
    source = DrivenReservoir(reservoir, include_input=True)
    return source.drawn_by(_network, n_outputs, n_terms, seed, places)


def engine_of(source: FeatureSource, n_rows: int) -> str:
    """Return the engine for a series, by the rows of all runs that compare models on it."""
    return source.engine_for(_RUNS * n_rows)


def features_of(source: FeatureSource, inputs: Array) -> Iterator[tuple[int, Array]]:
    """Run a source over inputs; yield blocks of features, each with the number of its first row."""
    engine = engine_of(source, len(inputs))
    start_state = source.initial_state_of(inputs[0])
    for start, features, _ in source.iter_features(inputs, start_state, Run(engine=engine)):
        yield start, features


def states_before(source: FeatureSource, inputs: Array, positions: Array) -> Array:
    """Return the states before the inputs at given positions, which must be ascending.

    It is assumed that the features of a row begin with the state after this row.
    """
    if source.memory is not None:  # earlier rows have no influence
        begin = max(0, int(positions[0]) - source.memory)
        inputs, positions = inputs[begin:], positions - begin
    states = np.tile(source.initial_state_of(inputs[0]), (len(positions), 1))
    later = positions > 0
    if later.any():
        states[later] = features_at(source, inputs, positions[later] - 1)[:, : source.state_size]
    return states


def features_at(source: FeatureSource, inputs: Array, rows: Array) -> Array:
    """Return the features at given rows of the inputs, which must be ascending."""
    found = np.empty((len(rows), source.width))
    for start, features in features_of(source, inputs[: rows[-1] + 1]):
        here = (rows >= start) & (rows < start + len(features))
        found[here] = features[rows[here] - start]
    return found
