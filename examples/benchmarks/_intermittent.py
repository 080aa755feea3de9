"""Intermittent demand in `series.py`: generated series, methods made for them, and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster
from reservoir.metrics import mase, rmsse
from reservoir.series_models.history import History
from reservoir.series_models.intermittent import IntermittentDemand
from reservoir.series_models.series_data import SeriesData

Array = np.ndarray
Method = Callable[[Array, int], Array]
LAWS = ("independent", "clustered", "ending", "weekly")
HORIZON = 12
WEEK = 7
N_FUTURES = 50
COVERAGES = [0.8, 0.95]
SMOOTHING = 0.1  # of Croston's method, usual in the literature
OURS, WITHOUT = "ESNForecaster()", "the same without"


def demand(law: str, number: int) -> tuple[Array, Array]:
    """Return a drawn series of 60 to 400 rows, most of them 0, and 50 continuations of it.

    "independent": demands occur independently, and sizes are negative binomial plus 1; "clustered":
    a Markov chain of rows with and without a demand, and rounded lognormal sizes; "ending": demands
    that become rarer on a straight line to 2 %, and Poisson sizes plus 1; "weekly": as
    "independent", with a probability for each of four days of the week, and none on the others.

    Returns
    -------
    past : array of shape (n_rows,)
    futures : array of shape (50, 12)
    """
    rng = np.random.default_rng([LAWS.index(law), number])
    while True:
        n_rows = int(rng.integers(60, 401))
        shape = (N_FUTURES, n_rows + HORIZON)
        occurs, sizes = _occurrences(law, rng, shape, n_rows), _sizes(law, rng, shape)
        rows = np.where(occurs, sizes, 0.0)
        past = rows[0, :n_rows]
        if 2 <= np.count_nonzero(past) < n_rows / 2:
            return past, rows[:, n_rows:]


def _occurrences(law: str, rng: np.random.Generator, shape: Any, n_rows: int) -> Array:
    """Return in which rows there is a demand, the same in each row of the past."""
    draws = rng.random(shape)
    draws[:, :n_rows] = draws[0, :n_rows]
    if law == "ending":
        return draws < np.linspace(rng.uniform(0.3, 0.6), 0.02, shape[1])
    if law == "weekly":
        return draws < np.append(rng.uniform(0.3, 0.6, 4), np.zeros(3))[np.arange(shape[1]) % WEEK]
    often = rng.uniform(0.05, 0.35)
    if law == "independent":
        return draws < often
    stays = rng.uniform(0.5, 0.9)
    begins = often * (1 - stays) / (1 - often)
    occurs = draws < often
    for i in range(1, shape[1]):
        occurs[:, i] = draws[:, i] < np.where(occurs[:, i - 1], stays, begins)
    return occurs


def _sizes(law: str, rng: np.random.Generator, shape: Any) -> Array:
    if law in ("independent", "weekly"):
        return 1 + rng.negative_binomial(rng.integers(1, 4), rng.uniform(0.2, 0.8), shape)
    if law == "ending":
        return 1 + rng.poisson(rng.uniform(0.5, 5), shape)
    logarithms = rng.normal(rng.uniform(0.5, 2.5), rng.uniform(0.4, 1.0), shape)
    return np.maximum(np.round(np.exp(logarithms)), 1)


# --- methods --------------------------------------------------------------------------------------


def ours(past: Array, season: int) -> Array:
    """Forecast by `ESNForecaster`, with intervals, (12, 5)."""
    model = ESNForecaster(season=season, random_state=0).fit(past)
    return np.asarray(model.forecast(HORIZON, coverage=COVERAGES))


def ours_without(past: Array, season: int) -> Array:
    """Forecast as `ours`, as if the series were not intermittent."""
    with _no_intermittent_columns():
        return ours(past, season)


@contextmanager
def _no_intermittent_columns() -> Iterator[None]:
    none = property(lambda data: np.zeros(data.values.shape[1], bool))
    with mock.patch.object(SeriesData, "intermittent", none):
        yield


def model_alone(past: Array, _: int = 1) -> Array:
    """Forecast by the model of intermittent demand of `ESNForecaster`."""
    levels = past[:, None]
    history = History(levels, np.ones(levels.shape, bool), np.zeros((len(past), 0)), ())
    fitted = IntermittentDemand().fit(history)
    return fitted.forecast(history, np.array([len(past)]), HORIZON)[0]


def croston(past: Array, _: int = 1) -> Array:
    """Forecast by the ratio of smoothed sizes to smoothed intervals (Croston 1972)."""
    rows = np.flatnonzero(past)
    intervals = np.diff(np.concatenate([[-1], rows]))
    size, interval = float(past[rows[0]]), float(intervals[0])
    for demanded, waited in zip(past[rows[1:]], intervals[1:], strict=True):
        size += SMOOTHING * (demanded - size)
        interval += SMOOTHING * (waited - interval)
    return np.full((HORIZON, 1), size / interval)


METHODS: dict[str, Method] = {
    OURS: ours,
    WITHOUT: ours_without,
    "its intermittent demand alone (TSB)": model_alone,
    "Croston": croston,
    "Syntetos and Boylan (SBA)": lambda past, _: (1 - SMOOTHING / 2) * croston(past),
    "mean of the past": lambda past, _: np.full((HORIZON, 1), past.mean()),
    "zero": lambda past, _: np.zeros((HORIZON, 1)),
}


# --- measures -------------------------------------------------------------------------------------


def measures(law: str, number: int) -> dict[str, Array]:
    """Return the measures of each method on one series.

    They are the root mean squared error of the mean demand over the horizon, divided by that of the
    mean of the past; RMSSE; MASE; and the shares of values inside the intervals, NaN without any.
    """
    past, futures = demand(law, number)
    found = {}
    with threadpool_limits(1):
        for name, method in METHODS.items():
            said = method(past, WEEK if law == "weekly" else 1)
            point = said[:, 0]
            of_mean, of_past = (
                np.sqrt(np.mean((futures.mean(axis=1) - each.mean()) ** 2))
                for each in (point, past)
            )
            rows = futures.T, np.repeat(point[:, None], N_FUTURES, axis=1)
            # all futures continue one past: columns are scaled alike
            scale = {"y_train": np.repeat(past[:, None], N_FUTURES, axis=1)}
            squared = np.sqrt(np.mean(np.square(rmsse(*rows, **scale, multioutput="raw_values"))))
            ends = zip(said.T[1::2], said.T[2::2], strict=True)
            inside = [np.mean((futures >= low) & (futures <= high)) for low, high in ends]
            shares = inside or [np.nan] * len(COVERAGES)
            found[name] = np.array([of_mean / of_past, squared, mase(*rows, **scale), *shares])
    return found


def table(n_series: int, first: int, n_jobs: int) -> None:
    """Print the measures over series of each law, and of all."""
    jobs = [(law, number) for law in LAWS for number in range(first, first + n_series)]
    found = list(Parallel(n_jobs)(delayed(measures)(*job) for job in jobs))
    groups = {law: found[i * n_series : (i + 1) * n_series] for i, law in enumerate(LAWS)}
    for title, series in {**groups, "all": found}.items():
        head = "".join(f"{text:>13s}" for text in ("mean demand", "RMSSE", "MASE", "80 %", "95 %"))
        print(f"\n{f'{title} ({len(series)})':36s}{head}")
        for name in METHODS:
            own = np.array([each[name] for each in series])
            cells = f"{np.exp(np.log(own[:, 0]).mean()):13.3f}"
            cells += "".join(f"{each:13.3f}" for each in own[:, 1:3].mean(axis=0))
            if np.isfinite(own[:, 3:]).all():
                cells += "".join(f"{100 * each:13.1f}" for each in own[:, 3:].mean(axis=0))
            print(f"{name:36s}{cells}", flush=True)
