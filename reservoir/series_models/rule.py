"""Test of whether a series follows a dynamical law that networks can learn, such as a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.loops.loop_design import Trajectories
from reservoir.loops.network_bank import diagnose
from reservoir.series_models.recursive_ridge import Autoregression
from reservoir.series_models.series_data import SeriesData, spread_of

_FEWEST = 60  # least number of rows for the test
_MOST = 2000  # largest number of rows that are used
_LEARNED = 0.75  # fraction of the rows to which the autoregression is fitted
# bounds on the ratio of the networks' error to the autoregression's
_CLEAR, _LIKELY, _OPEN = 0.4, 0.75, 1.05
_NOISY = 0.3  # one-step error, in standard deviations, above which no law is assumed
_HORIZONS = (8, 32, 128)  # numbers of steps of longer forecasts
_WINDOWS = 3  # least number of these forecasts that fit into the held-out rows one after another
_BLOCKS = 8  # largest number of blocks of origins, whose differences are nearly independent
_LEAST_ERROR = 1e-3  # in standard deviations: smaller errors of longer forecasts are alike
# bounds on the ratio of the errors of longer forecasts, and on its logarithm in standard errors
_NEEDED = {"likely": (1.0, 1.0), "open": (0.8, 2.0)}


class Rule(NamedTuple):
    """Whether a series follows a dynamical law, by RMSEs of one step in standard deviations.

    `followed` is "yes" if networks on standardised levels predict held-out rows much better than a
    linear autoregression of differences, else "no"; "likely" or "open" if only longer forecasts
    decide.
    """

    followed: str
    of_networks: float
    of_autoregression: float


def look_for_rule(data: SeriesData, seed: int) -> Rule:
    """Compare small networks with a linear autoregression by their one-step errors."""
    history = data.history(log=False)
    rows = history.levels[-_MOST:]
    spread = spread_of(rows)
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
    """Return the result; for several variables without a season it is never "no"."""
    if of_networks < _CLEAR * of_lags and of_networks <= _NOISY:
        return "yes"
    if seasonal:
        return "no"
    if of_networks < _LIKELY * of_lags and of_networks <= _NOISY:
        return "likely"
    if joint:
        return "open"
    return "no" if of_networks > min(_NOISY, _OPEN * of_lags) else "open"


def horizons_for(horizon: int | None, n_held_out: int) -> list[int]:
    """Return the numbers of steps over which forecasts of held-out rows are compared, ascending.

    Without a given horizon there are up to three. None is longer than a third of the rows: a single
    stretch of a random walk would decide over longer ones.
    """
    most = max(1, n_held_out // _WINDOWS)
    wanted = _HORIZONS if horizon is None else (horizon,)
    return sorted({min(n_steps, most) for n_steps in wanted})


def confirms(
    predicted: Array, others: Array, followed: Array, horizons: Sequence[int], assumed: str
) -> bool:
    """Whether forecasts are better than others over at least one of the horizons.

    The geometric mean over origins of the ratio of both errors must be less than four fifths, by
    two standard errors of means over blocks of origins; if a law is "likely", less than 1 by one
    standard error. A geometric mean, since the few largest errors of chaotic systems would decide
    otherwise. Arrays are (n_origins, n_steps, n_outputs); `followed` is NaN after the end, not at
    the first step.
    """
    spread = spread_of(followed)
    spread = np.where(spread > 0, spread, 1.0)
    errors = np.stack([np.abs(each - followed) / spread for each in (predicted, others)])
    for n_steps in horizons:
        means = np.nanmean(errors[:, :, :n_steps], axis=(2, 3))
        of_predicted, of_others = np.log(np.maximum(means, _LEAST_ERROR))
        if _is_clear(of_others - of_predicted, *_NEEDED[assumed]):
            return True
    return False


def _is_clear(advantages: Array, ratio: float, n_errors: float) -> bool:
    """Whether logarithms of ratios, one for each origin, are clearly positive."""
    blocks = np.array_split(advantages, min(_BLOCKS, len(advantages)))
    means = np.array([block.mean() for block in blocks])
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.inf
    return bool(advantages.mean() > max(-np.log(ratio), n_errors * error))
