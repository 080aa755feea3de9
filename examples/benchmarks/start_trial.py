"""One target per sequence: what each start comes to, and the one that init="auto" chooses.

Usage: ``python examples/benchmarks/start_trial.py [--task NAME ...] [--seeds N] [--rate R]
[--jobs N]`` (by default all tasks, 3 seeds, the default learning rate) prints a line for each task:
the mean score on 500 new sequences (accuracy of labels, R^2 of numbers) of networks of 64 units
that are trained as they come but for `init`; how often "auto" chose which start; and seconds of
processor time, the trial included, means over seeds from 0.

Numbers: the adding problem; the value of the last of three marked rows; the coefficient of an
autoregression; the frequency of a sine in noise. Labels: temporal order; sine, square or triangle
in noise; patients by their visits, two cohorts; gestures. The number behind a name is how many
sequences there are to learn from.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from small_sets import cohort
from threadpoolctl import threadpool_limits

from reservoir import RNNClassifier, RNNRegressor
from reservoir.datasets import adding, gestures, patient_visits, temporal_order

INITS = ("auto", "least_squares", "esn", "orthogonal")
N_TEST = 500

Drawn = tuple[list[np.ndarray], np.ndarray]


def last_marked(n: int, seed: int) -> Drawn:
    """Say the value of the last of three marked rows."""
    rng = np.random.default_rng(seed)
    X, y = [], np.empty(n)
    for k, length in enumerate(rng.integers(20, 40, n)):
        values, marks = rng.uniform(-1, 1, length), np.zeros(length)
        where = rng.choice(length, 3, replace=False)
        marks[where] = 1
        X.append(np.column_stack([values, marks]))
        y[k] = values[where.max()]
    return X, y


def autoregressions(n: int, seed: int) -> Drawn:
    """Say how much of a value is left in the next one."""
    rng = np.random.default_rng(seed)
    y, X = rng.uniform(-0.9, 0.9, n), []
    for left, length in zip(y, rng.integers(40, 80, n), strict=True):
        rows = rng.normal(size=length)
        for t in range(1, length):
            rows[t] += left * rows[t - 1]
        X.append(rows[:, None])
    return X, y


def frequencies(n: int, seed: int) -> Drawn:
    """Say the frequency of a sine in noise, in tenths of radians per step from .275."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(0.05, 0.5, n)
    waves = np.sin(y[:, None] * np.arange(60) + rng.uniform(0, 2 * np.pi, (n, 1)))
    return list((waves + 0.3 * rng.normal(size=waves.shape))[:, :, None]), 10 * (y - 0.275)


def shapes(n: int, seed: int) -> Drawn:
    """Say whether a wave is a sine, a square or a triangle."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(0, 3, n), []
    for label, length in zip(y, rng.integers(30, 60, n), strict=True):
        phase = np.arange(length) * rng.uniform(0.2, 0.4) + rng.uniform(0, 2 * np.pi)
        sine = np.sin(phase)
        wave = (sine, np.sign(sine), 2 / np.pi * np.arcsin(sine))[label]
        X.append((wave + 0.4 * rng.normal(size=length))[:, None])
    return X, y


TASKS: dict[str, tuple[int, Callable[[int, int], Any]]] = {
    "adding, 20 steps, 600": (600, lambda n, seed: adding(n, length=20, random_state=seed)),
    "adding, 50 steps, 1000": (1000, lambda n, seed: adding(n, length=50, random_state=seed)),
    "last marked value, 400": (400, last_marked),
    "autoregression, 80": (80, autoregressions),
    "autoregression, 300": (300, autoregressions),
    "frequency, 300": (300, frequencies),
    "temporal order, 20 steps, 600": (
        600,
        lambda n, seed: temporal_order(n, length=20, random_state=seed),
    ),
    "temporal order, 50 steps, 1000": (
        1000,
        lambda n, seed: temporal_order(n, length=50, random_state=seed),
    ),
    "shapes of waves, 200": (200, shapes),
    "burden, 140": (140, lambda n, seed: cohort(n, seed)[:2]),
    "burden, 600": (600, lambda n, seed: cohort(n, seed)[:2]),
    "visits, 140": (140, lambda n, seed: patient_visits(n, random_state=seed)),
    "visits, 600": (600, lambda n, seed: patient_visits(n, random_state=seed)),
    "gestures, 300": (300, lambda n, seed: gestures(n, random_state=seed)),
}
LABELS = ("temporal", "shapes", "burden", "visits", "gestures")


def run(name: str, init: str, seed: int, rate: float) -> tuple[float, str, float]:
    """Train once; return the score, the start that was used, and the seconds."""
    n, draw = TASKS[name]
    X, y = draw(n + N_TEST, seed)
    rows = np.concatenate([np.asarray(part) for part in X[:n]])
    X = [(np.asarray(part) - rows.mean(axis=0)) / rows.std(axis=0) for part in X]
    kind = RNNClassifier if name.startswith(LABELS) else RNNRegressor
    model = kind(64, target="last", init=init, learning_rate_init=rate, random_state=seed)
    with threadpool_limits(1):
        begun = time.process_time()
        model.fit(X[:n], y[:n])
        seconds = time.process_time() - begun
    return model.score(X[n:], y[n:]), model.init_, seconds


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--task", nargs="+", default=[], help="parts of names of tasks")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    print(f"{'':32s}" + "".join(f"{init:>16s}" for init in INITS) + "  chosen")
    means, seconds = [], []
    for name in TASKS:
        if args.task and not any(text in name for text in args.task):
            continue
        todo = [(name, init, seed, args.rate) for init in INITS for seed in range(args.seeds)]
        done = Parallel(n_jobs=args.jobs)(delayed(run)(*one) for one in todo)
        found = [done[i : i + args.seeds] for i in range(0, len(done), args.seeds)]
        means.append([np.mean([score for score, _, _ in runs]) for runs in found])
        seconds.append([np.mean([time for _, _, time in runs]) for runs in found])
        chosen = ", ".join(
            f"{init} {n}" for init, n in Counter(init for _, init, _ in found[0]).most_common()
        )
        print(f"{name:32s}" + "".join(f"{mean:16.3f}" for mean in means[-1]) + f"  {chosen}")
        times = "".join(f"{time:14.1f} s" for time in seconds[-1])
        print(f"{'  processor time':32s}{times}", flush=True)
    best = np.max(np.array(means)[:, 1:], axis=1, keepdims=True)
    behind = np.mean(best - np.clip(means, -1, 1), axis=0)
    print(f"{'behind the best start, mean':32s}" + "".join(f"{gap:16.3f}" for gap in behind))
    worst = np.max(best - np.clip(means, -1, 1), axis=0)
    print(f"{'at worst':32s}" + "".join(f"{gap:16.3f}" for gap in worst))
    total = np.sum(seconds, axis=0)
    print(f"{'processor time of all tasks':32s}" + "".join(f"{t:14.1f} s" for t in total))


if __name__ == "__main__":
    main()
