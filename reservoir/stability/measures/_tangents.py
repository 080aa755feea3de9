"""Products of Jacobians along a trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class Tangent:
    """J[T] ... J[1] with J[t] = (1 - a) I + diag(a f'(z[t])) W, never formed unless asked for.

    Attributes
    ----------
    W : matrix of shape (n_units, n_units)
    kept : array of shape (n_units, 1)
        1 - leak rate.
    slopes : array of shape (n_steps, n_units)
        Leak rate times f'(z).
    """

    W: Matrix
    kept: Array
    slopes: Array

    def advance(self, V: Array, t: int) -> Array:
        """Return J[t] V for V of shape (n_units, n_columns)."""
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
        """Return the product, dense."""
        return self.apply(np.eye(len(self.kept)))
