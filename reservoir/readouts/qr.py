"""The triangular factor of features and targets, row block by row block: all digits of the ridge."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_count, check_penalties
from reservoir.readouts.eigen import EPS
from reservoir.readouts.gram import RidgeSolution, read_rows

_BLOCK_ROWS = 512
_PANEL = 32  # columns that LAPACK eliminates at a time: the fastest of 16, 32, 64 and 128


@saved
class QRAccumulator:
    """The factor R of a QR decomposition of [1, H, Y], H features and Y targets, over all rows.

    It takes rows block by block like `GramAccumulator`, and stores none of them. A Gram matrix
    squares the condition of H and holds half of its digits; R holds them all [1]_, so that
    penalties far below 1e-12 still mean something. They are wise where data have no noise, as
    simulated dynamical systems have none; on measured data the penalty that generalises is larger
    by many orders of magnitude, and a Gram matrix is as good and takes half the time.

    Parameters
    ----------
    n_features : int
    n_outputs : int

    Attributes
    ----------
    n_samples : int
        Rows seen, those of weight zero left out.
    weight : float
        Sum of the sample weights.
    R : array of shape (1 + n_features + n_outputs, 1 + n_features + n_outputs)
        Upper triangular; the rows and columns of the constant first, then features, then targets.
        With the constant eliminated first, what is left is about the mean.

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

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self.n_features = check_count("n_features", n_features)
        self.n_outputs = check_count("n_outputs", n_outputs)
        width = 1 + self.n_features + self.n_outputs
        self.R = np.zeros((width, width), order="F")
        self.n_samples = 0
        self.weight = 0.0

    def update(
        self,
        H: ArrayLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        missing: str = "raise",
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

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If shapes disagree, a weight is negative, or a value is NaN or infinite.
        """
        check_choice("missing", missing, ("raise", "skip"))
        H, Y, weights = read_rows(H, Y, sample_weight, self.n_features, self.n_outputs)
        keep = np.ones(len(H), bool) if weights is None else weights > 0
        if missing == "skip":
            keep &= ~np.isnan(Y).any(axis=1)
        # all is looked at before anything is changed
        for name, rows in (("H", H), ("Y", Y)):
            _check_finite(name, rows[keep])
        R = self.R.copy(order="F")
        for start in range(0, len(H), _BLOCK_ROWS):
            rows = np.flatnonzero(keep[start : start + _BLOCK_ROWS]) + start
            if len(rows):
                R = self._with_block(
                    R, H[rows], Y[rows], None if weights is None else weights[rows]
                )
        self.R = R
        self.n_samples += int(keep.sum())
        self.weight += float(keep.sum() if weights is None else weights[keep].sum())
        return self

    def _with_block(self, R: Array, h: Array, y: Array, w: Array | None) -> Array:
        """Return the factor of R over a block of rows."""
        block = np.empty((len(h), len(R)), order="F")
        block[:, 0] = 1.0
        block[:, 1 : 1 + self.n_features] = h
        block[:, 1 + self.n_features :] = y
        if w is not None:
            block *= np.sqrt(w)[:, None]
        return _eliminated(R, block)

    def merge(self, other: QRAccumulator) -> QRAccumulator:
        """Add what another accumulator has seen.

        Parameters
        ----------
        other : QRAccumulator
            Of the same size; not changed.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the sizes disagree.
        """
        mine, its = (self.n_features, self.n_outputs), (other.n_features, other.n_outputs)
        if mine != its:
            raise ValueError(f"(n_features, n_outputs) must agree: {mine} here, {its} there.")
        if other.n_samples:
            self.R = _eliminated(self.R.copy(order="F"), other.R.copy(order="F"), triangular=True)
            self.n_samples += other.n_samples
            self.weight += other.weight
        return self

    def copy(self) -> QRAccumulator:
        """Return an independent copy."""
        return QRAccumulator(self.n_features, self.n_outputs).merge(self)

    def solve(self, alpha: float | ArrayLike, *, fit_intercept: bool = True) -> RidgeSolution:
        """Ridge coefficients: minimise ``||Y - H C' - c||^2 + alpha ||C||^2``.

        By another QR decomposition, of R over ``sqrt(alpha) I``. Columns that are constant to
        rounding get the coefficient zero. Without a penalty, directions of H below its rounding
        errors are left out (least norm).

        Parameters
        ----------
        alpha : float or array of shape (n_outputs,), at least 0
            The penalty, not divided by the number of rows.
        fit_intercept : bool, default=True
            The intercept is not penalised.

        Returns
        -------
        RidgeSolution

        Raises
        ------
        ValueError
            If there are no rows, or alpha is negative or not finite.
        """
        alphas = check_penalties("alpha", alpha)
        if alphas.shape not in ((), (self.n_outputs,)):
            raise ValueError(
                f"alpha must be a number or have shape (n_outputs={self.n_outputs},); "
                f"got shape {alphas.shape}."
            )
        A = self._system(fit_intercept)
        if alphas.ndim == 0:
            coef = self._coef(A, float(alphas))
        else:
            each = [self._coef(A, a)[k] for k, a in enumerate(alphas.tolist())]
            coef = np.stack(each)
        intercept = np.zeros(self.n_outputs)
        if fit_intercept:
            n = 1 + self.n_features
            intercept = (self.R[0, n:] - coef @ self.R[0, 1:n]) / self.R[0, 0]
        given: Any = float(alphas) if alphas.ndim == 0 else alphas
        return RidgeSolution(np.ascontiguousarray(coef), intercept, given, None)

    def _system(self, fit_intercept: bool) -> Array:
        """Return the factor of [H, Y] alone, about the mean or not, constant columns as zeros."""
        if self.n_samples == 0:
            raise ValueError("No rows to fit: n_samples=0. Every row was empty or had weight 0.")
        A = np.asfortranarray(self.R[1:, 1:])
        first = np.asfortranarray(self.R[:1, 1:])
        if not fit_intercept:
            return _eliminated(A, first)
        n = self.n_features
        size = np.sqrt(np.einsum("ij,ij->j", A[:, :n], A[:, :n]))
        A[:, :n][:, size <= 16 * EPS * np.abs(first[0, :n])] = 0.0
        return A

    def _coef(self, A: Array, alpha: float) -> Array:
        """Return coefficients, (n_outputs, n_features), for one penalty."""
        n = self.n_features
        if alpha > 0:
            below = np.zeros((n, len(A)), order="F")
            np.fill_diagonal(below, np.sqrt(alpha))
            A = _eliminated(A.copy(order="F"), below)
        diagonal = np.abs(np.diagonal(A)[:n])
        if alpha > 0 and diagonal.min() > 0:
            return linalg.solve_triangular(A[:n, :n], A[:n, n:], check_finite=False).T
        return linalg.lstsq(A[:n, :n], A[:n, n:], cond=n * EPS, check_finite=False)[0].T


def _eliminated(R: Array, rows: Array, *, triangular: bool = False) -> Array:
    """Return the factor of R over more rows; both are overwritten."""
    n_pentagonal = len(rows) if triangular else 0
    panel = min(_PANEL, len(R))
    R, _, _, info = lapack.dtpqrt(n_pentagonal, panel, R, rows, overwrite_a=True, overwrite_b=True)
    assert info == 0
    return R


def _check_finite(name: str, rows: Array) -> None:
    finite = np.isfinite(rows).all(axis=0)
    if not finite.all():
        column = int(np.argmin(finite))
        raise ValueError(
            f"{name} holds NaN or infinity in column {column}. Leave such rows out, by "
            "sample_weight=0 or, for missing targets, missing='skip'."
        )
