"""Fitted models of one series: networks in closed loop, or an average of models of series.

Both kinds have the methods of `Fit`. They contain the rows of the series, and forecast the rows
after the last of these.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, Report
from reservoir._validation import caller_level
from reservoir.loops.bank_search import Choice, Search
from reservoir.loops.loop_design import NetworkPlan, Trajectories
from reservoir.loops.network_trial import EnsembleRun, Member, run_ensemble, states_at
from reservoir.series_models.bands import Bands
from reservoir.series_models.candidates import Candidate, candidates_for
from reservoir.series_models.ensemble import Ensemble, Learned, learn
from reservoir.series_models.lags import LagSource
from reservoir.series_models.outliers import LastRows, OddValues
from reservoir.series_models.series_data import Bounds, SeriesData

_KEPT = LastRows(np.empty((0, 1)), 0)  # of fits by earlier versions
_ROUNDING = 1e-12  # a column that varies less, relative to its size, is constant to rounding
MIN_ROWS = 30  # least number of rows of the longest trajectory that networks are fitted to
_LEARNED = 0.7  # fraction of the rows for the fit of networks whose errors are then measured
_N_ORIGINS = 40  # largest number of forecasts whose errors are measured
_SHIFTED = 0.25  # share of sample paths at the level of odd values
_CONFIRMED = 0.5  # least error of networks at an odd value, relative to that of autoregressions
_REACH = 2.0  # widths of its range by which intervals of a series without a season may leave it
_LONGEST_BANDS = 1000  # largest number of steps of closed loops whose errors define intervals


class Settings(NamedTuple):
    """Parameters of ESNForecaster in the form that the search uses.

    The defaults stand for None in `plans` and `horizon`. With `keep_odd`, odd values at the end of
    a series count like others, instead of as missing. With `reaches_farther`, intervals and sample
    paths of series without a season may be beyond the bounds of forecasts.
    """

    plans: list[NetworkPlan] | None
    n_networks: int
    widths: float  # by which a forecast may leave the range of the data, in widths of that range
    horizon: int | None  # steps of the forecasts by which models are compared
    seed: int
    n_jobs: int | None
    report: Report
    keep_odd: bool
    candidates: Callable[[SeriesData, int], list[Candidate]] = candidates_for
    reaches_farther: bool = False

    def learn(self, data: SeriesData) -> Learned:
        """Compare models on a series, and fit the models of the average."""
        return learn(
            data,
            n_networks=self.n_networks,
            n_steps=self.horizon,
            widths=self.widths,
            seed=self.seed,
            report=self.report,
            candidates=self.candidates,
        )


@dataclass(frozen=True)
class Intervals:
    """Distribution of forecast errors, and the bounds to which intervals and paths are clipped.

    `shift` is the distance of a second level: that of odd values with which a column ends. Then
    intervals contain those around either level, and a quarter of the paths is at the second.
    `first` is the number of rows before the forecasts, by which bands know the phase of a season.
    """

    bands: Bands
    low: Array  # (n_outputs,), as `high` and `shift`
    high: Array
    shift: Array | None = None
    first: int = 0

    def ends(self, point: Array, coverages: Sequence[float]) -> Array:
        """Return the bounds of intervals around forecasts.

        They have shape (n_coverages, 2, n_steps, n_outputs), lower bounds first.
        """
        ends = np.clip(self.bands.around(point, coverages, self.first), self.low, self.high)
        if self.shift is None:
            return ends
        both = np.stack([ends, self._shifted(ends)])
        return np.stack([both[:, :, 0].min(axis=0), both[:, :, 1].max(axis=0)], axis=1)

    def paths(self, point: Array, n_paths: int, generator: np.random.Generator) -> Array:
        """Return sample paths around forecasts, (n_paths, n_steps, n_outputs)."""
        paths = self.bands.paths(point, n_paths, generator, self.first)
        paths = np.clip(paths, self.low, self.high)
        if self.shift is None:
            return paths
        is_shifted = generator.random((n_paths, 1, 1)) < _SHIFTED
        return np.where(is_shifted, self._shifted(paths), paths)

    def _shifted(self, rows: Array) -> Array:
        """Return rows at the second level, at least 0 in columns without negative values."""
        return np.maximum(rows + self.shift, np.where(self.low >= 0, 0.0, -np.inf))


class Later(NamedTuple):
    """Later rows of a series, and the fit to which they are appended.

    The fit lacks its own last rows if these are replaced, too.
    """

    fit: Any
    values: Array  # (n_rows, n_outputs), in units of the data, NaN for missing and odd values
    known: Array  # (n_rows, n_exog)

    @property
    def beyond(self) -> Array:
        """Mask of the values that are beyond the bounds of forecasts."""
        found: Array = self.fit.bounds.exceeded_by(self.values)
        return found

    def appended(self, widths: float) -> Any:
        """Return the fit with the rows, and with wider bounds if they are beyond the bounds."""
        fit = self.fit.widened(self.values, widths) if self.beyond.any() else self.fit
        return fit.extended(self.values, self.known)


class Fit(Protocol):
    """Protocol of the fitted models of one series, which contain its rows."""

    @property
    def ending(self) -> LastRows:
        """The last rows as they were given."""

    @property
    def possible(self) -> Array | None:
        """Least and greatest possible value of each column, as in `SeriesData`."""

    @property
    def rows(self) -> Array:
        """Known rows in units of the data, (n_rows, n_outputs), after which forecasts start."""

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """Forecast the next `n_steps` rows from their known inputs.

        Returns
        -------
        forecast : array of shape (n_steps, n_outputs)
            Forecast in units of the data.
        n_free : int
            Number of steps before the forecast was first clipped; `n_steps` if it never was.
        """

    def extended(self, values: Array, known: Array) -> Fit:
        """Return the fit with later rows appended, without learning from them.

        The rows are in units of the data. Missing values are replaced by their forecasts.
        """

    def without_odd(self, values: Array, known: Array, *, keep: bool) -> Later:
        """Return later rows without odd values, unless these are kept, and the fit before them."""

    @property
    def bounds(self) -> Bounds:
        """Bounds of forecasts in units of the data."""

    def widened(self, values: Array, widths: float) -> Fit:
        """Return the fit with the bounds of forecasts that all its rows and later ones define.

        No bound becomes narrower. `widths` is the distance by which forecasts may leave the range
        of the rows.
        """

    def after(self, values: Array, known: Array) -> Fit:
        """Return the fit with the rows replaced by others of the same system, in units of the data.

        Forecasts then start after these rows.
        """

    def intervals(self, settings: Settings) -> Intervals:
        """Return the distribution of the errors of forecasts within the data."""


@saved
@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation of each column."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, tables: Sequence[Array]) -> Scale:
        """Return the scale of all rows of some tables; constant columns have the spread 1."""
        rows = np.concatenate(tables)
        # dividing by a power of two is exact, and prevents overflow and underflow of squares
        size = 2.0 ** np.frexp(np.abs(rows).max(axis=0))[1].clip(-1000, 1000)
        rows /= size
        spread = rows.std(axis=0)
        varies = np.ptp(rows, axis=0) > _ROUNDING
        return cls(rows.mean(axis=0) * size, np.where(varies, spread * size, 1.0))

    def standardise(self, rows: Array) -> Array:
        """Return standardised rows."""
        return (rows - self.mean) / self.spread

    def restore(self, rows: Array) -> Array:
        """Return standardised rows in units of the data."""
        return self.mean + self.spread * rows


@saved
@dataclass(frozen=True, eq=False)
class StatisticalFit:
    """An average of models of series, and the rows after which it forecasts."""

    ensemble: Ensemble
    data: SeriesData
    scale_of_exog: Scale | None
    bands: Bands  # distribution of the errors of forecasts of held-out rows
    ending: LastRows = _KEPT
    reach: Bounds | None = None  # of intervals and sample paths; None for the bounds of forecasts

    @property
    def possible(self) -> Array | None:
        """As `Fit.possible`."""
        return self.data.possible

    @property
    def rows(self) -> Array:
        """As `Fit.rows`."""
        return self.data.values

    @property
    def uses_logarithms(self) -> bool:
        """Whether any model of the average uses logarithms."""
        return any(member.log for member in self.ensemble.members)

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """As `Fit.forecast`."""
        return self.ensemble.run(self._with_known(_standard(self.scale_of_exog, known)), n_steps)

    def extended(self, values: Array, known: Array) -> StatisticalFit:
        """As `Fit.extended`."""
        return self.extended_by(values, _standard(self.scale_of_exog, known))

    def without_odd(self, values: Array, known: Array, *, keep: bool) -> Later:
        """As `Fit.without_odd`."""
        data = self._with_known(_standard(self.scale_of_exog, known))
        ending, rows = self.ending.with_rows(data, values, keep=keep)
        if ending.odd is None and self.ending.odd is None:
            return Later(replace(self, ending=ending), values, known)
        n_before = data.n_rows - len(self.ending.rows)
        before = replace(self, data=self.data.until(n_before), ending=ending)
        return Later(before, rows, _in_units(self.scale_of_exog, data.known[n_before:]))

    def extended_by(self, values: Array, known: Array) -> StatisticalFit:
        """Return the fit with later rows appended; `known` contains standardised inputs."""
        data = self._with_known(known)

        def forecast(before: Array, n_steps: int) -> Array:
            seen = data.followed_by(before)
            return self.ensemble.forecast(seen, np.array([seen.n_rows]), n_steps)[0]

        # `followed_by` marks all later rows as observed: restore which values were missing
        filled = data.followed_by(fill_later(values, forecast))
        observed = np.concatenate([data.observed, np.isfinite(values)])
        positive = data.positive & (filled.values > 0).all(axis=0)
        return replace(self, data=replace(filled, observed=observed, positive=positive))

    def after(self, values: Array, known: Array) -> StatisticalFit:
        """Raise an error: models of trends and seasons cannot continue other rows."""
        raise ValueError(
            'context can be used only if kind_ is "dynamics", for series that follow a rule; here '
            'kind_ is "series". Use update for rows that follow, or fit again.'
        )

    def intervals(self, settings: Settings) -> Intervals:
        """As `Fit.intervals`."""
        reach = self.bounds if self.reach is None else self.reach
        return Intervals(self.bands, reach.low, reach.high, self.ending.shift, self.data.n_rows)

    @property
    def bounds(self) -> Bounds:
        """As `Fit.bounds`."""
        return self.ensemble.bounds

    def widened(self, values: Array, widths: float) -> StatisticalFit:
        """As `Fit.widened`."""
        data = self.data
        rows = np.concatenate([data.values, np.where(np.isnan(values), data.values[-1], values)])
        positive = data.positive & (rows > 0).all(axis=0)
        bounds = self.bounds.joined(Bounds.of(rows, positive, widths, data.possible))
        reach = self.reach and self.reach.joined(reach_of(rows, data.possible))
        return replace(self, ensemble=replace(self.ensemble, bounds=bounds), reach=reach)

    def _with_known(self, known: Array) -> SeriesData:
        every = np.concatenate([self.data.known[: self.data.n_rows], known], axis=0)
        return replace(self.data, known=every)


@saved
@dataclass(frozen=True, eq=False)
class DynamicalFit:
    """Networks in closed loop, and the rows after which they forecast.

    `levels` and `known` are the standardised rows and exogenous rows of the last trajectory, which
    forecasts continue. `possible` and `floor` are in units of the data: the least and greatest
    possible values, and the least of forecasts, as `floor_of` (None in fits by earlier versions).
    """

    members: list[Member]
    scale: Scale
    scale_of_exog: Scale | None
    limits: Array  # (2, n_outputs), to which standardised rows are clipped in closed loop
    washout: int
    levels: Array  # (n_rows, n_outputs)
    known: Array  # (n_rows, n_exog)
    earlier: list[tuple[Array, Array]]  # `levels` and `known` of the other trajectories
    possible: Array | None = None  # (2, n_outputs)
    ending: LastRows = _KEPT
    floor: Array | None = None  # (n_outputs,)

    @property
    def rows(self) -> Array:
        """As `Fit.rows`."""
        return self._restored(self.levels)

    @property
    def min_rows(self) -> int:
        """Least number of rows of a context: as many as networks receive at once, at least 2."""
        past = max(getattr(member.source, "n_past", 0) for member in self.members)
        return max(past + 1, 2)

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """As `Fit.forecast`."""
        run = self._run([len(self.levels)], _standard(self.scale_of_exog, known)[:, None])
        return self._restored(run.levels[:, 0]), int(run.n_free[0])

    def extended(self, values: Array, known: Array) -> DynamicalFit:
        """As `Fit.extended`."""
        later, known = self.scale.standardise(values), _standard(self.scale_of_exog, known)

        def forecast(before: Array, n_steps: int) -> Array:
            begin = len(before)
            seen = self._extended_by(before, known[:begin])
            following = known[begin : begin + n_steps, None]
            return seen._run([len(seen.levels)], following).levels[:, 0]

        return self._extended_by(fill_later(later, forecast), known)

    def without_odd(self, values: Array, known: Array, *, keep: bool) -> Later:
        """As `Fit.without_odd`; values that the networks forecast well are not odd."""
        every = np.concatenate([self.known, _standard(self.scale_of_exog, known)])
        data = SeriesData.complete(self.scale.restore(self.levels), every)
        ending, rows = self.ending.with_rows(data, values, keep=keep)
        if ending.odd is None and self.ending.odd is None:
            return Later(replace(self, ending=ending), values, known)
        n_before = data.n_rows - len(self.ending.rows)
        given = np.concatenate([self.ending.rows, values])
        known = _in_units(self.scale_of_exog, every[n_before:])
        before = replace(
            self, levels=self.levels[:n_before], known=self.known[:n_before], ending=ending
        )
        if ending.odd is None or before.extended(rows, known).confirms(ending.odd):
            return Later(before, rows, known)
        return Later(replace(before, ending=replace(ending, odd=None)), given, known)

    def confirms(self, odd: OddValues) -> bool:
        """Whether odd values, which networks have replaced, are far from their forecasts, too."""
        forecasts = self._restored(self.levels[odd.rows])[np.arange(len(odd.rows)), odd.columns]
        errors, others = np.abs(odd.values - forecasts), np.abs(odd.values - odd.expected)
        return bool((errors >= _CONFIRMED * others).all())

    def _extended_by(self, levels: Array, known: Array) -> DynamicalFit:
        """Return the fit with later rows appended, which are standardised."""
        return replace(
            self,
            levels=np.concatenate([self.levels, levels]),
            known=np.concatenate([self.known, known]),
        )

    def after(self, values: Array, known: Array) -> DynamicalFit:
        """As `Fit.after`; raise if the rows are too few, warn if they do not fill the washout."""
        n_rows = len(values)
        if n_rows < self.min_rows:
            raise ValueError(
                f"context has {n_rows} row{'s' * (n_rows != 1)}, but the networks need at least "
                f"{self.min_rows} rows to continue from. Give {self.washout + 1} rows or more, "
                "after which the networks have forgotten their initial states."
            )
        if n_rows <= self.washout:
            warnings.warn(
                f"context has {n_rows} rows, but networks need about {self.washout} before the "
                "last one to forget their initial states, so that the forecast may be less "
                f"accurate. Give {self.washout + 1} rows or more.",
                UserWarning,
                stacklevel=caller_level(),
            )
        return replace(self._at(values, known), ending=_KEPT)

    def _at(self, values: Array, known: Array) -> DynamicalFit:
        known = _standard(self.scale_of_exog, known)
        return replace(self, levels=self.scale.standardise(values), known=known)

    def from_origins(self, values: Array, known: Array, origins: Array, n_steps: int) -> Array:
        """Return forecasts from several origins within other rows of the system.

        They have shape (n_origins, n_steps, n_outputs). `origins` contains the number of rows
        before each forecast, ascending. After the end of the rows, the last exogenous row is
        repeated.
        """
        one = self._at(values, known)
        rows = np.minimum(np.add.outer(np.arange(n_steps), origins), len(one.known) - 1)
        run = one._run(origins.tolist(), one.known[rows])
        return self._restored(run.levels.swapaxes(0, 1))

    def intervals(self, settings: Settings) -> Intervals:
        """As `Fit.intervals`, from errors in the last rows of networks fitted to the first rows.

        The errors do not depend on the number of steps to be forecast, so that the first steps of a
        forecast have the same intervals as a shorter forecast.
        """
        levels, known = self.levels, self.known
        first = first_rows(len(levels))
        n_steps = int(np.clip((len(levels) - first) // 2, 1, _LONGEST_BANDS))
        trajectories = [each for each, _ in self.earlier] + [levels[:first]]
        exogenous = [each for _, each in self.earlier] + [known[:first]]
        possible = None if self.possible is None else self.scale.standardise(self.possible)
        known_of = exogenous if known.shape[1] else []
        origins = origins_after(first, len(levels), 1)
        # for `earlier` the standardised rows are the data, so that its forecasts are standardised
        # rows as well: they are restored to the units of the data below
        if self.is_mean:
            mean = Scale.of(trajectories).mean
            predicted = np.broadcast_to(mean, (len(origins), n_steps, len(mean)))
        else:
            earlier, _ = fit_networks(trajectories, known_of, settings, possible)
            predicted = earlier.from_origins(levels, known, origins, n_steps)
        # the last forecasts extend beyond the data: pad the values to be compared with NaN
        beyond = np.full((n_steps, levels.shape[1]), np.nan)
        followed = np.concatenate([levels, beyond])[np.add.outer(origins, np.arange(n_steps))]
        unsigned = np.zeros(levels.shape[1], bool)
        resolution = SeriesData.complete(self.scale.restore(levels), known).resolution()
        bands = Bands.of(
            self._restored(predicted),
            self.scale.restore(followed),
            origins,
            unsigned,
            resolution=resolution,
        )
        return Intervals(bands, self.bounds.low, self.bounds.high, self.ending.shift)

    @property
    def bounds(self) -> Bounds:
        """As `Fit.bounds`."""
        return Bounds(*self._restored(self.limits))

    def widened(self, values: Array, widths: float) -> DynamicalFit:
        """As `Fit.widened`."""
        later = self.scale.standardise(np.where(np.isnan(values), self.scale.mean, values))
        low, high = limits_of(np.concatenate([self.levels, later]), widths)
        limits = np.stack([np.minimum(self.limits[0], low), np.maximum(self.limits[1], high)])
        if self.possible is not None:
            limits = np.clip(limits, *self.scale.standardise(self.possible))
        negative = (values < 0).any(axis=0)
        floor = None if self.floor is None else np.where(negative, -np.inf, self.floor)
        return replace(self, limits=limits, floor=floor)

    @property
    def is_mean(self) -> bool:
        """Whether forecasts are the mean of the data, because no network is better."""
        return isinstance(self.members[0].source, LagSource)

    def as_mean(self) -> DynamicalFit:
        """Return the fit whose forecasts are the mean of the data."""
        n_outputs, n_known = self.levels.shape[1], self.known.shape[1]
        # a step of minus the last standardised row leads to 0
        coef = np.hstack([-np.eye(n_outputs), np.zeros((n_outputs, n_known))])
        member = Member(LagSource(1, n_outputs, n_known), coef, np.zeros(n_outputs))
        return replace(self, members=[member], washout=0)

    def _restored(self, rows: Array) -> Array:
        """Return standardised rows in units of the data, which are possible values."""
        rows = self.scale.restore(rows)
        # loops may leave this bound, since a loop that is stopped at it often remains there
        rows = rows if self.floor is None else np.maximum(rows, self.floor)
        # rounding may exceed the bounds that standardised rows were clipped to
        return rows if self.possible is None else np.clip(rows, *self.possible)

    def _run(self, origins: list[int], known: Array) -> EnsembleRun:
        """Run closed loops of standardised rows from origins within the data, ascending.

        `known` are the standardised exogenous rows of each step, (n_steps, n_origins, n_exog).
        """
        one = Trajectories([self.levels], [self.known])
        # a row is an input together with the exogenous row of the next step, so that the last row
        # before each loop enters in the loop's first step
        last = [(0, origin - 1) for origin in origins]
        states = [states_at(member.source, one, last) for member in self.members]
        rows = self.levels[np.array(origins) - 1]
        # forecasts may touch the least and greatest possible value
        counted = self.possible is None or ~np.isfinite(self.possible).all(axis=0)
        limits: Any = tuple(self.limits)
        return run_ensemble(
            self.members, states, rows, len(known), exog=known, clip=limits, counted=counted
        )


def fit_networks(
    levels: list[Array], known: list[Array], settings: Settings, possible: Array | None = None
) -> tuple[DynamicalFit, Choice]:
    """Find and fit networks for trajectories in units of the data.

    `known` is an empty list if there are no exogenous rows; `possible` is as in `DynamicalFit`.
    """
    scale = Scale.of(levels)
    scale_of_exog = Scale.of(known) if known else None
    exog = [_standard(scale_of_exog, rows) for rows in known] if known else []
    data = Trajectories(
        [scale.standardise(level) for level in levels],
        exog or [np.zeros((len(level), 0)) for level in levels],
    )
    limits = limits_of(np.concatenate(data.levels), settings.widths)
    if possible is not None:
        limits = np.clip(limits, *scale.standardise(possible))
    choice = Search(
        data,
        tuple(limits),
        plans=settings.plans,
        n_members=settings.n_networks,
        n_steps=settings.horizon,
        seed=settings.seed,
        n_jobs=settings.n_jobs,
        report=settings.report,
    ).run()
    fit = DynamicalFit(
        choice.members,
        scale,
        scale_of_exog,
        limits,
        choice.washout,
        data.levels[-1],
        data.exog[-1],
        list(zip(data.levels[:-1], data.exog[:-1], strict=True)),
        possible,
        floor=floor_of(np.concatenate(levels)),
    )
    return fit, choice


def fit_dynamics(
    levels: list[Array], known: list[Array], settings: Settings, possible: Array | None
) -> tuple[DynamicalFit, Choice]:
    """As `fit_networks`, but without odd values with which the last trajectory may end.

    Networks are fitted to the rows before the first odd value. Values that they forecast well are
    not odd.
    """
    given = known if known[0].shape[1] else []
    values = levels[-1]
    scale = Scale.of(known)
    data = SeriesData.complete(values, scale.standardise(known[-1]))
    ending = LastRows.of(data, values, keep=settings.keep_odd)
    first = len(values) if ending.odd is None else int(ending.odd.rows.min())
    if ending.odd is not None and max([first, *map(len, levels[:-1])]) >= MIN_ROWS:
        known_before = [*given[:-1], given[-1][:first]] if given else []
        fit, choice = fit_networks([*levels[:-1], values[:first]], known_before, settings, possible)
        fit = fit.extended(ending.odd.removed_from(values)[first:], known[-1][first:])
        if fit.confirms(ending.odd):
            return replace(fit, ending=ending), choice
    fit, choice = fit_networks(levels, given, settings, possible)
    return replace(fit, ending=replace(ending, odd=None)), choice


def reach_of(values: Array, possible: Array | None) -> Bounds:
    """Return the bounds of intervals of a series without a season, from its values."""
    # a lower bound of 0 for columns without negative values, whether or not they are positive
    return Bounds.of(values, np.zeros(values.shape[1], bool), _REACH, possible)


def limits_of(rows: Array, widths: float) -> Array:
    """Return the range of rows, extended on either side by `widths` widths, (2, n_outputs)."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.array([low - widths * (high - low), high + widths * (high - low)])


