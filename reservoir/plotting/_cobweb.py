"""The cobweb diagram of one unit: its map, the diagonal, and the staircase between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count, check_number
from reservoir.activations import Activation, get_activation
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import finite
from reservoir.plotting._styles import DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_STARTS, _N_SETTLED, _LONGEST = 41, 2_000, 64  # of the search for longer cycles, in periods
_CLOSED, _SAME = (
    1e-9,
    1e-6,
)  # a trajectory that returns this closely is a cycle; cycles this close are one
_FEW_PHASES = 4  # the legend names each phase up to this number
_GRID = 4001  # points of the grid in whose intervals roots are sought
_MARGIN = 1e-9  # a fixed point whose slope is this close to 1 is not labelled stable
_ZERO = 1e-13  # a point x with |F(x) - x| up to this, a rounding error, is fixed

Map = Callable[[Any], Any]


def cobweb(
    gain: float,
    drive: ArrayLike,
    *,
    leak_rate: float = 1.0,
    initial_state: ArrayLike = 0.0,
    n_steps: int = 50,
    activation: str | Activation = "tanh",
    tangents: bool = False,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cobweb diagram of one unit: its map, the diagonal, and staircases between them.

    The unit is ``x[t] = (1 - a) x[t-1] + a f(gain x[t-1] + c[t])``. Under a constant drive, filled
    dots are stable fixed points, hollow dots unstable or marginal ones. Under a periodic drive,
    each phase has a separate map, and the dots are the steps of the cycles, one on the map of each
    phase. A cycle is a fixed point of the *composed* map, not of the map of a phase. If the unit is
    attracted to a cycle of several periods of the drive, its states are drawn as well.

    Parameters
    ----------
    gain : float
        The unit's self-weight.
    drive : float or array of shape (period,)
        c, the sum of bias and drive: a constant, or one value for each phase of a period. Step t
        has phase (t - 1) modulo the period.
    leak_rate : float in (0, 1], per step, default=1.0
        The leak rate a.
    initial_state : float or array of shape (n_initial_states,), default=0.0
        First state of each staircase.
    n_steps : int, default=50
        Number of steps of each staircase.
    activation : {"tanh", "logistic"} or Activation, default="tanh"
        The activation. It must be bounded and have an enclosure, because fixed points are sought in
        its whole range.
    tangents : bool, default=False
        Whether to also draw the maps of the two critical drives, plus and minus
        `reservoir.stability.critical_bias`, which touch the diagonal. They exist only for tanh with
        a gain above 1.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the staircases, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a number is NaN or infinite, the leak rate is outside (0, 1], the activation is not
        bounded, or ``tangents=True`` for a unit without critical drives.

    References
    ----------
    .. [1] Bay (2017), figures 3.1 to 3.5.

    Examples
    --------
    Three fixed points; then one, with a bias outside the critical range:

    >>> from reservoir import plotting
    >>> ax = plotting.cobweb(3.78, -0.68, initial_state=[-0.5, 0.5])
    >>> ax.get_legend_handles_labels()[1][-2:]
    ['2 stable fixed points', '1 unstable fixed point']
    >>> ax = plotting.cobweb(3.78, -2.97, tangents=True)
    >>> ax.get_legend_handles_labels()[1][:2]
    ['map', 'critical drives ±1.958']
    """
    weight = check_number("gain", gain)
    leak = check_number("leak_rate", leak_rate, low=0, high=1, low_open=True)
    drives = finite("drive", np.atleast_1d(drive), "period")
    starts = finite("initial_state", np.atleast_1d(initial_state), "n_initial_states")
    count = check_count("n_steps", n_steps)
    f = get_activation(activation)
    if f.enclosure is None or not f.enclosure.bounded:
        raise ValueError(
            f"activation={f.name!r} has no bounded range in which all fixed points could be "
            'found. Use "tanh" or "logistic".'
        )
    # The map of each phase, and the cycles.
    critical = _critical(weight, f.name) if tangents else 0.0
    low, high = f.enclosure.low, f.enclosure.high
    maps = [_map(f, weight, c, leak) for c in drives]
    cycles = _cycles(maps, [_slope(f, weight, c, leak) for c in drives], low, high)
    longer = _longer_cycles(maps, low, high)
    # Staircases, maps, cycles and the diagonal, over the range of the states.
    picture = Picture(ax, legend, line_kw)
    ends = np.array([min(low, *starts), max(high, *starts)])
    ends += np.array([-0.04, 0.04]) * np.ptp(ends)
    grid = np.linspace(ends[0], ends[1], 801)
    _draw_maps(picture, grid, maps)
    if tangents:
        _draw_tangents(picture, grid, f, weight, leak, critical)
    for k, start in enumerate(starts):
        _draw_stairs(picture, maps, start, count, k)
    _draw_cycles(picture, cycles + [(states, True) for states in longer])
    diagonal = picture.theme.helper | {"linewidth": 1.0, "color": picture.theme.muted}
    picture.ax.plot(ends, ends, **diagonal, label="_diagonal")
    picture.ax.set_aspect("equal", adjustable="box")
    picture.ax.set_xlabel("state")
    picture.ax.set_ylabel("next state")
    return picture.finish()


