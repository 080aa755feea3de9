"""The scores of a closed-loop search over networks and penalties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_count
from reservoir.plotting._axes import legend_outside, new_axes
from reservoir.plotting._styles import DASHES, MARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OTHERS: dict[str, Any] = {"color": "0.75", "linestyle": "-", "linewidth": 0.8, "zorder": 1}
_COLOURS = ("black", "tab:blue", "firebrick", "tab:green", "0.45")
_SHORT = {
    "n_units": "units",
    "spectral_radius": "radius",
    "input_scaling": "input",
    "bias_scaling": "bias",
    "leak_rate": "leak",
    "n_lags": "lags",
}
_NONE_AT_ONE = ("leak_rate", "n_lags", "skip")
_ABOUT_FORECASTER = ("alpha", "score", "score_left_out", "rank", "observed", "noise")


class _Tried(NamedTuple):
    """Candidates, one row each: the parameters of the network, the penalty, the score, the rank."""

    networks: list[dict[str, Any]]
    alphas: Array
    scores: Array
    ranks: Array


def closed_loop_search(
    results: Mapping[str, Any], *, n_named: int = 5, ax: Axes | None = None
) -> Axes:
    """Draw the scores of a closed-loop search over the penalty, with one line per network.

    Candidates that differ only in the penalty are one network. The best networks are labelled with
    the parameters in which they differ, and the others are grey; a circle marks the best candidate.

    Parameters
    ----------
    results : dict of arrays
        `search_results_` of `reservoir.ESNForecaster`, or `cv_results_` of
        `reservoir.model_selection.ClosedLoopSearchCV` with `alpha` among the candidates' parameters
        (also inside a pipeline). Greater scores are better. Candidates without a score are omitted,
        and so are analogues, which have no penalty: if one was chosen, there is no circle.
    n_named : int, default=5
        Number of networks that are named in the legend, the best ones.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default a new figure of 7 x 3 inches.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `results` is neither of these dicts, a penalty is not positive, or no candidate has a
        score.

    Examples
    --------
    >>> from reservoir import ESNForecaster, plotting
    >>> from reservoir.datasets import lorenz
    >>> forecaster = ESNForecaster(random_state=0).fit(lorenz(300, dt=0.05))
    >>> ax = plotting.closed_loop_search(forecaster.search_results_)
    >>> len(ax.get_lines())  # ten networks, and the circle
    11
    """
    named = check_count("n_named", n_named)
    tried = _read(results)
    # the rows of each network; in order of rank, so the network of the best candidate is first
    keys = [tuple(map(str, network.values())) for network in tried.networks]
    lines: dict[tuple[str, ...], list[int]] = {}
    for row in np.argsort(tried.ranks, kind="stable"):
        lines.setdefault(keys[row], []).append(int(row))
    names = _names([tried.networks[rows[0]] for rows in lines.values()][:named])
    ax = new_axes(ax)
    for k, rows in enumerate(lines.values()):
        order = sorted(rows, key=lambda row: tried.alphas[row])
        style = _OTHERS
        if k < named:
            style = {"color": _COLOURS[k % 5], "linestyle": DASHES[k % 4], "zorder": 3}
            style |= {"linewidth": 1.6 if k == 0 else 1.2, "marker": ".", "label": names[k]}
        elif k == named:
            style = style | {"label": "others"}
        ax.plot(tried.alphas[order], tried.scores[order], **style)
    best = next(iter(lines.values()))[0]
    if tried.ranks[best] == 1:
        _mark(ax, tried.alphas[best], tried.scores[best])
    ax.set_xscale("log")
    ax.locator_params(axis="x", numticks=6)  # exponents of two digits are wide
    ax.set_xlabel("penalty alpha" + (" per row" if "score_left_out" in results else ""))
    ax.set_ylabel("score (greater is better)")
    return legend_outside(ax)


def _mark(ax: Axes, alpha: float, score: float) -> None:
    ring: dict[str, Any] = {
        "marker": "o",
        "markersize": 10,
        "markerfacecolor": "none",
        "linestyle": "none",
    }
    ax.plot([alpha], [score], color=MARK["color"], label=f"chosen: {alpha:.3g}", zorder=4, **ring)


def _read(results: Mapping[str, Any]) -> _Tried:
    """Return the candidates that have a score."""
    if not isinstance(results, Mapping):
        raise TypeError(
            f"results is a {type(results).__name__}; give the dict search_results_ of an "
            "ESNForecaster, or cv_results_ of a ClosedLoopSearchCV."
        )
    if {"alpha", "score", "rank"} <= set(results):
        tried = _of_forecaster(results)
    elif {"params", "mean_test_score", "rank_test_score"} <= set(results):
        tried = _of_search(results)
    else:
        raise ValueError(
            f"results has the keys {', '.join(map(str, results)) or 'none'}; required are the keys "
            "of ESNForecaster.search_results_ (alpha, score, rank) or of "
            "ClosedLoopSearchCV.cv_results_ (params, mean_test_score, rank_test_score)."
        )
    if not np.all(tried.alphas > 0):
        raise ValueError(
            f"results has the penalty alpha={np.min(tried.alphas)}, but the axis is logarithmic. "
            "Omit candidates whose penalty is not positive."
        )
    rows = np.flatnonzero(np.isfinite(tried.scores))
    if not len(rows):
        raise ValueError("No candidate in results has a score: there is nothing to draw.")
    networks = [tried.networks[row] for row in rows]
    return _Tried(networks, tried.alphas[rows], tried.scores[rows], tried.ranks[rows])


def _of_forecaster(results: Mapping[str, Any]) -> _Tried:
    """Read `search_results_`; like the ranks, the scores include loops in held-out blocks."""
    score = np.asarray(results["score"], dtype=float)
    left_out = np.asarray(results.get("score_left_out", np.full_like(score, np.nan)), dtype=float)
    both = (score + left_out) / 2
    parts = [name for name in results if name not in _ABOUT_FORECASTER]
    networks = [_known({name: results[name][row] for name in parts}) for row in range(len(score))]
    alphas = np.asarray(results["alpha"], dtype=float)
    total = np.where(np.isnan(score), left_out, np.where(np.isnan(left_out), score, both))
    rows = np.flatnonzero(~np.isnan(alphas))  # analogues have no penalty
    ranks = np.asarray(results["rank"])[rows]
    return _Tried([networks[row] for row in rows], alphas[rows], total[rows], ranks)


def _known(network: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that a network has; others are NaN or None in its row of the table."""
    return {name: x for name, x in network.items() if x is not None and x == x}


