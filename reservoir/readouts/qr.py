"""The triangular factor of features and targets, block by block: a ridge with all its digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir.readouts.eigen import EPS, PenaltyPath, SingularBasis
from reservoir.readouts.sums import (
    BLOCK_ROWS,
    FAR_FROM_OVERFLOW,
    TINY,
    RidgeSolution,
    RowSums,
    Solved,
    above_tiny,
    in_room,
    refuse_overflow,
    room_for_matrices,
    sums_of,
)
from reservoir.readouts.triangular import TriangularSystem, eliminated


@saved
class QRAccumulator(RowSums):
    """The factor R of a QR decomposition of [1, H, Y], H features and Y targets, over all rows.

    It takes rows block by block like `GramAccumulator`, and stores none of them. A Gram matrix
    squares the condition number of H, which costs half of the digits; R keeps them all [1]_, so
    that penalties far below 1e-12 still mean something. Those are wise where data have no noise,
    as simulated dynamical systems have none. On measured data the penalty that generalises is
    larger by many orders of magnitude; a Gram matrix is then as good, and takes half the time.

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
        Upper triangular; the column of the constant first, then features, then targets. Since the
        constant is eliminated first, what stands below the first row is about the mean.
    n_blocks : float
        Blocks that R was made from; its rounding errors grow with the square root. Those of blocks
        that are forgotten fade with them.

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

    to_solve, of_path = 4, 8

    def __init__(self, n_features: int, n_outputs: int, *, forgetting: float = 1.0) -> None:
        super().__init__(n_features, n_outputs, forgetting=forgetting)
        width = 1 + self.n_features + self.n_outputs
        with room_for_matrices(self.n_features, 1):
            self.R = np.zeros((width, width), order="F")
        self.n_samples = 0
        self.n_blocks: float = 0
        self.weight = 0.0

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
            At least 0.
        missing : {"raise", "skip"}, default="raise"
            What to do with a row whose target is NaN in any output.
        overwrite_h : bool, default=False
            As in `GramAccumulator.update`; here H is copied in any case, one block at a time.

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
        # all rows are looked at before anything is changed
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
        block = np.empty((len(h), len(self.R)), order="F")
        block[:, 0] = 1.0
        block[:, 1 : 1 + self.n_features] = h
        block[:, 1 + self.n_features :] = y
        if w is not None:
            block *= np.sqrt(w)[:, None]
        self.R = eliminated(self.R, block)
        self.n_samples += len(h)
        self.n_blocks += 1
        self.weight += float(len(h) if w is None else w.sum())

    def merge(self, other: QRAccumulator) -> QRAccumulator:
        """Add what another accumulator has seen, after the rows of this one.

        Parameters
        ----------
        other : QRAccumulator
            Of the same size; not changed. What its rows have forgotten of each other, they make
            this one forget of its own.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the sizes disagree, or squares overflow.
        """
        self._check_size(other)
        if other.n_samples == 0:
            return self
        self._check_columns(_squares(other.R)[1:])
        self._age(other.ageing, other._ages, other.n_samples)
        if self.n_samples == 0:
            self.R = other.R.copy(order="F")
        else:
            # rows below are rounding errors: where chunks are short, nearly all
            rows = other.R[: other.n_samples].copy(order="F")
            self.R = eliminated(self.R, rows, triangular=True)
        self.n_samples += other.n_samples
        self.n_blocks += other.n_blocks
        self.weight += other.weight
        return self

    def _age(self, ageing: float, ages: tuple[float, float] | None, n: int) -> None:
        """Take note of n rows that are about to enter, and make what is there lighter."""
        self._count_ages(ageing, ages, n)
        if ageing != 1.0:
            self.R *= np.sqrt(ageing)
            self.R[np.abs(self.R) < np.sqrt(TINY)] = 0.0
            self.n_blocks *= ageing
            self.weight = above_tiny(self.weight * ageing)

    def _discount(self, factor: float) -> None:
        self._age(factor, (0.0, 0.0), 0)

    def without(self, part: QRAccumulator, others: Sequence[QRAccumulator]) -> QRAccumulator:
        """Return new sums over all rows but those of a part: the others', merged.

        Rows cannot be taken away from R without loss of digits.

        Parameters
        ----------
        part : QRAccumulator
        others : sequence of QRAccumulator
            Parts that hold the remaining rows.

        Returns
        -------
        QRAccumulator

        Raises
        ------
        ValueError
            If the part and the others do not hold as many rows as this accumulator, or rows were
            forgotten.
        """
        self._refuse_removal_of_aged(part, *others)
        rest = QRAccumulator(self.n_features, self.n_outputs)
        for other in others:
            rest.merge(other)
        if part.n_samples + rest.n_samples != self.n_samples:
            raise ValueError(
                f"The blocks hold {part.n_samples + rest.n_samples} of {self.n_samples} rows, and "
                "a QRAccumulator cannot subtract: give an accumulator over the remaining rows "
                "(rest=)."
            )
        return rest

    def solve(self, alpha: float | ArrayLike, *, fit_intercept: bool = True) -> RidgeSolution:
        """Ridge coefficients: minimise ``||Y - H C' - c||^2 + alpha ||C||^2``.

        By another QR decomposition, of R over ``sqrt(alpha) I``. The intercept c is not penalised,
        and the penalty is not divided by the number of rows.

        What rounding errors alone could have made is not fitted: with each column of H divided by
        its length, directions in which R is below about ``(4 + 1.5 sqrt(n_blocks)) eps`` are left
        out (eps = 2.2e-16), so that equal columns share their coefficient and constant ones get
        zero, also without a penalty (least norm). The units of the columns do not matter for that.
        A penalty above 8 eps ``||H||^2``, the sum of squares, hides such directions by itself.

        Parameters
        ----------
        alpha : float or array of shape (n_outputs,), at least 0
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

        ``path.coef(alpha)`` are coefficients, ``path.intercept(coef)`` what goes with them, and
        ``path.gcv(alpha)`` the score of generalised cross-validation. `solve` has a digit more.

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
        A, size = self._factor(fit_intercept)
        n = self.n_features
        means = self.R[0, 1:] / self.R[0, 0] if fit_intercept else np.zeros(len(self.R) - 1)
        rest = A[n:, n:]
        return SingularBasis(
            A[:n, :n],
            A[:n, n:],
            np.einsum("ij,ij->j", rest, rest),
            size=size[:n],
            noise=self._noise,
            least_rss=(4 * EPS * size[n:]) ** 2,
            mean_h=means[:n],
            mean_y=means[n:],
            **self._counts(fit_intercept),
        )

    def squared_errors(self, coefs: Array, intercepts: Array) -> Array:
        """Return sums of squared errors over these rows of outputs given by coefficients.

        Parameters
        ----------
        coefs : array of shape (n_candidates, n_outputs, n_features)
        intercepts : array of shape (n_candidates, n_outputs)

        Returns
        -------
        array of shape (n_candidates, n_outputs)
        """
        n = self.n_features
        ones, features, targets = self.R[:, :1], self.R[:, 1 : 1 + n], self.R[:, 1 + n :]
        errors = np.empty(intercepts.shape)
        for error, coef, intercept in zip(errors, coefs, intercepts, strict=True):
            residual = targets - features @ coef.T - ones * intercept
            error[:] = np.einsum("ij,ij->j", residual, residual)
        return errors

    @in_room(3)
    def penalised_factor(self, alpha: float, fit_intercept: bool) -> tuple[Array, Array, Array]:
        """Return a triangular factor of features and penalty, and the targets that go with it.

        Parameters
        ----------
        alpha : float > 0
        fit_intercept : bool
            Whether the rows are taken about their means.

        Returns
        -------
        R : array of shape (n_features, n_features)
            Upper triangular, ``R'R = H'H + alpha I``.
        Z : array of shape (n_features, n_outputs)
            ``R'Z = H'Y``.
        means : array of shape (n_features + n_outputs,)
            Of features, then targets; zeros where they are not subtracted.
        """
        A, _ = self._factor(fit_intercept)
        n = self.n_features
        below = np.zeros((n, len(A)), order="F")
        np.fill_diagonal(below, np.sqrt(alpha))
        both = eliminated(A, below, triangular=True)
        means = self.R[0, 1:] / self.R[0, 0] if fit_intercept else np.zeros(len(A))
        return both[:n, :n], both[:n, n:], means

    @property
    def _noise(self) -> float:
        """Rounding errors of R's columns, relative to their lengths.

        Measured on dependent columns, 12 to 300 of them, they reach 1.2 eps sqrt(n_blocks) for 10
        to 7000 blocks, and 4 eps for one or two.
        """
        return (4 + 1.5 * np.sqrt(self.n_blocks)) * EPS

    def _factor(self, fit_intercept: bool) -> tuple[Array, Array]:
        """Return the factor of [H, Y], about the mean or not, and the lengths of its columns.

        With an intercept a constant column is rounding errors, which are nothing to fit: zeros.
        Lengths are about zero in either case: that is what rounding errors are relative to.
        """
        self._check_filled()
        size = np.sqrt(_squares(self.R))[1:]
        A = np.asfortranarray(self.R[1:, 1:])
        if not fit_intercept:
            return eliminated(A, np.asfortranarray(self.R[:1, 1:])), size
        n = self.n_features
        A[:, :n][:, linalg.norm(A[:, :n], axis=0) <= 16 * EPS * size[:n]] = 0.0
        return A, size

    @in_room(4)
    def _solve(self, alpha: Any, fit_intercept: bool, path: PenaltyPath | None = None) -> Solved:
        """By QR, for one penalty or one for each output; leverages may need the path."""
        A, size = self._factor(fit_intercept)
        n = self.n_features
        system = TriangularSystem(A[:n, :n], A[:n, n:], size=size[:n], noise=self._noise)

        def leverage(rows: Array) -> Array:
            if np.ndim(alpha) or not system.is_fixed(alpha):
                return (path or self.path(fit_intercept)).leverage(rows, alpha)
            mean = self.R[0, 1 : 1 + n] / self.R[0, 0] if fit_intercept else np.zeros(n)
            return system.leverage(np.where(A[:n, :n].any(axis=0), rows - mean, 0.0), alpha)

        if np.ndim(alpha) == 0:
            return Solved(system.coef(alpha), leverage)
        found = {one: system.coef(one) for one in set(alpha.tolist())}
        coef = np.stack([found[one][k] for k, one in enumerate(alpha.tolist())])
        return Solved(coef, leverage)

    def _intercept(self, coef: Array) -> Array:
        n = 1 + self.n_features
        return (self.R[0, n:] - coef @ self.R[0, 1:n]) / self.R[0, 0]

    def _check_rows(self, H: Array, Y: Array, weights: Array | None, blocks: list[Any]) -> None:
        """Refuse rows that would overflow, or are not finite."""
        total, heaviest = np.zeros(len(self.R) - 1), 1.0
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
        """Refuse what would overflow, before anything is changed."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(squares + _squares(self.R)[1:])
        if not finite.all():
            column = int(np.argmin(finite))
            of_target = column - self.n_features
            refuse_overflow(*(("H", column) if of_target < 0 else ("Y", of_target)))


def _squares(M: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.einsum("ij,ij->j", M, M)


def _total(rows: Array) -> float:
    """Return the sum of squares of rows in double precision; NaN where one is NaN."""
    rows = rows.astype(np.float64, copy=False)
    return float(np.vdot(rows, rows))
