"""Read X: detect its container, split it into sequences by the id column, check its values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from reservoir._typing import Array
from reservoir._validation.columns import column_number, column_values
from reservoir._validation.kinds import (
    check_has_rows,
    check_numeric,
    check_readable,
    check_without_labels,
    is_polars,
    na_as_nan,
)
from reservoir._validation.levels import check_levels
from reservoir._validation.padding import padding_advice, table_padding_advice
from reservoir._validation.scalars import caller_level
from reservoir._validation.times import NO_TIMES, Times, read_times
from reservoir._validation.wording import code, replaced

_FLOATS = (np.float64, np.float32)


@dataclass(frozen=True)
class Sequences:
    """The sequences in X, and the container in which results are returned.

    Attributes
    ----------
    arrays : sequence of arrays, each of shape (n_samples_i, n_features)
        The rows of each sequence, without the id column.
    container : {"table", "list", "object", "array"}
        The container of X: one 2-D table, a list, an object array, or a 3-D array.
    ids : tuple or None
        The id of each sequence, from the id column or the MultiIndex of a table; None if X has
        neither.
    numbers : tuple of int or None
        The position of each sequence in X, if these are only some of the sequences of X; None if
        they are all of them, in order.
    times : Times
        The indexes of X and y, if they are pandas tables.
    gaps : tuple of arrays, each of shape (n_samples_i - 1,), or None
        The times between consecutive rows, if X has a column of times; else None.
    """

    arrays: Sequence[Array]
    container: str
    ids: tuple[Any, ...] | None = None
    times: Times = NO_TIMES
    numbers: tuple[int, ...] | None = None
    gaps: tuple[Array, ...] | None = None

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def lengths(self) -> list[int]:
        """Number of rows of each sequence."""
        return [len(array) for array in self.arrays]

    def name(self, i: int) -> str:
        """Return the name of a sequence in messages, which contains its id or its number in X."""
        if self.ids is None:
            return f"sequence {i if self.numbers is None else self.numbers[i]} of X"
        value = self.ids[i]
        return f"sequence {value.item() if isinstance(value, np.generic) else value!r} of X"

    def place(self, i: int, step: int) -> str:
        """Return the name of a step of a sequence in messages."""
        return f"step {step} of {self.name(i)}"

    def some(self, which: Sequence[int]) -> Sequences:
        """Return some of the sequences, in the order of `which`; their names do not change."""
        arrays = tuple(self.arrays[i] for i in which)
        ids = None if self.ids is None else tuple(self.ids[i] for i in which)
        numbers = tuple(i if self.numbers is None else self.numbers[i] for i in which)
        gaps = None if self.gaps is None else tuple(self.gaps[i] for i in which)
        return replace(self, arrays=arrays, ids=ids, numbers=numbers, gaps=gaps)

    def split(self, rows: Array) -> list[Array]:
        """Split an array with the rows of all sequences into one array per sequence."""
        return np.split(rows, np.cumsum(self.lengths)[:-1])

    def restore(self, parts: Sequence[Array]) -> Any:
        """Return results, one array per sequence, in a container of the same kind as X."""
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
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    reset: bool,
    dtype: Any,
    sequence_column: Any = None,
    has_times: bool = False,
) -> Sequences:
    """Check X and return its sequences.

    Parameters
    ----------
    estimator : estimator
        The estimator that reads X, for scikit-learn's checks and for messages.
    X : table, list of tables, object array of tables or 3-D array
        The data, as the user passed them.
    y : any, default=None
        The targets. Only their index is read, if they have one: it must match the index of X.
    reset : bool
        Whether to set ``n_features_in_`` and ``feature_names_in_``, as in fit; otherwise they are
        checked. If True, dates without a frequency cause a warning.
    dtype : dtype
        The dtype of the arrays returned.
    sequence_column : int, str or None
        The column of a table that contains the ids of the sequences.
    has_times : bool, default=False
        Whether X has a column of times. If so, the indexes are checked but not returned.
    """
    if sequence_column is None and (y is None or type(y) is np.ndarray):
        plain = plain_table(estimator, X, dtype, reset=reset)
        if plain is not None:
            return Sequences((plain,), "table")
    check_readable("X", X)
    check_readable("y", y)
    check_without_labels(X, y, sequence_column)
    sequences = _read_arrays(estimator, X, reset, dtype, sequence_column)
    times = read_times(
        X,
        y,
        is_table=sequences.container == "table",
        lengths=sequences.lengths,
        check_frequency=reset and not has_times,
    )
    return sequences if has_times else replace(sequences, times=times)


def plain_table(estimator: Any, X: Any, dtype: Any, *, reset: bool = False) -> Array | None:
    """Return X in `dtype` if it is a finite array that scikit-learn's checks accept, else None.

    This makes the checks unnecessary, which for a single row take longer than the network. Any
    other X, valid or not, is left to the checks. `reset` is as in `read_series`.
    """
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in _FLOATS and X.size > 0
    if not plain or not X.flags.c_contiguous:
        return None
    known = vars(estimator)
    if not reset and (X.shape[1] != known.get("n_features_in_") or _names(estimator) is not None):
        return None
    table = _in_dtype(X, dtype)
    if not np.isfinite(table).all():
        return None
    if reset:
        known.pop("feature_names_in_", None)
        known["n_features_in_"] = X.shape[1]
    return table


def _read_arrays(
    estimator: Any, X: Any, reset: bool, dtype: Any, sequence_column: Any
) -> Sequences:
    """Return the sequences of X without their indexes; parameters as in `read_series`."""
    container = container_of(X)
    if container == "table":
        if_nan = partial(_if_missing, estimator, table_padding_advice, X, None)
        return read_table(estimator, X, reset, dtype, sequence_column, if_nan=if_nan)
    if sequence_column is not None:
        raise ValueError(
            f"sequence_column={sequence_column!r} is for one table of several sequences, but X is "
            "a collection of sequences already. Set sequence_column=None, or pass one table "
            "(model_selection.stack_sequences makes it)."
        )
    if len(X) == 0:
        raise ValueError("X contains no sequences (n_sequences=0); at least 1 is required.")
    stack = _plain_stack(estimator, X, dtype) if container == "array" and not reset else None
    if stack is not None:
        return Sequences(stack, container)  # type: ignore[arg-type]
    # the first item determines the number and the names of the features
    items = enumerate(X)
    arrays = tuple(_read_item(estimator, i, item, reset and i == 0, dtype) for i, item in items)
    return Sequences(arrays, container)


def _plain_stack(estimator: Any, X: Array, dtype: Any) -> Array | None:
    """Return a 3-D array in `dtype` if each item is a `plain_table` with finite values, else None.

    All sequences are checked at once, which is faster if they are many and short.
    """
    if not X.flags.c_contiguous or type(X) is not np.ndarray:
        return None
    if plain_table(estimator, X[0], dtype) is None:
        return None
    stack = _in_dtype(X, dtype)
    return stack if np.isfinite(stack).all() else None


def _read_item(estimator: Any, i: int, item: Any, reset: bool, dtype: Any) -> Array:
    """Return sequence i of a collection as a finite array; messages name the sequence."""
    plain = plain_table(estimator, item, dtype, reset=reset)
    if plain is not None:
        return plain
    name = f"Sequence {i} of X"
    check_numeric(name, item, has_ids=True)
    check_dimensions(estimator, item, name)
    try:
        table = _validate(estimator, item, reset)
    except ValueError as error:
        raise ValueError(f"In sequence {i} of X: {error}") from error
    for_nan = partial(_if_missing, estimator, padding_advice, item, table)
    return as_finite(f"sequence {i} of X", table, dtype, _names(estimator), if_nan=for_nan)


def _if_missing(estimator: Any, cut: Callable[..., str | None], *given: Any) -> str:
    """Return the advice for NaN in X.

    If each sequence has one target, the NaN may be padding; `cut` then returns the code that
    removes it.
    """
    advice = cut(*given) if getattr(estimator, "target", None) == "last" else None
    return advice or _FILL_X


def check_enough_rows(estimator: Any, sequences: Sequences) -> None:
    """Raise if X contains only a single row, and so no step from one time to the next."""
    if sum(sequences.lengths) < 2:
        raise ValueError(
            f"X contains 1 sample (n_samples=1), but {type(estimator).__name__} needs at least 2 "
            "in fit, because it learns from steps. partial_fit accepts rows one by one."
        )


def container_of(X: Any) -> str:
    """Return the kind of container of X: "table", "list", "object" or "array".

    "table" is one table; the others are several sequences, in a list, an object array or a 3-D
    array. A list of lists of numbers is a table. Only a list of 1-D arrays raises an error, because
    it is ambiguous.
    """
    if isinstance(X, np.ndarray):
        if X.ndim == 3:
            return "array"
        if X.dtype == object and X.ndim == 1 and len(X) and _is_table(X[0]):
            return "object"
        return "table"
    if isinstance(X, (list, tuple)) and len(X):
        if isinstance(X[0], np.ndarray) and X[0].ndim == 1 and len(X[0]) != 1:
            raise ValueError(
                f"X is a list of 1-D arrays (the first has shape {X[0].shape}), which is "
                "ambiguous. If they are sequences, each must be 2-D, (n_samples, n_features): "
                f"{code('X = [rows.reshape(-1, 1) for rows in X]')}. If they are the rows of one "
                f"table, stack them: {code('X = np.stack(X)')}."
            )
        return "list" if _is_table(X[0]) else "table"
    return "table"


def sequence_lengths(X: Any, sequence_column: int | str | None) -> tuple[list[int], bool]:
    """Return the number of rows of each sequence, and whether X is one table."""
    if container_of(X) != "table":
        return [len(item) for item in X], False
    # one table: the ids come from the column or, without one, from the outer levels of its index
    ids = None
    if sequence_column is not None:
        names = list(X.columns) if hasattr(X, "columns") else None
        n_columns = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
        number = column_number("sequence_column", sequence_column, names, n_columns)
        ids = column_values(X, number)
    elif getattr(getattr(X, "index", None), "nlevels", 1) > 1:
        ids = X.index.droplevel(-1).to_numpy()
    if ids is None:
        return [X.shape[0] if hasattr(X, "shape") else len(X)], True
    starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
    return np.diff(starts).tolist(), True


def _is_table(item: Any) -> bool:
    """Whether an item of X is itself a table, so that X is a collection of sequences."""
    if hasattr(item, "shape"):  # frames of polars have no `ndim`
        return len(item.shape) == 2
    return isinstance(item, (list, tuple)) and len(item) > 0 and isinstance(item[0], (list, tuple))


def _validate(estimator: Any, X: Any, reset: bool) -> Array:
    """Return a table as a float array, after scikit-learn's checks other than for finite values."""
    # the X of a network that was trained without inputs has no columns
    without_inputs = not reset and getattr(estimator, "n_features_in_", None) == 0
    return validate_data(
        estimator,
        na_as_nan(X),
        reset=reset,
        dtype=list(_FLOATS),
        ensure_all_finite=False,
        order="C",
        ensure_min_features=0 if without_inputs else 1,
    )


