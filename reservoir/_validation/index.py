"""Read the pandas index of a table: its frequency, and the time stamp of its last row.

The entries of an index are called stamps: dates, periods or numbers. pandas is optional: a caller
that passes a table with an index has imported it already.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation.frequencies import (
    commonest,
    count_steps,
    dates_after,
    first_misfit,
    frequency_text,
)
from reservoir._validation.scalars import caller_level

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ROUNDING = 1e-6  # tolerance for an index of floats, in steps
_RECENT = 40  # number of stamps kept between calls, from which a frequency is inferred


@saved
@dataclass(frozen=True)
class Ending:
    """End of the training rows, read from their index.

    It contains numbers and strings only, so that it can be saved.

    Attributes
    ----------
    kind : str
        The kind of the stamps, as `kind_of` returns it; only stamps of the same kind are compared.
    last : number
        The last stamp: nanoseconds if it is a datetime, the ordinal if it is a period.
    following : number or None
        The stamp expected for the next row; None if the stamps have no frequency.
    widest : number or None
        The longest step between two training rows; None if there was a single row.
    plain : bool
        Whether the rows are merely numbered from 0, the default index.
    shown : str
        The last stamp as a string, for messages.
    recent : tuple of numbers
        At most 40 of the last stamps, in the units of `last`; only stamps after the last gap.
    frequency : str or None
        The frequency of datetimes, as `frequency_text` returns it; None if there is none.
    unit, zone : str
        Unit and time zone of datetimes; the zone is "" if they are not timezone-aware.
    ids, names : tuples
        The values of the outer levels of a MultiIndex in the last row, and the names of all levels.
    """

    kind: str
    last: float
    following: float | None
    widest: float | None
    plain: bool
    shown: str
    # defaults for files saved by versions that did not have these fields
    recent: tuple[float, ...] = ()
    frequency: str | None = None
    unit: str = "ns"
    zone: str = ""
    ids: tuple[Any, ...] = ()
    names: tuple[Any, ...] = (None,)

    def continues_at(self, first: float) -> bool:
        """Whether a row with the stamp `first` follows the last training row without a gap.

        If no frequency is known, a step is a gap only if it is longer than all steps in training.
        """
        rounded = isinstance(first, float) or isinstance(self.last, float)
        slack = _ROUNDING * (self.widest or 0) if rounded else 0
        if self.following is not None:
            return abs(first - self.following) <= slack
        if self.widest is not None:
            return 0 < first - self.last <= self.widest + slack
        return first > self.last


@dataclass(frozen=True)
class Stamps:
    """The index of a table, with the first rows of its sequences.

    Attributes
    ----------
    index : pandas.Index
        The index of the rows; if the table has a MultiIndex, its last level.
    kind : str
        The kind of the stamps, as `kind_of` returns it.
    plain : bool
        Whether the rows of the table are merely numbered from 0, as in the default index.
    outer : pandas.Index or None
        The other levels of a MultiIndex, which identify the sequences.
    starts : array of int
        First row of each sequence.
    name : str
        Name of the table in messages.
    """

    index: Any
    kind: str
    plain: bool
    outer: Any
    starts: Array
    name: str = ""

    @classmethod
    def of(cls, table: Any, starts: Array, name: str = "") -> Stamps | None:
        """Return the stamps of a table; None if it has no index, or an index of labels."""
        index = index_of(table)
        if index is None or starts[-1] >= len(index):
            return None
        several = table.index.nlevels > 1
        outer = table.index.droplevel(-1) if several else None
        plain = is_plain(index, starts if several else starts[:1])
        return cls(index, kind_of(index) or "", plain, outer, starts, name)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each sequence, and the row after its last row."""
        return list(pairwise([*self.starts.tolist(), len(self.index)]))

    def at(self, i: int) -> Stamps:
        """Return the stamps of one sequence."""
        ends = np.append(self.starts, len(self.index))
        rows = slice(ends[i % len(self.starts)], ends[i % len(self.starts) + 1])
        outer = None if self.outer is None else self.outer[rows]
        return replace(self, index=self.index[rows], outer=outer, starts=self.starts[:1])

    @property
    def first(self) -> float:
        """The first stamp as a number, in the units of `Ending.last`."""
        return _plain_number(self.index[:1])

    def show(self, row: int) -> str:
        """Return the stamp of a row as a string."""
        return show(self.index[row])

    def follows(self, before: Ending) -> bool:
        """Whether this sequence continues the rows that ended at `before` without a gap."""
        if before.continues_at(self.first):
            return True
        if self.index.dtype.kind != "M" or self.first <= before.last:
            return False
        # `before` may be inferred from too few rows: business days look daily up to a weekend
        joined = _joined(before.recent, self.index[:1])
        return len(joined) > 2 and frequency_text(joined) is not None

    def ending(self, before: Ending | None = None) -> Ending:
        """Return the `Ending` of this sequence.

        `before` is the ending of earlier rows that the sequence may continue. If it continues
        them, the frequency is inferred from the stamps of both; after a gap, only the longest step
        of `before` is used.
        """
        recent: tuple[float, ...] = ()
        widest = None
        if before is not None and before.kind == self.kind:
            widest = before.widest
            recent = before.recent if self.follows(before) else ()
        # a frequency from this sequence alone if it is long enough, else from earlier rows, too
        joined = _joined(recent, self.index)
        known = [step for step in (_widest(joined), widest) if step is not None]
        enough = len(self.index) >= _RECENT or getattr(self.index, "freqstr", None) is not None
        regular = self.index if enough else joined[-_RECENT:]
        freq = frequency(regular) if self.index.dtype.kind == "M" else None
        last = _plain_number(self.index[-1:])
        names = (*(() if self.outer is None else self.outer.names), self.index.name)
        return Ending(
            self.kind,
            last,
            _following(regular, freq),
            max(known, default=None),
            self.plain,
            self.show(-1),
            tuple(number * unit_of(joined) for number in numbers_of(joined[-_RECENT:]).tolist()),
            freq if isinstance(freq, str) else None,
            self.index.unit if self.index.dtype.kind == "M" else "",
            "" if getattr(self.index, "tz", None) is None else str(self.index.tz),
            _ids_of(self.outer),
            tuple(map(plain_name, names)),
        )


