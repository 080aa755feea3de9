"""Following a plant that drifts: five ways to drift, and the ways to learn from a stream.

Usage: ``python examples/benchmarks/drift.py [--chunk 1] [--seeds N] [--tasks NAME ...] [--only TEXT
...]`` prints the prequential error: each chunk of rows is predicted before it is learned from. 1000
rows come before the stream, which has 6000. The first line is the NRMSE (root mean squared error
over the stream, divided by the standard deviation of the targets there) of a ridge that is fitted
anew to the last rows, every 50 rows; the other lines are relative to it, seed by seed: means and
standard errors. All networks have the same weights, a draw for each seed.

``--choose`` prints what the settings were chosen by: errors on the same tasks, drawn from other
seeds (from 100 on), for each value of each setting.

Peers (reservoirpy, river) take part where they are installed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from _drift_methods import REFERENCE, Make, choices, rows_of, ways
from _drift_tasks import TASKS, Task, draw
from _timing import LeftOut, machine, version
from threadpoolctl import threadpool_limits

Array = np.ndarray
Errors = dict[str, dict[str, list[float]]]  # by method, then task: one for each seed
FIRST_TUNING_SEED = 100

#: Chosen by ``--choose``; see docs/results/drift.md.
SETTINGS = {
    "alpha": 0.001,
    "forgetting": 0.998,
    "window": 500,
    "LMS": 0.2,
    "lags": 0.99,
    "reservoirpy, RLS": 0.1,
    "reservoirpy, LMS": 0.003,
    "river": 0.003,
}


def prequential(task: Task, make: Make, n_units: int, seed: int, chunk: int) -> tuple[Array, float]:
    """Return the errors of predictions made before learning, and their NRMSE."""
    rows = rows_of(task, n_units, seed)
    contender = make(n_units, seed)
    contender.start(rows[: task.n_fit])
    predicted = np.empty(len(task.y) - task.n_fit)
    for now in range(task.n_fit, len(task.y), chunk):
        here = rows[now : now + chunk]
        predicted[now - task.n_fit : now - task.n_fit + len(here.y)] = contender.predict(here)
        contender.learn(here)
    wanted = task.y[task.n_fit :]
    errors = predicted - wanted
    return errors, float(np.sqrt(np.mean(errors**2)) / wanted.std())


def measure(
    contenders: Mapping[str, Make],
    tasks: Iterable[str],
    seeds: Iterable[int],
    *,
    chunk: int = 50,
    n_units: int = 300,
    n_fit: int = 1000,
    n_rows: int = 6000,
) -> Errors:
    """Return the NRMSE of each contender that can be made."""
    found: Errors = {}
    tasks, seeds = list(tasks), list(seeds)
    for name, make in contenders.items():
        try:
            make(n_units, 0)
        except LeftOut as reason:
            print(f"{name}: left out, {reason}")
            continue
        found[name] = {}
        for task in tasks:
            drawn = [draw(task, seed, n_fit, n_rows) for seed in seeds]
            found[name][task] = [
                prequential(each, make, n_units, seed, chunk)[1]
                for seed, each in zip(seeds, drawn, strict=True)
            ]
    return found


def relative(errors: Errors) -> dict[str, dict[str, tuple[float, float]]]:
    """Return mean and standard error of each method's error over that of the reference."""
    table = {}
    for name, by_task in errors.items():
        table[name] = {
            task: _mean_and_error(
                np.array(values) / (1.0 if name == REFERENCE else errors[REFERENCE][task])
            )
            for task, values in by_task.items()
        }
    return table


def _mean_and_error(values: Array) -> tuple[float, float]:
    spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(spread)


def lines(errors: Errors) -> list[str]:
    """Return the table, a line for each method."""
    table = relative(errors)
    tasks = list(next(iter(table.values())))
    found = [f"{'':36s}" + "".join(f"{task:>15s}" for task in tasks)]
    for name, by_task in table.items():
        cells = "".join(f"{_cell(*by_task[task]):>15s}" for task in tasks)
        found.append(f"{name:36s}{cells}" + ("  NRMSE" if name == REFERENCE else ""))
    return found


def _cell(mean: float, spread: float) -> str:
    return f"{mean:.2f} +- {spread:.2f}" if mean < 100 else "> 100"


def print_choices(seeds: Sequence[int], only: Sequence[str], **size: int) -> None:
    """Print NRMSE by value and task, and their geometric mean, for each setting."""
    for title, contenders in choices(SETTINGS).items():
        if not any(text in title for text in only):
            continue
        print(f"\n{title:24s}" + "".join(f"{task:>14s}" for task in TASKS) + f"{'geometric':>14s}")
        for name, by_task in measure(contenders, TASKS, seeds, **size).items():
            means = [float(np.exp(np.mean(np.log(by_task[task])))) for task in TASKS]
            means.append(float(np.exp(np.mean(np.log(means)))))
            print(f"{name:24s}" + "".join(f"{mean:14.3f}" for mean in means), flush=True)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10, metavar="N")
    parser.add_argument("--chunk", type=int, default=50, metavar="ROWS")
    parser.add_argument("--units", type=int, default=300, metavar="N")
    parser.add_argument("--rows", type=int, default=6000, metavar="N", help="of the stream")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="in the name")
    parser.add_argument("--choose", action="store_true")
    options = parser.parse_args()
    size = {"chunk": options.chunk, "n_units": options.units, "n_rows": options.rows}
    print(machine())
    print(f"river {version('river') or 'not installed'}")
    warnings.simplefilter("ignore")  # of peers that overflow: the table shows it
    with threadpool_limits(1):
        if options.choose:
            seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + options.seeds)
            print(f"seeds {seeds[0]} to {seeds[-1]}, chunks of {options.chunk} rows")
            print_choices(seeds, options.only, **size)
            return
        chosen = {
            name: make
            for name, make in ways(SETTINGS).items()
            if name == REFERENCE or any(text in name for text in options.only)
        }
        print(f"seeds 0 to {options.seeds - 1}, chunks of {options.chunk} rows, {SETTINGS}\n")
        errors = measure(chosen, options.tasks, range(options.seeds), **size)
        print(*lines(errors), sep="\n")


if __name__ == "__main__":
    main()
