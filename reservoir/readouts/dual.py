"""Ridge regression for few rows with many columns, its penalty chosen by exact leave-one-out.

Each row contains the features of a whole sequence, and all rows are in memory. With n rows and d
columns, the n x n matrix of products between rows contains the same information as the d x d matrix
of products between columns: the smaller one is decomposed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_penalties, room_for
from reservoir.readouts.eigen import NOISE, Eigenbasis, SingularBasis
from reservoir.readouts.gram import GramAccumulator
from reservoir.readouts.selection import least_score
from reservoir.readouts.sums import BLOCK_ROWS, raise_overflow

_BLOCK_COLUMNS = 512
_CONSTANT = 16  # a column that varies by less, in rounding errors of its largest value, is constant


class LeaveOneOut(NamedTuple):
    """A ridge whose penalty was chosen by leave-one-out, and its predictions of held-out rows.

    Attributes
    ----------
    coef : array of shape (n_outputs, n_features)
        Coefficients of the original columns, before standardisation; 0 for constant columns.
    intercept : array of shape (n_outputs,)
    alpha : float or array of shape (n_outputs,)
        The chosen penalty, which applies to standardised columns; an array if ``per_target=True``.
    scores : array of shape (n_alphas, n_outputs)
        Weighted mean of the squared errors of held-out rows, for each penalty.
    left_out : array of shape (n_samples, n_outputs)
        Prediction of each row by a fit on all other rows, under the chosen penalty.
    """

    coef: Array
    intercept: Array
    alpha: float | Array
    scores: Array
    left_out: Array


def leave_one_out_ridge(
    H: ArrayLike,
    Y: ArrayLike,
    alphas: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    per_target: bool = False,
    column_weights: ArrayLike | None = None,
) -> LeaveOneOut:
    """Fit a ridge on standardised columns, its penalty chosen by exact leave-one-out.

    Minimises ``sum_i w_i ||y_i - C z_i - c||^2 + alpha ||C||^2``, with z the columns of H divided
    by their (weighted) standard deviations. The prediction of a row by a fit on all other rows,
    intercept included, has a closed form [1]_: ``y_i - e_i / (1 - p_i)``, where e_i is the
    residual of the fit on all rows and p_i the row's leverage. One eigendecomposition of a matrix
    of min(n_samples, n_features) columns serves all penalties. The standard deviations are computed
    over all rows.

    Parameters
    ----------
    H : array of shape (n_samples, n_features)
        Features. They are read block by block and never copied as a whole; a float32 array is not
        converted to float64 as a whole.
    Y : array of shape (n_samples, n_outputs), or (n_samples,) for one output
    alphas : array of shape (n_alphas,), at least 0
        Penalties to choose from. In the errors of held-out rows, a penalty within the rounding
        errors of the decomposition (below about 1e-15 times its largest eigenvalue) is raised to
        the size of these rounding errors.
    sample_weight : array of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two equal rows that are held
        out together.
    per_target : bool, default=False
        Whether each output gets a separate penalty; otherwise one penalty minimises the sum of the
        scores over outputs.
    column_weights : array of shape (n_features,), optional
        Factors, at least 0, by which the standardised columns are multiplied: columns with large
        factors are penalised less. The factors are treated as constants: if they were computed
        from Y, held-out predictions depend on the targets that they predict.

    Returns
    -------
    LeaveOneOut
        The fit under the penalty with the lowest score; of equal scores, the largest penalty is
        chosen.

    Raises
    ------
    ValueError
        If shapes disagree, fewer than two rows have a positive weight, a penalty or a weight is
        negative, a value is NaN or infinite, or squares overflow.

    References
    ----------
    .. [1] R. D. Cook and S. Weisberg, "Residuals and Influence in Regression", Chapman and Hall,
       1982, section 2.2 and appendix A.2; with a penalty G. H. Golub, M. Heath and G. Wahba,
       "Generalized cross-validation as a method for choosing a good ridge parameter",
       Technometrics 21, 1979, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import leave_one_out_ridge
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=30)
    >>> H = y[:, None] + 3 * rng.normal(size=(30, 200))
    >>> ridge = leave_one_out_ridge(H, y, [1.0, 100.0, 10000.0])
    >>> ridge.alpha, ridge.coef.shape, ridge.left_out.shape
    (1.0, (1, 200), (30, 1))
    """
    H, Y, weights = read_rows(H, Y, sample_weight)
    alphas = np.atleast_1d(check_penalties("alphas", alphas))
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must have shape (n_alphas,); got {alphas.shape}.")
    known = weights > 0
    if known.sum() < 2:
        raise ValueError(
            f"Leave-one-out needs at least two rows of positive weight; got {known.sum()}."
        )
    every = known.all()
    rows = StandardRows(H if every else H[known], weights[known])
    if column_weights is not None:
        rows.weigh_columns(column_weights)
    basis_of = _RowBasis if len(rows.H) <= H.shape[1] else ColumnBasis
    n, which = min((len(rows.H), "rows"), (H.shape[1], "features"))
    what = f"Matrices of products between {n} {which}, 3 at a time,"
    with room_for(what, 24.0 * n**2, "Use fewer rows, or fewer features than rows."):
        basis = basis_of(rows, Y[known])
    errors = basis.left_out_errors(alphas)
    scores = np.einsum("i,aij,aij->aj", weights[known] / weights.sum(), errors, errors)
    best = least_score(alphas, scores, per_target)
    coef = basis.coef(best)
    intercept = basis.intercept(coef)
    coef /= rows.scale
    intercept = intercept - coef @ rows.mean
    left_out = np.empty_like(Y)
    left_out[~known] = H[~known] @ coef.T + intercept
    chosen = errors[np.argmax(np.equal.outer(alphas, best), axis=0), ..., np.arange(Y.shape[1])].T
    left_out[known] = Y[known] - chosen
    return LeaveOneOut(coef, intercept, best, scores, left_out)


def ridge_at(
    H: Array, Y: Array, alpha: float, weights: Array, column_weights: Array
) -> tuple[Array, Array]:
    """Return the coefficients and intercept of `leave_one_out_ridge` for one penalty.

    They agree to rounding errors. If the penalty is above rounding errors, they are computed by a
    Cholesky decomposition instead of an eigendecomposition, which for a large matrix takes a tenth
    of the time or less.
    """
    rows = StandardRows(H, weights)
    rows.weigh_columns(column_weights)
    if len(H) > H.shape[1]:
        solution = _gram_of(rows, Y).solve(alpha)
        coef, intercept = solution.coef, np.atleast_1d(solution.intercept)
    else:
        mean, root = weights @ Y / weights.sum(), np.sqrt(weights)[:, None]
        inner = _inner_products(rows)
        if alpha <= NOISE * np.trace(inner):  # Cholesky may fail by rounding errors
            fitted = leave_one_out_ridge(H, Y, alpha, weights, column_weights=column_weights)
            return fitted.coef, fitted.intercept
        inner.flat[:: len(H) + 1] += alpha
        factor = linalg.cho_factor(inner, overwrite_a=True, check_finite=False)
        dual = (root * linalg.cho_solve(factor, root * (Y - mean), check_finite=False)).T
        coef = np.hstack([dual @ rows[:, at] for at in rows.column_slices()])
        intercept = mean
    coef = coef / rows.scale
    return coef, intercept - coef @ rows.mean


def read_rows(H: Any, Y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
    """Return features, targets and weights as arrays, and check that their shapes agree."""
    H, Y = as_plain("H", H), as_plain("Y", Y, np.float64)
    H = H if H.dtype in (np.float32, np.float64) else H.astype(np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if H.ndim != 2 or Y.ndim != 2 or len(H) != len(Y) or H.shape[1] == 0:
        raise ValueError(
            "H must have shape (n_samples, n_features) and Y (n_samples, n_outputs); got "
            f"{H.shape} and {Y.shape}."
        )
    weights = np.ones(len(H))
    if sample_weight is not None:
        weights = as_plain("sample_weight", sample_weight, np.float64)
    if weights.shape != (len(H),):
        raise ValueError(f"sample_weight must have shape ({len(H)},); got {weights.shape}.")
    if not (weights >= 0).all() or not np.isfinite(weights.sum()):
        raise ValueError("sample_weight must be finite and at least 0 in every row.")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(np.einsum("ij,ij->j", Y, Y))
    if not finite.all():
        raise_overflow("Y", int(np.argmin(finite)))
    return H, Y, weights


class StandardRows:
    """Rows whose columns have mean 0 and standard deviation 1, computed block by block.

    `mean` and `scale` are the weighted means and standard deviations, (n_features,); the standard
    deviation of a column that is constant to rounding is infinite.
    """

    def __init__(self, H: Array, weights: Array) -> None:
        self.H, self.weights = H, weights
        self.mean, self.scale = np.empty(H.shape[1]), np.empty(H.shape[1])
        share = weights / weights.sum()
        for at in self.column_slices():
            block = H[:, at].astype(np.float64)
            largest = np.abs(block).max(axis=0)
            with np.errstate(over="ignore", invalid="ignore"):
                mean = share @ block
                block -= mean
                rest = share @ block  # the mean's rounding error
                scale = np.sqrt(np.maximum(share @ block**2 - rest**2, 0.0))
            if not np.isfinite(scale).all():
                raise_overflow("H", at.start + int(np.argmin(np.isfinite(scale))))
            constant = scale <= _CONSTANT * np.finfo(H.dtype).eps * largest
            self.mean[at] = mean + rest
            self.scale[at] = np.where(constant, np.inf, scale)

    def weigh_columns(self, factors: ArrayLike) -> None:
        """Multiply the standardised columns by factors; a factor of 0 excludes a column."""
        factors = as_plain("column_weights", factors, float)
        if factors.shape != self.scale.shape or not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(
                f"column_weights must have shape {self.scale.shape}, and all of them must be "
                "finite and at least 0."
            )
        with np.errstate(divide="ignore"):
            self.scale /= factors

    def square_sums(self) -> Array:
        """Return the sum of squares of each column about its mean, 0 if it is constant."""
        return self.weights.sum() * np.where(np.isfinite(self.scale), self.scale, 0.0) ** 2

    def part(self, which: Array) -> StandardRows:
        """Return some rows, standardised by the means and standard deviations of all rows."""
        some = copy.copy(self)
        some.H, some.weights, some.scale = self.H[which], self.weights[which], self.scale.copy()
        return some

    def column_slices(self) -> Iterator[slice]:
        """Yield slices of columns."""
        for start in range(0, self.H.shape[1], _BLOCK_COLUMNS):
            yield slice(start, min(start + _BLOCK_COLUMNS, self.H.shape[1]))

    def row_slices(self) -> Iterator[slice]:
        """Yield slices of rows."""
        for start in range(0, len(self.H), BLOCK_ROWS):
            yield slice(start, min(start + BLOCK_ROWS, len(self.H)))

    def __getitem__(self, at: tuple[slice, slice]) -> Array:
        """Return a block of the standardised matrix, in double precision."""
        block = self.H[at].astype(np.float64)
        block -= self.mean[at[1]]
        block /= self.scale[at[1]]
        return block


def even_spread(H: Array, weights: Array) -> Array:
    """Return the column weights by which standard deviations count every row once.

    With weights, a column that is constant in the rows of a heavy class would be divided by almost
    nothing, and outweigh all others.
    """
    if (weights == weights[0]).all():
        return np.ones(H.shape[1])
    weighted, even = (StandardRows(H, each).scale for each in (weights, np.ones(len(H))))
    varies = np.isfinite(weighted) & np.isfinite(even)
    return np.divide(weighted, even, where=varies, out=np.ones(len(even)))


def inner_products(rows: StandardRows) -> Array:
    """Return the products between rows."""
    products = np.zeros((len(rows.H), len(rows.H)))
    for at in rows.column_slices():
        block = rows[:, at]
        products += block @ block.T
    return products


def _inner_products(rows: StandardRows) -> Array:
    """Return the products between rows, about their mean and times the roots of the weights."""
    root, share = np.sqrt(rows.weights), rows.weights / rows.weights.sum()
    products = inner_products(rows)
    middle = share @ products
    products -= middle[:, None]
    products -= middle - middle @ share
    products *= root[:, None]
    products *= root
    return products


def _gram_of(rows: StandardRows, Y: Array) -> GramAccumulator:
    """Return an accumulator of the products between columns."""
    gram = GramAccumulator(rows.H.shape[1], Y.shape[1])
    for at in rows.row_slices():
        gram.update(rows[at, :], Y[at], rows.weights[at], overwrite_h=True)
    return gram


class _RowBasis(SingularBasis):
    """Ridge solutions from the products between rows, if there are no more rows than columns.

    Let v be the vector of the square roots of the weights. The rows, with their mean subtracted and
    multiplied by v, are orthogonal to v. Their products are therefore decomposed in the space
    orthogonal to v, into left singular vectors U and squared singular values. Residuals and
    leverages are then sums of terms that do not cancel, however small the penalty.
    """

    def __init__(self, rows: StandardRows, Y: Array) -> None:
        n, weights = len(rows.H), rows.weights
        self.rows, self.root = rows, np.sqrt(weights)
        v = self.root / linalg.norm(self.root)
        products = np.zeros((n, n))
        for at in rows.column_slices():
            block = rows[:, at] * self.root[:, None]
            products += block @ block.T
        # the reflection that maps v to an axis, which is then dropped
        axis = int(np.argmax(v))
        v[axis] += 1.0
        beta = 2.0 / (v @ v)
        half = beta * (products @ v)
        half -= (0.5 * beta * (v @ half)) * v
        products -= np.outer(v, half) + np.outer(half, v)
        others = np.delete(np.arange(n), axis)
        driver = "evd" if n > 2 else "ev"  # older SciPy allocates too little there
        values, inside = linalg.eigh(
            products[np.ix_(others, others)], driver=driver, overwrite_a=True, check_finite=False
        )
        self.left = np.zeros((n, n - 1))
        self.left[others] = inside
        self.left -= np.outer(beta * v, v[others] @ inside)
        self.noise = NOISE * max(values[-1], 0.0)
        self.seen = values > self.noise
        self.values = np.where(self.seen, values, 0.0)
        self.mean_h, self.mean_y = np.zeros(rows.H.shape[1]), weights @ Y / weights.sum()
        self.along = self.left.T @ (self.root[:, None] * (Y - self.mean_y))
        self.projected = np.sqrt(self.values)[:, None] * self.along
        self.rest_y2 = self.least_rss = np.zeros(Y.shape[1])
        self.n_samples, self.n_free = n, n - 1

    def coef(self, alpha: ArrayLike) -> Array:
        """Return the coefficients under a penalty, or under a separate one for each output."""
        gain = self._gain(alpha)
        gain = gain if gain.ndim == 2 else gain[:, None]
        dual = self.root[:, None] * (self.left @ (gain * self.along))
        coef = np.empty((dual.shape[1], self.rows.H.shape[1]))
        for at in self.rows.column_slices():
            coef[:, at] = dual.T @ self.rows[:, at]
        return coef

    def left_out_errors(self, alphas: Array) -> Array:
        """Return each row's error in a fit on all other rows, (n_alphas, n_rows, n_outputs)."""
        penalties = np.maximum(alphas, self.noise)
        rest = np.where(self.seen[:, None], penalties * self._gain(penalties), 1.0)
        share = np.maximum(self.left**2 @ rest, np.finfo(np.float64).tiny)
        errors = np.stack([self.left @ (one[:, None] * self.along) for one in rest.T])
        return errors / (share.T * self.root)[:, :, None]


