"""Check the order of rows, and of the levels of a MultiIndex, by the pandas index.

Missing or duplicate dates, and dates that do not increase, raise an error. Numbers may be labels:
a permutation of whole numbers causes only a warning, unless the rows continue an earlier series.
"""

from __future__ import annotations

import datetime
import re
import warnings
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.index import is_time, kind_of, numbers_of, show
from reservoir._validation.scalars import caller_level
from reservoir._validation.written_dates import are_dates, check_written_dates

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FALLING = 10  # whole numbers that decrease in a tenth of the steps or more are not row numbers


_SORT = (
    "Sort them by time (sort_index), together with all that has the same rows, and do not shuffle "
    "rows when you split."
)


def check_order(name: str, index: Any, starts: Array, *, continues: bool = False) -> bool:
    """Raise if dates are missing or do not increase in a sequence; warn of permuted numbers.

    Return whether a warning was issued. `starts` are the first rows of sequences, where stamps may
    decrease. If the stamps `continues` an earlier series, numbers must increase, too.
    """
    if not continues and not is_time(kind_of(index) or ""):
        return warn_if_permuted(name, index, starts)
    if index.hasnans:
        row = int(np.argmax(index.isna()))
        raise ValueError(
            f"The index of {name} has no date in row {row} (NaT). Fill it in, or drop that row."
        )
    backwards = np.append(np.diff(numbers_of(index)) <= 0, False)
    backwards[starts[1:] - 1] = False
    if not backwards.any():
        return False
    row = int(np.argmax(backwards))
    sequence = int(np.searchsorted(starts, row, side="right")) - 1
    begin, end = starts[sequence], [*starts[1:], len(index)][sequence]
    _check_unique(name, index[begin:end], begin)
    raise ValueError(
        f"The index of {name} is not increasing: row {row + 1} ({show(index[row + 1])}) comes "
        f"after row {row} ({show(index[row])}), but rows must be time steps in order. {_SORT}"
    )


def check_index(name: str, index: Any, *, continues: bool = False) -> None:
    """Check the index of one series: its order, and whole numbers that are dates.

    `continues` as in `check_order`.
    """
    check_order(name, index, np.zeros(1, dtype=int), continues=continues)
    if not is_time(kind_of(index) or ""):
        check_written_dates(name, index)


def _check_unique(name: str, index: Any, begin: int) -> None:
    """Raise if one sequence, which begins at row `begin`, has duplicate stamps."""
    if index.is_unique:
        return
    rows = np.flatnonzero(index == index[np.flatnonzero(index.duplicated())[0]])
    hourly = index.dtype.kind == "M" and index.tz is None and _has_times(index)
    clocks = " If clocks were set back, give the dates their time zone (tz_localize)."
    raise ValueError(
        f"The index of {name} has {show(index[rows[0]])} twice, in rows {begin + rows[0]} and "
        f"{begin + rows[1]}, but each row must be one time step. Keep one of them or, if the table "
        f"contains several series, set sequence_column.{clocks if hourly else ''}"
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


def warn_if_permuted(name: str, index: Any, starts: Array, what: str = "whole numbers") -> bool:
    """Warn if the stamps of a sequence are unique, and decrease in a tenth of its steps or more.

    `what` is the name of the stamps in the message; the other parameters are as in `check_order`.
    Return whether a warning was issued.
    """
    row = _first_fall(numbers_of(index), starts)
    if row is not None:
        warnings.warn(
            f"The index of {name} is a permutation of {what}: row {row + 1} "
            f"({show(index[row + 1])}) comes after row {row} ({show(index[row])}), but rows must "
            f"be time steps in order. If these {what.split()[-1]} represent time, sort the rows "
            "(sort_index), together with all that has the same rows; if they are labels of rows in "
            "the right order, number the rows (reset_index).",
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


def check_levels(name: str, table: Any, *, fewest: int = 0) -> None:
    """Raise if the first level of a table's MultiIndex is the time, and the last level the ids.

    That is so if the first level contains dates, and the last one text, or the rows of a date are
    not adjacent, or on average fewer than `fewest`. `name` is the name of the table in messages.
    """
    index = table.index
    if index.nlevels != 2 or not len(index) or not is_time(kind_of(index.levels[0]) or "number"):
        return
    ids = index.levels[1]
    texts = isinstance(ids[0], str) and not are_dates(ids, increasing=False)
    few = len(index) < fewest * len(np.unique(index.codes[0]))
    if not (texts or few) and _are_adjacent(index.codes[0]):
        return
    check_has_ids(name, index, fewest)
    raise ValueError(
        f"The index of {name} has times in its first level and ids, such as {ids[0]!r}, in its "
        "last, but the last level must be the time. Swap them (swaplevel, sort_index), and "
        "likewise in tables with the same rows."
    )


def check_has_ids(name: str, index: Any, fewest: int) -> None:
    """Raise if both levels of a MultiIndex are times, with fewer than `fewest` rows for each.

    Ids have so many rows; there may be fewer for some. Other indexes are accepted.
    """
    levels = index.levels
    if len(levels) != 2 or not all(is_time(kind_of(each) or "number") for each in levels):
        return
    counts = [len(np.unique(codes)) for codes in index.codes]
    if len(index) >= fewest * min(counts):
        return
    raise ValueError(
        f"The index of {name} has times in both levels and on average fewer than {fewest} rows for "
        "each of them, so that neither level contains the ids of series. Drop one of them "
        "(droplevel), with one row for each time, and likewise in tables with the same rows."
    )


def _are_adjacent(codes: Any) -> bool:
    """Whether all rows with the same code are adjacent."""
    return 1 + np.count_nonzero(np.diff(codes)) == len(np.unique(codes))
