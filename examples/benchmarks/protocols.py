"""The field's reference protocols, measured: NARMA10, memory capacity, Mackey-Glass, Lorenz.

Usage: ``python examples/benchmarks/protocols.py [narma10] [memory] [mackey_glass] [lorenz]``
prints one table per protocol (all by default), each figure over the seeds that it names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.datasets import LYAPUNOV_TIME, lorenz, mackey_glass, narma
from reservoir.metrics import memory_capacity, valid_time


def narma10(n_units: int, seed: int, **params: object) -> float:
    """NMSE on 2000 steps after 200 of washout and 1800 of training."""
    X, y = narma(4000, random_state=seed)
    esn = ESNRegressor(n_units, washout=200, random_state=seed, **params)
    error = esn.fit(X[:2000], y[:2000]).predict(X[2000:]) - y[2000:]
    return float(np.mean(error**2) / np.var(y[2000:]))


def memory(seed: int, input_weights: str, **params: object) -> float:
    """Memory capacity of 50 units, input weight 0.1, radius 0.95, lags 1 to 100."""
    reservoir = build_reservoir(
        50,
        1,
        spectral_radius=0.95,
        input_weights=input_weights,
        input_scaling=0.1,
        bias_scaling=0.0,
        random_state=seed,
        **params,
    )
    return float(memory_capacity(reservoir, random_state=seed))


def mackey_glass_free_run(seed: int, alpha: float) -> float:
    """MSE over 500 steps of free run; 1000 units, dense uniform weights, 2000 steps to train."""
    series = np.tanh(mackey_glass(2600)[:, 0] - 1)
    rng = np.random.default_rng(seed)
    esn = ESNRegressor(
        1000,
        topology=rng.uniform(-0.5, 0.5, (1000, 1000)),
        input_weights=rng.uniform(-0.5, 0.5, (1000, 1)),
        bias=rng.uniform(-0.5, 0.5, 1000),
        leak_rate=0.3,
        spectral_radius=1.25,
        alpha=alpha,
        washout=100,
    ).fit(series[:2000, None], series[1:2001])
    return float(np.mean((esn.forecast(500) - series[2001:2501]) ** 2))


def lorenz_valid_time(seed: int) -> float:
    """Valid time in Lyapunov times, dt 0.02, threshold 0.3 on the error over the std."""
    series = lorenz(7000, dt=0.02, random_state=seed)
    series = (series - series.mean(axis=0)) / series.std(axis=0)
    esn = ESNRegressor(
        500,
        spectral_radius=0.6,
        input_scaling=0.15,
        bias_scaling=1.0,
        alpha=1e-8,
        random_state=seed,
    ).fit(series[:5000], series[1:5001])
    rows = esn.forecast(1500)
    truth = series[5001:6501]
    lyapunov = LYAPUNOV_TIME["lorenz"]
    return float(valid_time(truth, rows, threshold=0.3, dt=0.02, lyapunov_time=lyapunov))


def spread(values: list[float], form: str) -> str:
    """Return mean, standard deviation, median, least and largest of what the seeds gave."""
    array = np.array(values)
    figures = [array.mean(), array.std(), np.median(array), array.min(), array.max()]
    return " ".join(f"{figure:{form}}" for figure in figures)


def table(title: str, rows: dict[str, Callable[[int], float]], n_seeds: int, form: str) -> None:
    """Measure each row over the seeds 0 to n_seeds - 1, and print it."""
    print(f"\n{title}; seeds 0 to {n_seeds - 1}")
    print(f"{'':36s}{'mean':>9s} {'std':>8s} {'median':>8s} {'least':>8s} {'largest':>8s}")
    for name, measure in rows.items():
        print(f"{name:36s}", spread([measure(seed) for seed in range(n_seeds)], form), flush=True)


PLAIN = {"input_scaling": 0.2, "spectral_radius": 0.95, "alpha": 1e-8}
BIASED = {"input_scaling": 0.1, "bias_scaling": 0.5, "alpha": 1e-9}
JUMPS = {"topology": "cycle_with_jumps", "input_scaling": 0.1, "spectral_radius": 0.95}
SETTINGS = {"plain": PLAIN, "more bias": BIASED, "cycle with jumps": {**JUMPS, "alpha": 1e-8}}
RINGS = {"topology": "ring", "input_weights": "bernoulli"}
RESERVOIRS = {
    "ring, linear": {**RINGS, "activation": "identity"},
    "ring, tanh": RINGS,
    "orthogonal, tanh": {"topology": "orthogonal", "input_weights": "bernoulli"},
    "random, 10 per row, tanh": {"input_weights": "uniform"},
    "random, dense, tanh": {"input_weights": "uniform", "in_degree": 1.0},
    "random, 10 per row, tanh, +-0.1": {"input_weights": "bernoulli"},
}


def main(wanted: list[str]) -> None:
    """Print the tables of the protocols that were asked for."""
    if "narma10" in wanted:
        rows = {
            f"{name}, N = {n}": lambda seed, n=n, p=params: narma10(n, seed, **p)
            for n in (50, 100, 200)
            for name, params in SETTINGS.items()
        }
        table("NARMA10, NMSE", rows, 10, "8.3f")
    if "memory" in wanted:
        rows = {
            name: lambda seed, p=params: memory(seed, **p) for name, params in RESERVOIRS.items()
        }
        table("Memory capacity, N = 50 (bound: 50)", rows, 10, "8.1f")
    if "mackey_glass" in wanted:
        rows = {
            f"alpha = {alpha:g}": lambda seed, a=alpha: mackey_glass_free_run(seed, a)
            for alpha in (1e-8, 1e-10)
        }
        table("Mackey-Glass free run of 500 steps, MSE", rows, 5, "8.1e")
    if "lorenz" in wanted:
        table("Lorenz-63, valid time / Lyapunov time", {"N = 500": lorenz_valid_time}, 10, "8.1f")


if __name__ == "__main__":
    main(sys.argv[1:] or ["narma10", "memory", "mackey_glass", "lorenz"])
