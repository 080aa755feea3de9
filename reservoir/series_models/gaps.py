"""Filling of missing values of a series by forecasts from the rows before them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.recursive_ridge import (
    Autoregression,
    FittedLoops,
    observed_differences,
    terms_of,
)
from reservoir.series_models.series_data import SeriesData, first_cut

_FEWEST, _PART = 3, 20  # a column needs at least 3 values, and at least one in 20 rows
_LATER_STAGES = 4
_SIZES = (1e-300, 1e300)  # range of positive values whose sums do not overflow
_ROUNDS = 2  # number of fits to the first rows, each to the values filled by the previous fit
_MODEL = Autoregression()
_LEAST_OBSERVED = 8  # number of differences of two observed values that the model needs
_VALUES_PER_TERM = 4  # number of values for each harmonic of a plain fill


def fill_gaps(
    values: Array,
    known: Array,
    seasons: tuple[float, ...],
    *,
    first: int = 0,
    seed: int = 0,
) -> SeriesData:
    """Return a series whose missing values are filled by forecasts from the rows before them.

    The first part is filled by a line and harmonics, then by an autoregression of differences
    fitted to it; later rows by models fitted to all rows before. As the first models of `roll` are
    fitted to the same first part, rolling origins do not use the future. Gaps at the start repeat
    the first value. `values` are NaN where missing, and begin with a row that is not. A column with
    fewer than 3 values, or one in 20 rows, and magnitudes above 1e300 raise a ValueError.
    """
    observed = ~np.isnan(values)
    positive: Array = np.all((values > 0) | ~observed, axis=0)
    most = np.abs(values[observed]).max(initial=0.0)
    if most > _SIZES[1]:
        raise ValueError(
            f"y has a value of magnitude {most:.3g}, but the models need values with magnitudes "
            f"of at most {_SIZES[1]:g}. Divide y by a power of ten."
        )
    data = SeriesData(np.array(values), observed, known, seasons, positive, first)
    if observed.all():
        return data
    _check_enough_rows(observed)
    with np.errstate(invalid="ignore"):
        history = data.with_room(len(values) + 1).history(log=True)
    filling = _Filling(history, seed)
    begin = first_cut(len(values))
    filling.fill_first(begin)
    edges = np.unique(np.linspace(begin, len(values), _LATER_STAGES + 1).astype(int))
    for start, end in pairwise(edges.tolist()):
        filling.fill(start, end)
    filled = data.in_units(filling.levels, log=True)
    filled = np.where(positive, np.clip(filled, *_SIZES), filled)
    return replace(data, values=np.where(observed, values, filled))


def _check_enough_rows(observed: Array) -> None:
    n_rows = len(observed)
    fewest = max(_FEWEST, -(-n_rows // _PART))
    counts = observed.sum(axis=0)
    if (counts >= fewest).all():
        return
    worst = int(np.argmin(counts))
    column = f"Column {worst} of y" if len(counts) > 1 else "y"
    raise ValueError(
        f"{column} has {counts[worst]} values in {n_rows} rows, but at least {fewest} are needed; "
        f"all other values are missing. Drop {'the column, or ' if len(counts) > 1 else ''}rows "
        "without values, or resample to a lower frequency."
    )


class _Filling:
    """Levels of a series, whose gaps are filled row by row from the first row on."""

    def __init__(self, history: History, seed: int) -> None:
        self.history, self.seed = history, seed
        self.levels = np.array(history.levels)
        begins = np.argmax(history.observed, axis=0)
        before = np.arange(history.n_rows)[:, None] < begins
        # nothing is known of a column before its first value
        self.levels = np.where(before, self.levels[begins, np.arange(len(begins))], self.levels)
        self.fixed = history.observed | before

    def fill_first(self, end: int) -> None:
        """Fill the rows before `end`, the first part of the series."""
        self._fill_plainly(end, 0, end)
        for _ in range(_ROUNDS):
            self._run(self._fitted(end), 0, end)

    def fill(self, start: int, end: int) -> None:
        """Fill the rows from `start` to `end` by a model fitted to all rows before `start`."""
        if self.fixed[start:end].all():
            return
        fitted = self._fitted(start)
        if fitted is None:
            self._fill_plainly(start, start, end)
        self._run(fitted, start, end)

    def _fitted(self, n_rows: int) -> FittedLoops | None:
        """Return the model fitted to the first rows; None if there are too few rows."""
        part = replace(self.history, levels=self.levels).until(n_rows)
        n_observed = observed_differences(part, 1).sum(axis=0).max()
        if n_rows < _MODEL.min_rows or n_observed < _LEAST_OBSERVED:
            return None
        return _MODEL.fit(part, self.seed)

    def _run(self, fitted: FittedLoops | None, start: int, end: int) -> None:
        """Run the model through the rows, and fill missing values by its one-step forecasts."""
        missing = ~self.fixed[:end]
        rows = np.flatnonzero(missing.any(axis=1))
        rows = rows[(rows >= start) & (rows > 1)]
        if fitted is None or not len(rows):
            return
        levels, differences = self.levels, fitted.differences
        terms = terms_of(self.history, 1, fitted.most_terms)
        ((source, coef, intercept),) = fitted.members
        low, high = _range(levels[: start or end])
        state, at = None, 1
        for row in rows.tolist():
            inputs = np.hstack([differences.take(levels[at - 1 : row]), terms[at + 1 : row + 1]])
            state = source.initial_state_of(inputs[0]) if state is None else state
            *_, (_, features, state) = source.iter_features(inputs, state)
            at = row
            step = np.clip(coef @ features[-1] + intercept, fitted.low, fitted.high)
            level = levels[row - 1] + step * differences.spread + differences.mean
            levels[row] = np.where(missing[row], np.clip(level, low, high), levels[row])

    def _fill_plainly(self, n_rows: int, start: int, end: int) -> None:
        """Fill gaps by a straight line and harmonics, both fitted to the first rows.

        The line is constant before the first value and after the last one.
        """
        for k, observed in enumerate(self.history.observed[:n_rows].T):
            rows = np.flatnonzero(observed)
            gaps = start + np.flatnonzero(~self.history.observed[start:end, k])
            if not len(rows) or not len(gaps):
                continue
            harmonics = self.history.calendar(end, len(rows) // _VALUES_PER_TERM)
            line = np.clip(np.arange(end), rows[0], rows[-1]) / n_rows
            design = np.column_stack([np.ones(end), line, harmonics])
            levels = self.levels[rows, k]
            size = max(np.abs(levels).max(), np.finfo(float).tiny)
            coef = np.linalg.lstsq(design[rows], levels / size, rcond=None)[0] * size
            self.levels[gaps, k] = np.clip(design[gaps] @ coef, *_range(levels))


def _range(levels: Array) -> tuple[Array, Array]:
    """Return the range of levels, extended by its width on either side."""
    low, high = levels.min(axis=0), levels.max(axis=0)
    return low - (high - low), high + (high - low)