class ColumnBasis(Eigenbasis):
    """Ridge solutions from the products between columns, if there are more rows than columns."""

    def __init__(self, rows: StandardRows, Y: Array) -> None:
        gram = _gram_of(rows, Y)
        matrix, cross = gram._normal_equations(True)
        super().__init__(
            matrix,
            cross,
            gram.sum_y2,
            mean_h=gram.mean_h,
            mean_y=gram.mean_y,
            n_samples=gram.n_samples,
            n_free=gram.n_samples - 1,
        )
        self.rows, self.Y = rows, Y

    def left_out_errors(self, alphas: Array) -> Array:
        """Return each row's error in a fit on all other rows, (n_alphas, n_rows, n_outputs)."""
        penalties = np.maximum(alphas, self.noise)
        gain = self._gain(penalties)
        share = self.rows.weights / self.rows.weights.sum()
        # lower bound of 1 - leverage in exact arithmetic
        least = np.outer(1 - share, penalties / np.maximum(penalties + self.values[-1], 1e-300))
        errors = np.empty((len(alphas), *self.Y.shape))
        for at in self.rows.row_slices():
            along = (self.rows[at, :] - self.mean_h) @ self.vectors
            leverage = share[at, None] + self.rows.weights[at, None] * (along**2 @ gain)
            kept = np.maximum(1 - leverage, least[at])
            for k, one in enumerate(gain.T):
                fitted = self.mean_y + along @ (one[:, None] * self.projected)
                errors[k, at] = (self.Y[at] - fitted) / kept[:, k, None]
        return errors
