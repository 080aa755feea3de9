"""Recurrent networks in which every weight is trained: cells, losses, gradients and solvers.

The first axis of arrays is time: inputs have shape (n_steps, n_sequences, n_features). Weights are
stored in a dict from names to arrays. `reservoir.RNNRegressor` and `reservoir.RNNClassifier` wrap
these functions in scikit-learn estimators.
"""

from reservoir.training import (
    bptt,
    cells,
    gradient_control,
    initializers,
    least_squares,
    losses,
    omega,
    online,
    optimizers,
    regularizers,
    rtrl,
    schedules,
    solvers,
    starts,
    temporal_gradients,
    trainer,
)

__all__ = [
    "bptt",
    "cells",
    "gradient_control",
    "initializers",
    "least_squares",
    "losses",
    "omega",
    "online",
    "optimizers",
    "regularizers",
    "rtrl",
    "schedules",
    "solvers",
    "starts",
    "temporal_gradients",
    "trainer",
]
