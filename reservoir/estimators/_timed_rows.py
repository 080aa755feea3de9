"""Rows that come at irregular times: the column that says when, and what a run starts from."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import (
    Clock,
    Sequences,
    caller_level,
    check_numbers,
    read_series,
    refuse_full_leak,
    with_gaps,
)
from reservoir.estimators._parameters import TimeParameters, check_time_step


class TimedRows(TimeParameters):
    """An estimator of units with a leak, which may be told when its rows were measured."""

    _clock: Clock | None = None
    _time_column: Any = None

    def _read_rows(
        self, X: Any, y: Any, *, reset: bool, dtype: Any, sequence_column: Any
    ) -> Sequences:
        """Return the sequences of X; a column of times says when in steps since the first row."""
        if reset:
            check_time_step("time_step", self.time_step)
            step = self._step_to_take()
            self._time_column, self._clock, self.time_step_ = self.time_column, None, None
        column = self._time_column
        if column is None:
            return read_series(
                self, X, y, reset=reset, dtype=dtype, sequence_column=sequence_column
            )
        sequences = read_series(
            self,
            X,
            y,
            reset=reset,
            dtype=np.float64,
            sequence_column=sequence_column,
            has_times=True,
        )
        names = getattr(self, "feature_names_in_", None)
        sequences, place = with_gaps(sequences, column, names, sequence_column)
        if reset:
            refuse_full_leak(column, self.leak_rate)  # type: ignore[attr-defined]
            self._clock = Clock.of(sequences, place, step)
            self.time_step_ = self._clock.step
        assert self._clock is not None
        return self._clock.set(sequences, dtype)

    def _step_to_take(self) -> Any:
        """Return `time_step`; where training goes on, "auto" is the step that it went by."""
        goes_on = self._clock is not None and getattr(self, "warm_start", False)
        return self.time_step_ if goes_on and self.time_step == "auto" else self.time_step

    def _require_later(self, arrays: Sequence[Array], states: Sequence[Array]) -> None:
        """Refuse sequences of rows to go on from states that do not lie before them."""
        if self._clock is not None:
            for rows, state in zip(arrays, states, strict=True):
                self._clock.require_later(rows[0, self._clock.place], state[-1])

    def _starting_from(
        self, spec: Any, sequences: Sequences, last: Array | None, n_units: int
    ) -> Any:
        """Return where runs start; see `timed_starts`."""
        clock = self._clock
        return spec if clock is None else timed_starts(clock, spec, sequences, last, n_units)


def timed_starts(
    clock: Clock, spec: Any, sequences: Sequences, last: Array | None, n_units: int
) -> Any:
    """Return where runs start, as `Progress.starts` takes it, with the time before each run.

    "last" is "steady" where the rows do not come after the state, and a warning says so.
    """
    firsts = np.array([rows[0, clock.place] for rows in sequences.arrays])
    if isinstance(spec, str):
        if spec == "last" and last is not None and len(firsts) == 1 and firsts[0] <= last[-1]:
            _warn_of_earlier_rows(clock, firsts[0], last[-1])
            return "steady"
        if spec != "zeros":
            return spec
        spec = np.zeros(n_units)
    states = check_numbers("initial_state", spec)
    if states.ndim not in (1, 2) or states.shape[-1] != n_units:
        return spec
    states = np.broadcast_to(states, (len(firsts), n_units))
    return np.column_stack([states, firsts - 1])


def _warn_of_earlier_rows(clock: Clock, first: float, last: float) -> None:
    """Say that a run does not go on from the state at the end of training."""
    begin, end = (f"{clock.time_at(steps):.12g}" for steps in (first, last))
    warnings.warn(
        'initial_state="last" goes on from the end of training, but X begins at time '
        f"{begin}, and training ended at {end}. This run starts from the steady state of its first "
        'row instead. Give initial_state="steady" or "zeros" to start anew without this warning.',
        UserWarning,
        stacklevel=caller_level(),
    )
