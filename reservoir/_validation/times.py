"""The indexes of X and y together: which row of y belongs to which of X."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation.index import (
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
_WITHOUT_HOLE = 1.5  # times the shortest step: months differ by less, a missing one makes two
_WIDE = 3  # times the median step: wider than the weekend among working days
_LONG = 24  # rows: two years of months, which a calendar of working days cannot resemble


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
    if (np.diff(a) <= 0).any():  # labels in no order: all that can be told is a shift of rows
        return _first_unshifted(a, b, row)
    wrong = np.append(False, np.diff(b) <= 0) | (ahead <= tolerance)
    if wrong.any():
        return max(row, int(np.argmax(wrong)) - 1)
    time = is_time(kind_of(X) or "")
    same = time and frequency(X) is not None and frequency(X) == frequency(y)
    if same and not np.isin(b[0], a):
        return None
    if b[0] > a[-1]:
        return row if _differ_in_step(X, y, time) else None
    return _first_misplaced(a, b, X.union(y) if time else None)


def _first_unshifted(a: Array, b: Array, row: int) -> int | None:
    places = np.flatnonzero(a == b[0])
    if len(places) != 1:
        return row
    h = int(places[0])
    apart = np.append(a[h:] != b[: len(b) - h], np.diff(b[len(b) - h - 1 :]) <= 0)
    return max(row, int(np.argmax(apart))) if apart.any() else None


def _differ_in_step(X: Any, y: Any, time: bool) -> bool:
    """Whether a y that begins behind the end of X cannot be of the same series.

    Nothing is known of the calendar between them, and holidays make steps of any length, so the
    offsets may differ. Frequencies of few rows deceive: five days of a week look daily.
    """
    if not time:
        return len(X) > 2 and len(np.unique(np.diff(numbers_of(X)))) == 1
    known = frequency(X), frequency(y)
    return len(X) >= _LONG and None not in known and known[0] != known[1]


def _first_misplaced(a: Array, b: Array, both: Any) -> int | None:
    """Return the first row where y is not as many rows ahead of X as before, holes in both aside.

    The stamps of X and y together are what is known of the calendar. Rows that are missing, as
    cross-validation takes them out, can only make y seem nearer than it is. Any two distances
    that differ are therefore a contradiction only if no stamp is missing within the nearer one.
    """
    known = np.unique(np.append(a, b))
    steps = np.diff(known)
    near = np.diff(a) <= _WITHOUT_HOLE * np.diff(a).min()
    places = np.searchsorted(a, b)
    inner = places < len(a)
    between = (a[places[inner]] != b[inner]) & near[places[inner] - 1]
    if between.any():  # no stamp has room between two neighbours of X
        return int(np.argmax(between))
    begin, end = np.searchsorted(known, a), np.searchsorted(known, b)
    distances = end - begin
    doubtful = steps > _WITHOUT_HOLE * steps.min()
    if both is not None:
        for piece in _pieces(steps):
            if frequency(both[piece]) is not None:
                doubtful[piece.start : piece.stop - 1] = False
    doubts = np.append(0, np.cumsum(doubtful))
    whole = doubts[end] == doubts[begin]
    if not whole.any() or distances.max() <= distances[whole].min():
        return None
    return int(np.argmax(distances != distances[0]))


def _pieces(steps: Array) -> list[slice]:
    """Return what lies between wide steps; only long pieces, where a frequency does not deceive."""
    cuts = np.flatnonzero(steps > _WIDE * np.median(steps)) + 1
    bounds = [0, *cuts.tolist(), len(steps) + 1]
    if len(bounds) > _LONG:
        return []
    return [slice(i, j) for i, j in pairwise(bounds) if j - i >= _LONG]
