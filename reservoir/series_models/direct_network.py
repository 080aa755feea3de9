"""A network that forecasts all horizons at once from its state, without a closed loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.growth_sums import GrowthSums
from reservoir.series_models.history import History
from reservoir.series_models.lags import Differences
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past
from reservoir.series_models.recursive_ridge import (
    Drive,
    features_at,
    features_of,
    network_sources,
    observed_differences,
)

_PART_AHEAD = 3  # horizons are learned up to a third of the rows


@dataclass(frozen=True)
class DirectNetwork(SeriesModel):
    """Ridges from a network's state to the growth over each horizon; `alpha` is not per row."""

    alpha: float = 10.0
    min_rows: int = 12
    cost: ClassVar[float] = 10.0
    simple: ClassVar[bool] = False

    def fit(self, history: History, seed: int) -> FittedModel:
        """Build the network; `forecast` solves for the readouts of the requested horizons."""
        differences = Differences.of(history.levels, 1, observed_differences(history, 1))
        n_inputs = Drive.of(history, differences, history.most_terms).inputs.shape[1]
        ((source, (washout,)),) = network_sources([history], n_inputs, [seed])
        return FittedDirect(history, differences, source, washout, self.alpha)


@saved
@dataclass(frozen=True, eq=False)
class FittedDirect(FittedModel):
    """The network, and the rows on which its readouts are fitted."""

    learned: History
    differences: Differences
    source: Any
    washout: int
    alpha: float

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Forecast from several origins, by predicting the growth over each horizon.

        Horizons beyond a third of the rows have too few targets; for these, the predictions for the
        last season of horizons are repeated.
        """
        check_enough_past(origins, 2)
        learned = self.learned
        most = max(1, (learned.n_rows - 1 - self.washout) // _PART_AHEAD)
        n_learned = min(n_steps, most)
        coef, intercept = self._readout(n_learned)
        drive = Drive.of(history, self.differences, self.learned.most_terms)
        features = features_at(self.source, drive.inputs, origins - 2)
        # horizon by horizon: the bits of a product depend on its shape
        predicted = (features @ coef + intercept[:, None]).transpose(1, 0, 2)
        # the mean was subtracted from the differences that the targets sum
        steps = np.arange(1, n_steps + 1)[:, None]
        period = round(max(learned.seasons, default=1.0))
        period = period if period <= n_learned else 1
        ahead = np.arange(n_steps)
        beyond = n_learned - period + (ahead - n_learned) % period
        predicted = predicted[:, np.where(ahead < n_learned, ahead, beyond)]
        growth = predicted * self.differences.spread + steps * self.differences.mean
        return history.levels[origins - 1][:, None] + growth

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without readouts."""
        return {name: value for name, value in vars(self).items() if name != "_solved"}

    def _readout(self, n_steps: int) -> tuple[Array, Array]:
        """Return the readouts of the first horizons, which later forecasts use again."""
        solved = vars(self).get("_solved")
        if solved is None or len(solved[0]) < n_steps:
            solved = vars(self)["_solved"] = self._solve(n_steps)
        return solved[0][:n_steps], solved[1][:n_steps]

    def _solve(self, n_steps: int) -> tuple[Array, Array]:
        """Return the ridges from features to the sums of standardised differences.

        Coefficients have shape (n_steps, width, n_outputs), intercepts (n_steps, n_outputs).
        """
        learned = self.learned
        drive = Drive.of(learned, self.differences, learned.most_terms)
        # levels minus their mean growth
        levels = np.concatenate([np.zeros((1, learned.n_outputs)), np.cumsum(drive.rows, axis=0)])
        # columns that are observed in the same rows use the same sums
        groups: dict[bytes, list[int]] = {}
        for k, observed in enumerate(learned.observed.T):
            groups.setdefault(observed.tobytes(), []).append(k)
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
