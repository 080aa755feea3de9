"""Coded inputs: a single column of integer codes, which represent one-hot rows.

If a network whose weights have `n_features` input columns receives a single column of integers from
0 to `n_features` - 1, code k represents a 1 in column k and 0 elsewhere. The one-hot array is not
created.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from reservoir._typing import Array


def are_codes(X: Array, n_features: int) -> bool:
    """Whether inputs are one column of integer codes, instead of n_features columns of numbers."""
    return X.shape[-1] == 1 < n_features


def places_of(X: Array) -> Array:
    """Return codes (..., 1) as a flat array of column indices."""
    return X.reshape(-1).astype(np.intp)


def valid_codes(X: Array, n_features: int) -> Array:
    """Return a mask of the entries that are integers from 0 to n_features - 1."""
    return (X >= 0) & (n_features > X) & (np.floor(X) == X)


def indicators(X: Array, n_features: int) -> sparse.csr_array:
    """Return the sparse one-hot matrix (n_rows, n_features) of codes (..., 1)."""
    places = places_of(X)
    ones, ends = np.ones(len(places), X.dtype), np.arange(len(places) + 1)
    return sparse.csr_array((ones, places, ends), shape=(len(places), n_features))


def columns_of(rows: Array, n_features: int) -> Array:
    """Return input rows with all n_features columns; codes are expanded to one-hot rows."""
    return indicators(rows, n_features).toarray() if are_codes(rows, n_features) else rows


def mean_and_spread(rows: Array, n_features: int, n_rows: int | None = None) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each input column, both of shape (n_features,).

    For codes, `n_rows` may exceed ``len(rows)``; the additional rows count as rows with no symbol.
    """
    if not are_codes(rows, n_features):
        return rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    share = np.bincount(places_of(rows), minlength=n_features) / (n_rows or len(rows))
    return share, np.sqrt(share * (1 - share))
