"""What is learned of series with trends and seasons: an average of the models that do best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.estimators.series._series_tables import Scale
from reservoir.series_models.ensemble import Ensemble
from reservoir.series_models.series_data import SeriesData


@saved
@dataclass(frozen=True, eq=False)
class StatisticalFit:
    """An average of models, and the rows behind which it forecasts.

    Attributes
    ----------
    ensemble : Ensemble
    data : SeriesData
    scale_of_exog : Scale or None
    bands : Bands
    """

    ensemble: Ensemble
    data: SeriesData
    scale_of_exog: Scale | None
    bands: Any

    def standard_exog(self, known: Array) -> Array:
        """Return exogenous rows without units."""
        return known if self.scale_of_exog is None else self.scale_of_exog.standardise(known)

    def forecast(self, n_steps: int, known: Array) -> Array:
        """Forecast the rows behind the last one, (n_steps, n_outputs)."""
        data = self._with_known(known)
        return self.ensemble.forecast(data, np.array([data.n_rows]), n_steps)[0]

    def extended(self, values: Array, known: Array) -> StatisticalFit:
        """Return the fit behind further rows in their own units; nothing is learned.

        What is missing among them is filled with what is forecast for it.
        """
        data = self._with_known(known)
        for row in values:
            observed = np.isfinite(row)
            if not observed.all():
                place = np.array([data.n_rows])
                row = np.where(observed, row, self.ensemble.forecast(data, place, 1)[0, 0])
            data = replace(
                data,
                values=np.concatenate([data.values, row[None]]),
                observed=np.concatenate([data.observed, observed[None]]),
            )
        positive = data.positive & (data.values > 0).all(axis=0)
        return replace(self, data=replace(data, positive=positive))

    def _with_known(self, known: Array) -> SeriesData:
        every = np.concatenate(
            [self.data.known[: self.data.n_rows], self.standard_exog(known)], axis=0
        )
        return replace(self.data, known=every)
