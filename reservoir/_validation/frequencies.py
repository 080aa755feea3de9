"""The frequency of dates: found, kept as text, continued, and what seasons it has.

A frequency is a pandas offset; here it travels as text, so that it can be saved. pandas is
optional: whoever passes an index has imported it already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from reservoir._validation.index import frequency, numbers_of

_DAYS_OF_A_YEAR = 365.25
_SECONDS_OF_A_DAY = 86400.0
_FEWEST_ROWS_IN_AN_HOUR = 24  # minutes and hours are cycles where they hold so many rows
_MONTHS = re.compile(r"months=(\d+)")
_LAST = re.compile(r"(\d*)LWOM-([A-Z]{3})")
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_TWO_WEEKS = np.timedelta64(14, "D")
_CUSTOM = re.compile(r"(\d+)C\|([^|]*)\|(.*)")
# aliases before pandas 2.2, and since
_RENAMED = {
    **{"A": "YE", "Y": "YE", "AS": "YS", "BA": "BYE", "BAS": "BYS", "Q": "QE", "BQ": "BQE"},
    **{"M": "ME", "BM": "BME", "SM": "SME", "CBM": "CBME", "H": "h", "BH": "bh", "CBH": "cbh"},
    **{"T": "min", "S": "s", "L": "ms", "U": "us", "N": "ns"},
}
# rows in a year by the name of a frequency, of those whose steps are no fixed time
_ROWS_OF_A_YEAR = {
    **dict.fromkeys(("Q", "QE", "QS", "BQ", "BQE", "BQS"), 4.0),
    **dict.fromkeys(("M", "ME", "MS", "BM", "BME", "BMS", "CBM", "CBME", "CBMS"), 12.0),
    **dict.fromkeys(("WOM", "LWOM"), 12.0),
    **dict.fromkeys(("SM", "SME", "SMS"), 24.0),
}
_SECONDS = {
    **{"W": 7 * _SECONDS_OF_A_DAY, "D": _SECONDS_OF_A_DAY, "H": 3600.0, "h": 3600.0},
    **{"T": 60.0, "min": 60.0, "S": 1.0, "s": 1.0},
}


def frequency_text(index: Any) -> str | None:
    """Return the frequency of a DatetimeIndex as text, None if it has none.

    A frequency that the index carries is taken at its word; else one is inferred from three dates
    or more, and every date must fit it. Beyond what pandas infers that may be a fixed day of the
    month, the last weekday in a month, half months, every second (third, ...) work day, and work
    days of another week, Monday to Saturday for instance, from two weeks on.
    """
    if index.freq is not None:
        text = text_of(index.freq)
        if text is not None:
            return text
    if len(index) < 3:
        return None
    for offset in _candidates(index):
        text = text_of(offset)
        if text is not None and _fits(index, text):
            return text
    return None


def text_of(offset: Any) -> str | None:
    """Return the text from which `offset_of` makes an offset again; None if there is none."""
    import pandas as pd

    if isinstance(offset, pd.offsets.CustomBusinessDay):
        holidays = ",".join(str(np.datetime64(day, "D")) for day in offset.holidays)
        mask = zip(_WEEKDAYS, offset.calendar.weekmask, strict=True)
        weekdays = " ".join(day.capitalize() for day, worked in mask if worked)
        return f"{offset.n}C|{weekdays}|{holidays}"
    if type(offset) is pd.DateOffset and set(offset.kwds) == {"months"}:
        return f"months={offset.n * offset.kwds['months']}"
    if isinstance(offset, pd.offsets.LastWeekOfMonth):
        return f"{offset.n}LWOM-{_WEEKDAYS[offset.weekday]}"
    try:
        same = pd.tseries.frequencies.to_offset(offset.freqstr) == offset
    except ValueError:  # an offset of the user's own
        return None
    return str(offset.freqstr) if same else None


def offset_of(text: str) -> Any:
    """Return the pandas offset that a text stands for."""
    import pandas as pd

    if found := _MONTHS.fullmatch(text):
        return pd.DateOffset(months=int(found[1]))
    if found := _LAST.fullmatch(text):  # which pandas reads from version 2.1 on
        weekday = _WEEKDAYS.index(found[2])
        return pd.offsets.LastWeekOfMonth(n=int(found[1] or 1), weekday=weekday)
    if found := _CUSTOM.fullmatch(text):
        holidays = found[3].split(",") if found[3] else []
        return pd.offsets.CustomBusinessDay(int(found[1]), weekmask=found[2], holidays=holidays)
    try:
        return pd.tseries.frequencies.to_offset(text)
    except ValueError:  # a name from another version of pandas
        return pd.tseries.frequencies.to_offset(_renamed(text))


def continued(last: Any, n_steps: int, text: str) -> Any:
    """Return the dates that follow the one in `last`, a DatetimeIndex of length 1.

    Hours and what is shorter are steps of time; days and what is longer go by the clock on the
    wall, also where it is set forward or back. A time of day that a day skips is moved forward, one
    that it has twice is taken as the first.
    """
    import pandas as pd

    offset = offset_of(text)
    zone = last.tz
    by_clock = zone is not None and not is_duration(offset)
    start = last.tz_localize(None) if by_clock else last
    # a start that the offset does not know (a day moved to Monday) would be left out
    dates = pd.date_range(start[0], periods=n_steps + 1, freq=offset, unit=last.unit)
    dates = dates[dates > start[0]][:n_steps]
    if by_clock:
        first_of_two = np.ones(len(dates), dtype=bool)
        dates = dates.tz_localize(zone, nonexistent="shift_forward", ambiguous=first_of_two)
        dates = _with_frequency(dates, offset)
    return dates.rename(last.name)


def steps_between(first: Any, later: Any, text: str) -> int:
    """Return the steps of a frequency from one date to a later one, by the clock on the wall."""
    import pandas as pd

    begin, end = first.tz_localize(None), later.tz_localize(None)
    return int((pd.date_range(begin, end, freq=offset_of(text)) > begin).sum())


def is_duration(offset: Any) -> bool:
    """Whether the steps of an offset all take the same time: hours and what is shorter."""
    import pandas as pd

    return isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)


def seasons_of(text: str, multiple: float = 1) -> tuple[float, ...]:
    """Return the rows in each cycle of the calendar that a frequency goes through, shortest first.

    Years have none; quarters and months the year; weeks the year, 52.18 rows; work days and days
    the week and the year; hours and parts of hours the day and the week, the hour in the place of
    the week where it has 24 rows or more; seconds the minute and the hour.

    Parameters
    ----------
    text : str
        A frequency, as `frequency_text` returns it, or that of periods.
    multiple : number, default=1
        Steps of the frequency from one row to the next.
    """
    if found := _MONTHS.fullmatch(text):
        cycles: tuple[float, ...] = (12 / int(found[1]),)
    elif found := _CUSTOM.fullmatch(text):
        in_week = len(found[2].split()) / int(found[1])
        cycles = (in_week, in_week / 7 * _DAYS_OF_A_YEAR)
    else:
        number, name = _parts(text)
        multiple *= number
        cycles = _cycles(name, multiple)
    return tuple(cycle for cycle in cycles if cycle >= 2)


def _cycles(name: str, multiple: float) -> tuple[float, ...]:
    """Return the rows in each cycle, of rows that are `multiple` steps of a frequency apart."""
    if name == "B":
        return 5 / multiple, 5 / 7 * _DAYS_OF_A_YEAR / multiple
    if name in _ROWS_OF_A_YEAR:
        return (_ROWS_OF_A_YEAR[name] / multiple,)
    if name not in _SECONDS:
        return ()
    step = multiple * _SECONDS[name]
    day, week = _SECONDS_OF_A_DAY / step, 7 * _SECONDS_OF_A_DAY / step
    if day <= 1:
        return week, _DAYS_OF_A_YEAR * day
    short = (rows for rows in (60 / step, 3600 / step) if rows >= _FEWEST_ROWS_IN_AN_HOUR)
    return tuple([*short, day, week][:2])


def _parts(text: str) -> tuple[int, str]:
    """Return the multiple and the name of a frequency, without what it is anchored to."""
    number, name = re.match(r"(\d*)([A-Za-z]*)", text).groups()  # type: ignore[union-attr]
    return int(number or 1), name


def _renamed(text: str) -> str:
    """Return a frequency under the name that other versions of pandas have for it."""
    name = _parts(text)[1]
    earlier = {new: old for old, new in _RENAMED.items() if old != "Y"}
    other = _RENAMED.get(name, earlier.get(name, name))
    return re.sub(r"^(\d*)[A-Za-z]+", rf"\g<1>{other}", text)


def _candidates(index: Any) -> Iterator[Any]:
    """Yield offsets that three dates or more may have."""
    import pandas as pd

    inferred = frequency(index[np.arange(len(index))])  # without what it carries
    if inferred is not None:
        yield pd.tseries.frequencies.to_offset(inferred)
    steps = np.unique(np.diff(numbers_of(index)))
    if len(steps) == 1 and steps[0] > 0:
        step = pd.Timedelta(int(steps[0]), unit=index.unit)
        hours = step / pd.Timedelta(hours=1)
        whole = hours == int(hours)
        yield pd.offsets.Hour(int(hours)) if whole else pd.tseries.frequencies.to_offset(step)
    wall = index.tz_localize(None)
    months = np.unique(np.diff(12 * wall.year.to_numpy() + wall.month.to_numpy()))
    if len(months) == 1 and months[0] > 0:
        yield pd.DateOffset(months=int(months[0]))
        yield pd.offsets.LastWeekOfMonth(n=int(months[0]), weekday=int(wall[0].weekday()))
    days = sorted(set(wall.day.to_numpy()[:8].tolist()))
    if days[0] == 1 and 7 <= days[-1] <= 27:
        yield pd.offsets.SemiMonthBegin(day_of_month=days[-1])
    elif 7 <= days[0] <= 27:
        yield pd.offsets.SemiMonthEnd(day_of_month=days[0])
    dates = wall.to_numpy().astype("M8[D]")
    work_days = np.unique(np.busday_count(dates[:-1], dates[1:]))
    if len(work_days) == 1 and work_days[0] > 0:
        yield pd.offsets.BusinessDay(int(work_days[0]))
    weekdays = np.unique((dates.astype(np.int64) + 3) % 7)  # 1970 began on a Thursday
    if len(weekdays) < 7 and dates[-1] - dates[0] >= _TWO_WEEKS:
        names = " ".join(_WEEKDAYS[day].capitalize() for day in weekdays)
        yield pd.offsets.CustomBusinessDay(weekmask=names)


def _fits(index: Any, text: str) -> bool:
    """Whether all dates of an index go on from the first by a frequency."""
    try:
        dates = continued(index[:1], len(index) - 1, text)
    except (ValueError, OverflowError):  # beyond the last date
        return False
    return np.array_equal(dates.asi8, index.asi8[1:])


def _with_frequency(dates: Any, offset: Any) -> Any:
    """Return dates that carry their frequency where pandas lets them."""
    try:
        return type(dates)(dates, freq=offset)
    except Exception:  # an hour that clocks skip: pandas 2 raises what pytz has
        return dates
