"""Forecasts of series in any container: reading, the search for models, and ESNForecaster.

Candidates and their scores are in `reservoir.loops` and `reservoir.series_models`.
"""

from reservoir.estimators.series.esn_forecaster import ESNForecaster

__all__ = ["ESNForecaster"]
