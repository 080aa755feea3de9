"""The index of the rows that follow: dates, periods or numbers, continued by their frequency."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._validation.index import Ending, Stamps, ids_of, index_of, is_plain, kind_of, unit_of


def ending_of(table: Any, before: Ending | None = None) -> Ending | None:
    """Return where a table ends; None if its index tells nothing.

    Of few rows the frequency is that of `before`, the rows of training.
    """
    index = index_of(table)
    if index is None or (kind := kind_of(index)) is None:
        return None
    ids = ids_of(table.index.droplevel(-1) if table.index.nlevels > 1 else None, -1)
    plain = is_plain(index, np.zeros(1, dtype=int))
    end = Stamps(index, kind, plain, ids, tuple(table.index.names)).ending()
    if before is None or before.kind != end.kind or len(index) > 2:
        return end
    step = _step(end) or _step(before)
    following = None if step is None else end.last + step
    return replace(end, following=following, frequency=end.frequency or before.frequency)


def continued(ending: Ending, n_steps: int, *, skip: int = 0) -> Any:
    """Return the pandas index of the rows that follow.

    Parameters
    ----------
    ending : Ending
    n_steps : int
    skip : int, default=0
        Rows that are left out before the first; -1 begins with the last row itself.

    Raises
    ------
    ValueError
        If the stamps have no frequency.
    """
    import pandas as pd

    if ending.kind.startswith("datetime"):
        index = _dates(ending, n_steps, skip)
    else:
        step = _step(ending)
        if step is None:
            _refuse(ending)
        first = ending.last + (skip + 1) * step
        if ending.kind == "number" and isinstance(first, int):
            index = pd.RangeIndex(first, first + n_steps * step, step)
        elif ending.kind == "number":
            index = pd.Index(first + step * np.arange(n_steps))
        else:
            freq = pd.PeriodDtype(ending.kind.removeprefix("period[").removesuffix("]"))
            ordinals = first + step * np.arange(n_steps, dtype=np.int64)
            index = pd.PeriodIndex(pd.arrays.PeriodArray(ordinals, dtype=freq))
    if ending.ids:
        index = pd.MultiIndex.from_arrays([*([one] * n_steps for one in ending.ids), index])
    index.names = ending.names
    return index


def steps_between(before: Ending, after: Ending) -> int:
    """Return how many steps one ending is ahead of another; 0 where they cannot be compared."""
    if before.kind != after.kind or after.last <= before.last:
        return 0
    step = _step(before)
    if not before.kind.startswith("datetime"):
        return 0 if step is None else round((after.last - before.last) / step)
    import pandas as pd

    ends = _last_date(before), _last_date(after)
    dates = pd.date_range(*ends, freq=before.frequency or _refuse(before))
    return len(dates) - 1 if dates[-1] == ends[1] else 0


def _step(ending: Ending) -> Any:
    return None if ending.following is None else ending.following - ending.last


def _dates(ending: Ending, n_steps: int, skip: int) -> Any:
    """Return the dates that follow, by the calendar."""
    import pandas as pd

    if ending.frequency is None:
        _refuse(ending)
    try:
        last = _last_date(ending)
        dates = pd.date_range(last, periods=n_steps + skip + 2, freq=ending.frequency)
    except (ValueError, OverflowError, AssertionError) as error:  # an hour that clocks skip
        _refuse(ending, error)
    return dates.as_unit(last.unit)[skip + 1 : skip + 1 + n_steps]


def _last_date(ending: Ending) -> Any:
    import pandas as pd

    nanoseconds = unit_of(pd.DatetimeIndex([], dtype=f"M8[{ending.unit}]"))
    number = np.array(int(ending.last) // nanoseconds)
    last = pd.Timestamp(number.view(f"M8[{ending.unit}]")[()])
    return last.tz_localize("UTC").tz_convert(ending.zone) if ending.zone else last


def _refuse(ending: Ending, error: Exception | None = None) -> Any:
    """Say that an index cannot be continued, and what to do."""
    why = "its stamps have no frequency that has a name" if error is None else str(error)
    raise ValueError(
        f"The index cannot be continued: it ends at {ending.shown}, and {why}. Make the rows "
        "regular before fit (asfreq, or resample, and interpolate), or forecast without an index: "
        'set_output(predict="default").'
    ) from error
