"""The scores of the ridge penalties that were tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import columns, names_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def penalty_path(
    alphas: Any,
    scores: ArrayLike | None = None,
    *,
    selected: float | ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of each ridge penalty that was tried, and mark the chosen penalty.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), or fitted model
        Penalties, none negative, in any order. The axis is logarithmic; a penalty of 0 is drawn at
        its left end, on a grey background. Or a model that chose its penalty, with the attributes
        `alphas_`, `alpha_scores_` and `alpha_`.
    scores : array of shape (n_alphas,) or (n_alphas, n_outputs), default=None
        The score of each penalty. It is an error: lower is better. Penalties whose score is NaN are
        omitted, and counted in the legend. None if `alphas` is a model.
    selected : float or array of shape (n_outputs,), default=None
        The chosen penalty, or one penalty for each output; by default the penalty with the lowest
        mean score, of those with a score for each output.
    labels : list of n_outputs str, default=None
        Names of the outputs.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the scores, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a penalty is negative, the numbers of penalties and of scores differ, or no penalty has a
        score for each output.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.penalty_path([1e-6, 1e-4, 1e-2], [0.3, 0.1, 0.2])
    >>> ax.get_legend_handles_labels()[1]
    ['score', 'chosen: 0.0001']
    """
    if scores is None:
        alphas, scores, selected = _path_of(alphas, selected)
    penalties, errors = np.ravel(as_plain("alphas", alphas, float)), columns("scores", scores)
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
    names = names_of(labels, errors.shape[1])
    scored = np.isfinite(errors).all(axis=1)
    if not scored.any():
        raise ValueError("scores contains no penalty with a finite score for each output.")
    penalties, errors = penalties[scored], errors[scored]
    if selected is None:
        selected = penalties[np.argmin(errors.mean(axis=1))]
    # A logarithmic axis has no 0: such a penalty is drawn a decade below the smallest other one.
    zero = np.min(penalties, where=penalties > 0, initial=1.0) / 10
    positions = np.where(penalties > 0, penalties, zero)
    order = np.argsort(positions)
    # The scores of each output, and the chosen penalties.
    picture = Picture(ax, legend, line_kw)
    ax, theme = picture.ax, picture.theme
    for j, column in enumerate(errors.T):
        style = theme.curve(j, 1.2) | theme.marker(".", 6) | {"markevery": None}
        label = "score" if errors.shape[1] == 1 and labels is None else names[j]
        ax.plot(positions[order], column[order], **picture.subject(style, label))
    for alpha in np.unique(np.asarray(selected, dtype=float)):
        ax.axvline(alpha or zero, label=f"chosen: {alpha:.4g}", **theme.mark)
    if not scored.all():
        ax.plot([], [], linestyle="none", label=f"without a score: {np.sum(~scored)}")
    if not penalties.all():
        ax.axvspan(zero / 2, zero * 2, color=theme.mix(theme.ink, 0.1), label="penalty 0")
    _scale(ax, errors)
    return picture.finish()


def _scale(ax: Any, errors: Array) -> None:
    from matplotlib import ticker

    ax.set_xscale("log")
    decades = np.ptp(np.log10(errors)) if np.all(errors > 0) else 0.0
    if decades > 1:  # over less a logarithmic axis would show no labels
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0,) if decades > 2 else (1.0, 3.0)))
        every = ticker.LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf))
        ax.yaxis.set_major_formatter(every)
        ax.yaxis.set_minor_formatter(ticker.NullFormatter())  # many labels would overlap
    ax.set_xlabel("penalty alpha")
    ax.set_ylabel("score\n(less is better)")


def _path_of(model: Any, selected: Any) -> tuple[Any, Any, Any]:
    """Return the penalties that a fitted model tried, their scores, and the chosen ones."""
    parts = [getattr(model, name, None) for name in ("alphas_", "alpha_scores_", "alpha_")]
    if any(part is None for part in parts):
        raise TypeError(
            f"scores is missing, and alphas is a {type(model).__name__} that tried no penalties. "
            'Give a model fitted with alpha="auto" or a list of penalties, or arrays.'
        )
    return parts[0], parts[1], parts[2] if selected is None else selected
