"""The average of the models that forecast best: what is learned of one series, or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.candidates import Candidate, Forecasting, candidates_for
from reservoir.series_models.rolling import RollingForecasts, roll
from reservoir.series_models.series_data import Bounds, SeriesData

Report = Callable[[Iterable[Any], int, str], Iterable[Any]]
_SHORT, _HANDICAP = 60, 1.25  # rows of a short series; what errors of large models count there
_LEAST_SHARE = 0.01  # models with less are left out
_MOST = 0.5  # share of models at their bounds, from which an average is held there
_ROUNDING = 1e-9  # widths of the bounds that a forecast may be beyond them by rounding
_STEPS = (8, 60)  # of a forecast that models are chosen by: at least, at most
_PART = 5  # of the rows, at most one part in so many


@saved
@dataclass(frozen=True, eq=False)
class Ensemble:
    """Models with their shares in the average.

    Attributes
    ----------
    members : list of Forecasting
    shares : array of shape (n_members,)
    bounds : Bounds
    """

    members: list[Forecasting]
    shares: Array
    bounds: Bounds

    def forecast(self, data: SeriesData, places: Array, n_steps: int) -> Array:
        """Forecast from several places, (n_places, n_steps, n_outputs)."""
        return self._average(self._said(data, places, n_steps, self.bounds))

    def run(self, data: SeriesData, n_steps: int) -> tuple[Array, int]:
        """Forecast from the end, (n_steps, n_outputs); return the steps before it was held, too.

        Held is a forecast where models with most of the shares would go beyond the bounds; that
        values which were never negative stay so is no bound in this sense.
        """
        place, low, high = np.array([data.n_rows]), self.bounds.low, self.bounds.high
        said = self._said(data, place, n_steps, self.bounds)[:, 0]
        forecast, floor = self._average(said), np.where(low == 0, -np.inf, low)
        if self._first(data, (said >= high) | (said <= floor), n_steps) == n_steps:
            return forecast, n_steps
        # what only touches the bounds is not held
        wanted = self._said(data, place, n_steps, Bounds(low - np.inf, high + np.inf))[:, 0]
        leeway = _ROUNDING * (high - low)
        beyond = (wanted > high + leeway) | (wanted < floor - leeway)
        return forecast, self._first(data, beyond, n_steps)

    def _first(self, data: SeriesData, beyond: Array, n_steps: int) -> int:
        """Return the first step at which most of the average is beyond; n_steps if there is none.

        Columns that have never varied are not counted.
        """
        most = self._average(beyond) > _MOST
        held: Array = (most & (np.ptp(data.values, axis=0) > 0)).any(axis=1)
        return int(np.argmax(held)) if held.any() else n_steps

    def _average(self, said: Array) -> Array:
        """Return the mean of what members say, (n_members, ...), weighted by their shares."""
        # one after the other: the bits of a product would depend on the number of steps
        total = np.zeros(said.shape[1:])
        for share, one in zip(self.shares.tolist(), said, strict=True):
            total += share * one
        return total

    def _said(self, data: SeriesData, places: Array, n_steps: int, bounds: Bounds) -> Array:
        """Return what each model says, (n_members, n_places, n_steps, n_outputs)."""
        return np.stack([each.forecast(data, places, n_steps, bounds) for each in self.members])


class Learned(NamedTuple):
    """What is learned of a series.

    Attributes
    ----------
    ensemble : Ensemble
    candidates : list of Candidate
        All that were tried.
    errors : array of shape (n_candidates,)
        Mean absolute errors of forecasts of rows that were not fitted, relative to the least;
        infinite for models that need more rows.
    shares : array of shape (n_candidates,)
    rolling : RollingForecasts
    """

    ensemble: Ensemble
    candidates: list[Candidate]
    errors: Array
    shares: Array
    rolling: RollingForecasts

    @property
    def relative_error(self) -> float:
        """The mean absolute error of the average, relative to that of the best naive forecast."""
        rolling = self.rolling
        away = np.abs(rolling.combined(self.shares) - rolling.followed)
        naive = [
            float(np.nanmean(np.abs(said - rolling.followed)))
            for one, said in zip(self.candidates, rolling.said, strict=True)
            if one.name.startswith("naive") and np.isfinite(said).all()
        ]
        least = min(naive, default=0.0)
        return float(np.nanmean(away) / least) if least > 0 else 1.0


def learn(
    data: SeriesData, *, n_networks: int, n_steps: int | None, widths: float, seed: int
) -> Learned:
    """Try models on a series, and fit those that the average is made of to all of it.

    Parameters
    ----------
    data : SeriesData
    n_networks : int
        Of which the median is taken.
    n_steps : int or None
        Of the forecasts that models are compared by; None for a season, 8 to 60, and at most a
        fifth of the rows.
    widths : float
        Of the range of the series, by which forecasts may leave it.
    seed : int
    """
    bounds = Bounds.of(data.values, data.positive, widths)
    candidates = candidates_for(data, n_networks)
    steps = default_steps(data) if n_steps is None else n_steps
    rolling = roll(candidates, data, steps, bounds, seed)
    errors = rolling.errors()
    shares = without_small(rolling.weights(handicaps(candidates, data.n_rows)))
    used = np.flatnonzero(shares)
    members = [candidates[i].fit(data, seed) for i in used]
    ensemble = Ensemble(members, shares[used], bounds)
    return Learned(ensemble, candidates, errors, shares, rolling)


def handicaps(candidates: Sequence[Candidate], n_rows: int) -> Array:
    """Return by how much the error of each model counts more where rows are few, (n_models,).

    What learns many numbers must be better than simple models by a quarter then.
    """
    simple = np.array([candidate.model.simple for candidate in candidates])
    return np.where(simple | (n_rows >= _SHORT), 1.0, _HANDICAP)


def without_small(shares: Array) -> Array:
    """Return shares of which those below one in a hundred are left out; their sum is 1."""
    shares = np.where(shares >= _LEAST_SHARE, shares, 0.0)
    return shares / shares.sum()


def default_steps(data: SeriesData) -> int:
    """Return the steps of forecasts that models are compared by."""
    low, high = _STEPS
    longest = max((round(season) for season in data.seasons if season <= high), default=low)
    return int(max(1, min(max(longest, low), data.n_rows // _PART)))


def table_of(learned: Sequence[Learned], ids: Sequence[Any]) -> dict[str, Any]:
    """Return a row for each series and model that was tried, best first within a series."""
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
    """Return ids that an array can hold: as they are if all are text or all numbers, else text."""
    for kind in (str, (int, float)):
        if all(isinstance(each, kind) for each in ids):
            return list(ids)
    return [", ".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in ids]


def best_of(learned: Sequence[Learned]) -> dict[str, Any]:
    """Return name and scale of the best model; of several series lists of them."""
    best = [one.candidates[int(np.argmin(one.errors))] for one in learned]
    names, scales = [one.name for one in best], ["log" if one.log else "plain" for one in best]
    if len(best) == 1:
        return {"model": names[0], "scale": scales[0]}
    return {"model": names, "scale": scales}
