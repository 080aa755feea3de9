"""The interface of cells, the descriptions of their weights, and the trace of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

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
        Shape of the array, with one or two entries.
    role : {"input", "recurrent", "bias", "diagonal", "decay", "readout"}
        Use of the weight: "input" multiplies inputs, "recurrent" multiplies states, "bias" is
        added, "diagonal" has one factor per unit, "decay" changes each unit's time constant from
        its given value, and "readout" belongs to the readout. Biases and decays are not penalised.
    n_blocks : int, default=1
        Number of gates. Each gate is a block of rows, which is drawn as a separate matrix.
    forget : int, optional
        For a bias, the index of the block that belongs to a forget gate, which is initially open.

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
                f"shape={self.shape} must have one or two entries, and the first must be a "
                f"multiple of n_blocks={self.n_blocks}."
            )

    @property
    def free(self) -> bool:
        """Whether the weight is excluded from penalties."""
        return self.role in _FREE


@dataclass(frozen=True, eq=False)
class TorchLayer:
    """The torch module that is equivalent to a cell, and the conversion of the weights.

    Parameters
    ----------
    name : str
        Name of the class in ``torch.nn``, whose positional arguments are (n_features, n_units).
    options : dict
        Keyword arguments of that class.
    arrays : callable, ``arrays(params) -> dict``
        Function that converts weights of the cell to weights of the module, by torch's names.
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
    """Record of a cell's run over inputs, from which gradients are computed.

    Parameters
    ----------
    inputs : array of shape (n_steps, n_sequences, n_features)
        The inputs of the run.
    states : array of shape (n_steps + 1, n_sequences, width)
        The cell's outputs to the readout; the first row is the initial state.
    end : array of shape (n_sequences, state_size)
        The final state of each sequence.
    lengths : array of shape (n_sequences,)
        Number of steps of each sequence; later rows are padding.
    values : array of shape (n_steps, n_sequences, n_units), optional
        For `SimpleCell`, the values f(z), which are ``states[1:]`` if there is no leak.
    kept : dict of arrays
        Other arrays that `Cell.backward` needs, by names that the cell defines. `SimpleCell` stores
        "slopes", f'(z), if they cannot be computed from `values`. Gated cells store their gates as
        "G" (n_steps, n_sequences, g n_units), which the backward pass overwrites with the gradient
        with respect to the pre-activations. `LSTMCell` also stores the cell values "C" and their
        tanh "TC", and `GRUCell` stores the vector that the reset gate multiplies, "R".

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
        """Slopes f'(z) at every step, or None if the run did not store them."""
        return self.kept.get("slopes")

    def take(self, *names: str) -> tuple[Array, ...]:
        """Remove and return the stored arrays `names`; a trace serves one backward pass only."""
        return tuple(self.kept.pop(name) for name in names)

    def copy(self) -> Trace:
        """Return a trace for another backward pass, with copies of the arrays it overwrites."""
        return replace(self, kept={name: array.copy() for name, array in self.kept.items()})

    def place_of_slopes(self, dH: Array) -> Array:
        """Return the array into which `Cell.backward` writes dL/dz, if it is called with dH.

        This is the array of gates if the cell has gates, and otherwise dH itself.
        """
        return self.kept.get("G", dH)


class PartFit(Protocol):
    """Function that computes weights of a part of a cell; see `Cell.weights_from_data`."""

    @property
    def generator(self) -> np.random.Generator:
        """Source of all weights that are drawn."""
        ...

    @property
    def passes_on(self) -> bool:
        """Whether upper layers pass on the states of the layer below, instead of being fitted."""
        ...

    def __call__(self, cell: Cell, inputs: Sequence[Array], *, backward: bool = False) -> Params:
        """Return the weights of `cell`, which receives `inputs`, one array per sequence."""
        ...


