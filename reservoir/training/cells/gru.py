"""Gated recurrent units, and their loops over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_switch
from reservoir.training.cells.cell import Cell, TorchLayer, Trace, Weight
from reservoir.training.cells.cell_parts import (
    as_rows,
    ends_of,
    enter,
    from_torch_arrays,
    input_gradients,
    project,
    states_at,
    torch_arrays,
)
from reservoir.training.cells.layer import GATE_BIAS, OPEN, Layer, with_open_gates
from reservoir.training.loop_engines import compiled_as, loop_for
from reservoir.training.params import Params


@saved
@dataclass(frozen=True)
class GRUCell(Cell):
    """Gated recurrent unit: ``h = z h + (1 - z) tanh(W_in x + bias + r (W h + bias_recurrent))``.

    The gates are ordered as reset gate r, update gate z, candidate; r and z are logistic functions
    of ``W h + W_in x + bias``.

    Parameters
    ----------
    n_units : int
    reset_after : bool, default=True
        Whether the reset gate is applied after the recurrent product of the candidate, which then
        has a separate bias, as in torch and by default in Keras. False: it is applied within the
        product, ``tanh(W_in x + bias + W (r h))``, as in [1]_ and most texts. The forms have
        different weights.

    References
    ----------
    .. [1] K. Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
       machine translation", EMNLP 2014 (the first preprint applies the reset gate after the
       product).

    Examples
    --------
    >>> from reservoir.training.cells import GRUCell
    >>> GRUCell(3).shapes(n_features=2)
    {'W_in': (9, 2), 'W': (9, 3), 'bias': (9,), 'bias_recurrent': (3,)}
    """

    n_units: int
    reset_after: bool = True

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)
        check_switch("reset_after", self.reset_after)

    @property
    def reads_codes(self) -> bool:
        """Always True."""
        return True

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        n = self.n_units
        found = {
            "W_in": Weight((3 * n, n_features), "input", 3),
            "W": Weight((3 * n, n), "recurrent", 3),
            "bias": Weight((3 * n,), "bias", 3),
        }
        if self.reset_after:
            found["bias_recurrent"] = Weight((n,), "bias")
        return found

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        G = project(X, params["W_in"], params["bias"])
        H = np.empty((len(X) + 1, X.shape[1], self.n_units), G.dtype)
        H[0] = self._start(X, state)
        R = np.empty_like(H[1:])
        if self.reset_after:
            loop = loop_for(gru_forward, G.shape, G.dtype)
            loop(H, G, R, params["W"], params["bias_recurrent"])
        else:
            _forward_within(H, G, R, params["W"])
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
        """Back-propagate a gradient through time.

        For `params`, `trace`, `dH`, `d_end`, `d_pre` and `inputs` see `Cell.backward`.
        """
        self._check_no_pre(d_pre)
        n = self.n_units
        G, R = trace.take("G", "R")
        enter(dH, trace.lengths, d_end)
        if self.reset_after:
            loop = loop_for(gru_backward, G.shape, G.dtype)
            d_start = loop(dH, G, trace.states, R, params["W"])
        else:
            d_start = _backward_within(dH, G, trace.states, R, params["W"])
        before, d, rows = as_rows(trace.states[:-1]), as_rows(G), as_rows(R)
        W_in, bias = input_gradients(G, trace.inputs, params["W_in"].shape[1])
        candidate = before.T @ rows if self.reset_after else rows.T @ d[:, 2 * n :]
        recurrent = before.T @ d[:, : 2 * n], candidate
        grads = {"W_in": W_in, "W": np.ascontiguousarray(np.hstack(recurrent).T), "bias": bias}
        if self.reset_after:
            grads["bias_recurrent"] = rows.sum(axis=0)
        return grads, d_start, G @ params["W_in"] if inputs else None

    # ------------------------------------------------------------------ optional capabilities

    def layer(self) -> Layer:
        """Return the candidate's layer; with open gates, the cell computes the same states."""
        n = self.n_units
        return Layer(
            slice(2 * n, 3 * n),
            0.0,
            1.0,
            np.arctanh,
            leak=np.full(n, OPEN),
            gain=OPEN,
            second_bias="bias_recurrent" if self.reset_after else None,
        )

    def open_gates(self, params: Params) -> Params:
        """Return `params` with open gates, so that the cell equals this layer."""
        return with_open_gates(params, self.layer(), (GATE_BIAS, -GATE_BIAS, None))

    def random_states(self, uniform: Array, reach: float) -> Array:
        """Return random states; for `uniform` and `reach` see `Cell.random_states`."""
        return uniform

    def tangent(self, params: Params, trace: Trace, d_params: Params) -> Array:
        """Return the states' tangent; for `params`, `trace`, `d_params` see `Cell.tangent`."""
        n, H = self.n_units, trace.states
        G, R = trace.kept["G"], trace.kept["R"]
        Z = project(trace.inputs, d_params["W_in"], d_params["bias"])
        recurrent = H[:-1] @ d_params["W"].T
        if self.reset_after:
            recurrent[:, :, 2 * n :] += d_params["bias_recurrent"]
        else:
            recurrent[:, :, 2 * n :] = R @ d_params["W"][2 * n :].T
        W_T = np.ascontiguousarray(params["W"].T)
        D, d_h = np.empty_like(R), np.zeros_like(H[0])
        for t in range(len(D)):
            D[t] = d_h = self._moved(W_T, G[t], H[t], R[t], Z[t], recurrent[t], d_h)
        return D

    def state_tangent(self, params: Params, states: Array, inputs: Array) -> Array:
        """Take one step with differences; `params`, `states`, `inputs`: `Cell.state_tangent`."""
        trace = self.forward(params, inputs[None, :1], states[:1])
        G, R = trace.kept["G"][0], trace.kept["R"][0]
        d_z = inputs[1:] @ params["W_in"].T
        still = np.zeros_like(d_z)  # the weights are constant
        after = self._moved(params["W"].T, G, states[:1], R, d_z, still, states[1:])
        return np.vstack([trace.end, after])

    def _moved(
        self,
        W_T: Array,
        gates: Array,
        h: Array,
        R: Array,
        d_z: Array,
        d_recurrent: Array,
        d_h: Array,
    ) -> Array:
        """Return the differences of the state after a step, from those of the state before it, d_h.

        `gates`, h and R are those of the step, as in a trace; `d_z` and `d_recurrent` are the
        differences of the projected inputs and, at constant h, of the recurrent products.
        """
        n = self.n_units
        reset, update, candidate = np.split(gates, 3, axis=1)
        moved = d_recurrent.copy()
        moved[:, : 2 * n] += d_h @ W_T[:, : 2 * n]
        z_r, z_u, z_c = np.split(d_z, 3, axis=1)
        d_reset = reset * (1 - reset) * (z_r + moved[:, :n])
        d_update = update * (1 - update) * (z_u + moved[:, n : 2 * n])
        if self.reset_after:
            through = d_reset * R + reset * (moved[:, 2 * n :] + d_h @ W_T[:, 2 * n :])
        else:
            through = moved[:, 2 * n :] + (d_reset * h + reset * d_h) @ W_T[:, 2 * n :]
        d_candidate = (1 - candidate**2) * (z_c + through)
        return update * d_h + d_update * (h - candidate) + (1 - update) * d_candidate

    def torch_layer(self) -> TorchLayer:
        """Return torch.nn.GRU, whose second bias corresponds to the candidate's bias_recurrent."""
        if not self.reset_after:
            self._raise_no_torch(
                "reset_after=False: torch.nn.GRU applies the reset gate after the recurrent "
                'product. Train with reset_after=True (cell="gru")'
            )
        return TorchLayer("GRU", {}, _to_torch, _from_torch)


