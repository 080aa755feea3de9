"""Plots: functions that take arrays and return matplotlib `Axes`.

Matplotlib is imported inside the functions, and no other part of the package imports this one.
Without matplotlib, each function raises an ImportError that names the package to install. Every
plot can be read in black and white: elements of different colours also differ in line style, marker
or grey level.
"""

from reservoir.plotting._bias_region import bias_region
from reservoir.plotting._bias_surface import bias_surface
from reservoir.plotting._bifurcation import bifurcation
from reservoir.plotting._certificate_box import certificate
from reservoir.plotting._cobweb import cobweb
from reservoir.plotting._forgetting import forgetting
from reservoir.plotting._gradient_norms import jacobian_norms, temporal_gradients
from reservoir.plotting._horizon_errors import horizon_errors
from reservoir.plotting._memory_profile import memory_profile
from reservoir.plotting._parameter_map import parameter_map
from reservoir.plotting._penalty_path import penalty_path
from reservoir.plotting._phase_portrait import phase_portrait
from reservoir.plotting._residuals import residuals
from reservoir.plotting._search_scores import closed_loop_search
from reservoir.plotting._spectrum import multipliers, spectrum
from reservoir.plotting._time_series import forecast, states

__all__ = [
    "bias_region",
    "bias_surface",
    "bifurcation",
    "certificate",
    "closed_loop_search",
    "cobweb",
    "forecast",
    "forgetting",
    "horizon_errors",
    "jacobian_norms",
    "memory_profile",
    "multipliers",
    "parameter_map",
    "penalty_path",
    "phase_portrait",
    "residuals",
    "spectrum",
    "states",
    "temporal_gradients",
]
