"""Norms of gradients over time: products of step Jacobians, and temporal gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain
from reservoir.plotting._picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def jacobian_norms(
    log_norms: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the norm of products of step Jacobians against their depth, on a logarithmic axis.

    The dotted line marks a norm of 1, at which gradients keep their size: below it they vanish,
    above it they explode.

    Parameters
    ----------
    log_norms : array of shape (depth,) or (depth, n_networks)
        Natural logarithms of the norms, as returned by
        `reservoir.training.gradient_control.jacobian_product_norms`. A curve ends where the product
        is zero (-inf).
    labels : list of n_networks str, default=None
        Names of the networks, for the legend; by default there is no legend.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the curves, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there is not one label per network, or a value is NaN or +inf.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> depth = np.arange(1, 1001)
    >>> ax = plotting.jacobian_norms(-np.outer(depth, [0.1, 0.001]), labels=["plain", "controlled"])
    >>> ax.get_legend_handles_labels()[1]
    ['plain', 'controlled']
    """
    table = as_plain("log_norms", log_norms, float)
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError("log_norms contains NaN or inf; only finite values and -inf can be drawn.")
    table = _columns("log_norms", table, "depth", labels)
    picture = Picture(ax, legend, line_kw)
    picture.ax.axhline(0, **picture.theme.mark)
    picture.ax.set_ylabel("norm\n(decimal logarithm)")
    return _draw(picture, table / np.log(10), labels, "depth (steps)")


def temporal_gradients(
    norms: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the norm of each step's contribution to the gradient, on a logarithmic axis.

    If a curve falls towards the left, training hardly depends on the distant past.

    Parameters
    ----------
    norms : array of shape (n_steps,) or (n_steps, n_networks)
        Norms of the contributions, as returned by
        `reservoir.training.temporal_gradients.temporal_gradient_norms`. A curve has a gap where the
        norm is 0.
    labels : list of n_networks str, default=None
        Names of the networks, for the legend; by default there is no legend.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the curves, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there is not one label per network, a norm is negative or not finite, or all are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> lag = np.arange(100)[::-1]
    >>> ax = plotting.temporal_gradients(
    ...     np.stack([0.8**lag, 0.99**lag], axis=1), labels=["plain", "controlled"])
    >>> ax.get_legend_handles_labels()[1]
    ['plain', 'controlled']
    """
    table = as_plain("norms", norms, float)
    if not np.isfinite(table).all() or (table < 0).any():
        raise ValueError("norms must be finite, and at least 0.")
    if table.size and not table.any():
        raise ValueError(
            "norms are all 0: no step contributes to the gradient, and there is nothing to draw."
        )
    table = _columns("norms", table, "n_steps", labels)
    picture = Picture(ax, legend, line_kw)
    picture.ax.set_ylabel("norm of the gradient\n(decimal logarithm)")
    with np.errstate(divide="ignore"):
        return _draw(picture, np.log10(table), labels, "step")


def _columns(name: str, table: Array, rows: str, labels: Sequence[str] | None) -> Array:
    """Check the shapes, and return one column for each network."""
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be a non-empty array of shape ({rows},) or "
            f"({rows}, n_networks)."
        )
    table = table.reshape(len(table), -1)
    n = table.shape[1]
    if labels is not None and (isinstance(labels, str) or len(labels) != n):
        raise ValueError(f"labels={labels!r} must be a list of {n} names, one per network.")
    return table


def _draw(picture: Picture, decades: Array, labels: Sequence[str] | None, horizon: str) -> Axes:
    """Draw a curve of decimal logarithms for each network; it ends where a logarithm is -inf."""
    decades = np.where(np.isneginf(decades), np.nan, decades)
    steps = np.arange(1, len(decades) + 1)
    for j, column in enumerate(decades.T):
        label = None if labels is None else str(labels[j])
        picture.line(steps, column, **picture.subject(picture.theme.curve(j), label))
    picture.horizon(horizon, steps)
    return picture.finish()
