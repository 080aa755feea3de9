"""The numbers of a series, out of whatever container; what is missing is NaN."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import refuse_dates
from reservoir._validation.sequences import as_finite


def read_values(name: str, table: Any) -> Array:
    """Return a series as an array of shape (n_samples, n_columns), float64, a copy.

    What is missing (NaN, NA, None, null) is NaN.

    Parameters
    ----------
    name : str
        What messages call the table; its last word is taken for the variable.
    table : array of shape (n_samples,) or (n_samples, n_columns), Series, DataFrame, polars
        Without a column of ids.

    Raises
    ------
    ValueError
        If the shape is none of these, empty, or a value is infinite.
    TypeError
        If values are dates, durations, text, complex, or behind a mask.
    """
    _check_shape(name, table)
    _refuse_other_kinds(name, table)
    if is_pandas(table):
        rows = table.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_polars(table):
        rows = np.asarray(table.to_numpy(), dtype=np.float64)
    else:
        rows = np.asarray(table)
        if rows.dtype == object:
            rows = _from_objects(name, rows)
    rows = np.array(rows.reshape(len(rows), -1), dtype=np.float64, order="C")
    names = list(table.columns) if hasattr(table, "columns") else None
    return as_finite(name, rows, np.float64, names, allow_nan=True)


def is_pandas(table: Any) -> bool:
    """Whether a table is a Series or a DataFrame of pandas."""
    return hasattr(table, "iloc")


def is_polars(table: Any) -> bool:
    """Whether a table is a Series or a DataFrame of polars."""
    return type(table).__module__.partition(".")[0] == "polars"


def n_dimensions(table: Any) -> int | None:
    """Return the number of axes of a table; None for rows of different lengths."""
    shape = getattr(table, "shape", None)
    if shape is not None:
        return len(shape)
    try:
        return int(np.ndim(table))
    except ValueError:
        return None


def _check_shape(name: str, table: Any) -> None:
    """Refuse what has not one or two axes, or is empty."""
    n_axes = n_dimensions(table)
    if n_axes is None:
        raise ValueError(
            f"{name} has rows of different lengths. Give each row the same columns; several series "
            "of different lengths are a list of arrays."
        )
    shape = tuple(getattr(table, "shape", None) or np.shape(table))
    if n_axes not in (1, 2) or isinstance(table, (str, bytes, dict)):
        raise ValueError(
            f"{name} must be a series, of shape (n_samples,) or (n_samples, n_columns); got "
            f"{type(table).__name__}{f' of shape {shape}' if shape else ''}."
        )
    if 0 in shape:
        what = "rows (n_samples=0)" if shape[0] == 0 else "columns"
        raise ValueError(f"{name} has no {what}; its shape is {shape}. Give at least one.")


def _refuse_other_kinds(name: str, table: Any) -> None:
    """Refuse values that are no real numbers."""
    short = name.split()[-1]
    if np.ma.isMaskedArray(table) and np.ma.is_masked(table):
        raise TypeError(
            f"{name} is a masked array, and masks are not read. Give NaN for what is missing, "
            f"{short}.filled(np.nan)."
        )
    if is_polars(table):
        _refuse_polars_kinds(name, table)
        return
    refuse_dates(name, table)
    columns = table.items() if getattr(table, "ndim", 0) == 2 and is_pandas(table) else ()
    if is_pandas(table) and table.ndim == 1:
        columns = [(table.name, table)]
    for label, column in columns:
        which = f"column {label!r} of {name}" if table.ndim == 2 else name
        if column.dtype.kind == "c":
            raise TypeError(_complex_told(which))
        if column.dtype.kind not in "biuf":
            _from_objects(which, column.to_numpy(dtype=object, na_value=None))
    if not is_pandas(table) and np.iscomplexobj(table):
        raise TypeError(_complex_told(name))
    if not is_pandas(table) and np.asarray(table).dtype.kind in "SU":
        _from_objects(name, np.asarray(table, dtype=object))


def _complex_told(which: str) -> str:
    return f"{which} holds complex numbers. Give real and imaginary parts as columns of their own."


def _refuse_polars_kinds(name: str, table: Any) -> None:
    for column in [table] if len(table.shape) == 1 else table.get_columns():
        if column.dtype.is_temporal():
            raise TypeError(
                f"{name} has the column {column.name!r} of dates or durations ({column.dtype}), "
                f"which are no numbers. Drop it, {name.split()[-1]}.drop({column.name!r}), or make "
                f"it an index, {name.split()[-1]}.to_pandas().set_index({column.name!r})."
            )
        if not column.dtype.is_numeric() and str(column.dtype) not in ("Boolean", "Null"):
            raise TypeError(
                f"{name} has the column {column.name!r} of {column.dtype}, which are no numbers. "
                "Drop it, or cast it to pl.Float64."
            )


def _from_objects(name: str, values: Array) -> Array:
    """Return Python objects as floats, None and NA as NaN; refuse what is no number."""
    found = np.empty(values.shape, dtype=np.float64)
    for place, value in np.ndenumerate(values):
        missing = value is None or type(value).__name__ in ("NAType", "NaTType")
        if not missing and not isinstance(value, (numbers.Real, np.bool_)):
            text = "text" if isinstance(value, str) else type(value).__name__
            raise TypeError(
                f"{name} holds {text} ({value!r} in row {place[0]}), and numbers are needed. "
                f'pd.to_numeric({name.split()[-1]}, errors="coerce") makes numbers of text.'
            )
        found[place] = np.nan if missing else float(value)
    return found
