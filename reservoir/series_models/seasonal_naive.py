"""Seasonal naive forecast, which repeats the last season and adds the mean growth per season."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past


@dataclass(frozen=True)
class SeasonalNaive(SeriesModel):
    """Forecast by the value one period earlier plus the drift.

    Parameters
    ----------
    period : int
        Number of rows per period; 1 to continue from the last value.
    drift : bool, default=True
        Whether the mean growth per period is added.
    """

    period: int
    drift: bool = True
    cost: ClassVar[float] = 0.1

    @property
    def min_rows(self) -> int:  # type: ignore[override]
        """Least number of rows for a fit."""
        return self.period + 2

    def fit(self, history: History, seed: int = 0) -> FittedModel:
        """Learn the mean growth per period."""
        levels = history.levels
        growth = (levels[self.period :] - levels[: -self.period]).mean(axis=0)
        return FittedNaive(self.period, growth if self.drift else np.zeros_like(growth))


@saved
@dataclass(frozen=True, eq=False)
class FittedNaive(FittedModel):
    """A fitted `SeasonalNaive`, with the growth per period, (n_outputs,)."""

    period: int
    growth: Array

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Repeat the period before each origin, and add the growth per period."""
        check_enough_past(origins, self.period)
        steps = np.arange(n_steps)
        rows = np.add.outer(origins - self.period, steps % self.period)
        periods = (steps // self.period + 1)[:, None]
        return history.levels[rows] + periods * self.growth
