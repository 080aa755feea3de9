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

    Parameters
    ----------
    run : callable
        Function that runs one loop and returns the same results as
        `reservoir.dynamics.run_closed_loop` with ``return_steps=True``.
    readouts : sequence
        Readouts, each of which is passed to `run` as its first argument.
    n_steps : int
        Number of steps.
    initial_states : array of shape (n_starts, state_size)
        The state at each start.
    initial_outputs : array of shape (n_starts, n_outputs)
        The previous output that the first step from each start receives.
    exog : array of shape (n_starts, n_steps, n_exog), optional
        Exogenous inputs of each step.
    clip : (low, high) or callable, optional
        Bounds of the outputs that are fed back, or a function that maps the outputs of a step to
        the values that are fed back.

    Returns
    -------
    array of shape (n_steps, n_readouts, n_starts, n_outputs)
        The outputs; NaN from the step at which a loop diverges.
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
    """Return equally spaced starts of loops as pairs (index of the sequence, first row).

    Parameters
    ----------
    first : sequence of int
        The first row of each sequence at which a loop may start.
    lengths : sequence of int
        Number of rows of each sequence.
    n_steps : int
        Number of rows, from its start on, that a loop is compared with.
    n_starts : int
        Number of starts; fewer starts are returned if there are not enough rows.
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

    Parameters
    ----------
    places : sequence of (index, row)
        Starts of loops: the index of the sequence, and the row within it.
    starts : sequence of arrays of shape (state_size,)
        The state before the first row of each sequence.
    warm_up : callable
        ``warm_up(index, begin, end, state)`` runs teacher-forced over the rows ``begin:end`` of a
        sequence and returns the state after them.
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
