"""What a readout is to an estimator: an object that takes rows, is solved, and says outputs."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from reservoir._saving import saved
from reservoir._typing import Array

#: For each sequence pairs (part, end): its rows before `end`, and not of the pairs before.
Cuts = list[tuple[tuple[int, int], ...]]
Outputs = Callable[[Array], Array]
Decode = Callable[[Array], Any]
_Self = TypeVar("_Self", bound="Readout")


@saved
@dataclass(frozen=True, kw_only=True)
class ReadoutSettings:
    """An estimator's parameters, as far as readouts ask for them, and what its targets are.

    Attributes
    ----------
    estimator : object
        The parameter `readout`: None, or what the user wants instead of the ridge.
    solver, alpha, selection, alpha_per_target, fit_intercept
        The ridge's parameters.
    forgetting : float
        What each row that enters multiplies the weights of the rows before it by.
    skip_missing : bool
        Whether rows with a target that is NaN are left out; else they are refused.
    dtype : numpy.dtype
        Of outputs and coefficients.
    one_dimensional : bool
        Whether outputs, and with them coefficients, have no column axis.
    decode : callable, optional
        Turns targets, (n_rows, n_outputs), into what the user's own readout is fitted on.
    classes : array of shape (n_classes,), optional
        All labels that will ever come, for a classifier.
    partial : bool
        Whether it is partial_fit that asks.
    rule : SelectionRule, optional
        The rule that `selection` names, where that needs more than sums over rows.
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
    """How many rows count, for how many columns, under a single penalty that is small.

    Attributes
    ----------
    rows : float
        (sum w)^2 / sum w^2 by the weights that forgetting has left.
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
    """A readout on its way from rows to outputs.

    An estimator calls `begin` for each batch of sequences, `update` for each block of rows,
    `merge` with the batches in order, and `solve`, whose result it keeps as fitted attributes;
    `outputs` and `linear` read those back. Between two calls of partial_fit the estimator keeps the
    readout, which must hold arrays and plain objects only, so that it can be saved.

    A new kind is a subclass in a file of its own and a line in `reservoir.readouts.READOUTS`.

    Parameters
    ----------
    settings : ReadoutSettings

    Attributes
    ----------
    fitted : tuple of str
        Names of the fitted attributes that `solve` may return; a new fit forgets them.
    ordered : bool
        Whether rows must come in the order of the data; sequences are then run one by one.
    forgets : bool
        Whether it heeds ``settings.forgetting``.
    lazy : bool
        Whether partial_fit may leave it to the first who reads a fitted attribute to call `solve`.
        That then depends on rows and settings alone, leaves the readout as it was to those who go
        on from it, and may be called at any time, by any thread.
    n_rows : int
        Rows seen so far, without those of the washout.
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
        """Whether this is the kind that an estimator's parameter `readout` asks for."""

    def begin(self: _Self, width: int, n_outputs: int) -> _Self:
        """Return an empty readout of the same settings for rows of `width` features."""
        empty = type(self)(self.settings)
        empty.width, empty.n_outputs = width, n_outputs
        return empty

    def check_room(self, width: int, n_rows: int = 0) -> None:  # noqa: B027 (most take little)
        """Refuse rows of so many features if what is made of them does not fit into memory."""

    def renewed(self: _Self, settings: ReadoutSettings) -> _Self:
        """Return an independent copy that has seen the same, under settings that may be others."""
        one = copy.copy(self)
        one.settings = settings
        return one

    def cut(
        self, lengths: list[int], skips: list[int], *, continues: bool = False, number: int = 0
    ) -> Cuts:
        """Return which part each row belongs to that `update` is to be told of: one part.

        Parameters
        ----------
        lengths, skips : lists of int
            Rows of each sequence, and how many at its start are washout.
        continues : bool, default=False
            Whether the first sequence continues the last one of the call before.
        number : int, default=0
            Where its first row stands among all that were ever learned from.
        """
        return [((0, length),) for length in lengths]

    @abstractmethod
    def check_partial(self) -> None:
        """Refuse settings that partial_fit cannot serve."""

    def check_takes_more_rows(self) -> None:  # noqa: B027 (most take them)
        """Refuse, by name, to be merged with rows to come."""

    def go_on_from(self: _Self, earlier: _Self) -> None:  # noqa: B027 (most have no say in it)
        """Prepare to be merged into what an earlier chunk has left, of the same kind; or refuse."""

    @abstractmethod
    def update(
        self, features: Array, targets: Array, weights: Array | None = None, *, part: int = 0
    ) -> None:
        """Take rows, (n_rows, width) and (n_rows, n_outputs); the features' memory is used again.

        Whatever is kept of the features must be copied; they may be changed.
        """

    def sample(  # noqa: B027 (most keep no rows)
        self, numbers: Array, features: Array, targets: Array, weights: Array | None = None
    ) -> None:
        """Take a look at rows before `update` gets them, and copy what is to be kept.

        Parameters
        ----------
        numbers : array of shape (n_rows,)
            Where the rows stand among all that were ever learned from, those of the washout
            counted.
        features, targets, weights
            As in `update`.
        """

    @abstractmethod
    def merge(self: _Self, other: _Self) -> None:
        """Take what another one, begun from this one, has seen after it."""

    def after(self: _Self, earlier: _Self) -> _Self:
        """Return a readout that has seen what an earlier one has, and then what this one has.

        The earlier one stays as it was; this one is used up.
        """
        one = earlier.renewed(self.settings)
        one.merge(self)
        return one

    def held_by_rows(self) -> RowsAndColumns | None:
        """Return how many rows hold how many columns; None if something else does."""
        return None

    def spread_of_targets(self) -> Array | None:
        """Return the standard deviation of each target, (n_outputs,); None if it is not known."""
        return None

    def columns_apart(self, which: Sequence[int], among: Sequence[int]) -> float | None:
        """Return how much smaller one of some columns is than others, if it is lost beside them."""
        return None

    @abstractmethod
    def solve(self) -> dict[str, Any]:
        """Return the fitted attributes, by name, that all rows so far lead to."""

    @classmethod
    @abstractmethod
    def outputs(cls, model: Any) -> Outputs:
        """Return the function from features, (n_rows, width), to outputs, (n_rows, n_outputs).

        Parameters
        ----------
        model : object
            Has what `solve` returned as attributes.
        """

    @staticmethod
    def linear(model: Any) -> tuple[Array, Array] | None:
        """Return coefficients and intercept, for compiled loops; None if outputs are not linear."""
        return None

    def linear_path(
        self, alphas: Sequence[float], *, fit_intercept: bool, dtype: Any
    ) -> list[Any] | None:
        """Return coefficients and intercept that the rows seen lead to under each penalty.

        None if it takes the rows again to tell. `settings` may have been forgotten.
        """
        return None

    def row_learner(self, model: Any) -> RowLearner:
        """Return what goes on from this readout in a session, row by row.

        Parameters
        ----------
        model : object
            Has what `solve` returned as attributes. Neither it nor this readout is changed.
        """
        raise TypeError(
            f"readout={self.settings.estimator!r} does not learn in a session: "
            f"{type(self).__name__} has no row_learner. Use partial_fit, or the built-in ridge "
            "(readout=None)."
        )


