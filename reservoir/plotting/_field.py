"""A field over space and time, its forecast, and their difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_number
from reservoir.metrics import valid_time
from reservoir.plotting._picture import Picture, cell_edges
from reservoir.plotting._plot_arguments import columns

_MOST_ROWS = 2_000  # of an image: as many as a wide figure has pixels
_TOLERATED = 0.5  # standard deviations of the field, up to which a forecast is valid
_LOW = 3.0  # inches
_LINE = "tab:green"  # seen on the images, which are light, and in the legend on dark ground


def field(
    truth: ArrayLike,
    forecast: ArrayLike | None = None,
    *,
    dt: float = 1.0,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw a field, space against time, with its forecast and their difference below it.

    All panels have one scale of colours. A line marks the valid time, up to which the root mean
    square error over places is below half a standard deviation of the field.

    Parameters
    ----------
    truth : array of shape (n_steps, n_places)
        The field, one row per time step.
    forecast : array of shape (n_steps, n_places), default=None
        Forecasts of the same rows, as of `reservoir.LocalForecaster`. Without them there is one
        panel.
    dt : float, time units, default=1.0
        Time between two rows.
    legend : bool or "outside", default=True
        Whether to draw a legend for the valid time: in a new figure above the panels, in given axes
        inside the first of them, with "outside" to its right.
    line_kw : dict, default=None
        Properties of the line at the valid time, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes or array of three Axes, default=None
        Axes to draw on; by default those of a new figure. On one Axes a given forecast is drawn
        alone.

    Returns
    -------
    array of shape (1,) or (3,) of matplotlib Axes

    Raises
    ------
    ValueError
        If the shapes differ, a value of `truth` is not finite, or `dt` is not positive.

    Examples
    --------
    >>> from reservoir import plotting
    >>> from reservoir.datasets import lorenz96
    >>> X = lorenz96(100)
    >>> top, middle, bottom = plotting.field(X, 0.9 * X, dt=0.05)
    >>> bottom.get_xlabel(), bottom.get_title(loc="left")
    ('time', 'difference')
    """
    dt = check_number("dt", dt, low=0.0, low_open=True)
    true = columns("truth", truth)
    if not np.isfinite(true).all():
        raise ValueError("truth contains NaN or infinity. Draw the rows without them.")
    images = {"field": true}
    if forecast is not None:
        rows = columns("forecast", forecast)
        if rows.shape != true.shape:
            raise ValueError(
                f"forecast has shape {rows.shape}, but truth has shape {true.shape}. Pass the rows "
                "that were forecast."
            )
        images |= {"forecast": rows, "difference": rows - true}
        if hasattr(ax, "get_xlim"):
            images = {"forecast": rows}
    pictures = Picture.several(ax, len(images), legend, line_kw, below=True)
    centre = true.mean()
    reach = float(np.abs(true - centre).max()) or 1.0
    for picture, (title, image) in zip(pictures, images.items(), strict=True):
        middle = 0.0 if title == "difference" else centre
        shades = {"cmap": "RdBu_r", "vmin": middle - reach, "vmax": middle + reach}
        _draw(picture, image, dt, shades)
        if picture.ax.figure.get_size_inches()[1] < _LOW:  # a line above each image is too much
            picture.ax.set_ylabel(title, fontsize="x-small")
        else:
            picture.ax.set_ylabel("place")
            picture.ax.set_title(title, loc="left", fontsize="medium")
    pictures[-1].ax.set_xlabel("time")
    if forecast is not None:
        _mark(pictures, true, images["forecast"], dt)
    pictures[0].finish(right_is_free=False)
    return np.array([picture.ax for picture in pictures])


def _draw(picture: Picture, rows: Array, dt: float, shades: dict[str, Any]) -> None:
    """Draw an image with a colour bar; long ones are thinned out."""
    every = -(-len(rows) // _MOST_ROWS)
    times = cell_edges(dt * np.arange(len(rows))[::every])
    places = np.arange(rows.shape[1] + 1) - 0.5
    shown = np.ma.masked_invalid(rows[::every]).T
    mesh = picture.ax.pcolormesh(times, places, shown, rasterized=True, **shades)
    picture.ax.figure.colorbar(mesh, ax=picture.ax, aspect=10)


def _mark(pictures: list[Picture], true: Array, rows: Array, dt: float) -> None:
    """Draw a line at the valid time, in all panels."""
    scale = np.full(true.shape[1], float(true.std()) or 1.0)
    valid = valid_time(true, rows, threshold=_TOLERATED, dt=dt, scale=scale)
    style = {"color": _LINE, "linestyle": "--", "linewidth": 2.0}
    own = pictures[0].subject(style, f"valid time {valid:.3g}")
    for k, picture in enumerate(pictures):
        picture.ax.axvline(valid, **(own | {"label": "_valid"} if k else own))
