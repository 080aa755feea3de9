"""Ways to follow a stream, behind one small interface; all have the same network.

A contender starts from the rows before the stream, then predicts each chunk and learns from it. It
is given `Rows`: inputs, targets, and features of the same rows, which all contenders that bring no
network of their own learn from: the network's states beside the input, or the input's last lags.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _drift_tasks import Task
from _peers import load
from sklearn.linear_model import Ridge

from reservoir import ESNRegressor, ReservoirTransformer
from reservoir.readouts import LMS, RecursiveLeastSquares, SlidingWindow

Array = np.ndarray
N_LAGS = 20
WASHOUT = 100
REFERENCE = "refitted on a window"
NETWORK: dict[str, Any] = {"input_scaling": 0.5, "spectral_radius": 0.7, "leak_rate": 1.0}


@dataclass(frozen=True)
class Rows:
    """The same rows as inputs, states beside the input, lagged inputs, and targets."""

    X: Array
    states: Array
    lags: Array
    y: Array

    def __getitem__(self, rows: slice) -> Rows:
        return Rows(self.X[rows], self.states[rows], self.lags[rows], self.y[rows])


def rows_of(task: Task, n_units: int, seed: int) -> Rows:
    """Return all rows of a task, with the states of the network of this seed."""
    network = ReservoirTransformer(n_units, random_state=seed, **NETWORK)
    padded = np.concatenate([np.zeros(N_LAGS - 1), task.X[:, 0]])
    return Rows(
        task.X,
        np.hstack([network.fit_transform(task.X), task.X]),
        np.lib.stride_tricks.sliding_window_view(padded, N_LAGS)[:, ::-1].copy(),
        task.y,
    )


class Contender(ABC):
    """Fitted once, then left as it is; subclasses go on to learn."""

    @abstractmethod
    def start(self, rows: Rows) -> None:
        """Learn from the rows before the stream."""

    @abstractmethod
    def predict(self, rows: Rows) -> Array:
        """Return predictions of the next rows, which have not been learned from."""

    def learn(self, rows: Rows) -> None:  # noqa: B027 (the first kind learns no more)
        """Learn from the rows predicted last."""


@dataclass
class Once(Contender):
    """A fitted network that follows its input, and learns no more."""

    esn: ESNRegressor

    def start(self, rows: Rows) -> None:
        self.stream = self.esn.fit(rows.X, rows.y).stream()

    def predict(self, rows: Rows) -> Array:
        return self.stream.predict(rows.X)


@dataclass
class Chunks(Contender):
    """`partial_fit` of a network, whatever its readout."""

    esn: ESNRegressor

    def start(self, rows: Rows) -> None:
        self.esn.partial_fit(rows.X, rows.y)

    def predict(self, rows: Rows) -> Array:
        return self.esn.predict(rows.X)

    def learn(self, rows: Rows) -> None:
        self.esn.partial_fit(rows.X, rows.y)


@dataclass
class Session(Once):
    """`learn` of the stream of a fitted network."""

    def learn(self, rows: Rows) -> None:
        self.stream.learn(rows.X, rows.y)


@dataclass
class Regressor(Contender):
    """Anything with `partial_fit` and `predict`, on the states or on the lags."""

    model: Any
    features: str = "states"

    def start(self, rows: Rows) -> None:
        self.learn(rows[WASHOUT:])

    def predict(self, rows: Rows) -> Array:
        return self.model.predict(getattr(rows, self.features))

    def learn(self, rows: Rows) -> None:
        self.model.partial_fit(getattr(rows, self.features), rows.y)


@dataclass
class Refit(Contender):
    """The yardstick: scikit-learn's ridge, fitted anew to the last rows, every 50 rows."""

    n_rows: int
    alpha: float
    every: int = 50
    kept: list[Rows] = field(default_factory=list)
    n_new: int = 0

    def start(self, rows: Rows) -> None:
        self.states, self.y = rows.states[WASHOUT:], rows.y[WASHOUT:]
        self._fit()

    def predict(self, rows: Rows) -> Array:
        return self.ridge.predict(rows.states)

    def learn(self, rows: Rows) -> None:
        self.states = np.vstack([self.states, rows.states])[-self.n_rows :]
        self.y = np.concatenate([self.y, rows.y])[-self.n_rows :]
        self.n_new += len(rows.y)
        if self.n_new >= self.every:
            self._fit()

    def _fit(self) -> None:
        self.n_new = 0
        self.ridge = Ridge(self.alpha).fit(self.states[-self.n_rows :], self.y[-self.n_rows :])


class ReservoirpyNode:
    """An online node of reservoirpy as a regressor."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.node = getattr(load("reservoirpy.nodes"), kind)(**options)

    def predict(self, X: Array) -> Array:
        return self.node.run(X)[:, 0]

    def partial_fit(self, X: Array, y: Array) -> None:
        self.node.partial_fit(X, y[:, None])


class RiverModel:
    """A linear model of river, which takes its features by name, row by row."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Array) -> Array:
        return np.array([self.model.predict_one(named(row)) for row in X])

    def partial_fit(self, X: Array, y: Array) -> None:
        for row, target in zip(X, y.tolist(), strict=True):
            self.model.learn_one(named(row), target)


