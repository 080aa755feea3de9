"""A map of Lyapunov exponents, or of numbers of attractors, over two parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir.plotting._picture import Picture, cell_edges
from reservoir.plotting._plot_arguments import finite, increasing, read_mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXPONENT, COUNT = "largest Lyapunov exponent", "number of attractors"
_BELOW, _ABOVE = ("#f7fbff", "#c6dbef", "#8ab6d6"), ("#f4a582", "#d6604d", "#67001f")
_MANY_CELLS = 10_000  # with more cells the certified region is an image in vector graphics
_FEW_COUNTS = 8  # the colour bar labels each count up to this number


def parameter_map(
    x: ArrayLike,
    y: ArrayLike,
    values: ArrayLike,
    *,
    certified: ArrayLike | None = None,
    parameters: Sequence[str] = ("spectral radius", "bias factor"),
    quantity: str = EXPONENT,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of a quantity over two parameters, with the certified region.

    Exponents are blue below 0 and red above, darker for larger values, with a dashed line where
    they change sign. Counts are drawn in steps of grey. The certified region is hatched and has a
    bold outline.

    Parameters
    ----------
    x : array of shape (n_x,)
        Values of the horizontal parameter, increasing.
    y : array of shape (n_y,)
        Values of the vertical parameter, increasing.
    values : array of shape (n_y, n_x)
        The quantity; row i belongs to ``y[i]``. An array of `Sweep` over (x, y) must be transposed.
    certified : bool array of shape (n_y, n_x), default=None
        Cells for which a certificate holds.
    parameters : pair of str, default=("spectral radius", "bias factor")
        The parameters' names.
    quantity : {"largest Lyapunov exponent", "number of attractors"}, \
default="largest Lyapunov exponent"
        Meaning of `values`: exponents per step, or counts.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" above them.
    line_kw : dict, default=None
        Properties of the line where exponents change sign, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure. A colour bar is put next to them.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If shapes do not match, parameters do not increase, a value is NaN or infinite, or a count
        is not a whole number.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> radius, bias = np.linspace(0.5, 1.5, 5), np.linspace(0, 2, 4)
    >>> exponents = np.log(radius) - 0.2 * bias[:, None]
    >>> ax = plotting.parameter_map(radius, bias, exponents, certified=exponents < -0.3)
    >>> ax.get_legend_handles_labels()[1]
    ['exponent 0', 'certified']
    """
    check_choice("quantity", quantity, (EXPONENT, COUNT))
    columns, rows = increasing("x", x), increasing("y", y)
    table = finite("values", values, "n_y", "n_x")
    if table.shape != (len(rows), len(columns)):
        raise ValueError(
            f"values has shape {table.shape}; with {len(rows)} values of y and {len(columns)} of x "
            f"it must be ({len(rows)}, {len(columns)}). Transpose it if its rows belong to x."
        )
    if quantity == COUNT and not (np.equal(np.mod(table, 1), 0) & (table >= 0)).all():
        raise ValueError(
            f"values contains {_not_a_count(table)}, which is not a number of attractors."
        )
    mask = None if certified is None else read_mask(certified, table.shape)
    if isinstance(parameters, str) or len(parameters) != 2:
        raise ValueError(
            f"parameters={parameters!r} must contain two names: one for x and one for y."
        )
    # Draw the quantity, then the certified region over it.
    picture = Picture(ax, legend, line_kw)
    edges = cell_edges(columns), cell_edges(rows)
    if quantity == COUNT:
        _draw_counts(picture, edges, table)
    else:
        _draw_exponents(picture, edges, columns, rows, table)
    if mask is not None and mask.any():
        _draw_certified(picture, edges, mask)
    picture.ax.set_xlabel(parameters[0])
    picture.ax.set_ylabel(parameters[1])
    return picture.finish(right_is_free=False)


def _not_a_count(table: Array) -> float:
    """Return the first value that is negative or not a whole number."""
    bad = (np.mod(table, 1) != 0) | (table < 0)
    return float(table[bad][0])


