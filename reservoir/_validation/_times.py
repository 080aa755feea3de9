"""The indexes of X and y together: which row of y belongs to which of X."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation._index import (
    Ending,
    Stamps,
    check_order,
    frequency,
    index_of,
    is_plain,
    is_time,
    kind_of,
    numbers_of,
    show,
    unit_of,
    warn_if_irregular,
)


class Span(NamedTuple):
    """The indexes of the first and the last sequence; the same where there is one."""

    first: Stamps
    last: Stamps


@dataclass(frozen=True)
class Times:
    """What the indexes of X and of y tell, None where one tells nothing."""

    X: Span | None = None
    y: Span | None = None

    def ended(
        self, before: tuple[Ending | None, Ending | None]
    ) -> tuple[Ending | None, Ending | None]:
        """Return where X and y end; `before`, where what they go on from did."""
        x = None if self.X is None else self.X.last.ending(before[0])
        return x, None if self.y is None else self.y.last.ending(before[1])


UNTOLD = Times()


class _Table(NamedTuple):
    """One table's index, and where its sequences begin."""

    name: str
    index: Any
    outer: Any  # the levels that tell the sequences, or None
    starts: Array
    kind: str
    plain: bool

    @property
    def bounds(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts, [*self.starts[1:], len(self.index)], strict=True)


def read_times(
    X: Any, y: Any, *, is_table: bool, lengths: list[int], check_frequency: bool
) -> Times:
    """Read what the indexes of X and y tell; refuse disorder, and rows that do not belong together.

    Parameters
    ----------
    X, y
        As the user gave them; y may be None.
    is_table : bool
        Whether they are one table, or collections with an item per sequence.
    lengths : list of int
        Rows of each sequence.
    check_frequency : bool
        Whether to warn where there is none.
    """
    starts = np.cumsum([0, *lengths[:-1]])
    tables = _tables("X", X, is_table, starts)
    targets = _tables("y", y, is_table, starts)
    targets = [
        None if t is None or len(t.index) != n else t
        for t, n in zip(targets, [sum(lengths)] if is_table else lengths, strict=False)
    ]
    dated = [table for table in tables if table is not None and is_time(table.kind)]
    dated = dated or [table for table in targets if table is not None and is_time(table.kind)]
    for table in dated:
        check_order(table.name, table.index, table.starts)
    for given, target in zip(tables, targets, strict=False):
        if given is not None and target is not None:
            _check_pair(given, target)
    if check_frequency:
        for table in dated:
            warn_if_irregular(table.name, table.index, table.starts)
    return Times(_span(tables), _span(targets))


def _tables(name: str, values: Any, is_table: bool, starts: Array) -> list[_Table | None]:
    if is_table:
        return [_table(name, values, starts)]
    if values is None or (isinstance(values, np.ndarray) and values.dtype != object):
        return []
    start = np.zeros(1, dtype=int)
    return [_table(f"sequence {i} of {name}", item, start) for i, item in enumerate(values)]


def _table(name: str, values: Any, starts: Array) -> _Table | None:
    index = index_of(values)
    if index is None or starts[-1] >= len(index):
        return None
    several = values.index.nlevels > 1
    outer = values.index.droplevel(-1) if several else None
    plain = is_plain(index, starts if several else starts[:1])
    return _Table(name, index, outer, starts, kind_of(index) or "", plain)


def _span(tables: list[_Table | None]) -> Span | None:
    if not tables or tables[0] is None or tables[-1] is None:
        return None
    first, last = tables[0], tables[-1]
    end = first.starts[1] if len(first.starts) > 1 else len(first.index)
    ends = (first.index[:end], last.index[last.starts[-1] :])
    if not all(
        is_time(table.kind) or (index.is_monotonic_increasing and index.is_unique)
        for table, index in zip((first, last), ends, strict=True)
    ):
        return None  # numbers in another order are labels
    return Span(Stamps(ends[0], first.kind, first.plain), Stamps(ends[1], last.kind, last.plain))


def _check_pair(X: _Table, y: _Table) -> None:
    """Refuse a y whose index neither is that of X nor runs ahead of it by a constant offset."""
    if X.plain or y.plain or X.kind != y.kind:
        return
    if X.outer is not None and y.outer is not None and X.outer.nlevels == y.outer.nlevels:
        if not X.outer.equals(y.outer):
            row = int(np.argmax([a != b for a, b in zip(X.outer, y.outer, strict=True)]))
            _refuse(X, y, row, X.outer[row], y.outer[row])
    elif (X.outer is not None or y.outer is not None) and not is_time(X.kind):
        return  # a number within a sequence, and one of a whole table
    if X.index.equals(y.index):
        return
    for start, stop in X.bounds:
        stray = _first_stray(X.index[start:stop], y.index[start:stop])
        if stray is not None:
            row = start + stray
            _refuse(X, y, row, X.index[row], y.index[row])


def _refuse(X: _Table, y: _Table, row: int, given: Any, found: Any) -> None:
    raise ValueError(
        f"The index of {y.name} does not go with that of {X.name}: row {row} is {show(given)} in "
        f"X and {show(found)} in y. They must be equal, or y's ahead by a constant offset, as that "
        "of a target some steps ahead. Align them first, y = y.loc[X.index], or drop a wrong index "
        "with y.to_numpy()."
    )


def _first_stray(X: Any, y: Any) -> int | None:
    """Return the first row where y is not as far ahead as before; None if there is none."""
    a, b = numbers_of(X), numbers_of(y)
    if unit_of(X) != unit_of(y):
        a, b = a.astype(object) * unit_of(X), b.astype(object) * unit_of(y)
    ahead, tolerance = b - a, 0.0
    if ahead.dtype.kind == "f":
        tolerance = 1e-6 * float(np.median(np.abs(np.diff(a)))) if len(a) > 1 else 0.0
    if ahead[0] < -tolerance:
        return 0
    strays = abs(ahead - ahead[0]) > tolerance
    if not strays.any():
        return None
    row = int(np.argmax(strays))
    if ahead[0] <= tolerance:
        return row
    places = np.flatnonzero(a == b[0])
    if len(places) == 1:  # some rows ahead: months differ in length
        h = int(places[0])
        apart = np.append(a[h:] != b[: len(b) - h], np.diff(b[len(b) - h - 1 :]) <= 0)
        return max(row, int(np.argmax(apart))) if apart.any() else None
    same = is_time(kind_of(X) or "") and frequency(X) is not None and frequency(X) == frequency(y)
    return None if same else row
