"""Ridge solutions for any penalty from one decomposition of the features."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy import linalg

from reservoir._typing import Array, ArrayLike

EPS = np.finfo(np.float64).eps
# Rounding errors of an eigenvalue of a Gram matrix, relative to the largest one: measured on
# matrices of known rank, 50 to 800 columns and 1000 to 100,000 rows, they reach 3.6 eps.
NOISE = 8 * EPS


class PenaltyPath(ABC):
    """Ridge solutions for any penalty at little cost, and the scores that choose among them.

    `values`, (n_features,), are squared singular values of the features, ascending; `vectors` has
    the right singular vectors as columns; `projected`, (n_features, n_outputs), are products of
    features and targets in their basis. `mean_h`, `mean_y` are weighted means, which are
    subtracted; zeros without an intercept. `n_free` is n_samples, or one fewer with an intercept.
    With forgetting, `ages` are the sums of the rows' ageing factors and of their squares.
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
        """Return 1 / (value + alpha), or 0 for directions that contain only rounding errors."""

    @abstractmethod
    def pooled(self) -> PenaltyPath:
        """Return the path of a single output whose score is the sum of all outputs' scores.

        The score is linear in squares, so these can be summed first.
        """

    @abstractmethod
    def gcv(self, alpha: float) -> Array:
        """Return the generalised cross-validation score, (n_outputs,).

        The score is ``(RSS / n) / (1 - dof / n)^2``, where dof is the trace of the hat matrix, the
        intercept included (Golub, Heath and Wahba 1979, eq. (1.4)).
        """

    @abstractmethod
    def _objective(self, alpha: float) -> Array:
        """Return the minimum of the sum of squared residuals plus penalty, (n_outputs,)."""

    def reml(self, alpha: float) -> Array:
        """Return the restricted likelihood of a penalty, converted to a variance, (n_outputs,).

        Let coefficients have the variance s^2 / alpha, and errors the variance s^2. Minus twice the
        logarithm of the restricted likelihood, maximised over s^2, is then ``m log F + sum_i log(1
        + l_i / alpha)`` plus a constant, where m is the number of contrasts of the rows, F the
        minimum of the ridge objective, and l_i are the eigenvalues (Wood 2011, section 2). The
        return value is ``F / m * exp(sum_i log(1 + l_i / alpha) / m)``: the geometric mean of the
        variances with which each row is predicted from the rows before it. With forgetting, m is
        the sum of the ageing factors minus one if there is an intercept.
        """
        if alpha == 0:
            return np.full(len(self.mean_y), np.inf)
        values = np.where(self._gain(alpha) > 0, self.values, 0.0)
        m = n_contrasts(self.n_samples, self.n_free, self.ages)
        return predictive_variance(self._objective(alpha), np.log1p(values / alpha).sum(), m)

    def coef(self, alpha: ArrayLike) -> Array:
        """Return the coefficients, (n_outputs, n_features), under one penalty or one per output."""
        gain = self._gain(alpha)
        gain = gain if gain.ndim == 2 else gain[:, None]
        return (self.vectors @ (self.projected * gain)).T

    def leverage(self, rows: Array, parts: Sequence[slice], alpha: ArrayLike) -> list[Array]:
        """Return `Solved.leverage` under a penalty, or under one for each output."""
        along, gains = (rows - self.mean_h) @ self.vectors, self._gain(alpha).T[..., None, :]
        return [(along[part] * gains) @ along[part].T for part in parts]

    def intercept(self, coef: Array) -> Array:
        """Return the intercepts for given coefficients, (n_outputs,)."""
        return self.mean_y - coef @ self.mean_h

    def freedom(self, alphas: ArrayLike) -> Array:
        """Return the effective degrees of freedom under each penalty, without the intercept."""
        return self.values @ self._gain(alphas)

    def _score(self, rss: Array, residual: Array) -> Array:
        """Return the score of a residual sum of squares.

        `residual` is 1 - value * gain for each direction. At most n_free directions contain data;
        the others contain only rounding errors.
        """
        n, d = self.n_samples, len(self.values)
        if self.ages is not None:
            return rss * aged_inflation(n - self.n_free + (1 - residual).sum(), *self.ages)
        free = residual[max(d - self.n_free, 0) :].sum() + max(self.n_free - d, 0)
        if free <= d * EPS * n:
            return np.full_like(rss, np.inf)
        return n * rss / free**2


def n_contrasts(n_samples: int, n_free: int, ages: tuple[float, float] | None) -> float:
    """Return the number of error contrasts in a restricted likelihood, discounted by forgetting."""
    return float(n_free) if ages is None else ages[0] - (n_samples - n_free)


def predictive_variance(objective: Array, log_det: float, m: float) -> Array:
    """Return `PenaltyPath.reml` from the objective and the log determinant of m contrasts."""
    if m <= 0:
        return np.full(len(objective), np.inf)
    with np.errstate(over="ignore"):  # for a fraction of a contrast; inf is never the lowest score
        return np.asarray(objective / m * np.exp(log_det / m))


