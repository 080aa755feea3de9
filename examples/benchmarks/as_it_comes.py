"""`ESNRegressor()` as it comes, beside other settings, a ridge on lags, boosting and the mean.

Usage:

    python examples/benchmarks/as_it_comes.py [table] [choose] [rules] [real] [loops] [--seeds 20]
        [--jobs N] [--keep FILE] [--models WORD ...] [--tasks WORD ...]

- table (the default): the library's defaults, those of version 0.1, and the rivals.
- choose: leaks and numbers of units, and the rivals, on the tasks to choose by alone.
- rules: rules that select the penalty under the library's other defaults, and fixed penalties.
- real: as the table, of the series that ship with the package, at four horizons.
- loops: free runs of these series, the load and Lorenz-96 under the defaults and with one row of
  the input: root mean squared error over the deviation of the rows to learn from, median and worst,
  how many are above ten ("diverged"), and the median of the steps.

`_open_tasks.py` says what the tasks are, and which of them are there to choose defaults by, which
to report. Data and network are drawn from each seed. `--keep FILE` writes each figure to a line of
FILE and measures only what FILE does not have, by task, seed and all parameters of the network: it
goes on after an interruption, and takes in further settings. (It cannot know of changed code.)
`--models` and `--tasks` keep what has one of the words in its name.

R^2 is that of new rows, mean over outputs, against targets without noise; of free runs over the
first rows (`near` in the module of tasks), against the variance of the rows to learn from, mean
over three origins. Free runs of chaos are judged by the steps until an error of .3 standard
deviations, mean over three origins. Tables have the median over the seeds, then the worst, then the
seconds of processor time of a fit, one thread. A ratio is the error (root of 1 - R^2, from .01 to
10; for chaos 1 / (1 + steps)) over that of the ridge on lags with the same seed: its median over
seeds, then the geometric mean over tasks. "below mean" and "behind ridge": the share of tasks where
R^2, median over seeds, is more than .05 lower; in brackets of tasks and seeds together.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from _open_models import MEAN, RIDGE, RIVALS, Score, score_model
from _open_tasks import APART, TASKS
from _timing import machine
from joblib import Parallel, delayed

from reservoir import ESNRegressor

Array = np.ndarray
Models = dict[str, dict[str, Any] | None]  # name -> parameters of ESNRegressor; None for a rival
Scores = dict[tuple[str, int, str], Score | None]  # of task, seed and model

CLEARLY = 0.05  # of R^2
DIVERGED = 10  # standard deviations
WIDTH = 180  # of a table, in characters
LEAKS: dict[str, float | tuple[float, ...]] = {
    "1": 1.0,
    ".5": 0.5,
    ".3": 0.3,
    ".5 .3": (0.5, 0.3),
    "1 .3": (1.0, 0.3),
    "1 .3 .1": (1.0, 0.3, 0.1),
}
UNITS = (100, 300)
RULES = ("halves", "blocked", "reml", "reml_ar1", "gcv")
AS_IT_COMES, AS_IT_WAS, WITH_LAGS, ONE = "as it comes", "as it was", "n_lags=10", "one row"
ONE_ROW = {"n_lags": 1, "input_alpha": None}  # the default before rows of the input were chosen
WAS = {"n_units": 100, "leak_rate": 1.0, "alpha": 1e-6, "alpha_selection": "gcv"}


def models_of(part: str) -> Models:
    """Return the models of a part by name."""
    found: Models = {AS_IT_COMES: {}, ONE: ONE_ROW}
    if part == "loops":
        return found
    found |= {WITH_LAGS: {"n_lags": 10, "input_alpha": None}, AS_IT_WAS: WAS}
    if part == "choose":
        for n_units in UNITS:
            for leak, rates in LEAKS.items():
                network = {"n_units": n_units, "leak_rate": rates, "alpha_selection": "halves"}
                network |= ONE_ROW
                found[f"{n_units}, leak {leak}"] = network
    if part == "rules":
        found |= {rule: {"alpha_selection": rule, **ONE_ROW} for rule in RULES}
        found |= {f"alpha {alpha:g}": {"alpha": alpha} for alpha in (1e-6, 1e-4, 1e-2, 1.0, 100.0)}
    return {**found, **dict.fromkeys(RIVALS)}


# --- measuring ------------------------------------------------------------------------------------


def key_of(name: str, settings: dict[str, Any] | None) -> str:
    """Return what a file knows a model by: all parameters, so that new defaults are new models."""
    if settings is None:
        return name
    return json.dumps(ESNRegressor(**settings).get_params(), default=np.ndarray.tolist)


class Kept:
    """Scores that a file keeps, one a line; without a file they are kept in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.scores: Scores = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                task, seed, key, found = json.loads(line)
                self.scores[task, seed, key] = None if found is None else Score(**found)

    def add(self, task: str, seed: int, key: str, found: Score | None) -> None:
        """Keep a score."""
        self.scores[task, seed, key] = found
        if self.path is not None:
            row = [task, seed, key, None if found is None else asdict(found)]
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def measure(models: Models, tasks: Iterable[str], n_seeds: int, n_jobs: int, kept: Kept) -> Scores:
    """Return the scores of all models by name, task and seed; what is kept is not measured."""
    keys = {name: key_of(name, settings) for name, settings in models.items()}
    by_key = {keys[name]: (name, settings) for name, settings in models.items()}
    places = [(task, seed) for seed in range(n_seeds) for task in tasks]
    jobs = []
    for task, seed in places:
        absent = {key: by_key[key] for key in by_key if (task, seed, key) not in kept.scores}
        if absent:
            jobs.append(delayed(_score_all)(task, seed, absent))
    for task, seed, found in Parallel(n_jobs, return_as="generator_unordered")(jobs):
        for key, one in found.items():
            kept.add(task, seed, key, one)
    found = {}
    for task, seed in places:
        for name, key in keys.items():
            found[task, seed, name] = kept.scores[task, seed, key]
    return found


