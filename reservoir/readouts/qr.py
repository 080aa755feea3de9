"""Ridge regression at full precision, from a triangular factor that is updated block by block.

`eliminated` adds rows to a factor, for all readouts that store one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir._workers import one_blas_thread
from reservoir.readouts.eigen import EPS, NOISE, PenaltyPath, SingularBasis
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
    room_for_matrices,
    sums_of,
)

_PANEL = 32  # columns that LAPACK eliminates at a time: the fastest of 16, 32, 64 and 128


@saved
class QRAccumulator(RowSums):
    """Factor R of the QR decomposition of [1, H, Y] over all rows of features H and targets Y.

    It takes rows block by block like `GramAccumulator`, and stores them only while there are fewer
    rows than columns of R. A Gram matrix squares the condition number of H, which costs half of the
    significant digits; R preserves full precision [1]_, so that penalties far below 1e-12 still
    have an effect. Such penalties are recommended for noise-free data from simulated dynamical
    systems. On measured data the penalty that generalises is larger by many orders of magnitude; a
    Gram matrix is then equally accurate, and takes half the time.

    Parameters
    ----------
    n_features : int
    n_outputs : int
    forgetting : float in (0, 1], default=1.0
        As in `GramAccumulator`.

    Attributes
    ----------
    n_samples, n_effective, weight, ageing
        As in `GramAccumulator`.
    R : array of shape (1 + n_features + n_outputs, 1 + n_features + n_outputs)
        Upper triangular factor. Its first column belongs to the constant; features and targets
        follow. Since the constant is eliminated first, all rows after the first are about the mean.
    n_blocks : float
        Number of blocks that were added; the rounding errors of R grow with its square root. With
        forgetting, a block counts in proportion to its remaining weight.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, Johns Hopkins
       University Press, 2013, sections 5.3 and 6.1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import GramAccumulator, QRAccumulator
    >>> t = np.linspace(0, 1, 1000)[:, None]
    >>> H = t ** np.arange(1, 11)  # nearly dependent columns: condition 1e12
    >>> C = np.ones((1, 10))
    >>> for accumulator in (GramAccumulator(10, 1), QRAccumulator(10, 1)):
    ...     coef = accumulator.update(H, H @ C.T).solve(1e-25).coef
    ...     print(abs(coef - C).max() < 1e-3)
    False
    True
    """

    to_solve, of_path, held = 4, 8, NOISE**2

    def __init__(self, n_features: int, n_outputs: int, *, forgetting: float = 1.0) -> None:
        super().__init__(n_features, n_outputs, forgetting=forgetting)
        # the weighted rows while there are fewer rows than columns, and R from then on
        self._rows = np.empty((0, 1 + self.n_features + self.n_outputs), order="F")
        self.n_samples = 0
        self.n_blocks: float = 0
        self.weight = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to save; `_rows` is saved as "R", as in earlier versions."""
        state = vars(self).copy()
        return {"R": state.pop("_rows"), **state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rows = self.__dict__.pop("R")

    @property
    def R(self) -> Array:
        """The upper triangular factor of all rows."""
        return _triangle(self._rows)

    def square_sums(self) -> Array:
        """Return the sum of squares of each feature."""
        return _squares(self._rows[:, 1 : 1 + self.n_features])

    def update(
        self,
        H: ArrayLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        missing: str = "raise",
        overwrite_h: bool = False,
    ) -> QRAccumulator:
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
            Has no effect, unlike in `GramAccumulator.update`: H is copied in any case, one block
            at a time.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If shapes disagree, a weight is negative, a value is NaN or infinite, or squares
            overflow.
        """
        check_choice("missing", missing, ("raise", "skip"))
        H, Y, weights = self._read_rows(H, Y, sample_weight)
        keep = np.ones(len(H), bool) if weights is None else weights > 0
        if missing == "skip":
            keep &= ~np.isnan(Y).any(axis=1)
        blocks = []
        for start in range(0, len(H), BLOCK_ROWS):
            rows: Any = slice(start, start + BLOCK_ROWS)
            if not keep[rows].all():
                rows = start + np.flatnonzero(keep[rows])
            blocks.append(rows)
        # check all rows before anything is changed
        self._check_rows(H, Y, weights, blocks)
        for rows in blocks:
            self._add_block(H[rows], Y[rows], None if weights is None else weights[rows])
        return self

    def _add_block(self, h: Array, y: Array, w: Array | None) -> None:
        if len(h) == 0:
            return
        ageing, ages = self._row_ages(len(h))
        self._age(ageing, sums_of(ages), len(h))
        if ages is not None:
            w = ages if w is None else w * ages
        block = np.empty((len(h), self._rows.shape[1]), order="F")
        block[:, 0] = 1.0
        block[:, 1 : 1 + self.n_features] = h
        block[:, 1 + self.n_features :] = y
        if w is not None:
            block *= np.sqrt(w)[:, None]
        self._rows = _joined(self._rows, block)
        self.n_samples += len(h)
        self.n_blocks += 1
        self.weight += float(len(h) if w is None else w.sum())

    def merge(self, other: QRAccumulator) -> QRAccumulator:
        """Add the rows of another accumulator, after the rows of this one.

        Parameters
        ----------
        other : QRAccumulator
            Accumulator with the same numbers of features and outputs; it is not changed. The
            forgetting factors of its rows also apply to the rows of this one.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the numbers of features or outputs differ, or squares overflow.
        """
        self._check_size(other)
        if other.n_samples == 0:
            return self
        self._check_columns(_squares(other._rows)[1:])
        self._age(other.ageing, other._ages, other.n_samples)
        few, many = sorted((other._rows.copy(order="F"), self._rows), key=len)
        self._rows = _joined(many, few, triangular=len(few) == few.shape[1])
        self.n_samples += other.n_samples
        self.n_blocks += other.n_blocks
        self.weight += other.weight
        return self

    def _age(self, ageing: float, ages: tuple[float, float] | None, n: int) -> None:
        """Age the sums, before n new rows are added."""
        self._count_ages(ageing, ages, n)
        if ageing != 1.0:
            self._rows *= np.sqrt(ageing)
            self._rows[np.abs(self._rows) < np.sqrt(TINY)] = 0.0
            self.n_blocks *= ageing
            self.weight = above_tiny(self.weight * ageing)

    def _discount(self, factor: float) -> None:
        self._age(factor, (0.0, 0.0), 0)

    def solve(self, alpha: float | ArrayLike, *, fit_intercept: bool = True) -> RidgeSolution:
        """Return ridge coefficients, which minimise ``||Y - H C' - c||^2 + alpha ||C||^2``.

        They are computed by another QR decomposition, of R stacked on ``sqrt(alpha) I``. The
        intercept c is not penalised, and the penalty is not divided by the number of rows.

        Directions that may be rounding errors are not fitted: with each column of H divided by its
        length, directions in which R is smaller than about ``(4 + 1.5 sqrt(n_blocks)) eps`` are
        excluded (eps = 2.2e-16). Even without a penalty, equal columns therefore get equal
        coefficients, and constant columns get the coefficient zero (least norm). This does not
        depend on the units of the columns. A penalty above 8 eps ``||H||^2``, where ``||H||^2`` is
        the sum of squares of H, makes such directions harmless.

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

    @in_room(8)
    def path(self, fit_intercept: bool = True) -> SingularBasis:
        """Return ridge solutions for any penalty, from one singular value decomposition of R.

        ``path.coef(alpha)`` returns coefficients, ``path.intercept(coef)`` returns their intercept,
        and ``path.gcv(alpha)`` returns the score of generalised cross-validation. The coefficients
        of `solve` are accurate to one more digit.

        Parameters
        ----------
        fit_intercept : bool, default=True

        Returns
        -------
        reservoir.readouts.eigen.SingularBasis

        Raises
        ------
        ValueError
            If there are no rows.
        """
        return self._basis(*self._factor(fit_intercept), self._noise, fit_intercept)

    @in_room(8)
    def _likelihood(
        self, differences: QRAccumulator, rho: float, least: float, fit_intercept: bool
    ) -> Likelihood:
        """Return restricted likelihoods for errors of the precision ``(1 - rho)^2 I + rho L``."""
        A, size = self._factor(fit_intercept)
        B, apart = differences._factor(False)
        n = self.n_features
        B[:, :n] *= A[:, :n].any(axis=0)  # differences of a constant column are rounding errors
        A, B = (1 - rho) * A, np.sqrt(rho) * B
        size = np.hypot((1 - rho) * size, np.sqrt(rho) * apart)
        noise = max(self._noise, differences._noise)
        return self._basis(eliminated(A, B, triangular=True), size, noise, fit_intercept)

    def _basis(self, A: Array, size: Array, noise: float, fit_intercept: bool) -> SingularBasis:
        n = self.n_features
        means = self._means(fit_intercept)
        rest = A[n:, n:]
        return SingularBasis(
            A[:n, :n],
            A[:n, n:],
            np.einsum("ij,ij->j", rest, rest),
            size=size[:n],
            noise=noise,
            least_rss=(4 * EPS * size[n:]) ** 2,
            mean_h=means[:n],
            mean_y=means[n:],
            **self._counts(fit_intercept),
        )

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
        n = self.n_features
        ones, features, targets = np.hsplit(self._rows, [1, 1 + n])
        errors = np.empty(intercepts.shape)
        for error, coef, intercept in zip(errors, coefs, intercepts, strict=True):
            residual = targets - features @ coef.T - ones * intercept
            error[:] = np.einsum("ij,ij->j", residual, residual)
        return errors

    @in_room(3)
    def penalised_factor(self, alpha: float, fit_intercept: bool) -> tuple[Array, Array, Array]:
        """Return a triangular factor of features and penalty, and the transformed targets.

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
        A, _ = self._factor(fit_intercept)
        return *_penalised(A, self.n_features, alpha), self._means(fit_intercept)

    @property
    def _noise(self) -> float:
        """Rounding errors of R's columns, relative to their lengths.

        On 12 to 300 dependent columns, the measured errors reach 1.2 eps sqrt(n_blocks) for 10 to
        7000 blocks, and 4 eps for one or two blocks.
        """
        return (4 + 1.5 * np.sqrt(self.n_blocks)) * EPS

    def _factor(self, fit_intercept: bool) -> tuple[Array, Array]:
        """Return the factor of [H, Y], about the mean if there is an intercept, and column lengths.

        With an intercept, only rounding errors remain of a constant column, which is set to zero.
        Lengths are never about the mean: rounding errors are relative to the values themselves.
        """
        self._check_filled()
        size = np.sqrt(_squares(self._rows))[1:]
        R = self.R
        A = np.asfortranarray(R[1:, 1:])
        if not fit_intercept:
            return eliminated(A, np.asfortranarray(R[:1, 1:])), size
        n = self.n_features
        A[:, :n][:, linalg.norm(A[:, :n], axis=0) <= 16 * EPS * size[:n]] = 0.0
        return A, size

    @in_room(4)
    def _solve(
        self, alpha: Any, fit_intercept: bool, path: Callable[[], PenaltyPath] | None = None
    ) -> Solved:
        """Solve by QR for one penalty, or for one per output; leverages may need the path."""
        A, size = self._factor(fit_intercept)
        n = self.n_features
        system = _TriangularSystem(A[:n, :n], A[:n, n:], size=size[:n], noise=self._noise)

        def leverage(rows: Array, parts: Sequence[slice]) -> list[Array]:
            if np.ndim(alpha) or not system.is_fixed(alpha):
                return (path() if path else self.path(fit_intercept)).leverage(rows, parts, alpha)
            mean = self._means(fit_intercept)[:n]
            about = np.where(A[:n, :n].any(axis=0), rows - mean, 0.0)
            return system.leverage(about, parts, alpha)

        if np.ndim(alpha) == 0:
            return Solved(system.coef(alpha), leverage)
        found = {one: system.coef(one) for one in set(alpha.tolist())}
        coef = np.stack([found[one][k] for k, one in enumerate(alpha.tolist())])
        return Solved(coef, leverage)

    def _less(self, part: QRAccumulator, n_present: int) -> QRAccumulator:
        raise ValueError(
            f"The blocks contain {n_present} of {self.n_samples} rows, and a QRAccumulator cannot "
            "subtract rows. Pass an accumulator over the remaining rows as `rest`."
        )

    def _leading(self, n_features: int, scales: Array | None = None) -> QRAccumulator:
        """Return sums over the first features, each multiplied by its scale; not to be changed."""
        one, first = copy.copy(self), self._rows[:, : 1 + n_features]
        if scales is not None:
            first = first * np.concatenate([[1.0], scales])
        rows = np.asfortranarray(np.hstack([first, self._rows[:, 1 + self.n_features :]]))
        one.n_features = n_features
        one._rows = rows if n_features == self.n_features else _joined(rows[:0], rows)
        return one

    def _intercept(self, coef: Array) -> Array:
        n, row = 1 + self.n_features, self._first_row()
        return (row[n:] - coef @ row[1:n]) / row[0]

    def _first_row(self) -> Array:
        """Return the first row of R, up to its sign: [1, H, Y] projected on the constant column."""
        first = self._rows[:, 0]
        if not first[1:].any():
            return self._rows[0]
        return (first / linalg.norm(first)) @ self._rows

    def _means(self, fit_intercept: bool) -> Array:
        """Return the weighted means of features, then targets; zeros without an intercept."""
        if not fit_intercept:
            return np.zeros(self._rows.shape[1] - 1)
        row = self._first_row()
        return row[1:] / row[0]

    def _check_rows(self, H: Array, Y: Array, weights: Array | None, blocks: list[Any]) -> None:
        """Check that rows are finite, and that their sums of squares will not overflow."""
        total, heaviest = np.zeros(self._rows.shape[1] - 1), 1.0
        for rows in blocks:
            h, y = H[rows], Y[rows]
            if weights is not None and len(h):
                heaviest = max(heaviest, float(weights[rows].max()))
            with np.errstate(over="ignore", invalid="ignore"):
                bound = heaviest * (_total(h) + _total(y))
                if not bound < FAR_FROM_OVERFLOW:
                    w: Any = 1.0 if weights is None else weights[rows, None]
                    total += np.hstack([(w * part.astype(float) ** 2).sum(0) for part in (h, y)])
        self._check_columns(total)

    def _check_columns(self, squares: Array) -> None:
        """Check that the columns' sums of squares will not overflow, before anything is changed."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(squares + _squares(self._rows)[1:])
        if not finite.all():
            column = int(np.argmin(finite))
            of_target = column - self.n_features
            raise_overflow(*(("H", column) if of_target < 0 else ("Y", of_target)))


def eliminated(R: Array, rows: Array, *, triangular: bool = False, n_trapezoidal: int = 0) -> Array:
    """Return the triangular factor of R stacked on further rows.

    R, (n, n), is upper triangular; it and the rows, (m, n), are in Fortran order, and overwritten.
    If the rows are upper `triangular`, half of the work is saved. The last `n_trapezoidal` rows
    form an upper trapezoid: the k-th of these (from 0) is zero in its first k columns.
    """
    pentagonal = min(len(rows), len(R)) if triangular else n_trapezoidal
    panel = min(_PANEL, len(R))
    # LAPACK multiplies narrow panels here: waiting for other BLAS threads takes longer than the
    # multiplication, a thousand times as long on busy cores
    with one_blas_thread():
        R, _, _, info = lapack.dtpqrt(
            pentagonal, panel, R, rows, overwrite_a=True, overwrite_b=True
        )
    if info != 0:
        raise linalg.LinAlgError(f"dtpqrt rejected its arguments: info={info}.")
    return R


class _TriangularSystem:
    """Least squares with a triangular matrix: minimise ``||Z - R C'||^2 + alpha ||C||^2``.

    R, (n, n), is upper triangular, and Z is (n, n_outputs). `noise` are the rounding errors of the
    columns of R, relative to the lengths `size`, (n,).
    """

    def __init__(self, R: Array, Z: Array, *, size: Array, noise: float) -> None:
        self.R, self.Z, self.noise = R, Z, noise
        self.size = np.where(size > 0, size, 1.0)

    def coef(self, alpha: float) -> Array:
        """Return the coefficients C, (n_outputs, n).

        They are computed by a QR decomposition of R stacked on ``sqrt(alpha) I``. If neither R nor
        the penalty determines all coefficients, directions in which R is within its rounding errors
        are excluded first.
        """
        if self.is_fixed(alpha):
            return self._direct(alpha)
        return self._least_norm(alpha)

    def is_fixed(self, alpha: float) -> bool:
        """Whether R or the penalty determines all coefficients."""
        return bool(alpha > NOISE * np.vdot(self.R, self.R) or self._is_well_conditioned)

    def leverage(self, rows: Array, parts: Sequence[slice], alpha: float) -> list[Array]:
        """Return `Solved.leverage` for centred rows, if all coefficients are determined."""
        R, _ = self._penalised(alpha)
        each = linalg.solve_triangular(R, rows.T, trans="T", check_finite=False)
        return [each[:, part].T @ each[:, part] for part in parts]

    @cached_property
    def _is_well_conditioned(self) -> bool:
        n, scaled = len(self.R), self.R / self.size
        # one over the 1-norm of the inverse: an upper triangular matrix is its own LU decomposition
        least, _ = lapack.dgecon(scaled, 1.0)  # SciPy 1.12 lacks the routine for triangles
        # the 2-norm differs from the 1-norm by up to sqrt(n), and the estimate may be a bit low
        return bool(least > 10 * n * self.noise)

    def _direct(self, alpha: float) -> Array:
        return linalg.solve_triangular(*self._penalised(alpha), check_finite=False).T

    def _penalised(self, alpha: float) -> tuple[Array, Array]:
        """Return the triangular factor of R stacked on ``sqrt(alpha) I``, and transformed Z."""
        if alpha == 0:
            return self.R, self.Z
        n = len(self.R)
        above = np.zeros((n + self.Z.shape[1],) * 2, order="F")
        above[:n, :n], above[:n, n:] = self.R, self.Z
        return _penalised(above, n, alpha)

    @cached_property
    def _revealed(self) -> tuple[Array, Array, Array]:
        """Rows of a pivoted factor of R above rounding errors, transformed Z, and column order."""
        Z, R, order = linalg.qr_multiply(self.R / self.size, self.Z.T, mode="right", pivoting=True)
        # squared lengths of each column's remainder, from each row on
        left = np.cumsum((R * R)[::-1], axis=0)[::-1].max(axis=1)
        rank = int(np.sum(left > self.noise**2))
        return R[:rank] * self.size[order], Z.T[:rank], order

    def _least_norm(self, alpha: float) -> Array:
        """Return the coefficients in the row space of directions above the rounding errors."""
        rows, Z, order = self._revealed
        rank, n = rows.shape
        if rank == n:  # nothing is excluded: the direct solution is one digit more accurate
            return self._direct(alpha)
        coef = np.zeros((n, Z.shape[1]))
        if rank:
            # with QR = [A'; sqrt(alpha) I], C' = Q1 R^-T Z; sorting long rows first preserves the
            # precision of columns in small units
            tall = np.vstack([rows.T, np.sqrt(alpha) * np.eye(rank)])
            sorted_ = np.argsort(-np.abs(tall).max(axis=1), kind="stable")
            Q, R = linalg.qr(tall[sorted_], mode="economic", check_finite=False)

            def dual(Z: Array) -> tuple[Array, Array]:
                """Return C' = A' W and W, where (A A' + alpha I) W = Z."""
                half = linalg.solve_triangular(R, Z, trans="T", check_finite=False)
                back = np.empty((len(Q), Z.shape[1]))
                back[sorted_] = Q @ half
                return back[:n], linalg.solve_triangular(R, half, check_finite=False)

            C, W = dual(Z)
            # one step of refinement, for the residual due to rounding errors
            C += dual(Z - rows @ C - alpha * W)[0]
            coef[order] = C
        return coef.T


def _penalised(above: Array, n: int, alpha: float) -> tuple[Array, Array]:
    """Return the first n rows of the factor of `above` stacked on ``sqrt(alpha) I``.

    The first n columns, which are penalised, and the remaining columns are returned as two arrays.
    `above` is overwritten.
    """
    below = np.zeros((n, len(above)), order="F")
    np.fill_diagonal(below, np.sqrt(alpha))
    both = eliminated(above, below, triangular=True)
    return both[:n, :n], both[:n, n:]


def _joined(above: Array, below: Array, *, triangular: bool = False) -> Array:
    """Return all rows, or their triangular factor if there are at least as many rows as columns.

    `below` is overwritten, and `above` may be. A factor of fewer rows would take more memory than
    the rows: with columns that are zero or dependent, its entries are not limited to the first
    rows.
    """
    if len(above) + len(below) < above.shape[1]:
        return np.asfortranarray(np.vstack([above, below]))
    return eliminated(_triangle(above), below, triangular=triangular)


def _triangle(rows: Array) -> Array:
    """Return the triangular factor of rows; square `rows` are already a triangular factor."""
    n_rows, width = rows.shape
    if n_rows == width:
        return rows
    with room_for_matrices(width, 1):
        R = np.zeros((width, width), order="F")
    for start in range(0, n_rows, BLOCK_ROWS):
        R = eliminated(R, rows[start : start + BLOCK_ROWS].copy(order="F"))
    return R


def _squares(M: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.einsum("ij,ij->j", M, M)


def _total(rows: Array) -> float:
    """Return the sum of squares of all entries, in double precision; NaN if any entry is NaN."""
    rows = rows.astype(np.float64, copy=False)
    return float(np.vdot(rows, rows))
