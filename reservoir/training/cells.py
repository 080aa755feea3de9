"""Recurrent cells: how a state follows from the one before, and the transpose of that.

Arrays are time first: inputs X (n_steps, n_sequences, n_features), states (n_steps + 1,
n_sequences, n_units), the first row being the start. A cell holds no weights: they go in and come
out by name, ``W_in`` (g n_units, n_features), ``W`` (g n_units, n_units) and ``bias`` (g n_units,)
with g gates one below the other.

Input projections and weight gradients are one matrix product each, over all steps at once; what is
left for the loop over time is one product a step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_choice, check_count, check_numbers
from reservoir.activations import ACTIVATIONS
from reservoir.training import cell_loops
from reservoir.training._cell_parts import (
    as_rows,
    ends_of,
    enter,
    project,
    states_at,
    weight_gradients,
    with_ones,
)
from reservoir.training.cell_loops import FROM_VALUES, curvature, slope
from reservoir.training.loop_engines import loops_for
from reservoir.training.params import Params

__all__ = ["CELLS", "Cell", "GRUCell", "LSTMCell", "SimpleCell", "Trace", "curvature", "slope"]


@dataclass(frozen=True, eq=False)
class Trace:
    """What a run leaves behind.

    Parameters
    ----------
    inputs : array of shape (n_steps, n_sequences, n_features)
    states : array of shape (n_steps + 1, n_sequences, width)
        What the readout sees; the first row is the start.
    end : array of shape (n_sequences, state_size)
        The state in which each sequence ends.
    lengths : array of shape (n_sequences,)
        Steps of each sequence; rows behind them are padding.
    values : array of shape (n_steps, n_sequences, n_units), optional
        Of `SimpleCell`: f(z), which is ``states[1:]`` where there is no leak.
    kept : dict of arrays
        What else `Cell.backward` needs, by names of the cell's own. `SimpleCell` keeps "slopes",
        f'(z), where they do not follow from `values`. Gated cells keep the gates, "G" (n_steps,
        n_sequences, g n_units), which their backward pass overwrites with the gradient at the
        pre-activations; `LSTMCell` also the cells "C" and their tanh "TC", `GRUCell` what the
        reset gate acts on, "R" (see `reservoir.training.cell_loops`).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import SimpleCell
    >>> weights = {"W_in": np.ones((2, 1)), "W": np.zeros((2, 2)), "bias": np.zeros(2)}
    >>> trace = SimpleCell(2).forward(weights, np.ones((5, 1, 1)))
    >>> trace.states.shape, trace.end.shape
    ((6, 1, 2), (1, 2))
    """

    inputs: Array
    states: Array
    end: Array
    lengths: Array
    values: Array | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def slopes(self) -> Array | None:
        """f'(z) at every step, where the run had to keep it."""
        return self.kept.get("slopes")

    def take(self, *names: str) -> tuple[Array, ...]:
        """Return what is kept under these names, and keep it no longer: a trace serves once."""
        return tuple(self.kept.pop(name) for name in names)

    def place_of_slopes(self, dH: Array) -> Array:
        """Return the array in which `Cell.backward`, given dH, leaves dL/dz.

        Those are the gates where there are gates, and dH itself where there are none.
        """
        return self.kept.get("G", dH)


