"""What a start is worth: test errors some epochs after random, reservoir and fitted starts.

Usage: ``python examples/benchmarks/starts.py [--quick] [--seeds N] [TASK ...]``, tasks: teacher,
narma, mackey, adding, waves, subsequence. Prints a table for each task, and below it how many
epochs random starts take to the error of the least-squares start after 0, 3 and 10. Twenty minutes
on one core; ``--quick``: two seeds, ten epochs, one learning rate, a minute.

The error is the test loss over that of the best constant output: the NMSE for squared errors, 1 for
a network that knows nothing. Of each run the weights of least training loss so far are tested, as
`RNNRegressor` keeps them. Adam takes the learning rate of 1e-3, 3e-3 and 1e-2 that ends with the
least training loss on seed 100, which no table uses, for each start and task; "refit" solves for
the readout after each epoch. The solvers "lbfgs" and "least_squares" take all data at once. Medians
over the seeds, the worst at the end, and seconds of processor time. Inputs are standardised, for
random starts' sake. The start "least_squares" stops by itself, after 20 iterations at most.

- teacher: 128 tanh units learn from 128 others, 64 inputs U(0, 1), 64 outputs behind tanh, 2000
  steps, all parameters of the teacher N(0, .065^2) (Bay 2017, chapter 5).
- narma: NARMA10, 100 units, 2000 steps. mackey: Mackey-Glass, one step ahead, 64 units, 2000 steps.
- adding: 1000 sequences of 50 steps, the sum of two marked numbers at the end (Hochreiter and
  Schmidhuber 1997), 40 units.
- waves: sine or square, noise .2, 2400 steps, softmax, 40 units.
- subsequence: `reservoir.datasets.subsequence_detection`, mean spacing 20, ten sequences of 1000
  steps, softmax, 20 units.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _timing import machine
from least_squares import teacher_student
from threadpoolctl import threadpool_limits

from reservoir.datasets import mackey_glass, narma, sine_square, subsequence_detection
from reservoir.training.bptt import Network
from reservoir.training.cells import SimpleCell
from reservoir.training.initializers import initialize
from reservoir.training.loop_engines import using
from reservoir.training.optimizers import adam
from reservoir.training.solvers import train_lbfgs, train_least_squares
from reservoir.training.starts import STARTS, start
from reservoir.training.trainer import Data, data_loss, train

Key = tuple[str, str, bool]  # start, solver, whether the readout is refitted after each epoch
INITS = ("orthogonal", "glorot", "esn", "least_squares")
RATES = (1e-3, 3e-3, 1e-2)
EPOCHS = (0, 3, 10, 40)
SOLVERS = {"lbfgs": train_lbfgs, "least_squares": train_least_squares}
RUNS: list[Key] = [(init, "adam", refit) for init in INITS for refit in (False, True)]
RUNS += [(init, solver, False) for solver in SOLVERS for init in ("glorot", "least_squares")]


@dataclass(frozen=True)
class Task:
    """A network's shape, and data to fit and to test."""

    network: Network
    fit: Data
    test: Data
    truncation: int | None = 50

    def error(self, params: Any) -> float:
        """Test loss over that of the best constant."""
        targets = np.vstack([np.atleast_2d(Y) for Y in self.test.targets])
        if self.test.weights is not None:
            targets = targets[np.concatenate(self.test.weights) > 0]
        if self.network.loss == "mse":
            least = float(targets.var(axis=0).mean())
        else:
            shares = targets.mean(axis=0)
            least = float(-(shares * np.log(shares)).sum())
        return data_loss(self.network, params, self.test) / least


@dataclass
class Run:
    """One training: what the best weights so far did, epoch by epoch."""

    errors: list[float] = field(default_factory=list)
    loss: float = np.inf
    start_seconds: float = 0.0
    seconds: float = 0.0


def series(X: Any, Y: Any, n_fit: int, washout: int, network: Network) -> Task:
    """One sequence, cut in two."""

    def part(rows: slice) -> Data:
        weights = np.ones(len(X[rows]))
        weights[:washout] = 0
        return Data([X[rows]], [Y[rows]], [weights])

    return Task(network, part(slice(n_fit)), part(slice(n_fit, None)))


