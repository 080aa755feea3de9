"""Parts of fitted panels: the models of some series, and of series that were fitted apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reservoir._tables.frames import is_collection
from reservoir._tables.reading import some
from reservoir._validation import is_same
from reservoir._validation.index import plain_name
from reservoir.estimators.series.checks import read_coverages
from reservoir.estimators.series.failures import Failures, Known, completed
from reservoir.estimators.series.fits import Fit
from reservoir.estimators.series.panel import Panel
from reservoir.series_models.ensemble import labels_of


class _Part(NamedTuple):
    """The models of one series, and how they were chosen."""

    fit: Fit
    seasons: tuple[float, ...]
    results: dict[str, Any]
    best: dict[str, Any]
    score: float


def some_of(forecaster: Any, ids: Any) -> Any:
    """Return an ESNForecaster of some of the series, as its method `select` does."""
    if forecaster._panel_kind is None:
        raise ValueError("panel=None: there is one system, whose series belong together.")
    if isinstance(ids, str) or not hasattr(ids, "__iter__"):
        raise TypeError(f"ids={ids!r} must be a list of ids, even for one series.")
    (every,), failed = completed(forecaster._failed, forecaster._panel), forecaster.failures_
    places = {each: i for i, each in enumerate(every.ids)}
    chosen = [plain_name(each) for each in ids]
    if not chosen:
        raise ValueError("ids is empty. Name at least one series.")
    for i, each in enumerate(chosen):
        if each not in places or each in chosen[:i]:
            fault = "named twice" if each in places else "not in the panel"
            raise ValueError(
                f"The series {each!r} is {fault}; the panel has {some(every.ids)}. Name each "
                "series once."
            )
    if all(each in failed for each in chosen):
        raise ValueError(
            f"None of these series could be fitted, for {chosen[0]!r} because: {failed[chosen[0]]}"
        )
    parts = dict(zip(forecaster._panel.ids, _parts_of(forecaster), strict=True))
    which, found = [places[each] for each in chosen], [parts.get(each) for each in chosen]
    return _with(forecaster, every.some(which), found, failed)


def drawn_of(
    forecaster: Any, series: Any, n_steps: int, exog: Any, coverage: Any
) -> tuple[Any, Any]:
    """Return the last rows of one series and its forecast, without ids, times in the index.

    `series` is its id; None if there is only one, or for all columns of a table.
    """
    ids = forecaster._panel.ids
    if series is not None:
        every = completed(forecaster._failed, forecaster._panel)[0]
        forecaster = some_of(forecaster, [series])
        if is_collection(exog):
            exog = Known.of(exog, every, None).some([plain_name(series)])
    elif len(ids) > 1 and forecaster._panel.kind != "columns":
        raise ValueError(
            f"y_true was fitted to {len(ids)} series, such as {ids[0]!r}, but one forecast is "
            "drawn. Name it by series."
        )
    coverages = read_coverages(coverage)
    panel, points, bands = forecaster._computed(n_steps, exog, None, coverages)
    alone = replace(panel, kind="one") if len(panel) == 1 else panel
    past = alone.wrap_past([fit.rows for fit in forecaster._fits])
    return past, alone.wrap_all(points, bands, coverages)


def joined(models: Sequence[Any], cls: Any) -> Any:
    """Return one forecaster of the series of several of a class, as its method `concat` does."""
    if not models:
        raise ValueError("models is empty. Give at least one fitted ESNForecaster.")
    for model in models:
        _check_joins(models[0], model, cls)
    panels = [completed(model._failed, model._panel)[0] for model in models]
    panel = panels[0]
    for other in panels[1:]:
        panel = panel.joined(other)
    parts: list[_Part | None] = []
    messages: list[str | None] = []
    for model, every in zip(models, panels, strict=True):
        own = dict(zip(model._panel.ids, _parts_of(model), strict=True))
        parts += [own.get(each) for each in every.ids]
        messages += [model.failures_.get(each) for each in every.ids]
    # the items of lists have other ids in the joined panel
    return _with(models[0], panel, parts, dict(zip(panel.ids, messages, strict=True)))


def _check_joins(first: Any, model: Any, cls: Any) -> None:
    """Check that a model can be joined with the first of them."""
    if not isinstance(model, cls):
        raise TypeError(f"models contains a {type(model).__name__}, not an ESNForecaster.")
    check_is_fitted(model)
    if model._panel_kind != "each":
        raise ValueError(
            f"A model was fitted with panel={model.panel!r}, but only models of separate series "
            'can be joined. Fit all with panel="each".'
        )
    for name, value in first.get_params().items():
        if name not in ("n_jobs", "verbose") and not is_same(getattr(model, name), value):
            raise ValueError(
                f"The models have {name}={value!r} and {name}={getattr(model, name)!r}. Fit all "
                "with the same parameters."
            )
    first._table.check_joins(model._table)


def _parts_of(forecaster: Any) -> list[_Part]:
    """Return the models of each series of a panel that was fitted."""
    n, seasons, table = len(forecaster._fits), forecaster.seasons_, forecaster.search_results_
    # files of earlier versions have one score for all series, and one tuple of seasons
    scores = getattr(forecaster, "_scores", ()) or (forecaster.best_score_,) * n
    each = list(seasons.values()) if isinstance(seasons, dict) else [seasons] * n
    tables, best = [table] * n, [forecaster.best_params_] * n
    if forecaster._panel_kind == "each":
        begins = np.flatnonzero(np.append(True, table["series"][1:] != table["series"][:-1]))
        spans = [slice(*pair) for pair in pairwise([*begins.tolist(), len(table["series"])])]
        tables = [{key: column[span] for key, column in table.items()} for span in spans]
        names = {key: np.atleast_1d(value) for key, value in best[0].items()}
        best = [{key: str(column[i]) for key, column in names.items()} for i in range(n)]
    return list(map(_Part, forecaster._fits, each, tables, best, scores))


def _with(
    forecaster: Any, every: Panel, given: Sequence[_Part | None], messages: Mapping[Any, Any]
) -> Any:
    """Return a copy with the series of a panel and their models, None for those that failed."""
    made, panel, made_failures = copy(forecaster), every, None
    failed = [each for each, part in zip(every.ids, given, strict=True) if part is None]
    if failed:
        made_failures = Failures(every, {each: messages[each] for each in failed})
        panel = every.some(made_failures.fitted)
    parts = [part for part in given if part is not None]
    made._panel, made._fits, made._failures = panel, [part.fit for part in parts], made_failures
    made._scores = tuple(part.score for part in parts)
    made.best_score_ = float(np.mean(made._scores))
    if forecaster._panel_kind == "each":
        made.seasons_ = dict(zip(panel.ids, (part.seasons for part in parts), strict=True))
        results = {
            key: np.concatenate([part.results[key] for part in parts])
            for key in forecaster.search_results_
        }
        lengths = [len(part.results["model"]) for part in parts]
        results["series"] = np.repeat(np.array(labels_of(panel.ids)), lengths)
        made.search_results_ = results
        best = {key: [part.best[key] for part in parts] for key in parts[0].best}
        made.best_params_ = best if len(parts) > 1 else parts[0].best
    every.describe_columns(made)
    return made