def index_of(table: Any) -> Any:
    """Return the index of a pandas table or, if it is a MultiIndex, its last level.

    The result is None for tables of other libraries, empty tables, and an index of labels.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(table, "iloc"):
        return None
    index = table.index
    if index.nlevels > 1:
        index = index.get_level_values(-1)
    if index.dtype.kind == "M" and not isinstance(index, pandas.DatetimeIndex):
        index = pandas.DatetimeIndex(index)  # timestamps of Arrow
    return None if len(index) == 0 or kind_of(index) is None else index


def kind_of(index: Any) -> str | None:
    """Return the kind of the stamps of an index; None if they are labels.

    The kinds are "datetime", "datetime with a zone" (timezone-aware), the dtype of periods (such
    as "period[M]"), and "number".
    """
    if hasattr(index, "asi8") and index.dtype.kind == "M":
        return "datetime" if index.tz is None else "datetime with a zone"
    if str(index.dtype).startswith("period["):
        return str(index.dtype)
    try:
        number = index.dtype.kind in "iuf" and not index.hasnans
    except (AttributeError, TypeError):
        return None
    return "number" if number and np.isfinite(numbers_of(index)).all() else None


def is_time(kind: str) -> bool:
    """Whether stamps of this kind are dates or periods; numbers may be labels without an order."""
    return kind != "number"


def numbers_of(index: Any) -> Array:
    """Return the stamps of an index as numbers; datetimes are counted in the index's unit."""
    if hasattr(index, "asi8"):
        return index.asi8
    return np.asarray(index, dtype=np.float64 if index.dtype.kind == "f" else np.int64)


def unit_of(index: Any) -> int:
    """Return the nanoseconds per unit of a datetime index, and 1 for other kinds of index.

    Multiplied by this factor, the numbers of two indexes can be compared.
    """
    return NANOSECONDS[index.unit] if index.dtype.kind == "M" else 1


def show(stamp: Any) -> str:
    """Return a stamp as a string, without the time of day if it is midnight."""
    return str(stamp).removesuffix(" 00:00:00")


def is_plain(index: Any, restarts: Array) -> bool:
    """Whether an index merely numbers the rows of each sequence from 0.

    Then it is like the default index of pandas, and contains no information on time. `restarts`
    contains the rows at which the numbering restarts.
    """
    if index.dtype.kind not in "iu":
        return False
    rows = np.arange(len(index))
    begins = restarts[np.searchsorted(restarts, rows, side="right") - 1]
    return np.array_equal(numbers_of(index), rows - begins)


def warn_if_irregular(name: str, index: Any, starts: Array) -> None:
    """Warn if a sequence of dates has no frequency, and name the first row that does not fit.

    Only the first such sequence is named; `starts` contains the first row of each sequence.
    """
    # a sequence whose steps are all equal has a frequency: check only those in which two
    # neighbouring steps differ
    turns = np.flatnonzero(np.diff(numbers_of(index), n=2))
    before, after = (np.searchsorted(starts, turns + k, side="right") - 1 for k in (0, 2))
    ends = np.append(starts[1:], len(index))
    for i in np.unique(before[before == after]):
        part = index[starts[i] : ends[i]]
        if len(part) < 3 or frequency(part) is not None:
            continue
        row = _first_misfit(part)
        warnings.warn(
            f"No frequency can be inferred from the index of {name}: "
            f"{_misfit_message(part, row, starts[i])}",
            UserWarning,
            stacklevel=caller_level(),
        )
        return


