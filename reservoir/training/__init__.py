"""Recurrent networks with every weight trained: cells, losses, gradients, optimizers, starts.

The functions take arrays with time first: inputs (n_steps, n_sequences, n_features). Weights are
kept by name in a dict. `reservoir.RNNRegressor` and `reservoir.RNNClassifier` wrap these functions
in scikit-learn estimators.
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
