"""Contraction over a period in quadratic norms, one for all steps or one for each: theorem C5.

With a norm for each step, ``e' P_{t+1} e`` after step t is at most s^2 times ``e' P_t e`` before
it. Over a period this leads from P_0 to P_T, and P_0 <= mu P_T in the Loewner order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._lyapunov import (
    SHRINKS,
    SLACK,
    forcing,
    linear_part,
    lyapunov_proof,
    split_scaling,
    step_in,
    uncertain_part,
    unscaled,
)
from reservoir.stability.proofs._quadratic_form import Step, is_below, is_proved, mirrored
from reservoir.stability.proofs._unit_scalings import balanced

MAX_CYCLE_UNITS = 1000  # the norms of the steps are dense matrices
CHEAP_UNITS = 300  # up to so many units "auto" tries these norms
CHEAP_WORK = 3e7  # units^3 times steps, up to which "auto" tries norms for each step
_CLOSED = 0.1  # share of the contraction over a period that the bound of P_0 by P_T may cost
_SWEEPS = 8  # most periods over which the norms are computed backwards
_STEPS = 300  # or so many steps, if that is more periods
_SEARCHED = 3  # further attempts in the search for the rate


class CycleNorms(NamedTuple):
    """Norms ``sqrt(e' P_t e)`` with a proved ratio from step to step.

    `rate` is the proved factor per step, the geometric mean over a period; infinity if nothing is
    proved. `growth` bounds the norm after a step over the norm before it, `closing` the first norm
    over the norm after the last step. `norms` are P_t before each step, and after the last; None if
    they overflow or underflow.
    """

    rate: float
    growth: float = np.inf
    closing: float = 1.0
    norms: list[Array] | None = None


def cycle_lyapunov(
    network: IntervalNetwork,
    boxes: list[Box],
    *,
    cheaply: bool = False,
    near: CycleNorms | None = None,
    known: float | None = None,
) -> CycleNorms:
    """Return the norms of the least rate that a short search proves, or norms that are cheap.

    There is a box for each step of the period. If `cheaply`, norms for each step are tried only if
    one norm for all steps fails, and only if that takes little time. `near` are norms for slightly
    narrower boxes: a slightly weaker rate is tried first. `known` is the rate of one norm for all
    steps in wider boxes: only a better such norm is searched for.
    """
    steps = [step_in(network, box) for box in boxes]
    if near is not None and near.closing > 1:
        return _separate_norms(steps, near)
    one = _one_norm(network, boxes, None if near is None else near.rate, known)
    costly = len(boxes) * float(network.n_units) ** 3 > CHEAP_WORK
    enough = one.rate < 1 and (cheaply or near is not None)
    if len(boxes) == 1 or enough or (cheaply and costly) or known is not None:
        return one
    separate = _separate_norms(steps, near)
    return separate if separate.rate < one.rate else one


def _one_norm(
    network: IntervalNetwork, boxes: list[Box], near: float | None, known: float | None
) -> CycleNorms:
    """Return one norm for all steps, by `lyapunov_proof` in the union of their boxes, if any."""
    slopes = np.array([box.least_slope for box in boxes]), [box.largest_slope for box in boxes]
    everywhere = boxes[0]._replace(
        least_slope=np.min(slopes[0], axis=0), largest_slope=np.max(slopes[1], axis=0)
    )
    rate, P = lyapunov_proof(network, everywhere, near, known)
    if not rate < 1:
        return CycleNorms(np.inf)
    return CycleNorms(rate, rate, 1.0, None if P is None else [P] * (len(boxes) + 1))


def _separate_norms(steps: list[Step], near: CycleNorms | None) -> CycleNorms:
    """Return a norm for each step, with the least rate that a short search proves."""
    # One scaling for all steps, so that the norms can be compared after the period.
    slopes = np.sqrt(np.mean([step.largest**2 for step in steps], axis=0))
    powers, rest = split_scaling(balanced(slopes[:, None] * steps[0].K))
    scaled = [step.scaled(powers) for step in steps]
    if not all(step.is_manageable for step in scaled):
        return CycleNorms(np.inf)
    if near is not None:
        found = _proved(scaled, 1 - 0.9 * (1 - near.growth), rest, powers)
        if found is not None:
            return found
    low, high = SHRINKS * float(steps[0].B.min()), 1.0
    best = _proved(scaled, 1 - low, rest, powers)
    if best is None:
        return CycleNorms(np.inf)
    for _ in range(_SEARCHED):
        middle = float(np.sqrt(low * high))
        found = _proved(scaled, 1 - middle, rest, powers)
        low, high = (low, middle) if found is None else (middle, high)
        best = best if found is None else found
    return best


@OVERFLOWS
def _proved(steps: list[Step], s: float, rest: Array, powers: Array) -> CycleNorms | None:
    """Return norms that grow by at most s in each step, with bounded `closing`, if proved."""
    # The factor mu between the first and the last P: nearer to 1 where steps contract little.
    over_period = -2 * len(steps) * float(np.log(s))
    factor = 1 + min(_CLOSED * float(np.expm1(min(over_period, 1.0))), 0.1)
    norms = _norms(steps, s, rest, factor)
    if norms is None or not is_below(norms[0], norms[-1], factor):
        return None
    multipliers = (s * rest) ** 2
    for step, now, after in zip(steps, norms[:-1], norms[1:], strict=True):
        if not is_proved(step, s * s, now, after, multipliers):
            return None
    rate = s * factor ** (0.5 / len(steps)) * (1 + 16 * EPS)
    if not rate < 1:
        return None
    return CycleNorms(rate, s * (1 + 4 * EPS), factor**0.5 * (1 + 4 * EPS), unscaled(norms, powers))


def _norms(steps: list[Step], s: float, rest: Array, factor: float) -> list[Array] | None:
    """Return P_0 to P_T in floating point, with P_0 <= factor * P_T; None if not found.

    P_t defines the quadratic norm before step t. The matrices are computed backwards from zero,
    each by a step of the Riccati equation of the bounded real lemma with the multipliers `s` and
    `rest`. They only grow, so that the search ends, with None, once no next matrix exists.
    """
    P = np.zeros((len(rest), len(rest)))
    for sweep in range(max(_SWEEPS, _STEPS // len(steps))):
        norms = [P]
        for step in reversed(steps):
            found = _one_back(step, P, s, rest)
            if found is None:
                return None
            P = found
            norms.append(P)
        if sweep and _is_smaller(P, norms[0], 0.5 + 0.5 * factor):
            return norms[::-1]
    return None


def _one_back(step: Step, P: Array, s: float, rest: Array) -> Array | None:
    """Return P before a step from P after it; None if the slopes allow more growth than s."""
    J, of_inputs = linear_part(step) / s, step.B / (rest * s * (1 - SLACK))
    PB = P * of_inputs
    room = np.eye(len(P)) - of_inputs[:, None] * PB
    try:
        factor = linalg.cholesky(room, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    pushed = linalg.solve_triangular(factor, PB.T @ J, lower=True, check_finite=False)
    before = J.T @ (P @ J) + pushed.T @ pushed + forcing(rest[:, None] * uncertain_part(step))
    return mirrored(before) if np.isfinite(before).all() else None


def _is_smaller(P: Array, other: Array, factor: float) -> bool:
    """Whether P < factor * other in the Loewner order, in floating point."""
    try:
        linalg.cholesky(factor * other - P, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return False
    return True
