"""Reject data that are not numeric tables: text, dates, sparse data and single numbers.

scikit-learn would reject most of these, too, but its messages name neither the column nor a remedy,
and NumPy would convert dates to nanoseconds.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir._validation.plain import as_array, check_unmasked
from reservoir._validation.written_dates import holds_dates

_ENCODE = (
    "If it contains categories, make a numeric column for each, by scikit-learn's OneHotEncoder "
    "with sparse_output=False, within PerStep if there are several sequences."
)
_IDS_OR_ENCODE = f"If it identifies sequences, name it in sequence_column. {_ENCODE}"


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
_NESTED = ("List", "Array", "Struct")  # dtypes of polars with several values in a row


def check_numeric(
    name: str,
    table: Any,
    *,
    has_ids: bool = False,
    remedy: str | None = None,
    dates: str = DATE_ADVICE,
    numerals: bool = True,
) -> None:
    """Raise if a table contains dates, durations, text or complex numbers, or if it is sparse.

    Nested lists also raise if their rows differ in length. The message names the column. `has_ids`
    means that the ids of the sequences are known, so that a column of text cannot contain them.
    `remedy` and `dates` are the advice for text and for dates; `numerals` means that text which can
    be converted to numbers is accepted.
    """
    check_dense(name, table)
    if isinstance(table, (list, tuple)):
        table = as_array(name, table)
    check_no_dates(name, table, dates)
    check_not_complex(name, table)
    for column, values in _odd_columns(table):
        where = "" if column is None else f" in column {column!r}"
        if is_polars(values) and str(values.dtype).startswith(_NESTED):
            raise TypeError(
                f"{name} contains values of dtype {values.dtype}{where}, but a number is needed in "
                "each row. Make a column of each of their parts."
            )
        texts = ((row, each) for row, each in enumerate(values) if _is_text(each, numerals))
        row, text = next(texts, (0, None))
        if text is None:
            continue
        row_of = "" if getattr(table, "ndim", 2) > 2 else f" in row {row}"
        if hasattr(table, "iloc") and holds_dates(values):
            raise ValueError(
                f"{name} contains dates as text{where}, for instance {text!r}{row_of}. "
                f"Convert them (pd.to_datetime). {dates}"
            )
        raise ValueError(
            f"{name} contains text{where}, for instance {text!r}{row_of}, but numbers are needed. "
            f"{remedy or (_ENCODE if has_ids else _IDS_OR_ENCODE)}"
        )


def check_no_dates(name: str, table: Any, advice: str = DATE_ADVICE) -> None:
    """Raise if a table or a series contains dates or durations; the message names the column.

    `name` is the name of the table in the message, and `advice` its advice for dates. pandas and
    polars tables and NumPy arrays are checked; the index of a table is not.
    """
    check_readable(name, table)
    one = getattr(table, "dtype", None) is not None
    what = _time_kind(table) if one else None
    if what is not None:
        raise TypeError(
            f"{name} contains {what}s ({table.dtype}), which are not numbers. "
            f"{advice if what == 'datetime' else _DURATION_ADVICE}"
        )
    for column, values in _odd_columns(table) if hasattr(table, "columns") else ():
        what = _time_kind(values)
        if what is not None:
            remedy = advice if what == "datetime" else _DURATION_ADVICE
            raise TypeError(f"{name} has the {what} column {column!r} ({values.dtype}). {remedy}")


def check_not_complex(name: str, table: Any) -> None:
    """Raise if an array or a column of a DataFrame is complex; `name` is for messages."""
    if hasattr(table, "iloc") and table.ndim == 2:
        odd = _odd_columns(table)
        found = (column for column, values in odd if getattr(values.dtype, "kind", "O") == "c")
        place = next((f" in column {column!r}" for column in found), None)
    else:
        rows = _as_array(table)
        place = "" if rows is not None and np.iscomplexobj(rows) else None
    if place is not None:
        raise ValueError(
            f"Complex data not supported: {name} contains complex numbers{place}. Give real and "
            "imaginary parts as separate columns."
        )


def check_without_labels(X: Any, y: Any, sequence_column: Any = None) -> None:
    """Raise if a column of text in X, a table or a list of tables, contains the labels y.

    Also raise if the rows are not in memory, so that X has no columns to look at.
    """
    tables = X if isinstance(X, (list, tuple)) else [X]
    if len(tables):
        check_readable("Sequence 0 of X" if tables is X else "X", tables[0])
    if not _may_be_text(y) or not all(hasattr(table, "columns") for table in tables):
        return
    columns: dict[Any, set[Any]] = {}
    for table in tables:
        for column, values in _odd_columns(table):
            columns.setdefault(column, set()).update(values)
    columns.pop(sequence_column, None)
    labels = set(_labels_in(y)) if columns else set()
    for column, values in columns.items():
        if values == labels and all(isinstance(each, str) for each in values):
            raise ValueError(f"X contains the labels y in column {column!r}. Drop it.")


def _may_be_text(y: Any) -> bool:
    first = y[0] if isinstance(y, (list, tuple)) and len(y) else y
    return y is not None and np.asarray(first).dtype.kind in "OSUT"


def _labels_in(y: Any) -> Iterator[Any]:
    """Yield the entries of labels, which may be in a list of arrays."""
    several = isinstance(y, (list, tuple)) and any(np.ndim(each) for each in y)
    for each in y if several else [y]:
        yield from np.ravel(np.asarray(each, dtype=object)).tolist()


def check_readable(name: str, table: Any) -> None:
    """Raise if rows of `table` are not in memory, as in a DataFrame of Dask, or hidden by a mask.

    Arrays whose rows are computed when they are converted, such as those of Dask, are accepted.
    `name` is the name of the table in messages.
    """
    check_unmasked(name, table)
    # by class: objects of Dask may seem to have every attribute
    kind = type(table)
    to_memory = "collect" if kind.__name__ == "LazyFrame" else "compute"
    if callable(getattr(kind, to_memory, None)) and not hasattr(kind, "chunks"):
        raise TypeError(
            f"{name} is a {kind.__name__} of {kind.__module__.partition('.')[0]}, whose rows are "
            "not in memory. Load them (compute or collect), or load one part after the other and "
            "pass each to partial_fit, where the estimator has it."
        )


def na_as_nan(table: Any) -> Any:
    """Return a table with NaN in place of pandas' NA among Python objects, as numbers need it.

    Sparse columns are made dense if a DataFrame has no others.
    """
    if hasattr(table, "iloc") and table.ndim == 2:
        if table.shape[1] and all(str(dtype).startswith("Sparse[") for dtype in table.dtypes):
            return table.sparse.to_dense()
        places = [i for i, dtype in enumerate(table.dtypes) if str(dtype) == "object"]
        table = table.copy(deep=False) if places else table
        for i in places:
            table.isetitem(i, table.iloc[:, i].to_numpy(object, na_value=np.nan))
    elif str(getattr(table, "dtype", "")) == "object":
        cells = np.asarray(table)
        every = set(map(type, cells.flat))
        kinds = {kind for kind in every if kind.__name__ in ("NAType", "NaTType")}
        if kinds:
            absent = [type(each) in kinds for each in cells.flat]
            table = np.where(np.reshape(absent, cells.shape), np.nan, cells)
    return table


def is_polars(table: Any) -> bool:
    """Whether a table is a Series or DataFrame of polars."""
    return type(table).__module__.partition(".")[0] == "polars"


def check_dense(name: str, table: Any) -> None:
    """Raise if `table` is a sparse array or matrix, or cannot be read.

    `name` is the name of the table in messages. Sparse columns of a DataFrame are accepted.
    """
    check_readable(name, table)
    if sp.issparse(table):
        raise TypeError(
            f"Sparse data was passed for {name} ({type(table).__name__}), but dense data is "
            "required. Convert it (toarray); encoders return dense columns with "
            "sparse_output=False."
        )


def check_no_text(name: str, values: Any, remedy: str) -> None:
    """Raise if an array of any shape contains text; `remedy` is the end of the message."""
    values = np.asarray(values) if isinstance(values, (list, tuple)) else values
    if getattr(getattr(values, "dtype", None), "kind", "f") not in "OSUT":
        return
    text = next((each for each in np.ravel(values).tolist() if _is_text(each)), None)
    if text is not None:
        raise ValueError(f"{name} contains text, for instance {text!r}, not numbers. {remedy}")


def check_has_rows(name: str, values: Any, shape: str) -> None:
    """Raise if values have no rows: a single value, None, a dict, a set or an iterator.

    Numbers, text and arrays without axes are a ValueError, which names the `shape` that is needed;
    all else is a TypeError.
    """
    if isinstance(values, (list, tuple)):
        return
    if len(values.shape if hasattr(values, "shape") else np.asarray(values).shape) > 0:
        return
    if not isinstance(values, (str, np.generic, np.ndarray, Number)):
        kind = "None" if values is None else f"of type {type(values).__name__}"
        raise TypeError(
            f"{name} is {kind}, but rows are needed. Give an array, a Series, a DataFrame, or a "
            "list of these."
        )
    shape = shape.removesuffix(",")  # the comma that separates shapes in a list of them
    raise ValueError(
        f"{name} is {values!r}, but rows are expected: {name} of shape {shape}, even for a single "
        "row. Reshape your data."
    )


def _odd_columns(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the name or number, and the values, of each column that may hold no real numbers."""
    if hasattr(table, "get_column"):  # polars
        for column in table.get_columns():
            if not column.dtype.is_numeric():
                yield column.name, column
    elif hasattr(table, "iloc") and table.ndim == 2:
        for i, dtype in enumerate(table.dtypes):
            if getattr(dtype, "kind", "O") not in "biuf":
                yield table.columns[i], table.iloc[:, i]
    elif hasattr(table, "iloc") or is_polars(table):
        if getattr(table.dtype, "kind", "O") in "OSU":
            yield None, table
    else:
        rows = _as_array(table)
        if isinstance(rows, np.ndarray) and rows.ndim and rows.dtype.kind in "OSUT":
            for i in range(rows.shape[-1] if rows.ndim > 1 else 1):
                column = (i, rows[..., i]) if rows.ndim > 1 else (None, rows)
                yield column[0], column[1].ravel().tolist()


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


def _as_array(table: Any) -> Array | None:
    """Return an array itself and nested lists as an array; None for anything else."""
    if isinstance(table, (list, tuple)):
        try:
            return np.asarray(table)
        except ValueError:  # rows of different lengths
            return None
    return table if hasattr(table, "dtype") else None


def _is_text(value: Any, numerals: bool = True) -> bool:
    """Whether a value is a string, which with `numerals` cannot be converted to a number."""
    if not isinstance(value, (str, bytes)) or not numerals:
        return isinstance(value, (str, bytes))
    try:
        float(value)
    except ValueError:
        return True
    return False
