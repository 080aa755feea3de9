"""Forecasts of series as they come: a bank of networks is tried, the best ones forecast.

What is tried, and how it is judged, is in `reservoir.loops`; here is what users see of it.
"""

from reservoir.estimators.series.esn_forecaster import ESNForecaster

__all__ = ["ESNForecaster"]
