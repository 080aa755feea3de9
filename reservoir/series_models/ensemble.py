"""The weighted average of the best models of a series, and the comparison that selects them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, Report
from reservoir.series_models.candidates import Candidate, Forecasting, candidates_for
from reservoir.series_models.mean_of_rows import MeanOfRows
from reservoir.series_models.rolling import RollingForecasts, roll
from reservoir.series_models.series_data import Bounds, SeriesData, origins_of, untested_season
from reservoir.series_models.side_by_side import fit_together

_SHORT, _HANDICAP = 60, 1.25  # on shorter series, errors of large models are multiplied by 1.25
_LEAST_SHARE = 0.01  # models with smaller weights are dropped
_MOST = 0.5  # total weight of models at their bounds above which the average counts as clipped
_ROUNDING = 1e-9  # tolerance for rounding errors beyond the bounds, relative to their distance
_STEPS = (8, 60)  # least and most steps of the forecasts by which models are compared
_PART = 5  # these forecasts have at most n_rows / _PART steps


@saved
@dataclass(frozen=True, eq=False)
class Ensemble:
    """Fitted models, their weights, which add up to 1, and the bounds that clip forecasts."""

    members: list[Forecasting]
    shares: Array
    bounds: Bounds

    def forecast(self, data: SeriesData, origins: Array, n_steps: int) -> Array:
        """Forecast from several origins, (n_origins, n_steps, n_outputs)."""
        average = self._average(self._forecasts(data, origins, n_steps, self.bounds))
        return self.bounds.clip(average)  # weights whose sum is rounded may exceed the bounds

    def run(self, data: SeriesData, n_steps: int) -> tuple[Array, int]:
        """Forecast from the end of the series, and count the steps before the first clipped one.

        A step counts as clipped if models with more than half of the weight exceed the bounds. A
        lower bound of 0, for values that were never negative, does not count, nor do the least and
        greatest possible value. Without a clipped step, the count is n_steps.
        """
        end, low, high = np.array([data.n_rows]), self.bounds.low, self.bounds.high
        clipped = self._forecasts(data, end, n_steps, self.bounds)[:, 0]
        forecast = self.bounds.clip(self._average(clipped))
        floor, ceiling = np.where(low == 0, -np.inf, low), high
        if data.possible is not None:
            floor = np.where(low <= data.possible[0], -np.inf, floor)
            ceiling = np.where(high >= data.possible[1], np.inf, high)
        if self._first(data, (clipped >= ceiling) | (clipped <= floor), n_steps) == n_steps:
            return forecast, n_steps
        # forecasts that only touch the bounds are not clipped: run again without bounds
        free = self._forecasts(data, end, n_steps, Bounds(low - np.inf, high + np.inf))[:, 0]
        leeway = _ROUNDING * (high - low)
        beyond = (free > ceiling + leeway) | (free < floor - leeway)
        return forecast, self._first(data, beyond, n_steps)

    def _first(self, data: SeriesData, beyond: Array, n_steps: int) -> int:
        """Return the first step at which models with most of the weight are beyond the bounds.

        Constant columns do not count. Without such a step, n_steps is returned.
        """
        most = self._average(beyond) > _MOST
        is_beyond: Array = (most & (np.ptp(data.values, axis=0) > 0)).any(axis=1)
        return int(np.argmax(is_beyond)) if is_beyond.any() else n_steps

    def _average(self, forecasts: Array) -> Array:
        """Return the weighted mean of the members' forecasts, (n_members, ...)."""
        # member by member: the last bits of a matrix product would depend on the number of steps
        total = np.zeros(forecasts.shape[1:])
        for share, one in zip(self.shares.tolist(), forecasts, strict=True):
            total += share * one
        return total

    def _forecasts(self, data: SeriesData, origins: Array, n_steps: int, bounds: Bounds) -> Array:
        """Return the forecasts of all models, (n_members, n_origins, n_steps, n_outputs)."""
        return np.stack([each.forecast(data, origins, n_steps, bounds) for each in self.members])


class Learned(NamedTuple):
    """The fitted ensemble of a series, and the comparison of models on held-out rows, `rolling`.

    `errors` are relative to the lowest, and infinite for models that need more rows; `shares` are
    the weights, 0 outside the ensemble. `average`, (n_origins, n_steps, n_outputs), from which
    bands are learned, averages the forecasts by weights that do not depend on the errors of the
    same forecasts.
    """

    ensemble: Ensemble
    candidates: list[Candidate]
    errors: Array
    shares: Array
    rolling: RollingForecasts
    average: Array

    @property
    def relative_error(self) -> float:
        """Ratio of the average's mean absolute error to the error of the best naive forecast."""
        rolling = self.rolling
        errors = np.abs(rolling.combined(self.shares) - rolling.followed)
        naive = [
            float(np.nanmean(np.abs(predicted - rolling.followed)))
            for one, predicted in zip(self.candidates, rolling.predicted, strict=True)
            if one.name.startswith("naive") and np.isfinite(predicted).all()
        ]
        least = min(naive, default=0.0)
        return float(np.nanmean(errors) / least) if least > 0 else 1.0


