"""Reject dates and durations among the values of a table.

NumPy would convert them to nanoseconds, or raise an error that does not mention dates.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import numpy as np

from reservoir._validation.wording import code, replaced

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


def check_no_dates(name: str, table: Any) -> None:
    """Raise if a table or a series contains dates or durations; the message names the column.

    `name` is the name of the table in the message. pandas and polars tables and NumPy arrays are
    checked; the index of a table is not.
    """
    one = getattr(table, "dtype", None) is not None
    what = _time_kind(table) if one else None
    if what is not None:
        raise TypeError(
            f"{name} contains {what}s ({table.dtype}), which are not numbers. Move "
            "dates to the index of a DataFrame, and convert durations to numbers in a unit of time."
        )
    for column, values in () if one else _columns(table):
        what = _time_kind(values)
        if what is not None:
            advice = date_advice if what == "datetime" else _duration_advice
            raise TypeError(
                f"{name} has the {what} column {column!r} ({values.dtype}). "
                f"{advice(name, column, values)}"
            )


def date_advice(name: str, column: Any, values: Any = None, *, dates: str | None = None) -> str:
    """Return the advice for a column of dates, or of text that `dates`, an expression, converts."""
    moved = f"rows.set_index({column!r})"
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") == "O" and not str(dtype).startswith("period["):
        # an index of Python dates or of categories would be read as labels
        dates = f"pd.to_datetime(rows[{column!r}])"
    if dates is not None:
        moved = f"rows.set_index({dates}).drop(columns=[{column!r}])"
    if hasattr(values, "to_physical"):  # polars
        moved = f"rows.drop({column!r})"
    what = "remove the column" if hasattr(values, "to_physical") else "make it the index"
    return (
        f"A date is not a number: {what}, {code(replaced(name, moved))}, or replace it "
        "by numbers computed from it, such as the hour of the day or, for time_column, the hours "
        "since a fixed date."
    )


def _duration_advice(name: str, column: Any, values: Any) -> str:
    """Return the advice for a column of durations."""
    seconds = f"rows.assign(**{{{column!r}: rows[{column!r}].dt.total_seconds()}})"
    if hasattr(values, "to_physical"):  # polars
        seconds = f"rows.with_columns(rows[{column!r}].dt.total_seconds())"
    elif values.dtype.kind == "O":
        read = f"pd.to_timedelta(rows[{column!r}]).dt.total_seconds()"
        seconds = f"rows.assign(**{{{column!r}: {read}}})"
    return f"Convert durations to numbers in a unit of time, {code(replaced(name, seconds))}."


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
