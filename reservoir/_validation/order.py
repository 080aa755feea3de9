"""Check the order of rows by their pandas index; the messages contain code that repairs it.

Missing or duplicate dates, and dates that do not increase, raise an error. Numbers may be labels:
a permutation of whole numbers causes only a warning, unless the rows continue an earlier series.
"""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.index import is_time, kind_of, numbers_of, show
from reservoir._validation.scalars import caller_level
from reservoir._validation.wording import code

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FALLING = 10  # whole numbers that decrease in a tenth of the steps or more are not row numbers


@dataclass(frozen=True)
class Handling:
    """Code for messages: Python that changes the rows of a table and of its companion variables.

    Parameters
    ----------
    table : str
        Name of the variable that is the table, or the list of tables.
    others : tuple of str, default=()
        Names of the variables that have the same rows as the table, such as y if the table is X.
    alike : bool, default=True
        Whether the other variables have the same index as the table.
    methods : bool, default=True
        Whether the other variables are NumPy arrays or pandas objects, which have the method
        `take`; lists have not.
    kind : {"table", "list", "levels", "ids"}, default="table"
        "table": a single sequence. "list": a list of sequences. "levels" and "ids": several
        sequences in one table, identified by the outer levels of its index or by an id column.
    ids : str, default=""
        The Python expression for the id column, if `kind` is "ids".
    """

    table: str
    others: tuple[str, ...] = ()
    alike: bool = True
    methods: bool = True
    kind: str = "table"
    ids: str = ""

    @classmethod
    def of(cls, X: Any, y: Any, *, is_table: bool, sequence_column: Any, by: str) -> Handling:
        """Return the `Handling` of X and y.

        y is None if its rows do not correspond to the rows of X. `by` is "X" or "y": the one whose
        index is checked. The other parameters are as in `read_times`.
        """
        main, other = (X, y) if by == "X" else (y, X)
        if other is not None and is_table and np.shape(other)[1:] == (0,):
            other = None  # the placeholder for X of networks without inputs
        pairs = (
            [(main, other)]
            if is_table
            else list(zip(main, main if other is None else other, strict=False))
        )
        alike = all(
            hasattr(b, "iloc") and hasattr(a, "iloc") and a.index.equals(b.index) for a, b in pairs
        )
        methods = all(hasattr(b, "take") for _, b in pairs)
        kind, ids = "table" if is_table else "list", ""
        if is_table and main.index.nlevels > 1:
            kind = "levels"
        elif sequence_column is not None and hasattr(main, "columns"):
            kind, ids = "ids", column_code(by, sequence_column)
        others = () if other is None else ("y" if by == "X" else "X",)
        return cls(by, others, alike, methods, kind, ids)

    def _stamps(self, table: str) -> str:
        return f"{table}.index" + (".get_level_values(-1)" if self.kind == "levels" else "")

    def _of_sequences(self) -> str:
        """Return the expression for each row's sequence number, in the order of the sequences."""
        if self.kind == "levels":
            return f"{self.table}.index.droplevel(-1).factorize()[0]"
        return f"{self.ids}.factorize()[0]"

    def _all(self, method: str) -> str:
        """Return code that calls a method on the table and on the other variables."""
        names = (self.table, *self.others)
        if self.kind != "list":
            return f"{', '.join(names)} = {', '.join(f'{each}.{method}' for each in names)}"
        if not self.others:
            return f"{self.table} = [item.{method} for item in {self.table}]"
        joined = ", ".join(names)
        return f"{joined} = ([item.{method} for item in part] for part in ({joined}))"

    def _taken(self, rows: str) -> str:
        """Return code that selects rows of the table and of the other variables.

        `rows` is an expression for the rows, in which {} stands for the table.
        """
        names = ", ".join((self.table, *self.others))
        if self.kind == "list":
            taken = "[item.take(i, axis=0) for item, i in zip({}, rows)]"
            other = "[np.take(item, i, axis=0) for item, i in zip({}, rows)]"
            rows = f"[{rows.format('item')} for item in {self.table}]"
        else:
            taken, other, rows = "{}.take(rows, axis=0)", "np.take({}, rows, axis=0)", rows
            rows = rows.format(self.table)
        parts = [taken.format(self.table)]
        parts += [(taken if self.methods else other).format(each) for each in self.others]
        return f"rows = {rows}; {names} = {', '.join(parts)}"

    def sorted(self) -> str:
        """Return code that sorts the rows of each sequence by their stamps."""
        if self.kind in ("levels", "ids"):
            ranks = f"{self._stamps('{}')}.factorize(sort=True)[0]"
            return self._taken(f"np.lexsort(({ranks}, {self._of_sequences()}))")
        simple = not self.others or self.alike
        return self._all("sort_index()") if simple else self._taken("{}.index.argsort()")

    def without_doubles(self) -> str:
        """Return code that keeps the first of several rows with the same stamp."""
        index = "{}.index"
        if self.kind == "ids":
            index = f"pd.MultiIndex.from_arrays([{self.ids}, {{}}.index])"
        return self._taken(f"(~{index}.duplicated()).nonzero()[0]")

    def means(self) -> str:
        """Return advice, with code, to replace rows with the same stamp by their mean.

        It is "" for several sequences in one table, and if there are other variables: y may
        contain labels, which have no mean.
        """
        if self.kind in ("levels", "ids") or self.others:
            return ""
        return f", or their mean, {code(self._all('groupby(level=0).mean()'))}"

    def of_clocks(self) -> str:
        """Return advice, with code, to distinguish the two equal hours when clocks are set back."""
        if self.kind in ("levels", "ids"):
            return ""
        one = self if self.alike or not self.others else Handling(self.table, kind=self.kind)
        localized = code(one._all('tz_localize("Europe/Berlin", ambiguous="infer")'))
        return f" If clocks were set back, distinguish the two hours, for instance by {localized}."

    def without_missing(self) -> str:
        """Return code that drops the rows without a stamp."""
        return self._taken(f"{self._stamps('{}')}.notna().nonzero()[0]")

    def numbered(self) -> str:
        """Return code that replaces the stamps by row numbers."""
        if self.kind != "levels":
            numbered = self._all("reset_index(drop=True)")
            alike = not self.others or self.alike
            return numbered if alike else Handling(self.table, kind=self.kind).numbered()
        counts = f"{self.table}.groupby({self._of_sequences()}).cumcount().to_numpy()"
        made = f"{self.table} = {self.table}.droplevel(-1).set_index({counts}, append=True)"
        if self.others and self.alike:
            made += "".join(f"; {y} = {y}.set_axis({self.table}.index)" for y in self.others)
        return made


