"""The order of rows by their pandas index, checked here for all estimators; remedies as code.

Dates that are missing, double or not in increasing order are refused. Numbers may be labels: a
permutation of whole numbers is warned of, and refused where a series has to go on.
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
_FALLING = 10  # whole numbers that fall in a tenth of the steps, or more, are no counter


@dataclass(frozen=True)
class Handling:
    """How a user changes the rows of a table, and those of what goes with it: code for messages.

    Parameters
    ----------
    table : str
        The variable that holds the table, or the list of them.
    others : tuple of str, default=()
        Variables with the same rows: y beside X.
    alike : bool, default=True
        Whether the others have the index of the table.
    methods : bool, default=True
        Whether the others are arrays or of pandas: lists have no method `take`.
    kind : {"table", "list", "levels", "ids"}, default="table"
        One sequence; a list of such; several in one table, told apart by the first levels of its
        index, or by a column.
    ids : str, default=""
        That column as an expression.
    """

    table: str
    others: tuple[str, ...] = ()
    alike: bool = True
    methods: bool = True
    kind: str = "table"
    ids: str = ""

    @classmethod
    def of(cls, X: Any, y: Any, *, is_table: bool, sequence_column: Any, by: str) -> Handling:
        """Return how X and y are handled; y is None where it has other rows.

        `by` is the one whose index is read, "X" or "y"; the other parameters as in `read_times`.
        """
        main, other = (X, y) if by == "X" else (y, X)
        if other is not None and is_table and np.shape(other)[1:] == (0,):
            other = None  # what stands in for X where there is none
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
        """Return the expression that numbers the sequences of a table, in their order."""
        if self.kind == "levels":
            return f"{self.table}.index.droplevel(-1).factorize()[0]"
        return f"{self.ids}.factorize()[0]"

    def _all(self, method: str) -> str:
        """Return code that calls a method of all tables."""
        names = (self.table, *self.others)
        if self.kind != "list":
            return f"{', '.join(names)} = {', '.join(f'{each}.{method}' for each in names)}"
        if not self.others:
            return f"{self.table} = [item.{method} for item in {self.table}]"
        joined = ", ".join(names)
        return f"{joined} = ([item.{method} for item in part] for part in ({joined}))"

    def _taken(self, rows: str) -> str:
        """Return code that keeps some rows of all tables; {} in `rows` stands for a table."""
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
        """Return code that puts the rows of each sequence in the order of their stamps."""
        if self.kind in ("levels", "ids"):
            ranks = f"{self._stamps('{}')}.factorize(sort=True)[0]"
            return self._taken(f"np.lexsort(({ranks}, {self._of_sequences()}))")
        simple = not self.others or self.alike
        return self._all("sort_index()") if simple else self._taken("{}.index.argsort()")

    def without_doubles(self) -> str:
        """Return code that keeps the first of rows that have the same stamp."""
        index = "{}.index"
        if self.kind == "ids":
            index = f"pd.MultiIndex.from_arrays([{self.ids}, {{}}.index])"
        return self._taken(f"(~{index}.duplicated()).nonzero()[0]")

    def means(self) -> str:
        """Return code that replaces rows of the same stamp by their mean; "" where none is simple.

        Means of labels are no labels: there it is not for y.
        """
        if self.kind in ("levels", "ids") or self.others:
            return ""
        return f", or their mean, {code(self._all('groupby(level=0).mean()'))}"

    def of_clocks(self) -> str:
        """Return code that tells apart the hours that clocks repeat."""
        if self.kind in ("levels", "ids"):
            return ""
        own = self if self.alike or not self.others else Handling(self.table, kind=self.kind)
        told = code(own._all('tz_localize("Europe/Berlin", ambiguous="infer")'))
        return f" Where clocks were set back, {told}, say, tells the two hours apart."

    def without_missing(self) -> str:
        """Return code that drops the rows without a stamp."""
        return self._taken(f"{self._stamps('{}')}.notna().nonzero()[0]")

    def numbered(self) -> str:
        """Return code that numbers the rows, so that their stamps say nothing."""
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
    """Return the expression of a column of a DataFrame, given by its name or its number."""
    return f"{table}[{column!r}]" if isinstance(column, str) else f"{table}.iloc[:, {column}]"


def check_order(
    name: str,
    index: Any,
    starts: Array,
    handling: Callable[[], Handling],
    *,
    continues: bool = False,
) -> bool:
    """Refuse dates that are missing, or do not increase within each sequence; warn of numbers.

    Returns whether it has warned.

    Parameters
    ----------
    name : str
        What messages call the table.
    index : pandas.Index
        Its stamps.
    starts : array of int
        The first row of each sequence: from one to the next stamps may go back.
    handling : callable
        ``handling()`` is what remedies are made of.
    continues : bool, default=False
        Whether a series goes on with these stamps: then numbers are refused as dates are.
    """
    if not continues and not is_time(kind_of(index) or ""):
        return warn_if_permuted(name, index, starts, handling)
    if index.hasnans:
        row = int(np.argmax(index.isna()))
        raise ValueError(
            f"The index of {name} has no date in row {row} (NaT). Fill it, or drop that row: "
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
        f"behind row {row} ({show(index[row])}), and rows are steps of time in order. Sort them, "
        f"{code(handling().sorted())}; shuffle no rows when you split."
    )


def _check_unique(name: str, index: Any, begin: int, handling: Handling) -> None:
    """Refuse stamps that come twice in one sequence, which begins at row `begin`."""
    if index.is_unique:
        return
    rows = np.flatnonzero(index == index[np.flatnonzero(index.duplicated())[0]])
    hourly = index.dtype.kind == "M" and index.tz is None and _has_times(index)
    raise ValueError(
        f"The index of {name} has {show(index[rows[0]])} twice, in rows {begin + rows[0]} and "
        f"{begin + rows[1]}, and a row is one step of time. Keep one, "
        f"{code(handling.without_doubles())}{handling.means()}; several series in one table are "
        f"told apart by sequence_column=.{handling.of_clocks() if hourly else ''}"
    )


def _has_times(index: Any) -> bool:
    """Whether dates differ in the time of day."""
    return bool((index.normalize() != index).any() and len(set(index[:48].time)) > 1)


def dates_of_labels(table: Any) -> Any:
    """Return the durations or dates that an index of labels holds, in its last level; None if none.

    Dates are Python's, or text that says the year first: of other text the order is not known.
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
    except (ValueError, TypeError):  # not all are dates, or they are of several time zones
        return None
    return dates if isinstance(dates, pd.DatetimeIndex) and not dates.hasnans else None