def _score_all(
    task: str, seed: int, models: dict[str, tuple[str, dict[str, Any] | None]]
) -> tuple[str, int, dict[str, Score | None]]:
    """Score models on one task and seed, in a process of its own."""
    found = {key: score_model(task, seed, *named) for key, named in models.items()}
    return task, seed, found


# --- tables ---------------------------------------------------------------------------------------


def over_seeds(scores: Scores, task: str, model: str, figure: Callable[[Score], float]) -> Array:
    """Return a figure of each seed; nothing where the model has nothing to say of the task."""
    found = [score for (of, _, by), score in scores.items() if (of, by) == (task, model)]
    return np.array([figure(score) for score in found if score is not None])


def shown(score: Score) -> float:
    """Return the figure of a table: steps of chaos, else R^2."""
    return score.r2 if score.steps is None else score.steps


FIGURES: dict[str, tuple[Callable[[Score], float], Callable[[Array], float]]] = {
    "R^2, of chaos steps: median": (shown, np.median),
    "R^2, of chaos steps: worst": (shown, np.min),
    "seconds of the fit: median": (lambda score: score.seconds, np.median),
}


def parts(tasks: list[str]) -> dict[str, list[str]]:
    """Return the tasks to choose by and those to report, as far as there are any."""
    found = {
        title: [name for name in tasks if TASKS[name].reported == reported]
        for title, reported in (("to choose by", False), ("to report", True))
    }
    return {title: names for title, names in found.items() if names}


