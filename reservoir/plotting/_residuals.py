"""Checks of residuals: their autocorrelation and their distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, ndtri

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count, check_switch
from reservoir.plotting._axes import inches, legend_strip, new_axes
from reservoir.plotting._plot_arguments import finite
from reservoir.plotting._styles import GUESS, LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOUND = 1.959963984540054  # 97.5 % quantile of the normal distribution
_GAP, _NARROW = 0.65, 4.0  # inches: the gap between the two axes; narrower ones are stacked
_DOTS: dict[str, Any] = {"color": "tab:blue", "linestyle": "none", "marker": "o", "markersize": 3.5}
_BARS: dict[str, Any] = {"color": "0.85", "edgecolor": "0.45", "linewidth": 0.6}


def residuals(
    errors: ArrayLike,
    *,
    n_lags: int | None = None,
    quantiles: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the autocorrelation of errors, and next to it their distribution.

    One-step errors should be uncorrelated: a correlated part could have been forecast. If errors
    are independent, 95 of 100 autocorrelations are between the dashed lines, ``-1.96 / sqrt(n)``
    and ``1.96 / sqrt(n)``; the Ljung-Box test [1]_ combines all lags, and a small p is evidence
    against independence. Errors of longer horizons are correlated up to the horizon, even for
    optimal forecasts.

    Parameters
    ----------
    errors : array of shape (n_samples,)
        Errors of forecasts at one horizon, in time order and at equal time steps.
    n_lags : int, steps, default=None
        Number of lags to draw. By default ``10 log10(n_samples)``, but at most half of the number
        of samples.
    quantiles : bool, default=False
        Whether to draw the quantiles of the errors, in standard deviations, against normal
        quantiles instead of a histogram with the normal density. This shows the tails more clearly.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches. They keep half of their area; the
        second axes take the other half, on the right or, if the axes are narrow, above.

    Returns
    -------
    matplotlib Axes
        The axes of the autocorrelation. The second axes are the last in ``ax.figure.axes``.

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
    >>> ax = plotting.residuals(np.random.default_rng(0).normal(size=200), n_lags=12)
    >>> ax.get_legend_handles_labels()[1]
    ['95 % bounds', 'Ljung-Box: p = 0.30']
    """
    rows = finite("errors", errors, "n_samples")
    check_switch("quantiles", quantiles)
    if n_lags is None:
        n_lags = max(1, min(int(10 * np.log10(len(rows))), len(rows) // 2))
    if check_count("n_lags", n_lags) >= len(rows):
        raise ValueError(
            f"n_lags={n_lags} needs more than {n_lags} errors, but there are {len(rows)}. Lower it."
        )
    if np.ptp(rows) == 0:
        raise ValueError(f"All errors are {rows[0]:g}: a constant has no autocorrelation.")
    ax = new_axes(ax)
    other, size = _halved(ax)
    _draw_autocorrelation(ax, rows, n_lags)
    if quantiles:
        _draw_quantiles(other, rows)
    else:
        _draw_distribution(other, rows)
    for half in (ax, other):
        legend_strip(half, size)
    return ax


def _halved(ax: Axes) -> tuple[Axes, tuple[float, float]]:
    """Split `ax` into halves, and return the axes of the new half and the size of a half."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable  # type: ignore[import-untyped]

    width, height = inches(ax)
    divider = make_axes_locatable(ax)
    if width < _NARROW:
        other = divider.append_axes("top", size="100%", pad=_GAP)
        return other, (width, (height - _GAP) / 2)
    other = divider.append_axes("right", size="100%", pad=_GAP)
    return other, ((width - _GAP) / 2, height)


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


def _draw_autocorrelation(ax: Axes, rows: Array, n_lags: int) -> None:
    values, lags = autocorrelation(rows, n_lags), np.arange(1, n_lags + 1)
    bound = _BOUND / np.sqrt(len(rows))
    edge: dict[str, Any] = {"color": "0.4", "linestyle": "--", "linewidth": 0.9}
    ax.axhspan(-bound, bound, color="0.93", zorder=0)
    ax.axhline(bound, label="95 % bounds", **edge)
    ax.axhline(-bound, **edge)
    ax.axhline(0, color="black", linewidth=0.7)
    p = ljung_box(rows, n_lags)
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.3f}"
    ax.vlines(lags, 0, values, color=LINE["color"], linewidth=2)
    ax.plot(lags, values, label=f"Ljung-Box: {shown}", **_DOTS)
    ax.set_xlabel("lag (steps)")
    ax.set_ylabel("autocorrelation")
    ax.locator_params(axis="x", integer=True, nbins=6)


def _draw_distribution(ax: Axes, rows: Array) -> None:
    mean, spread = rows.mean(), rows.std()
    ax.hist(rows, bins="auto", density=True, label="errors", **_BARS)
    half_width = max(4 * spread, np.abs(rows - mean).max())
    grid = mean + np.linspace(-half_width, half_width, 201)
    curve = np.exp(-(((grid - mean) / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
    ax.plot(grid, curve, label="normal", **GUESS)
    ax.set_xlabel("error")
    ax.set_yticks([])


def _draw_quantiles(ax: Axes, rows: Array) -> None:
    n = len(rows)
    normal = ndtri((np.arange(1, n + 1) - 0.5) / n)
    found = (np.sort(rows) - rows.mean()) / rows.std()
    ax.plot(normal, found, label="errors", **_DOTS)
    ends = [normal[0], normal[-1]]
    ax.plot(ends, ends, label="normal", **GUESS)
    ax.set_xlabel("normal quantile")
