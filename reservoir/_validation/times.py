"""Check the pandas indexes of X and y: their order, and whether the rows of y match those of X."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.index import (
    Ending,
    Stamps,
    frequency,
    is_time,
    kind_of,
    numbers_of,
    show,
    unit_of,
    warn_if_irregular,
)
from reservoir._validation.order import check_order, dates_of_labels, warn_if_permuted
from reservoir._validation.written_dates import check_written_dates

Span = tuple[Stamps, Stamps]  # of the first and the last sequence, which may be the same


@dataclass(frozen=True)
class Times:
    """The indexes of X and y; None for one that has no index, or an index of labels."""

    X: Span | None = None
    y: Span | None = None

    def ended(
        self, before: tuple[Ending | None, Ending | None]
    ) -> tuple[Ending | None, Ending | None]:
        """Return the endings of X and y; `before` are those of the rows that they may continue."""
        x = None if self.X is None else self.X[1].ending(before[0])
        return x, None if self.y is None else self.y[1].ending(before[1])


NO_TIMES = Times()
# Rows may be missing in a step longer than this many times the shortest step: the lengths of months
# differ by less, and if a month is missing, the step is two months long.
_WITHOUT_HOLE = 1.5
_WIDE = 3  # a step longer than this many median steps is a gap, longer than a weekend
_MOST_SHIFTS = 100  # number of shifts that are tried if numbers occur more than once
_LONG = 24  # a frequency inferred from this many rows is reliable: two years of months, say


def read_times(
    X: Any,
    y: Any = None,
    *,
    is_table: bool,
    lengths: list[int],
    check_frequency: bool = False,
    continued: bool = False,
) -> Times:
    """Check the indexes of X and y, as the user passed them, and return them.

    Dates that do not increase, and a y whose index contradicts that of X, raise; a permutation of
    whole numbers causes a warning. Without `is_table`, X and y are collections with an item for
    each sequence; `lengths` are their numbers of rows. With `check_frequency`, warn of dates
    without a frequency. If forecasts may continue the indexes (`continued`), whole numbers that are
    dates raise or cause a warning.
    """
    # the index of each table; the error for a y of another length is raised elsewhere
    starts = np.cumsum([0, *lengths[:-1]])
    tables = _stamps_of("X", X, is_table, starts)
    targets = _stamps_of("y", y, is_table, starts)
    targets = [
        None if t is None or len(t.index) != n else t
        for t, n in zip(targets, [sum(lengths)] if is_table else lengths, strict=False)
    ]
    # check the order: first everything that raises, then everything that warns
    ordered = _ordered_by(tables, targets)
    dated = [table for table in ordered if is_time(table.kind)]
    _check_orders(dated)
    for i, (given, target) in enumerate(zip(tables, targets, strict=False)):
        if given is not None and target is not None:
            _check_pair(given, target)
            targets[i] = replace(target, plain=target.plain or _counts_on(given, target))
    if not dated:
        _check_orders(ordered)
    if not ordered:
        _check_labels(X, y, starts, is_table)
    if check_frequency:
        for table in dated:
            warn_if_irregular(table.name, table.index, table.starts)
    if continued:
        indexed = (each for each in (*tables, *targets) if each is not None and not each.plain)
        for given in islice((each for each in indexed if not is_time(each.kind)), 1):
            check_written_dates(given.name, given.at(0).index)
    return Times(_span(tables), _span(targets))


def _ordered_by(tables: list[Stamps | None], targets: list[Stamps | None]) -> list[Stamps]:
    """Return the tables of X, or of y, whose index determines the order of rows.

    Dates have precedence over numbers, and X over y.
    """
    given = [[table for table in each if table is not None] for each in (tables, targets)]
    for found in given:
        dated = [table for table in found if is_time(table.kind)]
        if dated:
            return dated
    return next((each for each in given if each), [])


def _check_orders(tables: list[Stamps]) -> None:
    """Check the order of rows in each table; warn only once."""
    for table in tables:
        if check_order(table.name, table.index, table.starts):
            return


def _check_labels(X: Any, y: Any, starts: Array, is_table: bool) -> None:
    """Warn of an index of durations, Python dates or date strings that is not in order of time."""
    for by, values in (("X", X), ("y", y)):
        plain = values is None or (isinstance(values, np.ndarray) and values.dtype != object)
        items = [values] if is_table else [] if plain else values
        for i, item in enumerate(items):
            stamps = dates_of_labels(item) if hasattr(item, "iloc") else None
            begins = starts if is_table else starts[:1]
            if stamps is None or begins[-1] >= len(stamps):
                continue
            name = by if is_table else f"sequence {i} of {by}"
            what = "durations" if stamps.dtype.kind == "m" else "dates"
            if warn_if_permuted(name, stamps, begins, what):
                return


def _stamps_of(name: str, values: Any, is_table: bool, starts: Array) -> list[Stamps | None]:
    """Return the `Stamps` of the single table of X or y, or of each item of a collection."""
    if is_table:
        return [Stamps.of(values, starts, name)]
    if values is None or (isinstance(values, np.ndarray) and values.dtype != object):
        return []
    return [Stamps.of(item, starts[:1], f"sequence {i} of {name}") for i, item in enumerate(values)]


def _span(tables: list[Stamps | None]) -> Span | None:
    """Return the `Span` of tables; None if its first or last index is missing or unordered."""
    if not tables or tables[0] is None or tables[-1] is None:
        return None
    span = tables[0].at(0), tables[-1].at(-1)
    ordered = (
        is_time(each.kind) or (each.index.is_monotonic_increasing and each.index.is_unique)
        for each in span
    )
    return span if all(ordered) else None  # numbers that do not increase are labels


def _counts_on(X: Stamps, y: Stamps) -> bool:
    """Whether X is merely numbered from 0, and the numbers of y are ahead by a constant.

    If so, neither index contains information on time.
    """
    if not X.plain or y.index.dtype.kind not in "iu" or len(X.index) != len(y.index):
        return False
    ahead = numbers_of(y.index) - numbers_of(X.index)
    return bool(ahead[0] > 0 and (ahead == ahead[0]).all())


def _check_pair(X: Stamps, y: Stamps) -> None:
    """Raise if the index of y does not match the index of X.

    It matches if it is equal to the index of X, or ahead of it by a constant offset in time or by a
    constant number of rows. The two indexes are compared only here.
    """
    # rows numbered from 0 and stamps of different kinds cannot be compared
    if X.plain or y.plain or X.kind != y.kind:
        return
    # the outer levels of a MultiIndex must be equal
    if X.outer is not None and y.outer is not None and X.outer.nlevels == y.outer.nlevels:
        if not X.outer.equals(y.outer):
            row = int(np.argmax([a != b for a, b in zip(X.outer, y.outer, strict=True)]))
            _raise_other_times(X, y, row, X.outer[row], y.outer[row])
    elif (X.outer is not None or y.outer is not None) and not is_time(X.kind):
        return  # one is numbered within sequences, the other over the whole table
    if X.index.equals(y.index):
        return
    for start, stop in X.bounds:
        misfit = _first_misfit(X.index[start:stop], y.index[start:stop])
        if misfit is not None:
            row = start + misfit
            _raise_other_times(X, y, row, X.index[row], y.index[row])


def _raise_other_times(X: Stamps, y: Stamps, row: int, given: Any, found: Any) -> None:
    """Raise the error for a y that does not match X: in `row`, X has `given` and y has `found`."""
    raise ValueError(
        f"The index of {y.name} does not match the index of {X.name}: row {row} is {show(given)} "
        f"in X, but {show(found)} in y. The indexes must be equal, or that of y must be ahead by a "
        "constant offset, as for a target some steps ahead. Select the same rows of both (loc) or, "
        "if the rows of y are in the order of X, drop the index of y (to_numpy)."
    )


def _first_misfit(X: Any, y: Any) -> int | None:
    """Return the first row at which the index of y contradicts the index of X; None if none does.

    X and y are the indexes of one sequence. y may be ahead of X, by a constant offset in time or,
    for calendar dates (months, business days), by a constant number of rows.
    """
    # both as numbers, in the same unit
    a, b = numbers_of(X), numbers_of(y)
    if unit_of(X) != unit_of(y):
        a, b = a.astype(object) * unit_of(X), b.astype(object) * unit_of(y)
    # a constant offset of at least 0 is valid
    ahead, tolerance = b - a, 0.0
    if ahead.dtype.kind == "f":
        tolerance = 1e-6 * float(np.median(np.abs(np.diff(a)))) if len(a) > 1 else 0.0
    if ahead[0] < -tolerance:
        if len(a) > 1 and (np.diff(a) < 0).all():  # decreasing numbers
            return _first_misfit(-X, -y)
        labels = (np.diff(a) <= 0).any()
        return None if labels and _first_unshifted(a, b, 0) is None else 0
    differs = abs(ahead - ahead[0]) > tolerance
    if not differs.any():
        return None
    row = int(np.argmax(differs))
    if ahead[0] <= tolerance:
        return row
    if (np.diff(a) <= 0).any():  # unordered labels: only a shift of rows can be recognised
        return _first_unshifted(a, b, row)
    # stamps of y that do not increase, or are not ahead of X, are wrong in any calendar
    wrong = np.append(False, np.diff(b) <= 0) | (ahead <= tolerance)
    if wrong.any():
        return max(row, int(np.argmax(wrong)) - 1)
    # offsets that differ in time may still be a constant number of rows in a calendar
    time = is_time(kind_of(X) or "")
    same = time and frequency(X) is not None and frequency(X) == frequency(y)
    if same and not np.isin(b[0], a):
        return None
    if b[0] > a[-1]:
        return row if _differ_in_step(X, y, time) else None
    # X is indexed to drop its frequency: with it, pandas 2 fails in union where clocks change
    both = X[np.arange(len(X))].union(y) if time else None
    return _first_misplaced(a, b, both)


def _first_unshifted(a: Array, b: Array, row: int) -> int | None:
    """Return the first row at which `b` is not `a` shifted by a fixed number of rows, or None.

    `a` and `b` are the stamps of X and y; those of X do not increase. Where cross-validation has
    removed rows, as many stamps of y as the shift are missing in `a`, so up to that many
    consecutive differences are allowed. Shifts of up to half of the rows are recognised. If there
    is no such shift, `row`, the first row at which b - a changes, is returned.
    """
    found = row
    for h in (1 + np.flatnonzero(a[1 : len(a) // 2 + 1] == b[0])[:_MOST_SHIFTS]).tolist():
        apart = a[h:] != b[: len(b) - h]
        bounds = np.flatnonzero(np.diff(np.concatenate([[0], apart, [0]])))
        longest = (bounds[1::2] - bounds[::2]).max(initial=0)
        if longest <= h:
            return None
        found = max(found, int(np.argmax(apart)))
    return found


def _differ_in_step(X: Any, y: Any, time: bool) -> bool:
    """Whether the frequency of y contradicts that of X, for a y that begins after the end of X.

    The calendar between X and y is unknown, and steps over holidays have any length, so different
    offsets alone are no contradiction. A frequency inferred from a few rows is not trusted, because
    business days look daily up to the first weekend. `time` means that stamps are dates.
    """
    if not time:
        return len(X) > 2 and len(np.unique(np.diff(numbers_of(X)))) == 1
    known = frequency(X), frequency(y)
    return len(X) >= _LONG and None not in known and known[0] != known[1]


def _first_misplaced(a: Array, b: Array, both: Any) -> int | None:
    """Return the first row where y is ahead of X by another number of rows than before, or None.

    The calendar is known only from the stamps of X (`a`) and y (`b`) themselves; if they are dates,
    `both` is their union as an index. If cross-validation has removed rows, y seems to be fewer
    rows ahead than it is. So two different distances are a contradiction only if no stamp can be
    missing within the smaller one.
    """
    known = np.unique(np.append(a, b))
    steps = np.diff(known)
    near = np.diff(a) <= _WITHOUT_HOLE * np.diff(a).min()
    places = np.searchsorted(a, b)
    inner = places < len(a)
    between = (a[places[inner]] != b[inner]) & near[places[inner] - 1]
    if between.any():  # a stamp of y lies between two stamps of X that are one step apart
        return int(np.argmax(between))
    # how many known stamps y is ahead, and in which steps between stamps rows may be missing
    begin, end = np.searchsorted(known, a), np.searchsorted(known, b)
    distances = end - begin
    doubtful = steps > _WITHOUT_HOLE * steps.min()
    if both is not None:
        for piece in _pieces(steps):
            if frequency(both[piece]) is not None:
                doubtful[piece.start : piece.stop - 1] = False
    # distances within which no row can be missing are exact: no other distance may be larger
    doubts = np.append(0, np.cumsum(doubtful))
    whole = doubts[end] == doubts[begin]
    if not whole.any() or distances.max() <= distances[whole].min():
        return None
    return int(np.argmax(distances != distances[0]))


def _pieces(steps: Array) -> list[slice]:
    """Split rows at gaps (steps longer than three median steps), given the steps between them.

    Return slices for the pieces of at least 24 rows, from which a frequency can be inferred. If
    there are 24 pieces or more, return none of them.
    """
    cuts = np.flatnonzero(steps > _WIDE * np.median(steps)) + 1
    bounds = [0, *cuts.tolist(), len(steps) + 1]
    if len(bounds) > _LONG:
        return []
    return [slice(i, j) for i, j in pairwise(bounds) if j - i >= _LONG]
