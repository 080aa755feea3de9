"""Intervals and sample paths around a forecast, within the bounds of the series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array
from reservoir.series_models.bands import Bands


@dataclass(frozen=True)
class Spread:
    """What is known of the errors of forecasts, and the bounds (n_outputs,) of what may come.

    Both are in units (n_outputs,).
    """

    bands: Bands
    low: Array
    high: Array
    unit: Array

    def ends(self, point: Array, coverages: Sequence[float]) -> Array:
        """Return the ends of intervals around forecasts, (n_coverages, 2, n_steps, n_outputs)."""
        return self._held(self.bands.around(point / self.unit, coverages))

    def paths(self, point: Array, n_paths: int, generator: np.random.Generator) -> Array:
        """Return sample paths around forecasts, (n_paths, n_steps, n_outputs)."""
        return self._held(self.bands.paths(point / self.unit, n_paths, generator))

    def _held(self, values: Array) -> Array:
        return np.clip(values, self.low, self.high) * self.unit
