"""Series and sequences: containers, id columns, what is no number."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from reservoir._typing import Array
from reservoir._validation.dates import refuse_dates
from reservoir._validation.times import UNTOLD, Times, read_times

_FLOATS = (np.float64, np.float32)


@dataclass(frozen=True)
class Sequences:
    """A series as its sequences, and how to hand results back in the container it came in.

    Attributes
    ----------
    arrays : tuple of arrays, each of shape (n_samples_i, n_features)
        Without the id column.
    container : {"table", "list", "object", "array"}
        One 2-D table, a list, an object array, or a 3-D array.
    ids : tuple or None
        What the id column says of each sequence; None where there is no id column.
    times : Times
        What the indexes of X and y tell of when the rows were.
    """

    arrays: tuple[Array, ...]
    container: str
    ids: tuple[Any, ...] | None = None
    times: Times = UNTOLD

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def lengths(self) -> list[int]:
        """Number of rows of each sequence."""
        return [len(array) for array in self.arrays]

    def split(self, rows: Array) -> list[Array]:
        """Split rows of a table at the ends of the sequences."""
        return np.split(rows, np.cumsum(self.lengths)[:-1])

    def restore(self, parts: Sequence[Array]) -> Any:
        """Return one array per sequence in the container that the series came in."""
        if self.container == "table":
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        if self.container == "array":
            return np.stack(parts)
        if self.container == "list":
            return list(parts)
        packed = np.empty(len(parts), dtype=object)
        packed[:] = parts
        return packed


def read_series(
    estimator: Any, X: Any, y: Any = None, *, reset: bool, dtype: Any, sequence_column: Any = None
) -> Sequences:
    """Read a table, a list of tables or a 3-D array; sets n_features_in_ when `reset`.

    Of y the index alone is read, where there is one: it must go with that of X.
    """
    sequences = _read_arrays(estimator, X, reset, dtype, sequence_column)
    times = read_times(
        X,
        y,
        is_table=sequences.container == "table",
        lengths=sequences.lengths,
        check_frequency=reset,
    )
    return replace(sequences, times=times)


def _read_arrays(
    estimator: Any, X: Any, reset: bool, dtype: Any, sequence_column: Any
) -> Sequences:
    container = container_of(X)
    if container == "table":
        return _read_table(estimator, X, reset, dtype, sequence_column)
    if sequence_column is not None:
        raise ValueError(
            f"sequence_column={sequence_column!r} reads sequences from one table, but X is a "
            "collection of sequences already. Give sequence_column=None, or one table "
            "(model_selection.stack_sequences makes it)."
        )
    if len(X) == 0:
        raise ValueError("X holds no sequences (n_sequences=0); at least 1 is required.")
    items = enumerate(X)
    arrays = tuple(_read_item(estimator, i, item, reset and i == 0, dtype) for i, item in items)
    return Sequences(arrays, container)


def _read_item(estimator: Any, i: int, item: Any, reset: bool, dtype: Any) -> Array:
    refuse_dates(f"Sequence {i} of X", item)
    try:
        table = _validate(estimator, item, reset)
    except ValueError as error:
        raise ValueError(f"In sequence {i} of X: {error}") from error
    return as_finite(f"sequence {i} of X", table, dtype, _names(estimator))


def refuse_one_row(estimator: Any, sequences: Sequences) -> None:
    """Refuse to fit on a single row: there is no step from one to the next to learn."""
    if sum(sequences.lengths) < 2:
        raise ValueError(
            f"X holds 1 sample (n_samples=1): {type(estimator).__name__} learns from steps and "
            "needs at least 2 in fit. partial_fit takes rows one by one."
        )


def container_of(X: Any) -> str:
    """Return what X is: one "table", or sequences as a "list", "object" array or 3-D "array"."""
    if isinstance(X, np.ndarray):
        if X.ndim == 3:
            return "array"
        if X.dtype == object and X.ndim == 1 and len(X) and _is_table(X[0]):
            return "object"
        return "table"
    if isinstance(X, (list, tuple)) and len(X):
        if isinstance(X[0], np.ndarray) and X[0].ndim == 1 and len(X[0]) != 1:
            raise ValueError(
                f"X is a list of 1-D arrays (the first of shape {X[0].shape}). As sequences each "
                "must be 2-D, (n_samples, n_features): use item.reshape(-1, 1). As the rows of one "
                "table: use np.stack(X)."
            )
        return "list" if _is_table(X[0]) else "table"
    return "table"


def _is_table(item: Any) -> bool:
    if hasattr(item, "ndim"):
        return item.ndim == 2
    return isinstance(item, (list, tuple)) and len(item) > 0 and isinstance(item[0], (list, tuple))


def _validate(estimator: Any, X: Any, reset: bool) -> Array:
    _check_dimensions(estimator, X)
    return validate_data(
        estimator, X, reset=reset, dtype=list(_FLOATS), ensure_all_finite=False, order="C"
    )


def _check_dimensions(estimator: Any, X: Any) -> None:
    """Refuse X of one dimension, or of four and more; what is no array at all is for others."""
    try:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    except ValueError:  # rows of different lengths
        return
    if len(shape) == 1:
        remedy = "series[:, None] (or series.reshape(-1, 1))"
        if hasattr(X, "to_frame"):
            remedy = "series.to_frame()"
        elif not hasattr(X, "reshape"):
            remedy = "np.reshape(series, (-1, 1))"
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X has shape {shape}, and must be "
            "(n_samples, n_features), one row per time step. Reshape your data: a series of one "
            f"feature is {remedy}; one row of several features is np.reshape(row, (1, -1))."
        )
    if len(shape) > 3:
        raise ValueError(
            f"Found array with dim {len(shape)}: X has shape {shape}. {type(estimator).__name__} "
            "takes one series, (n_samples, n_features), or several of equal length, (n_sequences, "
            "n_samples, n_features): 2-D and 3-D are accepted. Reshape your data: what is "
            "measured at one time step makes one row."
        )


def _names(estimator: Any) -> Any:
    return getattr(estimator, "feature_names_in_", None)


_FILL_X = (
    "Fill it before fitting, for instance by interpolation (pandas' interpolate) or with "
    "scikit-learn's SimpleImputer. Dropping the row would shift time: rows are consecutive steps."
)


def as_finite(
    name: str,
    table: Array,
    dtype: Any,
    names: Any = None,
    *,
    if_nan: Callable[[], str] | None = None,
) -> Array:
    """Cast to `dtype`; NaN and infinity are refused by column and row."""
    given = table
    with np.errstate(over="ignore"):
        table = table.astype(dtype, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        total = table.sum()
    if np.isfinite(total):
        return table
    bad = ~np.isfinite(table)
    if not bad.any():
        return table
    row, column = (int(i) for i in np.argwhere(bad)[0])
    label = "" if names is None else f" ({names[column]!r})"
    if np.isnan(table[row, column]):
        what, remedy = "NaN", _FILL_X if if_nan is None else if_nan()
    elif np.isfinite(given[row, column]):
        what, remedy = "infinity (inf)", f"{given[row, column]:.3g} overflows: scale the data."
    else:
        what, remedy = "infinity (inf)", "Replace it by a finite value."
    raise ValueError(
        f"{name} contains {what} in column {column}{label}, first in row {row}, as "
        f"{np.dtype(dtype).name}. {remedy}"
    )


def _read_table(estimator: Any, X: Any, reset: bool, dtype: Any, sequence_column: Any) -> Sequences:
    levels = getattr(getattr(X, "index", None), "nlevels", 1)
    if levels > 1 and sequence_column is not None:
        raise ValueError(
            f"sequence_column={sequence_column!r}, but X has a MultiIndex, which tells the "
            "sequences too. Give sequence_column=None, or reset the index."
        )
    if sequence_column is None:
        ids = X.index.droplevel(-1).to_numpy() if levels > 1 else None
        refuse_dates("X", X)
        table = as_finite("X", _validate(estimator, X, reset), dtype, _names(estimator))
    else:
        _check_dimensions(estimator, X)
        names = list(X.columns) if hasattr(X, "columns") else None
        X, ids, column = _take_ids(X, sequence_column, names)
        refuse_dates("X", X)
        table = _validate(estimator, X, reset)
        table = as_finite("X", table, dtype, _names(estimator))
        if table.shape[1] == 1:
            raise ValueError(
                "X has no column besides the id column: at least 1 feature is required."
            )
        table = np.delete(table, column, axis=1)
    if ids is None:
        return Sequences((table,), "table")
    starts, firsts = _runs(ids)
    return Sequences(tuple(np.split(table, starts[1:])), "table", tuple(firsts))


def _take_ids(X: Any, sequence_column: Any, names: Any) -> tuple[Any, Array, int]:
    """Return X with a zero id column, the ids as they came, and where they stood."""
    if isinstance(sequence_column, str):
        if names is None:
            raise ValueError(
                f"sequence_column={sequence_column!r} is a name, but X has no feature names. "
                "Give the column's number, or a DataFrame."
            )
        if sequence_column not in names:
            raise ValueError(
                f"sequence_column={sequence_column!r} is not among the feature names {names}."
            )
        column = names.index(sequence_column)
    elif isinstance(sequence_column, bool) or not isinstance(sequence_column, numbers.Integral):
        raise TypeError(
            f"sequence_column must be an int or a feature name; got {sequence_column!r}."
        )
    else:
        column = int(sequence_column)
    n_columns = np.shape(X)[1] if np.ndim(X) == 2 else 0
    if n_columns and not -n_columns <= column < n_columns:
        raise ValueError(
            f"sequence_column={sequence_column} is outside X, which has {n_columns} columns."
        )
    if not n_columns:
        return check_array(X), np.array([]), 0  # raises: X is not a table
    column %= n_columns
    if hasattr(X, "iloc"):
        ids = X.iloc[:, column].to_numpy()
        missing = X.iloc[:, column].isna().to_numpy()
        X = X.copy()
        X.isetitem(column, np.zeros(len(X)))
    else:
        X = np.array(X)
        ids = X[:, column].copy()
        missing = ids != ids
        X[:, column] = 0
    if missing.any():
        raise ValueError(
            f"X contains NaN in the id column {column}, first in row {int(np.argmax(missing))}."
        )
    return X, ids, column


def _runs(ids: Array) -> tuple[list[int], list[Any]]:
    """Return where each run of equal ids starts, and the ids; an id that returns is refused."""
    starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist()]
    firsts = [ids[i] for i in starts]
    seen: dict[Any, int] = {}
    for start, value in zip(starts, firsts, strict=True):
        if value in seen:
            raise ValueError(
                f"Sequence id {value!r} returns in row {start} after ending before: rows of one "
                "sequence must be adjacent and in time order. Sort by id and time, and split "
                "without shuffling rows."
            )
        seen[value] = start
    return starts, firsts