def column_code(table: str, column: Any) -> str:
    """Return the expression for a column of a DataFrame, given the column's name or number."""
    return f"{table}[{column!r}]" if isinstance(column, str) else f"{table}.iloc[:, {column}]"


def check_order(
    name: str,
    index: Any,
    starts: Array,
    handling: Callable[[], Handling],
    *,
    continues: bool = False,
) -> bool:
    """Raise if dates are missing or do not increase within a sequence; warn of permuted numbers.

    Return whether a warning was issued.

    Parameters
    ----------
    name : str
        Name of the table in messages.
    index : pandas.Index
        The stamps of the table.
    starts : array of int
        The first row of each sequence: stamps may decrease from one sequence to the next.
    handling : callable
        A function without arguments that returns the `Handling` with the code for the message.
    continues : bool, default=False
        Whether these stamps continue an earlier series. If so, numbers that do not increase also
        raise an error.
    """
    if not continues and not is_time(kind_of(index) or ""):
        return warn_if_permuted(name, index, starts, handling)
    if index.hasnans:
        row = int(np.argmax(index.isna()))
        raise ValueError(
            f"The index of {name} has no date in row {row} (NaT). Fill it in, or drop that row: "
            f"{code(handling().without_missing())}."
        )
    backwards = np.append(np.diff(numbers_of(index)) <= 0, False)
    backwards[starts[1:] - 1] = False
    if not backwards.any():
        return False
    row = int(np.argmax(backwards))
    sequence = int(np.searchsorted(starts, row, side="right")) - 1
    begin, end = starts[sequence], [*starts[1:], len(index)][sequence]
    _check_unique(name, index[begin:end], begin, handling())
    raise ValueError(
        f"The index of {name} is not increasing: row {row + 1} ({show(index[row + 1])}) comes "
        f"after row {row} ({show(index[row])}), but rows must be time steps in order. Sort them, "
        f"{code(handling().sorted())}, and do not shuffle rows when you split."
    )


