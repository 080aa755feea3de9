"""The box of a certificate, with the states of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir.plotting._picture import Picture, inches, label_ticks
from reservoir.plotting._plot_arguments import choose_units, finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBER = 0.3  # width of a unit's number on the axis, in inches
_VISIBLE = 1e-3  # differences of states below this cannot be seen
_MOST_ROWS = 200  # at most this many states of a unit are marked: more would merge


def certificate(
    certificate: Any,
    states: ArrayLike | None = None,
    *,
    units: int | Sequence[int] = 20,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a certificate's box, which eventually contains every state, and the states of a run.

    The bar of each unit is the interval that eventually contains its state; for the certificate of
    a cycle it is the union of the unit's intervals over the period. Dashes are states of the run,
    and a line joins the smallest and the largest. The title gives the certified rate, rounded up,
    or "not certified" if the certificate does not hold. It also gives the difference that rounding
    may sustain (`Certificate.resolution`), if that is large enough to be seen.

    Parameters
    ----------
    certificate : Certificate
        From `reservoir.stability.certify` or `certify_cycle`: an object with `box`, of shape (2,
        n_units) or (period, 2, n_units), and `rate`, which is true as a condition if it holds.
    states : array of shape (n_samples, n_units), default=None
        States of the network under admissible inputs, without the transient: the box contains every
        trajectory eventually, not from the start.
    units : int or list of int, default=20
        Indices of the units to draw, or a number of units that are spread evenly over all.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the ranges of the states, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `certificate` has no box.
    ValueError
        If shapes do not match, a state or a bound is NaN or infinite, or a unit does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> from reservoir.dynamics import Reservoir, run
    >>> from reservoir.stability import certify
    >>> res = Reservoir(0.5 * np.eye(2), np.ones((2, 1)), np.zeros(2))
    >>> inputs = np.random.default_rng(0).uniform(-1, 1, (200, 1))
    >>> ax = plotting.certificate(certify(res, -1.0, 1.0), run(res, inputs)[100:])
    >>> ax.get_title(loc="left"), ax.get_legend_handles_labels()[1]
    ('certified rate 0.5001 per step', ['states', 'certified box'])
    """
    # The interval of each unit, over all steps of a cycle.
    if not hasattr(certificate, "box"):
        raise TypeError(f"certificate={certificate!r} has no box; give a result of `certify`.")
    box = np.asarray(certificate.box, dtype=float)
    if box.ndim not in (2, 3) or box.shape[-2] != 2 or box.size == 0:
        raise ValueError(
            f"certificate.box has shape {box.shape}; it must be (2, n_units) or "
            "(period, 2, n_units)."
        )
    box = finite("certificate.box", box.reshape(-1, *box.shape[-2:]), "period", "2", "n_units")
    low, high = box[:, 0].min(axis=0), box[:, 1].max(axis=0)
    chosen = choose_units(units, len(low))
    H = None if states is None else finite("states", states, "n_samples", "n_units")
    if H is not None and H.shape[1] != len(low):
        raise ValueError(f"states has {H.shape[1]} columns; the box has n_units={len(low)}.")
    # States, and the bars of the box below them.
    picture = Picture(ax, legend, line_kw)
    positions = np.arange(len(chosen))
    if H is not None:
        _draw_states(picture, positions, H[:, chosen])
    _draw_box(picture, positions, low[chosen], high[chosen], bool(certificate))
    picture.ax.set_title(_title(certificate), loc="left", fontsize="medium")
    _name_units(picture.ax, positions, chosen)
    picture.ax.set_ylabel("state")
    return picture.finish()


def _draw_box(picture: Picture, positions: Array, low: Array, high: Array, holds: bool) -> None:
    """Draw the interval of each unit as a bar, with dashed edges if nothing is proved."""
    theme = picture.theme
    style: dict[str, Any] = {"facecolor": theme.mix(theme.ink, 0.1), "edgecolor": theme.ink}
    style |= {"linewidth": 0.9, "width": 0.7, "linestyle": "-" if holds else "--", "zorder": 1}
    name = "certified box" if holds else "box, not certified"
    for bar in picture.ax.bar(positions, high - low, bottom=low, **style, label=name):
        bar.sticky_edges.y.clear()  # room below the lowest bar


def _draw_states(picture: Picture, positions: Array, H: Array) -> None:
    """Draw dashes for some of the states, and a line over the range of all of them."""
    rows = np.unique(np.linspace(0, len(H) - 1, _MOST_ROWS).round().astype(int))
    at = np.broadcast_to(positions, (len(rows), len(positions)))
    size = float(np.clip(60 / len(positions), 3, 12))
    colour = picture.theme.colour(0)
    dashes = picture.theme.marker("_", size) | {"color": colour, "linestyle": "none"}
    picture.ax.plot(at.ravel(), H[rows].ravel(), **dashes, alpha=0.35, label="_states")
    ranges = np.stack([H.min(axis=0), H.max(axis=0), np.full(H.shape[1], np.nan)])
    style = {"color": colour, "linewidth": picture.theme.width(1.4)}
    ends = np.repeat(positions, 3), ranges.T.ravel()  # NaN between the lines of two units
    picture.ax.plot(*ends, **picture.subject(style, "states"))


def _title(certificate: Any) -> str:
    """Return the title, with the rate rounded up to enough digits to remain below 1."""
    if not certificate:
        return "not certified"
    rate = float(certificate.rate)
    digits = 4 if rate < 0.999 else int(np.ceil(-np.log10(max(1 - rate, 1e-15)))) + 1
    title = f"certified rate {np.ceil(rate * 10**digits) / 10**digits:.{digits}g} per step"
    floor = getattr(certificate, "resolution", None)
    if floor is not None and floor >= _VISIBLE:
        title += f"; rounding leaves up to {floor:.2g}"
    return title


def _name_units(ax: Any, positions: Array, chosen: Array) -> None:
    """Label the horizontal axis with the units' indices; if there are many, label only some."""
    every = int(np.ceil(len(positions) * _NUMBER / inches(ax)[0]))
    label_ticks(ax.xaxis, positions[::every], [str(unit) for unit in chosen[::every]])
    ax.set_xlabel("unit")