def _map(f: Activation, gain: float, c: float, leak: float) -> Map:
    """Return the map from the state to the next one under the drive c."""
    return lambda x: (1 - leak) * x + leak * f.function(np.asarray(gain * x + c))


def _slope(f: Activation, gain: float, c: float, leak: float) -> Map:
    """Return the derivative of the map of `_map`."""
    return lambda x: 1 - leak + leak * gain * f.derivative(np.asarray(gain * x + c))


def _critical(gain: float, activation: str) -> float:
    """Return the drive at which the map touches the diagonal."""
    from reservoir.stability import critical_bias

    if activation != "tanh" or gain <= 1:
        raise ValueError(
            f"tangents=True with gain={gain:g}, activation={activation!r}: only the maps of tanh "
            "with a gain above 1 touch the diagonal. Use tangents=False."
        )
    return float(critical_bias(gain))


def _cycles(
    maps: list[Map], slopes: list[Map], low: float, high: float
) -> list[tuple[Array, bool]]:
    """Return the cycles of the drive's period: the states of each, and whether it is stable.

    The first state of a cycle is repeated at its end. All cycles start at zeros of F(x) - x in the
    range of the activation, where F is the composed map. The turning points of F(x) - x are found
    first: between two of them there is at most one zero, so even zeros closer together than the
    grid are found.
    """

    def trace(x: Any) -> tuple[list[Any], Any]:
        states, slope = [x], 1.0
        for step, derivative in zip(maps, slopes, strict=True):
            slope = slope * derivative(states[-1])
            states.append(step(states[-1]))
        return states, slope

    def gap(x: Any) -> Any:
        return trace(x)[0][-1] - x

    def growth(x: Any) -> Any:
        return trace(x)[1] - 1

    grid = np.linspace(low, high, _GRID)
    nodes = np.unique(np.concatenate([grid, _roots(growth, grid, 0.0)]))
    found = _roots(gap, nodes, _ZERO)
    return [(np.array(trace(x)[0]), bool(abs(growth(x) + 1) < 1 - _MARGIN)) for x in found]


def _roots(function: Map, nodes: Array, zero: float) -> Array:
    """Return the roots at the nodes, and one root in each interval in which the sign changes."""
    values = function(nodes)
    signs = np.where(np.abs(values) <= zero, 0, np.sign(values))
    # Neighbouring nodes that are all roots up to rounding count as one root.
    at = np.flatnonzero(signs == 0)
    flat = [
        nodes[run].mean() for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(run)
    ]
    crossing = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    return np.sort(flat + [brentq(function, nodes[i], nodes[i + 1]) for i in crossing])


