"""The column of X that says when each row was measured: taken off, as the time between rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation.columns import column_number
from reservoir._validation.sequences import Sequences, as_finite
from reservoir._validation.wording import code


@saved
@dataclass(frozen=True)
class Clock:
    """What turns the column of times into steps, and back for messages.

    Parameters
    ----------
    place : int
        Where the column stands in X, the id column not counted.
    origin : float
        The time of step 0: the first in fit.
    step : float
        The time that one step takes.
    """

    place: int
    origin: float
    step: float

    @classmethod
    def of(cls, sequences: Sequences, place: int, time_step: Any) -> Clock:
        """Return the clock of the sequences of fit; `time_step` as in `step_of`."""
        origin = float(sequences.arrays[0][0, place])
        return cls(place, origin, step_of(sequences, time_step))

    def channels(self, rows: Array) -> Array:
        """Return rows without their column of times."""
        return np.delete(rows, self.place, axis=1)

    def require_later(self, first: float, last: float) -> None:
        """Refuse rows that begin at step `first` to go on from a state at step `last`."""
        if not first > last:
            raise ValueError(
                f"Times must rise: these rows begin at {self.time_at(first):.12g}, and go on from "
                f"a state at {self.time_at(last):.12g}. Where they begin another sequence say so: "
                f"new_sequence=True in partial_fit, {code('session.reset()')} in a session, "
                'initial_state="steady" or "zeros" in predict.'
            )

    def check_can_loop(self) -> NoReturn:
        """Refuse to run on own outputs."""
        raise ValueError(
            "A forecast takes steps of one length, and time_column has the network take them as "
            "they come. Put the rows on a regular grid (pandas' resample, then interpolate) and "
            "fit without time_column."
        )

    def time_at(self, steps: float) -> float:
        """Return the user's time of a number of steps."""
        return self.origin + self.step * float(steps)

    def set(self, sequences: Sequences, dtype: Any) -> Sequences:
        """Return sequences with steps since the origin in the place of times.

        They are float64, and all columns but that of times hold values of `dtype`: times are not
        rounded to it, and what a network makes of them, the time between rows, is small.
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
    """Refuse times where no unit takes account of them."""
    if np.all(np.equal(leak_rate, 1.0)):
        raise ValueError(
            f"time_column={time_column!r} changes nothing at leak_rate=1: each step replaces the "
            "whole state, however long it took. Take a leak rate below 1."
        )


def step_of(sequences: Sequences, time_step: Any) -> float:
    """Return the time that a step takes: `time_step`, or for "auto" the median time between rows.

    Sequences that have no two rows have none, and are refused.
    """
    if not isinstance(time_step, str):
        return float(time_step)
    gaps = np.concatenate(sequences.gaps)  # type: ignore[arg-type]
    if not len(gaps):
        raise ValueError(
            'time_step="auto" is the median time between rows, and no sequence has two. Give '
            "time_step as a number, in units of the column of times."
        )
    return float(np.median(gaps))


def take_time_stamps(
    sequences: Sequences, time_column: Any, names: Any, sequence_column: Any
) -> Sequences:
    """Return sequences without their column of times, and with the time between their rows.

    Parameters as in `with_gaps`, which says what is refused.
    """
    remedy = (
        " (A 2-D array is one series of one channel per row: give (n_sequences, n_steps, "
        "n_channels).)"
    )
    timed, place = with_gaps(sequences, time_column, names, sequence_column, remedy)
    arrays = (np.ascontiguousarray(np.delete(rows, place, axis=1)) for rows in timed.arrays)
    return replace(timed, arrays=tuple(arrays))


def with_gaps(
    sequences: Sequences, time_column: Any, names: Any, sequence_column: Any, remedy: str = ""
) -> tuple[Sequences, int]:
    """Return sequences with the time between their rows, and where the column of times stands.

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
    remedy : str, default=""
        What else to say where there is no other column.

    Raises
    ------
    ValueError, TypeError
        If there is no such column or no other one, or times are missing or do not rise.
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
            f"X has no column besides that of times: at least 1 feature is required.{remedy}"
        )
    each = enumerate(sequences.arrays)
    gaps = tuple(_gaps(sequences, i, rows[:, place], time_column) for i, rows in each)
    return replace(sequences, gaps=gaps), place


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
            f"Times must rise within a sequence, and column {time_column!r} has {times[step]:.12g} "
            f"behind {times[step - 1]:.12g} at {sequences.place(i, step)}. Sort by time, and merge "
            "rows of the same time. (Gaps instead of times become times by their cumulative sum.)"
        )
    return gaps
