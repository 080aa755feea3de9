"""One object for data: the rows of one or several sequences, and the form of their container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.times import NO_TIMES, Times


@dataclass(frozen=True)
class Sequences:
    """Rows of one or several sequences, and the container in which results are returned.

    Attributes
    ----------
    arrays : sequence of arrays, each of shape (n_samples_i, n_features)
        The rows of each sequence, without the id column; one 3-D array, which takes less memory
        than many views, if the container is "array" or "rows".
    container : {"table", "list", "object", "array", "rows"}
        One 2-D table; a list, an object array or a 3-D array of tables; or a 2-D table each row of
        which is a series of one column.
    ids : tuple or None
        The id of each sequence, from the id column or the MultiIndex of a table; None if the data
        have neither.
    times : Times
        The indexes of X and y, if they are pandas tables.
    numbers : tuple of int or None
        The position of each sequence in the data, if these are only some of them; None if they are
        all of them, in order.
    gaps : tuple of arrays, each of shape (n_samples_i - 1,), or None
        The times between consecutive rows, if X has a column of times; else None.
    columns : tuple
        Names of the columns of a table, or of the first table of several, with that of the ids;
        empty if they have none.
    id_place : int or None
        Position of the column of ids.
    """

    arrays: Sequence[Array]
    container: str
    ids: tuple[Any, ...] | None = None
    times: Times = NO_TIMES
    numbers: tuple[int, ...] | None = None
    gaps: tuple[Array, ...] | None = None
    columns: tuple[Any, ...] = ()
    id_place: int | None = None

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def lengths(self) -> list[int]:
        """Number of rows of each sequence."""
        return [len(array) for array in self.arrays]

    @property
    def bounds(self) -> Array:
        """Of all rows in turn, sequence i has those from ``bounds[i]`` to ``bounds[i + 1]``."""
        return np.cumsum([0, *self.lengths])

    @property
    def width(self) -> int:
        """Number of columns that the user passed: the column of ids is one of them."""
        if self.container == "rows":
            return len(self.arrays[0])
        return self.arrays[0].shape[1] + (self.id_place is not None)

    def column(self, j: int) -> str:
        """Return the words for a column of the arrays, by its position in the user's table."""
        j += self.id_place is not None and j >= self.id_place
        named = self.columns and isinstance(self.columns[j], str)
        return f"column {j} ({self.columns[j]!r})" if named else f"column {j}"

    def locate(self, row: int) -> tuple[int, int]:
        """Return the number of the sequence that has a row, and the step of the row in it."""
        bounds = self.bounds
        i = int(np.searchsorted(bounds, row, side="right")) - 1
        return i, row - int(bounds[i])

    def name(self, i: int) -> str:
        """Return the name of a sequence in messages, which contains its id or its number in X."""
        if self.ids is None:
            return f"sequence {i if self.numbers is None else self.numbers[i]} of X"
        value = self.ids[i]
        return f"sequence {value.item() if isinstance(value, np.generic) else value!r} of X"

    def place(self, i: int, step: int) -> str:
        """Return the name of a step of a sequence in messages."""
        return f"step {step} of {self.name(i)}"

    def some(self, which: Sequence[int]) -> Sequences:
        """Return some of the sequences, in the order of `which`; their names do not change."""
        arrays = tuple(self.arrays[i] for i in which)
        ids = None if self.ids is None else tuple(self.ids[i] for i in which)
        numbers = tuple(i if self.numbers is None else self.numbers[i] for i in which)
        gaps = None if self.gaps is None else tuple(self.gaps[i] for i in which)
        return replace(self, arrays=arrays, ids=ids, numbers=numbers, gaps=gaps)

    def split(self, rows: Array) -> list[Array]:
        """Split an array with the rows of all sequences into one array per sequence."""
        return np.split(rows, np.cumsum(self.lengths)[:-1])

    def restore(self, parts: Sequence[Array]) -> Any:
        """Return results, one array per sequence, in a container of the same kind as X."""
        if self.container == "table":
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        if self.container == "array":
            return np.stack(parts)
        if self.container == "list":
            return list(parts)
        packed = np.empty(len(parts), dtype=object)
        packed[:] = parts
        return packed
