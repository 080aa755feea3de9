"""Check and prepare a weight matrix: dtype, shape, finite entries, size of the entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, Matrix
from reservoir._validation import as_plain


def as_matrix(W: Any, *, square: bool = True) -> Matrix:
    """Return a float64 copy of `W`: a csr_array if it is sparse, else an ndarray.

    Raise if an entry is complex, infinite or NaN, if `W` is not two-dimensional or, if `square` is
    True, if it is not square.
    """
    given = W if sp.issparse(W) else as_plain("W", W)
    if given.ndim != 2 or (square and given.shape[0] != given.shape[1]):
        wanted = "square, (n_units, n_units)" if square else "two-dimensional"
        raise ValueError(f"W must be {wanted}; got shape {given.shape}.")
    if np.issubdtype(given.dtype, np.complexfloating):
        raise TypeError(f"W must be real; got dtype {given.dtype}.")
    matrix: Any
    if sp.issparse(given):
        matrix = sp.csr_array(given, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
    else:
        matrix = np.array(given, dtype=np.float64)
    n_bad = int(np.count_nonzero(~np.isfinite(entries(matrix))))
    if n_bad:
        raise ValueError(
            f"W, shape {matrix.shape}, contains {n_bad} NaN or infinite values. Replace them."
        )
    return matrix


def entries(matrix: Any) -> Array:
    """Return the array of the entries of a matrix; writing to it changes the matrix."""
    return matrix.data if sp.issparse(matrix) else matrix


def to_unit_size(matrix: Any) -> float:
    """Divide a matrix in place by a power of two, so that its largest modulus is in [1, 2).

    Then sums and products of entries cannot overflow. The division is exact, except for entries
    that become subnormal. Return the power of two; it is 1 for a matrix of zeros.
    """
    values = entries(matrix)
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0:
        return 1.0
    exponent = int(np.frexp(largest)[1]) - 1
    np.ldexp(values, -exponent, out=values)
    return float(np.ldexp(1.0, exponent))


def row_of_entries(matrix: sp.csr_array) -> Array:
    """Return the row index of each stored entry of a csr_array, an array of shape (nnz,)."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
