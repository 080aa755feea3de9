"""A model of series: the mean of the last rows, again and again."""

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir.series_models.model import FittedModel, SeriesModel


@dataclass(frozen=True)
class MeanLevel(SeriesModel):
    n_rows: int

    @property
    def min_rows(self):
        return self.n_rows

    def fit(self, history, seed):
        return FittedMean(self.n_rows)


@saved
@dataclass(frozen=True, eq=False)
class FittedMean(FittedModel):
    n_rows: int

    def forecast(self, history, origins, n_steps):
        means = [history.levels[origin - self.n_rows : origin].mean(axis=0) for origin in origins]
        return np.repeat(np.array(means)[:, None], n_steps, axis=1)
