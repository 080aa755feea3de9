"""The interface of a readout to an estimator: it collects rows, is solved and predicts outputs."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from reservoir._saving import saved
from reservoir._typing import Array

#: For each sequence pairs (part, end): the rows before `end` that no earlier pair contains.
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
        The parameter `readout`: None for the ridge, or a custom readout.
    solver, alpha, selection, alpha_per_target, fit_intercept
        Parameters of the ridge.
    forgetting : float
        Factor by which each new row multiplies the weights of all rows before it.
    skip_missing : bool
        Whether rows with a target that is NaN are skipped; else they raise an error.
    dtype : numpy.dtype
        Of outputs and coefficients.
    one_dimensional : bool
        Whether outputs, and with them coefficients, have no column axis.
    decode : callable, optional
        Converts targets, (n_rows, n_outputs), to the targets that a custom readout is fitted on.
    classes : array of shape (n_classes,), optional
        All labels that can occur, for a classifier.
    partial : bool
        Whether the call is partial_fit.
    rule : SelectionRule, optional
        The rule that `selection` names, if it needs more than sums over rows.
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


class RowsAndColumns(NamedTuple):
    """Effective number of rows and number of columns, under a single penalty that is small.

    Attributes
    ----------
    rows : float
        (sum w)^2 / sum w^2 of the weights after forgetting.
    remembered : float
        1 / (1 - forgetting).
    columns : int
    alpha : float
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

    A new kind is a subclass in a separate file and a line in `reservoir.readouts.READOUTS`.

    Parameters
    ----------
    settings : ReadoutSettings

    Attributes
    ----------
    fitted : tuple of str
        Names of the fitted attributes that `solve` may return; a new fit deletes them.
    ordered : bool
        Whether rows must arrive in the order of the data; sequences are then run one by one.
    forgets : bool
        Whether it uses ``settings.forgetting``.
    lazy : bool
        Whether partial_fit may postpone `solve` until a fitted attribute is read. `solve` must then
        depend on rows and settings alone, have no effect on the rows that follow, and be safe to
        call at any time, from any thread.
    n_rows : int
        Number of rows seen so far, without the washout.
    """

    fitted: tuple[str, ...] = ()
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
        """Whether this kind is selected by `readout`, the parameter of an estimator."""

    def begin(self: _Self, width: int, n_outputs: int) -> _Self:
        """Return an empty readout of the same settings for rows of `width` features."""
        empty = type(self)(self.settings)
        empty.width, empty.n_outputs = width, n_outputs
        return empty

    def check_room(self, width: int, n_rows: int = 0) -> None:  # noqa: B027 (most need little)
        """Check that there is enough memory for rows of `width` features."""

    def renewed(self: _Self, settings: ReadoutSettings) -> _Self:
        """Return an independent copy with the same rows, and with these settings."""
        one = copy.copy(self)
        one.settings = settings
        return one

    def cut(
        self, lengths: list[int], skips: list[int], *, continues: bool = False, number: int = 0
    ) -> Cuts:
        """Return the part that each row belongs to, for `update`; a single part by default.

        Parameters
        ----------
        lengths, skips : lists of int
            Rows of each sequence, and how many at its start are washout.
        continues : bool, default=False
            Whether the first sequence continues the last one of the previous call.
        number : int, default=0
            Position of its first row among all rows ever learned from.
        """
        return [((0, length),) for length in lengths]

    @abstractmethod
    def check_partial(self) -> None:
        """Check that partial_fit supports the settings."""

    def check_takes_more_rows(self) -> None:  # noqa: B027 (most take them)
        """Raise if rows of later calls cannot be added."""

    def go_on_from(self: _Self, earlier: _Self) -> None:  # noqa: B027 (most need nothing)
        """Prepare to continue the readout of an earlier chunk, of the same kind, or raise."""

    @abstractmethod
    def update(
        self, features: Array, targets: Array, weights: Array | None = None, *, part: int = 0
    ) -> None:
        """Add rows, (n_rows, width) and (n_rows, n_outputs).

        The caller reuses the memory of the features: copy what is kept. They may be overwritten.
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
        """Add the rows of another readout that was begun from this one, and follow its rows."""

    def after(self: _Self, earlier: _Self) -> _Self:
        """Return a readout of the rows of an earlier one, followed by the rows of this one.

        The earlier one does not change; this one must not be used again.
        """
        one = earlier.renewed(self.settings)
        one.merge(self)
        return one

    def held_by_rows(self) -> RowsAndColumns | None:
        """Return the numbers of rows and columns; None if rows alone do not limit the errors."""
        return None

    def spread_of_targets(self) -> Array | None:
        """Return the standard deviation of each target, (n_outputs,); None if it is unknown."""
        return None

    def columns_apart(self, which: Sequence[int], among: Sequence[int]) -> float | None:
        """Return how many times smaller a column is than others, if it is lost next to them.

        Parameters
        ----------
        which : sequence of int
            Columns whose smallest one is compared.
        among : sequence of int
            Columns whose largest one is the reference.
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
        """Return coefficients and intercept, for compiled loops; None if outputs are not linear."""
        return None

    def linear_path(
        self, alphas: Sequence[float], *, fit_intercept: bool, dtype: Any
    ) -> list[Any] | None:
        """Return coefficients and intercept for the rows seen, under each penalty.

        None if that would need the rows again. Do not use `settings`: they may be gone.
        """
        return None

    def row_learner(self, model: Any) -> RowLearner:
        """Return an online learner that continues from this readout in a session, row by row.

        Parameters
        ----------
        model : object
            Its attributes include the result of `solve`. Neither it nor this readout is changed.
        """
        raise TypeError(
            f"readout={self.settings.estimator!r} does not learn in a session: "
            f"{type(self).__name__} has no row_learner. Use partial_fit, or the built-in ridge "
            "(readout=None)."
        )


class RowLearner(ABC):
    """Online learner: a fitted readout that continues to learn in a session.

    It shares nothing with the estimator that it began from, and contains arrays and plain objects
    only, so that it can be saved.
    """

    @property
    def name(self) -> str:
        """Name of the learner in messages."""
        return type(self).__name__

    @abstractmethod
    def learn(self, features: Array, targets: Array, weights: Array | None, decode: Decode) -> None:
        """Learn from one row or more.

        Parameters
        ----------
        features : array of shape (n_rows, width)
            In memory that the caller reuses: copy what is kept.
        targets : array of shape (n_rows, n_outputs)
            Without NaN.
        weights : array of shape (n_rows,) or None
            Greater than 0.
        decode : callable
            Converts targets to the targets that a custom readout is fitted on.
        """

    def sample(  # noqa: B027 (most keep no rows)
        self, numbers: Array, features: Array, targets: Array, weights: Array | None
    ) -> None:
        """Inspect rows after learning from them, as `Readout.sample` does."""

    def separate(self) -> None:  # noqa: B027 (most do not use the previous rows)
        """Start a new sequence: the next rows do not follow the previous ones."""

    @abstractmethod
    def fitted(self, settings: ReadoutSettings) -> dict[str, Any]:
        """Return the fitted attributes for all rows so far, by name."""

    @abstractmethod
    def readout(self) -> Readout:
        """Return the readout from which partial_fit continues; do not use this learner again."""

    @property
    def forgetting(self) -> float:
        """Factor by which each new row multiplies the weights of all earlier rows; can be set."""
        raise AttributeError(self._without("forgetting"))

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        raise AttributeError(self._without("forgetting"))

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows so far by `factor`."""
        raise TypeError(self._without("forget"))

    def _without(self, what: str) -> str:
        return (
            f"{self.name} has no {what}: it keeps no weights of earlier rows to reduce. Use the "
            "built-in ridge (readout=None), or a readout such as RecursiveLeastSquares."
        )
