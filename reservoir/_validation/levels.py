"""Reject a MultiIndex whose levels are in the wrong order."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._validation.index import is_time, kind_of
from reservoir._validation.text_dates import are_dates


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