def check_dimensions(estimator: Any, X: Any, name: str = "X") -> None:
    """Check that X has two or three dimensions.

    Objects that cannot be converted to an array are left to scikit-learn's checks. `name` is the
    name of X in messages.
    """
    check_has_rows(name, X, "(n_samples, n_features)")
    try:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    except ValueError:  # rows of different lengths
        return
    # one dimension: the remedy depends on the type of X
    if len(shape) == 1:
        column = "rows.reshape(-1, 1)" if hasattr(X, "reshape") else "np.reshape(rows, (-1, 1))"
        column = "rows.to_frame()" if hasattr(X, "to_frame") else column
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {name} has shape {shape}, but must have "
            "shape (n_samples, n_features), one row per time step. Reshape your data: if it is a "
            f"series of one feature, by {code(replaced(name, column))}; if it is one row of "
            f"several features, by {code(replaced(name, 'np.reshape(rows, (1, -1))'))}."
        )
    if len(shape) > 3:
        raise ValueError(
            f"Found array with dim {len(shape)}: {name} has shape {shape}. "
            f"{type(estimator).__name__} accepts one series, (n_samples, n_features), or "
            "several of equal length, (n_sequences, n_samples, n_features). Reshape your data: put "
            "all values of one time step in one row."
        )


def _in_dtype(table: Array, dtype: Any) -> Array:
    """Return a table in `dtype`, in which it may overflow; not copied if it has this dtype."""
    if table.dtype == dtype:
        return table
    with np.errstate(over="ignore"):
        return table.astype(dtype)


