"""Products of the generalised Gauss-Newton matrix of a network's loss with vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array
from reservoir.training.bptt import Batch, Network, forward, through_readout
from reservoir.training.cells import Trace
from reservoir.training.losses import curvature_product
from reservoir.training.params import Params, unflatten
from reservoir.training.regularizers import penalty

Batches = list[tuple[Batch, Array | None]]


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
