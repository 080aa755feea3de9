"""The error of a model that learns while it runs, and what it forgets and weighs meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_count
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import columns, index_given, names_of, times_of


def running_error(
    errors: Any,
    *,
    window: int = 100,
    forgetting: ArrayLike | None = None,
    coefficients: ArrayLike | None = None,
    index: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the running error of models that learn while they run, on a logarithmic axis.

    The error at a row is the root mean square of the last `window` errors, those of predictions
    made before the model learned from the row. Further panels show the forgetting factor and the
    norm of the coefficients.

    Parameters
    ----------
    errors : array of shape (n_samples,) or (n_samples, n_models), or dict of str to array
        Predictions minus targets, one column for each model; or the errors of each model, of shape
        (n_samples,), by its name. NaN are omitted from the means.
    window : int, rows, default=100
        Number of rows of each mean. The first ``window - 1`` means are those of fewer rows.
    forgetting : array of shape (n_samples,) or (n_samples, n_models), default=None
        The forgetting factor at each row; by default there is no panel for it.
    coefficients : array of shape (n_samples,), (n_samples, n_models), or a third axis, default=None
        The norm of the coefficients after each row, or the coefficients themselves along a third
        axis; by default there is no panel for them.
    index : array of shape (n_samples,), default=None
        The time of each row: numbers or dates. By default the pandas index, or the row numbers.
    labels : list of n_models str, default=None
        Names of the models; by default those of the columns of a DataFrame.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the errors, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, or array of as many Axes as there are panels, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes, or array of Axes if there are several panels

    Raises
    ------
    ValueError
        If the numbers of rows or models differ, or no error is finite.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> fades = np.exp(-np.arange(500) / 100) * np.random.default_rng(0).normal(size=500)
    >>> ax = plotting.running_error({"learning": fades, "last value": 0.5 * np.ones(500)})
    >>> ax.get_legend_handles_labels()[1]
    ['learning', 'last value']
    >>> top, bottom = plotting.running_error(fades, forgetting=np.full(500, 0.99))
    """
    if isinstance(errors, Mapping):
        labels = [str(name) for name in errors] if labels is None else labels
        index = index_given(index, *errors.values())
        errors = np.column_stack([as_plain("errors", each, float) for each in errors.values()])
    index = index_given(index, errors)
    if labels is None and hasattr(errors, "columns"):
        labels = [str(name) for name in errors.columns]
    table = columns("errors", errors)
    if not np.isfinite(table).any():
        raise ValueError("errors contains no finite number: there is nothing to draw.")
    names = None if labels is None else names_of(labels, table.shape[1])
    times = times_of(index, len(table))
    means = _running(table, check_count("window", window))
    panels = {f"RMS error\nof {window} rows": np.where(means > 0, means, np.nan)}
    if forgetting is not None:
        panels["forgetting\nfactor"] = _panel("forgetting", forgetting, table.shape)
    if coefficients is not None:
        norms = as_plain("coefficients", coefficients, float)
        norms = np.linalg.norm(norms, axis=2) if norms.ndim == 3 else norms
        panels["norm of the\ncoefficients"] = _panel("coefficients", norms, table.shape)
    pictures = Picture.several(ax, len(panels), legend, line_kw, below=True)
    for picture, (title, curves) in zip(pictures, panels.items(), strict=True):
        _draw(picture, times, curves, names if picture is pictures[0] else None)
        picture.ax.set_ylabel(title)
    _logarithmic(pictures[0].ax)
    pictures[-1].horizon("time step" if index is None else "time", times)
    pictures[0].finish()
    axes = [picture.ax for picture in pictures]
    return axes[0] if len(axes) == 1 else np.array(axes)


def _running(table: Array, window: int) -> Array:
    """Return the root mean square of the last `window` rows; NaN are omitted."""
    there = np.isfinite(table)
    squares = np.where(there, table, 0.0) ** 2
    means = np.empty_like(squares)
    for first in range(0, len(table), window):  # sums over blocks lose no digits to earlier rows
        rows = slice(max(0, first - window + 1), first + window)
        padded = np.pad(squares[rows], ((window - 1, 0), (0, 0)))
        counts = np.pad(there[rows], ((window - 1, 0), (0, 0)))
        sums, n = (
            np.lib.stride_tricks.sliding_window_view(part, window, axis=0).sum(axis=-1)
            for part in (padded, counts)
        )
        with np.errstate(invalid="ignore"):
            block = np.sqrt(sums / n)[first - rows.start :]
        means[first : first + window] = block
    return means


def _panel(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Return one curve for each model, or one for all."""
    table = columns(name, values)
    if len(table) != shape[0] or table.shape[1] not in (1, shape[1]):
        raise ValueError(
            f"{name} has shape {np.shape(values)}; it must be ({shape[0]},) or {tuple(shape)}, one "
            "row for each row of errors."
        )
    return table


def _logarithmic(ax: Any) -> None:
    """Make the vertical axis logarithmic, with labels between powers of ten if there are few."""
    from matplotlib.ticker import LogFormatter

    class Decimal(LogFormatter):  # LogFormatter chooses the labels; it would write 0.2 as 2e-01
        def __call__(self, x: Any, pos: Any = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(Decimal())
    ax.yaxis.set_minor_formatter(Decimal(labelOnlyBase=False, minor_thresholds=(1.5, 0.6)))


def _draw(picture: Picture, times: Array, curves: Array, names: list[str] | None) -> None:
    for j, column in enumerate(curves.T):
        label = f"_{j}" if names is None else names[j]
        picture.line(times, column, **picture.subject(picture.theme.curve(j), label))
