"""A series in its original units, and its conversion to the scale of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History

_FIRST = 0.55  # fraction of the rows that the first fit of a comparison uses
_LEAST_FIRST = 3
_ROUNDING = 1e-12  # relative difference of values that are equal
_BEYOND_A_PERIOD = 2  # least number of rows of the first fit after one period of each season seen
_FEWEST = 4  # least number of rows to compare models
_N_FITS = 6  # number of fits of each model
_PER_HORIZON = 4  # number of origins within the length of a forecast
_MANY_PERIODS = 3  # periods from which the test for a season is reliable
_LEAST_PERIODS = 1.5  # least number of periods of a season that is used


def first_cut(n_rows: int) -> int:
    """Return the number of rows that the first fits use when models are compared."""
    return max(int(_FIRST * n_rows), _LEAST_FIRST)


def least_rows(season: float) -> int:
    """Return the least number of rows of a series whose models use a season."""
    return ceil(_LEAST_PERIODS * season)


def seen_seasons(n_rows: int, seasons: Sequence[float]) -> tuple[float, ...]:
    """Return the seasons of which a series contains enough periods, in the given order."""
    return tuple(season for season in seasons if least_rows(season) <= n_rows)


def untested_season(n_rows: int, seasons: Sequence[float]) -> float:
    """Return the longest season seen often enough, if the first fits see it less than three times.

    The first fits of a comparison then cannot test for this season. Otherwise the result is 0.
    """
    longest = max(seen_seasons(n_rows, seasons), default=0.0)
    return longest if first_cut(n_rows) < _MANY_PERIODS * longest else 0.0


def possible_values(is_bool: Array) -> Array | None:
    """Return the least and greatest possible value of each column; None if there is no bound.

    `is_bool` states for each column whether its values are bool.
    """
    if not is_bool.any():
        return None
    return np.where(is_bool, [[0.0], [1.0]], [[-np.inf], [np.inf]])


def spread_of(values: Array) -> Array:
    """Return the standard deviation of each column of values, (..., n_outputs), without NaN."""
    rows = values.reshape(-1, values.shape[-1])
    # dividing by a power of two is exact, and keeps squares in range
    size = 2.0 ** np.frexp(np.nanmax(np.abs(rows), axis=0))[1].clip(-1000, 1000)
    spread: Array = np.nanstd(rows / size, axis=0) * size
    return spread


@saved
@dataclass(frozen=True, eq=False)
class SeriesData:
    """Rows of a series in its original units, with gaps filled.

    `values` and `observed`, False where filled, are (n_rows, n_outputs); `known`, (n_rows_ahead,
    n_known), are standardised. `seasons` are rows per period, ascending; phases are counted from
    row number 0, and `first` is the number of the first row. `positive` columns have logarithms.
    `possible`, (2, n_outputs), are least and greatest values: 0 and 1 for bool, or infinite.
    """

    values: Array
    observed: Array
    known: Array
    seasons: tuple[float, ...]
    positive: Array
    first: int = 0
    possible: Array | None = None

    @classmethod
    def complete(cls, values: Array, known: Array) -> SeriesData:
        """Return a series of any values, without gaps and seasons."""
        positive = np.all(values > 0, axis=0)
        return cls(values, np.ones(values.shape, bool), known, (), positive)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def intermittent(self) -> Array:
        """Columns of demands, most of whose observed values are 0, (n_outputs,).

        None of their observed values is negative, and at least one is positive.
        """
        values = np.where(self.observed, self.values, 0.0)
        n_zeros = ((values == 0) & self.observed).sum(axis=0)
        is_demand = np.all(values >= 0, axis=0) & np.any(values > 0, axis=0)
        return is_demand & (2 * n_zeros > self.observed.sum(axis=0))

    @property
    def first_cut(self) -> int:
        """Number of rows that the first fits use when models are compared.

        They are more than a period of each season, so that all models of seasons are compared.
        """
        longest = max(seen_seasons(self.n_rows, self.seasons), default=0.0)
        of_seasons = min(round(longest) + _BEYOND_A_PERIOD, self.n_rows - 1)
        return max(first_cut(self.n_rows), of_seasons)

    def resolution(self) -> Array:
        """Return the least difference of two observed values of each column; 0 if all are equal."""
        found = np.zeros(self.values.shape[1])
        columns = zip(self.values.T, self.observed.T, self.rounding(), strict=True)
        for j, (column, observed, rounding) in enumerate(columns):
            steps = np.diff(np.unique(column[observed]))
            steps = steps[steps > rounding]
            found[j] = steps.min(initial=np.inf) if len(steps) else 0.0
        return found

    def rounding(self, log: bool = False) -> Array:
        """Return the difference of two levels of each column up to which they count as equal."""
        size = np.abs(self.values).max(axis=0)
        return _ROUNDING * (np.where(self.positive, 1.0, size) if log else size)

    def until(self, n_rows: int) -> SeriesData:
        """Return the first `n_rows` rows of the series, with all known inputs."""
        return replace(self, values=self.values[:n_rows], observed=self.observed[:n_rows])

    def followed_by(self, rows: Array) -> SeriesData:
        """Return the series with later rows appended, all of whose values count as observed."""
        return replace(
            self,
            values=np.concatenate([self.values, rows]),
            observed=np.concatenate([self.observed, np.ones(rows.shape, bool)]),
        )

    def with_room(self, n_rows: int) -> SeriesData:
        """Return the series with known inputs for at least `n_rows`, repeating the last input."""
        missing = n_rows - len(self.known)
        if missing <= 0:
            return self
        last = self.known[-1:].repeat(missing, axis=0)
        return replace(self, known=np.concatenate([self.known, last]))

    def history(self, log: bool) -> History:
        """Return the history for models, with the logarithms of positive columns if `log`."""
        levels = np.array(self.values)
        if log:
            levels[:, self.positive] = np.log(levels[:, self.positive])
        return History(levels, self.observed, self.known, self.seasons, self.first)

    def in_units(self, levels: Array, log: bool) -> Array:
        """Return levels, (..., n_outputs), converted to the units of the series."""
        if not log:
            return levels
        with np.errstate(over="ignore"):
            return np.where(self.positive, np.exp(np.where(self.positive, levels, 0.0)), levels)


def origins_of(data: SeriesData, n_steps: int) -> list[Array]:
    """Return the origins at which forecasts are compared, in one array for each fit.

    The first origin of each array is the number of rows of the fit. Fewer than 4 rows raise an
    error.
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


