"""The interface between an estimator and a readout, which collects rows, is solved and predicts."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from reservoir._saving import saved
from reservoir._typing import Array

#: For each sequence, pairs (part, end): rows from the previous pair's end to `end` are in `part`.
Cuts = list[tuple[tuple[int, int], ...]]
Outputs = Callable[[Array], Array]
Decode = Callable[[Array], Any]
_Self = TypeVar("_Self", bound="Readout")


@saved
@dataclass(frozen=True, kw_only=True)
class ReadoutSettings:
    """The parameters of an estimator that readouts use, and properties of its targets.

    Attributes
    ----------
    estimator : object
        The estimator's parameter `readout`: None for the built-in ridge, or a custom readout.
    solver, alpha, selection, alpha_per_target, fit_intercept
        Parameters of the built-in ridge.
    forgetting : float
        Factor by which each new row multiplies the weights of all rows before it.
    skip_missing : bool
        Whether rows with a NaN target are skipped; otherwise such rows raise an error.
    dtype : numpy.dtype
        Dtype of outputs and coefficients.
    one_dimensional : bool
        Whether outputs and coefficients lack the axis of outputs, as with a one-dimensional `y`.
    decode : callable, optional
        Converts targets, (n_rows, n_outputs), to the targets that a custom readout is fitted on.
    classes : array of shape (n_classes,), optional
        All labels that can occur, for a classifier.
    partial : bool
        Whether the current call is to partial_fit.
    rule : SelectionRule, optional
        The rule named by `selection`, set only if it needs more than sums over rows.
    halves : bool
        Whether rows are assigned to two halves even if `selection` does not compare parts.
    input_alpha : float, "auto" or None
        The parameter of this name: the penalty of rows of the input; None if there is one penalty.
    next_inputs : bool
        Whether the targets are the inputs one row later, so that the readout may run closed loops.
    """

    estimator: Any = None
    solver: str = "auto"
    alpha: Any = 1e-6
    selection: str = "gcv"
    alpha_per_target: bool = False
    fit_intercept: bool = True
    forgetting: float = 1.0
    skip_missing: bool = False
    dtype: Any = "float64"
    one_dimensional: bool = False
    decode: Callable[[Array], Any] | None = None
    classes: Array | None = None
    partial: bool = False
    rule: Any = None
    halves: bool = False
    input_alpha: Any = None
    next_inputs: bool = False


class RowsAndColumns(NamedTuple):
    """Numbers of rows and columns that limit the errors of a fit under one small penalty `alpha`.

    `rows` is the effective number, (sum w)^2 / sum w^2 for the weights w that remain after
    forgetting. `remembered` is the number that forgetting remembers, 1 / (1 - forgetting); infinite
    without it. `columns` counts one more if an intercept is fitted.
    """

    rows: float
    remembered: float
    columns: int
    alpha: float


class Readout(ABC):
    """Base class of readouts.

    An estimator calls `begin` for each batch of sequences, `update` for each block of rows,
    `merge` with the batches in order, and `solve`, whose result it stores as fitted attributes;
    `outputs` and `linear` read these. Between two calls of partial_fit the estimator keeps the
    readout, which must contain arrays and plain objects only, so that it can be saved.

    To add a readout, write a subclass in a separate file and list it in
    `reservoir.readouts.READOUTS`.

    Parameters
    ----------
    settings : ReadoutSettings

    Attributes
    ----------
    fitted : tuple of str
        Names of the fitted attributes that `solve` may return; a new fit deletes them.
    inputs : InputRows or None
        Features that are rows of the input, for a readout that treats them apart; set before rows
        are added.
    ordered : bool
        Whether rows must arrive in the order of the data; sequences are then run one by one.
    forgets : bool
        Whether the readout uses ``settings.forgetting``.
    lazy : bool
        Whether partial_fit may postpone `solve` until a fitted attribute is read. `solve` must then
        depend on rows and settings alone, have no effect on the rows that follow, and be safe to
        call at any time, from any thread.
    n_rows : int
        Number of rows seen so far, without the washout.
    """

    fitted: tuple[str, ...] = ()
    inputs: Any = None
    ordered: Any = False
    forgets = False
    lazy = False
    n_rows: Any

    def __init__(self, settings: ReadoutSettings) -> None:
        self.settings = settings
        self.width = self.n_outputs = 0

    @classmethod
    @abstractmethod
    def takes(cls, readout: Any) -> bool:
        """Whether an estimator's parameter `readout` selects this class."""

    def begin(self: _Self, width: int, n_outputs: int) -> _Self:
        """Return an empty readout with the same settings, for rows of `width` features."""
        empty = type(self)(self.settings)
        empty.width, empty.n_outputs = width, n_outputs
        return empty

    def check_room(self, width: int, n_rows: int = 0) -> None:  # noqa: B027 (most need little)
        """Check that there is enough memory for rows of `width` features."""

    def renewed(self: _Self, settings: ReadoutSettings) -> _Self:
        """Return an independent copy with the same rows and new settings."""
        one = copy.copy(self)
        one.settings = settings
        return one

    def cut(
        self, lengths: list[int], skips: list[int], *, continues: bool = False, number: int = 0
    ) -> Cuts:
        """Return the part, as passed to `update`, of each row; by default there is a single part.

        Parameters
        ----------
        lengths, skips : lists of int
            Number of rows of each sequence, and number of washout rows at its start.
        continues : bool, default=False
            Whether the first sequence continues the last one of the previous call.
        number : int, default=0
            Position of the first row among all rows ever learned from.
        """
        return [((0, length),) for length in lengths]

    @abstractmethod
    def check_partial(self) -> None:
        """Check that partial_fit supports the settings."""

    def check_takes_more_rows(self) -> None:  # noqa: B027 (most take them)
        """Raise an error if rows of later calls cannot be added."""

    def go_on_from(self: _Self, earlier: _Self) -> None:  # noqa: B027 (most need nothing)
        """Prepare to continue the readout of an earlier chunk, of the same class, or raise."""

    @abstractmethod
    def update(
        self, features: Array, targets: Array, weights: Array | None = None, *, part: int = 0
    ) -> None:
        """Add features, (n_rows, width), and targets, (n_rows, n_outputs).

        The caller reuses the memory of the features, so that any rows that are kept must be copied.
        The features may be overwritten.
        """

    def sample(  # noqa: B027 (most keep no rows)
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Inspect rows before `update` receives them; copy what is kept.

        Parameters
        ----------
        numbers : array of shape (n_rows,)
            Positions of the rows among all rows ever learned from, the washout included.
        features, targets, weights
            As in `update`.
        """

    @abstractmethod
    def merge(self: _Self, other: _Self) -> None:
        """Add the later rows of another readout, which `begin` of this readout returned."""

    def after(self: _Self, earlier: _Self) -> _Self:
        """Return a readout of an earlier readout's rows, followed by the rows of this readout.

        The earlier readout does not change; this one must not be used again.
        """
        one = earlier.renewed(self.settings)
        one.merge(self)
        return one

    def held_by_rows(self) -> RowsAndColumns | None:
        """Return the numbers of rows and columns; None unless these alone limit the errors."""
        return None

    def spread_of_targets(self) -> Array | None:
        """Return the standard deviation of each target, (n_outputs,); None if it is unknown."""
        return None

    def columns_apart(self, which: Sequence[int], among: Sequence[int]) -> float | None:
        """Return the ratio of a large column to a small one that it makes negligible, else None.

        Parameters
        ----------
        which : sequence of int
            Columns of which the smallest is compared.
        among : sequence of int
            Columns of which the largest is the reference.
        """
        return None

    @abstractmethod
    def solve(self) -> dict[str, Any]:
        """Return the fitted attributes for all rows so far, by name."""

    @classmethod
    @abstractmethod
    def outputs(cls, model: Any) -> Outputs:
        """Return the function from features, (n_rows, width), to outputs, (n_rows, n_outputs).

        Parameters
        ----------
        model : object
            Its attributes include the result of `solve`.
        """

    @staticmethod
    def linear(model: Any) -> tuple[Array, Array] | None:
        """Return coefficients and intercept, for compiled loops; None for a nonlinear readout."""
        return None

    def linear_path(
        self, alphas: Sequence[float], *, model: Any, fit_intercept: bool, dtype: Any
    ) -> list[Any] | None:
        """Return coefficients and intercept for the rows seen, under each penalty.

        The attributes of `model` include the result of `solve`.

        The result is None if it cannot be computed without the rows. Implementations must not use
        `settings`, which may no longer be set.
        """
        return None

    def row_learner(self, model: Any) -> RowLearner:
        """Return an online learner that continues from this readout in a session, row by row.

        Parameters
        ----------
        model : object
            Its attributes include the result of `solve`. Neither `model` nor this readout is
            changed.
        """
        raise TypeError(
            f"readout={self.settings.estimator!r} does not learn in a session: "
            f"{type(self).__name__} has no row_learner. Use partial_fit, or the built-in ridge "
            "(readout=None)."
        )


class KeepsWeights(ABC):
    """Factors of the weights of earlier rows, which raise in a learner that keeps no weights."""

    @property
    def forgetting(self) -> float:
        """Factor, which can be set, by which each new row multiplies earlier rows' weights."""
        raise AttributeError(self._without("forgetting"))

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        raise AttributeError(self._without("forgetting"))

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows so far by `factor`."""
        raise TypeError(self._without("forget"))

    @abstractmethod
    def _without(self, what: str) -> str:
        """Return the message of a learner that has no `what`."""


class RowLearner(KeepsWeights):
    """Online learner: a fitted readout that continues to learn in a session.

    It shares no data with the estimator from which it was created, and contains only arrays and
    plain objects, so that it can be saved.
    """

    @property
    def name(self) -> str:
        """Name of the learner in messages."""
        return type(self).__name__

    @abstractmethod
    def learn(self, features: Array, targets: Array, weights: Array | None, decode: Decode) -> None:
        """Learn from one or more rows.

        Parameters
        ----------
        features : array of shape (n_rows, width)
            The caller reuses this memory, so that any rows that are kept must be copied.
        targets : array of shape (n_rows, n_outputs)
            Targets without NaN.
        weights : array of shape (n_rows,) or None
            Sample weights greater than 0.
        decode : callable
            Converts targets to the targets that a custom readout is fitted on.
        """

    def sample(
        self, numbers: Array, features: Array, targets: Array, weights: Array | None
    ) -> None:
        """Inspect rows after learning from them, as `Readout.sample` does."""

    def separate(self) -> None:
        """Start a new sequence: the next rows do not follow the previous ones."""

    @abstractmethod
    def fitted(self, settings: ReadoutSettings) -> dict[str, Any]:
        """Return the fitted attributes for all rows so far, by name."""

    @abstractmethod
    def readout(self) -> Readout:
        """Return the readout from which partial_fit continues.

        This learner must not be used again.
        """

    def _without(self, what: str) -> str:
        return (
            f"{self.name} has no {what}: it stores no weights of earlier rows that could be "
            "reduced. Use the built-in ridge (readout=None), or a readout such as "
            "RecursiveLeastSquares."
        )
