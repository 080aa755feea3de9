"""The sequences in X, and the checks that need nothing but arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.times import NO_TIMES, Times

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
    table = in_dtype(X, dtype)
    if not np.isfinite(table).all():
        return None
    if reset:
        known.pop("feature_names_in_", None)
        known["n_features_in_"] = X.shape[1]
    return table


def check_enough_rows(estimator: Any, sequences: Sequences) -> None:
    """Raise if X contains only a single row, and so no step from one time to the next."""
    if sum(sequences.lengths) < 2:
        raise ValueError(
            f"X contains 1 sample (n_samples=1), but {type(estimator).__name__} needs at least 2 "
            "in fit, because it learns from steps. partial_fit accepts rows one by one."
        )


def in_dtype(table: Array, dtype: Any) -> Array:
    """Return a table in `dtype`, in which it may overflow; not copied if it has this dtype."""
    if table.dtype == dtype:
        return table
    with np.errstate(over="ignore"):
        return table.astype(dtype)


def _names(estimator: Any) -> Any:
    """Return the feature names that were set in fit; None if there are none."""
    return vars(estimator).get("feature_names_in_")


FILL = (
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
    given, table = table, in_dtype(table, dtype)
    if np.isfinite(table).all():
        return table
    bad = np.isinf(table) if allow_nan else ~np.isfinite(table)
    if not bad.any():
        return table
    row, column = (int(i) for i in np.argwhere(bad)[0])
    where = f"column {column}{'' if names is None else f' ({names[column]!r})'}, first in row {row}"
    fill = FILL if if_nan is None else if_nan()
    raise ValueError(not_finite(name, where, given[row, column], table[row, column], dtype, fill))


def not_finite(name: str, where: str, given: Any, value: Any, dtype: Any, fill: str) -> str:
    """Return the error message for a value that is NaN or infinite in `dtype`, and was `given`.

    `name` is the name of the table, `where` the place in it, and `fill` the advice for NaN.
    """
    if np.isnan(value):
        what, remedy = "NaN", fill
    elif np.isfinite(given):
        what, remedy = "infinity (inf)", f"{given:.3g} overflows: scale the data."
    else:
        what, remedy = "infinity (inf)", "Replace it by a finite value."
    return f"{name} contains {what} in {where}, as {np.dtype(dtype).name}. {remedy}"
