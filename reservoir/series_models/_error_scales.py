"""Scales of forecast errors by horizon and phase, for plain or logarithmic errors; their growth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats
from sklearn.isotonic import isotonic_regression

from reservoir._typing import Array

# Prior of the growth beyond validated horizons, and its weight in squared logarithms of horizons.
WALKING = (0.5, 0.1)  # exponent of a random walk, with the weight of two or three horizons
GROWING = (1.0, 2.0)  # errors of trends, of which a few validated horizons show little
_GROWTH = 0.75  # exponent of the growth within validated horizons towards which scales are widened
_WIDENED = 1.0  # number of windows at which it has half the weight
_LEAST_PERIODS = 4  # number of validated periods of a season from which its phases are compared
_LEVEL = 0.001  # probability, were phases alike, below which each has a scale of its own
_ALIKE = 2.0  # number of periods at which the scale of a phase is shrunk by half
_LEAST_SCALE = 0.05  # least scale of a phase before it is shrunk, relative to all phases
_SHARE_OF_FIRST = 0.5  # weight of the errors at the first origin; the weight at the last one is 1


def shares_of_origins(origins: Array) -> Array:
    """Return the weights of errors at ascending origins, which rise to 1 at the last one."""
    shares: Array = _SHARE_OF_FIRST ** ((origins[-1] - origins) / max(np.ptp(origins), 1))
    return shares


def log_columns(point: Array, followed: Array, positive: Array) -> Array:
    """Return which columns' errors vary less in size as ratios than as differences, (n_outputs,).

    That is, the likelihood of the values is greater with errors of their logarithms, under a
    Laplace distribution with a width for each horizon. `point` and `followed`, NaN where unknown,
    are (n_origins, n_steps, n_outputs). Values (`positive`) and forecasts must be positive for
    ratios.
    """
    known = np.isfinite(followed)
    able = positive & np.all(point > 0, axis=(0, 1))
    able &= np.all(~known | (followed > 0), axis=(0, 1))
    chosen = np.zeros(len(positive), dtype=bool)
    for j in np.flatnonzero(able):
        seen = known[..., j]
        safe = np.where(seen, followed[..., j], point[..., j])
        logs = np.log(safe)
        plain = _log_sizes(safe - point[..., j], seen)
        ratios = _log_sizes(logs - np.log(point[..., j]), seen)
        chosen[j] = ratios + logs[seen].sum() < plain
    return chosen


def _log_sizes(errors: Array, seen: Array) -> float:
    """Return the sum, over all values, of the logarithm of their horizon's mean absolute error."""
    counts = seen.sum(axis=0)
    sizes = np.abs(np.where(seen, errors, 0.0)).sum(axis=0) / np.maximum(counts, 1)
    return float(counts @ np.log(np.maximum(sizes, np.finfo(float).tiny)))


def sizes_by_horizon(errors: Array, shares: Array) -> tuple[Array, Array]:
    """Return the mean absolute error by horizon, and its weight, both (n_validated,).

    Of the `errors`, (n_origins, n_steps), NaN where unknown, at least one must be known; `shares`
    are positive weights of origins. Results end at the last horizon with a known error; weights may
    be 0.
    """
    known = np.isfinite(errors)
    weights = shares @ known
    n_validated = int(np.flatnonzero(weights)[-1]) + 1
    sums = shares @ np.abs(np.where(known, errors, 0.0))
    return (sums / np.where(weights > 0, weights, 1.0))[:n_validated], weights[:n_validated]


def rising(sizes: Array, weights: Array) -> Array:
    """Return the non-decreasing scales that are nearest to the sizes (isotonic regression)."""
    seen = np.flatnonzero(weights)
    fitted = isotonic_regression(sizes[seen], sample_weight=weights[seen])
    scales: Array = np.interp(np.arange(len(sizes)), seen, fitted)
    return scales


def widened(scales: Array, n_windows: float) -> Array:
    """Return scales that are widened, in logarithms, towards a growth with the horizon to the .75.

    The growth begins at the first scale and has the weight of one window. No scale is lowered.
    """
    growing = scales[0] * np.arange(1, len(scales) + 1) ** _GROWTH
    trust = n_windows / (n_windows + _WIDENED)
    found: Array = np.maximum(scales, scales**trust * growing ** (1 - trust))
    return found


def scales_by_phase(relative: Array, origins: Array, seasons: Sequence[float]) -> Array:
    """Return the scales of the phases of a season, from row 0 on, relative to all rows; else [1].

    `relative`, (n_origins, n_steps), are errors divided by their horizon's scale, NaN where
    unknown. Of each row the mean absolute error counts. Of the seasons with enough periods, the one
    with the clearest differences (test of Kruskal and Wallis) is used if there are any; the scales
    of its phases are shrunk, in logarithms, to 1, which has the weight of two periods.
    """
    known = np.isfinite(relative)
    every = np.add.outer(origins, np.arange(relative.shape[1]))[known]
    counts = np.bincount(every)
    rows = np.flatnonzero(counts)
    sizes = np.bincount(every, np.abs(relative[known]))[rows] / counts[rows]
    level, found = _LEVEL, np.ones(1)
    for period in map(round, seasons):
        if len(rows) < _LEAST_PERIODS * period or np.ptp(sizes) == 0:
            continue
        phases = rows % period
        n_rows = np.bincount(phases, minlength=period)
        groups = [sizes[phases == phase] for phase in np.flatnonzero(n_rows)]
        probability = float(stats.kruskal(*groups).pvalue) if len(groups) > 1 else 1.0
        if probability < level:
            means = np.bincount(phases, sizes, period) / np.maximum(n_rows, 1) / sizes.mean()
            trust = n_rows / (n_rows + _ALIKE)
            level, found = probability, np.maximum(means, _LEAST_SCALE) ** trust
    return found


def growth_of(sizes: Array, weights: Array, prior: tuple[float, float] = WALKING) -> float:
    """Return the exponent, in [0, 1], of a power of the horizon fitted to the last sizes.

    It is fitted to the logarithms of the last two thirds of the sizes, with an exponent and its
    weight as `prior`. Sizes are used instead of scales, because isotonic regression turns noise
    into growth.
    """
    exponent, weight = prior
    n_steps = len(sizes)
    last = np.arange(max(n_steps // 3, 1), n_steps + 1)
    last = last[(weights[last - 1] > 0) & (sizes[last - 1] > 0)]
    if len(last) == 0:
        return exponent
    horizons, logs = np.log(last), np.log(sizes[last - 1])
    horizons = horizons - horizons.mean()
    slope = (horizons @ logs + weight * exponent) / (horizons @ horizons + weight)
    return float(np.clip(slope, 0.0, 1.0))


def extended(scales: Array, growth: float, n_steps: int) -> Array:
    """Return `scales`, extended to `n_steps` horizons by a power of the horizon."""
    n_known = len(scales)
    beyond = np.arange(n_known + 1, n_steps + 1) / n_known
    return np.concatenate([scales, scales[-1] * beyond**growth])[:n_steps]
