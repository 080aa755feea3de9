"""Closed-loop forecasts, alone and through scikit-learn's wrappers.

`forecaster` says what a network must offer, `_chain` finds it inside wrappers, `_column_layout`
knows how columns and units reach it, and `forecast` closes the loop. `filling` runs loops into gaps
from both sides.
"""

from reservoir.estimators.forecasting.filling import fill_gap, fill_gaps
from reservoir.estimators.forecasting.forecast import forecast

__all__ = ["fill_gap", "fill_gaps", "forecast"]
