"""Closed-loop networks of a series side by side: fits and forecasts are lanes of shared runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics.feature_source import Run
from reservoir.series_models.candidates import Candidate, Forecasting
from reservoir.series_models.growth_sums import masked_ridge
from reservoir.series_models.history import History, most_terms_of
from reservoir.series_models.lags import Differences
from reservoir.series_models.recursive_ridge import (
    Drive,
    FittedLoops,
    LoopNetwork,
    engine_of,
    observed_differences,
    terms_of,
)
from reservoir.series_models.series_data import Bounds, SeriesData, origins_of

_NUMBERS = 2**23  # largest number of states in memory at once: 64 MiB


@dataclass(eq=False)
class _Lane:
    """A fit of a model to the first rows of a history, and the origins of its forecasts."""

    model: LoopNetwork
    history: History
    n_rows: int
    origins: Array
    terms: Callable[[int, int], Array]
    members: list[tuple[Any, Array, Array]] = field(default_factory=list)
    forecasts: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.learned, lag = self.history.until(self.n_rows), self.model.lag
        self.most_terms = most_terms_of([self.learned])
        observed = observed_differences(self.learned, lag)
        self.differences = Differences.of(self.learned.levels, lag, observed)
        terms = self.terms(lag, self.most_terms)
        self.drive = Drive.of(self.history, self.differences, self.most_terms, terms)
        self.n_differences = self.n_rows - lag
        self.at = self.origins - lag - 1

    def fitted(self) -> FittedLoops:
        """Return the fit, after a run."""
        bounds = self.drive.bounds(self.n_differences)
        return FittedLoops(self.differences, self.most_terms, self.members, *bounds)


def roll_loops(
    candidates: Sequence[Candidate], data: SeriesData, n_steps: int, bounds: Bounds, seed: int
) -> list[Array]:
    """Fit networks to the first rows of a series several times, and forecast from later origins.

    The models of `candidates` are of class `LoopNetwork`; the rest is as in `rolling.roll`. Returns
    the forecasts of each, (n_origins, n_steps, n_outputs); NaN where the first rows are too few for
    a fit.
    """
    groups, data = origins_of(data, n_steps), data.with_room(data.n_rows + n_steps)
    fits = [
        (candidate, group)
        for candidate in candidates
        for group in groups
        if group[0] >= candidate.model.min_rows
    ]
    lanes = _lanes(data, [(candidate, int(group[0]), group) for candidate, group in fits])
    _run(lanes, n_steps, seed)
    made = iter(lanes)
    found = []
    for candidate in candidates:
        parts = [np.full((len(group), n_steps, data.values.shape[1]), np.nan) for group in groups]
        for part, group in zip(parts, groups, strict=True):
            if group[0] >= candidate.model.min_rows:
                levels = np.median(next(made).forecasts, axis=0)
                part[:] = bounds.clip(data.in_units(levels, candidate.log))
        found.append(np.concatenate(parts))
    return found


def fit_together(candidates: Sequence[Candidate], data: SeriesData, seed: int) -> list[Forecasting]:
    """Fit models to all rows of a series, the closed-loop networks among them in shared runs."""
    loops = [each for each in candidates if isinstance(each.model, LoopNetwork)]
    lanes = _lanes(data, [(each, data.n_rows, np.zeros(0, int)) for each in loops])
    _run(lanes, 0, seed)
    made = iter(lanes)
    return [
        Forecasting(each.log, next(made).fitted()) if each in loops else each.fit(data, seed)
        for each in candidates
    ]


def _lanes(data: SeriesData, fits: Sequence[tuple[Candidate, int, Array]]) -> list[_Lane]:
    """Return the lanes of fits: the candidate, its number of rows, and the origins of forecasts."""
    histories = {log: data.history(log) for log in {candidate.log for candidate, *_ in fits}}

    @cache  # terms are the same on both scales, and in most of the fits
    def terms(lag: int, most: int) -> Array:
        return terms_of(next(iter(histories.values())), lag, most)

    return [
        _Lane(candidate.model, histories[candidate.log], n_rows, origins, terms)  # type: ignore[arg-type]
        for candidate, n_rows, origins in fits
    ]


def _run(lanes: Sequence[_Lane], n_steps: int, seed: int) -> None:
    """Add members to all lanes, and the forecasts of each from the origins."""
    shared: dict[Any, list[tuple[_Lane, int]]] = {}
    for lane in lanes:
        n_inputs = lane.drive.inputs.shape[1]
        for source, (washout,) in lane.model.sources([lane.learned], n_inputs, seed):
            shared.setdefault(source, []).append((lane, washout))
    for source, pairs in shared.items():
        n_rows = pairs[0][0].history.n_rows
        at_once = max(1, _NUMBERS // (n_rows * source.state_size))
        for begin in range(0, len(pairs), at_once):
            _run_source(source, pairs[begin : begin + at_once], n_steps, engine_of(source, n_rows))


def _run_source(source: Any, pairs: Sequence[tuple[_Lane, int]], n_steps: int, engine: str) -> None:
    """Run a network over the rows of several lanes, then in closed loop from all their origins."""
    lanes, starts = [lane for lane, _ in pairs], np.zeros((len(pairs), source.state_size))
    rows = [lane.drive.inputs[: max([lane.n_differences - 1, *lane.at])] for lane in lanes]
    states = source.states(rows, starts, [Run(engine=engine)] * len(rows))
    for (lane, washout), each in zip(pairs, states, strict=True):
        drive, used = lane.drive, slice(washout, lane.n_differences - 1)
        wanted = slice(washout + 1, lane.n_differences)
        features = source.seen(each[used], drive.inputs[used])
        readout = masked_ridge(
            features, drive.rows[wanted], drive.observed[wanted], lane.model.alpha
        )
        lane.members.append((source, *readout))
    if not n_steps:
        return
    counts = [len(lane.origins) for lane in lanes]

    def each_origin(parts: Sequence[Array]) -> Array:
        return np.repeat(np.stack(parts), counts, axis=0)

    _, coefs, intercepts = zip(*(lane.members[-1] for lane in lanes), strict=True)
    low, high = zip(*(lane.drive.bounds(lane.n_differences) for lane in lanes), strict=True)
    outputs = source.run_lanes(
        each_origin(coefs),
        each_origin(intercepts),
        states=np.concatenate([x[lane.at - 1] for x, lane in zip(states, lanes, strict=True)]),
        inputs=np.concatenate([lane.drive.ahead(lane.at, n_steps) for lane in lanes], axis=1),
        clip=(each_origin(low), each_origin(high)),
        engine=engine,
    )
    for lane, part in zip(lanes, np.split(outputs, np.cumsum(counts)[:-1], axis=1), strict=True):
        steps = part.transpose(1, 0, 2)
        lane.forecasts.append(lane.differences.undo(lane.history.levels, lane.origins, steps))
