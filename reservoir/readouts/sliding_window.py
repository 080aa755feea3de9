"""Ridge regression on the last rows, by up- and downdates of a factor, corrected by residuals."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_switch, check_unchanged
from reservoir.readouts._row_regressor import RowRegressor
from reservoir.readouts._window_factor import WindowFactor
from reservoir.readouts.penalised_factor import check_positive_alpha
from reservoir.readouts.sums import FAR_FROM_OVERFLOW, raise_overflow


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