def _misfit_message(index: Any, row: int, start: int) -> str:
    """Return the part of the warning that describes a misfit at a row, and the remedy.

    `index` is the index of one sequence, which begins at row `start` of its table; `row` counts
    within the sequence.
    """
    a, b = start + row - 1, start + row
    before, after = f"row {a} ({show(index[row - 1])})", f"row {b} ({show(index[row])})"
    if _is_one_hole(index, row):
        return (
            f"rows are missing between {before} and {after}. The network treats row {b} as the "
            f"step after row {a}. This is correct if a cross-validator removed them; otherwise "
            "fit the two parts as two sequences, or fill the gap (asfreq, then interpolate)."
        )
    # rows seem to be absent in several places, as in the folds of searches for a classifier
    steps = np.diff(numbers_of(index))
    removed = " If a cross-validator removed rows, use KFold, which leaves out blocks of time; "
    removed += "StratifiedKFold, the default for classifiers, does not."
    return (
        f"the step from {before} to {after} is the first that does not fit. The network treats "
        "every row as one step, however long. Ignore this if each row is one step, as are events "
        "and months of four or five weeks; otherwise interpolate the rows at equal steps."
        f"{'' if (steps % steps.min()).any() else removed}"
    )


def frequency(index: Any) -> Any:
    """Return the frequency of an index, set or inferred from three or more stamps, else None.

    The frequency of dates is a string, or the index's offset if that has no string form. The
    frequency of periods and numbers is the step between them.
    """
    if index.dtype.kind == "M":
        text = frequency_text(index)
        return index.freq if text is None else text
    if len(index) < 3:
        return None
    steps = np.diff(numbers_of(index))
    return steps[0] if (steps == steps[0]).all() else None


def _first_misfit(index: Any) -> int:
    """Return the first row that does not fit the frequency of the other rows."""
    if index.dtype.kind == "M":
        return first_misfit(index)[0]
    steps = np.diff(numbers_of(index))
    row = 1 + int(np.argmax(steps != steps[0]))
    return row if row > 2 else 1 + int(np.argmax(steps != commonest(steps)))


def _is_one_hole(index: Any, row: int) -> bool:
    """Whether rows are missing just before `row`, and the index is regular otherwise.

    That is the case if the rows before `row` and the rows from `row` have the same frequency, and
    the step between the two parts is a multiple of it.
    """
    left, right = index[:row], index[row:]
    freq = frequency(left)
    if freq is None or freq != frequency(right):
        return False
    if index.dtype.kind == "M":
        return count_steps(left[-1:], right[:1], freq) > 1
    step = numbers_of(right)[0] - numbers_of(left)[-1]
    return bool(step > freq and step % freq == 0)


def _ids_of(outer: Any) -> tuple[Any, ...]:
    """Return the values of the outer levels of a MultiIndex in its last row; () without any."""
    if outer is None:
        return ()
    ids = outer[-1:].to_numpy()[0]  # NumPy's dates, which can be saved
    return tuple(ids) if outer.nlevels > 1 else (ids,)


def plain_name(name: Any) -> Any:
    """Return a name of an index or column as a string, number or tuple, which can be saved."""
    if isinstance(name, tuple):
        return tuple(plain_name(part) for part in name)
    if isinstance(name, np.generic):
        name = name.item()
    return name if name is None or isinstance(name, (str, bool, int, float)) else str(name)


def _plain_number(one: Any) -> float:
    """Return the stamp of an index of length 1 as a number; a datetime in nanoseconds."""
    return numbers_of(one)[0].item() * unit_of(one)


def _joined(recent: tuple[float, ...], index: Any) -> Any:
    """Return the stamps `recent`, as in `Ending.recent`, followed by `index`, as one index."""
    if not recent:
        return index
    import pandas as pd

    if index.dtype.kind == "M":
        numbers = [*recent, *(number * unit_of(index) for number in numbers_of(index).tolist())]
        if max(map(abs, numbers)) >= 2**63:  # dates outside the range of nanoseconds
            return index
        dates = pd.DatetimeIndex(np.array(numbers, dtype=np.int64).view("M8[ns]"))
        return dates if index.tz is None else dates.tz_localize("UTC").tz_convert(index.tz)
    if hasattr(index, "asi8"):
        earlier = index[:1].repeat(len(recent)) + (np.array(recent) - index.asi8[0])
        return earlier.append(index)
    return pd.Index(np.append(recent, numbers_of(index)))


def _widest(index: Any) -> float | None:
    """Return the longest step of an index, in the units of `Ending.last`; None for a single row."""
    if len(index) < 2:
        return None
    return np.diff(numbers_of(index)).max().item() * unit_of(index)


def _following(index: Any, freq: Any) -> float | None:
    """Return the stamp expected for the row after the last; None if there is no frequency.

    `freq` is the frequency of datetimes.
    """
    last = _plain_number(index[-1:])
    if index.dtype.kind == "M":
        if freq is None:
            return None
        try:
            return _plain_number(dates_after(index[-1:], 1, freq))
        except OverflowError:  # the last date that the unit can represent
            return None
    steps = np.diff(numbers_of(index))
    if not len(steps):
        return last + 1 if hasattr(index, "asi8") else None  # the period after the only one
    same = np.abs(steps - steps[0]) <= (_ROUNDING * steps[0] if steps.dtype.kind == "f" else 0)
    return last + steps[-1].item() if same.all() else None
