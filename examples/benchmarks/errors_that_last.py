"""Rules that choose the penalty where errors last, alone and together.

Usage: python examples/benchmarks/errors_that_last.py [--seeds 10] [--task-seeds 2]

Halves of the rows choose too small a penalty where errors depend on their neighbours over longer
than a run of rows. `"reml_ar1"` knows such errors. The scores of two rules, both in units of an
error of prediction, are added as logarithms: the penalty with the least sum is chosen. In the first
table the targets are NARMA10 with AR(1) errors of .3 or 1 of its standard deviation, 1000 rows; the
figure is the loss in R^2 of 1000 new rows without noise to the best penalty, mean and worst of the
seeds. In the second table the tasks are those of `as_it_comes.py` that are one series (up to 3000
rows): the error (root of 1 - R^2, from .01 to 10) over that of halves, geometric mean over tasks
and seeds, and the share in which R^2 is lower by more than .05. All with one row of the input and
one penalty.
"""

from __future__ import annotations

import argparse
import itertools
import warnings

import numpy as np
from _open_tasks import TASKS, Rows
from _timing import machine
from scipy.signal import lfilter

from reservoir import ESNRegressor
from reservoir.datasets import narma

PENALTIES = np.logspace(-8, 4, 25)
ALONE = ("halves", "blocked", "reml", "reml_ar1")
TOGETHER = (("halves", "reml_ar1"), ("blocked", "reml_ar1"), ("halves", "reml"))
ERRORS = (0.0, 0.8, 0.97)  # autocorrelation of neighbouring errors
SIZES = (0.3, 1.0)  # of errors, in standard deviations of the target
ONE_ROW = {"n_lags": 1, "input_alpha": None}
Array = np.ndarray


def chosen(X: Array, y: Array, settings: dict[str, object]) -> dict[str, float]:
    """Return the penalty that each rule chooses, and that rules choose together."""
    scores = {}
    for rule in ALONE:
        esn = ESNRegressor(alpha=PENALTIES, alpha_selection=rule, **ONE_ROW, **settings).fit(X, y)
        variances = np.reshape(y, (len(y), -1)).var(axis=0)
        scores[rule] = (esn.alpha_scores_ / np.where(variances > 0, variances, 1)).mean(axis=1)
    for rules in TOGETHER:
        logs = [np.log(np.maximum(scores[rule], 1e-30)) for rule in rules]
        scores[" + ".join(rules)] = np.sum(logs, axis=0)
    # of equal scores the largest penalty
    last = len(PENALTIES) - 1
    return {name: PENALTIES[last - np.argmin(each[::-1])] for name, each in scores.items()}


def r2(X: Array, y: Array, X_new: Array, y_new: Array, alpha: float, settings: dict) -> float:
    """Return R^2 of new rows, mean over outputs, under one penalty."""
    esn = ESNRegressor(alpha=alpha, **ONE_ROW, **settings).fit(X, y)
    errors = np.reshape((esn.predict(X_new) - y_new) ** 2, (len(y_new), -1)).mean(axis=0)
    return float(1 - np.mean(errors / np.reshape(y_new, (len(y_new), -1)).var(axis=0)))


def narma_with_errors(size: float, phi: float, seed: int) -> tuple[Array, Array, Array, Array]:
    """Return rows to learn from, with errors, and new rows without."""
    X, y = narma(2000, random_state=seed)
    errors = np.random.default_rng(seed).normal(size=2000)
    errors = lfilter([1], [1, -phi], errors)
    noisy = y + size * y.std() * errors / errors.std()
    return X[:1000], noisy[:1000], X[1000:], y[1000:]


def table_of_narma(n_seeds: int) -> None:
    """Print the loss of each rule for errors that last shorter and longer."""
    names = [*ALONE, *(" + ".join(rules) for rules in TOGETHER)]
    print(f"\n=== NARMA10 with AR(1) errors: loss in R^2, mean / worst of {n_seeds} seeds ===\n")
    print(f"{'errors':>12s}" + "".join(f"{name:>20s}" for name in names))
    for size, phi in itertools.product(SIZES, ERRORS):
        losses = {name: [] for name in names}
        for seed in range(n_seeds):
            settings = {"n_units": 120, "leak_rate": (1.0, 0.2, 0.05), "random_state": seed}
            X, y, X_new, y_new = narma_with_errors(size, phi, seed)
            each = {a: r2(X, y, X_new, y_new, a, settings) for a in PENALTIES}
            for name, alpha in chosen(X, y, settings).items():
                losses[name].append(max(each.values()) - each[alpha])
        cells = "".join(f"{np.mean(v):13.3f} / {max(v):4.2f}" for v in losses.values())
        print(f"{size:6.1f}{phi:6.2f}{cells}", flush=True)


def table_of_tasks(n_seeds: int) -> None:
    """Print the error of each rule relative to halves, over the tasks of one series."""
    ratios: dict[str, list[float]] = {}
    lower: dict[str, list[bool]] = {}
    count = 0
    for task in TASKS.values():
        for seed in range(n_seeds):
            data = task.draw(seed)
            if not isinstance(data, Rows) or len(data.X) > 1 or len(data.X[0]) > 3000:
                break
            count += seed == 0
            settings = {"random_state": seed}
            (X,), (y,), (X_new,), (y_new,) = data.X, data.y, data.X_new, data.y_new
            if data.scaled:
                mean, spread = X.mean(axis=0), X.std(axis=0)
                X, X_new = (X - mean) / spread, (X_new - mean) / spread
            picked = chosen(X, y, settings)
            known = {a: r2(X, y, X_new, y_new, a, settings) for a in set(picked.values())}
            found = {name: known[alpha] for name, alpha in picked.items()}
            for name, value in found.items():
                error, base = (
                    np.clip(np.sqrt(max(1 - v, 0)), 0.01, 10) for v in (value, found["halves"])
                )
                ratios.setdefault(name, []).append(error / base)
                lower.setdefault(name, []).append(value < found["halves"] - 0.05)
    print(f"\n=== {count} tasks, {n_seeds} seeds: error over that of halves ===\n")
    print(f"{'rule':>20s}{'ratio':>8s}{'lower by .05':>14s}")
    for name, each in ratios.items():
        print(
            f"{name:>20s}{np.exp(np.mean(np.log(each))):8.3f}{100 * np.mean(lower[name]):12.0f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="of NARMA10")
    parser.add_argument("--task-seeds", type=int, default=2, help="of each task")
    args = parser.parse_args()
    print(machine())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table_of_narma(args.seeds)
        table_of_tasks(args.task_seeds)


if __name__ == "__main__":
    main()
