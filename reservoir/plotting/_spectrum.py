"""Points in the complex plane, with the unit circle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir._validation import check_number, check_unmasked
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import check_finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DENSE_UNITS = 5000  # all eigenvalues of a larger matrix take minutes and gigabytes


def _eigenvalues(W: Any) -> Array:
    """Return the eigenvalues of a matrix, Reservoir or estimator, or the given eigenvalues."""
    W = getattr(W, "reservoir_", W)  # a fitted estimator
    W = getattr(W, "W", W)  # a Reservoir
    check_unmasked("W", W)
    values: Any = W if sp.issparse(W) else np.asarray(W)
    if values.ndim == 1 and values.size:
        return np.asarray(values, dtype=complex)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.shape[0]:
        raise ValueError(
            f"W has shape {values.shape}; it must be a square matrix, a Reservoir, or "
            "eigenvalues of shape (n_eigenvalues,)."
        )
    if values.shape[0] > MAX_DENSE_UNITS:
        raise ValueError(
            f"W has {values.shape[0]} units; all eigenvalues are computed only up to "
            f"{MAX_DENSE_UNITS} units. Pass the eigenvalues of interest, for instance from "
            "scipy.sparse.linalg.eigs."
        )
    return np.linalg.eigvals(values.toarray() if sp.issparse(values) else values).astype(complex)


def spectrum(
    W: Any,
    *,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the eigenvalues of the recurrent weights in the complex plane, with the unit circle.

    Parameters
    ----------
    W : (sparse) array of shape (n_units, n_units), or array of shape (n_eigenvalues,)
        A matrix of up to 5000 units (a sparse one is converted to dense), a `Reservoir` or fitted
        estimator with such a matrix, or the eigenvalues.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the circle of the spectral radius, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `W` is neither square nor one-dimensional, or too large for all its eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> ax = plotting.spectrum(np.diag([0.5, -0.8]))
    >>> ax.get_legend_handles_labels()[1]
    ['eigenvalues', 'spectral radius 0.8', 'unit circle']
    """
    values = check_finite("W", _eigenvalues(W))
    picture = Picture(ax, legend, line_kw)
    return _complex_plane(picture, values, "spectral radius", "eigenvalues", "o")


def multipliers(
    values: Any,
    *,
    bound: float | None = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Floquet multipliers of a cycle in the complex plane, with the unit circle.

    They are the eigenvalues of the Jacobian over one period: the factors by which small deviations
    from the cycle are multiplied per period. If all are inside the unit circle, the cycle is
    stable.

    Parameters
    ----------
    values : array of shape (n_multipliers,), or object with such an array as `multipliers`
        The multipliers, or an object that has them, such as the result of
        `reservoir.stability.find_limit_cycle`.
    bound : float, default=None
        A proved upper bound on the moduli of all multipliers: ``certificate.rate ** period``. It is
        drawn as a soft disc.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the circle of the largest modulus, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `values` is empty, not one-dimensional, or contains NaN or infinity, or `bound` is not
        positive.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.multipliers([0.5 + 0.3j, 0.5 - 0.3j, -0.2])
    >>> ax.get_legend_handles_labels()[1]
    ['multipliers', 'largest modulus 0.5831', 'unit circle']
    >>> ax = plotting.multipliers([0.5 + 0.3j, 0.5 - 0.3j, -0.2], bound=0.9**2)
    >>> ax.get_legend_handles_labels()[1][0]
    'proved: all within 0.81'
    """
    check_unmasked("values", values)
    points = np.asarray(getattr(values, "multipliers", values))
    if points.ndim != 1 or points.size == 0 or points.dtype == object:
        raise ValueError(
            f"values has shape {points.shape}; it must be a non-empty array of multipliers, of "
            "shape (n_multipliers,), or an object with an attribute `multipliers`. For a matrix "
            "use `spectrum`."
        )
    points = check_finite("values", points.astype(complex))
    if bound is not None:
        bound = check_number("bound", bound, low=0.0, low_open=True)
    picture = Picture(ax, legend, line_kw)
    if bound is not None:
        _draw_bound(picture, bound)
    return _complex_plane(picture, points, "largest modulus", "multipliers", "s")


def _draw_bound(picture: Picture, bound: float) -> None:
    """Draw the disc of a proved bound; the number in its label is rounded up."""
    disc = bound * np.exp(1j * np.linspace(0, 2 * np.pi, 361))
    name = f"proved: all within {np.ceil(bound * 1e4 * (1 - 1e-12)) / 1e4:.4g}"
    style = picture.theme.area(picture.theme.colour(2))
    picture.ax.fill(disc.real, disc.imag, **style, zorder=0.6, label=name)


def _complex_plane(
    picture: Picture, values: Array, radius_label: str, label: str, marker: str
) -> Axes:
    """Draw points, the unit circle and the circle through the outermost point."""
    ax, theme = picture.ax, picture.theme
    radius = np.max(np.abs(values))
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 361))
    ax.axhline(0, **theme.helper)
    ax.axvline(0, **theme.helper)
    size = max(2.0, 4.5 * min(1.0, (60 / len(values)) ** 0.25))
    dots = theme.marker(marker, size) | {"linestyle": "none", "markeredgewidth": 0.8}
    dots |= {"color": theme.colour(0), "markerfacecolor": "none", "zorder": 2.5}
    ax.plot(values.real, values.imag, **dots, label=label)
    ring = radius * circle
    style = theme.curve(1, 1.2)
    ax.plot(ring.real, ring.imag, **picture.subject(style, f"{radius_label} {radius:.4g}"))
    unit = {"color": theme.ink, "linewidth": theme.width(1.0)}
    ax.plot(circle.real, circle.imag, **unit, label="unit circle")
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlabel("real part")
    ax.set_ylabel("imaginary part")
    return picture.finish()
