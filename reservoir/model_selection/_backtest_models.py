"""Models of a backtest: forecasters, networks in closed loop, regressors on lagged values."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from reservoir._tables.frames import is_pandas, take_rows
from reservoir._typing import Array
from reservoir.estimators.forecasting import forecast
from reservoir.estimators.forecasting.state_steps import is_reservoir, keeps_a_state
from reservoir.estimators.series.tables import read_values


class Rows(NamedTuple):
    """A series and its exogenous variables, in the user's containers."""

    y: Any
    exog: Any
    numbers: Array

    def part(self, start: int, stop: int) -> Rows:
        """Return the rows from `start` to `stop`."""
        rows = slice(start, stop)
        exog = None if self.exog is None else take_rows(self.exog, rows)
        return Rows(take_rows(self.y, rows), exog, self.numbers[rows])

    def values(self) -> Array:
        """Return y as an array of shape (n_samples, n_outputs)."""
        return self.numbers

    def known(self) -> Array:
        """Return exog as an array of shape (n_samples, n_exog)."""
        if self.exog is None:
            return np.zeros((len(self.y), 0))
        return read_values("exog", self.exog)


class Runner(ABC):
    """A model that is fitted on rows before an origin and forecasts the rows after it."""

    def __init__(self, model: Any, rows: Rows) -> None:
        self.model, self.rows = model, rows
        self.fitted: Any = None

    @abstractmethod
    def fit(self, start: int, stop: int) -> None:
        """Fit a clone of the model on the rows from `start` to `stop`."""

    @abstractmethod
    def advance(self, start: int, stop: int) -> None:
        """Pass the rows from `start` to `stop` to the fitted model, without refitting it."""

    @abstractmethod
    def forecast(self, origin: int, horizon: int) -> Any:
        """Forecast the rows from `origin` on, from the rows before it."""


class OwnForecasts(Runner):
    """A model with ``fit(y, exog)`` and ``forecast(n_steps, exog, coverage)``."""

    def __init__(self, model: Any, rows: Rows, coverages: Sequence[float], given: Any) -> None:
        super().__init__(model, rows)
        self.options = {"coverage": given} if coverages else {}

    def fit(self, start: int, stop: int) -> None:
        part = self.rows.part(start, stop)
        self.fitted = clone(self.model, safe=False)
        self.fitted.fit(part.y, **given_exog(part.exog))

    def advance(self, start: int, stop: int) -> None:
        part = self.rows.part(start, stop)
        self.fitted.update(part.y, **given_exog(part.exog))

    def forecast(self, origin: int, horizon: int) -> Any:
        known = given_exog(self.rows.part(origin, origin + horizon).exog)
        return self.fitted.forecast(horizon, **known, **self.options)


def given_exog(exog: Any = None) -> dict[str, Any]:
    """Return known inputs as a keyword, none if there are none."""
    return {} if exog is None else {"exog": exog}


class Loops(Runner):
    """A network, or a pipeline or search around one, that forecasts in closed loop.

    A row of X contains the series at that row, then the exogenous variables of the next row.
    """

    def __init__(self, model: Any, rows: Rows) -> None:
        super().__init__(model, rows)
        self.names = _names_of(rows)
        self.first = self.seen = 0

    def fit(self, start: int, stop: int) -> None:
        # y[t] is the series at t + 1; with the index of X, estimators do not reject it as shifted
        X, y = self.inputs(start, stop - 1), take_rows(self.rows.y, slice(start + 1, stop))
        if is_pandas(y):
            y = y.set_axis(X.index)
        self.fitted = clone(self.model).fit(X, y)
        self.first, self.seen = start, stop

    def advance(self, start: int, stop: int) -> None:
        """Do nothing: the rows since the fit are the context of the next forecast."""

    def forecast(self, origin: int, horizon: int) -> Any:
        known = self.rows.known()[origin : origin + horizon] if self.rows.exog is not None else None
        if origin == self.seen:
            return forecast(self.fitted, horizon, exog=self._named(known))
        # the context: rows since the fit if the network continues from there, else all rows again
        context = self.inputs(self.seen - 1 if _continues(self.fitted) else self.first, origin)
        rest = self._named(None if known is None else known[1:])
        return forecast(self.fitted, horizon, context=context, exog=rest)

    def inputs(self, start: int, stop: int) -> Any:
        """Return the rows of X from `start` to `stop`."""
        table = self.rows.values()[start:stop]
        table = np.hstack([table, self.rows.known()[start + 1 : stop + 1]])
        if self.names is None:
            return table
        import pandas as pd

        return pd.DataFrame(table, columns=self.names, index=self.rows.y.index[start:stop])

    def _named(self, known: Array | None) -> Any:
        if known is None or self.names is None:
            return known
        import pandas as pd

        return pd.DataFrame(known, columns=self.names[-known.shape[1] :])


def _continues(model: Any) -> bool:
    """Whether runs of a model, and of all steps before it that keep states, follow training."""
    inner = innermost(model)
    parts = [inner] if hasattr(inner, "forecast") else []
    parts += [part for part in model.get_params().values() if is_reservoir(part)]
    starts = [getattr(part, "initial_state", None) for part in parts]
    return all(isinstance(start, str) and start == "last" for start in starts)


