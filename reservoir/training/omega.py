r"""Pascanu's regulariser, which keeps the norm of gradients constant in back-propagation.

Let :math:`\delta_t = dL/dh_t` be the gradient with respect to the state of step t, and
:math:`J_t = \partial h_t / \partial h_{t-1}` the step Jacobian. The penalty

.. math:: \Omega = \sum_t \Bigl( \frac{\lVert J_t' \delta_t \rVert}
   {\lVert \delta_t \rVert} - 1 \Bigr)^2

is added to the loss [1]_. It preserves the norm only in the direction of the error, while
`reservoir.training.gradient_control` preserves it in all directions.

References
----------
.. [1] R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural
   networks", ICML 2013, section 3.3, eqs. (9) and (10); Galvan (2015), eqs. (2.17) and (2.18).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_number, check_switch
from reservoir.training.bptt import Batch, Network, forward, through_readout
from reservoir.training.cells import Cell, SimpleCell, Trace, curvature
from reservoir.training.controls import Control
from reservoir.training.losses import loss_and_slope
from reservoir.training.params import Params

__all__ = ["Omega", "omega_gradient"]

_STEP = 1e-5  # relative step of the scores for second derivatives of the loss


@saved
@dataclass(frozen=True)
class Omega(Control):
    """Penalty on changes of the gradient's norm from step to step.

    Parameters
    ----------
    weight : float >= 0, default=1.0
        Factor of the penalty, which is a mean over steps and sequences here, but a sum in the paper
        by Pascanu, Mikolov and Bengio (2013).
    exact : bool, default=False
        Whether to compute the full gradient of the penalty. False: the approximation of the paper,
        which treats the states and the gradients with respect to them as constants, so that only
        the recurrent weights have a gradient.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its range.

    Examples
    --------
    >>> from reservoir.training.omega import Omega
    >>> Omega(weight=0.5)
    Omega(weight=0.5, exact=False)
    """

    weight: float = 1.0
    exact: bool = False

    def __post_init__(self) -> None:
        check_number("weight", self.weight, low=0)
        check_switch("exact", self.exact)

    @property
    def idle(self) -> bool:
        """Whether the weight is 0."""
        return self.weight == 0

    @property
    def is_gradient(self) -> bool:
        """Whether `loss_and_gradient` returns the exact gradient."""
        return self.exact

    def check(self, cell: Cell) -> None:
        """Raise an error if `cell` is not simple or leaky, or lacks derivatives for `exact`."""
        simple = _simple(cell)
        if self.exact:
            simple.check_controllable()

    def loss_and_gradient(
        self,
        network: Network,
        params: Params,
        batch: Batch,
        state: Array | None,
        generator: np.random.Generator,
    ) -> tuple[float, Params, Array]:
        """Return the sum of loss and penalty, its gradient, and the final states.

        For `network`, `params`, `batch` and `state` see `Control.loss_and_gradient`; `generator`
        is not used.
        """
        return omega_gradient(network, params, batch, state, omega=self)


def _simple(cell: Cell) -> SimpleCell:
    simple = cell.as_simple()
    if simple is None:
        raise ValueError(
            f"Omega needs a simple or leaky cell; got {type(cell).__name__}. Use cell='rnn', or "
            "'leaky' without time_column, or gradient_control=0."
        )
    return simple


@dataclass(frozen=True, eq=False)
class _BackwardPass:
    """Gradients with respect to the states, and their parts passed on to the previous states.

    `slopes` a f'(z), `delta`, the gradient with respect to the states, and `back`, J' delta, which
    each step passes on, have shape (n_steps, n_sequences, n_units). `counted`, (n_steps,
    n_sequences), marks the terms of the penalty: there is none at the first step, nor where the
    gradient is zero or so small that it loses precision.
    """

    slopes: Array
    delta: Array
    back: Array
    counted: Array

    def ratios(self) -> tuple[Array, Array, Array]:
        """Return |back| / |delta|, |delta| and |back| of each step; 1 where not `counted`."""
        before, after = (
            np.where(self.counted, _norms(part), part.dtype.type(1))
            for part in (self.delta, self.back)
        )
        return after / before, before, after


def _norms(rows: Array) -> Array:
    """Return the norms along the last axis, without underflow of the squares."""
    largest = np.abs(rows).max(axis=2)
    scale = np.where(largest > 0, largest, rows.dtype.type(1))
    norms: Array = scale * np.linalg.norm(rows / scale[:, :, None], axis=2)
    return norms


def omega_gradient(
    network: Network,
    params: Params,
    batch: Batch,
    state: Array | None = None,
    *,
    omega: Omega,
) -> tuple[float, Params, Array]:
    """Return the sum of loss and penalty on a batch, its gradient, and the final states.

    Parameters
    ----------
    network : Network
        A network with a simple or leaky cell. If `omega` is exact, the activation must
        provide its curvature.
    params : dict of arrays
    batch : Batch
    state : array of shape (n_sequences, state_size), optional
        Initial state of each sequence, at which the gradient stops; zeros by default.
    omega : Omega
        The weight of the penalty, and whether to compute its exact gradient.

    Returns
    -------
    value : float
    grads : dict of arrays
    end : array of shape (n_sequences, state_size)
        The final state of each sequence.

    Raises
    ------
    ValueError
        If the cell is not a simple or leaky cell.

    Notes
    -----
    The exact gradient is propagated through the operations of the backward pass, in the order of
    time. Let p(t-1) and q(t) be the gradients of the penalty with respect to J' delta and delta of
    step t, let r be the ratio of the norms of J' delta and delta, and let s = a f'(z). Then ::

        p(t-1) = 2 (r - 1) J' delta / (|J' delta| |delta|) + q(t-1)
        q(t)   = -2 (r - 1) r delta / |delta|^2 + (1 - a) p(t-1) + s (W p(t-1))

    starting from q(0) = 0. The gradient is s delta p' with respect to W and a f''(z) delta (W p)
    with respect to the pre-activations. q is a gradient with respect to the derivatives of the loss
    with respect to the states. It is multiplied by the Hessian of the loss with respect to the
    scores, using central differences of the slope, and back-propagated through the network.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.omega import Omega, omega_gradient
    >>> network = Network(SimpleCell(1, "identity"), 1, 1)
    >>> weights = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    >>> weights["W"][:], weights["coef"][:] = 0.5, 1.0
    >>> batch = make_batch([np.zeros((3, 1))], [np.ones(1)], last=True)
    >>> value, grads, _ = omega_gradient(network, weights, batch, omega=Omega(1.0))
    >>> value, grads["W"]  # the loss is 1, the penalty (0.5 - 1)^2
    (1.25, array([[-1.]]))
    """
    cell = _simple(network.cell)
    trace, features, scores = forward(network, params, batch, state)
    value, d = loss_and_slope(scores, batch.targets, network.output, network.loss, batch.weights)
    readout, dH = through_readout(network, params, batch, features, d)
    way = _backward_pass(cell, params, trace, dH)
    layer, _, _ = cell.backward(params, trace, dH)
    grads = {**layer, **readout}
    count = int(way.counted.sum())
    if not count:
        return value, grads, trace.end
    ratio, before, after = way.ratios()
    terms = np.where(way.counted, (ratio - 1) ** 2, 0)
    value += omega.weight * float(terms.sum(dtype=np.float64)) / count
    # the gradient with respect to J' delta, and the direct one with respect to delta
    scale = ratio.dtype.type(2 * omega.weight / count)
    off = np.where(way.counted & (after > 0), scale * (ratio - 1), 0)[:, :, None]
    before, after = before[:, :, None], np.where(after > 0, after, 1)[:, :, None]
    at_back = off * (way.back / after) / before  # in this order: the squares may underflow
    if omega.exact:
        at_delta = -off * ratio[:, :, None] * (way.delta / before) / before
        more = _exact(network, cell, params, batch, trace, features, scores, way, at_back, at_delta)
    else:
        more = {cell.layer().recurrent: _outer(way.slopes * way.delta, at_back)}
    for name, part in more.items():
        grads[name] = grads[name] + part
    return value, grads, trace.end


def _backward_pass(cell: SimpleCell, params: Params, trace: Trace, dH: Array) -> _BackwardPass:
    """Back-propagate the gradient with respect to the outputs through the states."""
    W, slopes = params[cell.layer().recurrent], cell.slopes(trace)
    leak = cell.leaks(dH.dtype)
    delta, back = dH.copy(), np.zeros_like(dH)
    for t in range(len(dH) - 1, -1, -1):
        back[t] = (slopes[t] * delta[t]) @ W
        if leak is not None:
            back[t] += (1 - leak) * delta[t]
        if t:
            delta[t - 1] += back[t]
    limits = np.finfo(dH.dtype)
    counted: Array = np.abs(delta).max(axis=2) > limits.tiny / limits.eps
    counted[0] = False  # there is no state before the first step
    return _BackwardPass(slopes, delta, back, counted)


def _outer(left: Array, right: Array) -> Array:
    """Return the sum of outer products over steps and sequences."""
    return np.einsum("tbi,tbj->ij", left, right, optimize=True)


def _exact(
    network: Network,
    cell: SimpleCell,
    params: Params,
    batch: Batch,
    trace: Trace,
    features: Array,
    scores: Array,
    way: _BackwardPass,
    at_back: Array,
    at_delta: Array,
) -> Params:
    """Return the exact gradient of the penalty."""
    W, leak = params[cell.layer().recurrent], cell.leaks(at_back.dtype)
    # the backward pass is linear, so that its transpose is a recursion forwards in time
    p, q, turned = at_back.copy(), at_delta.copy(), np.zeros_like(at_back)
    for t in range(1, len(p)):
        p[t] += q[t - 1]
        turned[t] = p[t] @ W.T
        q[t] += way.slopes[t] * turned[t]
        if leak is not None:
            q[t] += (1 - leak) * p[t]
    direct = _outer(way.slopes * way.delta, p)
    assert trace.values is not None
    bends = curvature(cell.activation, trace.values)
    d_pre = (bends if leak is None else bends * leak) * way.delta * turned
    # the penalty also depends on the states through the gradient of the loss
    width = network.cell.width
    rows = q.reshape(-1, width)
    rows = rows if batch.rows is None else rows[batch.rows]
    slopes, along = _slope_and_change(network, batch, scores, rows @ params["coef"][:, :width].T)
    readout, dH = through_readout(network, params, batch, features, along)
    readout["coef"][:, :width] += slopes.T @ rows
    layer, _, _ = cell.backward(params, trace, dH, d_pre=d_pre)
    name = cell.layer().recurrent
    return {**layer, **readout, name: layer[name] + direct}


def _slope_and_change(
    network: Network, batch: Batch, scores: Array, along: Array
) -> tuple[Array, Array]:
    """Return the gradient with respect to the scores, and its derivative along a direction."""
    if not len(scores):
        return np.zeros_like(scores), np.zeros_like(along)

    def slope(z: Array) -> Array:
        weights = None if batch.weights is None else batch.weights.astype(np.float64)
        targets = batch.targets.astype(np.float64)
        return loss_and_slope(z, targets, network.output, network.loss, weights)[1]

    z, v = scores.astype(np.float64), along.astype(np.float64)
    size = float(np.abs(v).max())
    if size == 0:
        return slope(z).astype(scores.dtype), np.zeros_like(along)
    step = _STEP * max(1.0, float(np.abs(z).max())) / size
    change = (slope(z + step * v) - slope(z - step * v)) / (2 * step)
    return slope(z).astype(scores.dtype), change.astype(scores.dtype)
