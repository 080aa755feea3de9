"""Means and centred products, summed over rows, and the ridge solution of their normal equations.

A single penalty is solved by a Cholesky decomposition, several penalties by a tridiagonal
reduction, and penalties within the rounding errors of the products by an eigendecomposition
(`eigen`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir.readouts.eigen import EPS, NOISE, Eigenbasis, PenaltyPath, predictive_variance
from reservoir.readouts.sums import (
    BLOCK_ROWS,
    FAR_FROM_OVERFLOW,
    TINY,
    Likelihood,
    RidgeSolution,
    RowSums,
    Solved,
    above_tiny,
    in_room,
    raise_overflow,
    sums_of,
)

_ROWS_OF_DUST = 64  # rows after which sums that forgetting has reduced below TINY are set to zero


@saved
class GramAccumulator(RowSums):
    """Means and centred products of features H and targets Y, summed over rows.

    All sums are about the running mean (Chan, Golub and LeVeque 1983 [1]_), and in float64 whatever
    the dtype of the rows, so that an offset in the data costs no precision.

    Parameters
    ----------
    n_features : int
    n_outputs : int
    forgetting : float in (0, 1], default=1.0
        Factor by which each new row multiplies the weights of all rows before it. Rows that have
        weight 0, or are skipped for a missing target, leave the weights unchanged. A factor of
        ``1 - 1/n`` gives a memory of about n rows. Forgetting does not reduce the penalty.

    Attributes
    ----------
    n_samples : int
        Number of rows seen, except rows of weight zero.
    n_effective : float
        Number of rows of equal weight with the same information, about ``2 / (1 - forgetting)``
        after many rows; n_samples without forgetting.
    weight : float
        Sum of the sample weights after forgetting.
    ageing : float
        Product of the forgetting factors of all rows. When another accumulator merges this one, the
        weights of its own rows are multiplied by this product.
    mean_h, mean_y : arrays of shape (n_features,) and (n_outputs,)
        Weighted means of features and targets.
    cross : array of shape (n_features, n_outputs)
        Sum of w (h - mean_h)(y - mean_y)'.
    sum_y2 : array of shape (n_outputs,)
        Sum of w (y - mean_y)^2.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample
       variance", The American Statistician 37, 1983, eq. (2.1).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import GramAccumulator
    >>> H = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
    >>> y = 2 * H[:, 0] - H[:, 1] + 5
    >>> half = GramAccumulator(2, 1).update(H[:2], y[:2])
    >>> gram = half.merge(GramAccumulator(2, 1).update(H[2:], y[2:]))
    >>> solution = gram.solve(0.0)
    >>> solution.coef.round(6), solution.intercept.round(6)
    (array([[ 2., -1.]]), array([5.]))
    """

    to_solve, of_path = 3, 5

    def __init__(self, n_features: int, n_outputs: int, *, forgetting: float = 1.0) -> None:
        super().__init__(n_features, n_outputs, forgetting=forgetting)
        self._reset()

    @in_room(1)
    def _reset(self) -> None:
        self.n_samples = 0
        self.weight = 0.0
        self.mean_h = np.zeros(self.n_features)
        self.mean_y = np.zeros(self.n_outputs)
        self._upper = np.zeros((self.n_features, self.n_features), order="F")
        self.cross = np.zeros((self.n_features, self.n_outputs))
        self.sum_y2 = np.zeros(self.n_outputs)

    def square_sums(self) -> Array:
        """Return the diagonal of `gram`, with zeros for columns that are constant to rounding."""
        squares = np.diagonal(self._upper)
        return np.where(squares > self._constant(), squares, 0.0)

    @property
    @in_room(2)
    def gram(self) -> Array:
        """Sum of w (h - mean_h)(h - mean_h)', array of shape (n_features, n_features)."""
        whole = self._upper.copy(order="F")
        np.copyto(whole, self._upper.T, where=np.tri(self.n_features, k=-1, dtype=bool))
        return whole

    def update(
        self,
        H: ArrayLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        missing: str = "raise",
        overwrite_h: bool = False,
    ) -> GramAccumulator:
        """Add rows.

        Parameters
        ----------
        H : array of shape (n_samples, n_features)
        Y : array of shape (n_samples, n_outputs), or (n_samples,) for one output
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows, at least 0.
        missing : {"raise", "skip"}, default="raise"
            Whether a row whose target is NaN in any output raises an error or is skipped.
        overwrite_h : bool, default=False
            Whether H, if it is float64 and C-ordered, may be overwritten, which saves a copy.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If shapes disagree, a weight is negative, a value is NaN or infinite, or squares
            overflow.
        """
        return self._add_rows(H, Y, sample_weight, missing, sign=1, overwrite=overwrite_h)

    def downdate(
        self,
        H: ArrayLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        missing: str = "raise",
    ) -> GramAccumulator:
        """Subtract rows that `update` has added.

        Rounding errors of the subtracted rows remain: the sums of a window that slides for very
        long should be recomputed from time to time.

        Parameters
        ----------
        H, Y, sample_weight, missing
            As in `update`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            In the same cases as `update`, and if more rows are subtracted than were added, or if
            forgetting has reduced the weights of rows.
        """
        return self._add_rows(H, Y, sample_weight, missing, sign=-1)

    def merge(self, other: GramAccumulator) -> GramAccumulator:
        """Add the rows of another accumulator, after the rows of this one.

        Parameters
        ----------
        other : GramAccumulator
            Accumulator with the same numbers of features and outputs; it is not changed. The
            forgetting factors of its rows also apply to the rows of this one.

        Returns
        -------
        self
        """
        return self._combine(other, sign=1)

    def subtract(self, other: GramAccumulator) -> GramAccumulator:
        """Subtract the rows of another accumulator.

        Parameters
        ----------
        other : GramAccumulator
            Accumulator with the same numbers of features and outputs, over rows that this one
            contains; it is not changed.

        Returns
        -------
        self
        """
        self._check_never_aged(other)
        return self._combine(other, sign=-1)

    def after(self, earlier: GramAccumulator) -> GramAccumulator:
        """Return sums over an earlier accumulator's rows, followed by the rows of this one.

        This accumulator must not be used again.
        """
        total = copy.copy(earlier)
        for name in ("mean_h", "mean_y", "cross", "sum_y2"):
            setattr(total, name, getattr(earlier, name).copy())
        total.forgetting = self.forgetting
        if self.n_samples == 0:
            total._upper = earlier._upper.copy(order="F")
        return total._combine(self, sign=1, use_up=True)

    def solve(self, alpha: float | ArrayLike, *, fit_intercept: bool = True) -> RidgeSolution:
        """Return ridge coefficients, which minimise ``||Y - H C' - c||^2 + alpha ||C||^2``.

        The intercept c is not penalised. The penalty is not divided by the number of rows
        (scikit-learn's convention).

        Forming a Gram matrix loses half of the significant digits of the states. Let lambda be its
        largest eigenvalue, about ``n_samples * n_features`` times the variance of the states. A
        penalty above 8 eps lambda (eps = 2.2e-16) gives the same solution as a fit to the stored
        states. With a smaller penalty, directions with eigenvalues below 8 eps lambda get the
        coefficient zero (least norm), unless the Gram matrix is well conditioned. In noise-free
        one-step prediction of Mackey-Glass (4000 rows), a penalty of 1e-8 or more gives the test
        error of an SVD of the states for up to 1000 units. With a penalty of 1e-12, the squared
        error is 1.0 times the squared error of the SVD at 300 units, up to 4 times at 600 units and
        up to 25 times at 1000 units. Columns that are constant to rounding get the coefficient
        zero.

        Parameters
        ----------
        alpha : float or array of shape (n_outputs,), at least 0
            The penalty, or one for each output.
        fit_intercept : bool, default=True

        Returns
        -------
        RidgeSolution

        Raises
        ------
        ValueError
            If there are no rows, or alpha is negative or not finite.
        """
        given = self._check_alpha(alpha)
        return self._solution(self._solve(given, fit_intercept).coef, given, fit_intercept)

    @in_room(5)
    def path(self, fit_intercept: bool = True) -> Eigenbasis:
        """Return ridge solutions for any penalty, from one eigendecomposition.

        ``path.coef(alpha)`` returns coefficients, ``path.intercept(coef)`` returns their intercept,
        and ``path.gcv(alpha)`` returns the score of generalised cross-validation.

        Parameters
        ----------
        fit_intercept : bool, default=True

        Returns
        -------
        reservoir.readouts.eigen.Eigenbasis

        Raises
        ------
        ValueError
            If there are no rows.
        """
        matrix, cross = self._normal_equations(fit_intercept)
        return self._eigenbasis(matrix, cross, self._squares_y(fit_intercept), fit_intercept)

    def _eigenbasis(
        self, matrix: Array, cross: Array, sum_y2: Array, fit_intercept: bool
    ) -> Eigenbasis:
        mean_h, mean_y = (mean * float(fit_intercept) for mean in (self.mean_h, self.mean_y))
        counts = self._counts(fit_intercept)
        return Eigenbasis(matrix, cross, sum_y2, mean_h=mean_h, mean_y=mean_y, **counts)

    def _squares_y(self, fit_intercept: bool) -> Array:
        """Return the sums of the squared targets, about their means with an intercept."""
        if fit_intercept:
            return self.sum_y2
        return self.sum_y2 + self.weight * self.mean_y**2

    @in_room(5)
    def _likelihood(
        self, differences: GramAccumulator, rho: float, least: float, fit_intercept: bool
    ) -> Likelihood:
        """Return restricted likelihoods for errors of the precision ``(1 - rho)^2 I + rho L``."""
        matrix, cross = self._normal_equations(fit_intercept)
        apart, cross_apart = differences._normal_equations(False)
        # differences of a constant column are rounding errors
        constant = ~matrix.any(axis=0)
        apart[constant], apart[:, constant], cross_apart[constant] = 0.0, 0.0, 0.0
        of_rows, of_steps = (1 - rho) ** 2, rho
        matrix *= of_rows
        matrix += of_steps * apart
        cross = of_rows * cross + of_steps * cross_apart
        sum_y2 = of_rows * self._squares_y(fit_intercept)
        sum_y2 += of_steps * differences._squares_y(False)
        if len(matrix) == 1 or not least > rounding_of(matrix):
            return self._eigenbasis(matrix, cross, sum_y2, fit_intercept)
        return _TridiagonalPath(matrix, cross, sum_y2, self._n_contrasts(fit_intercept))

    @in_room(3)
    def along(self, alphas: Array, fit_intercept: bool = True) -> tuple[Array, Array]:
        """Return coefficients and intercepts under each penalty.

        This takes a quarter of the work of `path`, if all penalties are above the rounding errors
        of the Gram matrix.

        Parameters
        ----------
        alphas : array of shape (n_alphas,)
        fit_intercept : bool, default=True

        Returns
        -------
        coefs : array of shape (n_alphas, n_outputs, n_features)
        intercepts : array of shape (n_alphas, n_outputs)
        """
        gram, cross = self._normal_equations(fit_intercept)
        if not alphas.min() > rounding_of(gram):
            return super().along(alphas, fit_intercept)
        coefs = along_path(gram, cross, alphas)
        intercepts = [self._intercept(coef) * float(fit_intercept) for coef in coefs]
        return coefs, np.array(intercepts)

    def squared_errors(self, coefs: Array, intercepts: Array) -> Array:
        """Return the sums of squared errors of given coefficients over these rows.

        Parameters
        ----------
        coefs : array of shape (n_candidates, n_outputs, n_features)
        intercepts : array of shape (n_candidates, n_outputs)

        Returns
        -------
        array of shape (n_candidates, n_outputs)
        """
        # ||y - C h - c||^2 summed over the rows, from the sums about their means
        flat = coefs.reshape(-1, self.n_features)
        product = blas.dsymm(1.0, self._upper, flat.T)  # reads the upper triangle
        slopes = product.T.reshape(coefs.shape) - 2 * self.cross.T
        inside = np.einsum("kij,kij->ki", coefs, slopes)
        offsets = self.mean_y - coefs @ self.mean_h - intercepts
        return np.maximum(self.sum_y2 + inside, 0.0) + self.weight * offsets**2

    @in_room(3)
    def penalised_factor(self, alpha: float, fit_intercept: bool) -> tuple[Array, Array, Array]:
        """Return a triangular factor of features and penalty, and the transformed targets.

        If the penalty is within the rounding errors of the Gram matrix, directions whose
        eigenvalues are within them get the coefficient zero.

        Parameters
        ----------
        alpha : float > 0
        fit_intercept : bool
            Whether the means of the rows are subtracted.

        Returns
        -------
        R : array of shape (n_features, n_features)
            Upper triangular, ``R'R = H'H + alpha I``.
        Z : array of shape (n_features, n_outputs)
            ``R'Z = H'Y``.
        means : array of shape (n_features + n_outputs,)
            Means of features, then of targets; zeros if they are not subtracted.
        """
        means = np.concatenate([self.mean_h, self.mean_y]) * float(fit_intercept)
        gram, cross = self._normal_equations(fit_intercept)
        if alpha > rounding_of(gram):
            gram[np.diag_indices(len(gram))] += alpha
            R = linalg.cholesky(gram, check_finite=False)
            return R, linalg.solve_triangular(R, cross, trans="T", check_finite=False), means
        values, vectors = linalg.eigh(gram, check_finite=False)
        kept = values > NOISE * values[-1]
        lengths = np.sqrt(np.where(kept, values, 0.0) + alpha)
        Q, R = linalg.qr(lengths[:, None] * vectors.T, check_finite=False)
        Z = Q.T @ (np.where(kept[:, None], vectors.T @ cross, 0.0) / lengths[:, None])
        return R, Z, means

    @in_room(3)
    def _solve(
        self, alpha: Any, fit_intercept: bool, path: Callable[[], PenaltyPath] | None = None
    ) -> Solved:
        """Solve by Cholesky for one penalty where that is safe, else from the eigenbasis."""
        if np.ndim(alpha) == 0:
            mean = self.mean_h if fit_intercept else np.zeros(self.n_features)
            solved = _by_cholesky(*self._normal_equations(fit_intercept), alpha, mean)
            if solved is not None:
                return solved
        basis = path() if path else self.path(fit_intercept)
        return Solved(basis.coef(alpha), partial(basis.leverage, alpha=alpha))

    def _less(self, part: GramAccumulator, n_present: int) -> GramAccumulator:
        return self.copy().subtract(part)

    def _leading(self, n_features: int, scales: Array | None = None) -> GramAccumulator:
        """Return sums over the first features, each multiplied by its scale; not to be changed."""
        n = n_features
        upper, cross, mean_h = self._upper[:n, :n], self.cross[:n], self.mean_h[:n]
        if scales is not None:
            upper = upper * scales[:, None] * scales
            cross, mean_h = cross * scales[:, None], mean_h * scales
        return self._over(np.asfortranarray(upper), cross, mean_h)

    def _over(self, upper: Array, cross: Array, mean_h: Array) -> GramAccumulator:
        """Return sums over the same rows of other features."""
        one = GramAccumulator.__new__(GramAccumulator)
        one.__dict__ |= vars(self) | {"n_features": len(mean_h), "forgetting": self.forgetting}
        one._upper, one.cross, one.mean_h = upper, cross, mean_h
        return one

    def _intercept(self, coef: Array) -> Array:
        return self.mean_y - coef @ self.mean_h

    def _constant(self) -> Array:
        """Return the sums of squares that constant columns may have due to rounding errors."""
        return self.weight * (16 * EPS * self.mean_h) ** 2

    def _normal_equations(self, fit_intercept: bool) -> tuple[Array, Array]:
        """Return the Gram matrix and cross products of the normal equations, without penalty."""
        self._check_filled()
        gram, cross = self.gram, self.cross.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            if fit_intercept:
                # a constant column about its mean is rounding errors, which must not be fitted
                constant = np.diagonal(gram) <= self._constant()
                gram[constant], gram[:, constant], cross[constant] = 0.0, 0.0, 0.0
            else:
                gram += self.weight * np.outer(self.mean_h, self.mean_h)
                cross += self.weight * np.outer(self.mean_h, self.mean_y)
            finite = np.isfinite(gram.sum()) and np.isfinite(cross.sum())
        if not finite and not (np.isfinite(gram).all() and np.isfinite(cross).all()):
            raise ValueError("The Gram matrix overflows: scale the data down.")
        return gram, cross

    def _add_rows(
        self,
        H: ArrayLike,
        Y: ArrayLike,
        sample_weight: Any,
        missing: str,
        sign: int,
        overwrite: bool = False,
    ) -> GramAccumulator:
        H, Y, weights = self._read_rows(H, Y, sample_weight)
        check_choice("missing", missing, ("raise", "skip"))
        keep = np.ones(len(H), bool) if weights is None else weights > 0
        if missing == "skip":
            keep &= ~np.isnan(Y).any(axis=1)
        n = int(keep.sum())
        if sign < 0:
            self._check_removal(n, float(n if weights is None else weights[keep].sum()))
        in_place = overwrite and H.dtype == np.float64 and H.flags.c_contiguous
        in_place = in_place and H.flags.writeable and H.shape[1] == self.n_features
        room = None if in_place else np.empty((min(len(H), BLOCK_ROWS), self.n_features))
        for start in range(0, len(H), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            h, y = H[rows], Y[rows]
            w = None if weights is None else weights[rows]
            if not keep[rows].all():
                h, y, w = h[keep[rows]], y[keep[rows]], None if w is None else w[keep[rows]]
            if len(h):
                # always the same layout: the last bits of a product depend on it
                h, y = np.ascontiguousarray(h), np.ascontiguousarray(y, dtype=np.float64)
                self._add_block(h, y, w, sign, h if room is None else room[: len(h)])
        return self

    def _add_block(
        self, h: Array, y: Array, w: Array | None, sign: int, room: Array
    ) -> tuple[Array, Array]:
        """Add (or subtract) one block; centred rows are written to `room`, possibly h itself.

        The results are the means of y and h, and the means of the centred rows.
        """
        ageing, ages = self._row_ages(len(h))
        if ages is not None:
            w = ages if w is None else w * ages
        weight = float(len(h) if w is None else w.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            share = np.full(len(h), 1 / weight) if w is None else w / weight
            mean_h, mean_y = share @ h.astype(np.float64, copy=False), share @ y
            h = np.subtract(h, mean_h, out=room)
            y = y - mean_y
            columns = np.column_stack([np.ones(len(h)), y])
            if w is not None:
                columns *= w[:, None]
            products = h.T @ columns  # the sums of h, and of h y
            # the means of the centred rows are not quite zero: a sum over 512 rows loses precision,
            # and without this correction the rounding errors of a constant would look like signal
            rest_h, rest_y = products[:, 0] / weight, columns[:, 1:].sum(axis=0) / weight
            if w is not None:
                h *= np.sqrt(w)[:, None]
            squares_y = np.einsum("ij,ij->j", columns[:, 1:], y)
            if not np.vdot(h, h) < FAR_FROM_OVERFLOW:
                self._check_finite("H", np.einsum("ij,ij->j", h, h), mean_h, weight, sign)
            self._check_finite("H", rest_h, mean_h, weight, sign)
            self._check_finite("Y", squares_y, mean_y, weight, sign)
        self._age(ageing, sums_of(ages), len(h))
        if len(h) > 1 or (ageing != 1.0 and self.n_samples):  # a single centred row is zero
            self._upper = blas.dsyrk(float(sign), h.T, ageing, self._upper, overwrite_c=True)
        self.cross += sign * products[:, 1:]
        self.sum_y2 += sign * squares_y
        if len(h) > 1:
            self._add_outer(-sign * weight, rest_h, rest_y)
        self._shift(mean_h + rest_h, mean_y + rest_y, weight, len(h), sign)
        return np.append(mean_y, mean_h), np.append(rest_y, rest_h)

    def _add_outer(self, factor: float, delta_h: Array, delta_y: Array) -> None:
        self._upper = blas.dsyr(factor, delta_h, a=self._upper, overwrite_a=True)
        self.cross += factor * np.outer(delta_h, delta_y)
        self.sum_y2 += factor * delta_y**2

    def _age(self, ageing: float, ages: tuple[float, float] | None, n: int) -> None:
        """Age all sums but the matrix, before n new rows are added."""
        self._count_ages(ageing, ages, n)
        if ageing != 1.0:
            self.cross *= ageing
            self.sum_y2 *= ageing
            self.weight = above_tiny(self.weight * ageing)
            if self.n_samples % _ROWS_OF_DUST + n >= _ROWS_OF_DUST:
                for sums in (self._upper, self.cross, self.sum_y2):
                    sums[np.abs(sums) < TINY] = 0.0

    def _discount(self, factor: float) -> None:
        self._upper *= factor
        self._age(factor, (0.0, 0.0), 0)

    def _combine(
        self, other: GramAccumulator, sign: int, *, use_up: bool = False
    ) -> GramAccumulator:
        """Add (or subtract) another accumulator's sums; `use_up` overwrites that accumulator."""
        self._check_size(other)
        if other.n_samples == 0:
            return self
        if sign < 0:
            self._check_removal(other.n_samples, other.weight)
        self._check_finite("H", np.diagonal(other._upper), other.mean_h, other.weight, sign)
        self._check_finite("Y", other.sum_y2, other.mean_y, other.weight, sign)
        if use_up:
            flat = other._upper.T.reshape(-1)
            blas.daxpy(self._upper.T.reshape(-1), flat, a=other.ageing)
            self._upper = other._upper
        else:
            if other.ageing != 1.0:
                self._upper *= other.ageing
            self._upper += sign * other._upper
        self._age(other.ageing, other._ages, other.n_samples)
        self.cross += sign * other.cross
        self.sum_y2 += sign * other.sum_y2
        self._shift(other.mean_h, other.mean_y, other.weight, other.n_samples, sign)
        return self

    def _check_finite(
        self, name: str, squares: Array, mean: Array, weight: float, sign: int
    ) -> None:
        """Check that the sums will not overflow, before anything is changed."""
        # the distance between the means will add to the squares
        after = self.weight + sign * weight
        apart = self.weight * (weight / after) if self.weight > 0 and after > 0 else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            delta = mean - (self.mean_h if name == "H" else self.mean_y)
            finite = np.isfinite(squares + (apart * delta**2 if apart > 0 else mean))
        if not finite.all():
            raise_overflow(name, int(np.argmin(finite)))

    def _shift(self, mean_h: Array, mean_y: Array, weight: float, n: int, sign: int) -> None:
        """Update the means, and correct the products for the distance between old and new means."""
        self.n_samples += sign * n
        if self.n_samples == 0:
            self._reset()
            return
        # there is no earlier mean if these are the first rows, or the first with a weight
        if (self.n_samples == n or self.weight == 0) and sign > 0:
            self.mean_h, self.mean_y, self.weight = mean_h.copy(), mean_y.copy(), weight
            return
        before, after = self.weight, self.weight + sign * weight
        step = sign * weight / after
        delta_h, delta_y = mean_h - self.mean_h, mean_y - self.mean_y
        self.mean_h += step * delta_h
        self.mean_y += step * delta_y
        self._add_outer(before * step, delta_h, delta_y)
        self.weight = after


def _by_cholesky(gram: Array, cross: Array, alpha: float, mean: Array) -> Solved | None:
    """Solve for one penalty; None if neither data nor penalty determine all coefficients.

    `gram`, (n_features, n_features), is overwritten; `cross` is (n_features, n_outputs). `mean`
    contains the means that were subtracted from the features.
    """
    varies = np.diagonal(gram) > 0
    # a penalty above the rounding errors makes any Gram matrix positive definite
    with np.errstate(over="ignore"):
        covered = alpha > rounding_of(gram)
    gram[np.diag_indices(len(gram))] += alpha
    scale = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(np.float64).tiny))
    gram /= scale  # unit diagonal: columns in large units must not make others look singular
    gram /= scale[:, None]
    try:
        factor = linalg.cholesky(gram, check_finite=False)
    except linalg.LinAlgError:
        return None
    if not covered:
        rcond, _ = linalg.lapack.dpocon(factor, linalg.norm(gram, 1), uplo="U")
        if rcond <= len(gram) * EPS:
            return None
    scaled = linalg.cho_solve((factor, False), cross / scale[:, None], check_finite=False)

    def leverage(rows: Array, parts: Sequence[slice]) -> list[Array]:
        about = np.where(varies, rows - mean, 0.0) / scale
        each = linalg.solve_triangular(factor, about.T, trans="T", check_finite=False)
        return [each[:, part].T @ each[:, part] for part in parts]

    return Solved((scaled / scale[:, None]).T, leverage)