def _names_of(rows: Rows) -> list[Any] | None:
    """Return the column names of X if y is a pandas object, else None.

    Without exog they are the names of y, unchanged; with exog all names are converted to strings.
    """
    if not is_pandas(rows.y):
        return None
    own = list(rows.y.columns if hasattr(rows.y, "columns") else rows.y.to_frame().columns)
    if rows.exog is None:
        return own
    if hasattr(rows.exog, "columns"):
        known = list(rows.exog.columns)
    else:
        known = [f"exog {j}" for j in range(rows.known().shape[1])]
    names = [str(name) for name in own + known]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Two columns of y and exog are named {twice!r}. Rename one of them.")
    return names


class Lags(Runner):
    """A regressor on the last `n_lags` rows of the series and the exog of the predicted row."""

    def __init__(self, model: Any, rows: Rows, n_lags: int) -> None:
        super().__init__(model, rows)
        self.n_lags = n_lags

    def fit(self, start: int, stop: int) -> None:
        part = self.rows.part(start, stop)
        values, targets = part.values(), part.values()[self.n_lags :]
        rows = range(self.n_lags, stop - start)
        X = [self._inputs(values[:row], known) for row, known in _with_known(part, rows)]
        y = targets[:, 0] if targets.shape[1] == 1 else targets
        self.fitted = clone(self.model).fit(np.array(X), y)

    def advance(self, start: int, stop: int) -> None:
        """Do nothing: the lags of the next forecast are read from the series."""

    def forecast(self, origin: int, horizon: int) -> Any:
        past = list(self.rows.values()[origin - self.n_lags : origin])
        for _, known in _with_known(self.rows, range(origin, origin + horizon)):
            X = self._inputs(np.array(past), known)[None]
            past.append(np.reshape(np.asarray(self.fitted.predict(X), dtype=np.float64), -1))
        return np.array(past[self.n_lags :])

    def _inputs(self, past: Array, known: Array) -> Array:
        """Return a row of X: the last rows, the latest first, and the exog of the next row."""
        return np.concatenate([past[: -self.n_lags - 1 : -1].ravel(), known])


def _with_known(rows: Rows, numbers: range) -> Any:
    """Return pairs of a row number and its exogenous variables."""
    return zip(numbers, rows.known()[numbers.start : numbers.stop], strict=True)


def runner_for(
    model: Any, rows: Rows, *, n_lags: int | None, coverages: Sequence[float], given: Any
) -> Runner:
    """Return the runner of a model, fitted or not; raise an error for models that cannot forecast.

    `n_lags` is None unless the model is a regressor. `coverages` belong to the requested intervals;
    `given`, the user's value of `coverage`, is passed to forecasters.
    """
    name, inner = type(model).__name__, innermost(model)
    if not hasattr(model, "fit"):
        raise TypeError(f"model={model!r} has no method fit. Pass an estimator.")
    own = hasattr(model, "forecast") and not _takes_inputs(model)
    if own:
        if n_lags is not None:
            raise ValueError(
                f"n_lags={n_lags} is for regressors, but {name} has a method forecast. Omit n_lags."
            )
        if coverages and "coverage" not in inspect.signature(model.forecast).parameters:
            raise ValueError(
                f"coverage={given!r}, but {name}.forecast has no parameter coverage. Omit "
                "coverage, or use a forecaster with intervals."
            )
        return OwnForecasts(model, rows, coverages, given)
    if coverages:
        raise ValueError(
            f"coverage={given!r} needs a model that forecasts intervals, such as ESNForecaster; "
            f"{name} does not. Omit coverage."
        )
    if hasattr(inner, "forecast") or keeps_a_state(model):
        if n_lags is not None:
            looped = type(inner).__name__ if hasattr(inner, "forecast") else name
            raise ValueError(
                f"n_lags={n_lags} is for regressors without memory, but {looped} forecasts in "
                "closed loop. Omit n_lags."
            )
        if getattr(inner, "feedback", False):
            raise ValueError(
                "feedback=True is not supported: a backtest feeds outputs back as inputs. Use "
                "feedback=False."
            )
        return Loops(model, rows)
    if n_lags is None:
        raise ValueError(
            f"{name} has no method forecast. Set n_lags, the number of past rows from which the "
            "next row is predicted, for instance n_lags=12."
        )
    return Lags(model, rows, n_lags)


def _takes_inputs(model: Any) -> bool:
    """Whether the first parameter of `fit` is X, not the series itself."""
    return next(iter(inspect.signature(model.fit).parameters), "") == "X"


def innermost(model: Any) -> Any:
    """Return the estimator inside pipelines, searches and target transformers, fitted or not."""
    for name in ("best_estimator_", "regressor_", "estimator", "regressor"):
        if hasattr(model, name) and hasattr(getattr(model, name), "fit"):
            return innermost(getattr(model, name))
    if hasattr(model, "steps"):
        return innermost(model.steps[-1][1])
    return model
