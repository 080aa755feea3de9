"""Infer the frequency of dates, convert it to and from a string, and continue dates at it.

A frequency is a pandas offset; here it is passed as a string, so that it can be saved. A
user-defined offset, which has no string form, may be passed instead as long as nothing is saved.
pandas is optional: a caller that passes an index has imported it already.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import numpy as np

from reservoir._typing import Array

_DAYS_OF_A_YEAR = 365.25
_SECONDS_OF_A_DAY = 86400.0
_FEWEST_ROWS_IN_AN_HOUR = 24  # a minute or an hour is a cycle if it has at least this many rows
_MONTHS = re.compile(r"months=(\d+)")
_LAST = re.compile(r"(\d*)LWOM-([A-Z]{3})")
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_TWO_WEEKS = np.timedelta64(14, "D")
_FIRST_BLOCK = 64  # candidate frequencies come from this many dates; all dates are then checked
_WINDOWS = (40, 20, 14)  # numbers of rows from which a frequency of irregular dates is inferred
_WIDE = 1.5  # a step longer than this many median steps is a gap; months differ by less
_CUSTOM = re.compile(r"(\d+)C\|([^|]*)\|(.*)")
# aliases before pandas 2.2: aliases since then
_RENAMED = {
    **{"A": "YE", "Y": "YE", "AS": "YS", "BA": "BYE", "BAS": "BYS", "Q": "QE", "BQ": "BQE"},
    **{"M": "ME", "BM": "BME", "SM": "SME", "CBM": "CBME", "H": "h", "BH": "bh", "CBH": "cbh"},
    **{"T": "min", "S": "s", "L": "ms", "U": "us", "N": "ns"},
}
# rows per year, by the name of the frequency, for frequencies whose steps differ in length
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
    """Return the frequency of a DatetimeIndex as a string; None if it has no frequency.

    It is `freq` of the index if that is set, else inferred from three or more dates, all of which
    must fit. Besides those that pandas infers it may be a fixed day of the month, the last Friday
    (or another weekday) of the month, half months, every second (third, ...) business day and, if
    the dates cover two weeks, custom business days such as Monday to Saturday.
    """
    if index.freq is not None:
        text = text_of(index.freq)
        if text is not None:
            return text
    if len(index) < 3 or index.hasnans:
        return None
    for offset in _candidates(index[:_FIRST_BLOCK]):
        text = text_of(offset)
        if text is not None and first_stray(index, text) is None:
            return text
    return None


def first_stray(index: Any, frequency: Any) -> int | None:
    """Return the first row of dates that does not fit a frequency that starts at row 0.

    The result is None if all rows fit it.
    """
    # the first `fit` steps are known to fit, and `over` steps are known to be too many; a misfit
    # usually comes early, so blocks start small and grow
    fit, over, size = 0, len(index), _FIRST_BLOCK
    while fit < over - 1:
        size = min(size, over - 1)
        try:
            due = dates_after(index[:1], size, frequency)
        except OverflowError:
            over, size = size, (fit + size) // 2
            continue
        differs = due.asi8 != index.asi8[1 : size + 1]
        if differs.any():
            return 1 + int(np.argmax(differs))
        fit, size = size, 8 * size
    return None if over == len(index) else over


def first_misfit(index: Any) -> tuple[int, str | None]:
    """Return the first row that does not fit the frequency of the other rows, and that frequency.

    `index` contains three or more dates that have no common frequency. The frequency is inferred
    from some rows at the beginning or the end, otherwise from the longest initial part that has a
    frequency. It is None if no part has one; the row is then where the step is unusual.
    """
    for size in _WINDOWS:
        for part in (index[:size], index[-size:]) if len(index) > size else ():
            text = frequency_text(part)
            row = None if text is None else first_stray(index, text)
            if row is not None:
                return row, text
    lengths = range(3, len(index) + 1)
    row = 2 + bisect_left(lengths, True, key=lambda n: frequency_text(index[:n]) is None)
    if row > 2:
        return row, frequency_text(index[:row])
    steps = np.diff(index.asi8)  # no frequency at the start: compare with the median step
    wide = steps > _WIDE * np.median(steps)
    row = 1 + int(np.argmax(wide if wide.any() else steps != commonest(steps)))
    return row, frequency_text(index[row:])


def commonest(steps: Array) -> Any:
    """Return the most frequent value of an array; in case of a tie, the smallest of them."""
    values, counts = np.unique(steps, return_counts=True)
    return values[np.argmax(counts)]


def text_of(offset: Any) -> str | None:
    """Return the string from which `offset_of` makes an offset; None if it has no such string."""
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
    except ValueError:  # a user-defined offset
        return None
    return str(offset.freqstr) if same else None


def offset_of(text: Any) -> Any:
    """Return the pandas offset that a string stands for; an offset is returned as it is."""
    import pandas as pd

    if not isinstance(text, str):
        return text
    if found := _MONTHS.fullmatch(text):
        return pd.DateOffset(months=int(found[1]))
    if found := _LAST.fullmatch(text):  # pandas before 2.1 cannot parse this string
        weekday = _WEEKDAYS.index(found[2])
        return pd.offsets.LastWeekOfMonth(n=int(found[1] or 1), weekday=weekday)
    if found := _CUSTOM.fullmatch(text):
        holidays = found[3].split(",") if found[3] else []
        return pd.offsets.CustomBusinessDay(int(found[1]), weekmask=found[2], holidays=holidays)
    names = [text, _renamed(text)]  # the string may be from another version of pandas
    if _parts(text)[1] in _RENAMED:  # some versions accept the old name, but with a warning
        names.reverse()
    try:
        return pd.tseries.frequencies.to_offset(names[0])
    except ValueError:
        return pd.tseries.frequencies.to_offset(names[1])


def one_date(number: int, unit: str, zone: str | None) -> Any:
    """Return a DatetimeIndex of length 1 from the time since 1970 (UTC).

    `number` is in `unit`, which is "s", "ms", "us" or "ns". `zone` is the time zone of the index;
    if it is empty or None, the index is not timezone-aware.
    """
    import pandas as pd

    one = pd.DatetimeIndex(np.array([number], dtype=np.int64).view(f"M8[{unit}]"))
    return one.tz_localize("UTC").tz_convert(zone) if zone else one


def dates_after(last: Any, n_steps: int, frequency: Any) -> Any:
    """Return the `n_steps` dates that follow the date in `last`, a DatetimeIndex of length 1.

    Hours and shorter steps are fixed durations; days and longer steps follow local time, even where
    clocks are set forward or back. A local time that does not exist is moved forward; if one occurs
    twice, the first is used. Raise OverflowError outside the range of the index's unit.
    """
    import pandas as pd

    offset = offset_of(frequency)
    zone = last.tz
    by_clock = zone is not None and not is_duration(offset)
    start = last.tz_localize(None) if by_clock else last
    try:
        dates = pd.date_range(start[0], periods=n_steps + 1, freq=offset, unit=last.unit)
    except (ValueError, OverflowError) as error:
        raise OverflowError(
            f"{n_steps} steps from {str(last[0]).removesuffix(' 00:00:00')} reach beyond the last "
            f"date that datetime64[{last.unit}] can represent. Use a coarser unit (as_unit), or "
            "fewer steps."
        ) from error
    # date_range omits a start that is not on the offset (a Sunday, for business days), so the start
    # is dropped by its value, not by its position
    dates = dates[dates > start[0]][:n_steps]
    if by_clock:
        first_of_two = np.ones(len(dates), dtype=bool)
        dates = dates.tz_localize(zone, nonexistent="shift_forward", ambiguous=first_of_two)
        dates = _with_frequency(dates, offset)
    return dates.rename(last.name)


def count_steps(first: Any, last: Any, frequency: Any) -> int:
    """Return how many steps of a frequency lead from `first` to `last`.

    Each is a DatetimeIndex of length 1. The result is 0 if no number of steps leads to `last`.
    """
    import pandas as pd

    if last[0] <= first[0]:
        return 0
    offset = offset_of(frequency)
    if is_duration(offset):
        n_steps, rest = divmod(last[0] - first[0], pd.Timedelta(offset))
        return 0 if rest else int(n_steps)
    ends = first, last if first.tz is None else last.tz_convert(first.tz)
    start, end = (each.tz_localize(None)[0] for each in ends)
    dates = pd.date_range(start, end, freq=offset)
    n_steps = int((dates > start).sum())
    met = n_steps > 0 and dates_after(first, n_steps, offset)[-1] == last[0]
    return n_steps if met else 0


def is_duration(offset: Any) -> bool:
    """Whether all steps of an offset have the same duration: true for hours and shorter steps."""
    import pandas as pd

    return isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)


def seasons_of(text: str, multiple: float = 1) -> tuple[float, ...]:
    """Return the number of rows per calendar cycle for a frequency, shortest cycle first.

    Rows are `multiple` steps of the frequency apart, which is that of dates or periods. Quarters,
    months and weeks (52.18 rows) have the year, yearly rows none; days and business days the week
    and the year; hours and parts of them the day and the week, or the hour and the day if an hour
    has 24 rows or more; seconds the minute and the hour.
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
    """Return the number of rows per cycle if rows are `multiple` steps of a frequency apart."""
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
    """Return the multiple and the name of a frequency without its anchor: 1, "W" for "W-SUN"."""
    number, name = re.match(r"(\d*)([A-Za-z]*)", text).groups()  # type: ignore[union-attr]
    return int(number or 1), name


