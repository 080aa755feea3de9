"""The memory profile of a reservoir."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reservoir._typing import ArrayLike
from reservoir.plotting._axes import new_axes
from reservoir.plotting._styles import LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def memory_profile(profile: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw the memory profile: how accurately the states reproduce past inputs, by lag.

    The area below the curve is the memory capacity.

    Parameters
    ----------
    profile : array of shape (n_lags,)
        Squared correlation, about 0 to 1, between the input 1, 2, 3, ... steps ago and its estimate
        from the states.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

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
    share = np.asarray(profile, dtype=float)
    if share.ndim != 1 or share.size == 0:
        raise ValueError(
            f"profile has shape {share.shape}; it must be a non-empty array of shape (n_lags,)."
        )
    lags = np.arange(1, len(share) + 1)
    ax = new_axes(ax)
    ax.fill_between(lags, share, color="0.85", label=f"memory capacity {share.sum():.2f}")
    ax.plot(lags, share, marker="o", markersize=2.5, **LINE)
    ax.set_ylim(min(0.0, share.min()), 1.05)
    ax.set_xlabel("lag (steps)")
    ax.set_ylabel("squared correlation")
    ax.margins(x=0.01)
    ax.legend(frameon=False, fontsize="small")
    return ax
