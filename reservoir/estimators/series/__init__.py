"""ESNForecaster, with the reading of series from any container and the search for models.

The candidate models and their scores are in `reservoir.loops` and `reservoir.series_models`.
"""

from reservoir.estimators.series.esn_forecaster import ESNForecaster
from reservoir.estimators.series.seasonal_naive import SeasonalNaive

__all__ = ["ESNForecaster", "SeasonalNaive"]
