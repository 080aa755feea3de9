"""Normalised least mean squares: one gradient step per row, at a cost of O(n_features)."""

from __future__ import annotations

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_number, check_switch
from reservoir.readouts._row_regressor import RowRegressor
from reservoir.readouts.sums import raise_overflow


@saved
class LMS(RowRegressor):
    """Normalised least mean squares (NLMS): one gradient step per row.

    Let e be a row's error and h its features, including a constant 1 for the intercept. The
    coefficients change by ``learning_rate * e * h / (epsilon + h'h)`` [1]_. This is the rule of
    Widrow and Hoff [2]_, with steps normalised by the squared length of the row. Each row costs
    O(n_features). Learning is slow if features are correlated, as the states of a reservoir are;
    `RecursiveLeastSquares` then needs far fewer rows, at O(n_features^2) each. Features should vary
    about zero, by similar amounts.

    Parameters
    ----------
    learning_rate : float in (0, 1], default=0.5
        Fraction of a row's error that its step removes. Rates up to 2 would also converge, but a
        rate of ``2 - r`` is no faster than r, and leaves more noise in the coefficients.
    epsilon : float > 0, default=1e-6
        Number added to the squared length of a row, in the units of squared features. Rows much
        shorter than its square root have almost no effect: increase `epsilon` if noise in short
        rows changes the coefficients too much.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or array of shape (n_outputs,)
    n_features_in_ : int

    Notes
    -----
    A row of sample weight w counts as w repetitions of the row: its error is multiplied by
    ``(1 - r)^w``, where r is the fraction that one step removes.

    See Also
    --------
    RecursiveLeastSquares

    References
    ----------
    .. [1] S. Haykin, "Adaptive Filter Theory", 5th edition, Pearson, 2014, chapter 7.
    .. [2] B. Widrow and M. E. Hoff, "Adaptive switching circuits", IRE WESCON Convention Record 4,
       96-104, 1960.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.readouts import LMS
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> LMS().fit(X, X @ [1.0, -2.0, 0.5] + 3).coef_.round(4)
    array([ 1. , -2. ,  0.5])
    """

    _coef: Array
    _constant: Array

    def __init__(
        self, *, learning_rate: float = 0.5, epsilon: float = 1e-6, fit_intercept: bool = True
    ) -> None:
        self.learning_rate = learning_rate
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept

    def _check_parameters(self) -> None:
        check_number("learning_rate", self.learning_rate, low=0, high=1, low_open=True)
        check_number("epsilon", self.epsilon, low=0, low_open=True)
        check_switch("fit_intercept", self.fit_intercept)

    def _learn(self, H: Array, Y: Array, weights: Array | None, reset: bool) -> None:
        C = np.zeros((Y.shape[1], H.shape[1])) if reset else self._coef.copy()
        c = np.zeros(Y.shape[1]) if reset else self._constant.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.einsum("ij,ij->i", H, H) + float(self.fit_intercept)
        if not np.isfinite(lengths).all():
            raise_overflow("H", int(np.argmax(np.abs(H).max(axis=0))))
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->j", Y, Y)
        if not np.isfinite(squares).all():
            raise_overflow("Y", int(np.argmin(np.isfinite(squares))))
        steps = self._steps(lengths, weights)
        for h, y, step in zip(H, Y, steps, strict=True):
            error = step * (y - c - C @ h)
            C += error[:, None] * h
            if self.fit_intercept:
                c += error
        self._coef, self._constant = C, c

    def _steps(self, lengths: Array, weights: Array | None) -> Array:
        """Return the factor by which each row's error is multiplied, from its squared length."""
        if weights is None:
            return self.learning_rate / (self.epsilon + lengths)
        part = self.learning_rate * lengths / (self.epsilon + lengths)
        with np.errstate(divide="ignore", invalid="ignore"):
            removed = -np.expm1(weights * np.log1p(-part))
            return np.where((weights > 0) & (lengths > 0), removed / lengths, 0.0)

    def _coefficients(self) -> tuple[Array, Array]:
        return self._coef, self._constant

    def _outputs(self, H: Array) -> Array:
        return H @ self._coef.T + self._constant
