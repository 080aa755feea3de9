"""A recurrent cell with a deep transition between states, and its loops over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_choice, check_count, check_switch
from reservoir.activations import ACTIVATIONS
from reservoir.training.cells.cell import Cell, PartFit, Trace, Weight
from reservoir.training.cells.cell_parts import (
    PASSED,
    as_rows,
    ends_of,
    enter,
    project,
    states_at,
    weight_gradients,
)
from reservoir.training.cells.simple import SimpleCell, slope
from reservoir.training.params import Params

_OTHERS = 0.1  # size of the weights of a start from data that do not pass values on


@saved
@dataclass(frozen=True)
class DeepTransitionCell(Cell):
    """Cell with hidden layers between one state and the next, optionally with a shortcut.

    The layers are ``a_0 = f(W h + W_in x + bias)`` and ``a_k = f(W_k a_{k-1} + bias_k)``, and the
    new state is the last a_k. With the shortcut, the last layer is
    ``a_k = f(W_k a_{k-1} + bias_k + W_skip h)``.

    Parameters
    ----------
    n_units : int
        Number of units of the state.
    hidden : tuple of int
        Numbers of units of the layers between one state and the next, starting with a_0.
    activation : str, default="tanh"
        A name in `reservoir.activations.ACTIVATIONS`.
    shortcut : bool, default=False
        Whether the state also acts directly on the next one, so that gradients have a path of one
        layer per step.

    References
    ----------
    R. Pascanu, C. Gulcehre, K. Cho and Y. Bengio, "How to construct deep recurrent neural
    networks", ICLR 2014, section 3.2: DT-RNN, and with the shortcut DT(S)-RNN.

    Examples
    --------
    >>> from reservoir.training.cells import DeepTransitionCell
    >>> DeepTransitionCell(4, (3,)).shapes(n_features=2)
    {'W_in': (3, 2), 'W': (3, 4), 'bias': (3,), 'W_1': (4, 3), 'bias_1': (4,)}
    """

    n_units: int
    hidden: tuple[int, ...]
    activation: str = "tanh"
    shortcut: bool = False

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)
        if not isinstance(self.hidden, tuple) or not self.hidden:
            raise TypeError(
                f"hidden={self.hidden!r} must be a tuple of one or more numbers of units, such as "
                "(32,). For a cell without hidden layers, use SimpleCell."
            )
        for n in self.hidden:
            check_count("hidden", n)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_switch("shortcut", self.shortcut)

    @property
    def reads_codes(self) -> bool:
        """Always True."""
        return True

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        n, sizes = self.n_units, (*self.hidden, self.n_units)
        weights = {
            "W_in": Weight((sizes[0], n_features), "input"),
            "W": Weight((sizes[0], n), "recurrent"),
            "bias": Weight((sizes[0],), "bias"),
        }
        for k in range(1, len(sizes)):
            weights[f"W_{k}"] = Weight((sizes[k], sizes[k - 1]), "recurrent")
            weights[f"bias_{k}"] = Weight((sizes[k],), "bias")
        if self.shortcut:
            weights["W_skip"] = Weight((n, n), "recurrent")
        return weights

    @property
    def starts_from_data(self) -> bool:
        """Whether the units can pass on small values unchanged, as with tanh and the identity."""
        return self.activation in ("tanh", "identity")

    def weights_from_data(self, fit: PartFit, inputs: Sequence[Array]) -> Params | None:
        """Return weights in which the first layer does a simple cell's step, at .3 of its size.

        The layers above pass its values on, nearly linearly. The remaining units have small random
        weights. For `fit` and `inputs` see `Cell.weights_from_data`.
        """
        if not self.starts_from_data:
            return None
        sizes = (*self.hidden, self.n_units)
        m = min(sizes)
        inner = fit(SimpleCell(m, self.activation), inputs)
        params = {
            name: np.zeros(shape) for name, shape in self.shapes(inner["W_in"].shape[1]).items()
        }
        for name, array in params.items():
            if array.ndim == 2 and name != "W_skip":
                scale = _OTHERS / np.sqrt(array.shape[1])
                array[m:] = scale * fit.generator.standard_normal(array[m:].shape)
        for k in range(1, len(sizes)):
            params[f"W_{k}"][:m, :m] = np.eye(m) * (PASSED if k == 1 else 1.0)
        params["W_in"][:m], params["bias"][:m] = inner["W_in"], inner["bias"]
        params["W"][:m, :m] = inner["W"] / PASSED
        return params

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        activation, above = ACTIVATIONS[self.activation], range(1, len(self.hidden) + 1)
        layers = [project(X, params["W_in"], params["bias"])]
        for k in above:
            bias = params[f"bias_{k}"]
            layers.append(np.tile(bias, (*X.shape[:2], 1)))
        H = np.empty((len(X) + 1, *layers[-1].shape[1:]), layers[0].dtype)
        H[0] = self._start(X, state)
        values = [*map(np.empty_like, layers[:-1]), H[1:]]
        for t in range(len(X)):
            layers[0][t] += H[t] @ params["W"].T
            activation.function(layers[0][t], out=values[0][t])
            for k in above:
                layers[k][t] += values[k - 1][t] @ params[f"W_{k}"].T
                if self.shortcut and k == above[-1]:
                    layers[k][t] += H[t] @ params["W_skip"].T
                activation.function(layers[k][t], out=values[k][t])
        ends = ends_of(X, lengths)
        if activation.slope is None:  # the slope of f cannot be computed from its values
            steep = [activation.derivative(z).astype(z.dtype) for z in layers]
        else:
            steep = [slope(self.activation, value) for value in values]
        kept = {"values": values, "steep": steep}
        return Trace(X, H, states_at(H, ends), ends, kept=kept)

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
        values, D = trace.take("values", "steep")  # slopes become gradients, step by step
        enter(dH, trace.lengths, d_end)
        d_h = np.zeros_like(dH[0])
        for t in range(len(dH) - 1, -1, -1):
            d = d_h + dH[t]
            for k in range(len(D) - 1, 0, -1):
                D[k][t] *= d
                d = D[k][t] @ params[f"W_{k}"]
            D[0][t] *= d
            d_h = D[0][t] @ params["W"]
            if self.shortcut:
                d_h += D[-1][t] @ params["W_skip"]
        before = trace.states[:-1]
        grads = weight_gradients(D[0], trace.inputs, before, params["W_in"].shape[1])
        for k in range(1, len(D)):
            grads[f"W_{k}"] = as_rows(D[k]).T @ as_rows(values[k - 1])
            grads[f"bias_{k}"] = as_rows(D[k]).sum(axis=0)
        if self.shortcut:
            grads["W_skip"] = as_rows(D[-1]).T @ as_rows(before)
        return grads, d_h, D[0] @ params["W_in"] if inputs else None