def along_path(gram: Array, cross: Array, alphas: Array) -> Array:
    """Return the coefficients under each penalty, (n_alphas, n_outputs, n_features).

    They come from one tridiagonal reduction, a quarter of the work of an eigendecomposition; each
    penalty then costs the solution of a tridiagonal system. The symmetric `gram` is overwritten;
    `cross` is (n_features, n_outputs). Penalties must be above the rounding errors of the Gram
    matrix.
    """
    if len(cross) == 1:
        return cross.T / (gram + alphas[:, None, None])
    return ReducedGram(gram).along(cross, alphas)


class ReducedGram:
    """Decomposition Q T Q' of a symmetric matrix, with T tridiagonal.

    The matrix must have at least two rows, and is overwritten.
    """

    def __init__(self, matrix: Array) -> None:
        self.zeros = ~matrix.any(axis=0)
        # Q is a product of reflections that do not touch the first coordinate: LAPACK stores them
        # below the diagonal, as in a QR decomposition
        lwork = int(linalg.lapack.dsytrd_lwork(len(matrix), lower=1)[0])
        packed, self.diagonal, self.off_diagonal, self.tau, _ = linalg.lapack.dsytrd(
            np.asfortranarray(matrix), lower=1, lwork=lwork, overwrite_a=True
        )
        self.reflections = np.asfortranarray(packed[1:, :-1])

    def rotated(self, columns: Array, transposed: str) -> Array:
        """Return Q ("N") or Q' ("T") times columns, which may be overwritten."""
        columns = np.asfortranarray(columns)
        room = 64 * max(columns.shape[1], 1)
        columns[1:] = linalg.lapack.dormqr(
            "L", transposed, self.reflections, self.tau, columns[1:], room
        )[0]
        return columns

    def solve(self, alpha: float, targets: Array) -> tuple[Array, Array]:
        """Return ``(T + alpha)^-1 targets``, and the pivots of ``T + alpha``."""
        pivots, factors, _ = linalg.lapack.dpttrf(self.diagonal + alpha, self.off_diagonal)
        return linalg.lapack.dpttrs(pivots, factors, targets)[0], pivots

    def along(self, cross: Array, alphas: Array) -> Array:
        """Return `along_path`."""
        targets = self.rotated(cross.copy(), "T")
        found = np.empty((len(cross), len(alphas), cross.shape[1]), order="F")
        for k, alpha in enumerate(alphas):
            found[:, k], _ = self.solve(alpha, targets)
        return self.rotated_back(found)

    def rotated_back(self, found: Array) -> Array:
        """Return solutions (n, n_alphas, n_outputs) as coefficients (n_alphas, n_outputs, n)."""
        coefs = self.rotated(found.reshape(len(found), -1), "N").reshape(found.shape)
        coefs[self.zeros] = 0.0  # columns of zeros get zeros, not rounding errors over the penalty
        return np.ascontiguousarray(coefs.transpose(1, 2, 0))


class _TridiagonalPath:
    """The restricted likelihood of any penalty, from one tridiagonal reduction.

    `gram` is the symmetric matrix of at least two features, and is overwritten; `cross` is
    (n_features, n_outputs). `m` is the number of contrasts in the likelihood.
    """

    def __init__(self, gram: Array, cross: Array, sum_y2: Array, m: float) -> None:
        self.reduced = ReducedGram(gram)
        self.targets = self.reduced.rotated(cross.copy(), "T")
        self.sum_y2, self.m = sum_y2, m

    def reml(self, alpha: float) -> Array:
        """Return `PenaltyPath.reml` of a penalty above the rounding errors of the Gram matrix."""
        solved, pivots = self.reduced.solve(alpha, self.targets)
        floor = 16 * np.sqrt(len(pivots)) * EPS * self.sum_y2  # as in `Eigenbasis`
        objective = np.maximum(self.sum_y2 - (self.targets * solved).sum(axis=0), floor)
        return predictive_variance(objective, float(np.log(pivots / alpha).sum()), self.m)


def rounding_of(gram: Array) -> float:
    """Return the rounding errors of eigenvalues, from a norm that bounds the largest one."""
    return float(NOISE * linalg.norm(gram, check_finite=False))
