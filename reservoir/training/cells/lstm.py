"""Long short-term memory, and its loops over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count
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
from reservoir.training.cells.layer import GATE_BIAS, OPEN, Layer, with_open_gates
from reservoir.training.loop_engines import compiled_as, loop_for
from reservoir.training.params import Params


@saved
@dataclass(frozen=True)
class LSTMCell(Cell):
    """Long short-term memory: a cell value c that is written, kept and read through gates.

    The gates i, f and o are logistic functions of ``W h + W_in x + bias``, and the candidate g is
    its tanh; ``c = f c + i g`` and ``h = o tanh(c)``. The gates are ordered as input gate i, forget
    gate f, candidate g, output gate o. The state is [h, c].

    Parameters
    ----------
    n_units : int
    peephole : bool, default=False
        Whether the gates of a unit also receive its cell value: the input and forget gates receive
        the previous value, and the output gate the new one. The weights are ``peephole``
        (3, n_units).

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
        """Number of outputs h plus number of cell values c."""
        return 2 * self.n_units

    @property
    def reads_codes(self) -> bool:
        """Always True."""
        return True

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        n = self.n_units
        weights = {
            "W_in": Weight((4 * n, n_features), "input", 4),
            "W": Weight((4 * n, n), "recurrent", 4),
            "bias": Weight((4 * n,), "bias", 4, forget=1),
        }
        return {**weights, "peephole": Weight((3, n), "diagonal")} if self.peephole else weights

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        n = self.n_units
        G = project(X, params["W_in"], params["bias"])
        H, C = (np.empty((len(X) + 1, X.shape[1], n), G.dtype) for _ in range(2))
        start = self._start(X, state)
        H[0], C[0] = start[:, :n], start[:, n:]
        TC = np.empty((len(X), X.shape[1], n), G.dtype)
        loop = loop_for(lstm_forward, G.shape, G.dtype)
        loop(H, C, TC, G, params["W"], self._peep(params))
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
        """Back-propagate a gradient through time.

        For `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` see `Cell.backward`.
        """
        self._check_no_pre(d_pre)
        n, ends = self.n_units, trace.lengths
        C, TC, G = trace.take("C", "TC", "G")
        d_cell = np.zeros_like(C[0])
        if d_end is not None:
            enter(dH, ends, d_end[:, :n])
            d_cell = np.array(d_end[:, n:])
            if (ends < len(TC)).any():
                # in the padding of shorter sequences, the gradient of c must pass unchanged: set
                # the input gate to 0 and the forget gate to 1
                for b in np.flatnonzero(ends < len(TC)):
                    G[ends[b] :, b, :n] = 0
                    G[ends[b] :, b, n : 2 * n] = 1
        loop = loop_for(lstm_backward, G.shape, G.dtype)
        d_h, d_c = loop(dH, d_cell, G, C, TC, params["W"], self._peep(params))
        grads = weight_gradients(G, trace.inputs, trace.states[:-1], params["W_in"].shape[1])
        if self.peephole:
            i, f, _, o = (G[:, :, k * n : (k + 1) * n] for k in range(4))
            pairs = ((i, C[:-1]), (f, C[:-1]), (o, C[1:]))
            grads["peephole"] = np.stack([np.einsum("tbn,tbn->n", d, c) for d, c in pairs])
        return grads, np.hstack([d_h, d_c]), G @ params["W_in"] if inputs else None

    # ------------------------------------------------------------------ optional capabilities

    def layer(self) -> Layer:
        """Return the candidate's layer; with open gates, the output is ``o tanh(i tanh(z))``."""
        rows = slice(2 * self.n_units, 3 * self.n_units)
        return Layer(rows, 0.0, OPEN * float(np.tanh(OPEN)), _invert_open)

    def open_gates(self, params: Params) -> Params:
        """Return `params` with open gates, so that the cell equals this layer up to .0025."""
        biases = (GATE_BIAS, -GATE_BIAS, None, GATE_BIAS)
        others = ("peephole",) if self.peephole else ()
        return with_open_gates(params, self.layer(), biases, others)

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states; for `uniform` and `reach` see `Cell.random_states`."""
        cells = uniform[:, self.n_units :]
        return np.hstack([np.tanh(cells), cells])

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return the outputs' tangent; for `params`, `trace`, `d_params` see `Cell.tangent`."""
        n, kept = self.n_units, trace.kept
        C, TC, G = kept["C"], kept["TC"], kept["G"]
        Z = tangent_of_projection(d_params, trace.inputs, trace.states[:-1])
        peephole = np.zeros((3, n), Z.dtype)
        if self.peephole:
            peephole, d_peephole = params["peephole"], d_params["peephole"]
            for k, cells in ((0, C[:-1]), (1, C[:-1]), (3, C[1:])):
                Z[:, :, k * n : (k + 1) * n] += d_peephole[min(k, 2)] * cells
        W_T = np.ascontiguousarray(params["W"].T)
        D = np.empty_like(TC)
        d_h, d_c = np.zeros_like(C[0]), np.zeros_like(C[0])
        for t in range(len(D)):
            d_h, d_c = _moved(G[t], C[t], TC[t], peephole, Z[t] + d_h @ W_T, d_c)
            D[t] = d_h
        return D

    def state_tangent(self, params: Params, states: Array, inputs: Array) -> Array:
        """Take one step with differences; `params`, `states`, `inputs`: `Cell.state_tangent`."""
        n = self.n_units
        trace = self.forward(params, inputs[None, :1], states[:1])
        C, TC, G = (trace.kept[name] for name in ("C", "TC", "G"))
        peephole = params["peephole"] if self.peephole else np.zeros((3, n))
        moved = inputs[1:] @ params["W_in"].T + states[1:, :n] @ params["W"].T
        after = _moved(G[0], C[0], TC[0], peephole, moved, states[1:, n:])
        return np.vstack([trace.end, np.hstack(after)])

    def torch_layer(self) -> TorchLayer:
        """Return torch.nn.LSTM, which has no peepholes."""
        if self.peephole:
            self._raise_no_torch(
                "peephole=True: torch.nn.LSTM has no peepholes. Train with peephole=False "
                '(cell="lstm")'
            )
        return TorchLayer("LSTM", {}, torch_arrays, from_torch_arrays)


