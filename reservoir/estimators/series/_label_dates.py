"""Dates among the labels of an index: the Python that reads them, where one reading is right."""

from __future__ import annotations

import re
from typing import Any

_FORMATS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%m/%Y", "%b %Y", "%YM%m")
_ISO = r"\d{4}-\d{2}(-\d{2})?([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?"
_READINGS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (_ISO, "to_datetime", {}),
    (_ISO + r"(Z|[+-]\d{2}:?\d{2})", "to_datetime", {"utc": True}),
    (r"\d{4}-?Q[1-4]", "PeriodIndex", {"freq": "Q"}),
)


def dates_in_labels(index: Any) -> str | None:
    """Return an expression of `index` that makes dates of labels; None if it cannot be told.

    Text must say the year first, or be read by one format alone so that dates increase: of other
    text pandas guesses which is the day and which the month.
    """
    labels = index.tolist()
    if all(hasattr(label, "strftime") and hasattr(label, "year") for label in labels):
        return _reading(index, "to_datetime", {})
    if not all(isinstance(label, str) for label in labels):
        return None
    for pattern, function, options in _READINGS:
        if all(re.fullmatch(pattern, label) for label in labels):
            return _reading(index, function, options)
    tried = (_reading(index, "to_datetime", {"format": each}) for each in _FORMATS)
    right = [made for made in tried if made is not None]
    return right[0] if len(right) == 1 else None


def _reading(index: Any, function: str, options: dict[str, Any]) -> str | None:
    """Return the call of a function of pandas if it makes increasing dates of an index."""
    import pandas as pd

    try:
        dates = getattr(pd, function)(index, **options)
    except (ValueError, TypeError):
        return None
    if not dates.is_monotonic_increasing or not dates.is_unique or dates.hasnans:
        return None
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"pd.{function}(index{given})"
