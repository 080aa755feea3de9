"""A label at each row: `ESNClassifier` as it comes, beside boosting and a regression on lags.

Usage:

    python examples/benchmarks/labels.py [table] [choose] [filter] [folds] [--seeds 20] [--jobs N]
        [--keep FILE] [--models WORD ...] [--tasks WORD ...]

- table (the default): the library's defaults, those of before, and the rivals, on all tasks.
- choose: leaks, sizes of the bias, numbers of units, squares of states, and a forward filter over
  the labels whose evidence is not tempered, on the tasks to choose by alone.
- filter: `transition="auto"`, with the library's defaults and with a network without memory.
- folds: scikit-learn's tools that choose rows without regard to time (`_rows_in_time.py`).

`_label_tasks.py` says what the tasks are, and which of them are there to choose defaults by, which
to report. Data and network are drawn from each seed; inputs are standardised by the rows to learn
from. The rivals see the last twenty rows: scikit-learn's `HistGradientBoostingClassifier` and
`LogisticRegression` as they come (300 iterations). Figures are of new rows, means over seeds:
accuracy in per cent with its standard error; the log loss in nats; the calibration error, which is
the mean distance of confidence from accuracy over 15 bins of confidence; seconds of processor time
of a fit and of predictions, one thread. "RNNClassifier" is `RNNClassifier(30)`; "both directions",
`ESNClassifier(bidirectional=True)`, also sees the rows after the present one.

`--keep FILE` writes each figure to a line of FILE and measures only what FILE does not have.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _label_tasks import TASKS, Labelled
from _rows_in_time import compare
from _timing import machine
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNClassifier, RNNClassifier

Array = np.ndarray
Figures = dict[str, float]
Model = Callable[[Labelled, int], tuple[Any, Array]]
N_LAGS, N_BINS = 20, 15
LEAST = 1e-6  # of a probability, so that its logarithm is finite
BEFORE = {"n_units": 100, "leak_rate": 1.0, "bias_scaling": 0.1}
NO_MEMORY: dict[str, Any] = {"leak_rate": 1.0, "spectral_radius": 0.0}
BOOSTING, LOGISTIC, RNN = "boosting", "logistic", "RNNClassifier"
AS_IT_COMES, AS_IT_WAS, BOTH = "as it comes", "as it was", "both directions"
PAIRS = ((AS_IT_COMES, "filtered"), ("no memory", "no memory, filtered"))
LEAKS: dict[str, float | tuple[float, ...]] = {
    "1": 1.0,
    ".3": 0.3,
    ".5 .3": (0.5, 0.3),
    "1 .3": (1.0, 0.3),
    "1 .3 .1": (1.0, 0.3, 0.1),
    "1 .3 .1 .03": (1.0, 0.3, 0.1, 0.03),
}


# --- models ---------------------------------------------------------------------------------------


def network(**settings: Any) -> Model:
    """Return an `ESNClassifier` as a model."""

    def labelled(task: Labelled, seed: int) -> tuple[Any, Array]:
        fitted = ESNClassifier(random_state=seed, **settings).fit(task.X, task.y)
        return fitted.classes_, np.concatenate(fitted.predict_proba(task.X_new))

    return labelled


def with_products(model: Model) -> Model:
    """Return a model that also receives the squares of inputs, and products with the last row."""

    def wider(x: Array) -> Array:
        return np.hstack([x, x**2, x * np.vstack([x[:1], x[:-1]])])

    def labelled(task: Labelled, seed: int) -> tuple[Any, Array]:
        X, X_new = ([wider(x) for x in rows] for rows in (task.X, task.X_new))
        return model(Labelled(X, task.y, X_new, task.y_new), seed)

    return labelled


def filtered(power: float) -> Model:
    """Return an `ESNClassifier` whose probabilities a forward filter smooths, as a model.

    Labels are the states of a Markov chain, whose transitions are counted in the rows to learn
    from. Probabilities over the shares of the classes, to a power, stand for likelihoods.
    """

    def labelled(task: Labelled, seed: int) -> tuple[Any, Array]:
        classes, shares = network()(task, seed)
        counts = np.full((len(classes), len(classes)), 0.5)
        for y in task.y:
            places = np.searchsorted(classes, y)
            np.add.at(counts, (places[:-1], places[1:]), 1)
        moves = counts / counts.sum(axis=1, keepdims=True)
        prior = counts.sum(axis=1) / counts.sum()
        likelihoods = (np.maximum(shares, LEAST) / prior) ** power
        ends = np.cumsum([len(x) for x in task.X_new])
        for part in np.split(np.arange(len(shares)), ends[:-1]):
            now = prior
            for t in part:
                now = (moves.T @ now) * likelihoods[t]
                now = shares[t] = now / now.sum()
        return classes, shares

    return labelled


def trained(task: Labelled, seed: int) -> tuple[Any, Array]:
    """Train a network with 30 units fully."""
    fitted = RNNClassifier(30, random_state=seed).fit(task.X, task.y)
    return fitted.classes_, np.concatenate(fitted.predict_proba(task.X_new))


def on_lags(make: Callable[[int], Any]) -> Model:
    """Return a model that sees the last rows of its recording."""

    def labelled(task: Labelled, seed: int) -> tuple[Any, Array]:
        X, X_new = (np.concatenate([lags(x) for x in rows]) for rows in (task.X, task.X_new))
        fitted = make(seed).fit(X, np.concatenate(task.y))
        return fitted.classes_, fitted.predict_proba(X_new)

    return labelled


def lags(x: Array) -> Array:
    """Return the last rows side by side; the first row stands for those before it."""
    places = np.maximum(np.arange(len(x))[:, None] - np.arange(N_LAGS), 0)
    return x[places].reshape(len(x), -1)


def logistic(seed: int) -> Any:
    """Return a logistic regression behind a scaler."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


