"""The axes of a plot, and the position of its legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches in a legend in small print: the width of a letter, the width of a line sample with the gaps
# around it, and the height of a row.
_LETTER, _HANDLE, _LINE_HEIGHT = 0.064, 0.55, 0.17
_LABELS = 0.45  # inches below the axes for tick labels and axis label


def new_axes(ax: Axes | None, projection: str | None = None) -> Any:
    """Return `ax`, or the axes of a new figure of 7 x 3 inches if `ax` is None."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'reservoir.plotting needs matplotlib: pip install "reservoir-esn[plot]"'
        ) from error
    figure = plt.figure(figsize=(7, 3), layout="constrained")
    return figure.add_subplot(projection=projection)


def finish(ax: Axes) -> Axes:
    """Set narrow margins, and put the legend above the curves."""
    ax.margins(x=0.01)
    return legend_strip(ax)


def legend_strip(ax: Axes, size: tuple[float, float] | None = None) -> Axes:
    """Put the legend into a strip above the curves, so that it hides none of them.

    The vertical axis is extended by the height of the legend, which has as many columns as fit into
    the width of the axes. `size` is the size of the axes in inches; pass it if the axes have not
    been laid out yet.
    """
    width, height = size or inches(ax)
    n_columns, n_rows = _legend_grid(ax, width)
    # The fraction of the axes' height that the rows occupy, at most a half.
    share = min((n_rows * _LINE_HEIGHT + 0.14) / height, 0.5)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + (top - bottom) * share / (1 - share))
    ax.legend(
        loc="upper left",
        ncols=n_columns,
        framealpha=1,
        edgecolor="none",
        fontsize="small",
        columnspacing=1.0,
        handlelength=2.4,
    )
    return ax


def legend_below(ax: Axes) -> Axes:
    """Put the legend below the axes: the limits must not change, and the title is above."""
    from matplotlib.transforms import ScaledTranslation

    n_columns, _ = _legend_grid(ax, inches(ax)[0])
    assert ax.figure is not None
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(-0.02, 0.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0, -_LABELS, ax.figure.dpi_scale_trans),
        ncols=n_columns,
        frameon=False,
        fontsize="small",
        columnspacing=1.0,
    )
    return ax


def _legend_grid(ax: Axes, width: float) -> tuple[int, int]:
    """Return the legend's numbers of columns and rows, with as many columns as fit into `width`."""
    names = ax.get_legend_handles_labels()[1]
    spans = [_HANDLE + _LETTER * len(name) for name in names]
    for n_columns in range(len(names), 0, -1):
        parts = np.array_split(spans, n_columns)  # matplotlib fills the legend column by column
        if sum(part.max() for part in parts) <= width:
            break
    return n_columns, len(parts[0])


def legend_outside(ax: Axes, gap: float = 0.02) -> Axes:
    """Put the legend to the right of square axes, or below them if the figure is small."""
    right: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1 + gap, 0.5)}
    if inches(ax)[0] <= 4:
        return legend_below(ax)
    ax.legend(**right, frameon=False, fontsize="small")
    return ax


def inches(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes in inches, before a layout engine changes them."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return box.width, box.height


def label_bands(ax: Axes, names: Sequence[str]) -> None:
    """Label the vertical axis with the names of stacked columns, the first at the top."""
    ax.set_yticks(-np.arange(len(names)), labels=list(names))
    ax.set_ylim(-len(names) + 0.4, 0.6)


def date_axis(ax: Axes) -> None:
    """Label a horizontal axis of dates with few, short labels."""
    from matplotlib import dates

    locator = dates.AutoDateLocator(minticks=3, maxticks=7)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def cell_edges(centres: Array) -> Array:
    """Return the edges of cells around increasing `centres`: the midpoints between neighbours."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    half = np.diff(centres) / 2
    return np.concatenate([[centres[0] - half[0]], centres[:-1] + half, [centres[-1] + half[-1]]])
