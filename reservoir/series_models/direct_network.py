"""A network that says all horizons at once from its state, without a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.differences import Differences
from reservoir.series_models.history import History
from reservoir.series_models.masked_sums import MaskedSums
from reservoir.series_models.model import FittedModel, SeriesModel, refuse_early
from reservoir.series_models.own_loops import (
    Drive,
    features_at,
    features_of,
    network_sources,
    told_of,
)

_PART_AHEAD = 3  # horizons are learned up to one part in so many of the rows
_ENOUGH = 0.5  # part of the rows in which all horizons are observed: the others are left out


@dataclass(frozen=True)
class DirectNetwork(SeriesModel):
    """A ridge from the state of a network to the growth over each horizon.

    Parameters
    ----------
    alpha : float, default=10.0
        Ridge penalty, for all rows together.
    """

    alpha: float = 10.0
    fewest: int = 12
    simple: ClassVar[bool] = False

    def fit(self, history: History, seed: int) -> FittedModel:
        """Build the network; readouts are solved for when it is known how many steps are asked."""
        differences = Differences.of(history.levels, 1, told_of(history, 1))
        n_inputs = Drive.of(history, differences, history.most_terms).inputs.shape[1]
        ((source, (washout,)),) = network_sources([history], n_inputs, [seed])
        return FittedDirect(history, differences, source, washout, self.alpha)


@saved
@dataclass(frozen=True, eq=False)
class FittedDirect(FittedModel):
    """The network, and the rows that readouts are fitted to."""

    learned: History
    differences: Differences
    source: Any
    washout: int
    alpha: float

    def forecast(self, history: History, places: Array, n_steps: int) -> Array:
        """Say the growth over each horizon.

        Beyond a third of the rows nothing can be learned; the last season of growths then goes on.
        """
        refuse_early(places, 2)
        learned = self.learned
        most = max(1, (learned.n_rows - 1 - self.washout) // _PART_AHEAD)
        n_said = min(n_steps, most)
        coef, intercept = self._readout(n_said)
        drive = Drive.of(history, self.differences, self.learned.most_terms)
        features = features_at(self.source, drive.inputs, places - 2)
        said = (features @ coef.T + intercept).reshape(len(places), n_said, -1)
        # differences less their mean were learned
        steps = np.arange(1, n_steps + 1)[:, None]
        period = round(max(learned.seasons, default=1.0))
        period = period if period <= n_said else 1
        ahead = np.arange(n_steps)
        beyond = n_said - period + (ahead - n_said) % period
        said = said[:, np.where(ahead < n_said, ahead, beyond)]
        growth = said * self.differences.spread + steps * self.differences.mean
        return history.levels[places - 1][:, None] + growth

    def _readout(self, n_steps: int) -> tuple[Array, Array]:
        """Return the ridge from features to growths, without units and less their mean."""
        learned = self.learned
        drive = Drive.of(learned, self.differences, learned.most_terms)
        # of the level at row i + 1, less its mean growth
        sums = np.concatenate([np.zeros((1, learned.n_outputs)), np.cumsum(drive.rows, axis=0)])
        rows = np.arange(learned.n_rows - 1 - n_steps)
        ends = np.add.outer(rows + 1, np.arange(1, n_steps + 1))
        told = learned.observed[ends] & learned.observed[rows + 1][:, None]
        told = told.reshape(len(rows), -1)
        told[: self.washout] = False
        # one set of sums where that costs few rows, or else one for each horizon
        complete: Array = np.all(told, axis=1)
        if complete.sum() >= _ENOUGH * told.any(axis=1).sum():
            told = np.tile(complete[:, None], told.shape[1])
        gram = MaskedSums(self.source.width, told)
        for start, features in features_of(self.source, drive.inputs[: len(rows)]):
            ahead = ends[start : start + len(features)]
            growth = sums[ahead] - sums[ahead[:, 0] - 1][:, None]
            gram.update(features, growth.reshape(len(features), -1), start)
        return gram.solve(self.alpha)
