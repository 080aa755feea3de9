"""The plan of a backtest: its origins, and the rows that each fit uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._validation import as_plain, check_count, check_unmasked, code, index_of
from reservoir._validation.index import kind_of, show
from reservoir._validation.kinds import check_not_complex
from reservoir._validation.levels import check_levels
from reservoir._validation.text_dates import dates_in_column
from reservoir.estimators.series.tables import MIN_VALUES, check_real_numbers, is_collection
from reservoir.metrics import mase
from reservoir.model_selection._backtest_models import Rows
from reservoir.model_selection._backtest_scores import season_of


@dataclass(frozen=True)
class Plan:
    """Origins of a backtest, and the rows that each fit uses.

    Attributes
    ----------
    rows : Rows
        The series and its exogenous variables.
    origins : list of int
        The first row of each forecast.
    horizon : int
        Number of rows of each forecast.
    window : int or None
        Number of rows to train on; None for all rows before the origin.
    coverages : list of float
        Coverages of the requested intervals.
    """

    rows: Rows
    origins: list[int]
    horizon: int
    window: int | None
    coverages: list[float]

    def start(self, origin: int) -> int:
        """Return the first row that a model is trained on."""
        return 0 if self.window is None else origin - self.window

    def label(self, row: int) -> Any:
        """Return the date of a row, or its number if the series has no dates."""
        return self.rows.y.index[row] if hasattr(self.rows.y, "iloc") else row

    def name(self, origin: int) -> str:
        """Return the name of an origin in messages: the date or number of the row before it."""
        return show(self.label(origin - 1))


def read_rows(y: Any, exog: Any) -> Rows:
    """Return y and exog as pandas tables or arrays, after checking that their rows match."""
    rows = Rows(_read_table("y", y), None if exog is None else _read_table("exog", exog))
    try:
        infinite = np.isinf(rows.values()).any(axis=1)
    except (TypeError, ValueError) as error:
        if hasattr(y, "iloc"):
            check_real_numbers("y", y)  # names the column, and what to do with it
        raise ValueError(f"y must contain numbers: {error}") from error
    if infinite.any():
        raise ValueError(
            f"y is infinite in row {np.argmax(infinite)}. Replace it, or set it to NaN if unknown."
        )
    if exog is not None and len(rows.exog) != len(rows.y):
        raise ValueError(
            f"exog has {len(rows.exog)} rows, but y has {len(rows.y)}. Pass one row of exog for "
            "each row of y."
        )
    own, other = index_of(rows.y), index_of(rows.exog)
    comparable = own is not None and other is not None and kind_of(own) == kind_of(other)
    if comparable and not own.equals(other):
        row = int(np.argmax(np.asarray(own != other)))
        there = other.is_unique and own.isin(other).all()
        remedy = f"If the rows correspond, use one index: {code('exog = exog.set_axis(y.index)')}"
        if there:
            remedy = f"Select the rows of y: {code('exog = exog.loc[y.index]')}"
        raise ValueError(
            f"The index of exog is {show(other[row])} in row {row}, but the index of y is "
            f"{show(own[row])}. {remedy}."
        )
    return rows


def _read_table(name: str, given: Any) -> Any:
    """Return one series as a pandas table or an array."""
    check_unmasked(name, given)
    check_not_complex(name, given)
    items = given if isinstance(given, (list, tuple)) else []
    collection = any(np.ndim(item) > 0 and hasattr(item, "shape") for item in items)
    table = given if hasattr(given, "iloc") or collection else as_plain(name, given)
    if collection or table.ndim not in (1, 2) or len(table) == 0:
        found = "is a list of arrays" if collection else f"has shape {table.shape}"
        raise ValueError(
            f"{name} {found}; it must be one series of shape (n_samples,) or (n_samples, "
            "n_columns). Backtest several series one by one."
        )
    if getattr(getattr(table, "index", None), "nlevels", 1) > 1:
        raise ValueError(
            f"The index of {name} has several levels, so {name} contains several series. Backtest "
            "them one by one, each with an index of times only."
        )
    return table


def plan_of(
    rows: Rows,
    horizon: int,
    n_origins: int,
    step: int | None,
    window: int | None,
    coverages: list[float],
    season: int,
    n_lags: int | None,
) -> Plan:
    """Return the plan; raise a ValueError if too few rows remain before the first origin."""
    horizon = check_count("horizon", horizon)
    n_origins = check_count("n_origins", n_origins)
    step = horizon if step is None else check_count("step", step)
    wanted = {"a model": 2, f"season={season}": season + 1 if season else 0}
    wanted |= {} if n_lags is None else {f"n_lags={n_lags}": n_lags + 1}
    what, fewest = max(wanted.items(), key=lambda item: item[1])
    if window is not None and check_count("window", window) < fewest:
        raise ValueError(
            f"window={window} is too small: {what} needs at least {fewest} rows. Raise it."
        )
    what, fewest = (what, fewest) if window is None else (f"window={window}", window)
    last = len(rows.y) - horizon
    first = last - (n_origins - 1) * step
    if first < fewest:
        raise ValueError(
            f"n_origins={n_origins}, step={step} and horizon={horizon} take {len(rows.y) - first} "
            f"rows, and {what} needs at least {fewest} before the first origin, but y has "
            f"{len(rows.y)}. Lower one of these, or give a longer series."
        )
    return Plan(rows, list(range(first, last + 1, step)), horizon, window, coverages)


def check_scales(plan: Plan, season: int) -> None:
    """Check that mase and rmsse have a scale at every origin, before any model is fitted."""
    values = plan.rows.values()
    for origin in plan.origins:
        zero = np.zeros((1, values.shape[1]))
        try:
            mase(zero, zero, y_train=values[plan.start(origin) : origin], season=season)
        except ValueError as error:
            raise ValueError(
                f"mase and rmsse have no scale in the rows up to the origin {plan.name(origin)}: "
                f"{error} Or omit these metrics."
            ) from error


def check_one_series(
    model: Any, y: Any, *, horizon: int, n_origins: int, step: int | None, season: int | None
) -> None:
    """Raise if y contains several series, other than in columns; arguments as in `backtest`."""
    params = model.get_params() if hasattr(model, "get_params") else {}
    levels = getattr(getattr(y, "index", None), "nlevels", 1)
    ids = None if levels > 1 or is_collection(y) else _id_column(y, params.get("sequence_column"))
    if levels > 1:
        check_levels("y", y, fewest=MIN_VALUES)
        outer = list(range(levels - 1))
        by, groups, rows = (
            "ids in its index",
            f"y.groupby(level={outer})",
            f"rows.droplevel({outer})",
        )
        one = next(iter(y.groupby(level=outer)))[1].droplevel(outer)
    elif is_collection(y):
        by, groups, rows, one = "a list", "enumerate(y)", "rows", y[0]
    elif ids is not None:
        by, groups, rows = (
            f"ids in column {ids!r}",
            f"y.groupby({ids!r})",
            f"rows.drop(columns=[{ids!r}])",
        )
        one = next(iter(y.groupby(ids)))[1]
    else:
        return
    own = [f"{name}=None" for name in ("panel", "sequence_column") if params.get(name) is not None]
    alone = f"model.set_params({', '.join(own)})" if own else "model"
    plan = f"horizon={horizon}, n_origins={n_origins}" + ("" if step is None else f", step={step}")
    least = max(MIN_VALUES, 1 + (season_of(one) if season is None else season))
    fewest = horizon + (n_origins - 1) * (horizon if step is None else step) + least
    each = f"{{key: backtest({alone}, {rows}, {plan}) for key, rows in {groups}"
    raise ValueError(
        f"y contains several series ({by}), but backtest takes one, or one in each column. "
        f"Backtest each, {code(f'results = {each} if len(rows) >= {fewest}}}')}, with your other "
        f"arguments. This leaves out series of fewer than {fewest} rows: {fewest - least} for the "
        f"forecasts, and {least} before them for the model and the scale of errors."
    )


def _id_column(y: Any, given: Any) -> Any:
    """Return the name of the column of ids in a pandas table; None if there is none."""
    if not hasattr(y, "iloc") or y.ndim != 2:
        return None
    if isinstance(given, int) and -y.shape[1] <= given < y.shape[1]:
        return y.columns[given]
    if given in list(y.columns):
        return given
    for label, column in y.items():
        values = column.tolist() if getattr(column.dtype, "kind", "O") not in "biufcmM" else []
        texts = [each for each in values if isinstance(each, str)]
        if 1 < len(set(texts)) < len(texts) and dates_in_column("rows", values) is None:
            return label
    return None
