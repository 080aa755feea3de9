"""Rows that a session has predicted, and that still wait for their targets."""

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
        The outputs of the readout at that time.
    """

    def __init__(self, first: int, rows: Array, state: Array, outputs: Array) -> None:
        self.first, self.rows, self.state, self.outputs = first, rows, state, outputs

    @property
    def end(self) -> int:
        """The number of the row after the last one."""
        return self.first + len(self.rows)


@saved
class PendingRows:
    """The last rows that a session has run over and not learned from, in order.

    Rows are found by their values, in a time that hardly depends on the number of waiting rows.

    Parameters
    ----------
    most : int
        Number of rows to keep; older ones are dropped. The last chunk is kept whole.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._build([])

    def _build(self, chunks: list[Chunk]) -> None:
        self.chunks: deque[Chunk] = deque(chunks)
        self._n_rows = sum(len(chunk.rows) for chunk in chunks)
        # an index of the first rows, extended when it is needed: their values in order, and the
        # numbers of the rows that have a value
        self._keys: deque[bytes] = deque()
        self._numbers: dict[bytes, deque[int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to be saved."""
        return {"most": self.most, "chunks": list(self.chunks)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        chunks = state["chunks"]
        if any(later.first != chunk.end for chunk, later in itertools.pairwise(chunks)):
            raise ValueError("the chunks of waiting rows are not consecutive")
        self.most = state["most"]
        self._build(chunks)

    def __len__(self) -> int:
        return self._n_rows

    @property
    def end(self) -> int | None:
        """The number of the row after the last one; None if no rows wait."""
        return self.chunks[-1].end if self.chunks else None

    def add(self, chunk: Chunk) -> None:
        """Add rows that follow the waiting ones."""
        self.chunks.append(chunk)
        self._n_rows += len(chunk.rows)
        while len(self.chunks) > 1 and self._n_rows - len(self.chunks[0].rows) >= self.most:
            self.drop_before(self.chunks[1].first)

    def find(self, rows: Array) -> Iterator[int]:
        """Yield the numbers of the first rows of all matches, the oldest first."""
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
        for number in self._numbers.get(keys[0], ()):
            if number > last:
                return
            at = number - first.first
            if all(self._keys[at + i] == keys[i] for i in range(1, len(keys))):
                yield number

    def match(self, rows: Array, predicted: bool | None) -> int | None:
        """Return the number of the first waiting row that matches; None if the rows are new.

        `predicted` states whether the rows have been predicted; with None their values determine
        it.
        """
        if predicted is not None:
            check_switch("predicted", predicted)
        if predicted is False:
            return None
        found = list(itertools.islice(self.find(rows), 2))
        if not found:
            if predicted:
                raise ValueError(
                    f"predicted=True, but the {len(self)} rows that wait for their targets do not "
                    f"include these {len(rows)} rows, one after another. Rows wait from predict "
                    "until they, or later rows, are learned from. Omit predicted for rows that "
                    "were not predicted."
                )
            return None
        if len(found) > 1 and predicted is None:
            warnings.warn(
                "Rows equal to these have been predicted several times and wait for their targets: "
                "the oldest are learned from. Give predicted=True if that is right, "
                "predicted=False if these are new rows.",
                UserWarning,
                stacklevel=caller_level(),
            )
        return found[0]

    def _index(self) -> None:
        """Add all rows that are missing in the index."""
        done = self.chunks[0].first + len(self._keys)
        for chunk in self.chunks:
            if chunk.end > done:
                rows = chunk.rows[max(done - chunk.first, 0) :]
                for number, key in enumerate(_keys_of(rows), max(done, chunk.first)):
                    self._keys.append(key)
                    self._numbers.setdefault(key, deque()).append(number)

    def chunk_of(self, number: int) -> Chunk:
        """Return the chunk that contains a row."""
        return next(chunk for chunk in self.chunks if number < chunk.end)

    def outputs(self, begin: int, end: int) -> Array:
        """Return the outputs of rows at the time when they were run over."""
        parts = []
        for chunk in self.chunks:
            if chunk.first >= end:
                break
            if chunk.end > begin:
                parts.append(chunk.outputs[max(begin - chunk.first, 0) : end - chunk.first])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def drop_before(self, number: int, state: Array | None = None) -> None:
        """Drop all rows before one, and replace the state before it if `state` is given."""
        while self.chunks and self.chunks[0].first < number:
            chunk = self.chunks.popleft()
            n_dropped = min(number, chunk.end) - chunk.first
            self._n_rows -= n_dropped
            for _ in range(min(n_dropped, len(self._keys))):
                key = self._keys.popleft()
                self._numbers[key].popleft()
                if not self._numbers[key]:
                    del self._numbers[key]
            if n_dropped < len(chunk.rows):
                rest = Chunk(number, chunk.rows[n_dropped:], chunk.state, chunk.outputs[n_dropped:])
                self.chunks.appendleft(rest)
        if self.chunks and state is not None:
            self.chunks[0].state = state

    def drop_from(self, number: int) -> None:
        """Drop all chunks from a row on; none of their rows may be in the index."""
        while self.chunks and self.chunks[-1].first >= number:
            self._n_rows -= len(self.chunks.pop().rows)

    def clear(self) -> None:
        """Drop all rows."""
        self._build([])


def _keys_of(rows: Array) -> Iterator[bytes]:
    """Yield the values of each row as one key, with -0 equal to 0."""
    rows = np.ascontiguousarray(rows + 0.0)
    return (row.tobytes() for row in rows)
