"""Seasonal naive forecast, which repeats the last season and adds the mean growth per season."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.series_models.history import History
from reservoir.series_models.model import FittedModel, SeriesModel, check_enough_past

_FEW = 7  # steps; from so many on, other models are compared with this one


@dataclass(frozen=True)
class LastSeason(SeriesModel):
    """Forecast by the value one `period` earlier (1: the last) plus the mean growth, the drift.

    With period 1 and fewer than eight rows the drift g is uncertain, and g (1 - v / g^2) or zero is
    added instead, where v is the squared standard error of g.
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
        growths = levels[self.period :] - levels[: -self.period]
        growth = growths.mean(axis=0)
        if not self.drift:
            growth = np.zeros_like(growth)
        elif self.period == 1 and len(growths) < _FEW:
            growth *= _certainty(growths)
        return FittedNaive(self.period, growth)


def _certainty(growths: Array) -> Array:
    """Return 1 - v / g^2 or zero, for the mean g of growths and its squared standard error v."""
    largest = np.abs(growths).max(axis=0)
    units = growths / np.where(largest > 0, largest, 1.0)  # whose squares cannot overflow
    square, variance = units.mean(axis=0) ** 2, units.var(axis=0, ddof=1) / len(units)
    share: Array = variance / np.maximum(np.maximum(square, variance), np.finfo(float).tiny)
    return 1 - share


@saved
@dataclass(frozen=True, eq=False)
class FittedNaive(FittedModel):
    """A fitted `LastSeason`, with the growth per period, (n_outputs,)."""

    period: int
    growth: Array

    def forecast(self, history: History, origins: Array, n_steps: int) -> Array:
        """Repeat the period before each origin, and add the growth per period."""
        check_enough_past(origins, self.period)
        steps = np.arange(n_steps)
        rows = np.add.outer(origins - self.period, steps % self.period)
        periods = (steps // self.period + 1)[:, None]
        return history.levels[rows] + periods * self.growth
