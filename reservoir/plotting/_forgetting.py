"""The time to forget the initial state: proved, from the rate alone, and simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_number
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DISTANCES = 60  # points of the proved curve


def forgetting(
    certificate: Any,
    differences: ArrayLike | None = None,
    *,
    distance: float = 1e-6,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the proved bound of the difference between two trajectories after each step.

    The curve is `Certificate.steps_to`: it counts steps from any initial state, including the steps
    to enter the box. A dashed line shows the bound that the certified rate alone would give, which
    is valid only inside the box. Simulated differences are below the curve.

    Parameters
    ----------
    certificate : Certificate
        From `reservoir.stability.certify` or `certify_cycle`: an object with `steps_to`, `rate` and
        `box`.
    differences : array of shape (n_steps,) or (n_steps, n_runs), default=None
        The largest difference, over all units, between two runs before each step; at index 0 it is
        the difference between the initial states.
    distance : float, above 0, default=1e-6
        The smallest difference, at which the curve ends. It must be at least the certificate's
        `resolution`.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the simulated differences, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        The axes, whose vertical axis is logarithmic.

    Raises
    ------
    TypeError
        If `certificate` has no `steps_to`.
    ValueError
        If `Certificate.steps_to` raises one, or a difference is negative, NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> from reservoir.dynamics import Reservoir, run
    >>> from reservoir.stability import certify
    >>> res = Reservoir([[3.78]], [[1.0]], [-2.1], leak_rate=0.3)
    >>> below, above = (run(res, np.zeros((80, 1)), initial_state=[x]) for x in (-1.0, 1.0))
    >>> ax = plotting.forgetting(certify(res, 0.0, 0.0), np.abs(above - below).max(axis=1))
    >>> ax.get_legend_handles_labels()[1]
    ['proved, from any start', 'by the rate alone', 'simulated']
    """
    if not hasattr(certificate, "steps_to"):
        raise TypeError(f"certificate={certificate!r} has no steps_to; give a result of `certify`.")
    distance = check_number("distance", distance, low=0.0, low_open=True)
    runs = _checked(differences)
    # The widest distance needs no step: no two states differ by more.
    widest = _widest(certificate)
    distances = np.geomspace(max(distance, 1e-300), max(widest, 2 * distance), _DISTANCES)[::-1]
    steps = np.asarray(certificate.steps_to(distances))
    picture = Picture(ax, legend, line_kw)
    ax, theme = picture.ax, picture.theme
    proved: dict[str, Any] = {
        "color": theme.ink,
        "linewidth": theme.width(3.0),
        "drawstyle": "steps-post",
    }
    ax.plot(steps, distances, **proved, label="proved, from any start")
    last = np.log(distance / distances[0]) / np.log(certificate.rate)
    by_rate = {"color": theme.muted, "linewidth": theme.width(2.0), "linestyle": "--", "zorder": 3}
    ax.plot([0, last], [distances[0], distance], **by_rate, label="by the rate alone")
    style = {"color": theme.colour(1), "linewidth": theme.width(0.8)}
    for k, run in enumerate(runs.T):
        visible = np.flatnonzero(run >= distance)
        stop = visible[-1] + 1 if len(visible) else 0
        shown = np.where(run[:stop] >= distance, run[:stop], np.nan)
        label = "_" if k else "simulated"
        picture.line(np.arange(stop), shown, **picture.subject(style, label))
    ax.set_yscale("log")
    # The proved number is in the axis label, where no title covers it; two lines fit small axes.
    ax.set_xlabel(f"steps\n(proved: at most {distance:.2g} after {steps.max():,})")
    ax.set_ylabel("largest\ndifference")
    return picture.finish()


def _widest(certificate: Any) -> float:
    """Return the largest difference that two states may have: 2 for tanh, 1 for logistic units."""
    for widest in (1.0, 2.0):
        if not certificate.steps_to(widest):
            return widest
    return float(2 * np.abs(np.asarray(certificate.box)).max())


def _checked(differences: ArrayLike | None) -> Array:
    """Check the differences and return them as columns; the array is empty if there are none."""
    runs: Array = (
        np.zeros((0, 0)) if differences is None else as_plain("differences", differences, float)
    )
    runs = runs[:, None] if runs.ndim == 1 else runs
    if not runs.size:
        return np.zeros((0, 0))
    runs = finite("differences", runs, "n_steps", "n_runs")
    if (runs < 0).any():
        raise ValueError(f"differences must not be negative; the smallest is {runs.min():g}.")
    return runs
