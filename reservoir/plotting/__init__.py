"""Pictures: arrays in, matplotlib `Axes` out.

Nothing in the package imports this module, and matplotlib is imported inside its functions: without
it each raises an ImportError that says what to install. Every picture reads in black and white:
what differs, differs by line style, marker or grey.
"""

from reservoir.plotting._bounds import bias_region, bias_surface
from reservoir.plotting._certificate import certificate
from reservoir.plotting._cobweb import cobweb
from reservoir.plotting._gradients import jacobian_norms
from reservoir.plotting._maps import bifurcation, parameter_map
from reservoir.plotting._portraits import phase_portrait
from reservoir.plotting._readout import memory_profile, penalty_path
from reservoir.plotting._series import forecast, states
from reservoir.plotting._spectrum import multipliers, spectrum

__all__ = [
    "bias_region",
    "bias_surface",
    "bifurcation",
    "certificate",
    "cobweb",
    "forecast",
    "jacobian_norms",
    "memory_profile",
    "multipliers",
    "parameter_map",
    "penalty_path",
    "phase_portrait",
    "spectrum",
    "states",
]
