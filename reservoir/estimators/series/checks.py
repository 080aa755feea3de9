"""Checks and warnings of ESNForecaster beyond the reading of containers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level, check_number, check_unmasked
from reservoir._validation.written_dates import check_written_dates
from reservoir.estimators.series.fits import MIN_ROWS, Fit, Later, StatisticalFit
from reservoir.estimators.series.panel import Panel
from reservoir.estimators.series.tables import MIN_VALUES
from reservoir.series_models.outliers import OddValues

_SEEN = 0.55  # fraction of the rows after which forecasts are compared with the data
_ROUNDING = 1e-12  # a column that varies less, relative to its size, is constant to rounding


def check_season(name: str, value: Any) -> None:
    """Check the parameter `season`: a number of rows per period, a list of them, or None."""
    if value is None:
        return
    if np.ndim(value) > 1 or np.size(value) == 0:
        raise ValueError(
            f"{name}={value!r} must be a number of rows per period, a list of such numbers, 1 for "
            "no season, or None."
        )
    for each in np.atleast_1d(np.asarray(value, dtype=object)).tolist():
        check_number(name, each, low=1.0)


def panel_of(panel: Any, sequence_column: Any) -> Any:
    """Return the kind of a panel: a column of ids alone means "each"."""
    return "each" if panel is None and sequence_column is not None else panel


def check_together(search: Any, panel: Any, sequence_column: Any) -> None:
    """Check that parameters are compatible with each other."""
    networks = not isinstance(search, str) or search == "dynamics"
    if networks and panel_of(panel, sequence_column) is not None:
        given = f"panel={panel!r}" if panel else f"sequence_column={sequence_column!r}"
        raise ValueError(
            f"search={search!r} fits networks to one system, but {given} means that y "
            "contains several series. Set panel=None and sequence_column=None if y contains "
            'trajectories or variables of one system, otherwise search="series".'
        )


def check_enough_values(rows: Sequence[Array], panel: Panel) -> None:
    """Check that each series has values, also in the rows over which models are compared."""
    for i, values in enumerate(rows):
        which = panel.name_of_series(i)
        there = np.isfinite(values)
        n_known = int(there.all(axis=1).sum())
        if n_known < MIN_VALUES:
            n_short = sum(int(np.isfinite(each).all(axis=1).sum()) < MIN_VALUES for each in rows)
            others = f" and the {n_short - 1} other short ones" if n_short > 1 else ""
            remedy = f"Give more of them{f', or omit it{others}' if len(panel) > 1 else ''}."
            if there.sum(axis=0).min() >= MIN_VALUES:
                remedy = 'Set panel="each" to forecast each column separately.'
            raise ValueError(
                f"{which} has {n_known} rows without missing values (n_samples={len(values)}), "
                f"but at least {MIN_VALUES} are needed. {remedy}"
            )
        end = int(np.flatnonzero(there.any(axis=1))[-1]) + 1
        begin = int(np.argmax(there.any(axis=1)))
        late = begin + int(_SEEN * (end - begin))
        if not there[late:end].any(axis=0).all():
            column = int(np.argmin(there[late:end].any(axis=0)))
            raise ValueError(
                f"Column {column} of {which} has no value in rows {late} to {end - 1}, so that "
                'its forecasts cannot be compared with data. Omit it, or set panel="each" to '
                "forecast each column separately, starting after its last value."
            )


def check_long_enough(trajectories: Sequence[Array]) -> None:
    """Check that trajectories have as many rows as networks need."""
    longest, shortest = max(map(len, trajectories)), min(map(len, trajectories))
    if longest < MIN_ROWS:
        which = "y" if len(trajectories) == 1 else "The longest trajectory of y"
        raise ValueError(
            f"{which} has {longest} rows (n_samples={longest}), but ESNForecaster needs at least "
            f"{MIN_ROWS} consecutive rows to fit networks and to test them in closed loop. Give a "
            'longer series, or set search="series", or panel="each" if y contains several series.'
        )
    if shortest < 2:
        which_one = [len(table) for table in trajectories].index(shortest)
        raise ValueError(
            f"Trajectory {which_one} of y has {shortest} row, but networks learn the step from one "
            "row to the next. Give it 2 rows or more, or omit it."
        )


def check_varies(trajectories: Sequence[Array]) -> None:
    """Check that no column is constant."""
    rows = np.concatenate(trajectories)
    with np.errstate(over="ignore"):
        low, high = rows.min(axis=0), rows.max(axis=0)
        size = np.maximum(np.abs(low), np.abs(high))
        constant = np.flatnonzero(high / 2 - low / 2 <= _ROUNDING / 2 * size)
    if not len(constant):
        return
    column = int(constant[0])
    if len(constant) == rows.shape[1]:
        what = "All rows of y are equal"
    else:
        what = f"Column {column} of y is constant"
    if low[column] != high[column]:
        what += f" up to a relative difference of {_ROUNDING:g}"
    raise ValueError(
        f"{what} (value {rows[0, column]:.6g}, n_samples={len(rows)}), which leaves nothing to "
        "forecast. Omit constant columns, or give rows in which they vary."
    )


def check_update(later: Sequence[Later], n_rows: Sequence[int], panel: Panel) -> None:
    """Check that later rows have possible values, and logarithms if the models use these.

    Of `later`, one for each series, the last `n_rows` rows were passed by the user.
    """
    for i, (one, n) in enumerate(zip(later, n_rows, strict=True)):
        which = panel.name_of_series(i)
        fit, values = one.fit, one.values[len(one.values) - n :]
        check_possible(which, fit, values)
        if not isinstance(fit, StatisticalFit) or not fit.uses_logarithms:
            continue
        wrong = (values <= 0) & fit.data.positive
        if wrong.any():
            row, column = (int(k) for k in np.argwhere(wrong)[0])
            raise ValueError(
                f"{which} has the value {values[row, column]:g} in row {row}, but in fit all "
                "values were positive, and models were fitted to their logarithms. Fit again with "
                "all rows."
            )


def check_possible(name: str, fit: Fit, values: Array) -> None:
    """Check that columns that were bool in `fit` have no values below 0 or above 1."""
    if fit.possible is None:
        return
    wrong = (values < fit.possible[0]) | (values > fit.possible[1])
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} has the value {values[row, column]:g} in row {row}, column {column}, but in "
            "fit this column was bool, whose values are 0 and 1. Give bool, or fit again with "
            "numbers."
        )


def read_coverages(coverage: Any) -> list[float]:
    """Return the requested coverages in the given order; an empty list for None."""
    if coverage is None:
        return []
    check_unmasked("coverage", coverage)
    given = np.atleast_1d(np.asarray(coverage, dtype=object))
    found = []
    for each in given.ravel().tolist():
        number = isinstance(each, (int, float, np.number)) and not isinstance(each, bool)
        if not number or not 0 < float(each) < 1:
            raise ValueError(
                f"coverage={coverage!r} must be a probability between 0 and 1, such as 0.9, or a "
                "list of such probabilities."
            )
        found.append(float(each))
    if not found or len(set(found)) < len(found):
        raise ValueError(
            f"coverage={coverage!r} must contain at least one probability, and none of them twice."
        )
    return found


def warn_of_bounds(n_free: Sequence[int], n_steps: int, panel: Panel) -> None:
    """Warn if the forecasts of one or more series were clipped at their bounds.

    `n_free` contains the number of steps before each forecast was clipped.
    """
    clipped = [i for i, each in enumerate(n_free) if each < n_steps]
    if not clipped:
        return
    which = f" of series {panel.ids[clipped[0]]!r}" if len(panel) > 1 else ""
    more = f" (and {len(clipped) - 1} more)" if len(clipped) > 1 else ""
    warnings.warn(
        f"The forecast{which}{more} was clipped at its bounds, first in step "
        f"{n_free[clipped[0]]} of {n_steps} (counted from 0): it left the range of the training "
        "data by more than the parameter clip allows. The rows from that step on are unreliable. "
        "Fit more rows, or forecast fewer steps.",
        RuntimeWarning,
        stacklevel=caller_level(),
    )


def warn_beyond_bounds(later: Sequence[Later], n_rows: Sequence[int], panel: Panel) -> None:
    """Warn if later rows are beyond the bounds of forecasts; parameters as in `check_update`."""
    for i, (one, n) in enumerate(zip(later, n_rows, strict=True)):
        beyond = one.beyond[len(one.values) - n :]
        if one.fit.possible is not None:  # any value of bool is expected
            beyond = beyond & ~np.isfinite(one.fit.possible).all(axis=0)
        if not beyond.any():
            continue
        row, column = (int(k) for k in np.argwhere(beyond)[0])
        values, bounds = one.values[len(one.values) - n :], one.fit.bounds
        which = panel.name_of_series(i)
        warnings.warn(
            f"{which} has the value {values[row, column]:.6g} in row {row} of update, but the "
            "forecasts of models that were fitted to earlier rows are between "
            f"{bounds.low[column]:.6g} and {bounds.high[column]:.6g} (clip). These bounds are "
            "widened, but the models have not learned such values. Fit again with all rows.",
            UserWarning,
            stacklevel=caller_level(),
        )
        return


def warn_of_numbers(panel: Panel) -> None:
    """Warn if whole numbers in the index of a series may be dates."""
    for i, calendar in enumerate(panel.calendars):
        if calendar.kind == "number" and not calendar.plain:
            check_written_dates(panel.name_of_series(i), calendar.index)
            return


def warn_of_times(values: Sequence[Array], panel: Panel) -> None:
    """Warn if one of several columns rises by equal steps in every series, as times do."""
    if values[0].shape[1] < 2:
        return
    for column in range(values[0].shape[1]):
        if all(_rises_evenly(rows[:, column]) for rows in values):
            names = panel.containers[0].names
            which = repr(names[column]) if names else str(column)
            warnings.warn(
                f"Column {which} of y rises by equal steps in every series, as times do, and is "
                "forecast like a variable. If it contains times, name it `time_column`, or drop "
                "it.",
                UserWarning,
                stacklevel=caller_level(),
            )
            return


def _rises_evenly(values: Array) -> bool:
    steps = np.diff(values)
    even = len(steps) > 1 and bool(steps[0] > 0)  # NaN is neither
    return even and bool(np.allclose(steps, steps[0], rtol=1e-6, atol=0.0))


def warn_of_odd(fits: Sequence[Fit], panel: Panel, first_rows: Sequence[int]) -> None:
    """Warn of odd values at the end of series, from row `first_rows` of each series on.

    `panel` has the calendars after the last rows.
    """
    found: list[tuple[int, OddValues, int]] = []
    for i, (fit, first) in enumerate(zip(fits, first_rows, strict=True)):
        odd = fit.ending.odd
        if odd is not None:
            found += [(i, odd, k) for k in np.flatnonzero(odd.rows >= first).tolist()]
    if not found:
        return
    i, odd, k = found[0]
    which = panel.name_of_series(i)
    column = f", column {odd.columns[k]}" if len(odd.shift) > 1 else ""
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    bounds = fits[i].bounds  # a forecast of one step may be beyond them, such as below 0 for counts
    expected = np.clip(odd.expected, bounds.low[odd.columns], bounds.high[odd.columns])[k]
    size = f"the difference is {odd.sizes[k]:.0f} times the typical error of one step"
    if not np.isfinite(odd.sizes[k]):
        size = "all earlier values were as expected"
    # intervals of data that were never negative do not become negative
    contained = odd.shift[odd.columns[k]] and (odd.values[k] >= 0 or bounds.low[odd.columns[k]] < 0)
    ends = ", and intervals contain its level" if contained else ""
    warnings.warn(
        f"{which} has the value {odd.values[k]:.6g} in row {panel.name_of_row(i, int(odd.rows[k]))}"
        f"{column}{others}, where {expected:.6g} was expected: {size}. "
        f"It counts as missing{ends}. If "
        'the period is not over or the value is wrong, drop it or set outliers="missing"; if the '
        'value is right, set outliers="keep".',
        UserWarning,
        stacklevel=caller_level(),
    )


def warn_of_constants(fits: Sequence[StatisticalFit], panel: Panel) -> None:
    """Warn if all values of a series are equal."""
    for i, fit in enumerate(fits):
        values = np.where(fit.data.observed, fit.data.values, np.nan)
        varies = (np.nanmax(values, axis=0) > np.nanmin(values, axis=0)).any()
        if varies or fit.ending.odd is not None:
            continue
        which = panel.name_of_series(i)
        warnings.warn(
            f"All values of {which} are equal ({values[0, 0]:.6g}, n_samples="
            f"{len(values)}): the forecast is that value, and its intervals have zero width.",
            UserWarning,
            stacklevel=caller_level(),
        )
        return