def _names(estimator: Any) -> Any:
    """Return the feature names that were set in fit; None if there are none."""
    return vars(estimator).get("feature_names_in_")


_FILL_X = (
    "Fill it before fitting, for instance by interpolation (pandas' interpolate) or with "
    "scikit-learn's SimpleImputer. Dropping the row would shift time: rows are consecutive steps. "
    "Only rows at the start or the end of a series, such as those from lags and padding, may be "
    "removed, together with the same rows of y."
)


def as_finite(
    name: str,
    table: Array,
    dtype: Any,
    names: Any = None,
    *,
    if_nan: Callable[[], str] | None = None,
    allow_nan: bool = False,
) -> Array:
    """Return a table in `dtype`; raise if it contains NaN or infinity.

    The message states the column and row of the first such value. In it, `name` is the name of the
    table, `names` are the names of its columns, and `if_nan` returns the advice for NaN (by default
    the advice for X). If `allow_nan` is True, only infinity raises an error.
    """
    given, table = table, _in_dtype(table, dtype)
    if np.isfinite(table).all():
        return table
    bad = np.isinf(table) if allow_nan else ~np.isfinite(table)
    if not bad.any():
        return table
    # describe the first bad entry
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


def read_table(
    estimator: Any,
    X: Any,
    reset: bool,
    dtype: Any,
    sequence_column: Any,
    *,
    allow_nan: bool = False,
    if_nan: Callable[[Array, int | None, Array | None], str],
) -> Sequences:
    """Return the sequences of one table, split by its id column or its MultiIndex if it has one.

    Parameters as in `read_series`. The ids need not be numbers. If `allow_nan` is True, the table
    may contain NaN; otherwise `if_nan` returns the advice for NaN, given the table, the number of
    its id column and the ids.
    """
    # only one source of ids is allowed
    levels = getattr(getattr(X, "index", None), "nlevels", 1)
    if levels > 1 and sequence_column is not None:
        raise ValueError(
            f"sequence_column={sequence_column!r}, but X has a MultiIndex, which identifies the "
            "sequences, too. Set sequence_column=None, or reset the index."
        )
    if levels > 1:
        check_levels("X", X)
    names = list(X.columns) if hasattr(X, "columns") else None
    if sequence_column is None:
        ids = _ids_of_levels(X.index) if levels > 1 else None
        check_dimensions(estimator, X)
        check_numeric("X", X, has_ids=levels > 1)
        column = None
    else:
        # ids may be strings, so they are replaced before the table is checked to be numeric; the id
        # column itself stays until after scikit-learn's checks, which count it as a feature
        check_dimensions(estimator, X)
        X, ids, column = _take_ids(X, sequence_column, names)
        check_numeric("X", X, has_ids=True)
    table = _validate(estimator, X, reset)
    seen, for_nan = _names(estimator), partial(if_nan, table, column, ids)
    table = as_finite("X", table, dtype, seen, if_nan=for_nan, allow_nan=allow_nan)
    if column is not None:
        if table.shape[1] == 1:
            raise ValueError(
                "X has no column except the id column: at least 1 feature is required."
            )
        table = np.delete(table, column, axis=1)
    # split the table where the id changes
    if ids is None:
        return Sequences((table,), "table")
    starts, firsts = _runs(ids)
    if reset and column is not None and len(starts) == len(ids) > 1:
        _warn_of_single_rows(len(ids), sequence_column)
    parts = tuple(np.split(table, starts[1:]))
    return Sequences(parts, "table", tuple(firsts))