def floor_of(rows: Array) -> Array:
    """Return the least value of forecasts: 0 for columns without negative values, (n_outputs,)."""
    return np.where((rows >= 0).all(axis=0), 0.0, -np.inf)


def first_rows(n_rows: int) -> int:
    """Return the number of first rows to which networks are fitted to measure errors after them."""
    return int(_LEARNED * n_rows)


def origins_after(first: int, n_rows: int, n_steps: int) -> Array:
    """Return up to 40 forecast origins from row `first` on, ascending.

    At least a quarter of the `n_steps` rows of each forecast are within the data, if there are
    enough rows after `first`.
    """
    last = max(first, n_rows - max(1, n_steps // 4))
    return np.unique(np.linspace(first, last, _N_ORIGINS).astype(int))


def fill_later(rows: Array, forecast: Callable[[Array, int], Array]) -> Array:
    """Return later rows of a series, (n_rows, n_outputs), with forecasts for missing values, NaN.

    `forecast` is a function of the later rows before a gap, (n_before, n_outputs), and of a number
    of steps; it returns the next rows, (n_steps, n_outputs).
    """
    filled = rows.copy()
    empty = np.asarray(np.isnan(rows).all(axis=1))
    for begin in np.flatnonzero(np.isnan(rows).any(axis=1)).tolist():
        gap = np.isnan(filled[begin])
        if not gap.any():
            continue
        # forecast a run of empty rows at once, but a row with some values separately: its values
        # are used for the forecasts after it
        seen = np.flatnonzero(~empty[begin:])
        n_steps = max(1, int(seen[0]) if len(seen) else len(rows) - begin)
        end = begin + n_steps
        predicted = forecast(filled[:begin], n_steps)
        filled[begin:end] = np.where(np.isnan(rows[begin:end]), predicted, rows[begin:end])
    return filled


def _standard(scale: Scale | None, known: Array) -> Array:
    """Return standardised exogenous rows; unchanged without a scale."""
    return known if scale is None else scale.standardise(known)


def _in_units(scale: Scale | None, known: Array) -> Array:
    """Return standardised exogenous rows in units of the data; unchanged without a scale."""
    return known if scale is None else scale.restore(known)
