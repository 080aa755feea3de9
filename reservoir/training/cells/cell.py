"""The contract of cells: what each declares of itself, and what a run of it leaves behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from reservoir._typing import Array
from reservoir._validation import check_choice, check_count
from reservoir.training.params import Params

if TYPE_CHECKING:
    from reservoir.training.cells.layer import Layer
    from reservoir.training.cells.simple import SimpleCell

#: What a weight may do; initializers draw by it, and penalties leave some of them out.
ROLES = ("input", "recurrent", "bias", "diagonal", "decay", "readout")
_FREE = ("bias", "decay")


@dataclass(frozen=True)
class Weight:
    """What a cell says of one of its arrays of weights.

    Parameters
    ----------
    shape : tuple of int
        One or two numbers.
    role : {"input", "recurrent", "bias", "diagonal", "decay", "readout"}
        What it does: multiplies the inputs, multiplies states, is added, multiplies each unit by a
        number of its own, moves each unit's time constant away from the one that is given, or
        reads the states out. Biases and decays are free of penalties.
    n_blocks : int, default=1
        Gates that stand one below the other: each is drawn as a matrix of its own.
    forget : int, optional
        Which of the blocks of a bias is that of a gate that keeps the memory, and begins open.

    Raises
    ------
    TypeError, ValueError
        If the role is not known, or the rows are no multiple of `n_blocks`.

    Examples
    --------
    >>> from reservoir.training.cells import LSTMCell
    >>> LSTMCell(3).weights(n_features=2)["W"]
    Weight(shape=(12, 3), role='recurrent', n_blocks=4, forget=None)
    """

    shape: tuple[int, ...]
    role: str
    n_blocks: int = 1
    forget: int | None = None

    def __post_init__(self) -> None:
        check_choice("role", self.role, ROLES)
        check_count("n_blocks", self.n_blocks)
        if len(self.shape) not in (1, 2) or self.shape[0] % self.n_blocks:
            raise ValueError(
                f"shape={self.shape} must have one or two entries, the first a multiple of "
                f"n_blocks={self.n_blocks}."
            )

    @property
    def free(self) -> bool:
        """Whether penalties leave it out."""
        return self.role in _FREE


@dataclass(frozen=True, eq=False)
class TorchLayer:
    """How torch calls a cell.

    Parameters
    ----------
    name : str
        Of the class in ``torch.nn``, which takes (n_features, n_units).
    options : dict
        What else that class is made with.
    arrays : callable, ``arrays(params) -> dict``
        From our weights to those of the module, by its names.
    params : callable, ``params(arrays) -> dict``
        The way back.

    Examples
    --------
    >>> from reservoir.training.cells import SimpleCell
    >>> layer = SimpleCell(3, "relu").torch_layer()
    >>> layer.name, layer.options
    ('RNN', {'nonlinearity': 'relu'})
    """

    name: str
    options: dict[str, Any]
    arrays: Callable[[Params], Params]
    params: Callable[[Params], Params]


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
        reset gate acts on, "R".

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

    def copy(self) -> Trace:
        """Return a trace for one more backward pass: a copy of what such a pass overwrites."""
        return replace(self, kept={name: array.copy() for name, array in self.kept.items()})

    def place_of_slopes(self, dH: Array) -> Array:
        """Return the array in which `Cell.backward`, given dH, leaves dL/dz.

        Those are the gates where there are gates, and dH itself where there are none.
        """
        return self.kept.get("G", dH)


class Cell(ABC):
    """A recurrent layer: anything that maps inputs and a start to states, and can be transposed.

    A class derived from it defines `weights`, `forward` and `backward`, and where they are not
    `n_units`, `width` (numbers per step that the readout sees) and `state_size` (numbers that are
    carried from one chunk to the next). That is enough to be trained by gradients, searched and
    forecast with; decorated with `saved`, it is written by `reservoir.save`, too.

    The other methods declare what else it can do, and say by default that it cannot: `layer` (what
    starts from data and least squares see of it), `as_simple` (the simple cell that it is),
    `step_jacobians` and `jacobian_gradient` (gradient control), `tangent` (Hessian-free training),
    `torch_layer`. Whoever needs one of them asks the cell, and refuses it by name. A cell whose
    states depend on rows to come says that it is not `causal`; one that reads when rows were
    measured says what it sees beside (`n_channels`, `channels`), how a state is dated (`before`),
    and what it is under steps of one length (`at_even_steps`).

    A stack of cells is a cell, and so are two that run in opposite directions. The weights of its
    parts have names such as "0.W" and "1.W"; those that share what stands before the dot are
    initialized together, as one cell.

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

    @property
    def causal(self) -> bool:
        """Whether a state depends on the rows up to it alone, as it does by default.

        Otherwise sequences must be there as a whole: no forecast, no session, no truncation, no
        run that goes on where another has ended.
        """
        return True

    @property
    def reads_codes(self) -> bool:
        """Whether inputs may be the numbers of symbols; by default not.

        One column then stands for as many as there are symbols: input weights are looked up.
        """
        return False

    @property
    def drops_out(self) -> bool:
        """Whether states are drawn at random while weights are trained; by default not.

        Solvers that need the same loss twice refuse such a cell.
        """
        return False

    # ------------------------------------------------------------------ when rows were measured

    def n_channels(self, n_features: int) -> int:
        """Return how many of n_features columns weights and readout see; by default all."""
        return n_features

    def channels(self, X: Array) -> Array:
        """Return those columns of inputs X (..., n_features): all, but for one of times."""
        return X

    def before(self, row: Array, state: Array) -> Array:
        """Return a state (..., state_size) as one just before a row (..., n_features).

        Where the state says when the row before it was measured, that is one step ago.
        """
        return state

    def held_in(self, dtype: Any) -> Any:
        """Return the dtype of inputs and states under weights of `dtype`: that, by default.

        Times need float64; what reads the other columns casts them.
        """
        return dtype

    def at_even_steps(self) -> Cell:
        """Return the cell with the same weights whose steps all have length 1: by default itself.

        It has no column of times.
        """
        return self

    # ------------------------------------------------------------------ what every cell defines

    @abstractmethod
    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return what the cell's weights are, by name, for inputs of n_features."""

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
            The gradient that enters at the pre-activations, as `jacobian_gradient` returned it.
        inputs : bool, default=False
            Whether the gradient at the inputs is wanted.

        Returns
        -------
        grads : dict of arrays
            For each name in `weights`.
        d_state : array of shape (n_sequences, state_size)
            The gradient at the start.
        d_inputs : array of shape (n_steps, n_sequences, n_features) or None
        """

    # ------------------------------------------------------------------ what a cell may declare

    def layer(self) -> Layer | None:
        """Return what starts from data and least squares see of the cell.

        None: nothing; such a cell starts from random weights. By default None.
        """
        return None

    def open_gates(self, params: Params) -> Params:
        """Return weights, from `params`, with which the cell is its `layer`; by default these."""
        return params

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states in the range that states have.

        Parameters
        ----------
        uniform : array of shape (n_states, state_size)
            Numbers from -.9 to .9.
        reach : float
            The largest absolute state that a run has led to.

        Returns
        -------
        array of shape (n_states, state_size)
        """
        return uniform * reach

    def as_simple(self) -> SimpleCell | None:
        """Return the simple cell that this one is, with the same weights under the same names.

        None: it is none. By default None. Real-time recurrent learning, `reservoir_` and the
        compiled closed loop ask for it.
        """
        return None

    def check_controllable(self) -> None:
        """Refuse gradient control where the step Jacobian, or its derivative, is not known.

        Raises
        ------
        ValueError
            By default.
        """
        self._raise_no_control()

    def step_jacobians(self, params: Params, trace: Trace, steps: Array, sequences: Array) -> Array:
        """Return the Jacobians of steps, dh(t) / dh(t-1).

        Parameters
        ----------
        params : dict of arrays
        trace : Trace
            Of `forward` with these weights. It is only read.
        steps, sequences : arrays of int, shape (n,)
            Which steps, counted from 0, of which sequences.

        Returns
        -------
        array of shape (n, state_size, state_size)

        Raises
        ------
        ValueError
            By default: the cell does not know them.
        """
        self._raise_no_control()

    def jacobian_gradient(
        self, params: Params, trace: Trace, steps: Array, sequences: Array, G: Array
    ) -> tuple[Params, Array | None]:
        """Carry a gradient at step Jacobians on to the weights and the pre-activations.

        Parameters
        ----------
        params, trace, steps, sequences
            As in `step_jacobians`.
        G : array of shape (n, state_size, state_size)
            The gradient at what that returned.

        Returns
        -------
        grads : dict of arrays
            The direct part of the gradient at those weights that the Jacobian holds.
        d_pre : array of shape (n_steps, n_sequences, n_units) or None
            The gradient at the pre-activations, which `backward` carries on; None where it is 0.

        Raises
        ------
        ValueError
            By default.
        """
        self._raise_no_control()

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return how the states move when the weights do: a forward-mode derivative.

        It is linear in `d_params`, and `backward` is its transpose.

        Parameters
        ----------
        params : dict of arrays
        trace : Trace
            Of `forward` with these weights. It is only read; the start and the inputs stand still.
        d_params : dict of arrays
            The direction, for each name in `weights`; other names are ignored.

        Returns
        -------
        array of shape (n_steps, n_sequences, width)
            The derivatives of ``trace.states[1:]``. Those of padding mean nothing.

        Raises
        ------
        ValueError
            By default: the cell does not know it.
        """
        raise ValueError(
            "Hessian-free training needs the derivative of the states along a direction in the "
            f"weights, `tangent`, which {type(self).__name__} does not define. Use solver='adam'."
        )

    def torch_layer(self) -> TorchLayer:
        """Return how torch calls the cell.

        Raises
        ------
        ValueError
            If torch has no such layer, or the cell is made of several; so by default.
        """
        self._raise_no_torch(
            f"{type(self).__name__}: it knows single layers that torch has, too. Use SimpleCell, "
            "LSTMCell or GRUCell"
        )

    # ------------------------------------------------------------------ what cells share

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the weights, for inputs of n_features."""
        return {name: weight.shape for name, weight in self.weights(n_features).items()}

    def _start(self, X: Array, state: Array | None) -> Array:
        if state is None:
            return np.zeros((X.shape[1], self.state_size), X.dtype)
        return state

    def _check_no_pre(self, d_pre: Array | None) -> None:
        if d_pre is not None:
            raise ValueError(
                f"{type(self).__name__} has no single pre-activation: d_pre is for SimpleCell."
            )

    def _raise_no_control(self) -> NoReturn:
        raise ValueError(
            "Gradient control is for cells that know their step Jacobian; got "
            f"{type(self).__name__}. Use cell='rnn', 'leaky' or 'scrn', or gradient_control=0."
        )

    def _raise_no_torch(self, why: str) -> NoReturn:
        raise ValueError(f"to_torch cannot carry {why}, or export the weights by name.")
