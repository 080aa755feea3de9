"""Rolling origins: forecasts of held-out rows by several models, and the weights of an average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reservoir._typing import Array, ArrayLike, Report
from reservoir.series_models.candidates import Candidate, costs_of
from reservoir.series_models.series_data import Bounds, SeriesData

_FEWEST = 4  # least number of rows
_N_FITS = 6  # number of fits of each model
_FEWEST_FITS = 3  # least number of fits to compute weights from all fits but one
_PER_HORIZON = 4  # number of origins within the length of a forecast
_EXACT = 1e-12  # errors, relative to the values, that count as rounding errors
_WORST = 1e100  # largest error relative to the best model
_SHARPNESS = 3  # the weight of a model is proportional to its error to the power of -3


@dataclass(frozen=True, eq=False)
class RollingForecasts:
    """Forecasts of several models from rolling origins, and the actual values.

    Attributes
    ----------
    origins : array of int of shape (n_origins,)
        Number of known rows at each origin.
    predicted : array of shape (n_models, n_origins, n_steps, n_outputs)
        Forecasts; NaN if a model needs more rows than were available.
    followed : array of shape (n_origins, n_steps, n_outputs)
        Actual values; NaN after the last row, and where a value was not observed.
    intermittent : array of bool of shape (n_outputs,), optional
        Outputs whose errors also depend on the sum of each forecast; None for no output.
    """

    origins: Array
    predicted: Array
    followed: Array
    intermittent: Array | None = None

    def errors(self) -> Array:
        """Return the mean absolute error of each model, relative to the best model, (n_models,).

        Errors of each output are divided by the error of the best model for this output. The error
        of a model that could not be fitted is infinite.

        The mean absolute error of intermittent demand is least if all forecasts are zero. The
        errors of intermittent outputs are therefore multiplied by the root mean squared errors of
        the sums of forecasts, which are least if these sums are unbiased.
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
        each = _to_best(np.nansum(np.abs(errors), axis=(1, 2)) / counts, none)
        if self.intermittent is not None and self.intermittent.any():
            of_sums = _to_best(_root_mean_squares(np.nansum(errors, axis=2)), none)
            each = _to_best(np.where(self.intermittent, each * of_sums, each), np.zeros(len(size)))
        relative[fitted] = each.mean(axis=1)
        return relative

    def weights(self, handicaps: ArrayLike = 1.0) -> Array:
        """Return the weight of each model in the average, (n_models,).

        Errors are first multiplied by `handicaps`, (n_models,).

        Raises
        ------
        ValueError
            If no model could be fitted.
        """
        errors = self.errors()
        if not np.isfinite(errors).any():
            raise ValueError(
                f"No model could be fitted to the first {self.origins[0]} rows: all models need "
                "more rows. Use a longer series."
            )
        return shares_by(errors * np.asarray(handicaps))

    def combined(self, weights: Array) -> Array:
        """Return the weighted average of the forecasts, (n_origins, n_steps, n_outputs)."""
        used = weights > 0
        return np.tensordot(weights[used], self.predicted[used], 1)

    def combined_apart(self, n_origins: Sequence[int], handicaps: ArrayLike = 1.0) -> Array:
        """Return averages whose weights do not depend on the errors of the same fit.

        Parameters
        ----------
        n_origins : sequence of int
            Number of origins of each fit, in order.
        handicaps : array of shape (n_models,), optional
            As in `weights`.

        Returns
        -------
        array of shape (n_origins, n_steps, n_outputs)
            The average from each origin, with the weights that follow from the other fits. If there
            are fewer than three fits, the weights follow from all of them.
        """
        if len(n_origins) < _FEWEST_FITS:
            return self.combined(self.weights(handicaps))
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
            found[part] = same.combined(rest.weights(handicaps))
        return found


def _to_best(errors: Array, none: Array) -> Array:
    """Return errors of models, (n_models, n_outputs), relative to the best model of each output.

    Errors less than `none`, (n_outputs,), are taken to be equal to it.
    """
    errors = np.maximum(errors, none)
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

    Raises
    ------
    ValueError
        If there are fewer than 4 rows.
    """
    groups, costs = origins_of(data, n_steps), costs_of(candidates, [data])
    data = data.with_room(data.n_rows + n_steps)
    origins = np.concatenate(groups)
    results = (_roll_one(each, data, groups, n_steps, bounds, seed) for each in candidates)
    predicted = np.stack(list(report(results, costs, "models", unit="model")))
    followed = values_after(data, origins, n_steps)
    return RollingForecasts(origins, predicted, followed, data.intermittent)


def _roll_one(
    candidate: Candidate,
    data: SeriesData,
    groups: Sequence[Array],
    n_steps: int,
    bounds: Bounds,
    seed: int,
) -> Array:
    """Return the forecasts of one model from all origins, (n_origins, n_steps, n_outputs)."""
    found = []
    for group in groups:
        predicted = np.full((len(group), n_steps, data.values.shape[1]), np.nan)
        part = data.until(int(group[0]))
        if part.n_rows >= candidate.model.min_rows:
            predicted[:] = candidate.fit(part, seed).forecast(data, group, n_steps, bounds)
        found.append(predicted)
    return np.concatenate(found)


def origins_of(data: SeriesData, n_steps: int) -> list[Array]:
    """Return the origins at which forecasts are compared, in one array for each fit.

    The first origin of each array is the number of rows of the fit.

    Raises
    ------
    ValueError
        If there are fewer than 4 rows.
    """
    n_rows = data.n_rows
    if n_rows < _FEWEST:
        raise ValueError(
            f"Models are compared by forecasts of held-out rows, for which y needs at least "
            f"{_FEWEST} rows; got {n_rows}. Use a longer series."
        )
    first = data.first_cut
    cuts = np.unique(np.linspace(first, max(n_rows - n_steps, first), _N_FITS).astype(int))
    stride = max(1, n_steps // _PER_HORIZON)
    ends = [*cuts[1:].tolist(), n_rows]
    return [np.arange(cut, end, stride) for cut, end in zip(cuts.tolist(), ends, strict=True)]


def shares_by(errors: Array) -> Array:
    """Return the weights of models in an average from their errors, some of which are finite."""
    with np.errstate(under="ignore"):
        shares = (errors / errors.min()) ** -float(_SHARPNESS)
    return shares / shares.sum()


def values_after(data: SeriesData, origins: Array, n_steps: int) -> Array:
    """Return the values after each origin, (n_origins, n_steps, n_outputs); NaN if unobserved."""
    values = np.where(data.observed, data.values, np.nan)
    beyond = np.full((n_steps, values.shape[1]), np.nan)
    return np.concatenate([values, beyond])[np.add.outer(origins, np.arange(n_steps))]
