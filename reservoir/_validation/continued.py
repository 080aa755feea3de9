"""Extrapolate the index of a table at its frequency: dates, periods or numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from reservoir._validation.frequencies import count_steps, dates_after, first_stray, one_date
from reservoir._validation.index import (
    NANOSECONDS,
    Ending,
    Stamps,
)

_FEW = 40  # a frequency inferred from this many rows is reliable


def ending_of(table: Any, before: Ending | None = None) -> Ending | None:
    """Return the `Ending` of a table; None if the table has no index, or an index of labels.

    A table of a few rows is assigned the frequency of `before`, the ending of the training rows,
    if its rows fit it, because business days look daily up to the first weekend. A table of one or
    two rows whose index has no frequency is always assigned it.
    """
    stamps = Stamps.of(table, np.zeros(1, dtype=int))
    if stamps is None:
        return None
    end = stamps.ending()
    if before is None or before.kind != end.kind:
        return end
    index, known = stamps.index, before.frequency
    uncertain = known is not None and len(index) < _FEW and index.freq is None
    if uncertain and first_stray(index, known) is None:
        return replace(end, frequency=known)
    if len(index) > 2:
        return end
    step = _step(end) or _step(before)
    following = None if step is None else end.last + step
    return replace(end, following=following, frequency=end.frequency or known)


def continued(ending: Ending, n_steps: int, *, skip: int = 0) -> Any:
    """Return the pandas index of the `n_steps` rows that follow an ending.

    `skip` rows after the ending are left out; with -1 the index begins with the last row itself.
    Raise if no frequency is known.
    """
    import pandas as pd

    if ending.kind.startswith("datetime"):
        if ending.frequency is None:
            _raise_not_continuable(ending)
        last = _last_date(ending)
        index = last.append(dates_after(last, n_steps + skip, ending.frequency))[skip + 1 :]
    else:
        step = _step(ending)
        if step is None:
            _raise_not_continuable(ending)
        dtype = "range" if isinstance(ending.last + step, int) else "float64"
        index = counted(ending.kind, ending.last + (skip + 1) * step, step, n_steps, dtype)
    if ending.ids:
        index = pd.MultiIndex.from_arrays([*([one] * n_steps for one in ending.ids), index])
    index.names = ending.names
    return index


def counted(kind: str, first: float, step: float, n_rows: int, dtype: str = "range") -> Any:
    """Return an index of `n_rows` periods or numbers from `first` on, at equal steps.

    `kind` is the dtype of periods, whose `first` and `step` are ordinals, or "number"; `dtype` is
    that of an index of numbers, "range" for a RangeIndex.
    """
    import pandas as pd

    if kind != "number":
        ordinals = int(first) + int(step) * np.arange(n_rows, dtype=np.int64)
        periods = pd.PeriodDtype(kind.removeprefix("period[").removesuffix("]"))
        return pd.PeriodIndex(pd.arrays.PeriodArray(ordinals, dtype=periods))
    if dtype == "range":
        return pd.RangeIndex(first, first + n_rows * step, step)
    return pd.Index(first + step * np.arange(n_rows), dtype=dtype)


def steps_between(before: Ending, after: Ending) -> int:
    """Return by how many steps `after` is later than `before`.

    The result is 0 if it is not later, or if the two cannot be compared.
    """
    if before.kind != after.kind or after.last <= before.last:
        return 0
    if before.kind.startswith("datetime"):
        if before.frequency is None:
            _raise_not_continuable(before)
        return count_steps(_last_date(before), _last_date(after), before.frequency)
    step = _step(before)
    return 0 if step is None else round((after.last - before.last) / step)


def _step(ending: Ending) -> Any:
    return None if ending.following is None else ending.following - ending.last


def _last_date(ending: Ending) -> Any:
    """Return the last date of an ending as a DatetimeIndex of length 1."""
    return one_date(int(ending.last) // NANOSECONDS[ending.unit], ending.unit, ending.zone)


def _raise_not_continuable(ending: Ending) -> NoReturn:
    """Raise the error for an index that cannot be continued."""
    raise ValueError(
        f"The index cannot be continued: it ends at {ending.shown}, and no frequency could be "
        "inferred from it. If each row is one step, number the rows from 0 before fit "
        f'(reset_index), or forecast without an index, `set_output(predict="default")`. Otherwise '
        "interpolate the rows at equal steps before fit."
    )
