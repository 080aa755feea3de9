"""What is learned of series with trends and seasons: an average of the models that do best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reservoir._saving import saved
from reservoir._typing import Array
from reservoir.estimators.series._later_rows import fill_later
from reservoir.estimators.series._series_tables import Scale
from reservoir.series_models.bands import Bands
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
    bands: Bands

    def standard_exog(self, known: Array) -> Array:
        """Return exogenous rows without units."""
        return known if self.scale_of_exog is None else self.scale_of_exog.standardise(known)

    def forecast(self, n_steps: int, known: Array) -> tuple[Array, int]:
        """Forecast the rows behind the last one, (n_steps, n_outputs).

        The number that comes with them is that of the steps before they are held at their bounds.
        """
        return self.ensemble.run(self._with_known(self.standard_exog(known)), n_steps)

    @property
    def uses_logarithms(self) -> bool:
        """Whether a model of the average sees logarithms."""
        return any(member.log for member in self.ensemble.members)

    def extended(self, values: Array, known: Array) -> StatisticalFit:
        """Return the fit behind further rows in their own units; nothing is learned.

        What is missing among them is filled with what is forecast for it.
        """
        return self.after(values, self.standard_exog(known))

    def after(self, values: Array, known: Array) -> StatisticalFit:
        """Return the fit behind further rows, with known inputs without units."""
        data = self._with_known(known)

        def forecast(before: Array, n_steps: int) -> Array:
            seen = _joined(data, before)
            return self.ensemble.forecast(seen, np.array([seen.n_rows]), n_steps)[0]

        filled = _joined(data, fill_later(values, forecast))
        observed = np.concatenate([data.observed, np.isfinite(values)])
        positive = data.positive & (filled.values > 0).all(axis=0)
        return replace(self, data=replace(filled, observed=observed, positive=positive))

    def _with_known(self, known: Array) -> SeriesData:
        every = np.concatenate([self.data.known[: self.data.n_rows], known], axis=0)
        return replace(self.data, known=every)


def _joined(data: SeriesData, later: Array) -> SeriesData:
    """Return a series with later rows, all of them observed."""
    return replace(
        data,
        values=np.concatenate([data.values, later]),
        observed=np.concatenate([data.observed, np.ones(later.shape, bool)]),
    )