def teacher_task(seed: int) -> Task:
    _, X, Y, X_test, Y_test = teacher_student(seed, scale=0.065, inputs="uniform")
    X, X_test = ((x - 0.5) * np.sqrt(12) for x in (X, X_test))
    network = Network(SimpleCell(128), 64, 64, "tanh")
    return Task(network, Data([X], [Y]), Data([X_test], [Y_test]))


def narma_task(seed: int) -> Task:
    u, y = narma(4000, random_state=seed)
    X, Y = (u.reshape(-1, 1) - 0.25) / 0.1443, ((y - y.mean()) / y.std()).reshape(-1, 1)
    return series(X, Y, 2000, 50, Network(SimpleCell(100), 1, 1))


def mackey_task(seed: int) -> Task:
    x = mackey_glass(4001, random_state=seed).reshape(-1, 1)
    x = (x - x.mean()) / x.std()
    return series(x[:-1], x[1:], 2000, 50, Network(SimpleCell(64), 1, 1))


def adding_task(seed: int, n_steps: int = 50) -> Task:
    rng = np.random.default_rng(seed)

    def draw(n: int) -> Data:
        X = np.zeros((n, n_steps, 2))
        X[:, :, 0] = rng.random((n, n_steps))
        half, rows = n_steps // 2, np.arange(n)
        marks = [rng.integers(0, half, n), rng.integers(half, n_steps, n)]
        for mark in marks:
            X[rows, mark, 1] = 1
        Y = sum(X[rows, mark, :1] for mark in marks) - 1
        return Data(list(X), list(Y), last=True)

    return Task(Network(SimpleCell(40), 2, 1), draw(1000), draw(1000), None)


def waves_task(seed: int) -> Task:
    X, y = sine_square(4800, random_state=seed)
    X = X + 0.2 * np.random.default_rng(seed).standard_normal(X.shape)
    network = Network(SimpleCell(40), 1, 2, "softmax", "cross_entropy")
    return series(X, np.eye(2)[y.astype(int)], 2400, 50, network)


def subsequence_task(seed: int) -> Task:
    X, y = subsequence_detection(20_000, mean_spacing=20, random_state=seed)
    parts = [(np.split(Z, 20)) for Z in (X, np.eye(2)[y])]
    network = Network(SimpleCell(20), X.shape[1], 2, "softmax", "cross_entropy")
    return Task(network, *(Data(*(part[s] for part in parts)) for s in (slice(10), slice(10, 20))))


TASKS: dict[str, Callable[[int], Task]] = {
    "teacher": teacher_task,
    "narma": narma_task,
    "mackey": mackey_task,
    "adding": adding_task,
    "waves": waves_task,
    "subsequence": subsequence_task,
}


def begin(task: Task, init: str, seed: int) -> tuple[Any, float]:
    """Return weights to start from, and the seconds that they took."""
    tick = time.process_time()
    if init in STARTS:
        params = start(
            task.network,
            task.fit.inputs,
            task.fit.targets,
            scheme=init,
            weights=task.fit.weights,
            target="last" if task.fit.last else "step",
            random_state=seed,
        ).params
    else:
        params = initialize(task.network.shapes(), init, random_state=seed)
    return params, time.process_time() - tick


def follow(task: Task, params: Any, solver: str, rate: float, refit: bool, n_epochs: int) -> Run:
    """Train, and test the best weights after each epoch."""
    run, tested, last = Run(), 0.0, -1

    def look(done: Any) -> None:
        nonlocal tested, last
        tick = time.process_time()
        same = done.best_epoch == last
        run.errors.append(run.errors[-1] if same else task.error(done.params))
        last = done.best_epoch
        tested += time.process_time() - tick

    run.errors.append(task.error(params))
    options: dict[str, Any] = {"max_iter": n_epochs, "n_iter_no_change": n_epochs, "report": look}
    tick = time.process_time()
    if solver in SOLVERS:
        done = SOLVERS[solver](task.network, params, task.fit, **options)
    else:
        options |= {"truncation": task.truncation, "refit": refit, "random_state": 0}
        done = train(task.network, params, task.fit, adam(rate), **options)
    run.seconds = time.process_time() - tick - tested
    run.errors = (run.errors + n_epochs * run.errors[-1:])[: n_epochs + 1]
    run.loss = done.criterion[done.best_epoch]
    return run


