"""One object for data: the rows of one or several sequences, and the form of their container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.sequences import Sequences


@dataclass(frozen=True)
class Form:
    """The container of data, without the values.

    Attributes
    ----------
    kind : {"table", "list", "object", "array", "rows"}
        One 2-D table; a list, an object array or a 3-D array of tables; or a 2-D table each row of
        which is a series of one column.
    columns : tuple
        Names of the columns of a table, or of the first table of several, with that of the ids;
        empty if they have none.
    id_place : int or None
        Position of the column of ids.
    """

    kind: str
    columns: tuple[Any, ...] = ()
    id_place: int | None = None


@dataclass(frozen=True)
class Table:
    """Rows of one or several sequences, read once by `read`.

    Attributes
    ----------
    name : str
        The parameter, for messages.
    values : array of shape (n_rows, n_columns)
        The rows of all sequences in turn, float64 or float32.
    bounds : array of int of shape (n_sequences + 1,)
        Sequence i has the rows from ``bounds[i]`` to ``bounds[i + 1]``.
    form : Form
    ids : tuple or None
        The id of each sequence; None if the data have none.
    items : sequence of arrays, or None
        The same rows in arrays of their own, as the user passed them: where they serve as parts,
        `values` are held no longer than the checks take.
    """

    name: str
    values: Array
    bounds: Array
    form: Form
    ids: tuple[Any, ...] | None = None
    items: Sequence[Array] | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def width(self) -> int:
        """Number of columns that the user passed: the column of ids is one of them."""
        if self.form.kind == "rows":
            return int(self.bounds[1])
        return self.values.shape[1] + (self.form.id_place is not None)

    def column(self, j: int) -> str:
        """Return the words for a column of the values, by its position in the user's table."""
        place, names = self.form.id_place, self.form.columns
        j += place is not None and j >= place
        return (
            f"column {j} ({names[j]!r})" if names and isinstance(names[j], str) else f"column {j}"
        )

    def sequence_at(self, row: int) -> tuple[int, int]:
        """Return the number of the sequence that has a row, and the first row of that sequence."""
        i = int(np.searchsorted(self.bounds, row, side="right")) - 1
        return i, int(self.bounds[i])

    @property
    def parts(self) -> Sequence[Array]:
        """The rows of each sequence; one 3-D array, which takes less memory than many views."""
        if self.items is not None:
            return self.items
        if self.form.kind in ("array", "rows"):
            return self.values.reshape(len(self), -1, self.values.shape[1])  # type: ignore[return-value]
        ends = self.bounds.tolist()
        return tuple(self.values[i:j] for i, j in pairwise(ends))

    @property
    def sequences(self) -> Sequences:
        """The sequences, as estimators use them."""
        return Sequences(self.parts, self.form.kind, self.ids)
