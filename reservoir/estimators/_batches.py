"""Predictions of many sequences, made in batches and written into one result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import Sequences

_GROUP = 32  # sequences run in parallel: batches of whole groups give the same bits as one run
_SEQUENCES = 1024  # in a batch, each with a separate state
_FEWEST_ROWS = 4096  # batches of short sequences contain more of them, because of the overhead
_MOST_ROWS = 2**16


def batches_of(lengths: Sequence[int]) -> list[Array]:
    """Divide sequences of these lengths into batches, longest first.

    Returns the numbers of the sequences in each batch; no batches if one is enough.
    """
    if len(lengths) <= _SEQUENCES:
        return []
    sizes = np.asarray(lengths)
    order = np.argsort(-sizes, kind="stable")
    rows = np.append(0, np.cumsum(sizes[order]))  # number of rows before each sequence
    ends = [0]
    # the last batch has at least two sequences: a single one would run by another code path
    for end in range(_GROUP, len(order) - 1, _GROUP):
        begin, n_rows = ends[-1], rows[end] - rows[ends[-1]]
        many = end - begin >= _SEQUENCES and n_rows >= _FEWEST_ROWS
        if many or n_rows >= _MOST_ROWS:
            ends.append(end)
    return np.split(order, ends[1:])


class Placed:
    """Results of sequences, collected in the container of X without a second copy.

    Parameters
    ----------
    sequences : Sequences
    last_only : bool, default=False
        Whether only the last row of each sequence is kept, and the container is one array.
    """

    def __init__(self, sequences: Sequences, *, last_only: bool = False) -> None:
        self.sequences, self.last_only = sequences, last_only
        lengths = [1] * len(sequences) if last_only else sequences.lengths
        self._ends = np.cumsum(lengths)
        self._one_array = last_only or sequences.container in ("table", "array")
        self._rows: Array | None = None
        self._parts: list[Any] = [None] * len(sequences)

    def put(self, which: Sequence[int], parts: Sequence[Array]) -> None:
        """Store the results of some of the sequences, one array of rows for each.

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
        """Return the results in their container."""
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
    """Return decoded outputs in the container of X, and end states if requested.

    Batches save memory: the states of all sequences at once would need more than the result.

    Parameters
    ----------
    batches : sequence of arrays of int
        Batches from `batches_of`.
    sequences : Sequences
    spec : {"last", "zeros", "steady"} or array
        The initial state, as the user gave it.
    starts_of : callable
        ``starts_of(spec, sequences)`` returns the states before some sequences.
    run : callable
        ``run(sequences, starts)`` returns their outputs and end states.
    decode : callable
        Decodes the outputs of one sequence.
    last_only, return_state : bool, default=False
    """
    made, states = Placed(sequences, last_only=last_only), [np.empty(0)] * len(sequences)
    each = not isinstance(spec, str) and np.ndim(spec) != 1  # a state for each sequence
    if each and (np.ndim(spec) != 2 or len(spec) != len(sequences)):
        starts_of(spec, sequences)  # raises an error
    for which in (batch.tolist() for batch in batches):
        some = sequences.some(which)
        outputs, ends = run(some, starts_of(np.asarray(spec)[which] if each else spec, some))
        made.put(which, [decode(rows) for rows in outputs])
        if return_state:
            for i, end in zip(which, ends, strict=True):
                states[i] = end
    return made.container(), states


def packed_states(states: list[Array], sequences: Sequences) -> Array:
    """Return end states for the user: one array for one table, else a row for each sequence."""
    one_table = sequences.container == "table" and len(states) == 1
    return states[0] if one_table else np.stack(states)
