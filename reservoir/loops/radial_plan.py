"""The parameters of a candidate network of radial units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from reservoir.dynamics.past_inputs import LaggedSource
from reservoir.dynamics.radial_units import RadialUnits
from reservoir.loops.loop_design import Place, Trajectories

_TOLERANCE = 1e-8  # a unit is omitted if other units explain all but this fraction of its square
_CANDIDATES = 2000  # rows among which the centres of units are chosen


@dataclass(frozen=True)
class RadialPlan:
    """Radial units with the present and past rows as inputs, centred at training data.

    There are `n_units`, or as many as training rows. At the distance `width`, the root of the
    weighted mean squared difference of all inputs, a response is exp(-1/2); the weight of a row
    decreases by a factor of e with each `memory` steps of its age. A unit receives `n_lags` rows,
    `skip` steps apart.
    """

    n_units: int
    width: float
    memory: float
    n_lags: int
    skip: int = 1

    def build(self, data: Trajectories, seed: int) -> LaggedSource:
        """Return the source of features for the given data; the seed is not used.

        The centres are pivots of the Cholesky factorisation of the kernel matrix: each further
        centre is the row whose response the previous units explain least.
        """
        ages = np.arange(self.n_lags) * self.skip
        weights = np.repeat(np.exp(-ages / self.memory), data.n_inputs)
        scaling = np.sqrt(weights / weights.sum()) / self.width
        seen = np.array([data.inputs[i][t - ages].ravel() for i, t in self._places(data)])
        every = RadialUnits(seen * scaling, scaling)
        _, pivots, rank, _ = dpstrf(every.answers(seen), tol=_TOLERANCE, lower=1)
        chosen = np.sort(pivots[: min(rank, self.n_units)] - 1)
        return LaggedSource(RadialUnits(every.centres[chosen], scaling), self.n_lags, self.skip)

    def _places(self, data: Trajectories) -> list[Place]:
        """Return the positions of rows with all past rows available, or a subset if many."""
        past = (self.n_lags - 1) * self.skip
        firsts = np.cumsum([0] + [max(len(rows) - past, 0) for rows in data.inputs])
        rows = np.arange(firsts[-1])
        if len(rows) > _CANDIDATES:
            rows = np.linspace(0, len(rows) - 1, _CANDIDATES).astype(int)
        which = np.searchsorted(firsts, rows, side="right") - 1
        return list(zip(which.tolist(), (rows - firsts[which] + past).tolist(), strict=True))
