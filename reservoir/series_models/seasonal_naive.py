"""Seasonal naive forecast: the last season repeated, plus the mean growth between seasons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past


@dataclass(frozen=True)
class SeasonalNaive(SeriesModel):
    """The value one period before, plus the drift; for period 1 the last value plus the drift.

    Parameters
    ----------
    period : int
    drift : bool, default=True
        Whether the mean growth is added.
    """

    period: int
    drift: bool = True

    @property
    def min_rows(self) -> int:  # type: ignore[override]
        """Least number of rows for a fit."""
        return self.period + 2

    def fit(self, history: History, seed: int = 0) -> FittedModel:
        """Learn the mean growth over a period."""
        levels = history.levels
        growth = (levels[self.period :] - levels[: -self.period]).mean(axis=0)
        return FittedNaive(self.period, growth if self.drift else np.zeros_like(growth))


@saved
@dataclass(frozen=True, eq=False)
class FittedNaive(FittedModel):
    """A `SeasonalNaive` with its growth over a period, (n_outputs,)."""

    period: int
    growth: Array

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Repeat the last period, plus the growth."""
        check_enough_past(origins, self.period)
        steps = np.arange(n_steps)
        rows = np.add.outer(origins - self.period, steps % self.period)
        periods = (steps // self.period + 1)[:, None]
        return history.levels[rows] + periods * self.growth
