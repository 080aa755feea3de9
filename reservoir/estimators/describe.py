"""Descriptions of fitted estimators in notebooks, and the summary of ESNForecaster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir.activations import get_activation
from reservoir.dynamics import Reservoir
from reservoir.series_models.series_data import least_rows

_MODELS = 8  # largest number of models that are listed for each series
_SERIES = 5  # largest number of series of a panel that are listed


def summary_of(forecaster: Any) -> str:
    """Return the summary of a fitted ESNForecaster."""
    lines = [_head(forecaster)]
    if forecaster.kind_ == "dynamics":
        return "\n".join(lines + _networks(forecaster))
    return "\n".join(lines + _models(forecaster))


def html_of(forecaster: Any) -> str:
    """Return the summary as a block of HTML."""
    return f"<pre>{escape(summary_of(forecaster))}</pre>"


def _head(forecaster: Any) -> str:
    panel = forecaster._panel
    rows = ", ".join(str(calendar.n_rows) for calendar in panel.calendars[:_SERIES])
    more = ", ..." if len(panel.calendars) > _SERIES else ""
    what = "1 series" if len(panel) == 1 else f"{len(panel)} series"
    columns = panel.containers[0].n_outputs
    joint = f" of {columns} variables" if columns > 1 else ""
    return f"ESNForecaster: {what}{joint}, rows: {rows}{more}"


def _networks(forecaster: Any) -> list[str]:
    results = forecaster.search_results_
    seen = "each row determines the next" if results["observed"] == "all" else "it uses past rows"
    params = ", ".join(f"{key}={value}" for key, value in forecaster.best_params_.items())
    return [
        f'kind_ = "dynamics": the rows follow a rule that networks learn; {seen}',
        f"one-step error: {float(results['noise']):.2g} standard deviations",
        f"tried: {len(results['score'])} combinations of network and penalty, in closed loop",
        f"chosen: {params}",
        *["forecast: the mean, since no network is better"] * forecaster._fits[0].is_mean,
        *_odd_values(forecaster),
        f"best_score_ = {forecaster.best_score_:.3f}: "
        f"closed-loop errors of 10^-{forecaster.best_score_:.2f} standard deviations on average",
    ]


def _models(forecaster: Any) -> list[str]:
    seasons = ", ".join(f"{season:g}" for season in _seasons(forecaster)) or "none"
    lines = [
        'kind_ = "series": an average of models, compared by forecasts of held-out rows',
        f"rows per season: {seasons}",
        *_unused_seasons(forecaster),
        *_odd_values(forecaster),
        *_failures(forecaster),
        f"mean absolute error of the average: {-forecaster.best_score_:.3f} times the error of the "
        "best naive forecast",
    ]
    results = forecaster.search_results_
    names = results["series"].tolist()
    ids = list(dict.fromkeys(names))
    for each in ids[:_SERIES]:
        if len(ids) > 1:
            lines.append(f"series {each!r}")
        lines += _table(results, np.flatnonzero([name == each for name in names]))
    return lines


def _odd_values(forecaster: Any) -> list[str]:
    """Return a line for each of the first odd values that count as missing."""
    panel, lines = forecaster._panel, []
    for i, fit in enumerate(forecaster._fits):
        odd, of = fit.ending.odd, f" of series {panel.ids[i]!r}" if len(panel) > 1 else ""
        if odd is not None:
            places = zip(odd.rows.tolist(), odd.columns.tolist(), strict=True)
            for (row, column), value in zip(places, odd.values.tolist(), strict=True):
                where = f"row {panel.name_of_row(i, row)}{of}"
                where += f", column {column}" if len(odd.shift) > 1 else ""
                lines.append(f"counts as missing: {value:.6g} in {where}")
    return lines[:_SERIES]


def _failures(forecaster: Any) -> list[str]:
    """Return a line for each of the first series that could not be fitted."""
    found = list(forecaster.failures_.items())[:_SERIES]
    return [f"not fitted: series {each!r}. {message}" for each, message in found]


def _seasons(forecaster: Any) -> tuple[float, ...]:
    """Return the seasons of a forecaster, in a panel those of any series."""
    found = forecaster.seasons_
    return tuple(sorted({*sum(found.values(), ())})) if isinstance(found, dict) else found


def _unused_seasons(forecaster: Any) -> list[str]:
    """Return a line for each season for which the series was too short."""
    tried, lines = set(forecaster.search_results_["model"].tolist()), []
    if forecaster.season is None:
        longest = max(forecaster._panel.calendars, key=lambda calendar: calendar.n_rows)
        for season in longest.implied_seasons:
            if season not in _seasons(forecaster):
                needs = f"which needs at least {least_rows(season)} rows"
                lines.append(f"not used: season of {season:g} rows, {needs}")
    for season in _seasons(forecaster):
        if round(season) > 1 and f"naive, period {round(season)}" not in tried:
            needs = f"which needs at least {least_rows(season)} rows in Theta and naive forecasts"
            lines.append(f"used in calendar terms only: season of {season:g} rows, {needs}")
    return lines


def _table(results: dict[str, Any], rows: Any) -> list[str]:
    lines = [f"  {'model':34s}{'scale':7s}{'error':>8s}{'share':>8s}"]
    for i in rows[:_MODELS]:
        error = results["error"][i]
        lines.append(
            f"  {results['model'][i]:34s}{results['scale'][i]:7s}{error:8.3f}"
            f"{100 * results['share'][i]:7.0f}%"
        )
    return lines


_LISTED = 4  # of more numbers only the range is shown
_CELL = "text-align: left; vertical-align: top; padding: 0.15em 1em 0.15em 0"
_RULES = {
    "gcv": "generalised cross-validation",
    "reml": "restricted maximum likelihood",
    "reml_ar1": "restricted maximum likelihood with AR(1) errors",
    "halves": "halves of the rows, each held out once",
    "blocked": "held-out blocks of time",
    "holdout": "the last rows, held out",
    "forecast": "closed loops in the last rows",
}


class Described:
    """Base of estimators that show their fitted parts in a table below their HTML diagram."""

    def _description(self) -> Mapping[str, str]:
        """Return a description of each part of the fitted estimator, by the part's name."""
        return {}

    def _repr_html_inner(self) -> str:
        return described_html(self, lambda: table_of(self._description()))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = BaseEstimator._repr_mimebundle_(self, **kwargs)
        if "text/html" in bundle:  # unless scikit-learn's `display` is "text"
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def described_html(estimator: Any, details: Callable[[], str]) -> str:
    """Return scikit-learn's diagram of an estimator, with `details` below if it is fitted."""
    diagram = str(estimator_html_repr(estimator))
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return diagram
    return diagram + details()


