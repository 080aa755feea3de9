"""Predictions of many sequences: made batch by batch, each put where it belongs in the result."""

from __future__ import annotations

from collections.abc import Sequence
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
