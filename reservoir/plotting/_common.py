"""What every picture shares: line styles, the axes, labels, checks of series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH: dict[str, Any] = {"color": "0.65", "linestyle": "-", "linewidth": 2.4}
GUESS: dict[str, Any] = {"color": "firebrick", "linestyle": (0, (4, 1.5)), "linewidth": 1.4}
MARK: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0}
LINE: dict[str, Any] = {"color": "tab:blue", "linestyle": "-", "linewidth": 1.2}


def new_axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure of README size."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'reservoir.plotting needs matplotlib: pip install "reservoir-esn[plot]"'
        ) from error
    return plt.subplots(figsize=(7, 3), layout="constrained")[1]


def columns(name: str, values: ArrayLike) -> Array:
    """Return a series as (n_samples, n_columns) floats."""
    table = np.asarray(values, dtype=float)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be (n_samples,) or (n_samples, n_columns), "
            "and not empty."
        )
    return table.reshape(len(table), -1)


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
    """Put the legend into a strip of its own above the curves, where it hides none of them."""
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + 0.18 * (top - bottom))
    ax.margins(x=0.01)
    ax.legend(loc="upper left", ncols=4, framealpha=1, edgecolor="none", fontsize="small")
    return ax


def label_bands(ax: Axes, names: Sequence[str]) -> None:
    """Name the bands that stacked columns occupy, the first on top."""
    ax.set_yticks(-np.arange(len(names)), labels=list(names))
    ax.set_ylim(-len(names) + 0.4, 0.6)