class Cell(ABC):
    """A recurrent layer: anything that maps inputs and a start to states, and can be transposed.

    A class derived from it defines `shapes`, `forward` and `backward`, and where they are not
    `n_units`, `width` (numbers per step that the readout sees) and `state_size` (numbers that are
    carried from one chunk to the next). A stack of cells is a cell, and so are two that run in
    opposite directions. The weights of its parts have names such as "0.W" and "1.W"; those that
    share what stands before the dot are initialized together, as one cell.

    Examples
    --------
    >>> from reservoir.training.cells import Cell, LSTMCell
    >>> cell = LSTMCell(3)
    >>> isinstance(cell, Cell), cell.width, cell.state_size
    (True, 3, 6)
    """

    n_units: int

    @property
    def width(self) -> int:
        """Numbers per step that the readout sees."""
        return self.n_units

    @property
    def state_size(self) -> int:
        """Numbers that a sequence goes on from."""
        return self.n_units

    @abstractmethod
    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the weights, for inputs of n_features."""

    @abstractmethod
    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs.

        Parameters
        ----------
        params : dict of arrays
        X : array of shape (n_steps, n_sequences, n_features)
        state : array of shape (n_sequences, state_size), optional
            Zeros by default.
        lengths : array of shape (n_sequences,), optional
            Where sequences end before the last step.

        Returns
        -------
        Trace
        """

    @abstractmethod
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
        """Carry a gradient from the outputs back through time; a trace serves once.

        Parameters
        ----------
        params : dict of arrays
        trace : Trace
            Of `forward` with these weights; what it keeps may be overwritten.
        dH : array of shape (n_steps, n_sequences, width)
            The gradient that enters at each output; overwritten.
        d_end : array of shape (n_sequences, state_size), optional
            The gradient that enters at the end states.
        d_pre : array of shape (n_steps, n_sequences, n_units), optional
            The gradient that enters at the pre-activations; `SimpleCell` only.
        inputs : bool, default=False
            Whether the gradient at the inputs is wanted.

        Returns
        -------
        grads : dict of arrays
            For each name in `shapes`.
        d_state : array of shape (n_sequences, state_size)
            The gradient at the start.
        d_inputs : array of shape (n_steps, n_sequences, n_features) or None
        """

    # ------------------------------------------------------------------ what cells share

    def _start(self, X: Array, state: Array | None) -> Array:
        if state is None:
            return np.zeros((X.shape[1], self.state_size), X.dtype)
        return state

    def _check_no_pre(self, d_pre: Array | None) -> None:
        if d_pre is not None:
            raise ValueError(
                f"{type(self).__name__} has no single pre-activation: d_pre is for SimpleCell."
            )


