"""Pictures: arrays in, matplotlib `Axes` out.

Nothing in the package imports this module, and matplotlib is imported inside its functions: without
it each raises an ImportError that says what to install. Every picture reads in black and white:
what differs, differs by line style, marker or grey.
"""

from reservoir.plotting._readout import memory_profile, penalty_path
from reservoir.plotting._series import forecast, states
from reservoir.plotting._spectrum import spectrum

__all__ = ["forecast", "memory_profile", "penalty_path", "spectrum", "states"]
