"""Parts of a forecast, read from arrays and pandas tables: values, bounds, times, names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_number, index_of
from reservoir.plotting._plot_arguments import columns

_BOUND = re.compile(r"(lower|upper) (.+)%")
_SIDES = ("lower", "upper")


class Guess(NamedTuple):
    """A forecast and its intervals.

    Attributes
    ----------
    values : array of shape (n_steps, n_outputs)
        The forecast.
    bounds : list of (str, array, array)
        The name of each interval, its lower and its upper bounds; the highest coverage first.
    """

    values: Array
    bounds: list[tuple[str, Array, Array]]


def read_guess(y_pred: Any, coverage: float | Sequence[float] | None) -> Guess:
    """Return a forecast and its intervals, identified by DataFrame columns or by `coverage`."""
    parts = _parts_of(y_pred)
    if parts is not None:
        values, levels = parts
    elif coverage is None:
        return Guess(columns("y_pred", y_pred), [])
    else:
        levels = [
            check_number("coverage", level, low=0.0, high=1.0, low_open=True, high_open=True)
            for level in np.atleast_1d(np.asarray(coverage, dtype=object))
        ]
        values = np.asarray(y_pred, dtype=float)
        if values.ndim == 2:
            values = values[:, None]
        n_parts = 1 + 2 * len(levels)
        if values.ndim != 3 or values.shape[2] != n_parts or values.size == 0:
            raise ValueError(
                f"y_pred has shape {np.shape(y_pred)}; with coverage={coverage!r} it must be "
                f"(n_steps, {n_parts}) or (n_steps, n_outputs, {n_parts}): the forecast, then a "
                "lower and an upper bound for each coverage."
            )
    bounds = [
        (f"{100 * level:.6g} % interval", values[:, :, 1 + 2 * k], values[:, :, 2 + 2 * k])
        for k, level in enumerate(levels)
    ]
    order = sorted(range(len(levels)), key=lambda k: -levels[k])
    return Guess(values[:, :, 0], [bounds[k] for k in order])


def _parts_of(y_pred: Any) -> tuple[Array, list[float]] | None:
    """Return the values and coverages of a DataFrame with named bounds; None for other input."""
    if not hasattr(y_pred, "columns"):
        return None
    several = getattr(y_pred.columns, "nlevels", 1) == 2
    names = [str(name[-1] if several else name) for name in y_pred.columns]
    if "forecast" not in names:
        return None
    n_outputs = names.count("forecast")
    part = names[: len(names) // n_outputs]
    bounds = [_BOUND.fullmatch(name) for name in part[1:]]
    wanted = ["forecast", *[f"{side} {b[2]}%" for b in bounds[::2] if b for side in _SIDES]]
    if part != wanted or names != part * n_outputs:
        raise ValueError(
            f"y_pred has the columns {names}; for each output they must be 'forecast', and then "
            "'lower 90%' and 'upper 90%' for each coverage."
        )
    values = np.asarray(y_pred, dtype=float).reshape(len(y_pred), n_outputs, len(part))
    return values, [float(b[2]) / 100 for b in bounds[::2] if b]


def stamps_of(table: Any) -> Array | None:
    """Return the times in a pandas index as a NumPy array, or None if the index has no times.

    The time of a period is its start; times with a time zone become naive local times. An index
    that only numbers the rows from 0 counts as having no times.
    """
    index = index_of(table)
    if index is None:
        return None
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    if index.dtype.kind == "M":
        return np.asarray(index.tz_localize(None))
    values = np.asarray(index)
    return None if np.array_equal(values, np.arange(len(values))) else values


def times_of_both(
    n_truth: int, n_guess: int, start: int | None, index: ArrayLike | None, tables: Sequence[Any]
) -> tuple[Array, Array]:
    """Return the times of the truth and of the forecast.

    Parameters
    ----------
    n_truth, n_guess : int
        Numbers of rows of the truth and of the forecast.
    start, index
        The user's values; both take precedence over the indexes of the tables.
    tables : (y_true, y_pred)
        The user's tables.
    """
    of_truth, of_guess = (None if index is not None else stamps_of(table) for table in tables)
    # both have times: the forecast is drawn at its own, which need not be times of the truth
    if start is None and of_guess is not None:
        numbered = of_truth is None and index_of(tables[0]) is not None
        own = np.arange(n_truth) if numbered else of_truth
        if own is not None and (own.dtype.kind == "M") == (of_guess.dtype.kind == "M"):
            return own, of_guess
    first = n_truth - n_guess if start is None else start
    if not 0 <= first <= n_truth:
        raise ValueError(
            f"start={start} puts the forecast's first row at row {first} of y_true, but that must "
            f"be in [0, {n_truth}]. Set start to the row of y_true that y_pred[0] forecasts."
        )
    n_rows = max(n_truth, first + n_guess)
    if index is not None:
        times = np.asarray(index)
        if times.shape != (n_rows,):
            raise ValueError(
                f"index has shape {times.shape}; it must be ({n_rows},), one time per row."
            )
    elif of_truth is None:
        times = np.arange(n_rows)
    elif n_rows > n_truth:
        raise ValueError(
            f"y_pred ends {n_rows - n_truth} rows after y_true, and the times of these rows are "
            "unknown. Pass y_pred with an index of the same kind as y_true, or pass all times as "
            "index."
        )
    else:
        times = of_truth
    return times[:n_truth], times[first : first + n_guess]


def names_in(table: Any) -> list[str] | None:
    """Return the column names of a pandas table, or None if it has no names."""
    if hasattr(table, "columns"):
        names = list(table.columns)
        return None if names == list(range(len(names))) else [str(name) for name in names]
    name = getattr(table, "name", None)
    return [str(name)] if name is not None and hasattr(table, "iloc") else None