@saved
@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds to which forecasts are clipped, on both scales; arrays of shape (n_outputs,)."""

    low: Array
    high: Array

    @classmethod
    def of(
        cls, values: Array, positive: Array, widths: float, possible: Array | None = None
    ) -> Bounds:
        """Return the range of values, extended on either side by `widths` times its width.

        The lower bound of columns without negative values is at least 0. In positive columns it is
        at least ``least * (least / most) ** widths``, with the least and the greatest value. No
        bound is beyond the `possible` values, (2, n_outputs).
        """
        least, most = values.min(axis=0), values.max(axis=0)
        low, high = least - widths * (most - least), most + widths * (most - least)
        low = np.where(least >= 0, np.maximum(low, 0.0), low)
        with np.errstate(over="ignore", under="ignore"):
            ratio = np.where(positive, least / np.where(positive, most, 1.0), 1.0)
            floor = np.where(positive, least * ratio**widths, low)
        low = np.maximum(low, floor)
        if possible is not None:
            low, high = np.clip(low, *possible), np.clip(high, *possible)
        return cls(low, high)

    def joined(self, other: Bounds) -> Bounds:
        """Return the bounds between which both ranges are."""
        return Bounds(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def exceeded_by(self, rows: Array) -> Array:
        """Return where rows are beyond the bounds; False where a value is missing."""
        return (rows < self.low) | (rows > self.high)

    def clip(self, rows: Array) -> Array:
        """Return rows clipped to the bounds."""
        return np.clip(rows, self.low, self.high)
