"""What sums over rows are to those who solve for a ridge readout, whatever they hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import SumError, check_count, check_penalties
from reservoir.readouts.eigen import PenaltyPath

BLOCK_ROWS = 512
FAR_FROM_OVERFLOW = 1e300  # a sum of squares below needs no look at its columns
_Self = TypeVar("_Self", bound="RowSums")


class RidgeSolution(NamedTuple):
    """Coefficients of a ridge readout and how its penalty was chosen.

    Attributes
    ----------
    coef : array of shape (n_outputs, n_features)
    intercept : array of shape (n_outputs,)
    alpha : float or array of shape (n_outputs,)
        The penalty; an array if it was chosen, or given, for each output.
    scores : array of shape (n_alphas, n_outputs) or None
        Mean squared error that the selection estimates for each penalty; None from the method
        `solve` of an accumulator.
    """

    coef: Array
    intercept: Array
    alpha: float | Array
    scores: Array | None


class Solved(NamedTuple):
    """Coefficients, and what a row added to its own output in that.

    Attributes
    ----------
    coef : array of shape (n_outputs, n_features)
    leverage : callable
        From features, (n_rows, n_features), to ``h' (H'H + alpha)^-1 h`` about the mean of H:
        (n_rows,), or (n_rows, n_outputs) where each output has a penalty of its own. To be
        called once, at most; it holds the memory of a matrix.
    """

    coef: Array
    leverage: Callable[[Array], Array]


class RowSums(ABC):
    """Features H and targets Y, summed over rows: all that a ridge readout needs of them.

    Parameters
    ----------
    n_features, n_outputs : int

    Attributes
    ----------
    n_samples : int
        Rows seen, those of weight zero left out.
    weight : float
        Sum of the sample weights.
    """

    n_samples: int
    weight: float

    def __init__(self, n_features: int, n_outputs: int) -> None:
        self.n_features = check_count("n_features", n_features)
        self.n_outputs = check_count("n_outputs", n_outputs)

    @abstractmethod
    def update(
        self: _Self,
        H: ArrayLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        missing: str = "raise",
        overwrite_h: bool = False,
    ) -> _Self:
        """Add rows."""

    @abstractmethod
    def merge(self: _Self, other: _Self) -> _Self:
        """Add what another accumulator of the same size has seen."""

    def copy(self: _Self) -> _Self:
        """Return an independent copy."""
        return type(self)(self.n_features, self.n_outputs).merge(self)

    @abstractmethod
    def without(self: _Self, part: _Self, others: Sequence[_Self]) -> _Self:
        """Return new sums over all rows but those of a part.

        Parameters
        ----------
        part : accumulator
        others : sequence of accumulators
            Parts that hold the remaining rows.
        """

    @abstractmethod
    def solve(self, alpha: float | ArrayLike, *, fit_intercept: bool = True) -> RidgeSolution:
        """Ridge coefficients: minimise ``||Y - H C' - c||^2 + alpha ||C||^2``."""

    @abstractmethod
    def path(self, fit_intercept: bool = True) -> PenaltyPath:
        """Return what gives coefficients for any penalty, from one decomposition."""

    @abstractmethod
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

    @abstractmethod
    def penalised_factor(self, alpha: float, fit_intercept: bool) -> tuple[Array, Array, Array]:
        """Return what rows can be added to afterwards: a triangular factor with the penalty.

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

    @abstractmethod
    def _solve(self, alpha: Any, fit_intercept: bool, path: PenaltyPath | None = None) -> Solved:
        """Solve in the most accurate way; `path`, if it is known already, helps."""

    @abstractmethod
    def _intercept(self, coef: Array) -> Array:
        """Return the intercept that goes with coefficients about the mean."""

    def _solution(
        self, coef: Array, alpha: Any, fit_intercept: bool, scores: Array | None = None
    ) -> RidgeSolution:
        """Coefficients with the intercept that goes with them."""
        intercept = self._intercept(coef) if fit_intercept else np.zeros(self.n_outputs)
        return RidgeSolution(np.ascontiguousarray(coef), intercept, alpha, scores)

    def _check_alpha(self, alpha: float | ArrayLike) -> float | Array:
        """Return a penalty, or one for each output."""
        alphas = check_penalties("alpha", alpha)
        if np.ndim(alpha) == 0:
            return float(alphas)
        if alphas.shape != (self.n_outputs,):
            raise ValueError(
                f"alpha must be a number or have shape (n_outputs={self.n_outputs},); "
                f"got shape {alphas.shape}."
            )
        return alphas

    def _check_filled(self) -> None:
        if self.n_samples == 0:
            raise ValueError("No rows to fit: n_samples=0. Every row was empty or had weight 0.")

    def _check_size(self, other: RowSums) -> None:
        mine, its = (self.n_features, self.n_outputs), (other.n_features, other.n_outputs)
        if mine != its:
            raise ValueError(f"(n_features, n_outputs) must agree: {mine} here, {its} there.")

    def _read_rows(self, H: Any, Y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        """Return features, targets and weights of rows as arrays whose shapes agree."""
        H, Y = np.asarray(H), np.asarray(Y)
        if Y.ndim == 1 and self.n_outputs == 1:
            Y = Y[:, None]
        if H.ndim != 2 or H.shape[1] != self.n_features:
            raise ValueError(f"H must have shape (n_samples, {self.n_features}); got {H.shape}.")
        if Y.shape != (len(H), self.n_outputs):
            raise ValueError(f"Y must have shape ({len(H)}, {self.n_outputs}); got {Y.shape}.")
        if sample_weight is None:
            return H, Y, None
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != (len(H),):
            raise ValueError(f"sample_weight must have shape ({len(H)},); got {weights.shape}.")
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(weights.sum())
        if not (weights >= 0).all() or not finite:
            raise ValueError(
                "sample_weight must be finite and at least 0 in every row, and have a finite sum."
            )
        return H, Y, weights


def refuse_overflow(name: str, column: int) -> None:
    """Say of a column of features ("H") or targets ("Y") that its squares are not finite."""
    remedy = "Scale the targets."
    if name == "H":
        remedy = (
            "H holds states, then inputs. Scale the inputs, or leave them out of the readout "
            "(include_input=False)."
        )
    error = SumError(
        f"{name} holds NaN or infinity, or values whose squares overflow, in column {column}. "
        f"{remedy}"
    )
    error.of, error.column = name, column
    raise error
