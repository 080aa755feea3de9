"""Autoregressions of levels and of first and second differences, weighted by their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.lags import Differences
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past
from reservoir.series_models.theta import has_season, season_of

_LAGS, _ROWS_PER_LAG = 6, 4  # at most 6 lags, and at least 4 rows for each
_PENALTY = 0.3  # of lag 1, in rows of mean size; k times as much for lag k
_NEVER = 1e9  # rows of zeros that exclude a lag or a mean
_MEANS = (1e-6, 10.0, _NEVER)  # rows of zeros that shrink the mean of differences of order 0, 1, 2
_LEAST = 1e-20  # mean square of standardised differences, below which they are rounding errors
_SHARPNESS = 15  # the weight of a model is proportional to its error to the power of -15
_EXACT = 1e-9  # errors of standardised levels that count as zero
_LEAST_SHARE = 0.01  # models with smaller weights are dropped
_FIRST, _SPARE = (
    0.4,
    4,
)  # part of the rows before the first origin, and their least excess over lags
_N_FITS = 8  # number of fits by which models are compared
_STEPS, _PART = 8, 5  # forecasts have at most 8 steps, and at most a fifth of the rows
_PER_HORIZON, _MOST_ORIGINS = 4, 150  # number of origins within a forecast, and in all
_MOST = 20.0  # greatest distance of a forecast from the mean, in standard deviations


@dataclass(frozen=True)
class ARI(SeriesModel):
    """Average of ARI(p, d) models: autoregressions of order p of differences of order d.

    There is a model for each p from 0 to at most 6, and d = 0, 1, 2. Lag k is shrunk by a ridge
    penalty proportional to k; levels have a mean, and first differences one that is shrunk to 0.
    Weights are mean absolute errors to the power of -15, over up to 8 steps from origins after 40 %
    of the rows. Columns are separate, seasonally adjusted as by `Theta` with `period` (1: no
    season).
    """

    period: int
    min_rows: int = 6
    cost: ClassVar[float] = 3.0

    def fit(self, history: History, seed: int = 0) -> FittedModel:
        """Learn seasonal profile, coefficients and weights of each column."""
        levels, observed = history.levels, history.observed
        profiles = np.column_stack([_profile_of(column, self.period) for column in levels.T])
        rest = levels - profiles[np.arange(len(levels)) % self.period]
        scale = Differences.of(rest, 0, observed)
        fits = [
            weighted_models(*column) for column in zip(scale.take(rest).T, observed.T, strict=True)
        ]
        coef, intercept, shares = (np.stack(part) for part in zip(*fits, strict=True))
        profiles = np.roll(profiles, history.first % self.period, axis=0)
        return FittedARI(profiles, scale, coef, intercept, shares)


@saved
@dataclass(frozen=True, eq=False)
class FittedARI(FittedModel):
    """Seasonal profiles, and models of standardised levels with their weights.

    `profiles`, (period, n_outputs), begin with the phase of row number 0. `coef`, (n_outputs,
    n_models, n_lags), are for the last levels, the latest first; `intercept` and `shares`, which
    add up to 1, are (n_outputs, n_models). `scale` standardises the seasonally adjusted levels.
    """

    profiles: Array
    scale: Differences
    coef: Array
    intercept: Array
    shares: Array

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Return the weighted mean of the forecasts of all models, and add the season."""
        n_lags, period = self.coef.shape[2], len(self.profiles)
        check_enough_past(origins, 1)
        seasonal = self.profiles[(history.first + np.arange(history.n_rows)) % period]
        levels = self.scale.take(history.levels - seasonal)
        found = np.empty((len(origins), n_steps, history.n_outputs))
        for j, shares in enumerate(self.shares):
            used = np.flatnonzero(shares)
            shape = (len(used), len(origins))
            coef = np.broadcast_to(self.coef[j, used, None], (*shape, n_lags))
            intercept = np.broadcast_to(self.intercept[j, used, None], shape)
            paths = continued(last_rows(levels[:, j], origins, n_lags), coef, intercept, n_steps)
            # the last bits of a matrix product would depend on the number of origins
            found[..., j] = (shares[used, None, None] * paths).sum(axis=0)
        ahead = self.profiles[np.add.outer(history.first + origins, np.arange(n_steps)) % period]
        return self.scale.undo(levels, origins, found) + ahead


