"""Bounds of the bias: where one unit is safe, and the picture behind the row-norm heuristic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_number
from reservoir.plotting._common import HATCHED, MARK, finite, legend_outside, legend_strip, new_axes
from reservoir.stability import bias_bounds, critical_bias

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SURFACE_POINTS = 41  # per axis
_PLANE_LINES = 9  # per axis
_EDGE: dict[str, Any] = {"color": "black", "linestyle": "-", "linewidth": 1.4}


def bias_region(
    gains: ArrayLike,
    drive_min: float,
    drive_max: float,
    *,
    leak_rate: float = 1.0,
    printed: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw, over the gain of one tanh unit, the biases that give it the echo state property.

    In the hatched region it is proved for every drive in the range: theorems T0 to T3 of
    `reservoir.stability.bias_bounds`. In the white one it fails for some constant drive if the
    gain is positive, or if it is negative and there is no leak; with a leak and a negative gain it
    is open there.

    Parameters
    ----------
    gains : array of shape (n_gains,)
        The unit's weights to itself, in any order.
    drive_min, drive_max : float
        Bounds of p = W_in u, the bias excluded.
    leak_rate : float in (0, 1], per step, default=1.0
        Matters for negative gains only.
    printed : bool, default=False
        Whether to draw the bounds as they are printed in [1]_, too, for gains above 1. They take
        the wrong end of the drive: right only if it is symmetric about 0.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a number is NaN or infinite, all gains are equal, the drive's bounds are crossed, or the
        leak rate leaves (0, 1].

    References
    ----------
    .. [1] Bay (2017), eq. (3.3).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> ax = plotting.bias_region(np.linspace(0.5, 4, 50), 0.0, 2.0, printed=True)
    >>> ax.get_legend_handles_labels()[1]
    ['proved', 'bounds', 'as printed']
    """
    grid = np.unique(finite("gains", gains, "n_gains"))
    low = check_number("drive_min", drive_min)
    high = check_number("drive_max", drive_max)
    leak = check_number("leak_rate", leak_rate, low=0, high=1, low_open=True)
    if low > high:
        raise ValueError(f"drive_min={low:g} must not exceed drive_max={high:g}. Swap them.")
    if len(grid) == 1:
        raise ValueError(f"gains holds only {grid[0]:g}; a picture takes two different ones.")
    grid = _with_jumps(grid, leak)
    bounds = [bias_bounds(float(g), low, high, leak_rate=leak) for g in grid]
    lower, upper = np.array([(b.lower[0], b.upper[0]) for b in bounds]).T
    known = np.isfinite(lower)
    steep = grid[grid > 1] if printed else grid[:0]
    critical = critical_bias(steep)
    wrong = np.array([low - critical, high + critical])
    ends = np.concatenate([lower[known], upper[known], [-low, -high], wrong.ravel()])
    margin = 0.25 * (np.ptp(ends) or 1.0)
    bottom, top = ends.min() - margin, ends.max() + margin
    ax = new_axes(ax)
    ax.fill_between(grid, np.maximum(lower, bottom), top, **HATCHED, label="proved")
    ax.fill_between(grid, bottom, np.where(known, upper, bottom), **HATCHED)
    for values, label in ((lower, "bounds" if known.any() else "_"), (upper, "_upper")):
        ax.plot(grid, np.where(known, values, np.nan), **_EDGE, label=label)
    if len(steep):
        for values, label in zip(wrong, ("as printed", "_printed"), strict=True):
            ax.plot(steep, values, **(MARK | {"linewidth": 1.8}), label=label)
    ax.set_xlim(grid[0], grid[-1])
    ax.set_ylim(bottom, top)
    ax.set_xlabel("gain")
    ax.set_ylabel("bias")
    return legend_strip(ax)


def _with_jumps(gains: Array, leak: float) -> Array:
    """Add the gains between which the bounds begin, so that no strip is left out of a picture."""
    edges = [1.0, np.nextafter(1.0, 2.0)]
    m = 1.0 - 2.0 / leak  # at and below it a negative gain needs a bias
    edges += [-1.0, np.nextafter(-1.0, -2.0)] if leak == 1 else [m, np.nextafter(m, 0.0)]
    inside = [edge for edge in edges if gains[0] < edge < gains[-1]]
    return np.unique(np.concatenate([gains, inside]))


