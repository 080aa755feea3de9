"""Recognise dates that are written as text, in an index or in a column of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from reservoir._validation.wording import put

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


def dates_in_labels(index: Any, *, increasing: bool = True) -> str | None:
    """Return the Python expression that converts the labels of `index` to dates.

    It is None if the labels are not dates, or could be different dates: strings must begin with the
    year, or exactly one format must give dates, which must increase if `increasing` is True. In
    other strings pandas guesses which number is the day and which the month.
    """
    labels = index.tolist()
    if all(hasattr(label, "strftime") and hasattr(label, "year") for label in labels):
        return _reading(index, "", "to_datetime", {}, increasing)
    if not all(isinstance(label, str) for label in labels):
        return None
    for pattern, end, function, options in _READINGS:
        if all(re.fullmatch(pattern, label) for label in labels):
            return _reading(index, end, function, options, increasing)
    tried = (_reading(index, "", "to_datetime", {"format": each}, increasing) for each in _FORMATS)
    right = [made for made in tried if made is not None]
    return right[0] if len(right) == 1 else None


def dates_in_column(column: str, values: Sequence[Any]) -> str | None:
    """Return the Python expression that converts a column of text to dates; None as above.

    `column` is the expression of the column. Its dates need not increase, since the table may
    contain several series.
    """
    import pandas as pd

    labels = pd.Index([each for each in values if each is not None and each == each], dtype=object)
    if not len(labels) or not isinstance(labels[0], str):
        return None
    made = dates_in_labels(labels) or dates_in_labels(labels, increasing=False)
    return None if made is None else put("index", column, made)


def _reading(
    index: Any, end: str, function: str, options: dict[str, Any], increasing: bool
) -> str | None:
    """Return the call of a pandas function that converts an index to dates.

    It is None if the function fails, or if the dates do not increase although they must.
    """
    import pandas as pd

    try:
        dates = getattr(pd, function)(index + end if end else index, **options)
    except (ValueError, TypeError):
        return None
    if dates.hasnans or (increasing and not (dates.is_monotonic_increasing and dates.is_unique)):
        return None
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"pd.{function}(index{f' + {end!r}' if end else ''}{given})"
