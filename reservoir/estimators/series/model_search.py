"""The search of ESNForecaster for models of series or networks, whichever suit the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from reservoir._typing import Array, Report
from reservoir._validation import caller_level, check_count, check_number
from reservoir._validation.plain import as_finite
from reservoir._workers import one_blas_thread, run_jobs
from reservoir.dynamics.augment import check_augment
from reservoir.estimators.reporting import not_reported
from reservoir.estimators.series.calendar import Calendar, rows_after_first
from reservoir.estimators.series.checks import (
    check_enough_values,
    check_long_enough,
    check_varies,
    warn_of_constants,
    warn_of_numbers,
)
from reservoir.estimators.series.fits import (
    Fit,
    Scale,
    Settings,
    StatisticalFit,
    first_rows,
    fit_dynamics,
    fit_networks,
    origins_after,
    reach_of,
)
from reservoir.estimators.series.panel import Panel, PanelRows
from reservoir.loops.loop_design import NetworkPlan
from reservoir.series_models.bands import Bands
from reservoir.series_models.candidates import costs_of
from reservoir.series_models.ensemble import Learned, best_of, mean_if_no_worse, table_of
from reservoir.series_models.gaps import fill_gaps
from reservoir.series_models.mean_of_rows import may_be_independent
from reservoir.series_models.outliers import LastRows
from reservoir.series_models.rule import confirms, horizons_for, look_for_rule
from reservoir.series_models.series_data import (
    SeriesData,
    possible_values,
    seen_seasons,
    spread_of,
    untested_season,
)
from reservoir.series_models.shared_models import learn_shared

_WORTH = 0.1  # least difference by which a network's score must exceed the score of the mean
_DEFAULTS = {"spectral_radius": 0.05, "input_scaling": 0.3}  # of networks that the user defines
_PLAN = tuple(each.name for each in fields(NetworkPlan))
_NONE_BETTER = (
    "Neither networks in closed loop nor models of series forecast these data better than their "
    "mean."
)
_IS_MEAN = "The forecast is the mean. Give more rows, or inputs that are known in advance (exog)."
_OF_USERS = "The forecast is unreliable beyond its first steps."
_FEWEST = 40  # rows; in fewer, noise seems to repeat
_PERIODS = 5  # least number of periods
_MOST = 20_000  # rows that are looked at, the last ones
_LONGEST = 400  # rows of the longest period
_EXPLAINED = 0.7  # least share of the variance of deviations that the other periods explain
_NEARLY = 0.02  # a shorter period is preferred to one that explains so much more
_GOOD = 0.1  # error, in standard deviations, that needs no season
_SEASON_PAYS = 0.75  # largest error with the season, relative to the error without it


@dataclass(frozen=True)
class Found:
    """Result of a search: the fitted models and the attributes of ESNForecaster.

    Series whose fit failed are in `errors`, by their numbers, and left out of the other fields.
    """

    kind: str  # "dynamics" or "series"
    seasons: list[tuple[float, ...]]  # of each series, rows per period, ascending
    fits: list[Fit]
    results: dict[str, Any]
    best_params: dict[str, Any]
    best_score: float
    scores: tuple[float, ...] = ()  # of each series, whose mean is `best_score`; none for networks
    no_better: str = ""  # warning that the forecast is no better than the mean
    errors: Mapping[int, Exception] = field(default_factory=dict)

    def seasons_of(self, panel: Panel, separate: bool) -> Any:
        """Return the seasons, for separate series those of each by its id."""
        return dict(zip(panel.ids, self.seasons, strict=True)) if separate else self.seasons[0]


@dataclass(frozen=True)
class ModelSearch:
    """The search for models of one or several series.

    It looks for networks ("dynamics"), models of series ("series"), or whichever suit the data
    ("auto"). `season` is as in ESNForecaster.
    """

    way: str
    season: Any
    shared: bool  # whether models learn from all series together
    settings: Settings
    skips: bool = False  # whether separate series whose fit fails are left out, without an error

    def run(self, rows: PanelRows) -> Found:
        """Find and fit models for the series of a panel, or for trajectories of one system."""
        if rows.are_trajectories and self.way == "series":
            raise ValueError(
                "y contains several tables, which are taken as trajectories of one system if "
                'panel=None, but models of series (search="series") forecast one series. Set '
                'panel="each".'
            )
        if rows.are_trajectories:
            if self.season is not None and np.max(self.season) > 1:
                warnings.warn(
                    f"season={self.season} has no effect: y contains several tables, which are "
                    "taken as trajectories of one system if panel=None, and the last is "
                    'continued. To forecast each with its season, set panel="each".',
                    UserWarning,
                    stacklevel=caller_level(),
                )
            warn_of_numbers(rows.panel)
            return _told(self._dynamics(rows))
        panel = rows.panel
        check_enough_values(rows.values, panel)
        warn_of_numbers(panel)
        longest = max(panel.calendars, key=lambda calendar: calendar.n_rows)
        seasons = [
            seasons_for(self.season, longest if self.shared else each) for each in panel.calendars
        ]
        # prepared before the kind is chosen, since `chosen_way` needs data without gaps
        jobs = [self._job_of(rows, i, each) for i, each in enumerate(seasons)]
        way = self.way
        if way == "auto" and panel.kind == "one":
            data, _, ending, _ = jobs[0]
            way = chosen_way(data, ending, self.settings)
        if way != "dynamics":
            return self._series(panel, jobs, seasons)
        found = self._dynamics(rows)
        if found.no_better and self.way == "auto":
            found = self._series(panel, jobs, seasons, or_mean=True)
        return _told(found)

    def check_last(self, rows: PanelRows) -> None:
        """Raise if the last of several series cannot be prepared for the fit."""
        self._job_of(rows, -1, seasons_for(self.season, rows.panel.calendars[-1]))

    def _job_of(self, rows: PanelRows, i: int, seasons: tuple[float, ...]) -> Any:
        """Return the arguments of `fit_statistics` for a series."""
        data = series_data(rows.values[i], rows.known[i], rows.are_bool[i], seasons, self.settings)
        return *data, self.settings

    def _dynamics(self, rows: PanelRows) -> Found:
        """Find and fit networks for trajectories of one system."""
        # networks do not accept missing values, which trajectories were already checked for
        if not rows.are_trajectories:
            names = rows.panel.containers[0].names or None
            as_finite("y", rows.values[0], np.float64, names)
        check_long_enough(rows.values)
        check_varies(rows.values)
        possible = possible_values(rows.are_bool[0])
        fit, choice = fit_dynamics(rows.values, rows.known, self.settings, possible)
        no_better = ""
        if choice.score <= choice.score_of_mean + _WORTH:
            of_users = self.settings.plans is not None
            fit = fit if of_users else fit.as_mean()
            no_better = (
                "In closed loop no network does better on these data than their mean: best_score_"
                f"={choice.score:.3f}, and the score of the mean is {choice.score_of_mean:.3f}. "
                f"{_OF_USERS if of_users else _IS_MEAN}"
            )
        plan: Any = choice.plan
        params = asdict(plan)
        return Found("dynamics", [()], [fit], choice.results, params, choice.score, (), no_better)

    def _series(
        self,
        panel: Panel,
        jobs: Sequence[Any],
        seasons: list[tuple[float, ...]],
        or_mean: bool = False,
    ) -> Found:
        """Find and fit models of series, separately for each series or for all together.

        With `or_mean`, the forecast of a single series is the mean if models are no better.
        """
        errors: dict[int, Exception] = {}
        if self.shared:
            found = fit_shared(jobs, panel.calendars)
        else:
            found, errors = fit_each(jobs, skips=self.skips)
        if errors:
            kept = [i for i in range(len(jobs)) if i not in errors]
            panel, jobs, seasons = (
                panel.some(kept),
                [jobs[i] for i in kept],
                [seasons[i] for i in kept],
            )
        no_better = ""
        if or_mean and (one := mean_if_no_worse(found[0][1], jobs[0][0])):
            found, no_better = [(_fit_of(one, *jobs[0]), one)], f"{_NONE_BETTER} {_IS_MEAN}"
        fits = [fit for fit, _ in found]
        # a shared search has the same comparison of models for all series: list it once
        learned = [each for _, each in (found[:1] if self.shared else found)]
        results = table_of(learned, ("all",) if self.shared else panel.ids)
        scores = tuple(-each.relative_error for _, each in found)
        if self.season is None and not any(calendar.dated for calendar in panel.calendars):
            longest = int(np.argmax([data.n_rows for data, *_ in jobs]))
            which = panel.name_of_series(longest)
            _warn_of_season(which, jobs[longest][0], found[longest][1], self.settings)
        warn_of_constants(fits, panel)
        score = float(np.mean(scores))
        best = best_of(learned)
        return Found("series", seasons, list(fits), results, best, score, scores, no_better, errors)


def series_data(
    values: Array,
    known: Array,
    is_bool: Array,
    seasons: tuple[float, ...],
    settings: Settings,
) -> tuple[SeriesData, Scale, LastRows]:
    """Return a series with its gaps filled, the scale of its known inputs, and its ending.

    Rows without any value at the beginning and the end of the series are dropped; odd values count
    as missing. Known inputs keep the rows at the end, for which the values are forecast later.
    """
    scale = Scale.of([known])
    standard, begin = scale.standardise(known), int(np.isfinite(values).any(axis=1).argmax())
    data = _without_gaps(values, standard, is_bool, seasons, settings.seed)
    ending = LastRows.of(data, values[begin:], keep=settings.keep_odd)
    if ending.odd is not None:
        values = ending.odd.removed_from(values)
        data = _without_gaps(values, standard, is_bool, seasons, settings.seed)
    return data, scale, ending


def _without_gaps(
    values: Array, known: Array, is_bool: Array, seasons: tuple[float, ...], seed: int
) -> SeriesData:
    """Return a series with its gaps filled; `known` contains standardised inputs."""
    seen = np.flatnonzero(np.isfinite(values).any(axis=1))
    begin, end = int(seen[0]), int(seen[-1]) + 1
    data = fill_gaps(values[begin:end], known[begin:], seasons, first=begin, seed=seed)
    # bool values that are all True have no logarithms: a later value may be False
    positive = data.positive & ~is_bool
    return replace(data, positive=positive, possible=possible_values(is_bool))


def fit_each(
    jobs: Sequence[Any], *, skips: bool
) -> tuple[list[tuple[StatisticalFit, Learned]], dict[int, Exception]]:
    """Find models for each series separately; each job is the arguments of `fit_statistics`.

    With `skips`, series whose fit fails are left out, and the errors are returned by their numbers.
    """
    settings = jobs[0][-1]
    if len(jobs) == 1:
        return [fit_statistics(*jobs[0])], {}
    # series are counted here, not the models of each, which may be fitted by workers
    costs = [_cost(data, settings) for data, *_ in jobs]
    jobs = [(*job[:-1], settings._replace(report=not_reported)) for job in jobs]
    results = run_jobs(_tried if skips else fit_statistics, jobs, settings.n_jobs)
    made = list(settings.report(results, costs, "models", unit="series"))
    errors = {i: each for i, each in enumerate(made) if isinstance(each, Exception)}
    if len(errors) == len(made):
        raise errors[0]
    return [each for i, each in enumerate(made) if i not in errors], errors


def _tried(*job: Any) -> Any:
    """Return the result of `fit_statistics`, or the error if these values cannot be fitted."""
    try:
        return fit_statistics(*job)
    except (ValueError, TypeError) as error:
        return error


def _cost(data: SeriesData, settings: Settings) -> float:
    """Return the time to compare the models of a series, roughly in microseconds."""
    return float(costs_of(settings.candidates(data, settings.n_networks), [data]).sum())


def fit_shared(
    jobs: Sequence[Any], calendars: Sequence[Calendar]
) -> list[tuple[StatisticalFit, Learned]]:
    """Find models for all series together; jobs as in `fit_each`."""
    settings = jobs[0][-1]
    # count the phase of seasons from the earliest row of all series, so that it is the same in each
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
        report=settings.report,
    )
    return [
        (_fit_of(one, data, scale, ending, settings), one)
        for one, data, (_, scale, ending, _) in zip(learned, series, jobs, strict=True)
    ]


@one_blas_thread()
def fit_statistics(
    data: SeriesData, scale: Scale, ending: LastRows, settings: Settings
) -> tuple[StatisticalFit, Learned]:
    """Find and fit the average of models that forecasts a series best."""
    learned = settings.learn(data)
    return _fit_of(learned, data, scale, ending, settings), learned


def _fit_of(
    learned: Learned, data: SeriesData, scale: Scale, ending: LastRows, settings: Settings
) -> StatisticalFit:
    """Return the fit at the last row of the series.

    Rows after the last value, for which there are known inputs only, are filled with forecasts.
    """
    rolling = learned.rolling
    window = untested_season(data.n_rows, data.seasons)
    seasonal = bool(seen_seasons(data.n_rows, data.seasons))
    bands = Bands.of(
        learned.average,
        rolling.followed,
        rolling.origins,
        data.positive,
        window=window,
        resolution=data.resolution(),
        grows=not seasonal and not may_be_independent(data),
        seasons=data.seasons,
    )
    reach = None
    if settings.reaches_farther and not seasonal:
        reach = reach_of(data.values, data.possible)
    later = data.known[data.n_rows :]
    empty = np.full((len(later), data.values.shape[1]), np.nan)
    fit = StatisticalFit(learned.ensemble, data, scale, bands, ending, reach)
    return fit.extended_by(empty, later)


def _told(found: Found) -> Found:
    """Warn if a forecast is no better than the mean."""
    if found.no_better:
        warnings.warn(found.no_better, UserWarning, stacklevel=caller_level())
    return found


def chosen_way(data: SeriesData, ending: LastRows, settings: Settings) -> str:
    """Return "dynamics" or "series", whichever suits the data.

    It is "series" if values are missing, and for demands most of which are zero.
    """
    if ending.odd is not None:  # odd values say nothing about the rows before them
        n_rows = int(ending.odd.rows.min()) - data.first
        data = replace(data.until(n_rows), known=data.known[:n_rows])
    # rows were dropped at the beginning or the end
    if data.first or len(data.known) > data.n_rows or data.intermittent.any():
        return "series"
    rule = look_for_rule(data, settings.seed)
    if rule.followed in ("yes", "no"):
        return "dynamics" if rule.followed == "yes" else "series"
    return "dynamics" if _networks_are_better(data, settings, rule.followed) else "series"


def _networks_are_better(data: SeriesData, settings: Settings, assumed: str) -> bool:
    """Whether networks forecast the end of the series better than the average of models does.

    `assumed` is "likely" or "open", as in `Rule`: how much better they must be.
    """
    # both are fitted to the first rows only, and compared from the same origins after them
    first = first_rows(data.n_rows)
    horizons = horizons_for(settings.horizon, data.n_rows - first)
    shortest, n_steps = horizons[0], horizons[-1]
    # the shortest forecasts end within the data: pad the longer ones with NaN
    origins = origins_after(first, data.n_rows, 4 * shortest)
    values = data.values
    beyond = np.full((n_steps, values.shape[1]), np.nan)
    followed = np.concatenate([values, beyond])[np.add.outer(origins, np.arange(n_steps))]
    known = [data.known[:first]] if data.known.shape[1] else []
    progress = _Comparison(settings.report, _cost(data, settings))
    searched = settings._replace(report=progress.of_networks)
    fit, _ = fit_networks([values[:first]], known, searched, data.possible)
    by_networks = fit.from_origins(values, data.known[: data.n_rows], origins, n_steps)
    learned = settings._replace(report=progress.of_models).learn(data.until(first))
    by_models = learned.ensemble.forecast(data.with_room(data.n_rows + n_steps), origins, n_steps)
    return confirms(by_networks, by_models, followed, horizons, assumed)


class _Comparison:
    """Progress of the searches for networks and for models that are compared, passed to `report`.

    The better one follows on all rows. Which it will be is not known: the expected time is between
    the two. `by_models` is the time of the search for models.
    """

    def __init__(self, report: Report, by_models: float) -> None:
        self.report, self.by_models, self.by_networks = report, by_models, 0.0

    def of_networks(
        self, results: Any, costs: Any, what: str, *, later: float = 0.0, **options: Any
    ) -> Any:
        """Report the search for networks, whose time follows from its first call."""
        self.by_networks = self.by_networks or float(sum(costs)) + later
        later += self.by_models + self._expected()
        return self.report(results, costs, what, later=later, **options)

    def of_models(self, results: Any, costs: Any, what: str, **options: Any) -> Any:
        """Report the search for models."""
        return self.report(results, costs, what, later=self._expected(), **options)

    def _expected(self) -> float:
        """Return the geometric mean of the possible times in all, less the time of the two."""
        both = self.by_networks + self.by_models
        return float(np.sqrt((both + self.by_models) * (both + self.by_networks)) - both)


def seasons_for(season: Any, calendar: Calendar) -> tuple[float, ...]:
    """Return the rows per period of each season, ascending.

    `season` is as in ESNForecaster: with None, the seasons are those of the calendar, and values of
    1 are omitted.
    """
    if season is None:
        return calendar.seasons()
    given: list[float] = np.atleast_1d(np.asarray(season, dtype=float)).tolist()
    return tuple(sorted({each for each in given if each > 1}))


# ---------------------------------------------------------------------- networks in `search`


def plans_of_users(search: Any) -> list[NetworkPlan] | None:
    """Return the networks that `search` defines; None if it is a string."""
    if isinstance(search, str):
        return None
    return [NetworkPlan(**(_DEFAULTS | item)) for item in search]


def check_search(name: str, value: Any) -> None:
    """Check the parameter `search`, which is a string or a list of dicts of network parameters."""
    if isinstance(value, str) and value in ("auto", "dynamics", "series"):
        return
    known = isinstance(value, (list, tuple)) and len(value) > 0
    if not known or not all(isinstance(item, dict) for item in value):
        raise ValueError(
            f'search={value!r} must be "auto", "dynamics", "series", or a list of '
            f"dicts, one for each candidate network, "
            f"with keys among {', '.join(_PLAN)}."
        )
    for i, item in enumerate(value):
        _check_network(f"search[{i}]", item)


def _check_network(place: str, item: dict[str, Any]) -> None:
    strange = [key for key in item if key not in _PLAN]
    if strange:
        raise ValueError(
            f"{place} has the key {strange[0]!r}, which is not one of {', '.join(_PLAN)}."
        )
    if "n_units" not in item:
        raise ValueError(f"{place} has no n_units: {item!r}. Add it.")
    for key, value in item.items():
        _CHECKS.get(key, _check_factor)(f"{place}: {key}", value)


def _check_factor(name: str, value: Any) -> None:
    check_number(name, value, low=0.0)


def _check_leak(name: str, value: Any) -> None:
    check_number(name, value, low=0.0, high=1.0, low_open=True)


def _check_augment(name: str, value: Any) -> None:
    if callable(value):
        raise TypeError(
            f"{name} is a function, but ESNForecaster accepts only None or the name of a built-in "
            "augmentation."
        )
    try:
        check_augment(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("n_units", "n_lags", "skip"), check_count),
    "leak_rate": _check_leak,
    "augment": _check_augment,
}


def _warn_of_season(which: str, data: SeriesData, learned: Learned, settings: Settings) -> None:
    """Warn if models with a season forecast held-out rows of a series clearly better.

    `learned` are its models without a season. The bounds were chosen on generated series, so that
    random walks, white noise and autoregressions, also with pseudo-cycles, cause no warning.
    """
    period, explained = period_of(data.values)
    if data.n_rows < _FEWEST or explained < _EXPLAINED:
        return
    followed = learned.rolling.followed
    same = settings._replace(horizon=followed.shape[1], report=not_reported)
    seasonal = same.learn(replace(data, seasons=(float(period),)))
    scale = spread_of(data.values)
    scale[scale == 0] = 1.0
    # with five periods or more, the season does not change the origins of forecasts
    without, with_season = (
        float(np.nanmean(np.abs(each.average - followed) / scale)) for each in (learned, seasonal)
    )
    if without > _GOOD and with_season < _SEASON_PAYS * without:
        warnings.warn(
            f"{which} repeats every {period} rows, and has no dates from which seasons follow. "
            f"With this season, the error of forecasts of held-out rows is "
            f"{100 * with_season / without:.0f} % of the error without it. Set season={period}, or "
            "season=1 to forecast without a season.",
            UserWarning,
            stacklevel=caller_level(),
        )


def period_of(values: Array) -> tuple[int, float]:
    """Return the period that explains most of the deviations of rows from the mean around them.

    It is the shortest of those that explain nearly as much as the best. The second value is the
    share of the variance that the mean of the same phase in all other periods explains, in the
    column where it is largest, or minus infinity for short `values`, (n_rows, n_outputs).
    """
    values = values[-_MOST:]
    # neither sums lose digits at a large level, nor squares leave the range of floats
    values = values - values[0]
    values = values / np.maximum(np.abs(values).max(axis=0), np.finfo(float).tiny)
    longest = min(_LONGEST, len(values) // _PERIODS)
    shares = {period: _explained(values, period) for period in range(2, longest + 1)}
    best = max(shares.values(), default=-np.inf)
    return next((each for each in shares.items() if each[1] >= best - _NEARLY), (1, -np.inf))


def _explained(values: Array, period: int) -> float:
    """Return the share of the variance that a period explains."""
    # deviations from the mean of the period around each row
    sums = np.cumsum(np.vstack([np.zeros(values.shape[1]), values]), axis=0)
    means = (sums[period:] - sums[:-period]) / period
    if period % 2 == 0:
        means = 0.5 * (means[1:] + means[:-1])
    deviations = values[period // 2 :][: len(means)] - means
    n_periods = len(deviations) // period
    rows = deviations[len(deviations) - n_periods * period :].reshape(n_periods, period, -1)
    rows = rows - rows.mean(axis=(0, 1))
    squares = (rows**2).sum(axis=(0, 1))
    # what is left of a row is known from its difference from the mean of all periods
    left = ((rows - rows.mean(axis=0)) ** 2).sum(axis=(0, 1)) * (n_periods / (n_periods - 1)) ** 2
    shares = 1 - left[squares > 0] / squares[squares > 0]
    return float(shares.max(initial=-np.inf))
