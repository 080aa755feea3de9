"""From rows to what is learned of them: which way suits a series, and the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._workers import one_blas_thread, run_jobs
from reservoir.estimators.series._calendar import Calendar, rows_after_first
from reservoir.estimators.series._dynamical_fit import (
    DynamicalFit,
    Report,
    first_rows,
    fit_networks,
    origins_behind,
)
from reservoir.estimators.series._series_tables import Scale
from reservoir.estimators.series._statistical_fit import StatisticalFit
from reservoir.loops.bank_search import Choice
from reservoir.loops.network_plan import NetworkPlan
from reservoir.series_models.bands import Bands
from reservoir.series_models.ensemble import Learned, default_steps, learn
from reservoir.series_models.gaps import fill_gaps
from reservoir.series_models.rule import look_for_rule, mean_error
from reservoir.series_models.series_data import SeriesData
from reservoir.series_models.shared_models import learn_shared

_LONGEST_BANDS = 1000  # steps of the loops whose errors intervals are made of, at most


class Settings(NamedTuple):
    """Parameters of a fit, read.

    Attributes
    ----------
    plans : list of NetworkPlan or None
        A user's own networks.
    n_networks : int
    widths : float
        Of the range of the data, by which a forecast may leave it.
    horizon : int or None
    seed : int
    n_jobs : int or None
    report : callable
    """

    plans: list[NetworkPlan] | None
    n_networks: int
    widths: float
    horizon: int | None
    seed: int
    n_jobs: int | None
    report: Report


def fit_dynamics(
    levels: list[Array], known: list[Array], settings: Settings
) -> tuple[DynamicalFit, Choice]:
    """Find networks for trajectories; `known` is empty if there is nothing known."""
    return fit_networks(
        levels,
        known,
        widths=settings.widths,
        plans=settings.plans,
        n_members=settings.n_networks,
        n_steps=settings.horizon,
        seed=settings.seed,
        n_jobs=settings.n_jobs,
        report=settings.report,
    )


def series_data(
    values: Array, known: Array | None, seasons: tuple[float, ...], seed: int
) -> tuple[SeriesData, Scale | None]:
    """Return a series with its gaps filled, and the scale of what is known beforehand.

    Rows before the first value and after the last are left out, those after it not of what is
    known beforehand.
    """
    scale = None if known is None else Scale.of([known])
    standard = np.zeros((len(values), 0)) if known is None else scale.standardise(known)  # type: ignore[union-attr]
    seen = np.flatnonzero(np.isfinite(values).any(axis=1))
    begin, end = int(seen[0]), int(seen[-1]) + 1
    data = fill_gaps(values[begin:end], standard[begin:], seasons, first=begin, seed=seed)
    return data, scale


def fit_each(jobs: Sequence[Any], report: Report) -> list[tuple[StatisticalFit, Learned]]:
    """Find models for each series, that is for the arguments that `fit_statistics` takes."""
    results = run_jobs(fit_statistics, jobs, jobs[0][-1].n_jobs)
    return list(report(results, len(jobs), "models"))


def fit_shared(
    jobs: Sequence[Any], calendars: Sequence[Calendar], report: Report
) -> list[tuple[StatisticalFit, Learned]]:
    """Find models for all series together, whose seasons are counted from the earliest row."""
    settings = jobs[0][-1]
    series = [
        replace(data, first=data.first + late)
        for (data, *_), late in zip(jobs, rows_after_first(calendars), strict=True)
    ]
    learned = learn_shared(
        series,
        n_networks=settings.n_networks,
        n_steps=settings.horizon,
        widths=settings.widths,
        seed=settings.seed,
        n_jobs=settings.n_jobs,
        report=report,
    )
    return [
        (_fit_of(one, data, scale), one)
        for one, data, (_, scale, _) in zip(learned, series, jobs, strict=True)
    ]


@one_blas_thread()
def fit_statistics(
    data: SeriesData, scale: Scale | None, settings: Settings
) -> tuple[StatisticalFit, Learned]:
    """Find the models that forecast a series best."""
    learned = learn(
        data,
        n_networks=settings.n_networks,
        n_steps=settings.horizon,
        widths=settings.widths,
        seed=settings.seed,
    )
    return _fit_of(learned, data, scale), learned


def _fit_of(learned: Learned, data: SeriesData, scale: Scale | None) -> StatisticalFit:
    """Return what was learned, behind the last row of the series.

    Rows behind its last value, which `known` alone has, are filled with forecasts.
    """
    fit = StatisticalFit(learned.ensemble, data, scale, bands_of(learned, data))
    behind = data.known[data.n_rows :]
    empty = np.full((len(behind), data.values.shape[1]), np.nan)
    return fit.after(empty, behind)


def bands_of(learned: Learned, data: SeriesData) -> Bands:
    """Return what errors of the average say of those to come."""
    rolling = learned.rolling
    point = rolling.combined(learned.shares)
    return Bands.of(point, rolling.followed, rolling.origins, data.positive)


def chosen_way(data: SeriesData, settings: Settings) -> str:
    """Return "dynamics" or "series": whichever suits the data; the latter if values are missing."""
    if data.first or len(data.known) > data.n_rows:
        return "series"
    rule = look_for_rule(data, settings.seed)
    if rule.followed != "open":
        return "dynamics" if rule.followed == "yes" else "series"
    return "dynamics" if _networks_go_further(data, settings) else "series"


def _networks_go_further(data: SeriesData, settings: Settings) -> bool:
    """Whether networks forecast the end of the series better than the average of models does."""
    first = first_rows(data.n_rows)
    n_steps = settings.horizon or default_steps(data)
    origins = origins_behind(first, data.n_rows - n_steps, n_steps)
    values = data.values
    followed = values[np.add.outer(origins, np.arange(n_steps))]
    known = [data.known[:first]] if data.known.shape[1] else []
    fit, _ = fit_dynamics([values[:first]], known, settings)
    by_networks = fit.after(values, data.known[: data.n_rows]).from_places(origins, n_steps)
    learned = learn(
        data.until(first),
        n_networks=settings.n_networks,
        n_steps=settings.horizon,
        widths=settings.widths,
        seed=settings.seed,
    )
    by_models = learned.ensemble.forecast(data.with_room(data.n_rows + n_steps), origins, n_steps)
    return mean_error(by_networks, followed) < mean_error(by_models, followed)


def bands_of_networks(fit: DynamicalFit, settings: Settings) -> Bands:
    """Return what errors of networks in the last rows say of those to come.

    For them networks are fitted to the rows before. How far a forecast goes makes no difference:
    its first steps have the same intervals as a shorter one.
    """
    levels, known = fit.levels, fit.known
    first = first_rows(len(levels))
    n_steps = int(np.clip((len(levels) - first) // 2, 1, _LONGEST_BANDS))
    trajectories = [each for each, _ in fit.earlier] + [levels[:first]]
    exogenous = [each for _, each in fit.earlier] + [known[:first]]
    earlier, _ = fit_dynamics(trajectories, exogenous if known.shape[1] else [], settings)
    origins = origins_behind(first, len(levels), 1)
    said = earlier.after(levels, known).from_places(origins, n_steps)
    beyond = np.full((n_steps, levels.shape[1]), np.nan)
    followed = np.concatenate([levels, beyond])[np.add.outer(origins, np.arange(n_steps))]
    restore = fit.scale.restore
    unsigned = np.zeros(levels.shape[1], bool)
    return Bands.of(restore(said), restore(followed), origins, unsigned)


def seasons_for(season: Any, calendars: Sequence[Calendar]) -> tuple[float, ...]:
    """Return seasons, ascending: those that were given, 1 for none, or else of the calendar."""
    if season is None:
        return max(calendars, key=lambda calendar: calendar.n_rows).seasons()
    given: list[float] = np.atleast_1d(np.asarray(season, dtype=float)).tolist()
    return tuple(sorted({each for each in given if each > 1}))
