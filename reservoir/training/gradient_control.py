"""Gradient control: a penalty that keeps singular values of the step Jacobians near 1.

The gradient over k steps contains a product of k step Jacobians, J(t) = dh(t) / dh(t-1). A penalty
on their singular values, which is added to the loss, prevents the product from vanishing or
exploding. `jacobian_product_norms` measures the norm of the product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_count, check_number
from reservoir.training.bptt import Batch, Network, loss_and_gradient
from reservoir.training.cells import Cell, Trace
from reservoir.training.controls import Control
from reservoir.training.params import Params

__all__ = ["GradientControl", "control_penalty", "jacobian_product_norms", "step_jacobians"]

_KINDS = ("both", "interval", "rms")
_STEPS_PER_SAMPLE = 400  # an SVD of 64 x 64 costs as much as 50 to 100 forward and backward steps


@saved
@dataclass(frozen=True)
class GradientControl(Control):
    """Penalty that keeps the singular values of the step Jacobians J(t) = dh(t) / dh(t-1) near 1.

    There are two penalties [1]_. They are averaged over sampled steps, so that `weight` has the
    same meaning for series of any length:

    - interval, (4.18): half the sum of the squares by which singular values fall below `low` or
      exceed `high`;
    - rms, section 4.4: ``(||J||_F / sqrt(n_units) - target)^2``, the squared distance of the root
      mean square of the singular values from `target`.

    Parameters
    ----------
    weight : float >= 0, default=0.1
        Factor by which the penalty is multiplied in the objective.
    kind : {"both", "interval", "rms"}, default="both"
        The penalty to use; "both" is the sum of the two. "rms" needs no singular value
        decomposition.
    low, high : float, default=0.9 and 1.1
        Bounds of the interval, with 0 <= low <= high; the defaults are the values used in [1]_.
    target : float > 0, default=1.0
        The root mean square of the singular values that "rms" aims at. With a value other than 1,
        the product of the Jacobians vanishes or explodes on average [1]_ (4.17).
    n_samples : int or None, default=None
        Number of (step, sequence) pairs that are drawn for each update. None: one in 400 pairs is
        drawn, and at least one. For the cost of a sample, see Notes.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its range.

    Notes
    -----
    With "both" or "interval", each sample needs a singular value decomposition, whose cost is cubic
    in n_units. It takes about 0.5 ms for 64 units; on short chunks, with one sample each, this adds
    half a millisecond to each update. "rms" takes a tenth of that.

    A weight of 0.1 keeps the singular values close to their bounds. This suits tasks that need
    memory more than sharp decisions: if all singular values are near 1, no unit is near saturation.
    For a classifier, use 0.01 or less.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, 2017, chapter 4.

    Examples
    --------
    >>> from reservoir.training.gradient_control import GradientControl
    >>> GradientControl(weight=0.5, kind="rms")
    GradientControl(weight=0.5, kind='rms', low=0.9, high=1.1, target=1.0, n_samples=None)
    """

    weight: float = 0.1
    kind: str = "both"
    low: float = 0.9
    high: float = 1.1
    target: float = 1.0
    n_samples: int | None = None

    def __post_init__(self) -> None:
        check_number("weight", self.weight, low=0)
        check_choice("kind", self.kind, _KINDS)
        check_number("low", self.low, low=0)
        check_number("high", self.high, low=self.low)
        check_number("target", self.target, low=0, low_open=True)
        if self.n_samples is not None:
            check_count("n_samples", self.n_samples)

    @property
    def idle(self) -> bool:
        """Whether the weight is 0."""
        return self.weight == 0

    def check(self, cell: Cell) -> None:
        """Raise an error if `cell` does not provide its step Jacobians, or their derivative."""
        cell.check_controllable()

    def loss_and_gradient(
        self,
        network: Network,
        params: Params,
        batch: Batch,
        state: Array | None,
        generator: np.random.Generator,
    ) -> tuple[float, Params, Array]:
        """Return the sum of loss and penalty, its gradient, and the final states.

        For `network`, `params`, `batch`, `state` and `generator` see `Control.loss_and_gradient`;
        the generator draws the sampled steps.
        """
        penalty = partial(control_penalty, network.cell, control=self, generator=generator)
        return loss_and_gradient(network, params, batch, state, control=penalty)


def control_penalty(
    cell: Cell,
    params: Params,
    trace: Trace,
    control: GradientControl,
    generator: np.random.Generator,
) -> tuple[float, Params, Array | None]:
    """Return a penalty on the singular values of sampled step Jacobians, and its gradient.

    Let J = diag(1 - a) + diag(a f'(z)) W be the step Jacobian, K the penalty, and G = dK/dJ. The
    gradient has a direct part with respect to W, diag(a f') G, and a part with respect to the
    pre-activations z, a f''(z) * rowsum(G * W) (`Cell.jacobian_gradient`). Pass the second part to
    `Cell.backward` as `d_pre`, to propagate it to W_in, bias, W and back through time::

        value, direct, d_pre = control_penalty(cell, params, trace, control, generator)
        grads, _, _ = cell.backward(params, trace, dH, d_pre=d_pre)
        grads["W"] += direct["W"]

    This is the exact gradient. Equations (4.20) to (4.23) of [1]_ treat h(t-1) as a constant; with
    that approximation, the test error of a student network of 16 units was 5 to 12 % higher on each
    of three seeds.

    Parameters
    ----------
    cell : Cell
        A cell that provides its step Jacobians, such as `SimpleCell` with or without a leak. Its
        activation must provide its second derivative f'', which is taken as 0 at corners (relu).
    params : dict of arrays
    trace : Trace
        The result of `cell.forward` with these weights. Not changed.
    control : GradientControl
        The penalty and its weight.
    generator : numpy Generator
        Source of random numbers. Steps are drawn without replacement, and padding is excluded.

    Returns
    -------
    value : float
        `control.weight` times the mean of the penalty over the sampled steps, which is an unbiased
        estimate of the mean over all steps.
    grads : dict of arrays
        The direct part of the gradient, by weight name: for `SimpleCell`, "W" (n_units, n_units).
    d_pre : array of shape (n_steps, n_sequences, n_units) or None
        The gradient with respect to the pre-activations, zero at steps that were not drawn; None if
        the activation is piecewise linear.

    Raises
    ------
    ValueError
        If the cell does not provide its step Jacobians, or their derivative.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, 2017, sections 4.3 and 4.4, Lemma
       4.1 and Proposition 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.gradient_control import GradientControl, control_penalty
    >>> cell = SimpleCell(2, activation="identity")
    >>> params = {"W_in": np.ones((2, 1)), "W": np.diag([1.0, 0.5]), "bias": np.zeros(2)}
    >>> trace = cell.forward(params, np.ones((5, 1, 1)))
    >>> control = GradientControl(weight=1.0, kind="interval")
    >>> value, grads, _ = control_penalty(cell, params, trace, control, np.random.default_rng(0))
    >>> round(value, 6)  # (0.9 - 0.5)^2 / 2
    0.08
    >>> grads["W"].round(6) + 0.0
    array([[ 0. ,  0. ],
           [ 0. , -0.4]])
    """
    steps, sequences = _draw(trace.lengths, control.n_samples, generator)
    J = cell.step_jacobians(params, trace, steps, sequences)
    if not len(steps):
        return 0.0, {}, None
    values, G = _penalties(J, control)
    G *= J.dtype.type(control.weight / len(steps))
    direct, d_pre = cell.jacobian_gradient(params, trace, steps, sequences, G)
    return control.weight * float(values.mean()), direct, d_pre


def step_jacobians(
    cell: Cell, params: Params, trace: Trace, steps: ArrayLike, sequences: ArrayLike
) -> Array:
    """Return step Jacobians, ``J(t) = dh(t) / dh(t-1) = diag(1 - a) + diag(a f'(z(t))) W``.

    Parameters
    ----------
    cell : Cell
        A cell that provides its step Jacobians, such as `SimpleCell`.
    params : dict of arrays
    trace : Trace
        The result of `cell.forward` with these weights.
    steps, sequences : arrays of int, shape (n,)
        Indices of the steps, counted from 0, and of the sequence to which each step belongs.

    Returns
    -------
    array of shape (n, state_size, state_size)

    Raises
    ------
    ValueError
        If the cell does not provide its step Jacobians.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.gradient_control import step_jacobians
    >>> cell = SimpleCell(1)
    >>> params = {"W_in": np.ones((1, 1)), "W": np.ones((1, 1)), "bias": np.zeros(1)}
    >>> trace = cell.forward(params, np.ones((3, 1, 1)))
    >>> step_jacobians(cell, params, trace, [0, 1, 2], [0, 0, 0]).ravel().round(3)
    array([0.42 , 0.111, 0.079])
    """
    return cell.step_jacobians(params, trace, np.asarray(steps), np.asarray(sequences))


def _draw(
    lengths: Array, n_samples: int | None, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return the steps and sequences of randomly drawn pairs; padding is excluded."""
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    count = max(1, total // _STEPS_PER_SAMPLE) if n_samples is None else n_samples
    if count < total:
        drawn = generator.choice(total, size=count, replace=False, shuffle=False)
    else:
        drawn = np.arange(total)
    sequences = np.searchsorted(ends, drawn, side="right")
    return drawn - (ends - lengths)[sequences], sequences


def _penalties(J: Array, control: GradientControl) -> tuple[Array, Array]:
    """Return the penalty of each matrix (n,) and its gradient (n, n_units, n_units)."""
    values, G = np.zeros(len(J), J.dtype), np.zeros_like(J)
    if control.kind != "rms":
        U, s, Vh = np.linalg.svd(J)
        excess = np.minimum(s - control.low, 0) + np.maximum(s - control.high, 0)
        values += 0.5 * (excess**2).sum(axis=1)
        G += (U * excess[:, None, :]) @ Vh
    if control.kind != "interval":
        root = np.sqrt(J.shape[-1])
        norm = np.sqrt(np.einsum("sij,sij->s", J, J))
        off = norm / root - control.target
        values += off**2
        # the norm is not differentiable at a zero matrix: take the gradient as 0
        G += (2 * off / (root * np.where(norm > 0, norm, 1)))[:, None, None] * J
    return values, G


def jacobian_product_norms(
    cell: Cell,
    params: Params,
    X: ArrayLike,
    depth: int | None = None,
    *,
    norm: str = "spectral",
    state: Array | None = None,
) -> Array:
    """Return the log norms of the products of the last 1, 2, ..., `depth` step Jacobians.

    Entry k - 1 is ``log ||J(T) J(T-1) ... J(T-k+1)||``, which measures how strongly the last state
    depends on the state k steps before. It shows whether gradients vanish or explode, and after how
    many steps [1]_.

    Parameters
    ----------
    cell : Cell
        Any cell that has a state and runs forwards only. The state of an LSTM is [h, c].
    params : dict of arrays
    X : array of shape (n_steps, n_features)
        The input sequence; the products extend backwards in time from its last step.
    depth : int, at most n_steps, default=None
        Maximal number of factors; n_steps by default.
    norm : {"spectral", "frobenius"}, default="spectral"
        The matrix norm.
    state : array of shape (state_size,), optional
        Initial state; zeros by default.

    Returns
    -------
    array of shape (depth,)
        Natural logarithms of the norms, computed without overflow or underflow; -inf from the first
        product that is zero.

    Raises
    ------
    ValueError
        If `depth` exceeds the number of steps of X, if X is empty, not two-dimensional or not
        finite, or if the cell has no state that is computed from the previous one.

    See Also
    --------
    reservoir.plotting.jacobian_norms : Plots these norms.
    reservoir.stability.lyapunov_exponents : The largest exponent is the slope they converge to.

    References
    ----------
    .. [1] A. Bay, "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, 2017, section 4.2 and figures 4.3 to 4.6.

    Examples
    --------
    In a linear network whose singular values are all 0.5, the norm is halved at each step:

    >>> import numpy as np
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.gradient_control import jacobian_product_norms
    >>> cell = SimpleCell(2, activation="identity")
    >>> params = {"W_in": np.ones((2, 1)), "W": 0.5 * np.eye(2), "bias": np.zeros(2)}
    >>> log_norms = jacobian_product_norms(cell, params, np.ones((500, 1)))
    >>> (log_norms[[0, 1, -1]] / np.log(2)).round(6).tolist()
    [-1.0, -2.0, -500.0]
    """
    check_choice("norm", norm, ("spectral", "frobenius"))
    if not cell.causal or not cell.state_size:
        why = "uses future rows" if cell.state_size else "has no state"
        raise ValueError(
            f"{type(cell).__name__} {why}: there is no Jacobian from one state to the next. Use a "
            "recurrent cell that runs forwards only."
        )
    inputs = np.asarray(X, dtype=next(iter(params.values())).dtype)
    if inputs.ndim != 2 or not len(inputs) or not np.isfinite(inputs).all():
        raise ValueError(
            f"X has shape {inputs.shape}. It must have shape (n_steps, n_features), at least one "
            "step, and only finite values."
        )
    k = len(inputs) if depth is None else check_count("depth", depth)
    if k > len(inputs):
        raise ValueError(f"depth={k} must be at most n_steps={len(inputs)}. Pass a longer X.")
    lead, tail = inputs[: len(inputs) - k], inputs[len(inputs) - k :]
    start = None if state is None else np.asarray(state, dtype=inputs.dtype)[None]
    states = _states_along(cell, params, lead, tail, start)
    P, exponent = np.eye(cell.state_size, dtype=inputs.dtype), 0
    logs = np.full(k, -np.inf)
    for i, t in enumerate(range(k - 1, -1, -1)):
        P = _times_jacobian(cell, params, tail[t], states[t], P)
        largest = np.abs(P).max()
        if largest == 0:
            return logs
        shift = int(np.frexp(largest)[1])  # scaling by powers of 2 does not round
        P, exponent = np.ldexp(P, -shift), exponent + shift
        logs[i] = np.log(np.linalg.norm(P, 2 if norm == "spectral" else None)) + exponent * np.log(
            2
        )
    return logs


def _states_along(
    cell: Cell, params: Params, lead: Array, tail: Array, start: Array | None
) -> list[Array]:
    """Return the state before each step of `tail`, which follows `lead`."""
    if start is None:
        start = np.zeros((1, cell.state_size), tail.dtype)
    states = [cell.forward(params, lead[:, None], start).end if len(lead) else start]
    for row in tail[:-1]:
        states.append(cell.forward(params, row[None, None], states[-1]).end)
    return states


def _times_jacobian(cell: Cell, params: Params, row: Array, state: Array, P: Array) -> Array:
    """Return P J for one step, by back-propagating each row of P as a separate sequence."""
    m = len(P)
    X = np.ascontiguousarray(np.broadcast_to(row, (1, m, len(row))))
    trace = cell.forward(params, X, np.ascontiguousarray(np.broadcast_to(state, (m, len(P)))))
    return cell.backward(params, trace, np.zeros((1, m, cell.width), P.dtype), d_end=P)[1]
