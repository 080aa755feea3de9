"""Forecasters for `series.py`, all of one signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _timing import version
from sklearn.ensemble import HistGradientBoostingRegressor

from reservoir import ESNForecaster
from reservoir.model_selection import backtest
from reservoir.series_models.ari import ARI
from reservoir.series_models.candidates import Candidate, seen_periods
from reservoir.series_models.model import SeriesModel
from reservoir.series_models.recursive_ridge import Autoregression
from reservoir.series_models.seasonal_naive import LastSeason
from reservoir.series_models.series_data import Bounds, SeriesData
from reservoir.series_models.theta import Theta

Array = np.ndarray
Method = Callable[[pd.Series, int, int], Array]
OURS = "ESNForecaster()"
NAIVE = "seasonal naive"
THETA = "Theta (statsmodels)"


def forecaster_for(y: pd.Series, season: int, seed: int = 0) -> ESNForecaster:
    """Return `ESNForecaster` as it comes; it is told the season of what has no dates."""
    dated = isinstance(y.index, pd.DatetimeIndex | pd.PeriodIndex)
    return ESNForecaster(season=None if dated else season, random_state=seed)


def fitted(y: pd.Series, season: int, seed: int = 0) -> ESNForecaster:
    """Return it, fitted."""
    return forecaster_for(y, season, seed).fit(y)


def ours(y: pd.Series, season: int, n_steps: int) -> Array:
    """Forecast by `ESNForecaster`."""
    return fitted(y, season).forecast(n_steps).to_numpy()


def seasonal_naive(y: pd.Series, season: int, n_steps: int) -> Array:
    """Repeat the last season."""
    return np.resize(y.to_numpy(float)[-season:], n_steps)


def alone(model: Callable[[int], SeriesModel], *, log: bool) -> Method:
    """Return one of our models by itself, made from the rows of a season."""

    def forecast(y: pd.Series, season: int, n_steps: int) -> Array:
        values = y.to_numpy(float)[:, None]
        n_rows = len(values)
        data = SeriesData(
            values,
            np.isfinite(values),
            np.zeros((n_rows + n_steps, 0)),
            (float(season),) if season > 1 else (),
            (values > 0).all(axis=0),
        )
        one = Candidate("", log, model(seen_periods(data)[-1])).fit(data, 0)
        bounds = Bounds.of(values, data.positive, 1.0)
        return one.forecast(data, np.array([n_rows]), n_steps, bounds)[0, :, 0]

    return forecast


def theta(y: pd.Series, season: int, n_steps: int) -> Array:
    """Forecast by the Theta method of statsmodels, season taken off where there is one."""
    from statsmodels.tsa.forecasting.theta import ThetaModel

    values = y.to_numpy(float)
    seasonal = season > 1 and len(values) >= 2 * season
    model = ThetaModel(values, period=season if seasonal else 1, deseasonalize=seasonal)
    return np.asarray(model.fit().forecast(n_steps))


def on_lags(regressor: Callable[[], Any], *, differences: bool) -> Method:
    """Return a regressor on two seasons of lags, 8 to 24, fed with its own predictions.

    With `differences` it sees those of logarithms where all values are positive, else of values.
    """

    def forecast(y: pd.Series, season: int, n_steps: int) -> Array:
        levels = y.to_numpy(float)
        log = differences and levels.min() > 0
        if log:
            levels = np.log(levels)
        seen = np.diff(levels) if differences else levels
        n_lags = min(max(2 * season, 8), 24, len(seen) // 3)
        rows = np.concatenate([seen, np.zeros(n_steps)])
        result = backtest(
            regressor(), rows, horizon=n_steps, n_origins=1, n_lags=n_lags, metrics="mae"
        )
        found = result.forecasts["forecast"].to_numpy()
        if differences:
            found = levels[-1] + np.cumsum(found)
        return np.exp(found) if log else found

    return forecast


def statsforecast(name: str) -> Method:
    """Return a model of statsforecast, with its defaults."""

    def forecast(y: pd.Series, season: int, n_steps: int) -> Array:
        from statsforecast import models

        model = getattr(models, name)(season_length=season)
        return model.forecast(y=y.to_numpy(float), h=n_steps)["mean"]

    return forecast


def _light() -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(verbose=-1, n_jobs=1, min_child_samples=5)


def methods() -> dict[str, Method]:
    """Return all forecasters whose libraries are installed."""
    boosting = HistGradientBoostingRegressor
    found: dict[str, Method] = {
        OURS: ours,
        NAIVE: seasonal_naive,
        "seasonal naive with drift": alone(LastSeason, log=False),
        "linear autoregression alone": alone(lambda _: Autoregression(), log=True),
        "linear, averaged ARI models alone": alone(ARI, log=True),
        "Theta alone": alone(Theta, log=True),
        THETA: theta,
        "gradient boosting on lags": on_lags(boosting, differences=False),
        "gradient boosting on differences": on_lags(boosting, differences=True),
    }
    if version("lightgbm"):
        found["LightGBM on differences"] = on_lags(_light, differences=True)
    if version("statsforecast"):
        names = ("AutoETS", "AutoTheta", "AutoARIMA")
        found |= {f"{name} (statsforecast)": statsforecast(name) for name in names}
    return found
