"""The product of the step Jacobians along a trajectory, applied without being formed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class Tangent:
    """The product J[T] ... J[1] of the Jacobians J[t] = (1 - a) I + diag(a f'(z[t])) W of T steps.

    It maps a small difference of states to the difference after the steps. Only `matrix` forms it.
    `kept`, (n_units, 1), is 1 - a, where a are the leak rates; `slopes`, (n_steps, n_units), are a
    f'(z[t]), where z are the pre-activations.
    """

    W: Matrix
    kept: Array
    slopes: Array

    def advance(self, V: Array, t: int) -> Array:
        """Return the Jacobian of step t times V, of shape (n_units, n_columns)."""
        out = self.W @ V
        out *= self.slopes[t][:, None]
        if self.kept.any():
            out += self.kept * V
        return out

    def apply(self, V: Array) -> Array:
        """Return the whole product times V, of shape (n_units,) or (n_units, n_columns)."""
        out = V.reshape(len(V), -1)
        for t in range(len(self.slopes)):
            out = self.advance(out, t)
        return out.reshape(V.shape)

    def matrix(self) -> Array:
        """Return the product as a dense matrix of shape (n_units, n_units)."""
        return self.apply(np.eye(len(self.kept)))
