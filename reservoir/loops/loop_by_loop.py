"""Many closed loops one after the other, and the states that they begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array

Run = Callable[..., tuple[Array, Array, int]]
Listen = Callable[[int, int, int, Array], Array]
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
    """Run a loop from each start under each readout.

    Parameters
    ----------
    run : callable
        One loop, as `reservoir.dynamics.run_closed_loop` with ``return_steps=True``.
    readouts : sequence
        What `run` takes as its first argument.
    n_steps : int
    initial_states : array of shape (n_starts, state_size)
    initial_outputs : array of shape (n_starts, n_outputs)
        What the first step receives of the outputs.
    exog : array of shape (n_starts, n_steps, n_exog), optional
        Exogenous inputs of each step.
    clip : (low, high) or callable, optional
        Bounds of what is fed back, or a function that makes it of the outputs of a step.

    Returns
    -------
    array of shape (n_steps, n_readouts, n_starts, n_outputs)
        NaN from the step on at which a loop diverged.
    """
    rows = np.full((n_steps, len(readouts), *initial_outputs.shape), np.nan)
    for k, readout in enumerate(readouts):
        for i, (state, output) in enumerate(zip(initial_states, initial_outputs, strict=True)):
            said, _, n_valid = run(
                readout,
                n_steps,
                initial_state=state,
                initial_output=output,
                exog=None if exog is None else exog[i],
                clip=clip,
            )
            rows[:n_valid, k, i] = said[:n_valid]
    return rows


def places_behind(
    first: Sequence[int], lengths: Sequence[int], n_steps: int, n_starts: int
) -> Places:
    """Return where loops begin, at equal distances: (sequence, row of the first input).

    Parameters
    ----------
    first : sequence of int
        The first row of each sequence that may be a place.
    lengths : sequence of int
        Rows of each sequence.
    n_steps : int
        Rows that a loop is compared with, from its place on.
    n_starts : int
        Places, or as many as there are rows for them.
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
    places: Sequence[tuple[int, int]], starts: Sequence[Array], listen: Listen
) -> list[Array]:
    """Return the state before each place, from one run over each sequence.

    Parameters
    ----------
    places : sequence of (index, row)
        Which sequence, and which row of it.
    starts : sequence of arrays of shape (state_size,)
        The state before each sequence.
    listen : callable
        ``listen(index, begin, end, state)``, the state behind these rows of a sequence.
    """
    found: dict[int, Array] = {}
    index, at, state = -1, 0, np.empty(0)
    for k in sorted(range(len(places)), key=places.__getitem__):
        i, row = places[k]
        if i != index:
            index, at, state = i, 0, starts[i]
        if row > at:
            at, state = row, listen(i, at, row, state)
        found[k] = state
    return [found[k] for k in range(len(places))]