def models_of(part: str) -> dict[str, Model]:
    """Return the models of a part by name."""
    if part == "table":
        rivals = {
            BOOSTING: on_lags(lambda seed: HistGradientBoostingClassifier(random_state=seed)),
            LOGISTIC: on_lags(logistic),
        }
        both = network(bidirectional=True)
        own = {AS_IT_COMES: network(), AS_IT_WAS: network(**BEFORE), BOTH: both}
        return {**own, RNN: trained, **rivals}
    if part == "filter":
        return {
            name: network(**settings, transition=transition)
            for names, settings in zip(PAIRS, ({}, NO_MEMORY), strict=True)
            for name, transition in zip(names, (None, "auto"), strict=True)
        }
    found = {AS_IT_WAS: network(**BEFORE)}
    for n_units in (100, 300):
        for name, leak in LEAKS.items():
            for bias in (0.1, 1.0):
                settings = {"n_units": n_units, "leak_rate": leak, "bias_scaling": bias}
                found[f"{n_units}, leak {name}, bias {bias:g}"] = network(**settings)
    for bias in (0.5, 2.0):
        settings = {"n_units": 300, "leak_rate": LEAKS["1 .3 .1"], "bias_scaling": bias}
        found[f"300, leak 1 .3 .1, bias {bias:g}"] = network(**settings)
    best = {"n_units": 300, "leak_rate": LEAKS["1 .3 .1"], "bias_scaling": 1.0}
    found["squares of states"] = network(**best, augment="square")
    found["products of inputs"] = with_products(network(**best))
    found["penalty by GCV"] = network(**best, alpha_selection="gcv")
    for power in (1.0, 0.3):
        found[f"filtered, power {power:g}"] = filtered(power)
    return {AS_IT_COMES: network(), **found}


# --- measuring ------------------------------------------------------------------------------------


def figures_of(task: Labelled, model: Model, seed: int) -> Figures:
    """Fit a model and judge what it says of new rows."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        classes, shares = model(task, seed)
        seconds = time.process_time() - start
    truth = np.concatenate(task.y_new)
    right = classes[shares.argmax(axis=1)] == truth
    given = np.zeros(len(truth))  # a label that was never seen has no probability
    for j, label in enumerate(classes):
        given[truth == label] = shares[truth == label, j]
    confidence = shares.max(axis=1)
    bins = np.minimum((N_BINS * confidence).astype(int), N_BINS - 1)
    gaps = [abs(np.sum((right - confidence)[bins == b])) for b in range(N_BINS)]
    return {
        "accuracy": 100 * float(right.mean()),
        "log loss": float(-np.log(np.maximum(given, LEAST)).mean()),
        "calibration": float(sum(gaps) / len(truth)),
        "seconds": seconds,
    }


def scaled(task: Labelled) -> Labelled:
    """Return a task with standardised inputs."""
    scaler = StandardScaler().fit(np.concatenate(task.X))
    X, X_new = ([scaler.transform(x) for x in rows] for rows in (task.X, task.X_new))
    return Labelled(X, task.y, X_new, task.y_new)


def measure_one(part: str, name: str, seed: int, models: list[str]) -> list[tuple[str, Figures]]:
    """Measure models on one task and seed, in a process of its own."""
    ESNClassifier(20, random_state=0).fit(np.zeros((3000, 1)) + 0.1, np.arange(3000) % 2)
    task, known = scaled(TASKS[name].draw(seed)), models_of(part)
    return [(model, figures_of(task, known[model], seed)) for model in models]


class Kept:
    """Figures by part, task, seed and model, which a file keeps, one a line."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.figures: dict[tuple[str, str, int, str], Figures] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                *place, found = json.loads(line)
                self.figures[tuple(place)] = found  # type: ignore[index]

    def add(self, place: tuple[str, str, int, str], found: Figures) -> None:
        """Keep the figures of one model on one task with one seed."""
        self.figures[place] = found
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps([*place, found]) + "\n")


