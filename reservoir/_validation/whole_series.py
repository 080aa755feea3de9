"""Read X for estimators that treat each sequence as one sample, with one label or target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from reservoir._typing import Array
from reservoir._validation.kinds import check_numeric, check_without_labels, na_as_nan
from reservoir._validation.padding import padding_advice, table_padding_advice
from reservoir._validation.plain import check_unmasked
from reservoir._validation.sequences import (
    Sequences,
    as_finite,
    check_dimensions,
    plain_table,
    read_table,
)
from reservoir._validation.time_stamps import take_time_stamps
from reservoir._validation.times import check_times
from reservoir._validation.wording import code

_FLOATS = (np.float64, np.float32)
_ROWS = "rows"  # the container of a 2-D X: each row is a series of one channel


def read_whole_series(
    estimator: Any,
    X: Any,
    *,
    sequence_column: Any = None,
    time_column: Any = None,
    allow_nan: bool = False,
    fitted: tuple[str, int] | None = None,
    y: Any = None,
) -> Sequences:
    """Check X and return its sequences as arrays of shape (n_steps_i, n_channels).

    They are float32 if X is, because a float64 copy would take twice its memory, else float64.

    Parameters
    ----------
    estimator : estimator
        The estimator that reads X; in fit its ``n_features_in_`` and ``feature_names_in_`` are set.
    X : list, object array, 3-D array, 2-D array or table
        The sequences. A 1-D array in a list is a series of one channel. Each row of a 2-D array is
        a series of one channel, unless an id column or a MultiIndex identifies sequences.
    sequence_column : int, str or None
        The column of a table that contains the ids of the sequences.
    time_column : int, str or None
        The column that contains the time of each row, which is not a channel; None if X has none.
    allow_nan : bool, default=False
        Whether NaN is allowed, as a missing value; infinity is never allowed.
    fitted : (container, n_channels), optional
        Container and number of channels of the training sequences; None in fit.
    y : any, default=None
        The targets. If they have an entry per row, the code in messages about the order of rows
        changes them, too.
    """
    sequences = _read(estimator, X, y, sequence_column, allow_nan, fitted)
    if sequences.container != _ROWS:  # its index numbers series, not steps
        check_times(X, is_table=sequences.container == "table", lengths=sequences.lengths)
    if time_column is None:
        return sequences
    names = getattr(estimator, "feature_names_in_", None)
    return take_time_stamps(sequences, time_column, names, sequence_column)


def _read(
    estimator: Any,
    X: Any,
    y: Any,
    sequence_column: Any,
    allow_nan: bool,
    fitted: tuple[str, int] | None,
) -> Sequences:
    """Return the sequences of X with all columns; parameters as in `read_whole_series`."""
    reset = fitted is None
    _check_collection(X)
    check_unmasked("X", X)
    check_without_labels(X, y, sequence_column)
    several_levels = getattr(getattr(X, "index", None), "nlevels", 1) > 1
    if sequence_column is not None or several_levels:
        kind = _kind(X)
        if kind != _ROWS:
            raise ValueError(
                f"sequence_column={sequence_column!r} is for one table that contains several "
                "sequences, but X is a collection of sequences already. Set sequence_column=None, "
                "or pass one table (model_selection.stack_sequences makes it)."
            )
        return read_table(
            estimator,
            X,
            reset,
            np.float64,
            sequence_column,
            allow_nan=allow_nan,
            if_nan=partial(_if_row_is_missing, estimator, X, y),
        )
    container = _kind(X)
    arrays: Any  # one 3-D array if all have the same length: views would take more memory
    if container == _ROWS:
        arrays = _read_rows(estimator, X, allow_nan, fitted)
    elif container == "array":
        arrays = _read_array(estimator, X, allow_nan, fitted)
    else:
        arrays = tuple(_read_items(estimator, X, allow_nan, fitted))
    return Sequences(arrays, container)


def _check_collection(X: Any) -> None:
    """Raise if X is a mapping, an iterator or a nested table of sequences, instead of a list."""
    remedy = None
    pandas = hasattr(X, "iloc")
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        remedy = code("X = list(X.values())")
    elif isinstance(X, Iterator) or (pandas and X.ndim == 1 and X.size and np.ndim(X.iloc[0])):
        remedy = code("X = list(X)")
    elif pandas and X.ndim == 2 and X.size and np.ndim(X.iloc[0, 0]):
        remedy = code("X = [np.column_stack(list(cells)) for cells in X.to_numpy()]")
    if remedy is not None:
        raise TypeError(
            f"X is a {type(X).__name__} of sequences, but must be a list of arrays of shape "
            f"(n_steps, n_channels). Use {remedy}."
        )


def _kind(X: Any) -> str:
    """Return the kind of container of X: "array" (3-D), "list", "object" or "rows" (2-D)."""
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1 and len(X):
        return "object" if np.ndim(X[0]) else _ROWS
    if isinstance(X, (list, tuple)):
        if not len(X):
            raise ValueError("X contains no sequences (n_sequences=0); at least 1 is required.")
        first = X[0]
        if getattr(first, "shape", ()):  # frames of polars have no `ndim`
            return "list"
        if isinstance(first, (list, tuple)) and len(first):
            deeper = isinstance(first[0], (list, tuple)) or getattr(first[0], "ndim", 0) > 0
            ragged = len({len(row) for row in X if hasattr(row, "__len__")}) > 1
            return "list" if deeper or ragged else _ROWS
    return "array" if getattr(X, "ndim", 2) == 3 else _ROWS


def _read_rows(estimator: Any, X: Any, allow_nan: bool, fitted: tuple[str, int] | None) -> Array:
    """Return the rows of a 2-D X as series of one channel."""
    check_dimensions(estimator, X)
    check_numeric("X", X)
    X, options = na_as_nan(X), {"dtype": list(_FLOATS), "ensure_all_finite": False, "order": "C"}
    if fitted is None or fitted[0] == _ROWS:
        table = validate_data(estimator, X, reset=fitted is None, **options)
    else:
        table = check_array(X, estimator=estimator, **options)
    if fitted is not None and fitted[1] != 1:
        raise ValueError(
            f"X has {table.ndim} dimensions (shape {table.shape}), so that each row is a series of "
            f"1 channel, but {type(estimator).__name__} was fitted on series of {fitted[1]} "
            "channels. Pass an array of shape (n_sequences, n_steps, n_channels). If X is a single "
            f"series, use {code('X = [X]')}."
        )
    first = table[np.isnan(table).any(axis=1)][:1]
    each = "X.to_numpy()" if hasattr(X, "iloc") else "X"
    for_nan = partial(_if_step_is_missing, estimator, *first, first.T, each)
    as_finite("X", table, table.dtype, allow_nan=allow_nan, if_nan=for_nan)
    return table[:, :, None]


def _read_array(estimator: Any, X: Any, allow_nan: bool, fitted: tuple[str, int] | None) -> Array:
    """Return the sequences of a 3-D array, (n_sequences, n_steps, n_channels)."""
    check_numeric("X", X)
    array = check_array(
        X,
        dtype=list(_FLOATS),
        ensure_all_finite=False,
        allow_nd=True,
        order="C",  # so that sums do not depend on the memory layout of X
        estimator=estimator,
    )
    n_steps, n_channels = array.shape[1:]
    if n_steps == 0 or n_channels == 0:
        raise ValueError(
            f"X has shape {array.shape}, (n_sequences, n_steps, n_channels), but at least 1 step "
            "and 1 channel are required."
        )
    _note_channels(estimator, array[0], fitted)
    # check all sequences as one table; if that fails, find the sequence to name in the message
    try:
        as_finite("X", array.reshape(-1, n_channels), array.dtype, allow_nan=allow_nan)
    except ValueError:
        for i, item in enumerate(array):
            _check_finite(estimator, i, item, item, allow_nan)
    return array


def _read_items(
    estimator: Any, X: Any, allow_nan: bool, fitted: tuple[str, int] | None
) -> list[Array]:
    """Return the sequences of a list or an object array."""
    names = list(X[0].columns) if hasattr(X[0], "columns") else None
    arrays: list[Array] = []
    for i, item in enumerate(X):
        if hasattr(item, "columns") and list(item.columns) != names:
            raise ValueError(
                f"Sequence {i} of X has the columns {list(item.columns)}, but sequence 0 has "
                f"{names}. All sequences need the same columns."
            )
        table = _as_table(i, item)
        if i == 0:
            _note_channels(estimator, item if names else table, fitted)
        elif table.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"Sequence {i} of X has {table.shape[1]} channels (columns), but sequence 0 has "
                f"{arrays[0].shape[1]}. All sequences need the same number. Rows are time steps."
            )
        _check_finite(estimator, i, item, table, allow_nan)
        arrays.append(table)
    return arrays


def _as_table(i: int, item: Any) -> Array:
    """Return one sequence as an array of shape (n_steps, n_channels)."""
    plain = isinstance(item, np.ndarray) and item.dtype in _FLOATS
    if not plain:
        check_numeric(f"Sequence {i} of X", item, has_ids=True)
        try:
            item = check_array(
                na_as_nan(item),
                dtype=list(_FLOATS),
                ensure_2d=False,
                ensure_all_finite=False,
                ensure_min_samples=0,
                ensure_min_features=0,
            )
        except (ValueError, TypeError) as error:
            raise type(error)(f"In sequence {i} of X: {error}") from error
    table = item[:, None] if item.ndim == 1 else item
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"Sequence {i} of X has shape {item.shape}, but must have shape (n_steps, n_channels), "
            "or (n_steps,) for one channel, with at least 1 step and 1 channel. Omit empty "
            "sequences."
        )
    return np.ascontiguousarray(table)


def _note_channels(estimator: Any, first: Any, fitted: tuple[str, int] | None) -> None:
    """Set the number and names of the channels in fit; check them after fit."""
    reset = fitted is None
    if fitted is None or fitted[0] != _ROWS:
        if plain_table(estimator, first, getattr(first, "dtype", None), reset=reset) is None:
            validate_data(estimator, first, reset=reset, dtype=None, ensure_all_finite=False)
    elif first.shape[1] != fitted[1]:
        raise ValueError(
            f"X has {first.shape[1]} channels, but {type(estimator).__name__} was fitted on series "
            f"of {fitted[1]}. Rows are time steps, columns channels."
        )


def _check_finite(estimator: Any, i: int, item: Any, table: Array, allow_nan: bool) -> None:
    """Raise if sequence i, given as `item`, contains infinity or NaN."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) != table.shape[1]:
        names = None
    name = f"sequence {i} of X"
    for_nan = partial(_if_step_is_missing, estimator, item, table)
    as_finite(name, table, table.dtype, names, allow_nan=allow_nan, if_nan=for_nan)


def _if_step_is_missing(estimator: Any, *series: Any) -> str:
    """Return the advice for NaN in one series; arguments as in `padding_advice`."""
    return padding_advice(*series) or _fill_advice(estimator)


def _if_row_is_missing(estimator: Any, *table: Any) -> str:
    """Return the advice for NaN in a table of series; arguments as in `table_padding_advice`."""
    return table_padding_advice(*table) or _fill_advice(estimator)


def _fill_advice(estimator: Any) -> str:
    """Return the advice for NaN that are not padding."""
    if not hasattr(estimator, "missing_values"):
        return "Fill it first, for instance by interpolation. Dropping the step would shift time."
    return (
        'Use missing_values="hold" or "interpolate", or fill it first. Dropping the step would '
        "shift time."
    )