def _of_search(results: Mapping[str, Any]) -> _Tried:
    """Read `cv_results_`; parameters inside a pipeline keep their names."""
    params = results["params"]
    found = {name for one in params for name in one if name.split("__")[-1] == "alpha"}
    if len(found) != 1 or not all(found <= set(one) for one in params):
        raise ValueError(
            "The penalty is the horizontal axis, so each dict in params needs one and the same "
            f"alpha; found {', '.join(sorted(found)) or 'none'}."
        )
    (penalty,) = found
    for one in params:
        if isinstance(one[penalty], str) or np.ndim(one[penalty]):
            raise ValueError(
                f"results has {penalty}={one[penalty]!r}, from which each network selects its own "
                "penalty, so it has no position on the axis. Search over numbers."
            )
    return _Tried(
        [{name: value for name, value in one.items() if name != penalty} for one in params],
        np.array([one[penalty] for one in params], dtype=float),
        np.asarray(results["mean_test_score"], dtype=float),
        np.asarray(results["rank_test_score"]),
    )


def _names(networks: list[dict[str, Any]]) -> list[str]:
    """Name each network by the parameters in which the networks differ.

    Values that indicate an absent part are omitted: a leak rate of 1 (no leak), or one lag (only
    the row itself).
    """
    every = list(dict.fromkeys(name for network in networks for name in network))
    parts = [n for n in every if len({str(network.get(n)) for network in networks}) > 1]
    names = []
    for network in networks:
        shown = [
            f"{_SHORT.get(name.split('__')[-1], name.split('__')[-1])} {_short(network[name])}"
            for name in parts
            if name in network and not (name.split("__")[-1] in _NONE_AT_ONE and network[name] == 1)
        ]
        names.append(", ".join(shown) or "network")
    return names


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)
