"""The interface of sums over rows, from which a ridge readout is solved."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import (
    SumError,
    as_plain,
    check_count,
    check_number,
    check_penalties,
    room_for,
)
from reservoir.readouts.eigen import EPS, NOISE, PenaltyPath, n_contrasts

BLOCK_ROWS = 512
FAR_FROM_OVERFLOW = 1e300  # below it, a sum of squares needs no check of its columns
_NOTHING = 1e-100  # weight below which rows count as forgotten: its square almost underflows
TINY = float(np.finfo(np.float64).tiny)  # below it, processors are a hundred times slower
_Self = TypeVar("_Self", bound="RowSums")
_F = TypeVar("_F", bound=Callable[..., Any])


class RidgeSolution(NamedTuple):
    """Coefficients of a ridge readout, its penalty, and the scores of the penalties.

    Attributes
    ----------
    coef : array of shape (n_outputs, n_features)
    intercept : array of shape (n_outputs,)
    alpha : float or array of shape (n_outputs,)
        The penalty; an array if it was chosen or set separately for each output.
    scores : array of shape (n_alphas, n_outputs) or None
        Mean squared error that the selection estimates for each penalty; None if the solution was
        returned by the method `solve` of an accumulator.
    """

    coef: Array
    intercept: Array
    alpha: float | Array
    scores: Array | None


class Solved(NamedTuple):
    """Coefficients of a fit, (n_outputs, n_features), and a function for leverages of rows in it.

    ``leverage(features, parts)``, with slices of the rows, returns a matrix for each part: ``h_i'
    (H'H + alpha)^-1 h_j`` about the mean of H for rows h_i and h_j, (n_part, n_part), or
    (n_outputs, n_part, n_part) if each output has a separate penalty. Call it at most once; it
    keeps a matrix in memory.
    """

    coef: Array
    leverage: Callable[[Array, Sequence[slice]], list[Array]]


class Likelihood(Protocol):
    """Anything that computes the restricted likelihood of a penalty, as `PenaltyPath.reml` does."""

    def reml(self, alpha: float) -> Array:
        """Return the likelihood in the units of squared targets, (n_outputs,)."""


def in_room(n_matrices: int) -> Callable[[_F], _F]:
    """Return a decorator of methods of `RowSums` that raises if memory is too small.

    `n_matrices` is the number of matrices in memory at the same time, including the matrix of the
    sums.
    """

    def decorate(method: _F) -> _F:
        @functools.wraps(method)
        def checked(self: RowSums, *args: Any, **kwargs: Any) -> Any:
            with room_for_matrices(self.n_features, n_matrices):
                return method(self, *args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate


def room_for_matrices(n_features: int, n_matrices: int) -> contextlib.AbstractContextManager[None]:
    """Return a context that checks for memory for `n_matrices` of n_features x n_features."""
    return room_for(
        f"Matrices of n_features x n_features = {n_features} x {n_features} numbers, "
        f"{n_matrices} at a time,",
        8.0 * n_matrices * n_features**2,
        "Use fewer features.",
    )


class RowSums(ABC):
    """Sums over rows of features H and targets Y: all that a ridge readout needs of the rows.

    Parameters
    ----------
    n_features, n_outputs : int
    forgetting : float in (0, 1], default=1.0
        Factor by which each new row multiplies the weights of all rows before it.

    Attributes
    ----------
    n_samples : int
        Number of rows seen, except rows of weight zero.
    weight : float
        Sum of the sample weights after forgetting.
    ageing : float
        Product of the forgetting factors of all rows seen, by which these rows multiply the weights
        of rows before them.
    to_solve, of_path : int
        Number of matrices of n_features x n_features in memory during `solve` and during `path`.
    held : float
        Smallest sum of squares of a feature, relative to the largest one, that is not lost in
        rounding errors.
    """

    to_solve = of_path = 1
    held = NOISE
    n_samples: int
    weight: float
    # defaults for sums without forgetting, as in files of earlier versions
    forgetting = 1.0
    ageing = 1.0
    _ages: tuple[float, float] | None = None  # sums of the rows' ageing factors and their squares

    def __init__(self, n_features: int, n_outputs: int, *, forgetting: float = 1.0) -> None:
        self.n_features = check_count("n_features", n_features)
        self.n_outputs = check_count("n_outputs", n_outputs)
        self.forgetting = check_forgetting("forgetting", forgetting)

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
        """Add the rows of another accumulator of the same size."""

    def copy(self: _Self) -> _Self:
        """Return an independent copy."""
        return self._empty(self.forgetting).merge(self)

    def _empty(self: _Self, forgetting: float = 1.0) -> _Self:
        """Return sums over no rows of the same features and targets."""
        return type(self)(self.n_features, self.n_outputs, forgetting=forgetting)

    def after(self: _Self, earlier: _Self) -> _Self:
        """Return sums over an earlier accumulator's rows, followed by the rows of this one.

        The result is ``earlier.copy().merge(self)``, with the forgetting factor of this
        accumulator, which must not be used again.
        """
        total = earlier.copy().merge(self)
        total.forgetting = self.forgetting
        return total

    @property
    def n_columns(self) -> int:
        """Number of columns of the rows that are added."""
        return self.n_features

    @property
    def n_effective(self) -> float:
        """Number of rows of equal weight with the same information as the rows seen.

        It is ``(sum f)^2 / sum f^2`` (Kish 1965), where f is the fraction of a row's weight that
        remains after forgetting, and equal to n_samples without forgetting.
        """
        if self._ages is None:
            return self.n_samples
        total, squares = self._ages
        return total**2 / squares

    @abstractmethod
    def square_sums(self) -> Array:
        """Return the sum of squares of each feature, to which penalties are relative.

        The squares are about the means in accumulators that subtract means as rows are added.
        """

    @abstractmethod
    def _leading(self: _Self, n_features: int, scales: Array | None = None) -> _Self:
        """Return sums over the first features, each multiplied by its scale; not to be changed."""

    def mean_square_sum(self) -> float:
        """Return the mean over features of their sums of squares."""
        return float(self.square_sums().mean())

    def without(self: _Self, part: _Self, others: Sequence[_Self] = ()) -> _Self:
        """Return new sums over all rows that are not in `part`, merged from the other parts.

        Parameters
        ----------
        part : accumulator
            Sums over the rows to exclude.
        others : sequence of accumulators
            Sums over the remaining rows. If they do not cover all remaining rows, a GramAccumulator
            subtracts the part, whose rounding errors remain: a column that varies only in the part
            then consists of rounding errors.

        Returns
        -------
        accumulator

        Raises
        ------
        ValueError
            If the others do not cover all remaining rows of a QRAccumulator, or if forgetting has
            reduced the weights of rows.
        """
        self._check_never_aged(part, *others)
        n_present = part.n_samples + sum(other.n_samples for other in others)
        if n_present != self.n_samples:
            return self._less(part, n_present)
        rest = self._empty()
        for other in others:
            rest.merge(other)
        return rest

    @abstractmethod
    def _less(self: _Self, part: _Self, n_present: int) -> _Self:
        """Subtract a part, or raise; all available parts have `n_present` rows in total."""

    @abstractmethod
    def solve(self, alpha: float | ArrayLike, *, fit_intercept: bool = True) -> RidgeSolution:
        """Return ridge coefficients, which minimise ``||Y - H C' - c||^2 + alpha ||C||^2``."""

    @abstractmethod
    def path(self, fit_intercept: bool = True) -> PenaltyPath:
        """Return ridge solutions for any penalty, from one decomposition."""

    @abstractmethod
    def _likelihood(
        self: _Self, differences: _Self, rho: float, least: float, fit_intercept: bool
    ) -> Likelihood:
        """Return restricted likelihoods for errors of the precision ``(1 - rho)^2 I + rho L``.

        Their common factor, a power of the determinant of this precision, is omitted.

        Parameters
        ----------
        differences : accumulator
            Sums over the differences of neighbouring rows, whose squares define L.
        rho : float in [0, 1)
        least : float > 0
            The smallest penalty that will be requested.
        fit_intercept : bool
        """

    def _n_contrasts(self, fit_intercept: bool) -> float:
        """Return the number of contrasts of these rows in a restricted likelihood."""
        return n_contrasts(**self._counts(fit_intercept))

    def along(self, alphas: Array, fit_intercept: bool = True) -> tuple[Array, Array]:
        """Return coefficients and intercepts under each penalty, as `squared_errors` takes them.

        Parameters
        ----------
        alphas : array of shape (n_alphas,)
        fit_intercept : bool, default=True

        Returns
        -------
        coefs : array of shape (n_alphas, n_outputs, n_features)
        intercepts : array of shape (n_alphas, n_outputs)
        """
        path = self.path(fit_intercept)
        coefs = np.array([path.coef(alpha) for alpha in alphas])
        return coefs, np.array([path.intercept(coef) for coef in coefs])

    @abstractmethod
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

    @abstractmethod
    def penalised_factor(self, alpha: float, fit_intercept: bool) -> tuple[Array, Array, Array]:
        """Return a triangular factor of features and penalty, to which rows can be added.

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

    @abstractmethod
    def _solve(
        self, alpha: Any, fit_intercept: bool, path: Callable[[], PenaltyPath] | None = None
    ) -> Solved:
        """Solve in the most accurate way; `path` returns the path, which may be cached."""

    @abstractmethod
    def _intercept(self, coef: Array) -> Array:
        """Return the intercept for coefficients of the centred features."""

    def _solution(
        self, coef: Array, alpha: Any, fit_intercept: bool, scores: Array | None = None
    ) -> RidgeSolution:
        """Return coefficients with their intercept."""
        intercept = self._intercept(coef) if fit_intercept else np.zeros(self.n_outputs)
        return RidgeSolution(np.ascontiguousarray(coef), intercept, alpha, scores)

    def _check_alpha(self, alpha: float | ArrayLike) -> float | Array:
        """Return a valid penalty as a float, or valid penalties for each output as an array."""
        alphas = check_penalties("alpha", alpha)
        if np.ndim(alpha) == 0:
            return float(alphas)
        if alphas.shape != (self.n_outputs,):
            raise ValueError(
                f"alpha must be a number or have shape (n_outputs={self.n_outputs},); "
                f"got shape {alphas.shape}."
            )
        return alphas

    def _root_mean_squares(self, solution: RidgeSolution) -> Array:
        """Return the root mean squared error of each output over these rows."""
        squares = self.squared_errors(solution.coef[None], solution.intercept[None])[0]
        return np.asarray(np.sqrt(squares / self.weight))

    def _counts(self, fit_intercept: bool) -> dict[str, Any]:
        """Return the counts of rows that a `PenaltyPath` needs."""
        n = self.n_samples
        return {"n_samples": n, "n_free": n - int(fit_intercept), "ages": self._ages}

    def discounted(self: _Self, factor: float) -> _Self:
        """Return sums in which the weight of every row is multiplied by `factor`.

        Rows whose weight becomes almost zero are forgotten completely. This accumulator must not be
        used again.
        """
        left = self.n_samples if self._ages is None else self._ages[0]
        if factor * left < _NOTHING:
            return self._empty(self.forgetting)
        if factor < 1:
            self._discount(factor)
        return self

    @abstractmethod
    def _discount(self, factor: float) -> None:
        """Multiply the weight of every row so far by `factor`, between 0 and 1."""

    def _row_ages(self, n: int) -> tuple[float, Array | None]:
        """Return the factor by which n new rows reduce earlier sums, and the new rows' weights."""
        if self.forgetting == 1.0:
            return 1.0, None
        factors = ageing_factors(self.forgetting, n + 1)
        return float(factors[0]), factors[1:]

    def _count_ages(self, ageing: float, ages: tuple[float, float] | None, n: int) -> None:
        """Update the ageing factors for n new rows, before they are added to n_samples.

        `ages` are the sum of the new rows' factors and the sum of the squares of these factors;
        None if all factors are 1.
        """
        if self._ages is None and ages is None:
            return
        before, added = self._ages or (self.n_samples,) * 2, ages or (n, n)
        self._ages = (before[0] * ageing + added[0], before[1] * ageing**2 + added[1])
        self.ageing = above_tiny(self.ageing * ageing)

    def _check_never_aged(self, *parts: RowSums) -> None:
        """Check that no row has lost weight, so that rows can be subtracted."""
        for sums in (self, *parts):
            if min(sums.forgetting, sums.ageing) < 1:
                raise ValueError(
                    f"Rows cannot be subtracted from sums with forgetting "
                    f"(forgetting={sums.forgetting:g}, rows aged by {sums.ageing:g} in total): "
                    "later rows have reduced their weights. Add the remaining rows to a new "
                    "accumulator, or use forgetting=1.0 throughout."
                )

    def _check_removal(self, n: int, weight: float) -> None:
        """Check that rows were added, and that subtracting them leaves the remaining rows exact."""
        self._check_never_aged()
        if n > self.n_samples or weight > self.weight * (1 + 1e-9):
            raise ValueError(
                f"Cannot subtract {n} rows of total weight {weight:g}: only "
                f"{self.n_samples} rows of total weight {self.weight:g} were added."
            )
        if n < self.n_samples and weight >= self.weight * (1 - 4 * EPS):
            raise ValueError(
                f"Cannot subtract total weight {weight:g} of {self.weight:g}: the "
                f"{self.n_samples - n} remaining rows would be lost in rounding errors. Add them "
                "to a new accumulator."
            )

    def _check_filled(self) -> None:
        if self.n_samples == 0:
            raise ValueError(
                "No rows to fit: n_samples=0. No rows were added, or all of them were skipped or "
                "had weight 0."
            )

    def _check_size(self, other: RowSums) -> None:
        mine, its = (self.n_features, self.n_outputs), (other.n_features, other.n_outputs)
        if mine != its:
            raise ValueError(
                "Both accumulators must have the same (n_features, n_outputs), but this one has "
                f"{mine} and the other one has {its}."
            )

    def _read_rows(self, H: Any, Y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        """Return features, targets and weights of rows as arrays whose shapes agree."""
        H, Y = as_plain("H", H), as_plain("Y", Y)
        if Y.ndim == 1 and self.n_outputs == 1:
            Y = Y[:, None]
        if H.ndim != 2 or H.shape[1] != self.n_columns:
            raise ValueError(f"H must have shape (n_samples, {self.n_columns}); got {H.shape}.")
        if Y.shape != (len(H), self.n_outputs):
            raise ValueError(f"Y must have shape ({len(H)}, {self.n_outputs}); got {Y.shape}.")
        if sample_weight is None:
            return H, Y, None
        weights = as_plain("sample_weight", sample_weight, np.float64)
        if weights.shape != (len(H),):
            raise ValueError(f"sample_weight must have shape ({len(H)},); got {weights.shape}.")
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(weights.sum())
        if not (weights >= 0).all() or not finite:
            raise ValueError(
                "sample_weight must be finite and at least 0 in every row, and have a finite sum."
            )
        return H, Y, weights


def check_forgetting(name: str, value: Any) -> float:
    """Check that a forgetting factor is in (0, 1], and return it as a float."""
    if isinstance(value, Real) and not isinstance(value, bool) and not 0 < float(value) <= 1:
        raise ValueError(
            f"{name}={value} must be in (0, 1]: each new row multiplies the weights of all rows "
            "before it by this. Use 1.0 to forget nothing, and 1 - 1/n for a memory of about n "
            "rows."
        )
    return check_number(name, value)


def ageing_factors(forgetting: float, n: int) -> Array:
    """Return the weights of n rows that remain after all of them were added; the last one is 1."""
    with np.errstate(under="ignore"):
        factors = forgetting ** np.arange(n - 1, -1, -1.0)
    factors[factors < TINY] = 0.0
    return factors


def sums_of(ages: Array | None) -> tuple[float, float] | None:
    """Return the sum of ageing factors and the sum of their squares; None without forgetting."""
    return None if ages is None else (float(ages.sum()), float(ages @ ages))


def above_tiny(value: float) -> float:
    """Return `value`, or 0 if it is below the smallest normal number."""
    return value if value >= TINY else 0.0


def raise_overflow(name: str, column: int) -> None:
    """Raise `SumError` for a column of "H" or "Y" whose squares are not finite."""
    remedy = "Scale the targets."
    if name == "H":
        remedy = (
            "H contains states, then inputs. Scale the inputs, or exclude them from the readout "
            "(include_input=False)."
        )
    error = SumError(
        f"{name} contains NaN or infinity, or values whose squares overflow, in column {column}. "
        f"{remedy}"
    )
    error.of, error.column = name, column
    raise error
