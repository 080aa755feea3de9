"""Candidate models of a series, the simplest models first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.ari import ARI
from reservoir.series_models.direct_network import DirectNetwork
from reservoir.series_models.intermittent import IntermittentDemand
from reservoir.series_models.mean_of_rows import MeanOfRows, may_be_independent
from reservoir.series_models.model import FittedModel, SeriesModel
from reservoir.series_models.recursive_ridge import Autoregression, LoopNetwork
from reservoir.series_models.seasonal_naive import LastSeason
from reservoir.series_models.series_data import (
    Bounds,
    SeriesData,
    seen_seasons,
    untested_season,
)
from reservoir.series_models.theta import Theta

# Measured for a model of cost 1: time per row and column, where work for all columns counts as two
# columns, and the number of rows whose time is equal to that of all work that is not done by row.
_COST, _ROWS_OF_START = 0.6, 700


@dataclass(frozen=True)
class Candidate:
    """A model, before it is fitted, with its name in tables.

    With `log`, it is fitted to the logarithms of positive columns.
    """

    name: str
    log: bool
    model: SeriesModel

    def fit(self, data: SeriesData, seed: int) -> Forecasting:
        """Learn from all rows."""
        return Forecasting(self.log, self.model.fit(data.history(self.log), seed))


@saved
@dataclass(frozen=True, eq=False)
class Forecasting:
    """A fitted model and its scale, with forecasts in the units of the series."""

    log: bool
    model: FittedModel

    def forecast(self, data: SeriesData, origins: Array, n_steps: int, bounds: Bounds) -> Array:
        """Forecast from several origins, (n_origins, n_steps, n_outputs), within bounds."""
        with np.errstate(over="ignore", invalid="ignore"):
            levels = self.model.forecast(data.history(self.log), origins, n_steps)
            return bounds.clip(data.in_units(levels, self.log))


def candidates_for(
    data: SeriesData,
    n_networks: int,
    *,
    intermittent: bool | None = None,
    independent: bool | None = None,
) -> list[Candidate]:
    """Return the models to try on a series; if columns are positive, most on both scales.

    `intermittent` is whether the model of intermittent demand is tried; with None, it is if any
    column is intermittent. Otherwise the mean is tried if the rows may be `independent`; with None,
    a test of the series decides. The first fits may see too few periods of the longest season to
    test for it and to determine a drift. Theta is then also tried without the test, and the last
    season is also repeated without drift.
    """
    periods = seen_periods(data)
    longest = periods[-1]
    scales = [True, False] if data.positive.any() else [False]
    few = untested_season(data.n_rows, data.seasons) > 0
    naive = [Candidate(f"naive, period {p}", False, LastSeason(p)) for p in periods]
    if few:
        naive += [
            Candidate(f"naive, period {p}, no drift", False, LastSeason(p, drift=False))
            for p in periods[1:]
        ]
    found = []
    if data.intermittent.any() if intermittent is None else intermittent:
        found.append(Candidate("intermittent demand", False, IntermittentDemand()))
    elif may_be_independent(data) if independent is None else independent:
        found.append(Candidate("mean", False, MeanOfRows()))
    for log in scales:
        found += [
            Candidate("theta", log, Theta(longest)),
            Candidate("ARI", log, ARI(longest)),
            Candidate("autoregression", log, Autoregression()),
            Candidate("direct network", log, DirectNetwork()),
            Candidate("network", log, LoopNetwork(n_networks=n_networks)),
        ]
        if few:
            assumed = Theta(longest, assumed=True)
            found.append(Candidate("theta, season assumed", log, assumed))
    levels = [Candidate("network on levels", scales[0], LoopNetwork(0, n_networks=n_networks))]
    if longest > 1:
        over_season = LoopNetwork(longest, n_networks=n_networks)
        levels.append(Candidate("network on seasonal differences", scales[0], over_season))
    return naive + found + levels


def costs_of(candidates: Sequence[Candidate], series: Sequence[SeriesData]) -> Array:
    """Return the time to compare each candidate on series, roughly in microseconds, (n_models,)."""
    n_rows = sum((data.n_rows + _ROWS_OF_START) * (data.values.shape[1] + 2) for data in series)
    return _COST * n_rows * np.array([candidate.model.cost for candidate in candidates])


def seen_periods(data: SeriesData) -> list[int]:
    """Return 1 and the rounded lengths of the seasons seen often enough, ascending."""
    rounded = {round(season) for season in seen_seasons(data.n_rows, data.seasons)}
    return [1, *sorted(p for p in rounded if p > 1)]
