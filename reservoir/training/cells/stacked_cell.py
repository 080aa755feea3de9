"""Stacked cells: the input of each is the state of the cell below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_number, check_switch
from reservoir.training.cells.cell import Cell, PartFit, Trace, Weight
from reservoir.training.cells.cell_parts import passing_on, states_over
from reservoir.training.cells.composite import CompositeCell
from reservoir.training.cells.dropout import dropout_mask
from reservoir.training.params import Params


@saved
@dataclass(frozen=True)
class StackedCell(CompositeCell):
    """Stack of cells, optionally with shortcuts.

    The weights of cell i, counted from below, are named "i.W_in", "i.W" and so on. The state is
    the concatenation of the cells' states, the lowest first.

    Parameters
    ----------
    cells : tuple of Cell
        The cells, from the lowest to the topmost.
    input_shortcuts : bool, default=False
        Whether every cell also receives the input, concatenated after the state of the cell below.
    readout_shortcuts : bool, default=False
        Whether the readout receives the states of all cells, the lowest first, instead of only the
        topmost cell's.
    dropout : float in [0, 1), default=0.0
        Share of the values that are set to 0 during training; the others are divided by
        ``1 - dropout``. It applies to the inputs, to the states that a cell receives from the cell
        below, and to the features of the readout, but not to states carried from step to step.
        Nothing is dropped in predictions, in reported losses, and when weights are initialised from
        data.
    same_mask : bool, default=False
        Whether, in each update, a sequence has one dropout mask for all steps instead of a separate
        mask for each step.

    Attributes
    ----------
    n_units : int
        Number of units of the topmost cell that has a state. Layers that only transform their
        inputs, such as `FeedforwardCell`, have no state.

    Raises
    ------
    TypeError, ValueError
        If a part is not a cell, or if `dropout` is outside its range.

    References
    ----------
    J. Schmidhuber, "Learning complex, extended sequences using the principle of history
    compression", Neural Computation 4, 1992; R. Pascanu, C. Gulcehre, K. Cho and Y. Bengio, "How
    to construct deep recurrent neural networks", ICLR 2014; for the shortcuts A. Graves,
    "Generating sequences with recurrent neural networks", arXiv:1308.0850, 2013; for dropout W.
    Zaremba, I. Sutskever and O. Vinyals, "Recurrent neural network regularization",
    arXiv:1409.2329, 2014; for one mask Y. Gal and Z. Ghahramani, "A theoretically grounded
    application of dropout in recurrent neural networks", NeurIPS 2016, which also drops connections
    from state to state.

    Examples
    --------
    >>> from reservoir.training.cells import GRUCell, SimpleCell, StackedCell
    >>> cell = StackedCell((GRUCell(3), SimpleCell(4)), readout_shortcuts=True)
    >>> cell.n_units, cell.width, cell.state_size
    (4, 7, 7)
    >>> cell.shapes(n_features=2)["1.W_in"]
    (4, 3)
    """

    cells: tuple[Cell, ...]
    input_shortcuts: bool = False
    readout_shortcuts: bool = False
    dropout: float = 0.0
    same_mask: bool = False

    def __post_init__(self) -> None:
        self._check_cells()
        check_switch("input_shortcuts", self.input_shortcuts)
        check_switch("readout_shortcuts", self.readout_shortcuts)
        check_number("dropout", self.dropout, low=0.0, high=1.0, high_open=True)
        check_switch("same_mask", self.same_mask)

    @property
    def n_units(self) -> int:  # type: ignore[override]
        """Number of units of the topmost cell that has a state."""
        sizes = [cell.n_units for cell in self.cells if cell.state_size]
        return sizes[-1] if sizes else self.cells[-1].n_units

    @property
    def width(self) -> int:
        """Width of the topmost cell or, with `readout_shortcuts`, total width of all cells."""
        if self.readout_shortcuts:
            return sum(cell.width for cell in self.cells)
        return self.cells[-1].width

    @property
    def reads_codes(self) -> bool:
        """Whether the lowest cell accepts codes, without input shortcuts and without dropout."""
        alone = not self.input_shortcuts and not self.dropout
        return alone and self.cells[0].reads_codes

    @property
    def drops_out(self) -> bool:
        """Whether the stack or one of its cells has dropout."""
        return self.dropout > 0 or super().drops_out

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        more = n_features if self.input_shortcuts else 0
        below = [cell.width + more for cell in self.cells[:-1]]
        return self._weights_of_parts([n_features, *below])

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        traces: list[Trace] = []
        masks: list[Array] = []
        parts = zip(
            self.cells, self._params_of_parts(params), self._states_of_parts(state), strict=True
        )
        for cell, own, start in parts:
            read = X
            if traces:
                read = traces[-1].states[1:]
                read = np.concatenate([read, X], axis=2) if self.input_shortcuts else read
            masks.append(self._mask(read))
            traces.append(
                cell.forward(own, read * masks[-1] if self.dropout else read, start, lengths)
            )
        states = traces[-1].states
        if self.readout_shortcuts:
            states = np.concatenate([trace.states for trace in traces], axis=2)
        masks.append(self._mask(states[1:]))
        if self.dropout:
            states = np.concatenate([states[:1], states[1:] * masks[-1]])
        end = np.hstack([trace.end for trace in traces])
        kept = {"traces": tuple(traces), "masks": masks}
        return Trace(X, states, end, traces[-1].lengths, kept=kept)

    def weights_from_data(self, fit: PartFit, inputs: Sequence[Array]) -> Params:
        """Return weights fitted layer by layer, from below.

        If ``fit.passes_on`` is set, layers above one with a memory pass the states below them on,
        if they can. For `fit` and `inputs` see `Cell.weights_from_data`.
        """
        parts: list[Params] = []
        read, n_below, remembers = inputs, 0, False
        for cell in self.cells:
            if parts:
                below = self.cells[len(parts) - 1]
                read = states_over(below, parts[-1], read)
                n_below, remembers = below.width, remembers or below.state_size > 0
                if self.input_shortcuts:
                    read = [np.hstack(both) for both in zip(read, inputs, strict=True)]
            passed = None
            if remembers and getattr(fit, "passes_on", False):
                passed = passing_on(cell, n_below, read[0].shape[1])
            parts.append(fit(cell, read) if passed is None else passed)
        return self._named(parts)

    def _mask(self, A: Array) -> Array:
        return dropout_mask(A.shape, self.dropout, self.same_mask, A.dtype)

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
        traces: list[Trace] = trace.kept.pop("traces")
        own, ends = self._params_of_parts(params), self._states_of_parts(d_end)
        masks: list[Array] = trace.kept.pop("masks")
        entering = self._at_outputs(dH * masks[-1] if self.dropout else dH)
        grads: list[Params] = [{}] * len(self.cells)
        d_starts = [np.empty(0)] * len(self.cells)
        d_X = np.zeros(trace.inputs.shape, dH.dtype) if inputs else None
        for i in range(len(self.cells) - 1, -1, -1):
            grads[i], d_starts[i], d_read = self.cells[i].backward(
                own[i], traces[i], entering[i], d_end=ends[i], inputs=inputs or i > 0
            )
            if d_read is None:
                continue
            d_read = d_read * masks[i] if self.dropout else d_read
            below = self.cells[i - 1].width if i else 0
            if i:
                entering[i - 1] = entering[i - 1] + d_read[:, :, :below]
            if d_X is not None and d_read.shape[2] > below:
                d_X += d_read[:, :, below:]
        return self._named(grads), np.hstack(d_starts), d_X

    def _at_outputs(self, dH: Array) -> list[Array]:
        """Return the readout's direct gradient with respect to the states of each cell."""
        widths = [cell.width for cell in self.cells]
        if self.readout_shortcuts:
            parts = np.split(dH, np.cumsum(widths)[:-1], axis=2)
            return [np.ascontiguousarray(part) for part in parts]
        return [*(np.zeros((*dH.shape[:2], n), dH.dtype) for n in widths[:-1]), dH]
