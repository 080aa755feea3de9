"""The models of `as_it_comes.py`, each fitted on a task of `_open_tasks.py` and scored.

Rivals see the last twenty rows of the inputs. What they predict counts as what the network does.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from _open_tasks import TASKS, FreeRun, Rows
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, forecast

Array = np.ndarray
N_LAGS = 20
ALPHAS = np.logspace(-8, 6, 15)
MOST_BOOSTED = 4_000_000  # rows x lagged columns x outputs; above it boosting is left out
LEAST_LOSS, MOST_LOSS = 0.01, 10.0  # errors beyond these are as good, as bad as these
WORST_R2 = -1e6
RIDGE, BOOSTING, MEAN, NAIVE = "ridge on lags", "boosting on lags", "mean", "last or season"
RIVALS = (RIDGE, BOOSTING, MEAN, NAIVE)


@dataclass(frozen=True)
class Score:
    """How a model did on a task with one seed.

    `r2` is one minus the mean squared error over the variance, averaged over outputs; `steps` is
    given for free runs that are judged by them; `seconds` is the processor time of the fit;
    `refused` the error that it ended with.
    """

    r2: float
    steps: float | None = None
    seconds: float = 0.0
    refused: str = ""

    @property
    def loss(self) -> float:
        """Return what ratios are made of: root of 1 - r2 within bounds, or 1 / (1 + steps)."""
        if self.steps is not None:
            return 1 / (1 + self.steps)
        return float(np.clip(np.sqrt(1 - self.r2), LEAST_LOSS, MOST_LOSS))


def score_model(name: str, seed: int, model: str, settings: dict[str, Any] | None) -> Score | None:
    """Fit and score a model; `settings` make it an `ESNRegressor`, None a rival.

    Returns None where the model has nothing to say: boosting on too large a task, the last value
    where outputs are no later inputs.
    """
    task = _drawn(name, seed)
    _warm_up()
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if settings is None:
                found = rival(task, model, seed)
            else:
                found = network(task, {"random_state": seed, **settings})
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            chaos = isinstance(task, FreeRun) and task.threshold is not None
            words = f"{type(error).__name__}: {error}"[:200]
            return Score(WORST_R2, 0.0 if chaos else None, 0.0, words)
        if found is None:
            return None
        predicted, seconds = found
        return score(task, predicted, seconds)


@cache
def _warm_up() -> None:
    """Load the compiled kernels: no fit's time shall contain that."""
    ESNRegressor(20, random_state=0).fit(np.zeros((3000, 1)) + 0.1, np.arange(3000.0))


_LAST: dict[tuple[str, int], Rows | FreeRun] = {}


def _drawn(name: str, seed: int) -> Rows | FreeRun:
    """Return the data; those of the last call are kept."""
    if (name, seed) not in _LAST:
        _LAST.clear()
        _LAST[name, seed] = TASKS[name].draw(seed)
    return _LAST[name, seed]


# --- scores ---------------------------------------------------------------------------------------


