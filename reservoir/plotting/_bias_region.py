"""Biases for which a single unit has the echo state property, as a function of its gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_number
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import finite
from reservoir.stability import bias_bounds, critical_bias

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bias_region(
    gains: ArrayLike,
    drive_min: float,
    drive_max: float,
    *,
    leak_rate: float = 1.0,
    printed: bool = False,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the biases that give a tanh unit the echo state property, as a function of its gain.

    In the hatched region the property is proved for every drive in the range, by theorems T0 to T3
    of `reservoir.stability.bias_bounds`. In the white region some constant drive violates the
    property. Where neither is known, between the bounds of a negative gain with a leak, it is
    dotted.

    Parameters
    ----------
    gains : array of shape (n_gains,)
        The unit's self-weights, in any order.
    drive_min, drive_max : float
        Bounds of the drive p = W_in u, the bias excluded.
    leak_rate : float in (0, 1], per step, default=1.0
        The leak rate; it affects only negative gains.
    printed : bool, default=False
        Whether to also draw the bounds as printed in [1]_, for gains above 1. They use the wrong
        bound of the drive, and are correct only if its range is symmetric about 0.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the bounds, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a number is NaN or infinite, all gains are equal, `drive_min` exceeds `drive_max`, or the
        leak rate is outside (0, 1].

    References
    ----------
    .. [1] Bay (2017), eq. (3.3).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> ax = plotting.bias_region(np.linspace(0.5, 4, 50), 0.0, 2.0, printed=True)
    >>> ax.get_legend_handles_labels()[1]
    ['bounds', 'as printed', 'proved']
    """
    grid = np.unique(finite("gains", gains, "n_gains"))
    low = check_number("drive_min", drive_min)
    high = check_number("drive_max", drive_max)
    leak = check_number("leak_rate", leak_rate, low=0, high=1, low_open=True)
    if low > high:
        raise ValueError(f"drive_min={low:g} must not exceed drive_max={high:g}. Swap them.")
    if len(grid) == 1:
        raise ValueError(
            f"gains contains only {grid[0]:g}; at least two different values are required."
        )
    # The bounds over the gains; infinite where every bias has the property.
    grid = _with_jumps(grid, leak)
    bounds = [bias_bounds(float(g), low, high, leak_rate=leak) for g in grid]
    lower, upper = np.array([(b.lower[0], b.upper[0]) for b in bounds]).T
    known = np.isfinite(lower)
    steep = grid[grid > 1] if printed else grid[:0]
    critical = critical_bias(steep)
    wrong = np.array([low - critical, high + critical])
    # The range of biases to show, around all finite bounds.
    ends = np.concatenate([lower[known], upper[known], [-low, -high], wrong.ravel()])
    margin = 0.25 * (np.ptp(ends) or 1.0)
    bottom, top = ends.min() - margin, ends.max() + margin
    picture = Picture(ax, legend, line_kw)
    _draw_bounds(picture, grid, np.where(known, lower, np.nan), np.where(known, upper, np.nan))
    for values, label in zip(wrong, ("as printed", "_printed"), strict=True):
        style = picture.theme.curve(3, 1.8) | {"label": label}
        picture.ax.plot(steep, values, **style) if len(steep) else None
    _draw_regions(
        picture, grid, (np.where(known, lower, bottom), upper, known), (bottom, top), leak
    )
    picture.ax.set_xlabel("gain")
    picture.ax.set_ylabel("bias")
    return picture.finish()


def _draw_bounds(picture: Picture, grid: Array, lower: Array, upper: Array) -> None:
    """Draw the lower and the upper bound where they exist."""
    style = {"color": picture.theme.ink, "linewidth": picture.theme.width(1.4)}
    label = "bounds" if np.isfinite(lower).any() else "_bounds"
    picture.ax.plot(grid, lower, **picture.subject(style, label))
    picture.ax.plot(grid, upper, **picture.subject(style, "_upper"))


def _draw_regions(
    picture: Picture, grid: Array, bounds: Sequence[Array], ends: tuple[float, float], leak: float
) -> None:
    """Fill the proved region, and where it is unknown whether the property holds.

    The areas end exactly at the limits of the axes, without a margin: a white strip would read as
    "not proved".
    """
    lower, upper, known = bounds
    bottom, top = ends
    proved = picture.theme.hatched | {"zorder": 0}
    areas = [
        picture.ax.fill_between(grid, np.maximum(lower, bottom), top, **proved, label="proved"),
        picture.ax.fill_between(grid, bottom, np.where(known, upper, bottom), **proved),
    ]
    unclear = known & (grid < 0) & (leak < 1)
    if unclear.any():
        dotted = proved | {"hatch": "...", "facecolor": "none", "label": "open question"}
        areas += [picture.ax.fill_between(grid, upper, lower, where=unclear, **dotted)]
    for area in areas:
        area.sticky_edges.x.extend([grid[0], grid[-1]])
        area.sticky_edges.y.extend([bottom, top])
    picture.ax.autoscale_view()


def _with_jumps(gains: Array, leak: float) -> Array:
    """Add the gains at which the bounds jump, so that the region is drawn up to exactly there."""
    edges = [1.0, np.nextafter(1.0, 2.0)]
    m = 1.0 - 2.0 / leak  # with a leak, negative gains at or below m have bounds
    edges += [-1.0, np.nextafter(-1.0, -2.0)] if leak == 1 else [m, np.nextafter(m, 0.0)]
    inside = [edge for edge in edges if gains[0] < edge < gains[-1]]
    return np.unique(np.concatenate([gains, inside]))
