"""The interface of cells, and the trace of a run."""

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

#: Roles of weights, which determine how initializers draw them and whether they are penalised.
ROLES = ("input", "recurrent", "bias", "diagonal", "decay", "readout")
_FREE = ("bias", "decay")


@dataclass(frozen=True)
class Weight:
    """Description of one weight array of a cell.

    Parameters
    ----------
    shape : tuple of int
        One or two numbers.
    role : {"input", "recurrent", "bias", "diagonal", "decay", "readout"}
        Use of the weight: multiplies inputs, multiplies states, is added, multiplies each unit by a
        separate number, changes each unit's time constant from the given one, or belongs to the
        readout. Biases and decays are not penalised.
    n_blocks : int, default=1
        Number of gates, which are blocks of rows: each is drawn as a separate matrix.
    forget : int, optional
        Index of the block of a bias that belongs to a forget gate, which is initially open.

    Raises
    ------
    TypeError, ValueError
        If the role is unknown, or the number of rows is not a multiple of `n_blocks`.

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
        """Whether the weight is excluded from penalties."""
        return self.role in _FREE


@dataclass(frozen=True, eq=False)
class TorchLayer:
    """The torch counterpart of a cell.

    Parameters
    ----------
    name : str
        Name of the class in ``torch.nn``, which takes (n_features, n_units).
    options : dict
        Other keyword arguments of that class.
    arrays : callable, ``arrays(params) -> dict``
        Converts weights of the cell to weights of the module, by its names.
    params : callable, ``params(arrays) -> dict``
        The inverse of `arrays`.

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
    """Record of a run, from which gradients are computed.

    Parameters
    ----------
    inputs : array of shape (n_steps, n_sequences, n_features)
    states : array of shape (n_steps + 1, n_sequences, width)
        Outputs of the cell to the readout; the first row is the initial state.
    end : array of shape (n_sequences, state_size)
        The end state of each sequence.
    lengths : array of shape (n_sequences,)
        Steps of each sequence; later rows are padding.
    values : array of shape (n_steps, n_sequences, n_units), optional
        For `SimpleCell`: f(z), which is ``states[1:]`` if there is no leak.
    kept : dict of arrays
        Anything else that `Cell.backward` needs, by names that the cell defines. `SimpleCell` keeps
        "slopes", f'(z), if they cannot be computed from `values`. Gated cells keep the gates, "G"
        (n_steps, n_sequences, g n_units), which their backward pass overwrites with the gradient at
        the pre-activations; `LSTMCell` also keeps the cells "C" and their tanh "TC", and `GRUCell`
        the argument of the reset gate, "R".

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
        """f'(z) at every step, if the run kept it."""
        return self.kept.get("slopes")

    def take(self, *names: str) -> tuple[Array, ...]:
        """Return and remove kept arrays by their names: a trace serves one backward pass only."""
        return tuple(self.kept.pop(name) for name in names)

    def copy(self) -> Trace:
        """Return a trace for another backward pass, with a copy of the arrays it overwrites."""
        return replace(self, kept={name: array.copy() for name, array in self.kept.items()})

    def place_of_slopes(self, dH: Array) -> Array:
        """Return the array into which `Cell.backward`, given dH, writes dL/dz.

        This is the array of gates if the cell has gates, and otherwise dH itself.
        """
        return self.kept.get("G", dH)


