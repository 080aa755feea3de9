"""The Theta method: exponential smoothing of a seasonally adjusted series, plus half its trend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past

_SMOOTHING = (0.02, 1.0)
_LEAST_ROWS = 4
_PERIODS = 3  # least periods for a test of the season and for its classical decomposition
_ONE_SIDED_90 = 1.645  # an autocorrelation of more standard deviations than this shows a season


@dataclass(frozen=True)
class Theta(SeriesModel):
    """Theta method (Assimakopoulos and Nikolopoulos 2000), as exponential smoothing with drift.

    It equals simple exponential smoothing with a drift of half the slope of a fitted straight line
    (Hyndman and Billah 2003). The series is first seasonally adjusted by classical decomposition,
    if its autocorrelation at `period` (1: no season) is significant, or if `assumed`; fewer than
    three periods then have a profile fitted by least squares together with a line, otherwise none.
    """

    period: int
    assumed: bool = False

    @property
    def min_rows(self) -> int:  # type: ignore[override]
        """Least number of rows for a fit."""
        return max(_LEAST_ROWS, self.period + 2 if self.assumed else 0)

    def fit(self, history: History, seed: int = 0) -> FittedModel:
        """Learn the seasonal profile, slope and smoothing parameter of each column."""
        parts = [self._fit_column(column) for column in history.levels.T]
        profiles, slopes, smoothings = (np.array(part) for part in zip(*parts, strict=True))
        profiles = np.roll(profiles.T, history.first % self.period, axis=0)
        return FittedTheta(profiles, slopes, smoothings)

    def _fit_column(self, levels: Array) -> tuple[Array, float, float]:
        n_rows = len(levels)
        # dividing by the largest value first keeps squares in range
        size = max(np.abs(levels).max(), np.finfo(float).tiny)
        levels = levels / size
        profile = np.zeros(self.period)
        if self.assumed and n_rows < _PERIODS * self.period:
            profile = season_beside_line(levels, self.period)
        elif self.assumed or has_season(levels, self.period):
            profile = season_of(levels, self.period)
        rest = levels - profile[np.arange(n_rows) % self.period]
        slope = np.polyfit(np.arange(n_rows), rest, 1)[0]
        unit = (rest - rest[0]) / max(np.ptp(rest), np.finfo(float).tiny)

        def squares(smoothing: float) -> float:
            smooth = smoothed(unit, smoothing)
            return float(np.square(unit[1:] - smooth[:-1]).sum())

        found = minimize_scalar(squares, bounds=_SMOOTHING, method="bounded")
        return profile * size, float(slope * size), float(found.x)


@saved
@dataclass(frozen=True, eq=False)
class FittedTheta(FittedModel):
    """Seasonal profiles, (period, n_outputs), with slopes and smoothing parameters, (n_outputs,).

    A profile begins with the phase of row number 0.
    """

    profiles: Array
    slopes: Array
    smoothings: Array

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Continue the smoothed level of each origin with half the slope, and add the season."""
        check_enough_past(origins, 1)
        period, levels = len(self.profiles), history.levels
        seasonal = self.profiles[(history.first + np.arange(history.n_rows)) % period]
        rest = levels - seasonal
        smooth = np.column_stack(
            [smoothed(*column) for column in zip(rest.T, self.smoothings, strict=True)]
        )
        steps = np.arange(n_steps)
        # exponential smoothing of a line lags behind it at the beginning
        forgotten = 1 - (1 - self.smoothings) ** origins[:, None]
        drifts = self.slopes / 2 * (steps[:, None] + (forgotten / self.smoothings)[:, None])
        ahead = self.profiles[np.add.outer(history.first + origins, steps) % period]
        return smooth[origins - 1][:, None] + drifts + ahead


def smoothed(levels: Array, smoothing: float) -> Array:
    """Return levels after simple exponential smoothing, which starts from the first level."""
    from scipy.signal import lfilter  # a tenth of a second, which `import reservoir` saves

    start = [(1 - smoothing) * levels[0]]
    return lfilter([smoothing], [1, smoothing - 1], levels, zi=start)[0]


def has_season(levels: Array, period: int) -> bool:
    """Return whether the autocorrelation at lag `period` differs from 0 (Bartlett's bound, 90 %).

    The result is False for a period of 1, and for fewer rows than three periods.
    """
    if period < 2 or len(levels) < _PERIODS * period:
        return False
    rest = levels - levels.mean()
    products = np.array([rest[k:] @ rest[: len(rest) - k] for k in range(period + 1)])
    if products[0] <= 0:
        return False
    correlations = products / products[0]
    bound = np.sqrt((1 + 2 * np.square(correlations[1:period]).sum()) / len(rest))
    return bool(abs(correlations[period]) > _ONE_SIDED_90 * bound)


def season_of(levels: Array, period: int) -> Array:
    """Return each phase's mean deviation from a moving average over a period, centred at zero."""
    weights = np.ones(period + 1 - period % 2) / period
    if period % 2 == 0:
        weights[[0, -1]] /= 2
    trend = np.convolve(levels, weights, "valid")
    begin = (len(levels) - len(trend)) // 2
    rest = levels[begin : begin + len(trend)] - trend
    phases = (begin + np.arange(len(rest))) % period
    profile = np.array([rest[phases == k].mean() for k in range(period)])
    return profile - profile.mean()


def season_beside_line(levels: Array, period: int) -> Array:
    """Return each phase's level beside a straight line, by least squares, centred at zero.

    The slope of the line is found from the phases that are seen at least twice.
    """
    rows = np.arange(len(levels))
    phases = rows % period
    counts = np.bincount(phases, minlength=period)
    # within each phase
    apart = rows - (np.bincount(phases, rows) / counts)[phases]
    slope = apart @ levels / (apart @ apart)
    profile = np.bincount(phases, levels - slope * rows) / counts
    return profile - profile.mean()
