"""Read y and sample_weight, whose entries belong to rows or to whole sequences."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from reservoir._tables.frames import is_missing
from reservoir._tables.reading import as_table, has_levels
from reservoir._tables.sequences import Sequences
from reservoir._typing import Array
from reservoir._validation.kinds import (
    check_dense,
    check_has_rows,
    check_no_dates,
    check_no_text,
    check_not_complex,
    na_as_nan,
)
from reservoir._validation.plain import as_finite

_IF_ROWS = (
    " Each row of a 2-D X is read as one series; a table of several series needs an id column "
    "(sequence_column) or a MultiIndex."
)
_NOT_TEXT = "Labels are for classifiers; text that marks a missing value must be replaced by NaN."


def plain_rows(
    values: Any, sequences: Sequences, *, kinds: str, ndims: tuple[int, ...] = (1, 2)
) -> Array | None:
    """Return y if it is a NumPy array with one entry per row of a single table, else None.

    `kinds` are the allowed kinds of its dtype. Such an array needs no other checks, which for a
    single row take longer than the network.
    """
    if type(values) is not np.ndarray or values.dtype.kind not in kinds:
        return None
    one = sequences.container == "table" and sequences.ids is None and values.ndim in ndims
    return values if one and values.shape[:1] == sequences.arrays[0].shape[:1] else None


def _rows(name: str, values: Any, sequences: Sequences) -> Array:
    """Return the rows of all sequences in turn, as many as each sequence has.

    `values` is y or sample_weight in the container of X; `name` is its name in messages.
    """
    if values is None:
        raise ValueError(f"{name} is None, but X contains {len(sequences)} sequences.")
    check_dense(name, values)
    n_rows, one = sum(sequences.lengths), sequences.container == "table"
    several = f"(n_samples_i,) for each of n_sequences={len(sequences)}"
    check_has_rows(name, values, f"(n_samples={n_rows},)" if one else several)
    # X is one table: `values` must have as many rows
    if one:
        rows = _read(name, values)
        if len(rows) != n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has "
                f"n_samples={n_rows}, but {name} has shape {rows.shape}."
            )
        return rows
    # X is a collection: `values` must have one item per sequence
    n_items = len(values) if hasattr(values, "__len__") else "one value"
    if n_items != len(sequences):
        raise ValueError(f"X contains {len(sequences)} sequences, but {name} contains {n_items}.")
    if any(np.ndim(item) == 0 for item in values):
        raise ValueError(
            f"{name} has one value for a sequence of X, but needs one for each row. "
            'With target="last", RNNRegressor and RNNClassifier accept one value per sequence.'
        )
    items = [_read(f"item {i} of {name}", item) for i, item in enumerate(values)]
    for i, (item, n_samples) in enumerate(zip(items, sequences.lengths, strict=True)):
        if len(item) != n_samples:
            raise ValueError(
                f"Sequence {i} of X has n_samples={n_samples}, but item {i} of {name} has shape "
                f"{item.shape}."
            )
        if item.shape[1:] != items[0].shape[1:]:
            raise ValueError(
                f"sequence {i} of {name} has shape {item.shape}, but sequence 0 has "
                f"{items[0].shape}. All sequences need the same number of outputs."
            )
    return np.concatenate(items)


def _read(name: str, values: Any) -> Array:
    """Return y or sample_weight, or one item of them, as an array of any dtype."""
    if type(values) is np.ndarray and values.dtype.kind in "biuf" and 0 < values.ndim < 3:
        return values  # there may be many thousands
    values = as_table(name, values)
    options: Any = {"ensure_2d": False, "allow_nd": True, "ensure_all_finite": False}
    rows = na_as_nan(check_array(na_as_nan(values), dtype=None, **options))
    if rows.ndim > 2:
        raise ValueError(
            f"Found array with dim {rows.ndim}: {name} has shape {rows.shape}, but 1 or 2 axes are "
            "needed. Reshape it."
        )
    return rows


def read_targets(
    estimator: Any,
    y: Any,
    sequences: Sequences,
    *,
    allow_nan: bool = False,
    per_sequence: bool = False,
) -> tuple[list[Array], int]:
    """Return one float64 array of shape (n_samples_i, n_outputs) per sequence, and y's ``ndim``.

    The latter is 2 if y, or each of its items, has a column axis, else 1. If `per_sequence`, the
    arrays have shape (n_outputs,). Infinity raises an error; so does NaN, unless `allow_nan`.
    """
    plain = None if per_sequence else plain_rows(y, sequences, kinds="f")
    if plain is not None and plain.dtype == np.float64 and plain.size:
        rows = plain
    else:
        check_targets(y)
        rows = _stacked(estimator, y, sequences, per_sequence)
        check_targets(rows)
        rows = check_array(rows, dtype=np.float64, ensure_2d=False, ensure_all_finite=False)
    table = rows if rows.ndim == 2 else rows[:, None]
    several = not per_sequence and sequences.container != "table"
    as_finite(
        "y",
        np.where(np.isnan(table), 0.0, table) if allow_nan else table,
        np.float64,
        if_nan=lambda _: _if_target_is_missing(estimator, last=per_sequence),
        bounds=sequences.bounds if several else None,
    )
    return list(table) if per_sequence else sequences.split(table), rows.ndim


def check_targets(y: Any) -> None:
    """Raise if a table or an array of targets contains dates, complex numbers or text."""
    check_dense("y", y)
    check_no_dates("y", y)
    check_not_complex("y", y)
    if hasattr(y, "dtype"):
        check_no_text("y", y, _NOT_TEXT)


def _stacked(estimator: Any, y: Any, sequences: Sequences, per_sequence: bool) -> Array:
    """Return y with the rows of all sequences in turn, or one for each if `per_sequence`."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if has_levels(y) and sequences.ids is None and not per_sequence:
        raise ValueError(
            "y has a MultiIndex, which identifies the sequences, but X has none: an earlier step "
            'has dropped it. Let all steps return tables, `set_output(transform="pandas")`, or use '
            "sequence_column."
        )
    return _one_per_sequence("y", y, sequences) if per_sequence else _rows("y", y, sequences)


