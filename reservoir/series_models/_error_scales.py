"""Sizes of forecast errors by horizon: their scale, logarithmic or not, and its growth."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import isotonic_regression

from reservoir._typing import Array

_GROWTH = 0.5  # exponent of a random walk: the prior of the growth beyond what was validated
_PRIOR_WEIGHT = 0.1  # in squared logarithms of horizons: as much as two or three horizons


def log_columns(point: Array, followed: Array, positive: Array) -> Array:
    """Return the columns whose errors are of more even size as ratios than as differences.

    Parameters
    ----------
    point, followed : array of shape (n_origins, n_steps, n_outputs)
        Forecasts, and the actual values: NaN where unknown.
    positive : array of bool of shape (n_outputs,)
        Columns whose values are all positive. Ratios also require positive forecasts.

    Returns
    -------
    array of bool of shape (n_outputs,)
        True if the values have the greater likelihood with errors of their logarithms, under a
        Laplace distribution with a width for each horizon.
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
    """Return the sum over values of the logarithm of their horizon's mean absolute error."""
    counts = seen.sum(axis=0)
    sizes = np.abs(np.where(seen, errors, 0.0)).sum(axis=0) / np.maximum(counts, 1)
    return float(counts @ np.log(np.maximum(sizes, np.finfo(float).tiny)))


def sizes_by_horizon(errors: Array, shares: Array) -> tuple[Array, Array]:
    """Return the mean absolute error by horizon, and its weight.

    Parameters
    ----------
    errors : array of shape (n_origins, n_steps)
        NaN where unknown; known for at least one horizon.
    shares : array of shape (n_origins,)
        Weights of origins, positive.

    Returns
    -------
    sizes, weights : array of shape (n_validated,)
        Up to the last horizon for which an error is known; weights may be 0 before it.
    """
    known = np.isfinite(errors)
    weights = shares @ known
    n_validated = int(np.flatnonzero(weights)[-1]) + 1
    sums = shares @ np.abs(np.where(known, errors, 0.0))
    return (sums / np.where(weights > 0, weights, 1.0))[:n_validated], weights[:n_validated]


def rising(sizes: Array, weights: Array) -> Array:
    """Return the non-decreasing scales nearest to sizes (isotonic regression)."""
    seen = np.flatnonzero(weights)
    fitted = isotonic_regression(sizes[seen], sample_weight=weights[seen])
    scales: Array = np.interp(np.arange(len(sizes)), seen, fitted)
    return scales


def growth_of(sizes: Array, weights: Array) -> float:
    """Return the exponent, in [0, 1], of a power of the horizon fitted to the last sizes.

    Fitted to the logarithms of the last two thirds, with the exponent of a random walk as prior.
    Sizes are used instead of scales, because isotonic regression turns noise into growth.
    """
    n_steps = len(sizes)
    last = np.arange(max(n_steps // 3, 1), n_steps + 1)
    last = last[(weights[last - 1] > 0) & (sizes[last - 1] > 0)]
    if len(last) == 0:
        return _GROWTH
    horizons, logs = np.log(last), np.log(sizes[last - 1])
    horizons = horizons - horizons.mean()
    slope = (horizons @ logs + _PRIOR_WEIGHT * _GROWTH) / (horizons @ horizons + _PRIOR_WEIGHT)
    return float(np.clip(slope, 0.0, 1.0))


def extended(scales: Array, growth: float, n_steps: int) -> Array:
    """Return scales for `n_steps`: the given ones, then a power of the horizon."""
    n_known = len(scales)
    beyond = np.arange(n_known + 1, n_steps + 1) / n_known
    return np.concatenate([scales, scales[-1] * beyond**growth])[:n_steps]
