"""Ridges for the growth of a series over each horizon, each from all rows that it has."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import LinAlgError, blas, lapack

from reservoir._typing import Array

_BLOCK = 32  # horizons whose products are formed together, even if not all of them are asked for


class GrowthSums:
    """Sums over rows of features, for each horizon over the rows where its growth is observed.

    Horizons differ by few rows: the last ones, and those next to gaps. So the Gram matrix of each
    is that of the horizon before, or of the first, with rows added and taken away. What is found
    for a horizon is the same to the bit however many others are asked for.

    Parameters
    ----------
    width : int
        Columns of the features.
    levels : array of shape (n_rows + 2, n_outputs)
        Growths start from them: in row i of the features from the level i + 1.
    observed : array of bool of shape (n_rows + 2,)
        Which levels are. A growth is learned from if both of its ends are.
    washout : int
        Rows of features that are not learned from.
    n_horizons : int
    """

    def __init__(
        self, width: int, levels: Array, observed: Array, washout: int, n_horizons: int
    ) -> None:
        n_rows, n_outputs = len(levels) - 2, levels.shape[1]
        self._n_asked, n_horizons = n_horizons, -(-n_horizons // _BLOCK) * _BLOCK
        self._levels = np.concatenate([levels, np.zeros((n_horizons, n_outputs))])
        seen = np.concatenate([observed, np.zeros(n_horizons, bool)])
        self._told = sliding_window_view(seen[2:], n_horizons)[:n_rows] & seen[1:-1][:n_rows, None]
        self._told[:washout] = False
        # features of rows that some horizons have and others lack are needed again
        differ = np.flatnonzero((self._told != self._told[:, :1]).any(axis=1))
        self._place = np.full(n_rows, -1)
        self._place[differ] = np.arange(len(differ))
        self._kept = np.empty((len(differ), width))
        self._first = np.zeros((width, width), order="F"), np.zeros(width)
        self._cross = np.zeros((width, n_outputs, n_horizons))
        self._growth = np.zeros((n_outputs, n_horizons))

    def update(self, features: Array, start: int) -> None:
        """Add rows of features, of which the first has the number `start`."""
        stop = start + len(features)
        told, place = self._told[start:stop], self._place[start:stop]
        self._kept[place[place >= 0]] = features[place >= 0]
        self._first = _with_rows(*self._first, features[told[:, 0]], 1.0)
        here = self._levels[start + 1 : stop + 1, :, None]
        for begin in range(0, told.shape[1], _BLOCK):
            part = slice(begin, begin + _BLOCK)
            ahead = self._levels[start + 2 + begin : stop + 1 + begin + _BLOCK]
            growth = sliding_window_view(ahead, _BLOCK, axis=0) - here
            growth = np.where(told[:, None, part], growth, 0.0)
            self._growth[:, part] += growth.sum(axis=0)
            products = features.T @ growth.reshape(len(features), -1)
            self._cross[..., part] += products.reshape(-1, *growth.shape[1:])

    def solve(self, alpha: float) -> tuple[Array, Array]:
        """Return a ridge for each horizon.

        Parameters
        ----------
        alpha : float > 0

        Returns
        -------
        coef : array of shape (n_horizons, width, n_outputs)
        intercept : array of shape (n_horizons, n_outputs)
            Both are zeros for a horizon that is observed nowhere.
        """
        width, n_outputs, _ = self._cross.shape
        coef = np.zeros((self._n_asked, width, n_outputs))
        intercept = np.zeros((self._n_asked, n_outputs))
        told = np.ascontiguousarray(self._told.T)
        gram, total = (sums.copy(order="F") for sums in self._first)
        for h, count in enumerate(told[: self._n_asked].sum(axis=1).tolist()):
            if h:
                gram, total = self._next(gram, total, told[h], told[h - 1], told[0])
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
        self, gram: Array, total: Array, told: Array, before: Array, first: Array
    ) -> tuple[Array, Array]:
        """Return sums over the rows that are told, from those of the horizon before, used up."""
        changed, from_first = np.flatnonzero(told != before), np.flatnonzero(told != first)
        if len(from_first) < len(changed):
            changed, (gram, total) = from_first, (sums.copy(order="F") for sums in self._first)
        for rows, sign in ((changed[told[changed]], 1.0), (changed[~told[changed]], -1.0)):
            gram, total = _with_rows(gram, total, self._kept[self._place[rows]], sign)
        return gram, total


def _with_rows(gram: Array, total: Array, rows: Array, sign: float) -> tuple[Array, Array]:
    """Return the upper triangle of products, and sums, with rows added or taken away; in place."""
    if len(rows):
        gram = blas.dsyrk(sign, rows.T, beta=1.0, c=gram, overwrite_c=True)
        total += sign * rows.sum(axis=0)
    return gram, total
