"""Test of whether a series follows a dynamical law that networks can learn, such as a map."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.loop_design import Trajectories
from reservoir.loops.network_bank import diagnose
from reservoir.series_models.recursive_ridge import Autoregression
from reservoir.series_models.series_data import SeriesData

_FEWEST = 60  # least number of rows for the test
_MOST = 2000  # largest number of rows that are used
_LEARNED = 0.75  # fraction of the rows to which the autoregression is fitted
_CLEAR, _OPEN = 0.4, 1.05  # bounds on the ratio of the networks' error to the autoregression's
_NOISY = 0.3  # one-step error, in standard deviations, above which no law is assumed


class Rule(NamedTuple):
    """Result of the test of whether a series follows a dynamical law.

    Attributes
    ----------
    followed : {"yes", "no", "open"}
        Whether networks on standardised levels predict the next row much better than a linear
        autoregression of differences; "open" if only longer forecasts can decide.
    of_networks, of_autoregression : float
        Root mean squared one-step errors of both on held-out rows, in standard deviations.
    """

    followed: str
    of_networks: float
    of_autoregression: float


def look_for_rule(data: SeriesData, seed: int) -> Rule:
    """Compare small networks with a linear autoregression by their one-step errors."""
    history = data.history(log=False)
    rows = history.levels[-_MOST:]
    # dividing by a power of two is exact, and keeps squares in range
    size = 2.0 ** np.frexp(np.abs(rows).max(axis=0))[1]
    spread = (rows / size).std(axis=0) * size
    if len(rows) < _FEWEST or not data.observed.all() or (spread <= 0).any():
        return Rule("no", np.inf, np.inf)
    standard = (rows - rows.mean(axis=0)) / spread
    known = data.known[: history.n_rows][-_MOST:]
    of_networks = diagnose(Trajectories([standard], [known]), seed).noise
    origins = np.arange(int(_LEARNED * history.n_rows), history.n_rows)
    fitted = Autoregression().fit(history.until(int(origins[0])), seed)
    errors = (fitted.forecast(history, origins, 1)[:, 0] - history.levels[origins]) / spread
    of_lags = float(np.sqrt(np.square(errors).mean()))
    joint = history.n_outputs > 1
    followed = _judged(of_networks, of_lags, seasonal=bool(data.seasons), joint=joint)
    return Rule(followed, of_networks, of_lags)


def _judged(of_networks: float, of_lags: float, *, seasonal: bool, joint: bool) -> str:
    """Return the result; for several variables without a season it is "yes" or "open"."""
    if of_networks < _CLEAR * of_lags and of_networks <= _NOISY:
        return "yes"
    if seasonal:
        return "no"
    if joint:
        return "open"
    return "no" if of_networks > min(_NOISY, _OPEN * of_lags) else "open"


def mean_error(predicted: Array, followed: Array) -> float:
    """Return the mean absolute error, in units of the actual values' standard deviations."""
    spread = np.nanstd(followed, axis=(0, 1))
    return float(np.nanmean(np.abs(predicted - followed) / np.where(spread > 0, spread, 1.0)))
