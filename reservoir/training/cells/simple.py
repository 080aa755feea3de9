"""Elman's cell, with an optional leak as in a reservoir, and its loops over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_choice, check_count, check_numbers, dense
from reservoir.activations import ACTIVATIONS
from reservoir.dynamics import Reservoir
from reservoir.training.cells.cell import Cell, TorchLayer, Trace, Weight
from reservoir.training.cells.cell_parts import (
    ends_of,
    enter,
    from_torch_arrays,
    project,
    states_at,
    tangent_of_projection,
    torch_arrays,
    weight_gradients,
)
from reservoir.training.cells.layer import Layer
from reservoir.training.loop_engines import compiled_as, loop_for
from reservoir.training.params import Params

_TORCH = ("tanh", "relu")  # the activations of torch.nn.RNN


@saved
@dataclass(frozen=True)
class SimpleCell(Cell):
    """Elman's cell, or leaky cell of a reservoir: ``h = (1 - a) h + a f(W h + W_in x + bias)``.

    Parameters
    ----------
    n_units : int
    activation : str, default="tanh"
        The activation f, a name in `reservoir.activations.ACTIVATIONS`. For an activation that a
        user has registered, training uses its derivative, and the loops run in NumPy.
    leak_rate : float in (0, 1] or tuple of n_units such numbers, default=1.0
        The leak rate a, for all units or for each unit; 1 means no leak.

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
        if not isinstance(self.leak_rate, (float, int)):  # arrays cannot be compared or hashed
            object.__setattr__(
                self, "leak_rate", tuple(leak.tolist()) if leak.ndim else float(leak)
            )

    @property
    def reads_codes(self) -> bool:
        """Always True."""
        return True

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        n = self.n_units
        return {
            "W_in": Weight((n, n_features), "input"),
            "W": Weight((n, n), "recurrent"),
            "bias": Weight((n,), "bias"),
        }

    def leaks(self, dtype: Any = np.float64) -> Array | None:
        """Return the leak rates of all units as an array of a dtype, or None if all are 1."""
        leak = np.broadcast_to(np.asarray(self.leak_rate, dtype=dtype), (self.n_units,))
        return None if (leak == 1).all() else np.array(leak)

    def slopes(self, trace: Trace) -> Array:
        """Return a f'(z), the state's derivative with respect to z, at each step of a trace."""
        values: Array = trace.values  # type: ignore[assignment]
        slopes = slope(self.activation, values) if trace.slopes is None else trace.slopes
        leak = self._leak_of(trace)
        return slopes if leak is None else slopes * leak

    def _leaked(self, slopes: Array) -> Array:
        leak = self.leaks(slopes.dtype)
        return slopes if leak is None else slopes * leak

    def _leak_of(self, trace: Trace) -> Array | None:
        """Return the leak rates of a run: one per unit, or one per step if the run had these."""
        leak: Array | None = trace.kept.get("leak")
        return self.leaks(trace.states.dtype) if leak is None else leak

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        leak = self.leaks(np.result_type(X.dtype, params["W"].dtype))
        return self._run(params, X, self._start(X, state), lengths, leak)

    def _run(
        self, params: Params, X: Array, start: Array, lengths: Array | None, leak: Array | None
    ) -> Trace:
        """Run the cell with `leak` as in `simple_forward`; store a leak per step in the trace."""
        U = project(X, params["W_in"], params["bias"])
        H = np.empty((len(X) + 1, *U.shape[1:]), U.dtype)
        H[0] = start
        V = H[1:] if leak is None else np.empty_like(U)
        activation = ACTIVATIONS[self.activation]
        self._loop(simple_forward, U, leak)(H, V, U, params["W"], self.activation, leak)
        ends = ends_of(X, lengths)
        kept = {} if leak is None or leak.ndim == 1 else {"leak": leak}
        if activation.slope is None:  # f'(z) cannot be computed from f(z); U contains z
            kept["slopes"] = activation.derivative(U).astype(U.dtype)
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
        """Back-propagate a gradient through time.

        For `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` see `Cell.backward`.
        """
        enter(dH, trace.lengths, d_end)
        leak = self._leak_of(trace)
        if trace.slopes is not None:
            d_start = backward_by_slopes(dH, self.slopes(trace), params["W"], leak, d_pre)
        else:
            d_start = self._loop(simple_backward, dH, leak)(
                dH, trace.values, params["W"], self.activation, leak, d_pre
            )
        grads = weight_gradients(dH, trace.inputs, trace.states[:-1], params["W_in"].shape[1])
        return grads, d_start, dH @ params["W_in"] if inputs else None

    def _loop(self, loop: Any, A: Array, leak: Array | None) -> Any:
        leak_per_step = leak is not None and leak.ndim > 1  # kernels need one leak for all steps
        if ACTIVATIONS[self.activation].kernel is None or leak_per_step:
            return loop
        return loop_for(loop, A.shape, A.dtype)

    # ------------------------------------------------------------------ optional capabilities

    def layer(self) -> Layer:
        """Return the cell as a layer, which regressions can fit if f is bounded or linear."""
        activation = ACTIVATIONS[self.activation]
        rows, leak, enclosure = slice(0, self.n_units), self.leaks(), activation.enclosure
        if activation.inverse is None or enclosure is None:
            return Layer(rows, leak=leak)
        if enclosure.bounded:
            centre = 0.5 * (enclosure.low + enclosure.high)
            return Layer(rows, centre, enclosure.high - centre, activation.inverse, leak)
        ends = np.array([-np.inf]), np.array([np.inf])
        least, largest = enclosure.slopes(*ends)
        if least != largest:  # if f is nonlinear, large targets are unreliable
            return Layer(rows, leak=leak)
        return Layer(rows, 0.0, np.inf, activation.inverse, leak)

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states; for `uniform` and `reach` see `Cell.random_states`."""
        enclosure = ACTIVATIONS[self.activation].enclosure
        if enclosure is None or not enclosure.bounded:
            return uniform * reach
        centre = 0.5 * (enclosure.low + enclosure.high)
        return centre + (enclosure.high - centre) * uniform

    def as_simple(self) -> SimpleCell:
        """Return the cell itself."""
        return self

    def reservoir(self, params: Params) -> Reservoir:
        """Return a reservoir with the equations of this cell and the weights `params`."""
        leak = self.leaks(params["W"].dtype)
        return Reservoir(
            params["W"],
            params["W_in"],
            params["bias"],
            leak_rate=1.0 if leak is None else leak,
            activation=self.activation,
        )

    @staticmethod
    def params_of(reservoir: Reservoir) -> Params:
        """Return the weights of a reservoir by name; the inverse of the method `reservoir`."""
        return {
            "W_in": np.array(dense(reservoir.W_in, "W_in")),
            "W": np.array(dense(reservoir.W)),
            "bias": np.array(reservoir.bias),
        }

    def check_controllable(self) -> None:
        """Raise an error if the activation does not provide its slope and curvature."""
        activation = ACTIVATIONS[self.activation]
        if activation.slope is None or activation.curvature is None:
            known = [name for name, f in ACTIVATIONS.items() if f.curvature is not None]
            raise ValueError(
                "gradient_control computes the slope and the curvature of the activation from its "
                f"value, and activation={self.activation!r} does not provide both. Use one of "
                f"{', '.join(map(repr, known))}, or gradient_control=0."
            )

    def step_jacobians(self, params: Params, trace: Trace, steps: Array, sequences: Array) -> Array:
        """Return step Jacobians ``diag(1 - a) + diag(a f'(z)) W``.

        For `params`, `trace`, `steps` and `sequences` see `Cell.step_jacobians`.
        """
        slopes = self._leaked(slope(self.activation, trace.values[steps, sequences]))  # type: ignore[index]
        J = slopes[:, :, None] * params["W"]
        leak = self.leaks(slopes.dtype)
        return J if leak is None else J + np.diag(1 - leak)

    def jacobian_gradient(
        self, params: Params, trace: Trace, steps: Array, sequences: Array, G: Array
    ) -> tuple[Params, Array | None]:
        """Back-propagate a gradient with respect to step Jacobians.

        The gradient has a direct part with respect to W, diag(a f') G, and a part with respect to
        z, a f''(z) * rowsum(G * W). For `params`, `trace`, `steps`, `sequences` and `G` see
        `Cell.jacobian_gradient`.
        """
        V: Array = trace.values[steps, sequences]  # type: ignore[index]
        slopes = self._leaked(slope(self.activation, V))
        bends = self._leaked(curvature(self.activation, V))
        direct = {"W": np.einsum("si,sij->ij", slopes, G)}
        if not bends.any():
            return direct, None
        d_pre = np.zeros_like(trace.values)
        d_pre[steps, sequences] = bends * np.einsum("sij,ij->si", G, params["W"])
        return direct, d_pre

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return the states' tangent; for `params`, `trace`, `d_params` see `Cell.tangent`."""
        D = tangent_of_projection(d_params, trace.inputs, trace.states[:-1])
        slopes, leak = self.slopes(trace), self._leak_of(trace)
        keep = None if leak is None else np.broadcast_to(1 - leak, D.shape)
        W_T = np.ascontiguousarray(params["W"].T)
        D[:1] *= slopes[:1]
        for t in range(1, len(D)):
            D[t] += D[t - 1] @ W_T
            D[t] *= slopes[t]
            if keep is not None:
                D[t] += keep[t] * D[t - 1]
        return D

    def torch_layer(self) -> TorchLayer:
        """Return torch.nn.RNN, which supports only tanh and relu, without a leak."""
        if self.leaks() is not None:
            self._raise_no_torch(
                f"leak_rate={self.leak_rate}: torch.nn.RNN has no leak. Train with leak_rate=1"
            )
        if self.activation not in _TORCH:
            self._raise_no_torch(
                f"activation={self.activation!r}: torch.nn.RNN has only 'tanh' and 'relu'. Use one "
                "of these"
            )
        options = {"nonlinearity": self.activation}
        return TorchLayer("RNN", options, torch_arrays, from_torch_arrays)


def slope(activation: str, value: Array) -> Array:
    """Return f'(z), given the value f(z).

    Parameters
    ----------
    activation : str
        Name of f in `reservoir.activations.ACTIVATIONS`.
    value : array
        The value f(z).

    Returns
    -------
    array of the shape of value

    Raises
    ------
    ValueError
        If the derivative of f can be computed only from z.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import slope
    >>> slope("tanh", np.array([0.0, 0.5]))
    array([1.  , 0.75])
    """
    return _from_value(activation, "slope")(value)


def curvature(activation: str, value: Array) -> Array:
    """Return f''(z), given the value f(z); 0 where f has a corner.

    Parameters
    ----------
    activation : str
        As in `slope`.
    value : array

    Returns
    -------
    array of the shape of value

    Raises
    ------
    ValueError
        If the second derivative of f cannot be computed from f(z).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import curvature
    >>> curvature("tanh", np.array([0.0, 0.5]))
    array([-0.  , -0.75])
    """
    return _from_value(activation, "curvature")(value)


def _from_value(activation: str, what: str) -> Callable[[Array], Array]:
    function: Callable[[Array], Array] | None = getattr(ACTIVATIONS[activation], what)
    if function is None:
        known = [name for name, f in ACTIVATIONS.items() if getattr(f, what) is not None]
        raise ValueError(
            f"activation={activation!r}: its {what} cannot be computed from its value. Use one of "
            f"{', '.join(map(repr, known))}."
        )
    return function


@compiled_as("simple_forward")
def simple_forward(
    H: Array,
    V: Array,
    U: Array,
    W: Array,
    activation: str,
    leak: Array | None,
) -> None:
    """Run ``h = (1 - a) h + a f(W h + u)`` over all steps.

    H, (n_steps + 1, n_sequences, n_units), has the initial states in its first row; the others are
    written. V, (n_steps, n_sequences, n_units), receives f(z); without a leak, it must be the view
    ``H[1:]``. U, of that shape, holds the projected inputs with the bias, and is overwritten, here
    by z. `leak` is (n_units,), or (n_steps, n_sequences, n_units or 1), or None, which means 1.
    """
    activate = ACTIVATIONS[activation].function
    W_T = np.ascontiguousarray(W.T)
    takes = np.broadcast_to(np.ones(1) if leak is None else leak, U.shape)
    keeps = np.broadcast_to(np.zeros(1) if leak is None else 1 - leak, U.shape)
    room = np.empty_like(U[0])
    for t in range(len(U)):
        z = U[t]
        np.matmul(H[t], W_T, out=room)
        z += room
        activate(z, out=V[t])
        if leak is not None:
            np.multiply(H[t], keeps[t], out=room)
            np.multiply(V[t], takes[t], out=H[t + 1])
            H[t + 1] += room


@compiled_as("simple_backward")
def simple_backward(
    D: Array, V: Array, W: Array, activation: str, leak: Array | None, extra: Array | None
) -> Array:
    """Back-propagate through a simple cell; return the gradient with respect to the initial states.

    D, (n_steps, n_sequences, n_units), is the direct gradient with respect to each state, and is
    replaced by dL/dz. `extra`, of that shape, is a direct gradient with respect to z, which is
    added. V, W and `leak` are those of `simple_forward`.
    """
    slopes = slope(activation, V)
    if leak is not None:
        slopes *= leak
    return backward_by_slopes(D, slopes, W, leak, extra)


def backward_by_slopes(
    D: Array, slopes: Array, W: Array, leak: Array | None, extra: Array | None
) -> Array:
    """Back-propagate as in `simple_backward`, given the slopes a f'(z) at every step."""
    keep = None if leak is None else np.broadcast_to(1 - leak, D.shape)
    g = np.zeros_like(D[0])
    through = np.empty_like(g)
    for t in range(len(D) - 1, -1, -1):
        d = D[t]
        d += g
        if keep is not None:
            np.multiply(d, keep[t], out=through)
        d *= slopes[t]
        if extra is not None:
            d += extra[t]
        np.matmul(d, W, out=g)
        if keep is not None:
            g += through
    return g