def aged_inflation(dof: float, total: float, squares: float) -> float:
    """Return the factor from the residual sum of squares to the error of held-out rows.

    It generalises cross-validation to rows with weights after ageing (docs/theory/readouts.md): all
    rows are assumed to have the same leverage outside the fit, which `dof`, the trace of the hat
    matrix, determines, and weights to decrease geometrically from 1 to `least`, which the `total`
    of the ageing factors and the sum of their `squares` determine. It is ``n / (n - dof)^2`` for n
    equal weights; infinite if dof is too large for these rows.
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


_FULL = 600.0  # logarithm of an inflation so large that no such penalty is ever chosen


class Eigenbasis(PenaltyPath):
    """Eigenbasis of a Gram matrix.

    `matrix` is the Gram matrix without penalty, and is overwritten; `cross`, (n_features,
    n_outputs), are products of features and targets; `sum_y2`, (n_outputs,), are sums of squared
    targets. The other arguments are as in `PenaltyPath`.
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
        driver = "evd" if len(matrix) > 1 else "ev"  # older SciPy allocates too little there
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
        """Return the path of a single output, whose score is the sum of all outputs' scores."""
        one = copy.copy(self)
        one.projected = np.sqrt((self.projected**2).sum(axis=1, keepdims=True))
        one.sum_y2 = self.sum_y2.sum(keepdims=True)
        return one

    def _gain(self, alpha: ArrayLike) -> Array:
        """Return 1 / (eigenvalue + alpha), or 0 where both are within the rounding errors."""
        total = np.add.outer(self.values, alpha)
        seen = np.maximum.outer(self.values, np.asarray(alpha)) > self.noise
        seen &= total > np.finfo(np.float64).tiny
        return np.where(seen, 1.0, 0.0) / np.where(seen, total, 1.0)

    def gcv(self, alpha: float) -> Array:
        """Return the generalised cross-validation score, (n_outputs,).

        RSS is a difference of sums of squares, with an error of up to 140 eps times these sums
        (measured for 100 to 1000 columns and 1000 to 20,000 rows). It is raised to at least a floor
        of this size; where this makes scores equal, the larger penalty is preferred. The floor need
        not depend on the penalty: `_gain` is zero for the directions that a small penalty would
        amplify.
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
    """Singular value decomposition of a triangular factor R of the features.

    `targets`, (n_features, n_outputs), are the right-hand side of R's system; `rest_y2`,
    (n_outputs,), are sums of squares of the remainder, which no coefficients can fit; `least_rss`
    are squared rounding errors of the targets. `size`, (n_features,), are lengths of the columns,
    their means included, to which their rounding errors, `noise`, are relative. The other arguments
    are as in `PenaltyPath`.
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
        # if lengths differ a lot, only Jacobi's method computes short columns to full precision
        if len(used) and used.max() > _SIMILAR * used.min():
            left, s, right, of_method = _jacobi(R)
        else:
            left, s, rows = linalg.svd(R, check_finite=False)
            right, of_method = rows.T, 2 * EPS * s[0]
        right[np.flatnonzero(np.abs(R).max(axis=0) == 0)] = 0.0  # columns of zeros get zeros
        # columns may cancel in a direction, which is then no larger than their rounding errors
        lengths = linalg.norm(size[:, None] * right, axis=0)
        self.seen = (s > np.maximum(noise * lengths, of_method))[::-1]
        self.values, self.vectors = s[::-1] ** 2, right[:, ::-1]
        self.along = (left.T @ targets)[::-1]
        self.projected = s[::-1, None] * self.along
        self.rest_y2, self.least_rss, self.ages = rest_y2, least_rss, ages
        self.n_samples, self.n_free = n_samples, n_free
        self.mean_h, self.mean_y = mean_h, mean_y

    def pooled(self) -> SingularBasis:
        """Return the path of a single output, whose score is the sum of all outputs' scores."""
        one = copy.copy(self)
        one.projected = np.sqrt((self.projected**2).sum(axis=1, keepdims=True))
        one.along = np.sqrt((self.along**2).sum(axis=1, keepdims=True))
        one.rest_y2 = self.rest_y2.sum(keepdims=True)
        one.least_rss = self.least_rss.sum(keepdims=True)
        return one

    def _gain(self, alpha: ArrayLike) -> Array:
        """Return 1 / (squared singular value + alpha), or 0 where it is a rounding error."""
        total = np.add.outer(self.values, alpha)
        seen = (np.finfo(np.float64).tiny < total.T) & self.seen
        return np.where(seen.T, 1.0, 0.0) / np.where(seen.T, total, 1.0)

    def gcv(self, alpha: float) -> Array:
        """Return the generalised cross-validation score, (n_outputs,).

        RSS is a sum of squares, without cancellation. It is raised to at least the rounding errors
        of the targets; where this makes scores equal, the larger penalty is preferred.
        """
        residual = np.where(self.seen, alpha * self._gain(alpha), 1.0)
        rss = self.rest_y2 + ((residual[:, None] * self.along) ** 2).sum(axis=0)
        return self._score(np.maximum(rss, self.least_rss), residual)

    def _objective(self, alpha: float) -> Array:
        residual = np.where(self.seen, alpha * self._gain(alpha), 1.0)
        left = self.rest_y2 + (residual[:, None] * self.along**2).sum(axis=0)
        return np.maximum(left, self.least_rss)


_SIMILAR = 1e4  # column lengths within this factor: bidiagonalisation is accurate enough for a path


def _jacobi(R: Array) -> tuple[Array, Array, Array, float]:
    """Return a singular value decomposition by one-sided Jacobi rotations.

    Its rounding errors are relative to each column (Drmac and Veselic, SIAM J. Matrix Anal. Appl.
    29, 2008). Left vectors, singular values, right vectors and the absolute rounding error of the
    singular values, 0, are returned.
    """
    s, left, right, work, _, info = linalg.lapack.dgejsv(
        np.asfortranarray(R),
        joba=0,
        jobu=0,
        jobv=0,  # "C", "U", "V": full precision, both bases
    )
    if info != 0:
        raise linalg.LinAlgError(f"dgejsv did not converge: info={info}.")
    return left, s * (work[0] / work[1]), right, 0.0
