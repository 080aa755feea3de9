"""Odd values at the end of a series: forecasts, intervals and warnings of ESNForecaster.

Usage: ``python examples/benchmarks/outliers.py [--series 50] [--seeds-from 0] [--jobs N]``

The series are those of `series.py`: the generated ones, and, at six origins each, the three that
the library ships. The last 12 rows are forecast. A spike of 5 to 100 standard deviations of the
rows before is added to one of the ten rows before the origin, or a shift of 5 to 20 to the last
four to ten of them and to all rows that are forecast. Methods are `ESNForecaster` as it comes and
with ``outliers="keep"``, beside AutoETS and AutoARIMA if statsforecast is installed.

Printed are, by size of the spike, the median and 90th percentile of the error relative to that of
the same method without the spike, the geometric mean of errors relative to ours without it, and the
shares inside intervals of 95 %; then the same for shifts; and the share of series with a warning.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _series_sets import GENERATED, OneSeries, generated, shipped
from _timing import machine
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster

Array = np.ndarray
Method = Callable[[Array, int], tuple[Array, Array, bool]]
HORIZON, N_LAST = 12, 10
SIZES = ((5, 10), (10, 30), (30, 100))
SHIFT = (5, 20)
LEAST = 1e-9  # of an error, so that a forecast without one has a logarithm


def ours(outliers: str) -> Method:
    """Return our method: forecast, interval of 95 %, and whether it warned of odd values."""

    def run(y: Array, season: int) -> tuple[Array, Array, bool]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = ESNForecaster(season=season, outliers=outliers, random_state=0).fit(y)
            rows = model.forecast(HORIZON, coverage=0.95)
        return rows[:, 0], rows[:, 1:], any("was expected" in str(each.message) for each in caught)

    return run


def of_statsforecast(name: str) -> Method:
    """Return a method of statsforecast."""

    def run(y: Array, season: int) -> tuple[Array, Array, bool]:
        from statsforecast import models

        said = getattr(models, name)(season_length=season).forecast(y, HORIZON, level=[95])
        return said["mean"], np.column_stack([said["lo-95"], said["hi-95"]]), False

    return run


def methods() -> dict[str, Method]:
    """Return the methods that are installed."""
    found = {"ESNForecaster": ours("warn"), 'outliers="keep"': ours("keep")}
    try:
        import statsforecast  # noqa: F401
    except ImportError:
        return found
    return found | {name: of_statsforecast(name) for name in ("AutoETS", "AutoARIMA")}


def measure(one: OneSeries, origin: int, number: int) -> dict[str, list[tuple[Any, ...]]]:
    """Return the outcomes on one series: of clean rows, of spikes by size, and of a shift."""
    rng = np.random.default_rng([17, number])
    values = one.values.to_numpy(float)
    y, future = values[:origin], values[origin : origin + HORIZON]
    scale = float(np.abs(np.diff(y)).mean()) or 1.0
    cases = {"clean": (y, future)}
    for low, high in SIZES:
        spiked = y.copy()
        size = np.exp(rng.uniform(np.log(low), np.log(high)))
        spiked[-int(rng.integers(1, N_LAST + 1))] += rng.choice([-1, 1]) * size * y.std()
        cases[f"{low} to {high}"] = (spiked, future)
    shifted = y.copy()
    size = rng.choice([-1, 1]) * rng.uniform(*SHIFT) * y.std()
    shifted[-int(rng.integers(4, N_LAST + 1)) :] += size
    cases["shift"] = (shifted, future + size)
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in cases}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case, (rows, truth) in cases.items():
            for name, method in methods().items():
                point, ends, warned = method(rows, one.season)
                error = max(float(np.abs(point - truth).mean()), LEAST * scale)
                inside = float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
                found[case].append((name, error, inside, warned))
    return found


def table(outcomes: list[dict[str, list[tuple[Any, ...]]]]) -> None:
    """Print a row for each case and method."""
    print(
        f"\n{'':16s}{'':18s}{'median':>8s}{'90 %':>8s}{'to ours':>9s}{'inside':>9s}{'warned':>9s}"
    )
    for case in outcomes[0]:
        for i, (name, *_) in enumerate(outcomes[0][case]):
            errors = np.array([each[case][i][1] for each in outcomes])
            clean = np.array([each["clean"][i][1] for each in outcomes])
            base = np.array([each["clean"][0][1] for each in outcomes])
            inside = 100 * np.mean([each[case][i][2] for each in outcomes])
            warned = 100 * np.mean([each[case][i][3] for each in outcomes])
            middle, high = np.quantile(errors / clean, [0.5, 0.9])
            mean = np.exp(np.mean(np.log(errors / base)))
            print(
                f"{case if i == 0 else '':16s}{name:18s}{middle:8.2f}{high:8.2f}{mean:9.2f}"
                f"{inside:9.1f}{warned:9.1f}"
            )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=int, default=50, help="of each generated kind")
    parser.add_argument("--seeds-from", type=int, default=0, help="number of the first series")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    print(machine())
    jobs = []
    numbers = range(options.seeds_from, options.seeds_from + options.series)
    for kind in GENERATED:
        for i in numbers:
            one = generated(kind, i)
            jobs.append(
                (one, len(one.values) - HORIZON, len(GENERATED) * i + GENERATED.index(kind))
            )
    for one in shipped():
        last = len(one.values) - HORIZON
        for k, origin in enumerate(np.linspace(last // 2, last, 6).astype(int).tolist()):
            jobs.append((one, origin, 10_000 + options.seeds_from + k))
    outcomes = Parallel(options.jobs)(delayed(measure)(*job) for job in jobs)
    print(f"{len(outcomes)} series, {HORIZON} steps ahead")
    table(list(outcomes))


if __name__ == "__main__":
    main()