class Cell(ABC):
    """Base class of recurrent layers, which map inputs and an initial state to states.

    A subclass defines `weights`, `forward` and `backward`, and, if they differ from `n_units`,
    `width` (numbers per step that the readout receives) and `state_size` (numbers carried from one
    chunk to the next). This is sufficient for training by gradients, parameter search and
    forecasts. If the class is decorated with `saved`, `reservoir.save` can write it, too.

    The other methods declare optional capabilities, which a cell lacks by default: `layer` (starts
    from data and least squares), `as_simple` (an equivalent simple cell), `step_jacobians` and
    `jacobian_gradient` (gradient control), `tangent` (Hessian-free training), and `torch_layer`.
    Code that needs a capability raises an error with the name of the cell if it is missing. If
    states depend on future rows, `causal` is False. A cell that uses the times of rows defines
    which other columns it uses (`n_channels`, `channels`), the time of a state (`before`), and the
    equivalent cell for steps of equal length (`at_even_steps`).

    A stack of cells is a cell, and so is a pair that runs in opposite directions. The weights of
    parts have names such as "0.W" and "1.W"; weights with the same prefix before the dot are
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
        """Numbers per step that the readout receives."""
        return self.n_units

    @property
    def state_size(self) -> int:
        """Numbers needed to continue a sequence."""
        return self.n_units

    @property
    def causal(self) -> bool:
        """Whether a state depends only on the rows up to it; True by default.

        Otherwise sequences must be available as a whole: forecasts, sessions, truncation, and runs
        that continue another run are not possible.
        """
        return True

    @property
    def reads_codes(self) -> bool:
        """Whether inputs may be the numbers of symbols; False by default.

        One column then represents as many columns as there are symbols: input weights are looked
        up.
        """
        return False

    @property
    def drops_out(self) -> bool:
        """Whether the cell applies dropout during training; False by default.

        Solvers that need a deterministic loss raise an error for such a cell.
        """
        return False

    # ------------------------------------------------------------------ when rows were measured

    def n_channels(self, n_features: int) -> int:
        """Return how many of n_features columns weights and readout use; by default all."""
        return n_features

    def channels(self, X: Array) -> Array:
        """Return these columns of inputs X (..., n_features): all except a column of times."""
        return X

    def before(self, row: Array, state: Array) -> Array:
        """Return a state (..., state_size) adapted to be the state before a row (..., n_features).

        If the state contains the time of the previous row, it becomes one step before this row.
        """
        return state

    def held_in(self, dtype: Any) -> Any:
        """Return the dtype of inputs and states for weights of `dtype`: the same by default.

        Times need float64; the other columns are cast where they are used.
        """
        return dtype

    def at_even_steps(self) -> Cell:
        """Return the cell for steps that all have length 1, with the same weights.

        It has no column of times. By default the cell itself.
        """
        return self

    # ------------------------------------------------------------------ what every cell defines

    @abstractmethod
    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the description of each weight array by name, for inputs of n_features."""

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
            Steps of each sequence, where some end before the last step.

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
        """Propagate a gradient from the outputs back through time; use a trace only once.

        Parameters
        ----------
        params : dict of arrays
        trace : Trace
            From `forward` with these weights; its kept arrays may be overwritten.
        dH : array of shape (n_steps, n_sequences, width)
            The direct gradient at each output; overwritten.
        d_end : array of shape (n_sequences, state_size), optional
            The direct gradient at the end states.
        d_pre : array of shape (n_steps, n_sequences, n_units), optional
            The direct gradient at the pre-activations, as returned by `jacobian_gradient`.
        inputs : bool, default=False
            Whether to return the gradient at the inputs.

        Returns
        -------
        grads : dict of arrays
            For each name in `weights`.
        d_state : array of shape (n_sequences, state_size)
            The gradient at the initial state.
        d_inputs : array of shape (n_steps, n_sequences, n_features) or None
        """

    # ------------------------------------------------------------------ what a cell may declare

    def layer(self) -> Layer | None:
        """Return the layer that starts from data and least squares can draw or fit.

        None (the default): there is no such layer, and the cell starts from random weights.
        """
        return None

    def open_gates(self, params: Params) -> Params:
        """Return `params` changed so that the cell equals its `layer`; by default unchanged."""
        return params

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states in the range of the states.

        Parameters
        ----------
        uniform : array of shape (n_states, state_size)
            Numbers from -.9 to .9.
        reach : float
            The largest absolute state of a run.

        Returns
        -------
        array of shape (n_states, state_size)
        """
        return uniform * reach

    def as_simple(self) -> SimpleCell | None:
        """Return the equivalent simple cell, with the same weights under the same names.

        None (the default) if there is none. It is used by real-time recurrent learning,
        `reservoir_` and the compiled closed loop.
        """
        return None

    def check_controllable(self) -> None:
        """Raise if the cell does not provide its step Jacobian and the derivative of it.

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
            From `forward` with these weights. Not changed.
        steps, sequences : arrays of int, shape (n,)
            Pairs of a step, counted from 0, and a sequence.

        Returns
        -------
        array of shape (n, state_size, state_size)

        Raises
        ------
        ValueError
            By default: the cell does not provide them.
        """
        self._raise_no_control()

    def jacobian_gradient(
        self, params: Params, trace: Trace, steps: Array, sequences: Array, G: Array
    ) -> tuple[Params, Array | None]:
        """Propagate a gradient at step Jacobians to the weights and the pre-activations.

        Parameters
        ----------
        params, trace, steps, sequences
            As in `step_jacobians`.
        G : array of shape (n, state_size, state_size)
            The gradient at the Jacobians of `step_jacobians`.

        Returns
        -------
        grads : dict of arrays
            The direct part of the gradient, at the weights that the Jacobian contains.
        d_pre : array of shape (n_steps, n_sequences, n_units) or None
            The gradient at the pre-activations, for `backward`; None if it is 0.

        Raises
        ------
        ValueError
            By default.
        """
        self._raise_no_control()

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return the derivative of the states along a direction in the weights (forward mode).

        It is linear in `d_params`, and `backward` is its transpose.

        Parameters
        ----------
        params : dict of arrays
        trace : Trace
            From `forward` with these weights. Not changed; its initial state and inputs are fixed.
        d_params : dict of arrays
            The direction, for each name in `weights`; other names are ignored.

        Returns
        -------
        array of shape (n_steps, n_sequences, width)
            The derivatives of ``trace.states[1:]``; meaningless for padding.

        Raises
        ------
        ValueError
            By default: the cell does not define it.
        """
        raise ValueError(
            "Hessian-free training needs the derivative of the states along a direction in the "
            f"weights, `tangent`, which {type(self).__name__} does not define. Use solver='adam'."
        )

    def torch_layer(self) -> TorchLayer:
        """Return the torch counterpart of the cell.

        Raises
        ------
        ValueError
            If torch has no such layer, or the cell consists of several; so by default.
        """
        self._raise_no_torch(
            f"{type(self).__name__}: only single layers that torch also has are supported. Use "
            "SimpleCell, LSTMCell or GRUCell"
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
            "Gradient control needs a cell that provides its step Jacobian; got "
            f"{type(self).__name__}. Use cell='rnn', 'leaky' or 'scrn', or gradient_control=0."
        )

    def _raise_no_torch(self, why: str) -> NoReturn:
        raise ValueError(f"to_torch cannot convert {why}, or export the weights by name.")
