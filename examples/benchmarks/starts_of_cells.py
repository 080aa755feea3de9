"""What a start from data is worth for each cell: stacks, pairs, slow units, deep transitions.

Usage: ``python examples/benchmarks/starts_of_cells.py [--seeds N] [--cells NAME ...] [TASK ...]``,
tasks: narma, noisy, short, both, labels, lorenz, again. Prints a table for each task (by default
the first five), then the ratios between its columns over all regressions. An hour with five seeds
on one core.

Every layer has 24 units. The error is the NRMSE on a test sequence without its first 100 rows,
median over the seeds and, after it, the worst; for labels the accuracy. The columns are

- start: the start from data alone; trained: ``RNNRegressor(max_iter=100)`` as it comes;
- random: random weights, then Adam at a rate of .01 for the processor time of "trained";
- random, projected: random weights, then 100 iterations of variable projection;
- iterations: of "trained", at whose end the weights were taken; seconds: of "trained".

- narma: NARMA10, 1200 rows. noisy: Mackey-Glass under noise of .1 standard deviations, 20 rows
  ahead, 1000 rows, tested on the clean series. short: a product of two inputs and a sum, with
  memory, in sequences of 150, 60, 230 and 90 rows. both: a sum of two such filters, of which one
  runs backwards, in sequences of 150 to 400 rows; for cells that read both ways.
- labels: three classes of the filter of "short", 1500 rows; 40 epochs of Adam at .01.
- lorenz: z from x, 1000 rows.
- again: training that ends at a start from data, and that then goes on from a start that has not
  seen the held-out rows (`train_from_data`), under noise on the targets to fit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from _timing import machine
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, RNNClassifier, RNNRegressor
from reservoir.datasets import lorenz, mackey_glass, narma
from reservoir.training.bptt import predict
from reservoir.training.cells import (
    DeepTransitionCell,
    FeedforwardCell,
    SimpleCell,
    bidirectional,
    stacked,
)
from reservoir.training.starts import start
from reservoir.training.trainer import Data
from reservoir.training.variable_projection import train_from_data, train_variable_projection

Array = np.ndarray
#: Tasks of "again": name, rows of each sequence, noise on the targets in standard deviations.
NOISY = [("short", 1000, 0.0), ("short", 1000, 0.3), ("narma", 300, 0.0), ("narma", 300, 0.5)]
NOISY += [("narma", 1000, 0.0), ("noisy", 400, 0.0), ("lorenz", 400, 0.0), ("lorenz", 400, 0.1)]
Sequences = list[Array]
Task = tuple[Sequences, Sequences, Sequences, Sequences]  # X and y to fit, X and y to test
N_UNITS, MAX_ITER, SKIP, N_TEST, RATE = 24, 100, 100, 3000, 1e-2
CELLS: dict[str, Any] = {
    "rnn": "rnn",
    "rnn + rnn": stacked("rnn", "rnn"),
    "rnn + rnn, input": stacked("rnn", "rnn", input_shortcuts=True),
    "rnn + rnn, readout": stacked("rnn", "rnn", readout_shortcuts=True),
    "rnn + rnn + rnn": stacked("rnn", "rnn", "rnn"),
    "lstm + rnn": stacked("lstm", "rnn"),
    "gru + gru": stacked("gru", "gru"),
    "layer + rnn": stacked(FeedforwardCell(N_UNITS), "rnn"),
    "rnn + layer": stacked("rnn", FeedforwardCell(N_UNITS)),
    "scrn": "scrn",
    "gated feedback": "gated_feedback",
    "deep transition, 24": DeepTransitionCell(N_UNITS, (24,)),
    "deep transition, 12": DeepTransitionCell(N_UNITS, (12,)),
}
AGAIN: dict[str, Any] = {
    "rnn": "rnn",
    "leaky": SimpleCell(N_UNITS, leak_rate=0.5),
    "lstm": "lstm",
    "gru": "gru",
    "rnn + rnn": stacked("rnn", "rnn"),
    "scrn": "scrn",
}
BACK: dict[str, Any] = {
    "bidirectional rnn": bidirectional("rnn"),
    "bidirectional gru": bidirectional("gru"),
    "bidirectional rnn + rnn": stacked(bidirectional("rnn"), "rnn"),
}


# ---------------------------------------------------------------------- tasks


def filtered(x: Array, memory: float) -> Array:
    """Return a product of two past inputs and a sum, with memory."""
    y = np.zeros(len(x))
    for t in range(3, len(x)):
        y[t] = memory * y[t - 1] + x[t - 1, 0] * x[t - 2, -1] + 0.5 * x[t - 3, 0]
    return y


def narma_task(seed: int) -> Task:
    X, y = narma(1200 + N_TEST, random_state=seed)
    X = X.reshape(len(X), -1)
    return [X[:1200]], [y[:1200]], [X[1200:]], [y[1200:]]


def noisy_task(seed: int) -> Task:
    series, ahead = mackey_glass(4020, random_state=seed).reshape(-1, 1), 20
    clean = (series - series.mean()) / series.std()
    noisy = clean + 0.1 * np.random.default_rng(seed).normal(size=clean.shape)
    X, y = noisy[:1000], noisy[ahead : 1000 + ahead, 0]
    return [X], [y], [noisy[1000:-ahead]], [clean[1000 + ahead :, 0]]


def lorenz_task(seed: int) -> Task:
    rows = lorenz(1000 + N_TEST, random_state=seed)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    X, y = rows[:, :1], rows[:, 2]
    return [X[:1000]], [y[:1000]], [X[1000:]], [y[1000:]]


def drawn(seed: int, lengths: tuple[int, ...], draw: Callable[[Any, int], Any]) -> Task:
    """Return sequences to fit, and one to test."""
    rng = np.random.default_rng(seed)
    parts = [draw(rng, n) for n in (*lengths, N_TEST)]
    X, y = [x for x, _ in parts], [y for _, y in parts]
    return X[:-1], y[:-1], X[-1:], y[-1:]


def short_task(seed: int) -> Task:
    def draw(rng: Any, n: int) -> tuple[Array, Array]:
        x = rng.uniform(-1, 1, (n, 2))
        return x, filtered(x, 0.5)

    return drawn(seed, (150, 60, 230, 90), draw)


def both_task(seed: int) -> Task:
    def draw(rng: Any, n: int) -> tuple[Array, Array]:
        x = rng.uniform(-1, 1, (n, 1))
        return x, filtered(x, 0.6) + filtered(x[::-1], 0.5)[::-1]

    return drawn(seed, (300, 150, 400, 250), draw)


def labels_task(seed: int) -> Task:
    def draw(rng: Any, n: int) -> tuple[Array, Array]:
        x = rng.normal(size=(n, 2))
        return x, np.digitize(filtered(x, 0.6), [-0.5, 0.5])

    return drawn(seed, (1500,), draw)


TASKS = {
    "narma": narma_task,
    "noisy": noisy_task,
    "short": short_task,
    "both": both_task,
    "labels": labels_task,
    "lorenz": lorenz_task,
}
DEFAULT = ("narma", "noisy", "short", "both", "labels")


# ---------------------------------------------------------------------- measuring


def error(model: Any, task: Task) -> float:
    """Return the NRMSE on the test sequence, or the accuracy of labels."""
    found, y = np.ravel(model.predict(task[2])[0])[SKIP:-3], task[3][0][SKIP:-3]
    if isinstance(model, RNNClassifier):
        return float(np.mean(found == y))
    return float(np.sqrt(np.mean((found - y) ** 2)) / y.std())


def fitted(kind: Any, task: Task, cell: Any, seed: int, **params: Any) -> tuple[float, Any, float]:
    """Return the error of a network, the network, and the seconds of its fit."""
    tick = time.process_time()
    model = kind(N_UNITS, cell=cell, random_state=seed, initial_state="zeros", **params)
    model.fit(task[0], task[1])
    return error(model, task), model, time.process_time() - tick


def regression(task: Task, cell: Any, seed: int) -> list[float]:
    """Return the columns of one seed."""
    at_start, _, _ = fitted(RNNRegressor, task, cell, seed, init="least_squares", max_iter=0)
    trained, model, spent = fitted(RNNRegressor, task, cell, seed, max_iter=MAX_ITER)
    by_steps = {"init": "orthogonal", "learning_rate_init": RATE, "n_iter_no_change": 1000}
    _, _, trial = fitted(RNNRegressor, task, cell, seed, max_iter=10, **by_steps)
    n_epochs = int(np.clip(10 * spent / trial, 10, 1000))
    random, _, _ = fitted(RNNRegressor, task, cell, seed, max_iter=n_epochs, **by_steps)
    projects = {"init": "orthogonal", "solver": "variable_projection"}
    projected, _, _ = fitted(RNNRegressor, task, cell, seed, max_iter=MAX_ITER, **projects)
    return [at_start, trained, random, projected, model.best_epoch_, spent]


def labelled(task: Task, cell: Any, seed: int) -> list[float]:
    """Return the columns of one seed, for labels."""
    steps = {"max_iter": 40, "learning_rate_init": RATE}
    fitted_first, random = {"init": "least_squares"}, {"init": "orthogonal", **steps}
    runs = ({**fitted_first, "max_iter": 0}, {**fitted_first, **steps}, random)
    return [fitted(RNNClassifier, task, cell, seed, **run)[0] for run in runs]


def echo_state(task: Task, seed: int, both: bool) -> float:
    """Return the error of an echo state network as it comes."""
    esn = ESNRegressor(random_state=seed, initial_state="zeros", bidirectional=both)
    return error(esn.fit(task[0], task[1]), task)


def shown(column: Array, worst: Callable[[Array], Any]) -> str:
    return f"{np.median(column):9.3f}{worst(column):7.3f}"


def measure(name: str, names: list[str], n_seeds: int) -> dict[str, Array]:
    """Print the table of a task, and return the medians of its columns by cell."""
    tasks = [TASKS[name](seed) for seed in range(n_seeds)]
    labels, both = name == "labels", name == "both"
    heads = (
        ("start", "from it", "random") if labels else ("start", "trained", "random", "projected")
    )
    print(f"\n{name}, {n_seeds} seeds")
    print(" " * 24 + "".join(f"{head:>16s}" for head in heads))
    if not labels:
        errors = np.array([echo_state(task, seed, both) for seed, task in enumerate(tasks)])
        print(f"{'echo state network':24s}{shown(errors, np.max)}")
    medians = {} if labels else {"esn": np.median(errors)}
    cells = BACK if both else CELLS
    for cell in [cell for cell in cells if not names or cell in names]:
        of = labelled if labels else regression
        rows = np.array([of(task, cells[cell], seed) for seed, task in enumerate(tasks)])
        worst = np.min if labels else np.max
        line = "".join(shown(column, worst) for column in rows[:, : len(heads)].T)
        rest = "" if labels else f"{np.median(rows[:, 4]):6.0f}{np.median(rows[:, 5]):7.2f} s"
        print(f"{cell:24s}{line}{rest}", flush=True)
        medians[cell] = np.median(rows, axis=0)
    return medians


# ---------------------------------------------------------------------- training that goes on


def under_noise(task: Task, n_rows: int, share: float, seed: int) -> Task:
    """Return a task with fewer rows, and with noise on the targets to fit."""
    X, y, X_test, y_test = task
    spread, rng = np.concatenate(y).std(), np.random.default_rng(seed)
    y = [part[:n_rows] + share * spread * rng.normal(size=len(part[:n_rows])) for part in y]
    return [part[:n_rows] for part in X], y, X_test, y_test


def trained_twice(task: Task, cell: Any, seed: int) -> list[float]:
    """Return errors of the start, and errors and iterations of training that ends and goes on."""
    model = RNNRegressor(N_UNITS, cell=cell, init="orthogonal", max_iter=0, random_state=seed)
    network = model.set_params(initial_state="zeros").fit(task[0], task[1]).network_
    skips = [int(skip) for skip in model.washout_]
    weights = [(np.arange(len(X)) >= n) * 1.0 for X, n in zip(task[0], skips, strict=True)]
    Y = [y[:, None] for y in task[1]]
    data = Data(task[0], Y, weights, np.zeros((len(Y), network.cell.state_size)))

    generator = np.random.default_rng(seed)  # the first start is then that of the estimator

    def began(part: Data) -> Any:
        given = {"weights": part.weights, "initial_states": part.starts}
        given["random_state"] = generator.spawn(1)[0]
        return start(network, part.inputs, part.targets, pass_on=True, **given).params

    def tested(params: Any) -> float:
        scores = predict(network, params, task[2][0][:, None])[0][SKIP:-3, 0, 0]
        y = task[3][0][SKIP:-3]
        return float(np.sqrt(np.mean((scores - y) ** 2)) / y.std())

    params = began(data)
    found, options = [tested(params)], {"max_iter": 200, "n_iter_no_change": 20}
    for train in (train_variable_projection, partial(train_from_data, began=began)):
        seen: list[int] = []
        options["report"] = lambda done, seen=seen: seen.append(done.n_epochs)
        done = train(network, params, data, **options)
        found += [tested(done.params), len(seen)]
    return found


def compare_trainings(names: list[str], n_seeds: int) -> None:
    """Print errors of training that ends at its start, and of training that then goes on."""
    print(f"\ntraining that goes on, {n_seeds} seeds")
    heads = ("start", "ended", "went on")
    print(f"{'task, rows, noise':24s}{'cell':12s}" + "".join(f"{head:>16s}" for head in heads))
    ratios, costs = [], []
    for (name, n_rows, share), cell in product(NOISY, AGAIN):
        if names and cell not in names:
            continue
        made = [under_noise(TASKS[name](seed), n_rows, share, seed) for seed in range(n_seeds)]
        rows = np.array([trained_twice(task, AGAIN[cell], i) for i, task in enumerate(made)])
        line = "".join(shown(column, np.max) for column in rows[:, [0, 1, 3]].T)
        label = f"{name}, {n_rows}, {share:g}"
        print(f"{label:24s}{cell:12s}{line}", flush=True)
        ratios.append((np.median(rows[:, 3]) / np.median(rows[:, 1]), f"{label}, {cell}"))
        costs.append(rows[:, [2, 4]].sum(axis=0))
    mean = np.exp(np.mean(np.log([ratio for ratio, _ in ratios])))
    print(f"went on / ended: geometric mean {mean:.3f}, worst {max(ratios)[0]:.2f}", end="")
    every, most = np.sum(costs, axis=0), max(long / short for short, long in costs)
    print(f" ({max(ratios)[1]}); iterations: {every[1] / every[0]:.2f} times as many,", end="")
    print(f" at most {most:.1f} times")


def summarise(found: dict[str, dict[str, Array]]) -> None:
    """Print ratios of the medians over all regressions."""
    ratios = [
        (row[1] / min(row[2:3]), row[1] / min(row[2:4]), f"{cell}, {task}")
        for task, rows in found.items()
        for cell, row in rows.items()
        if task != "labels" and cell != "esn"
    ]
    mean = [np.exp(np.mean(np.log([ratio[k] for ratio in ratios]))) for k in (0, 1)]
    print(f"\ntrained / random: geometric mean {mean[0]:.2f}, worst {max(ratios)[0]:.2f}", end="")
    print(f" ({max(ratios)[2]}); / the better of both random: {mean[1]:.2f}")
    for task, rows in found.items():
        if task in ("labels", "both") or "rnn" not in rows:
            continue
        esn = max((row[1] / rows["esn"], cell) for cell, row in rows.items() if cell != "esn")
        one = max((row[1] / rows["rnn"][1], cell) for cell, row in rows.items() if cell != "esn")
        print(f"{task}: worst / echo state network {esn[0]:.2f} ({esn[1]})", end="")
        print(f", worst / one rnn {one[0]:.2f} ({one[1]})")


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("task", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cells", nargs="*", default=[])
    options = parser.parse_args()
    unknown = sorted(set(options.task) - {*TASKS, "again"})
    if unknown:
        parser.error(f"unknown tasks {unknown}; known: {', '.join(TASKS)}")
    print(machine())
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        tables = {
            name: measure(name, options.cells, options.seeds)
            for name in options.task or DEFAULT
            if name != "again"
        }
        if tables:
            summarise(tables)
        if "again" in options.task:
            compare_trainings(options.cells, options.seeds)


if __name__ == "__main__":
    main()
