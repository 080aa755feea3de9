"""Sequences as plain arrays, for functions without an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation.plain import as_array, as_plain, check_unmasked

_ROWS = 2**16  # rows of short arrays that are grouped


def read_arrays(
    name: str,
    values: Any,
    dtype: Any,
    *,
    ndim: int = 2,
    remedy: str = "Exclude rows by sample_weight=0.",
) -> list[Array]:
    """Return `values`, one sequence or several, as a list of arrays with `ndim` axes each.

    `values` is one array, a stack of arrays or a list of arrays. Each sequence must have at least
    one row and finite values only; all must have the same number of columns.
    """
    check_unmasked(name, values)
    if isinstance(values, (list, tuple)) and len(values) and np.ndim(values[0]) == ndim:
        parts = [np.asarray(part, dtype=dtype) for part in values]
    else:
        array = np.asarray(as_array(name, values), dtype=dtype)
        parts = [array] if array.ndim == ndim else list(array) if array.ndim == ndim + 1 else []
    if not parts or any(part.ndim != ndim or len(part) == 0 for part in parts):
        several = isinstance(values, (list, tuple))
        raise ValueError(
            f"{name} must be one sequence of rows (n_samples, n_columns), an array "
            f"(n_sequences, n_steps, n_columns) or a list of 2-D arrays; got shape "
            f"{[np.shape(value) for value in values] if several else np.shape(values)}."
        )
    if len({part.shape[1:] for part in parts}) > 1 or 0 in parts[0].shape:
        raise ValueError(
            f"all sequences of {name} must have the same number of columns, and at least one."
        )
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError(f"{name} contains NaN or infinity. {remedy}")
    return parts


def read_array_targets(Y: Any, inputs: list[Array], *, last: bool) -> list[Array]:
    """Return the targets in the dtype of the inputs, as one array per sequence.

    The array has a row per row of the input; if `last`, it is the single target of the sequence.
    """
    dtype = inputs[0].dtype
    if last:
        rows = as_plain("Y", Y, dtype)
        if rows.ndim != 2 or len(rows) != len(inputs):
            raise ValueError(
                f'target="last" needs Y of shape (n_sequences={len(inputs)}, n_outputs); got '
                f"{rows.shape}."
            )
        if not np.isfinite(rows).all():
            raise ValueError("Y contains NaN or infinity.")
        return list(rows)
    targets = read_arrays("Y", Y, dtype)
    if len(inputs) != len(targets):
        raise ValueError(
            f"X has {len(inputs)} sequences, but Y has {len(targets)}. Both need the same number."
        )
    for i, (rows, wanted) in enumerate(zip(inputs, targets, strict=True)):
        if len(rows) != len(wanted):
            raise ValueError(
                f"sequence {i} has {len(rows)} rows in X, but {len(wanted)} in Y. Both need the "
                "same number."
            )
    return targets


def read_array_weights(
    sample_weight: Any, inputs: list[Array], *, last: bool
) -> list[Array] | None:
    """Return an array of non-negative weights, one per target, for each sequence.

    If `sample_weight` is None, return None.
    """
    if sample_weight is None:
        return None
    if last:
        parts = list(as_plain("sample_weight", sample_weight, np.float64).reshape(-1, 1))
    else:
        parts = read_arrays("sample_weight", sample_weight, np.float64, ndim=1)
    shapes = [part.shape for part in parts]
    if shapes != [(1,) if last else (len(rows),) for rows in inputs]:
        raise ValueError(f"sample_weight must have one number per target; got shapes {shapes}.")
    if any((part < 0).any() or not np.isfinite(part).all() for part in parts):
        raise ValueError("sample_weight must be finite and at least 0 in every row.")
    return parts


def together(arrays: Sequence[Array]) -> Iterator[list[Array]]:
    """Yield the arrays in order, in groups: a group ends once it has 65,536 rows or more."""
    group: list[Array] = []
    n_rows = 0
    for rows in arrays:
        group.append(rows)
        n_rows += len(rows)
        if n_rows >= _ROWS:
            yield group
            group, n_rows = [], 0
    if group:
        yield group


def joined(arrays: Sequence[Array]) -> Array:
    """Return the arrays concatenated along the first axis; a single array is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def check_csr(name: str, matrix: Any) -> None:
    """Raise if a compressed sparse array has indices outside its shape.

    Products use these indices unchecked, and would read memory outside the array. SciPy's
    ``check_format(full_check=True)`` misses pointers whose differences overflow. Other formats are
    checked when they are converted.
    """
    if getattr(matrix, "format", None) not in ("csr", "csc"):
        return
    n_rows, n_columns = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    pointers, indices = matrix.indptr, matrix.indices
    if (
        len(pointers) != n_rows + 1
        or pointers[0] != 0
        or not (pointers[:-1] <= pointers[1:]).all()
        or not pointers[-1] <= min(len(indices), len(matrix.data))
        or (len(indices) and not (indices.min() >= 0 and indices.max() < n_columns))
    ):
        raise ValueError(f"{name} has indices outside its shape {matrix.shape}.")
