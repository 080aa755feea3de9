"""Stability of reservoirs: proofs and measurements.

`proofs` applies theorems to the given network, rounding errors included, as in `certify`;
`measures` computes or samples quantities along trajectories, such as `lyapunov_exponents`, which
prove nothing about other trajectories. Two functions use both: `design` searches for a certified
reservoir with a long memory, and `sweep` measures and certifies over a grid of parameters.
Docstrings state which results are heuristic.
"""

from reservoir.stability._arguments import UnboundedActivationError
from reservoir.stability._certified_values import LargestCertified, largest_certified, stable_bias
from reservoir.stability._design import Alternative, Design, design
from reservoir.stability._drive_ranges import drive_range
from reservoir.stability._sweep import Sweep, sweep
from reservoir.stability.measures._attractors import Attractors, sample_attractors
from reservoir.stability.measures._consistency import consistency
from reservoir.stability.measures._echo_state_index import echo_state_index
from reservoir.stability.measures._exponents import loop_exponents, lyapunov_exponents
from reservoir.stability.measures._flow_exponents import (
    flow_exponents,
    kaplan_yorke_dimension,
    map_exponents,
)
from reservoir.stability.measures._limit_cycles import (
    LimitCycle,
    LimitCycleError,
    find_limit_cycle,
)
from reservoir.stability.measures._loop_cycles import LoopCycle, find_loop_cycle
from reservoir.stability.measures._transient_length import transient_length
from reservoir.stability.proofs._bias_bounds import BiasBounds, bias_bounds, critical_bias
from reservoir.stability.proofs._certificate import Certificate
from reservoir.stability.proofs._certify import certify
from reservoir.stability.proofs._certify_cycle import certify_cycle
from reservoir.stability.proofs._certify_loop import certify_loop
from reservoir.stability.proofs._conditions import EchoStateConditions, echo_state_conditions

__all__ = [
    "Alternative",
    "Attractors",
    "BiasBounds",
    "Certificate",
    "Design",
    "EchoStateConditions",
    "LargestCertified",
    "LimitCycle",
    "LimitCycleError",
    "LoopCycle",
    "Sweep",
    "UnboundedActivationError",
    "bias_bounds",
    "certify",
    "certify_cycle",
    "certify_loop",
    "consistency",
    "critical_bias",
    "design",
    "drive_range",
    "echo_state_conditions",
    "echo_state_index",
    "find_limit_cycle",
    "find_loop_cycle",
    "flow_exponents",
    "kaplan_yorke_dimension",
    "largest_certified",
    "loop_exponents",
    "lyapunov_exponents",
    "map_exponents",
    "sample_attractors",
    "stable_bias",
    "sweep",
    "transient_length",
]