def measure(part: str, models: list[str], tasks: list[str], options: Any, kept: Kept) -> None:
    """Measure what is not kept."""
    jobs, places = [], []
    for seed in range(options.seeds):
        for name in tasks:
            absent = [m for m in models if (part, name, seed, m) not in kept.figures]
            if absent:
                places.append((name, seed))
                jobs.append(delayed(measure_one)(part, name, seed, absent))
    results = Parallel(options.jobs, return_as="generator")(jobs)
    for (name, seed), found in zip(places, results, strict=True):
        for model, figures in found:
            kept.add((part, name, seed, model), figures)


# --- tables ---------------------------------------------------------------------------------------


class Table:
    """Figures of models on tasks, printed as means over seeds."""

    def __init__(self, part: str, models: list[str], n_seeds: int, kept: Kept) -> None:
        self.part, self.models, self.n_seeds, self.kept = part, models, n_seeds, kept
        self.width = max(14, 2 + max(map(len, models)))

    def over_seeds(self, task: str, model: str, figure: str) -> Array:
        """Return a figure of each seed."""
        places = [(self.part, task, seed, model) for seed in range(self.n_seeds)]
        return np.array([self.kept.figures[place][figure] for place in places])

    def line(self, name: str, cells: list[str]) -> None:
        """Print a row."""
        print(f"{name:28s}" + "".join(f"{cell:>{self.width}s}" for cell in cells))

    def tasks(self, names: list[str]) -> None:
        """Print the accuracy on each task, with its standard error over seeds."""
        for name in names:
            found = [self.over_seeds(name, model, "accuracy") for model in self.models]
            error = np.sqrt(max(self.n_seeds - 1, 1) * self.n_seeds)
            cells = [
                f"{c.mean():.1f} +- {np.sqrt(np.sum((c - c.mean()) ** 2)) / error:.1f}"
                for c in found
            ]
            self.line(f"  {name}", cells)

    def means(self, title: str, names: list[str], figure: str, digits: int) -> None:
        """Print the mean of a figure over tasks."""
        each = [[self.over_seeds(n, m, figure).mean() for n in names] for m in self.models]
        self.line(title, [f"{np.mean(of_model):.{digits}f}" for of_model in each])

    def pair(self, names: list[str], plain: str, other: str) -> None:
        """Print in how many tasks one model is ahead of another, and the largest change."""
        for figure, sign, digits in (
            ("accuracy", 1, 1),
            ("log loss", -1, 3),
            ("calibration", -1, 3),
        ):
            means = [[self.over_seeds(n, m, figure).mean() for n in names] for m in (plain, other)]
            gain = sign * np.subtract(means[1], means[0])
            few = 0.5 * 10.0**-digits
            counts = (
                f"ahead in {np.sum(gain > few)}, behind in {np.sum(gain < -few)} of {len(gain)}"
            )
            best, worst = names[int(np.argmax(gain))], names[int(np.argmin(gain))]
            print(f"  {other}, {figure}: {counts}")
            most, least = (f"{extreme:+.{digits}f}" for extreme in (gain.max(), gain.min()))
            print(f"    most {most} ({best}), least {least} ({worst})")

    def print(self, names: list[str]) -> None:
        """Print all rows: the tasks to choose by, those to report, and families of tasks."""
        self.line("accuracy, %", self.models)
        for title, reported in (("to choose by", False), ("to report", True)):
            of_part = [name for name in names if TASKS[name].reported == reported]
            if of_part:
                print(title)
                self.tasks(of_part)
                self.means("  mean accuracy", of_part, "accuracy", 1)
                self.means("  mean log loss", of_part, "log loss", 3)
                self.means("  mean calibration", of_part, "calibration", 3)
                self.means("  mean seconds", of_part, "seconds", 2)
            for plain, other in PAIRS:
                if of_part and {plain, other} <= set(self.models):
                    self.pair(of_part, plain, other)
        print("families, accuracy")
        for family in dict.fromkeys(TASKS[name].family for name in names):
            of_family = [name for name in names if TASKS[name].family == family]
            self.means(f"  {family} ({len(of_family)})", of_family, "accuracy", 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", default=["table"], metavar="table | choose | ...")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--models", nargs="+", metavar="WORD", default=[""])
    parser.add_argument("--tasks", nargs="+", metavar="WORD", default=[""])
    options = parser.parse_args()
    if unknown := set(options.parts) - {"table", "choose", "filter", "folds"}:
        parser.error(f"{sorted(unknown)} must be among table, choose, filter and folds")
    print(machine())
    kept = Kept(options.keep)
    for part in options.parts:
        if part == "folds":
            print(f"\n=== folds: {options.seeds} seeds ===")
            compare(options.seeds)
            continue
        tasks = [
            name
            for name, task in TASKS.items()
            if any(word in name for word in options.tasks)
            and not (part == "choose" and task.reported)
        ]
        models = [m for m in models_of(part) if any(word in m for word in options.models)]
        measure(part, models, tasks, options, kept)
        print(f"\n=== {part}: {len(tasks)} tasks, {options.seeds} seeds ===")
        Table(part, models, options.seeds, kept).print(tasks)


if __name__ == "__main__":
    main()
