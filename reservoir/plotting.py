"""Pictures: arrays in, matplotlib `Axes` out.

Nothing in the package imports this module, and matplotlib is imported inside its functions: without
it each raises an ImportError that says what to install. Every picture reads in black and white:
what differs, differs by line style, marker or grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["forecast", "memory_profile", "penalty_path", "spectrum", "states"]

MAX_DENSE_UNITS = 5000  # all eigenvalues of a larger matrix take minutes and gigabytes

_TRUTH: dict[str, Any] = {"color": "0.65", "linestyle": "-", "linewidth": 2.4}
_GUESS: dict[str, Any] = {"color": "firebrick", "linestyle": (0, (4, 1.5)), "linewidth": 1.4}
_MARK: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.0}
_LINE: dict[str, Any] = {"color": "tab:blue", "linestyle": "-", "linewidth": 1.2}


def _axes(ax: Axes | None) -> Axes:
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


def _columns(name: str, values: ArrayLike) -> Array:
    """Return a series as (n_samples, n_columns) floats."""
    table = np.asarray(values, dtype=float)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(
            f"{name} has shape {table.shape}; it must be (n_samples,) or (n_samples, n_columns), "
            "and not empty."
        )
    return table.reshape(len(table), -1)


def _times(index: ArrayLike | None, n_rows: int) -> Array:
    """Return the time of each row: `index`, or 0, 1, 2, ..."""
    if index is None:
        return np.arange(n_rows)
    times = np.asarray(index)
    if times.shape != (n_rows,):
        raise ValueError(f"index has shape {times.shape}; one time per row makes it ({n_rows},).")
    return times


def _names(labels: Sequence[str] | None, n_columns: int) -> list[str]:
    """Return one label per column."""
    if labels is None:
        return [f"output {j}" for j in range(n_columns)]
    if isinstance(labels, str) or len(labels) != n_columns:
        raise ValueError(f"labels={labels!r} must be a list of {n_columns} names, one per column.")
    return [str(label) for label in labels]


def _finish(ax: Axes) -> Axes:
    """Put the legend into a strip of its own above the curves, where it hides none of them."""
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + 0.18 * (top - bottom))
    ax.margins(x=0.01)
    ax.legend(loc="upper left", ncols=4, framealpha=1, edgecolor="none", fontsize="small")
    return ax


def _label_bands(ax: Axes, names: Sequence[str]) -> None:
    """Name the bands that stacked columns occupy, the first on top."""
    ax.set_yticks(-np.arange(len(names)), labels=list(names))
    ax.set_ylim(-len(names) + 0.4, 0.6)


def forecast(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    start: int | None = None,
    index: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a forecast against the truth, and mark where the forecast starts.

    The truth is a broad grey line, the forecast a thin broken one, the start a dotted vertical.
    Several outputs are stacked, each in a band of its own, scaled to the range of its truth.

    Parameters
    ----------
    y_true : array of shape (n_samples,) or (n_samples, n_outputs)
        The truth, with as many rows from before the forecast as are worth showing.
    y_pred : array of shape (n_steps,) or (n_steps, n_outputs)
        The forecast. It may go on after the truth has ended.
    start : int, default=None
        The row of `y_true` that `y_pred[0]` is a forecast of. By default the forecast ends where
        the truth ends.
    index : array of shape (max(n_samples, start + n_steps),), default=None
        The time of each row: numbers or dates. By default the rows' numbers.
    labels : list of n_outputs str, default=None
        The outputs' names; for one output the label of the vertical axis.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the numbers of columns differ, or `start`, `index` or `labels` do not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> y = np.sin(0.2 * np.arange(120))
    >>> ax = plotting.forecast(y, 0.9 * y[80:])
    >>> ax.get_legend_handles_labels()[1]
    ['truth', 'forecast', 'start of the forecast']
    """
    truth, guess = _columns("y_true", y_true), _columns("y_pred", y_pred)
    if truth.shape[1] != guess.shape[1]:
        raise ValueError(
            f"y_pred has {guess.shape[1]} columns and y_true {truth.shape[1]}; they must agree."
        )
    first = len(truth) - len(guess) if start is None else start
    if not 0 <= first <= len(truth):
        raise ValueError(
            f"start={start} puts the forecast's first row at row {first} of y_true; it must be in "
            f"[0, {len(truth)}]. Give start= the row of y_true that y_pred[0] is a forecast of."
        )
    times = _times(index, max(len(truth), first + len(guess)))
    names = _names(labels, truth.shape[1])
    ax = _axes(ax)
    if len(names) > 1:
        low, high = np.nanmin(truth, axis=0), np.nanmax(truth, axis=0)
        height = np.where(high > low, high - low, 1.0) / 0.8
        middle, offset = (low + high) / 2, -np.arange(len(names))
        truth, guess = (truth - middle) / height + offset, (guess - middle) / height + offset
        _label_bands(ax, names)
    elif labels is not None:
        ax.set_ylabel(names[0])
    ends = times[first : first + len(guess)]
    for j in range(len(names)):
        ax.plot(times[: len(truth)], truth[:, j], label="truth" if j == 0 else None, **_TRUTH)
        ax.plot(ends, guess[:, j], label="forecast" if j == 0 else None, **_GUESS)
    ax.axvline(ends[0], label="start of the forecast", **_MARK)
    ax.set_xlabel("time step" if index is None else "time")
    return _finish(ax)


