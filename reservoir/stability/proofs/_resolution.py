"""How far apart rounding may keep two trajectories for ever, under the same input.

The network that a machine runs is the map of the proofs plus an error at each step. Two of its
trajectories differ by e with ``|e'| <= (1 - a) |e| + a d |W| |e| + 2 error``, so that in the end
``|e| <= u`` for any u > 0 with ``d |W| u + 2 error / a <= u``, whatever the rate.
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

_FUNCTION = 4.0  # relative error allowed to an activation, in units of the dtype's epsilon
_LEAKY = 2.0  # the same of (1 - a) x + a f: two products, two rounded factors, one sum
_ROUNDS = 300  # of the iteration from below; its rest is made up for by the certificate's weights
_CLOSE = 0.01  # by how much that may raise the result
_REFINED = 40  # steps down from a bound that is proved
_Map = Callable[[Array], Array]


class _Errors:
    """What rounding may do in a step of a reservoir, in its dtype.

    `terms` bounds what the drive is the sum of, ``|W_in| |u| + |W_fb| |y|``.
    """

    def __init__(self, network: IntervalNetwork, reservoir: Reservoir, terms: Array) -> None:
        info, leak = np.finfo(reservoir.dtype), network.leak
        self.network, self.eps, self.tiny = network, float(info.eps), float(info.tiny)
        self.leaky = bool((leak != 1).any())
        # else (1 - a) x rounds to x: the state stays where it starts, or nearly
        self.moves = not self.leaky or bool(leak.min() >= 8 * _LEAKY * self.eps)
        self.n_terms = network.row_sizes + reservoir.n_features + reservoir.n_outputs + 4
        self.given = terms + np.abs(network.bias)
        reach = max(abs(network.enclosure.low), abs(network.enclosure.high))
        # |x'| <= (1 - a + 2 eps) |x| + a f: what starts outside comes to within this
        shrink = 1 - (_LEAKY * self.eps / leak.min() if self.leaky else 0.0)
        self.reach = np.full(network.n_units, reach * (1 + 64 * self.eps) / max(shrink, 0.5))

    def of_sum(self, size: Array) -> Array:
        """Return the error of z where states are within `size`.

        Sums of n products in any order, fused or not, are off by n / 2 epsilon times the sum of the
        moduli; the bias, the rounding of the inputs and higher orders are the terms that are added.
        """
        total = self.network.A @ size + self.given
        return self.n_terms * (0.5 * self.eps * (1 + 1e-6) * total + self.tiny)

    def of_value(self, size: Array) -> Array:
        """Return the error of the activation and of the leaky mean, divided by a."""
        leak = _LEAKY / self.network.leak if self.leaky else 0.0
        return (_FUNCTION + leak) * self.eps * size + self.tiny

    def between(self, box: Box) -> Array:
        """Return what a step adds to the difference of two trajectories in the box, divided by a.

        An error of z is weakened by the slope.
        """
        size = np.maximum(np.abs(box.low), np.abs(box.high))
        return 2 * (1 + 1e-9) * (box.largest_slope * self.of_sum(size) + self.of_value(size))


@OVERFLOWS
def resolution(
    certificate: Certificate, network: IntervalNetwork, reservoir: Reservoir, terms: Array
) -> float | None:
    """Return the largest difference of any unit's state that may last; None without weights."""
    if not certificate.holds or certificate.weights is None:
        return None
    errors = _Errors(network, reservoir, terms)
    if not errors.moves:
        return np.inf
    # the box of what is computed, not of the exact map
    reach = errors.reach
    box = interval_box(network, pad=errors.of_sum(reach), margin=errors.of_value(reach))
    pushed = errors.between(box)
    M = scaled_rows(box.largest_slope, network.A)
    slack = _slack(network)

    def step(u: Array) -> Array:
        return (M @ u) * slack + pushed

    widths = (box.high - box.low) * (1 + 4 * EPS)
    if certificate.method == "two_norm":
        bound = _by_norm(certificate, network, box, pushed)
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
) -> float | None:
    """Return the same over the tube of a periodic drive: the largest of its phases."""
    if not certificate.holds or certificate.weights is None:
        return None
    errors = _Errors(network, reservoir, terms)
    if not errors.moves:
        return np.inf
    leak, slack = network.leak, _slack(network)
    reach = errors.reach
    boxes = tube(network, drives, errors.of_sum(reach), margin=leak * errors.of_value(reach))
    pushed = [leak * errors.between(box) for box in boxes]

    def phases(u: Array) -> list[Array]:
        found = [u]
        for box, push in zip(boxes, pushed, strict=True):
            u = ((1 - leak) * u + leak * (box.largest_slope * (network.A @ u))) * slack + push
            found.append(u)
        return found

    def period(u: Array) -> Array:
        return phases(u)[-1]

    widths = (boxes[0].high - boxes[0].low) * (1 + 4 * EPS)
    bound = _refined(period, np.minimum(widths, _by_moduli(period, certificate.weights)))
    lasting = [
        np.minimum(u, box.high - box.low) for u, box in zip(phases(bound)[:-1], boxes, strict=True)
    ]
    return float(np.max(lasting) * (1 + 4 * EPS))


