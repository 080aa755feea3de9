"""Trained networks, reservoirs and lags on short series: R^2 on the rows that follow.

Usage: ``python examples/benchmarks/short_series.py [--quick] [--seeds N]``. Four minutes on one
core; ``--quick``: two seeds.

Each model learns from 100 or 350 rows and predicts the next 300, from the state in which training
ended. `RNNRegressor`, `RNNRegressor(max_iter=0)` and `ESNRegressor` as they come, on raw columns;
ridge regression on 20 lags of each column, its penalty chosen by leave-one-out; gradient boosting
(scikit-learn's histograms) on the same lags. Median and worst of the seeds, each with data and
weights of its own, then the median seconds of processor time of a fit. El Nino is the months after
one that depends on the seed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _timing import machine
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNRegressor
from reservoir.datasets import load_el_nino, lorenz, mackey_glass, narma

N_TEST, N_LAGS = 300, 20
SIZES = (100, 350)
Rows = tuple[np.ndarray, np.ndarray]


def nonlinear_filter(n: int, seed: int) -> Rows:
    """A filter with products of its last two inputs."""
    u = np.random.default_rng(seed).uniform(-1, 1, n)
    y = np.zeros(n)
    for t in range(2, n):
        drive = u[t] ** 2 - 0.5 * u[t - 1] * u[t - 2]
        y[t] = np.tanh(0.6 * y[t - 1] - 0.2 * y[t - 2] + drive)
    return u[:, None], y


def lorenz_z(n: int, seed: int) -> Rows:
    """The third coordinate from the first."""
    flow = lorenz(n, random_state=seed)
    return flow[:, :1], flow[:, 2]


def noisy_wave(n: int, seed: int) -> Rows:
    """The next row of a sine wave with noise."""
    z = np.sin(0.3 * np.arange(n + 1)) + 0.3 * np.random.default_rng(seed).standard_normal(n + 1)
    return z[:-1, None], z[1:]


def mackey(n: int, seed: int) -> Rows:
    """Mackey-Glass, ten steps on."""
    z = mackey_glass(n + 10, random_state=seed).ravel()
    return z[:-10, None], z[10:]


def el_nino(n: int, seed: int) -> Rows:
    """The next month of a recorded series, from a month that depends on the seed."""
    z = load_el_nino().ravel()
    first = np.random.default_rng(seed).integers(len(z) - n)
    return z[first : first + n, None], z[first + 1 : first + n + 1]


TASKS: dict[str, Callable[[int, int], Rows]] = {
    "nonlinear filter": nonlinear_filter,
    "NARMA10": lambda n, seed: narma(n, random_state=seed),
    "Lorenz, z from x": lorenz_z,
    "Mackey-Glass, 10 on": mackey,
    "noisy wave": noisy_wave,
    "El Nino": el_nino,
}


def lagged(X: np.ndarray) -> np.ndarray:
    """Return each row beside the rows before it; what is before the first is repeated."""
    padded = np.vstack([np.repeat(X[:1], N_LAGS - 1, axis=0), X])
    return np.hstack([padded[k : k + len(X)] for k in range(N_LAGS)])


MODELS: dict[str, tuple[Callable[[int], Any], bool]] = {
    "RNN": (lambda seed: RNNRegressor(random_state=seed), False),
    "its start": (lambda seed: RNNRegressor(max_iter=0, random_state=seed), False),
    "ESN": (lambda seed: ESNRegressor(random_state=seed), False),
    "ridge on lags": (lambda seed: RidgeCV(np.logspace(-6, 3, 10)), True),
    "boosting": (lambda seed: HistGradientBoostingRegressor(random_state=seed), True),
}


def score(name: str, X: np.ndarray, y: np.ndarray, n: int, seed: int) -> tuple[float, float]:
    """Return R^2 on the rows behind the first n, and the seconds of a fit."""
    make, on_lags = MODELS[name]
    rows = lagged(X) if on_lags else X
    tick = time.process_time()
    model = make(seed).fit(rows[:n], y[:n])
    seconds = time.process_time() - tick
    error = np.mean((np.ravel(model.predict(rows[n:])) - y[n:]) ** 2)
    return 1 - error / y[n:].var(), seconds


def main() -> None:
    """Print a table for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="two seeds")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    seeds = range(2 if options.quick else options.seeds)
    warnings.simplefilter("ignore")  # networks warn about columns in large units
    print(machine())
    with threadpool_limits(1):
        for n in SIZES:
            print(f"\n{n} rows, {len(seeds)} seeds: median and worst R^2")
            print(f"{'':20s}" + "".join(f"{name:>16s}" for name in MODELS))
            spent: dict[str, list[float]] = {name: [] for name in MODELS}
            for task, make in TASKS.items():
                cells = ""
                for name in MODELS:
                    found = []
                    for seed in seeds:
                        X, y = make(n + N_TEST, seed)
                        found.append(score(name, X, y, n, seed))
                    scores, seconds = np.array(found).T
                    spent[name] += seconds.tolist()
                    cells += f"{np.median(scores):8.2f}{max(scores.min(), -9.99):8.2f}"
                print(f"{task:20s}{cells}", flush=True)
            print(f"{'seconds':20s}" + "".join(f"{np.median(s):16.2f}" for s in spent.values()))


if __name__ == "__main__":
    main()
