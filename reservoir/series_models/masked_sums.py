"""Ridge regression for several targets, some of which may not be observed in a row."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator


class MaskedSums:
    """Sums over rows of features, for each target over the rows where it is `observed`.

    That is a mask, (n_rows, n_targets), of the rows that will be passed to `update`. Targets that
    are observed in the same rows use the same sums.
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


def masked_ridge(
    features: Array, targets: Array, observed: Array, alpha: float
) -> tuple[Array, Array]:
    """Return what `MaskedSums` solves for, up to rounding, from rows that are all in memory.

    `features` has shape (n_rows, width), `targets` and `observed` (n_rows, n_targets).
    """
    coef, intercept = np.zeros((targets.shape[1], features.shape[1])), np.zeros(targets.shape[1])
    masks = observed.T
    for mask in {mask.tobytes(): mask for mask in masks}.values():
        if not mask.any():
            continue
        columns = (masks == mask).all(axis=1)
        rows, wanted = (features, targets) if mask.all() else (features[mask], targets[mask])
        wanted = wanted[:, columns]
        mean, center = rows.mean(axis=0), wanted.mean(axis=0)
        centred = rows - mean
        # of the products of columns and those of rows, the smaller matrix determines the ridge
        few = len(rows) < rows.shape[1]
        gram = blas.dsyrk(1.0, centred.T, trans=few)
        gram[np.diag_indices_from(gram)] += alpha
        right = wanted - center if few else centred.T @ (wanted - center)
        _, solved, _ = lapack.dposv(gram, right, overwrite_a=True)
        coef[columns] = (centred.T @ solved if few else solved).T
        intercept[columns] = center - coef[columns] @ mean
    return coef, intercept
