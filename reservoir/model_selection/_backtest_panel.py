"""Backtests of several series with a model that forecasts them together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from reservoir._tables.frames import is_collection, n_levels
from reservoir._typing import Array
from reservoir._workers import run_jobs
from reservoir.estimators.series.checks import panel_of
from reservoir.estimators.series.long_table import Columns, LongTable
from reservoir.estimators.series.tables import Division, divide
from reservoir.model_selection._backtest_models import Rows, given_exog
from reservoir.model_selection._backtest_plan import Plan, read_rows

_COLUMNS = ("sequence_column", "time_column", "target_column")


class Several(NamedTuple):
    """Several series with their ids."""

    ids: tuple[Any, ...]
    rows: list[Rows]


def divided(model: Any, y: Any, exog: Any) -> tuple[Any, Any, Any, Several | None]:
    """Divide the table of a model that forecasts panels, or has a column of times.

    Returns the model, y and exog without columns of ids and times, and the series with their ids,
    for which the model then receives lists; None for one series, also of several columns.
    """
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    if not {"panel", *_COLUMNS} <= params.keys():
        return model, y, exog, None
    panel = panel_of(params["panel"], params["sequence_column"])
    table = LongTable.of(y, exog, Columns.of(model))
    y, exog = table.split(y, exog)
    if table.chosen and "exog" not in inspect.signature(model.fit).parameters:
        exog = None  # columns that the model does not use
    column = table.id_place if table.labels else params["sequence_column"]
    if any(params[name] is not None for name in _COLUMNS):
        model = clone(model).set_params(panel=panel, **dict.fromkeys(_COLUMNS))
    if panel is None:
        return model, y, exog, None
    division = divide("y", y, column)
    if division.kind in ("one", "columns"):
        return model, y, exog, None
    known = _known_of(division, exog, column)
    rows = [read_rows(*of_series) for of_series in zip(division.tables, known, strict=True)]
    return model, y, exog, Several(division.ids, rows)


def _known_of(division: Division, exog: Any, column: Any) -> list[Any]:
    """Return the known inputs of each series, None without any."""
    by_id = n_levels(exog) > 1 or (division.kind == "long" and column is not None)
    if exog is None or not (is_collection(exog) or by_id):
        return [exog] * len(division.ids)
    other = divide("exog", exog, column if division.kind == "long" else None)
    keys = other.ids if other.by_id else division.ids
    tables = dict(zip(keys, other.tables, strict=False))
    missing = [each for each in division.ids if each not in tables]
    if missing:
        raise ValueError(f"exog has no rows of series {missing[0]!r}. Give the missing rows.")
    return [tables[each] for each in division.ids]


def forecasts_of_several(
    model: Any,
    plans: Sequence[Plan],
    read: Callable[[Plan, int, Any], Array],
    *,
    refit: bool,
    n_jobs: int | None,
    options: dict[str, Any],
) -> Iterator[list[Array | None]]:
    """Yield for each origin the forecast of each series, None if the model could not be fitted.

    The origins of a series are counted from its end. `read` makes an array of a forecast.
    """
    jobs = [(model, plans, read, k, options) for k in range(len(plans[0].origins))]
    if refit:
        yield from run_jobs(_fit_and_forecast, jobs, n_jobs)
        return
    fitted = _fitted(model, plans, 0)
    for k in range(len(jobs)):
        if k:
            fitted.update(
                *_parts(plans, [(plan.origins[k - 1], plan.origins[k]) for plan in plans])
            )
        yield _forecast(fitted, plans, read, k, options)


def _fit_and_forecast(
    model: Any, plans: Sequence[Plan], read: Any, k: int, options: dict[str, Any]
) -> list[Array | None]:
    return _forecast(_fitted(model, plans, k), plans, read, k, options)


def _fitted(model: Any, plans: Sequence[Plan], k: int) -> Any:
    spans = [(plan.start(plan.origins[k]), plan.origins[k]) for plan in plans]
    return clone(model).fit(*_parts(plans, spans))


def _parts(plans: Sequence[Plan], spans: Sequence[tuple[int, int]]) -> list[Any]:
    """Return the arguments of `fit` or `update`: some rows of each series."""
    parts = [plan.rows.part(*span) for plan, span in zip(plans, spans, strict=True)]
    known = [part.exog for part in parts]
    return [[part.y for part in parts], *([] if known[0] is None else [known])]


def _forecast(
    fitted: Any, plans: Sequence[Plan], read: Any, k: int, options: dict[str, Any]
) -> list[Array | None]:
    horizon = plans[0].horizon
    spans = [(plan.origins[k], plan.origins[k] + horizon) for plan in plans]
    known = given_exog(*_parts(plans, spans)[1:])
    tables = fitted.forecast(horizon, **known, **options)
    failed = getattr(fitted, "failures_", {})
    return [
        None if i in failed else read(plan, plan.origins[k], table)
        for i, (plan, table) in enumerate(zip(plans, tables, strict=True))
    ]


def mean_by_step(result: Any, name: str) -> Any:
    """Return a metric at each step, the mean over columns and series; None for other metrics.

    In each of these, errors are averaged over origins.
    """
    rows, keys = result.forecasts, list(result.scores.index.names)
    size = (rows["truth"] - rows["forecast"]).abs()
    kind, _, level = name.partition(" ")
    if name in result.scales:
        index = [rows[key] for key in keys]
        size = size * result.scales[name].reindex(index if len(keys) > 1 else index[0]).to_numpy()
    elif kind in ("coverage", "width"):
        low, high = (rows[f"{side} {100 * float(level):.10g}%"] for side in ("lower", "upper"))
        size = high - low
        if kind == "coverage":
            inside = (low <= rows["truth"]) & (rows["truth"] <= high)
            size = inside.where(rows["truth"].notna()).astype(float)
    elif name not in ("mae", "rmse"):
        return None
    groups = [rows[key] for key in ("series", "column") if key in rows]
    squared = name in ("rmse", "rmsse")
    means = (size**2 if squared else size).groupby([*groups, rows["step"]], sort=False).mean()
    return (np.sqrt(means) if squared else means).groupby(level="step").mean()
