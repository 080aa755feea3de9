"""Fitted models of one series: networks in a closed loop, or an average of models of series.

Both kinds have the methods of `Fit`, and forecast from the end of the rows that they contain.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.loops.bank_search import Choice, Search
from reservoir.loops.ensemble_feedback import EnsembleRun, run_ensemble
from reservoir.loops.loop_design import Trajectories
from reservoir.loops.network_plan import NetworkPlan
from reservoir.loops.network_trial import Member, states_at
from reservoir.series_models.bands import Bands
from reservoir.series_models.ensemble import Ensemble
from reservoir.series_models.series_data import SeriesData

Report = Callable[[Iterable[Any], int, str], Iterable[Any]]
_ROUNDING = 1e-12  # a column that varies less, relative to its size, is constant to rounding
_LEARNED = 0.7  # part of the rows that networks are fitted to where their errors are measured
_N_ORIGINS = 40
_LONGEST_BANDS = 1000  # steps of the closed loops whose errors make the intervals, at most


class Settings(NamedTuple):
    """Parameters of ESNForecaster, read.

    Attributes
    ----------
    plans : list of NetworkPlan or None
        Networks of the user.
    n_networks : int
    widths : float
        Widths of the range of the data by which a forecast may leave it.
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


@dataclass(frozen=True)
class Intervals:
    """Errors of forecasts, and the bounds (n_outputs,) of the values to come."""

    bands: Bands
    low: Array
    high: Array

    def ends(self, point: Array, coverages: Sequence[float]) -> Array:
        """Return the ends of intervals around forecasts, (n_coverages, 2, n_steps, n_outputs)."""
        return np.clip(self.bands.around(point, coverages), self.low, self.high)

    def paths(self, point: Array, n_paths: int, generator: np.random.Generator) -> Array:
        """Return sample paths around forecasts, (n_paths, n_steps, n_outputs)."""
        return np.clip(self.bands.paths(point, n_paths, generator), self.low, self.high)


class Fit(Protocol):
    """Fitted models of one series, and its rows."""

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """Forecast the rows after the last one, (n_steps, n_outputs), in units of the data.

        Returns the number of steps before the forecast is clipped as well.
        """

    def extended(self, values: Array, known: Array) -> Fit:
        """Return the fit after further rows, in units of the data; nothing is learned.

        Missing values are filled with their forecasts.
        """

    def after(self, values: Array, known: Array) -> Fit:
        """Return the fit at the end of other rows of the same system, in units of the data."""

    def intervals(self, settings: Settings) -> Intervals:
        """Return the errors of forecasts in the data."""


@saved
@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation of each column."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, tables: Sequence[Array]) -> Scale:
        """Return the scale of all rows; a constant column keeps its units."""
        rows = np.concatenate(tables)
        # a power of two as the unit: squares neither overflow nor vanish, and no bit changes
        size = 2.0 ** np.frexp(np.abs(rows).max(axis=0))[1].clip(-1000, 1000)
        rows /= size
        spread = rows.std(axis=0)
        varies = np.ptp(rows, axis=0) > _ROUNDING
        return cls(rows.mean(axis=0) * size, np.where(varies, spread * size, 1.0))

    def standardise(self, rows: Array) -> Array:
        """Return rows without units."""
        return (rows - self.mean) / self.spread

    def restore(self, rows: Array) -> Array:
        """Return rows in units of the data."""
        return self.mean + self.spread * rows


