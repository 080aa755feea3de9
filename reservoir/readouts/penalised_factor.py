"""Recursive ridge: the triangular factor of all rows and the penalty, updated row by row."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_number
from reservoir.readouts.qr import eliminated
from reservoir.readouts.sums import (
    BLOCK_ROWS,
    RowSums,
    check_forgetting,
    raise_overflow,
    room_for_matrices,
)

_MOST_WAITING = 48  # most rows that wait for their elimination: more make each solution slower
_LARGEST_LEVERAGE = 16.0  # largest leverage of a row that may wait, which bounds the condition
_LEAST_FADE = 0.1  # fraction of the penalty that forgetting leaves before it is restored
_LEAST_SCALE = 1e-8  # it does not affect rounding errors, but squares must not overflow
_LEAST_IN_BLOCK = 1e-30  # least factor on the scale within a block
_FAR_OFF = 8.0  # most standard deviations between the shift and the mean
_DIGITS_LOST = 1e4  # largest ratio of the shift to a value from which it is subtracted
_FAR_FROM_OVERFLOW = 1e280


@saved
class PenalisedFactor:
    """Ridge coefficients of rows that arrive one after the other, at O(n_features^2) per row.

    It stores the triangular factor R of the rows [1, H] stacked on ``sqrt(alpha) I``, H about a row
    or the mean, and the transformed targets Z: R C' = Z (square-root information form: Sayed,
    "Fundamentals of Adaptive Filtering", 2003, chapter 12). Rows are rotated into R in blocks, by
    Householder reflections; until then they wait in whitened form, ``R^-T h``, unless their
    leverage is very high. Each row multiplies the sums over earlier rows, and with them the
    penalty, by `forgetting`. The penalty is restored for one coefficient after the other, so that
    each is penalised by a tenth of alpha to alpha, the intercept by nothing: so directions without
    new rows are never completely forgotten, which would let errors grow without bound (wind-up).
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        alpha: float,
        *,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
    ) -> None:
        self.n_features = check_count("n_features", n_features)
        self.n_outputs = check_count("n_outputs", n_outputs)
        self.alpha = check_positive_alpha(alpha)
        self.forgetting = forgetting
        self.fit_intercept = bool(fit_intercept)
        self._reset()

    def _reset(self) -> None:
        first, n = int(self.fit_intercept), self.n_features
        self.n_samples = 0
        self._shift = np.zeros(n + self.n_outputs)
        # [R Z; 0 I] divided by `scale`: forgetting then multiplies one number. The identity lets a
        # single triangular solve return coefficients, or residuals.
        with room_for_matrices(n, 1):
            self._factor = np.eye(first + n + self.n_outputs, order="F")
        self._factor[range(first + n), range(first + n)] *= np.sqrt(self.alpha)
        if first:
            self._factor[0, 0] = 0.0
        self._scale = 1.0
        self._penalty = np.full(n, self.alpha)  # in units of scale^2
        self._turn = 0.0  # the coefficient whose penalty is restored next
        self._fill = 0
        self._waiting = np.zeros((_MOST_WAITING, len(self._factor)))
        self._whitened = np.zeros_like(self._waiting)
        self._products = np.eye(_MOST_WAITING)  # I + V V' of the whitened features V
        self._solved: tuple[Array, Array] | None = None

    @property
    def forgetting(self) -> float:
        """Factor by which each new row multiplies the weights of all earlier rows."""
        return self._forgetting

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        self._forgetting = check_forgetting("forgetting", value)

    @property
    def penalties(self) -> Array:
        """Current penalty of each coefficient, (n_features,)."""
        return self._penalty * self._scale**2

    def add(self, H: Array, Y: Array, weights: Array | None = None) -> None:
        """Add rows, in order; those of weight 0 are skipped.

        `H` is (n_rows, n_features), `Y` (n_rows, n_outputs); weights are at least 0. Raise
        ValueError, and change nothing, if shapes disagree, values are not finite, or their squares
        overflow.
        """
        rows, roots = self._read(H, Y, weights)
        for start in range(0, len(rows), self._longest_block()):
            part = slice(start, start + self._longest_block())
            self._add_block(rows[part], None if roots is None else roots[part])

    def coef(self) -> tuple[Array, Array]:
        """Return coefficients, (n_outputs, n_features), and intercepts, (n_outputs,)."""
        C, c = self._about_shift()
        if not self.n_samples:
            return C, c
        n = self.n_features
        shift = self._shift
        return C, c + shift[n:] - C @ shift[:n] if self.fit_intercept else c

    def outputs(self, H: Array) -> Array:
        """Return the outputs of rows of features, (n_rows, n_outputs)."""
        C, c = self._about_shift()
        if not self.fit_intercept:
            return H @ C.T
        n = self.n_features
        return (H - self._shift[:n]) @ C.T + (c + self._shift[n:])

    def discount(self, factor: float) -> None:
        """Multiply the weights of all rows by `factor`, 0 to 1; the penalty is unchanged."""
        factor = check_number("factor", factor, low=0, high=1)
        if factor == 0:
            self._reset()
        elif factor < 1:
            self._eliminate()
            self._scale *= np.sqrt(factor)
            self._rescale()
            every = np.arange(self.n_features)
            self._eliminate(restored=(every, np.ones(self.n_features)))
        self._solved = None

    def copy(self) -> PenalisedFactor:
        """Return an independent copy."""
        return copy.deepcopy(self)

    @classmethod
    def from_sums(
        cls,
        sums: RowSums,
        alpha: float,
        *,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
    ) -> PenalisedFactor:
        """Return a factor for given sums over rows, to which further rows can be added."""
        one = cls(
            sums.n_features,
            sums.n_outputs,
            alpha,
            forgetting=forgetting,
            fit_intercept=fit_intercept,
        )
        if sums.n_samples == 0:
            return one
        first, n = int(fit_intercept), sums.n_features
        R, Z, means = sums.penalised_factor(one.alpha, fit_intercept)
        one.n_samples, one._shift = sums.n_samples, means
        one._factor[first : first + n, first : first + n] = R
        one._factor[first : first + n, first + n :] = Z
        if first:
            one._factor[0, 0] = np.sqrt(sums.weight)
        return one

    def _read(self, H: Array, Y: Array, weights: Array | None) -> tuple[Array, Array | None]:
        """Return [1, H, Y] of the rows of positive weight, and the square roots of the weights."""
        n_rows, n = len(H), self.n_features
        if H.shape != (n_rows, n) or Y.shape != (n_rows, self.n_outputs):
            raise ValueError(
                f"H must have shape (n_rows, {n}) and Y (n_rows, {self.n_outputs}); got "
                f"{H.shape} and {Y.shape}."
            )
        roots = None
        if weights is not None:
            enter = weights > 0
            if not enter.all():
                H, Y, weights = H[enter], Y[enter], weights[enter]
            roots = np.sqrt(weights)
        first = int(self.fit_intercept)
        rows = np.ones((len(H), first + n + self.n_outputs))
        rows[:, first : first + n] = H
        rows[:, first + n :] = Y
        with np.errstate(over="ignore", invalid="ignore"):
            heaviest = 1.0 if roots is None or not len(roots) else max(1.0, float(roots.max()))
            if not np.vdot(rows, rows) * heaviest**2 < _FAR_FROM_OVERFLOW:
                sizes = np.einsum("ij,ij->j", rows, rows)[first:] * heaviest**2
                column = int(np.argmin(sizes < _FAR_FROM_OVERFLOW))
                raise_overflow(*(("H", column) if column < n else ("Y", column - n)))
        return rows, roots

    def _longest_block(self) -> int:
        """Return the largest number of rows that may be added together."""
        if self._forgetting == 1.0:
            return BLOCK_ROWS
        return int(np.clip(2 * np.log(_LEAST_IN_BLOCK) / np.log(self._forgetting), 1, BLOCK_ROWS))

    def _add_block(self, rows: Array, roots: Array | None) -> None:
        n_rows = len(rows)
        self._solved = None
        restored = None
        scales: Any = self._scale
        if self._forgetting < 1.0:
            scales = self._faded_scales(n_rows)
            restored = self._due(scales)
            self._scale = float(scales[-1])
        if self.fit_intercept:
            if not self.n_samples:
                self._shift = rows[0, 1:].copy()
            self._approach(rows[:, 1:])
            rows[:, 1:] -= self._shift
        self.n_samples += n_rows
        if self._scale != 1.0 or roots is not None:
            rows *= np.reshape((1.0 if roots is None else roots) / scales, (-1, 1))
        self._enter(rows, restored)

    def _faded_scales(self, n_rows: int) -> Array:
        """Return the scale after each of the next rows, which decreases by forgetting."""
        if self._scale < _LEAST_SCALE:
            self._eliminate()
            self._rescale()
        scales = self._scale * np.sqrt(self._forgetting) ** np.arange(1, n_rows + 1)
        if (
            scales[-1] < _LEAST_SCALE * _LEAST_IN_BLOCK
        ):  # a single row, which makes the factor forget almost everything
            self._eliminate()
            self._scale = float(scales[-1])
            self._rescale()
            return np.ones(1)
        return scales

    def _due(self, scales: Array) -> tuple[Array, Array] | None:
        """Return the coefficients whose penalty is due to be restored, and the scales then."""
        n = self.n_features
        rate = min(np.log(self._forgetting) / np.log(_LEAST_FADE), 1.0) * n
        begin = int(self._turn)
        ends = self._turn + rate * np.arange(1, len(scales) + 1)
        end = int(ends[-1])
        self._turn = float(ends[-1])
        if self._turn >= n:
            self._turn %= n
        if end == begin:
            return None
        turns = np.arange(max(begin, end - n), end)  # of repeated coefficients the last turn counts
        when = np.searchsorted(ends, turns + 1)
        return turns % n, scales[np.minimum(when, len(scales) - 1)]

    def _enter(self, rows: Array, restored: tuple[Array, Array] | None) -> None:
        """Let rows wait if they are few and have low leverages; otherwise eliminate them."""
        if restored is not None:
            n_more = len(restored[0])
            if self._fill + len(rows) + n_more > _MOST_WAITING:
                self._eliminate(rows, restored)
                return
            rows = np.vstack([rows, self._penalty_rows(*restored)])
        begin, end = self._fill, self._fill + len(rows)
        if end > _MOST_WAITING:
            self._eliminate(rows)
            return
        if not self._factor.diagonal().all():  # before the first row: the intercept has no penalty
            self._eliminate(rows)
            return
        if len(rows) == 1:
            white = blas.dtrsv(self._factor, rows[0], trans=1)[None]
        else:
            white = lapack.dtrtrs(self._factor, rows.T, trans=1)[0].T
        V = white[:, : -self.n_outputs]
        self._waiting[begin:end] = rows
        self._whitened[begin:end] = white
        with np.errstate(over="ignore", invalid="ignore"):  # if almost everything is forgotten
            products = self._whitened[:end, : -self.n_outputs] @ V.T
        if not np.abs(products[begin:]).max() <= _LARGEST_LEVERAGE:
            self._eliminate(rows)
            return
        self._products[:end, begin:end] = products
        self._products[range(begin, end), range(begin, end)] += 1.0
        self._fill = end

    def _penalty_rows(self, which: Array, scales: Array) -> Array:
        """Return the rows that restore the penalty, in the order of the coefficients."""
        order = np.argsort(which)
        which, full = which[order], self.alpha / scales[order] ** 2
        rows = np.zeros((len(which), len(self._factor)))
        lost = np.maximum(full - self._penalty[which], 0.0)
        rows[range(len(which)), int(self.fit_intercept) + which] = np.sqrt(lost)
        self._penalty[which] = full
        return rows

    def _eliminate(
        self, rows: Array | None = None, restored: tuple[Array, Array] | None = None
    ) -> None:
        """Rotate the waiting rows, further rows and the restored penalties into the factor."""
        parts = [self._waiting[: self._fill]]
        if rows is not None:
            parts.append(rows)
        n_last = 0
        if restored is not None:
            n_last = len(restored[0])
            parts.append(self._penalty_rows(*restored))
        block = np.asfortranarray(np.vstack(parts))
        self._fill = 0
        if not len(block):
            return
        self._factor = eliminated(self._factor, block, n_trapezoidal=n_last)
        q = self.n_outputs
        self._factor[-q:, -q:] = np.eye(q)
        if self.fit_intercept and self._factor[0, 0] > 0:
            self._recentre()

    def _approach(self, rows: Array) -> None:
        """Replace shifts that are much larger than the new rows, to preserve precision.

        Otherwise an outlier that became the shift would reduce the precision of all later rows.
        """
        nearest = rows[0]
        if len(rows) > 1:
            nearest = rows[np.abs(rows).argmin(axis=0), np.arange(rows.shape[1])]
        sizes, shifts = np.abs(nearest), np.abs(self._shift)
        if (shifts > _DIGITS_LOST * sizes).any():
            self._eliminate()
            self._move(np.where(shifts > sizes, nearest, self._shift))

    def _recentre(self) -> None:
        """Set the shift to the mean of features and targets if it is far away, for precision."""
        q = self.n_outputs
        mean, about_mean = self._factor[0, 1:], self._factor[1:-q, 1:]
        squares = np.einsum("ij,ij->j", about_mean, about_mean)
        if (mean**2 > _FAR_OFF**2 * squares).any():
            self._move(self._shift + mean / self._factor[0, 0])

    def _move(self, shift: Array) -> None:
        """Change the shift of features and targets; no row may be waiting."""
        self._factor[0, 1:] -= self._factor[0, 0] * (shift - self._shift)
        self._shift = shift

    def _rescale(self) -> None:
        """Make the scale one; no row may be waiting."""
        self._factor[: -self.n_outputs] *= self._scale
        self._penalty *= self._scale**2
        self._scale = 1.0

    def _about_shift(self) -> tuple[Array, Array]:
        """Return coefficients and intercepts for shifted rows."""
        if self._solved is None:
            self._solved = self._solve()
        return self._solved

    def _solve(self) -> tuple[Array, Array]:
        q, fill = self.n_outputs, self._fill
        if not self.n_samples:
            return np.zeros((q, self.n_features)), np.zeros(q)
        right = np.zeros((len(self._factor), q), order="F")
        right[-q:] = -np.eye(q)
        if fill:
            V, residuals = self._whitened[:fill, :-q], self._whitened[:fill, -q:]
            _, weights, _ = lapack.dposv(self._products[:fill, :fill], residuals)
            right[:-q] = V.T @ weights
        if q == 1:
            found = blas.dtrsv(self._factor, right[:, 0])[None]
        else:
            found = lapack.dtrtrs(self._factor, right)[0].T
        if not self.fit_intercept:
            return found[:, :-q], np.zeros(q)
        return found[:, 1:-q], found[:, 0]


def check_positive_alpha(alpha: float) -> float:
    """Check that a penalty is above 0, and return it."""
    number = check_number("alpha", alpha, low=0)
    if number == 0:
        raise ValueError(
            "alpha=0 must be above 0: with fewer rows than features, the coefficients are "
            "determined only by the penalty. Use a small penalty, such as 1e-10."
        )
    return number
