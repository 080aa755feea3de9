"""Conversions between containers of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._tables.frames import check_moved, is_pandas, stacked
from reservoir._typing import Array
from reservoir._validation import check_unmasked
from reservoir._validation.kinds import check_dense, check_has_rows


def stack_sequences(Xs: Any, ys: Any = None) -> tuple[Any, Any, Array]:
    """Stack sequences into one table whose first column contains sequence ids.

    Pipelines, cross-validation, search and every scorer accept such a table, but not all of them
    accept lists. The estimators read it with ``sequence_column=0``.

    Parameters
    ----------
    Xs : list, object array or 3-D array of sequences, each of shape (n_samples_i, n_features)
        The sequences. If all are DataFrames with the same columns, X is a DataFrame, whose first
        column is named "sequence".
    ys : list of arrays of shape (n_samples_i,) or (n_samples_i, n_outputs), default=None
        The targets of each sequence, one per row, in a list, an object array or an array.

    Returns
    -------
    X : ndarray or DataFrame of shape (sum of n_samples_i, 1 + n_features)
        Column 0 contains the ids 0., 1., ..., n_sequences - 1.
    y : ndarray of shape (sum of n_samples_i,) or (sum of n_samples_i, n_outputs), or None
        None if `ys` is None.
    groups : ndarray of int, of shape (sum of n_samples_i,)
        The ids again, for group splitters such as `sklearn.model_selection.GroupKFold`.

    Raises
    ------
    TypeError, ValueError
        If there is no sequence, a sequence is empty, not 2-D, masked, sparse or of dates, or the
        lengths of X and y, the numbers of features or the numbers of outputs differ.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.model_selection import stack_sequences
    >>> X, y, groups = stack_sequences([np.ones((2, 1)), np.zeros((3, 1))], [[1, 2], [3, 4, 5]])
    >>> X
    array([[0., 1.],
           [0., 1.],
           [1., 0.],
           [1., 0.],
           [1., 0.]])
    >>> y, groups
    (array([1, 2, 3, 4, 5]), array([0, 0, 1, 1, 1]))
    """
    check_has_rows("Xs", Xs, "(n_sequences, n_samples, n_features), or a list of tables,")
    check_dense("Xs", Xs)
    for i, X in enumerate(Xs):
        _check_values(f"Xs[{i}]", X)
    frames = [X if is_pandas(X) else np.asarray(X) for X in Xs]
    lengths = _check_items("Xs", frames, None)
    groups = np.repeat(np.arange(len(frames)), lengths)
    y = None
    if ys is not None:
        check_unmasked("ys", ys)
        targets = [np.asarray(item) for item in ys]
        _check_items("ys", targets, lengths)
        y = np.concatenate(targets)
    # a DataFrame only if all are: otherwise the column names would be lost
    if all(map(is_pandas, frames)):
        table = stacked(frames, ignore_index=True)
        table.insert(0, "sequence", groups.astype(float))
        return table, y, groups
    return np.column_stack([groups.astype(float), np.concatenate(frames)]), y, groups


def from_channels_first(X: Any) -> Any:
    """Convert sequences with channels first, as in aeon and sktime, to time first.

    Every sequence is transposed, without regard to its shape.

    Parameters
    ----------
    X : array of shape (n_sequences, n_channels, n_steps), or list of arrays (n_channels, n_steps_i)

    Returns
    -------
    array of shape (n_sequences, n_steps, n_channels), or list of arrays (n_steps_i, n_channels)
        Views, not copies.

    Raises
    ------
    TypeError, ValueError
        If X is an array that is not 3-D, or a list with an item that is not 2-D, masked, sparse or
        of dates.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.model_selection import from_channels_first
    >>> from_channels_first(np.zeros((10, 3, 50))).shape
    (10, 50, 3)
    >>> [x.shape for x in from_channels_first([np.zeros((3, 50)), np.zeros((3, 20))])]
    [(50, 3), (20, 3)]
    """
    check_dense("X", X)
    check_has_rows("X", X, "(n_sequences, n_channels, n_steps)")
    if isinstance(X, (list, tuple)):
        for i, item in enumerate(X):
            _check_values(f"X[{i}]", item)
        items = [np.asarray(item) for item in X]
        for i, item in enumerate(items):
            if item.ndim != 2:
                raise ValueError(
                    f"X[{i}] has shape {item.shape}; (n_channels, n_steps) is required."
                    f"{' np.atleast_2d makes one of a single channel.' if item.ndim == 1 else ''}"
                )
        return [item.T for item in items]
    array = np.asarray(X)
    if array.ndim != 3:
        raise ValueError(
            f"X has shape {array.shape}; (n_sequences, n_channels, n_steps) is required. Series of "
            "one channel, one per row, need no change."
        )
    return array.transpose(0, 2, 1)


def _check_values(name: str, item: Any) -> None:
    """Check that a sequence has rows of equal length, and neither dates nor complex numbers."""
    if type(item) is np.ndarray and item.dtype.kind in "biuf" and item.ndim == 2 and len(item):
        return  # there may be many thousands
    check_moved(name, item)


def _check_items(name: str, items: list[Any], lengths: list[int] | None) -> list[int]:
    """Check the items of a parameter, and return the number of rows in each.

    `name` is the parameter's name; `lengths` are the numbers of rows that targets must have, or
    None for the sequences.
    """
    if not items or (lengths is not None and len(items) != len(lengths)):
        wanted = "at least 1 is required" if lengths is None else f"Xs contains {len(lengths)}"
        raise ValueError(
            f"{name} contains {len(items)} sequences; {wanted}. Give one item per sequence."
        )
    # each item alone, then compared with the first one and with its sequence
    allowed = (2,) if lengths is None else (1, 2)
    for i, item in enumerate(items):
        if item.ndim not in allowed or len(item) == 0:
            shape = "(n_samples, n_features)" if lengths is None else "(n_samples,) or 2-D"
            raise ValueError(
                f"{name}[{i}] has shape {item.shape}; {shape} with n_samples >= 1 is "
                f"required.{_shape_advice(item, is_target=lengths is not None)}"
            )
        if item.shape[1:] != items[0].shape[1:]:
            raise ValueError(
                f"{name}[{i}] has shape {item.shape}, but {name}[0] has {items[0].shape}: all need "
                "the same number of columns."
            )
        if list(getattr(item, "columns", [])) != list(getattr(items[0], "columns", [])):
            raise ValueError(
                f"{name}[{i}] and {name}[0] have different column names. Rename the columns."
            )
        if lengths is not None and len(item) != lengths[i]:
            raise ValueError(
                f"{name}[{i}] has {len(item)} rows, but Xs[{i}] has {lengths[i]}: one target per "
                "row is required."
            )
    return [len(item) for item in items]


def _shape_advice(item: Any, *, is_target: bool) -> str:
    """Return the advice for an item of the wrong shape."""
    if is_target:
        return " Repeat the label of a whole sequence for each of its rows."
    if item.ndim == 1:
        return " reshape(-1, 1) makes one of a single variable."
    return ""
