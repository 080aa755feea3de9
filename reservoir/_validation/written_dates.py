"""Recognise dates written as whole numbers, such as 201812 or 20181231, or as text, in a table.

Numbers are continued at equal steps, which is wrong for dates: 201813 would follow 201812, and
20180229 would follow 20180228.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation.scalars import caller_level

_FEWEST = 3  # fewer numbers are not checked
_YEARS = (1800, 2199)
_CONVERT = "Convert them to dates (pd.to_datetime with a format, such as `%Y%m%d`)."
_MONTHS, _DAYS = 100, 10_000  # increase of the number from one year to the next
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


class Written(NamedTuple):
    """Dates that whole numbers in an index seem to represent.

    `what` is their unit: "hours", "days", "weeks", "months" or "quarters". `jumps` states whether
    the steps of the numbers show that they are dates; if not, they may be row numbers.
    """

    what: str
    jumps: bool

    @property
    def whole(self) -> str:
        """The longer unit (day, month or year) at whose end the numbers jump."""
        return {"hours": "day", "days": "month"}.get(self.what, "year")


def written_dates(index: Any) -> Written | None:
    """Return the dates that whole numbers in an index represent, or None.

    The result is None if the numbers are not dates, or if equal steps continue them correctly.
    `yyyymmdd`, `yyyymm` and `yyyymmddhh` are recognised by their values, and by steps that jump at
    the end of a month or a year. `yyyyww` and `yyyyq` are recognised only by such steps, because
    the rows 201801 to 201852 of a long table are not weeks. Numbers may be floats.
    """
    numbers = _whole_numbers(index)
    if numbers is None:
        return None
    steps = np.diff(numbers)
    if (steps <= 0).any():
        return None
    equal = bool((steps == steps[0]).all())
    if _are_days(numbers):
        whole_years = equal and steps[0] % _DAYS == 0
        return None if whole_years else Written("days", not equal)
    if (numbers % 100 < 24).all() and _are_days(numbers // 100):
        return Written("hours", not equal)
    if not equal and _are_quarters(numbers):
        return Written("quarters", True)
    years, parts = np.divmod(numbers, _MONTHS)
    if not _in_range(years) or parts.min() < 1:
        return None
    turns = np.flatnonzero(np.diff(years))
    if parts.max() <= 12:
        if equal and (steps[0] % _MONTHS == 0 or _numbers_rows(index, parts)):
            return None
        return Written("months", not equal) if equal or len(turns) else None
    # weeks: the step over the end of a year is as many weeks as each step within the year
    ahead = _weeks_of(years[turns]) - parts[turns] + parts[turns + 1]
    if equal or not len(turns) or (ahead != steps.min()).any():
        return None
    return Written("weeks", True)


def check_written_dates(name: str, index: Any, *, warns: bool = True) -> None:
    """Raise for dates written as whole numbers that jump at the end of a month or a year.

    With `warns`, warn of numbers that may be either dates or row numbers.
    """
    found = written_dates(index)
    if found is None:
        return
    if found.jumps:
        raise ValueError(
            f"The index of {name} contains {found.what} written as whole numbers, {index[0]} to "
            f"{index[-1]}: these jump at the end of a {found.whole}, but numbers are continued at "
            f"equal steps. {_CONVERT}"
        )
    if warns:
        warnings.warn(
            f"The index of {name} goes from {index[0]} to {index[-1]}. If these are {found.what} "
            f"written as numbers, forecasts are wrong after the end of the {found.whole}. "
            f"{_CONVERT} Otherwise number the rows from 0 (reset_index).",
            UserWarning,
            stacklevel=caller_level(),
        )


def _numbers_rows(index: Any, months: Array) -> bool:
    """Whether numbers that look like months are more likely row numbers.

    That is assumed for a RangeIndex, unless it goes from the first to the last month of a year.
    """
    return hasattr(index, "step") and not (months[0] == 1 and months[-1] == 12)


def _in_range(years: Array) -> bool:
    return bool(years.min() >= _YEARS[0] and years.max() <= _YEARS[1])


def _whole_numbers(index: Any) -> Array | None:
    """Return an index as int64; None if it is too short, or contains no whole numbers or dates."""
    if len(index) < _FEWEST or index.dtype.kind not in "iuf" or index[0] < 10 * _YEARS[0]:
        return None
    numbers = np.asarray(index)
    if numbers.dtype.kind == "f" and not (numbers % 1 == 0).all():  # nor NaN and infinity
        return None
    return numbers.astype(np.int64)


def _are_quarters(numbers: Array) -> bool:
    """Whether all numbers have the form `yyyyq`, at a constant step in quarters."""
    years, quarters = np.divmod(numbers, 10)
    if not _in_range(years) or quarters.min() < 1 or quarters.max() > 4:
        return False
    return len(np.unique(np.diff(4 * years + quarters))) == 1


def _are_days(numbers: Array) -> bool:
    """Whether all numbers have the form `yyyymmdd`."""
    years, rest = np.divmod(numbers, _DAYS)
    months, days = np.divmod(rest, 100)
    if not _in_range(years) or months.min() < 1 or months.max() > 12 or days.min() < 1:
        return False
    since = (12 * (years - 1970) + months - 1).view("M8[M]")
    dates = since.astype("M8[D]") + (days - 1).view("m8[D]")
    return bool((dates.astype("M8[M]") == since).all())


def _weeks_of(years: Array) -> Array:
    """Return the number of ISO 8601 weeks in each year: 53 if it has 53 Thursdays, else 52."""
    first, last = ((years - 1970 + k).view("M8[Y]").astype("M8[D]").astype(int) for k in (0, 1))
    since_thursday = first % 7  # 1970 began on a Thursday
    return 52 + ((since_thursday == 0) | ((since_thursday == 6) & (last - first == 366)))


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
