"""Temporal gradients, the contributions of single steps, and a direction that uses all of them.

The weights are the same at every step. Suppose that each step had a separate copy of the weights:
the gradient would then be the sum of the gradients with respect to the copies, which are called
temporal gradients [1]_. If gradients vanish, the temporal gradients of early steps are orders of
magnitude smaller than the ones of late steps, and a step down their sum ignores early inputs.

References
----------
.. [1] G. Galvan, "Optimization methods for Recurrent Neural Networks training", 2016, eqs. (14) to
   (19), (25) to (27) and algorithm 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir._validation import check_number
from reservoir.training.bptt import Batch, Network, forward, through_readout
from reservoir.training.cells import Cell
from reservoir.training.controls import Control
from reservoir.training.losses import loss_and_slope
from reservoir.training.params import Params, global_norm

__all__ = ["SimplexDirection", "simplex_gradient", "temporal_gradient_norms"]


@saved
@dataclass(frozen=True)
class SimplexDirection(Control):
    """Direction to which the gradients of all steps contribute, no matter how small they are.

    The temporal gradients of the recurrent layer, each divided by its norm, are averaged with
    random weights. For each update, these are drawn uniformly from the positive weights of sum 1.
    The average is scaled to the norm of the recurrent layer's gradient. The gradient of the readout
    is not changed. If the norm of the whole gradient exceeds `threshold`, the gradient itself is
    used.

    This is a heuristic: the loss need not fall along the direction.

    Parameters
    ----------
    threshold : float > 0, default=1.0
        Norm of the whole gradient above which the gradient itself is used. If it is infinite, the
        gradient itself is never used.

    Raises
    ------
    TypeError, ValueError
        If `threshold` is not above 0.

    References
    ----------
    G. Galvan (2016), eqs. (25) to (27) and algorithm 3. In (27), the direction includes the minus
    sign, and the step adds it. However, if the gradient itself is used, (27) also adds it, without
    a minus sign. Here, the gradient is subtracted in both cases.

    Examples
    --------
    >>> from reservoir.training.temporal_gradients import SimplexDirection
    >>> SimplexDirection()
    SimplexDirection(threshold=1.0)
    """

    threshold: float = 1.0

    def __post_init__(self) -> None:
        if self.threshold != np.inf:
            check_number("threshold", self.threshold, low=0.0, low_open=True)

    @property
    def is_gradient(self) -> bool:
        """Always False, because the result is another direction."""
        return False

    def check(self, cell: Cell) -> None:
        """Raise an error if `cell` uses future rows or has dropout."""
        if not cell.causal:
            raise ValueError(
                f"{type(cell).__name__} uses future rows, so that it cannot run step by step. "
                "Use a cell that runs forwards only."
            )
        if cell.drops_out:
            raise ValueError(
                f"{type(cell).__name__} has dropout, which is not supported, since the network "
                "runs step by step. Use dropout=0."
            )

    def loss_and_gradient(
        self,
        network: Network,
        params: Params,
        batch: Batch,
        state: Array | None,
        generator: np.random.Generator,
    ) -> tuple[float, Params, Array]:
        """Return the loss, the direction used instead of the gradient, and the final states.

        For `network`, `params`, `batch`, `state` and `generator` see `Control.loss_and_gradient`;
        the generator draws the weights of the steps.
        """
        return simplex_gradient(network, params, batch, state, direction=self, generator=generator)


class _Steps:
    """A run of a network step by step, from which the temporal gradients are computed."""

    def __init__(self, network: Network, params: Params, batch: Batch, state: Array | None) -> None:
        SimplexDirection().check(network.cell)
        self.network, self.params = network, params
        self.chunks = list(batch.chunks(1))
        self.runs, self.slopes, self.loss = [], [], 0.0
        total = batch.total_weight
        for chunk in self.chunks:
            trace, features, scores = forward(network, params, chunk, state)
            d = np.zeros_like(scores)
            if len(scores):
                value, d = loss_and_slope(
                    scores, chunk.targets, network.output, network.loss, chunk.weights
                )
                share = chunk.total_weight / total
                self.loss += share * value
                d = d * d.dtype.type(share)
            self.runs.append((trace, features))
            self.slopes.append(d)
            state = trace.end
        assert state is not None
        self.end = state

    def gradients(self) -> Iterator[tuple[Params, Params]]:
        """Yield each step's gradients for the recurrent layer and the readout, last step first."""
        d_end = None
        for chunk, (trace, features), d in zip(
            self.chunks[::-1], self.runs[::-1], self.slopes[::-1], strict=True
        ):
            readout, dH = through_readout(self.network, self.params, chunk, features, d)
            layer, d_end, _ = self.network.cell.backward(self.params, trace, dH, d_end=d_end)
            yield layer, readout


