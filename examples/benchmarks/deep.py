"""Is a deep reservoir, one reservoir behind another, better than a flat one of as many units?

Usage:

    python examples/benchmarks/deep.py [--searches 3] [--draws 12] [--tasks NAME ...]

Thirteen tasks: seven predict row by row, six run free, fed by their own outputs
(`reservoir.forecast` of the pipeline, from several contexts). Four contenders, searched alike: a
flat reservoir; a chain of 2, 3 or 5 reservoirs together as large, of which the ridge sees the last
(`deep`) or all (`deep, all`); and, as control, a ridge on lags of the input (`lags`). Each ridge
also sees the present row.

A search draws settings (the same radius, input scaling, leak and bias for all; layers, their
leaks and coupling for the deep ones; the number of lags), tries 5 penalties, and keeps what is best
on rows after those it learned from, of one series. It is then scored on four fresh series, with
fresh networks. Errors are medians over all searches and series, of Lorenz's free run the inverse of
the valid time in Lyapunov times: smaller is better. The last columns are Mann-Whitney's p,
two-sided, of each other contender against the flat one. The last lines count the tasks in which the
median is better or worse than that of flat with p below .05, and those in which it is better than
that of lags as well.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import svd
from scipy.stats import mannwhitneyu
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline, make_union

from reservoir import NVARRegressor, ReservoirTransformer, forecast
from reservoir.datasets import lorenz, mackey_glass, multiple_superposed_oscillators, narma

Array = np.ndarray
Draw = dict[str, Any]
ALPHAS = [1e-9, 1e-7, 1e-5, 1e-3, 1e-1]
LAGS = [1, 2, 5, 10, 20, 50, 100]
N_TESTS = 4
WARM_UP = 200  # rows of a context
WORST = 10.0  # of errors, when a loop is lost
TIME_STEP = 0.02 / 1.104  # of Lorenz, in Lyapunov times
KINDS = ("flat", "deep", "deep, all", "lags")


# --- tasks --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Rows to predict, or a series that runs free for `horizon` steps from origins.

    `draw` returns X and y; `n_fit` rows are learned from, the first `skip` of them not; then follow
    `n_new` rows for validation, and in fresh series for the test. `origins` lie in these rows.
    """

    draw: Callable[[int], tuple[Array, Array]]
    n_units: int = 200
    horizon: int = 0
    skip: int = 200
    n_fit: int = 2200
    n_new: int = 1000
    n_origins: int = 8
    score: Callable[[Array, Array], float] | None = None


def nrmse(found: Array, truth: Array) -> float:
    return float(np.sqrt(np.mean((found - truth) ** 2) / truth.var(axis=0).mean()))


def scaled(rows: Array) -> Array:
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def from_narma(order: int, seed: int) -> tuple[Array, Array]:
    X, y = narma(3200, order=order, random_state=seed)
    return 4 * X - 1, y[:, None]


def from_uniform(target: Callable[[Array], Array], seed: int) -> tuple[Array, Array]:
    u = np.random.default_rng(seed).uniform(-1, 1, (3200, 1))
    return u, target(u)


def delays(u: Array, n: int = 200) -> Array:
    return np.hstack([np.roll(u, k, axis=0) for k in range(1, n + 1)])


def memory_lost(found: Array, truth: Array) -> float:
    held = 1 - ((found - truth) ** 2).mean(axis=0) / truth.var(axis=0)
    return float(1 - np.maximum(held, 0).sum() / 100)


def ahead(series: Callable[[int], Array], steps: int, seed: int) -> tuple[Array, Array]:
    rows = scaled(series(seed))
    return rows[:-steps], rows[steps:]


def sines(n: int, seed: int) -> Array:
    rows = multiple_superposed_oscillators(2000, n_oscillators=n).reshape(-1, 1)
    return rows[int(np.random.default_rng(seed).integers(0, 900)) :]


def load(seed: int) -> Array:
    """Return an hourly load: a profile of the day and the week, and errors that last."""
    rng, t = np.random.default_rng(seed), np.arange(4100)
    hour, weekend = t % 24, t // 24 % 7 >= 5
    day = 1 + 0.35 * np.sin(np.pi * (hour - 8) / 12) + 0.15 * np.sin(np.pi * (hour - 3) / 6)
    rows = np.where(weekend, 0.75 * day + 0.12 * np.cos(np.pi * (hour - 13) / 12), day)
    error, steps = np.zeros(len(t)), 0.012 * rng.normal(size=len(t))
    for k in range(1, len(t)):
        error[k] = 0.9 * error[k - 1] + steps[k]
    return (rows + error)[:, None]


