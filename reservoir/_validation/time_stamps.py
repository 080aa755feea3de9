"""Read the column of X that contains the time of each row, as the times between rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array


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
