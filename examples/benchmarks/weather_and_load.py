"""A week of electric load ahead by its temperature, and of the weather itself (Bay 2017, outlook).

Usage: ``python examples/benchmarks/weather_and_load.py [n_seeds]`` (5 by default, the seeds 1, 2,
...) learns from 20 of the 22 years of `weather_and_load` and forecasts 1 to 7 days from each of 121
origins in the last two, six days apart, so that each horizon meets every day of the week. Nothing
is fitted anew. Printed are mean absolute errors at 1, 3 and 7 days and over all seven (mean over
seeds, standard deviation of the latter), in MW for the load, in degrees for the temperature.

All but the naive forecast of the load know the mean temperature of the days ahead, as if a perfect
weather forecast were at hand, and the calendar: whether a day is a holiday, as well as seven
columns for the days of the week. Ridge and gradient boosting see 14 days before, and run on their
own forecasts. Nothing was tuned: `ESNForecaster` and `HistGradientBoostingRegressor` are as they
come, the ridge chooses its penalty by leave-one-out. "degree days" adds how far it is below 15 and
above 21 degrees; "shares" are those of an exponential trend, fitted by least squares to the years
before, and forecasts are multiplied by it.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
import pandas as pd
from _command_line import run_main
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster
from reservoir.datasets import weather_and_load
from reservoir.model_selection import backtest

AIR, HORIZON, STEP, ORIGINS = 13, 7, 6, 121
HOLIDAYS = (101, 501, 815, 1101, 1225, 1226)


class Naive:
    """The last `season` days again."""

    def __init__(self, season):
        self.season = season

    def get_params(self, deep=True):
        """Return the season, for clones."""
        return {"season": self.season}

    def fit(self, y):
        """Keep the last days."""
        self.last_ = y.to_numpy()[-self.season :]
        return self

    def forecast(self, n_steps):
        """Repeat them."""
        return np.resize(self.last_, n_steps)


def data(seed):
    """Return load, temperature, and what is known beforehand of each day."""
    X, y, dates = weather_and_load(random_state=seed)
    days = pd.DatetimeIndex(dates.astype("datetime64[ns]"), freq="D")
    known = pd.DataFrame(np.eye(7)[days.day_of_week], days, [f"day {i}" for i in range(7)])
    known["holiday"] = np.isin(100 * days.month + days.day, HOLIDAYS).astype(float)
    known["temperature"] = X[:, AIR]
    return pd.Series(y, days, name="load"), known


def errors(model, y, trend=None, **settings):
    """Return mean absolute errors at 1, 3 and 7 days, and over all; of shares, times the trend."""
    plan = {"horizon": HORIZON, "step": STEP, "n_origins": ORIGINS, "metrics": "mae"}
    result = backtest(model, y, **(plan | {"refit": False} | settings)).errors
    sizes = result["error"].abs()
    if trend is not None:
        sizes = sizes * result["time"].map(trend)
    by_step = sizes.groupby(result["step"]).mean()
    return [*by_step.loc[[1, 3, 7]], by_step.mean()]


def rivals(seed):
    """Yield names, models and settings of the regressors on lags."""
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
    yield "ridge", ridge, {"n_lags": 14}
    yield "gradient boosting", HistGradientBoostingRegressor(random_state=seed), {"n_lags": 14}


def scores(seed):
    """Yield the task, the model and its errors."""
    load, known = data(seed)
    air = known["temperature"]
    yield "load, a week before", errors(Naive(7), load, refit=True)
    yield "air, the day before", errors(Naive(1), air, refit=True)
    waves = 2 * np.pi * load.index.day_of_year.to_numpy()[:, None] / 365.25 * [1, 2]
    seasons = np.hstack([np.cos(waves), np.sin(waves)])
    model = ESNForecaster(random_state=seed)
    for name, rival, settings in [*rivals(seed), ("ESNForecaster", model, {})]:
        yield f"load, {name}", errors(rival, load, exog=known, **settings)
        yield f"air, {name}", errors(rival, air, exog=seasons, **settings)
    degrees = known.assign(heating=np.maximum(15 - air, 0), cooling=np.maximum(air - 21, 0))
    n_fitted = len(load) - HORIZON - STEP * (ORIGINS - 1)
    slope, level = np.polyfit(np.arange(n_fitted), np.log(load.to_numpy()[:n_fitted]), 1)
    trend = pd.Series(np.exp(level + slope * np.arange(len(load))), load.index)
    shares = load / trend
    for name, rival, settings in [*rivals(seed), ("ESNForecaster", model, {})]:
        yield f"load, {name}, degree days", errors(rival, load, exog=degrees, **settings)
        yield f"load, {name}, shares", errors(rival, shares, trend, exog=known, **settings)
        yield f"load, {name}, both", errors(rival, shares, trend, exog=degrees, **settings)
    without = known.drop(columns="temperature")
    yield "load, ESNForecaster, no temperature", errors(model, load, exog=without)


def main(n_seeds: int = 5):
    """Print the table."""
    rows, start = {}, perf_counter()
    for seed in range(1, n_seeds + 1):
        for name, values in scores(seed):
            rows.setdefault(name, []).append(values)
            print(f"seed {seed}, {perf_counter() - start:.0f} s: {name}", file=sys.stderr)
    print(f"seeds 1 to {n_seeds:<27}{'1 day':>8}{'3 days':>8}{'7 days':>8}{'mean':>8}")
    for name, values in sorted(rows.items()):
        one, three, seven, mean = np.mean(values, axis=0)
        spread = np.std(values, axis=0)[3]
        print(f"{name:<38}{one:>8.2f}{three:>8.2f}{seven:>8.2f}{mean:>8.2f} ± {spread:.2f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
