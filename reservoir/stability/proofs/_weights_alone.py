"""Proofs for all slopes from zero up to a bound, which depend on the weights alone.

`echo_state_conditions` sets `sufficient` by these proofs; `certify` tries them if proofs with the
slopes of its box have failed, so that it certifies every network that is `sufficient`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.stability._rounding import is_small
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._lyapunov import MOST_UNITS, lyapunov_proof
from reservoir.stability.proofs._max_norm import max_norm_proof
from reservoir.stability.proofs._turning_scaling import is_within_reach
from reservoir.stability.proofs._two_norm import norm_rate, two_norm_proof
from reservoir.stability.proofs._unit_scalings import (
    aligned,
    balanced,
    good_scaling,
    leading_singular,
    searched_scaling,
)

_NEAR = 1.15  # a scaling is searched for only if a good one has a norm below: it gains less


class WeightsProof(NamedTuple):
    """The method of a proof, its rate per step, and the weights of its norm, if it has any."""

    method: str
    rate: float
    weights: Array | None


def weights_proof(network: IntervalNetwork, steepest: float) -> WeightsProof | None:
    """Return a proof for all slopes from 0 to `steepest`; None if none is found."""
    if not is_small(network.A):
        return None
    return next((found for found in _attempts(network, steepest) if found.rate < 1), None)


def _attempts(network: IntervalNetwork, steepest: float) -> Iterator[WeightsProof]:
    """Yield the result of each theorem, except where a lower bound shows that it must fail."""
    W, n = network.W, network.n_units
    zeros, largest = np.zeros(n), np.full(n, steepest)
    box = Box(zeros, zeros, zeros, zeros, zeros, largest)
    # C2, and C3 in a few scalings: none of their rates is below the least norm in any scaling.
    near = np.inf
    scaling, least_norm = aligned(W, balanced(W))
    if steepest * least_norm < 1:
        yield WeightsProof("max_norm", *max_norm_proof(network, box))
        yield WeightsProof("two_norm", *two_norm_proof(network, box))
        near = norm_rate(largest, W, np.exp(scaling), below=_NEAR)
        yield WeightsProof("two_norm", network.leaky_rate(near), np.exp(scaling))
    # C7: by the lemma of Kalman, Yakubovich and Popov it needs a numerical radius below 1.
    if n <= MOST_UNITS and is_within_reach(W, network.leak, good_scaling(W), 1 / steepest):
        yield WeightsProof("lyapunov", *lyapunov_proof(network, box))
    # C3 in the best scaling that a search finds.
    if near < _NEAR:
        norm = float(leading_singular(W)[1][0])
        P, _ = searched_scaling(W, network.A, norm)
        yield WeightsProof("two_norm", network.leaky_rate(norm_rate(largest, W, P)), P)
