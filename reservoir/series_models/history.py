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
    """Rows of a series up to some time: levels, with gaps filled, and inputs known in advance.

    `levels` and `observed`, False where filled, are (n_rows, n_outputs); filled values are no
    targets. `known`, (n_rows_ahead, n_known), are standardised, also for rows to forecast.
    `seasons` are numbers of rows per period, ascending; phases are counted from row number 0, and
    `first` is the number of the first row.
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
        columns = np.zeros((0, n_rows))
        for season in self.seasons:
            n_pairs = min(_PAIRS, int(season // 2), (most - len(columns)) // 2)
            angle = 2 * np.pi * np.arange(1, n_pairs + 1)[:, None] * rows / season
            pairs = np.stack([np.sin(angle), np.cos(angle)], axis=1).reshape(-1, n_rows)
            # the sine of half a season is zero in every row
            columns = np.vstack(
                [columns, np.delete(pairs, -2, 0) if 2 * n_pairs == season else pairs]
            )
        return np.ascontiguousarray(columns.T)


def most_terms_of(histories: Sequence[History]) -> int:
    """Return the largest number of calendar columns for the total number of rows of the series."""
    return max(2, sum(each.n_rows for each in histories) // _ROWS_PER_TERM)
