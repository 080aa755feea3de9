"""Ridge regression for several targets, some of which may not be observed in a row."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator


class MaskedSums:
    """Sums over rows of features, for each target over the rows where it is observed.

    Targets that are observed in the same rows use the same sums.

    Parameters
    ----------
    width : int
        Number of features.
    observed : array of bool of shape (n_rows, n_targets)
        Whether a target is used in each of the rows that will be passed to `update`.
    """

    def __init__(self, width: int, observed: Array) -> None:
        self.observed = observed
        groups: dict[bytes, list[int]] = {}
        for k, mask in enumerate(observed.T):
            groups.setdefault(mask.tobytes(), []).append(k)
        self._columns = [np.array(columns) for columns in groups.values()]
        self._masks = [observed[:, columns[0]] for columns in self._columns]
        self._sums = [GramAccumulator(width, len(columns)) for columns in self._columns]

    def update(self, features: Array, targets: Array, start: int) -> None:
        """Add rows of features and targets, of which the first one has the number `start`."""
        for mask, columns, sums in zip(self._masks, self._columns, self._sums, strict=True):
            wanted = mask[start : start + len(features)]
            if wanted.any():
                sums.update(features[wanted], targets[np.ix_(wanted, columns)])

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """Return coefficients, (n_targets, width), and intercepts, (n_targets,).

        They are zeros for a target that is never observed.
        """
        n_targets = self.observed.shape[1]
        coef, intercept = np.zeros((n_targets, self._sums[0].n_features)), np.zeros(n_targets)
        for columns, sums in zip(self._columns, self._sums, strict=True):
            if sums.n_samples:
                coef[columns], intercept[columns] = sums.solve(alpha)[:2]
        return coef, intercept