def table_of(description: Mapping[str, str]) -> str:
    """Return a table of two columns in HTML: parts and their descriptions."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(part)}</th>'
        f'<td style="{_CELL}">{escape(words)}</td></tr>'
        for part, words in description.items()
    )
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def description_of_reservoir(
    estimator: Any, reservoir: Reservoir, certificate: Any
) -> dict[str, str]:
    """Return the description of a reservoir and of its certificate."""
    return {
        "Reservoir": _words_for_reservoir(reservoir, estimator.topology, estimator.spectral_radius),
        "Certificate": _words_for_certificate(certificate),
    }


def no_certificate(estimator: Any) -> str:
    """Return the message of an AttributeError for `certificate_`."""
    return (
        f'{type(estimator).__name__} has no certificate_: fit makes one with bias="stable". '
        "reservoir.stability.certify examines a fitted network as it is."
    )


def _words_for_reservoir(reservoir: Reservoir, topology: Any, radius: float | None) -> str:
    connections = reservoir.W.nnz if sp.issparse(reservoir.W) else reservoir.W.size
    leaks = np.unique(reservoir.leak_rate)
    several = f"leak rates {leaks[0]:g} to {leaks[-1]:g}"
    words = [
        f"{reservoir.n_units} {get_activation(reservoir.activation).name} units",
        *([topology] if isinstance(topology, str) else []),
        f"{connections} connections",
        "W as given" if radius is None else f"spectral radius {radius:g}",
        f"leak rate {leaks[0]:g}" if len(leaks) == 1 else several,
    ]
    return ", ".join(words)


def _words_for_certificate(certificate: Any) -> str:
    if certificate is None:
        return 'none; bias="stable" requests one'
    return (
        "proved to forget its initial state, for every input in the certified range: in the long "
        f"run two states converge by a factor of {certificate.rate:.4g} per step "
        f"({certificate.theorem})"
    )


def words_for_penalty(alpha: Any, path: Any, how: str) -> str:
    """Return a description of the penalty of a ridge, and of its choice.

    `path` are the candidates, or None if the user set one penalty; `how` is the criterion.
    """
    used = f"ridge, penalty {listed(alpha)}"
    if path is None:
        return used + ", given"
    tried = np.unique(np.asarray(path, dtype=float))
    text = f"{used}, the best of {tried.size} from {tried[0]:.3g} to {tried[-1]:.3g} by {how}"
    ends = np.isin(alpha, tried[[0, -1]]).any() and tried.size > 1
    return text + ". It is at an end of this range: a better one may lie outside" if ends else text


def description_of_readout(model: Any) -> dict[str, str]:
    """Return the description of an estimator's readout and of its errors."""
    if not hasattr(model, "coef_"):
        own = getattr(model, "readout_", None)
        if own is None:  # a readout of another kind is described by its name
            return {"Readout": type(model._model.readout).__name__}
        return {"Readout": f"{type(own).__name__}, a scikit-learn estimator"}
    rule = getattr(model, "alpha_selection_", model.alpha_selection)
    rule = _RULES.get(rule, rule)
    path = getattr(model, "alphas_", None)
    found = {"Readout": words_for_penalty(model.alpha_, path, rule)}
    error = getattr(model, "training_error_", None)
    if error is not None:
        of = " of scores with targets 1 and -1" if is_classifier(model) else ""
        found["Training error"] = f"{listed(error)} (root mean square{of}), {_rows_of(model)}"
    scores = getattr(model, "alpha_scores_", None)
    if scores is not None:
        best = np.min(scores, axis=0)
        if getattr(model, "alpha_selection_", None) == "forecast":
            found["Expected error"] = f"{best[0]:.3g} standard deviations of y, by {rule}"
        else:
            found["Expected error"] = f"{listed(np.sqrt(best))} on other rows like these, by {rule}"
    return found


def _rows_of(model: Any) -> str:
    rows, left_out = model._model.readout.n_rows, int(np.sum(model.washout_))
    left_out *= 1 if model._model.source.causal else 2
    return f"over {rows} rows, without {left_out} rows of washout"


def listed(values: Any) -> str:
    """Return a text that lists a few numbers, or states the range of many."""
    numbers: Array = np.atleast_1d(np.asarray(values, dtype=float))
    if np.unique(numbers).size == 1:
        return f"{numbers[0]:.3g}"
    if numbers.size <= _LISTED:
        return ", ".join(f"{number:.3g}" for number in numbers)
    return f"{numbers.min():.3g} to {numbers.max():.3g} ({numbers.size} outputs)"