def named(row: Array) -> dict[int, float]:
    """Return a row as river takes it."""
    return dict(enumerate(row.tolist()))


def river_sgd(step: float) -> RiverModel:
    """``LinearRegression`` under stochastic gradient descent, with one step size."""
    linear, optim = load("river.linear_model"), load("river.optim")
    return RiverModel(linear.LinearRegression(optim.SGD(step), intercept_lr=step))


def river_bayes(smoothing: float | None, alpha: float = 1.0, beta: float = 1.0) -> RiverModel:
    """``BayesianLinearRegression``: recursive least squares, whose `smoothing` forgets."""
    linear = load("river.linear_model")
    return RiverModel(linear.BayesianLinearRegression(alpha, beta, smoothing=smoothing))


def esn(n_units: int, seed: int, **options: Any) -> ESNRegressor:
    """Return the network that all contenders share."""
    return ESNRegressor(n_units, washout=WASHOUT, random_state=seed, **NETWORK, **options)


Make = Callable[[int, int], Contender]  # from the number of units and the seed


def ways(settings: dict[str, float]) -> dict[str, Make]:
    """All contenders by name; a peer that is not installed raises LeftOut when it is made."""
    alpha, window, chosen = settings["alpha"], int(settings["window"]), settings["forgetting"]

    def chunks(value: float) -> Make:
        return lambda n, seed: Chunks(esn(n, seed, alpha=alpha, forgetting=value))

    def with_readout(readout: Any) -> Make:
        return lambda n, seed: Chunks(esn(n, seed, readout=readout))

    def regressor(make: Callable[[], Any], features: str = "states") -> Make:
        return lambda n, seed: Regressor(make(), features)

    rls = RecursiveLeastSquares
    return {
        REFERENCE: lambda n, seed: Refit(window, alpha),
        "fit once": lambda n, seed: Once(esn(n, seed, alpha=alpha)),
        "partial_fit": chunks(1.0),
        **{f"partial_fit, forgetting {value:g}": chunks(value) for value in (0.999, chosen, 0.99)},
        f"stream().learn, forgetting {chosen:g}": lambda n, seed: Session(
            esn(n, seed, alpha=alpha, forgetting=chosen)
        ),
        f"RecursiveLeastSquares, {chosen:g}": with_readout(rls(forgetting=chosen, alpha=alpha)),
        "SlidingWindow": with_readout(SlidingWindow(window, alpha=alpha)),
        "LMS": with_readout(LMS(learning_rate=settings["LMS"])),
        f"{N_LAGS} lags, RecursiveLeastSquares": regressor(
            lambda: rls(forgetting=settings["lags"], alpha=alpha), "lags"
        ),
        f"reservoirpy, RLS, {chosen:g}": regressor(
            lambda: ReservoirpyNode("RLS", alpha=settings["reservoirpy, RLS"], forgetting=chosen)
        ),
        "reservoirpy, LMS": regressor(
            lambda: ReservoirpyNode("LMS", learning_rate=settings["reservoirpy, LMS"])
        ),
        "river, LinearRegression": regressor(lambda: river_sgd(settings["river"])),
    }


def choices(settings: dict[str, float]) -> dict[str, dict[str, Make]]:
    """Contenders for each value of each setting; alpha is chosen with the forgetting."""
    alpha, chosen = settings["alpha"], settings["forgetting"]

    def forgetting(alpha: float, value: float) -> Make:
        return lambda n, seed: Chunks(esn(n, seed, alpha=alpha, forgetting=value))

    def lms(step: float) -> Make:
        return lambda n, seed: Chunks(esn(n, seed, readout=LMS(learning_rate=step)))

    return {
        **{
            f"forgetting, alpha {penalty:g}": {
                f"{value:g}": forgetting(penalty, value)
                for value in (0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0)
            }
            for penalty in (1e-4, 1e-3, 1e-2)
        },
        "window": {
            str(n_rows): lambda n, seed, w=n_rows: Refit(w, alpha)
            for n_rows in (200, 350, 500, 700, 1000, 2000)
        },
        "LMS": {f"{step:g}": lms(step) for step in (0.03, 0.1, 0.2, 0.5, 1.0)},
        f"{N_LAGS} lags, forgetting": {
            f"{value:g}": lambda n, seed, v=value: Regressor(
                RecursiveLeastSquares(forgetting=v, alpha=alpha), "lags"
            )
            for value in (0.97, 0.98, 0.99, 0.995, 0.998, 0.999)
        },
        "reservoirpy, RLS, alpha": {
            f"{penalty:g}": lambda n, seed, a=penalty: Regressor(
                ReservoirpyNode("RLS", alpha=a, forgetting=chosen)
            )
            for penalty in (1e-6, 1e-3, 1e-2, 1e-1, 1.0)
        },
        "reservoirpy, LMS": {
            f"{step:g}": lambda n, seed, s=step: Regressor(ReservoirpyNode("LMS", learning_rate=s))
            for step in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
        },
        "river": {
            f"{step:g}": lambda n, seed, s=step: Regressor(river_sgd(s))
            for step in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
        },
    }
