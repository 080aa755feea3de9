"""Forecasts of intermittent demand, for series that are zero in most rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past

_SMOOTHINGS = (0.0, 0.02, 0.05)  # greater ones follow chance clusters of demands


@dataclass(frozen=True)
class IntermittentDemand(SeriesModel):
    """Method of Teunter, Syntetos and Babai (2011): probability of a demand times its mean size.

    The probability is updated in every observed row and the size in rows with a demand, so that
    forecasts decline when demands cease, unlike those of Croston's method. Both are exponentially
    weighted means with the same smoothing parameter. Their weights are normalised, so that there
    are no starting values, and with a parameter of 0 the forecast is the mean of all earlier rows.
    """

    def fit(self, history: History, seed: int = 0) -> FittedModel:
        """Choose the smoothing parameter of each column by its squared one-step errors."""
        columns = zip(history.levels.T, history.observed.T, strict=True)
        smoothings = [_best_smoothing(levels[observed]) for levels, observed in columns]
        return FittedIntermittent(np.array(smoothings))


@saved
@dataclass(frozen=True, eq=False)
class FittedIntermittent(FittedModel):
    """Smoothing parameters, (n_outputs,)."""

    smoothings: Array

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Repeat the rate before each origin."""
        check_enough_past(origins, 1)
        found = np.empty((len(origins), n_steps, history.n_outputs))
        columns = zip(history.levels.T, history.observed.T, self.smoothings.tolist(), strict=True)
        for j, (levels, observed, smoothing) in enumerate(columns):
            # values that fill gaps are no demands: only observed rows are counted
            n_observed = np.concatenate([[0], np.cumsum(observed)])[origins]
            rates = rates_of(levels[observed], smoothing)
            rates[0] = levels[0]  # before the first value, gaps repeat it
            found[:, :, j] = rates[n_observed, None]
        return found


def rates_of(demands: Array, smoothing: float) -> Array:
    """Return the expected demand per row after 0, 1, ... rows, (n_rows + 1,); at first 0.

    Each weight is `1 - smoothing` times the weight of the next row, or of the next demand.
    """
    occurs = demands != 0
    probabilities = _weighted_means(occurs.astype(float), smoothing)
    sizes = _weighted_means(demands[occurs], smoothing)
    n_demands = np.concatenate([[0], np.cumsum(occurs)])
    return probabilities * sizes[n_demands]


def _weighted_means(values: Array, smoothing: float) -> Array:
    """Return exponentially weighted means of the first 0, 1, ... values; at first 0."""
    from scipy.signal import lfilter  # a tenth of a second, which `import reservoir` saves

    # dividing by the largest value first keeps sums in range
    size = max(np.abs(values).max(initial=0.0), np.finfo(float).tiny)
    pairs = np.stack([values / size, np.ones(len(values))])
    sums, weights = lfilter([1.0], [1.0, smoothing - 1.0], pairs)
    return np.concatenate([[0.0], sums / weights * size])


def _best_smoothing(demands: Array) -> float:
    """Return the parameter with the least sum of squared one-step errors, the smallest of equals.

    The first row is not forecast.
    """
    size = max(np.abs(demands).max(initial=0.0), np.finfo(float).tiny)
    unit = demands / size
    squares = [np.square(unit[1:] - rates_of(unit, each)[1:-1]).sum() for each in _SMOOTHINGS]
    return _SMOOTHINGS[int(np.argmin(squares))]