def with_targets(y: Any, *, labels: bool = False) -> tuple[Array, Array]:
    """Return y, and a mask of the rows whose targets are known.

    y is converted to float64, unless it contains labels (`labels=True`). Raise if no target is
    known.
    """
    if labels:
        rows, known = known_labels(y)
    else:
        y = as_table("y", y)
        check_targets(y)
        rows = check_array(
            _read("y", y), dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan"
        )
        known = ~np.isnan(rows).reshape(len(rows), -1).any(axis=1)
    if not known.any():
        raise ValueError(
            f"There is nothing to score: all {len(rows)} rows of y have a missing target (NaN). "
            "Score rows whose targets are known."
        )
    return rows, known


def read_labels(
    estimator: Any,
    y: Any,
    sequences: Sequences,
    *,
    allow_missing: bool = False,
    per_sequence: bool = False,
) -> tuple[list[Array], list[Array]]:
    """Return the labels of each sequence, and a mask of those that are not missing.

    They have shape (n_samples_i,), or (1,) if `per_sequence`.
    """
    rows, known = known_labels(_stacked(estimator, y, sequences, per_sequence))
    some = rows[known]
    infinite = some.dtype.kind == "f" and np.isinf(some).any()
    if infinite or not (allow_missing or known.all()):
        what = "infinity" if infinite else "NaN: a label is missing"
        advice = _if_target_is_missing(estimator, last=per_sequence)
        raise ValueError(f"Input y contains {what}. {advice}")
    ends = np.arange(1, len(rows)) if per_sequence else sequences.bounds[1:-1]
    return np.split(rows, ends), np.split(known, ends)


def known_labels(y: Any) -> tuple[Array, Array]:
    """Return labels as an array of shape (n_rows,), and a mask of the labels that are not missing.

    Missing labels are NaN, None or pandas' NA. They are replaced by a known label; then an object
    array of numbers or booleans is converted to a numeric or boolean dtype.
    """
    rows = check_array(y, dtype=None, ensure_2d=False, ensure_all_finite=False)
    columns = rows.ndim == 2 and rows.shape[1] > 1 and rows.dtype.kind in "biuf"
    if columns and np.isin(rows, (0, 1)).all() and (rows.sum(axis=1) == 1).all():
        raise ValueError(
            f"y should be a 1d array, got an array of shape {rows.shape} instead: it has a column "
            "of 0 and 1 for each label. Pass the labels, such as the argmax of each row."
        )
    rows = column_or_1d(rows, warn=True)
    if rows.dtype.kind == "f":
        known = ~np.isnan(rows)
    elif rows.dtype.kind == "O":
        known = np.array([not is_missing(label) for label in rows], dtype=bool)
    else:
        known = np.ones(len(rows), dtype=bool)
    if known.all() or not known.any():
        return rows, known
    rows = np.where(known, rows, rows[np.argmax(known)])
    if rows.dtype.kind == "O" and not any(isinstance(label, str) for label in rows):
        rows = np.array(rows.tolist())
    return rows, known


