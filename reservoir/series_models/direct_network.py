"""A network that says all horizons at once from its state, without a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.differences import Differences
from reservoir.series_models.growth_sums import GrowthSums
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past
from reservoir.series_models.recursive_ridge import (
    Drive,
    features_at,
    features_of,
    network_sources,
    told_of,
)

_PART_AHEAD = 3  # horizons are learned up to one part in so many of the rows


@dataclass(frozen=True)
class DirectNetwork(SeriesModel):
    """A ridge from the state of a network to the growth over each horizon, on all rows that it has.

    Parameters
    ----------
    alpha : float, default=10.0
        Ridge penalty, for all rows together.
    """

    alpha: float = 10.0
    min_rows: int = 12
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
        check_enough_past(places, 2)
        learned = self.learned
        most = max(1, (learned.n_rows - 1 - self.washout) // _PART_AHEAD)
        n_said = min(n_steps, most)
        coef, intercept = self._readout(n_said)
        drive = Drive.of(history, self.differences, self.learned.most_terms)
        features = features_at(self.source, drive.inputs, places - 2)
        # horizon by horizon: the bits of a product depend on its shape
        said = (features @ coef + intercept[:, None]).transpose(1, 0, 2)
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
        """Return the ridges from features to growths, without units and less their mean.

        Coefficients are of shape (n_steps, width, n_outputs), intercepts (n_steps, n_outputs).
        """
        learned = self.learned
        drive = Drive.of(learned, self.differences, learned.most_terms)
        # levels less their mean growth
        levels = np.concatenate([np.zeros((1, learned.n_outputs)), np.cumsum(drive.rows, axis=0)])
        # columns that are observed in the same rows share their sums
        groups: dict[bytes, list[int]] = {}
        for k, seen in enumerate(learned.observed.T):
            groups.setdefault(seen.tobytes(), []).append(k)
        sums = [
            GrowthSums(
                self.source.width,
                levels[:, columns],
                learned.observed[:, columns[0]],
                self.washout,
                n_steps,
            )
            for columns in groups.values()
        ]
        for start, features in features_of(self.source, drive.inputs[:-1]):
            for each in sums:
                each.update(features, start)
        coef = np.empty((n_steps, self.source.width, learned.n_outputs))
        intercept = np.empty((n_steps, learned.n_outputs))
        for columns, each in zip(groups.values(), sums, strict=True):
            coef[:, :, columns], intercept[:, columns] = each.solve(self.alpha)
        return coef, intercept
