"""The gated feedback network: connections between all layers, each with one global gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_choice, check_count
from reservoir.training.cells.cell import Cell, PartFit, Trace, Weight
from reservoir.training.cells.cell_parts import as_rows, ends_of, enter, project, states_at
from reservoir.training.cells.gru import GRUCell
from reservoir.training.cells.lstm import LSTMCell
from reservoir.training.cells.simple import SimpleCell
from reservoir.training.cells.stacked_cell import StackedCell
from reservoir.training.params import Params

# ---------------------------------------------------------------------- units of the layers


class _Step(NamedTuple):
    """Record of one step of a layer.

    `gates` (n_sequences, g n_units) contains the values of the units' gates and of the candidate.
    `before` and `after` (n_sequences, n_units) are the memory before and after the step, which is
    the output except for an LSTM. `recurrent` is the vector that the reset gate of a GRU
    multiplies, and `shares` (n_sequences, n_layers) contains the global gates.
    """

    gates: Array
    before: Array
    after: Array
    recurrent: Array
    shares: Array = np.empty(0)  # set by the layer


class _Kind(NamedTuple):
    """A kind of unit: the equations of a step and of its back-propagation.

    There are `n_gates` blocks of pre-activations; `candidate` is the index of the candidate's
    block. ``forward(z, recurrent, before) -> (output, step)`` receives the projected input from
    below, the input from the previous step and the memory. ``backward(step, d, d_memory) -> (d_z,
    d_recurrent, d_before)`` receives the gradients with respect to the output and the memory.
    """

    cell: Callable[[int], Cell]
    n_gates: int
    candidate: int
    forward: Callable[[Array, Array, Array], tuple[Array, _Step]]
    backward: Callable[[_Step, Array, Array], tuple[Array, Array, Array]]


def _blocks(A: Array, n_gates: int) -> list[Array]:
    return np.split(A, n_gates, axis=-1)


def _rnn_forward(z: Array, recurrent: Array, before: Array) -> tuple[Array, _Step]:
    h = np.tanh(z + recurrent)
    return h, _Step(h, before, h, recurrent)


def _rnn_backward(step: _Step, d: Array, d_memory: Array) -> tuple[Array, Array, Array]:
    d_z = (d + d_memory) * (1 - step.gates**2)
    return d_z, d_z, np.zeros_like(d)


def _gru_forward(z: Array, recurrent: Array, before: Array) -> tuple[Array, _Step]:
    n = z.shape[1] // 3
    gates = expit(z[:, : 2 * n] + recurrent[:, : 2 * n])
    candidate = np.tanh(z[:, 2 * n :] + gates[:, :n] * recurrent[:, 2 * n :])
    h = candidate + gates[:, n:] * (before - candidate)
    return h, _Step(np.hstack([gates, candidate]), before, h, recurrent[:, 2 * n :])


def _gru_backward(step: _Step, d: Array, d_memory: Array) -> tuple[Array, Array, Array]:
    reset, update, candidate = _blocks(step.gates, 3)
    d = d + d_memory
    d_candidate = d * (1 - update) * (1 - candidate**2)
    d_reset = d_candidate * step.recurrent * reset * (1 - reset)
    d_gates = np.hstack([d_reset, d * (step.before - candidate) * update * (1 - update)])
    d_z = np.hstack([d_gates, d_candidate])
    return d_z, np.hstack([d_gates, d_candidate * reset]), d * update


def _lstm_forward(z: Array, recurrent: Array, before: Array) -> tuple[Array, _Step]:
    gates = z + recurrent
    i, f, g, o = _blocks(gates, 4)
    for gate in (i, f, o):
        expit(gate, out=gate)
    np.tanh(g, out=g)
    c = f * before + i * g
    return o * np.tanh(c), _Step(gates, before, c, recurrent)


def _lstm_backward(step: _Step, d: Array, d_memory: Array) -> tuple[Array, Array, Array]:
    i, f, g, o = _blocks(step.gates, 4)
    t = np.tanh(step.after)
    dc = d_memory + d * o * (1 - t**2)
    d_i, d_f = dc * g * i * (1 - i), dc * step.before * f * (1 - f)
    d_z = np.hstack([d_i, d_f, dc * i * (1 - g**2), d * t * o * (1 - o)])
    return d_z, d_z, dc * f


_KINDS = {
    "rnn": _Kind(SimpleCell, 1, 0, _rnn_forward, _rnn_backward),
    "lstm": _Kind(LSTMCell, 4, 2, _lstm_forward, _lstm_backward),
    "gru": _Kind(GRUCell, 3, 2, _gru_forward, _gru_backward),
}


# ---------------------------------------------------------------------- the cell


@saved
@dataclass(frozen=True)
class GatedFeedbackCell(Cell):
    """Stacked layers, each of which receives the states of all layers through global gates.

    The candidate of layer j contains ``sum over i of g_ij U_ij h_i(t-1)`` instead of
    ``U h_j(t-1)``, with a scalar gate ``g_ij = logistic(w_ij x_j(t) + u_ij h*(t-1))`` for each pair
    of layers. Here, x_j is the input of layer j (the network's input, or the state of the layer
    below at the same step), and h* is the concatenation of the states of all layers. The gates of
    LSTM or GRU units receive only the states of their layer. The readout receives the state of the
    topmost layer.

    The state of the cell is [h of layer 0, h of layer 1, ...], followed by [c of layer 0, ...] for
    LSTM units.

    Parameters
    ----------
    n_units : int
        Number of units per layer.
    n_layers : int, default=2
        Number of layers.
    kind : {"rnn", "lstm", "gru"}, default="rnn"
        Kind of unit: tanh units, or gated units with the equations of `LSTMCell` (without
        peepholes) or `GRUCell`.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its range.

    Notes
    -----
    For layer j, ``j.W_in``, ``j.W`` and ``j.bias`` are the same as for a single cell of its kind,
    and the candidate's block of ``j.W`` is U_jj. ``j.W_layers`` contains the matrices U_ij of the
    other layers i as blocks of rows. Row i of ``j.W_gates`` is w_ij, and row i of
    ``j.W_gates_layers`` is u_ij. The loops run in NumPy and are not compiled.

    References
    ----------
    J. Chung, C. Gulcehre, K. Cho and Y. Bengio, "Gated feedback recurrent neural networks", ICML
    2015, section 3.

    Examples
    --------
    >>> from reservoir.training.cells import GatedFeedbackCell
    >>> cell = GatedFeedbackCell(5, n_layers=2, kind="lstm")
    >>> cell.width, cell.state_size
    (5, 20)
    >>> shapes = cell.shapes(n_features=3)
    >>> shapes["0.W"], shapes["0.W_layers"], shapes["0.W_gates"], shapes["0.W_gates_layers"]
    ((20, 5), (5, 5), (2, 3), (2, 10))
    """

    n_units: int
    n_layers: int = 2
    kind: str = "rnn"

    def __post_init__(self) -> None:
        check_count("n_units", self.n_units)
        check_count("n_layers", self.n_layers)
        check_choice("kind", self.kind, _KINDS)

    @property
    def _n_all(self) -> int:
        return self.n_layers * self.n_units

    @property
    def state_size(self) -> int:
        """Number of outputs of all layers, plus the number of cell values c for LSTM units."""
        return self._n_all * (2 if self.kind == "lstm" else 1)

    def weights(self, n_features: int) -> dict[str, Weight]:
        """Return the weights' descriptions by name, for inputs of `n_features` columns."""
        weights = {}
        for j in range(self.n_layers):
            below = self.n_units if j else n_features
            weights.update({f"{j}.{name}": w for name, w in self._layer_weights(below).items()})
        return weights

    def _layer_weights(self, n_features: int) -> dict[str, Weight]:
        n, m, g = self.n_units, self.n_layers, _KINDS[self.kind].n_gates
        weights = {
            "W_in": Weight((g * n, n_features), "input", g),
            "W": Weight((g * n, n), "recurrent", g),
            "bias": Weight((g * n,), "bias", g, forget=1 if self.kind == "lstm" else None),
            "W_gates": Weight((m, n_features), "input"),
            "W_gates_layers": Weight((m, m * n), "input"),
        }
        if self.kind == "gru":
            weights["bias_recurrent"] = Weight((n,), "bias")
        if m > 1:
            weights["W_layers"] = Weight(((m - 1) * n, n), "recurrent", m - 1)
        return weights

    def weights_from_data(self, fit: PartFit, inputs: Sequence[Array]) -> Params:
        """Return weights with the states of a stack of single cells.

        For `fit` and `inputs` see `Cell.weights_from_data`.

        Global gates without weights are 1/2, which the candidates' recurrent weights make up for.
        """
        n, kind = self.n_units, _KINDS[self.kind]
        params = fit(StackedCell((kind.cell(n),) * self.n_layers), inputs)
        n_features = params["0.W_in"].shape[1]
        for name, shape in self.shapes(n_features).items():
            params.setdefault(name, np.zeros(shape))
        rows = slice(kind.candidate * n, (kind.candidate + 1) * n)
        for j in range(self.n_layers):
            params[f"{j}.W"][rows] *= 2
        return params

    def _layers(self, params: Params) -> list[_Layer]:
        split: list[Params] = [{} for _ in range(self.n_layers)]
        for name, array in params.items():
            layer, dot, own = name.partition(".")
            if dot:  # names of the readout's weights have no dot
                split[int(layer)][own] = array
        return [_Layer(j, self.n_units, _KINDS[self.kind], own) for j, own in enumerate(split)]

    def forward(
        self, params: Params, X: Array, state: Array | None = None, lengths: Array | None = None
    ) -> Trace:
        """Run over inputs X with weights `params`; for `state` and `lengths` see `Cell.forward`."""
        layers, start, n_all = self._layers(params), self._start(X, state), self._n_all
        lowest = layers[0].project(X)
        H = np.empty((len(X) + 1, X.shape[1], n_all), lowest.dtype)
        C = np.empty_like(H) if self.kind == "lstm" else H
        H[0], C[0] = start[:, :n_all], start[:, -n_all:]
        steps: list[list[_Step]] = [[] for _ in layers]
        for t in range(len(X)):
            below, z = X[t], lowest[t]
            for layer, taken in zip(layers, steps, strict=True):
                z = layer.project(below[None])[0] if layer.place else z
                below, step = layer.forward(z, below, H[t], C[t, :, layer.units])
                H[t + 1, :, layer.units], C[t + 1, :, layer.units] = below, step.after
                taken.append(step)
        ends = ends_of(X, lengths)
        end = np.hstack([states_at(A, ends) for A in ((H, C) if self.kind == "lstm" else (H,))])
        return Trace(X, H[:, :, layers[-1].units], end, ends, kept={"H": H, "steps": steps})

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
        (H, steps), layers, n_all = trace.take("H", "steps"), self._layers(params), self._n_all
        # direct gradients with respect to the outputs of all layers, D, and their memories, E
        D, E = np.zeros_like(H[1:]), np.zeros_like(H[1:])
        D[:, :, layers[-1].units] = dH
        if d_end is not None:
            enter(D, trace.lengths, d_end[:, :n_all])
            if self.kind == "lstm":
                enter(E, trace.lengths, d_end[:, n_all:])
        d_before, d_memory = (np.zeros((H.shape[1], n_all), H.dtype) for _ in range(2))
        d_X = np.empty(trace.inputs.shape, H.dtype)
        slopes: list[list[_Slopes]] = [[] for _ in layers]
        for t in range(len(D) - 1, -1, -1):
            D[t] += d_before
            d_memory += E[t]
            d_before[:] = 0.0
            for layer in reversed(layers):  # top first: it adds to the gradient of the layer below
                taken = steps[layer.place][t]
                slope = layer.backward(taken, D[t], d_memory, H[t], d_before)
                if layer.place:
                    D[t][:, layers[layer.place - 1].units] += layer.at_inputs(slope)
                elif inputs:
                    d_X[t] = layer.at_inputs(slope)
                slopes[layer.place].append(slope)
        grads: Params = {}
        for layer, own, taken in zip(layers, slopes, steps, strict=True):
            j = layer.place
            below = H[1:, :, layers[j - 1].units] if j else trace.inputs
            grads.update(layer.gradients(own[::-1], taken, below, H[:-1]))
        parts = [d_before, d_memory]
        d_state = np.hstack(parts) if self.kind == "lstm" else d_before + d_memory
        return grads, d_state, d_X if inputs else None