def weighted_models(levels: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Fit all models to the standardised levels of a column, (n_rows,), and weight them.

    Returns the coefficients, (n_models, n_lags + 2), the intercepts, and the weights, whose sum is
    1; a weight that would be below 0.01 is 0.
    """
    n_rows = len(levels)
    n_lags = min(_LAGS, n_rows // _ROWS_PER_LAG)
    first = max(n_lags + _SPARE, int(_FIRST * n_rows))
    cuts = np.unique(np.linspace(first, n_rows - 1, _N_FITS).astype(int)).tolist()
    fits = [_models(levels, observed, n_lags, d, [*cuts, n_rows]) for d in range(len(_MEANS))]
    coef, intercept = (np.concatenate(part) for part in zip(*fits, strict=True))
    errors = _rolling_errors(levels, observed, cuts, coef, intercept)
    with np.errstate(under="ignore"):
        shares = (errors / errors.min()) ** -float(_SHARPNESS)
    shares = np.where(shares >= _LEAST_SHARE * shares.sum(), shares, 0.0)
    return coef[:, -1], intercept[:, -1], shares / shares.sum()


def _rolling_errors(
    levels: Array, observed: Array, cuts: Sequence[int], coef: Array, intercept: Array
) -> Array:
    """Return the mean absolute errors of forecasts by the models of each cut, (n_models,)."""
    n_rows = len(levels)
    n_steps = min(_STEPS, n_rows // _PART)
    stride = max(1, n_steps // _PER_HORIZON, (n_rows - cuts[0]) // _MOST_ORIGINS)
    origins = np.arange(cuts[0], n_rows, stride)
    # an origin uses the models of the last cut that is not after it
    at = np.searchsorted(cuts, origins, side="right") - 1
    past = last_rows(levels, origins, coef.shape[2])
    paths = continued(past, coef[:, at], intercept[:, at], n_steps)
    actual = np.concatenate([np.where(observed, levels, np.nan), np.full(n_steps, np.nan)])
    followed = actual[np.add.outer(origins, np.arange(n_steps))]
    sums = np.nansum(np.abs(paths - followed), axis=(1, 2))
    errors: Array = np.maximum(sums / max(np.isfinite(followed).sum(), 1), _EXACT)
    return errors


def _models(
    levels: Array, observed: Array, n_lags: int, d: int, cuts: Sequence[int]
) -> tuple[Array, Array]:
    """Fit models of orders 0 to `n_lags` of differences of order `d` to the rows before each cut.

    Returns the coefficients of the last levels, (n_lags + 1, n_cuts, n_lags + 2), and the
    intercepts.
    """
    rows, seen = np.diff(levels, d), observed[d:].copy()
    for k in range(1, d + 1):
        seen &= observed[d - k : -k]
    # sums of products of the lags and 1 over the rows before each cut
    lags = [rows[n_lags - k : len(rows) - k] for k in range(1, n_lags + 1)]
    features = np.column_stack([*lags, np.ones(len(rows) - n_lags)])
    used = features * seen[n_lags:, None]
    both = np.column_stack([features, rows[n_lags:]])
    bounds = [0, *(cut - d - n_lags for cut in cuts)]
    sums = np.cumsum([used[a:b].T @ both[a:b] for a, b in pairwise(bounds)], axis=0)
    gram, cross = sums[..., :-1], sums[..., -1:]
    # penalties of the orders, (n_orders, n_features), in rows of the features' mean square
    penalties = _penalties(n_lags, d)
    squares = np.trace(gram[:, :-1, :-1], axis1=1, axis2=2) / n_lags
    size = np.ones((len(cuts), n_lags + 1))
    size[:, :-1] = np.maximum(squares / np.maximum(gram[:, -1, -1], 1.0), _LEAST)[:, None]
    diagonals = (penalties[:, None] * size)[..., None] * np.eye(n_lags + 1)
    solved = np.linalg.solve(gram + diagonals, np.broadcast_to(cross, (*diagonals.shape[:-1], 1)))
    solved = np.where(penalties[:, None] < _NEVER, solved[..., 0], 0.0)
    return _coefficients_of_levels(solved[..., :-1], d), solved[..., -1]


def _penalties(n_lags: int, d: int) -> Array:
    """Return penalties of lags and mean for orders 0 to `n_lags`, (n_lags + 1, n_lags + 1)."""
    order, lag = np.ogrid[: n_lags + 1, 1 : n_lags + 1]
    of_lags = np.where(lag <= order, _PENALTY * lag, _NEVER)
    return np.hstack([of_lags, np.full((n_lags + 1, 1), _MEANS[d])])


def _coefficients_of_levels(coef: Array, d: int) -> Array:
    """Return coefficients of the last levels, (..., n_lags + 2), from those of differences."""
    shape = (*coef.shape[:-1], 1)
    polynomial = np.concatenate([np.ones(shape), -coef, np.zeros((*shape[:-1], 2))], axis=-1)
    for _ in range(d):
        polynomial[..., 1:] -= polynomial[..., :-1].copy()
    found: Array = -polynomial[..., 1:]
    return found


def last_rows(levels: Array, origins: Array, n_lags: int) -> Array:
    """Return the last levels before each origin, (n_origins, n_lags), the latest first.

    The first level is used for the rows before it.
    """
    return levels[np.maximum(np.subtract.outer(origins, np.arange(1, n_lags + 1)), 0)]


def continued(past: Array, coef: Array, intercept: Array, n_steps: int) -> Array:
    """Run models in closed loop; return levels, (n_models, n_origins, n_steps).

    `past` are the standardised levels before each origin, (n_origins, n_lags), the latest first;
    `coef` is (n_models, n_origins, n_lags). A forecast that is 20 standard deviations from the mean
    remains there, so that no unstable model overflows.
    """
    n_lags = past.shape[1]
    # the latest level is the last column of a window that moves to the right
    rows = np.empty((*intercept.shape, n_lags + n_steps))
    rows[..., :n_lags] = past[:, ::-1]
    backwards = coef[..., ::-1]
    for k in range(n_steps):
        level = (backwards * rows[..., k : k + n_lags]).sum(axis=-1) + intercept
        level = level.clip(-_MOST, _MOST)
        if k:
            last = rows[..., n_lags + k - 1]
            level = np.where(np.abs(last) < _MOST, level, last)
        rows[..., n_lags + k] = level
    return rows[..., n_lags:]


def _profile_of(levels: Array, period: int) -> Array:
    """Return the seasonal profile of a column, (period,); zeros if it has no season."""
    # dividing by the largest value first keeps squares in range
    size = max(np.abs(levels).max(), np.finfo(float).tiny)
    if not has_season(levels / size, period):
        return np.zeros(period)
    return season_of(levels / size, period) * size
