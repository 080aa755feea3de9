"""Read X of estimators: `read`, and the names and the number of its columns."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from reservoir._tables.reading import FLOATS, read
from reservoir._tables.sequences import Sequences
from reservoir._tables.time_column import take_time_stamps
from reservoir._typing import Array
from reservoir._validation.kinds import check_readable, check_without_labels
from reservoir._validation.plain import in_dtype
from reservoir._validation.scalars import caller_level
from reservoir._validation.times import read_times


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
    """Check X and return its sequences, whose arrays have the dtype `dtype`.

    Of y only the index is read, which must match that of X. With `reset`, as in fit, the names and
    the number of columns are set, and dates without a frequency cause a warning; otherwise they
    are checked. `has_times` means that X has a column of times: indexes are checked, but dropped.
    """
    # a single row takes less time than `read`
    if sequence_column is None and (y is None or type(y) is np.ndarray):
        plain = plain_table(estimator, X, dtype, reset=reset)
        if plain is not None:
            return Sequences((plain,), "table")
    check_readable("y", y)
    check_without_labels(X, y, sequence_column)
    # the X of a network that was trained without inputs has no columns
    without_inputs = not reset and getattr(estimator, "n_features_in_", None) == 0
    sequences = read(
        "X",
        X,
        sequence_column=sequence_column,
        dtype=dtype,
        cut=getattr(estimator, "target", None) == "last",
        least_columns=0 if without_inputs else 1,
    )
    note_columns(estimator, X, sequences, reset=reset)
    if not (_has_index(X) or _has_index(y)):
        return sequences
    times = read_times(
        X,
        y,
        is_table=sequences.container == "table",
        lengths=sequences.lengths,
        check_frequency=reset and not has_times,
        continued=not has_times,
    )
    return sequences if has_times else replace(sequences, times=times)


def _has_index(data: Any) -> bool:
    """Whether a table, or one of a collection, is of pandas."""
    several = isinstance(data, (list, tuple)) or (
        isinstance(data, np.ndarray) and data.dtype.hasobject
    )
    kinds = set(map(type, data)) if several else {type(data)}
    return any(hasattr(kind, "iloc") for kind in kinds)


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

    They are float32 if X is, because a float64 copy would take twice its memory, else float64. NaN
    passes if `allow_nan`. `fitted` is the container and the number of channels of the training
    sequences, None in fit. The column of times is no channel; of y only text is read.
    """
    check_without_labels(X, y, sequence_column)
    sequences = read(
        "X",
        X,
        sequence_column=sequence_column,
        rows="series",
        allow_nan=allow_nan,
        fill=_FILL_OR_HOLD if hasattr(estimator, "missing_values") else _FILL_SERIES,
        cut=True,
    )
    kind = sequences.container
    # a column of a 2-D X is a step, not a channel
    if fitted is None or (kind == "rows") == (fitted[0] == "rows"):
        note_columns(estimator, X, sequences, reset=fitted is None)
    elif sequences.arrays[0].shape[1] != fitted[1]:
        raise ValueError(
            f"X was read as series of {sequences.arrays[0].shape[1]} channel(s), but "
            f"{type(estimator).__name__} was fitted on series of {fitted[1]}. Pass a list of "
            "arrays of shape (n_steps, n_channels), also for a single series."
        )
    if kind != "rows" and _has_index(X):  # its index numbers series, not steps
        read_times(X, is_table=kind == "table", lengths=sequences.lengths)
    if time_column is None:
        return sequences
    names = getattr(estimator, "feature_names_in_", None)
    return take_time_stamps(sequences, time_column, names, sequence_column)


_FILL_SERIES = "Fill it first, for instance by interpolation. Dropping the step would shift time."
_FILL_OR_HOLD = (
    'Use missing_values="hold" or "interpolate", or fill it first. Dropping the step would shift '
    "time."
)


def note_columns(estimator: Any, X: Any, sequences: Sequences, *, reset: bool) -> None:
    """Set the number and the names of the columns of an estimator in fit; check them after fit.

    If `reset`, also warn if each row of a table has an id of its own.
    """
    first = X if sequences.container in ("table", "rows") else X[0]
    first = first if sequences.columns else np.empty((1, sequences.width))
    validate_data(estimator, first, reset=reset, skip_check_array=True)
    place = sequences.id_place
    if reset and place is not None and 1 < len(sequences) == sum(sequences.lengths):
        warnings.warn(
            f"Each of the {len(sequences)} rows of X has an id of its own in column "
            f"{place} (sequence_column), so that no row has a past. If that column "
            "contains no ids, as after a step of a pipeline that changes all columns, let the ids "
            "pass beside it, by a ColumnTransformer.",
            UserWarning,
            stacklevel=caller_level(),
        )


def plain_table(estimator: Any, X: Any, dtype: Any, *, reset: bool = False) -> Array | None:
    """Return X in `dtype` if it is a finite array that scikit-learn's checks accept, else None.

    This makes the checks unnecessary, which for a single row take longer than the network. Any
    other X, valid or not, is left to the checks. `reset` is as in `read_series`.
    """
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in FLOATS and X.size > 0
    if not plain or not X.flags.c_contiguous:
        return None
    known = vars(estimator)
    if not reset and X.shape[1] != known.get("n_features_in_"):
        return None
    if not reset and known.get("feature_names_in_") is not None:
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
