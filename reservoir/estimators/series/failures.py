"""Series of a panel that cannot be fitted: they are left out, and their forecasts are NaN."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._saving import saved
from reservoir._tables.frames import check_shape, is_collection, n_levels
from reservoir._typing import Array
from reservoir._validation import caller_level, index_of
from reservoir._validation.index import kind_of, numbers_of
from reservoir.estimators.series.calendar import Calendar
from reservoir.estimators.series.checks import check_enough_values
from reservoir.estimators.series.containers import SeriesContainer
from reservoir.estimators.series.known_inputs import check_n_tables
from reservoir.estimators.series.model_search import Found, ModelSearch
from reservoir.estimators.series.panel import Panel, PanelRows
from reservoir.estimators.series.tables import Division, divide

_FAULTS = (ValueError, TypeError)  # of data; other errors are faults of programs


@saved
@dataclass(frozen=True)
class Failures:
    """The series that could not be fitted.

    `panel` has all series of `fit`, in their order; `messages` the error's text by id.
    """

    panel: Panel
    messages: dict[Any, str]

    @property
    def fitted(self) -> list[int]:
        """The numbers of the series that were fitted."""
        return [i for i, each in enumerate(self.panel.ids) if each not in self.messages]

    def warn(self) -> None:
        """Warn of the series that failed."""
        first, message = next(iter(self.messages.items()))
        warnings.warn(
            f"{len(self.messages)} of {len(self.panel)} series could not be fitted, and their "
            f"forecasts are NaN; failures_ has the message of each. The first is {first!r}: "
            f"{message}",
            UserWarning,
            stacklevel=caller_level(),
        )

    def worded(self, change: Callable[[str], str]) -> Failures:
        """Return the failures with other messages."""
        return replace(self, messages={each: change(one) for each, one in self.messages.items()})

    def without(self, y: Any, exog: Any, sequence_column: Any) -> tuple[Any, Any]:
        """Return later rows, or None, and known inputs without those of the series that failed.

        The rows are None, too, if there are none of other series.
        """
        fitted = [self.panel.ids[i] for i in self.fitted]
        if y is not None:
            division = divide("y", y, sequence_column)
            self.panel.check_same_series(division)
            ids = division.ids if division.by_id else self.panel.ids
            which = [i for i, each in enumerate(ids) if each not in self.messages]
            y = division.part_of(y, which) if which else None
        return y, Known.of(exog, self.panel, sequence_column).some(fitted)

    def after(self, panel: Panel, y: Any, sequence_column: Any) -> Failures:
        """Return the failures after later rows; `panel` has the calendars of the other series."""
        division = divide("y", y, sequence_column)
        tables = {
            each: division.table(i)
            for i, each in enumerate(division.ids if division.by_id else self.panel.ids)
            if each in self.messages
        }
        calendars = dict(zip(self.panel.ids, self.panel.calendars, strict=True))
        calendars |= zip(panel.ids, panel.calendars, strict=True)
        for each, table in tables.items():
            calendars[each] = _calendar_after(calendars[each], table)
        if self.panel.kind == "columns":  # which share the index of the table
            calendars = dict.fromkeys(calendars, panel.calendars[0])
        return replace(self, panel=replace(self.panel, calendars=tuple(calendars.values())))


def completed(failures: Failures | None, panel: Panel, *found: list[Array]) -> tuple[Any, ...]:
    """Return the panel of all series, and arrays for each of them: NaN for those that failed.

    `found` contains lists of arrays of the series of `panel`; their last axis is the column.
    """
    if failures is None:
        return panel, *found
    columns = [each.n_outputs for each in failures.panel.containers]
    made = []
    for arrays in found:
        if not arrays:
            made.append(arrays)
            continue
        every = [np.full((*arrays[0].shape[:-1], n), np.nan) for n in columns]
        for i, rows in zip(failures.fitted, arrays, strict=True):
            every[i] = rows
        made.append(every)
    return failures.panel, *made


def fit_panel(
    y: Any,
    exog: Any,
    search: ModelSearch,
    earlier: Mapping[Any, Exception],
    *,
    sequence_column: Any,
    missing_values: str,
) -> tuple[Panel, Found, Failures | None]:
    """Read the series of a panel and find models of each; leave out those with which this fails.

    `earlier` are errors that were found before, by id. Series are read one by one only if reading
    them together, a hundred times faster, fails.
    """
    division = divide("y", y, sequence_column)
    known = Known.of(exog, division, sequence_column)
    errors = {i: earlier[each] for i, each in enumerate(division.ids) if each in earlier}
    if len(errors) == len(division.ids):
        raise errors[0]

    def read(which: Sequence[int]) -> PanelRows:
        part = division if len(which) == len(division.ids) else division.some(which)
        return Panel.read_series(part, y, known.some(part.ids), sequence_column, missing_values)

    # checks of each series, the fast ones first: the others take a fifth of the time of a fit
    checks = [lambda rows: check_enough_values(rows.values, rows.panel), search.check_last]
    while True:
        fitted = [i for i in range(len(division.ids)) if i not in errors]
        try:
            rows = read(fitted)
            found = search.run(rows)
            break
        except _FAULTS:
            if not checks:
                raise
            errors |= _errors_of_each(_commonest_first(division, fitted), read, checks.pop(0))
            if len(errors) == len(division.ids):
                raise
    errors |= {fitted[i]: error for i, error in found.errors.items()}
    if not errors:
        return rows.panel, found, None
    panel = rows.panel.some([i for i in range(len(fitted)) if i not in found.errors])
    messages = {division.ids[i]: str(errors[i]) for i in sorted(errors)}
    return panel, found, Failures(_panel_of_all(panel, division), messages)


class Known(NamedTuple):
    """Known inputs of the series of a panel, their division, and the place of each series in it.

    The division is None if all series share one table.
    """

    given: Any
    division: Division | None
    places: Mapping[Any, int]

    @classmethod
    def of(cls, exog: Any, series: Panel | Division, sequence_column: Any) -> Known:
        """Divide the known inputs of some series."""
        column = sequence_column if series.kind == "long" else None
        each = is_collection(exog) or n_levels(exog) > 1 or column is not None
        if exog is None or not each:
            return cls(exog, None, {})
        division = divide("exog", exog, column)
        if not division.by_id:
            check_n_tables(len(division.ids), len(series.ids))
        keys = division.ids if division.by_id else series.ids
        return cls(exog, division, {each: i for i, each in enumerate(keys)})

    def some(self, ids: Sequence[Any]) -> Any:
        """Return the known inputs of some of the series, or all if these have none."""
        which = [self.places[each] for each in ids if each in self.places]
        if self.division is None or not which:
            return self.given
        return self.division.part_of(self.given, which)


def _errors_of_each(
    waiting: list[int],
    read: Callable[[Sequence[int]], PanelRows],
    check: Callable[[PanelRows], object],
) -> dict[int, Exception]:
    """Return the error of each series that cannot be read beside one that can, or be checked."""
    errors: dict[int, Exception] = {}
    good = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of series that are read again
        while waiting:
            i = waiting.pop(0)
            try:
                # beside a good series: it has its columns, and its frequency if it is short
                check(read([i] if good is None else [good, i]))
            except _FAULTS as error:
                errors[i] = error
                continue
            if good is None:  # those before it are named in messages only beside another
                good, waiting, errors = i, [*errors, *waiting], {}
    return errors


def _commonest_first(division: Division, which: list[int]) -> list[int]:
    """Return the numbers of some series, first those that have the columns of most series."""
    if division.by_id or division.kind == "columns":
        return which
    forms = {
        i: (getattr(table, "shape", ())[1:], tuple(getattr(table, "columns", ())))
        for i, table in enumerate(division.whole)
    }
    count = Counter(forms.values())
    return sorted(which, key=lambda i: -count[forms[i]])


def _panel_of_all(panel: Panel, division: Division) -> Panel:
    """Return the panel of all series that were divided; `panel` has those that were fitted."""
    like = max(panel.calendars, key=lambda calendar: calendar.n_rows)
    places = {each: i for i, each in enumerate(panel.ids)}
    containers, calendars = [], []
    for i, each in enumerate(division.ids):
        if each in places:
            containers.append(panel.containers[places[each]])
            calendars.append(panel.calendars[places[each]])
            continue
        table = division.table(i)
        containers.append(panel.whole if division.by_id else _container_of(table, panel))
        calendars.append(like if panel.kind == "columns" else _calendar_of(table, like))
    whole = panel.whole
    if panel.kind == "columns":
        whole = whole.of_columns(division.ids, panel.containers)
    return replace(
        panel,
        ids=division.ids,
        containers=tuple(containers),
        calendars=tuple(calendars),
        whole=whole,
    )


def _container_of(table: Any, panel: Panel) -> SeriesContainer:
    """Return the container of a series that failed, or that of others if it is no table."""
    try:
        check_shape("y", table)
    except _FAULTS:
        return panel.containers[0]
    return SeriesContainer.of(table)


def _calendar_of(table: Any, like: Calendar) -> Calendar:
    """Return the calendar of a series that failed, which ends with its last valid stamp.

    If its stamps have no frequency, it has that of `like`; if none is valid, it is `like`.
    """
    try:
        return Calendar.of("y", table, like)
    except _FAULTS:
        index = index_of(table) if n_levels(table) == 1 else None
    if index is None or like.numbered or (kind_of(index) or "") != like.kind:
        return like
    index = index[index.notna()]
    if not len(index):
        return like
    if like.kind.startswith("datetime"):
        index = index.as_unit(like.dtype.removeprefix("M8[").removesuffix("]"))
    last = numbers_of(index).max().item()
    return like.part(last, last, 1)


def _calendar_after(calendar: Calendar, table: Any) -> Calendar:
    """Return the calendar of a series that failed, after later rows."""
    if calendar.numbered:
        return calendar.extended(len(table))
    later = _calendar_of(table, calendar)
    return later if later.last > calendar.last else calendar
