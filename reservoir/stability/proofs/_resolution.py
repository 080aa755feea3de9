"""The resolution: the distance that rounding may keep between two trajectories for ever.

A computed trajectory follows the exact map with an error at each step. If two trajectories under
the same input differ by e, they differ after a step by at most
``(1 - a) |e| + a d |W| |e| + 2 error``, where a is the leak rate and d the largest slopes in a box.
So eventually ``|e| <= u`` for every u > 0 that satisfies ``d |W| u + 2 error / a <= u``; the
smallest such u that is found is the resolution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.dynamics import Reservoir
from reservoir.stability._rounding import OVERFLOWS
from reservoir.stability.proofs._boxes import Box, interval_box, tube
from reservoir.stability.proofs._certificate import Certificate
from reservoir.stability.proofs._diagonal_scaling import scaled_matrix, scaled_rows
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._lyapunov import lyapunov_proof
from reservoir.stability.proofs._lyapunov_cycle import CycleNorms, cycle_lyapunov
from reservoir.stability.proofs._quadratic_norms import largest_norm, unit_bounds

_FUNCTION = 4.0  # relative error allowed for an activation function, in epsilons of the dtype
_LEAKY = 2.0  # the same for (1 - a) x + a f: two products, two rounded factors, one sum
_ROUNDS = 300  # of the iteration that approaches the smallest u from below
_CLOSE = 0.01  # it stops once the correction that makes u a bound raises it by at most this share
_REFINED = 40  # steps that lower a proved bound
_Map = Callable[[Array], Array]


class _Errors:
    """Bounds of the rounding errors in a step of a reservoir, in the dtype in which it is run.

    `terms`, (n_units,), bound ``|W_in| |u| + |W_fb| |y|``, to which the drive's rounding error is
    proportional.
    """

    def __init__(self, network: IntervalNetwork, reservoir: Reservoir, terms: Array) -> None:
        info, leak = np.finfo(reservoir.dtype), network.leak
        self.network, self.eps, self.tiny = network, float(info.eps), float(info.tiny)
        self.leaky = bool((leak != 1).any())
        # With a leak rate of a few epsilons (1 - a) x + a f rounds to x: the state hardly moves.
        self.moves = not self.leaky or bool(leak.min() >= 8 * _LEAKY * self.eps)
        self.n_terms = network.row_sizes + reservoir.n_features + reservoir.n_outputs + 4
        self.given = terms + np.abs(network.bias)
        reach = max(abs(network.enclosure.low), abs(network.enclosure.high))
        # Eventual bounds of the computed states, by |x'| <= (1 - a + 2 eps) |x| + a |f|.
        shrink = 1 - (_LEAKY * self.eps / leak.min() if self.leaky else 0.0)
        self.reach = np.full(network.n_units, reach * (1 + 64 * self.eps) / max(shrink, 0.5))

    def of_sum(self, size: Array) -> Array:
        """Return a bound of the error of the pre-activation z for states with ``|x| <= size``.

        A sum of n products, in any order, fused or not, has an error of at most n / 2 epsilons
        times the sum of the absolute values. The terms added to n cover the bias, the rounding of
        the inputs and higher orders.
        """
        total = self.network.A @ size + self.given
        return self.n_terms * (0.5 * self.eps * (1 + 1e-6) * total + self.tiny)

    def of_value(self, size: Array) -> Array:
        """Return a bound of the error of the state after a step, given z, divided by the leak rate.

        The error is from the activation function, whose values are within `size`, and from the mean
        of the old state and the new value.
        """
        leak = _LEAKY / self.network.leak if self.leaky else 0.0
        return (_FUNCTION + leak) * self.eps * size + self.tiny

    def between(self, box: Box) -> Array:
        """Return a bound of what a step adds to the difference of two trajectories in the box.

        It is divided by the leak rate. Each of the two trajectories may have an error of z, times
        the slope, and an error of the value.
        """
        size = np.maximum(np.abs(box.low), np.abs(box.high))
        return 2 * (1 + 1e-9) * (box.largest_slope * self.of_sum(size) + self.of_value(size))


@OVERFLOWS
def resolution(
    certificate: Certificate, network: IntervalNetwork, reservoir: Reservoir, terms: Array
) -> float | None:
    """Return the largest difference between two trajectories, in any unit, that may last for ever.

    None if nothing is certified, the proof has no norm that shrinks at each step, or steps differ
    in length. `certificate` is for the exact map, `reservoir` in the dtype in which it is run;
    `terms` are as in `_Errors`.
    """
    if not certificate.holds or certificate.weights is None:
        return None
    if not network.enclosure.bounded or network.lengths is not None:
        return None
    errors = _Errors(network, reservoir, terms)
    if not errors.moves:
        return np.inf
    # A box of the computed trajectories, which may leave the exact map's box, and inside it a bound
    # of the difference after a step, from a bound before it.
    reach = errors.reach
    box = interval_box(network, pad=errors.of_sum(reach), margin=errors.of_value(reach))
    pushed = errors.between(box)
    M = scaled_rows(box.largest_slope, network.A)
    slack = _slack(network)

    def step(u: Array) -> Array:
        return (M @ u) * slack + pushed

    # A bound by the certificate's norm; no difference exceeds the widths of the box.
    widths = (box.high - box.low) * (1 + 4 * EPS)
    if certificate.method == "two_norm":
        bound = _by_norm(certificate, network, box, pushed)
    elif certificate.method == "lyapunov":
        bound = _by_quadratic_norm(certificate.rate, network, box, pushed)
    else:
        bound = _by_moduli(step, certificate.weights)
    return float(_refined(step, np.minimum(widths, bound)).max())


@OVERFLOWS
def cycle_resolution(
    certificate: Certificate,
    network: IntervalNetwork,
    reservoir: Reservoir,
    drives: Array,
    terms: Array,
    norms: CycleNorms | None = None,
) -> float | None:
    """Return the resolution for a certificate of `certify_cycle`: the largest over the period.

    `drives`, of shape (period, n_units), is the drive of each step; `norms` are the quadratic norms
    that prove the certificate, if any.
    """
    if not certificate.holds or certificate.weights is None:
        return None
    errors = _Errors(network, reservoir, terms)
    if not errors.moves:
        return np.inf
    leak, slack = network.leak, _slack(network)
    reach = errors.reach
    boxes = tube(network, drives, errors.of_sum(reach), margin=leak * errors.of_value(reach))
    pushed = [leak * errors.between(box) for box in boxes]

    # Bounds of the difference before each step and after the last, from a bound before the first.
    def phases(u: Array, limits: list[Array]) -> list[Array]:
        found = [u]
        for box, push, limit in zip(boxes, pushed, limits, strict=True):
            u = ((1 - leak) * u + leak * (box.largest_slope * (network.A @ u))) * slack + push
            u = np.minimum(u, limit)
            found.append(u)
        return found

    def period(u: Array) -> Array:
        return phases(u, [endless] * len(boxes))[-1]

    # Known bounds of the difference before each step: the widths of the boxes, and by the norms.
    endless = np.full(network.n_units, np.inf)
    known = [(box.high - box.low) * (1 + 4 * EPS) for box in boxes]
    if norms is None:
        known[0] = np.minimum(known[0], _by_moduli(period, certificate.weights))
    else:
        again = cycle_lyapunov(network, boxes, near=norms)
        known = [np.minimum(*pair) for pair in zip(known, _by_norms(again, pushed), strict=True)]
    # A bound before the first step that also holds after a period; then bounds before all steps.
    limits = [*known[1:], known[0]]
    bound = _refined(lambda u: phases(u, limits)[-1], known[0])
    return float(np.max(phases(bound, limits)[:-1]) * (1 + 4 * EPS))


def _slack(network: IntervalNetwork) -> float:
    """Return the factor that covers the rounding error when bounds are advanced by a step."""
    return 1 + (float(network.row_sizes.max()) + 12) * EPS


def _by_moduli(step: _Map, v: Array) -> Array:
    """Return u with step(u) <= u, infinite if none is found.

    `step` is u -> T u + c with T and c not negative, and v > 0 satisfies T v <= r v with r < 1.
    Iterated from c it approaches the smallest u from below. The remaining gap is at most a multiple
    of v, which is added; because of rounding, step(u) <= u is then checked.
    """
    # Iterate from below until the multiple of v is small.
    pushed = step(np.zeros_like(v))
    gap = v - (step(v) - pushed)  # v - T v, at least (1 - r) v
    u, rest = pushed, np.full_like(v, np.inf)
    for _ in range(_ROUNDS):
        new = step(u)
        u, rest = new, new - u
        if not np.isfinite(u).all():
            return np.full_like(v, np.inf)
        if not rest.any() or (rest <= 0.5 * _CLOSE * (u * (gap / v))).all():
            break
    # Try bounds from small to large: u itself, then u plus the gap in two sizes.
    share = np.where(rest > 0, rest / np.where(gap > 0, gap, np.nan), 0.0).max()
    small = np.where(gap > 0, 1e-13 * u / np.where(gap > 0, gap, np.nan), np.inf).max()
    for bound in (u, u * (1 + 1e-6) + 1.01 * share * v, u + (1.01 * share + small) * v):
        if np.isfinite(bound).all() and (step(bound) <= bound).all():
            return bound
    return np.full_like(v, np.inf)


def _by_norm(certificate: Certificate, network: IntervalNetwork, box: Box, pushed: Array) -> Array:
    """Return bounds u of the lasting differences, from the norm ||P e||_2 of theorem C3.

    The norm is bounded first; a unit's bound follows from the case that only it differs.
    """
    P, leak = certificate.weights, network.leak
    assert P is not None
    # 1 - r of the map without leak, minus what the slopes of the wider box add to r.
    wider = scaled_matrix(np.maximum(box.largest_slope - certificate.gains, 0.0), network.W, P)
    values = wider.data if sp.issparse(wider) else wider
    room = (1 - certificate.rate - 8 * EPS) / leak.min()
    room = room * (1 - 4 * EPS) - float(np.sqrt((values * values).sum())) * (1 + 1e-9)
    if not room > 0:
        return np.full_like(P, np.inf)
    # With equal leak rates the norm shrinks at each step.
    if np.ptp(leak) == 0:
        size = float(np.linalg.norm(P * pushed)) / room
    else:
        size = _filtered(P * leak * pushed, leak, room)
    return size / P * (1 + 1e-9)


def _by_quadratic_norm(rate: float, network: IntervalNetwork, box: Box, pushed: Array) -> Array:
    """Return bounds u, one per unit, on the long-run difference of two trajectories.

    Their difference changes by up to `pushed` in each step. The norm is from theorem C7. `box` is
    wider than the box of the certificate, in which `rate` was proved, so the proof is repeated.
    """
    rate, P = lyapunov_proof(network, box, near=rate)
    if P is None or not rate < 1:
        return np.full(network.n_units, np.inf)
    size = largest_norm(P, network.leak * pushed) / (1 - rate)
    return unit_bounds(P) * size * (1 + 8 * EPS)


def _by_norms(found: CycleNorms, pushed: list[Array]) -> list[Array]:
    """Return bounds on long-run differences before each step of a period, from its norms.

    `pushed` bounds what each step adds to a difference.
    """
    endless = [np.full_like(push, np.inf) for push in pushed]
    if found.norms is None:
        return endless
    # The norm after each step from the norm before it; first from zero at the start, then from a
    # size that a period does not raise.
    added = [largest_norm(P, push) for P, push in zip(found.norms[1:], pushed, strict=True)]
    slack = 1 + 4 * EPS

    def sizes(size: float) -> list[float]:
        passed = [size]
        for push in added:
            passed.append((found.growth * passed[-1] + push) * slack)
        return passed

    kept = found.closing * found.growth ** len(pushed) * (1 + 8 * EPS) ** len(pushed)
    if not kept < 1:
        return endless
    start = found.closing * sizes(0.0)[-1] / (1 - kept) * (1 + 1e-9)
    if not found.closing * sizes(start)[-1] * slack <= start:
        return endless
    bounds = {id(P): unit_bounds(P) for P in found.norms}
    return [
        bounds[id(P)] * size * slack
        for P, size in zip(found.norms[:-1], sizes(start)[:-1], strict=True)
    ]


def _filtered(errors: Array, leak: Array, room: float) -> float:
    """Return a bound of ||P e||_2 for unequal leak rates, by the proof of theorem C3 for them.

    There the norm is summed over time with weights s^-t, s < 1, unit i is a filter of gain
    ``a_i / (s - 1 + a_i)``, and errors that recur at every step add up to ``1 / sqrt(1 - s^2)``
    times one of them. Each s gives a bound; the least of 49 is returned. `errors` are P times the
    errors of a step, and `room` is 1 - r.
    """
    best = np.inf
    for share in np.linspace(0.02, 0.98, 49):
        below = share * leak.min() * room  # this is 1 - s: the proof needs it below a_min (1 - r)
        left = 1 - (1 - room) * float((leak / (leak - below)).max())
        if left > 0 and below > 0:
            size = float(np.linalg.norm(errors / (leak - below)))
            best = min(best, size / (left * np.sqrt(below * (2 - below))))
    return best * (1 + 1e-6)


def _refined(step: _Map, bound: Array) -> Array:
    """Lower a bound u with step(u) <= u: step(u) is one, too, and so is the minimum of both."""
    for _ in range(_REFINED):
        new = np.minimum(bound, step(bound))
        if (new >= 0.999 * bound).all():
            return new
        bound = new
    return bound
