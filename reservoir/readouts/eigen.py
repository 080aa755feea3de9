"""Ridge solutions for any penalty from one decomposition of the features."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod

import numpy as np
from scipy import linalg

from reservoir._typing import Array, ArrayLike

EPS = np.finfo(np.float64).eps
# Rounding errors of an eigenvalue of a Gram matrix, relative to the largest one: measured on
# matrices of known rank, 50 to 800 columns and 1000 to 100,000 rows, they reach 3.6 eps.
NOISE = 8 * EPS


class PenaltyPath(ABC):
    """Ridge solutions for any penalty at little cost, and what chooses among them.

    Attributes
    ----------
    values : array of shape (n_features,)
        Squared singular values of the features (about their means, with an intercept), ascending.
    vectors : array of shape (n_features, n_features)
        The right singular vectors, as columns.
    projected : array of shape (n_features, n_outputs)
        Products of features and targets, in the basis of the vectors.
    mean_h, mean_y : arrays of shape (n_features,) and (n_outputs,)
        Weighted means of features and targets; zeros without an intercept.
    n_samples : int
        Rows behind the decomposition.
    n_free : int
        Directions of that many rows that are left to features: one fewer with an intercept.
    ages : tuple of two floats, or None
        Where older rows weigh less, the sum of what is left of their weights, and of its squares.
    """

    values: Array
    vectors: Array
    projected: Array
    mean_h: Array
    mean_y: Array
    n_samples: int
    n_free: int
    ages: tuple[float, float] | None = None

    @abstractmethod
    def _gain(self, alpha: ArrayLike) -> Array:
        """1 / (value + alpha), or 0 for directions that are rounding errors."""

    @abstractmethod
    def pooled(self) -> PenaltyPath:
        """Return the path with all outputs in one, whose score is the sum of theirs.

        The score is linear in squares, so these may be summed before it is computed.
        """

    @abstractmethod
    def gcv(self, alpha: float) -> Array:
        """Generalised cross-validation score, shape (n_outputs,).

        ``(RSS / n) / (1 - dof / n)^2`` with dof the trace of the hat matrix, the intercept
        included (Golub, Heath and Wahba 1979, eq. (1.4)).
        """

    @abstractmethod
    def _objective(self, alpha: float) -> Array:
        """Return the least of squared residuals plus penalty, shape (n_outputs,)."""

    def reml(self, alpha: float) -> Array:
        """Restricted likelihood of a penalty as an error variance, shape (n_outputs,).

        With coefficients of variance s^2 / alpha and errors of variance s^2, minus twice the
        logarithm of the restricted likelihood, maximised over s^2, is ``m log F + sum_i log(1 +
        l_i / alpha)`` and a constant, for m contrasts of the rows, the least value F of the ridge
        objective and eigenvalues l_i (Wood 2011, section 2). What is returned is its exponential,
        1 / m of it, over m: the geometric mean of the variances with which each row is predicted
        from those before it. Where rows have aged, m is the sum of their factors, less one.
        """
        if alpha == 0:
            return np.full(len(self.mean_y), np.inf)
        known = np.where(self._gain(alpha) > 0, self.values, 0.0)
        m = n_contrasts(self.n_samples, self.n_free, self.ages)
        return predictive_variance(self._objective(alpha), np.log1p(known / alpha).sum(), m)

    def coef(self, alpha: ArrayLike) -> Array:
        """Return the coefficients under a penalty.

        Parameters
        ----------
        alpha : float or array of shape (n_outputs,)

        Returns
        -------
        array of shape (n_outputs, n_features)
        """
        gain = self._gain(alpha)
        gain = gain if gain.ndim == 2 else gain[:, None]
        return (self.vectors @ (self.projected * gain)).T

    def leverage(self, rows: Array, alpha: ArrayLike) -> Array:
        """Return what each row adds to its own output, per unit of weight, the intercept's aside.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
        alpha : float or array of shape (n_outputs,)

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_outputs)
        """
        return ((rows - self.mean_h) @ self.vectors) ** 2 @ self._gain(alpha)

    def intercept(self, coef: Array) -> Array:
        """Return the intercept that goes with coefficients, shape (n_outputs,)."""
        return self.mean_y - coef @ self.mean_h

    def freedom(self, alphas: ArrayLike) -> Array:
        """Return the effective degrees of freedom under each penalty, the intercept's aside."""
        return self.values @ self._gain(alphas)

    def _score(self, rss: Array, residual: Array) -> Array:
        """Return the score of residual squares; `residual` is 1 - value * gain of each direction.

        At most n_free directions carry data: the rest are rounding errors of zero.
        """
        n, d = self.n_samples, len(self.values)
        if self.ages is not None:
            return rss * aged_inflation(n - self.n_free + (1 - residual).sum(), *self.ages)
        free = residual[max(d - self.n_free, 0) :].sum() + max(self.n_free - d, 0)
        if free <= d * EPS * n:
            return np.full_like(rss, np.inf)
        return n * rss / free**2


