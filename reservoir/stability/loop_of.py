"""The interface of closed loops that are measured, which estimators provide from above."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from reservoir._typing import Array


class Loop(Protocol):
    """A closed loop as a map of points, (size,), each of which determines the next one.

    It starts from the point `start`. Points are doubles.
    """

    start: Array

    def tangent(self, point: Array, differences: Array) -> tuple[Array, Array]:
        """Take one step; apply its Jacobian to small differences of the point.

        Return the next point and the next differences, (size, n_differences).
        """

    def step(self, point: Array) -> Array:
        """Return the point after a step."""
        return self.tangent(point, np.empty((len(point), 0)))[0]

    def outputs(self, points: Array) -> Array:
        """Return the model's outputs at points: (n_points, size) -> (n_points, n_outputs)."""


@singledispatch
def loop_of(model: Any, context: Any) -> Loop:
    """Return the closed loop of a fitted model, from the end of training or after a context."""
    raise TypeError(
        f"model must be a fitted estimator with a closed loop; got {type(model).__name__}. Use "
        "ESNRegressor, NVARRegressor or RNNRegressor, alone or in a pipeline."
    )
