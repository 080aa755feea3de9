"""Stability: what is proved of a network, and what is measured.

Theorems, computed for the network at hand with rounding included: `certify`, `certify_cycle`,
`bias_bounds` of one unit. Heuristics and measurements say so.
"""

from reservoir.stability._bias_bounds import BiasBounds, bias_bounds, critical_bias
from reservoir.stability._certificates import Certificate, certify, certify_cycle
from reservoir.stability._network import UnboundedActivationError, drive_range

__all__ = [
    "BiasBounds",
    "Certificate",
    "UnboundedActivationError",
    "bias_bounds",
    "certify",
    "certify_cycle",
    "critical_bias",
    "drive_range",
]
