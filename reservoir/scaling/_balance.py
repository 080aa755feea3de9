"""Balance a matrix by a diagonal similarity transform: rows and columns become similar in size.

Eigenvalues of a balanced matrix are less sensitive to rounding.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.scaling._checks import row_of_entries


def is_badly_scaled(block: sp.csr_array, factor: float = 1e3) -> bool:
    """Whether, for some unit, the largest weights of its row and its column differ by `factor`.

    `block` is strongly connected, so that every row and column has an entry.
    """
    size = np.abs(block.data)
    received = np.zeros(block.shape[0])
    sent = np.zeros(block.shape[0])
    np.maximum.at(received, row_of_entries(block), size)
    np.maximum.at(sent, block.indices, size)
    return bool(np.max(np.abs(np.log(received) - np.log(sent))) > np.log(factor))


def balanced(block: sp.csr_array, n_sweeps: int = 200) -> sp.csr_array:
    """Return D^-1 W D with a diagonal D such that row i and column i have similar norms.

    This is Osborne's iteration for Euclidean norms. It uses logarithms, so that neither D nor the
    sums can overflow. All units are updated at once, by half of Osborne's step, for at most
    `n_sweeps` sweeps.
    """
    n_units = block.shape[0]
    rows = row_of_entries(block)
    columns = block.indices
    away = rows != columns  # a diagonal similarity does not change diagonal entries
    log_size = 2.0 * np.log(np.abs(block.data))
    shift = np.zeros(n_units)
    # shift is the logarithm of D; the step compares the norms of a unit's row and column
    for _ in range(n_sweeps):
        entry = (log_size + 2.0 * (shift[columns] - shift[rows]))[away]
        step = 0.25 * (
            _log_sums(entry, rows[away], n_units) - _log_sums(entry, columns[away], n_units)
        )
        shift += 0.5 * step
        if np.max(np.abs(step)) < 1e-3:
            break
    out = block.copy()
    out.data = np.sign(block.data) * np.exp(
        np.log(np.abs(block.data)) + shift[columns] - shift[rows]
    )
    return out


def _log_sums(entry: Array, group: Array, n_groups: int) -> Array:
    # log of the sum of exp(entry) in each group
    top = np.full(n_groups, -np.inf)
    np.maximum.at(top, group, entry)
    return top + np.log(np.bincount(group, weights=np.exp(entry - top[group]), minlength=n_groups))
