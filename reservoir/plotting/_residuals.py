"""Checks of residuals: their autocorrelation and their distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, ndtri

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_count, check_switch
from reservoir.plotting._picture import Picture, inches
from reservoir.plotting._plot_arguments import finite

if TYPE_CHECKING:
    pass

_BOUND = 1.959963984540054  # 97.5 % quantile of the normal distribution
_MOST_DOTS, _TAIL = 1000, 50  # dots of a plot of quantiles, evenly spread, and all at either end
_GAP, _NARROW = 0.65, 4.0  # inches: the gap between the two axes; narrower ones are stacked


def residuals(
    errors: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    n_lags: int | None = None,
    quantiles: bool = False,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the autocorrelation of errors, and next to it their distribution.

    One-step errors should be uncorrelated: a correlated part could have been forecast. If errors
    are independent, 95 of 100 autocorrelations are between the dashed lines, ``-1.96 / sqrt(n)``
    and ``1.96 / sqrt(n)``; the Ljung-Box test [1]_ combines all lags, and a small p is evidence
    against independence. Errors of longer horizons are correlated up to the horizon, even for
    optimal forecasts.

    Parameters
    ----------
    errors : array of shape (n_samples,), or fitted model
        Errors of forecasts at one horizon, in time order and at equal time steps; or a fitted model
        of one output, whose errors are ``y - model.predict(X)``.
    X, y : arrays of shape (n_samples, n_features) and (n_samples,), default=None
        Inputs and targets for the model; None if `errors` is an array.
    n_lags : int, steps, default=None
        Number of lags to draw. By default ``10 log10(n_samples)``, but at most half of the number
        of samples.
    quantiles : bool, default=False
        Whether to draw the quantiles of the errors, in standard deviations, against normal
        quantiles instead of a histogram with the normal density. This shows the tails more clearly.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the autocorrelation, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes or array of two Axes, default=None
        Axes to draw on; by default those of a new figure. One Axes is divided: it keeps half of its
        area, and the second axes take the other half, on the right or, if it is narrow, above.

    Returns
    -------
    array of shape (2,) of matplotlib Axes
        The axes of the autocorrelation and of the distribution.

    Raises
    ------
    ValueError
        If `errors` is not one-dimensional, is constant or not finite, or has at most `n_lags` rows.

    References
    ----------
    .. [1] Ljung and Box (1978), "On a measure of lack of fit in time series models", Biometrika 65,
       297-303.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> left, right = plotting.residuals(np.random.default_rng(0).normal(size=200), n_lags=12)
    >>> left.get_legend_handles_labels()[1]
    ['Ljung-Box: p = 0.30', '95 % bounds']
    """
    rows = finite("errors", _errors_of(errors, X, y), "n_samples")
    check_switch("quantiles", quantiles)
    if n_lags is None:
        n_lags = max(1, min(int(10 * np.log10(len(rows))), len(rows) // 2))
    if check_count("n_lags", n_lags) >= len(rows):
        raise ValueError(
            f"n_lags={n_lags} needs more than {n_lags} errors, but there are {len(rows)}. Lower it."
        )
    if np.ptp(rows) == 0:
        raise ValueError(f"All errors are {rows[0]:g}: a constant has no autocorrelation.")
    given = [ax, _halved(ax)] if hasattr(ax, "get_xlim") and ax.name != "3d" else ax
    picture, second = Picture.several(given, 2, legend, line_kw, below=False)
    _draw_autocorrelation(picture, rows, n_lags)
    if quantiles:
        _draw_quantiles(second, rows)
    else:
        _draw_distribution(second, rows)
    picture.finish(others=[second.ax])
    return np.array([picture.ax, second.ax])


def _errors_of(errors: Any, X: Any, y: Any) -> Any:
    """Return the given errors, or those of a fitted model on `X` and `y`."""
    if not hasattr(errors, "predict"):
        if X is not None or y is not None:
            raise TypeError("X and y are for a fitted model: give one as errors, or omit both.")
        return errors
    if X is None or y is None:
        raise TypeError(
            f"The errors of a {type(errors).__name__} need X and y: "
            f"`plotting.residuals(model, X, y)`."
        )
    return as_plain("y", y, float) - np.asarray(errors.predict(X))


def _halved(ax: Any) -> Any:
    """Split `ax` into halves, and return the axes of the new half."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable  # type: ignore[import-untyped]

    width, height = inches(ax)
    side = "top" if width < _NARROW and height > width else "right"
    return make_axes_locatable(ax).append_axes(side, size="100%", pad=_GAP)


def autocorrelation(rows: Array, n_lags: int) -> Array:
    """Return the autocorrelation of a series at the lags from 1 to `n_lags`."""
    centred = rows - rows.mean()
    centred = centred / np.abs(centred).max()  # squares in range
    products = [centred[lag:] @ centred[:-lag] for lag in range(1, n_lags + 1)]
    return np.array(products) / (centred @ centred)


def ljung_box(rows: Array, n_lags: int) -> float:
    """Return the p value of the test that the autocorrelations up to lag `n_lags` are 0."""
    n = len(rows)
    lags = np.arange(1, n_lags + 1)
    statistic = n * (n + 2) * np.sum(autocorrelation(rows, n_lags) ** 2 / (n - lags))
    return float(chdtrc(n_lags, statistic))


def _draw_autocorrelation(picture: Picture, rows: Array, n_lags: int) -> None:
    ax, theme = picture.ax, picture.theme
    values, lags = autocorrelation(rows, n_lags), np.arange(1, n_lags + 1)
    p = ljung_box(rows, n_lags)
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.3f}"
    ax.vlines(lags, 0, values, color=theme.colour(0), linewidth=theme.width(2))
    dots = theme.marker("o", 3.5) | {"color": theme.colour(0), "linestyle": "none"}
    ax.plot(lags, values, **picture.subject(dots, f"Ljung-Box: {shown}"))
    bound = _BOUND / np.sqrt(len(rows))
    edge = {"color": theme.muted, "linestyle": "--", "linewidth": theme.width(0.9)}
    ax.axhspan(-bound, bound, color=theme.mix(theme.ink, 0.07), zorder=0)
    ax.axhline(bound, label="95 % bounds", **edge)
    ax.axhline(-bound, **edge)
    ax.axhline(0, **theme.helper)
    ax.set_xlabel("lag (steps)")
    ax.set_ylabel("autocorrelation")
    ax.locator_params(axis="x", integer=True, nbins=6)


def _draw_distribution(picture: Picture, rows: Array) -> None:
    ax, theme = picture.ax, picture.theme
    mean, spread = rows.mean(), rows.std()
    bars = {"color": theme.mix(theme.ink, 0.15), "edgecolor": theme.muted, "linewidth": 0.6}
    ax.hist(rows, bins="auto", density=True, label="errors", **bars)
    half_width = max(4 * spread, np.abs(rows - mean).max())
    grid = mean + np.linspace(-half_width, half_width, 201)
    curve = np.exp(-(((grid - mean) / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
    ax.plot(grid, curve, label="normal", **theme.curve(1))
    ax.set_xlabel("error")
    ax.ticklabel_format(axis="x", scilimits=(-3, 4))  # long numbers would overlap
    ax.locator_params(axis="x", nbins=5)
    ax.set_yticks([])


def _draw_quantiles(picture: Picture, rows: Array) -> None:
    theme, n = picture.theme, len(rows)
    normal = ndtri((np.arange(1, n + 1) - 0.5) / n)
    found = (np.sort(rows) - rows.mean()) / rows.std()
    dots = theme.marker("o", 3.5) | {"color": theme.colour(0), "linestyle": "none"}
    rows = np.linspace(0, n - 1, _MOST_DOTS).round().astype(int)
    kept = np.unique(np.clip([*rows, *range(_TAIL), *range(n - _TAIL, n)], 0, n - 1))
    picture.ax.plot(normal[kept], found[kept], label="errors", **dots)
    ends = [normal[0], normal[-1]]
    picture.ax.plot(ends, ends, label="normal", **theme.curve(1))
    picture.ax.set_xlabel("normal quantile")
