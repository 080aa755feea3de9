"""What the least-squares start reaches, where, and in what time: tables.

Usage: ``python examples/benchmarks/least_squares.py [--quick] [TABLE ...]``, tables: teacher, grid,
series, online, time. Each states its seeds; ``--quick`` takes three of them (grid: one). Errors on
data that was not fitted; NMSE is the squared error over the variance of the targets.

- teacher: Bay 2017, table 5.1: a student of 128 tanh units learns from a teacher of 128, 64 inputs
  U(0, 1), 64 outputs, 2000 steps, all parameters N(0, .065^2).
- grid: other sizes, outputs, noise, saturation; parameters N(0, s^2), s = .05 for the base, inputs
  N(0, 1).
- series: Mackey-Glass one step ahead (64 units), NARMA10 (100 units), 2000 steps to fit.
- online: a teacher that drifts, windows of 300 steps, an update every 50.
- time: milliseconds per iteration, one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _timing import machine
from threadpoolctl import threadpool_limits

from reservoir.building import build_reservoir
from reservoir.datasets import mackey_glass, narma
from reservoir.training.bptt import Network, predict
from reservoir.training.cells import SimpleCell
from reservoir.training.least_squares import credit_fit, ls_fit, ls_online_step

Params = dict[str, np.ndarray]
PRINTED = {"bay2017, 7 iterations": 9.143, "bay2017, 10 iterations": 3.429}


def draw(rng: np.random.Generator, p: int, n: int, q: int, scale: float) -> Params:
    """Normal weights."""
    shapes = {"W_in": (n, p), "W": (n, n), "bias": (n,), "coef": (q, n), "intercept": (q,)}
    return {name: scale * rng.standard_normal(shape) for name, shape in shapes.items()}


def outputs(params: Params, X: np.ndarray, output: str, include_input: bool = False) -> np.ndarray:
    """Outputs of a network on one sequence."""
    n, q = len(params["W"]), len(params["coef"])
    network = Network(SimpleCell(n), X.shape[1], q, output, include_input=include_input)
    return predict(network, params, X[:, None])[0][:, 0]


def error(
    params: Params, X: np.ndarray, Y: np.ndarray, output: str, washout: int = 0, **options: Any
) -> float:
    """Mean squared error after the washout."""
    return float(np.mean((outputs(params, X, output, **options) - Y)[washout:] ** 2))


def variance(Y: np.ndarray, washout: int = 0) -> float:
    """Mean over the outputs of their variance."""
    return float(Y[washout:].var(axis=0).mean())


def teacher_student(
    seed: int,
    *,
    p: int = 64,
    n: int = 128,
    q: int = 64,
    n_steps: int = 2000,
    output: str = "tanh",
    scale: float = 0.05,
    teacher_units: int | None = None,
    noise: float = 0.0,
    radius: float | None = None,
    drive: float = 1.0,
    inputs: str = "normal",
) -> tuple[Params, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Student's first weights, data to fit, data to test."""
    rng = np.random.default_rng(seed)
    teacher = draw(rng, p, teacher_units or n, q, scale)
    teacher["W_in"] *= drive
    if radius is not None:
        teacher["W"] *= radius / np.abs(np.linalg.eigvals(teacher["W"])).max()
    law: Callable[..., np.ndarray] = rng.random if inputs == "uniform" else rng.standard_normal
    X, X_test = law((n_steps, p)), law((2000, p))
    Y, Y_test = outputs(teacher, X, output), outputs(teacher, X_test, output)
    if noise:
        Y = Y + noise * Y.std(axis=0) * rng.standard_normal(Y.shape)
        Y = np.clip(Y, -1, 1) if output == "tanh" else Y
    return draw(rng, p, n, q, scale), X, Y, X_test, Y_test


def teacher_table(seeds: range) -> None:
    """Table 5.1, side by side with the printed figures."""
    methods: dict[str, dict[str, Any]] = {
        "random reservoir, ridge": {"n_iter": 0},
        "bay2017, 7 iterations": {"method": "bay2017", "n_iter": 7},
        "bay2017, 10 iterations": {"method": "bay2017", "n_iter": 10},
        "layer-wise alone, 3": {"n_iter": 3, "credit": False},
        "layer-wise alone, 8": {"credit": False},
        "ls_fit, 4 iterations": {"n_iter": 4},
        "ls_fit, 6 iterations": {"n_iter": 6},
        "ls_fit, 8 iterations": {},
        "ls_fit, 16 iterations": {"n_iter": 16},
    }
    print(f"\nteacher: test MSE x 1000, {len(seeds)} seeds from 0")
    print(f"{'':26s}{'median':>9s}{'worst':>9s}{'printed':>9s}{'|coef|':>9s}")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for seed in seeds:
        start, X, Y, X_test, Y_test = teacher_student(seed, scale=0.065, inputs="uniform")
        for name, options in methods.items():
            fitted = ls_fit(start, X, Y, output="tanh", **options).params
            norm = float(np.linalg.norm(fitted["coef"]))
            found[name].append((1e3 * error(fitted, X_test, Y_test, "tanh"), norm))
    for name, rows in found.items():
        errors, norms = np.array(rows).T
        printed = f"{PRINTED[name]:9.2f}" if name in PRINTED else 9 * " "
        median, worst = np.median(errors), errors.max()
        print(f"{name:26s}{median:9.3f}{worst:9.3f}{printed}{np.median(norms):9.1f}")


