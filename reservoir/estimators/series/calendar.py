"""Calendar of a series: checks and continuation of its index, and the seasons it implies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import numpy as np

from reservoir._saving import saved
from reservoir._tables.frames import is_pandas, n_levels
from reservoir._typing import Array
from reservoir._validation import index_of
from reservoir._validation.continued import counted
from reservoir._validation.frequencies import (
    commonest,
    count_steps,
    dates_after,
    first_misfit,
    frequency_text,
    is_duration,
    offset_of,
    one_date,
    seasons_of,
)
from reservoir._validation.index import is_plain, is_time, kind_of, numbers_of, plain_name, show
from reservoir._validation.order import check_has_ids, check_order
from reservoir._validation.written_dates import check_written_dates
from reservoir.estimators.series.tables import MIN_VALUES, Division
from reservoir.series_models.series_data import seen_seasons

_ROUNDING = 1e-6  # tolerance for an index of floats, in steps
_FEW = 40  # with this many rows or more, the inferred frequency is certain
_ROWS = "rows"
_PERIODS = "period["
# frequencies that can be inferred without ambiguity from any three consecutive dates
_UNAMBIGUOUS = re.compile(r"D|MS|ME|W-[A-Z]{3}|[QY][SE]-[A-Z]{3}")
_MOST_DUE = 4  # largest ratio of the number of due stamps to the number of rows
_NUMBER = (
    "If each row is one time step, number the rows by reset_index(drop=True), and set the season, "
    "such as season=12 for months."
)
_IN_WORDS = {
    "datetime": "dates without a time zone",
    "datetime with a zone": "dates with a time zone",
    "number": "numbers",
}
_IN_ORDER = "if the rows are in the right order, pass an array."


@saved
@dataclass(frozen=True)
class Calendar:
    """Index of one series, stored as numbers and strings so that it can be saved and continued.

    Its entries are called stamps. The first and the last are times since 1970 in the unit of the
    index for datetimes, ordinals for periods, otherwise the numbers themselves.
    """

    kind: str  # "rows" (no index), "datetime", "datetime with a zone", "number", or as "period[M]"
    n_rows: int
    first: float = 0
    last: float = -1
    step: Any = 1  # for datetimes the frequency as a string
    plain: bool = True  # whether the index merely numbers the rows from 0
    dtype: str = "range"  # this for a RangeIndex
    zone: str | None = None
    name: Any = None  # a string, a number, or a tuple of these

    @classmethod
    def of(
        cls,
        name: str,
        table: Any,
        like: Calendar | None = None,
    ) -> Calendar:
        """Return the calendar of a table, one series with an index of one level, after checks.

        `like` is the calendar of other rows of the series: one or two rows, which have no frequency
        themselves, take its frequency if they fit it. Raise if stamps are missing, not in order,
        duplicated, irregular, labels, or too few.
        """
        index = stamps_of(name, table)
        if index is None:
            return cls.of_rows(len(table))
        return cls._of_stamps(name, index, like)

    @classmethod
    def of_rows(cls, n_rows: int) -> Calendar:
        """Return the calendar of rows without an index."""
        return cls(_ROWS, n_rows, last=n_rows - 1)

    @classmethod
    def _of_stamps(cls, name: str, index: Any, like: Calendar | None) -> Calendar:
        """Return the calendar of stamps after checking them."""
        check_ordered(name, index)
        check_written_dates(name, index, warns=False)
        return cls._of_index(name, index, like)

    @classmethod
    def _of_index(cls, name: str, index: Any, like: Calendar | None = None) -> Calendar:
        """Return the calendar of stamps that are known to increase."""
        numbers, kind = numbers_of(index), kind_of(index) or ""
        zoned = kind == "datetime with a zone"
        made = cls(
            kind,
            len(index),
            numbers[0].item(),
            numbers[-1].item(),
            _step(index),
            is_plain(index, np.zeros(1, dtype=int)),
            _dtype(index),
            _zone(name, index) if zoned else None,
            plain_name(index.name),
        )
        if made.step is not None:
            return made
        # the stamps have no frequency themselves: try the frequency of other rows of the series
        if like is not None and like.kind == kind and len(index) < 3:
            trial = replace(made, step=like.step)
            if _first_difference(index, trial.index) is None:
                return trial
        _raise_unknown_step(name, index)

    def part(self, first: float, last: float, n_rows: int) -> Calendar:
        """Return the calendar of other rows with the same frequency."""
        return replace(self, first=first, last=last, n_rows=n_rows)

    @property
    def numbered(self) -> bool:
        """Whether there is no index, or one that merely numbers the rows."""
        return self.kind == _ROWS or self.plain

    @property
    def index(self) -> Any:
        """The stamps of all rows as a pandas index; None if the data have no index."""
        if self.kind == _ROWS:
            return None
        if self.kind.startswith("datetime"):
            first = self._date(self.first)
            dates = first.append(dates_after(first, self.n_rows - 1, self.step))
            return dates.rename(self.name)
        return self._counted(self.first, self.n_rows)

    def preceding(self, n_rows: int) -> Any:
        """Return the index of the last `n_rows` rows; None if the data have no index."""
        index = self.index
        return None if index is None else index[len(index) - n_rows :]

    def following(self, n_steps: int) -> Any:
        """Return the index of the next `n_steps` rows; None if the data have no index.

        Dates respect month ends and business days. Days have the same wall-clock time, but hours
        continue by elapsed time where clocks are set forward or back. Raise OverflowError for a
        date outside the range of the index's unit.
        """
        if self.kind == _ROWS:
            return None
        if self.kind.startswith("datetime"):
            return dates_after(self._date(self.last), n_steps, self.step)
        return self._counted(self.last + self.step, n_steps)

    def due(self, n_rows: int, *, following: bool) -> Any:
        """Return the first stamps, or those after the last row, of an index that is not changed.

        Most series of a panel have the same stamps, which are made once, since dates take time.
        """
        return _stamps(replace(self, n_rows=0, first=0) if following else self, n_rows)

    def extended(self, n_rows: int) -> Calendar:
        """Return the calendar with `n_rows` rows appended."""
        if n_rows == 0:
            return self
        later = self.following(n_rows)
        last = self.last + n_rows if later is None else numbers_of(later[-1:])[0].item()
        return replace(self, n_rows=self.n_rows + n_rows, last=last)

    def seasons(self, n_rows: int | None = None) -> tuple[float, ...]:
        """Return the number of rows of each season that `n_rows`, by default all, contain often."""
        return seen_seasons(self.n_rows if n_rows is None else n_rows, self.implied_seasons)

    @property
    def dated(self) -> bool:
        """Whether there is an index of dates or periods."""
        return self.kind not in (_ROWS, "number")

    @property
    def implied_seasons(self) -> tuple[float, ...]:
        """Number of rows in each season that the frequency implies, shortest first."""
        if not self.dated:
            return ()
        if self.kind.startswith(_PERIODS):
            # ordinals count the base period, so those of period[2h] differ by 2: drop the multiple
            # from the name
            name = self.kind.removeprefix(_PERIODS)[:-1].lstrip("0123456789")
            return seasons_of(name, self.step)
        return seasons_of(self.step)

    def check_follows(self, name: str, table: Any) -> Calendar:
        """Return the calendar extended by a later table, which must begin right after its last row.

        Rows without an index, or merely numbered from 0, are assumed to follow.
        """
        index = stamps_of(name, table)
        n_rows = len(table)
        if index is None or self.kind == _ROWS or is_plain(index, np.zeros(1, dtype=int)):
            return self.extended(n_rows)
        check_ordered(name, index)
        if (kind_of(index) or "") != self.kind:
            kinds = (kind_of(index) or "", "the rows before it", self.kind)
            raise ValueError(_differing_kinds(name, *kinds))
        due = self.following(n_rows)
        stray = _first_difference(index, due)
        if stray is None:
            return self.extended(n_rows)
        # before an error: the frequency inferred from few rows may have been wrong
        joined = self._joined(index)
        if joined is not None:
            return joined
        if stray:
            raise ValueError(
                f"The index of {name} has {show(index[stray])} in row {stray}, where "
                f"{show(due[stray])} is due by the frequency of the earlier rows. Give all rows "
                "in between, with NaN for unknown values."
            )
        remedy = "Give the rows in between as well, with NaN for unknown values."
        if index[0] <= self._last:
            known = int((index <= self._last).sum())
            remedy = f"Its first {known} rows are known already. Drop them."
        raise ValueError(
            f"{name} begins at {show(index[0])}. The rows before it ended at {show(self._last)}, "
            f"so that {show(due[0])} is due. {remedy}"
        )

    def check_matches(
        self,
        name: str,
        table: Any,
        what: str,
        n_rows: int | None = None,
        *,
        following: bool = False,
    ) -> None:
        """Check row by row that the stamps of a table are those of this calendar.

        `what` names the rows of the calendar. `n_rows` are needed, by default as many as the table
        has; common rows are compared first, and rows beyond the end with the stamps that continue
        the calendar; with `following`, all are compared with these. Rows without an index, or
        merely numbered from 0, are matched by position.
        """
        index = stamps_of(name, table)
        if index is None or self.kind == _ROWS or is_plain(index, np.zeros(1, dtype=int)):
            return
        kind = kind_of(index) or ""
        if self.plain and is_time(kind):
            return
        if kind != self.kind:
            raise ValueError(_differing_kinds(name, kind, what, self.kind))
        n_rows = len(index) if n_rows is None else n_rows
        due = self.due(max(len(index), n_rows), following=following)
        row = _first_difference(index, due[: len(index)])
        if row is None and len(index) == n_rows:
            return
        those = what if following else f"the rows of {what}"
        wrong = f"{name} has {len(index)} rows, but {n_rows} are needed: {those}."
        if row is not None:
            wrong = (
                f"The index of {name} does not match {what}: row {row} is {show(index[row])}, but "
                f"{show(due[row])} is due."
            )
        needed = due[:n_rows]
        missing = needed[~needed.isin(index)]
        lack = f"; {name} has none for {show(missing[0])}" if len(missing) else ", each once"
        raise ValueError(
            f"{wrong} Rows from {show(needed[0])} to {show(needed[-1])} are needed{lack}. Select "
            f"them by loc; {_IN_ORDER}"
        )

    @property
    def _last(self) -> Any:
        """The last stamp."""
        if self.kind.startswith("datetime"):
            return self._date(self.last)[0]
        return self._counted(self.last, 1)[0]

    def _date(self, number: float) -> Any:
        """Return a DatetimeIndex of length 1 with the date that a number stands for."""
        unit = self.dtype.removeprefix("M8[").removesuffix("]")
        return one_date(int(number), unit, self.zone).rename(self.name)

    def _counted(self, first: float, n_rows: int) -> Any:
        """Return an index of `n_rows` periods or numbers at equal steps."""
        return counted(self.kind, first, self.step, n_rows, self.dtype).rename(self.name)

    def _joined(self, later: Any) -> Calendar | None:
        """Return the calendar of few dates joined with later ones; None if it has no frequency.

        The frequency of few dates may have been inferred wrongly: business days look daily up to
        the first weekend.
        """
        if self.n_rows >= _FEW or not self.kind.startswith("datetime"):
            return None
        index = self.index.append(later)
        regular = index.is_monotonic_increasing and index.is_unique and _step(index) is not None
        return Calendar._of_index("", index) if regular else None


@lru_cache(maxsize=16)
def _stamps(calendar: Calendar, n_rows: int) -> Any:
    """Return the stamps of a calendar and of rows after it, `n_rows` or as many as it has."""
    beyond = calendar.following(max(n_rows - calendar.n_rows, 0))
    return calendar.index.append(beyond) if calendar.n_rows else beyond


def stamps_of(name: str, table: Any) -> Any:
    """Return the index of a table; None if it has none. Raise for levels, labels and durations."""
    if not is_pandas(table):
        return None
    if n_levels(table) > 1:
        _raise_several_levels(name, table.index)
    found = index_of(table)
    if found is None and len(table.index):
        _raise_not_continuable(name, table.index)
    return found


def rows_after_first(calendars: Sequence[Calendar]) -> list[int]:
    """Return by how many rows each series begins after the earliest one.

    All are 0 if the series have no index, or if their frequencies differ. A series that begins
    between two rows of the earliest one has 0 as well.
    """
    earliest = min(calendars, key=lambda calendar: calendar.first)
    alike = {(each.kind, each.dtype, each.step) for each in calendars}
    if earliest.kind == _ROWS or len(alike) > 1:
        return [0] * len(calendars)
    if earliest.kind.startswith("datetime"):
        begin, *_ = dates = [each._date(each.first) for each in (earliest, *calendars)]
        return [count_steps(begin, date, earliest.step) for date in dates[1:]]
    return [round((each.first - earliest.first) / earliest.step) for each in calendars]


class Calendars(NamedTuple):
    """The calendars of all series of a table, one after the other."""

    calendars: Sequence[Calendar]

    def following(self, n_rows: int) -> Any:
        """Return the index of the next rows, equally many of each series; None without an index."""
        n_steps, made = n_rows // len(self.calendars), {}
        parts = []
        for each in self.calendars:
            # most series end with the same stamp, and dates take time
            key = replace(each, n_rows=0, first=0)
            if key not in made:
                made[key] = each.following(n_steps)
            parts.append(made[key])
        return None if parts[0] is None else parts[0].append(parts[1:])


def with_outer_levels(index: Any, ids: tuple[Any, ...], names: tuple[Any, ...]) -> Any:
    """Return a MultiIndex of ids and stamps, equally many for each id, in the order of the ids."""
    import pandas as pd

    several = isinstance(ids[0], tuple)
    outer = pd.MultiIndex.from_tuples(ids) if several else pd.MultiIndex(
        levels=[pd.Index(ids, tupleize_cols=False)], codes=[np.arange(len(ids))]
    )  # fmt: skip
    inner = pd.MultiIndex.from_arrays([index])
    codes = [np.repeat(each, len(index) // len(ids)) for each in outer.codes]
    return pd.MultiIndex(
        levels=[*outer.levels, *inner.levels], codes=[*codes, *inner.codes], names=names
    )


def calendars_of(names: Sequence[str], division: Division, like: Calendar) -> tuple[Calendar, ...]:
    """Return the calendar of each series of a container.

    `like` is the calendar of the longest series, whose frequency series of one or two rows take if
    they fit it. Errors are those of `Calendar.of`.
    """
    if not division.by_id:
        return tuple(
            Calendar.of(name, table, like=like)
            for name, table in zip(names, division.tables, strict=True)
        )
    if division.numbered or like.kind == _ROWS:
        return tuple(like.part(0, len(rows) - 1, len(rows)) for rows in division.rows)
    stamps = stamps_of(names[0], division.whole)
    # fast path for many series: a series whose stamps are consecutive due stamps is regular, and
    # its calendar needs no checks or inference
    every, due = numbers_of(stamps), _stamps_due(like, stamps)
    found: list[Calendar] = []
    for name, rows in zip(names, division.rows, strict=True):
        own = every[rows]
        begin = np.searchsorted(due, own[0])
        if np.array_equal(due[begin : begin + len(own)], own):
            found.append(like.part(own[0].item(), own[-1].item(), len(own)))
        else:
            found.append(Calendar._of_stamps(name, stamps[rows], like))
    return tuple(found)


def _stamps_due(like: Calendar, stamps: Any) -> Array:
    """Return the numbers of all stamps from the earliest to the latest, at a calendar's frequency.

    The array is empty if some of them could also have another frequency: five business days look
    daily.
    """
    none: Array = np.zeros(0, dtype=np.int64)
    if like.kind != "datetime" or stamps.hasnans:
        return none
    if not _UNAMBIGUOUS.fullmatch(like.step) and not is_duration(offset_of(like.step)):
        return none
    numbers = numbers_of(stamps)
    first, last = like._date(numbers.min()), like._date(numbers.max())
    n_steps = count_steps(first, last, like.step)
    if not 0 < n_steps < _MOST_DUE * len(numbers):
        return none
    due: Array = numbers_of(first.append(dates_after(first, n_steps, like.step)))
    return due


def check_ordered(name: str, index: Any) -> None:
    """Check that no stamp is missing, and that stamps increase."""
    check_order(name, index, np.zeros(1, dtype=int), continues=True)


def _step(index: Any) -> Any:
    """Return the step between stamps, for dates the frequency; None if there is no single step."""
    if index.dtype.kind == "M":
        return frequency_text(index)
    numbers = numbers_of(index)
    if len(index) < 2:
        if hasattr(index, "asi8"):
            return index.freq.n
        return getattr(index, "step", None)
    step = (numbers[-1] - numbers[0]) / (len(index) - 1)
    if numbers.dtype.kind != "f":
        step = numbers[1] - numbers[0]
    tolerance = _ROUNDING * step if numbers.dtype.kind == "f" else 0
    even = (np.abs(np.diff(numbers) - step) <= tolerance).all()
    return step.item() if even else None


def _dtype(index: Any) -> str:
    if index.dtype.kind == "M":
        return f"M8[{index.unit}]"
    return "range" if hasattr(index, "step") else str(index.dtype)


def _zone(name: str, index: Any) -> str:
    """Return the name of the time zone of an index."""
    import pandas as pd

    text = str(index.tz)
    try:
        pd.DatetimeTZDtype(tz=text)
    except Exception as error:  # time zones come from several libraries, with different errors
        raise ValueError(
            f"The time zone {text} of the index of {name} has no name. Convert the index to one "
            'that has a name, by tz_convert("UTC").'
        ) from error
    return text


def _first_difference(index: Any, due: Any) -> int | None:
    """Return the first row in which two indexes differ; None if they are equal.

    Both have the same kind and length; floats are compared up to rounding.
    """
    if index.dtype.kind == "f" or due.dtype.kind == "f":
        a, b = np.asarray(index, dtype=float), np.asarray(due, dtype=float)
        step = np.abs(np.diff(b)).min() if len(b) > 1 else max(1.0, abs(b[0]))
        differs = np.abs(a - b) > _ROUNDING * step
    else:
        differs = np.asarray(index != due)
    return int(np.argmax(differs)) if differs.any() else None


def _raise_several_levels(name: str, index: Any) -> NoReturn:
    """Raise the error for a MultiIndex where one series is expected."""
    check_has_ids(name, index, MIN_VALUES)
    raise ValueError(
        f"{name} has an index of {len(index.names)} levels, but the index of one series has only "
        'one. Drop constant levels by droplevel; if the first levels are ids, set panel="each" or '
        'panel="shared".'
    )


def _raise_not_continuable(name: str, index: Any) -> NoReturn:
    """Raise the error for an index of labels, durations or missing numbers."""
    if index.dtype.kind == "m":
        raise ValueError(
            f"The index of {name} contains durations ({index.dtype}), which cannot be continued. "
            "Convert them to seconds by total_seconds()."
        )
    if index.dtype.kind == "f":
        row = int(np.argmin(np.isfinite(np.asarray(index, dtype=float))))
        raise ValueError(
            f"The index of {name} is {index[row]} in row {row}. Drop that row. {_NUMBER}"
        )
    raise ValueError(
        f"The index of {name} contains labels ({index.dtype}, the first is {index[0]!r}), which "
        "cannot be continued. Convert dates by pd.to_datetime, and sort the rows by them. "
        f"{_NUMBER}"
    )


def _differing_kinds(name: str, kind: str, what: str, other: str) -> str:
    """Return the message for two indexes whose stamps are of different kinds."""
    mine, its = (_IN_WORDS.get(each, f"periods ({each})") for each in (kind, other))
    return (
        f"The index of {name} contains {mine}, but the index of {what} contains {its}. Convert one "
        f"of them by to_period, to_timestamp, tz_localize or tz_convert; {_IN_ORDER}"
    )


def _raise_unknown_step(name: str, index: Any) -> NoReturn:
    """Raise the error for increasing stamps without a frequency."""
    dated = (kind_of(index) or "").startswith("datetime")
    fewest = 3 if dated else 2
    if len(index) < fewest:
        raise ValueError(
            f"The index of {name} has {len(index)} row{'s' * (len(index) > 1)} and no frequency, "
            f"which cannot be inferred from fewer than {fewest} rows. Give more rows, or an index "
            f"with a frequency, such as periods or a RangeIndex; {_IN_ORDER}"
        )
    raise ValueError(
        f"{(_irregular_dates if dated else _irregular_numbers)(name, index)} {_NUMBER}"
    )


def _irregular_numbers(name: str, index: Any) -> str:
    """Return the message for periods or numbers at unequal steps."""
    steps = np.diff(numbers_of(index))
    usual = commonest(steps)
    row = 1 + int(np.argmax(np.abs(steps - usual) > _ROUNDING * usual))
    before, after = index[row - 1], index[row]
    if index.dtype.kind != "f" and not (steps % usual).any():
        return (
            f"The index of {name} has a gap: rows are missing between {before} (row {row - 1}) and "
            f"{after}. Insert them with NaN by reindex."
        )
    return (
        f"The index of {name} is irregular: the step from {before} to {after} (row {row}) is "
        f"{steps[row - 1]:g}, but the most frequent step is {usual:g}. Interpolate the rows at "
        "equal steps."
    )


def _irregular_dates(name: str, index: Any) -> str:
    """Return the message for dates without a frequency, with the first gap or irregular step."""
    row, text = first_misfit(index)
    before, after = show(index[row - 1]), show(index[row])
    if text is not None and _fills(index, text):
        missing = count_steps(index[row - 1 : row], index[row : row + 1], text) - 1
        if missing > 0:
            return (
                f"The index of {name} has a gap: between {before} (row {row - 1}) and {after}, "
                f"{missing} {'rows are' if missing > 1 else 'row is'} missing, given the frequency "
                f"{text!r} of the other rows. Insert them with NaN by asfreq."
            )
    n_steps, where = len(np.unique(np.diff(numbers_of(index)))), "before" if row > 1 else "after"
    return (
        f"The index of {name} is irregular: the step from {before} (row {row - 1}) to {after}, "
        f"{index[row] - index[row - 1]}, does not fit the steps {where} it; there are {n_steps} "
        "different steps in total. Use tz_convert if times shift when clocks do, to_period if each "
        "period has one row, otherwise resample."
    )


def _fills(index: Any, text: str) -> bool:
    """Whether dates at a frequency include all dates of an index, and not too many others."""
    n_steps = count_steps(index[:1], index[-1:], text)
    if not 0 < n_steps < _MOST_DUE * len(index):
        return False
    return bool(index[1:].isin(dates_after(index[:1], n_steps, text)).all())
