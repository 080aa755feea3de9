"""The norm of the product of step Jacobians over its depth: how far gradients reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reservoir._typing import ArrayLike
from reservoir.plotting._axes import finish, new_axes
from reservoir.plotting._styles import DASHES, MARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = ("black", "firebrick", "tab:blue", "0.6")


def jacobian_norms(
    log_norms: ArrayLike, *, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the norm of the product of step Jacobians over its depth, on a logarithmic axis.

    The dotted line is a norm of 1, where gradients keep their size: below it they vanish, above it
    they explode.

    Parameters
    ----------
    log_norms : array of shape (depth,) or (depth, n_networks)
        Natural logarithms, as of `reservoir.training.gradient_control.jacobian_product_norms`. A
        curve ends where the product is zero (-inf).
    labels : list of n_networks str, default=None
        The networks' names; without them there is no legend.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there is not one label per network, or a value is NaN or +inf.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> depth = np.arange(1, 1001)
    >>> ax = plotting.jacobian_norms(-np.outer(depth, [0.1, 0.001]), labels=["plain", "controlled"])
    >>> ax.get_legend_handles_labels()[1]
    ['plain', 'controlled']
    """
    table = np.asarray(log_norms, dtype=float)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(
            f"log_norms has shape {table.shape}; it must be (depth,) or (depth, n_networks), and "
            "not empty."
        )
    table = table.reshape(len(table), -1)
    if np.isnan(table).any() or np.isposinf(table).any():
        raise ValueError("log_norms holds NaN or inf; only finite values and -inf can be drawn.")
    n = table.shape[1]
    if labels is not None and (isinstance(labels, str) or len(labels) != n):
        raise ValueError(f"labels={labels!r} must be a list of {n} names, one per network.")
    # Decimal logarithms; a curve ends where the product is zero.
    ax = new_axes(ax)
    ax.axhline(0, **MARK)
    depth = np.arange(1, len(table) + 1)
    decades = np.where(np.isneginf(table), np.nan, table / np.log(10))
    for j, column in enumerate(decades.T):
        ax.plot(
            depth,
            column,
            color=_COLORS[j % len(_COLORS)],
            linestyle=DASHES[j % len(DASHES)],
            linewidth=1.4,
            label=None if labels is None else str(labels[j]),
        )
    ax.set_xlabel("depth (steps)")
    ax.set_ylabel("norm (decimal logarithm)")
    if labels is None:
        ax.margins(x=0.01)
        return ax
    return finish(ax)
