"""Intervals and sample paths around a forecast, within the bounds of the series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reservoir._typing import Array
from reservoir.series_models.bands import Bands


@dataclass(frozen=True)
class Spread:
    """What is known of the errors of forecasts, and the bounds (n_outputs,) of what may come."""

    bands: Bands
    low: Array
    high: Array

    def ends(self, point: Array, coverages: Sequence[float]) -> Array:
        """Return the ends of intervals around forecasts, (n_coverages, 2, n_steps, n_outputs)."""
        return np.clip(self.bands.around(point, coverages), self.low, self.high)

    def paths(self, point: Array, n_paths: int, generator: np.random.Generator) -> Array:
        """Return sample paths around forecasts, (n_paths, n_steps, n_outputs)."""
        return np.clip(self.bands.paths(point, n_paths, generator), self.low, self.high)
