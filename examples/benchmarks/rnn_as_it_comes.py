"""`RNNRegressor()` as it comes beside `ESNRegressor()` and a ridge on the last twenty rows.

Usage: python examples/benchmarks/rnn_as_it_comes.py [--seeds 3] [--jobs N]

The tasks are those of `as_it_comes.py` with one series of at most 2000 rows to learn from. R^2 is
that of new rows, median over the seeds; seconds are of one fit, processor time, one thread. Errors
are the roots of 1 - R^2, from .01 to 10.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from _open_models import RIDGE, network, rival, score
from _open_tasks import TASKS, Rows
from _timing import machine
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNRegressor

MOST_ROWS = 2000
KINDS = {"ESNRegressor()": ESNRegressor, "RNNRegressor()": RNNRegressor}
CLEARLY = 0.05  # of R^2


def scores_of(name: str, seed: int) -> list:
    """Return the scores of both networks and of the ridge on a task."""
    task = TASKS[name].draw(seed)
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = [network(task, {"random_state": seed}, kind) for kind in KINDS.values()]
        return [score(task, *found) for found in (*made, rival(task, RIDGE, seed))]


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    print(machine())
    names = []
    for name, task in TASKS.items():
        data = task.draw(0)
        if isinstance(data, Rows) and len(data.X) == 1 and len(data.X[0]) <= MOST_ROWS:
            names.append(name)
    seeds = range(args.seeds)
    found = Parallel(args.jobs)(delayed(scores_of)(n, s) for n in names for s in seeds)
    columns = [*KINDS, RIDGE]
    r2 = np.array([[one.r2 for one in each] for each in found]).reshape(-1, args.seeds, 3)
    loss = np.array([[one.loss for one in each] for each in found]).reshape(-1, args.seeds, 3)
    seconds = np.array([[one.seconds for one in each] for each in found])
    medians = np.median(r2, axis=1)
    print(f"\n=== {len(names)} tasks, {args.seeds} seeds: R^2, median ===\n")
    print(f"{'':36s}" + "".join(f"{column:>18s}" for column in columns))
    ahead = medians[:, 1] - medians[:, 0]
    for k in np.argsort(-ahead):
        print(f"{names[k]:36s}" + "".join(f"{value:18.3f}" for value in medians[k]))
    print("\n=== RNNRegressor() beside ESNRegressor() ===\n")
    print(
        f"ahead by {CLEARLY}: {np.sum(ahead > CLEARLY)} tasks; behind: {np.sum(ahead < -CLEARLY)}"
    )
    ratio = np.exp(np.mean(np.log(loss[:, :, 1] / loss[:, :, 0])))
    print(f"error, geometric mean: {ratio:.3f} times; seconds of a fit, mean: ", end="")
    pairs = zip(columns, seconds.mean(axis=0), strict=True)
    print(", ".join(f"{column} {value:.2f}" for column, value in pairs))


if __name__ == "__main__":
    main()
