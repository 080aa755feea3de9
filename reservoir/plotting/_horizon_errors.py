"""Errors of a backtest over the horizon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array
from reservoir.plotting._picture import Picture
from reservoir.plotting._styles import MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def horizon_errors(
    result: Any,
    *,
    column: Any = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the median and the quartiles of a backtest's errors at each step of the horizon.

    Errors are absolute, in the units of the series. Median and quartiles are over the forecast
    origins; the band between the quartiles contains the errors of half of the origins.

    Parameters
    ----------
    result : BacktestResult, or dict of str to BacktestResult
        Result of `reservoir.model_selection.backtest` for one model, or the results of several
        models by name.
    column : str or int, default=None
        The column of the series to draw; required if the series has several columns.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the medians, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `result` is neither a result of `backtest` nor a dict of such results.
    ValueError
        If the dict is empty, a result is of several series, `column` is not a column of a result,
        or no `column` is given for a series of several columns.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from reservoir import plotting
    >>> from reservoir.datasets import load_el_nino
    >>> from reservoir.model_selection import backtest
    >>> result = backtest(Ridge(), load_el_nino(), horizon=12, n_lags=24, n_origins=10)
    >>> ax = plotting.horizon_errors(result)
    >>> ax.get_legend_handles_labels()[1]
    ['median of 10 origins', 'quartiles']
    """
    several = isinstance(result, Mapping)
    named = dict(result) if several else {"": result}
    if not named:
        raise ValueError("result is an empty dict; it must contain at least one backtest.")
    tables = {str(name): _table(one, column) for name, one in named.items()}
    picture = Picture(ax, legend, line_kw)
    ax, theme = picture.ax, picture.theme
    for k, (name, table) in enumerate(tables.items()):
        low, middle, high = np.nanquantile(table, [0.25, 0.5, 0.75], axis=0)
        steps = np.arange(1, table.shape[1] + 1)
        style = theme.curve(k, 1.6) | theme.marker(MARKERS[k % len(MARKERS)], 3.5)
        style |= {"markevery": max(1, len(steps) // 40)}
        label = name if several else f"median of {len(table)} origins"
        picture.line(steps, middle, **picture.subject(style, label))
        picture.band(steps, low, high, theme.colour(k), 0.12, "_" if several else "quartiles")
    ax.axhline(0, **theme.helper)
    picture.horizon("step of the horizon", steps)
    ax.set_ylabel("absolute error\n(median, quartiles)" if several else "absolute error")
    ax.locator_params(axis="x", integer=True)
    return picture.finish()


def _table(result: Any, column: Any) -> Array:
    """Return one column's absolute errors, (n_origins, horizon); NaN where the truth is NaN."""
    errors = rows_of_column(result, "errors", column)
    # rows are sorted by origin, then by step
    return np.abs(errors["error"].to_numpy(dtype=float)).reshape(-1, errors["step"].max())


def rows_of_column(result: Any, table: str, column: Any) -> Any:
    """Return the rows of one column of a backtest's table "errors" or "forecasts"."""
    rows: Any = getattr(result, table, None)
    if not {"origin", "step", "column"} <= set(getattr(rows, "columns", ())):
        raise TypeError(
            f"result is a {type(result).__name__}; pass a result of model_selection.backtest"
            f"{', or a dict of such results' if table == 'errors' else ''}."
        )
    if "series" in rows:
        raise ValueError(
            f"result has {rows['series'].nunique()} series, but one is drawn. Name it by "
            "result.select(id)."
        )
    known = list(rows["column"].unique())
    chosen = known[0] if column is None and len(known) == 1 else column
    if chosen not in known:
        start = "result has the columns" if column is None else f"column={column!r} is none of"
        raise ValueError(f"{start} {', '.join(map(repr, known))}. Set column to one of them.")
    return rows[rows["column"] == chosen]
