"""Real-time recurrent learning: the exact gradient, carried forward with the state.

Back-propagation has to wait for the end of a sequence. Here, the sensitivities S of the state,
which are its derivatives with respect to each weight, are updated along with the state [1]_. With
z = W h + W_in x + bias and leak a, ::

    S <- (1 - a) S + a f'(z) (W S + [the direct part: x, h or 1 in row i for weights of unit i])

A step costs n_units^3 (n_units + n_features + 1) operations, regardless of the length of the
series. This suits small networks that are trained online.

References
----------
.. [1] R. J. Williams and D. Zipser, "A learning algorithm for continually running fully recurrent
   neural networks", Neural Computation 1, 1989.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir._validation import room_for
from reservoir.training.bptt import Network
from reservoir.training.cells import SimpleCell
from reservoir.training.codes import columns_of
from reservoir.training.losses import loss_and_slope
from reservoir.training.params import Params

__all__ = ["Sensitivities", "rtrl_gradient", "rtrl_start", "rtrl_step"]


class Sensitivities(NamedTuple):
    """The state of a network, and its derivatives with respect to the recurrent layer's weights.

    Parameters
    ----------
    state : array of shape (n_units,)
    derivatives : array of shape (n_units, n_units, n_features + n_units + 1)
        ``[i, j, k]`` is the derivative of state i with respect to weight k of unit j, where the
        weights of a unit are its row of W_in, its row of W, and its bias.

    Examples
    --------
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.rtrl import rtrl_start
    >>> rtrl_start(Network(SimpleCell(3), 2, 1)).derivatives.shape
    (3, 3, 6)
    """

    state: Array
    derivatives: Array


def rtrl_start(network: Network, state: Array | None = None) -> Sensitivities:
    """Return the initial state with zero sensitivities, as it does not depend on the weights.

    Parameters
    ----------
    network : Network
        Its cell must be a `SimpleCell`, with or without a leak, or equivalent to one
        (`Cell.as_simple`).
    state : array of shape (n_units,), optional
        Initial state; zeros by default.

    Returns
    -------
    Sensitivities

    Raises
    ------
    ValueError
        If the cell is not equivalent to a `SimpleCell`.

    Examples
    --------
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.rtrl import rtrl_start
    >>> rtrl_start(Network(SimpleCell(2), 1, 1)).state
    array([0., 0.])
    """
    n, p = _simple(network).n_units, network.n_features
    state = np.zeros(n) if state is None else np.asarray(state)
    size = float(n) * n * (p + n + 1)
    what = f"The sensitivities of n_units={n} states to {n} x {p + n + 1} weights"
    with room_for(what, size * state.dtype.itemsize, "Use fewer units, or truncated gradients."):
        return Sensitivities(state, np.zeros((n, n, p + n + 1), state.dtype))


def _simple(network: Network) -> SimpleCell:
    cell = network.cell.as_simple()
    if cell is None:
        raise ValueError(
            "Real-time recurrent learning needs a SimpleCell; got "
            f"{type(network.cell).__name__}. Use truncated back-propagation."
        )
    return cell


def rtrl_step(
    network: Network, params: Params, memory: Sensitivities, x: Array, y: Array | None = None
) -> tuple[float, Params, Sensitivities]:
    """Run the network for one step; return the loss, its gradient, and the new sensitivities.

    Parameters
    ----------
    network : Network
    params : dict of arrays
    memory : Sensitivities
        The result of `rtrl_start`, or of the previous step. If the weights have changed since then,
        the gradient is an approximation, which is accurate for slowly changing weights.
    x : array of shape (n_features,)
        The input of this step.
    y : array of shape (n_outputs,), optional
        The target of this step. Without it, the loss and the gradient are 0.

    Returns
    -------
    loss : float
    grads : dict of arrays
    memory : Sensitivities

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.rtrl import rtrl_start, rtrl_step
    >>> network = Network(SimpleCell(1), 1, 1)
    >>> weights = {name: np.ones(shape) for name, shape in network.shapes().items()}
    >>> loss, grads, memory = rtrl_step(
    ...     network, weights, rtrl_start(network), np.zeros(1), np.ones(1))
    >>> round(loss, 4), grads["bias"].round(4)
    (0.58, array([0.6397]))
    """
    memory = _advance(network, params, memory, x)
    grads = {name: np.zeros_like(params[name]) for name in network.shapes()}
    if y is None:
        return 0.0, grads, memory
    h = memory.state
    features = np.concatenate([h, x]) if network.include_input else h
    z = params["coef"] @ features + params["intercept"]
    loss, slopes = loss_and_slope(z[None], np.asarray(y)[None], network.output, network.loss)
    d = slopes[0]
    n, p = len(h), network.n_features
    d_h = d @ params["coef"][:, :n]
    by_unit = (d_h @ memory.derivatives.reshape(n, -1)).reshape(n, -1)
    layer = _simple(network).layer()
    grads[layer.inputs], grads[layer.recurrent] = by_unit[:, :p], by_unit[:, p:-1]
    grads[layer.bias] = by_unit[:, -1]
    grads["coef"], grads["intercept"] = np.outer(d, features), d
    return loss, grads, memory


def _advance(network: Network, params: Params, memory: Sensitivities, x: Array) -> Sensitivities:
    h, S = memory
    cell = _simple(network)
    trace = cell.forward(params, np.asarray(x)[None, None], h[None])
    slopes = cell.slopes(trace)[0, 0]
    n = len(h)
    new = (params[cell.layer().recurrent] @ S.reshape(n, -1)).reshape(S.shape)
    units = np.arange(n)
    x = columns_of(np.asarray(x)[None], network.n_features)[0]
    new[units, units] += np.concatenate([x, h, np.ones(1, h.dtype)])
    new *= slopes[:, None, None]
    leak = cell.leaks(h.dtype)
    if leak is not None:
        new += (1 - leak)[:, None, None] * S
    return Sensitivities(trace.end[0], new)


def rtrl_gradient(
    network: Network, params: Params, X: Array, Y: Array, memory: Sensitivities | None = None
) -> tuple[float, Params, Sensitivities]:
    """Return the mean loss over a series, and the same gradient as back-propagation.

    Parameters
    ----------
    network : Network
    params : dict of arrays
    X : array of shape (n_steps, n_features)
    Y : array of shape (n_steps, n_outputs)
    memory : Sensitivities, optional
        Initial state and sensitivities; by default, zeros (`rtrl_start`).

    Returns
    -------
    loss : float
    grads : dict of arrays
    memory : Sensitivities
        The final state and sensitivities.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, loss_and_gradient, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.rtrl import rtrl_gradient
    >>> network = Network(SimpleCell(3), 1, 1)
    >>> rng = np.random.default_rng(0)
    >>> weights = {name: rng.normal(size=shape) for name, shape in network.shapes().items()}
    >>> X, Y = rng.normal(size=(2, 30, 1))
    >>> _, forwards, _ = rtrl_gradient(network, weights, X, Y)
    >>> _, backwards, _ = loss_and_gradient(network, weights, make_batch([X], [Y]))
    >>> all(np.allclose(forwards[name], backwards[name]) for name in weights)
    True
    """
    memory = rtrl_start(network) if memory is None else memory
    total: Params = {name: np.zeros_like(params[name]) for name in network.shapes()}
    loss = 0.0
    for x, y in zip(X, Y, strict=True):
        value, grads, memory = rtrl_step(network, params, memory, x, y)
        loss += value / len(X)
        for name, grad in grads.items():
            total[name] += grad / len(X)
    return loss, total, memory
