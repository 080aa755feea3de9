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
    # rows that are in order of the ids stay in place, where those of y are
    made = "rows.swaplevel()" if _are_adjacent(index.codes[1]) else "rows.swaplevel().sort_index()"
    raise ValueError(
        f"The index of {name} has times in its first level and ids, such as {ids[0]!r}, in its "
        f"last, but the last level must be the time. Swap them, {code(replaced(name, made))}, and "
        "likewise in tables with the same rows."
    )


def _are_adjacent(codes: Any) -> bool:
    """Whether all rows with the same code are adjacent."""
    return 1 + np.count_nonzero(np.diff(codes)) == len(np.unique(codes))
