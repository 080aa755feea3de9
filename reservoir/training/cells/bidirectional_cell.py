"""The bidirectional cell: two cells that run over a sequence in opposite directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.cells.cell import Cell, PartFit, Trace, Weight
from reservoir.training.cells.composite import CompositeCell
from reservoir.training.params import Params


@saved
@dataclass(frozen=True)
class BidirectionalCell(CompositeCell):
    """Two cells that run over each sequence in opposite directions, with concatenated states.

    At each step, the readout receives the state of the forward cell after all rows up to this step,
    and the state of the backward cell after all rows from the end of the sequence back to this
    step. Each sequence is reversed within its length. The weights are named "0.W", "1.W" and so on.
    The state consists of the states of both cells. The backward cell starts from its initial state
    at the last row, and reaches its final state at the first row.

    At the last step of a sequence, the backward cell has received only one row. If there is one
    label per sequence (``target="last"``), stack another cell on top:
    ``stacked(bidirectional("lstm"), "lstm")``.

    Parameters
    ----------
    cells : tuple of two Cell
        The forward cell and the backward cell.

    Attributes
    ----------
    n_units : int
        Number of units of the forward cell; the readout receives the states of both cells.

    Raises
    ------
    TypeError
        If `cells` is not a tuple of two cells.

    References
    ----------
    M. Schuster and K. K. Paliwal, "Bidirectional recurrent neural networks", IEEE Transactions on
    Signal Processing 45, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import BidirectionalCell, SimpleCell
    >>> cell = BidirectionalCell((SimpleCell(1, "identity"), SimpleCell(1, "identity")))
    >>> cell.width, cell.causal
    (2, False)
    >>> weights = {name: np.ones(shape) for name, shape in cell.shapes(1).items()}
    >>> for i in (0, 1):
    ...     weights[f"{i}.bias"][:] = 0
    >>> cell.forward(weights, np.ones((4, 1, 1))).states[1:, 0]  # past rows, future rows
    array([[1., 4.],
           [2., 3.],
           [3., 2.],
           [4., 1.]])
    """

    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        self._check_cells(2)

    @property
    def n_units(self) -> int:  # type: ignore[override]
        """Number of units of the forward cell."""
        return self.cells[0].n_units

    @property
    def width(self) -> int:
        """Total width of both cells."""
        return sum(cell.width for cell in self.cells)

    @property
    def causal(self) -> bool:
        """False, because a state depends on future rows."""
        return False

    @property
    def reads_codes(self) -> bool:
        """Whether both cells accept codes."""
        return all(cell.reads_codes for cell in self.cells)

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        return self._weights_of_parts([n_features, n_features])

    def weights_from_data(self, fit: PartFit, inputs: Sequence[Array]) -> Params:
        """Return weights fitted in each direction by itself.

        For `fit` and `inputs` see `Cell.weights_from_data`.
        """
        ahead = fit(self.cells[0], inputs)
        turned = [np.ascontiguousarray(X[::-1]) for X in inputs]
        return self._named([ahead, fit(self.cells[1], turned, backward=True)])

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        ahead, back = self.cells
        own, starts = self._params_of_parts(params), self._states_of_parts(state)
        one = ahead.forward(own[0], X, starts[0], lengths)
        turned = _turned(X, one.lengths)
        other = back.forward(own[1], turned, starts[1], lengths)
        states = np.concatenate([one.states, other.states], axis=2)
        states[1:, :, ahead.width :] = _turned(other.states[1:], one.lengths)
        end = np.hstack([one.end, other.end])
        return Trace(X, states, end, one.lengths, kept={"traces": (one, other)})

    def backward(
        self,
        params: Params,
        trace: Trace,
        dH: Array,
        *,
        d_end: Array | None = None,
        d_pre: Array | None = None,
        inputs: bool = False,
    ) -> tuple[Params, Array, Array | None]:
        """Back-propagate a gradient through time.

        For `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` see `Cell.backward`.
        """
        self._check_no_pre(d_pre)
        ahead, back = self.cells
        one, other = trace.kept.pop("traces")
        own, ends = self._params_of_parts(params), self._states_of_parts(d_end)
        first = np.ascontiguousarray(dH[:, :, : ahead.width])
        second = _turned(dH[:, :, ahead.width :], trace.lengths)
        grads, d_start, d_X = ahead.backward(own[0], one, first, d_end=ends[0], inputs=inputs)
        more, d_last, d_turned = back.backward(own[1], other, second, d_end=ends[1], inputs=inputs)
        if d_X is not None and d_turned is not None:
            d_X = d_X + _turned(d_turned, trace.lengths)
        return self._named((grads, more)), np.hstack([d_start, d_last]), d_X


def _turned(A: Array, lengths: Array) -> Array:
    """Reverse each sequence within its length; padding keeps its position."""
    steps = np.arange(len(A))[:, None]
    places = np.where(steps < lengths, lengths - 1 - steps, steps)
    return A[places, np.arange(A.shape[1])]