def _moved(
    gates: Array, c: Array, tanh_c: Array, peephole: Array, d_z: Array, d_c: Array
) -> tuple[Array, Array]:
    """Return the differences of h and c after a step.

    `gates` and the tanh of the new c are those of the step, and c is the cell value before it;
    `d_z` are the differences of the pre-activations, without peepholes, and `d_c` those of c.
    """
    i, f, g, o = np.split(gates, 4, axis=1)
    z_i, z_f, z_g, z_o = np.split(d_z, 4, axis=1)
    d_i = i * (1 - i) * (z_i + peephole[0] * d_c)
    d_f = f * (1 - f) * (z_f + peephole[1] * d_c)
    d_c = f * d_c + d_f * c + d_i * g + i * (1 - g * g) * z_g
    d_o = o * (1 - o) * (z_o + peephole[2] * d_c)
    return d_o * tanh_c + o * (1 - tanh_c**2) * d_c, d_c


def _invert_open(h: Array) -> Array:
    return np.arctanh(np.arctanh(h / OPEN) / OPEN)


@compiled_as("lstm_forward")
def lstm_forward(H: Array, C: Array, TC: Array, G: Array, W: Array, peephole: Array | None) -> None:
    """Run the LSTM over all steps; the order of the gates is input, forget, candidate, output.

    The outputs H and cell values C, (n_steps + 1, n_sequences, n_units), have the initial values in
    their first rows; the others are written. TC, (n_steps, n_sequences, n_units), receives tanh(C).
    G, (n_steps, n_sequences, 4 n_units), holds the projected inputs and is replaced by the gates. W
    is (4 n_units, n_units); `peephole`, (3, n_units), is for the input, forget and output gates.
    """
    n = H.shape[2]
    W_T = np.ascontiguousarray(W.T)
    room = np.empty_like(G[0])
    for t in range(len(G)):
        z = G[t]
        np.matmul(H[t], W_T, out=room)
        z += room
        i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        if peephole is not None:
            i += peephole[0] * C[t]
            f += peephole[1] * C[t]
        both = z[:, : 2 * n]
        expit(both, out=both)
        np.tanh(g, out=g)
        c = C[t + 1]
        np.multiply(f, C[t], out=c)
        c += i * g
        if peephole is not None:
            o += peephole[2] * c
        expit(o, out=o)
        np.tanh(c, out=TC[t])
        np.multiply(o, TC[t], out=H[t + 1])


@compiled_as("lstm_backward")
def lstm_backward(
    D: Array, dC: Array, G: Array, C: Array, TC: Array, W: Array, peephole: Array | None
) -> tuple[Array, Array]:
    """Back-propagate through the LSTM, and return the gradients with respect to its initial state.

    D, (n_steps, n_sequences, n_units), is the direct gradient with respect to each output, and is
    overwritten; dC, (n_sequences, n_units), is the one with respect to the final cell values. The
    others are the arrays after `lstm_forward`; G is replaced by the gradient with respect to the
    pre-activations. The results, for outputs and cell values, have the shape of dC.
    """
    n = D.shape[2]
    dh, dc = np.zeros_like(D[0]), dC.copy()
    for t in range(len(D) - 1, -1, -1):
        i, f, g, o = (G[t][:, k * n : (k + 1) * n] for k in range(4))
        d = D[t]
        d += dh
        d_o = d * TC[t] * o * (1 - o)
        dc += d * o * (1 - TC[t] ** 2)
        if peephole is not None:
            dc += d_o * peephole[2]
        d_g = dc * i * (1 - g * g)
        d_i = dc * g * i * (1 - i)
        d_f = dc * C[t] * f * (1 - f)
        dc *= f
        if peephole is not None:
            dc += d_i * peephole[0] + d_f * peephole[1]
        i[:], f[:], g[:], o[:] = d_i, d_f, d_g, d_o
        np.matmul(G[t], W, out=dh)
    return dh, dc