def n_contrasts(n_samples: int, n_free: int, ages: tuple[float, float] | None) -> float:
    """Return how many contrasts of the rows a restricted likelihood is of, by their ages."""
    return float(n_free) if ages is None else ages[0] - (n_samples - n_free)


def predictive_variance(objective: Array, log_det: float, m: float) -> Array:
    """Return `PenaltyPath.reml` from the objective, and the determinant of m contrasts."""
    if m <= 0:
        return np.full(len(objective), np.inf)
    with np.errstate(over="ignore"):  # a fraction of a contrast: no penalty of such a score wins
        return np.asarray(objective / m * np.exp(log_det / m))


def aged_inflation(dof: float, total: float, squares: float) -> float:
    """Return what the squares of residuals, summed, become the error of rows left out by.

    Generalised cross-validation for rows whose weights a have aged (docs/theory/readouts.md). With
    Q what the features of a row not in the fit amount to there, the same for all rows, a row adds
    ``a Q / (1 + a Q)`` to its own output; these sum up to `dof`, which tells Q. Taken to be spread
    from 1 down to `least` as forgetting by one factor leaves them, the weights are known by their
    sum and that of their squares.

    Parameters
    ----------
    dof : float
        The trace of the hat matrix.
    total, squares : float
        The sum of the ageing factors, and of their squares.

    Returns
    -------
    float
        ``n / (n - dof)^2`` for n equal weights; infinite where all rows cannot have so large a dof.
    """
    least = max(2 * squares / total - 1, 0.0)
    rate = min(2 * squares / total**2, (1 - least) / total)
    if rate * dof > _FULL:
        return np.inf
    grown = np.expm1(rate * dof) / (1 - least) if least < 1 else dof / total
    free = 1 - least * grown
    if free <= dof * EPS:
        return np.inf
    return float(np.exp(rate * dof) / (total * free**2))


_FULL = 600.0  # the logarithm of an inflation that no penalty can be chosen for


class Eigenbasis(PenaltyPath):
    """The eigenbasis of a Gram matrix.

    Parameters
    ----------
    matrix : array of shape (n_features, n_features)
        The Gram matrix of the features, without penalty; its memory is used up.
    cross : array of shape (n_features, n_outputs)
        Products of features and targets.
    sum_y2 : array of shape (n_outputs,)
        Sums of the squared targets.
    mean_h, mean_y, n_samples, n_free, ages
        As in `PenaltyPath`.
    """

    def __init__(
        self,
        matrix: Array,
        cross: Array,
        sum_y2: Array,
        *,
        mean_h: Array,
        mean_y: Array,
        n_samples: int,
        n_free: int,
        ages: tuple[float, float] | None = None,
    ) -> None:
        driver = "evd" if len(matrix) > 1 else "ev"  # older SciPy asks for too little room
        zeros = ~matrix.any(axis=0)
        values, self.vectors = linalg.eigh(
            matrix, driver=driver, overwrite_a=True, check_finite=False
        )
        self.vectors[zeros] = 0.0  # columns of zeros get zeros
        self.values = np.maximum(values, 0.0)
        self.noise = NOISE * self.values[-1]
        self.projected = self.vectors.T @ cross
        self.sum_y2, self.ages = sum_y2, ages
        self.n_samples, self.n_free = n_samples, n_free
        self.mean_h, self.mean_y = mean_h, mean_y

    def pooled(self) -> Eigenbasis:
        """Return the path with all outputs in one."""
        one = copy.copy(self)
        one.projected = np.sqrt((self.projected**2).sum(axis=1, keepdims=True))
        one.sum_y2 = self.sum_y2.sum(keepdims=True)
        return one

    def _gain(self, alpha: ArrayLike) -> Array:
        """1 / (eigenvalue + alpha), or 0 where neither is above the rounding errors."""
        total = np.add.outer(self.values, alpha)
        seen = np.maximum.outer(self.values, np.asarray(alpha)) > self.noise
        seen &= total > np.finfo(np.float64).tiny
        return np.where(seen, 1.0, 0.0) / np.where(seen, total, 1.0)

    def gcv(self, alpha: float) -> Array:
        """Generalised cross-validation score, shape (n_outputs,).

        RSS is a difference of sums of squares, in error by up to 140 eps of them (measured: 100 to
        1000 columns, 1000 to 20,000 rows): below that floor it is set to the floor, which then
        prefers the larger penalty. The floor need not depend on the penalty: what a small one
        would blow up, `_gain` has cut off.
        """
        gain = self._gain(alpha)
        residual = 1.0 - gain * self.values
        fitted = self.projected**2 * (gain * (1.0 + residual))[:, None]
        floor = 16 * np.sqrt(len(self.values)) * EPS * self.sum_y2
        rss = np.maximum(self.sum_y2 - fitted.sum(axis=0), floor)
        return self._score(rss, residual)

    def _objective(self, alpha: float) -> Array:
        fitted = (self.projected**2 * self._gain(alpha)[:, None]).sum(axis=0)
        floor = 16 * np.sqrt(len(self.values)) * EPS * self.sum_y2  # as in `gcv`
        return np.maximum(self.sum_y2 - fitted, floor)