class RowLearner(ABC):
    """A fitted readout that goes on learning while it is used: what a session asks of it.

    It shares nothing with the estimator that it began from, and holds arrays and plain objects
    only, so that it can be saved.
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @abstractmethod
    def learn(self, features: Array, targets: Array, weights: Array | None, decode: Decode) -> None:
        """Learn from rows, one at least.

        Parameters
        ----------
        features : array of shape (n_rows, width)
            In memory that is used again: copy what you keep.
        targets : array of shape (n_rows, n_outputs)
            Without NaN.
        weights : array of shape (n_rows,) or None
            Greater than 0.
        decode : callable
            Turns targets into what the user's own readout is fitted on.
        """

    def sample(  # noqa: B027 (most keep no rows)
        self, numbers: Array, features: Array, targets: Array, weights: Array | None
    ) -> None:
        """Take a look at rows that were learned, as `Readout.sample` does."""

    def separate(self) -> None:  # noqa: B027 (most do not ask what came before)
        """Take note that the rows to come do not follow those so far."""

    @abstractmethod
    def fitted(self, settings: ReadoutSettings) -> dict[str, Any]:
        """Return the fitted attributes, by name, that all rows so far lead to."""

    @abstractmethod
    def readout(self) -> Readout:
        """Return the readout from which partial_fit goes on; this learner is used up."""

    @property
    def forgetting(self) -> float:
        """Factor on the weights of all earlier rows, for each row; it may be set."""
        raise AttributeError(self._without("forgetting"))

    @forgetting.setter
    def forgetting(self, value: float) -> None:
        raise AttributeError(self._without("forgetting"))

    def forget(self, factor: float) -> None:
        """Let all rows so far weigh `factor` times as much."""
        raise TypeError(self._without("forget"))

    def _without(self, what: str) -> str:
        return (
            f"{self.name} has no {what}: it keeps no weights of earlier rows that could fade. Use "
            "the built-in ridge (readout=None), or a readout such as RecursiveLeastSquares."
        )