def _longer_cycles(maps: list[Map], low: float, high: float) -> list[Array]:
    """Return the attracting cycles of several periods of the drive.

    They are the ends of trajectories from a grid of initial states. The first state of a cycle is
    repeated at its end.
    """
    x = np.linspace(low, high, _N_STARTS)
    for _ in range(_N_SETTLED):
        for step in maps:
            x = step(x)
    path = [x]
    for t in range(_LONGEST * len(maps)):
        path.append(maps[t % len(maps)](path[-1]))
    states = np.array(path)
    found: list[Array] = []
    for column in states.T:
        gaps = np.abs(column[:: len(maps)] - column[0])[1:]
        closed = np.flatnonzero(gaps < _CLOSED)
        if not len(closed) or closed[0] == 0:
            continue  # a fixed point of the composed map, or no cycle of this length
        cycle = column[: (closed[0] + 1) * len(maps) + 1]
        if not any(len(c) == len(cycle) and np.abs(c - cycle[0]).min() < _SAME for c in found):
            found.append(cycle)
    return found


def _draw_maps(picture: Picture, grid: Array, maps: list[Map]) -> None:
    """Draw the map of each phase; if there are many, only the first has a label."""
    for k, step in enumerate(maps):
        name = "map" if len(maps) == 1 else f"map of phase {k}"
        if len(maps) > _FEW_PHASES:
            name = f"maps of {len(maps)} phases" if k == 0 else f"_{name}"
        picture.ax.plot(grid, step(grid), **picture.theme.curve(k, 1.6), label=name)


def _draw_tangents(
    picture: Picture, grid: Array, f: Activation, gain: float, leak: float, critical: float
) -> None:
    """Draw the maps of the two critical drives, and where they touch the diagonal."""
    touch, theme = np.sqrt(1 - 1 / gain), picture.theme
    bar = theme.marker("|", 11) | {"color": theme.ink, "linestyle": "none", "label": "_touch"}
    for c, h in ((-critical, touch), (critical, -touch)):
        name = f"critical drives \N{PLUS-MINUS SIGN}{critical:.4g}" if c < 0 else "_tangent"
        picture.ax.plot(grid, _map(f, gain, c, leak)(grid), **theme.mark, label=name)
        picture.ax.plot(h, h, **bar)


def _draw_stairs(picture: Picture, maps: list[Map], start: float, n_steps: int, k: int) -> None:
    """Draw the path (x, x) -> (x, x') -> (x', x') -> ..., and a cross where it starts."""
    states = [start]
    for t in range(n_steps):
        states.append(float(maps[t % len(maps)](states[-1])))
    corners, theme = np.repeat(states, 2), picture.theme
    style = theme.start | {"color": theme.colour(1), "linestyle": DASHES[k % 4]}
    style |= {"linewidth": theme.width(0.8), "label": "_steps" if k else "steps"}
    style |= {"markeredgecolor": theme.ink, "markevery": [0], "zorder": 3}
    picture.ax.plot(corners[:-1], corners[1:], **picture.subject(style))


def _draw_cycles(picture: Picture, cycles: list[tuple[Array, bool]]) -> None:
    """Draw stable cycles as filled and unstable ones as hollow dots, and label their numbers."""
    kinds = sorted({(not stable, len(states) - 1) for states, stable in cycles})
    for k, (unstable, period) in enumerate(kinds):
        chosen = [x for x, stable in cycles if (not stable, len(x) - 1) == (unstable, period)]
        word = "unstable" if unstable else "stable"
        what = "fixed point" if period == 1 else f"cycle of period {period}"
        if len(chosen) > 1:
            what = what.replace("point", "points").replace("cycle", "cycles")
        points = np.concatenate([np.column_stack([x[:-1], x[1:]]) for x in chosen])
        theme = picture.theme
        dots = theme.marker("os^Dv"[k % 5], 6) | {"linestyle": "none", "zorder": 5}
        dots |= {"color": theme.ink, "markerfacecolor": theme.ground if unstable else theme.ink}
        picture.ax.plot(*points.T, **dots, label=f"{len(chosen)} {word} {what}")
