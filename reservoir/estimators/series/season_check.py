"""A warning if a series without dates has a season that its models were not told."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level
from reservoir.estimators.series.fits import Settings
from reservoir.series_models.ensemble import Learned, learn
from reservoir.series_models.series_data import SeriesData

_FEWEST = 40  # rows; in fewer, noise seems to repeat
_PERIODS = 4  # least number of periods
_MOST = 20_000  # rows that are looked at, the last ones
_LONGEST = 400  # rows of the longest period
_EXPLAINED = 0.6  # least share of the variance of differences that the other periods explain
_GOOD = 0.1  # error, in standard deviations, that needs no season
_WORTH = 0.75  # largest error with the season, relative to the error without it


def warn_of_season(which: str, data: SeriesData, learned: Learned, settings: Settings) -> None:
    """Warn if models with a season forecast held-out rows of a series clearly better.

    The bounds were chosen on generated series, so that random walks, white noise and
    autoregressions, also with pseudo-cycles, do not cause the warning.

    Parameters
    ----------
    which : str
        Name of the series in messages.
    data : SeriesData
        The series, without seasons.
    learned : Learned
        Its models, and their forecasts of held-out rows.
    settings : Settings
    """
    period, explained = period_of(data.values)
    if data.n_rows < _FEWEST or explained < _EXPLAINED:
        return
    followed = learned.rolling.followed
    seasonal = learn(
        replace(data, seasons=(float(period),)),
        n_networks=settings.n_networks,
        n_steps=followed.shape[1],
        widths=settings.widths,
        seed=settings.seed,
        report=lambda results, costs, what, **options: results,
    )
    scale = np.std(data.values, axis=0)
    scale[scale == 0] = 1.0
    # with four periods or more, the season does not change the origins of forecasts
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
    """Return the period that explains most of the differences between consecutive rows.

    Parameters
    ----------
    values : array of shape (n_rows, n_outputs)

    Returns
    -------
    period : int
    explained : float
        Share of the variance of differences that is explained by the mean of the same phase in all
        other periods, in the column where it is largest; minus infinity for short series.
    """
    values = values[-_MOST:]
    differences = np.diff(values, axis=0)
    best = (1, -np.inf)
    for period in range(2, min(_LONGEST, len(values) // _PERIODS) + 1):
        n_periods = len(differences) // period
        rows = differences[len(differences) - n_periods * period :]
        rows = (rows - rows.mean(axis=0)).reshape(n_periods, period, -1)
        squares = (rows**2).sum(axis=(0, 1))
        # what is left of a row is known from its difference from the mean of all periods
        left = ((rows - rows.mean(axis=0)) ** 2).sum(axis=(0, 1))
        left *= (n_periods / (n_periods - 1)) ** 2
        shares = 1 - left[squares > 0] / squares[squares > 0]
        best = max(best, (period, shares.max(initial=-np.inf)), key=lambda each: each[1])
    return best
