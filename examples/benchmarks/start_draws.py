"""Least-squares starts from two drawn reservoirs at three input scalings, beside one and an ESN.

Usage: ``python examples/benchmarks/start_draws.py [--quick] [--seeds N] [--data N] [GROUP ...]``,
groups: prediction, others, labels, columns, large, cells. Prints a table for each group. Half an
hour on one core; ``--quick``: two seeds of networks, two minutes.

A start is `reservoir.training.starts.start`, which is `RNNRegressor(max_iter=0)` without the trial
of closed loops. "one" draws one reservoir with the input weights that units of variance 1 would
ask for: the start of earlier versions. "chosen" is the start as it comes. Both are computed in
turns, with the numba engine, and their seconds are of processor time.

Errors are NRMSE on rows behind those learned from; of each cell the median, the worst seed, and the
seconds. "ESN" is an `ESNRegressor` of the same size whose readout sees the same columns, the states
alone (``leak_rate=1.0, alpha=1e-6, include_input=False``), on raw or standardised inputs, whichever
is better; "as it comes" is ``ESNRegressor(n_units)``. "behind" counts the starts whose error is
larger than that of the ESN with the same seed.

- prediction: seven tasks, 1500 rows, 32 and 64 units.
- others: fourteen tasks by which nothing was chosen, among them short series and several columns.
- labels: four tasks with a label at each step, softmax; the log loss and the accuracy.
- columns: 64 input columns, most of them without effect or copies of each other.
- large: NARMA, 256 and 512 units.
- cells: GRU and LSTM, 32 units, three tasks.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from _timing import machine
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor
from reservoir.datasets import (
    henon,
    load_co2,
    load_el_nino,
    load_sunspots,
    lorenz,
    lorenz96,
    mackey_glass,
    multiple_superposed_oscillators,
    narma,
    roessler,
    sine_square,
    subsequence_detection,
    weather_and_load,
)
from reservoir.training.bptt import Network, predict
from reservoir.training.cells import CELLS, SimpleCell
from reservoir.training.loop_engines import using
from reservoir.training.starts import start

ONE: dict[str, Any] = {"n_draws": 1, "input_scalings": (1.0,)}


class Task(NamedTuple):
    """Inputs, targets of shape (n_rows, n_outputs), and how many rows to learn from."""

    X: Any
    Y: Any
    n: int


def task(X: Any, y: Any, n: int) -> Task:
    """Return a task from arrays of any shape."""
    return Task(np.reshape(X, (len(X), -1)), np.reshape(y, (len(y), -1)), n)


def ahead(series: Any, n: int, steps: int = 1) -> Task:
    """Return the task to predict a series from its present row."""
    return task(series[:-steps], series[steps:], n)


def prediction(seed: int, n: int = 1500) -> dict[str, Task]:
    """Tasks by which the start was chosen."""
    rows = n + 500
    series = mackey_glass(rows + 84, random_state=seed) + 10
    flow = lorenz(rows, random_state=seed)
    weather, load, _ = weather_and_load(rows + 1, random_state=seed)
    both = np.column_stack([weather[1:, 3:], load[:rows]])
    el_nino = load_el_nino()
    return {
        "narma": task(*narma(rows, random_state=seed), n),
        "Mackey-Glass + 10, next": ahead(series[: rows + 1], n),
        "Mackey-Glass + 10, 84 on": ahead(series, n, 84),
        "Lorenz, z from x": task(flow[:, :1], flow[:, 2], n),
        "load, next day": ahead(load, n),
        "load from it and weather": task(both, load[1:], n),
        "El Nino, next month": ahead(el_nino, len(el_nino) - 201),
    }


def others(seed: int) -> dict[str, Task]:
    """Tasks by which nothing was chosen."""
    rng = np.random.default_rng(seed)
    flow = roessler(1500, random_state=seed)
    u = rng.uniform(-0.8, 0.8, (1500, 1))
    filtered = np.zeros(800)
    drive = rng.uniform(-1, 1, 800)
    for t in range(2, 800):
        recent = 0.6 * filtered[t - 1] - 0.2 * filtered[t - 2]
        filtered[t] = np.tanh(recent + drive[t] ** 2 - 0.5 * drive[t - 1] * drive[t - 2])
    wave = np.sin(0.3 * np.arange(1300)) + 0.3 * rng.standard_normal(1300)
    walk = np.zeros(1300)
    for t in range(1, 1300):
        walk[t] = 0.95 * walk[t - 1] + rng.standard_normal()
    bilinear = np.zeros(1300)
    noise = rng.standard_normal(1300)
    for t in range(1, 1300):
        bilinear[t] = 0.4 * bilinear[t - 1] + 0.5 * bilinear[t - 1] * noise[t - 1] + noise[t]
    sunspots, co2 = load_sunspots(), load_co2()
    return {
        "Henon": ahead(henon(1300, random_state=seed)[:, :1], 1000),
        "Roessler, z from x, y": task(flow[:, :2], flow[:, 2], 1000),
        "Lorenz 96, next": ahead(lorenz96(1300, random_state=seed), 1000),
        "oscillators": ahead(multiple_superposed_oscillators(1300), 1000),
        "recall of 5 back": task(u[5:], u[:-5], 1000),
        "product of 1, 2 back": task(u[2:], u[1:-1] * u[:-2], 1000),
        "nonlinear filter, 350": task(drive, filtered, 350),
        "noisy wave": ahead(wave, 1000),
        "AR(1)": ahead(walk, 1000),
        "bilinear": ahead(bilinear, 1000),
        "sunspots": ahead(sunspots, len(sunspots) - 200),
        "CO2, differences": ahead(np.diff(co2, axis=0), len(co2) - 200),
        "narma, 300 rows": task(*narma(800, random_state=seed), 300),
        "narma5": task(*narma(1500, order=5, random_state=seed), 1000),
    }


def columns(seed: int) -> dict[str, Task]:
    """Tasks with 64 columns."""
    rng = np.random.default_rng(seed)
    u, y = narma(2000, random_state=seed)
    u = u.reshape(-1, 1)
    noise = rng.standard_normal((2000, 63))
    system = lorenz96(2000, n_features=64, random_state=seed)
    return {
        "narma, 63 of noise": task(np.hstack([u, noise]), y, 1500),
        "narma, 64 noisy copies": task(u + 0.1 * rng.standard_normal((2000, 64)), y, 1500),
        "Lorenz 96, x0 next": task(system[:-1], system[1:, 0], 1500),
        "the same, 300 rows": task(system[:801], system[1:802, 0], 300),
    }


def labels(seed: int) -> dict[str, Task]:
    """Tasks with a label at each step; targets are one-hot."""
    rng = np.random.default_rng(seed)
    n, rows = 1500, 2500
    state = np.zeros(rows, dtype=int)
    x = np.zeros(rows)
    regimes = [(0.9, 0.0, 0.3), (-0.7, 0.0, 0.5), (0.5, -0.6, 0.4)]
    for t in range(rows):
        state[t] = rng.integers(3) if rng.random() < 0.02 else state[t - 1]
        first, second, spread = regimes[state[t]]
        x[t] = first * x[t - 1] + second * x[t - 2] + spread * rng.standard_normal()
    level = np.zeros(rows, dtype=int)
    for t in range(rows):
        level[t] = rng.integers(4) if rng.random() < 0.03 else level[t - 1]
    waves, shape = sine_square(rows, random_state=seed)
    motif, found = subsequence_detection(rows, mean_spacing=20, random_state=seed)
    return {
        "regimes of AR": task(x, np.eye(3)[state], n),
        "noisy levels": task(level + 1.2 * rng.standard_normal(rows), np.eye(4)[level], n),
        "sine or square": task(
            waves + 0.4 * rng.standard_normal(waves.shape), np.eye(2)[shape.astype(int)], n
        ),
        "subsequence": task(motif, np.eye(2)[found.astype(int)], n),
    }


def large(seed: int) -> dict[str, Task]:
    """NARMA."""
    return {"narma": task(*narma(4000, random_state=seed), 3000)}


def cells(seed: int) -> dict[str, Task]:
    """Three tasks."""
    known = prediction(seed)
    names = ("narma", "Mackey-Glass + 10, 84 on", "Lorenz, z from x")
    return {name: known[name] for name in names}


class Group(NamedTuple):
    """Tasks, the cells and numbers of units that they are tried with, and seeds of the network."""

    tasks: Callable[[int], dict[str, Task]]
    cells: tuple[str, ...] = ("rnn",)
    units: tuple[int, ...] = (32, 64)
    softmax: bool = False
    fewer_seeds: int = 1


GROUPS = {
    "prediction": Group(prediction),
    "others": Group(others),
    "labels": Group(labels, softmax=True, fewer_seeds=2),
    "columns": Group(columns, units=(32,), fewer_seeds=2),
    "large": Group(large, units=(256, 512), fewer_seeds=5),
    "cells": Group(cells, cells=("gru", "lstm"), units=(32,), fewer_seeds=4),
}


def outcome(network: Network, params: Any, task: Task) -> tuple[float, float]:
    """Return NRMSE, or log loss and error rate, on the rows behind those learned from."""
    outputs = predict(network, params, task.X[:, None], None)[0].reshape(len(task.X), -1)
    found, true = outputs[task.n :], task.Y[task.n :]
    if network.output == "softmax":
        wrong = float(np.mean(found.argmax(axis=1) != true.argmax(axis=1)))
        return float(-np.mean(np.log(np.maximum((found * true).sum(axis=1), 1e-12)))), wrong
    return float(np.sqrt(np.mean((found - true) ** 2 / true.var(axis=0)))), np.nan


def begin(network: Network, task: Task, seed: int, options: dict[str, Any]) -> tuple[float, ...]:
    """Return the outcomes of a start, and its seconds of processor time."""
    rows = slice(task.n)
    tick = time.process_time()
    params = start(network, [task.X[rows]], [task.Y[rows]], random_state=seed, **options).params
    seconds = time.process_time() - tick
    return *outcome(network, params, task), seconds


def networks(task: Task, units: int, seed: int) -> tuple[float, float]:
    """Return NRMSE of an echo state network at equal settings, and of one as it comes."""
    rows = slice(task.n)
    spread = task.X[rows].std(axis=0)
    scaled = (task.X - task.X[rows].mean(axis=0)) / np.where(spread > 0, spread, 1)

    def error(X: Any, **options: Any) -> float:
        esn = ESNRegressor(units, random_state=seed, **options).fit(X[rows], task.Y[rows])
        found, true = esn.predict(X[task.n :]), task.Y[task.n :]
        found = np.reshape(found, true.shape)
        return float(np.sqrt(np.mean((found - true) ** 2 / true.var(axis=0))))

    equal = {"leak_rate": 1.0, "alpha": 1e-6, "include_input": False}
    return min(error(X, **equal) for X in (task.X, scaled)), error(scaled)


def rows_of(name: str, n_seeds: int, n_data: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield cells of a table: starts as "one" and as they come, then echo state networks."""
    group = GROUPS[name]
    seeds = range(max(2, n_seeds // group.fewer_seeds))
    for task_name in group.tasks(0):
        tasks = [group.tasks(d)[task_name] for d in range(n_data)]
        for cell in group.cells:
            for units in group.units:
                found = []
                for one in tasks:
                    shape = one.X.shape[1], one.Y.shape[1]
                    loss = ("softmax", "cross_entropy") if group.softmax else ("identity", "mse")
                    made = SimpleCell(units) if cell == "rnn" else CELLS[cell](units)
                    network = Network(made, *shape, *loss)
                    for seed in seeds:
                        pair = [begin(network, one, seed, options) for options in (ONE, {})]
                        esn = (np.nan, np.nan)
                        if not group.softmax and cell == "rnn":
                            esn = networks(one, units, seed)
                        found.append([*pair[0], *pair[1], *esn])
                label = task_name if len(group.cells) == 1 else f"{task_name}, {cell}"
                yield f"{label:26s}{units:4d}", np.array(found)


def show(name: str, n_seeds: int, n_data: int) -> None:
    """Print the table of a group."""
    labelled = GROUPS[name].softmax
    measure = "log loss and share of wrong labels" if labelled else "NRMSE"
    print(f"\n{name}: {measure} of starts, median and worst; seconds")
    tail = "" if labelled else "      ESN  as it comes   behind one / chosen, of"
    second = "  wrong" if labelled else ""
    heads = 2 * f"   median   worst{second}      s"
    print(f"{'':30s}{'one':>14s}{'chosen':>{24 + 7 * labelled}s}\n{'task':26s}unit{heads}{tail}")
    ratios, behind, far, total = [], np.zeros(2, int), np.zeros(2, int), 0
    for label, found in rows_of(name, n_seeds, n_data):
        medians, most = np.median(found, axis=0), found.max(axis=0)
        text = label
        for k in (0, 3):
            text += f" {medians[k]:8.4f}{most[k]:8.4f}"
            text += f"{medians[k + 1]:7.3f}" if labelled else ""
            text += f"{medians[k + 2]:7.2f}"
        ratios.append([medians[3] / medians[0], most[3] / most[0], medians[5] / medians[2]])
        if np.isfinite(medians[6]):
            worse = found[:, [0, 3]] / found[:, 6:7]
            late = (worse > 1).sum(axis=0)
            behind, far, total = behind + late, far + (worse > 1.05).sum(axis=0), total + len(found)
            text += f" {medians[6]:8.4f} {medians[7]:10.4f}"
            text += f"   {late[0]:10d} / {late[1]:6d}, {len(found)}"
        print(text, flush=True)
    means = np.exp(np.mean(np.log(ratios), axis=0))
    text = "geometric means of chosen / one: median {:.2f}, worst {:.2f}, seconds {:.2f}"
    print(text.format(*means))
    if total:
        print(
            f"behind their ESN, of {total}: one {behind[0]}, chosen {behind[1]}; by more than 5 %: "
            f"one {far[0]}, chosen {far[1]}",
            flush=True,
        )


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("group", nargs="*", help=", ".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="two seeds of networks")
    parser.add_argument("--seeds", type=int, default=20, help="of networks")
    parser.add_argument("--data", type=int, default=1, help="number of seeds of the data")
    options = parser.parse_args()
    unknown = sorted(set(options.group) - set(GROUPS))
    if unknown:
        parser.error(f"unknown groups {unknown}; known: {', '.join(GROUPS)}")
    warnings.simplefilter("ignore")  # echo state networks warn about raw inputs
    print(machine())
    with threadpool_limits(1), using("numba"):
        for name in options.group or GROUPS:
            show(name, 2 if options.quick else options.seeds, options.data)


if __name__ == "__main__":
    main()
