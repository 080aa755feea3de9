"""Closed-loop forecasts with networks, alone or inside scikit-learn's wrappers.

`predictor` defines what a network must offer, `pipeline` finds it inside wrappers, maps columns and
units to it and back, and closes the loop, and `forecast` returns the rows. `filling` runs closed
loops into gaps from both sides; `loop_trials` compares loops with the data that followed.
"""

from reservoir.estimators.forecasting.filling import fill_gap, fill_gaps
from reservoir.estimators.forecasting.forecast import forecast
from reservoir.estimators.forecasting.loop_map import LoopMap  # noqa: F401 (registers it)

__all__ = ["fill_gap", "fill_gaps", "forecast"]
