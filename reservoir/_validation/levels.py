"""Reject a MultiIndex whose levels are in the wrong order."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._validation.index import is_time, kind_of
from reservoir._validation.text_dates import dates_in_labels
from reservoir._validation.wording import code, replaced


def check_levels(name: str, table: Any, *, fewest: int = 0) -> None:
    """Raise if the first level of a table's MultiIndex is the time, and the last level the ids.

    That is so if the first level contains dates, and the last one text, or the rows of a date are
    not adjacent, or on average fewer than `fewest`. `name` is the name of the table in messages.
    """
    index = table.index
    if index.nlevels != 2 or not len(index) or not is_time(kind_of(index.levels[0]) or "number"):
        return
    ids = index.levels[1]
    texts = isinstance(ids[0], str) and dates_in_labels(ids, increasing=False) is None
    few = len(index) < fewest * len(np.unique(index.codes[0]))
    if not (texts or few) and _are_adjacent(index.codes[0]):
        return
    check_has_ids(name, index, fewest)
    # rows that are in order of the ids stay in place, where those of y are
    made = "rows.swaplevel()" if _are_adjacent(index.codes[1]) else "rows.swaplevel().sort_index()"
    raise ValueError(
        f"The index of {name} has times in its first level and ids, such as {ids[0]!r}, in its "
        f"last, but the last level must be the time. Swap them, {code(replaced(name, made))}, and "
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
    alone = max(counts) == len(index)
    other = int(counts[1] < len(index))
    one = f"rows.droplevel({other})" if alone else "rows.groupby(level=-1).last()"
    what = "Drop one of them" if alone else "Keep one row for each time"
    raise ValueError(
        f"The index of {name} has times in both levels and on average fewer than {fewest} rows for "
        f"each of them, so that neither level contains the ids of series. {what}, "
        f"{code(replaced(name, one))}, and likewise in tables with the same rows."
    )


def _are_adjacent(codes: Any) -> bool:
    """Whether all rows with the same code are adjacent."""
    return 1 + np.count_nonzero(np.diff(codes)) == len(np.unique(codes))
