"""Gradient descent as plain as can be, so that nothing but what is compared differs."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from reservoir.training.bptt import Batch, Network, loss_and_gradient, loss_value
from reservoir.training.gradient_control import GradientControl, control_penalty
from reservoir.training.loop_engines import using
from reservoir.training.optimizers import Optimizer
from reservoir.training.params import global_norm

CLIP_NORM = 1.0


def descend(
    network: Network,
    params: Any,
    batch: Batch,
    optimizer: Optimizer,
    *,
    epochs: int,
    truncation: int,
    control: GradientControl | None,
    seed: int,
) -> Any:
    """Return the weights of the epoch with the least loss on all of the batch.

    The learning rate is constant, an update follows on every `truncation` steps, longer gradients
    are scaled to norm 1. The estimators do more: they go back and shorten their steps where the
    loss rises, and `RNNRegressor` solves for the readout.
    """
    generator = np.random.default_rng(seed)
    controller = None
    if control is not None:

        def controller(weights: Any, trace: Any) -> Any:
            return control_penalty(network.cell, weights, trace, control, generator)

    chunks = list(batch.chunks(truncation))
    best, kept, memory = np.inf, params, optimizer.init(params)
    with using("numba" if importlib.util.find_spec("numba") else "numpy"):
        for _ in range(epochs):
            state = None
            for chunk in chunks:
                _, grads, state = loss_and_gradient(
                    network, params, chunk, state, control=controller
                )
                factor = min(1.0, CLIP_NORM / max(global_norm(grads), CLIP_NORM))
                grads = {name: grad * factor for name, grad in grads.items()}
                params, memory = optimizer.update(params, grads, memory)
            loss, _ = loss_value(network, params, batch)
            if loss < best:
                best, kept = loss, {name: weights.copy() for name, weights in params.items()}
    return kept