def states(
    H: ArrayLike,
    *,
    units: int | Sequence[int] = 6,
    index: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the states of some units over time, one band for each, all to one scale.

    Parameters
    ----------
    H : array of shape (n_samples, n_units)
        States, one row per time step.
    units : int or list of int, default=6
        Which units, or how many of them (spread evenly over all).
    index : array of shape (n_samples,), default=None
        The time of each row: numbers or dates. By default the rows' numbers.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `H` is not two-dimensional, or a unit is not one of its columns.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> H = np.sin(np.outer(np.arange(50), [0.1, 0.2, 0.3]))
    >>> ax = plotting.states(H, units=[0, 2])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['unit 0', 'unit 2']
    """
    H = np.asarray(H, dtype=float)
    if H.ndim != 2 or H.size == 0:
        raise ValueError(f"H has shape {H.shape}; it must be (n_samples, n_units), and not empty.")
    n_units = H.shape[1]
    if isinstance(units, (int, np.integer)):
        count = min(check_count("units", units), n_units)
        chosen = np.linspace(0, n_units - 1, count).round().astype(int)
    else:
        chosen = np.asarray(units, dtype=int)
        if chosen.size == 0 or chosen.min() < 0 or chosen.max() >= n_units:
            raise ValueError(f"units={units!r} must name at least one unit in [0, {n_units - 1}].")
    times = _times(index, len(H))
    height = 2 * np.max(np.abs(H[:, chosen])) / 0.9 or 1.0
    ax = _axes(ax)
    for band, unit in enumerate(chosen):
        ax.axhline(-band, color="0.8", linewidth=0.6)
        ax.plot(times, H[:, unit] / height - band, **_LINE)
    _label_bands(ax, [f"unit {unit}" for unit in chosen])
    ax.set_xlabel("time step" if index is None else "time")
    ax.margins(x=0.01)
    return ax


def _eigenvalues(W: Any) -> Array:
    """Return the eigenvalues of a matrix or of what holds one; pass eigenvalues on."""
    W = getattr(W, "reservoir_", W)  # a fitted estimator
    W = getattr(W, "W", W)  # a Reservoir
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
            f"W has {values.shape[0]} units; all eigenvalues are computed up to "
            f"{MAX_DENSE_UNITS}. Pass the eigenvalues of interest, for instance those of "
            "scipy.sparse.linalg.eigs."
        )
    return np.linalg.eigvals(values.toarray() if sp.issparse(values) else values).astype(complex)


def spectrum(W: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues of the recurrent weights in the complex plane, with the unit circle.

    Parameters
    ----------
    W : (sparse) array of shape (n_units, n_units), or array of shape (n_eigenvalues,)
        A matrix of up to 5000 units (it is made dense), a `Reservoir` or fitted estimator that
        holds one, or the eigenvalues themselves.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

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
    ['unit circle', 'spectral radius 0.8', 'eigenvalues']
    """
    values = _eigenvalues(W)
    radius = np.max(np.abs(values))
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 361))
    ax = _axes(ax)
    ax.axhline(0, color="0.85", linewidth=0.6, zorder=0)
    ax.axvline(0, color="0.85", linewidth=0.6, zorder=0)
    ax.plot(circle.real, circle.imag, color="black", linewidth=1.0, label="unit circle")
    ring = radius * circle
    ax.plot(ring.real, ring.imag, **_GUESS, label=f"spectral radius {radius:.4g}")
    dots: dict[str, Any] = {"marker": "o", "s": 12, "facecolors": "none", "edgecolors": "tab:blue"}
    ax.scatter(values.real, values.imag, **dots, linewidths=0.8, label="eigenvalues")
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlabel("real part")
    ax.set_ylabel("imaginary part")
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize="small")
    return ax


