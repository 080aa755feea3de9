"""What cells made of cells share: weights "0.W", "1.W" and so on, states side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reservoir._typing import Array
from reservoir.training.cells.cell import Cell, Weight
from reservoir.training.params import Params


class CompositeCell(Cell):
    """A cell whose parts, `cells`, are cells."""

    cells: tuple[Cell, ...]

    @property
    def state_size(self) -> int:
        """The parts' state sizes, added up."""
        return sum(cell.state_size for cell in self.cells)

    @property
    def causal(self) -> bool:
        """Whether all parts are."""
        return all(cell.causal for cell in self.cells)

    @property
    def drops_out(self) -> bool:
        """Whether one of the parts does."""
        return any(cell.drops_out for cell in self.cells)

    def _check_cells(self, n: int | None = None) -> None:
        if (
            not isinstance(self.cells, tuple)
            or not self.cells
            or len(self.cells) != (n or len(self.cells))
        ):
            number = "one or more" if n is None else str(n)
            raise TypeError(f"cells={self.cells!r} must be a tuple of {number} cells.")
        for cell in self.cells:
            if not isinstance(cell, Cell):
                raise TypeError(
                    f"{cell!r} is no cell: give objects, of LSTMCell for instance. Names stand in "
                    "recipes, such as those of stacked, which are for estimators."
                )
            if cell.at_even_steps() is not cell:
                raise ValueError(
                    f"{cell!r} reads times from its inputs and cannot be a part of another cell, "
                    "whose states hold none. Use it alone."
                )

    def _weights_of_parts(self, n_features: Sequence[int]) -> dict[str, Weight]:
        """Return the weights of all parts, given the inputs of each."""
        return {
            f"{i}.{name}": weight
            for i, (cell, n) in enumerate(zip(self.cells, n_features, strict=True))
            for name, weight in cell.weights(n).items()
        }

    def _params_of_parts(self, params: Params) -> list[Params]:
        """Return the weights of each part by its own names."""
        parts: list[Params] = [{} for _ in self.cells]
        for name, array in params.items():
            index, dot, own = name.partition(".")
            if dot:
                parts[int(index)][own] = array
        return parts

    def _states_of_parts(self, state: Array | None) -> list[Array | None]:
        """Return the part of a state, or of a gradient there, that belongs to each part."""
        if state is None:
            return [None] * len(self.cells)
        cuts = np.cumsum([cell.state_size for cell in self.cells])[:-1]
        return [np.ascontiguousarray(part) for part in np.split(state, cuts, axis=1)]

    @staticmethod
    def _named(parts: Iterable[Params]) -> Params:
        """Return weights, or gradients, of all parts under the names of the whole."""
        return {f"{i}.{name}": a for i, part in enumerate(parts) for name, a in part.items()}
