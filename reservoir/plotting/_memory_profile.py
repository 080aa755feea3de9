"""The memory profile of a reservoir."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import ArrayLike
from reservoir._validation import as_plain
from reservoir.plotting._picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def memory_profile(
    profile: ArrayLike,
    *,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the memory profile: how accurately the states reproduce past inputs, by lag.

    The area below the curve is the memory capacity.

    Parameters
    ----------
    profile : array of shape (n_lags,)
        Squared correlation, about 0 to 1, between the input 1, 2, 3, ... steps ago and its estimate
        from the states.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the curve, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `profile` is not one-dimensional, or empty.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.memory_profile([1.0, 0.75, 0.25])
    >>> ax.get_legend_handles_labels()[1]
    ['memory capacity 2.00']
    """
    share = as_plain("profile", profile, float)
    if share.ndim != 1 or share.size == 0:
        raise ValueError(
            f"profile has shape {share.shape}; it must be a non-empty array of shape (n_lags,)."
        )
    if not np.isfinite(share).any():
        raise ValueError("profile contains no finite value: there is nothing to draw.")
    lags = np.arange(1, len(share) + 1)
    picture = Picture(ax, legend, line_kw)
    ax, theme = picture.ax, picture.theme
    shade = theme.area(theme.colour(0)) | {"linewidth": 0}
    ax.fill_between(lags, share, label=f"memory capacity {np.nansum(share):.2f}", **shade)
    style = theme.curve(0, 1.2) | theme.marker("o", 2.5)
    picture.line(lags, share, **picture.subject(style))
    ax.axhline(0, **theme.helper)
    picture.horizon("lag (steps)", lags)
    ax.set_ylabel("squared\ncorrelation")
    return picture.finish()
