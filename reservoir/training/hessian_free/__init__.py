"""Hessian-free training: conjugate gradients on the generalised Gauss-Newton matrix."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_count, check_number
from reservoir.training._data import Data
from reservoir.training._evaluation import Evaluator, Report, Training
from reservoir.training._objective import Objective, check_no_dropout
from reservoir.training.bptt import (
    Batch,
    Network,
    forward,
    loss_and_gradient,
    loss_value,
    through_readout,
)
from reservoir.training.cells import Trace
from reservoir.training.losses import curvature_product
from reservoir.training.params import Params, flatten, unflatten
from reservoir.training.regularizers import penalty

__all__ = ["GaussNewton", "HessianFree", "train_hessian_free"]

_DECAY = 0.95  # factor of the last direction, from which conjugate gradients start
_PROGRESS = 5e-4  # stop if the relative decrease of the quadratic per iteration is smaller
_LOOK_BACK = 10  # progress is measured over a tenth of the iterations, but at least this many
_KEPT = 1.3  # ratio of successive iterations whose directions are kept for backtracking
_EXPONENT = 0.75  # exponent of the preconditioner
_GROUPS = 16  # minimal number of groups of sequences for the squared gradients
_SHRINK, _TRIES, _ENOUGH = 0.8, 60, 0.01  # parameters of the line search
_LARGEST_DAMPING = 1e12  # training ends if the damping exceeds this value
Batches = list[tuple[Batch, Array | None]]


class _Damped:
    """The damped quadratic ``g'd + d' B d / 2``; stores the last product B v and its vector v."""

    def __init__(self, matrix: GaussNewton, gradient: Array, damping: float, structural: float):
        self.matrix, self.gradient = matrix, gradient
        self.damping, self.structural = damping, structural * damping
        self.last = self.of_last = np.zeros_like(gradient)

    def product(self, v: Array) -> Array:
        v = v.ravel()
        product = self.matrix.product(v, structural=self.structural) + self.damping * v
        self.last, self.of_last = v.copy(), product
        return product


def _conjugate_gradients(
    quadratic: _Damped, start: Array, scale: Array, max_iter: int
) -> list[Array]:
    """Return directions from increasingly late iterations, ending with the final direction."""
    gradient = quadratic.gradient
    n = len(gradient)
    at, product = start.copy(), np.zeros(n)
    if start.any():
        product = quadratic.product(start)
    kept, values, following = [], [at @ (0.5 * product + gradient)], 1.0

    def after(now: Array) -> None:
        # the step is a multiple of the vector of the last product: no further product is needed
        nonlocal at, product, following
        last = quadratic.last
        length = (now - at) @ last / (last @ last)
        product, at = product + length * quadratic.of_last, now.copy()
        values.append(at @ (0.5 * product + gradient))
        i = len(values) - 1
        if i >= following:
            kept.append(at)
            following = max(_KEPT * following, i + 1)
        back = max(_LOOK_BACK, i // 10)
        if (
            i > back
            and values[i] < 0
            and (values[i] - values[i - back]) / values[i] < (back * _PROGRESS)
        ):
            raise StopIteration

    B = LinearOperator((n, n), quadratic.product, dtype=np.float64)
    M = LinearOperator((n, n), lambda v: v.ravel() / scale, dtype=np.float64)
    with suppress(StopIteration):
        cg(B, -gradient, start, rtol=1e-12, maxiter=max_iter, M=M, callback=after)
    if not kept or kept[-1] is not at:
        kept.append(at)
    return kept


@dataclass(eq=False)
class _Loss:
    """The objective and its gradient over some of the sequences."""

    objective: Objective
    params: Params
    batches: Batches

    def __post_init__(self) -> None:
        weight = sum(batch.total_weight for batch, _ in self.batches)
        self._shares = [batch.total_weight / weight for batch, _ in self.batches]

    def value(self, vector: Array) -> float:
        """Return the loss, or infinity if it is not finite."""
        params = self._weights(vector)
        value = self.objective.penalty(params)
        for share, (batch, state) in zip(self._shares, self.batches, strict=True):
            value += share * loss_value(self.objective.network, params, batch, state)[0]
        return value if np.isfinite(value) else np.inf

    def gradients(self, vector: Array) -> tuple[float, Array, Array]:
        """Return the loss, its gradient, and the scaled sum of the batches' squared gradients."""
        params = self._weights(vector)
        value = self.objective.penalty(params)
        none = {name: np.zeros_like(array) for name, array in params.items()}
        total = self.objective.gradient(params, none).astype(np.float64)
        squares = np.zeros_like(total)
        for share, (batch, state) in zip(self._shares, self.batches, strict=True):
            part, grads, _ = loss_and_gradient(self.objective.network, params, batch, state)
            gradient = share * vector_of(grads, params)
            value, total = value + share * part, total + gradient
            squares += gradient**2
        return value, total, squares * len(self.batches)

    def _weights(self, vector: Array) -> Params:
        return unflatten(vector.astype(self.params["coef"].dtype), self.params)


