"""Backtests: forecasts from several origins within a series, scored against the truth."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import (
    caller_level,
    check_count,
    check_instance,
    check_n_jobs,
    check_switch,
    index_of,
)
from reservoir._validation.index import is_time, kind_of, show
from reservoir._workers import run_jobs
from reservoir.model_selection._backtest_models import OwnForecasts, Runner, runner_for
from reservoir.model_selection._backtest_plan import (
    Plan,
    check_one_series,
    check_scales,
    plan_of,
    read_rows,
)
from reservoir.model_selection._backtest_scores import (
    SCALED,
    Case,
    Metric,
    read_coverages,
    read_metrics,
    score,
    season_of,
)

_LOGGER = logging.getLogger("reservoir")


@dataclass(frozen=True, eq=False, repr=False)
class BacktestResult:
    """Result of `backtest`: forecasts with the truth, their errors and their scores.

    Rows are labelled by the forecast origin, the last row that was available to the model: by its
    date if the series has dates, otherwise by its row number.

    Attributes
    ----------
    scores : DataFrame
        One row per origin (and per column, if the series has several); one column per metric. With
        intervals, "coverage 0.9" is the fraction of true values inside the interval, and "width
        0.9" is the mean width of the interval.
    errors : DataFrame
        One row per origin, step and column: "origin", "step" (1 for the first row after the
        origin), "time", "column" and "error", the truth minus the forecast.
    forecasts : DataFrame
        The same rows, with "truth", "forecast" and, if intervals were requested, "lower 90%" and
        "upper 90%" instead of "error".
    season : int
        Season length of the scaled errors, in rows.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from reservoir.datasets import load_el_nino
    >>> from reservoir.model_selection import backtest
    >>> result = backtest(
    ...     LinearRegression(), load_el_nino(as_frame=True), horizon=12, n_lags=12, n_origins=3
    ... )
    >>> result.scores.shape, result.errors.shape, result.season
    ((3, 2), (36, 5), 12)
    >>> list(result.summary().columns)
    ['mean', 'median', 'min', 'max']
    """

    errors: Any
    scores: Any
    forecasts: Any
    season: int

    def summary(self) -> Any:
        """Return the mean, median and range of each metric over the origins, as a DataFrame."""
        figures = ["mean", "median", "min", "max"]
        if self.scores.index.nlevels == 1:
            return self.scores.agg(figures).T
        parts = {
            column: part.agg(figures).T
            for column, part in self.scores.groupby(level="column", sort=False)
        }
        return _pandas().concat(parts, names=["column"])

    def __repr__(self) -> str:
        n_origins = self.scores.index.get_level_values("origin").nunique()
        return (
            f"BacktestResult of {n_origins} origins, horizon {self.errors['step'].max()}, "
            f"season {self.season}\n{self.summary()}"
        )


def backtest(
    model: Any,
    y: Any,
    *,
    horizon: int,
    n_origins: int = 5,
    step: int | None = None,
    window: int | None = None,
    refit: bool = True,
    exog: Any = None,
    coverage: float | Sequence[float] | None = None,
    metrics: Any = ("mase", "rmse"),
    season: int | None = None,
    n_lags: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> BacktestResult:
    """Forecast a series from several origins within it, and score the forecasts.

    This is cross-validation for forecasts: at each origin only the rows up to it are available to
    the model, and its forecast of the next `horizon` rows is scored. Origins are `step` rows apart,
    and the last forecast ends with the series [1]_.

    Parameters
    ----------
    model : estimator
        A forecaster, a network or any other regressor; clones of it are fitted. A forecaster has
        ``fit(y, exog)`` and ``forecast(n_steps, exog)``: `reservoir.ESNForecaster`, or a custom
        class with these methods. A network is `reservoir.ESNRegressor`, `reservoir.RNNRegressor`,
        `reservoir.NVARRegressor`, a pipeline or search that ends in one, or a pipeline with a
        `reservoir.ReservoirTransformer`; it is trained to predict the next row, and forecasts in
        closed loop. Any other regressor, for instance one of scikit-learn, needs `n_lags`.
    y : Series, DataFrame or array of shape (n_samples,) or (n_samples, n_outputs)
        The series, with rows at equal time steps. Rows whose true value is NaN are not scored.
        Several series are columns; for other containers the error has the code that backtests each.
    horizon : int, rows
        Length of each forecast.
    n_origins : int, default=5
        Number of forecast origins.
    step : int, rows, optional
        Distance from one origin to the next. By default `horizon`, so that no row is forecast
        twice.
    window : int, rows, optional
        Number of rows to train on at each origin, the latest ones. By default all rows up to the
        origin.
    refit : bool, default=True
        Whether a clone is fitted at each origin. Otherwise one clone is fitted at the first origin
        and receives the later rows without being trained on them: forecasters by
        ``update(y_new, exog)``, networks as the context of a forecast, regressors as lags.
    exog : DataFrame or array of shape (n_samples,) or (n_samples, n_exog), optional
        Exogenous variables known in advance, one row per row of y. A forecast receives the rows for
        its horizon.
    coverage : float in (0, 1), or a list of them, optional
        The fraction of true values that each requested interval should contain. The forecaster's
        `forecast` must have a parameter ``coverage``, and return the forecast followed by a lower
        and an upper bound for each coverage: DataFrames with these columns, or arrays of shape
        (n_steps, 1 + 2 * n_coverages) or (n_steps, n_outputs, 1 + 2 * n_coverages).
    metrics : str, callable, or a list of them, default=("mase", "rmse")
        "mase", "rmsse", "smape" (`reservoir.metrics`), "mae", "rmse", or functions
        ``f(y_true, y_pred)`` that return a number; each column of y is scored separately. With
        `coverage` also "pinball", the mean pinball loss of all bounds. Scales are computed from the
        rows before each origin, or the last `window` of them.
    season : int, rows, optional
        Season length of "mase" and "rmsse". By default it is determined by the frequency of y's
        index: a year for monthly, quarterly and weekly rows, a week for daily rows, a day for
        hourly rows, and an hour for rows of one minute; 1 if the index has no frequency.
    n_lags : int, rows, optional
        Number of previous rows from which a regressor without memory predicts each row, the latest
        first, together with the predicted row's `exog`. In a forecast, predictions become lags of
        the next rows.
    n_jobs : int, optional
        Number of origins that are fitted in parallel if ``refit=True``, as in scikit-learn.
    verbose : int, default=0
        If not 0, log a line for each origin to the logger "reservoir".

    Returns
    -------
    BacktestResult

    Raises
    ------
    ImportError
        If pandas is not installed.
    ValueError
        If there are too few rows for the origins, a metric is unknown or has no scale, the model
        does not support `coverage`, `n_lags` or ``refit=False``, or a forecast differs in shape or
        dates from the rows of its horizon; if values are text or infinite.
    TypeError
        If y is no table, or is masked, sparse or of dates.

    Warns
    -----
    RuntimeWarning
        If a forecast is not finite. It is scored as 1e30.

    See Also
    --------
    reservoir.plotting.horizon_errors : Draws the errors by step.
    ClosedLoopSearchCV : Selects networks by closed loops within the data.

    References
    ----------
    .. [1] Tashman (2000), "Out-of-sample tests of forecasting accuracy: an analysis and review",
       International Journal of Forecasting 16, 437-450.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.model_selection import backtest
    >>> from reservoir import SeasonalNaive
    >>> y = np.arange(96) % 12 + np.repeat(np.arange(8), 12)  # one more each year
    >>> model = SeasonalNaive(season=12)
    >>> result = backtest(model, y, horizon=24, n_origins=2, season=12, metrics="mase")
    >>> result.scores
            mase
    origin
    47       1.5
    71       1.5
    >>> result.errors.groupby("step")["error"].mean().loc[[12, 13]].tolist()
    [1.0, 2.0]
    """
    pd = _pandas()
    check_instance("model", model)
    horizon, n_origins = check_count("horizon", horizon), check_count("n_origins", n_origins)
    check_one_series(model, y)
    rows = read_rows(y, exog)
    levels = read_coverages(coverage)
    measures = read_metrics(metrics, levels)
    season = season_of(rows.y) if season is None else check_count("season", season)
    check_switch("refit", refit)
    check_n_jobs(n_jobs)
    n_lags = None if n_lags is None else check_count("n_lags", n_lags)
    runner = runner_for(model, rows, n_lags=n_lags, coverages=levels, given=coverage)
    _check_update(runner, refit, n_origins)
    scaled = any(name in measures for name in SCALED)
    plan = plan_of(rows, horizon, n_origins, step, window, levels, season * scaled, n_lags)
    if scaled:
        check_scales(plan, season)
    # score each forecast as it arrives, so that `verbose` reports progress
    parts: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    columns = _columns(rows.y)
    for i, (origin, table) in enumerate(_run(plan, runner, refit, n_jobs)):
        _warn_if_not_finite(plan, origin, table)
        parts += _columns_of_forecast(plan, origin, table, columns)
        found = _score(plan, origin, table, measures, season, columns)
        if verbose:
            means = ", ".join(f"{m} {np.mean([s[m] for s in found]):.3g}" for m in measures)
            number = f"{i + 1} of {len(plan.origins)}"
            _LOGGER.warning("backtest: origin %s (%s): %s", number, plan.name(origin), means)
        scores += found
    forecasts = pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)
    errors = forecasts[["origin", "step", "time", "column"]].copy()
    errors["error"] = forecasts["truth"] - forecasts["forecast"]
    keys = ["origin", "column"] if np.ndim(rows.y) == 2 else ["origin"]
    return BacktestResult(
        errors, pd.DataFrame(scores).set_index(keys)[list(measures)], forecasts, season
    )


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "backtest returns DataFrames and needs pandas: pip install pandas"
        ) from error
    return pd


def _check_update(runner: Runner, refit: bool, n_origins: int) -> None:
    if refit or n_origins == 1 or not isinstance(runner, OwnForecasts):
        return
    if not hasattr(runner.model, "update"):
        raise ValueError(
            "refit=False needs a forecaster with a method update, but "
            f"{type(runner.model).__name__} has none. Use refit=True."
        )


def _run(
    plan: Plan, runner: Runner, refit: bool, n_jobs: int | None
) -> Iterator[tuple[int, Array]]:
    """Yield each origin with its forecast."""
    if refit:
        jobs = [(plan, runner, origin) for origin in plan.origins]
        found = run_jobs(_fit_and_forecast, jobs, n_jobs)
        yield from zip(plan.origins, found, strict=True)
        return
    seen = plan.origins[0]
    runner.fit(plan.start(seen), seen)
    for origin in plan.origins:
        if origin > seen:
            runner.advance(seen, origin)
            seen = origin
        yield origin, _read_forecast(plan, origin, runner.forecast(origin, plan.horizon))


def _fit_and_forecast(plan: Plan, runner: Runner, origin: int) -> Array:
    runner = copy.copy(runner)  # fit sets attributes, and threads share the runner of the job
    runner.fit(plan.start(origin), origin)
    return _read_forecast(plan, origin, runner.forecast(origin, plan.horizon))


def _read_forecast(plan: Plan, origin: int, table: Any) -> Array:
    """Return a forecast as an array of shape (horizon, n_outputs, 1 + 2 * n_coverages)."""
    values = np.asarray(table, dtype=np.float64)
    n_outputs, n_bounds = plan.rows.values().shape[1], 2 * len(plan.coverages)
    wanted = (plan.horizon, n_outputs, 1 + n_bounds)
    if len(values) != plan.horizon or values.size != np.prod(wanted):
        raise ValueError(
            f"The forecast at the origin {plan.name(origin)} has shape {values.shape}; "
            f"horizon={plan.horizon} and {n_outputs} columns of y require "
            f"{plan.horizon * n_outputs} values, each with {n_bounds} interval bounds."
        )
    _check_names(plan, origin, table)
    _check_dates(plan, origin, table)
    return values.reshape(wanted)


def _check_names(plan: Plan, origin: int, table: Any) -> None:
    """Check the order of the columns of y, or of the bounds, unless none of the names is known."""
    if not hasattr(table, "columns"):
        return
    found = [name[-1] if isinstance(name, tuple) else name for name in table.columns]
    wanted = _columns(plan.rows.y)
    if plan.coverages:
        bounds = [f"{side} {100 * c:.10g}%" for c in plan.coverages for side in ("lower", "upper")]
        wanted = ["forecast", *bounds] * len(wanted)
    if found != wanted and set(found) & set(wanted):
        raise ValueError(
            f"The forecast at the origin {plan.name(origin)} has the columns {found}; they must be "
            f"{wanted}, in this order."
        )


def _check_dates(plan: Plan, origin: int, table: Any) -> None:
    own, other = index_of(plan.rows.y), index_of(table)
    kind = None if own is None else kind_of(own)
    if kind is None or other is None or kind != kind_of(other) or not is_time(kind):
        return
    followed = own[origin : origin + plan.horizon]
    if not followed.equals(other):
        row = int(np.argmax(np.asarray(followed != other)))
        raise ValueError(
            f"The forecast from the origin {plan.name(origin)} has the date {show(other[row])} in "
            f"step {row + 1}, but y has {show(followed[row])}. Make the dates of y regular "
            "(asfreq), with NaN where there is no value."
        )


def _warn_if_not_finite(plan: Plan, origin: int, table: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(table[:, :, 0]).all(axis=1))
    if bad.size:
        warnings.warn(
            f"The forecast at the origin {plan.name(origin)} is not finite from step {bad[0] + 1} "
            "on. It is scored as 1e30, which makes means over the origins unreliable.",
            RuntimeWarning,
            stacklevel=caller_level(),
        )


def _columns(y: Any) -> list[Any]:
    """Return the names of the columns of y, or their numbers if they have no names."""
    if hasattr(y, "columns"):
        return list(y.columns)
    name = getattr(y, "name", None)
    return [0 if name is None else name] if y.ndim == 1 else list(range(y.shape[1]))


def _columns_of_forecast(
    plan: Plan, origin: int, table: Array, columns: list[Any]
) -> list[dict[str, Any]]:
    """Return the forecast and the truth of each column of y, as columns of a DataFrame."""
    truth = plan.rows.values()[origin : origin + plan.horizon]
    steps = np.arange(plan.horizon)
    times = [plan.label(origin + int(k)) for k in steps]
    parts = []
    for j, column in enumerate(columns):
        part: dict[str, Any] = {"origin": plan.label(origin - 1), "step": steps + 1, "time": times}
        part |= {"column": column, "truth": truth[:, j], "forecast": table[:, j, 0]}
        for k, level in enumerate(plan.coverages):
            part[f"lower {100 * level:.10g}%"] = table[:, j, 1 + 2 * k]
            part[f"upper {100 * level:.10g}%"] = table[:, j, 2 + 2 * k]
        parts.append(part)
    return parts


def _score(
    plan: Plan,
    origin: int,
    table: Array,
    metrics: dict[str, Metric],
    season: int,
    columns: list[Any],
) -> list[dict[str, Any]]:
    """Return the scores at one origin, as one dict for each column."""
    values = plan.rows.values()
    found = []
    for j, column in enumerate(columns):
        bounds = {
            level: (table[:, j, 1 + 2 * k], table[:, j, 2 + 2 * k])
            for k, level in enumerate(plan.coverages)
        }
        train = values[plan.start(origin) : origin, j]
        truth = values[origin : origin + plan.horizon, j]
        case = Case(truth, table[:, j, 0], bounds, train, season)
        found.append({"origin": plan.label(origin - 1), "column": column, **score(metrics, case)})
    return found
