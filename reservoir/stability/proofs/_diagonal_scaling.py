"""Products of diagonal matrices, given by their diagonals, with sparse or dense matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, Matrix


def scaled_rows(d: Array, M: Matrix) -> Matrix:
    """Return diag(d) M."""
    if sp.issparse(M):
        data = np.repeat(d, np.diff(M.indptr)) * M.data
        return sp.csr_array((data, M.indices, M.indptr), shape=M.shape)
    return d[:, None] * M


def scaled_matrix(d: Array, W: Matrix, P: Array) -> Matrix:
    """Return diag(P) diag(d) W diag(P)^-1, whose Euclidean norm is a weighted norm of diag(d) W."""
    rows = scaled_rows(P * d, W)
    if sp.issparse(rows):
        data = rows.data / P[rows.indices]
        return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return rows / P
