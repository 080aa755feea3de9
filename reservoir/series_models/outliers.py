"""Values at the end of a series that are far from what the rows before them let expect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.metrics.robust_deviation import robust_deviation
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel
from reservoir.series_models.recursive_ridge import Autoregression
from reservoir.series_models.series_data import SeriesData

N_LAST = 10  # last rows that are examined, but at most a quarter of the rows
_FEWEST = 24  # rows of a series that is examined
_MOST_ROWS = 1000  # rows by which a value is judged
_MOST_ODD = 3  # odd rows: more of them are a new level, or a series that has become noisier
_MODELS = (Autoregression(1), Autoregression(0))  # of differences and of levels
_TIMES_TYPICAL = 4.5  # an odd error exceeds so many typical errors,
_TAIL = 0.1  # and the largest error, by more if this is large itself: tails are heavy then
_FEW = 10  # number of errors with which these bounds are doubled


@saved
@dataclass(frozen=True, eq=False)
class OddValues:
    """Odd values at the end of a series, at `rows`, counted from row number 0, and `columns`.

    `expected` are forecasts from the rows before; `sizes` are the differences in typical errors of
    one step, infinite without errors before. `shift`, (n_outputs,), is the mean difference of the
    odd values with which a column ends; 0 if its last value is not odd.
    """

    rows: Array
    columns: Array
    values: Array
    expected: Array
    sizes: Array
    shift: Array

    def moved(self, offset: int) -> OddValues:
        """Return the same values with other numbers of rows."""
        return replace(self, rows=self.rows + offset)

    def removed_from(self, values: Array, first: int = 0) -> Array:
        """Return a copy of rows, of which the first has the number `first`, without odd values."""
        found = values.copy()
        here = self.rows >= first
        found[self.rows[here] - first, self.columns[here]] = np.nan
        return found


@saved
@dataclass(frozen=True, eq=False)
class LastRows:
    """The last rows of a series as given, (n_last, n_outputs), and the odd values among them.

    There are none if odd values are kept. `end` is the number of the row after the last one.
    """

    rows: Array
    end: int
    odd: OddValues | None = None

    @classmethod
    def of(cls, data: SeriesData, values: Array, *, keep: bool) -> LastRows:
        """Return the last rows of a series; with `keep`, odd values count like others.

        `values` are (n_rows, n_outputs), NaN if missing; `data` has gaps filled, and may end before
        them.
        """
        n_rows = len(values)
        n_judged = 0 if keep else n_last(n_rows)
        before = data.until(min(data.n_rows, n_rows - n_judged))
        odd = find_odd(before, values[before.n_rows :], n_judged)
        return cls(values[n_rows - n_judged :], data.first + n_rows, odd)

    def with_rows(self, data: SeriesData, values: Array, *, keep: bool) -> tuple[LastRows, Array]:
        """Return the last rows after later ones, and all of these rows without odd values, as NaN.

        The last ten rows are judged again: more than three odd values are a new level, so that odd
        values may become ordinary ones. `values`, (n_later, n_outputs), are NaN if missing; `data`
        has known inputs for them as well. With `keep`, odd values count like others.
        """
        before = data.until(data.n_rows - len(self.rows))
        given = np.concatenate([self.rows.reshape(-1, values.shape[1]), values])
        n_judged = 0 if keep else min(n_last(data.n_rows + len(values)), len(given))
        n_before = len(given) - n_judged
        # rows are counted from the first one that was given, `data` may count from another one
        number = data.first + data.n_rows
        end = (self.end or number) + len(values)
        offset, first = end - number - len(values), end - len(given)
        cleaned = given
        if self.odd is not None and n_before and not keep:
            # rows that are judged for the last time, by those after them
            n_settled = min(len(self.rows) + N_LAST, len(given))
            odd = find_odd(before, given[:n_settled], n_settled)
            if odd is not None:
                cleaned = odd.moved(offset).removed_from(given, first)
                cleaned[n_before:] = given[n_before:]
        odd = find_odd(before, cleaned, n_judged)
        if odd is not None:
            odd = odd.moved(offset)
            cleaned = odd.removed_from(cleaned, first)
        return LastRows(given[n_before:], end, odd), cleaned

    @property
    def shift(self) -> Array | None:
        """Distance of the level of odd values with which a column ends; None without these."""
        return None if self.odd is None or not self.odd.shift.any() else self.odd.shift


def n_last(n_rows: int) -> int:
    """Return how many of the last rows of a series are examined."""
    return min(N_LAST, n_rows // 4) if n_rows >= _FEWEST else 0


def find_odd(
    before: SeriesData, rows: Array, n_judged: int, *, logs: bool = True
) -> OddValues | None:
    """Return the odd values in the last `n_judged` of the `rows` after a series; None without any.

    A value is odd if its difference from the forecast of one step is several times the typical
    difference before, and exceeds all of these; with `logs`, for positive columns also in
    logarithms. Odd values are replaced by forecasts before later values are judged. If a column has
    more than three odd values, none counts. `before` has known inputs for later rows as well.
    """
    if not n_judged:
        return None
    later, rows = rows[: len(rows) - n_judged], rows[len(rows) - n_judged :]
    begin = before.first + before.n_rows + len(later)
    cleaned = _prepared(before.followed_by(_held(later, before.values[-1])), n_judged, logs)
    scales = [True, False] if cleaned.positive.any() else [False]
    judges = [_Judge(cleaned, log) for log in scales]
    expected, sizes = np.empty(rows.shape), np.empty(rows.shape)
    for r, row in enumerate(rows):
        found = [judge.judge(cleaned, row) for judge in judges]
        expected[r] = found[0][0]
        sizes[r] = np.min([size for _, size in found], axis=0)
        replaced = (sizes[r] > 0) | np.isnan(row)
        if ((row <= 0) & ~replaced & cleaned.positive).any():  # not odd, and without a logarithm
            return find_odd(before, np.concatenate([later, rows]), n_judged, logs=False)
        cleaned = cleaned.followed_by(np.where(replaced, expected[r], row)[None])
    odd = sizes > 0
    # a demand like earlier ones is not odd, although none may have occurred for a long time
    odd &= ~before.intermittent | (rows > before.values.max(axis=0))
    odd &= odd.sum(axis=0) <= _MOST_ODD
    if before.possible is not None:  # every value of bool is ordinary
        odd &= ~np.isfinite(before.possible).all(axis=0)
    # the odd values with which a column ends
    ending = np.cumprod(odd[::-1], axis=0)[::-1].astype(bool)
    odd &= np.isfinite(sizes) | ending  # without errors before, other values may be rare ones
    if not odd.any():
        return None
    places, columns = np.nonzero(odd)
    differences = np.where(odd, rows - expected, 0.0)
    shift = (differences * ending).sum(axis=0) / np.maximum(ending.sum(axis=0), 1)
    return OddValues(begin + places, columns, rows[odd], expected[odd], sizes[odd], shift)


def _held(rows: Array, before: Array) -> Array:
    """Return rows whose missing values are replaced by the last values before them."""
    every = np.concatenate([before[None], rows])
    seen = np.where(np.isfinite(every), np.arange(len(every))[:, None], 0)
    return np.take_along_axis(every, np.maximum.accumulate(seen, axis=0), axis=0)[1:]


def _prepared(data: SeriesData, n_last: int, logs: bool) -> SeriesData:
    """Return the rows by which values are judged, with known inputs for the last rows."""
    start = max(0, data.n_rows - _MOST_ROWS)
    positive = np.all(data.values > 0, axis=0) & logs
    known = data.with_room(data.n_rows + n_last + 1).known
    return replace(
        data,
        values=data.values[start:],
        observed=data.observed[start:],
        known=known[start:],
        positive=positive,
        first=data.first + start,
    )


class _Judge:
    """The forecasts of one step on one scale, and how far values may be from them."""

    def __init__(self, data: SeriesData, log: bool) -> None:
        self.log, self.positive = log, data.positive & log
        history = data.history(log)
        tried = [_errors_of(model, history) for model in _MODELS]
        errors = np.stack([each for each, _ in tried])
        # errors smaller than the resolution are those of recording values, not of forecasts
        typical = np.maximum(robust_deviation(errors), data.resolution() * ~self.positive)
        rounding = data.rounding(log)
        typical = np.where(typical > rounding, typical, 0.0)
        # for each column the model with the smaller errors
        self.choice = typical.argmin(axis=0)
        self.fitted = [fitted for _, fitted in tried]
        columns = np.arange(history.n_outputs)
        self.typical, errors = typical[self.choice, columns], errors[self.choice, :, columns].T
        few = 1 + _FEW / np.maximum(np.isfinite(errors).sum(axis=0), 1)
        largest = np.nanmax(errors, axis=0, initial=0.0)
        scale = np.maximum(self.typical, np.maximum(rounding, np.finfo(float).tiny))
        with np.errstate(over="ignore"):
            tail = largest * (1 + _TAIL * largest / scale)
        self.limit = few * np.maximum(_TIMES_TYPICAL * scale, tail)

    def judge(self, data: SeriesData, row: Array) -> tuple[Array, Array]:
        """Return the forecast of a row, and the size of the difference where it is odd, else 0."""
        history = data.history(self.log)
        origin = np.array([data.n_rows])
        each = np.stack([fitted.forecast(history, origin, 1)[0, 0] for fitted in self.fitted])
        level = each[self.choice, np.arange(len(row))]
        with np.errstate(divide="ignore", invalid="ignore"):
            given = np.where(self.positive, np.log(np.maximum(row, 0.0)), row)
            error = np.abs(given - level)
            size = np.where(error > self.limit, error / self.typical, 0.0)
        return data.in_units(level, self.log), size


def _errors_of(model: Autoregression, history: History) -> tuple[Array, FittedModel]:
    """Return absolute errors of one step in the second half of a history, and the model of all."""
    n_rows = history.n_rows
    middle = n_rows // 2
    errors = []
    for start, stop in pairwise([middle, (middle + n_rows) // 2, n_rows]):
        fitted = model.fit(history.until(start), 0)
        forecasts = fitted.forecast(history, np.arange(start, stop), 1)[:, 0]
        errors.append(np.abs(history.levels[start:stop] - forecasts))
    seen = history.observed[middle:]
    return np.where(seen, np.concatenate(errors), np.nan), model.fit(history, 0)
