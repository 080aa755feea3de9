"""From an estimator's parameters to its reservoir."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from reservoir.building import assemble_reservoir
from reservoir.dynamics import Reservoir

_NAMES = (
    "topology",
    "in_degree",
    "weights",
    "input_weights",
    "spectral_radius",
    "leak_rate",
    "activation",
    "input_scaling",
    "bias",
    "bias_scaling",
)


def build(
    estimator: Any, n_features: int, generator: np.random.Generator, *, n_outputs: int = 0
) -> Reservoir:
    """Return the reservoir that an estimator's parameters describe; n_outputs are fed back."""
    return assemble_reservoir(
        estimator.n_units,
        n_features,
        n_outputs=n_outputs,
        feedback_scaling=estimator.feedback_scaling if n_outputs else 1.0,
        dtype=estimator_dtype(estimator.dtype),
        generator=generator,
        repeatable=isinstance(estimator.random_state, Integral),
        **{name: getattr(estimator, name) for name in _NAMES},
    )


def estimator_dtype(dtype: Any) -> Any:
    """Return numpy's float32 or float64 for the parameter `dtype`."""
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'.")
    return resolved