class _Slopes(NamedTuple):
    """Gradients of one step for the pre-activations, their recurrent parts and the global gates."""

    z: Array
    recurrent: Array
    shares: Array


class _Layer:
    """One layer of the cell: its weights by name, and the forward and backward step."""

    def __init__(self, place: int, n_units: int, kind: _Kind, params: Params) -> None:
        self.place, self.n, self.kind, self.params = place, n_units, kind, params
        self.units = slice(place * n_units, (place + 1) * n_units)
        first = kind.candidate * n_units
        self.candidate = slice(first, first + n_units)
        # U: U_ij of all layers i, concatenated; W: recurrent weights of the units' gates only
        n_others = len(params["W_gates"]) - 1
        others = np.split(params["W_layers"], n_others) if n_others else []
        self.U = np.hstack([*others[:place], params["W"][self.candidate], *others[place:]])
        self.W = params["W"].copy()
        self.W[self.candidate] = 0.0

    def project(self, below: Array) -> Array:
        return project(below, self.params["W_in"], self.params["bias"])

    def _mixed(self, shares: Array, before: Array) -> Array:
        """Return the states of all layers, each multiplied by its global gate."""
        return np.repeat(shares, self.n, axis=-1) * before

    def forward(self, z: Array, below: Array, before: Array, memory: Array) -> tuple[Array, _Step]:
        """Return the output and the record of a step.

        z contains the projected inputs, `below` the inputs, and `before` the states h*.
        """
        params = self.params
        shares = expit(below @ params["W_gates"].T + before @ params["W_gates_layers"].T)
        recurrent = before[:, self.units] @ self.W.T
        recurrent[:, self.candidate] = self._mixed(shares, before) @ self.U.T
        if "bias_recurrent" in params:
            recurrent[:, self.candidate] += params["bias_recurrent"]
        output, step = self.kind.forward(z, recurrent, memory)
        return output, step._replace(shares=shares)

    def backward(
        self, step: _Step, d: Array, d_memory: Array, before: Array, d_before: Array
    ) -> _Slopes:
        """Return the gradients of a step; replace `d_memory`, and add to `d_before`, in place.

        These are the gradients with respect to the memory and to the states h*.
        """
        units, n, shares = self.units, self.n, step.shares
        d_z, d_recurrent, d_memory[:, units] = self.kind.backward(
            step, d[:, units], d_memory[:, units]
        )
        d_mixed = d_recurrent[:, self.candidate] @ self.U
        d_shares = (d_mixed * before).reshape(len(d), -1, n).sum(axis=2) * shares * (1 - shares)
        d_before += self._mixed(shares, d_mixed) + d_shares @ self.params["W_gates_layers"]
        d_before[:, units] += d_recurrent @ self.W
        return _Slopes(d_z, d_recurrent, d_shares)

    def at_inputs(self, slopes: _Slopes) -> Array:
        """Return the gradient with respect to the inputs from below."""
        through_gates = slopes.shares @ self.params["W_gates"]
        return np.asarray(slopes.z @ self.params["W_in"] + through_gates)

    def gradients(
        self, slopes: list[_Slopes], steps: list[_Step], below: Array, before: Array
    ) -> Params:
        """Return the weight gradients, each computed by one product over all steps."""
        d_z, d_recurrent, d_shares = (
            as_rows(np.stack(parts)) for parts in zip(*slopes, strict=True)
        )
        seen, h = as_rows(below), as_rows(before)
        mixed = self._mixed(np.concatenate([step.shares for step in steps]), h)
        d_U = d_recurrent[:, self.candidate].T @ mixed
        grads = {
            "W_in": d_z.T @ seen,
            "W": d_recurrent.T @ h[:, self.units],
            "bias": d_z.sum(axis=0),
            "W_gates": d_shares.T @ seen,
            "W_gates_layers": d_shares.T @ h,
        }
        grads["W"][self.candidate] = d_U[:, self.units]
        blocks = np.split(d_U, len(self.params["W_gates"]), axis=1)
        if len(blocks) > 1:
            grads["W_layers"] = np.vstack(blocks[: self.place] + blocks[self.place + 1 :])
        if "bias_recurrent" in self.params:
            grads["bias_recurrent"] = d_recurrent[:, self.candidate].sum(axis=0)
        return {f"{self.place}.{name}": array for name, array in grads.items()}
