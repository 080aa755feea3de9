"""Rolling origins: forecasts of held-out rows by several models, and the weights of an average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reservoir._typing import Array, ArrayLike, Report
from reservoir.series_models._error_scales import shares_of_origins
from reservoir.series_models.candidates import Candidate, costs_of
from reservoir.series_models.recursive_ridge import LoopNetwork
from reservoir.series_models.series_data import Bounds, SeriesData, origins_of
from reservoir.series_models.side_by_side import roll_loops

_FEWEST_FITS = 3  # least number of fits to compute weights from all fits but one
_EXACT = 1e-12  # errors, relative to the values, that count as rounding errors
_WORST = 1e100  # largest error relative to the best model
_LEAST = 0.05  # least error at a horizon, relative to the mean error of the best model
# Weights are proportional to errors to the power of minus 4 + 1.5 * (ln(n_windows) - 2).
_POWER, _MORE, _LOG_WINDOWS = 4.0, 1.5, 2.0
_POWERS = (0.5, 20.0)  # least and greatest power


@dataclass(frozen=True, eq=False)
class RollingForecasts:
    """Forecasts of several models from rolling origins, and the actual values.

    An origin is its number of known rows. `predicted`, (n_models, n_origins, n_steps, n_outputs),
    is NaN if a model needs more rows; `followed`, (n_origins, n_steps, n_outputs), is NaN where no
    value was observed. Errors of `intermittent` outputs depend on the sum of each forecast, too.
    """

    origins: Array
    predicted: Array
    followed: Array
    intermittent: Array | None = None

    @property
    def n_windows(self) -> float:
        """Number of rows with a known value after an origin, divided by the number of steps."""
        n_steps = self.followed.shape[1]
        known = np.isfinite(self.followed).any(axis=2)
        return len(np.unique(np.add.outer(self.origins, np.arange(n_steps))[known])) / n_steps

    def errors(self, *, typical: bool = False) -> Array:
        """Return the error of each model, relative to the best model, (n_models,).

        It is the mean absolute error, for each output divided by that of the best model for it;
        infinite for a model that could not be fitted. `typical` errors are the square of the mean
        root of absolute errors at each horizon, in which the first origin has half the weight of
        the last one, and their geometric mean over horizons, each at least a twentieth of the best
        model's mean absolute error. Those of intermittent outputs, least if all forecasts are zero,
        are multiplied by the root mean squared errors of the sums of forecasts, which are least if
        these sums are unbiased.
        """
        fitted: Array = np.all(np.isfinite(self.predicted), axis=(1, 2, 3))
        relative = np.full(len(fitted), np.inf)
        if not fitted.any():
            return relative
        errors = self.predicted[fitted] - self.followed
        counts = np.maximum(np.isfinite(self.followed).sum(axis=(0, 1)), 1)
        # rounding errors count as zero
        size = np.nansum(np.abs(self.followed), axis=(0, 1)) / counts
        none = np.maximum(_EXACT * size, np.finfo(float).tiny)
        means = np.maximum(np.nansum(np.abs(errors), axis=(1, 2)) / counts, none)
        each = _to_best(self._typical(errors, means.min(axis=0)) if typical else means)
        if self.intermittent is not None and self.intermittent.any():
            of_sums = np.maximum(_root_mean_squares(np.nansum(errors, axis=2)), none)
            products = _to_best(means) * _to_best(of_sums)
            each = _to_best(np.where(self.intermittent, products, each))
        relative[fitted] = each.mean(axis=1)
        return relative

    def _typical(self, errors: Array, best: Array) -> Array:
        """Return errors of models as `errors` with `typical` does, (n_models, n_outputs).

        `best`, (n_outputs,), is the mean absolute error of the best model.
        """
        shares = shares_of_origins(self.origins)
        weights = np.tensordot(shares, np.isfinite(self.followed), 1)
        roots = np.tensordot(shares, np.sqrt(np.nan_to_num(np.abs(errors))), (0, 1))
        sizes = np.square(roots / np.where(weights > 0, weights, 1.0))
        logs = np.where(weights > 0, np.log(np.maximum(sizes, _LEAST * best)), 0.0)
        typical: Array = np.exp(logs.sum(axis=1) / np.maximum((weights > 0).sum(axis=0), 1))
        return typical

    def weights(self, handicaps: ArrayLike = 1.0, favours: ArrayLike = 1.0) -> Array:
        """Return the weight of each model in the average, (n_models,); one must have been fitted.

        Errors are first multiplied by `handicaps`, and weights by `favours`, (n_models,).
        """
        errors = self.errors(typical=True)
        if not np.isfinite(errors).any():
            raise ValueError(
                f"No model could be fitted to the first {self.origins[0]} rows: all models need "
                "more rows. Use a longer series."
            )
        return shares_by(errors * np.asarray(handicaps), self.n_windows, favours)

    def combined(self, weights: Array) -> Array:
        """Return the weighted average of the forecasts, (n_origins, n_steps, n_outputs)."""
        used = weights > 0
        return np.tensordot(weights[used], self.predicted[used], 1)

    def combined_apart(
        self, n_origins: Sequence[int], handicaps: ArrayLike = 1.0, favours: ArrayLike = 1.0
    ) -> Array:
        """Return averages, (n_origins, n_steps, n_outputs), whose weights follow from other fits.

        `n_origins` has the number of origins of each fit, in order. With fewer than three fits,
        weights follow from all of them. `handicaps` and `favours` are as in `weights`.
        """
        if len(n_origins) < _FEWEST_FITS:
            return self.combined(self.weights(handicaps, favours))
        fitted = np.isfinite(self.errors())
        found = np.empty(self.followed.shape)
        for part in np.split(np.arange(len(self.origins)), np.cumsum(n_origins)[:-1]):
            others = np.delete(np.arange(len(self.origins)), part)
            rest = replace(
                self,
                origins=self.origins[others],
                predicted=np.where(fitted[:, None, None, None], self.predicted[:, others], np.nan),
                followed=self.followed[others],
            )
            same = replace(self, predicted=self.predicted[:, part])
            found[part] = same.combined(rest.weights(handicaps, favours))
        return found


def _to_best(errors: Array) -> Array:
    """Return errors of models, (n_models, n_outputs), relative to the best model of each output."""
    with np.errstate(over="ignore"):
        return np.minimum(errors / errors.min(axis=0), _WORST)


def _root_mean_squares(errors: Array) -> Array:
    """Return the roots of mean squares over origins, (n_models, n_origins, n_outputs)."""
    # dividing by the largest value first keeps squares in range
    size = np.maximum(np.abs(errors).max(axis=(0, 1)), np.finfo(float).tiny)
    return np.sqrt(np.square(errors / size).mean(axis=1)) * size


def roll(
    candidates: Sequence[Candidate],
    data: SeriesData,
    n_steps: int,
    bounds: Bounds,
    seed: int,
    report: Report,
) -> RollingForecasts:
    """Fit models to the first rows of a series several times, and forecast from later origins.

    A forecast depends only on the rows before its origin, and on `bounds`. `report` shows progress.
    """
    origins, costs = np.concatenate(origins_of(data, n_steps)), costs_of(candidates, [data])
    results = _roll_each(candidates, data, n_steps, bounds, seed)
    predicted = np.stack(list(report(results, costs, "models", unit="model")))
    followed = values_after(data, origins, n_steps)
    return RollingForecasts(origins, predicted, followed, data.intermittent)


def _roll_each(
    candidates: Sequence[Candidate], data: SeriesData, n_steps: int, bounds: Bounds, seed: int
) -> Iterator[Array]:
    """Yield the forecasts of each model; those of all closed-loop networks are made together."""
    loops = [each for each in candidates if isinstance(each.model, LoopNetwork)]
    made: Iterator[Array] = iter(())
    for candidate in candidates:
        if candidate not in loops:
            yield _roll_one(candidate, data, n_steps, bounds, seed)
            continue
        if candidate is loops[0]:
            made = iter(roll_loops(loops, data, n_steps, bounds, seed))
        yield next(made)


def _roll_one(
    candidate: Candidate, data: SeriesData, n_steps: int, bounds: Bounds, seed: int
) -> Array:
    """Return the forecasts of one model from all origins, (n_origins, n_steps, n_outputs)."""
    found, ahead = [], data.with_room(data.n_rows + n_steps)
    for group in origins_of(data, n_steps):
        predicted = np.full((len(group), n_steps, data.values.shape[1]), np.nan)
        part = ahead.until(int(group[0]))
        if part.n_rows >= candidate.model.min_rows:
            predicted[:] = candidate.fit(part, seed).forecast(ahead, group, n_steps, bounds)
        found.append(predicted)
    return np.concatenate(found)


def shares_by(errors: Array, n_windows: float, favours: ArrayLike = 1.0) -> Array:
    """Return the weights of models in an average from their errors, some of which are finite.

    The more windows were forecast, the more reliable are differences of errors, and the larger is
    the power by which they determine the weights. Weights are multiplied by `favours`.
    """
    power = _POWER + _MORE * (np.log(max(n_windows, 1e-9)) - _LOG_WINDOWS)
    with np.errstate(under="ignore"):
        shares = favours * (errors / errors.min()) ** -float(np.clip(power, *_POWERS))
    return shares / shares.sum()


def values_after(data: SeriesData, origins: Array, n_steps: int) -> Array:
    """Return the values after each origin, (n_origins, n_steps, n_outputs); NaN if unobserved."""
    values = np.where(data.observed, data.values, np.nan)
    beyond = np.full((n_steps, values.shape[1]), np.nan)
    return np.concatenate([values, beyond])[np.add.outer(origins, np.arange(n_steps))]
