"""Sums of ridges of a series over the rows where targets, or growths at a horizon, are observed."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import LinAlgError, blas, lapack

from reservoir._typing import Array
from reservoir.readouts import GramAccumulator

_BLOCK = 32  # horizons whose products are computed together, even if not all are requested


class GrowthSums:
    """Sums over rows of features, for each horizon over the rows where its growth is observed.

    The rows of horizons differ only at the end and next to gaps, so each Gram matrix is computed
    from the previous or the first one by adding and subtracting rows; it is the same to the bit for
    any number of horizons. The growths of row i start from level i + 1 of `levels`, (n_rows + 2,
    n_outputs), and are targets if `observed`, (n_rows + 2,), at both ends. `washout` rows are
    skipped.
    """

    def __init__(
        self, width: int, levels: Array, observed: Array, washout: int, n_horizons: int
    ) -> None:
        n_rows, n_outputs = len(levels) - 2, levels.shape[1]
        self._n_requested, n_horizons = n_horizons, -(-n_horizons // _BLOCK) * _BLOCK
        self._levels = np.concatenate([levels, np.zeros((n_horizons, n_outputs))])
        is_known = np.concatenate([observed, np.zeros(n_horizons, bool)])
        ends = sliding_window_view(is_known[2:], n_horizons)[:n_rows]
        self._observed = ends & is_known[1:-1][:n_rows, None]
        self._observed[:washout] = False
        # features of rows that some horizons lack are stored, to be added and subtracted
        differ = np.flatnonzero((self._observed != self._observed[:, :1]).any(axis=1))
        self._index = np.full(n_rows, -1)
        self._index[differ] = np.arange(len(differ))
        self._kept = np.empty((len(differ), width))
        self._first = np.zeros((width, width), order="F"), np.zeros(width)
        self._cross = np.zeros((width, n_outputs, n_horizons))
        self._growth = np.zeros((n_outputs, n_horizons))

    def update(self, features: Array, start: int) -> None:
        """Add rows of features, of which the first one has the number `start`."""
        stop = start + len(features)
        observed, index = self._observed[start:stop], self._index[start:stop]
        self._kept[index[index >= 0]] = features[index >= 0]
        self._first = _with_rows(*self._first, features[observed[:, 0]], 1.0)
        here = self._levels[start + 1 : stop + 1, :, None]
        for begin in range(0, observed.shape[1], _BLOCK):
            part = slice(begin, begin + _BLOCK)
            ahead = self._levels[start + 2 + begin : stop + 1 + begin + _BLOCK]
            growth = sliding_window_view(ahead, _BLOCK, axis=0) - here
            growth = np.where(observed[:, None, part], growth, 0.0)
            self._growth[:, part] += growth.sum(axis=0)
            products = features.T @ growth.reshape(len(features), -1)
            self._cross[..., part] += products.reshape(-1, *growth.shape[1:])

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """Return a ridge for each horizon, zeros if no growth is observed.

        Coefficients are (n_horizons, width, n_outputs), and intercepts (n_horizons, n_outputs).
        """
        width, n_outputs, _ = self._cross.shape
        coef = np.zeros((self._n_requested, width, n_outputs))
        intercept = np.zeros((self._n_requested, n_outputs))
        observed = np.ascontiguousarray(self._observed.T)
        gram, total = (sums.copy(order="F") for sums in self._first)
        for h, count in enumerate(observed[: self._n_requested].sum(axis=1).tolist()):
            if h:
                gram, total = self._next(gram, total, observed[h], observed[h - 1], observed[0])
            if not count:
                continue
            # about the means
            growth = self._growth[:, h] / count
            penalised = blas.dsyr(-1 / count, total, a=gram.copy(order="F"), overwrite_a=True)
            penalised[np.diag_indices(width)] += alpha
            cross = self._cross[..., h] - np.outer(total, growth)
            _, coef[h], failed = lapack.dposv(penalised, cross, overwrite_a=True, overwrite_b=True)
            if failed:
                raise LinAlgError(f"alpha={alpha} is too small for {count} rows. Raise it.")
            intercept[h] = growth - total / count @ coef[h]
        return coef, intercept

    def _next(
        self, gram: Array, total: Array, observed: Array, before: Array, first: Array
    ) -> tuple[Array, Array]:
        """Return a horizon's sums over the observed rows, and overwrite the previous horizon's."""
        changed, from_first = np.flatnonzero(observed != before), np.flatnonzero(observed != first)
        if len(from_first) < len(changed):
            changed, (gram, total) = from_first, (sums.copy(order="F") for sums in self._first)
        for rows, sign in ((changed[observed[changed]], 1.0), (changed[~observed[changed]], -1.0)):
            gram, total = _with_rows(gram, total, self._kept[self._index[rows]], sign)
        return gram, total


def _with_rows(gram: Array, total: Array, rows: Array, sign: float) -> tuple[Array, Array]:
    """Return Gram matrix (upper triangle) and sums, with rows added or subtracted in place."""
    if len(rows):
        gram = blas.dsyrk(sign, rows.T, beta=1.0, c=gram, overwrite_c=True)
        total += sign * rows.sum(axis=0)
    return gram, total


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