def at_end(found: Array, truth: Array) -> float:
    return float(np.sqrt(np.mean((found[:, -1] - truth[:, -1]) ** 2)))


def along(found: Array, truth: Array) -> float:
    return float(np.sqrt(np.mean((found - truth) ** 2) / truth.var()))


def inverse_valid_time(found: Array, truth: Array) -> float:
    error = np.sqrt(np.mean((found - truth) ** 2, axis=2)) > 0.4
    valid = np.where(error.any(axis=1), error.argmax(axis=1), error.shape[1])
    return float(1 / max(valid.mean() * TIME_STEP, TIME_STEP))


flow = partial(lorenz, 3500)
glass = partial(mackey_glass, 3500)
TASKS = {
    "NARMA10": Task(partial(from_narma, 10)),
    "NARMA20": Task(partial(from_narma, 20)),
    "memory lost": Task(partial(from_uniform, delays), n_units=100, score=memory_lost),
    "product of two lags": Task(
        partial(from_uniform, lambda u: np.roll(u, 4, axis=0) * np.roll(u, 9, axis=0))
    ),
    "sine of a lag": Task(partial(from_uniform, lambda u: np.sin(4 * np.roll(u, 5, axis=0)))),
    "Mackey-Glass, 84 ahead": Task(partial(ahead, lambda s: glass(random_state=s), 84)),
    "Lorenz, 1 ahead": Task(partial(ahead, lambda s: flow(random_state=s), 1)),
    "Mackey-Glass, free": Task(
        partial(ahead, lambda s: glass(random_state=s), 1), horizon=84, score=at_end
    ),
    "Lorenz, free": Task(
        partial(ahead, lambda s: flow(random_state=s), 1),
        horizon=500,
        n_origins=5,
        score=inverse_valid_time,
    ),
    **{
        f"{n} sines, free": Task(
            partial(ahead, partial(sines, n), 1),
            n_units=100,
            horizon=300,
            skip=100,
            n_fit=400,
            n_new=400,
            n_origins=2,
            score=along,
        )
        for n in (5, 8, 12)
    },
    "load, free": Task(partial(ahead, load, 1), horizon=168, n_fit=3000, score=along),
}


# --- contenders ---------------------------------------------------------------------------------


def draw_settings(rng: np.random.Generator) -> Draw:
    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return {
        "spectral_radius": rng.uniform(0.4, 1.3),
        "input_scaling": between(0.03, 3),
        "leak_rate": 1.0 if rng.uniform() < 0.5 else between(0.1, 1),
        "bias_scaling": between(0.01, 1),
        "layers": int(rng.choice([2, 3, 5])),
        "slower": between(0.3, 1),
        "coupling": between(0.1, 2),
        "n_lags": LAGS[int(rng.integers(len(LAGS)))],
    }


