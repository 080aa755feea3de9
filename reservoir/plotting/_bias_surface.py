"""The next state of a unit in a two-unit network, and the planes of the row-norm heuristic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_number, code
from reservoir.plotting._axes import legend_outside, new_axes
from reservoir.plotting._plot_arguments import finite
from reservoir.stability import critical_bias

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SURFACE_POINTS = 41  # per axis
_PLANE_LINES = 9  # per axis


def bias_surface(weights: ArrayLike, bias: float, *, ax: Any = None) -> Axes:
    """Draw the next state of a unit in a two-unit network, and the planes of the row-norm rule.

    The surface is ``z = tanh(w1 x + w2 y + b)``, where x and y are the states of the two units. Let
    ``s = w1^2 + w2^2``. If s > 1, two planes of slope 1, with gradient ``(w1, w2) / sqrt(s)``,
    touch the surface. They meet the z axis at ``(b - k) / sqrt(s)`` and ``(b + k) / sqrt(s)`` with
    ``k = critical_bias(sqrt(s))``. The bias is beyond the row-norm bound if both planes pass the
    origin on the same side.

    The bound is a **heuristic**: for more than one unit it does not imply the echo state property
    (`reservoir.stability.bias_bounds` has a counterexample).

    Parameters
    ----------
    weights : array of shape (2,)
        (w1, w2), the unit's row of W.
    bias : float
        b, the sum of bias and drive.
    ax : matplotlib 3-D Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

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
        raise ValueError(f"weights has {len(row)} entries; a network of two units has 2 per row.")
    b = check_number("bias", bias)
    if ax is not None and getattr(ax, "name", None) != "3d":
        made = 'ax = plt.figure().add_subplot(projection="3d")'
        raise TypeError(f"ax={ax!r} must be a three-dimensional Axes: {code(made)}.")
    # The surface over the range of both units, and the planes.
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
    # From a low viewpoint along the planes, the surface looks like a curve between two lines.
    ax.view_init(elev=12, azim=np.degrees(np.arctan2(row[1], row[0])) - 75)
    _frame(ax)
    return legend_outside(ax, gap=0.1)


def _frame(ax: Any) -> None:
    """Label the three axes so that nothing is cut off, even on a small figure."""
    for name, label in (("x", "unit 0"), ("y", "unit 1"), ("z", "next state")):
        getattr(ax, f"set_{name}label")(label, labelpad=-4 if name != "z" else -6)
        getattr(ax, f"set_{name}ticks")([-1, 0, 1])
        ax.tick_params(axis=name, pad=-2, labelsize="small")
    ax.set_box_aspect(None, zoom=0.95)


def _draw_planes(ax: Any, slope: Array, middle: float, half: float) -> None:
    """Draw the planes ``z = slope . (x, y) + middle -+ half`` as wireframes in two line styles."""
    side = np.linspace(-1, 1, _PLANE_LINES)
    x, y = np.meshgrid(side, side)
    for height, color, dash in ((middle - half, "firebrick", "-"), (middle + half, "navy", ":")):
        z = slope[0] * x + slope[1] * y + height
        style = {"color": color, "linestyle": dash, "linewidth": 0.9}
        ax.plot_wireframe(x, y, z, **style, label=f"tangent plane at {height:.3f}")
