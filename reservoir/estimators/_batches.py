"""Predictions of many sequences: made batch by batch, each put where it belongs in the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences

_GROUP = 32  # sequences that run side by side: batches of whole groups lead to the bits of one run
_SEQUENCES = 1024  # in a batch, each with a state of its own
_FEWEST_ROWS = 4096  # of short sequences there are more, for the overhead of a batch
_MOST_ROWS = 2**16


def batches_of(lengths: Sequence[int]) -> list[Array]:
    """Cut sequences of these lengths into batches, longest first.

    Returns their numbers; none where there are too few sequences for two.
    """
    if len(lengths) <= _SEQUENCES:
        return []
    sizes = np.asarray(lengths)
    order = np.argsort(-sizes, kind="stable")
    rows = np.append(0, np.cumsum(sizes[order]))  # that come before each sequence
    ends = [0]
    for end in range(_GROUP, len(order) - 1, _GROUP):  # a single one is run by other rules
        begin, n_rows = ends[-1], rows[end] - rows[ends[-1]]
        many = end - begin >= _SEQUENCES and n_rows >= _FEWEST_ROWS
        if many or n_rows >= _MOST_ROWS:
            ends.append(end)
    return np.split(order, ends[1:])


class Placed:
    """Results of sequences in the container that X came in, held once.

    Parameters
    ----------
    sequences : Sequences
    last_only : bool, default=False
        Whether each sequence has one row, its last, and the container is one array.
    """

    def __init__(self, sequences: Sequences, *, last_only: bool = False) -> None:
        self.sequences, self.last_only = sequences, last_only
        lengths = [1] * len(sequences) if last_only else sequences.lengths
        self._ends = np.cumsum(lengths)
        self._one_array = last_only or sequences.container in ("table", "array")
        self._rows: Array | None = None
        self._parts: list[Any] = [None] * len(sequences)

    def put(self, which: Sequence[int], parts: Sequence[Array]) -> None:
        """Take what was made of some of the sequences, one array of rows for each.

        Parameters
        ----------
        which : sequence of int
        parts : sequence of arrays of shape (n_samples_i, ...)
        """
        for i, rows in zip(which, parts, strict=True):
            rows = rows[-1:] if self.last_only else rows
            if not self._one_array:
                self._parts[i] = rows
            else:
                if self._rows is None:
                    self._rows = np.empty((self._ends[-1], *rows.shape[1:]), rows.dtype)
                self._rows[self._ends[i] - len(rows) : self._ends[i]] = rows

    def container(self) -> Any:
        """Return all of it."""
        if not self._one_array:
            return self.sequences.restore(self._parts)
        assert self._rows is not None
        if self.last_only or self.sequences.container == "table":
            return self._rows
        return self._rows.reshape(len(self._ends), -1, *self._rows.shape[1:])


def run_in_batches(
    batches: Sequence[Array],
    sequences: Sequences,
    spec: Any,
    starts_of: Callable[[Any, Sequences], list[Array]],
    run: Callable[[Sequences, list[Array]], tuple[list[Array], list[Array]]],
    decode: Callable[[Array], Any],
    *,
    last_only: bool = False,
    return_state: bool = False,
) -> tuple[Any, list[Array]]:
    """Return what `decode` makes of outputs, in the container of X, and end states if asked for.

    The states of all sequences at once would take more memory than the result.

    Parameters
    ----------
    batches : sequence of arrays of int
        As `batches_of` cuts the sequences.
    sequences : Sequences
    spec : {"last", "zeros", "steady"} or array
        Where runs start, as the user gave it.
    starts_of : callable
        ``starts_of(spec, sequences)`` are the states before some sequences.
    run : callable
        ``run(sequences, starts)`` are their outputs and end states.
    decode : callable
    last_only, return_state : bool, default=False
    """
    made, states = Placed(sequences, last_only=last_only), [np.empty(0)] * len(sequences)
    each = not isinstance(spec, str) and np.ndim(spec) != 1  # a state for each sequence
    if each and (np.ndim(spec) != 2 or len(spec) != len(sequences)):
        starts_of(spec, sequences)  # refuses it
    for which in (batch.tolist() for batch in batches):
        some = sequences.some(which)
        outputs, ends = run(some, starts_of(np.asarray(spec)[which] if each else spec, some))
        made.put(which, [decode(rows) for rows in outputs])
        if return_state:
            for i, end in zip(which, ends, strict=True):
                states[i] = end
    return made.container(), states


def packed_states(states: list[Array], sequences: Sequences) -> Array:
    """Return end states as users get them: of one table one, else a row for each sequence."""
    one_table = sequences.container == "table" and len(states) == 1
    return states[0] if one_table else np.stack(states)
