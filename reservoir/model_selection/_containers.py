"""Conversions: several sequences to one table, and a series to inputs and targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_count


def stack_sequences(Xs: Any, ys: Any = None) -> tuple[Any, Any, Array]:
    """Stack sequences into one table with an id column in front.

    Pipelines, cross-validation, search and every scorer take such a table, while they do not all
    take lists. The estimators read it with ``sequence_column=0``.

    Parameters
    ----------
    Xs : list, object array or 3-D array of sequences, each of shape (n_samples_i, n_features)
        DataFrames with equal columns give a DataFrame, whose first column is named "sequence".
    ys : list of arrays of shape (n_samples_i,) or (n_samples_i, n_outputs), default=None
        The targets of each sequence, one per row, in a list, an object array or an array.

    Returns
    -------
    X : ndarray or DataFrame of shape (sum of n_samples_i, 1 + n_features)
        Column 0 holds the ids 0., 1., ..., n_sequences - 1.
    y : ndarray of shape (sum of n_samples_i,) or (sum of n_samples_i, n_outputs), or None
        None where `ys` is None.
    groups : ndarray of int, of shape (sum of n_samples_i,)
        The ids again, for `sklearn.model_selection.GroupKFold` and its like.

    Raises
    ------
    ValueError
        If there is no sequence, a sequence is not 2-D or empty, or the lengths of X and y, the
        numbers of features or the numbers of outputs differ.

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
    frames = [X if hasattr(X, "iloc") else np.asarray(X) for X in Xs]
    lengths = _check_items("Xs", frames, None)
    groups = np.repeat(np.arange(len(frames)), lengths)
    y = None
    if ys is not None:
        targets = [np.asarray(item) for item in ys]
        _check_items("ys", targets, lengths)
        y = np.concatenate(targets)
    # a DataFrame only if all are: otherwise the column names would be lost
    if all(hasattr(frame, "iloc") for frame in frames):
        import pandas as pd

        table = pd.concat(frames, ignore_index=True)
        table.insert(0, "sequence", groups.astype(float))
        return table, y, groups
    return np.column_stack([groups.astype(float), np.concatenate(frames)]), y, groups


def from_channels_first(X: Any) -> Any:
    """Turn sequences whose channels come first, as aeon and sktime hold them, into ours.

    Nothing is guessed: each sequence is transposed.

    Parameters
    ----------
    X : array of shape (n_sequences, n_channels, n_steps), or list of arrays (n_channels, n_steps_i)

    Returns
    -------
    array of shape (n_sequences, n_steps, n_channels), or list of arrays (n_steps_i, n_channels)
        Views, not copies.

    Raises
    ------
    ValueError
        If X, or an item of a list, has another number of dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.model_selection import from_channels_first
    >>> from_channels_first(np.zeros((10, 3, 50))).shape
    (10, 50, 3)
    >>> [x.shape for x in from_channels_first([np.zeros((3, 50)), np.zeros((3, 20))])]
    [(50, 3), (20, 3)]
    """
    if isinstance(X, (list, tuple)):
        items = [np.asarray(item) for item in X]
        for i, item in enumerate(items):
            if item.ndim != 2:
                raise ValueError(
                    f"X[{i}] has shape {item.shape}; (n_channels, n_steps) is required. A series "
                    "of one channel is item[None]."
                )
        return [item.T for item in items]
    array = np.asarray(X)
    if array.ndim != 3:
        raise ValueError(
            f"X has shape {array.shape}; (n_sequences, n_channels, n_steps) is required. Series of "
            "one channel, one per row, need no change."
        )
    return array.transpose(0, 2, 1)


def _check_items(name: str, items: list[Any], lengths: list[int] | None) -> list[int]:
    """Return the number of rows of each item, after checks.

    `name` is that of the parameter; `lengths` are the numbers of rows that targets must have, and
    None for the sequences themselves.
    """
    if not items or (lengths is not None and len(items) != len(lengths)):
        wanted = "at least 1 is required" if lengths is None else f"Xs holds {len(lengths)}"
        raise ValueError(f"{name} holds {len(items)} sequences; {wanted}. Give one per sequence.")
    # each item by itself, then beside the first one and beside its sequence
    allowed = (2,) if lengths is None else (1, 2)
    for i, item in enumerate(items):
        if item.ndim not in allowed or len(item) == 0:
            shape = "(n_samples, n_features)" if lengths is None else "(n_samples,) or 2-D"
            raise ValueError(
                f"{name}[{i}] has shape {item.shape}; {shape} with n_samples >= 1 is required. "
                f"{_REMEDY[lengths is None]}"
            )
        if item.shape[1:] != items[0].shape[1:]:
            raise ValueError(
                f"{name}[{i}] has shape {item.shape}, {name}[0] has {items[0].shape}: all need the "
                "same number of columns."
            )
        if list(getattr(item, "columns", [])) != list(getattr(items[0], "columns", [])):
            raise ValueError(f"The columns of {name}[{i}] are not those of {name}[0]. Rename them.")
        if lengths is not None and len(item) != lengths[i]:
            raise ValueError(
                f"{name}[{i}] has {len(item)} rows, Xs[{i}] has {lengths[i]}: they must agree, a "
                "target per row."
            )
    return [len(item) for item in items]