def learn(
    data: SeriesData,
    *,
    n_networks: int,
    n_steps: int | None,
    widths: float,
    seed: int,
    report: Report,
    candidates: Callable[[SeriesData, int], list[Candidate]] = candidates_for,
) -> Learned:
    """Compare models on a series, and fit the models of the average to all of its rows.

    The median of `n_networks` networks is a model. Forecasts that are compared have `n_steps`
    steps; by default a season, from 8 to 60, and at most a fifth of the rows. They may exceed the
    range of the series by `widths` times its width. `report` passes results through and shows
    progress; `candidates` returns the models, given the series and `n_networks`.
    """
    bounds = Bounds.of(data.values, data.positive, widths, data.possible)
    tried = candidates(data, n_networks)
    steps = default_steps(data) if n_steps is None else n_steps
    rolling = roll(tried, data, steps, bounds, seed, report)
    errors = rolling.errors()
    factors = handicaps(tried, data.n_rows, data.seasons), favours(tried)
    shares = without_small(rolling.weights(*factors))
    used = np.flatnonzero(shares)
    members = fit_together([tried[i] for i in used], data, seed)
    ensemble = Ensemble(members, shares[used], bounds)
    average = rolling.combined_apart([len(each) for each in origins_of(data, steps)], *factors)
    return Learned(ensemble, tried, errors, shares, rolling, average)


def mean_if_no_worse(learned: Learned, data: SeriesData) -> Learned | None:
    """Return the mean of the rows as the only model; None if the average of models is better.

    They are compared by their errors in held-out rows, those of the mean of all rows before.
    """
    rolling, bounds = learned.rolling, learned.ensemble.bounds
    candidate = Candidate("mean", False, MeanOfRows())
    mean = candidate.fit(data, 0)
    predicted = mean.forecast(data, rolling.origins, rolling.followed.shape[1], bounds)
    of_models, of_mean = replace(rolling, predicted=np.stack([learned.average, predicted])).errors()
    if of_models < of_mean:
        return None
    others = [i for i, one in enumerate(learned.candidates) if one != candidate]
    every = np.concatenate([rolling.predicted[others], predicted[None]])
    rolling = replace(rolling, predicted=every)
    return Learned(
        Ensemble([mean], np.ones(1), bounds),
        [*(learned.candidates[i] for i in others), candidate],
        rolling.errors(),
        np.append(np.zeros(len(others)), 1.0),
        rolling,
        predicted,
    )


def handicaps(candidates: Sequence[Candidate], n_rows: int, seasons: Sequence[float] = ()) -> Array:
    """Return the factors by which the errors of the models are multiplied, (n_models,).

    On a series of few rows or few periods of its seasons, the error of a model with many parameters
    is multiplied by 1.25; all other factors are 1.
    """
    simple = np.array([candidate.model.simple for candidate in candidates])
    is_short = n_rows < _SHORT or untested_season(n_rows, seasons) > 0
    return np.where(simple | (not is_short), 1.0, _HANDICAP)


def favours(candidates: Sequence[Candidate]) -> Array:
    """Return the factors by which the weights of the models are multiplied, (n_models,)."""
    return np.array([candidate.model.favour for candidate in candidates])


def without_small(shares: Array) -> Array:
    """Return weights with those below 0.01 set to 0, rescaled to a sum of 1."""
    shares = np.where(shares >= _LEAST_SHARE, shares, 0.0)
    return shares / shares.sum()


def default_steps(data: SeriesData) -> int:
    """Return the default number of steps of the forecasts by which models are compared."""
    low, high = _STEPS
    longest = max((round(season) for season in data.seasons if season <= high), default=low)
    return int(max(1, min(max(longest, low), data.n_rows // _PART)))


def table_of(learned: Sequence[Learned], ids: Sequence[Any]) -> dict[str, Any]:
    """Return a table, as columns, with a row for each series and model, best models first."""
    rows: list[tuple[Any, ...]] = []
    for name, one in zip(labels_of(ids), learned, strict=True):
        order = np.argsort(one.errors, kind="stable")
        for i in order:
            candidate = one.candidates[i]
            scale = "log" if candidate.log else "plain"
            rows.append((name, candidate.name, scale, one.errors[i], one.shares[i]))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return dict(zip(("series", "model", "scale", "error", "share"), columns, strict=True))


def labels_of(ids: Sequence[Any]) -> list[Any]:
    """Return ids for an array: unchanged if all are strings or all numbers, else strings."""
    for kind in (str, (int, float)):
        if all(isinstance(each, kind) for each in ids):
            return list(ids)
    return [", ".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in ids]


def best_of(learned: Sequence[Learned]) -> dict[str, Any]:
    """Return the name and the scale of the best model; for several series, two lists."""
    best = [one.candidates[int(np.argmin(one.errors))] for one in learned]
    names, scales = [one.name for one in best], ["log" if one.log else "plain" for one in best]
    if len(best) == 1:
        return {"model": names[0], "scale": scales[0]}
    return {"model": names, "scale": scales}