GRID: dict[str, dict[str, Any]] = {
    "base": {},
    "hidden 16, in/out 8": {"n": 16, "p": 8, "q": 8, "scale": 0.14},
    "hidden 32 < outputs 64": {"n": 32},
    "hidden = outputs = 64": {"n": 64},
    "hidden 512, T = 5000": {"n": 512, "n_steps": 5000},
    "1 in, 1 out": {"p": 1, "q": 1},
    "1 in, 64 out": {"p": 1},
    "64 in, 1 out": {"q": 1},
    "T = 500": {"n_steps": 500},
    "T = 20,000": {"n_steps": 20_000},
    "identity output": {"output": "identity"},
    "logistic output": {"output": "logistic"},
    "softmax output": {"output": "softmax"},
    "10 % noise": {"noise": 0.1},
    "30 % noise, T = 500": {"noise": 0.3, "n_steps": 500},
    "teacher radius .95": {"radius": 0.95},
    "saturated teacher": {"drive": 10.0, "radius": 0.95},
    "student 64 of teacher 128": {"n": 64, "teacher_units": 128},
    "student 256 of teacher 128": {"n": 256, "teacher_units": 128},
}


def grid_row(seed: int, config: dict[str, Any], methods: dict[str, Any]) -> list[float]:
    """NMSE of the methods on one configuration."""
    start, X, Y, X_test, Y_test = teacher_student(seed, **config)
    output, washout = config.get("output", "tanh"), 50 if config.get("p") == 1 else 0
    row = []
    for options in methods.values():
        fitted = ls_fit(start, X, Y, output=output, washout=washout, **options).params
        row.append(error(fitted, X_test, Y_test, output, washout) / variance(Y_test, washout))
    return row


def grid_table(n_seeds: int) -> None:
    """Robustness."""
    methods = {
        "ridge": {"n_iter": 0},
        "3 it.": {"n_iter": 3},
        "layer 8": {"credit": False},
        "8 it.": {},
        "hold-out": {"holdout": 0.2},
        "18 it.": {"n_iter": 18},
    }
    print(f"\ngrid: test NMSE, median of {n_seeds} seeds from 0 (large ones: 1)")
    heads = "".join(f"{name:>10s}" for name in methods)
    print(f"{'':28s}{heads}{'worst 8':>10s}{'/ ridge':>10s}")
    for name, config in GRID.items():
        large = config.get("n", 0) > 256 or config.get("n_steps", 0) > 5000
        rows = np.array(
            [grid_row(seed, config, methods) for seed in range(1 if large else n_seeds)]
        )
        ratio = (rows[:, 3] / rows[:, 0]).max()
        cells = "".join(f"{value:10.3g}" for value in np.median(rows, axis=0))
        print(f"{name:28s}{cells}{rows[:, 3].max():10.3g}{ratio:10.2f}", flush=True)


def series_data(name: str, seed: int) -> tuple[Params, np.ndarray, np.ndarray]:
    """A reservoir, and 4000 standardised rows of a series."""
    if name == "Mackey-Glass":
        x = mackey_glass(4001, random_state=seed)
        x = ((x - x.mean()) / x.std()).reshape(-1, 1)
        X, Y, n = x[:-1], x[1:], 64
    else:
        u, y = narma(4000, random_state=seed)
        X, n = (u.reshape(-1, 1) - 0.25) / 0.1443, 100
        Y = ((y - y.mean()) / y.std()).reshape(-1, 1)
    network = build_reservoir(
        n, 1, in_degree=1.0, input_scaling=0.5, bias_scaling=0.3, random_state=100 + seed
    )
    start = {"W_in": network.W_in, "W": network.W.toarray(), "bias": network.bias}
    return start, X, Y


def series_table(seeds: range) -> None:
    """One-dimensional series."""
    print(f"\nseries: test NMSE, {len(seeds)} seeds from 0")
    print(f"{'':40s}{'median':>10s}{'worst':>10s}{'|coef|':>9s}")
    methods: dict[str, dict[str, Any]] = {
        "random reservoir, ridge": {"n_iter": 0},
        "layer-wise alone, 8": {"credit": False},
        "ls_fit, 8 iterations": {},
        "ls_fit, 8, tau = .2": {"tau": 0.2},
        "ls_fit, 8, include_input": {"include_input": True},
        "ls_fit, 28 iterations": {"n_iter": 28},
    }
    for name in ("Mackey-Glass", "NARMA10"):
        data = [series_data(name, seed) for seed in seeds]
        for method, options in methods.items():
            errors, norms = [], []
            for start, X, Y in data:
                fitted = ls_fit(start, X[:2000], Y[:2000], washout=50, **options).params
                seen = options.get("include_input", False)
                mse = error(fitted, X[2000:], Y[2000:], "identity", 50, include_input=seen)
                errors.append(mse / variance(Y[2050:]))
                norms.append(np.linalg.norm(fitted["coef"]))
            median, worst, norm = np.median(errors), max(errors), np.median(norms)
            print(f"{name + ': ' + method:40s}{median:10.2e}{worst:10.2e}{norm:9.1f}")


