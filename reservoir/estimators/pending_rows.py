"""Rows that a session has predicted, and whose targets may come still."""

from __future__ import annotations

import itertools
import warnings
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import caller_level, check_switch


@saved
class Chunk:
    """Rows that were predicted together.

    Parameters
    ----------
    first : int
        The number of the first row among all that the session has run over.
    rows : array of shape (n_rows, n_features)
    state : array
        The state before the first row.
    outputs : array of shape (n_rows, ...)
        What the readout said of them then.
    """

    def __init__(self, first: int, rows: Array, state: Array, outputs: Array) -> None:
        self.first, self.rows, self.state, self.outputs = first, rows, state, outputs

    @property
    def end(self) -> int:
        """The number behind that of the last row."""
        return self.first + len(self.rows)


@saved
class PendingRows:
    """The last rows that a session has run over and not learned from, in order.

    A row is found by its values in about the same time however many wait.

    Parameters
    ----------
    most : int
        How many are kept; older ones are dropped. The last chunk stays whole.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._build([])

    def _build(self, chunks: list[Chunk]) -> None:
        self.chunks: deque[Chunk] = deque(chunks)
        self._n_rows = sum(len(chunk.rows) for chunk in chunks)
        # of the first rows, those that had to be told from others: their values, and where they are
        self._keys: deque[bytes] = deque()
        self._places: dict[bytes, deque[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what is to be saved."""
        return {"most": self.most, "chunks": list(self.chunks)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        chunks = state["chunks"]
        if any(later.first != chunk.end for chunk, later in itertools.pairwise(chunks)):
            raise ValueError("the chunks of rows that wait do not follow each other")
        self.most = state["most"]
        self._build(chunks)

    def __len__(self) -> int:
        return self._n_rows

    @property
    def end(self) -> int | None:
        """The number behind that of the last row; None if none wait."""
        return self.chunks[-1].end if self.chunks else None

    def add(self, chunk: Chunk) -> None:
        """Let rows wait that follow those that wait already."""
        self.chunks.append(chunk)
        self._n_rows += len(chunk.rows)
        while len(self.chunks) > 1 and self._n_rows - len(self.chunks[0].rows) >= self.most:
            self.drop_before(self.chunks[1].first)

    def find(self, rows: Array) -> Iterator[int]:
        """Yield the numbers of the rows at which rows equal to these begin, the oldest first."""
        if not 0 < len(rows) <= self._n_rows:
            return
        first = self.chunks[0]
        if len(first.rows) == len(rows) == self._n_rows:
            if np.array_equal(first.rows, rows):
                yield first.first
            return
        self._index()
        keys = list(_keys_of(rows))
        last = self.chunks[-1].end - len(keys)
        for place in self._places.get(keys[0], ()):
            if place > last:
                return
            at = place - first.first
            if all(self._keys[at + i] == keys[i] for i in range(1, len(keys))):
                yield place

    def meant(self, rows: Array, predicted: bool | None) -> int | None:
        """Return the number of the first of the rows that are meant; None for new ones.

        `predicted` says whether the rows have been predicted; None where their values tell.
        """
        if predicted is not None:
            check_switch("predicted", predicted)
        if predicted is False:
            return None
        places = list(itertools.islice(self.find(rows), 2))
        if not places:
            if predicted:
                raise ValueError(
                    f"predicted=True, but of the {len(self)} rows that wait for their targets none "
                    f"are equal to these {len(rows)}, one after another. Rows wait from predict "
                    "until they are learned from, or later ones are. Leave predicted out for rows "
                    "that were not predicted."
                )
            return None
        if len(places) > 1 and predicted is None:
            warnings.warn(
                "Rows equal to these have been predicted several times and wait for their targets: "
                "the oldest are learned from. Say predicted=True if that is right, predicted=False "
                "if these are new rows.",
                UserWarning,
                stacklevel=caller_level(),
            )
        return places[0]

    def _index(self) -> None:
        """Take note of the values of all rows that are new."""
        done = self.chunks[0].first + len(self._keys)
        for chunk in self.chunks:
            if chunk.end > done:
                rows = chunk.rows[max(done - chunk.first, 0) :]
                for number, key in enumerate(_keys_of(rows), max(done, chunk.first)):
                    self._keys.append(key)
                    self._places.setdefault(key, deque()).append(number)

    def chunk_of(self, place: int) -> Chunk:
        """Return the chunk that a row stands in."""
        return next(chunk for chunk in self.chunks if place < chunk.end)

    def outputs(self, begin: int, end: int) -> Array:
        """Return the outputs of rows as they were when they were run over."""
        parts = []
        for chunk in self.chunks:
            if chunk.first >= end:
                break
            if chunk.end > begin:
                parts.append(chunk.outputs[max(begin - chunk.first, 0) : end - chunk.first])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def drop_before(self, place: int, state: Array | None = None) -> None:
        """Drop all rows before one; `state` is now that before it."""
        while self.chunks and self.chunks[0].first < place:
            chunk = self.chunks.popleft()
            gone = min(place, chunk.end) - chunk.first
            self._n_rows -= gone
            for _ in range(min(gone, len(self._keys))):
                key = self._keys.popleft()
                self._places[key].popleft()
                if not self._places[key]:
                    del self._places[key]
            if gone < len(chunk.rows):
                rest = Chunk(place, chunk.rows[gone:], chunk.state, chunk.outputs[gone:])
                self.chunks.appendleft(rest)
        if self.chunks and state is not None:
            self.chunks[0].state = state

    def drop_from(self, place: int) -> None:
        """Drop all chunks from one on, none of whose rows has been looked for."""
        while self.chunks and self.chunks[-1].first >= place:
            self._n_rows -= len(self.chunks.pop().rows)

    def clear(self) -> None:
        """Drop all rows."""
        self._build([])


def _keys_of(rows: Array) -> Iterator[bytes]:
    """Yield the values of each row as one key; -0 is 0."""
    rows = np.ascontiguousarray(rows + 0.0)
    return (row.tobytes() for row in rows)
