"""The forecasts of a backtest over the series that they forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir.plotting._horizon_errors import rows_of_column
from reservoir.plotting._picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def backtest(
    result: Any,
    *,
    column: Any = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the forecasts of a backtest over the series, with the share of rows in each band.

    Observed rows are a broad grey line. Each forecast begins with a dot, at its first row; those of
    neighbouring origins alternate between two dashes, so that they can be followed where they
    overlap. The legend compares the coverage of each band with the share of observed rows inside.

    Parameters
    ----------
    result : BacktestResult
        Result of `reservoir.model_selection.backtest`. With its `coverage`, bands are drawn.
    column : str or int, default=None
        The column of the series to draw; required if the series has several columns.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the forecasts, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `result` is not a result of `backtest`.
    ValueError
        If `column` is not a column of the series, or is missing for a series of several columns,
        or if the result is of several series.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from reservoir import plotting
    >>> from reservoir.datasets import load_el_nino
    >>> from reservoir.model_selection import backtest
    >>> result = backtest(Ridge(), load_el_nino(), horizon=12, n_lags=24, n_origins=5)
    >>> ax = plotting.backtest(result)
    >>> ax.get_legend_handles_labels()[1]
    ['observed', '5 forecasts']
    """
    rows = rows_of_column(result, "forecasts", column)
    picture = Picture(ax, legend, line_kw)
    observed = rows.drop_duplicates("time").sort_values("time")
    times = observed["time"].to_numpy()
    truth = observed["truth"].to_numpy(dtype=float)
    picture.line(times, truth, **picture.theme.observed, label="observed")
    starts = rows.groupby("origin", sort=False)
    for k, (_, part) in enumerate(starts):
        style = picture.theme.curve(0) | picture.theme.marker("o", 3) | {"markevery": [0]}
        style |= {"linestyle": ("-", (0, (4, 1.5)))[k % 2], "zorder": 2.5}
        label = "_forecast" if k else f"{starts.ngroups} forecast{'s' * (starts.ngroups > 1)}"
        guess = part["forecast"].to_numpy(dtype=float)
        picture.line(part["time"].to_numpy(), guess, **picture.subject(style, label))
    _draw_bands(picture, rows)
    picture.horizon("time" if times.dtype.kind == "M" else "time step", times)
    if column is not None:
        picture.ax.set_ylabel(str(column))
    return picture.finish()


def _draw_bands(picture: Picture, rows: Any) -> None:
    """Draw the bands of all forecasts, the widest first, labelled by the share of rows inside."""
    shares = [name.removeprefix("lower ") for name in rows.columns if str(name).startswith("lower")]
    shares.sort(key=lambda name: -float(name.rstrip("%")))
    truth = rows["truth"].to_numpy(dtype=float)
    known = np.isfinite(truth)
    for depth, share in enumerate(shares):
        low, high = (rows[f"{side} {share}"].to_numpy(dtype=float) for side in ("lower", "upper"))
        inside = np.mean((low <= truth)[known] & (truth <= high)[known]) if known.any() else np.nan
        label = f"{share.rstrip('%')} % band holds {100 * inside:.0f} %"
        for k, (_, part) in enumerate(rows.groupby("origin", sort=False)):
            low, high = (
                part[f"{side} {share}"].to_numpy(dtype=float) for side in ("lower", "upper")
            )
            colour, shade = picture.theme.colour(0), 0.12 + 0.14 * depth
            picture.band(part["time"].to_numpy(), low, high, colour, shade, f"_{k}" if k else label)
