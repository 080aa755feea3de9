"""Series of few seasons for `series.py`: generated series, simple rivals, and a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from _series_methods import OURS
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster

Array = np.ndarray
LOADS = (11, 13, 14, 16, 21, 28)  # days
DAY, WEEK = 24, 168
COVERAGES = (0.8, 0.95)
SEASON, DAILY, LAST = "last season", "last day", "last value"
METHODS = (OURS, SEASON, DAILY, LAST)
COLUMNS = ("ours", *METHODS[1:], "worst tenth", "80 %", "95 %")


@dataclass(frozen=True)
class Short:
    """A short series with the values that follow it, and the rows of its seasons."""

    past: pd.Series
    future: Array
    seasons: tuple[int, ...]


def load(n_days: int, number: int) -> Short:
    """Return the hourly load of a drawn building, which begins on weekday `number % 7`.

    Days of work have a peak in the morning and one in the evening, Saturdays and Sundays have lower
    and flatter ones. The noise is an autoregression of hours and one of days; both are relative.
    """
    rng = np.random.default_rng([1, number])
    n_rows = (n_days + 7) * DAY
    hours = np.arange(n_rows)
    hour, weekday = hours % DAY, (hours // DAY + number) % 7
    peaks = np.exp(-0.5 * ((np.arange(DAY)[:, None] - [9, 18]) / rng.uniform(1.5, 4, 2)) ** 2)
    work = 1 + peaks @ rng.uniform(0.3, 1.0, 2)
    free = rng.uniform(0.7, 1.0) * (1 + (peaks @ rng.uniform(0.0, 0.6, 2)))
    free = np.stack([free, free * rng.uniform(0.85, 1.0)])
    profile = np.where(weekday < 5, work[hour], free[np.maximum(weekday - 5, 0), hour])
    noise = _autoregression(rng, n_rows, 0.8, rng.uniform(0.01, 0.04))
    noise += np.repeat(_autoregression(rng, n_rows // DAY, 0.7, rng.uniform(0.01, 0.05)), DAY)
    values = rng.uniform(100, 1000) * profile * np.exp(noise)
    dates = pd.date_range("2024-01-01", periods=n_rows, freq="h") + pd.Timedelta(number % 7, "D")
    return _cut(values, dates, n_days * DAY, (DAY, WEEK))


LAWS = ("additive", "multiplicative", "season and walk", "walk")
FREQUENCIES = {"QS": 4, "D": 7, "MS": 12}


def short(freq: str, law: str, number: int) -> Short:
    """Return a drawn series of 1.5 to 3.5 seasons of quarters, days or months.

    "additive": a season, a line and an autoregression; "multiplicative": the same of logarithms;
    "season and walk": a season and a random walk; "walk": a random walk with drift alone.
    """
    season = FREQUENCIES[freq]
    rng = np.random.default_rng([2, season, LAWS.index(law), number])
    n_past = int(rng.integers(-(-3 * season // 2), int(3.5 * season) + 1))
    n_rows = n_past + season
    profile = rng.normal(size=season)
    profile = (profile - profile.mean()) / profile.std()
    if "walk" in law:
        rest = np.cumsum(rng.normal(size=n_rows) * rng.uniform(0.2, 0.6) + rng.uniform(-0.1, 0.1))
    else:
        rest = _autoregression(rng, n_rows, rng.uniform(0, 0.9), 1.0)
        rest += rng.normal() * 2 / season * np.arange(n_rows)
    size = 0 if law == "walk" else rng.uniform(0.7, 3)
    values = size * np.resize(profile, n_rows) + rest
    values = np.exp(5 + 0.15 * values) if law == "multiplicative" else 30 + values
    dates = pd.date_range("2021-01-01", periods=n_rows, freq=freq)
    return _cut(values, dates, n_past, (season,))


def _cut(values: Array, dates: pd.DatetimeIndex, n_past: int, seasons: tuple[int, ...]) -> Short:
    return Short(pd.Series(values[:n_past], dates[:n_past]), values[n_past:], seasons)


def _autoregression(rng: np.random.Generator, n_rows: int, memory: float, size: float) -> Array:
    """Return a stationary autoregression of order 1 with a standard deviation of `size`."""
    steps = rng.normal(size=n_rows) * size
    steps[1:] *= np.sqrt(1 - memory**2)
    for i in range(1, n_rows):
        steps[i] += memory * steps[i - 1]
    return steps


# --- the table ------------------------------------------------------------------------------------


def table(n_series: int, first: int, n_jobs: int) -> None:
    """Print errors of forecasts relative to the last season, and the shares inside intervals.

    The series of each group are numbered from `first` on.
    """
    groups: dict[str, Callable[[int], Short]] = {
        f"{n_days} days of hours": partial(load, n_days) for n_days in LOADS
    }
    for freq, name in (("QS", "quarters"), ("D", "days"), ("MS", "months")):
        groups |= {f"{name}, {law}": partial(short, freq, law) for law in LAWS}
    print(f"\n{'':34s}" + "".join(f"{name:>13s}" for name in COLUMNS))
    for name, draw in groups.items():
        jobs = (delayed(measure)(draw(first + i)) for i in range(n_series))
        found = list(Parallel(n_jobs)(jobs))
        for horizon in found[0]:
            rows = [each[horizon] for each in found]
            print(f"{f'{name}, h = {horizon}':34s}{_cells(rows)}", flush=True)


def _mean(values: Sequence[float]) -> str:
    """Return a geometric mean as text; it is empty if there are no values."""
    return f"{np.exp(np.mean(np.log(values))):.3f}" if values else ""


def _cells(rows: Sequence[dict[str, float]]) -> str:
    """Return the cells of one group and horizon."""
    cells = [_mean([each[name] for each in rows if name in each]) for name in METHODS]
    tail = np.quantile([each[OURS] / each["best naive"] for each in rows], 0.9)
    inside = [f"{100 * np.mean([each[f'{c}'] for each in rows]):.1f}" for c in COVERAGES]
    return "".join(f"{cell:>13s}" for cell in [*cells, f"{tail:.2f}", *inside])


def measure(one: Short) -> dict[str, dict[str, float]]:
    """Return the errors relative to the last season and the shares inside, for each horizon."""
    y, n_steps = one.past.to_numpy(), len(one.future)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ESNForecaster(random_state=0).fit(one.past)
        bands = np.asarray(model.forecast(n_steps, coverage=list(COVERAGES)))
        forecasts = {OURS: bands[:, 0], SEASON: np.resize(y[-one.seasons[-1] :], n_steps)}
        forecasts |= {LAST: np.full(n_steps, y[-1])}
        if len(one.seasons) > 1:
            forecasts[DAILY] = np.resize(y[-DAY:], n_steps)
    found = {}
    for horizon in sorted({one.seasons[0], n_steps}):
        truth = one.future[:horizon]
        errors = {name: np.abs(rows[:horizon] - truth).mean() for name, rows in forecasts.items()}
        row = {name: error / errors[SEASON] for name, error in errors.items()}
        row["best naive"] = min(row[name] for name in (SEASON, LAST, DAILY) if name in row)
        for i, coverage in enumerate(COVERAGES):
            low, high = bands[:horizon, 1 + 2 * i], bands[:horizon, 2 + 2 * i]
            row[f"{coverage}"] = float(np.mean((low <= truth) & (truth <= high)))
        found[f"{horizon}"] = row
    return found
