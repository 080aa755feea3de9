"""What training gains from a start: solvers beside each other, from three starts.

Usage: ``python examples/benchmarks/solvers.py [--quick] [--seeds N] [--units N ...] [TASK ...]``,
tasks: narma, mackey, mackey84, lorenz, load, weather, nino, and with labels waves, subsequence,
regimes, spikes; or "why". Prints a table for each task and size, and the ratios by which the solver
"auto" was chosen. Half an hour on one core; ``--quick``: two seeds, 32 units, two minutes. "why"
prints what Adam makes of the start with one setting changed at a time, for three tasks and 32
units: the median test error over that of the start, and how often the start was the best.

Networks learn from 1500 rows (El Nino: all but the last 200 months; spikes: 200 sequences with one
label each) and are tested on the 500 rows that follow (with labels 2000; 500 sequences), from the
state in which training ends; X and y are standardised. The error is the NRMSE, for labels the log
loss beside the share of wrong labels. Medians over the seeds, the worst, and seconds of processor
time without the start. Seeds begin at 10: the settings were chosen by the first ones.

- starts: "one draw" is the least-squares start from one reservoir with full input weights (that of
  earlier versions), "start" the one as it comes, "glorot" random weights.
- adam: 200 epochs as RNNRegressor trains with ``solver="adam"``: rate 1e-3, 50 steps per update,
  patience 10. lbfgs, least_squares: 200 iterations, patience 10. An iteration costs little more
  than an epoch. variable_projection: the same, patience 20; "all rows": none are held out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from _timing import machine
from threadpoolctl import threadpool_limits

from reservoir.datasets import (
    load_el_nino,
    lorenz,
    mackey_glass,
    narma,
    sine_square,
    spike_patterns,
    subsequence_detection,
    weather_and_load,
)
from reservoir.training.bptt import Network, forward
from reservoir.training.cells import SimpleCell
from reservoir.training.initializers import initialize
from reservoir.training.loop_engines import using
from reservoir.training.optimizers import adam
from reservoir.training.params import Params
from reservoir.training.solvers import train_lbfgs, train_least_squares
from reservoir.training.starts import start
from reservoir.training.trainer import Data, train
from reservoir.training.variable_projection import train_variable_projection

N_FIT, N_TEST, N_LABELS = 1500, 500, 2000
INITS = ("one draw", "start", "glorot")
ONE: dict[str, Any] = {"n_draws": 1, "input_scalings": (1.0,)}
LABELLED = ("waves", "subsequence", "regimes", "spikes")


@dataclass(frozen=True)
class Task:
    """A network's shape, and data to fit and to test."""

    network: Network
    fit: Data
    test: Data

    def errors(self, params: Params) -> tuple[float, float]:
        """Return the NRMSE, or the log loss and the share of wrong labels."""
        batch, state = self.test.batch(np.arange(len(self.test)))
        scores = forward(self.network, params, batch, state)[2]
        if self.network.loss == "mse":
            error = float(np.sqrt(((scores - batch.targets) ** 2).mean() / batch.targets.var()))
            return error, error
        scores -= scores.max(axis=1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        wrong = scores.argmax(axis=1) != batch.targets.argmax(axis=1)
        return float(-(log_p * batch.targets).sum(axis=1).mean()), float(wrong.mean())


def regimes(n: int, seed: int) -> tuple[Any, Any]:
    """Three autoregressive regimes with noise; the task is to name the present one."""
    rng, coefs = np.random.default_rng(seed), [(1.2, -0.7), (0.3, 0.3), (-0.6, -0.4)]
    x, y, now = np.zeros(n), np.zeros(n, int), 0
    for t in range(2, n):
        if rng.random() < 1 / 40:
            now = (now + 1 + rng.integers(2)) % 3
        x[t] = coefs[now][0] * x[t - 1] + coefs[now][1] * x[t - 2] + 0.5 * rng.standard_normal()
        y[t] = now
    return x + 0.2 * rng.standard_normal(n), y


@cache
def recordings(seed: int) -> dict[str, tuple[Any, Any, int]]:
    """Inputs, targets, and how many rows to learn from."""
    rows, n = N_FIT + N_TEST, N_FIT
    series = mackey_glass(rows + 84, random_state=seed).ravel()
    flow = lorenz(rows, random_state=seed)
    weather, load, _ = weather_and_load(rows + 1, random_state=seed)
    nino = load_el_nino().ravel()
    noise = 0.4 * np.random.default_rng(seed).standard_normal((n + N_LABELS, 1))
    waves, kind = sine_square(n + N_LABELS, random_state=seed)
    words, found = subsequence_detection(n + N_LABELS, mean_spacing=20, random_state=seed)
    return {
        "narma": (*narma(rows, random_state=seed), n),
        "mackey": (series[:rows], series[1 : rows + 1], n),
        "mackey84": (series[:rows], series[84 : rows + 84], n),
        "lorenz": (flow[:, 0], flow[:, 2], n),
        "load": (load[:rows], load[1:], n),
        "weather": (np.hstack([weather[1:, 3:], load[:rows, None]]), load[1:], n),
        "nino": (nino[:-1], nino[1:], len(nino) - 200),
        "waves": (waves.reshape(-1, 1) + noise, kind, n),
        "subsequence": (words, found, n),
        "regimes": (*regimes(n + N_LABELS, seed), n),
    }


TASKS = ("narma", "mackey", "mackey84", "lorenz", "load", "weather", "nino", *LABELLED)


def task_of(name: str, n_units: int, seed: int) -> Task:
    """Return a task, standardised by the rows to learn from."""
    cell = SimpleCell(n_units)
    if name == "spikes":
        X, y = spike_patterns(
            700, n_templates=4, n_steps=50, n_spikes=4, jitter=2, random_state=seed
        )
        X, Y = (X - X[:200].mean()) / X[:200].std(), np.eye(4)[y]
        parts = (Data(list(X[s]), list(Y[s]), last=True) for s in (slice(200), slice(200, 700)))
        return Task(Network(cell, X.shape[2], 4, "softmax", "cross_entropy"), *parts)
    X, y, n = recordings(seed)[name]
    X = np.asarray(X, float).reshape(len(y), -1)
    spread = X[:n].std(axis=0)
    X = (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1)
    if name in LABELLED:
        Y = np.eye(int(np.max(y)) + 1)[np.ravel(y).astype(int)]
        network = Network(cell, X.shape[1], Y.shape[1], "softmax", "cross_entropy")
    else:
        Y = np.reshape(y, (-1, 1)).astype(float)
        Y = (Y - Y[:n].mean()) / Y[:n].std()
        network = Network(cell, X.shape[1], 1)
    rows, skip = np.arange(len(X)), min(n // 10, 100)
    learned = Data([X[:n]], [Y[:n]], [(rows[:n] >= skip) * 1.0])
    return Task(network, learned, Data([X], [Y], [(rows >= n) * 1.0]))


def begin(task: Task, init: str, seed: int) -> tuple[Params, float]:
    """Return weights to start from, and the seconds that they took."""
    tick = time.process_time()
    if init == "glorot":
        params = initialize(task.network.shapes(), init, random_state=seed)
    else:
        data = task.fit
        params = start(
            task.network,
            data.inputs,
            data.targets,
            weights=data.weights,
            target="last" if data.last else "step",
            random_state=seed,
            **(ONE if init == "one draw" else {}),
        ).params
    return params, time.process_time() - tick


def by_adam(task: Task, params: Params, n: int) -> Params:
    """Train as the estimators do with this solver."""
    options: dict[str, Any] = {"max_iter": n, "random_state": 0}
    options["truncation"] = None if task.fit.last else 50
    return train(task.network, params, task.fit, adam(1e-3), **options).params


def by_lbfgs(task: Task, params: Params, n: int) -> Params:
    """Train all weights by L-BFGS."""
    return train_lbfgs(task.network, params, task.fit, max_iter=n).params


def by_credit_steps(task: Task, params: Params, n: int) -> Params:
    """Train by the steps of `credit_fit`."""
    return train_least_squares(task.network, params, task.fit, max_iter=n).params


def by_projection(task: Task, params: Params, n: int) -> Params:
    """Train as the estimators do with this solver."""
    options: dict[str, Any] = {"max_iter": n, "random_state": 0}
    return train_variable_projection(task.network, params, task.fit, **options).params


def to_the_end(task: Task, params: Params, n: int) -> Params:
    """Train by the same solver on all rows, none of which are held out."""
    options: dict[str, Any] = {"max_iter": n, "n_iter_no_change": n, "hold_out": False}
    return train_variable_projection(task.network, params, task.fit, **options).params


PROJECTED = "variable_projection"
SOLVERS: dict[str, Callable[[Task, Params, int], Params]] = {
    "none": lambda task, params, n: params,
    "adam": by_adam,
    "lbfgs": by_lbfgs,
    "least_squares": by_credit_steps,
    f"{PROJECTED}, all rows": to_the_end,
    PROJECTED: by_projection,
}
FOR_LABELS = ("none", "adam", "lbfgs")


WHY: dict[str, dict[str, Any]] = {
    "as it is": {},
    "whole sequences": {"truncation": None},
    "rate 1e-2": {"rate": 1e-2},
    "rate 1e-4": {"rate": 1e-4},
    "patience 50": {"n_iter_no_change": 50},
    "patience 200": {"n_iter_no_change": 200},
    "no clipping": {"clip_norm": None},
    "readout refitted": {"refit": True},
    "whole sequences, 1e-2": {"truncation": None, "rate": 1e-2},
}


def why(seeds: range) -> None:
    """Print what Adam makes of a start with one setting changed at a time."""
    print(f"{'Adam from the start, over the start':36s}" + "".join(f"{n:>16s}" for n in WHY_TASKS))
    begun = {}
    for name in WHY_TASKS:
        for seed in seeds:
            task = task_of(name, 32, seed)
            begun[name, seed] = task, begin(task, "start", seed)[0]
    for words, changes in WHY.items():
        cells = ""
        for name in WHY_TASKS:
            ratios, kept = [], 0
            for seed in seeds:
                task, params = begun[name, seed]
                options = {"max_iter": 200, "truncation": 50, "random_state": 0, **changes}
                rate = options.pop("rate", 1e-3)
                done = train(task.network, params, task.fit, adam(rate), **options)
                ratios.append(task.errors(done.params)[0] / task.errors(params)[0])
                kept += done.best_epoch == 0
            cells += f"{np.median(ratios):8.3f}{kept:3d} of {len(seeds)}"
        print(f"{words:36s}{cells}", flush=True)


WHY_TASKS = ("narma", "lorenz", "load")


def cell_of(name: str, n_units: int, seeds: range, n: int) -> dict[tuple[str, str], Any]:
    """Return medians of errors, error rates and seconds of all starts and solvers; print them."""
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    labelled = name in LABELLED
    for seed in seeds:
        task = task_of(name, n_units, seed)
        for init in INITS:
            params, begun = begin(task, init, seed)
            for solver, solve in SOLVERS.items():
                if labelled and solver not in FOR_LABELS:
                    continue
                tick = time.process_time()
                trained = solve(task, params, n)
                seconds = begun if solver == "none" else time.process_time() - tick
                found.setdefault((init, solver), []).append((*task.errors(trained), seconds))
    print(f"\n{name}, {n_units} units, {len(seeds)} seeds")
    second = "wrong" if labelled else ""
    print(f"{'':10s}{'solver':30s}{'median':>9s}{'worst':>9s}{second:>9s}{'s':>7s}")
    for (init, solver), runs in found.items():
        errors, rates, spent = np.array(runs).T
        rate = f"{np.median(rates):9.4f}" if second else 9 * " "
        print(
            f"{init:10s}{solver:30s}{np.median(errors):9.4f}{errors.max():9.4f}{rate}"
            f"{np.median(spent):7.2f}",
            flush=True,
        )
    return {key: np.median(np.array(runs), axis=0) for key, runs in found.items()}


def ratios(medians: dict[tuple[str, int], dict[tuple[str, str], Any]]) -> None:
    """Print what "auto" was chosen by."""
    best = ("start", PROJECTED)
    others = [("start", "adam"), ("start", "none"), ("glorot", PROJECTED), ("glorot", "adam")]
    print(f"\nmedian error from the start by {PROJECTED}, over that of")
    print(f"{'':16s}" + "".join(f"{', '.join(key):>28s}" for key in others))
    for (name, n_units), found in medians.items():
        if best in found:
            cells = "".join(f"{found[best][0] / found[key][0]:28.3f}" for key in others)
            print(f"{name:12s}{n_units:4d}{cells}")


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("task", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--quick", action="store_true", help="two seeds, 32 units, 50 iterations")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--units", type=int, nargs="*", default=[32, 64])
    options = parser.parse_args()
    unknown = sorted(set(options.task) - {*TASKS, "why"})
    if unknown:
        parser.error(f"unknown tasks {unknown}; known: {', '.join(TASKS)}")
    units, n = ([32], 50) if options.quick else (options.units, 200)
    seeds = range(10, 12 if options.quick else 10 + options.seeds)
    print(machine())
    medians = {}
    with threadpool_limits(1), using("numba"):
        task = task_of("nino", 4, 0)  # loads the kernels
        by_projection(task, begin(task, "start", 0)[0], 2)
        if "why" in options.task:
            return why(seeds)
        for name in options.task or TASKS:
            for n_units in units:
                medians[name, n_units] = cell_of(name, n_units, seeds, n)
    return ratios(medians)


if __name__ == "__main__":
    main()