def warn_if_permuted(
    name: str,
    index: Any,
    starts: Array,
    handling: Callable[[], Handling],
    what: str = "whole numbers",
) -> bool:
    """Warn of stamps that come once each in a sequence, and fall in a tenth of its steps.

    `what` they are is told; other parameters as in `check_order`. Returns whether it has warned.
    """
    row = _first_fall(numbers_of(index), starts)
    if row is not None:
        handled = handling()
        warnings.warn(
            f"The index of {name} is a permutation of {what}: row {row + 1} "
            f"({show(index[row + 1])}) comes behind row {row} ({show(index[row])}), and rows are "
            f"steps of time in order. Where these {what.split()[-1]} count time, sort the rows, "
            f"{code(handled.sorted())}, and shuffle none when you split. Where they are labels of "
            f"rows in the right order, number the rows: {code(handled.numbered())}.",
            UserWarning,
            stacklevel=caller_level(),
        )
    return row is not None


def _first_fall(numbers: Array, starts: Array) -> int | None:
    """Return the row before the first fall in a sequence that is permuted; None if none is.

    Numbers that come back (weekdays, hours) are labels. So are those that fall once, below where
    they began: months from November to February come back in a longer table only.
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
    # which sequences have a number twice
    sequence = np.repeat(np.arange(len(starts)), lasts - starts + 1)
    order = np.lexsort((numbers, sequence))
    same = (np.diff(numbers[order]) == 0) & (np.diff(sequence[order]) == 0)
    often[sequence[order][1:][same]] = False
    if not often.any():
        return None
    begin = starts[int(np.argmax(often))]
    return int(begin + np.argmax(falls[begin:]))
