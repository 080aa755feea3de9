"""Many closed loops run one after the other, and their initial states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array

Run = Callable[..., tuple[Array, Array, int]]
WarmUp = Callable[[int, int, int, Array], Array]
Places = list[tuple[int, int]]


def run_one_by_one(
    run: Run,
    readouts: Sequence[Any],
    n_steps: int,
    *,
    initial_states: Array,
    initial_outputs: Array,
    exog: Array | None = None,
    clip: Any = None,
) -> Array:
    """Run one closed loop for each pair of start and readout, one after the other.

    ``run(readout, n_steps, ...)`` returns what `run_closed_loop` does with ``return_steps=True``.
    From each start, a loop begins with a state, (n_starts, state_size), and the output that its
    first step receives, (n_starts, n_outputs); `exog` is (n_starts, n_steps, n_exog), and `clip`
    bounds or maps what is fed back. Return outputs, (n_steps, n_readouts, n_starts, n_outputs); NaN
    from divergence on.
    """
    rows = np.full((n_steps, len(readouts), *initial_outputs.shape), np.nan)
    for k, readout in enumerate(readouts):
        for i, (state, output) in enumerate(zip(initial_states, initial_outputs, strict=True)):
            outputs, _, n_valid = run(
                readout,
                n_steps,
                initial_state=state,
                initial_output=output,
                exog=None if exog is None else exog[i],
                clip=clip,
            )
            rows[:n_valid, k, i] = outputs[:n_valid]
    return rows


def evenly_spaced_starts(
    first: Sequence[int], lengths: Sequence[int], n_steps: int, n_starts: int
) -> Places:
    """Return equally spaced starts of loops as pairs (index of the sequence, row in it).

    A loop may start from row `first` of each sequence on, and is compared with `n_steps` rows from
    its start on. There are fewer than `n_starts` if there are not enough rows.
    """
    rooms = [max(n - n_steps - row + 1, 0) for n, row in zip(lengths, first, strict=True)]
    total = sum(rooms)
    n_starts = min(n_starts, total)
    picks = np.arange(n_starts) * (total - 1) // max(n_starts - 1, 1)
    ends = np.cumsum(rooms)
    index = np.searchsorted(ends, picks, side="right")
    return [
        (int(i), int(first[i] + pick - (ends[i] - rooms[i])))
        for i, pick in zip(index, picks, strict=True)
    ]


def states_before(
    places: Sequence[tuple[int, int]], starts: Sequence[Array], warm_up: WarmUp
) -> list[Array]:
    """Return the state before each start of a loop, from one run over each sequence.

    `places` are pairs of the index of a sequence and the row in it; `starts` are the states before
    the first rows. ``warm_up(index, begin, end, state)`` runs teacher-forced over the rows
    ``begin:end`` of a sequence and returns the state after them.
    """
    found: dict[int, Array] = {}
    index, at, state = -1, 0, np.empty(0)
    for k in sorted(range(len(places)), key=places.__getitem__):  # so that one pass is enough
        i, row = places[k]
        if i != index:
            index, at, state = i, 0, starts[i]
        if row > at:
            at, state = row, warm_up(i, at, row, state)
        found[k] = state
    return [found[k] for k in range(len(places))]