def _renamed(text: str) -> str:
    """Return the alias that other versions of pandas use for the same frequency."""
    name = _parts(text)[1]
    earlier = {new: old for old, new in _RENAMED.items() if old != "Y"}
    other = _RENAMED.get(name, earlier.get(name, name))
    return re.sub(r"^(\d*)[A-Za-z]+", rf"\g<1>{other}", text)


def _inferred(index: Any) -> Any:
    """Return the result of `pandas.infer_freq` for three or more dates: offset, string or None."""
    import pandas as pd

    try:  # a later pandas will return offsets instead of names; the option avoids its warning
        with pd.option_context("future.infer_freq_returns_offset", True):
            return pd.infer_freq(index)
    except KeyError:  # this version of pandas does not have the option
        return pd.infer_freq(index)


def _candidates(index: Any) -> Iterator[Any]:
    """Yield offsets that may be the frequency of three or more dates."""
    import pandas as pd

    inferred = _inferred(index)
    if inferred is not None:
        yield pd.tseries.frequencies.to_offset(inferred)
    steps = np.unique(np.diff(index.asi8))
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
    days = sorted(set(wall.day.to_numpy()[:8].tolist())) if len(wall) > 3 else [0]
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


def _with_frequency(dates: Any, offset: Any) -> Any:
    """Return dates with their frequency set, if pandas accepts it."""
    try:
        return type(dates)(dates, freq=offset)
    except Exception:  # an hour skipped by the clocks: pandas 2 raises exceptions of pytz
        return dates
