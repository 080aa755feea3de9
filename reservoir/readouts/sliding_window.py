"""Ridge regression on the last rows, by up- and downdates of a factor, corrected by residuals."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_switch, check_unchanged, room_for
from reservoir.readouts._row_regressor import RowRegressor
from reservoir.readouts.eigen import EPS
from reservoir.readouts.penalised_factor import check_positive_alpha
from reservoir.readouts.qr import eliminated
from reservoir.readouts.sums import BLOCK_ROWS, FAR_FROM_OVERFLOW, raise_overflow, room_for_matrices

_LARGEST_LEVERAGE = 16.0  # largest leverage of rows that are added by products of whitened rows
_LEAST_PIVOT = 1e-3  # least pivot of a downdate: below it, errors of leaving rows dominate
_MOST_DOUBT = 1e-6  # largest sum of the bounds on the relative errors of the factor
_TOLERANCE = 1e-9  # tolerance of corrections, relative to the targets' standard deviation
_MOST_PASSES = 6


@saved
class WindowFactor:
    """Ridge coefficients of the rows in a window.

    The rows are stored, weighted and about their mean. A triangular factor R of the rows and the
    penalty is up- and downdated: rows X that enter or leave wait in whitened form, ``V = X R^-1``,
    with signs s, and from time to time R is replaced by K R, where ``K'K = I + V' diag(s) V``. R
    only serves to solve for corrections of the coefficients, which are accepted once the residuals
    of the rows require no further correction. If the corrections do not converge, R is recomputed
    from the rows; `n_remade` counts how often.
    """

    def __init__(
        self, n_rows: int, n_features: int, n_outputs: int, alpha: float, fit_intercept: bool
    ) -> None:
        self.n_rows, self.alpha, self.fit_intercept = n_rows, alpha, fit_intercept
        self.n_outputs, self._first = n_outputs, int(fit_intercept)
        p = self._first + n_features
        what = f"Two copies of n_rows x n_features = {n_rows} x {n_features} numbers"
        with room_for(what, 16.0 * n_rows * n_features, "Use fewer rows or fewer features."):
            self._raw = np.zeros((n_rows, n_features + n_outputs))
            self._roots = np.zeros(n_rows)
            self._rows = np.zeros((n_rows, p + n_outputs))
        self._shift = np.zeros(n_features + n_outputs)
        self._next = self._count = self._fill = self.n_remade = 0
        self._stale, self._solved, self._doubt = True, True, 0.0
        with room_for_matrices(n_features, 1):
            self._R = np.zeros((p, p), order="F")
        most = 2 * int(np.clip(p // 16, 24, 64))
        self._whitened, self._signs = np.zeros((most, p)), np.zeros(most)
        self._products = np.zeros((most, most))
        self._C = np.zeros((p, n_outputs))

    def add(self, H: Array, Y: Array, weights: Array | None = None) -> None:
        """Add rows in order, and remove the oldest rows; rows of weight 0 are skipped."""
        raw, n_window = np.hstack([H, Y]), len(self._raw)
        roots = np.ones(len(raw)) if weights is None else np.sqrt(weights)
        if weights is not None and not roots.all():
            raw, roots = raw[roots > 0], roots[roots > 0]
        raw, roots = raw[-n_window:], roots[-n_window:]
        self._solved = self._solved and len(raw) == 0
        size = len(self._signs) // 2
        # many rows: updates cost more than a new factor
        if len(raw) > max(size, self._count // 4):
            self._stale = True
        for start in range(0, len(raw), size):
            self._replace(raw[start : start + size], roots[start : start + size])

    def solve(self) -> None:
        """Solve for the coefficients of the rows in the window."""
        if not self._solved and (self._stale or not self._correct()):
            self._remake()
        self._solved = True

    def coef(self) -> tuple[Array, Array]:
        """Return coefficients, (n_outputs, n_features), and intercepts, (n_outputs,)."""
        C = self._C[self._first :].T
        return C, self._intercept() - C @ self._shift[: C.shape[1]]

    def outputs(self, H: Array) -> Array:
        """Return the outputs of rows of features, (n_rows, n_outputs)."""
        return (H - self._shift[: H.shape[1]]) @ self._C[self._first :] + self._intercept()

    def _intercept(self) -> Array:
        """Return intercepts for shifted features."""
        if not self.fit_intercept:
            return np.zeros(self.n_outputs)
        return self._C[0] + self._shift[-self.n_outputs :]

    def _replace(self, raw: Array, roots: Array) -> None:
        """Replace the oldest rows with new rows, and update the factor."""
        n_window = len(self._raw)
        at = (self._next + np.arange(len(raw))) % n_window
        if self._stale:
            self._raw[at], self._roots[at] = raw, roots
        else:
            rows = self._weighted(raw, roots)
            p = len(self._R)
            leaving = self._rows[at[at < self._count], :p]
            self._raw[at], self._roots[at], self._rows[at] = raw, roots, rows
            self._follow(rows[:, :p], leaving)
        self._next = int((at[-1] + 1) % n_window)
        self._count = min(self._count + len(raw), n_window)

    def _weighted(self, raw: Array, roots: Array) -> Array:
        """Return [1, H, Y], with the shift subtracted, times the roots of the weights."""
        rows = np.ones((len(raw), self._rows.shape[1]))
        rows[:, self._first :] = raw - self._shift
        rows *= roots[:, None]
        return rows

    def _follow(self, entering: Array, leaving: Array) -> None:
        """Whiten rows that enter or leave, for the next update of the factor."""
        if self._fill + len(entering) + len(leaving) > len(self._signs):
            self._update_factor()
        white = self._whiten(np.vstack([entering, leaving]))
        is_large = not np.square(white[: len(entering)]).sum(axis=1).max() <= _LARGEST_LEVERAGE
        if is_large:  # products of whitened rows would lose precision: rotate these rows in
            self._update_factor()
            if not self._stale:
                self._R = eliminated(self._R, np.array(entering, order="F"))
                entering, white = entering[:0], self._whiten(leaving)
        if self._stale:
            return
        end = self._fill + len(white)
        V = self._whitened
        V[self._fill : end] = white
        self._signs[self._fill : end] = -1.0
        self._signs[self._fill : self._fill + len(entering)] = 1.0
        products = V[:end] @ white.T
        self._products[:end, self._fill : end] = products
        self._products[self._fill : end, :end] = products.T
        self._fill = end

    def _whiten(self, rows: Array) -> Array:
        if len(rows) == 0:
            return rows
        return lapack.dtrtrs(self._R, rows.T, trans=1)[0].T

    def _update_factor(self) -> None:
        """Up- and downdate the factor by the waiting rows, or mark it as stale."""
        V, signs = self._whitened[: self._fill], self._signs[: self._fill]
        self._fill = 0
        if self._stale or not len(V):
            return
        inner = np.eye(len(self._R), order="F")
        for sign in (1.0, -1.0):
            part = V[signs == sign]
            if len(part):
                inner = blas.dsyrk(sign, part, 1.0, inner, trans=1, overwrite_c=True)
        K, info = lapack.dpotrf(inner, overwrite_a=True)
        pivot = np.diagonal(K).min() if info == 0 else 0.0
        if pivot < _LEAST_PIVOT:
            self._stale = True
            return
        self._R = blas.dtrmm(1.0, K, self._R, overwrite_b=True)
        self._doubt += len(K) * EPS / pivot**2
        self._stale = self._doubt > _MOST_DOUBT

    def _remake(self) -> None:
        """Recompute the factor and the coefficients from the rows."""
        raw, roots = self._raw[: self._count], self._roots[: self._count]
        if self.fit_intercept:
            weights = roots**2
            self._shift = raw[0] + weights @ (raw - raw[0]) / weights.sum()
        rows = self._rows[: self._count]
        rows[:] = self._weighted(raw, roots)
        p = len(self._R)
        factor = np.eye(rows.shape[1], order="F") * np.sqrt(self.alpha)
        if self._first:
            factor[0, 0] = 0.0
        for start in range(0, len(rows), BLOCK_ROWS):
            factor = eliminated(factor, np.array(rows[start : start + BLOCK_ROWS], order="F"))
        self._R = np.array(factor[:p, :p], order="F")
        self._C = np.array(lapack.dtrtrs(self._R, factor[:p, p:])[0], order="C")
        self._stale, self._doubt, self._fill = False, 0.0, 0
        self.n_remade += 1

    def _correct(self) -> bool:
        """Correct the coefficients by the residuals of the rows; return whether this converged."""
        p, k, C = len(self._R), self._fill, self._C.copy()
        rows = self._rows[: self._count]
        H, Y = rows[:, :p], rows[:, p:]
        solved = lapack.dgetrf(self._products[:k, :k] + np.diag(self._signs[:k])) if k else None
        if solved is not None:
            # small pivots: leaving rows make up almost everything in some direction
            pivots = np.abs(np.diagonal(solved[0]))
            if not pivots.min() > _LEAST_PIVOT**2 * pivots.max():
                return False
        small = _TOLERANCE * Y.std(axis=0) + 50 * EPS * np.sqrt(np.einsum("ij,ij->j", Y, Y))
        last = np.inf
        for _ in range(_MOST_PASSES):
            slope = H.T @ (Y - H @ C)
            slope[self._first :] -= self.alpha * C[self._first :]
            right = lapack.dtrtrs(self._R, slope, trans=1)[0]
            left = right
            if solved is not None:
                V = self._whitened[:k]
                left = right - V.T @ lapack.dgetrs(solved[0], solved[1], V @ right)[0]
            C += lapack.dtrtrs(self._R, left)[0]
            # lengths of the changes of the outputs by these corrections
            size = np.sqrt(np.abs(np.einsum("ij,ij->j", left, right)))
            if (size <= small).all():
                self._C = C
                return True
            if not size.max() < 0.5 * last:
                return False
            last = size.max()
        return False


@saved
class SlidingWindow(RowRegressor):
    """Ridge regression on the last `n_rows` rows, which forgets older rows exactly.

    The rows of the window are stored. As rows enter and leave, their triangular factor is up- and
    downdated [1]_. The coefficients computed from the factor are corrected by the residuals of the
    rows (corrected semi-normal equations [2]_) until the corrections vanish, so that the
    coefficients are free of the rounding errors of many downdates. If the corrections do not
    converge, or a downdate would lose precision, the factor is recomputed from the rows. A call
    with one row takes O(n_features^2 + n_rows n_features) if the window has more rows than there
    are features. With a shorter window and a penalty below about 1e-8, the factor is often
    recomputed, at O(n_rows n_features^2).

    Parameters
    ----------
    n_rows : int
        Number of rows in the window.
    alpha : float > 0, default=1e-6
        Ridge penalty; the intercept is not penalised.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or array of shape (n_outputs,)
    n_features_in_ : int

    See Also
    --------
    RecursiveLeastSquares : Forgets gradually, and stores no rows.

    References
    ----------
    .. [1] P. E. Gill, G. H. Golub, W. Murray and M. A. Saunders, "Methods for modifying matrix
       factorizations", Mathematics of Computation 28, 505-535, 1974.
    .. [2] A. Björck, "Stability analysis of the method of seminormal equations for linear least
       squares problems", Linear Algebra and its Applications 88/89, 31-48, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import SlidingWindow
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> gain = np.where(np.arange(600) < 300, 1.0, 2.0)  # the plant's gain jumps
    >>> y = gain * X[:, 0]
    >>> model = SlidingWindow(100).fit(X[:300], y[:300])
    >>> for x, target in zip(X[300:], y[300:]):
    ...     model = model.partial_fit([x], [target])
    >>> model.coef_.round(3) + 0.0
    array([2., 0., 0.])
    """

    def __init__(self, n_rows: int, *, alpha: float = 1e-6, fit_intercept: bool = True) -> None:
        self.n_rows = n_rows
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _check_parameters(self) -> None:
        check_count("n_rows", self.n_rows)
        check_switch("fit_intercept", self.fit_intercept)
        check_positive_alpha(self.alpha)

    def _learn(self, H: Array, Y: Array, weights: Array | None, reset: bool) -> None:
        _check_squares(H, Y, weights)
        if reset:
            check_count("n_rows", self.n_rows, size=2 * (H.shape[1] + Y.shape[1]))
            self._window = WindowFactor(
                self.n_rows, H.shape[1], Y.shape[1], float(self.alpha), bool(self.fit_intercept)
            )
        else:
            check_unchanged("n_rows", self.n_rows, self._window.n_rows)
            check_unchanged("alpha", self.alpha, self._window.alpha)
            check_unchanged("fit_intercept", self.fit_intercept, self._window.fit_intercept)
        self._window.add(H, Y, weights)
        self._window.solve()

    def _coefficients(self) -> tuple[Array, Array]:
        return self._window.coef()

    def _outputs(self, H: Array) -> Array:
        return self._window.outputs(H)


def _check_squares(H: Array, Y: Array, weights: Array | None) -> None:
    """Check that the squares of rows do not overflow."""
    heaviest = 1.0 if weights is None else max(1.0, float(weights.max(initial=0.0)))
    for name, values in (("H", H), ("Y", Y)):
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->j", values, values) * heaviest
        if not (squares < FAR_FROM_OVERFLOW).all():
            raise_overflow(name, int(np.argmin(squares < FAR_FROM_OVERFLOW)))
