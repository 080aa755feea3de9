"""A warning if a series without dates has a season that its models were not told."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.estimators.reporting import not_reported
from reservoir.estimators.series.fits import Settings
from reservoir.series_models.ensemble import Learned
from reservoir.series_models.series_data import SeriesData, spread_of

_FEWEST = 40  # rows; in fewer, noise seems to repeat
_PERIODS = 5  # least number of periods
_MOST = 20_000  # rows that are looked at, the last ones
_LONGEST = 400  # rows of the longest period
_EXPLAINED = 0.7  # least share of the variance of deviations that the other periods explain
_NEARLY = 0.02  # a shorter period is preferred to one that explains so much more
_GOOD = 0.1  # error, in standard deviations, that needs no season
_WORTH = 0.75  # largest error with the season, relative to the error without it


def warn_of_season(which: str, data: SeriesData, learned: Learned, settings: Settings) -> None:
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
    if without > _GOOD and with_season < _WORTH * without:
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
