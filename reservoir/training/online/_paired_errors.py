"""Paired comparison of the errors of two networks."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array

_FEWEST = 20  # with fewer rows, the lead is 0


@saved
class PairedErrors:
    """Differences between the squared errors of two networks, with exponential forgetting.

    After `memory` rows, the weight of a row has decayed to 1 / e.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.clear()

    def clear(self) -> None:
        """Discard all differences."""
        self.n, self.total, self.squares = 0.0, 0.0, 0.0

    def add(self, differences: Array) -> None:
        """Add the differences of new rows, from the oldest to the newest."""
        weights = np.exp(-np.arange(len(differences))[::-1] / self.memory)
        fade = float(np.exp(-len(differences) / self.memory))
        self.n = fade * self.n + float(weights.sum())
        self.total = fade * self.total + float(weights @ differences)
        self.squares = fade * self.squares + float(weights @ differences**2)

    def lead(self) -> float:
        """Return the mean difference in units of its standard error: Student's paired t."""
        if self.n < _FEWEST * np.exp(-_FEWEST / self.memory):
            return 0.0
        spread = self.squares - self.total * self.total / self.n
        if spread <= 1e-12 * self.squares:
            return float(np.sign(self.total)) * np.inf if self.total else 0.0
        return self.total / float(np.sqrt(spread))
