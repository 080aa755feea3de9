"""The plan of a backtest: its origins, and the rows that each fit uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._tables.frames import check_shape, is_collection, is_pandas, n_levels
from reservoir._validation import as_plain, check_count, index_of
from reservoir._validation.index import kind_of, show
from reservoir._validation.kinds import check_not_complex, check_readable
from reservoir._validation.order import check_levels
from reservoir._validation.written_dates import holds_dates
from reservoir.estimators.series.tables import MIN_VALUES, read_values
from reservoir.metrics import mase
from reservoir.model_selection._backtest_models import Rows


@dataclass(frozen=True)
class Plan:
    """Origins of a backtest, and the rows that each fit uses.

    `origins` are the first rows of the forecasts, which have `horizon` rows each. Models are
    trained on the `window` rows before the origin, or on all if it is None. `coverages` are of the
    intervals.
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
        return self.rows.y.index[row] if is_pandas(self.rows.y) else row

    def name(self, origin: int) -> str:
        """Return the name of an origin in messages: the date or number of the row before it."""
        return show(self.label(origin - 1))


def read_rows(y: Any, exog: Any) -> Rows:
    """Return y and exog as pandas tables or arrays, after checking that their rows match."""
    table, known = _read_table("y", y), None if exog is None else _read_table("exog", exog)
    rows = Rows(table, known, read_values("y", table))
    if exog is not None and len(rows.exog) != len(rows.y):
        raise ValueError(
            f"exog has {len(rows.exog)} rows, but y has {len(rows.y)}. Pass one row of exog for "
            "each row of y."
        )
    own, other = index_of(rows.y), index_of(rows.exog)
    comparable = own is not None and other is not None and kind_of(own) == kind_of(other)
    if comparable and not own.equals(other):
        row = int(np.argmax(np.asarray(own != other)))
        raise ValueError(
            f"The index of exog is {show(other[row])} in row {row}, but the index of y is "
            f"{show(own[row])}. Take the rows of y, `exog.loc[y.index]`, or, if the rows "
            "correspond, its index, `exog.set_axis(y.index)`."
        )
    return rows


def _read_table(name: str, given: Any) -> Any:
    """Return one series as a pandas table or an array."""
    if is_collection(given):
        raise ValueError(
            f"{name} is a list of arrays, but must be one series of shape (n_samples,) or "
            "(n_samples, n_columns). Backtest several series one by one."
        )
    check_shape(name, given)
    check_not_complex(name, given)
    table = given if is_pandas(given) else as_plain(name, given)
    if n_levels(table) > 1:
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


def check_one_series(model: Any, y: Any) -> None:
    """Raise if y contains several series, other than in columns."""
    check_readable("y", y)
    params = model.get_params() if hasattr(model, "get_params") else {}
    if n_levels(y) > 1:
        check_levels("y", y, fewest=MIN_VALUES)
        by = "ids in its index"
    elif is_collection(y):
        by = "a list"
    else:
        ids = _id_column(y, params.get("sequence_column"))
        if ids is None:
            return
        by = f"ids in column {ids!r}"
    raise ValueError(
        f"y contains several series ({by}), but the model forecasts one, or one in each column. "
        'Set panel="each" of ESNForecaster or SeasonalNaive, or backtest each of them, for '
        "instance the groups of y.groupby without their ids."
    )


def _id_column(y: Any, given: Any) -> Any:
    """Return the name of the column of ids in a pandas table; None if there is none."""
    if not is_pandas(y) or y.ndim != 2:
        return None
    if isinstance(given, int) and -y.shape[1] <= given < y.shape[1]:
        return y.columns[given]
    if given in list(y.columns):
        return given
    for label, column in y.items():
        values = column.tolist() if getattr(column.dtype, "kind", "O") not in "biufcmM" else []
        texts = [each for each in values if isinstance(each, str)]
        if 1 < len(set(texts)) < len(texts) and not holds_dates(values):
            return label
    return None
