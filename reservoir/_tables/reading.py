"""Read data of any container once: `read` makes a `Table`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._tables.ids import has_levels, ids_in_column, ids_in_levels, without_ids
from reservoir._tables.table import Form, Table
from reservoir._tables.values import FLOATS, as_floats, check_finite
from reservoir._typing import Array
from reservoir._validation.kinds import check_has_rows, check_readable
from reservoir._validation.sequences import FILL

_STEPS = "(n_samples, n_features), one row per time step"
_SERIES = "(n_steps, n_channels), or (n_steps,) for one channel"


def read(
    name: str,
    data: Any,
    *,
    sequence_column: Any = None,
    rows: str = "steps",
    allow_nan: bool = False,
    dtype: Any = None,
    fill: str = FILL,
    cut: bool = False,
    least_columns: int = 1,
) -> Table:
    """Read data once: values, bounds and ids of the sequences, and the form of the container.

    Parameters
    ----------
    name : str
        The parameter, for messages.
    data : array, DataFrame (pandas or polars), list, object array or 3-D array of these
    sequence_column : int or str, optional
        The column of ids of one table.
    rows : {"steps", "series"}, default="steps"
        What a row of a 2-D array without ids is: a step of one sequence, or a series of one
        column. With "series" the items of a list may be 1-D.
    allow_nan : bool, default=False
        Whether NaN is allowed, as a missing value; infinity never is.
    dtype : dtype, optional
        The dtype of the values, by default float32 if the data are, else float64.
    fill : str
        The advice for NaN.
    cut : bool, default=False
        Whether the advice for padding is to cut it off.
    least_columns : int, default=1
        0 if a table needs no columns.
    """
    _check_rows(name, data)
    kind = container_of(data, rows, name)
    if sequence_column is not None or has_levels(data):
        table = _with_ids(name, data, sequence_column, kind)
    elif kind in ("table", "rows"):
        table = _one(name, data, kind, least_columns)
    elif kind == "array":
        table = _stack(name, data)
    else:
        table = _several(name, data, kind, 1 if rows == "series" else 2, least_columns)
    dtype = table.values.dtype if dtype is None else dtype
    values = check_finite(table, dtype, allow_nan=allow_nan, fill=fill, cut=cut)
    items = table.items if values is table.values else None
    return replace(table, values=values, items=items)


def _check_rows(name: str, data: Any) -> None:
    """Raise if data have no rows, or none in memory."""
    check_readable(name, data)
    nested = hasattr(data, "iloc") and data.size and np.ndim(data.iloc[(0,) * data.ndim])
    if nested:
        raise TypeError(
            f"{name} is a {type(data).__name__} of sequences, but must be a table, or a list of "
            "arrays with a row for each time step."
        )
    check_has_rows(name, data, "(n_samples, n_features)")
    if isinstance(data, (list, tuple)) and not len(data):
        raise ValueError(f"{name} contains no sequences (n_sequences=0); at least 1 is required.")


def container_of(data: Any, rows: str = "steps", name: str = "X") -> str:
    """Return the kind of container of data, as in `Form`.

    A list of lists of numbers is one table, with `rows` as in `read`. Only a list of 1-D arrays
    raises an error where rows are steps, because it is ambiguous.
    """
    least, whole = (1, "rows") if rows == "series" else (2, "table")
    if isinstance(data, (list, tuple)) and len(data):
        first = data[0]
        if least == 2 and isinstance(first, np.ndarray) and first.ndim == 1 and len(first) != 1:
            raise ValueError(
                f"{name} is a list of 1-D arrays (the first has shape {first.shape}), which is "
                "ambiguous. Reshape each to 2-D, (n_samples, n_features), if they are sequences, "
                "or stack them (np.stack) if they are the rows of one table."
            )
        if hasattr(first, "shape"):  # frames of polars have no `ndim`
            return "list" if least <= len(first.shape) <= 2 else whole
        if not isinstance(first, (list, tuple)) or not len(first):
            return whole
        deeper = isinstance(first[0], (list, tuple)) or getattr(first[0], "ndim", 0) > 0
        ragged = least == 1 and len({len(row) for row in data if hasattr(row, "__len__")}) > 1
        return "list" if deeper or ragged else whole
    if getattr(data, "ndim", 2) == 3:
        return "array"
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1 and len(data):
        return "object" if np.ndim(data[0]) >= least else whole
    return whole


def _with_ids(name: str, data: Any, column: Any, kind: str) -> Table:
    """Read one table of several sequences, which are identified by a column or a MultiIndex."""
    if column is not None and has_levels(data):
        raise ValueError(
            f"sequence_column={column!r}, but {name} has a MultiIndex, which identifies the "
            "sequences, too. Set sequence_column=None, or reset the index."
        )
    if kind not in ("table", "rows"):
        raise ValueError(
            f"sequence_column={column!r} is for one table of several sequences, but {name} is a "
            "collection of sequences already. Set sequence_column=None, or pass one table "
            "(model_selection.stack_sequences makes it)."
        )
    data = _as_table(name, data)
    _check_shape(name, data.shape, 1)
    columns = tuple(getattr(data, "columns", ()))
    if column is None:
        bounds, ids = ids_in_levels(name, data)
        return Table(name, as_floats(name, data, has_ids=True), bounds, Form("table", columns), ids)
    bounds, ids, place = ids_in_column(name, data, column)
    if data.shape[1] == 1:
        raise ValueError(
            f"{name} has no column except the id column: at least 1 feature is required."
        )
    values = without_ids(name, data, place)
    return Table(name, values, bounds, Form("table", columns, place), ids)


def _one(name: str, data: Any, kind: str, least_columns: int) -> Table:
    """Read one table without ids: one sequence, or a series in each row."""
    data = _as_table(name, data)
    _check_shape(name, data.shape, least_columns)
    values, form = as_floats(name, data), Form(kind, tuple(getattr(data, "columns", ())))
    if kind == "table":
        return Table(name, values, np.array([0, len(values)]), form)
    n_series, n_steps = values.shape
    return Table(name, values.reshape(-1, 1), np.arange(n_series + 1) * n_steps, form)


def _as_table(name: str, data: Any) -> Any:
    """Return nested lists as an array, and tables as they are."""
    if hasattr(data, "shape"):
        return data
    try:
        return np.asarray(data)
    except ValueError as error:
        raise ValueError(
            f"The rows of {name} have different lengths, but each row of a table has a value for "
            "each column. Pass sequences of different lengths as a list of 2-D arrays."
        ) from error


def _check_shape(name: str, shape: tuple[int, ...], least_columns: int) -> None:
    """Raise unless a shape is that of a table with rows and columns."""
    if len(shape) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {name} has shape {shape}, but must have "
            f"shape {_STEPS}. Reshape your data: to one column if it is a series of one feature, "
            "to one row if it is one row of several features."
        )
    if len(shape) > 2:
        raise ValueError(
            f"Found array with dim {len(shape)}: {name} has shape {shape}, but one series has "
            "shape (n_samples, n_features), and several of equal length have shape (n_sequences, "
            "n_samples, n_features). Reshape your data: put all values of a step in one row."
        )
    if not shape[0] or shape[1] < least_columns:
        what = "feature" if shape[0] else "sample"
        raise ValueError(
            f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required: "
            f"{name} needs at least one row and one column."
        )


def _stack(name: str, data: Any) -> Table:
    """Read a 3-D array."""
    values = as_floats(name, data)
    n_sequences, n_steps, n_columns = values.shape
    if not values.size:
        raise ValueError(
            f"{name} has shape {values.shape}, (n_sequences, n_steps, n_channels): it contains no "
            "sequences, no steps or no channels, but at least 1 of each is required."
        )
    bounds = np.arange(n_sequences + 1) * n_steps
    return Table(name, values.reshape(-1, n_columns), bounds, Form("array"))


def _several(name: str, data: Any, kind: str, ndim: int, least_columns: int) -> Table:
    """Read a list or an object array of tables; with `ndim` of 1 they may be 1-D."""
    columns = tuple(getattr(data[0], "columns", ()))
    parts: list[Array] = []
    for i, item in enumerate(data):
        plain = type(item) is np.ndarray and item.dtype in FLOATS
        each = f"Sequence {i} of {name}"
        part = np.asarray(item, order="C") if plain else as_floats(each, item, has_ids=True)
        if part.ndim == 1 == ndim:
            part = part[:, None]
        if part.ndim != 2 or not len(part) or part.shape[1] < least_columns:
            raise ValueError(
                f"{each} has shape {np.shape(item)}, but must have shape "
                f"{_STEPS if ndim == 2 else _SERIES}, with at least 1 step and 1 column. Omit "
                "empty sequences."
            )
        if parts and part.shape[1] != parts[0].shape[1]:
            raise ValueError(
                f"{each} has {part.shape[1]} columns, but sequence 0 has "
                f"{parts[0].shape[1]}. All sequences need the same columns; rows are time steps."
            )
        if not plain and tuple(getattr(item, "columns", columns)) != columns:
            raise ValueError(
                f"{each} has the columns {list(item.columns)}, but sequence 0 has "
                f"{list(columns)}. All sequences need the same columns."
            )
        parts.append(part)
    bounds = np.append(0, np.cumsum([len(part) for part in parts]))
    values = np.concatenate(parts)
    items = tuple(parts) if all(part.dtype == values.dtype for part in parts) else None
    return Table(name, values, bounds, Form(kind, columns), items=items)


def sequence_lengths(X: Any, sequence_column: int | str | None) -> tuple[list[int], bool]:
    """Return the number of rows of each sequence, and whether X is one table."""
    if container_of(X) != "table":
        return [len(item) for item in X], False
    data = _as_table("X", X)
    if sequence_column is not None:
        bounds = ids_in_column("X", data, sequence_column)[0]
    else:
        bounds = ids_in_levels("X", data)[0] if has_levels(data) else np.array([0, data.shape[0]])
    return np.diff(bounds).tolist(), True
