"""Where runs start over rows that come at irregular times."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Clock, Sequences, caller_level, check_numbers


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
