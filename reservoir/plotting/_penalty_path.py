"""The scores of the ridge penalties that were tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reservoir._typing import ArrayLike
from reservoir.plotting._axes import new_axes
from reservoir.plotting._plot_arguments import columns
from reservoir.plotting._styles import LINE, MARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def penalty_path(
    alphas: ArrayLike,
    scores: ArrayLike,
    *,
    selected: float | ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of each ridge penalty that was tried, and mark the chosen penalty.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        Penalties, none negative, in any order. The axis is logarithmic; a penalty of 0 is drawn at
        its left end, on a grey background.
    scores : array of shape (n_alphas,) or (n_alphas, n_outputs)
        The score of each penalty. It is an error: lower is better.
    selected : float or array of shape (n_outputs,), default=None
        The chosen penalty, or one penalty for each output; by default the penalty with the lowest
        mean score.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a penalty is negative, or the numbers of penalties and of scores differ.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.penalty_path([1e-6, 1e-4, 1e-2], [0.3, 0.1, 0.2])
    >>> ax.get_legend_handles_labels()[1]
    ['score', 'chosen: 0.0001']
    """
    penalties, errors = np.ravel(np.asarray(alphas, dtype=float)), columns("scores", scores)
    if len(penalties) != len(errors):
        raise ValueError(
            f"scores has {len(errors)} rows, but alphas has {len(penalties)} entries. Pass one row "
            "per penalty."
        )
    if not np.all(penalties >= 0):
        raise ValueError(
            f"alphas contains the penalty {np.min(penalties)}; penalties must be at least 0, not "
            "NaN."
        )
    if selected is None:
        selected = penalties[np.argmin(errors.mean(axis=1))]
    # A logarithmic axis has no 0: such a penalty is drawn a decade below the smallest other one.
    zero = np.min(penalties, where=penalties > 0, initial=1.0) / 10
    positions = np.where(penalties > 0, penalties, zero)
    order = np.argsort(positions)
    # The scores of each output, and the chosen penalties.
    ax = new_axes(ax)
    for j, column in enumerate(errors.T):
        style = LINE | {"linestyle": ("-", "--", "-.", ":")[j % 4]}
        label = "score" if errors.shape[1] == 1 else f"output {j}"
        ax.plot(positions[order], column[order], marker=".", label=label, **style)
    for alpha in np.unique(np.asarray(selected, dtype=float)):
        ax.axvline(alpha or zero, label=f"chosen: {alpha:.4g}", **MARK)
    if not penalties.all():
        ax.axvspan(zero / 2, zero * 2, color="0.9", label="penalty 0")
    ax.set_xscale("log")
    if np.all(errors > 0) and errors.max() > 10 * errors.min():
        ax.set_yscale("log")  # over less than a decade a logarithmic axis would show no labels
    ax.set_xlabel("penalty alpha")
    ax.set_ylabel("score (less is better)")
    ax.legend(frameon=False, fontsize="small")
    return ax
