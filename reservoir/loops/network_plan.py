"""The parameters of a candidate network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir.building import build_reservoir
from reservoir.dynamics.features import DrivenReservoir, FeatureSource
from reservoir.dynamics.past_inputs import LaggedSource
from reservoir.loops.loop_design import Trajectories

_IN_DEGREE = 10
_FEW_INPUTS = 3  # with more inputs, their scaling is lowered so that their sum has the same size


@saved
@dataclass(frozen=True)
class NetworkPlan:
    """Parameters of a candidate reservoir for standardised rows.

    The features are the states, followed by the inputs. Parameters are as in ESNRegressor; with
    ``spectral_radius=0``, units have no recurrent connections. The network receives `n_lags` rows
    at once, `skip` steps apart.
    """

    n_units: int
    spectral_radius: float
    input_scaling: float
    bias_scaling: float = 1.0
    leak_rate: float = 1.0
    augment: str | None = None
    n_lags: int = 1
    skip: int = 1

    def build(self, data: Trajectories, seed: int) -> FeatureSource:
        """Return the source of features for the given data."""
        n_inputs = data.n_inputs
        n_seen = n_inputs * self.n_lags
        crowd = np.sqrt(max(n_inputs / _FEW_INPUTS, 1.0) * self.n_lags)
        reservoir = build_reservoir(
            self.n_units,
            n_seen,
            in_degree=min(_IN_DEGREE, self.n_units),
            spectral_radius=self.spectral_radius,
            input_scaling=self.input_scaling / crowd,
            leak_rate=self.leak_rate,
            bias_scaling=self.bias_scaling,
            random_state=seed,
        )
        source = DrivenReservoir(reservoir, include_input=True, augment=self.augment)
        if self.n_lags == 1:
            return source
        return LaggedSource(source, self.n_lags, self.skip)
