"""How long forgetting takes: what is proved, what the rate alone says, and what runs show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_number
from reservoir.plotting._axes import legend_strip, new_axes
from reservoir.plotting._plot_arguments import finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PROVED: dict[str, Any] = {"color": "black", "linewidth": 3.0}
_RATE: dict[str, Any] = {"color": "0.35", "linewidth": 2.0, "linestyle": "--", "zorder": 3}
_RUNS: dict[str, Any] = {"color": "firebrick", "linewidth": 0.8}
_DISTANCES = 60  # points of the proved curve


def forgetting(
    certificate: Any,
    differences: ArrayLike | None = None,
    *,
    distance: float = 1e-6,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far apart two trajectories may still be after so many steps, as proved.

    The curve is `Certificate.steps_to`: it counts from any start, and the time that it takes to
    come into the box is in it. A dashed line shows what the certified rate alone would say, which
    is true only inside the box. Simulated differences lie below the curve.

    Parameters
    ----------
    certificate : Certificate
        From `reservoir.stability.certify` or `certify_cycle`: an object with `steps_to`, `rate` and
        `box`.
    differences : array of shape (n_steps,) or (n_steps, n_runs), default=None
        The largest difference of two runs in any unit, before each step: at index 0 that of the
        starts.
    distance : float, above 0, default=1e-6
        Where the curve ends: the smallest difference. At least the certificate's `resolution`.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes
        With a logarithmic vertical axis.

    Raises
    ------
    TypeError
        If `certificate` has no `steps_to`.
    ValueError
        As `Certificate.steps_to`; if differences are negative, NaN or infinite.

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
        raise TypeError(
            f"certificate={certificate!r} has no steps_to; give the result of `certify`."
        )
    distance = check_number("distance", distance, low=0.0, low_open=True)
    runs = _checked(differences)
    # No two states differ by more than the first distance that needs no step.
    widest = _widest(certificate)
    distances = np.geomspace(max(distance, 1e-300), max(widest, 2 * distance), _DISTANCES)[::-1]
    steps = np.asarray(certificate.steps_to(distances))
    ax = new_axes(ax)
    ax.plot(steps, distances, **_PROVED, drawstyle="steps-post", label="proved, from any start")
    reach = np.log(distance / distances[0]) / np.log(certificate.rate)
    ax.plot([0, reach], [distances[0], distance], **_RATE, label="by the rate alone")
    for k, run in enumerate(runs.T):
        seen = np.flatnonzero(run > 0.1 * distance)
        stop = seen[-1] + 1 if len(seen) else 0
        ax.plot(np.arange(stop), run[:stop], **_RUNS, label="_" if k else "simulated")
    ax.set_yscale("log")
    ax.set_ylim(distance, 1.5 * distances[0])
    ax.set_xlim(0, 1.03 * max(steps.max(), 1))
    # Below, where no title of the caller's can lie on it, and narrow enough for small axes.
    ax.set_xlabel(f"steps\n(proved: at most {distance:.2g} after {steps.max():,})")
    ax.set_ylabel("largest difference")
    # The strip of the legend is made for a linear axis; on this one it takes as many decades.
    bottom, top = ax.get_ylim()
    legend_strip(ax)
    ax.set_ylim(bottom, top * (top / bottom) ** ((ax.get_ylim()[1] - top) / (top - bottom)))
    return ax


def _widest(certificate: Any) -> float:
    """Return the largest difference that states may have: 2 for tanh, 1 for logistic units."""
    for widest in (1.0, 2.0):
        if not certificate.steps_to(widest):
            return widest
    return float(2 * np.abs(np.asarray(certificate.box)).max())


def _checked(differences: ArrayLike | None) -> Array:
    """Return the differences as columns, none of them negative; no column if there are none."""
    runs: Array = np.zeros((0, 0)) if differences is None else np.asarray(differences, dtype=float)
    runs = runs[:, None] if runs.ndim == 1 else runs
    if not runs.size:
        return np.zeros((0, 0))
    runs = finite("differences", runs, "n_steps", "n_runs")
    if (runs < 0).any():
        raise ValueError(f"differences must not be negative; the least is {runs.min():g}.")
    return runs
