"""The mean of all rows, which is the best forecast of independent values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats

from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.intermittent import FittedIntermittent
from reservoir.series_models.model import FittedModel, SeriesModel
from reservoir.series_models.series_data import SeriesData, seen_seasons

_LAGS, _ROWS_PER_LAG = 10, 5
_LEAST_ROWS = 20
_LEAST_PAIRS = 30  # least number of pairs of rows a season apart to test for the season
_LEVEL = 0.05


@dataclass(frozen=True)
class MeanOfRows(SeriesModel):
    """Mean of all observed rows before each origin.

    It is tried only on series whose rows may be independent. There the other models follow the
    noise, so the weight of the mean counts e^3 times.
    """

    favour: ClassVar[float] = float(np.exp(3))

    def fit(self, history: History, seed: int = 0) -> FittedModel:
        """Return the model, which has nothing to learn."""
        # without smoothing, the expected demand per row is the mean of all rows before
        return FittedIntermittent(np.zeros(history.n_outputs))


def may_be_independent(data: SeriesData) -> bool:
    """Return whether no column shows that its rows depend on each other.

    The test is that of Ljung and Box (1978) for ranks, at a level of 5 %, with lags 1 to 10 (at
    most a fifth of the number of rows) and the lag of each season. With fewer than 20 rows, or
    fewer than 30 rows beyond one period of the longest season, the result is False.
    """
    n_rows = data.n_rows
    seasons = {round(season) for season in seen_seasons(n_rows, data.seasons)}
    if n_rows < max([_LEAST_ROWS, *(season + _LEAST_PAIRS for season in seasons)]):
        return False
    lags = sorted(seasons.union(range(1, min(_LAGS, n_rows // _ROWS_PER_LAG) + 1)))
    columns = zip(data.values.T, data.observed.T, strict=True)
    return all(_p_value(column[seen], seen, lags) > _LEVEL for column, seen in columns)


def _p_value(levels: Array, seen: Array, lags: Sequence[int]) -> float:
    """Return the p-value of the test for the observed `levels` of a column; 0 if all are equal."""
    # ranks, because beside one large outlier all other values seem to be equal
    ranks, rest = stats.rankdata(levels), np.zeros(len(seen))
    rest[seen] = ranks - ranks.mean()
    n_seen, squares = len(levels), rest @ rest
    if squares == 0:
        return 0.0
    correlations = np.array([rest[k:] @ rest[:-k] for k in lags]) / squares
    n_pairs = np.array([(seen[k:] & seen[:-k]).sum() for k in lags])
    terms = np.square(correlations[n_pairs > 0]) / n_pairs[n_pairs > 0]
    return float(stats.chi2.sf(n_seen * (n_seen + 2) * terms.sum(), len(terms)))
