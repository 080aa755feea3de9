"""Read the column of X that contains the time of each row, as the times between rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._tables.reading import column_number
from reservoir._tables.sequences import Sequences
from reservoir._typing import Array
from reservoir._validation.plain import as_finite


@saved
@dataclass(frozen=True)
class Clock:
    """Conversion of the column of times to steps, and of steps to times for messages.

    `place` is the position of the column in X, not counting the id column; `origin` the time of
    the first row in fit, step 0; `step` the time that one step takes, both in the user's units.
    """

    place: int
    origin: float
    step: float

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


def check_leak_below_one(time_column: Any, leak_rate: Any) -> None:
    """Raise if all leak rates are 1, so that the times have no effect."""
    if np.all(np.equal(leak_rate, 1.0)):
        raise ValueError(
            f"time_column={time_column!r} has no effect at leak_rate=1: each step replaces the "
            "whole state, however long it took. Use a leak rate below 1."
        )


def in_steps(clock: Clock, sequences: Sequences, dtype: Any) -> Sequences:
    """Return sequences whose times are replaced by steps since the origin of the clock.

    The arrays are float64, but the values of all other columns are rounded to `dtype`. Times are
    not rounded, because the network uses their differences, which are small.
    """
    arrays = []
    for rows in sequences.arrays:
        timed = rows.copy()
        timed[:, clock.place] = 0.0
        timed = as_finite("X", timed, dtype).astype(np.float64, copy=False)
        timed[:, clock.place] = (rows[:, clock.place] - clock.origin) / clock.step
        arrays.append(timed)
    return replace(sequences, arrays=tuple(arrays))


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
    """Return sequences with the time between rows, and the position of the column of times.

    `time_column` counts the id column, as `names` do, the names of all columns; the position does
    not, like the arrays of the sequences. Raise if X has no such or no other column (`remedy` ends
    the message), or if times are missing or do not increase.
    """
    width, ids = sequences.width, sequences.id_place
    place = column_number("time_column", time_column, names, width)
    if ids == place:
        raise ValueError(
            f"time_column={time_column!r} and sequence_column={sequence_column!r} are the same "
            "column of X: a row needs both an id and a time."
        )
    place -= ids is not None and ids < place
    if sequences.arrays[0].shape[1] == 1:
        raise ValueError(
            f"X has no column except the column of times: at least 1 feature is required.{remedy}"
        )
    # the times of all sequences at once; the step from one to the next is none
    times = np.concatenate([rows[:, place] for rows in sequences.arrays]).astype(np.float64)
    if np.isnan(times).any():
        at = sequences.locate(int(np.argmax(np.isnan(times))))
        raise ValueError(
            f"The time in column {time_column!r} is NaN at {sequences.place(*at)}, but every row "
            "needs a time."
        )
    gaps, between = np.diff(times), sequences.bounds[1:-1] - 1
    falls = gaps <= 0
    falls[between] = False
    if falls.any():
        row = int(np.argmax(falls)) + 1
        raise ValueError(
            f"Times must increase within a sequence, but column {time_column!r} has "
            f"{times[row]:.12g} after {times[row - 1]:.12g} at "
            f"{sequences.place(*sequences.locate(row))}. Sort by time, and merge rows with the "
            "same time. (If the column contains gaps instead of times, use their cumulative sum.)"
        )
    ends = between - np.arange(len(between))
    return replace(sequences, gaps=tuple(np.split(np.delete(gaps, between), ends))), place