_REMEDY = {
    True: "Reshape a series of one variable by reshape(-1, 1).",
    False: "Repeat a label of a whole sequence for each of its rows.",
}


def make_forecast_pairs(series: Any, horizon: int = 1) -> tuple[Any, Any]:
    """Turn a series into inputs and the targets `horizon` steps ahead.

    ``X[t] = series[t]`` and ``y[t] = series[t + horizon]``. Horizon 1 gives the pairs that
    closed-loop forecasting needs.

    Parameters
    ----------
    series : array-like of shape (n_samples,) or (n_samples, n_features), or a collection of them
        A collection is a list of arrays or DataFrames, an object array or a 3-D array; a nested
        list of numbers is one table. A pandas series gives pandas X and y, with the same index.
    horizon : int, steps, default=1
        How far ahead the targets lie.

    Returns
    -------
    X : ndarray or DataFrame of shape (n_samples - horizon, n_features)
        Always 2-D; for a collection one for each item, in the same container.
    y : ndarray, Series or DataFrame, (n_samples - horizon,) or (n_samples - horizon, n_features)
        As many dimensions as the series.

    Raises
    ------
    TypeError, ValueError
        If horizon is not an integer of at least 1 or is not smaller than every series, or if a
        series has neither 1 nor 2 dimensions.

    Examples
    --------
    >>> from reservoir.model_selection import make_forecast_pairs
    >>> X, y = make_forecast_pairs([1.0, 2.0, 4.0, 8.0], horizon=2)
    >>> X.ravel(), y
    (array([1., 2.]), array([4., 8.]))
    """
    horizon = check_count("horizon", horizon)
    # a collection: pairs of each item, so that none reaches into the next sequence
    if isinstance(series, (list, tuple)) and any(hasattr(item, "shape") for item in series):
        if np.ndim(series[0]) > 0:
            pairs = [_pair(item, horizon, f"series {i}") for i, item in enumerate(series)]
            return [X for X, _ in pairs], [y for _, y in pairs]
    elif isinstance(series, np.ndarray) and series.dtype == object and np.ndim(series[0]) > 0:
        packed = np.empty((2, len(series)), dtype=object)
        for i, item in enumerate(series):
            packed[0, i], packed[1, i] = _pair(item, horizon, f"series {i}")
        return packed[0], packed[1]
    elif isinstance(series, np.ndarray) and series.ndim == 3:
        _check_length(series.shape[1], horizon, "each series")
        return series[:, :-horizon].copy(), series[:, horizon:].copy()
    return _pair(series, horizon, "the series")


def _pair(series: Any, horizon: int, name: str) -> tuple[Any, Any]:
    """Return inputs and targets of a single series; `name` is what messages call it."""
    if getattr(getattr(series, "index", None), "nlevels", 1) > 1:
        raise ValueError(
            f"{name} has a MultiIndex, so pairs would reach from one sequence into the next. Give "
            "a list with a frame per sequence."
        )
    values = series if hasattr(series, "iloc") else np.array(series)
    if values.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {values.shape}; (n_samples,) or (n_samples, n_features) is required."
        )
    _check_length(len(values), horizon, name)
    # pandas' y takes the index of X, so that the two align row by row
    if isinstance(values, np.ndarray):
        X = values[:-horizon]
        return X.reshape(len(X), -1), values[horizon:]
    frame = values if values.ndim == 2 else values.to_frame()
    X = frame.iloc[:-horizon]
    return X, values.iloc[horizon:].set_axis(X.index)


def _check_length(n_samples: int, horizon: int, name: str) -> None:
    """Refuse a series that is too short to hold a target."""
    if n_samples <= horizon:
        raise ValueError(
            f"horizon={horizon} must be smaller than the number of rows; {name} has "
            f"n_samples={n_samples}. Lower it, or give a longer series."
        )