def penalty_path(
    alphas: ArrayLike,
    scores: ArrayLike,
    *,
    selected: float | ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of each penalty that was tried, and mark the chosen one.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        Penalties, none negative, in any order. The axis is logarithmic; a penalty of 0 is drawn
        at its left end, on grey.
    scores : array of shape (n_alphas,) or (n_alphas, n_outputs)
        The score of each penalty, an error: less is better.
    selected : float or array of shape (n_outputs,), default=None
        The chosen penalty, or one for each output; by default the one of least mean score.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a penalty is negative, or there is not one score for each.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.penalty_path([1e-6, 1e-4, 1e-2], [0.3, 0.1, 0.2])
    >>> ax.get_legend_handles_labels()[1]
    ['score', 'chosen: 0.0001']
    """
    penalties, errors = np.ravel(np.asarray(alphas, dtype=float)), _columns("scores", scores)
    if len(penalties) != len(errors):
        raise ValueError(f"scores has {len(errors)} rows for {len(penalties)} alphas: one each.")
    if not np.all(penalties >= 0):
        raise ValueError(f"alphas has the penalty {np.min(penalties)}; give none below 0, no NaN.")
    if selected is None:
        selected = penalties[np.argmin(errors.mean(axis=1))]
    zero = np.min(penalties, where=penalties > 0, initial=1.0) / 10
    places = np.where(penalties > 0, penalties, zero)
    order = np.argsort(places)
    ax = _axes(ax)
    for j, column in enumerate(errors.T):
        style = _LINE | {"linestyle": ("-", "--", "-.", ":")[j % 4]}
        label = "score" if errors.shape[1] == 1 else f"output {j}"
        ax.plot(places[order], column[order], marker=".", label=label, **style)
    for alpha in np.unique(np.asarray(selected, dtype=float)):
        ax.axvline(alpha or zero, label=f"chosen: {alpha:.4g}", **_MARK)
    if not penalties.all():
        ax.axvspan(zero / 2, zero * 2, color="0.9", label="penalty 0")
    ax.set_xscale("log")
    if np.all(errors > 0) and errors.max() > 10 * errors.min():
        ax.set_yscale("log")  # below a decade a log axis has no round numbers to show
    ax.set_xlabel("penalty alpha")
    ax.set_ylabel("score (less is better)")
    ax.legend(frameon=False, fontsize="small")
    return ax


def memory_profile(profile: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw how much of the input of each lag the states remember; the area is the capacity.

    Parameters
    ----------
    profile : array of shape (n_lags,)
        Squared correlation, about 0 to 1, at lag 1, 2, 3, ... steps.
    ax : matplotlib Axes, default=None
        Where to draw; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `profile` is not one-dimensional, or empty.

    Examples
    --------
    >>> from reservoir import plotting
    >>> ax = plotting.memory_profile([1.0, 0.75, 0.25])
    >>> ax.get_legend_handles_labels()[1]
    ['memory capacity 2.00']
    """
    share = np.asarray(profile, dtype=float)
    if share.ndim != 1 or share.size == 0:
        raise ValueError(f"profile has shape {share.shape}; it must be (n_lags,), and not empty.")
    lags = np.arange(1, len(share) + 1)
    ax = _axes(ax)
    ax.fill_between(lags, share, color="0.85", label=f"memory capacity {share.sum():.2f}")
    ax.plot(lags, share, marker="o", markersize=2.5, **_LINE)
    ax.set_ylim(min(0.0, share.min()), 1.05)
    ax.set_xlabel("lag (steps)")
    ax.set_ylabel("squared correlation")
    ax.margins(x=0.01)
    ax.legend(frameon=False, fontsize="small")
    return ax
