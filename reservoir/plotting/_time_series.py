"""Series over time: a forecast with the truth, the states of some units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reservoir._typing import ArrayLike
from reservoir.plotting._axes import finish, label_bands, new_axes
from reservoir.plotting._plot_arguments import choose_units, columns, names_of, times_of
from reservoir.plotting._styles import GUESS, LINE, MARK, TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forecast(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    start: int | None = None,
    index: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a forecast against the truth, and mark where the forecast starts.

    The truth is a broad grey line, the forecast a thin dashed one, its start a dotted vertical one.
    Several outputs are stacked in bands, each scaled to the range of its truth.

    Parameters
    ----------
    y_true : array of shape (n_samples,) or (n_samples, n_outputs)
        The truth, with as many rows from before the forecast as should be shown.
    y_pred : array of shape (n_steps,) or (n_steps, n_outputs)
        The forecast. It may go on after the truth has ended.
    start : int, default=None
        The row of `y_true` that `y_pred[0]` is a forecast of. By default the forecast ends where
        the truth ends.
    index : array of shape (max(n_samples, start + n_steps),), default=None
        The time of each row: numbers or dates. By default the rows' numbers.
    labels : list of n_outputs str, default=None
        The outputs' names; for one output the label of the vertical axis.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the numbers of columns differ, or `start`, `index` or `labels` do not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> y = np.sin(0.2 * np.arange(120))
    >>> ax = plotting.forecast(y, 0.9 * y[80:])
    >>> ax.get_legend_handles_labels()[1]
    ['truth', 'forecast', 'start of the forecast']
    """
    truth, guess = columns("y_true", y_true), columns("y_pred", y_pred)
    if truth.shape[1] != guess.shape[1]:
        raise ValueError(
            f"y_pred has {guess.shape[1]} columns and y_true {truth.shape[1]}; they must agree."
        )
    first = len(truth) - len(guess) if start is None else start
    if not 0 <= first <= len(truth):
        raise ValueError(
            f"start={start} puts the forecast's first row at row {first} of y_true; it must be in "
            f"[0, {len(truth)}]. Give start= the row of y_true that y_pred[0] is a forecast of."
        )
    # One output has its own scale; several are scaled into bands.
    times = times_of(index, max(len(truth), first + len(guess)))
    names = names_of(labels, truth.shape[1])
    ax = new_axes(ax)
    if len(names) > 1:
        low, high = np.nanmin(truth, axis=0), np.nanmax(truth, axis=0)
        height = np.where(high > low, high - low, 1.0) / 0.8
        middle, offset = (low + high) / 2, -np.arange(len(names))
        truth, guess = (truth - middle) / height + offset, (guess - middle) / height + offset
        label_bands(ax, names)
    elif labels is not None:
        ax.set_ylabel(names[0])
    # Truth, forecast, and the start.
    ends = times[first : first + len(guess)]
    for j in range(len(names)):
        ax.plot(times[: len(truth)], truth[:, j], label="truth" if j == 0 else None, **TRUTH)
        ax.plot(ends, guess[:, j], label="forecast" if j == 0 else None, **GUESS)
    ax.axvline(ends[0], label="start of the forecast", **MARK)
    ax.set_xlabel("time step" if index is None else "time")
    return finish(ax)


def states(
    H: ArrayLike,
    *,
    units: int | Sequence[int] = 6,
    index: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the states of some units over time, each in a band of its own, all on one scale.

    Parameters
    ----------
    H : array of shape (n_samples, n_units)
        States, one row per time step.
    units : int or list of int, default=6
        Which units, or how many of them (spread evenly over all).
    index : array of shape (n_samples,), default=None
        The time of each row: numbers or dates. By default the rows' numbers.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `H` is not two-dimensional, or a unit is not one of its columns.

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
        raise ValueError(f"H has shape {H.shape}; it must be (n_samples, n_units), and not empty.")
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
