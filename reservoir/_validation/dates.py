"""Reject dates and durations among the values of a table.

NumPy would convert them to nanoseconds, or raise an error that does not mention dates.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import numpy as np

DATE_ADVICE = (
    "Move dates to the index (set_index), drop the column, or replace it by numbers computed from "
    "it, such as the hour of the day or, for time_column, the hours since a fixed date."
)
_DURATION_ADVICE = "Convert durations to numbers in a unit of time (dt.total_seconds)."
_KINDS = {"M": "datetime", "m": "duration"}
_INFERRED = {
    "datetime": "datetime",
    "datetime64": "datetime",
    "date": "datetime",
    "time": "datetime",
    "period": "datetime",
    "timedelta": "duration",
    "timedelta64": "duration",
}
_OF_POLARS = dict.fromkeys(("Date", "Datetime", "Time"), "datetime") | {"Duration": "duration"}


def check_no_dates(name: str, table: Any, advice: str = DATE_ADVICE) -> None:
    """Raise if a table or a series contains dates or durations; the message names the column.

    `name` is the name of the table in the message, and `advice` its advice for dates. pandas and
    polars tables and NumPy arrays are checked; the index of a table is not.
    """
    one = getattr(table, "dtype", None) is not None
    what = _time_kind(table) if one else None
    if what is not None:
        raise TypeError(
            f"{name} contains {what}s ({table.dtype}), which are not numbers. "
            f"{advice if what == 'datetime' else _DURATION_ADVICE}"
        )
    for column, values in () if one else _columns(table):
        what = _time_kind(values)
        if what is not None:
            remedy = advice if what == "datetime" else _DURATION_ADVICE
            raise TypeError(f"{name} has the {what} column {column!r} ({values.dtype}). {remedy}")


def _columns(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the name and the values of each column of a DataFrame.

    Nothing is yielded for a pandas DataFrame whose columns are all numeric.
    """
    if hasattr(table, "get_column"):  # polars
        yield from ((name, table.get_column(name)) for name in table.columns)
    elif hasattr(table, "iloc") and any(dtype.kind not in "biuf" for dtype in table.dtypes):
        yield from table.items()


def _time_kind(values: Any) -> str | None:
    """Return "datetime" or "duration" if an array or a column contains these, else None."""
    # by dtype; by the dtype of the categories if it is categorical
    dtype = values.dtype
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    if str(dtype).startswith("period["):
        return "datetime"
    polars = str(dtype).partition("(")[0]
    if polars in _OF_POLARS:
        return _OF_POLARS[polars]
    kind = getattr(dtype, "kind", "")
    if kind in _KINDS:
        return _KINDS[kind]
    if kind != "O":
        return None
    # by the values, for arrays and columns of Python objects
    if not hasattr(values, "iloc"):
        types = {type(value) for value in values.flat}
        dates = any(issubclass(t, (datetime.date, np.datetime64)) for t in types)
        durations = any(issubclass(t, (datetime.timedelta, np.timedelta64)) for t in types)
        return "datetime" if dates else "duration" if durations else None
    import pandas as pd

    return _INFERRED.get(pd.api.types.infer_dtype(values, skipna=True))