def temporal_gradient_norms(
    network: Network, params: Params, batch: Batch, state: Array | None = None
) -> Array:
    """Return the norm of the temporal gradient of each step.

    Parameters
    ----------
    network : Network
        A network whose cell runs forwards only, without dropout.
    params : dict of arrays
    batch : Batch
        The result of `reservoir.training.bptt.make_batch`. The gradients of several sequences are
        summed, as in training.
    state : array of shape (n_sequences, state_size), optional
        Initial state of each sequence; zeros by default.

    Returns
    -------
    array of shape (n_steps,)
        The Euclidean norm over all weights of the recurrent layer, for each step.

    Raises
    ------
    ValueError
        If the cell uses future rows or has dropout.

    See Also
    --------
    reservoir.plotting.temporal_gradients : Plots these norms.
    reservoir.training.gradient_control.jacobian_product_norms : Norms of the Jacobian products,
        which make gradients vanish.

    References
    ----------
    G. Galvan (2016), eqs. (18) and (19).

    Examples
    --------
    The only target is at the last step, and the state of the unit is halved at each step:

    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.temporal_gradients import temporal_gradient_norms
    >>> network = Network(SimpleCell(1, "identity"), 1, 1)
    >>> weights = {name: np.zeros(shape) for name, shape in network.shapes().items()}
    >>> weights["W"][:], weights["coef"][:] = 0.5, 1.0
    >>> batch = make_batch([np.zeros((4, 1))], [np.ones(1)], last=True)
    >>> temporal_gradient_norms(network, weights, batch)
    array([0.25, 0.5 , 1.  , 2.  ])
    """
    steps = _Steps(network, params, batch, state)
    return np.array([global_norm(layer) for layer, _ in steps.gradients()][::-1])


def simplex_gradient(
    network: Network,
    params: Params,
    batch: Batch,
    state: Array | None = None,
    *,
    direction: SimplexDirection,
    generator: np.random.Generator,
) -> tuple[float, Params, Array]:
    """Return the loss on a batch, the direction of a `SimplexDirection`, and the final states.

    Parameters
    ----------
    network, params, batch, state
        As in `temporal_gradient_norms`.
    direction : SimplexDirection
        The settings of the direction.
    generator : numpy Generator
        Source of the random weights of the steps.

    Returns
    -------
    loss : float
    grads : dict of arrays
        The direction used instead of the gradient, with the same norm as the gradient.
    end : array of shape (n_sequences, state_size)
        The final state of each sequence.

    Raises
    ------
    ValueError
        If the cell uses future rows or has dropout.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.training.bptt import Network, loss_and_gradient, make_batch
    >>> from reservoir.training.cells import SimpleCell
    >>> from reservoir.training.params import global_norm
    >>> from reservoir.training.temporal_gradients import SimplexDirection, simplex_gradient
    >>> network, rng = Network(SimpleCell(3), 1, 1), np.random.default_rng(0)
    >>> weights = {name: rng.normal(size=shape) for name, shape in network.shapes().items()}
    >>> batch = make_batch([rng.normal(size=(9, 1))], [np.ones(1)], last=True)
    >>> _, plain, _ = loss_and_gradient(network, weights, batch)
    >>> _, simplex, _ = simplex_gradient(
    ...     network, weights, batch, direction=SimplexDirection(np.inf), generator=rng)
    >>> bool(np.isclose(global_norm(simplex), global_norm(plain)))
    True
    """
    steps = _Steps(network, params, batch, state)
    shares = generator.dirichlet(np.ones(len(steps.chunks)))
    total: Params = {name: np.zeros_like(params[name]) for name in network.shapes()}
    names = network.cell.shapes(network.n_features)
    mixed: Params = {name: np.zeros_like(params[name]) for name in names}
    for share, (layer, readout) in zip(shares, steps.gradients(), strict=True):
        for name, grad in {**layer, **readout}.items():
            total[name] += grad
        norm = global_norm(layer)
        if 0 < norm < np.inf:  # a zero gradient has no direction
            for name, grad in layer.items():
                mixed[name] += grad / grad.dtype.type(norm) * grad.dtype.type(share)
    if not global_norm(total) <= direction.threshold:
        return steps.loss, total, steps.end
    size, wanted = global_norm(mixed), global_norm({name: total[name] for name in mixed})
    if size > 0:
        for name, grad in mixed.items():
            total[name] = grad * grad.dtype.type(wanted / size)
    return steps.loss, total, steps.end