def _slack(network: IntervalNetwork) -> float:
    return 1 + (float(network.row_sizes.max()) + 12) * EPS


def _by_moduli(step: _Map, v: Array) -> Array:
    """Return u with step(u) <= u for u -> T u + c, T and c not negative; infinite if none is found.

    From below the iteration tends to the least u; v, with T v <= r v, makes up for the rest.
    """
    pushed = step(np.zeros_like(v))
    gap = v - (step(v) - pushed)  # at least (1 - r) v
    u, rest = pushed, np.full_like(v, np.inf)
    for _ in range(_ROUNDS):
        new = step(u)
        u, rest = new, new - u
        if not np.isfinite(u).all():
            return np.full_like(v, np.inf)
        if not rest.any() or (rest <= 0.5 * _CLOSE * (u * (gap / v))).all():
            break
    share = np.where(rest > 0, rest / np.where(gap > 0, gap, np.nan), 0.0).max()
    small = np.where(gap > 0, 1e-13 * u / np.where(gap > 0, gap, np.nan), np.inf).max()
    for bound in (u, u * (1 + 1e-6) + 1.01 * share * v, u + (1.01 * share + small) * v):
        if np.isfinite(bound).all() and (step(bound) <= bound).all():
            return bound
    return np.full_like(v, np.inf)


def _by_norm(certificate: Certificate, network: IntervalNetwork, box: Box, pushed: Array) -> Array:
    """Return u in the norm ||P e||_2: what one unit may take is all that the norm allows."""
    P, leak = certificate.weights, network.leak
    assert P is not None
    # what the certificate's r leaves to 1, less what the wider box adds to the slopes
    wider = scaled_matrix(np.maximum(box.largest_slope - certificate.gains, 0.0), network.W, P)
    values = wider.data if sp.issparse(wider) else wider
    room = (1 - certificate.rate - 8 * EPS) / leak.min()
    room = room * (1 - 4 * EPS) - float(np.sqrt((values * values).sum())) * (1 + 1e-9)
    if not room > 0:
        return np.full_like(P, np.inf)
    if np.ptp(leak) == 0:
        size = float(np.linalg.norm(P * pushed)) / room
    else:
        size = _filtered(P * leak * pushed, leak, room)
    return size / P * (1 + 1e-9)


def _filtered(errors: Array, leak: Array, room: float) -> float:
    """Return a bound of ||P e|| for unequal leaks: theorem C3's weight of time, and its best rate.

    With r = 1 - room and time weighted by s^-t, unit i is a filter of gain
    ``a_i / (s - 1 + a_i)``; errors that last for ever have the weighted norm ``1 / sqrt(1 - s^2)``.
    """
    best = np.inf
    for share in np.linspace(0.02, 0.98, 49):
        below = share * leak.min() * room  # 1 - s, which must stay below this for a share of 1
        left = 1 - (1 - room) * float((leak / (leak - below)).max())
        if left > 0 and below > 0:
            size = float(np.linalg.norm(errors / (leak - below)))
            best = min(best, size / (left * np.sqrt(below * (2 - below))))
    return best * (1 + 1e-6)


def _refined(step: _Map, bound: Array) -> Array:
    """Step down from a bound that holds: the next one holds as well, and the least of both."""
    for _ in range(_REFINED):
        new = np.minimum(bound, step(bound))
        if (new >= 0.999 * bound).all():
            return new
        bound = new
    return bound
