"""Recognise dates that are written as text, in an index or in a column of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_FORMATS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%m/%Y", "%b %Y", "%YM%m"),
    *("%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%Y/%m", "%Y-%j", "%G-W%V-%u", "%Y"),
)
_ISO = r"\d{4}-\d{2}(-\d{2})?([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?"
# pattern, end that is added to each label, function and options
_READINGS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (_ISO, "", "to_datetime", {}),
    (_ISO + r"(Z|[+-]\d{2}:?\d{2})", "", "to_datetime", {"utc": True}),
    (r"\d{4}-?Q[1-4]", "", "PeriodIndex", {"freq": "Q"}),
    (r"\d{4}-W\d{1,2}", "-1", "to_datetime", {"format": "%G-W%V-%u"}),  # weeks by their Mondays
    (r"\d{4}W\d{2}", "1", "to_datetime", {"format": "%GW%V%u"}),
)


def are_dates(index: Any, *, increasing: bool = True) -> bool:
    """Whether the labels of `index` are dates as text, and no other dates by another format.

    Strings must begin with the year, or exactly one format must give dates, which must increase if
    `increasing` is True. In other strings pandas guesses which number is the day and which the
    month.
    """
    labels = index.tolist()
    if all(hasattr(label, "strftime") and hasattr(label, "year") for label in labels):
        return _are_read(index, "", "to_datetime", {}, increasing)
    if not all(isinstance(label, str) for label in labels):
        return False
    for pattern, end, function, options in _READINGS:
        if all(re.fullmatch(pattern, label) for label in labels):
            return _are_read(index, end, function, options, increasing)
    tried = (_are_read(index, "", "to_datetime", {"format": each}, increasing) for each in _FORMATS)
    return sum(tried) == 1


def holds_dates(values: Sequence[Any]) -> bool:
    """Whether a column contains dates as text.

    They need not increase, since the table may contain several series.
    """
    import pandas as pd

    labels = pd.Index([each for each in values if each is not None and each == each], dtype=object)
    if not len(labels) or not isinstance(labels[0], str):
        return False
    return are_dates(labels) or are_dates(labels, increasing=False)


def _are_read(
    index: Any, end: str, function: str, options: dict[str, Any], increasing: bool
) -> bool:
    """Whether a function of pandas converts an index to dates, which increase if they must."""
    import pandas as pd

    try:
        dates = getattr(pd, function)(index + end if end else index, **options)
    except (ValueError, TypeError):
        return False
    ordered = not increasing or (dates.is_monotonic_increasing and dates.is_unique)
    return bool(ordered and not dates.hasnans)