def all_runs(
    name: str, seeds: range, rates: tuple[float, ...], n_epochs: int
) -> tuple[dict[Key, list[Run]], dict[Key, float]]:
    """Return one run per seed for every start and solver, and Adam's learning rates."""
    squares = TASKS[name](0).network.loss == "mse"
    keys = [key for key in RUNS if squares or not (key[2] or key[1] == "least_squares")]
    chosen = dict.fromkeys(keys, rates[0])
    found: dict[Key, list[Run]] = {key: [] for key in keys}
    for seed in [100] * (len(rates) > 1) + list(seeds):
        task = TASKS[name](seed)
        starts = {init: begin(task, init, seed) for init in INITS}
        for key in keys:
            params, seconds = starts[key[0]]
            if seed == 100:
                if key[1] == "adam":
                    runs = [follow(task, params, "adam", r, key[2], n_epochs) for r in rates]
                    chosen[key] = rates[int(np.argmin([run.loss for run in runs]))]
                continue
            run = follow(task, params, key[1], chosen[key], key[2], n_epochs)
            run.start_seconds = seconds
            found[key].append(run)
    return found, chosen


def show(name: str, found: dict[Key, list[Run]], chosen: dict[Key, float], n_epochs: int) -> None:
    """Print the table of a task."""
    marks = [e for e in EPOCHS if e <= n_epochs]
    curves = {key: np.array([run.errors for run in runs]) for key, runs in found.items()}
    n_seeds = len(next(iter(curves.values())))
    print(f"\n{name}: test error, median of {n_seeds} seeds from 0; seconds")
    heads = "".join(f"{str(e) + ' ep.':>11s}" for e in marks)
    print(f"{'':14s}{'solver':>15s}{'rate':>7s}{heads}{'worst':>11s}{'start':>7s}{'epochs':>8s}")
    for key, errors in curves.items():
        init, solver, _ = key
        cells = "".join(f"{np.median(errors[:, e]):11.3g}" for e in marks)
        runs = found[key]
        spent = np.median([[run.start_seconds, run.seconds] for run in runs], axis=0)
        rate = f"{chosen[key]:7.0e}" if solver == "adam" else 7 * " "
        times = f"{spent[0]:7.2f}{spent[1]:8.2f}"
        print(f"{init:14s}{label(key):>15s}{rate}{cells}{errors[:, -1].max():11.3g}{times}")
    fitted = np.median(curves["least_squares", "adam", False], axis=0)
    print("epochs to the error of the least-squares start and", *marks[:-1], "epochs of Adam:")
    for key, errors in curves.items():
        if key[0] != "least_squares":
            words = ", ".join(reached(np.median(errors, axis=0), fitted[e]) for e in marks[:-1])
            print(f"{key[0]:14s}{label(key):>15s}  {words}", flush=True)


def label(key: Key) -> str:
    """Return how a network was trained."""
    return key[1] + (", refit" if key[2] else "")


def reached(curve: np.ndarray, level: float) -> str:
    """Return the first epoch at or below a level."""
    below = np.flatnonzero(curve <= level)
    return str(below[0]) if len(below) else f"> {len(curve) - 1}"


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("task", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--quick", action="store_true", help="two seeds, ten epochs, one rate")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=40)
    options = parser.parse_args()
    unknown = sorted(set(options.task) - set(TASKS))
    if unknown:
        parser.error(f"unknown tasks {unknown}; known: {', '.join(TASKS)}")
    seeds = range(2 if options.quick else options.seeds)
    n_epochs = 10 if options.quick else options.epochs
    print(machine())
    with threadpool_limits(1), using("numba"):
        for name in options.task or TASKS:
            rates = RATES[:1] if options.quick else RATES
            show(name, *all_runs(name, seeds, rates, n_epochs), n_epochs)


if __name__ == "__main__":
    main()
