"""Radial basis functions as features: units that respond to inputs near their centres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.dynamics.feature_source import PLAIN_RUN, Block, FeatureSource, Run
from reservoir.dynamics.open_loop import block_rows


@saved
@dataclass(frozen=True, eq=False)
class RadialUnits(FeatureSource):
    """Gaussian radial basis functions of the input: ``exp(-|scaling * u - centre|^2 / 2)``.

    `centres`, (n_units, n_features), are scaled inputs; `scaling` is (n_features,). The units have
    no memory. D. S. Broomhead and D. Lowe, "Multivariable functional interpolation and adaptive
    networks", Complex Systems 2, 1988; for chaotic series M. Casdagli, "Nonlinear prediction of
    chaotic time series", Physica D 35, 1989.
    """

    centres: Array
    scaling: Array

    @property
    def n_features(self) -> int:
        """Number of columns of the input."""
        return len(self.scaling)

    @property
    def width(self) -> int:
        """Number of units."""
        return len(self.centres)

    @property
    def state_size(self) -> int:
        """Zero: there is no state."""
        return 0

    @property
    def dtype(self) -> Any:
        """Data type of the features and of the states."""
        return self.centres.dtype

    def answers(self, rows: Array) -> Array:
        """Return the response of each unit to each row, (n_rows, n_units)."""
        scaled = rows * self.scaling
        # -|x - c|^2 / 2, expanded so that a matrix product computes it; rounding errors may make it
        # positive, hence the minimum
        exponent = scaled @ self.centres.T
        exponent -= (scaled**2).sum(axis=1)[:, None] / 2
        exponent -= (self.centres**2).sum(axis=1) / 2
        np.minimum(exponent, 0, out=exponent)
        return np.asarray(np.exp(exponent, out=exponent))

    def mixing(self) -> Array:
        """Return the mixing matrix that turns ridge into kernel ridge, (n_units, n_units).

        Its columns are linear combinations of units. The ridge penalty on their coefficients is the
        squared norm of the function in the reproducing kernel Hilbert space of the Gaussian kernel.
        """
        factor = cholesky(self.answers(self.centres / self.scaling), lower=True)
        return np.ascontiguousarray(solve_triangular(factor, np.eye(self.width), lower=True).T)

    def iter_features(self, rows: Array, state: Array, run: Run = PLAIN_RUN) -> Iterator[Block]:
        """Run over one sequence, block by block; the engine makes no difference."""
        n_rows = block_rows(self.width, len(rows))
        for start in range(0, len(rows), n_rows):
            yield start, self.answers(rows[start : start + n_rows]), state

    def advance(
        self, states: Array, inputs: Array, teachers: Array | None = None
    ) -> tuple[Array, Array]:
        """Take one step of many runs side by side."""
        return self.answers(inputs), states