def score(task: Rows | FreeRun, predicted: list[Array], seconds: float) -> Score:
    """Compare predictions with what is clean; what is not finite counts as far off."""
    predicted = [np.nan_to_num(p, nan=1e9, posinf=1e9, neginf=-1e9) for p in predicted]
    steps = None
    if isinstance(task, Rows):
        truth, rows = np.concatenate(task.y_new), np.concatenate(predicted)
        share = np.mean(np.mean((rows - truth) ** 2, axis=0) / truth.var(axis=0))
    else:
        errors = [
            np.sqrt(np.mean(((run - truth) / task.deviation) ** 2, axis=1))
            for run, truth in zip(predicted, task.truths, strict=True)
        ]
        share = np.mean([np.mean(e[: task.near] ** 2) for e in errors])
        if task.threshold is not None:
            off = [np.append(e > task.threshold, True) for e in errors]
            steps = float(np.mean([np.argmax(each) for each in off]))
    return Score(max(float(1 - share), WORST_R2), steps, seconds)


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a function returns, and the processor time that it took."""
    start = time.process_time()
    found = fit()
    return found, time.process_time() - start


# --- the network ----------------------------------------------------------------------------------


def network(
    task: Rows | FreeRun, settings: dict[str, Any], kind: Callable[..., Any] = ESNRegressor
) -> tuple[list[Array], float]:
    """Predict as a user does: behind a scaler where the inputs ask for one."""
    esn = kind(**settings)
    model = make_pipeline(StandardScaler(), esn) if task.scaled else esn
    if isinstance(task, FreeRun):
        x, n = task.series, task.n_train
        fitted, seconds = timed(lambda: model.fit(x[: n - 1], x[1:n]))
        # the state at the end of training has not seen the last target yet
        runs = [
            forecast(fitted, len(truth), context=x[n - 1 : origin])
            for origin, truth in zip(task.origins, task.truths, strict=True)
        ]
        return [run.reshape(len(run), -1) for run in runs], seconds
    if len(task.X) == 1:
        fitted, seconds = timed(lambda: model.fit(task.X[0], task.y[0]))
        return [fitted.predict(task.X_new[0]).reshape(task.y_new[0].shape)], seconds
    X, X_new = task.X, task.X_new
    if task.scaled:
        scaler = StandardScaler().fit(np.concatenate(X))  # a pipeline would refuse the list
        X, X_new = ([scaler.transform(rows) for rows in of] for of in (X, X_new))
    fitted, seconds = timed(lambda: esn.fit(X, task.y))
    return [rows.reshape(len(rows), -1) for rows in fitted.predict(X_new)], seconds


# --- rivals ---------------------------------------------------------------------------------------


def rival(task: Rows | FreeRun, model: str, seed: int) -> tuple[list[Array], float] | None:
    """Predict without a network."""
    if model == MEAN:
        return _mean(task), 0.0
    if model == NAIVE:
        return None if (found := _naive(task)) is None else (found, 0.0)
    if isinstance(task, FreeRun):
        X, y = [task.series[: task.n_train - 1]], [task.series[1 : task.n_train]]
    else:
        X, y = task.X, task.y
    # a single sequence begins where twenty rows are there, the short ones repeat their first
    skip = N_LAGS - 1 if len(X) == 1 else 0
    H = np.concatenate([lagged(rows)[skip:] for rows in X])
    Y = np.concatenate([rows[skip:] for rows in y])
    if model == BOOSTING:
        if H.size * Y.shape[1] > MOST_BOOSTED:
            return None
        regressor: Any = MultiOutputRegressor(HistGradientBoostingRegressor(random_state=seed))
    else:
        regressor = ridge()
    scale = StandardScaler().fit(Y)
    fitted, seconds = timed(lambda: regressor.fit(H, scale.transform(Y)))

    def predict(rows: Array) -> Array:
        return scale.inverse_transform(fitted.predict(rows).reshape(len(rows), -1))

    if isinstance(task, FreeRun):
        return _run_on(task, predict), seconds
    return [predict(rows) for rows in _lagged_new(task)], seconds


def ridge() -> Any:
    """Ridge regression whose penalty is chosen by five consecutive blocks."""
    blocks = KFold(5, shuffle=False)
    search = RidgeCV(alphas=ALPHAS, cv=blocks, scoring="neg_mean_squared_error")
    return make_pipeline(StandardScaler(), search)


def lagged(rows: Array) -> Array:
    """Return each row beside the nineteen before it; before the first row stands the first."""
    padded = np.concatenate([np.repeat(rows[:1], N_LAGS - 1, axis=0), rows])
    windows = np.lib.stride_tricks.sliding_window_view(padded, N_LAGS, axis=0)
    return windows.reshape(len(rows), -1)


def _lagged_new(task: Rows) -> list[Array]:
    if len(task.X) > 1:
        return [lagged(rows) for rows in task.X_new]
    before = task.X[0][-(N_LAGS - 1) :]
    return [lagged(np.concatenate([before, task.X_new[0]]))[len(before) :]]


def _run_on(task: FreeRun, predict: Callable[[Array], Array]) -> list[Array]:
    """Return free runs, those of all origins step by step together."""
    window = np.stack([task.series[i - N_LAGS : i] for i in task.origins])
    found = []
    for _ in range(len(task.truths[0])):
        features = window.transpose(0, 2, 1).reshape(len(window), -1)
        row = np.clip(np.nan_to_num(predict(features)), -1e9, 1e9)
        found.append(row)
        window = np.concatenate([window[:, 1:], row[:, None]], axis=1)
    return list(np.stack(found, axis=1))


def _mean(task: Rows | FreeRun) -> list[Array]:
    if isinstance(task, Rows):
        mean = np.concatenate(task.y).mean(axis=0)
        return [np.tile(mean, (len(rows), 1)) for rows in task.y_new]
    mean = task.series[: task.n_train].mean(axis=0)
    return [np.tile(mean, (len(rows), 1)) for rows in task.truths]


def _naive(task: Rows | FreeRun) -> list[Array] | None:
    if isinstance(task, Rows):
        return task.last
    season = task.season
    return [
        np.resize(task.series[i - season : i], truth.shape)
        for i, truth in zip(task.origins, task.truths, strict=True)
    ]
