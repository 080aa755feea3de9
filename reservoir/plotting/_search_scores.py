"""The scores of a closed-loop search over networks and penalties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_count
from reservoir.plotting._picture import Picture, inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS, _BAR_HEIGHT = 20, 0.18  # the height in inches, so that each bar has a name
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
    results: Any,
    *,
    n_named: int = 5,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what a search tried: scores over the penalty, or the shares in a forecaster's average.

    In a closed-loop search, candidates that differ only in the penalty are one network, drawn as
    one line. The best networks are labelled with the parameters in which they differ, and the
    others are grey; a circle marks the best candidate. The search of a forecaster of "series" gives
    each model a share in the average, drawn as a bar.

    Parameters
    ----------
    results : dict of arrays, or fitted model
        `search_results_` of `reservoir.ESNForecaster`, or `cv_results_` of
        `reservoir.model_selection.ClosedLoopSearchCV`, or one of these models. A search needs
        `alpha` among the candidates' parameters (also inside a pipeline). Greater scores are
        better. Candidates without a score are omitted, and so are analogues, which have no penalty:
        if one was chosen, there is no circle.
    n_named : int, default=5
        Number of networks that are named in the legend, the best ones.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the named networks, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

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
    >>> forecaster = ESNForecaster(random_state=0).fit(lorenz(200, dt=0.05))
    >>> ax = plotting.closed_loop_search(forecaster.search_results_)
    >>> len(ax.get_lines())  # ten networks, and the circle
    11
    """
    named = check_count("n_named", n_named)
    results = getattr(results, "search_results_", getattr(results, "cv_results_", results))
    if isinstance(results, Mapping) and {"model", "share"} <= set(results):
        return _draw_shares(Picture(ax, legend, line_kw), results)
    tried = _read(results)
    # the rows of each network; in order of rank, so the network of the best candidate is first
    keys = [tuple(map(str, network.values())) for network in tried.networks]
    lines: dict[tuple[str, ...], list[int]] = {}
    for row in np.argsort(tried.ranks, kind="stable"):
        lines.setdefault(keys[row], []).append(int(row))
    names = _names([tried.networks[rows[0]] for rows in lines.values()][:named])
    picture = Picture(ax, legend, line_kw)
    for k, rows in enumerate(lines.values()):
        order = sorted(rows, key=lambda row: tried.alphas[row])
        style = _style(picture, k, names)
        picture.line(tried.alphas[order], tried.scores[order], **style)
    best = next(iter(lines.values()))[0]
    if tried.ranks[best] == 1:
        _mark(picture, tried.alphas[best], tried.scores[best])
    picture.ax.set_xscale("log")
    picture.ax.locator_params(axis="x", numticks=6)  # exponents of two digits are wide
    picture.ax.set_xlabel("penalty alpha" + (" per row" if "score_left_out" in results else ""))
    picture.ax.set_ylabel("score\n(greater is better)")
    return picture.finish()


def _style(picture: Picture, k: int, names: list[str]) -> dict[str, Any]:
    """Return the style of the k-th best network."""
    n_named = len(names)
    if k < n_named:
        style = picture.theme.curve(k, 1.6 if k == 0 else 1.2)
        return picture.subject(style | {"marker": ".", "markevery": None, "zorder": 3}, names[k])
    label = "others" if k == n_named else "_others"
    width = picture.theme.width(0.8)
    return {"color": picture.theme.muted, "linewidth": width, "zorder": 1, "label": label}


def _mark(picture: Picture, alpha: float, score: float) -> None:
    ring = picture.theme.marker("o", 10) | {"markerfacecolor": "none", "linestyle": "none"}
    ring |= {"color": picture.theme.ink, "label": f"chosen: {alpha:.3g}", "zorder": 4}
    picture.ax.plot([alpha], [score], **ring)


def _draw_shares(picture: Picture, results: Mapping[str, Any]) -> Axes:
    """Draw the share of each model in the average of forecasts, the mean over all series."""
    names = [
        str(model) if scale in (None, "plain") else f"{model} ({scale})"
        for model, scale in zip(results["model"], results["scale"], strict=True)
    ]
    shares = np.asarray(results["share"], dtype=float)
    n_series = len(np.unique(np.asarray(results["series"]).astype(str)))
    total = dict.fromkeys(names, 0.0)
    for name, share in zip(names, shares, strict=True):
        total[name] += float(share) / n_series
    ranked = sorted(total.items(), key=lambda item: -item[1])
    most = min(_MOST_BARS, max(3, int(inches(picture.ax)[1] / _BAR_HEIGHT)))
    if len(ranked) > most:
        rest = sum(share for _, share in ranked[most - 1 :])
        ranked = [*ranked[: most - 1], (f"{len(ranked) - most + 1} others", rest)]
    style = {"color": picture.theme.colour(0), "edgecolor": picture.theme.ink, "linewidth": 0.6}
    rows = -np.arange(len(ranked))
    picture.ax.barh(rows, [100 * share for _, share in ranked], **style)
    picture.label_bands([name for name, _ in ranked])
    picture.ax.set_xlabel("share in the average, %")
    return picture.finish()


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
