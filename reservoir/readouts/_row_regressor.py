"""Base class of regressors that learn row by row: checks of rows, outputs, fitted attributes."""

from __future__ import annotations

import copy
import numbers
from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from reservoir._tables import plain_table
from reservoir._typing import Array, ArrayLike
from reservoir._validation.kinds import check_has_rows, check_numeric, na_as_nan

_Self = TypeVar("_Self", bound="RowRegressor")


class RowRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A linear regressor that learns from rows in order, and continues in `partial_fit`."""

    coef_: Array
    intercept_: Any
    n_features_in_: int

    def fit(
        self: _Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> _Self:
        """Learn from rows, after discarding everything that was learned earlier.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : float or array of shape (n_samples,), optional
            Weights of the rows, at least 0. Rows of weight 0 are skipped, as if they were absent.

        Returns
        -------
        self
        """
        return self._learn_rows(X, y, sample_weight, reset=True, some=True)

    def partial_fit(
        self: _Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> _Self:
        """Learn from further rows; the first call need not be preceded by `fit`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets, with the same number of outputs as in earlier calls.
        sample_weight : float or array of shape (n_samples,), optional
            Weights of the rows, at least 0. Rows of weight 0 are skipped, as if they were absent.

        Returns
        -------
        self
        """
        return self._learn_rows(X, y, sample_weight, reset=not self.__sklearn_is_fitted__())

    def predict(self, X: ArrayLike) -> Array:
        """Predict outputs from features.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs), as y
        """
        check_is_fitted(self)
        plain = plain_table(self, X, np.float64)
        if plain is None:
            check_has_rows("X", X, "(n_samples, n_features)")
            check_numeric("X", X, has_ids=True)
            plain = validate_data(self, na_as_nan(X), reset=False, dtype=np.float64)
        outputs = self._outputs(plain)
        return outputs[:, 0] if self.coef_.ndim == 1 else outputs

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # copied, because joblib may map the arrays of a file read-only, and learning writes to them
        super().__setstate__(copy.deepcopy(state))

    def _learn_rows(
        self: _Self, X: Any, y: Any, sample_weight: Any, *, reset: bool, some: bool = False
    ) -> _Self:
        """Learn from rows, from scratch if `reset`; with `some`, raise if all weights are 0."""
        self._check_parameters()
        H, y = self._read(X, y, reset)
        Y = np.asarray(y, dtype=np.float64).reshape(len(H), -1)
        if not reset and (y.ndim != self.coef_.ndim or Y.shape[1] != np.size(self.intercept_)):
            raise ValueError(
                f"y has shape {y.shape}, but earlier rows had {np.size(self.intercept_)} output(s) "
                f"in {self.coef_.ndim} dimension(s). Pass y in the same form, or call fit again."
            )
        weights = None if sample_weight is None else _read_weights(sample_weight, len(H))
        if some and weights is not None and not weights.any():
            raise ValueError(
                "No rows to fit. Sample weights must contain at least one non-zero number."
            )
        self._learn(H, Y, weights, reset)
        self._set_coefficients(one=y.ndim == 1)
        return self

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        """Return features and targets that have passed scikit-learn's checks.

        For a single row these checks take longer than learning from it, so they are skipped for
        arrays that would pass them unchanged.
        """
        plain = None if reset else plain_table(self, X, np.float64)
        if plain is not None and type(y) is np.ndarray and y.dtype == np.float64:
            fits = y.ndim in (1, 2) and len(y) == len(plain)
            if fits and y.size and np.isfinite(y).all():
                return plain, y
        check_has_rows("X", X, "(n_samples, n_features)")
        check_numeric("X", X, has_ids=True)
        if y is not None:  # for None, scikit-learn raises
            check_has_rows("y", y, "(n_samples,)")
            check_numeric("y", y, remedy="Labels are for classifiers.")
        return validate_data(
            self, na_as_nan(X), y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True
        )

    def _set_coefficients(self, *, one: bool) -> None:
        """Set coefficients and intercept; if `one` is true, without the axis of outputs."""
        C, c = self._coefficients()
        # copies: a change of the attributes must not affect later learning
        self.coef_ = C[0].copy() if one else C.copy()
        self.intercept_ = float(c[0]) if one else c.copy()

    @abstractmethod
    def _check_parameters(self) -> None:
        """Check that parameters are within their bounds."""

    @abstractmethod
    def _learn(self, H: Array, Y: Array, weights: Array | None, reset: bool) -> None:
        """Learn from rows of float64, (n_rows, n_features) and (n_rows, n_outputs)."""

    @abstractmethod
    def _coefficients(self) -> tuple[Array, Array]:
        """Return coefficients, (n_outputs, n_features), and intercepts, (n_outputs,)."""

    @abstractmethod
    def _outputs(self, H: Array) -> Array:
        """Return outputs, (n_rows, n_outputs)."""


def _read_weights(sample_weight: Any, n_rows: int) -> Array:
    """Return one weight for each row; all of them may be zero, unlike in scikit-learn."""
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, sample_weight)
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},); got {weights.shape}.")
    if not (weights >= 0).all():
        raise ValueError(f"sample_weight must be at least 0; got {weights.min()}.")
    return weights
