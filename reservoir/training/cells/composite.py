"""Base class of cells that consist of cells, with weights "0.W", "1.W" and so on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reservoir._typing import Array
from reservoir.training.cells.cell import Cell, Weight
from reservoir.training.params import Params


class CompositeCell(Cell):
    """A cell that consists of other cells, `cells`; its state is their concatenated states."""

    cells: tuple[Cell, ...]

    @property
    def state_size(self) -> int:
        """Sum of the parts' state sizes."""
        return sum(cell.state_size for cell in self.cells)

    @property
    def causal(self) -> bool:
        """Whether all parts are causal."""
        return all(cell.causal for cell in self.cells)

    @property
    def drops_out(self) -> bool:
        """Whether any of the parts has dropout."""
        return any(cell.drops_out for cell in self.cells)

    @property
    def starts_from_data(self) -> bool:
        """Whether the weights of all parts can be computed from data."""
        return super().starts_from_data and all(cell.starts_from_data for cell in self.cells)

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
                    f"{cell!r} is not a cell. Pass objects of classes such as LSTMCell. Names are "
                    "allowed only in recipes for estimators, such as stacked."
                )
            if cell.at_even_steps() is not cell:
                raise ValueError(
                    f"{cell!r} reads times from its inputs and cannot be a part of another cell, "
                    "whose states contain no times. Use it alone."
                )

    def _weights_of_parts(self, n_features: Sequence[int]) -> dict[str, Weight]:
        """Return the descriptions of all parts' weights, given each part's number of inputs."""
        return {
            f"{i}.{name}": weight
            for i, (cell, n) in enumerate(zip(self.cells, n_features, strict=True))
            for name, weight in cell.weights(n).items()
        }

    def _params_of_parts(self, params: Params) -> list[Params]:
        """Return the weights of each part, by their names in the part."""
        parts: list[Params] = [{} for _ in self.cells]
        for name, array in params.items():
            index, dot, own = name.partition(".")
            if dot:
                parts[int(index)][own] = array
        return parts

    def _states_of_parts(self, state: Array | None) -> list[Array | None]:
        """Split a state, or the gradient with respect to one, into those of the parts."""
        if state is None:
            return [None] * len(self.cells)
        cuts = np.cumsum([cell.state_size for cell in self.cells])[:-1]
        return [np.ascontiguousarray(part) for part in np.split(state, cuts, axis=1)]

    @staticmethod
    def _named(parts: Iterable[Params]) -> Params:
        """Return the weights or gradients of all parts, by their names in the composite cell."""
        return {f"{i}.{name}": a for i, part in enumerate(parts) for name, a in part.items()}
