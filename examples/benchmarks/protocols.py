"""The field's reference protocols, measured: NARMA10, memory capacity, Mackey-Glass, two flows.

Usage: ``python examples/benchmarks/protocols.py [narma10] [memory] [mackey_glass] [lorenz]
[roessler]`` prints one table per protocol (all by default), each figure over the seeds that it
names. Where reservoirpy is installed it is measured too, at the same settings.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from _command_line import run_main

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.datasets import LYAPUNOV_TIME, lorenz, mackey_glass, narma, roessler
from reservoir.metrics import memory_capacity, valid_time


def narma10(n_units: int, seed: int, **params: object) -> float:
    """NMSE on 2000 steps after 200 of washout and 1800 of training."""
    X, y = narma(4000, random_state=seed)
    esn = ESNRegressor(n_units, leak_rate=1.0, washout=200, random_state=seed, **params)
    error = esn.fit(X[:2000], y[:2000]).predict(X[2000:]) - y[2000:]
    return float(np.mean(error**2) / np.var(y[2000:]))


def narma10_reservoirpy(n_units: int, seed: int, **params: float) -> float:
    """The same in reservoirpy."""
    X, y = narma(4000, random_state=seed)
    model = reservoirpy_model(n_units, seed, **params)
    model.fit(X[:2000], y[:2000, None], warmup=200)
    model.reset()
    error = model.run(X)[2000:, 0] - y[2000:]
    return float(np.mean(error**2) / np.var(y[2000:]))


def memory(seed: int, input_weights: str, **params: object) -> float:
    """Memory capacity of 50 units, input weight 0.1, radius 0.95, lags 1 to 100."""
    reservoir = build_reservoir(
        50,
        1,
        input_weights=input_weights,
        input_scaling=0.1,
        bias_scaling=0.0,
        random_state=seed,
        **{"spectral_radius": 0.95, **params},
    )
    return float(memory_capacity(reservoir, random_state=seed))


def mackey_glass_free_run(seed: int, alpha: float, n_units: int = 1000, **changes: object) -> float:
    """MSE over 500 steps of free run; dense uniform weights, 2000 steps to train."""
    series = np.tanh(mackey_glass(2600)[:, 0] - 1)
    rng = np.random.default_rng(seed)
    settings = {
        "topology": rng.uniform(-0.5, 0.5, (n_units, n_units)),
        "input_weights": rng.uniform(-0.5, 0.5, (n_units, 1)),
        "bias": rng.uniform(-0.5, 0.5, n_units),
        "leak_rate": 0.3,
        "spectral_radius": 1.25,
        "alpha": alpha,
        "washout": 100,
    }
    esn = ESNRegressor(n_units, **{**settings, **changes})
    esn.fit(series[:2000, None], series[1:2001])
    return float(np.mean((esn.forecast(500) - series[2001:2501]) ** 2))


# name -> generator, dt, rows, steps of free run; 5000 rows to train and 100 of them washout
FLOWS: dict[str, Any] = {
    "lorenz": (lorenz, 0.02, 7000, 1500),
    "roessler": (roessler, 0.1, 9100, 4000),
}
N_TRAIN, WASHOUT, ALPHA = 5000, 100, 1e-8
SAME = {
    "spectral_radius": 0.6,
    "leak_rate": 1.0,
    "input_scaling": 0.15,
    "bias_scaling": 1.0,
    "alpha": ALPHA,
}


@lru_cache(maxsize=64)  # 200 kB each
def flow(name: str, seed: int) -> np.ndarray:
    """Return the standardised orbit of a flow."""
    generate, dt, n_rows, _ = FLOWS[name]
    series = generate(n_rows, dt=dt, random_state=seed)
    return (series - series.mean(axis=0)) / series.std(axis=0)


def flow_valid_time(name: str, free_run: Callable[..., np.ndarray], seed: int, **options) -> float:
    """Valid time in Lyapunov times, threshold 0.3 on the error over the standard deviation.

    ``free_run(train, n_steps, seed, **options)`` goes on from the last row that it is given.
    """
    _, dt, _, n_steps = FLOWS[name]
    series = flow(name, seed)
    rows = free_run(series[: N_TRAIN + 1], n_steps, seed, **options)
    truth = series[N_TRAIN + 1 :][:n_steps]
    time = LYAPUNOV_TIME[name]
    return float(valid_time(truth, rows, threshold=0.3, dt=dt, lyapunov_time=time))


def esn_free_run(train: np.ndarray, n_steps: int, seed: int, **changes: object) -> np.ndarray:
    """500 units, 10 connections per row, readout of [1, u, x]."""
    esn = ESNRegressor(500, washout=WASHOUT, random_state=seed, **{**SAME, **changes})
    return esn.fit(train[:-1], train[1:]).forecast(n_steps)


def reservoirpy_free_run(train: np.ndarray, n_steps: int, seed: int) -> np.ndarray:
    """The same settings and the same laws of the weights; the numbers drawn are its own."""
    model = reservoirpy_model(500, seed, **SAME)
    model.fit(train[:-1], train[1:], warmup=WASHOUT)
    model.reset()
    model.run(train[:-1])
    rows, y = np.empty((n_steps, train.shape[1])), train[-1]
    for t in range(n_steps):
        rows[t] = y = np.ravel(model.step(y))
    return rows


def reservoirpy_model(
    n_units: int,
    seed: int,
    *,
    spectral_radius: float = 0.9,
    input_scaling: float = 1.0,
    bias_scaling: float = 0.1,
    leak_rate: float = 1.0,
    alpha: float,
) -> Any:
    """Reservoir of 10 connections per row and ridge on [1, u, x], our defaults for the rest."""
    from reservoirpy import mat_gen, nodes

    bias = np.random.default_rng(seed).uniform(-bias_scaling, bias_scaling, n_units)
    inputs = nodes.Input()
    units = nodes.Reservoir(
        n_units,
        lr=leak_rate,
        sr=spectral_radius,
        input_scaling=input_scaling,
        input_connectivity=1.0,
        rc_connectivity=10 / n_units,
        W=mat_gen.normal,
        Win=mat_gen.uniform,
        bias=bias,
        seed=seed,
    )
    return [inputs, inputs >> units] >> nodes.Ridge(ridge=alpha)


def polynomial_free_run(
    train: np.ndarray, n_steps: int, seed: int, *, lags: int, degree: int, alpha: float = ALPHA
) -> np.ndarray:
    """Next generation reservoir computing: a ridge on monomials of the last rows, no reservoir.

    It predicts the increment; `alpha` weighs every coefficient, the constant's too.
    """
    past = np.hstack([train[lags - 1 - lag : len(train) - 1 - lag] for lag in range(lags)])
    H = monomials(past, degree)[WASHOUT:]
    increments = (train[lags:] - train[lags - 1 : -1])[WASHOUT:]
    # least squares on stacked rows: the normal equations would lose half of the digits
    stacked = np.vstack([H, np.sqrt(alpha) * np.eye(H.shape[1])])
    targets = np.vstack([increments, np.zeros((H.shape[1], train.shape[1]))])
    coef = np.linalg.lstsq(stacked, targets, rcond=None)[0]
    rows = np.full((n_steps, train.shape[1]), np.nan)
    now = np.hstack([train[-1 - lag] for lag in range(lags)])[None]
    for t in range(n_steps):
        new = now[:, : train.shape[1]] + monomials(now, degree) @ coef
        if not np.abs(new).max() < 1e3:  # it diverges: the rest stays NaN
            break
        rows[t], now = new[0], np.hstack([new, now[:, : -train.shape[1]]])
    return rows


def monomials(rows: np.ndarray, degree: int) -> np.ndarray:
    """Return the constant and all products of up to `degree` columns."""
    columns = range(rows.shape[1])
    chosen = [c for d in range(degree + 1) for c in combinations_with_replacement(columns, d)]
    return np.stack([rows[:, list(c)].prod(axis=1) for c in chosen], axis=1)


def lorenz_valid_time(seed: int) -> float:
    """Valid time of our network on Lorenz-63."""
    return flow_valid_time("lorenz", esn_free_run, seed)


def contenders(name: str) -> dict[str, Callable[[int], float]]:
    """Return what is measured on a flow: name -> valid time for a seed."""
    runs: dict[str, tuple[Any, dict[str, float]]] = {"ours, N = 500": (esn_free_run, {})}
    if importlib.util.find_spec("reservoirpy"):
        runs["reservoirpy, N = 500"] = (reservoirpy_free_run, {})
    for scaling in (0.1, 0.0):
        runs[f"ours, bias_scaling={scaling}"] = (esn_free_run, {"bias_scaling": scaling})
    for degree, lags, alpha in (
        (2, 2, ALPHA), (2, 2, 1e-6), (2, 3, ALPHA), (3, 2, ALPHA), (3, 3, ALPHA), (4, 2, ALPHA)
    ):  # fmt: skip
        options = {"lags": lags, "degree": degree, "alpha": alpha}
        n_terms = monomials(np.zeros((1, 3 * lags)), degree).shape[1]
        row = f"NG-RC, {lags} lags, degree {degree}, {alpha:g}: {n_terms}"
        runs[row] = (polynomial_free_run, options)
    return {
        row: lambda seed, run=run, options=options: flow_valid_time(name, run, seed, **options)
        for row, (run, options) in runs.items()
    }


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


def main(*wanted: str) -> None:
    """Print the tables of the protocols that were asked for."""
    wanted = wanted or ("narma10", "memory", "mackey_glass", *FLOWS)
    if "narma10" in wanted:
        rows = {
            f"{name}, N = {n}": lambda seed, n=n, p=params: narma10(n, seed, **p)
            for n in (50, 100, 200)
            for name, params in SETTINGS.items()
        }
        if importlib.util.find_spec("reservoirpy"):
            rows |= {
                f"{name}, N = 200, reservoirpy": lambda s, p=SETTINGS[name]: narma10_reservoirpy(
                    200, s, **p
                )
                for name in ("plain", "more bias")
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
    for name in FLOWS:
        if name in wanted:
            table(f"{name}, valid time / Lyapunov time", contenders(name), 10, "8.1f")


if __name__ == "__main__":
    run_main(main)
