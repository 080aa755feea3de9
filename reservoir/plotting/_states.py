"""The states of units over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_choice
from reservoir.plotting._picture import Picture, cell_edges, thinned
from reservoir.plotting._plot_arguments import choose_units, index_given, reservoir_of, times_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = ("lines", "map")
_FEW_UNITS = 30  # more are drawn as a map
_MOST_POINTS = 60_000  # of all lines together; a picture of more is slow and looks the same
_MOST_ROWS = 2_000  # of a map: as many as a wide figure has pixels


def states(
    source: Any,
    X: ArrayLike | None = None,
    *,
    units: int | Sequence[int] | None = None,
    kind: str | None = None,
    index: ArrayLike | None = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the states of some units over time, each in a separate band, all on one scale.

    Parameters
    ----------
    source : array of shape (n_samples, n_units), Reservoir, or fitted estimator
        States, one row per time step; or a network, which is run on `X` from states of zero. NaN
        are gaps.
    X : array of shape (n_samples, n_features), default=None
        Inputs of the network; None if `source` is an array.
    units : int or list of int, default=None
        Indices of the units to draw, or a number of units that are spread evenly over all. By
        default 6 for lines, and all for a map.
    kind : {"lines", "map"}, default=None
        "lines" draws a curve for each unit, "map" an image with one row for each unit. By default
        more than 30 units are a map. Long curves and images are thinned out; curves keep their
        extremes.
    index : array of shape (n_samples,), default=None
        The time of each row: numbers or dates. By default the pandas index, or the row numbers.
    legend : bool or "outside", default=True
        Has no effect: the bands are labelled, and a map has a colour bar.
    line_kw : dict, default=None
        Properties of the curves, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `source` is not an array, a `Reservoir` or an estimator with one.
    ValueError
        If the states are not two-dimensional, a unit is not a column of them, or `X` is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> H = np.sin(np.outer(np.arange(50), [0.1, 0.2, 0.3]))
    >>> ax = plotting.states(H, units=[0, 2])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['unit 0', 'unit 2']
    >>> from reservoir import ESNRegressor
    >>> model = ESNRegressor(50, random_state=0).fit(H[:-1, :1], H[1:, 0])
    >>> ax = plotting.states(model, H[:, :1], kind="map")
    """
    index = index_given(index, source if X is None else X)
    H = _states_of(source, X)
    if kind is not None:
        check_choice("kind", kind, _KINDS)
    chosen = choose_units(_default(units, kind, H.shape[1]), H.shape[1])
    times = times_of(index, len(H))
    picture = Picture(ax, legend, line_kw)
    if (kind or _KINDS[len(chosen) > _FEW_UNITS]) == "map":
        _draw_map(picture, times, H[:, chosen])
        picture.ax.set_ylabel(
            "unit" if np.ptp(chosen) == len(chosen) - 1 else "unit, of those drawn"
        )
    else:
        _draw_lines(picture, times, H[:, chosen])
        picture.label_bands([f"unit {unit}" for unit in chosen])
    picture.horizon("time step" if index is None else "time", times)
    return picture.ax


def _default(units: Any, kind: str | None, n_units: int) -> Any:
    return (n_units if kind == "map" else min(6, n_units)) if units is None else units


def _states_of(source: Any, X: Any) -> Array:
    """Return the given states, or those of a network that is run on `X`."""
    network = reservoir_of(source)
    if network is not None:
        if X is None:
            raise ValueError("X is missing: give the inputs on which the network is run.")
        from reservoir.dynamics import run

        return np.asarray(run(network, as_plain("X", X)), dtype=float)
    if X is not None:
        raise TypeError(
            f"source is a {type(source).__name__}, but X is given: with X, source must be a "
            "Reservoir or a fitted estimator that has one."
        )
    H = as_plain("source", source, float)
    if H.ndim != 2 or H.size == 0:
        raise ValueError(
            f"H has shape {H.shape}; it must be a non-empty array of shape (n_samples, n_units)."
        )
    if not np.isfinite(H).any():
        raise ValueError("H contains no finite state: there is nothing to draw.")
    return H


def _reach(H: Array) -> float:
    """Return the largest absolute value of finite states, or 1 if all are 0."""
    return float(np.max(np.abs(H), where=np.isfinite(H), initial=0.0)) or 1.0


def _draw_lines(picture: Picture, times: Array, H: Array) -> None:
    height = 2 * _reach(H) / 0.9
    style = picture.subject(picture.theme.curve(0, 1.2))
    most = max(_MOST_POINTS // H.shape[1], 400)
    for band, column in enumerate(H.T):
        picture.ax.axhline(-band, **picture.theme.helper)
        values = np.where(np.isfinite(column), column, np.nan) / height - band
        shown = thinned(times, values, most) if len(times) > most else (times, values)
        picture.line(*shown, **style)


def _draw_map(picture: Picture, times: Array, H: Array) -> None:
    """Draw an image with one row for each unit; symmetric colours, so that 0 is in the middle."""
    every = -(-len(H) // _MOST_ROWS)
    times, H = times[::every], np.ma.masked_invalid(H[::every])
    at = times.astype("datetime64[ns]").astype(float) if times.dtype.kind == "M" else times
    edges = cell_edges(np.asarray(at, dtype=float))
    if times.dtype.kind == "M":
        edges = edges.astype("int64").astype("datetime64[ns]")
    reach = _reach(np.asarray(H.filled(np.nan)))
    rows = np.arange(H.shape[1] + 1) - 0.5
    shades: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -reach, "vmax": reach}
    mesh = picture.ax.pcolormesh(edges, rows, H.T, rasterized=True, **shades)
    picture.ax.figure.colorbar(mesh, ax=picture.ax, label="state")
    if picture.own:
        picture.ax.invert_yaxis()