def states(kind: str, n_units: int, draw: Draw, seed: int) -> Any:
    """Return the features of a ridge: the present row, and states."""
    common = {name: draw[name] for name in ("spectral_radius", "bias_scaling")}
    n_layers = 1 if kind == "flat" else draw["layers"]
    layers = [
        ReservoirTransformer(
            n_units // n_layers,
            leak_rate=draw["leak_rate"] * draw["slower"] ** k,
            # later layers receive as many inputs as there are units before them
            input_scaling=draw["coupling"] / np.sqrt(n_units // n_layers)
            if k
            else draw["input_scaling"],
            initial_state="zeros",
            random_state=100 * seed + k,
            **common,
        )
        for k in range(n_layers)
    ]
    first = range(1, n_layers + 1) if kind == "deep, all" else [n_layers]
    return make_union("passthrough", *(make_pipeline(*layers[:k]) for k in first))


def ridges(H: Array, y: Array) -> Iterator[LinearRegression]:
    """Yield a ridge for each penalty, from one decomposition."""
    means = H.mean(axis=0), y.mean(axis=0)
    left, values, right = svd(H - means[0], full_matrices=False)
    projected = left.T @ (y - means[1])
    for alpha in ALPHAS:
        one = LinearRegression()
        one.coef_ = ((values / (values**2 + alpha))[:, None] * projected).T @ right
        one.intercept_ = means[1] - one.coef_ @ means[0]
        one.n_features_in_ = H.shape[1]
        yield one


def fitted(kind: str, task: Task, draw: Draw, X: Array, y: Array, seed: int) -> list[Any]:
    """Return a model for each penalty."""
    X, y = X[: task.n_fit], y[: task.n_fit]
    if kind == "lags":
        common = {"n_lags": draw["n_lags"], "degree": 1, "washout": task.skip}
        return [NVARRegressor(alpha=alpha, **common).fit(X, y) for alpha in ALPHAS]
    features = states(kind, task.n_units, draw, seed)
    H = features.fit_transform(X, y)[task.skip :]
    return [Pipeline([("H", features), ("ridge", one)]) for one in ridges(H, y[task.skip :])]


def errors(task: Task, models: list[Any], X: Array, y: Array) -> list[float]:
    """Return the error of each model on the rows after those it learned from."""
    end = task.n_fit + task.n_new
    score = task.score or nrmse
    if not task.horizon:  # with the rows before, so that all start alike
        begin = task.n_fit - WARM_UP
        found = [one.predict(X[begin:end])[WARM_UP:] for one in models]
        return [score(rows.reshape(task.n_new, -1), y[task.n_fit : end]) for rows in found]
    places = np.linspace(task.n_fit, end - task.horizon, task.n_origins).astype(int)
    contexts = [X[p - WARM_UP : p + 1] for p in places]
    truth = np.stack([y[p : p + task.horizon] for p in places])
    made = []
    for one in models:
        rows = np.stack(forecast(one, task.horizon, context=contexts)).reshape(truth.shape)
        made.append(min(score(np.nan_to_num(np.clip(rows, -99, 99), nan=99), truth), WORST))
    return made


def search(kind: str, task: Task, number: int, n_draws: int) -> list[float]:
    """Return the errors on fresh series of what is best on one series."""
    rng = np.random.default_rng(number)
    settings = [draw_settings(rng) for _ in range(n_draws)]
    X, y = task.draw(1000 * number)
    tried = [errors(task, fitted(kind, task, draw, X, y, seed=number), X, y) for draw in settings]
    k, j = np.unravel_index(np.nanargmin(tried), np.shape(tried))
    found = []
    for seed in range(1000 * number + 1, 1000 * number + 1 + N_TESTS):
        X, y = task.draw(seed)
        models = fitted(kind, task, settings[k], X, y, seed)[j : j + 1]
        found += errors(task, models, X, y)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--searches", type=int, default=3)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of loops that are lost, and units that saturate
    print(f"{options.searches} searches of {options.draws} draws, {N_TESTS} fresh series each")
    print(
        f"{'':24s}"
        + "".join(f"{kind:>11s}" for kind in KINDS)
        + f"{'p deep':>9s}{'p all':>9s}{'p lags':>9s}"
    )
    start, ratios = time.process_time(), {kind: [] for kind in KINDS[1:3]}
    counts = {kind: {"better": 0, "worse": 0, "ahead": 0} for kind in KINDS[1:]}
    for name in options.tasks:
        found = {
            kind: [
                error
                for number in range(options.searches)
                for error in search(kind, TASKS[name], number, options.draws)
            ]
            for kind in KINDS
        }
        medians = {kind: float(np.median(values)) for kind, values in found.items()}
        tests = {kind: mannwhitneyu(found[kind], found["flat"]).pvalue for kind in KINDS[1:]}
        for kind, p in tests.items():
            others = [medians[other] for other in ("flat", "lags") if other != kind]
            counts[kind]["better"] += bool(p < 0.05 and medians[kind] < medians["flat"])
            counts[kind]["worse"] += bool(p < 0.05 and medians[kind] > medians["flat"])
            counts[kind]["ahead"] += bool(p < 0.05 and medians[kind] < min(others))
        for kind, values in ratios.items():
            values.append(np.log(medians[kind] / medians["flat"]))
        row = "".join(f"{medians[kind]:11.3g}" for kind in KINDS)
        print(f"{name:24s}{row}" + "".join(f"{p:9.2g}" for p in tests.values()), flush=True)
    for kind, count in counts.items():
        print(
            f"{kind}: better than flat in {count['better']} of {len(options.tasks)} tasks, worse "
            f"in {count['worse']}; ahead of flat and lags in {count['ahead']}"
        )
    for kind, values in ratios.items():
        print(f"{kind}: {np.exp(np.mean(values)):.3g} times the error of flat (geometric mean)")
    print(f"{(time.process_time() - start) / 60:.1f} minutes of processor time")


if __name__ == "__main__":
    main()
