"""For how long forecasts of chaotic systems hold: Lorenz-63 to all digits, and dysts.

Usage:

    python examples/benchmarks/chaos.py lorenz [--starts 30] [--rows 5000] [--jobs N] [--only TEXT]
    python examples/benchmarks/chaos.py dysts [--context 512] [--noise 0.01] [--one] [--end 5620]
        [--points-per-period 30] [--systems K] [--data DIR] [--jobs N]

`lorenz`: forecasts against a truth of more digits than double precision has; valid time, the
Lyapunov times before the root mean square over the coordinates of error / standard deviation
exceeds 0.3, over starts, each with a network of its own.

`dysts`: about 130 systems (`_dysts_systems.py` says what is needed); valid time, the Lyapunov times
for which the mean of the symmetric error since the start of the forecast is at most 30 %. Every
method sees `--context` rows, standardised, and forecasts `--horizon` rows. `--only TEXT ...`
takes the methods whose name holds one of the texts.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _chaos_methods import LORENZ, LORENZ_SETTINGS, dysts_methods
from _dysts_systems import System, add_options, load_systems
from _lorenz_truth import EXPONENT, STEPS_PER_UNIT, lorenz_truth
from _timing import machine
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from reservoir.metrics import valid_time

Array = np.ndarray
LORENZ_STEPS = 2500  # 45 Lyapunov times


@dataclass(frozen=True)
class Outcome:
    """One forecast of one method; `refusal` is the error of a method that gave none."""

    method: str
    case: str
    lyapunov_times: float
    diverged: bool
    seconds: float
    refusal: str


def forecast(method: Callable[..., Array], *args: Any) -> tuple[Array, float, str]:
    """Return the forecast, its processor time, and an error if there was one: then it is NaN."""
    rows, n_steps = args[:2]
    refusal = ""
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of loops that diverge, of fits without digits
        try:
            found = np.asarray(method(*args), dtype=float).reshape(n_steps, rows.shape[1])
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            refusal = str(error).splitlines()[0]
            found = np.full((n_steps, rows.shape[1]), np.nan)
    return found, time.process_time() - start, refusal


def diverges(found: Array, seen: Array) -> bool:
    """Whether a forecast leaves ten times the range of what was seen, or is not finite."""
    return not np.abs(found).max() <= 10 * np.abs(seen).max()


# --- Lorenz ---------------------------------------------------------------------------------------


def lorenz_start(seed: int, n_rows: int, names: Iterable[str]) -> list[Outcome]:
    """Measure all methods on the orbit of one seed."""
    orbit = lorenz_truth(n_rows + LORENZ_STEPS, seed)
    seen, truth = orbit[:n_rows], orbit[n_rows:]
    outcomes = []
    for name in names:
        found, seconds, refusal = forecast(LORENZ[name], seen, LORENZ_STEPS, seed)
        lyapunov_times = valid_time(
            truth,
            found,
            threshold=0.3,
            dt=1 / STEPS_PER_UNIT,
            lyapunov_time=1 / EXPONENT,
            scale=seen.std(axis=0),
        )
        outcomes.append(
            Outcome(name, str(seed), lyapunov_times, diverges(found, seen), seconds, refusal)
        )
    return outcomes


def run_lorenz(options: argparse.Namespace) -> None:
    """Print the table of Lorenz-63."""
    names = chosen(LORENZ, options)
    print(f"\nLorenz-63, dt 0.02, T = {options.rows}, seeds 0 to {options.starts - 1}")
    print(LORENZ_SETTINGS)
    jobs = (delayed(lorenz_start)(seed, options.rows, names) for seed in range(options.starts))
    table([outcome for found in Parallel(options.jobs)(jobs) for outcome in found])


# --- dysts ----------------------------------------------------------------------------------------


def symmetric_valid_steps(truth: Array, found: Array, *, percent: float = 30.0) -> int:
    """Steps until the mean symmetric error (sMAPE) of the forecast so far exceeds `percent`.

    The error of a value is 200 |truth - found| / (|truth| + |found|), in percent; the mean is over
    the coordinates and the steps from the first on (Gilpin 2023, arXiv:2303.08011).
    """
    with np.errstate(all="ignore"):
        errors = 200 * np.abs(truth - found) / (np.abs(truth) + np.abs(found) + 1e-10)
        so_far = np.cumsum(errors.mean(axis=1)) / np.arange(1, len(truth) + 1)
    beyond = ~(so_far <= percent)
    return int(beyond.argmax()) if beyond.any() else len(truth)


def window(
    system: System, end: int, context: int, horizon: int, *, noise: float, one: bool
) -> tuple[Array, Array]:
    """Return the rows that methods see, with noise, and the true rows that follow.

    Both are standardised by what is seen; `noise` is in standard deviations of each coordinate.
    """
    rows = system.rows[end - context : end + horizon, : 1 if one else None]
    seen, truth = rows[:context], rows[context:]
    rng = np.random.default_rng([end, *system.name.encode()])
    seen = seen + noise * seen.std(axis=0) * rng.normal(size=seen.shape)
    width = seen.std(axis=0)
    width = np.where(width > 1e-9 * np.abs(seen).max(axis=0), width, 1.0)  # a coordinate at rest
    return (seen - seen.mean(axis=0)) / width, (truth - seen.mean(axis=0)) / width


def dysts_system(
    system: System, names: Iterable[str], options: argparse.Namespace
) -> list[Outcome]:
    """Measure all methods on the windows of one system."""
    methods = dysts_methods(options.points_per_period)
    outcomes = []
    for end in options.end:
        seen, truth = window(
            system, end, options.context, options.horizon, noise=options.noise, one=options.one
        )
        for name in names:
            found, seconds, refusal = forecast(methods[name], seen, options.horizon)
            steps = symmetric_valid_steps(truth, found)
            times = steps * system.lyapunov_times_per_step
            case = f"{system.name} {end}"
            outcomes.append(Outcome(name, case, times, diverges(found, seen), seconds, refusal))
    return outcomes


def run_dysts(options: argparse.Namespace) -> None:
    """Print the table over the systems of dysts."""
    n_rows = max(8000, max(options.end) + options.horizon)
    if min(options.end) < options.context:
        raise SystemExit(
            f"--end {min(options.end)} leaves less than --context {options.context} rows before it"
        )
    loaded = load_systems(
        points_per_period=options.points_per_period,
        n_rows=n_rows,
        folder=options.data,
        every=options.systems,
        n_jobs=options.jobs,
    )
    systems = [system for system in loaded if len(system.rows)]
    names = chosen(dysts_methods(options.points_per_period), options)
    seen = "the first coordinate" if options.one else "all coordinates"
    print(
        f"\n{len(systems)} systems of dysts, {seen}, {options.points_per_period} rows a period, "
        f"context {options.context} ending at {', '.join(map(str, options.end))}, "
        f"noise {options.noise:g}, horizon {options.horizon}, sMAPE up to 30 %"
    )
    jobs = (delayed(dysts_system)(system, names, options) for system in systems)
    outcomes = [outcome for found in Parallel(options.jobs)(jobs) for outcome in found]
    table(outcomes)
    if options.each:
        for outcome in outcomes:
            print(f"{outcome.case:34s} {outcome.method:38s} {outcome.lyapunov_times:7.2f}")


# --- tables ---------------------------------------------------------------------------------------


def chosen(methods: Iterable[str], options: argparse.Namespace) -> list[str]:
    """Return the methods whose name holds one of the texts that `--only` gives."""
    return [name for name in methods if any(text in name for text in options.only)]


def table(outcomes: list[Outcome]) -> None:
    """Print what the methods reached, one row for each, in the order of the first case."""
    print(f"{'valid time / Lyapunov time':44s}{'median':>8s}{'quartiles':>15s}", end="")
    print(f"{'log2':>7s}{'diverged':>10s}{'s each':>9s}{'best in':>9s}")
    best: dict[str, float] = {}
    for outcome in outcomes:
        best[outcome.case] = max(best.get(outcome.case, 0.0), outcome.lyapunov_times)
    for method in dict.fromkeys(outcome.method for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.method == method]
        times = np.array([outcome.lyapunov_times for outcome in own])
        low, median, high = np.percentile(times, [25, 50, 75])
        ahead = np.mean([o.lyapunov_times >= best[o.case] > 0 for o in own])
        print(
            f"{method:44s}{median:8.2f}{low:7.2f} {high:7.2f}{np.log2(1 + times).mean():7.2f}"
            f"{np.mean([o.diverged for o in own]):9.0%} "
            f"{np.median([o.seconds for o in own]):9.3f}{ahead:9.0%}",
            flush=True,
        )
    for outcome in outcomes:
        if outcome.refusal:
            print(f"refused: {outcome.method}, {outcome.case}: {outcome.refusal}")
    print("log2: mean of log2(1 + valid time); s each: median processor time, one thread")


def options_of_command() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    lorenz = parts.add_parser("lorenz")
    lorenz.add_argument("--starts", type=int, default=30, metavar="N")
    lorenz.add_argument("--rows", type=int, default=5000, metavar="T", help="rows to train on")
    lorenz.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    dysts = parts.add_parser("dysts")
    dysts.add_argument("--context", type=int, default=512, metavar="T", help="rows to train on")
    dysts.add_argument("--horizon", type=int, default=500, metavar="H", help="rows to forecast")
    dysts.add_argument("--noise", type=float, default=0.0, help="in standard deviations")
    dysts.add_argument("--one", action="store_true", help="the first coordinate alone")
    dysts.add_argument("--end", type=int, nargs="+", default=[5620], help="where contexts end")
    dysts.add_argument("--each", action="store_true", help="print every system")
    add_options(dysts)
    for part in (lorenz, dysts):
        part.add_argument(
            "--only", nargs="+", default=[""], metavar="TEXT", help="methods whose name holds one"
        )
    return parser.parse_args()


def main() -> None:
    """Run what the command line asks for."""
    options = options_of_command()
    print(machine())
    (run_lorenz if options.part == "lorenz" else run_dysts)(options)


if __name__ == "__main__":
    main()
