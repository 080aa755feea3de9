"""What a network of radial units in a bank is made by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from reservoir.dynamics.lagged import LaggedSource
from reservoir.dynamics.radial_units import RadialUnits
from reservoir.loops.loop_design import Place, Trajectories

_TOLD = 1e-8  # of a unit's square, what may remain that the others do not tell
_CANDIDATES = 2000  # rows that units are chosen among


@dataclass(frozen=True)
class RadialPlan:
    """Radial units on the present row and those before it, around rows that were seen.

    Attributes
    ----------
    n_units : int
        At most; one around each row where there are no more of them.
    width : float
        Distance at which a unit's answer has fallen to exp(-1/2): the root of the mean squared
        difference in what is seen, where rows count less the longer ago they are.
    memory : float
        Steps after which a row counts 1 / e times as much.
    n_lags, skip : int
        Rows that units see at once, and the steps between them.
    """

    n_units: int
    width: float
    memory: float
    n_lags: int
    skip: int = 1

    def build(self, data: Trajectories, seed: int) -> LaggedSource:
        """Return the source of features; the seed decides nothing.

        Units stand where those before tell least of what a unit there would say: pivots of the
        Cholesky factor of the kernel.
        """
        ages = np.arange(self.n_lags) * self.skip
        weights = np.repeat(np.exp(-ages / self.memory), data.n_inputs)
        scaling = np.sqrt(weights / weights.sum()) / self.width
        seen = np.array([data.inputs[i][t - ages].ravel() for i, t in self._places(data)])
        every = RadialUnits(seen * scaling, scaling)
        _, pivots, rank, _ = dpstrf(every.answers(seen), tol=_TOLD, lower=1)
        chosen = np.sort(pivots[: min(rank, self.n_units)] - 1)
        return LaggedSource(RadialUnits(every.centres[chosen], scaling), self.n_lags, self.skip)

    def _places(self, data: Trajectories) -> list[Place]:
        """Return rows that have their past behind them; if there are many, some of them."""
        past = (self.n_lags - 1) * self.skip
        firsts = np.cumsum([0] + [max(len(rows) - past, 0) for rows in data.inputs])
        rows = np.arange(firsts[-1])
        if len(rows) > _CANDIDATES:
            rows = np.linspace(0, len(rows) - 1, _CANDIDATES).astype(int)
        which = np.searchsorted(firsts, rows, side="right") - 1
        return list(zip(which.tolist(), (rows - firsts[which] + past).tolist(), strict=True))
