"""Time series: a forecast with the truth, or the states of some units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir.plotting._axes import date_axis, finish, label_bands, new_axes
from reservoir.plotting._forecast_parts import Guess, names_in, read_guess, times_of_both
from reservoir.plotting._plot_arguments import choose_units, columns, names_of, times_of
from reservoir.plotting._styles import GUESS, LINE, MARK, TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forecast(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    start: int | None = None,
    coverage: float | Sequence[float] | None = None,
    index: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a forecast together with the truth, or after the history, and mark where it starts.

    The truth is a broad grey line, the forecast a thin dashed line, its start a dotted vertical
    line; intervals are bands around the forecast, of which the widest is the lightest. Several
    outputs are stacked, each scaled to the range of its truth. With pandas input the horizontal
    axis shows the dates.

    Parameters
    ----------
    y_true : array, Series or DataFrame of shape (n_samples,) or (n_samples, n_outputs)
        The true values, including the rows before the forecast that should be shown. They may end
        where the forecast starts.
    y_pred : array, Series or DataFrame of shape (n_steps,) or (n_steps, n_outputs)
        The forecast. It may continue after the end of the truth. With intervals, the result of
        `reservoir.ESNForecaster.forecast`: a DataFrame with the columns "forecast", "lower 90%",
        "upper 90%" (for several outputs under the name of each), or an array as described for
        `coverage`.
    start : int, default=None
        The row of `y_true` that `y_pred[0]` forecasts. By default it is determined by the indexes
        if both have one; otherwise the forecast ends with the truth.
    coverage : float in (0, 1), or a list of them, default=None
        The coverages of the intervals in an array `y_pred`, which is then of shape (n_steps, 1 + 2
        * n_coverages) or (n_steps, n_outputs, 1 + 2 * n_coverages): the forecast first, then a
        lower and an upper bound for each coverage.
    index : array of shape (max(n_samples, start + n_steps),), default=None
        The time of each row: numbers or dates. By default the pandas index, or the row numbers.
    labels : list of n_outputs str, default=None
        Names of the outputs; a single name is the label of the vertical axis. By default the pandas
        column names.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the numbers of columns differ, `start`, `index` or `labels` do not match the data,
        `y_pred` continues after `y_true` at unknown dates, or its columns are not a "forecast" with
        pairs of bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> y = np.sin(0.2 * np.arange(120))
    >>> ax = plotting.forecast(y, 0.9 * y[80:])
    >>> ax.get_legend_handles_labels()[1]
    ['truth', 'forecast', 'start of the forecast']
    >>> guess = 0.9 * y[80:]
    >>> bounds = np.column_stack([guess, guess - 0.2, guess + 0.2])
    >>> ax = plotting.forecast(y[:80], bounds, start=80, coverage=0.9)
    >>> ax.get_legend_handles_labels()[1]
    ['90 % interval', 'history', 'forecast', 'start of the forecast']
    """
    truth, guess = columns("y_true", y_true), read_guess(y_pred, coverage)
    if truth.shape[1] != guess.values.shape[1]:
        raise ValueError(
            f"y_pred has {guess.values.shape[1]} columns, but y_true has {truth.shape[1]}. Both "
            "need the same number of columns."
        )
    before, ends = times_of_both(len(truth), len(guess.values), start, index, (y_true, y_pred))
    known = labels if labels is not None else names_in(y_true)
    names = names_of(known, truth.shape[1])
    ax = new_axes(ax)
    if len(names) > 1:
        truth, guess = _stacked(truth, guess)
        label_bands(ax, names)
    elif known is not None:
        ax.set_ylabel(names[0])
    # Intervals, truth, forecast, and the start.
    past = "truth" if before[-1] >= ends[0] else "history"
    for j in range(len(names)):
        for k, (name, low, high) in enumerate(guess.bounds):
            label = name if j == 0 else None
            ax.fill_between(ends, low[:, j], high[:, j], label=label, **_shade(k, guess))
        ax.plot(before, truth[:, j], label=past if j == 0 else None, **TRUTH)
        ax.plot(ends, guess.values[:, j], label="forecast" if j == 0 else None, **GUESS)
    ax.axvline(ends[0], label="start of the forecast", **MARK)
    dated = before.dtype.kind == "M"
    if dated:
        date_axis(ax)
    ax.set_xlabel("time" if dated or index is not None else "time step")
    return finish(ax)


def _stacked(truth: Array, guess: Guess) -> tuple[Array, Guess]:
    """Return outputs scaled into bands of height 1, by the range of the truth and the intervals."""
    low, high = np.nanmin(truth, axis=0), np.nanmax(truth, axis=0)
    room = high - low  # intervals may widen a band by at most this on either side
    for _, lower, upper in guess.bounds:
        low = np.minimum(low, np.maximum(lower.min(axis=0), low - room))
        high = np.maximum(high, np.minimum(upper.max(axis=0), high + room))
    height = np.where(high > low, high - low, 1.0) / 0.8
    middle, offset = (low + high) / 2, -np.arange(truth.shape[1])

    def scaled(rows: Array) -> Array:
        return (rows - middle) / height + offset

    bounds = [(name, scaled(lower), scaled(upper)) for name, lower, upper in guess.bounds]
    return scaled(truth), Guess(scaled(guess.values), bounds)


def _shade(k: int, guess: Guess) -> dict[str, Any]:
    """Return the style of the k-th of the intervals, the widest first."""
    share = (k + 1) / (len(guess.bounds) + 1)
    light, dark = np.array([0.99, 0.94, 0.93]), np.array([0.91, 0.69, 0.67])
    return {"facecolor": light + share * (dark - light), "edgecolor": "firebrick", "linewidth": 0.4}


def states(
    H: ArrayLike,
    *,
    units: int | Sequence[int] = 6,
    index: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the states of some units over time, each in a separate band, all on one scale.

    Parameters
    ----------
    H : array of shape (n_samples, n_units)
        States, one row per time step.
    units : int or list of int, default=6
        Indices of the units to draw, or a number of units that are spread evenly over all.
    index : array of shape (n_samples,), default=None
        The time of each row: numbers or dates. By default the row numbers.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `H` is not two-dimensional, or a unit is not a column of `H`.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> H = np.sin(np.outer(np.arange(50), [0.1, 0.2, 0.3]))
    >>> ax = plotting.states(H, units=[0, 2])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['unit 0', 'unit 2']
    """
    H = np.asarray(H, dtype=float)
    if H.ndim != 2 or H.size == 0:
        raise ValueError(
            f"H has shape {H.shape}; it must be a non-empty array of shape (n_samples, n_units)."
        )
    chosen = choose_units(units, H.shape[1])
    times = times_of(index, len(H))
    height = 2 * np.max(np.abs(H[:, chosen])) / 0.9 or 1.0
    ax = new_axes(ax)
    for band, unit in enumerate(chosen):
        ax.axhline(-band, color="0.8", linewidth=0.6)
        ax.plot(times, H[:, unit] / height - band, **LINE)
    label_bands(ax, [f"unit {unit}" for unit in chosen])
    ax.set_xlabel("time step" if index is None else "time")
    ax.margins(x=0.01)
    return ax
