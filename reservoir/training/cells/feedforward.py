"""A layer without memory, used in stacks as a deep input function or a deep output function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_choice, check_count
from reservoir.activations import ACTIVATIONS
from reservoir.training.cells.cell import Cell, PartFit, Trace, Weight
from reservoir.training.cells.cell_parts import (
    PASSED,
    as_rows,
    drawn_weights,
    ends_of,
    project,
    with_ones,
)
from reservoir.training.cells.simple import slope
from reservoir.training.codes import mean_and_spread
from reservoir.training.params import Params


@saved
@dataclass(frozen=True)
class FeedforwardCell(Cell):
    """Layer of a multilayer perceptron, ``h = f(W_in x + bias)``, the same at every step.

    The layer has no state. In a stack, it forms a deep input function below a recurrent cell, and a
    deep output function above one: ``stacked(FeedforwardCell(32), "rnn", FeedforwardCell(32))``.

    Parameters
    ----------
    n_units : int
    activation : str, default="tanh"
        A name in `reservoir.activations.ACTIVATIONS`.

    References
    ----------
    R. Pascanu, C. Gulcehre, K. Cho and Y. Bengio, "How to construct deep recurrent neural
    networks", ICLR 2014, sections 3.1 and 3.3 (deep input-to-hidden and hidden-to-output
    functions).

    Examples
    --------
    >>> from reservoir.training.cells import FeedforwardCell
    >>> cell = FeedforwardCell(3, "relu")
    >>> cell.shapes(n_features=2), cell.state_size
    ({'W_in': (3, 2), 'bias': (3,)}, 0)
    """

    n_units: int
    activation: str = "tanh"

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)
        check_choice("activation", self.activation, ACTIVATIONS)

    @property
    def state_size(self) -> int:
        """Always 0: there is no state."""
        return 0

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        n = self.n_units
        return {"W_in": Weight((n, n_features), "input"), "bias": Weight((n,), "bias")}

    def weights_from_data(self, fit: PartFit, inputs: Sequence[Array]) -> Params:
        """Return random weights at the scale of the inputs.

        If there are nearly as many inputs as units, from which random units would lose much, the
        first units pass them on, nearly linearly. For `fit` and `inputs` see
        `Cell.weights_from_data`.
        """
        W_in, bias = drawn_weights(fit, self.n_units, inputs)
        n = W_in.shape[1]
        if n <= self.n_units < 2 * n and self.activation in ("tanh", "identity"):
            mean, spread = mean_and_spread(np.concatenate(inputs), n)
            W_in[:n] = np.diag(PASSED / np.where(spread > 0, spread, 1.0))
            bias[:n] = -W_in[:n] @ mean
        return {"W_in": W_in, "bias": bias}

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        Z = project(X, params["W_in"], params["bias"])
        activation = ACTIVATIONS[self.activation]
        H = np.zeros((len(X) + 1, *Z.shape[1:]), Z.dtype)
        activation.function(Z, out=H[1:])
        kept = {}
        if activation.slope is None:  # the slope of f cannot be computed from its value
            kept["slopes"] = activation.derivative(Z).astype(Z.dtype)
        end = np.zeros((X.shape[1], 0), Z.dtype)
        return Trace(X, H, end, ends_of(X, lengths), H[1:], kept)

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
        """Back-propagate a gradient to weights and inputs.

        For `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` see `Cell.backward`.
        """
        self._check_no_pre(d_pre)
        dH *= slope(self.activation, trace.states[1:]) if trace.slopes is None else trace.slopes
        both = as_rows(dH).T @ with_ones(trace.inputs)
        grads = {
            "W_in": np.ascontiguousarray(both[:, :-1]),
            "bias": np.ascontiguousarray(both[:, -1]),
        }
        return grads, np.zeros_like(trace.end), dH @ params["W_in"] if inputs else None