def _to_torch(params: Params) -> Params:
    return torch_arrays(params, params["bias_recurrent"])


def _from_torch(arrays: Params) -> Params:
    candidate = slice(2 * len(arrays["bias_ih_l0"]) // 3, None)
    params = from_torch_arrays(arrays)
    params["bias"][candidate] = arrays["bias_ih_l0"][candidate]
    return {**params, "bias_recurrent": np.array(arrays["bias_hh_l0"][candidate])}


@compiled_as("gru_forward")
def gru_forward(H: Array, G: Array, R: Array, W: Array, bias_recurrent: Array) -> None:
    """Run the GRU over all steps; the order of the gates is reset, update, candidate.

    H, (n_steps + 1, n_sequences, n_units), has the initial states in its first row; the others are
    written. G, (n_steps, n_sequences, 3 n_units), holds the projected inputs and is replaced by the
    gates and the candidate. R, (n_steps, n_sequences, n_units), receives what the reset gate
    multiplies, W h + bias_recurrent, where W is (3 n_units, n_units).
    """
    n = H.shape[2]
    W_T = np.ascontiguousarray(W.T)
    room = np.empty_like(G[0])
    for t in range(len(G)):
        z = G[t]
        np.matmul(H[t], W_T, out=room)
        gates = z[:, : 2 * n]
        gates += room[:, : 2 * n]
        expit(gates, out=gates)
        reset, update, candidate = (z[:, k * n : (k + 1) * n] for k in range(3))
        np.add(room[:, 2 * n :], bias_recurrent, out=R[t])
        candidate += reset * R[t]
        np.tanh(candidate, out=candidate)
        h = H[t + 1]
        np.subtract(H[t], candidate, out=h)
        h *= update
        h += candidate


@compiled_as("gru_backward")
def gru_backward(D: Array, G: Array, H: Array, R: Array, W: Array) -> Array:
    """Back-propagate through the GRU, and return the gradient with respect to the initial states.

    D, (n_steps, n_sequences, n_units), is the direct gradient with respect to each state, and is
    overwritten. The others are the arrays after `gru_forward`: G is replaced by the gradient with
    respect to the pre-activations, R by the gradient with respect to W h + bias_recurrent.
    """
    n = D.shape[2]
    dh = np.zeros_like(D[0])
    W_gates, W_candidate = W[: 2 * n], W[2 * n :]
    for t in range(len(D) - 1, -1, -1):
        reset, update, candidate = (G[t][:, k * n : (k + 1) * n] for k in range(3))
        d = D[t]
        d += dh
        d_candidate = d * (1 - update) * (1 - candidate * candidate)
        d_update = d * (H[t] - candidate) * update * (1 - update)
        d_reset = d_candidate * R[t] * reset * (1 - reset)
        np.multiply(d, update, out=dh)
        np.multiply(d_candidate, reset, out=R[t])
        reset[:], update[:], candidate[:] = d_reset, d_update, d_candidate
        dh += G[t][:, : 2 * n] @ W_gates
        dh += R[t] @ W_candidate
    return dh


def _forward_within(H: Array, G: Array, S: Array, W: Array) -> None:
    """Run the GRU whose reset gate is within the product; S receives the gated states r h.

    The arrays are those of `gru_forward`, with S in the place of R.
    """
    n = H.shape[2]
    W_gates, W_candidate = (np.ascontiguousarray(part.T) for part in (W[: 2 * n], W[2 * n :]))
    for t in range(len(G)):
        gates, candidate = G[t][:, : 2 * n], G[t][:, 2 * n :]
        gates += H[t] @ W_gates
        expit(gates, out=gates)
        reset, update = gates[:, :n], gates[:, n:]
        np.multiply(reset, H[t], out=S[t])
        candidate += S[t] @ W_candidate
        np.tanh(candidate, out=candidate)
        H[t + 1] = update * (H[t] - candidate) + candidate


def _backward_within(D: Array, G: Array, H: Array, S: Array, W: Array) -> Array:
    """Back-propagate through the GRU of `_forward_within`; G is replaced by gradients, S kept.

    The arrays are those of `gru_backward`. The gradient with respect to the initial state is
    returned.
    """
    n = D.shape[2]
    dh = np.zeros_like(D[0])
    W_gates, W_candidate = W[: 2 * n], W[2 * n :]
    for t in range(len(D) - 1, -1, -1):
        reset, update, candidate = (G[t][:, k * n : (k + 1) * n] for k in range(3))
        d = D[t]
        d += dh
        d_candidate = d * (1 - update) * (1 - candidate * candidate)
        d_gated = d_candidate @ W_candidate
        d_update = d * (H[t] - candidate) * update * (1 - update)
        dh = d * update + d_gated * reset
        d_reset = d_gated * H[t] * reset * (1 - reset)
        reset[:], update[:], candidate[:] = d_reset, d_update, d_candidate
        dh += G[t][:, : 2 * n] @ W_gates
    return dh