def _if_target_is_missing(estimator: Any, *, last: bool = False) -> str:
    """Return the advice for NaN in y, which depends on the estimator's parameters.

    `last` means that y has one target per sequence.
    """
    if last:
        return "Omit that sequence from X and y."
    # estimators that can skip such rows, unless every target is fed back into the reservoir
    parameters = estimator.get_params(deep=False)
    if "missing_targets" in parameters and not np.any(parameters.get("feedback")):
        return (
            'Use missing_targets="skip", which excludes such rows from the fit while they still '
            "drive the network, or fill y."
        )
    if "missing_targets" in parameters:
        return (
            "Fill y: with feedback=True every target is fed back into the next step, so "
            'missing_targets="skip" is not possible.'
        )
    return (
        f"{type(estimator).__name__} has no parameter missing_targets. Fill y, or set any valid "
        "value there and sample_weight=0 for that row in fit, so that the row drives the network "
        "but is not learned from. Dropping the row would shift time."
    )


def read_weights(
    sample_weight: Any,
    sequences: Sequences,
    *,
    all_zero: bool = False,
    per_sequence: bool = False,
) -> list[Array] | None:
    """Return one float64 array of weights per sequence; raise if a weight is negative.

    They have shape (n_samples_i,), or (1,) if `per_sequence`. If `all_zero` is True, all weights
    may be 0, as is possible in a chunk of rows.
    """
    if sample_weight is None:
        return None
    ends = np.arange(len(sequences) + 1) if per_sequence else sequences.bounds
    if isinstance(sample_weight, numbers.Real):
        rows = np.full(ends[-1], sample_weight)
    else:
        read = _one_per_sequence if per_sequence else _rows
        rows = read("sample_weight", sample_weight, sequences)
    if all_zero and rows.ndim == 1 and rows.dtype.kind in "iuf" and not rows.any():
        rows = rows.astype(np.float64)
    else:
        rows = _check_sample_weight(rows, rows, dtype=np.float64, ensure_non_negative=True)
    return np.split(rows, ends[1:-1])


def is_per_row(values: Any, sequences: Sequences) -> bool:
    """Whether y or sample_weight has one entry per row of a table, not one per sequence."""
    n_rows = sum(sequences.lengths)
    has_length = hasattr(values, "__len__") or hasattr(values, "shape")
    return (
        sequences.ids is not None
        and has_length
        and np.ndim(values) > 0
        and n_rows == np.shape(values)[0] != len(sequences)
    )


def _one_per_sequence(name: str, values: Any, sequences: Sequences) -> Array:
    """Return y or sample_weight as an array with one row per sequence, for ``target="last"``.

    If X is a table of several sequences, there may be one entry for each row, constant within each
    sequence.
    """
    check_dense(name, values)
    check_has_rows(name, values, f"(n_sequences={len(sequences)},)")
    rows = _read(name, values)
    if is_per_row(rows, sequences):
        return _constant_rows(name, rows, sequences)
    if len(rows) != len(sequences):
        by_row = f", or one for each of the {sum(sequences.lengths)} rows, constant within an id"
        raise ValueError(
            f"X contains {len(sequences)} sequence(s), but {name} has shape {rows.shape}: there "
            f"must be one entry for each sequence, {name} of shape (n_sequences,)"
            + (" or (n_sequences, n_outputs)" if name == "y" else "")
            + ("." if sequences.ids is None else f"{by_row}.")
            + (_IF_ROWS if sequences.container == "rows" else "")
        )
    _check_same_order(name, values, sequences)
    return rows


def _constant_rows(name: str, rows: Array, sequences: Sequences) -> Array:
    """Return the first row of each sequence; raise unless all its rows are equal."""
    assert sequences.ids is not None
    first = rows[sequences.bounds[:-1]]
    given = np.repeat(first, sequences.lengths, axis=0)
    differ = (rows != given) & ~((rows != rows) & (given != given))  # NaN is reported later
    if differ.any():
        row = int(np.argmax(differ.reshape(len(rows), -1).any(axis=1)))
        value = sequences.ids[sequences.locate(row)[0]]
        raise ValueError(
            f"{name} has one entry for each row, so it must be constant within a sequence; but "
            f"in the sequence with id {value!r} it changes from {given[row]!r} to {rows[row]!r}. "
            "This estimator has one target per sequence; ESNClassifier and ESNRegressor accept "
            "one per step."
        )
    return first


def _check_same_order(name: str, values: Any, sequences: Sequences) -> None:
    """Raise if the index of y contains the ids of X in another order."""
    index: Any = getattr(values, "index", None)
    if sequences.ids is None or not hasattr(index, "nlevels") or index.nlevels > 1:
        return
    ids = list(sequences.ids)
    if list(index) != ids and set(index) == set(ids):
        raise ValueError(
            f"The index of {name} contains the ids of X in another order: X begins with "
            f"{ids[0]!r}, but {name} with {index[0]!r}. Put them into the order of X (loc) or, "
            "if the values are in that order already, drop the index (to_numpy)."
        )
