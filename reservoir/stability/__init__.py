"""Stability: what is proved of a network, and what is measured.

Theorems, computed for the network at hand with rounding included: `certify`, `certify_cycle`,
`bias_bounds` of one unit. Heuristics and measurements say so.
"""

from reservoir.stability._attractors import Attractors, sample_attractors
from reservoir.stability._bias_bounds import BiasBounds, bias_bounds, critical_bias
from reservoir.stability._certificate import Certificate
from reservoir.stability._certificates import certify
from reservoir.stability._conditions import EchoStateConditions, echo_state_conditions
from reservoir.stability._cycle_certificates import certify_cycle
from reservoir.stability._design import LargestCertified, largest_certified, stable_bias
from reservoir.stability._exponents import lyapunov_exponents
from reservoir.stability._limit_cycles import LimitCycle, LimitCycleError, find_limit_cycle
from reservoir.stability._loops import certify_loop
from reservoir.stability._measures import consistency, echo_state_index, transient_length
from reservoir.stability._network import UnboundedActivationError, drive_range
from reservoir.stability._sweep import Sweep, sweep

__all__ = [
    "Attractors",
    "BiasBounds",
    "Certificate",
    "EchoStateConditions",
    "LargestCertified",
    "LimitCycle",
    "LimitCycleError",
    "Sweep",
    "UnboundedActivationError",
    "bias_bounds",
    "certify",
    "certify_cycle",
    "certify_loop",
    "consistency",
    "critical_bias",
    "drive_range",
    "echo_state_conditions",
    "echo_state_index",
    "find_limit_cycle",
    "largest_certified",
    "lyapunov_exponents",
    "sample_attractors",
    "stable_bias",
    "sweep",
    "transient_length",
]