class SingularBasis(PenaltyPath):
    """The singular value decomposition of a triangular factor.

    Parameters
    ----------
    R : array of shape (n_features, n_features)
        The factor of the features.
    targets : array of shape (n_features, n_outputs)
        The targets in the basis of its rows.
    rest_y2 : array of shape (n_outputs,)
        Sums of the squared targets outside that basis, which no coefficients reach.
    size : array of shape (n_features,)
        Lengths of the columns, their means included: what rounding errors are relative to.
    noise : float
        Those errors, relative.
    least_rss : array of shape (n_outputs,)
        Squared rounding errors of the targets.
    mean_h, mean_y, n_samples, n_free, ages
        As in `PenaltyPath`.
    """

    def __init__(
        self,
        R: Array,
        targets: Array,
        rest_y2: Array,
        *,
        size: Array,
        noise: float,
        least_rss: Array,
        mean_h: Array,
        mean_y: Array,
        n_samples: int,
        n_free: int,
        ages: tuple[float, float] | None = None,
    ) -> None:
        used = size[size > 0]
        # columns of very different lengths: Jacobi's method alone keeps the digits of the short
        if len(used) and used.max() > _ALIKE * used.min():
            left, s, right, of_method = _jacobi(R)
        else:
            left, s, rows = linalg.svd(R, check_finite=False)
            right, of_method = rows.T, 2 * EPS * s[0]
        right[np.flatnonzero(np.abs(R).max(axis=0) == 0)] = 0.0  # columns of zeros get zeros
        # a direction is rounding errors if they alone could have made it: columns cancel in it
        lengths = linalg.norm(size[:, None] * right, axis=0)
        self.seen = (s > np.maximum(noise * lengths, of_method))[::-1]
        self.values, self.vectors = s[::-1] ** 2, right[:, ::-1]
        self.along = (left.T @ targets)[::-1]
        self.projected = s[::-1, None] * self.along
        self.rest_y2, self.least_rss, self.ages = rest_y2, least_rss, ages
        self.n_samples, self.n_free = n_samples, n_free
        self.mean_h, self.mean_y = mean_h, mean_y

    def pooled(self) -> SingularBasis:
        """Return the path with all outputs in one."""
        one = copy.copy(self)
        one.projected = np.sqrt((self.projected**2).sum(axis=1, keepdims=True))
        one.along = np.sqrt((self.along**2).sum(axis=1, keepdims=True))
        one.rest_y2 = self.rest_y2.sum(keepdims=True)
        one.least_rss = self.least_rss.sum(keepdims=True)
        return one

    def _gain(self, alpha: ArrayLike) -> Array:
        """1 / (squared singular value + alpha), or 0 where that is rounding errors."""
        total = np.add.outer(self.values, alpha)
        seen = (np.finfo(np.float64).tiny < total.T) & self.seen
        return np.where(seen.T, 1.0, 0.0) / np.where(seen.T, total, 1.0)

    def gcv(self, alpha: float) -> Array:
        """Generalised cross-validation score, shape (n_outputs,).

        RSS is a sum of squares, without cancellation; below the rounding errors of the targets it
        is set to these, which then prefers the larger penalty.
        """
        residual = np.where(self.seen, alpha * self._gain(alpha), 1.0)
        rss = self.rest_y2 + ((residual[:, None] * self.along) ** 2).sum(axis=0)
        return self._score(np.maximum(rss, self.least_rss), residual)

    def _objective(self, alpha: float) -> Array:
        residual = np.where(self.seen, alpha * self._gain(alpha), 1.0)
        left = self.rest_y2 + (residual[:, None] * self.along**2).sum(axis=0)
        return np.maximum(left, self.least_rss)


_ALIKE = 1e4  # lengths of columns within this factor: bidiagonalisation is exact enough for a path


def _jacobi(R: Array) -> tuple[Array, Array, Array, float]:
    """Return left vectors, singular values, right vectors, by one-sided Jacobi rotations.

    Rounding errors are relative to each column (Drmac and Veselic, SIAM J. Matrix Anal. Appl. 29,
    2008).
    """
    s, left, right, work, _, info = linalg.lapack.dgejsv(
        np.asfortranarray(R),
        joba=0,
        jobu=0,
        jobv=0,  # "C", "U", "V": all digits, both bases
    )
    if info != 0:
        raise linalg.LinAlgError(f"dgejsv did not converge: info={info}.")
    return left, s * (work[0] / work[1]), right, 0.0
