"""Errors for an index that forecasts cannot continue, with the Python code that corrects it.

The entries of an index are called stamps: dates, periods or numbers.
"""

from __future__ import annotations

from typing import Any, NoReturn
from zoneinfo import available_timezones

import numpy as np

from reservoir._typing import Array
from reservoir._validation import code
from reservoir._validation.frequencies import (
    commonest,
    count_steps,
    dates_after,
    first_misfit,
    frequency_text,
)
from reservoir._validation.index import is_time, kind_of, numbers_of, show
from reservoir._validation.levels import check_has_ids
from reservoir._validation.text_dates import dates_in_labels
from reservoir._validation.wording import put
from reservoir.estimators.series.tables import (
    MIN_VALUES,
    changed,
    changed_index,
    numbered,
    without_index,
)

_MOST_FILLED = 4  # largest ratio of rows after gaps are filled to rows before
_EVEN = 1.5  # steps that differ by a smaller factor are those of rows that are periods themselves
# the period, and the arguments with which `resample` dates each period by its start
_PERIODS = (
    ("Y", '"YS"'),
    ("Q", '"QS"'),
    ("M", '"MS"'),
    ("W", '"W-MON", closed="left", label="left"'),
    ("D", '"D"'),
    ("h", '"h"'),
    ("min", '"min"'),
    ("s", '"s"'),
)
_DAY, _CHANGE = 86400, 3600  # seconds: clocks change by an hour at most
# tried before all others, which include less known names of the same times
_ZONES = (
    *("Europe/Paris", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago"),
    *("America/Denver", "America/Los_Angeles", "Australia/Sydney"),
)


def raise_several_levels(name: str, index: Any) -> NoReturn:
    """Raise the error for a MultiIndex where one series is expected."""
    check_has_ids(name, index, MIN_VALUES)
    several = (
        'If its first levels are the ids of several series, set panel="each" or panel="shared".'
    )
    one = index.droplevel(-1).nunique() == 1
    drop = code(changed(name, f"rows.droplevel({list(range(index.nlevels - 1))})"))
    raise ValueError(
        f"{name} has an index of {index.nlevels} levels, but the index of one series has only one. "
        f"{f'Drop the levels that are constant, {drop}.' if one else several}"
    )


def raise_not_continuable(name: str, index: Any) -> NoReturn:
    """Raise the error for an index of labels, durations or missing numbers."""
    if index.dtype.kind == "m":
        seconds = code(changed_index(name, "index.total_seconds()"))
        raise TypeError(
            f"The index of {name} contains durations ({index.dtype}), which cannot be continued. "
            f"Convert them to seconds, {seconds}."
        )
    if index.dtype.kind in "fc" and index.dtype.kind != "c":
        row = int(np.argmin(np.isfinite(np.asarray(index, dtype=float))))
        raise ValueError(
            f"The index of {name} is {index[row]} in row {row}. {_numbering_advice(name)}; "
            "otherwise drop that row."
        )
    dates = dates_in_labels(index)
    falling = dates_in_labels(index[::-1]) if dates is None else None
    advice = "" if dates is None else f"Convert them to dates, {code(changed_index(name, dates))}. "
    advice += f"{_numbering_advice(name)}."
    if falling is not None:  # numbering these rows would reverse time
        made = f"rows.set_axis({put('index', 'rows.index', falling)}).sort_index()"
        advice = f"Convert them to dates, and sort the rows: {code(changed(name, made))}."
    raise TypeError(
        f"The index of {name} contains labels ({index.dtype}, the first is {index[0]!r}), which "
        f"cannot be continued. {advice}"
    )


def _numbering_advice(name: str) -> str:
    """Return the advice to number rows instead of dating them."""
    return (
        f"If each row is one time step, number the rows, {code(numbered(name))}, and set the "
        "season, such as season=12 for months"
    )


def differing_kinds(name: str, kind: str, what: str, other: str) -> str:
    """Return the message for two indexes whose stamps are of different kinds."""
    return (
        f"The index of {name} contains {_kind_in_words(kind)}, but the index of {what} "
        f"contains {_kind_in_words(other)}. Convert one of them, for "
        "instance with to_period, to_timestamp, tz_localize or tz_convert of pandas."
        f"{in_order_advice(name)}"
    )


def in_order_advice(name: str) -> str:
    """Return the advice to drop an index if the rows are in order; "" if ids would be lost."""
    made = without_index(name)
    return f" If the rows are in the right order, drop the index: {code(made)}." if made else ""


def stamps_advice(name: str, index: Any, needed: Any, of_y: bool, shared: bool) -> str:
    """Return the advice for known inputs, `name`, whose stamps differ from those needed.

    `of_y` states whether the stamps needed are those of y, and `shared` whether some stamps of
    `index` are stamps of the series or of rows after it: then only their number or order is wrong.
    """
    first, last = show(needed[0]), show(needed[-1])
    span = f" Rows from {first} to {last} are needed"
    inside = index[(index >= needed[0]) & (index <= needed[-1])]
    if len(inside) == len(needed) and (inside == needed).all():
        key = f"{first!r}:{last!r}" if is_time(kind_of(index) or "") else f"{first}:{last}"
        picked = f"rows.loc[{'y.index' if of_y else key}]"
        return f"{span}, {code(changed(name, picked))}."
    if not shared:
        return f"{span}.{in_order_advice(name)}"
    missing = needed[~needed.isin(index)]
    lack = f"; {name} has none for {show(missing[0])}" if len(missing) else ", each once"
    cut = ""
    if of_y and index.isin(needed).all() and index.is_monotonic_increasing and index.is_unique:
        cut = f" Add it, or omit such rows of y as well, {code('y = y.loc[exog.index]')}."
    return f"{span}{lack}.{cut}"


def _kind_in_words(kind: str) -> str:
    plain = {
        "datetime": "dates without a time zone",
        "datetime with a zone": "dates with a time zone",
        "number": "numbers",
    }
    return plain.get(kind, f"periods ({kind})")


def raise_unknown_step(name: str, index: Any) -> NoReturn:
    """Raise the error for increasing stamps without a frequency."""
    kind = kind_of(index) or ""
    dated = kind.startswith("datetime")
    if len(index) < (3 if dated else 2):
        raise ValueError(
            f"The index of {name} has {len(index)} row{'s' * (len(index) > 1)} and no frequency, "
            f"which cannot be inferred from fewer than {3 if dated else 2} rows. Give more rows"
            f"{_two_dates_advice(name, index) if dated else ', or a RangeIndex'}."
            f"{in_order_advice(name)}"
        )
    raise ValueError(_dates_message(name, index) if dated else _numbers_message(name, index))


def _numbers_message(name: str, index: Any) -> str:
    """Return the message for periods or numbers at unequal steps."""
    numbers = numbers_of(index)
    steps = np.diff(numbers)
    usual = commonest(steps)
    row = 1 + int(np.argmax(np.abs(steps - usual) > 1e-6 * usual))
    n_filled = (numbers[-1] - numbers[0]) // usual
    # rows between those that are filled in would be lost
    kept = not (steps % usual).any() and n_filled < _MOST_FILLED * len(index)
    if not kept or index.dtype.kind == "f":
        return (
            f"The index of {name} is irregular: the step from {index[row - 1]} to {index[row]} "
            f"(row {row}) is {steps[row - 1]:g}, but the most frequent step is {usual:g}. "
            f"{_numbering_advice(name)}; otherwise interpolate the rows at equal steps."
        )
    fill = f"range(rows.index[0], rows.index[-1] + 1, {usual})"
    if is_time(kind_of(index) or ""):
        every = usual // index.freq.n  # ordinals count the base period
        fill = f'pd.period_range(rows.index[0], rows.index[-1], freq="{index.freqstr}")'
        fill += f"[::{every}]" if every > 1 else ""
    return (
        f"The index of {name} has a gap: rows are missing between {index[row - 1]} (row "
        f"{row - 1}) and {index[row]}. Insert the missing rows with NaN, "
        f"{code(changed(name, f'rows.reindex({fill})'))}. {_numbering_advice(name)}."
    )


def _dates_message(name: str, index: Any) -> str:
    """Return the message for dates without a frequency, with the first gap or irregular step."""
    row, text = first_misfit(index)
    before, after = show(index[row - 1]), show(index[row])
    missing = 0
    if text is not None and _fills(index, text):
        missing = count_steps(index[row - 1 : row], index[row : row + 1], text) - 1
    if missing > 0:
        are = "rows are" if missing > 1 else "row is"
        return (
            f"The index of {name} has a gap: between {before} (row {row - 1}) and {after}, "
            f"{missing} {are} missing, given the frequency {_offset(text)} of the other rows. "
            "Insert the missing rows with NaN, "
            f"{code(changed(name, f'rows.asfreq({_offset(text)})'))}. {_numbering_advice(name)}."
        )
    steps = np.diff(numbers_of(index))
    return (
        f"The index of {name} is irregular: the step from {before} (row {row - 1}) to {after}, "
        f"{index[row] - index[row - 1]}, does not fit the steps "
        f"{'before' if row > 1 else 'after'} it; there are {len(np.unique(steps))} different steps "
        f"in total. {_regular_advice(name, index)}"
    )


def _fills(index: Any, text: str) -> bool:
    """Whether dates at a frequency include all dates of an index, and not too many others."""
    n_steps = count_steps(index[:1], index[-1:], text)
    if not 0 < n_steps < _MOST_FILLED * len(index):
        return False
    return bool(index[1:].isin(dates_after(index[:1], n_steps, text)).all())


def _offset(text: Any) -> str:
    """Return the Python expression for a frequency that `frequency_text` returned."""
    if text.startswith("months="):
        return f"pd.DateOffset({text})"
    if "|" in text:
        weekdays = text.split("|")[1]
        return f'pd.offsets.CustomBusinessDay(weekmask="{weekdays}")'
    return f'"{text}"'


def _two_dates_advice(name: str, index: Any) -> str:
    """Return the advice to state the frequency of two dates; "" if they do not suggest one."""
    made = _as_periods(name, index) if len(index) == 2 else None
    return f", or state the frequency, for instance by {made}" if made else ""


def _regular_advice(name: str, index: Any) -> str:
    """Return the advice for dates at irregular steps, of which the first keeps all rows.

    Rows are averaged only where each period contains one, so that no row without a value is made.
    """
    number = _numbering_advice(name)
    zone = _zone_of(index)
    if zone is not None:
        aware = "index" if index.tz is not None else 'index.tz_localize("UTC")'
        return (
            "The time of day changes as clocks do: convert the dates to their time zone, for "
            f"""instance {code(changed_index(name, f'{aware}.tz_convert("{zone}")'))}. {number}."""
        )
    made_periods = _as_periods(name, index)
    if made_periods is not None:
        return f"Each period contains one date: convert them to periods, {made_periods}. {number}."
    bins = _filled_bins(index)
    if bins is None:
        return f"{number}."
    made = code(changed(name, f"rows.resample({bins}).mean()"))
    return (
        f"{number}. Otherwise replace the rows in each period by their mean, dated by the period's "
        f"start, {made}."
    )


def _zone_of(index: Any) -> str | None:
    """Return a time zone in which all dates are midnights, or have the same time of day, or None.

    Its days, weeks and months begin at two times of day in another zone, since clocks change.
    """
    different, rows = np.unique(_times_of_day(index), return_index=True)
    shifts = (different - different[0] + _DAY / 2) % _DAY - _DAY / 2
    if not 0 < np.ptp(shifts) <= _CHANGE:
        return None
    dates = index.tz_localize("UTC") if index.tz is None else index
    found = None
    for zone in (*_ZONES, *sorted(available_timezones())):
        times = _times_of_day(dates[rows].tz_convert(zone))
        if (times != times[0]).any():
            continue
        local = dates.tz_convert(zone)
        # clocks may skip midnight, after which the frequency has a later time
        if (_times_of_day(local) != times[0]).any() and frequency_text(local) is None:
            continue
        if times[0] == 0:
            return zone
        found = found or zone
    return found


def _times_of_day(index: Any) -> Array:
    """Return the local time of day of each date, in seconds."""
    wall = index.tz_localize(None)
    return np.asarray((wall - wall.normalize()).total_seconds())


def _as_periods(name: str, index: Any) -> str | None:
    """Return the code that converts dates to consecutive periods; None if there are none."""
    wall = "index" if index.tz is None else "index.tz_localize(None)"
    for period, _ in _PERIODS:
        if (_period_steps(index, period) == 1).all():
            return code(changed_index(name, f'{wall}.to_period("{period}")'))
    return None


def _filled_bins(index: Any) -> str | None:
    """Return the arguments of `resample` for the shortest periods that all contain a date.

    None if there are none, or if rows at nearly equal steps are periods themselves, such as months
    of four and five weeks.
    """
    steps = np.diff(numbers_of(index))
    if steps.max() < _EVEN * steps.min():
        return None
    for period, bins in _PERIODS[::-1]:
        found = _period_steps(index, period)
        if (found < 2).all():
            return bins if found.sum() >= MIN_VALUES else None
    return None


def _period_steps(index: Any, period: str) -> Array:
    """Return how many periods lie between one date and the next."""
    steps: Array = np.diff(index.tz_localize(None).to_period(period).asi8)
    return steps