def _backtracked(
    loss: Callable[[Array], float], at: Array, kept: list[Array]
) -> tuple[Array, float]:
    """Return a direction and its loss, going back from the last one as long as the loss falls."""
    best, least = kept[-1], loss(at + kept[-1])
    for direction in reversed(kept[:-1]):
        value = loss(at + direction)
        if value > least:
            break
        best, least = direction, value
    return best, least


def _searched(
    loss: Callable[[Array], float],
    at: Array,
    direction: Array,
    reached: float,
    before: float,
    slope: float,
) -> float:
    """Return the first step length that lowers the loss sufficiently, or 0 if there is none."""
    length, value = 1.0, reached
    for _ in range(_TRIES):
        if value <= before + _ENOUGH * length * min(slope, 0.0) and value < before:
            return length
        length *= _SHRINK
        value = loss(at + length * direction)
    return 0.0


@saved
@dataclass(frozen=True)
class HessianFree:
    """Settings of Hessian-free training, to pass as the `solver` of a trained network.

    Parameters
    ----------
    structural_damping : float, at least 0, default=0.1
        Weight of structural damping, which penalises half the squared changes of the states. It is
        relative to `damping`.
    damping : float, above 0, default=1.0
        Initial weight of ``|d|^2 / 2`` in the quadratic, where d is the change of the weights.
    gradient_size : int, optional
        Number of sequences that are drawn for the loss and the gradient of each iteration. By
        default, all sequences are used; only then does every iteration lower the loss.
    curvature_size : int, optional
        Number of these sequences that are drawn for the curvature. By default, all of them are
        used.
    max_cg : int, default=150
        Maximal number of conjugate-gradient iterations per iteration of training.

    Raises
    ------
    TypeError, ValueError
        If a number is outside its range.

    References
    ----------
    J. Martens and I. Sutskever, "Learning recurrent neural networks with Hessian-free
    optimization", ICML 2011.

    Examples
    --------
    >>> from reservoir import RNNRegressor
    >>> from reservoir.training.hessian_free import HessianFree
    >>> rnn = RNNRegressor(solver=HessianFree(gradient_size=1000, curvature_size=250))
    >>> rnn.solver.structural_damping
    0.1
    """

    structural_damping: float = 0.1
    damping: float = 1.0
    gradient_size: int | None = None
    curvature_size: int | None = None
    max_cg: int = 150

    def __post_init__(self) -> None:
        check_number("structural_damping", self.structural_damping, low=0.0)
        check_number("damping", self.damping, low=0.0, low_open=True)
        for name in ("gradient_size", "curvature_size"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_count("max_cg", self.max_cg)


def train_hessian_free(
    network: Network,
    params: Params,
    data: Data,
    *,
    max_iter: int = 200,
    batch_size: int = 32,
    gradient_size: int | None = None,
    curvature_size: int | None = None,
    damping: float = 1.0,
    structural_damping: float = 0.1,
    max_cg: int = 150,
    l1: float = 0.0,
    l2: float = 0.0,
    validation: Data | None = None,
    refit: bool = False,
    n_iter_no_change: int = 10,
    tol: float = 1e-4,
    random_state: Any = None,
    report: Report | None = None,
) -> Training:
    """Train by Hessian-free optimization.

    Each iteration minimises a quadratic, defined by the gradient of the loss and the damped
    generalised Gauss-Newton matrix, by SciPy's preconditioned conjugate gradients. These start from
    0.95 times the previous direction, and stop when the quadratic falls by less than 5e-4 of its
    value per iteration. Then the directions of earlier conjugate-gradient iterations are tried in
    reverse order, as long as they lower the loss itself; a line search follows. The damping is
    multiplied by 3/2 if the loss has fallen by less than a quarter of the decrease predicted by the
    quadratic, and by 2/3 if it has fallen by more than three quarters of it.

    Parameters
    ----------
    network : Network
        A network whose loss has a curvature, such as squared errors or a cross-entropy, and whose
        cell has a `tangent`.
    params : dict of arrays
        Initial weights. Not changed.
    data : Data
        The training sequences.
    max_iter : int, default=200
        Maximal number of iterations, each with at most `max_cg` products.
    batch_size : int, default=32
        Number of sequences that are run in parallel. It affects memory and the preconditioner,
        which is computed from the squared gradients of such groups, or of smaller groups if there
        would be fewer than 16.
    gradient_size, curvature_size, damping, structural_damping, max_cg
        As in `HessianFree`.
    l1, l2, validation, refit, n_iter_no_change, tol, random_state, report
        As in `reservoir.training.trainer.train`. The l1 penalty has a gradient but no curvature.

    Returns
    -------
    Training

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its range, if the loss has no curvature, if the cell has no
        tangent, or if it has dropout.

    References
    ----------
    J. Martens, "Deep learning via Hessian-free optimization", ICML 2010; J. Martens and I.
    Sutskever, "Learning recurrent neural networks with Hessian-free optimization", ICML 2011
    (structural damping).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.hessian_free import train_hessian_free
    >>> from reservoir.training.initializers import initialize
    >>> from reservoir.training.trainer import Data
    >>> network = Network(SimpleCell(8), 1, 1)
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 1))
    >>> data = Data([X[1:]], [X[:-1]])
    >>> params = initialize(network.shapes(), "orthogonal", random_state=0)
    >>> done = train_hessian_free(network, params, data, max_iter=20)
    >>> done.losses[-1] < 0.01 * done.losses[0]
    True
    """
    check_no_dropout(network, "hessian_free")
    settings = HessianFree(structural_damping, damping, gradient_size, curvature_size, max_cg)
    solver = _Solver(
        Objective(network, l1, l2),
        data,
        settings,
        check_count("batch_size", batch_size),
        np.random.default_rng(random_state),
        damping,
    )
    evaluator = Evaluator(solver.objective, data, validation, batch_size, tol, refit, report)
    start, current = flatten(params)
    done = evaluator.begin(current)
    direction = np.zeros(start.size)
    for _ in range(max_iter):
        with np.errstate(over="ignore", invalid="ignore"):
            moved, direction = solver.step(current, direction)
        if not np.isfinite(solver.damping) or solver.damping > _LARGEST_DAMPING:
            break
        current = evaluator.end_epoch(done, moved)
        if evaluator.unchanged >= n_iter_no_change:
            break
    return done


@dataclass(eq=False)
class _Solver:
    """Solver of Hessian-free training, with the present value of `damping`."""

    objective: Objective
    data: Data
    settings: HessianFree
    batch_size: int
    generator: np.random.Generator
    damping: float

    def __post_init__(self) -> None:
        weights = self.data.weights  # exclude sequences of weight 0
        count = [True] * len(self.data) if weights is None else [np.any(w) for w in weights]
        self._counted = np.flatnonzero(count)

    def step(self, params: Params, last: Array) -> tuple[Params, Array]:
        """Return the weights after an iteration, and the start direction of the next iteration."""
        drawn = self._drawn(self._counted, self.settings.gradient_size)
        loss = _Loss(self.objective, params, self._batches(drawn))
        some = self._drawn(drawn, self.settings.curvature_size)
        batches = loss.batches if some is drawn else self._batches(some)
        at = flatten(params)[0].astype(np.float64)
        value, gradient, squares = loss.gradients(at)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            self.damping = np.inf  # which ends the training
            return params, last
        matrix = GaussNewton(self.objective.network, params, batches, l2=self.objective.l2)
        quadratic = _Damped(matrix, gradient, self.damping, self.settings.structural_damping)
        # squared gradients approximate the diagonal of the matrix: Martens' preconditioner
        scale = (squares + self.damping) ** _EXPONENT
        kept = _conjugate_gradients(quadratic, _DECAY * last, scale, self.settings.max_cg)
        direction, reached = _backtracked(loss.value, at, kept)
        self._adapt(matrix, gradient, direction, reached - value)
        length = _searched(loss.value, at, direction, reached, value, float(gradient @ direction))
        moved = at + length * direction
        dtype = params["coef"].dtype
        # the next iteration starts from the final direction, for which the quadratic is smallest,
        # even if an earlier one is used here; after a failed line search, it starts from zeros
        return unflatten(moved.astype(dtype), params), kept[-1] if length else np.zeros_like(at)

    def _adapt(self, matrix: GaussNewton, gradient: Array, direction: Array, change: float) -> None:
        """Adapt the damping to the ratio of the change of the loss to the predicted change."""
        predicted = gradient @ direction + 0.5 * direction @ matrix.product(direction)
        ratio = change / predicted if predicted < 0 else -np.inf
        if ratio > 0.75:
            self.damping *= 2 / 3
        elif not ratio >= 0.25:
            self.damping *= 3 / 2

    def _drawn(self, index: Array, size: int | None) -> Array:
        if size is None or size >= len(index):
            return index
        return np.sort(self.generator.choice(index, size, replace=False))

    def _batches(self, index: Array) -> Batches:
        size = min(self.batch_size, max(1, -(-len(index) // _GROUPS)))
        order = index[np.argsort([len(self.data.inputs[i]) for i in index], kind="stable")]
        return [self.data.batch(order[i : i + size]) for i in range(0, len(order), size)]


@dataclass(frozen=True, eq=False)
class _Piece:
    """A run over some of the sequences, from which products are computed."""

    batch: Batch
    trace: Trace
    features: Array
    scores: Array
    share: float  # share of these sequences in the mean over all rows
    per_row: Array  # 1 / n_rows at each step of each sequence, 0 at padding


class GaussNewton:
    """The generalised Gauss-Newton matrix of a network's mean loss, as a linear operator.

    The matrix is ``G = J' H J``, where J is the Jacobian of the scores of all rows with respect to
    the weights, and H is the curvature of the loss. It is symmetric and positive semi-definite, and
    is never formed: a product takes one forward pass (`Cell.tangent`) and one backward pass
    (`Cell.backward`).

    Parameters
    ----------
    network : Network
        A network whose cell has a tangent, and whose loss has a curvature.
    params : dict of arrays
        The weights, all of one dtype. Their order is the order of the entries of vectors.
    batches : list of (Batch, array or None)
        Batches of sequences, and their initial states (None: zeros).
    l2 : float, default=0.0
        Strength of the penalty on the weights, as in `reservoir.training.regularizers.penalty`. It
        is added to the diagonal, except for biases and intercepts.

    Raises
    ------
    ValueError
        In `product`, if the cell has no tangent, or if the loss has no curvature.

    References
    ----------
    N. N. Schraudolph, "Fast curvature matrix-vector products for second-order gradient descent",
    Neural Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.hessian_free import GaussNewton
    >>> network = Network(SimpleCell(1), 1, 1)
    >>> weights = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    >>> batch = make_batch([np.ones((3, 1))], [np.ones((3, 1))])
    >>> G = GaussNewton(network, weights, [(batch, None)])
    >>> G.product(np.ones(5))  # of five weights, only the intercept changes the scores here
    array([0., 0., 0., 0., 2.])
    """

    def __init__(self, network: Network, params: Params, batches: Batches, *, l2: float = 0.0):
        self.network, self.params = network, params
        weight = sum(batch.total_weight for batch, _ in batches)
        self._pieces = []
        for batch, state in batches:
            trace, features, scores = forward(network, params, batch, state)
            running = np.arange(len(batch.inputs))[:, None] < trace.lengths
            per_row = (running / weight).astype(scores.dtype)[:, :, None]
            share = batch.total_weight / weight
            self._pieces.append(_Piece(batch, trace, features, scores, share, per_row))
        ones = {name: np.ones_like(array) for name, array in params.items()}
        ridge = penalty(ones, l2=l2, free=network.free_of_penalty())[1]
        self._ridge = vector_of(ridge, params)

    def product(self, v: Array, *, structural: float = 0.0) -> Array:
        """Return the product of the matrix with a vector.

        Parameters
        ----------
        v : array of shape (n_weights,)
            The vector.
        structural : float, default=0.0
            Weight of structural damping. It adds the Gauss-Newton matrix of half the squared
            changes of the cell's outputs, summed over steps and units and divided by the number of
            rows with a target.

        Returns
        -------
        array of shape (n_weights,), float64
        """
        dtype = self.params["coef"].dtype
        direction = unflatten(v.astype(dtype), self.params)
        total = self._ridge * v
        for piece in self._pieces:
            total = total + vector_of(self._of_piece(piece, direction, structural), self.params)
        return total

    def _of_piece(self, piece: _Piece, direction: Params, structural: float) -> Params:
        network, params, batch = self.network, self.params, piece.batch
        # forward pass: derivatives of states and scores along the direction
        d_states = network.cell.tangent(params, piece.trace, direction)
        width, dtype = network.cell.width, d_states.dtype
        moved = d_states.reshape(-1, width)
        moved = moved if batch.rows is None else moved[batch.rows]
        d = piece.features @ direction["coef"].T + direction["intercept"]
        d += moved @ params["coef"][:, :width].T
        # curvature of the loss, then the backward pass
        if len(d):
            d = curvature_product(
                piece.scores, batch.targets, network.output, network.loss, d, batch.weights
            )
        d *= dtype.type(piece.share)
        readout, dH = through_readout(network, params, batch, piece.features, d)
        if structural:
            dH += d_states * (piece.per_row * dtype.type(structural))
        grads, _, _ = network.cell.backward(params, piece.trace.copy(), dH)
        return {**grads, **readout}


def vector_of(grads: Params, like: Params) -> Array:
    """Return all entries of `grads` as one vector, in the order of the names in `like`."""
    return np.concatenate([grads[name].ravel() for name in like]).astype(np.float64)
