"""Rows that come after a fit: what is missing among them is what was forecast for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reservoir._typing import Array


def fill_later(rows: Array, forecast: Callable[[Array, int], Array]) -> Array:
    """Return later rows whose gaps are filled with forecasts.

    Parameters
    ----------
    rows : array of shape (n_rows, n_outputs)
        NaN where a value is missing.
    forecast : callable
        Given the rows before a gap, (n_before, n_outputs), and a number of steps, returns what
        follows, (n_steps, n_outputs).
    """
    filled = rows.copy()
    empty = np.asarray(np.isnan(rows).all(axis=1))
    for begin in np.flatnonzero(np.isnan(rows).any(axis=1)).tolist():
        gap = np.isnan(filled[begin])
        if not gap.any():
            continue
        seen = np.flatnonzero(~empty[begin:])
        n_steps = max(1, int(seen[0]) if len(seen) else len(rows) - begin)
        end = begin + n_steps
        said = forecast(filled[:begin], n_steps)
        filled[begin:end] = np.where(np.isnan(rows[begin:end]), said, rows[begin:end])
    return filled
