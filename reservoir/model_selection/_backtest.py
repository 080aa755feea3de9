"""Backtests: forecasts from several origins within a series, scored against the truth."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
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
from reservoir.model_selection._backtest_models import OwnForecasts, Rows, Runner, runner_for
from reservoir.model_selection._backtest_panel import (
    divided,
    forecasts_of_several,
    mean_by_step,
)
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

_SCALE = "scale of "
_LOGGER = logging.getLogger("reservoir")


@dataclass(frozen=True, eq=False, repr=False)
class BacktestResult:
    """Result of `backtest`: forecasts with the truth, their errors and their scores.

    Rows are labelled by the forecast origin, the last row that was available to the model: by its
    date if the series has dates, otherwise by its row number.

    Attributes
    ----------
    scores : DataFrame
        One row per origin (and per series and column, if there are several); one column per
        metric. With intervals, "coverage 0.9" is the fraction of true values inside the interval,
        and "width 0.9" is the mean width of the interval.
    errors : DataFrame
        One row per origin, step and column: "series" if there are several, "origin", "step" (1 for
        the first row after the origin), "time", "column" and "error", the truth minus the forecast.
    forecasts : DataFrame
        The same rows, with "truth", "forecast" and, if intervals were requested, "lower 90%" and
        "upper 90%" instead of "error".
    season : int
        Season length of the scaled errors, in rows.
    scales : DataFrame
        By how much an error counts in "mase" and "rmsse", in the rows of `scores`.

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
    scales: Any = None

    def summary(self) -> Any:
        """Return the mean, median and range of each metric over the origins, as a DataFrame.

        Of several series, these are the figures over all series of their means over the origins.
        """
        figures = ["mean", "median", "min", "max"]
        scores = self.by_series() if "series" in self.scores.index.names else self.scores
        if len(scores.index.names) == 1:
            return scores.agg(figures).T
        parts = {
            column: part.agg(figures).T
            for column, part in scores.groupby(level="column", sort=False)
        }
        return _pandas().concat(parts, names=["column"])

    def by_series(self) -> Any:
        """Return the mean of each metric over the origins for each series, as a DataFrame."""
        levels = [name for name in self.scores.index.names if name != "origin"]
        if "series" not in levels:
            raise ValueError("The backtest is of one series, whose figures `summary` returns.")
        return self.scores.groupby(level=levels, sort=False).mean()

    def by_horizon(self) -> Any:
        """Return metrics at each step of the horizon, as a DataFrame with a row for each step.

        They are means over the origins, of "rmse" and "rmsse" the root mean square, and then over
        columns and series. Other metrics than these, "mase", "mae", coverages and widths are left
        out.
        """
        found = {name: mean_by_step(self, name) for name in self.scores.columns}
        return _pandas().DataFrame({name: each for name, each in found.items() if each is not None})

    def select(self, series: Any) -> BacktestResult:
        """Return the result of one of several series, by its id."""
        if "series" not in self.scores.index.names or series not in set(self.errors["series"]):
            raise ValueError(
                f"The backtest has no series {series!r}. Name one of `by_series().index`."
            )
        tables = (each[each["series"] == series] for each in (self.errors, self.forecasts))
        errors, forecasts = (each.drop(columns="series").reset_index(drop=True) for each in tables)
        scores, scales = (each.xs(series, level="series") for each in (self.scores, self.scales))
        return BacktestResult(errors, scores, forecasts, self.season, scales)

    def __repr__(self) -> str:
        index = self.scores.index
        n_origins, of = index.get_level_values("origin").nunique(), ""
        if "series" in index.names:
            counts = self.errors.groupby("series")["origin"].nunique()
            n_origins, of = int(counts.max()), f" of {len(counts)} series"
        return (
            f"BacktestResult of {n_origins} origins{of}, horizon {self.errors['step'].max()}, "
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
        Several series are columns. With a `model` that forecasts panels, such as ESNForecaster with
        `panel` or `sequence_column`, y may be any of its containers, such as a table with columns
        of ids, times and known inputs; the origins of each series are counted from its end.
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

    Several series, and two models in one table:

    >>> import pandas as pd
    >>> both = [y, y[12:] * 3]
    >>> models = {"season": SeasonalNaive(12, panel="each"), "last": SeasonalNaive(1, panel="each")}
    >>> pd.DataFrame({
    ...     name: backtest(each, both, horizon=12, season=12).summary()["mean"]
    ...     for name, each in models.items()
    ... }).round(1)
          season  last
    mase     1.0   4.7
    rmse     2.0  11.3
    """
    _pandas()
    check_instance("model", model)
    horizon, n_origins = check_count("horizon", horizon), check_count("n_origins", n_origins)
    model, y, exog, several = divided(model, y, exog)
    if several is None:
        check_one_series(model, y)
    every = [read_rows(y, exog)] if several is None else several.rows
    levels = read_coverages(coverage)
    measures = read_metrics(metrics, levels)
    longest_first = sorted(every, key=lambda rows: -len(rows.y))
    if season is None:  # dates with gaps have none
        found_seasons = (season_of(rows.y) for rows in longest_first)
        season = next((each for each in found_seasons if each > 1), 1)
    season = check_count("season", season)
    check_switch("refit", refit)
    check_n_jobs(n_jobs)
    n_lags = None if n_lags is None else check_count("n_lags", n_lags)
    runner = runner_for(model, longest_first[0], n_lags=n_lags, coverages=levels, given=coverage)
    _check_update(runner, refit, n_origins)
    scaled = any(name in measures for name in SCALED)
    plans = [
        _planned(each, rows, horizon, n_origins, step, window, levels, season * scaled, n_lags)
        for each, rows in zip(several.ids if several else [None], every, strict=True)
    ]
    found: Iterator[list[Array | None]]
    if several is None:
        found = ([table] for _, table in _run(plans[0], runner, refit, n_jobs))
    else:
        options = {"coverage": coverage} if levels else {}
        found = forecasts_of_several(
            model, plans, _read_forecast, refit=refit, n_jobs=n_jobs, options=options
        )
    return _result(plans, several and several.ids, found, measures, season, verbose)


def _planned(each: Any, rows: Rows, *arguments: Any) -> Plan:
    """Return the plan of a series with this id, None if there is only one."""
    season = arguments[-2]
    try:
        plan = plan_of(rows, *arguments)
        if season:
            check_scales(plan, season)
    except ValueError as error:
        if each is None:
            raise
        raise ValueError(f"Series {each!r}: {error}") from error
    return plan


def _result(
    plans: Sequence[Plan],
    ids: Sequence[Any] | None,
    found: Iterator[list[Array | None]],
    measures: dict[str, Metric],
    season: int,
    verbose: int,
) -> BacktestResult:
    """Score each forecast as it arrives, so that `verbose` reports progress."""
    parts: list[list[dict[str, Any]]] = [[] for _ in plans]
    scores: list[list[dict[str, Any]]] = [[] for _ in plans]
    for k, tables in enumerate(found):
        at_origin = []
        for i, (plan, table) in enumerate(zip(plans, tables, strict=True)):
            if table is None:  # a series that could not be fitted
                continue
            origin, columns = plan.origins[k], _columns(plan.rows.y)
            label = {} if ids is None else {"series": ids[i]}
            _warn_if_not_finite(plan, origin, table)
            forecast = _columns_of_forecast(plan, origin, table, columns)
            parts[i] += [label | part for part in forecast]
            at_origin.append(_score(plan, origin, table, measures, season, columns))
            scores[i] += [label | each for each in at_origin[-1]]
        if verbose:
            flat = list(chain(*at_origin))
            means = ", ".join(f"{m} {np.mean([s[m] for s in flat]):.3g}" for m in measures)
            name = plans[0].name(plans[0].origins[k])
            number = f"{k + 1} of {len(plans[0].origins)}"
            _LOGGER.warning("backtest: origin %s (%s): %s", number, name, means)
    keys = ["origin"] if ids is None else ["series", "origin"]
    several_columns = ids is None and np.ndim(plans[0].rows.y) == 2
    if several_columns or any(plan.rows.values().shape[1] > 1 for plan in plans):
        keys.append("column")
    tables = _pandas().DataFrame(list(chain(*scores))).set_index(keys)
    return _tabulated(list(chain(*parts)), tables, list(measures), season)


def _tabulated(
    parts: list[dict[str, Any]], scores: Any, names: list[str], season: int
) -> BacktestResult:
    """Return the result with the forecasts of each origin and column, and their scores."""
    pd = _pandas()
    forecasts = pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)
    labels = ["series"] * ("series" in forecasts) + ["origin", "step", "time", "column"]
    errors = forecasts[labels].copy()
    errors["error"] = forecasts["truth"] - forecasts["forecast"]
    scales = scores[[_SCALE + name for name in SCALED if name in names]]
    scales = scales.rename(columns=lambda name: name.removeprefix(_SCALE))
    return BacktestResult(errors, scores[names], forecasts, season, scales)


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
        unit = case._replace(truth=np.zeros(1), guess=np.ones(1), bounds={})
        scales = {_SCALE + m: metrics[m](unit) for m in SCALED if m in metrics}
        label = {"origin": plan.label(origin - 1), "column": column}
        found.append({**label, **score(metrics, case), **scales})
    return found