def _warn_of_single_rows(n_rows: int, sequence_column: Any) -> None:
    """Warn that each row of a table is a sequence."""
    warnings.warn(
        f"Each of the {n_rows} rows of X has an id of its own in sequence_column="
        f"{sequence_column!r}, so that no row has a past. If that column contains no ids, as "
        "after a step that returns states or other features only, let the ids pass beside them: "
        'make_column_transformer(("passthrough", [0]), ...).',
        UserWarning,
        stacklevel=caller_level(),
    )


def _ids_of_levels(index: Any) -> Array:
    """Return the ids in the outer levels of a MultiIndex, one per row."""
    missing = (np.array(index.codes[:-1]) < 0).any(axis=0)
    if missing.any():  # NaN differs from itself: every row with NaN would begin a new sequence
        raise ValueError(
            f"The index of X contains NaN in place of an id, first in row "
            f"{int(np.argmax(missing))}. Give each row the id of its sequence, or omit such rows."
        )
    ids: Array = index.droplevel(-1).to_numpy()
    return ids


def _take_ids(X: Any, sequence_column: Any, names: Any) -> tuple[Any, Array, int]:
    """Separate the ids from a table.

    Parameters
    ----------
    X : table
        The table as the user passed it.
    sequence_column : int or str
        Number or name of the id column.
    names : list or None
        The names of the columns of X.

    Returns
    -------
    X : table
        A copy with zeros in the id column, so that it can be checked to be numeric.
    ids : array of shape (n_samples,)
        The original id column.
    column : int
        Number of the id column.
    """
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2 or not shape[1]:
        return check_array(X), np.array([]), 0  # raises: X is not a table
    column = column_number("sequence_column", sequence_column, names, shape[1])
    if hasattr(X, "iloc"):
        ids = X.iloc[:, column].to_numpy()
        missing = X.iloc[:, column].isna().to_numpy()
        X = X.copy()
        X.isetitem(column, np.zeros(len(X)))
    elif is_polars(X):
        given = X.get_column(names[column])
        ids, absent = given.to_numpy(), given.is_null()
        missing = absent.to_numpy() | (ids != ids)
        X = X.with_columns(absent.cast(int))
    else:
        X = np.array(X)
        ids = X[:, column].copy()
        missing = ids != ids
        X[:, column] = 0
    # NaN differs from itself: every row with NaN would begin a new sequence
    if missing.any():
        raise ValueError(
            f"X contains NaN in the id column {column}, first in row {int(np.argmax(missing))}. "
            "Give each row the id of its sequence, or omit such rows."
        )
    return X, ids, column


def _runs(ids: Array) -> tuple[list[int], list[Any]]:
    """Return the first row and the id of each run of equal ids; raise if an id has two runs."""
    starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist()]
    firsts = [ids[i] for i in starts]
    seen: dict[Any, int] = {}
    for start, value in zip(starts, firsts, strict=True):
        if value in seen:
            raise ValueError(
                f"Sequence id {value!r} appears again in row {start} after other ids: rows of one "
                "sequence must be adjacent and in time order. Sort by id and time, and do not "
                "shuffle rows when you split."
            )
        seen[value] = start
    return starts, firsts
