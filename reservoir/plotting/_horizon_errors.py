"""Errors of a backtest over the horizon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array
from reservoir.plotting._axes import finish, new_axes
from reservoir.plotting._styles import DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# styles of the results, in the order in which they are drawn
_COLOURS = ("black", "firebrick", "tab:blue", "tab:green", "0.45")
_MARKERS = ("o", "s", "^", "D", "v")


def horizon_errors(result: Any, *, column: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the median and the quartiles of a backtest's errors at each step of the horizon.

    Errors are absolute, in the units of the series. Median and quartiles are over the forecast
    origins; the band between the quartiles contains the errors of half of the origins.

    Parameters
    ----------
    result : BacktestResult, or dict of str to BacktestResult
        Result of `reservoir.model_selection.backtest` for one model, or the results of up to five
        models by name.
    column : str or int, default=None
        The column of the series to draw; required if the series has several columns.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `result` is neither a result of `backtest` nor a dict of such results.
    ValueError
        If the dict is empty or has more than five items, `column` is not a column of a result, or
        no `column` is given for a series of several columns.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from reservoir import plotting
    >>> from reservoir.datasets import load_el_nino
    >>> from reservoir.model_selection import backtest
    >>> result = backtest(Ridge(), load_el_nino(), horizon=12, n_lags=24, n_origins=10)
    >>> ax = plotting.horizon_errors(result)
    >>> ax.get_legend_handles_labels()[1]
    ['quartiles', 'median of 10 origins']
    """
    several = isinstance(result, Mapping)
    named = dict(result) if several else {"": result}
    if not 1 <= len(named) <= len(_COLOURS):
        raise ValueError(
            f"result contains {len(named)} backtests; between 1 and {len(_COLOURS)} can be drawn."
        )
    tables = {str(name): _table(one, column) for name, one in named.items()}
    ax = new_axes(ax)
    for k, (name, table) in enumerate(tables.items()):
        low, middle, high = np.nanquantile(table, [0.25, 0.5, 0.75], axis=0)
        steps = np.arange(1, table.shape[1] + 1)
        shade: dict[str, Any] = {
            "alpha": 0.13,
            "linewidth": 0,
            "color": _COLOURS[k],
        }
        label = name if several else f"median of {len(table)} origins"
        ax.fill_between(steps, low, high, label=None if several else "quartiles", **shade)
        edge: dict[str, Any] = {"color": _COLOURS[k], "linestyle": DASHES[k % 4], "linewidth": 0.5}
        for bound in (low, high):
            ax.plot(steps, bound, **edge)
        style = edge | {"linewidth": 1.6, "marker": _MARKERS[k], "markersize": 3.5}
        ax.plot(steps, middle, label=label, **style)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("step of the horizon")
    ax.set_ylabel("absolute error\n(median, quartiles)" if several else "absolute error")
    ax.locator_params(axis="x", integer=True)
    return finish(ax)


def _table(result: Any, column: Any) -> Array:
    """Return one column's absolute errors, (n_origins, horizon); NaN where the truth is NaN."""
    errors: Any = getattr(result, "errors", None)
    if not {"origin", "step", "column", "error"} <= set(getattr(errors, "columns", ())):
        raise TypeError(
            f"result is a {type(result).__name__}; pass a result of model_selection.backtest, or a "
            "dict of such results."
        )
    known = list(errors["column"].unique())
    chosen = known[:1] if column is None and len(known) == 1 else [column]
    if chosen[0] not in known:
        start = "result has the columns" if column is None else f"column={column!r} is none of"
        raise ValueError(f"{start} {', '.join(map(repr, known))}. Set column to one of them.")
    errors = errors[errors["column"] == chosen[0]]
    # rows are sorted by origin, then by step
    return np.abs(errors["error"].to_numpy(dtype=float)).reshape(-1, errors["step"].max())
