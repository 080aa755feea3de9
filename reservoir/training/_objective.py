"""Objective of training by gradients: the loss, penalties on weights, and gradient control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.training.bptt import Batch, Network, loss_and_gradient
from reservoir.training.cells.dropout import dropping_out
from reservoir.training.controls import Control
from reservoir.training.optimizers import Optimizer, OptimizerState
from reservoir.training.params import Params, global_norm, unflatten
from reservoir.training.regularizers import penalty


def check_no_dropout(network: Network, solver: str) -> None:
    """Check that the cell has no dropout, for a solver that needs a deterministic loss."""
    if network.cell.drops_out:
        raise ValueError(
            f"solver={solver!r} compares losses at several weights, but with dropout the loss is "
            'random. Use a solver of gradient steps, such as "adam".'
        )


@saved
@dataclass(frozen=True)
class Objective:
    """A network's mean loss with penalties `l1` and `l2` on its weights, and a bounded gradient.

    Components of the gradient beyond `clip_value` are set to it; then a gradient whose norm exceeds
    `clip_norm` is scaled down to that norm. None: no bound. `control` acts against vanishing
    gradients.
    """

    network: Network
    l1: float = 0.0
    l2: float = 0.0
    clip_norm: float | None = None
    control: Control | None = None
    clip_value: float | None = None

    def penalty(self, params: Params) -> float:
        """Return the value of the elastic-net penalty."""
        return self._penalty(params)[0]

    def _penalty(self, params: Params) -> tuple[float, Params]:
        free = self.network.free_of_penalty()
        return penalty(params, l1=self.l1, l2=self.l2, free=free)

    def loss_and_gradient(
        self, params: Params, batch: Batch, state: Array | None, generator: np.random.Generator
    ) -> tuple[float, Params, Array]:
        """Return the loss with the control's penalty, the gradient to follow, and final states.

        The elastic-net penalty is not included. The control and dropout use the generator.
        """
        with dropping_out(generator):
            if self.control is None or self.control.idle:
                return loss_and_gradient(self.network, params, batch, state)
            return self.control.loss_and_gradient(self.network, params, batch, state, generator)

    def gradient(self, params: Params, grads: Params) -> Array:
        """Return the gradient including the elastic net as one vector, clipped."""
        if self.l1 or self.l2:
            _, more = self._penalty(params)
            grads = {name: grad + more.get(name, 0) for name, grad in grads.items()}
        gradient = np.concatenate([grads[name].ravel() for name in params])
        if self.clip_value is not None:  # NaN remains NaN, and an overflow an overflow
            bound = gradient.dtype.type(self.clip_value)
            gradient = np.where(np.isinf(gradient), gradient, np.clip(gradient, -bound, bound))
        norm = global_norm({"all": gradient})
        if self.clip_norm is None or not self.clip_norm < norm < np.inf:
            return gradient
        return gradient * gradient.dtype.type(self.clip_norm / norm)

    def step(
        self,
        optimizer: Optimizer,
        state: OptimizerState,
        params: Params,
        loss: float,
        grads: Params,
    ) -> tuple[Params, OptimizerState] | None:
        """Return the weights and the optimizer's state after a step down the gradient.

        The result is None if the loss or the gradient is not finite.
        """
        gradient = self.gradient(params, grads)
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            return None
        return optimizer.update(params, unflatten(gradient, params), state)
