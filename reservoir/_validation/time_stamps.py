"""Read the column of X that contains the time of each row, as the times between rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation.columns import column_number
from reservoir._validation.sequences import Sequences, as_finite


@saved
@dataclass(frozen=True)
class Clock:
    """Conversion of the column of times to steps, and of steps to times for messages.

    Parameters
    ----------
    place : int
        Position of the column of times in X, not counting the id column.
    origin : float
        The time of step 0: the time of the first row in fit.
    step : float
        The time that one step takes.
    """

    place: int
    origin: float
    step: float

    @classmethod
    def of(cls, sequences: Sequences, place: int, time_step: Any) -> Clock:
        """Return the clock for the sequences of fit; `time_step` as in `step_of`."""
        origin = float(sequences.arrays[0][0, place])
        return cls(place, origin, step_of(sequences, time_step))

    def channels(self, rows: Array) -> Array:
        """Return rows without their column of times."""
        return np.delete(rows, self.place, axis=1)

    def require_later(self, first: float, last: float) -> None:
        """Raise unless rows that begin at step `first` come after a state at step `last`."""
        if not first > last:
            raise ValueError(
                f"Times must increase: these rows begin at {self.time_at(first):.12g}, but "
                f"continue from a state at {self.time_at(last):.12g}. If they begin a new "
                "sequence, use new_sequence=True in partial_fit, `session.reset()` in a "
                'session, or initial_state="steady" (or "zeros") in predict.'
            )

    def check_can_loop(self) -> NoReturn:
        """Raise an error: in a closed loop the times of the steps are not known."""
        raise ValueError(
            "A forecast needs steps of equal length, but with time_column their length varies. "
            "Interpolate the rows at equal steps, and fit without time_column."
        )

    def time_at(self, steps: float) -> float:
        """Return the time, in the user's units, after a number of steps."""
        return self.origin + self.step * float(steps)

    def set(self, sequences: Sequences, dtype: Any) -> Sequences:
        """Return sequences whose times are replaced by steps since the origin.

        The arrays are float64, but the values of all other columns are rounded to `dtype`. Times
        are not rounded, because the network uses their differences, which are small.
        """
        arrays = []
        for rows in sequences.arrays:
            timed = rows.copy()
            timed[:, self.place] = 0.0
            timed = as_finite("X", timed, dtype).astype(np.float64, copy=False)
            timed[:, self.place] = (rows[:, self.place] - self.origin) / self.step
            arrays.append(timed)
        return replace(sequences, arrays=tuple(arrays))


def check_leak_below_one(time_column: Any, leak_rate: Any) -> None:
    """Raise if all leak rates are 1, so that the times have no effect."""
    if np.all(np.equal(leak_rate, 1.0)):
        raise ValueError(
            f"time_column={time_column!r} has no effect at leak_rate=1: each step replaces the "
            "whole state, however long it took. Use a leak rate below 1."
        )


def step_of(sequences: Sequences, time_step: Any) -> float:
    """Return the duration of a step: `time_step` or, if it is "auto", the median time between rows.

    If it is "auto", at least one sequence must have two rows.
    """
    if not isinstance(time_step, str):
        return float(time_step)
    gaps = np.concatenate(sequences.gaps)  # type: ignore[arg-type]
    if not len(gaps):
        raise ValueError(
            'time_step="auto" is the median time between rows, but no sequence has two rows. Set '
            "time_step to a number, in units of the column of times."
        )
    return float(np.median(gaps))


def take_time_stamps(
    sequences: Sequences, time_column: Any, names: Any, sequence_column: Any
) -> Sequences:
    """Return sequences without their column of times, and with the time between their rows.

    Parameters and errors as in `with_gaps`.
    """
    remedy = (
        " (In a 2-D array each row is a series of one channel: pass an array of shape "
        "(n_sequences, n_steps, n_channels).)"
    )
    timed, place = with_gaps(sequences, time_column, names, sequence_column, remedy)
    arrays = (np.ascontiguousarray(np.delete(rows, place, axis=1)) for rows in timed.arrays)
    return replace(timed, arrays=tuple(arrays))


def with_gaps(
    sequences: Sequences, time_column: Any, names: Any, sequence_column: Any, remedy: str = ""
) -> tuple[Sequences, int]:
    """Return sequences with the time between their rows, and the position of the column of times.

    Parameters
    ----------
    sequences : Sequences
        The sequences, without the id column.
    time_column : int or str
        Number or name of the column of times in X, counting the id column.
    names : sequence of str, or None
        The names of the columns of X, including the id column.
    sequence_column : int, str or None
        Number or name of the id column; None if there is none.
    remedy : str, default=""
        Text to append to the message if X has no other column.

    Raises
    ------
    ValueError, TypeError
        If X has no such column, or no other column, or if times are missing or do not increase.
    """
    width = sequences.arrays[0].shape[1] + (sequence_column is not None)
    column = column_number("time_column", time_column, names, width)
    place = column
    if sequence_column is not None:
        ids = column_number("sequence_column", sequence_column, names, width)
        if ids == column:
            raise ValueError(
                f"time_column={time_column!r} and sequence_column={sequence_column!r} are the same "
                "column of X: a row needs both an id and a time."
            )
        place -= ids < column
    if sequences.arrays[0].shape[1] == 1:
        raise ValueError(
            f"X has no column except the column of times: at least 1 feature is required.{remedy}"
        )
    each = enumerate(sequences.arrays)
    gaps = tuple(_gaps(sequences, i, rows[:, place], time_column) for i, rows in each)
    return replace(sequences, gaps=gaps), place


def _gaps(sequences: Sequences, i: int, times: Array, time_column: Any) -> Array:
    """Return the times between consecutive rows of a sequence; raise unless all are positive."""
    times = times.astype(np.float64)
    if np.isnan(times).any():
        step = int(np.argmax(np.isnan(times)))
        raise ValueError(
            f"The time in column {time_column!r} is NaN at {sequences.place(i, step)}, but every "
            "row needs a time."
        )
    gaps = np.diff(times)
    if not (gaps > 0).all():
        step = int(np.argmin(gaps > 0)) + 1
        raise ValueError(
            f"Times must increase within a sequence, but column {time_column!r} has "
            f"{times[step]:.12g} after {times[step - 1]:.12g} at {sequences.place(i, step)}. Sort "
            "by time, and merge rows with the same time. (If the column contains gaps instead of "
            "times, use their cumulative sum.)"
        )
    return gaps
