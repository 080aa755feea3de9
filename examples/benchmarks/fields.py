"""Forecasts of coupled variables: one network per block of places, one network of all, and rivals.

Usage: ``python examples/benchmarks/fields.py {lorenz96,waves,long_waves,memory} [--seeds N]``.

Lorenz-96 on 40 places, the Kuramoto-Sivashinsky equation on rings of 22 and of 200; after the
training rows, 8 starts choose settings, and 20 later ones are reported. Each start has 100 rows of
context. A forecast is valid until the root mean square error over places exceeds half a standard
deviation of the field, in Lyapunov times of exponents that are measured here. The networks of
blocks and the network of all places are searched alike: the same draws of settings, each with its
penalty from the closed loops of its own rows, scored on the 8 starts. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from reservoir import ESNRegressor, LocalForecaster, NVARRegressor
from reservoir.datasets import kuramoto_sivashinsky, lorenz96
from reservoir.metrics import valid_time

CONTEXT, N_CHOOSING, N_REPORTED = 100, 8, 20
N_DRAWS = 10


class Task(NamedTuple):
    """A field, and how it is cut into blocks."""

    generate: Any
    options: dict[str, Any]
    dt: float
    n_train: int
    longest: float  # Lyapunov times
    block: int
    halo: int
    n_small: int  # units of the networks of blocks in the search
    n_units: int
    n_single: int  # units of the network of all places: about the same seconds a fit
    degree: int


TASKS = {
    "lorenz96": Task(lorenz96, {}, 0.05, 4000, 10.0, 2, 3, 200, 600, 2000, 4),
    "waves": Task(kuramoto_sivashinsky, {}, 0.25, 10_000, 14.0, 8, 8, 200, 600, 1000, 2),
    "long_waves": Task(
        kuramoto_sivashinsky,
        {"length": 200.0, "n_points": 512},
        0.25,
        5000,
        7.0,
        8,
        4,
        200,
        600,
        1200,
        2,
    ),
}


def exponent(task: Task, n_spans: int, span: int = 20) -> float:
    """Return the largest Lyapunov exponent, from the growth of a small difference."""
    options = {**task.options, "dt": task.dt}
    state = task.generate(1, **options)[0]
    change = np.random.default_rng(0).normal(size=len(state))
    change = 1e-6 * (change - change.mean()) / np.linalg.norm(change)
    logs = []
    for _ in range(n_spans):
        after, beside = (
            task.generate(span + 1, washout=0, initial_state=start, **options)[-1]
            for start in (state, state + change)
        )
        growth = np.linalg.norm(beside - after) / 1e-6
        state, change = after, (beside - after) / growth
        logs.append(np.log(growth))
    return float(np.mean(logs[n_spans // 10 :])) / (span * task.dt)


class Trial:
    """A field in one unit, with the starts that choose and those that are reported."""

    def __init__(self, task: Task, rate: float) -> None:
        self.task, self.rate = task, rate
        self.n_steps = int(task.longest / (rate * task.dt))
        n_later = 2000 + N_REPORTED * max(self.n_steps // 4, 50)
        X = task.generate(task.n_train + n_later + self.n_steps, **task.options, dt=task.dt)
        learned = X[: task.n_train]
        self.X = (X - learned.mean()) / learned.std()
        first = task.n_train + CONTEXT
        self.choosing = np.linspace(first, task.n_train + 1500, N_CHOOSING).astype(int)
        last = len(X) - self.n_steps
        self.reported = np.linspace(task.n_train + 2000, last, N_REPORTED).astype(int)

    def valid(self, model: Any, starts: Any) -> Any:
        """Return the valid time of each start, in Lyapunov times."""
        scale = np.ones(self.X.shape[1])
        each = []
        for t in starts:
            rows = model.forecast(self.n_steps, context=self.X[t - CONTEXT : t])
            truth = self.X[t : t + self.n_steps]
            options = {"threshold": 0.5, "dt": self.task.dt, "scale": scale}
            each.append(valid_time(truth, rows, lyapunov_time=1 / self.rate, **options))
        return np.array(each)

    def local(self, network: Any, block: int | None = None, **options: Any) -> Any:
        """Return a network of blocks fitted to the training rows, and the seconds."""
        begin = time.process_time()
        block = self.task.block if block is None else block
        model = LocalForecaster(network, block=block, halo=self.task.halo, **options)
        model.fit(self.X[: self.task.n_train])
        return model, time.process_time() - begin

    def single(self, network: Any) -> Any:
        """Return one network of all places fitted to the same rows, and the seconds."""
        begin = time.process_time()
        model = network.fit(self.X[: self.task.n_train - 1], self.X[1 : self.task.n_train])
        return model, time.process_time() - begin

    def report(self, name: str, fitted: Any) -> None:
        """Print valid times of models with several seeds."""
        times = [self.valid(model, self.reported) for model, _ in fitted]
        low, median, high = np.percentile(np.concatenate(times), [10, 50, 90])
        seeds = [float(np.median(each)) for each in times]
        spread = f"{min(seeds):.2f} to {max(seeds):.2f}" if len(seeds) > 1 else "-"
        seconds = np.median([each for _, each in fitted])
        alpha = np.median([float(np.ravel(model.alpha_)[0]) for model, _ in fitted])
        print(
            f"{name:34s} {median:6.2f} [{low:.2f}, {high:.2f}]  {spread:>14s}  {alpha:8.1e}"
            f"  {seconds:6.1f} s",
            flush=True,
        )


def draw(rng: np.random.Generator, *, all_places: bool) -> dict[str, Any]:
    """Return settings of a network; inputs of many columns are smaller."""
    scaling = float(np.exp(rng.uniform(np.log(0.03), np.log(1.0))))
    return {
        "spectral_radius": float(rng.uniform(0.05, 1.0)),
        "leak_rate": float(rng.choice([1.0, 1.0, 0.7])),
        "input_scaling": scaling / (4 if all_places else 1),
        "bias_scaling": float(rng.choice([0.1, 0.3, 1.0])),
        "augment": str(rng.choice(["square", "even_square"])),
        "washout": 100,
    }


def search(trial: Trial, *, all_places: bool) -> dict[str, Any]:
    """Return the drawn settings with the longest valid time on the starts that choose."""
    rng, found = np.random.default_rng(0), []
    for _ in range(N_DRAWS):
        settings = draw(rng, all_places=all_places)
        if all_places:
            options = {"alpha_selection": "forecast", "n_lags": 1, "random_state": 0}
            model, _ = trial.single(ESNRegressor(trial.task.n_single // 4, **settings, **options))
        else:
            small = ESNRegressor(trial.task.n_small, random_state=0, **settings)
            model, _ = trial.local(small)
        found.append((float(np.median(trial.valid(model, trial.choosing))), settings))
    every = sorted(each for each, _ in found)
    best = max(found, key=lambda each: each[0])[1]
    shown = ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in best.items()
    )
    who = "all places" if all_places else "blocks"
    print(f"{N_DRAWS} draws, {who}: {every[0]:.2f} to {every[-1]:.2f}; best: {shown}", flush=True)
    return best


def compare(name: str, n_seeds: int) -> None:
    """Print the table of a field."""
    task = TASKS[name]
    spans = {"lorenz96": 500, "waves": 4000, "long_waves": 500}[name]
    rate = exponent(task, spans)
    trial = Trial(task, rate)
    n_places = trial.X.shape[1]
    print(f"{name}: {n_places} places, {task.n_train} rows, exponent {rate:.3f}")
    best = search(trial, all_places=False)
    single = search(trial, all_places=True)
    print(f"{'':34s} valid  [10 %, 90 %]          seeds     alpha     fit")
    blocks, halo = n_places // task.block, task.halo
    made = [
        trial.local(ESNRegressor(task.n_units, random_state=seed, **best))
        for seed in range(n_seeds)
    ]
    trial.report(f"{blocks} blocks x {task.n_units}, halo {halo}", made)
    grid(trial, made[0][0], best)
    options = {"alpha_selection": "forecast", "n_lags": 1}
    one = [
        trial.single(ESNRegressor(task.n_single, random_state=seed, **single, **options))
        for seed in range(n_seeds)
    ]
    trial.report(f"one network of {task.n_single}", one)
    for degree in (1, task.degree):
        what = "ridge on the neighbourhood" if degree == 1 else f"NVAR, degree {degree}"
        nvar = NVARRegressor(1, degree=degree)
        trial.report(what, [trial.local(nvar, block=1)])


def grid(trial: Trial, model: Any, settings: dict[str, Any]) -> None:
    """Print the valid time with each penalty beside the chosen one."""
    chosen = int(np.argmin(np.abs(np.log(model.alphas_ / model.alpha_))))
    parts = []
    for k in range(max(chosen - 2, 0), min(chosen + 3, len(model.alphas_))):
        network = ESNRegressor(
            trial.task.n_units, random_state=0, alpha=float(model.alphas_[k]), **settings
        )
        valid = np.median(trial.valid(trial.local(network)[0], trial.reported))
        parts.append(f"{model.alphas_[k]:.0e} {valid:.2f}")
    print(f"  with other penalties, seed 0: {', '.join(parts)}", flush=True)


def memory(n_places: int) -> None:
    """Print peak memory of a fit above that of imports and data (Linux: kilobytes)."""

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    options: dict[str, Any] = {"alpha": 1e-3, "augment": "square", "random_state": 0}
    LocalForecaster(ESNRegressor(20, **options), block=2).fit(np.eye(50, 8))
    X = np.sin(np.add.outer(0.1 * np.arange(1200), 0.7 * np.arange(n_places)))
    X += 0.1 * np.random.default_rng(0).normal(size=X.shape)
    before, begin = peak(), time.process_time()
    LocalForecaster(ESNRegressor(300, **options), block=2).fit(X)
    seconds = time.process_time() - begin
    print(f"{n_places} places: {peak() - before:.0f} MB, {seconds:.1f} s", flush=True)


def main() -> None:
    """Run the part that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=[*TASKS, "memory"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--places", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # loops that leave the range are part of the comparison
    if args.part in TASKS:
        compare(args.part, args.seeds)
    elif args.places:
        memory(args.places)
    else:
        for n_places in (250, 500, 1000):  # in processes of their own
            subprocess.run([sys.executable, __file__, "memory", "--places", str(n_places)])


if __name__ == "__main__":
    main()