def _check_unique(name: str, index: Any, begin: int, handling: Handling) -> None:
    """Raise if one sequence, which begins at row `begin`, has duplicate stamps."""
    if index.is_unique:
        return
    rows = np.flatnonzero(index == index[np.flatnonzero(index.duplicated())[0]])
    hourly = index.dtype.kind == "M" and index.tz is None and _has_times(index)
    raise ValueError(
        f"The index of {name} has {show(index[rows[0]])} twice, in rows {begin + rows[0]} and "
        f"{begin + rows[1]}, but each row must be one time step. If the table contains several "
        f"series, set sequence_column.{handling.of_clocks() if hourly else ''} Otherwise keep one "
        f"of them, {code(handling.without_doubles())}{handling.means()}."
    )


def _has_times(index: Any) -> bool:
    """Whether the dates of an index differ in the time of day."""
    return bool((index.normalize() != index).any() and len(set(index[:48].time)) > 1)


def dates_of_labels(table: Any) -> Any:
    """Return an index of labels as dates or durations; None if its entries are neither.

    The last level of a MultiIndex is used. Python dates and strings that begin with the year are
    converted; other strings are ambiguous.
    """
    import pandas as pd

    index = table.index.get_level_values(-1)
    if index.dtype.kind == "m":
        return None if index.hasnans else index
    first = index[0] if len(index) and str(index.dtype) in ("object", "str", "string") else None
    text = isinstance(first, str) and _ISO_DATE.match(first)
    if not text and not isinstance(first, datetime.date):
        return None
    try:
        dates = pd.to_datetime(index, **({"format": "ISO8601"} if text else {}))
    except (ValueError, TypeError):  # not all are dates, or they have different time zones
        return None
    return dates if isinstance(dates, pd.DatetimeIndex) and not dates.hasnans else None


def warn_if_permuted(
    name: str,
    index: Any,
    starts: Array,
    handling: Callable[[], Handling],
    what: str = "whole numbers",
) -> bool:
    """Warn if the stamps of a sequence are unique, and decrease in a tenth of its steps or more.

    `what` is the name of the stamps in the message; the other parameters are as in `check_order`.
    Return whether a warning was issued.
    """
    row = _first_fall(numbers_of(index), starts)
    if row is not None:
        handled = handling()
        warnings.warn(
            f"The index of {name} is a permutation of {what}: row {row + 1} "
            f"({show(index[row + 1])}) comes after row {row} ({show(index[row])}), but rows must "
            f"be time steps in order. If these {what.split()[-1]} represent time, sort the rows, "
            f"{code(handled.sorted())}, and do not shuffle rows when you split. If they are labels "
            f"of rows in the right order, number the rows: {code(handled.numbered())}.",
            UserWarning,
            stacklevel=caller_level(),
        )
    return row is not None


def _first_fall(numbers: Array, starts: Array) -> int | None:
    """Return the row before the first decrease in a permuted sequence; None if none is permuted.

    A sequence in which a number occurs twice (weekdays, hours) contains labels, and is not
    permuted. The same is assumed if its numbers decrease only once, and the last one is less than
    the first: months from November to February would occur twice in a longer table.
    """
    falls = np.append(np.diff(numbers) < 0, False)
    falls[starts[1:] - 1] = False
    if not falls.any() or (numbers.dtype.kind == "f" and (numbers % 1 != 0).any()):
        return None
    lasts = np.append(starts[1:], len(numbers)) - 1
    n_falls = np.add.reduceat(falls, starts, dtype=np.int64)
    often = (n_falls > 0) & (_FALLING * n_falls >= lasts - starts)
    often &= (n_falls > 1) | (numbers[lasts] > numbers[starts])
    if not often.any():
        return None
    # exclude sequences in which a number occurs twice
    sequence = np.repeat(np.arange(len(starts)), lasts - starts + 1)
    order = np.lexsort((numbers, sequence))
    same = (np.diff(numbers[order]) == 0) & (np.diff(sequence[order]) == 0)
    often[sequence[order][1:][same]] = False
    if not often.any():
        return None
    begin = starts[int(np.argmax(often))]
    return int(begin + np.argmax(falls[begin:]))