def online_table(seeds: range, n_steps: int = 3000, window: int = 300, every: int = 50) -> None:
    """A teacher whose weights move along a line, and students that follow."""
    names = (
        "no update",
        "readout alone",
        "online step",
        "online step, step .3",
        "online step, credit",
        "credit_fit, 1",
    )
    found: dict[str, list[float]] = {name: [] for name in names}
    spent: dict[str, list[float]] = {name: [] for name in names}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        begin, end, start = (draw(rng, 8, 32, 4, 0.2) for _ in range(3))
        X = rng.standard_normal((n_steps, 8))
        Y = drifting(begin, end, X)
        fitted = ls_fit(start, X[:1000], Y[:1000], output="tanh").params
        for name in names:
            params, squares = fitted, []
            for now in range(1000, n_steps, every):
                back, ahead = slice(now - window, now), slice(now - window, now + every)
                tick = time.perf_counter()
                params = updated(name, params, X[back], Y[back])
                spent[name].append(time.perf_counter() - tick)
                squares.append(error(params, X[ahead], Y[ahead], "tanh", window))
            found[name].append(float(np.mean(squares)) / variance(Y[1000:]))
    print(f"\nonline: NMSE on the {every} steps after each update, {len(seeds)} seeds from 0")
    print(f"{'':26s}{'median':>9s}{'worst':>9s}{'ms/update':>11s}")
    for name in names:
        ms = 1e3 * np.median(spent[name])
        print(f"{name:26s}{np.median(found[name]):9.4f}{max(found[name]):9.4f}{ms:11.1f}")


def drifting(begin: Params, end: Params, X: np.ndarray) -> np.ndarray:
    """Outputs of a teacher that moves from some weights to others."""
    h, Y = np.zeros(len(begin["W"])), np.empty((len(X), len(begin["coef"])))
    for t, x in enumerate(X):
        s = t / len(X)
        now = {name: (1 - s) * begin[name] + s * end[name] for name in begin}
        h = np.tanh(now["W"] @ h + now["W_in"] @ x + now["bias"])
        Y[t] = np.tanh(now["coef"] @ h + now["intercept"])
    return Y


def updated(name: str, params: Params, X: np.ndarray, Y: np.ndarray) -> Params:
    """Weights after one update on a window."""
    options: dict[str, Any] = {"output": "tanh", "washout": 20}
    if name == "readout alone":
        return ls_fit(params, X, Y, n_iter=0, **options).params
    if name == "credit_fit, 1":
        return credit_fit(params, X, Y, n_iter=1, **options).params
    if name.startswith("online"):
        options |= {"step": 0.3} if ".3" in name else {"credit": "credit" in name}
        return ls_online_step(params, X, Y, **options).params
    return params


def time_table(n_rounds: int) -> None:
    """Time of the teacher-student fit, per iteration."""
    start, X, Y, _, _ = teacher_student(0, scale=0.065, inputs="uniform")
    jobs: dict[str, dict[str, Any]] = {
        "random reservoir, ridge": {"n_iter": 0},
        "bay2017, 8": {"method": "bay2017"},
        "layer-wise alone, 8": {"credit": False},
        "ls_fit, 8": {},
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    counts = {}
    for _ in range(n_rounds + 1):
        for name, options in jobs.items():
            tick = time.perf_counter()
            counts[name] = ls_fit(start, X, Y, output="tanh", **options).n_accepted
            seconds[name].append(time.perf_counter() - tick)
    print(f"\ntime: medians of {n_rounds} rounds, hidden 128, 64 in and out, 2000 steps")
    print(machine())
    print(f"{'':26s}{'ms':>9s}{'iterations':>12s}{'ms each':>9s}")
    for name, values in seconds.items():
        ms, count = 1e3 * np.median(values[1:]), counts[name]
        print(f"{name:26s}{ms:9.0f}{count:12d}{ms / max(count, 1):9.0f}")


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    tables = ("teacher", "grid", "series", "online", "time")
    parser.add_argument("table", nargs="*", help=", ".join(tables))
    parser.add_argument("--quick", action="store_true", help="fewer seeds")
    options = parser.parse_args()
    unknown = sorted(set(options.table) - set(tables))
    if unknown:
        parser.error(f"unknown tables {unknown}; known: {', '.join(tables)}")
    seeds = range(3 if options.quick else 10)
    jobs: dict[str, Callable[[], None]] = {
        "teacher": lambda: teacher_table(seeds),
        "grid": lambda: grid_table(1 if options.quick else 5),
        "series": lambda: series_table(seeds),
        "online": lambda: online_table(seeds),
        "time": lambda: time_table(3 if options.quick else 9),
    }
    with threadpool_limits(1):
        for name in options.table or tables:
            jobs[name]()


if __name__ == "__main__":
    main()