@saved
@dataclass(frozen=True)
class SimpleCell(Cell):
    """``h = (1 - a) h + a f(W h + W_in x + bias)``: Elman's cell, and the reservoir's.

    Parameters
    ----------
    n_units : int
    activation : str, default="tanh"
        A name in `reservoir.activations.ACTIVATIONS`. One that is registered there by a user is
        trained by its derivative, on NumPy.
    leak_rate : float in (0, 1] or tuple of n_units such numbers, default=1.0

    References
    ----------
    J. L. Elman, "Finding structure in time", Cognitive Science 14, 1990; for the leak H. Jaeger,
    M. Lukosevicius, D. Popovici and U. Siewert, Neural Networks 20, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import SimpleCell
    >>> cell = SimpleCell(1, leak_rate=0.5)
    >>> weights = {"W_in": np.ones((1, 1)), "W": np.zeros((1, 1)), "bias": np.zeros(1)}
    >>> cell.forward(weights, np.ones((3, 1, 1))).states.ravel().round(3)
    array([0.   , 0.381, 0.571, 0.666])
    """

    n_units: int
    activation: str = "tanh"
    leak_rate: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)
        check_choice("activation", self.activation, ACTIVATIONS)
        leak = check_numbers("leak_rate", self.leak_rate)
        if leak.shape not in ((), (self.n_units,)) or not ((leak > 0) & (leak <= 1)).all():
            raise ValueError(
                f"leak_rate={self.leak_rate!r} must be a number in (0, 1], or {self.n_units} such "
                "numbers, one per unit."
            )

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the weights, for inputs of n_features."""
        n = self.n_units
        return {"W_in": (n, n_features), "W": (n, n), "bias": (n,)}

    def leaks(self, dtype: Any = np.float64) -> Array | None:
        """Return the leak rate per unit in a dtype; None where it is 1 throughout."""
        leak = np.broadcast_to(np.asarray(self.leak_rate, dtype=dtype), (self.n_units,))
        return None if (leak == 1).all() else np.array(leak)

    def slopes(self, trace: Trace) -> Array:
        """Return a f'(z) at every step of a trace: what a pre-activation does to the state."""
        values: Array = trace.values  # type: ignore[assignment]
        slopes = slope(self.activation, values) if trace.slopes is None else trace.slopes
        leak = self.leaks(values.dtype)
        return slopes if leak is None else slopes * leak

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; `state` and `lengths` as in `Cell.forward`."""
        U = project(X, params["W_in"], params["bias"])
        leak = self.leaks(X.dtype)
        H = np.empty((len(X) + 1, *U.shape[1:]), U.dtype)
        H[0] = self._start(X, state)
        V = H[1:] if leak is None else np.empty_like(U)
        known = self.activation in FROM_VALUES
        loops = loops_for(U.shape, U.dtype) if known else cell_loops
        loops.simple_forward(H, V, U, params["W"], self.activation, leak)
        ends = ends_of(X, lengths)
        kept = {}
        if not known:  # the value need not say how steep f is there: U holds z now
            kept["slopes"] = ACTIVATIONS[self.activation].derivative(U).astype(U.dtype)
        return Trace(X, H, states_at(H, ends), ends, V, kept)

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
        """Carry a gradient back through time.

        `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` as in `Cell.backward`.
        """
        enter(dH, trace.lengths, d_end)
        leak = self.leaks(dH.dtype)
        if trace.slopes is not None:
            d_start = cell_loops.backward_by_slopes(
                dH, self.slopes(trace), params["W"], leak, d_pre
            )
        else:
            loops = loops_for(dH.shape, dH.dtype)
            d_start = loops.simple_backward(
                dH, trace.values, params["W"], self.activation, leak, d_pre
            )
        grads = weight_gradients(dH, trace.inputs, trace.states[:-1])
        return grads, d_start, dH @ params["W_in"] if inputs else None


@saved
@dataclass(frozen=True)
class LSTMCell(Cell):
    """Long short-term memory: a cell c that gates write to, keep and read.

    ``i, f, o = logistic(.)``, ``g = tanh(.)`` of ``W h + W_in x + bias``; ``c = f c + i g``,
    ``h = o tanh(c)``. Gates stand in the order input, forget, candidate, output. The state is
    [h, c].

    Parameters
    ----------
    n_units : int
    peephole : bool, default=False
        Whether the gates see the cell: input and forget gate the one before, the output gate the
        new one, each unit its own; ``peephole`` (3, n_units) holds the weights.

    References
    ----------
    S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 9, 1997; F. A.
    Gers, J. Schmidhuber and F. Cummins (forget gate), Neural Computation 12, 2000; F. A. Gers, N.
    Schraudolph and J. Schmidhuber (peepholes), JMLR 3, 2002.

    Examples
    --------
    >>> from reservoir.training.cells import LSTMCell
    >>> LSTMCell(3).shapes(n_features=2)
    {'W_in': (12, 2), 'W': (12, 3), 'bias': (12,)}
    """

    n_units: int
    peephole: bool = False

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)

    @property
    def state_size(self) -> int:
        """Output and cell."""
        return 2 * self.n_units

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the weights, for inputs of n_features."""
        n = self.n_units
        shapes: dict[str, tuple[int, ...]] = {
            "W_in": (4 * n, n_features),
            "W": (4 * n, n),
            "bias": (4 * n,),
        }
        return {**shapes, "peephole": (3, n)} if self.peephole else shapes

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; `state` and `lengths` as in `Cell.forward`."""
        n = self.n_units
        G = project(X, params["W_in"], params["bias"])
        H, C = (np.empty((len(X) + 1, X.shape[1], n), G.dtype) for _ in range(2))
        start = self._start(X, state)
        H[0], C[0] = start[:, :n], start[:, n:]
        TC = np.empty((len(X), X.shape[1], n), G.dtype)
        loops_for(G.shape, G.dtype).lstm_forward(H, C, TC, G, params["W"], self._peep(params))
        ends = ends_of(X, lengths)
        end = np.hstack([states_at(H, ends), states_at(C, ends)])
        return Trace(X, H, end, ends, kept={"C": C, "TC": TC, "G": G})

    def _peep(self, params: Params) -> Array | None:
        return params["peephole"] if self.peephole else None

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
        """Carry a gradient back through time.

        `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` as in `Cell.backward`.
        """
        self._check_no_pre(d_pre)
        n, ends = self.n_units, trace.lengths
        C, TC, G = trace.take("C", "TC", "G")
        d_cell = np.zeros_like(C[0])
        if d_end is not None:
            enter(dH, ends, d_end[:, :n])
            d_cell = np.array(d_end[:, n:])
            if (ends < len(TC)).any():
                # a cell that ends early: the padding behind it must hand its gradient on unchanged
                for b in np.flatnonzero(ends < len(TC)):
                    G[ends[b] :, b, :n] = 0
                    G[ends[b] :, b, n : 2 * n] = 1
        loops = loops_for(G.shape, G.dtype)
        d_h, d_c = loops.lstm_backward(dH, d_cell, G, C, TC, params["W"], self._peep(params))
        grads = weight_gradients(G, trace.inputs, trace.states[:-1])
        if self.peephole:
            i, f, _, o = (G[:, :, k * n : (k + 1) * n] for k in range(4))
            pairs = ((i, C[:-1]), (f, C[:-1]), (o, C[1:]))
            grads["peephole"] = np.stack([np.einsum("tbn,tbn->n", d, c) for d, c in pairs])
        return grads, np.hstack([d_h, d_c]), G @ params["W_in"] if inputs else None


@saved
@dataclass(frozen=True)
class GRUCell(Cell):
    """Gated recurrent unit: ``h = z h + (1 - z) tanh(W_in x + bias + r (W h + bias_recurrent))``.

    Gates stand in the order reset r, update z, candidate; r and z are logistic. The reset gate
    acts behind the recurrent product, which has a bias of its own.

    Parameters
    ----------
    n_units : int

    References
    ----------
    K. Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014 (version
    1, where the reset gate acts behind the product).

    Examples
    --------
    >>> from reservoir.training.cells import GRUCell
    >>> GRUCell(3).shapes(n_features=2)
    {'W_in': (9, 2), 'W': (9, 3), 'bias': (9,), 'bias_recurrent': (3,)}
    """

    n_units: int

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the weights, for inputs of n_features."""
        n = self.n_units
        return {
            "W_in": (3 * n, n_features),
            "W": (3 * n, n),
            "bias": (3 * n,),
            "bias_recurrent": (n,),
        }

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; `state` and `lengths` as in `Cell.forward`."""
        G = project(X, params["W_in"], params["bias"])
        H = np.empty((len(X) + 1, X.shape[1], self.n_units), G.dtype)
        H[0] = self._start(X, state)
        R = np.empty_like(H[1:])
        loops_for(G.shape, G.dtype).gru_forward(H, G, R, params["W"], params["bias_recurrent"])
        ends = ends_of(X, lengths)
        return Trace(X, H, states_at(H, ends), ends, kept={"G": G, "R": R})

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
        """Carry a gradient back through time.

        `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` as in `Cell.backward`.
        """
        self._check_no_pre(d_pre)
        n = self.n_units
        G, R = trace.take("G", "R")
        enter(dH, trace.lengths, d_end)
        d_start = loops_for(G.shape, G.dtype).gru_backward(dH, G, trace.states, R, params["W"])
        before, d, d_recurrent = as_rows(trace.states[:-1]), as_rows(G), as_rows(R)
        from_inputs = (with_ones(trace.inputs).T @ d).T
        recurrent = before.T @ d[:, : 2 * n], before.T @ d_recurrent
        grads = {
            "W_in": np.ascontiguousarray(from_inputs[:, :-1]),
            "W": np.ascontiguousarray(np.hstack(recurrent).T),
            "bias": np.ascontiguousarray(from_inputs[:, -1]),
            "bias_recurrent": d_recurrent.sum(axis=0),
        }
        return grads, d_start, G @ params["W_in"] if inputs else None


#: Cells by name, each a function of n_units; the simple ones take the estimator's activation, too.
CELLS: dict[str, Callable[[int], Cell]] = {
    "rnn": SimpleCell,
    "leaky": SimpleCell,
    "lstm": LSTMCell,
    "gru": GRUCell,
}