def print_tasks(
    scores: Scores, models: list[str], tasks: list[str], figures: Iterable[str]
) -> None:
    """Print a table of tasks and models for each figure, in blocks that fit on a line."""
    first = 2 + max(map(len, tasks))
    width = 2 + max(map(len, models))
    n_columns = max(1, (WIDTH - first) // width)
    for title in figures:
        figure, over = FIGURES[title]
        for i in range(0, len(models), n_columns):
            block = models[i : i + n_columns]
            print(f"\n{title}\n{'':{first}s}" + "".join(f"{name:>{width}s}" for name in block))
            for which, of_part in parts(tasks).items():
                print(which)
                for task in of_part:
                    found = [over_seeds(scores, task, name, figure) for name in block]
                    cells = [number(over(of)) if len(of) else "-" for of in found]
                    print(f"  {task:{first - 2}s}" + "".join(f"{c:>{width}s}" for c in cells))


def number(x: float) -> str:
    """Format with three decimals, large numbers with fewer."""
    return f"{x:.3f}" if abs(x) < 10 else f"{x:.1f}" if abs(x) < 1000 else f"{x:.1e}"


# --- summaries ------------------------------------------------------------------------------------


def ratios(scores: Scores, model: str, tasks: list[str]) -> Array:
    """Return for each task the median over seeds of the loss over that of the ridge on lags."""
    found = []
    for task in tasks:
        own, of_ridge = (over_seeds(scores, task, by, lambda s: s.loss) for by in (model, RIDGE))
        if len(own):
            found.append(np.median(own / of_ridge))
    return np.array(found)


def geometric_mean(values: Array) -> str:
    """Format the geometric mean; a dash stands for that of nothing."""
    return f"{np.exp(np.mean(np.log(values))):.3f}" if len(values) else "-"


def behind(scores: Scores, model: str, other: str, tasks: list[str]) -> tuple[list[str], float]:
    """Return the tasks on which R^2 is clearly below another model's, and the share of cases."""
    found, cases = [], []
    for task in tasks:
        own, of_other = (over_seeds(scores, task, by, lambda s: s.r2) for by in (model, other))
        if len(own):
            cases.extend(own < of_other - CLEARLY)
            if np.median(own) < np.median(of_other) - CLEARLY:
                found.append(task)
    return found, float(np.mean(cases)) if cases else np.nan


def print_summary(scores: Scores, models: list[str], tasks: list[str]) -> None:
    """Print a line for each model: shares of tasks, ratios, by kind of task too, seconds."""
    kinds = list(dict.fromkeys(TASKS[task].kind for task in tasks))
    first = 2 + max(map(len, models))
    print(
        f"{'':{first}s}{'below mean':>16s}{'behind ridge':>16s}{'ratio':>8s}"
        + "".join(f"{kind:>12s}" for kind in kinds)
        + f"{'seconds':>9s}"
    )
    for model in models:
        answered = [t for t in tasks if len(over_seeds(scores, t, model, shown))]
        cells = ""
        for other in (MEAN, RIDGE):
            on, share = behind(scores, model, other, tasks)
            shares = f"{len(on) / len(answered):.0%} ({share:4.0%})" if answered else "-"
            cells += f"{shares:>16s}"
        of_kinds = [[t for t in tasks if TASKS[t].kind == kind] for kind in kinds]
        for part, width in ((tasks, 8), *((part, 12) for part in of_kinds)):
            cells += f"{geometric_mean(ratios(scores, model, part)):>{width}s}"
        seconds = [np.median(over_seeds(scores, t, model, lambda s: s.seconds)) for t in answered]
        print(f"{model:{first}s}{cells}{sum(seconds):9.2f}")


def print_loops(scores: Scores, tasks: list[str]) -> None:
    """Print the errors of free runs, and the ratio of their medians."""
    names = (AS_IT_COMES, ONE)
    titles = ("median", "worst", "diverged", "steps")
    first = 2 + max(map(len, tasks))
    print(f"{'':{first}s}" + "".join(f"{name:>40s}" for name in names))
    print(f"{'':{first}s}" + "".join(f"{title:>10s}" for title in titles * 2) + f"{'ratio':>8s}")
    for task in tasks:
        cells, medians = "", []
        for name in names:
            errors = over_seeds(scores, task, name, lambda s: np.sqrt(1 - s.r2))
            steps = over_seeds(scores, task, name, lambda s: np.nan if s.steps is None else s.steps)
            medians.append(np.median(errors))
            told = number(np.median(steps)) if np.isfinite(steps).any() else "-"
            diverged = str((errors > DIVERGED).sum())
            cells += "".join(
                f"{c:>10s}" for c in (number(medians[-1]), number(errors.max()), diverged, told)
            )
        print(f"{task:{first}s}{cells}{medians[0] / medians[1]:8.3f}")


def print_behind(scores: Scores, models: list[str], tasks: list[str]) -> None:
    """Print the tasks on which a network is clearly below the mean, or as it comes the ridge."""
    for model in models:
        for other in (MEAN, RIDGE) if model == AS_IT_COMES else (MEAN,):
            on, _ = behind(scores, model, other, tasks)
            if on:
                print(f"  {model}, more than {CLEARLY} behind {other}: {'; '.join(on)}")


def print_refused(scores: Scores) -> None:
    """Print what ended with an error, once for each model and task."""
    refused = {
        (task, model): score.refused
        for (task, _, model), score in scores.items()
        if score is not None and score.refused
    }
    for (task, model), words in refused.items():
        print(f"refused: {model}, {task}: {words}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "parts", nargs="*", default=["table"], metavar="table | choose | rules | real | loops"
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--models", nargs="+", metavar="WORD")
    parser.add_argument("--tasks", nargs="+", metavar="WORD", default=[""])
    options = parser.parse_args()
    if unknown := set(options.parts) - {"table", "choose", "rules", *APART}:
        parser.error(f"{sorted(unknown)} must be among table, choose, rules, {', '.join(APART)}")
    of_kind = {kind: part for part, tasks in APART.items() for kind in tasks}
    wanted = [name for name in TASKS if any(word in name for word in options.tasks)]
    print(machine())
    kept = Kept(options.keep)
    for part in options.parts:
        models = models_of(part)
        apart = part if part in APART else None
        tasks = [name for name in wanted if of_kind.get(TASKS[name].kind) == apart]
        tasks = [name for name in tasks if part != "choose" or not TASKS[name].reported]
        if options.models is not None:  # the mean and the ridge are what others are compared with
            words = (*options.models, MEAN, RIDGE)
            models = {k: v for k, v in models.items() if any(word in k for word in words)}
        scores = measure(models, tasks, options.seeds, options.jobs, kept)
        print(f"\n=== {part}: {len(tasks)} tasks, {options.seeds} seeds ===")
        if part == "loops":
            print_loops(scores, tasks)
            print_refused(scores)
            continue
        print_tasks(scores, list(models), tasks, FIGURES if part == "table" else [*FIGURES][:1])
        for title, of_part in parts(tasks).items():
            print(f"\nsummary of the {len(of_part)} tasks {title}")
            print_summary(scores, list(models), of_part)
            print_behind(scores, [m for m in models if m not in RIVALS], of_part)
        print_refused(scores)


if __name__ == "__main__":
    main()
