"""Rolling origins: what models say of rows that they have not seen, and how they are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir.series_models.candidates import Candidate
from reservoir.series_models.series_data import Bounds, SeriesData

_FEWEST = 4  # rows
_N_FITS = 6  # times that each model is fitted
_PER_HORIZON = 4  # origins in each horizon's length, behind a fit
_EXACT, _WORST = 1e-12, 1e100  # errors relative to the values that are none; to the best, at most
_SHARPNESS = 3  # the weight of a model is its error to minus this power


@dataclass(frozen=True, eq=False)
class RollingForecasts:
    """What models said, and what followed.

    Attributes
    ----------
    origins : array of int of shape (n_origins,)
        How many rows were known.
    said : array of shape (n_models, n_origins, n_steps, n_outputs)
        NaN for a model that could not be fitted to so few rows.
    followed : array of shape (n_origins, n_steps, n_outputs)
        NaN behind the last row, and where a value was not observed.
    """

    origins: Array
    said: Array
    followed: Array

    def errors(self) -> Array:
        """Return the mean absolute error of each model, relative to the best, (n_models,).

        Outputs are weighted by the error that the best model makes in each; a model that could not
        be fitted has infinity.
        """
        away = np.abs(self.said - self.followed)
        fitted: Array = np.all(np.isfinite(self.said), axis=(1, 2, 3))
        counts = np.maximum(np.isfinite(self.followed).sum(axis=(0, 1)), 1)
        each = np.where(fitted[:, None], np.nansum(away, axis=(1, 2)), np.inf) / counts
        # errors of rounding are none
        size = np.nansum(np.abs(self.followed), axis=(0, 1)) / counts
        none = np.maximum(_EXACT * size, np.finfo(float).tiny)
        least = np.maximum(each.min(axis=0), none)
        relative = np.full(len(fitted), np.inf)
        with np.errstate(over="ignore"):
            by_best = np.maximum(each[fitted], none) / least
        relative[fitted] = np.minimum(by_best, _WORST).mean(axis=1)
        return relative

    def weights(self, handicaps: ArrayLike = 1.0) -> Array:
        """Return the share that each model has in the average, (n_models,).

        Errors count `handicaps` times as much, (n_models,).

        Raises
        ------
        ValueError
            If no model could be fitted.
        """
        errors = self.errors()
        if not np.isfinite(errors).any():
            raise ValueError(
                f"No model could be fitted to the first {self.origins[0]} rows: each needs more. "
                "Give a longer series."
            )
        return shares_by(errors * np.asarray(handicaps))

    def combined(self, weights: Array) -> Array:
        """Return what the average said, (n_origins, n_steps, n_outputs)."""
        used = weights > 0
        return np.tensordot(weights[used], self.said[used], 1)


def roll(
    candidates: Sequence[Candidate], data: SeriesData, n_steps: int, bounds: Bounds, seed: int
) -> RollingForecasts:
    """Fit models to beginnings of a series, and forecast from these and from rows behind them.

    Whatever is said at an origin follows from the rows before it, and from `bounds`.

    Raises
    ------
    ValueError
        If there are fewer than 4 rows.
    """
    groups = origins_of(data, n_steps)
    data = data.with_room(data.n_rows + n_steps)
    origins = np.concatenate(groups)
    said = np.full((len(candidates), len(origins), n_steps, data.values.shape[1]), np.nan)
    for m, candidate in enumerate(candidates):
        begin = 0
        for group in groups:
            part = data.until(int(group[0]))
            if part.n_rows >= candidate.model.min_rows:
                fitted = candidate.fit(part, seed)
                said[m, begin : begin + len(group)] = fitted.forecast(data, group, n_steps, bounds)
            begin += len(group)
    return RollingForecasts(origins, said, what_followed(data, origins, n_steps))


def origins_of(data: SeriesData, n_steps: int) -> list[Array]:
    """Return the places that forecasts are compared at: those that each fit serves, in an array.

    The first place of each array is the number of rows that are fitted.

    Raises
    ------
    ValueError
        If there are fewer than 4 rows.
    """
    n_rows = data.n_rows
    if n_rows < _FEWEST:
        raise ValueError(
            f"Models are compared by forecasts of rows that they have not seen: y needs {_FEWEST} "
            f"rows or more, got {n_rows}. Give a longer series."
        )
    first = data.first_cut
    cuts = np.unique(np.linspace(first, max(n_rows - n_steps, first), _N_FITS).astype(int))
    stride = max(1, n_steps // _PER_HORIZON)
    ends = [*cuts[1:].tolist(), n_rows]
    return [np.arange(cut, end, stride) for cut, end in zip(cuts.tolist(), ends, strict=True)]


def shares_by(errors: Array) -> Array:
    """Return the shares in an average of models with such errors, of which one is finite."""
    with np.errstate(under="ignore"):
        shares = (errors / errors.min()) ** -float(_SHARPNESS)
    return shares / shares.sum()


def what_followed(data: SeriesData, origins: Array, n_steps: int) -> Array:
    """Return the rows behind origins, (n_origins, n_steps, n_outputs); NaN for none."""
    values = np.where(data.observed, data.values, np.nan)
    beyond = np.full((n_steps, values.shape[1]), np.nan)
    return np.concatenate([values, beyond])[np.add.outer(origins, np.arange(n_steps))]
