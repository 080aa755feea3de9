"""From an estimator's parameters to its reservoir."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.building import Recipe
from reservoir.dynamics import Reservoir
from reservoir.stability import Certificate, certify, drive_range

_MARGIN = 0.1  # of the width of each feature's range, on both sides: room for rows to come


class Ranges(NamedTuple):
    """What bias="stable" certifies: ranges of the inputs, and of outputs that are fed back.

    Each is an array of shape (2, n_columns), lower ends first.
    """

    inputs: Array
    outputs: Array | None = None

    def drive(self, reservoir: Reservoir) -> tuple[Array, Array]:
        """Return the bounds of the drive."""
        if self.outputs is None:
            return drive_range(reservoir, *self.inputs)
        return drive_range(
            reservoir, *self.inputs, feedback_low=self.outputs[0], feedback_high=self.outputs[1]
        )

    def certify(self, reservoir: Reservoir) -> Certificate:
        """Return the certificate of a reservoir for the ranges."""
        certificate = certify(reservoir, *self.drive(reservoir))
        return replace(certificate, input_range=self.inputs, output_range=self.outputs)


def ranges_of(arrays: Sequence[Array], targets: Sequence[Array] | None = None) -> Ranges:
    """Return the ranges of a series and of the targets that are fed back, widened by a margin."""
    return Ranges(_widened(arrays), None if targets is None else _widened(targets))


def _widened(arrays: Sequence[Array]) -> Array:
    low = np.min([array.min(axis=0) for array in arrays], axis=0).astype(float)
    high = np.max([array.max(axis=0) for array in arrays], axis=0).astype(float)
    return np.array([low - _MARGIN * (high - low), high + _MARGIN * (high - low)])


def is_stable(bias: Any) -> bool:
    """Whether an estimator asks for a certified bias."""
    return isinstance(bias, str) and bias == "stable"


def build(
    estimator: Any,
    n_features: int,
    generator: np.random.Generator,
    *,
    n_outputs: int = 0,
    ranges: Ranges | None = None,
) -> Reservoir:
    """Return the reservoir that an estimator's parameters describe; n_outputs are fed back."""
    recipe = Recipe.from_attributes(
        estimator,
        drive_bounds=None if ranges is None else ranges.drive,
        feedback_scaling=estimator.feedback_scaling if n_outputs else 1.0,
        dtype=estimator_dtype(estimator.dtype),
    )
    repeatable = isinstance(estimator.random_state, Integral)
    return recipe.build(estimator.n_units, n_features, n_outputs, generator, repeatable=repeatable)


def estimator_dtype(dtype: Any) -> Any:
    """Return numpy's float32 or float64 for the parameter `dtype`."""
    try:
        resolved = np.dtype(dtype)
    except TypeError:
        resolved = None
    if resolved not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'.")
    return resolved