@saved
@dataclass(frozen=True, eq=False)
class StatisticalFit:
    """An average of models, and the rows after which it forecasts.

    Attributes
    ----------
    ensemble : Ensemble
    data : SeriesData
    scale_of_exog : Scale or None
    bands : Bands
    """

    ensemble: Ensemble
    data: SeriesData
    scale_of_exog: Scale | None
    bands: Bands

    @property
    def uses_logarithms(self) -> bool:
        """Whether a model of the average uses logarithms."""
        return any(member.log for member in self.ensemble.members)

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """As `Fit.forecast`."""
        return self.ensemble.run(self._with_known(_standard(self.scale_of_exog, known)), n_steps)

    def extended(self, values: Array, known: Array) -> StatisticalFit:
        """As `Fit.extended`."""
        return self.extended_by(values, _standard(self.scale_of_exog, known))

    def extended_by(self, values: Array, known: Array) -> StatisticalFit:
        """Return the fit after further rows, with known inputs without units."""
        data = self._with_known(known)

        def forecast(before: Array, n_steps: int) -> Array:
            seen = _joined(data, before)
            return self.ensemble.forecast(seen, np.array([seen.n_rows]), n_steps)[0]

        filled = _joined(data, fill_later(values, forecast))
        observed = np.concatenate([data.observed, np.isfinite(values)])
        positive = data.positive & (filled.values > 0).all(axis=0)
        return replace(self, data=replace(filled, observed=observed, positive=positive))

    def after(self, values: Array, known: Array) -> StatisticalFit:
        """Raise: models of trends and seasons have no state to continue from."""
        raise ValueError(
            'context goes with kind_="dynamics", series that follow a rule; this one has '
            "kind_='series'. Use update for rows that follow, or fit again."
        )

    def intervals(self, settings: Settings) -> Intervals:
        """As `Fit.intervals`."""
        return Intervals(self.bands, self.ensemble.bounds.low, self.ensemble.bounds.high)

    def _with_known(self, known: Array) -> SeriesData:
        every = np.concatenate([self.data.known[: self.data.n_rows], known], axis=0)
        return replace(self.data, known=every)


