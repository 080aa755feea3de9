"""The error for several series where a backtest takes one, with the code that backtests each."""

from __future__ import annotations

from typing import Any

from reservoir._validation import code
from reservoir._validation.levels import check_levels
from reservoir._validation.text_dates import dates_in_column
from reservoir.estimators.series.tables import MIN_VALUES, is_collection
from reservoir.model_selection._backtest_scores import season_of


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
