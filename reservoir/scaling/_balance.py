"""Diagonal similarity: what a matrix looks like in better units."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.scaling._checks import row_of_entries


def is_badly_scaled(block: sp.csr_array, factor: float = 1e3) -> bool:
    """Whether some unit's row and column differ in size by more than `factor`."""
    size = np.abs(block.data)
    received = np.zeros(block.shape[0])
    sent = np.zeros(block.shape[0])
    np.maximum.at(received, row_of_entries(block), size)
    np.maximum.at(sent, block.indices, size)
    return bool(np.max(np.abs(np.log(received) - np.log(sent))) > np.log(factor))


def balanced(block: sp.csr_array, n_sweeps: int = 200) -> sp.csr_array:
    """Return D^-1 W D with rows and columns of similar size, D diagonal.

    Osborne's iteration on logarithms, so that neither D nor the sums can overflow; all units at
    once, by half steps.
    """
    n_units = block.shape[0]
    rows = row_of_entries(block)
    columns = block.indices
    away = rows != columns
    log_size = 2.0 * np.log(np.abs(block.data))
    shift = np.zeros(n_units)
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
