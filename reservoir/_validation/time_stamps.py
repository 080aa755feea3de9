"""The column of X that says when each row was measured: taken off, as the time between rows."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.sequences import Sequences


def take_time_stamps(
    sequences: Sequences, time_column: Any, names: Any, sequence_column: Any
) -> Sequences:
    """Return sequences without their column of times, and with the time between their rows.

    Parameters
    ----------
    sequences : Sequences
        Without the id column.
    time_column : int or str
        The column of X, where the id column counts.
    names : sequence of str, or None
        The columns of X, that of ids among them.
    sequence_column : int, str or None
        The id column, if there is one.

    Raises
    ------
    ValueError, TypeError
        If there is no such column or no other one, or times are missing or do not rise.
    """
    width = sequences.arrays[0].shape[1] + (sequence_column is not None)
    column = _number("time_column", time_column, names, width)
    place = column
    if sequence_column is not None:
        ids = _number("sequence_column", sequence_column, names, width)
        if ids == column:
            raise ValueError(
                f"time_column={time_column!r} and sequence_column={sequence_column!r} are the same "
                "column of X: a row needs both an id and a time."
            )
        place -= ids < column
    if sequences.arrays[0].shape[1] == 1:
        raise ValueError(
            "X has no column besides that of times: at least 1 channel is required. (A 2-D array "
            "is one series of one channel per row: give (n_sequences, n_steps, n_channels).)"
        )
    arrays, gaps = [], []
    for i, rows in enumerate(sequences.arrays):
        gaps.append(_gaps(sequences, i, rows[:, place], time_column))
        arrays.append(np.ascontiguousarray(np.delete(rows, place, axis=1)))
    return replace(sequences, arrays=tuple(arrays), gaps=tuple(gaps))


def _number(parameter: str, column: Any, names: Any, width: int) -> int:
    """Return the number of a column of X that is given by its number or its name."""
    if isinstance(column, str):
        known = [] if names is None else list(names)
        if column not in known:
            raise ValueError(
                f"{parameter}={column!r} is not among the feature names {known}. Give the column's "
                "number, or DataFrames with that column."
            )
        return known.index(column)
    if isinstance(column, bool) or not isinstance(column, numbers.Integral):
        raise TypeError(f"{parameter} must be an int or a feature name; got {column!r}.")
    number = int(column)
    if not -width <= number < width:
        raise ValueError(f"{parameter}={number} is outside X, which has {width} columns.")
    return number % width


def _gaps(sequences: Sequences, i: int, times: Array, time_column: Any) -> Array:
    """Return the time between the rows of a sequence, checked."""
    times = times.astype(np.float64)
    if np.isnan(times).any():
        step = int(np.argmax(np.isnan(times)))
        raise ValueError(
            f"The time in column {time_column!r} is NaN at {sequences.place(i, step)}: every row "
            "needs one."
        )
    gaps = np.diff(times)
    if not (gaps > 0).all():
        step = int(np.argmin(gaps > 0)) + 1
        raise ValueError(
            f"Times must rise within a sequence, and column {time_column!r} has {times[step]:g} "
            f"behind {times[step - 1]:g} at {sequences.place(i, step)}. Sort by time, and merge "
            "rows of the same time. (Gaps instead of times become times by their cumulative sum.)"
        )
    return gaps
