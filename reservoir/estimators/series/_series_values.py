"""The numbers of a series, out of whatever container; what is missing is NaN."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_no_dates, code
from reservoir._validation.kinds import check_dense
from reservoir._validation.sequences import as_finite
from reservoir._validation.wording import replaced
from reservoir.estimators.series._series_names import SeriesName, changed, holder_of

_FEW_TEXTS = 3  # different ones that may stand for what is missing


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
    check_real_numbers(name, table)
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


def check_real_numbers(name: str, table: Any) -> None:
    """Refuse values that are no real numbers."""
    if np.ma.isMaskedArray(table) and np.ma.is_masked(table):
        raise TypeError(
            f"{name} is a masked array, and masks are not read. Give NaN for what is missing, "
            f"{code(changed(name, 'rows.astype(float).filled(np.nan)'))}."
        )
    if is_polars(table):
        _check_polars_kinds(name, table)
        return
    check_no_dates(holder_of(name), table)
    columns = table.items() if getattr(table, "ndim", 0) == 2 and is_pandas(table) else ()
    if is_pandas(table) and table.ndim == 1:
        columns = [(None, table)]
    for label, column in columns:
        which = name if label is None else f"column {label!r} of {name}"
        if column.dtype.kind == "c":
            raise TypeError(_complex_told(which))
        if column.dtype.kind not in "biuf":
            _from_objects(name, column.to_numpy(object, na_value=None), label, frame=True)
    if not is_pandas(table) and np.iscomplexobj(table):
        raise TypeError(_complex_told(name))
    if not is_pandas(table):
        check_dense(holder_of(name), table)
    if not is_pandas(table) and np.asarray(table).dtype.kind in "OSU":
        _from_objects(name, np.asarray(table, dtype=object))


def _complex_told(which: str) -> str:
    return f"{which} holds complex numbers. Give real and imaginary parts as columns of their own."


def _check_polars_kinds(name: str, table: Any) -> None:
    one = len(table.shape) == 1
    for column in [table] if one else table.get_columns():
        drop = "Give numbers" if one else code(changed(name, f"rows.drop({column.name!r})"))
        if column.dtype.is_temporal():
            indexed = code(changed(name, f"rows.to_pandas().set_index({column.name!r})"))
            raise TypeError(
                f"{name} has the column {column.name!r} of dates or durations ({column.dtype}), "
                f"which are no numbers. Leave it out: {drop}"
                f"{'' if one else f', or make it an index: {indexed}'}."
            )
        if not column.dtype.is_numeric() and str(column.dtype) not in ("Boolean", "Null"):
            raise TypeError(
                f"{name} has the column {column.name!r} of {column.dtype}, which are no numbers. "
                f"Leave it out: {drop}, or cast it to pl.Float64."
            )


def _from_objects(name: str, values: Array, label: Any = None, *, frame: bool = False) -> Array:
    """Return Python objects as floats, None and NA as NaN; refuse what is no number.

    `label` is the name of the column of a table that they are, `frame` says that they are pandas'.
    """
    found = np.empty(values.shape, dtype=np.float64)
    for place, value in np.ndenumerate(values):
        missing = value is None or type(value).__name__ in ("NAType", "NaTType")
        if not missing and not isinstance(value, (numbers.Real, np.bool_)):
            which = name if label is None else f"column {label!r} of {name}"
            text = "text" if isinstance(value, str) else type(value).__name__
            column = place[1] if values.ndim == 2 else 0
            given = values.reshape(len(values), -1)[:, column].tolist()
            told = _frame_told(name, given, label) if frame else _array_told(name, given, column)
            raise TypeError(
                f"{which} holds {text} ({value!r} in row {place[0]}), and numbers are needed.{told}"
            )
        found[place] = np.nan if missing else float(value)
    return found


def _frame_told(name: str, given: list[Any], label: Any) -> str:
    """Return the advice for values of pandas that are no numbers: read them, or encode them."""
    holder = holder_of(name)
    if isinstance(name, SeriesName) and name.kind == "columns":
        label = name.key
    column = holder if label is None else f"{holder}[{label!r}]"
    strange = _no_numbers(given)
    if strange is not None:
        known = f"{column}.where(~{column}.isin({strange!r}))" if strange else column
        return f" Make numbers of it, {code(f'{column} = {known}.astype(float)')}."
    if holder.partition("[")[0] == "exog":
        columns = "" if label is None else f"columns=[{label!r}], "
        made = code(replaced(holder, f"pd.get_dummies(rows, {columns}dtype=float)"))
        return f" Make a column of each category, {made}."
    drop = f" Leave it out, {code(replaced(holder, f'rows.drop(columns=[{label!r}])'))}."
    return "" if label is None else drop


def _array_told(name: str, given: list[Any], column: int) -> str:
    """Return the advice for values of arrays that are no numbers."""
    holder = holder_of(name)
    strange = _no_numbers(given)
    if strange is not None:
        known = f"np.where(np.isin({holder}, {strange!r}), 'nan', {holder})" if strange else holder
        return f" Make numbers of it, {code(f'{holder} = np.asarray({known}, dtype=float)')}."
    if holder.partition("[")[0] != "exog":
        return ""
    made = f"pd.get_dummies(pd.DataFrame(rows), columns=[{column}], dtype=float).to_numpy(float)"
    return f" Make a column of each category, {code(replaced(holder, made))}."


def _no_numbers(given: list[Any]) -> list[Any] | None:
    """Return the different values that no number can be read from; None if these are not few."""
    there = [value for value in given if value is not None and value == value]
    strange = list(dict.fromkeys(str(value) for value in there if not _is_number(value)))
    few = len(strange) <= _FEW_TEXTS and 2 * len(strange) < len(set(map(str, there)))
    return strange if few else None


def _is_number(value: Any) -> bool:
    """Whether a value, or what a text says, is a real number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
