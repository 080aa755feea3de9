"""Many series, long table to long table: seconds of each part, bytes of tasks, fits and files.

Usage: ``python examples/benchmarks/many_series.py [N]`` with 1,000 generated monthly series by
default, of 30 to 48 months with a season, a trend and noise. Three columns go in and come out.
Seconds are processor time on one BLAS thread. At the end a hundred of the series are fitted in
chunks of 10, ten of them alone, and their forecasts are compared with those of one fit bit by bit.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _command_line import run_main
from _timing import machine
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster, SeasonalNaive, load, save
from reservoir.estimators.series import model_search
from reservoir.estimators.series.long_table import LongTable
from reservoir.estimators.series.panel import Panel
from reservoir.model_selection import backtest

COLUMNS = {"sequence_column": "unique_id", "time_column": "ds", "target_column": "y"}
HORIZON = 12


def table_of(n_series: int) -> pd.DataFrame:
    """Return a shuffled table of ids, dates and values."""
    rng, parts = np.random.default_rng(0), []
    for i in range(n_series):
        t = np.arange(rng.integers(30, 49))
        level = 100 + rng.normal(0, 1) * t + 10 * np.sin(2 * np.pi * t / 12 + rng.uniform(0, 6))
        dates = pd.date_range("2019-01-01", periods=len(t), freq="MS")
        y = level + rng.normal(size=len(t)).cumsum()
        parts.append(pd.DataFrame({"unique_id": f"s{i}", "ds": dates, "y": y}))
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0)


class Meter:
    """Processor time of functions, and the size of the tasks of a fit."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.task = 0
        self.watches = True

    def call(self, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function, and add its time to those of this name."""
        start = time.process_time()
        found = function(*args, **options)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start
        return found

    def watch(self, owner: Any, method: str, name: str) -> None:
        """Let each call of a method count."""
        original = getattr(owner, method)

        def counted(*args: Any, **options: Any) -> Any:
            if not self.watches:
                return original(*args, **options)
            return self.call(name, original, *args, **options)

        setattr(owner, method, counted)

    def watch_tasks(self) -> None:
        """Note the size of the first task of a fit."""
        original = model_search.run_jobs

        def run_jobs(function: Any, jobs: Any, n_jobs: Any) -> Any:
            self.task = self.task or len(pickle.dumps((function, jobs[0])))
            return original(function, jobs, n_jobs)

        model_search.run_jobs = run_jobs


def new_model() -> ESNForecaster:
    """Return the forecaster of all parts."""
    return ESNForecaster(**COLUMNS, n_networks=1, random_state=0)


def forecast_of(model: ESNForecaster) -> pd.DataFrame:
    """Return the forecast in the order of ids and dates."""
    made = model.forecast(HORIZON, coverage=0.9)
    return made.sort_values(["unique_id", "ds"], ignore_index=True)


def differences(table: pd.DataFrame, whole: pd.DataFrame, size: int, n_series: int) -> int:
    """Return how many numbers differ if the first series are fitted in chunks."""
    ids = list(dict.fromkeys(table["unique_id"]))[:n_series]
    models = [
        new_model().fit(table[table["unique_id"].isin(ids[begin : begin + size])])
        for begin in range(0, len(ids), size)
    ]
    joined = forecast_of(ESNForecaster.concat(models))
    due = whole[whole["unique_id"].isin(ids)].reset_index(drop=True)
    assert joined["unique_id"].equals(due["unique_id"])
    return int((joined.iloc[:, 2:].to_numpy() != due.iloc[:, 2:].to_numpy()).sum())


def main(n_series: int = 1000) -> None:
    """Print the tables."""
    print(machine())
    table, meter = table_of(n_series), Meter()
    new_model().fit(table_of(2))  # compiles
    meter.watch(LongTable, "split", "of these: grouping and sorting rows")
    meter.watch(Panel, "read", "of these: reading")
    meter.watch(LongTable, "back", "of these: making the table")
    meter.watch(Panel, "wrap_all", "of these: filling the container")
    meter.watch_tasks()
    model = meter.call("fit", new_model().fit, table)
    whole = meter.call("forecast with intervals", forecast_of, model)
    meter.watches = False
    part = meter.call("select of ten series", model.select, list(model.seasons_)[:10])
    assert len(part.forecast(1)) == min(10, n_series)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        meter.call("save", save, model, path)
        again = meter.call("load", load, path)
        size = path.stat().st_size
        with np.load(path) as file:
            n_entries = len(file.files)
    assert forecast_of(again).equals(whole)
    of_naive = meter.call(
        "backtest of SeasonalNaive",
        backtest,
        SeasonalNaive(**COLUMNS),
        table,
        horizon=6,
        n_origins=2,
    )
    print(f"\n{n_series} series, {len(table)} rows; processor time")
    for name, seconds in meter.seconds.items():
        each = f"{1e6 * seconds / n_series:12.0f} us a series"
        print(f"{name:40s}{seconds:9.2f} s{each}")
    print(f"\n{'bytes of a task':40s}{meter.task:9d}")
    print(f"{'bytes of a fit':40s}{len(pickle.dumps(model._fits[0])):9d}")
    print(f"{'bytes of the file a series':40s}{size // n_series:9d}")
    print(f"{'entries of the file':40s}{n_entries:9d}")
    print(f"\nmase of SeasonalNaive{of_naive.summary().loc['mase', 'mean']:9.2f}")
    for chunk, n in ((10, min(100, n_series)), (1, min(10, n_series))):
        found = differences(table, whole, chunk, n)
        print(f"{n} series in chunks of {chunk}: {found} numbers differ from one fit")


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