def bias_surface(weights: ArrayLike, bias: float, *, ax: Any = None) -> Axes:
    """Draw what one of two units does next, with the tangent planes behind the row-norm heuristic.

    The surface is ``z = tanh(w1 x + w2 y + b)``, and ``s = w1^2 + w2^2``. Two planes of slope 1,
    ``1 / sqrt(s)`` times (w1, w2), touch it, if s > 1. They meet the axis of z at
    ``(b - k) / sqrt(s)`` and ``(b + k) / sqrt(s)`` with ``k = critical_bias(sqrt(s))``: the bias is
    beyond the row-norm bound if both pass the origin on the same side.

    The bound is a **heuristic**: for more than one unit it does not give the echo state property
    (`reservoir.stability.bias_bounds` has the counterexample).

    Parameters
    ----------
    weights : array of shape (2,)
        (w1, w2), the row of W that the unit receives.
    bias : float
        b, bias plus drive.
    ax : matplotlib 3-D Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib 3-D Axes

    Raises
    ------
    TypeError
        If `ax` is not three-dimensional.
    ValueError
        If `weights` is not a pair, or a number is NaN or infinite.

    References
    ----------
    .. [1] Bay (2017), prop. 3.5 (in its proof's version) and figure 3.6.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.bias_surface([2.0, 1.5], 1.0)
    >>> ax.get_legend_handles_labels()[1]
    ['next state', 'tangent plane at 0.038', 'tangent plane at 0.762', 'origin']
    """
    row = finite("weights", weights, "2")
    if len(row) != 2:
        raise ValueError(f"weights has {len(row)} entries; a row of a network of two units has 2.")
    b = check_number("bias", bias)
    if ax is not None and getattr(ax, "name", None) != "3d":
        raise TypeError(
            f"ax={ax!r} must be a three-dimensional Axes; make it with "
            'fig.add_subplot(projection="3d").'
        )
    norm = float(np.hypot(*row))
    ax = new_axes(ax, projection="3d")
    side = np.linspace(-1, 1, _SURFACE_POINTS)
    x, y = np.meshgrid(side, side)
    style = {"color": "0.75", "edgecolor": "0.45", "linewidth": 0.3, "alpha": 0.7}
    z = np.tanh(row[0] * x + row[1] * y + b)
    ax.plot_surface(x, y, z, rstride=4, cstride=4, **style, label="next state")
    if norm > 1:
        _draw_planes(ax, row / norm, b / norm, critical_bias(norm) / norm)
    ax.scatter([0], [0], [0], color="black", marker="x", s=36, depthshade=False, label="origin")
    # across the slope and from low down: the surface is seen as a curve between two lines
    ax.view_init(elev=12, azim=np.degrees(np.arctan2(row[1], row[0])) - 75)
    _frame(ax)
    return legend_outside(ax, gap=0.1)


def _frame(ax: Any) -> None:
    """Label three axes so that nothing of them is cut off, on a small figure neither."""
    for name, label in (("x", "unit 0"), ("y", "unit 1"), ("z", "next state")):
        getattr(ax, f"set_{name}label")(label, labelpad=-4 if name != "z" else -6)
        getattr(ax, f"set_{name}ticks")([-1, 0, 1])
        ax.tick_params(axis=name, pad=-2, labelsize="small")
    ax.set_box_aspect(None, zoom=0.95)


def _draw_planes(ax: Any, slope: Array, middle: float, half: float) -> None:
    """Draw the planes ``z = slope . (x, y) + middle -+ half`` as nets of two line styles."""
    side = np.linspace(-1, 1, _PLANE_LINES)
    x, y = np.meshgrid(side, side)
    for height, color, dash in ((middle - half, "firebrick", "-"), (middle + half, "navy", ":")):
        z = slope[0] * x + slope[1] * y + height
        style = {"color": color, "linestyle": dash, "linewidth": 0.9}
        ax.plot_wireframe(x, y, z, **style, label=f"tangent plane at {height:.3f}")
