"""The index of a series as it came: refused where forecasts could not be given dates.

The entries of an index are called stamps: dates, periods or numbers.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from reservoir._validation import index_of
from reservoir._validation.frequencies import commonest, count_steps, first_misfit
from reservoir._validation.index import is_time, kind_of, numbers_of, show

_MOST_MISSING = 100_000  # rows; a longer gap is an irregular step
_SECONDS = {"YS": 31e6, "QS": 7.7e6, "MS": 2.4e6, "W": 6e5, "D": 86400, "h": 3600, "min": 60}
_TEXT = (
    "Make dates of it, {short}.index = pd.to_datetime({short}.index), or number the rows, "
    "{short} = {short}.reset_index(drop=True)."
)


def stamps_of(name: str, table: Any) -> Any:
    """Return the index of a table; None if it has none. Labels are refused.

    `name` is what messages call the table; its last word is taken for the variable.
    """
    if not hasattr(table, "iloc"):
        return None
    short = name.split()[-1]
    index = table.index
    if index.nlevels > 1:
        raise ValueError(
            f"{name} has an index of {index.nlevels} levels, and a single series has one. For "
            'several series told apart by the first level say panel="each" or panel="shared"; '
            f"else drop a level, {short}.droplevel(0)."
        )
    found = index_of(table)
    if found is not None or not len(index):
        return found
    if index.dtype.kind == "m":
        remedy = f"Use numbers, {short}.index = {short}.index.total_seconds(), or dates."
        raise TypeError(f"The index of {name} holds durations ({index.dtype}). {remedy}")
    if index.dtype.kind in "fc" and index.dtype.kind != "c":
        row = int(np.argmin(np.isfinite(np.asarray(index, dtype=float))))
        remedy = f"Number the rows, {short} = {short}.reset_index(drop=True), or drop that row."
        raise ValueError(f"The index of {name} is {index[row]} in row {row}. {remedy}")
    raise TypeError(
        f"The index of {name} holds labels ({index.dtype}, the first is {index[0]!r}), which "
        f"cannot be continued. {_TEXT.format(short=short)}"
    )


def differing_kinds(name: str, kind: str, what: str, other: str) -> str:
    """Return the message for stamps that cannot be compared."""
    return (
        f"The index of {name} holds {_told(kind)}, that of {what} {_told(other)}. Make them alike "
        "(to_period, to_timestamp, tz_localize, tz_convert, pd.to_datetime), or give "
        f"{name.split()[-1]}.to_numpy() if its rows are in the right order."
    )


def _told(kind: str) -> str:
    plain = {
        "datetime": "dates without a time zone",
        "datetime with a zone": "dates with a time zone",
        "number": "numbers",
    }
    return plain.get(kind, f"periods ({kind})")


def refuse_unknown_step(name: str, index: Any) -> NoReturn:
    """Refuse stamps in increasing order from which no frequency can be inferred."""
    kind, short = kind_of(index) or "", name.split()[-1]
    dated = kind.startswith("datetime")
    if len(index) < (3 if dated else 2):
        how = (
            f'set it, {short} = {short}.asfreq("MS") for instance' if dated else "set a RangeIndex"
        )
        raise ValueError(
            f"The index of {name} has {len(index)} row{'s' * (len(index) > 1)} and no frequency, "
            f"and none can be inferred from fewer than {3 if dated else 2}. Give more rows, {how}, "
            f"or leave the index out, {short}.to_numpy()."
        )
    raise ValueError(_dates_told(name, index) if dated else _numbers_told(name, index))


def _numbers_told(name: str, index: Any) -> str:
    """Return the message for periods or numbers at unequal steps."""
    short = name.split()[-1]
    steps = np.diff(numbers_of(index))
    usual = commonest(steps)
    row = 1 + int(np.argmax(np.abs(steps - usual) > 1e-6 * usual))
    number = f"number the rows, {short} = {short}.reset_index(drop=True)"
    if is_time(kind_of(index) or ""):
        what = f"rows are missing between {index[row - 1]} (row {row - 1}) and {index[row]}"
        fill = f'pd.period_range({short}.index[0], {short}.index[-1], freq="{index.freqstr}")'
    else:
        what = (
            f"the step from {index[row - 1]} to {index[row]} (row {row}) is {steps[row - 1]:g}, "
            f"and the usual one {usual:g}"
        )
        if index.dtype.kind == "f":
            return f"The index of {name} is irregular: {what}. Interpolate, or {number}."
        fill = f"range({short}.index[0], {short}.index[-1] + 1, {usual})"
    return (
        f"The index of {name} has a gap: {what}. Put NaN in place of what is missing, {short} = "
        f"{short}.reindex({fill}), or {number}."
    )


def _dates_told(name: str, index: Any) -> str:
    """Return the message for dates without a frequency: the first gap, or irregular step."""
    short = name.split()[-1]
    row, text = first_misfit(index)
    before, behind = show(index[row - 1]), show(index[row])
    number = f"Or number the rows, {short} = {short}.reset_index(drop=True), if each is one step."
    missing = 0
    if text is not None:
        missing = count_steps(index[row - 1 : row], index[row : row + 1], text) - 1
    if text is not None and 0 < missing <= _MOST_MISSING:
        are = "rows are" if missing > 1 else "row is"
        return (
            f"The index of {name} has a gap: between {before} (row {row - 1}) and {behind} "
            f"{missing} {are} missing by the frequency {_code(text)} of the other rows. Put NaN "
            f"in their place, {short} = {short}.asfreq({_code(text)}). {number}"
        )
    steps = np.diff(numbers_of(index))
    usual = _usual_alias(index)
    return (
        f"The index of {name} is irregular: no frequency has the step from {before} (row "
        f"{row - 1}) to {behind}, {index[row] - index[row - 1]}, and those before it"
        f"{'' if row > 1 else ' or behind it'}; {len(np.unique(steps))} different steps in all. "
        f'Make it regular, {short} = {short}.resample("{usual}").mean(). {number}'
    )


def _code(text: str) -> str:
    """Return the Python expression of a frequency."""
    if text.startswith("months="):
        return f"pd.DateOffset({text})"
    if "|" in text:
        weekdays = text.split("|")[1]
        return f'pd.offsets.CustomBusinessDay(weekmask="{weekdays}")'
    return f'"{text}"'


def _usual_alias(index: Any) -> str:
    """Return the name of the frequency next below the usual step."""
    step = np.median(np.diff(numbers_of(index))) / {"s": 1, "ms": 1e3, "us": 1e6}.get(
        index.unit, 1e9
    )
    return next((name for name, seconds in _SECONDS.items() if step >= seconds), "s")