class Cell(ABC):
    """Base class of recurrent layers, which map inputs and an initial state to states.

    A subclass defines `weights`, `forward` and `backward`. It also defines `width` (the number of
    values per step that the readout receives) and `state_size` (the number of values that are
    carried from one chunk to the next), if they differ from `n_units`. This is sufficient for
    training by gradients, parameter search and forecasts. If the class is decorated with `saved`,
    `reservoir.save` can also save it.

    The other methods declare optional capabilities, which a cell lacks by default: `layer` (starts
    from data and least squares), `weights_from_data` (starts from data), `as_simple` (an equivalent
    simple cell), `step_jacobians` and `jacobian_gradient` (gradient control), `tangent`
    (Hessian-free training), `state_tangent` (exponents of closed loops), and `torch_layer`.
    If a capability is missing, code that needs it raises an error that names the cell. If states
    depend on future rows, `causal` is False. A cell that uses the times of rows defines which other
    columns it uses (`n_channels`, `channels`), the time of a state (`before`), and the equivalent
    cell for steps of equal length (`at_even_steps`).

    A stack of cells is a cell, and so is a pair that runs in opposite directions. The weights of
    their parts have names such as "0.W" and "1.W"; weights with the same prefix before the dot are
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
        """Number of values per step that the readout receives."""
        return self.n_units

    @property
    def state_size(self) -> int:
        """Number of values that are needed to continue a sequence."""
        return self.n_units

    @property
    def causal(self) -> bool:
        """Whether a state depends only on the present and past rows; True by default.

        Otherwise, sequences must be available as a whole: forecasts, sessions, truncation, and runs
        that continue another run are not possible.
        """
        return True

    @property
    def reads_codes(self) -> bool:
        """Whether inputs may be integer codes of symbols; False by default.

        A single column of codes then represents one column per symbol, with 0 and 1 (one-hot). The
        input weights of each symbol are looked up instead of multiplied.
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
        """Return how many of n_features columns the weights and the readout use; all by default."""
        return n_features

    def channels(self, X: Array) -> Array:
        """Return the columns of X (..., n_features) that the weights use: all except the times."""
        return X

    def before(self, row: Array, state: Array) -> Array:
        """Return a state (..., state_size) as the state just before a row (..., n_features).

        If the state contains the time of the previous row, that time is set to one step before this
        row. By default, the state is returned unchanged.
        """
        return state

    def held_in(self, dtype: Any) -> Any:
        """Return the dtype of inputs and states if the weights have `dtype`; by default the same.

        Times need float64; the other columns are then cast to `dtype` when they are used.
        """
        return dtype

    def at_even_steps(self) -> Cell:
        """Return the equivalent cell for steps that all have length 1, with the same weights.

        It reads no column of times. By default, this is the cell itself.
        """
        return self

    # ------------------------------------------------------------------ what every cell defines

    @abstractmethod
    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""

    @abstractmethod
    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run the cell over inputs.

        Parameters
        ----------
        params : dict of arrays
            The weights.
        X : array of shape (n_steps, n_sequences, n_features)
            The inputs.
        state : array of shape (n_sequences, state_size), optional
            Initial state of each sequence; zeros by default.
        lengths : array of shape (n_sequences,), optional
            Number of steps of each sequence, if some are shorter than n_steps.

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
        """Back-propagate a gradient from the outputs through time.

        Parameters
        ----------
        params : dict of arrays
            The weights.
        trace : Trace
            The result of `forward` with these weights. It can be used only once, since its stored
            arrays may be overwritten.
        dH : array of shape (n_steps, n_sequences, width)
            The direct gradient with respect to each output; overwritten.
        d_end : array of shape (n_sequences, state_size), optional
            The direct gradient with respect to the final states.
        d_pre : array of shape (n_steps, n_sequences, n_units), optional
            The direct gradient with respect to the pre-activations, as returned by
            `jacobian_gradient`.
        inputs : bool, default=False
            Whether to return the gradient with respect to the inputs.

        Returns
        -------
        grads : dict of arrays
            The gradient with respect to each of `weights`, by name.
        d_state : array of shape (n_sequences, state_size)
            The gradient with respect to the initial state.
        d_inputs : array of shape (n_steps, n_sequences, n_features) or None
            The gradient with respect to the inputs; None if `inputs` is False.
        """

    # ------------------------------------------------------------------ what a cell may declare

    def layer(self) -> Layer | None:
        """Return the layer whose weights can be drawn as a reservoir, or fitted by least squares.

        None (the default): there is no such layer, and least squares cannot train the cell. It
        starts from random weights, unless it defines `weights_from_data`.
        """
        return None

    @property
    def starts_from_data(self) -> bool:
        """Whether initial weights can be computed from data.

        True if the cell has a `layer` or defines `weights_from_data`; a cell that consists of cells
        also needs this of each of them.
        """
        defined = type(self).weights_from_data is not Cell.weights_from_data
        return defined or self.layer() is not None

    def weights_from_data(self, fit: PartFit, inputs: Sequence[Array]) -> Params | None:
        """Return initial weights that are computed from data; called if there is no `layer`.

        Parameters
        ----------
        fit : callable, ``fit(cell, inputs, *, backward=False) -> Params``
            Function that returns the weights of a part of the cell, as if it alone had to predict
            the targets: by least squares for a cell with a `layer`, otherwise by its own
            `weights_from_data`. With `backward`, the rows of `inputs` are in reverse order, and the
            targets are then reversed, too. ``fit.generator`` is the random generator to use.
        inputs : sequence of arrays of shape (n_steps_i, n_features)
            The inputs of each sequence; integer codes (n_steps_i, 1) if the cell accepts them.

        Returns
        -------
        dict of arrays or None
            All of `weights`, by name; the readout is fitted afterwards. None (the default): there
            is no start from data with these settings.
        """
        return None

    def open_gates(self, params: Params) -> Params:
        """Return `params` changed so that the cell is equivalent to its `layer`.

        By default, they are returned unchanged.
        """
        return params

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states that are within the range of the cell's states.

        Parameters
        ----------
        uniform : array of shape (n_states, state_size)
            Random numbers, uniform from -.9 to .9.
        reach : float
            The largest absolute state of a run, used if states are unbounded.

        Returns
        -------
        array of shape (n_states, state_size)
        """
        return uniform * reach

    def as_simple(self) -> SimpleCell | None:
        """Return the equivalent `SimpleCell`, with the same weights under the same names.

        None (the default): there is no such cell. Real-time recurrent learning, `reservoir_` and
        the compiled closed loop use it.
        """
        return None

    def check_controllable(self) -> None:
        """Check that the cell provides its step Jacobian and the Jacobian's derivative.

        Raises
        ------
        ValueError
            If it does not, which is the default.
        """
        self._raise_no_control()

    def step_jacobians(self, params: Params, trace: Trace, steps: Array, sequences: Array) -> Array:
        """Return step Jacobians, dh(t) / dh(t-1).

        Parameters
        ----------
        params : dict of arrays
        trace : Trace
            The result of `forward` with these weights. Not changed.
        steps, sequences : arrays of int, shape (n,)
            Indices of the steps, counted from 0, and of the sequence to which each step belongs.

        Returns
        -------
        array of shape (n, state_size, state_size)

        Raises
        ------
        ValueError
            If the cell does not provide them, which is the default.
        """
        self._raise_no_control()

    def jacobian_gradient(
        self, params: Params, trace: Trace, steps: Array, sequences: Array, G: Array
    ) -> tuple[Params, Array | None]:
        """Back-propagate a gradient from step Jacobians to weights and pre-activations.

        Parameters
        ----------
        params, trace, steps, sequences
            As in `step_jacobians`.
        G : array of shape (n, state_size, state_size)
            The gradient with respect to the results of `step_jacobians`.

        Returns
        -------
        grads : dict of arrays
            The direct part of the gradient, with respect to the weights that occur in the Jacobian.
        d_pre : array of shape (n_steps, n_sequences, n_units) or None
            The gradient with respect to the pre-activations, for `backward`; None if it is 0.

        Raises
        ------
        ValueError
            If the cell does not provide its step Jacobians, which is the default.
        """
        self._raise_no_control()

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return the derivative of the states along a direction in the weights (forward mode).

        The derivative is linear in `d_params`, and `backward` is the transposed linear map.

        Parameters
        ----------
        params : dict of arrays
        trace : Trace
            The result of `forward` with these weights. Not changed; its initial state and inputs
            are taken as constants.
        d_params : dict of arrays
            The direction, for each name in `weights`; other names are ignored.

        Returns
        -------
        array of shape (n_steps, n_sequences, width)
            The derivatives of ``trace.states[1:]``; meaningless for padding.

        Raises
        ------
        ValueError
            If the cell does not define it, which is the default.
        """
        raise ValueError(
            "Hessian-free training needs the derivative of the states along a direction in the "
            f"weights, `tangent`, which {type(self).__name__} does not define. Use solver='adam'."
        )

    def state_tangent(self, params: Params, states: Array, inputs: Array) -> Array:
        """Take one step, together with small differences of the state and of the input.

        Parameters
        ----------
        params : dict of arrays
        states : array of shape (1 + n_differences, state_size)
            A state, then differences, to which the derivative of the step is applied.
        inputs : array of shape (1 + n_differences, n_features)
            The input, then its differences.

        Returns
        -------
        array of shape (1 + n_differences, state_size)
            The state after the step, then its differences. The first `width` entries of a state
            must be what the readout receives.

        Raises
        ------
        ValueError
            If the cell does not define it, which is the default.
        """
        raise ValueError(
            "Exponents and cycles need the derivative of a cell's step by its state, "
            f"`state_tangent`, which {type(self).__name__} does not define. "
            "Use cell='rnn', 'leaky', 'lstm' or 'gru'."
        )

    def torch_layer(self) -> TorchLayer:
        """Return the torch counterpart of the cell.

        Raises
        ------
        ValueError
            If torch has no equivalent single layer, which is the default.
        """
        self._raise_no_torch(
            f"{type(self).__name__}: torch needs a single layer of a kind that it provides. Use "
            "SimpleCell, LSTMCell or GRUCell"
        )

    # ------------------------------------------------------------------ what cells share

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Return the weights' shapes by name, for inputs of `n_features` columns."""
        return {name: weight.shape for name, weight in self.weights(n_features).items()}

    def _start(self, X: Array, state: Array | None) -> Array:
        if state is None:
            return np.zeros((X.shape[1], self.state_size), X.dtype)
        return state

    def _check_no_pre(self, d_pre: Array | None) -> None:
        if d_pre is not None:
            raise ValueError(
                f"{type(self).__name__} has no single pre-activation. Pass d_pre only to a "
                "SimpleCell."
            )

    def _raise_no_control(self) -> NoReturn:
        raise ValueError(
            "Gradient control needs a cell that provides its step Jacobian; got "
            f"{type(self).__name__}. Use cell='rnn', 'leaky' or 'scrn', or gradient_control=0."
        )

    def _raise_no_torch(self, why: str) -> NoReturn:
        raise ValueError(f"to_torch cannot convert {why}, or export the weights by name.")
