"""Series with trends and seasons: ESNForecaster as it comes beside what is usual for them.

Usage:

    pip install statsmodels                       # the series; pip install statsforecast lightgbm
    python examples/benchmarks/series.py [--only TEXT ...] [--jobs N] [--origins 6] [--seeds 1]
    python examples/benchmarks/series.py --yearly | --coverage | --sums
    python examples/benchmarks/series.py --intermittent | --short-seasons [--first 2000]
    python examples/benchmarks/series.py --cycles [--first 2000] [--origins 2]

Without an option: fifteen series, of the library and of statsmodels, six rolling origins from 60 %
of the rows on, horizons 12 and 24. The error is the mean absolute one over that of the seasonal
naive forecast within the training rows (MASE); of a series its mean over the origins, divided by
that of the seasonal naive forecast from the same origins; over series the geometric mean. "Beyond"
is how far a forecast left the range of the training rows, at most, in widths of that range; "s
each" the median processor time of fit and forecast on one thread. `--only TEXT ...` takes the
methods whose name holds one of the texts; statsforecast's and LightGBM's are there if installed.

`--yearly`: 52 years of fertility in countries and 20 of investments of firms, horizon 6.
`--cycles`: 25 generated series each of cycles by two lags, their sums, smooth series, damped
trends, and cycles with a season; horizons 6 and 12. From `--first N` on, other ones.
`--coverage`: the share of values inside intervals of 80 and 95 %, over held-back origins of the
fifteen series, of the yearly ones and of 200 generated ones, with its standard error over series,
and the interval score over that of the naive intervals, a geometric mean.
`--sums`: the share of sums of the next 12 rows inside intervals of 80 %, from 400 simulated paths,
and the mean standard deviation of these sums over the error of the forecast's; of four stationary
laws, forty series each, and of 24 windows of 60 and of 120 rows of the library's series.
`--intermittent`: fifty generated series, most of whose values are 0, of each of four laws; from
`--first N` on, other ones. "Mean demand" is the root mean squared error of the mean of 12 rows over
that of the mean of the past, a geometric mean over series; 50 futures continue each series. "The
same without" is `ESNForecaster` as if the series were not intermittent.
`--short-seasons`: generated series of one and a half to four seasons, fifty of each group; errors
are relative to the last season repeated, geometric means. "Worst tenth" is the 90 % quantile of our
error over that of the best naive forecast; then the shares inside intervals of 80 and 95 %.
`--co2`: 52 weeks of CO2, from five origins. `--seconds`: the time that 500 rows take.
`--steps`: the time that forecasts of 1 to 168 steps from 10,000 rows take, with and without gaps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import _intermittent
import _short_seasons
import numpy as np
import pandas as pd
from _series_methods import NAIVE, OURS, Method, fitted, forecaster_for, methods
from _series_sets import (
    CYCLES,
    GENERATED,
    STATIONARY,
    OneSeries,
    cyclic,
    fifteen,
    generated,
    stationary,
    windows,
    yearly,
)
from _timing import machine, version
from joblib import Parallel, delayed
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster
from reservoir.datasets import load_co2
from reservoir.metrics import mase, nrmse
from reservoir.model_selection import backtest

Array = np.ndarray
COVERAGES = (0.8, 0.95)
PER_KIND = 50
PER_CYCLE = 25
WEEKS = 52.18
LEAST = 1e-9  # of an error, so that a forecast without one has a logarithm


@dataclass(frozen=True)
class Outcome:
    """One forecast of one method from one origin."""

    series: str
    method: str
    horizon: int
    error: float
    beyond: float
    seconds: float


# --- the protocol ---------------------------------------------------------------------------------


def origins_of(n_rows: int, horizon: int, n_origins: int) -> list[int]:
    """Return how many rows are known at each origin, from 60 % of them to the last that counts."""
    first, last = int(0.6 * n_rows), n_rows - horizon
    if last < first:
        return []
    return [int(each) for each in np.unique(np.linspace(first, last, n_origins).astype(int))]


def measure(
    one: OneSeries, chosen: dict[str, Method], horizons: Sequence[int], n_origins: int
) -> list[Outcome]:
    """Run the methods in turns from each origin of a series."""
    found = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for horizon in horizons:
            for origin in origins_of(len(one.values), horizon, n_origins):
                seen = one.values.iloc[:origin]
                truth = one.values.iloc[origin : origin + horizon].to_numpy(float)
                for name, method in chosen.items():
                    start = time.process_time()
                    said = np.asarray(method(seen, one.season, horizon), dtype=float)
                    seconds = time.process_time() - start
                    error = mase(truth, said, y_train=seen.to_numpy(float), season=one.season)
                    beyond = beyond_range(said, seen.to_numpy(float))
                    found.append(Outcome(one.name, name, horizon, error, beyond, seconds))
    return found


def beyond_range(said: Array, seen: Array) -> float:
    """Return how far a forecast leaves the range of what was seen, in widths of the range."""
    low, high = seen.min(), seen.max()
    return float(np.max(np.maximum(said - high, low - said).clip(0)) / (high - low))


def ratios(outcomes: list[Outcome], method: str, horizon: int) -> dict[str, float]:
    """Return the mean error of a method on each series over that of the seasonal naive one."""
    found: dict[str, dict[str, list[float]]] = {}
    for each in outcomes:
        if each.horizon == horizon and each.method in (method, NAIVE):
            found.setdefault(each.series, {}).setdefault(each.method, []).append(each.error)
    means = {name: {who: np.mean(of[who]) for who in of} for name, of in found.items()}
    return {name: max(of[method], LEAST) / max(of[NAIVE], LEAST) for name, of in means.items()}


def table(outcomes: list[Outcome]) -> None:
    """Print a row for each method."""
    names = list(dict.fromkeys(each.method for each in outcomes))
    horizons = sorted({each.horizon for each in outcomes})
    heads = "".join(f"{f'h = {horizon}':>9s}" for horizon in horizons)
    print(f"\n{'':36s}{heads}{'to ours, %':>16s}{'> naive':>9s}{'beyond':>8s}{'s each':>9s}")
    of_ours = [ratios(outcomes, OURS, horizon) for horizon in horizons]
    for name in names:
        own = [each for each in outcomes if each.method == name]
        found = [ratios(outcomes, name, horizon) for horizon in horizons]
        means = "".join(f"{np.exp(np.mean(np.log(list(of.values())))):9.3f}" for of in found)
        worse = sum(ratio > 1 for of in found for ratio in of.values())
        beyond, seconds = max(o.beyond for o in own), np.median([o.seconds for o in own])
        against = difference(found, of_ours)
        print(f"{name:36s}{means}{against:>16s}{worse:9d}{beyond:8.2f}{seconds:9.3f}")


def difference(found: list[dict[str, float]], ours: list[dict[str, float]]) -> str:
    """Return by how much a method errs more than ours, with its standard error over series."""
    logs: dict[str, list[float]] = {}
    for of, reference in zip(found, ours, strict=True):
        for series in of:
            logs.setdefault(series, []).append(np.log(of[series] / reference[series]))
    each = 100 * np.array([np.mean(of) for of in logs.values()])
    if not each.any():
        return ""
    return f"{each.mean():+.1f} +- {each.std(ddof=1) / np.sqrt(len(each)):.1f}"


def table_by_series(outcomes: list[Outcome]) -> None:
    """Print our error on each series, and that of the best of the others."""
    names = list(dict.fromkeys(each.method for each in outcomes if each.method[:3] != OURS[:3]))
    for horizon in sorted({each.horizon for each in outcomes}):
        print(f"\n{f'horizon {horizon}':36s}{'ours':>9s}{'best of the others':>22s}")
        found = {name: ratios(outcomes, name, horizon) for name in (OURS, *names)}
        for series, ratio in found[OURS].items():
            best = min(names, key=lambda name: found[name][series])
            print(f"{series:36s}{ratio:9.3f}{found[best][series]:22.3f}  {best}")


def protocol(series: list[OneSeries], horizons: Sequence[int], options: Any) -> None:
    """Measure and print."""
    chosen = {
        name: method
        for name, method in methods().items()
        if name in (OURS, NAIVE) or any(text in name for text in options.only)
    }
    for seed in range(1, options.seeds):
        chosen[f"{OURS}, seed {seed}"] = partial(with_seed, seed)
    jobs = (delayed(measure)(one, chosen, horizons, options.origins) for one in series)
    outcomes = [outcome for found in Parallel(options.jobs)(jobs) for outcome in found]
    table(outcomes)
    if options.each:
        table_by_series(outcomes)


def cycles_tables(options: Any) -> None:
    """Print a table for each kind of generated series with cycles and trends."""
    for kind in CYCLES:
        print(f"\n{kind} ({PER_CYCLE})", end="")
        numbers = range(options.first, options.first + PER_CYCLE)
        protocol([cyclic(kind, number) for number in numbers], (6, 12), options)


def with_seed(seed: int, y: pd.Series, season: int, n_steps: int) -> Array:
    """Forecast by `ESNForecaster` under another seed."""
    return fitted(y, season, seed).forecast(n_steps).to_numpy()


# --- intervals ------------------------------------------------------------------------------------


class NaiveIntervals:
    """The seasonal naive forecast with the intervals of textbooks (Hyndman, Athanasopoulos 5.5).

    Errors are normal, and their variance grows with the number of seasons ahead.
    """

    def __init__(self, season: int) -> None:
        self.season = season

    def fit(self, y: Any) -> NaiveIntervals:
        """Keep the last season, and the deviation of differences over one."""
        rows = np.asarray(y, dtype=float)
        self.last, self.n_rows = rows[-self.season :], len(rows)
        errors = rows[self.season :] - rows[: -self.season]
        self.deviation = np.sqrt(np.mean(errors**2))
        return self

    def forecast(self, n_steps: int, coverage: Sequence[float]) -> Array:
        """Return the forecast and its bounds, (n_steps, 1 + 2 * n_coverages)."""
        point = np.resize(self.last, n_steps)
        spread = self.deviation * np.sqrt(np.arange(n_steps) // self.season + 1)
        columns = [point]
        for share in coverage:
            half = norm.ppf((1 + share) / 2) * spread
            columns += [point - half, point + half]
        return np.column_stack(columns)


def intervals(one: OneSeries, n_origins: int, horizon: int) -> dict[str, Array]:
    """Return shares inside and interval scores on one series, of ours and of the naive intervals.

    The interval score is the width, and 2 / (1 - coverage) times the distance of values outside
    (Gneiting and Raftery 2007).
    """
    n_origins = max(1, min(n_origins, int(0.4 * len(one.values)) // horizon))
    found = {}
    models = {"ours": forecaster_for(one.values, one.season), "naive": NaiveIntervals(one.season)}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models.items():
            result = backtest(
                model,
                one.values,
                horizon=horizon,
                n_origins=n_origins,
                coverage=list(COVERAGES),
                metrics="mae",
            )
            found[name] = np.array([score_of(result.forecasts, each) for each in COVERAGES])
    return found


def score_of(table: pd.DataFrame, coverage: float) -> list[float]:
    """Return the share of values inside their intervals, and the mean interval score."""
    truth, low, high = (
        table[name].to_numpy(float)
        for name in ("truth", f"lower {100 * coverage:g}%", f"upper {100 * coverage:g}%")
    )
    outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    score = high - low + 2 / (1 - coverage) * outside
    return [float(np.mean(outside == 0)), float(score.mean())]


def coverage_table(options: Any) -> None:
    """Print shares inside with their standard errors over series, and interval scores."""
    groups = {"the fifteen": (fifteen(), options.origins, 12)}
    groups["short yearly"] = (yearly(), options.origins, 6)
    for kind in GENERATED:
        groups[f"generated, {kind}"] = ([generated(kind, i) for i in range(PER_KIND)], 2, 12)
    head = f"{'inside':>16s}{'naive inside':>16s}{'score to naive':>16s}"
    print(f"\n{'':26s}" + "".join(f"{f'{100 * c:g} %':>6s}{head}" for c in COVERAGES))
    rows: list[dict[str, Array]] = []
    for name, (series, n_origins, horizon) in groups.items():
        jobs = (delayed(intervals)(one, n_origins, horizon) for one in series)
        found = list(Parallel(options.jobs)(jobs))
        print_coverage(f"{name} ({len(found)})", found)
        rows += found if name.startswith("generated") else []
    print_coverage(f"generated, all ({len(rows)})", rows)


def print_coverage(name: str, found: list[dict[str, Array]]) -> None:
    """Print one group of series."""
    ours, naive = (np.array([each[who] for each in found]) for who in ("ours", "naive"))
    cells = []
    for i in range(len(COVERAGES)):
        ratio = np.exp(np.mean(np.log(ours[:, i, 1] / naive[:, i, 1])))
        cells.append(f"{'':6s}{share(ours[:, i, 0])}{share(naive[:, i, 0])}{ratio:16.2f}")
    print(f"{name:26s}" + "".join(cells), flush=True)


def share(inside: Array) -> str:
    """Return a mean over series and its standard error, in per cent."""
    error = inside.std(ddof=1) / np.sqrt(len(inside))
    return f"{f'{100 * inside.mean():.1f} +- {100 * error:.1f}':>16s}"


def sum_of(one: OneSeries, horizon: int = 12) -> tuple[str, float, float, float]:
    """Return whether a sum is inside its interval, its standard deviation, and the error."""
    past, truth = one.values.iloc[:-horizon], one.values.iloc[-horizon:].sum()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = forecaster_for(past, one.season).fit(past)
        sums = np.asarray(model.simulate(horizon, 400, random_state=0)).sum(axis=0)
        error = truth - np.asarray(model.forecast(horizon)).sum()
    low, high = np.quantile(sums, [0.1, 0.9])
    return one.name, low <= truth <= high, sums.std(), error


def sums_table(options: Any) -> None:
    """Print the shares of sums inside their intervals, and how wide these are."""
    groups = {
        f"{k}, {n} rows": [stationary(k, i, n + 12) for i in range(40)] for k, n in STATIONARY
    }
    for n in (60, 120):
        groups[f"windows of {n} rows"] = [one for i in range(24) for one in windows(n + 12, i)]
    print(f"\n{'':36s}{'inside, %':>16s}{'deviation':>12s}")
    for name, series in groups.items():
        found = list(Parallel(options.jobs)(delayed(sum_of)(one) for one in series))
        for part in ("", *dict.fromkeys(each[0] for each in found if name.startswith("windows"))):
            _, inside, width, error = zip(*(f for f in found if part in ("", f[0])), strict=True)
            ratio = f"{np.mean(width) / np.sqrt(np.mean(np.square(error))):12.2f}"
            if name.startswith("windows") and not part:  # series in different units
                ratio = ""
            title = f"  {part}" if part else name
            print(f"{title:36s}{share(np.array(inside, float))}{ratio}", flush=True)


# --- CO2, and time --------------------------------------------------------------------------------


class Naive:
    """The values of one period before, plus the mean growth if so asked, for `backtest`."""

    def __init__(self, season: int, *, drift: bool) -> None:
        self.season, self.drift = season, drift

    def fit(self, y: Any) -> Naive:
        """Keep the last season and the mean growth over one."""
        rows = np.asarray(y, dtype=float)
        growth = np.mean(rows[self.season :] - rows[: -self.season])
        self.next = rows[-self.season :] + self.drift * growth
        return self

    def forecast(self, n_steps: int) -> Array:
        """Return the next season, up to its length."""
        return self.next[:n_steps]


def co2_table(options: Any) -> None:
    """Print the NRMSE of 52 weeks of CO2 from five origins."""
    co2 = load_co2(as_frame=True)["co2"]
    models: dict[str, Any] = {
        f"ESNForecaster(season={WEEKS}), seed {seed}": ESNForecaster(
            season=WEEKS, random_state=seed
        )
        for seed in range(options.seeds)
    }
    models |= {NAIVE: Naive(52, drift=False), f"{NAIVE} with drift": Naive(52, drift=True)}
    head = True
    for name, model in models.items():
        with threadpool_limits(1):
            result = backtest(model, co2, horizon=52, n_origins=5, metrics=nrmse, season=52)
        found = result.scores.iloc[:, 0]
        if head:
            dates = "".join(f"{origin.date()!s:>12s}" for origin in found.index)
            print(f"\n{'NRMSE of 52 weeks behind':36s}{dates}")
            head = False
        print(f"{name:36s}" + "".join(f"{score:12.3f}" for score in found), flush=True)


def seconds_table(options: Any) -> None:
    """Print the processor time of fit and forecast on series of 500 rows."""
    series = [one for one in fifteen() if len(one.values) >= 500]
    series += [generated(kind, 0, n_rows=500) for kind in GENERATED]
    series.append(OneSeries("CO2, weeks", load_co2(as_frame=True)["co2"], 52))
    fitted(series[0].values, 12)  # compiles
    print(f"\n{'s of processor time, 500 rows':36s}{'fit':>9s}{'forecast':>10s}  kind_")
    for one in series:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits, forecasts = [], []
            for seed in range(options.seeds):
                start = time.process_time()
                model = fitted(one.values.iloc[-500:], one.season, seed)
                middle = time.process_time()
                model.forecast(24, coverage=list(COVERAGES))
                fits.append(middle - start)
                forecasts.append(time.process_time() - middle)
        times = f"{np.median(fits):9.2f}{np.median(forecasts):10.3f}"
        print(f"{one.name:36s}{times}  {model.kind_}", flush=True)


def steps_table(options: Any) -> None:
    """Print the processor time of forecasts of few and of many steps from 10,000 rows.

    All members of the average take part; a direct network alone solves a ridge for each step.
    """
    steps, n_rounds = (1, 24, 168), 9
    print(f"\n{'s of processor time, 10,000 rows':36s}" + "".join(f"{n:>9d}" for n in steps))
    values = generated("seasonal", 0, n_rows=10_000).values
    for name, n_missing in (("no gap", 0), ("5 rows in each 500 are missing", 5)):
        model = fitted(values.where((250 + np.arange(10_000)) % 500 >= n_missing), 24)
        (fit,) = model._fits
        data, place = fit.data.with_room(10_168), np.array([10_000])
        members = fit.ensemble.members
        direct = next(m for m in members if type(m.model).__name__ == "FittedDirect")
        seconds = np.empty((2, n_rounds, len(steps)))
        with threadpool_limits(1):
            for k, (i, n_steps) in product(range(n_rounds), enumerate(steps)):
                begin = time.process_time()
                model.forecast(n_steps)
                middle = time.process_time()
                direct.forecast(data, place, n_steps, fit.ensemble.bounds)
                seconds[:, k, i] = middle - begin, time.process_time() - middle
        for row, times in zip((name, "  of this a direct network"), seconds, strict=True):
            print(f"{row:36s}" + "".join(f"{each:9.3f}" for each in np.median(times, axis=0)))


def options_of_command() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = (
        "yearly",
        "coverage",
        "sums",
        "cycles",
        "intermittent",
        "short-seasons",
        "co2",
        "seconds",
        "steps",
    )
    for part in parts:
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="methods")
    parser.add_argument("--each", action="store_true", help="a table of the series as well")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--origins", type=int, default=6, metavar="N")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="of ESNForecaster")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="generated series")
    return parser.parse_args()


def main() -> None:
    """Run what the command line asks for."""
    options = options_of_command()
    print(machine())
    peers = ("pandas", "statsmodels", "statsforecast", "lightgbm")
    print(", ".join(f"{name} {version(name) or 'not installed'}" for name in peers))
    parts: dict[str, Callable[[Any], None]] = {
        "yearly": lambda options: protocol(yearly(), (6,), options),
        "coverage": coverage_table,
        "sums": sums_table,
        "cycles": cycles_tables,
        "intermittent": lambda options: _intermittent.table(PER_KIND, options.first, options.jobs),
        "short_seasons": lambda options: _short_seasons.table(
            PER_KIND, options.first, options.jobs
        ),
        "co2": co2_table,
        "seconds": seconds_table,
        "steps": steps_table,
    }
    asked = [part for part in parts if getattr(options, part)]
    for part in asked:
        parts[part](options)
    if not asked:
        protocol(fifteen(), (12, 24), options)


if __name__ == "__main__":
    main()