def _draw_exponents(
    picture: Picture, edges: tuple[Array, Array], x: Array, y: Array, table: Array
) -> None:
    """Draw exponents in two hues with a colour bar, and the line where they change sign."""
    ax, theme = picture.ax, picture.theme
    low, high = min(float(table.min()), 0.0), max(float(table.max()), 0.0)
    if low == high:
        low, high = -1.0, 1.0
    elif low < 0 < high:
        # The scale on each side of 0 is at least a tenth of the other, so values near 0 stay pale.
        low, high = min(low, -0.1 * high), max(high, -0.1 * low)
    shades = _shades(-low / (high - low))
    mesh = ax.pcolormesh(*edges, table, cmap=shades, vmin=low, vmax=high, rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, label="largest Lyapunov\nexponent per step")
    if table.min() < 0 < table.max() and min(table.shape) > 1:
        style = {"color": theme.ink, "linestyle": "--", "linewidth": theme.width(1.2)}
        style = picture.subject(style, "exponent 0")
        given = {"colors": [style["color"]], "linewidths": style["linewidth"]}
        ax.contour(x, y, table, levels=[0.0], colors=[theme.ground], linewidths=3.0)
        ax.contour(x, y, table, levels=[0.0], **given, linestyles=style["linestyle"])
        ax.plot([], [], **style)


def _shades(zero: float) -> Any:
    """Return a colour map whose hue changes at `zero`, a number in [0, 1].

    Its colours get darker throughout, so that the order can also be read in black and white.
    """
    from matplotlib.colors import LinearSegmentedColormap

    below = zip(np.linspace(0, zero, 3), _BELOW, strict=True) if zero > 0 else ()
    above = zip(np.linspace(zero, 1, 3), _ABOVE, strict=True) if zero < 1 else ()
    return LinearSegmentedColormap.from_list("sign", [*below, *above])


def _draw_counts(picture: Picture, edges: tuple[Array, Array], table: Array) -> None:
    """Draw counts in steps of grey with a colour bar."""
    ax = picture.ax
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap

    least, most = int(table.min()), int(table.max())
    n_levels = most - least + 1
    greys = ListedColormap(colormaps["Greys"](np.linspace(0.05, 0.85, n_levels)))
    bounds = np.arange(least, most + 2) - 0.5
    mesh = ax.pcolormesh(*edges, table, cmap=greys, norm=BoundaryNorm(bounds, n_levels))
    bar = ax.figure.colorbar(mesh, ax=ax, label=COUNT.replace("of ", "of\n"))
    bar.set_ticks(list(range(least, most + 1, -(-n_levels // _FEW_COUNTS))))
    bar.minorticks_off()


def _draw_certified(picture: Picture, edges: tuple[Array, Array], mask: Array) -> None:
    """Hatch the certified cells, and outline them where they border on uncertified ones."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x, y = edges
    cells = [
        Path([(x[j], y[i]), (x[j + 1], y[i]), (x[j + 1], y[i + 1]), (x[j], y[i + 1]), (x[j], y[i])])
        for i, j in np.argwhere(mask)
    ]
    theme, many = picture.theme, mask.size > _MANY_CELLS
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": theme.muted, "hatch": "///"}
    style |= {"linewidth": 0, "rasterized": many}
    picture.ax.add_patch(PathPatch(Path.make_compound_path(*cells), **style, label="certified"))
    # Edges between a cell inside and one outside, vertical then horizontal.
    padded = np.pad(mask, 1)
    across = np.argwhere(padded[1:-1, 1:] != padded[1:-1, :-1])
    along = np.argwhere(padded[1:, 1:-1] != padded[:-1, 1:-1])
    outline = [[(x[j], y[i]), (x[j], y[i + 1])] for i, j in across]
    outline += [[(x[j], y[i]), (x[j + 1], y[i])] for i, j in along]
    for color, width in ((theme.ground, 4.0), (theme.ink, 2.2)):
        line: dict[str, Any] = {
            "color": color,
            "linewidth": width,
            "capstyle": "projecting",
            "zorder": 3,
            "rasterized": many,
        }
        picture.ax.add_collection(LineCollection(outline, **line))
