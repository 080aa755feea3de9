"""What every picture shares: line styles, the axes, labels, checks of series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH: dict[str, Any] = {"color": "0.65", "linestyle": "-", "linewidth": 2.4}
GUESS: dict[str, Any] = {"color": "firebrick", "linestyle": (0, (4, 1.5)), "linewidth": 1.4}
MARK: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0}
LINE: dict[str, Any] = {"color": "tab:blue", "linestyle": "-", "linewidth": 1.2}
START: dict[str, Any] = {"color": "black", "linestyle": "none", "marker": "x", "markersize": 6}
HATCHED: dict[str, Any] = {"facecolor": "0.93", "edgecolor": "0.6", "hatch": "///", "linewidth": 0}
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":")

# Inches in a legend of small print: a letter, the sample of a line with its gaps, a row.
_LETTER, _HANDLE, _LINE_HEIGHT = 0.064, 0.55, 0.17


def new_axes(ax: Axes | None, projection: str | None = None) -> Any:
    """Return `ax`, or the axes of a new figure of README size."""
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


def columns(name: str, values: ArrayLike) -> Array:
    """Return a series as (n_samples, n_columns) floats."""
    table = np.asarray(values, dtype=float)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be (n_samples,) or (n_samples, n_columns), "
            "and not empty."
        )
    return table.reshape(len(table), -1)


def finite(name: str, values: Any, *axes: str) -> Array:
    """Return `values` as floats with one axis for each name in `axes`, not empty, all finite."""
    shape = f"({', '.join(axes)}{',' * (len(axes) == 1)})"
    if np.iscomplexobj(values):
        raise TypeError(f"{name} is complex; it must be real, of shape {shape}.")
    try:
        table = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers of shape {shape}: {error}") from error
    if table.ndim != len(axes) or table.size == 0:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be of shape {shape}, and not empty."
        )
    return refuse_nonfinite(name, table)


def refuse_nonfinite(name: str, table: Array) -> Array:
    """Return `table`, or name its first entry that is NaN or infinite."""
    bad = ~np.isfinite(table)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} is {table[place]} at index {place}; only finite numbers can be drawn. Leave "
            "it out, or look for where it comes from."
        )
    return table


def choose_units(units: int | Sequence[int], n_units: int) -> Array:
    """Return the indices of the units to draw: those named, or so many spread evenly."""
    if isinstance(units, (int, np.integer)):
        count = min(check_count("units", units), n_units)
        return np.linspace(0, n_units - 1, count).round().astype(int)
    chosen = np.asarray(units, dtype=int)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.min() < 0 or chosen.max() >= n_units:
        raise ValueError(f"units={units!r} must name at least one unit in [0, {n_units - 1}].")
    return chosen


def cell_edges(centres: Array) -> Array:
    """Return the ends of the cells around increasing `centres`: half-way, and as far beyond."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    half = np.diff(centres) / 2
    return np.concatenate([[centres[0] - half[0]], centres[:-1] + half, [centres[-1] + half[-1]]])


def times_of(index: ArrayLike | None, n_rows: int) -> Array:
    """Return the time of each row: `index`, or 0, 1, 2, ..."""
    if index is None:
        return np.arange(n_rows)
    times = np.asarray(index)
    if times.shape != (n_rows,):
        raise ValueError(f"index has shape {times.shape}; one time per row makes it ({n_rows},).")
    return times


def names_of(labels: Sequence[str] | None, n_columns: int) -> list[str]:
    """Return one label per column."""
    if labels is None:
        return [f"output {j}" for j in range(n_columns)]
    if isinstance(labels, str) or len(labels) != n_columns:
        raise ValueError(f"labels={labels!r} must be a list of {n_columns} names, one per column.")
    return [str(label) for label in labels]


def finish(ax: Axes) -> Axes:
    """Give a series its margins and its legend."""
    ax.margins(x=0.01)
    return legend_strip(ax)


def legend_strip(ax: Axes) -> Axes:
    """Put the legend into a strip of its own above the curves, where it hides none of them.

    It takes as many columns as fit into the width of the axes, and the strip is as high as its
    rows need, so that a small figure is not covered.
    """
    names = ax.get_legend_handles_labels()[1]
    width, height = inches(ax)
    spans = [_HANDLE + _LETTER * len(name) for name in names]
    for n_columns in range(len(names), 0, -1):  # the most that fit; a legend fills them in turn
        parts = np.array_split(spans, n_columns)
        if sum(part.max() for part in parts) <= width:
            break
    n_rows = len(parts[0])
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


def legend_outside(ax: Axes, gap: float = 0.02) -> Axes:
    """Put the legend beside square axes where there is room, above them on a small figure."""
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1 + gap, 0.5)}
    above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    place = beside if inches(ax)[0] > 4 else above
    ax.legend(**place, frameon=False, fontsize="small")
    return ax


def inches(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes on paper, before a layout engine moves them."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return box.width, box.height


def label_bands(ax: Axes, names: Sequence[str]) -> None:
    """Name the bands that stacked columns occupy, the first on top."""
    ax.set_yticks(-np.arange(len(names)), labels=list(names))
    ax.set_ylim(-len(names) + 0.4, 0.6)
