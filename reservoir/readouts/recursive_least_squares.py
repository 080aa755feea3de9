"""Recursive least squares: ridge regression that is updated row by row, with forgetting."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_switch, check_unchanged
from reservoir.readouts._row_regressor import RowRegressor
from reservoir.readouts.penalised_factor import PenalisedFactor, check_positive_alpha
from reservoir.readouts.sums import check_forgetting


@saved
class RecursiveLeastSquares(RowRegressor):
    """Ridge regression updated row by row, at a cost that does not depend on the number of rows.

    After each row the coefficients equal a ridge that is fitted to all rows so far. If
    `forgetting` is less than 1, each new row multiplies the weights of all earlier rows by it, so
    that about the last ``1 / (1 - forgetting)`` rows count; use this for systems that drift. Each
    row costs O(n_features^2), and less if many rows are passed in one call.

    Instead of the covariance matrix of textbooks [1]_, a triangular factor of its inverse is stored
    (square-root information form [2]_). This keeps the covariance matrix positive definite whatever
    the rounding errors, and doubles the number of accurate digits.

    Parameters
    ----------
    forgetting : float in (0, 1], default=1.0
        Factor by which each new row multiplies the weights of all earlier rows. It may be changed
        between calls of `partial_fit`, by `set_params`.
    alpha : float > 0, default=1e-6
        Ridge penalty; the intercept is not penalised. Forgetting reduces the penalty with the
        weights of the rows, but it is restored for one coefficient after the other: each
        coefficient is penalised by at most alpha and at least a tenth of alpha (times
        `forgetting`), and by exactly alpha without forgetting. All coefficients thus remain
        determined, even if the input is constant.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or array of shape (n_outputs,)
    n_features_in_ : int

    See Also
    --------
    SlidingWindow : Forgets each row exactly, once it leaves the window.
    LMS : Costs only O(n_features) per row.

    References
    ----------
    .. [1] S. Haykin, "Adaptive Filter Theory", 5th edition, Pearson, 2014, chapter 10.
    .. [2] A. H. Sayed, "Fundamentals of Adaptive Filtering", Wiley, 2003, chapter 12.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import RecursiveLeastSquares
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> gain = np.where(np.arange(600) < 300, 1.0, 2.0)  # the plant's gain jumps
    >>> y = gain * X[:, 0]
    >>> model = RecursiveLeastSquares(forgetting=0.95)
    >>> model.partial_fit(X[:300], y[:300]).coef_.round(3) + 0.0
    array([1., 0., 0.])
    >>> for x, target in zip(X[300:], y[300:]):
    ...     model = model.partial_fit([x], [target])
    >>> model.coef_.round(3) + 0.0
    array([2., 0., 0.])

    As the readout of an echo state network, which then learns in chunks:

    >>> from reservoir import ESNRegressor
    >>> from reservoir.datasets import narma
    >>> U, z = narma(1500, random_state=0)
    >>> readout = RecursiveLeastSquares(forgetting=0.999)
    >>> esn = ESNRegressor(100, readout=readout, random_state=0).fit(U[:1000], z[:1000])
    >>> esn = esn.partial_fit(U[1000:], z[1000:])
    """

    _factor: PenalisedFactor

    def __init__(
        self, *, forgetting: float = 1.0, alpha: float = 1e-6, fit_intercept: bool = True
    ) -> None:
        self.forgetting = forgetting
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def discount(self, factor: float) -> RecursiveLeastSquares:
        """Multiply the weights of all rows so far by `factor`; the penalty is unchanged.

        Parameters
        ----------
        factor : float in [0, 1]
            The factor; 0 forgets all rows.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._factor.discount(factor)
        self._set_coefficients(one=self.coef_.ndim == 1)
        return self

    def _check_parameters(self) -> None:
        check_forgetting("forgetting", self.forgetting)
        check_switch("fit_intercept", self.fit_intercept)
        check_positive_alpha(self.alpha)

    def _learn(self, H: Array, Y: Array, weights: Array | None, reset: bool) -> None:
        if reset:
            factor = PenalisedFactor(
                H.shape[1], Y.shape[1], self.alpha, fit_intercept=self.fit_intercept
            )
        else:
            factor = self._factor
            check_unchanged("alpha", self.alpha, factor.alpha)
            check_unchanged("fit_intercept", self.fit_intercept, factor.fit_intercept)
        factor.forgetting = self.forgetting
        factor.add(H, Y, weights)
        self._factor = factor

    def _coefficients(self) -> tuple[Array, Array]:
        return self._factor.coef()

    def _outputs(self, H: Array) -> Array:
        return self._factor.outputs(H)