@saved
@dataclass(frozen=True, eq=False)
class DynamicalFit:
    """Networks, the scales of rows, and the end of the data.

    Attributes
    ----------
    members : list of Member
    scale : Scale
    scale_of_exog : Scale or None
    limits : array of shape (2, n_outputs)
        Range that closed loops are clipped to, without units.
    washout : int
        Rows after which networks have forgotten their initial states.
    levels, known : arrays of shape (n_rows, n_outputs) and (n_rows, n_exog)
        The last trajectory, without units.
    earlier : list of pairs of arrays
        Levels and exogenous rows of the trajectories before it.
    """

    members: list[Member]
    scale: Scale
    scale_of_exog: Scale | None
    limits: Array
    washout: int
    levels: Array
    known: Array
    earlier: list[tuple[Array, Array]]

    @property
    def min_rows(self) -> int:
        """Rows of a context that networks need."""
        past = max(getattr(member.source, "n_past", 0) for member in self.members)
        return max(past + 1, 2)

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """As `Fit.forecast`."""
        run = self._run([len(self.levels)], _standard(self.scale_of_exog, known)[:, None])
        return self.scale.restore(run.levels[:, 0]), int(run.n_free[0])

    def extended(self, values: Array, known: Array) -> DynamicalFit:
        """As `Fit.extended`."""
        later, known = self.scale.standardise(values), _standard(self.scale_of_exog, known)

        def forecast(before: Array, n_steps: int) -> Array:
            begin = len(before)
            seen = self._extended_by(before, known[:begin])
            following = known[begin : begin + n_steps, None]
            return seen._run([len(seen.levels)], following).levels[:, 0]

        return self._extended_by(fill_later(later, forecast), known)

    def _extended_by(self, levels: Array, known: Array) -> DynamicalFit:
        """Return the fit after further rows without units."""
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
                f"context has {n_rows} row{'s' * (n_rows != 1)}, and the networks need at least "
                f"{self.min_rows} to continue from. After {self.washout + 1} they have forgotten "
                "their initial states: give that many or more."
            )
        if n_rows <= self.washout:
            warnings.warn(
                f"context has {n_rows} rows, and networks need about {self.washout} before the "
                "last one to forget their initial states. The forecast may be less exact than it "
                f"could be. Give {self.washout + 1} or more.",
                UserWarning,
                stacklevel=caller_level(),
            )
        return self._at(values, known)

    def _at(self, values: Array, known: Array) -> DynamicalFit:
        known = _standard(self.scale_of_exog, known)
        return replace(self, levels=self.scale.standardise(values), known=known)

    def from_origins(self, values: Array, known: Array, origins: Array, n_steps: int) -> Array:
        """Return forecasts in other rows of the system, (n_origins, n_steps, n_outputs).

        `origins` are numbers of rows before each forecast, ascending. The last exogenous row is
        repeated after the end of the rows.
        """
        one = self._at(values, known)
        rows = np.minimum(np.add.outer(np.arange(n_steps), origins), len(one.known) - 1)
        run = one._run(origins.tolist(), one.known[rows])
        return self.scale.restore(run.levels.swapaxes(0, 1))

    def intervals(self, settings: Settings) -> Intervals:
        """As `Fit.intervals`: of networks fitted to the first rows, in the rows after them.

        The number of steps of a forecast makes no difference: its first steps have the same
        intervals as a shorter one.
        """
        levels, known = self.levels, self.known
        first = first_rows(len(levels))
        n_steps = int(np.clip((len(levels) - first) // 2, 1, _LONGEST_BANDS))
        trajectories = [each for each, _ in self.earlier] + [levels[:first]]
        exogenous = [each for _, each in self.earlier] + [known[:first]]
        earlier, _ = fit_networks(trajectories, exogenous if known.shape[1] else [], settings)
        origins = origins_after(first, len(levels), 1)
        predicted = earlier.from_origins(levels, known, origins, n_steps)
        beyond = np.full((n_steps, levels.shape[1]), np.nan)
        followed = np.concatenate([levels, beyond])[np.add.outer(origins, np.arange(n_steps))]
        restore = self.scale.restore
        unsigned = np.zeros(levels.shape[1], bool)
        bands = Bands.of(restore(predicted), restore(followed), origins, unsigned)
        return Intervals(bands, *restore(self.limits))

    def _run(self, origins: list[int], known: Array) -> EnsembleRun:
        """Run closed loops from origins in the data, without units.

        Parameters
        ----------
        origins : list of int
            Numbers of rows before each loop, ascending.
        known : array of shape (n_steps, n_origins, n_exog)
            Exogenous rows of the steps.
        """
        one = Trajectories([self.levels], [self.known])
        # a row enters together with the exogenous row of the next one
        last = [(0, origin - 1) for origin in origins]
        states = [states_at(member.source, one, last) for member in self.members]
        rows = self.levels[np.array(origins) - 1]
        return run_ensemble(
            self.members, states, rows, len(known), exog=known, clip=tuple(self.limits)
        )


def fit_networks(
    levels: list[Array], known: list[Array], settings: Settings
) -> tuple[DynamicalFit, Choice]:
    """Find networks that continue trajectories, in units of the data; `known` may be empty."""
    scale = Scale.of(levels)
    scale_of_exog = Scale.of(known) if known else None
    exog = [_standard(scale_of_exog, rows) for rows in known] if known else []
    data = Trajectories(
        [scale.standardise(level) for level in levels],
        exog or [np.zeros((len(level), 0)) for level in levels],
    )
    limits = limits_of(np.concatenate(data.levels), settings.widths)
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
    )
    return fit, choice


def limits_of(rows: Array, widths: float) -> Array:
    """Return the range of rows, widened by so many widths, (2, n_outputs)."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.array([low - widths * (high - low), high + widths * (high - low)])


def first_rows(n_rows: int) -> int:
    """Return the number of rows that networks are fitted to where their errors are measured."""
    return int(_LEARNED * n_rows)


def origins_after(first: int, n_rows: int, n_steps: int) -> Array:
    """Return forecast origins from row `first` on, ascending."""
    last = max(first, n_rows - max(1, n_steps // 4))
    return np.unique(np.linspace(first, last, _N_ORIGINS).astype(int))


def fill_later(rows: Array, forecast: Callable[[Array, int], Array]) -> Array:
    """Return later rows whose gaps are filled with forecasts.

    Parameters
    ----------
    rows : array of shape (n_rows, n_outputs)
        NaN where a value is missing.
    forecast : callable
        Given the rows before a gap, (n_before, n_outputs), and a number of steps, returns the
        following rows, (n_steps, n_outputs).
    """
    filled = rows.copy()
    empty = np.asarray(np.isnan(rows).all(axis=1))
    for begin in np.flatnonzero(np.isnan(rows).any(axis=1)).tolist():
        gap = np.isnan(filled[begin])
        if not gap.any():
            continue
        seen = np.flatnonzero(~empty[begin:])
        n_steps = max(1, int(seen[0]) if len(seen) else len(rows) - begin)
        end = begin + n_steps
        predicted = forecast(filled[:begin], n_steps)
        filled[begin:end] = np.where(np.isnan(rows[begin:end]), predicted, rows[begin:end])
    return filled


def _standard(scale: Scale | None, known: Array) -> Array:
    """Return exogenous rows without units."""
    return known if scale is None else scale.standardise(known)


def _joined(data: SeriesData, later: Array) -> SeriesData:
    """Return a series with later rows, all of them observed."""
    return replace(
        data,
        values=np.concatenate([data.values, later]),
        observed=np.concatenate([data.observed, np.ones(later.shape, bool)]),
    )
