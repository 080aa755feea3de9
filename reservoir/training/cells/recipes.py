"""Recipes: composite cells whose parts are given by name, built at the size of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reservoir._saving import saved
from reservoir._validation import check_choice
from reservoir.training.cells.bidirectional_cell import BidirectionalCell
from reservoir.training.cells.cell import Cell
from reservoir.training.cells.simple import SimpleCell
from reservoir.training.cells.stacked_cell import StackedCell

_KINDS: dict[str, Callable[..., Cell]] = {
    "stacked": StackedCell,
    "bidirectional": BidirectionalCell,
}


@saved
@dataclass(frozen=True, repr=False)
class Recipe:
    """Recipe for a composite cell, returned by `stacked` and `bidirectional`.

    Parameters
    ----------
    kind : {"stacked", "bidirectional"}
        Kind of the composite cell.
    parts : tuple of str, Cell or Recipe
        The parts of the composite cell; a str is a name in `reservoir.training.cells.CELLS`.
    options : tuple of (str, value)
        Keyword arguments of the composite cell.

    Examples
    --------
    >>> from reservoir.training.cells import LSTMCell, SimpleCell, stacked
    >>> recipe = stacked("lstm", SimpleCell(4))
    >>> recipe
    stacked('lstm', SimpleCell(n_units=4, activation='tanh', leak_rate=1.0))
    >>> recipe.names
    ('lstm',)
    >>> recipe.cell({"lstm": LSTMCell(3)}.get).width
    4
    """

    kind: str
    parts: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, _KINDS)
        for part in self.parts:
            if not isinstance(part, (str, Cell, Recipe)):
                raise TypeError(
                    f"{self.kind}: {part!r} cannot be a part. Each part must be the name of a "
                    "cell, a Cell, or another recipe."
                )
        self.cell(lambda name: SimpleCell(1))  # raises an error if the cell cannot be created

    def __repr__(self) -> str:
        options = [f"{name}={value!r}" for name, value in self.options]
        return f"{self.kind}({', '.join([*map(repr, self.parts), *options])})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of cells in the recipe, including nested recipes."""
        found: list[str] = []
        for part in self.parts:
            found += part.names if isinstance(part, Recipe) else [part] * isinstance(part, str)
        return tuple(found)

    def cell(self, make: Callable[[str], Any]) -> Cell:
        """Return the composite cell.

        Parameters
        ----------
        make : callable, ``make(name) -> Cell``
            Function that returns the cell for a name.

        Returns
        -------
        Cell
        """
        cells = []
        for part in self.parts:
            if isinstance(part, Recipe):
                part = part.cell(make)
            cells.append(make(part) if isinstance(part, str) else part)
        return _KINDS[self.kind](tuple(cells), **dict(self.options))


def stacked(
    *layers: str | Cell | Recipe,
    input_shortcuts: bool = False,
    readout_shortcuts: bool = False,
    dropout: float = 0.0,
    same_mask: bool = False,
) -> Recipe:
    """Return a recipe for a stack of cells, each of which receives the state of the cell below.

    Parameters
    ----------
    *layers : str, Cell or Recipe
        The layers, from the lowest to the topmost. A name in `reservoir.training.cells.CELLS` is
        replaced by a cell with the estimator's n_units (and with its activation and leak rate, if
        the cell has these). A cell object keeps its size. A recipe is resolved in the same way.
    input_shortcuts : bool, default=False
        Whether every layer also receives the input.
    readout_shortcuts : bool, default=False
        Whether the readout receives the states of all layers, the lowest first, instead of only the
        topmost layer's state.
    dropout : float in [0, 1), default=0.0
        Share of the values passed between inputs, layers and readout that are set to 0 during
        training; see `StackedCell`. Solvers that use all data at once do not support dropout.
    same_mask : bool, default=False
        Whether, in each update, a sequence has one dropout mask for all steps instead of a separate
        mask for each step.

    Returns
    -------
    Recipe
        A recipe for a `StackedCell`, to pass as the parameter `cell` of `RNNRegressor` and
        `RNNClassifier`.

    Raises
    ------
    TypeError, ValueError
        If there is no layer, if a layer has another type, or if `dropout` is outside its range.

    Examples
    --------
    >>> from reservoir import RNNRegressor
    >>> from reservoir.datasets import mackey_glass
    >>> from reservoir.training.cells import stacked
    >>> x = mackey_glass(100, random_state=0)
    >>> rnn = RNNRegressor(8, cell=stacked("gru", "rnn"), init="esn", max_iter=5)
    >>> sorted(rnn.fit(x[:-1], x[1:]).params_)[:4]
    ['0.W', '0.W_in', '0.bias', '0.bias_recurrent']
    """
    options = {
        "input_shortcuts": input_shortcuts,
        "readout_shortcuts": readout_shortcuts,
        "dropout": dropout,
        "same_mask": same_mask,
    }
    return Recipe("stacked", layers, tuple((k, v) for k, v in options.items() if v))


def bidirectional(ahead: str | Cell | Recipe, back: str | Cell | Recipe | None = None) -> Recipe:
    """Return a recipe for a forward and a backward cell, whose states are concatenated.

    The cell is suitable for recordings that are available as a whole, since the states at each step
    depend on future rows. Therefore, `forecast`, `stream` and `partial_fit` are not available, and
    a run cannot continue from the final state of another run.

    Parameters
    ----------
    ahead : str, Cell or Recipe
        The forward cell. A name is replaced by a cell with the estimator's n_units, as in
        `stacked`.
    back : str, Cell or Recipe, optional
        The backward cell. By default, it is the same as `ahead`, with separate weights.

    Returns
    -------
    Recipe
        A recipe for a `BidirectionalCell`, to pass as the parameter `cell` of `RNNRegressor` and
        `RNNClassifier`.

    Examples
    --------
    >>> from reservoir.training.cells import bidirectional, stacked
    >>> stacked(bidirectional("lstm"), "lstm")
    stacked(bidirectional('lstm', 'lstm'), 'lstm')
    """
    return Recipe("bidirectional", (ahead, ahead if back is None else back))
