"""A network that says all horizons at once from its state, without a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.readouts import GramAccumulator
from reservoir.series_models.differences import Differences
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel, NothingObserved, SeriesModel
from reservoir.series_models.own_loops import Drive, features_of, network_sources

_PART_AHEAD = 3  # horizons are learned up to one part in so many of the rows
_FEWEST = 4  # rows without a gap in what follows, from which a horizon is learned


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

    def fit(self, history: History, seed: int) -> FittedModel:
        """Build the network; readouts are solved for when it is known how many steps are asked."""
        differences = Differences.of(history.levels, 1)
        n_inputs = Drive.of(history, differences, history.most_terms).inputs.shape[1]
        ((source, washout),) = network_sources(history, n_inputs, [seed])
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

        Beyond a third of the rows nothing can be learned, nor beyond the longest stretches without
        a gap; the last season of growths then goes on.
        """
        learned = self.learned
        most = max(1, (learned.n_rows - 1 - self.washout) // _PART_AHEAD)
        n_said = min(n_steps, most)
        while n_said > 1 and self._told(n_said).sum() < _FEWEST:
            n_said //= 2
        coef, intercept = self._readout(n_said)
        drive = Drive.of(history, self.differences, self.learned.most_terms)
        features = np.concatenate([each for _, each in features_of(self.source, drive.inputs)])
        said = (features[places - 2] @ coef.T + intercept).reshape(len(places), n_said, -1)
        # differences less their mean were learned
        steps = np.arange(1, n_steps + 1)[:, None]
        period = round(max(learned.seasons, default=1.0))
        period = period if period <= n_said else 1
        ahead = np.arange(n_steps)
        beyond = n_said - period + (ahead - n_said) % period
        said = said[:, np.where(ahead < n_said, ahead, beyond)]
        growth = said * self.differences.spread + steps * self.differences.mean
        return history.levels[places - 1][:, None] + growth

    def _told(self, n_steps: int) -> Array:
        """Return, for each row of the inputs, whether its growth over all horizons is known."""
        observed: Array = np.all(self.learned.observed, axis=1)
        last = self.learned.n_rows - 1 - n_steps
        ends = np.add.outer(np.arange(1, last + 1), np.arange(n_steps + 1))
        told: Array = np.zeros(self.learned.n_rows - 1, bool)
        told[:last] = observed[ends].all(axis=1)
        told[: self.washout] = False
        return told

    def _readout(self, n_steps: int) -> tuple[Array, Array]:
        """Return the ridge from features to growths, without units and less their mean."""
        learned = self.learned
        drive = Drive.of(learned, self.differences, learned.most_terms)
        # of the level at row i + 1, less its mean growth
        sums = np.concatenate([np.zeros((1, learned.n_outputs)), np.cumsum(drive.rows, axis=0)])
        told = self._told(n_steps)
        if not told.any():
            raise NothingObserved
        gram = GramAccumulator(self.source.width, n_steps * learned.n_outputs)
        for start, features in features_of(self.source, drive.inputs):
            rows = start + np.flatnonzero(told[start : start + len(features)])
            ends = np.add.outer(rows + 1, np.arange(1, n_steps + 1))
            growth = sums[ends] - sums[rows + 1][:, None]
            if len(rows):
                gram.update(features[rows - start], growth.reshape(len(rows), -1))
        coef, intercept = gram.solve(self.alpha)[:2]
        return np.atleast_2d(coef), np.atleast_1d(intercept)
