"""Whether a series follows a rule of its own, which networks can find, as flows and maps do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.loop_design import Trajectories
from reservoir.loops.network_bank import diagnose
from reservoir.series_models.recursive_ridge import Autoregression
from reservoir.series_models.series_data import SeriesData

_FEWEST = 60  # rows that tell
_MOST = 2000  # rows that are looked at
_LEARNED = 0.75  # part of the rows that the autoregression learns from
_CLEAR, _OPEN = 0.4, 1.05  # errors of networks by those of the autoregression
_NOISY = 0.3  # errors of a step, in standard deviations, from which nothing is found


class Rule(NamedTuple):
    """What was found.

    Attributes
    ----------
    followed : {"yes", "no", "open"}
        Whether networks on standardised levels say the next row much better than a linear
        autoregression of differences does; "open" if forecasts have to tell.
    of_networks, of_autoregression : float
        Root mean squared errors of one step in rows that were not fitted, in standard deviations.
    """

    followed: str
    of_networks: float
    of_autoregression: float


def look_for_rule(data: SeriesData, seed: int) -> Rule:
    """Compare small networks with a linear autoregression by one step."""
    history = data.history(log=False)
    rows = history.levels[-_MOST:]
    # a power of two: squares of sizes that a float holds may be more than it holds
    size = 2.0 ** np.frexp(np.abs(rows).max(axis=0))[1]
    spread = (rows / size).std(axis=0) * size
    if len(rows) < _FEWEST or not data.observed.all() or (spread <= 0).any():
        return Rule("no", np.inf, np.inf)
    standard = (rows - rows.mean(axis=0)) / spread
    known = data.known[: history.n_rows][-_MOST:]
    of_networks = diagnose(Trajectories([standard], [known]), seed).noise
    places = np.arange(int(_LEARNED * history.n_rows), history.n_rows)
    fitted = Autoregression().fit(history.until(int(places[0])), seed)
    away = (fitted.forecast(history, places, 1)[:, 0] - history.levels[places]) / spread
    of_lags = float(np.sqrt(np.square(away).mean()))
    joint = history.n_outputs > 1
    followed = _judged(of_networks, of_lags, seasonal=bool(data.seasons), joint=joint)
    return Rule(followed, of_networks, of_lags)


def _judged(of_networks: float, of_lags: float, *, seasonal: bool, joint: bool) -> str:
    """Return what the errors say; of several variables without a season forecasts tell."""
    if of_networks < _CLEAR * of_lags and of_networks <= _NOISY:
        return "yes"
    if seasonal:
        return "no"
    if joint:
        return "open"
    return "no" if of_networks > min(_NOISY, _OPEN * of_lags) else "open"


def mean_error(said: Array, followed: Array) -> float:
    """Return the mean absolute error over all outputs, each in units of what followed."""
    spread = np.nanstd(followed, axis=(0, 1))
    return float(np.nanmean(np.abs(said - followed) / np.where(spread > 0, spread, 1.0)))
