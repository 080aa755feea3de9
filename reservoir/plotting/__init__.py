"""Plots: functions that return matplotlib `Axes`.

Colours come from matplotlib's rcParams, and are moved away from the background where they would not
be visible. Every plot can be read in black and white: elements of different colours also differ in
line style, marker or grey level. The limits of given axes are not touched. Matplotlib is imported
inside the functions, and no other part of the package imports this one.
"""

from reservoir.plotting._backtest import backtest
from reservoir.plotting._bias_region import bias_region
from reservoir.plotting._bifurcation import bifurcation
from reservoir.plotting._certificate_box import certificate
from reservoir.plotting._cobweb import cobweb
from reservoir.plotting._field import field
from reservoir.plotting._forecast import forecast
from reservoir.plotting._forgetting import forgetting
from reservoir.plotting._gradient_norms import jacobian_norms, temporal_gradients
from reservoir.plotting._horizon_errors import horizon_errors
from reservoir.plotting._memory_profile import memory_profile
from reservoir.plotting._overview import overview
from reservoir.plotting._parameter_map import parameter_map
from reservoir.plotting._penalty_path import penalty_path
from reservoir.plotting._phase_portrait import phase_portrait
from reservoir.plotting._residuals import residuals
from reservoir.plotting._running_error import running_error
from reservoir.plotting._search_scores import closed_loop_search
from reservoir.plotting._spectrum import multipliers, spectrum
from reservoir.plotting._states import states

__all__ = [
    "backtest",
    "bias_region",
    "bifurcation",
    "certificate",
    "closed_loop_search",
    "cobweb",
    "field",
    "forecast",
    "forgetting",
    "horizon_errors",
    "jacobian_norms",
    "memory_profile",
    "multipliers",
    "overview",
    "parameter_map",
    "penalty_path",
    "phase_portrait",
    "residuals",
    "running_error",
    "spectrum",
    "states",
    "temporal_gradients",
]
