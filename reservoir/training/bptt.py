"""Back-propagation through time: a network's loss on a batch of sequences, and its gradient.

For truncated back-propagation, cut the batch into chunks of steps (`Batch.chunks`), and start each
chunk from the final state of the previous one. The gradient then stops at the start of a chunk,
while the state is carried over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.cells import Cell, Trace, Weight
from reservoir.training.losses import apply_output, loss_and_slope, loss_of
from reservoir.training.params import Params

Penalty = Callable[[Params, Trace], tuple[float, Params, Array | None]]

__all__ = [
    "Batch",
    "Network",
    "forward",
    "loss_and_gradient",
    "loss_value",
    "make_batch",
    "predict",
]


@saved
@dataclass(frozen=True)
class Network:
    """A cell with a readout: ``y = f(coef [h; x] + intercept)``.

    Parameters
    ----------
    cell : Cell
        The recurrent layers, which compute the state h.
    n_features, n_outputs : int
        Numbers of input and output columns.
    output : {"identity", "tanh", "logistic", "softmax"}, default="identity"
        The output function f.
    loss : {"mse", "mae", "bce", "cross_entropy", "hinge"}, default="mse"
        The loss that is minimised.
    include_input : bool, default=False
        Whether the readout receives the input x as well as the state h.
    coded : bool, default=False
        Whether the input is a single column of integer codes of n_features symbols. Code k
        represents a one-hot row, with a 1 in column k. Cannot be combined with `include_input`.

    Examples
    --------
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> Network(SimpleCell(3), n_features=2, n_outputs=1).shapes()
    {'W_in': (3, 2), 'W': (3, 3), 'bias': (3,), 'coef': (1, 3), 'intercept': (1,)}
    """

    cell: Cell
    n_features: int
    n_outputs: int
    output: str = "identity"
    loss: str = "mse"
    include_input: bool = False
    coded: bool = False

    @property
    def n_columns(self) -> int:
        """Number of columns of the input arrays."""
        return 1 if self.coded else self.n_features

    @property
    def n_channels(self) -> int:
        """Number of input columns that have weights: all except the time column of a timed cell."""
        return self.cell.n_channels(self.n_features)

    def weights(self) -> dict[str, Weight]:
        """Return a dict from weight names to `Weight` descriptions, ending with the readout's."""
        width = self.cell.width + (self.n_channels if self.include_input else 0)
        return {
            **self.cell.weights(self.n_features),
            "coef": Weight((self.n_outputs, width), "readout"),
            "intercept": Weight((self.n_outputs,), "bias"),
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return a dict from weight names to shapes, ending with the readout's."""
        return {name: weight.shape for name, weight in self.weights().items()}

    def free_of_penalty(self) -> frozenset[str]:
        """Return the names of the weights that are not penalised: biases, intercept and decays.

        The cell marks its own in their descriptions (`reservoir.training.cells.Weight`).
        """
        return frozenset(name for name, weight in self.weights().items() if weight.free)


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences in one array, padded to the length of the longest; created by `make_batch`.

    Parameters
    ----------
    inputs : array of shape (n_steps, n_sequences, n_features)
        The input sequences, with zeros after the end of each.
    lengths : array of shape (n_sequences,)
        Number of steps of each sequence, without padding.
    targets : array of shape (n_rows, n_outputs)
        The targets of all steps that have one.
    rows : array of shape (n_rows,) or None
        Indices ``t * n_sequences + sequence`` of the steps with a target, in ascending order. None:
        every step has a target.
    weights : array of shape (n_rows,) or None
        Weight of each target in the loss. None: all weights are 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import make_batch
    >>> batch = make_batch([np.ones((3, 1)), np.ones((2, 1))], [np.ones((3, 1)), np.ones((2, 1))])
    >>> batch.inputs.shape, batch.rows  # the last step of the second sequence is padding
    ((3, 2, 1), array([0, 1, 2, 3, 4]))
    """

    inputs: Array
    lengths: Array
    targets: Array
    rows: Array | None = None
    weights: Array | None = None

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all targets."""
        return float(len(self.targets) if self.weights is None else self.weights.sum())

    def chunks(self, n_steps: int | None) -> Iterator[Batch]:
        """Cut the batch into chunks of steps, for truncated gradients.

        Parameters
        ----------
        n_steps : int or None
            Number of steps per chunk. None: one chunk with all steps.

        Yields
        ------
        Batch
            The next steps of all sequences. A chunk without targets has ``len(targets) == 0``.
        """
        total, n_sequences = self.inputs.shape[:2]
        if n_steps is None or n_steps >= total:
            yield self
            return
        for start in range(0, total, n_steps):
            stop = min(start + n_steps, total)
            inputs, lengths = (
                self.inputs[start:stop],
                np.clip(self.lengths - start, 0, stop - start),
            )
            first, last = start * n_sequences, stop * n_sequences
            rows = None
            if self.rows is not None:
                first, last = np.searchsorted(self.rows, (first, last))
                rows = self.rows[first:last] - start * n_sequences
            weights = None if self.weights is None else self.weights[first:last]
            yield Batch(inputs, lengths, self.targets[first:last], rows, weights)


def make_batch(
    inputs: Sequence[Array],
    targets: Sequence[Array],
    *,
    weights: Sequence[Array] | None = None,
    washout: int = 0,
    last: bool = False,
    dtype: Any = None,
) -> Batch:
    """Pad sequences and put them into one batch.

    Parameters
    ----------
    inputs : sequence of arrays of shape (n_steps_i, n_features)
    targets : sequence of arrays of shape (n_steps_i, n_outputs), or with `last` (n_outputs,)
    weights : sequence of arrays of shape (n_steps_i,), or with `last` of numbers, optional
        Weight of each target. Rows of weight 0 drive the network but have no target.
    washout : int, default=0
        Number of rows at the start of each sequence that have no target.
    last : bool, default=False
        Whether only the last step of a sequence has a target.
    dtype : dtype, optional
        The dtype of targets and weights; by default that of the inputs.

    Returns
    -------
    Batch

    Raises
    ------
    ValueError
        If the shapes are inconsistent.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import make_batch
    >>> batch = make_batch([np.ones((3, 1)), np.ones((2, 1))], [np.ones(1), np.zeros(1)], last=True)
    >>> batch.rows, batch.targets.ravel()
    (array([3, 4]), array([0., 1.]))
    """
    _check_pairs(inputs, targets, last)
    lengths = np.array([len(X) for X in inputs])
    n_steps, n = int(lengths.max()), len(inputs)
    padded = np.zeros((n_steps, n, inputs[0].shape[1]), inputs[0].dtype)
    for i, X in enumerate(inputs):
        padded[: len(X), i] = X
    # steps with a target, sequence by sequence, as indices of the flattened (n_steps, n_sequences)
    if last:
        rows = (lengths - 1) * n + np.arange(n)
        values = np.concatenate([np.reshape(Y, (1, -1)) for Y in targets])
    else:
        steps = [np.arange(washout, length) for length in lengths]
        rows = np.concatenate([at * n + i for i, at in enumerate(steps)])
        values = np.concatenate([Y[washout:] for Y in targets])
    if dtype is None:
        dtype = padded.dtype if padded.dtype.kind == "f" else np.dtype(np.float64)
    values = values.astype(dtype, copy=False)
    # in the order of time, without rows of weight 0
    order, row_weights = np.argsort(rows), None
    if weights is not None:
        each = np.concatenate([np.atleast_1d(w) if last else w[washout:] for w in weights])
        order = order[each.astype(dtype)[order] > 0]
        row_weights = each.astype(dtype)[order]
        row_weights = None if (row_weights == 1).all() else row_weights
    targeted = None if len(order) == n_steps * n else rows[order]
    return Batch(padded, lengths, np.ascontiguousarray(values[order]), targeted, row_weights)


def _check_pairs(inputs: Sequence[Array], targets: Sequence[Array], last: bool) -> None:
    if len(inputs) != len(targets) or not len(inputs):
        raise ValueError(
            f"There are {len(inputs)} sequences of inputs, but {len(targets)} of targets. "
            "Both need the same number, at least 1."
        )
    for i, (X, Y) in enumerate(zip(inputs, targets, strict=True)):
        one = np.ndim(Y) < 2 or (np.ndim(Y) == 2 and len(Y) == 1)
        rows = one if last else (np.ndim(Y) == 2 and len(Y) == len(X))
        if np.ndim(X) != 2 or not rows:
            wanted = "(n_outputs,)" if last else "(n_steps, n_outputs)"
            raise ValueError(
                f"The inputs of sequence {i} must have shape (n_steps, n_features), and its "
                f"targets {wanted}; got {np.shape(X)} and {np.shape(Y)}. Pass two lists, with one "
                "array per sequence."
            )


def _features(network: Network, trace: Trace, rows: Array | None) -> Array:
    """Return the readout's features in the given rows, or in all rows if `rows` is None."""
    H = trace.states[1:].reshape(-1, network.cell.width)
    H = H if rows is None else H[rows]
    if not network.include_input:
        return H
    X = network.cell.channels(trace.inputs).reshape(-1, network.n_channels)
    return np.hstack([H, X if rows is None else X[rows]], dtype=H.dtype)


def forward(
    network: Network, params: Params, batch: Batch, state: Array | None = None
) -> tuple[Trace, Array, Array]:
    """Run a network over a batch.

    Parameters
    ----------
    network : Network
    params : dict of arrays
    batch : Batch
    state : array of shape (n_sequences, state_size), optional
        Initial state of each sequence; zeros by default.

    Returns
    -------
    trace : Trace
        The states of all steps.
    features : array of shape (n_rows, width [+ n_features])
        The readout's features at the steps with a target.
    scores : array of shape (n_rows, n_outputs)
        The readout's values at these steps, before the output function.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, forward, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> network = Network(SimpleCell(1), 1, 1)
    >>> weights = {name: np.ones(shape) for name, shape in network.shapes().items()}
    >>> batch = make_batch([np.zeros((1, 1))], [np.zeros((1, 1))])
    >>> forward(network, weights, batch)[2].round(3)  # 1 + tanh(1)
    array([[1.762]])
    """
    trace = network.cell.forward(params, batch.inputs, state, batch.lengths)
    features = _features(network, trace, batch.rows)
    scores = features @ params["coef"].T
    scores += params["intercept"]
    return trace, features, scores


def loss_value(
    network: Network, params: Params, batch: Batch, state: Array | None = None
) -> tuple[float, Array]:
    """Return the loss on a batch, and the final state of each sequence.

    Parameters
    ----------
    network, params, batch, state
        As in `forward`.

    Returns
    -------
    loss : float
        0 if the batch has no target.
    end : array of shape (n_sequences, state_size)

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, loss_value, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> network = Network(SimpleCell(1), 1, 1)
    >>> weights = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    >>> loss_value(network, weights, make_batch([np.zeros((2, 1))], [np.ones((2, 1))]))[0]
    1.0
    """
    trace, _, scores = forward(network, params, batch, state)
    if len(scores) == 0:
        return 0.0, trace.end
    return loss_of(scores, batch.targets, network.output, network.loss, batch.weights), trace.end


def loss_and_gradient(
    network: Network,
    params: Params,
    batch: Batch,
    state: Array | None = None,
    *,
    control: Penalty | None = None,
) -> tuple[float, Params, Array]:
    """Return the loss on a batch, its gradient, and the final state of each sequence.

    Parameters
    ----------
    network, params, batch, state
        As in `forward`. The gradient stops at `state`.
    control : callable, optional
        A penalty on the states, ``control(params, trace) -> (value, grads, d_pre)``, such as
        `reservoir.training.gradient_control.control_penalty`. Its value is added to the loss.

    Returns
    -------
    loss : float
    grads : dict of arrays
    end : array of shape (n_sequences, state_size)

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, loss_and_gradient, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> network = Network(SimpleCell(1), 1, 1)
    >>> weights = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    >>> batch = make_batch([np.zeros((2, 1))], [np.ones((2, 1))])
    >>> loss, grads, end = loss_and_gradient(network, weights, batch)
    >>> loss, grads["intercept"]
    (1.0, array([-2.]))
    """
    trace, features, scores = forward(network, params, batch, state)
    value, d = loss_and_slope(scores, batch.targets, network.output, network.loss, batch.weights)
    readout, dH = through_readout(network, params, batch, features, d)
    extra: Params = {}
    d_pre = None
    if control is not None:
        penalty, extra, d_pre = control(params, trace)
        value += penalty
    grads, _, _ = network.cell.backward(params, trace, dH, d_pre=d_pre)
    for name, part in extra.items():
        grads[name] = grads[name] + part
    return value, {**grads, **readout}, trace.end


def through_readout(
    network: Network, params: Params, batch: Batch, features: Array, d: Array
) -> tuple[Params, Array]:
    """Back-propagate `d`, the gradient with respect to the scores, (n_rows, n_outputs).

    `features`, (n_rows, width [+ n_features]), are those that `forward` returns. The results are
    the gradients of "coef" and "intercept" by name, and the gradient with respect to the states,
    (n_steps, n_sequences, width), which is zero at steps without a target.
    """
    readout = {"coef": d.T @ features, "intercept": d.sum(axis=0)}
    width, sides = network.cell.width, batch.inputs.shape[:2]
    dH = d @ params["coef"][:, :width]
    if batch.rows is not None:
        scattered = np.zeros((sides[0] * sides[1], width), dH.dtype)
        scattered[batch.rows] = dH
        dH = scattered
    return readout, dH.reshape(*sides, width)


def predict(
    network: Network,
    params: Params,
    X: Array,
    state: Array | None = None,
    lengths: Array | None = None,
) -> tuple[Array, Array]:
    """Return a network's outputs at every step of the inputs.

    Parameters
    ----------
    network : Network
    params : dict of arrays
    X : array of shape (n_steps, n_sequences, n_features)
    state : array of shape (n_sequences, state_size), optional
        Initial state of each sequence; zeros by default.
    lengths : array of shape (n_sequences,), optional
        Number of steps of each sequence, if some are shorter than n_steps.

    Returns
    -------
    outputs : array of shape (n_steps, n_sequences, n_outputs)
    end : array of shape (n_sequences, state_size)
        The final state of each sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, predict
    >>> from reservoir.training.cells import SimpleCell
    >>> network = Network(SimpleCell(1), 1, 1)
    >>> weights = {name: np.ones(shape) for name, shape in network.shapes().items()}
    >>> predict(network, weights, np.zeros((2, 1, 1)))[0].ravel().round(3)
    array([1.762, 1.943])
    """
    trace = network.cell.forward(params, X, state, lengths)
    scores = _features(network, trace, None) @ params["coef"].T
    scores += params["intercept"]
    outputs = apply_output(scores, network.output)
    return outputs.reshape(*X.shape[:2], -1), trace.end
