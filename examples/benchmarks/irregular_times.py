"""Rows that come at irregular times: is a network better told the times, or the gaps, or nothing?

Usage: ``python examples/benchmarks/irregular_times.py [n_seeds]`` (10 by default) prints normalised
root mean squared errors: the mean, and the standard deviation over the seeds, which draw the times
and the networks. Twenty minutes on one core.

- Lorenz: z from x, at times whose gaps have a mean of .1 or .05 and vary: the coefficient of
  variation is 0, .5 or 1. 4000 rows to fit, 2000 to test.
- El Nino: the anomaly of the sea's temperature in the next month that was measured, from those
  before; each month is measured with probability .5. The gap to the next is an input of all
  models. The last 30 % are the test.

All echo state networks have 200 units; leak rate and input scaling are those with the least error
on the last quarter of the rows to fit, out of .1, .2, .3, .5, .8 and .1, .3, 1. "by time" is
``time_column``, "gaps" has the time since the row before as an input, "by row" neither. "default"
is ``ESNRegressor(100, leak_rate=1.0, alpha=1e-6)``, by row; "trained" is
``RNNRegressor(cell="leaky")`` as it comes, by row and by time. The linear model and the boosted
trees see the last eight rows and the gaps between them.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from _command_line import run_main
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNRegressor
from reservoir.datasets import load_el_nino, lorenz
from reservoir.metrics import nrmse

N_LAGS = 8
LEAKS, SCALINGS = (0.1, 0.2, 0.3, 0.5, 0.8), (0.1, 0.3, 1.0)
ALPHAS = np.logspace(-8, 2, 11)


def observer(seed, mean, spread):
    """Return times, inputs, targets and how many rows to fit: z of Lorenz' system from x."""
    rng = np.random.default_rng(seed)
    path = lorenz(36_000, dt=mean / 5, random_state=seed)
    gaps = np.full(6000, 5.0)
    if spread:
        gaps = np.maximum(np.round(rng.gamma(spread**-2, 5 * spread**2, 6000)), 1)
    rows = np.cumsum(gaps).astype(int)
    return rows * mean / 5, path[rows, :1] / 8, path[rows, 2] / 8, 4000


def next_month(seed):
    """Return times, inputs, targets and how many rows to fit: the next month that was measured."""
    series = np.asarray(load_el_nino(), dtype=float).ravel()
    months = np.arange(len(series))
    n_known = int(0.7 * len(series))
    course = [series[:n_known][months[:n_known] % 12 == k].mean() for k in range(12)]
    anomaly = series - np.array(course)[months % 12]
    anomaly /= anomaly[:n_known].std()
    kept = np.flatnonzero(np.random.default_rng(seed).random(len(series)) < 0.5)
    ahead = np.diff(kept)
    inputs = np.column_stack([anomaly[kept[:-1]], ahead])
    return kept[:-1].astype(float), inputs, anomaly[kept[1:]], int(0.7 * len(ahead))


def told(kind, times, inputs):
    """Return the columns that a network of this kind sees."""
    gaps = np.diff(times, prepend=times[0] - np.median(np.diff(times)))
    columns = [inputs]
    if "gaps" in kind:
        columns.append(gaps / np.median(gaps))
    if "time" in kind:
        columns.append(times)
    return np.column_stack(columns)


def network(kind, leak, scaling, seed):
    """Return an echo state network of this kind; times stand in the last column."""
    return ESNRegressor(
        200,
        leak_rate=leak,
        input_scaling=scaling,
        alpha=ALPHAS,
        alpha_selection="blocked",
        time_column=-1 if "time" in kind else None,
        random_state=seed,
    )


def error_of_network(kind, task, seed):
    """Return the error on the test rows of the network that is best on rows held out."""
    times, inputs, targets, n = task
    X, held_out = told(kind, times, inputs), n - n // 4

    def trial(settings):
        model = network(kind, *settings, seed).fit(X[:held_out], targets[:held_out])
        return nrmse(targets[held_out:n], model.predict(X[held_out:n]))

    best = min(product(LEAKS, SCALINGS), key=trial)
    model = network(kind, *best, seed).fit(X[:n], targets[:n])
    return nrmse(targets[n:], model.predict(X[n:]))


def error_of_trained(kind, task, seed):
    """Return the error of a trained network, as it comes."""
    times, inputs, targets, n = task
    X, column = told(kind, times, inputs), -1 if kind == "time" else None
    model = RNNRegressor(cell="leaky", time_column=column, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:n], targets[:n])
    return nrmse(targets[n:], model.predict(X[n:]))


def error_of_lags(model, task):
    """Return the error of a model that sees the last rows, and the gaps between them."""
    times, inputs, targets, n = task
    rows = told("gaps", times, inputs)
    lagged = np.column_stack([np.roll(rows, lag, axis=0) for lag in range(N_LAGS)])
    model.fit(lagged[N_LAGS:n], targets[N_LAGS:n])
    return nrmse(targets[n:], model.predict(lagged[n:]))


def errors(task, seed):
    """Return the errors of all models on a task."""
    _, inputs, targets, n = task
    default = ESNRegressor(100, leak_rate=1.0, alpha=1e-6, random_state=seed).fit(
        inputs[:n], targets[:n]
    )
    found = [
        error_of_lags(RidgeCV(ALPHAS), task),
        error_of_lags(HistGradientBoostingRegressor(random_state=seed), task),
        nrmse(targets[n:], default.predict(inputs[n:])),
    ]
    kinds = ("row", "gaps", "time", "time and gaps")
    found += [error_of_network(kind, task, seed) for kind in kinds]
    return found + [error_of_trained(kind, task, seed) for kind in ("row", "time")]


TASKS = {
    "Lorenz, .1, even": lambda seed: observer(seed, 0.1, 0),
    "Lorenz, .1, vary by .5": lambda seed: observer(seed, 0.1, 0.5),
    "Lorenz, .1, vary by 1": lambda seed: observer(seed, 0.1, 1),
    "Lorenz, .05, vary by 1": lambda seed: observer(seed, 0.05, 1),
    "El Nino, half the months": next_month,
}


def main(n_seeds: int = 10) -> None:
    columns = ("linear", "trees", "default", "by row", "gaps", "by time", "time and gaps")
    columns += ("trained", "trained by time")
    print(" " * 26 + "".join(f"{column:>17s}" for column in columns))
    for name, make in TASKS.items():
        found = np.array([errors(make(seed), seed) for seed in range(n_seeds)])
        mean, spread = found.mean(axis=0), found.std(axis=0, ddof=min(1, n_seeds - 1))
        cells = (f"{m:9.3f} +- {s:.3f}" for m, s in zip(mean, spread, strict=True))
        print(f"{name:26s}" + " ".join(f"{cell:>16s}" for cell in cells), flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
