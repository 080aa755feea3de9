"""The state before each sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences, check_choice, check_numbers
from reservoir.estimators._following import NOWHERE, Ended, gap_before, warn_of_restart


def initial_states(
    spec: Any,
    sequences: Sequences,
    *,
    n_units: int,
    n_fed_back: int,
    dtype: Any,
    last: Array | None,
    steady: Callable[..., Array],
    ended: Ended = NOWHERE,
) -> list[Array]:
    """Return the state before each sequence: units, then the last output if it is fed back.

    `last` stands for "last" when there is one sequence, unless `ended`, where training did, shows
    that the sequence does not follow; None means zeros. ``steady(u, quiet=False)`` is the state
    that a constant input leads to.
    """
    n_sequences, width = len(sequences), n_units + n_fed_back
    if isinstance(spec, str):
        check_choice("initial_state", spec, ("last", "steady", "zeros"))
        if spec == "last" and last is not None and n_sequences == 1:
            gap = gap_before(ended, sequences)
            if gap is None:
                return [last]
            state = np.zeros(width, dtype)
            state[:n_units] = steady(sequences.arrays[0][0], quiet=True)
            warn_of_restart(gap, from_zeros=not state.any())
            return [state]
        states = [np.zeros(width, dtype) for _ in range(n_sequences)]
        if spec == "steady":
            for state, X in zip(states, sequences.arrays, strict=True):
                state[:n_units] = steady(X[0])
        return states
    with np.errstate(over="ignore"):  # refused below
        given = check_numbers("initial_state", spec).astype(dtype)
    if given.shape not in {
        shape for size in (n_units, width) for shape in ((size,), (n_sequences, size))
    }:
        extra = f", or {width} with the last output behind" if n_fed_back else ""
        raise ValueError(
            f'initial_state must be "last", "zeros", "steady" or an array of shape ({n_units},) '
            f"or (n_sequences={n_sequences}, {n_units}){extra}; got shape {given.shape}."
        )
    if not np.isfinite(given).all():
        raise ValueError("initial_state contains NaN or infinity.")
    given = np.broadcast_to(given, (n_sequences, given.shape[-1]))
    padded = np.zeros((n_sequences, width), dtype)
    padded[:, : given.shape[1]] = given
    return list(padded)
