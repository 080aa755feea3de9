"""Missing values of a series, filled for the models; these do not learn them."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array
from reservoir.series_models.series_data import SeriesData


def fill_gaps(
    values: Array, known: Array, seasons: tuple[float, ...], *, first: int = 0, seed: int = 0
) -> SeriesData:
    """Return a series whose gaps are filled on a straight line."""
    observed, rows = np.isfinite(values), np.arange(len(values))
    columns = [
        np.interp(rows, rows[there], column[there])
        for column, there in zip(values.T, observed.T, strict=True)
    ]
    filled = np.column_stack(columns)
    positive: Array = np.all(filled > 0, axis=0)
    return SeriesData(filled, observed, known, seasons, positive, first)
