"""The series from which models learn: levels without gaps, and inputs known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

_PAIRS = 6  # largest number of pairs of sine and cosine for a season
_ROWS_PER_TERM = 4  # least number of rows for each calendar column


@saved
@dataclass(frozen=True, eq=False)
class History:
    """Rows of a series up to some time.

    Attributes
    ----------
    levels : array of shape (n_rows, n_outputs)
        Values on the scale of the models, with gaps filled.
    observed : array of bool of shape (n_rows, n_outputs)
        Whether a value was observed: False where a gap was filled. Filled values are not used as
        targets.
    known : array of shape (n_rows_ahead, n_known)
        Standardised inputs that are known in advance, also for rows to forecast: n_rows_ahead is at
        least n_rows. n_known may be 0.
    seasons : tuple of float
        Number of rows per period of each season, ascending.
    first : int, default=0
        Number of the first row; the phase of a season is counted from row number 0.
    """

    levels: Array
    observed: Array
    known: Array
    seasons: tuple[float, ...]
    first: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows with known levels."""
        return len(self.levels)

    @property
    def n_outputs(self) -> int:
        """Number of columns that are forecast."""
        return int(self.levels.shape[1])

    def until(self, n_rows: int) -> History:
        """Return the history of the first `n_rows` rows, with all known inputs."""
        return replace(self, levels=self.levels[:n_rows], observed=self.observed[:n_rows])

    @property
    def most_terms(self) -> int:
        """Largest number of calendar columns for this number of rows."""
        return most_terms_of([self])

    def calendar(self, n_rows: int, most: int) -> Array:
        """Return sines and cosines of the seasons, (n_rows, n_columns), from the first row on.

        There are at most six pairs for each season, and at most `most` columns.
        """
        rows = self.first + np.arange(n_rows)
        columns: list[Array] = []
        for season in self.seasons:
            for k in range(1, min(_PAIRS, int(season // 2)) + 1):
                if len(columns) + 2 > most:
                    break
                angle = 2 * np.pi * k * rows / season
                columns.append(np.sin(angle) if 2 * k < season else np.cos(angle))
                if 2 * k < season:
                    columns.append(np.cos(angle))
        return np.column_stack(columns) if columns else np.zeros((n_rows, 0))


def most_terms_of(histories: Sequence[History]) -> int:
    """Return the largest number of calendar columns for the total number of rows of the series."""
    return max(2, sum(each.n_rows for each in histories) // _ROWS_PER_TERM)
