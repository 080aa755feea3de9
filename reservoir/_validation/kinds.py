"""Refusal of tables that hold no numbers, and of what is no table: text, sparse, a single number.

scikit-learn would refuse most of it, too, but names neither the column nor what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir._validation.dates import check_no_dates, date_told
from reservoir._validation.wording import code, replaced

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def check_numeric(name: str, table: Any, *, has_ids: bool = False) -> None:
    """Refuse dates, durations, text and sparse arrays in a table X; the column is named.

    Parameters
    ----------
    name : str
        What messages call the table.
    table : any
    has_ids : bool, default=False
        Whether a column of ids has been taken off it, so that no other column tells sequences.
    """
    check_dense(name, table)
    check_no_dates(name, table)
    for column, values in _text_columns(table):
        text = next((each for each in values if _is_text(each)), None)
        if text is None:
            continue
        if hasattr(table, "iloc") and isinstance(text, str) and _ISO_DATE.match(text):
            raise ValueError(
                f"{name} holds dates as text in column {column!r}, {text!r} for instance. "
                f"{date_told(name, column, np.empty(0, dtype=object))}"
            )
        ids = "" if has_ids else f" If it tells sequences apart, give sequence_column={column!r}."
        raise ValueError(
            f"{name} holds text in column {column!r}, {text!r} for instance, and networks take "
            f"numbers.{ids} If it names categories, make a column of each, "
            f"{_encoded(name, table, column)}, or let an encoder do so in a pipeline: "
            f"{_encoder_told()}, within PerStep where X holds several "
            "sequences."
        )


def check_dense(name: str, table: Any) -> None:
    """Refuse sparse arrays, matrices and tables; `name` is what messages call them."""
    dense = "rows.toarray()" if sp.issparse(table) else None
    if hasattr(table, "iloc") and table.ndim == 2 and table.shape[1]:
        columns = all(str(dtype).startswith("Sparse[") for dtype in table.dtypes)
        dense = "rows.sparse.to_dense()" if columns else None
    if dense is not None:
        raise TypeError(
            f"Sparse data was passed for {name} ({type(table).__name__}), but dense data is "
            f"required: {code(replaced(name, dense))}. In a pipeline an encoder makes dense "
            f"columns, {_encoder_told()}."
        )


def check_no_text(name: str, values: Any, remedy: str) -> None:
    """Refuse text where there must be numbers, whatever the shape; `remedy` ends the message."""
    values = np.asarray(values) if isinstance(values, (list, tuple)) else values
    if getattr(getattr(values, "dtype", None), "kind", "f") not in "OSUT":
        return
    text = next((each for each in np.ravel(values).tolist() if _is_text(each)), None)
    if text is not None:
        raise ValueError(f"{name} holds text, {text!r} for instance, and needs numbers. {remedy}")


def check_has_rows(name: str, values: Any, shape: str) -> None:
    """Refuse a single number, text or None where rows are expected.

    Parameters
    ----------
    name : str
        What messages call it.
    values : any
    shape : str
        What it must have.
    """
    if isinstance(values, (list, tuple)):
        return
    if len(values.shape if hasattr(values, "shape") else np.asarray(values).shape) == 0:
        plain = values is None or isinstance(values, (str, np.generic, Number))
        shape = shape.removesuffix(",")  # of a list of several
        raise ValueError(
            f"{name} is {repr(values) if plain else f'a {type(values).__name__}'}, and rows are "
            f"expected: {name} of shape {shape}, also where there is one row. Reshape your data."
        )


def one_hot_labels(name: str, labels: Any, rows: Array) -> str | None:
    """Return the message for labels that came as columns of 0 and 1; None for others.

    Parameters
    ----------
    name : str
        What messages call the labels.
    labels : any
        As the user gave them.
    rows : array of shape (n_rows, ...)
        The same as an array.
    """
    if rows.ndim != 2 or rows.shape[1] < 2 or rows.dtype.kind not in "biuf":
        return None
    if not (np.isin(rows, (0, 1)).all() and (rows.sum(axis=1) == 1).all()):
        return None
    single = "rows.argmax(1)" if isinstance(labels, np.ndarray) else "np.argmax(rows, axis=1)"
    if hasattr(labels, "idxmax"):
        single = "rows.idxmax(axis=1)"
    return (
        f"{name} should be a 1d array, got an array of shape {rows.shape} instead: a column of 0 "
        f"and 1 for each label. Give the labels themselves, {code(replaced(name, single))}."
    )


def _encoder_told() -> str:
    """Return the code of an encoder whose columns networks take."""
    return code("OneHotEncoder(sparse_output=False)")


def _text_columns(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield name and values of the columns of a table that may hold text."""
    if hasattr(table, "get_column"):  # polars
        for column in table.columns:
            if not table.get_column(column).dtype.is_numeric():
                yield column, table.get_column(column).to_list()
    elif hasattr(table, "iloc"):
        for i, dtype in enumerate(table.dtypes if table.ndim == 2 else ()):
            if getattr(dtype, "kind", "O") not in "biufc":
                yield table.columns[i], table.iloc[:, i].tolist()
    else:
        rows = table if isinstance(table, np.ndarray) else _as_objects(table)
        if rows is not None and rows.ndim > 1 and rows.dtype.kind in "OSU":
            for i in range(rows.shape[-1]):
                yield i, rows[..., i].ravel().tolist()


def _as_objects(table: Any) -> Array | None:
    """Return nested lists that hold text as an array; None for all else."""
    if not isinstance(table, (list, tuple)):
        return None
    try:
        return np.asarray(table) if np.asarray(table).dtype.kind == "U" else None
    except ValueError:  # rows of different lengths
        return None


def _is_text(value: Any) -> bool:
    """Whether a value is text that is no number."""
    if not isinstance(value, (str, bytes)):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def _encoded(name: str, table: Any, column: Any) -> str:
    """Return the code that makes a column of numbers of each category."""
    made = f"pd.get_dummies(rows, columns=[{column!r}], dtype=float)"
    if hasattr(table, "to_dummies"):  # polars
        made = f"rows.to_dummies({column!r})"
    elif not hasattr(table, "iloc"):
        frame = "pd.DataFrame(rows)"
        made = f"pd.get_dummies({frame}, columns=[{column!r}], dtype=float).to_numpy(float)"
    return code(replaced(name, made))
