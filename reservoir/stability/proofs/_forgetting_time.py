"""The number of steps until any two trajectories under the same input are close: theorem C8.

The first box is the activation's range. Every step narrows a box that contains all trajectories
and, by the slopes in that box, a vector of bounds of their differences. If these bounds do not
shrink, because the moduli of the weights do not contract, or shrink very slowly, a norm that
contracts in the present box gives the remaining number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._cycle_rates import (
    MAX_SERIES_UNITS,
    cycle_rate,
    series_cycle_norm,
)
from reservoir.stability.proofs._interval_network import MAX_DENSE_UNITS, IntervalNetwork
from reservoir.stability.proofs._lyapunov import lyapunov_proof
from reservoir.stability.proofs._lyapunov_cycle import cycle_lyapunov
from reservoir.stability.proofs._max_norm import max_norm_rate
from reservoir.stability.proofs._quadratic_norms import largest_norm, unit_bounds
from reservoir.stability.proofs._two_norm import two_norm_rate
from reservoir.stability.proofs._weights_alone import weights_proof
from reservoir.stability.proofs._zonotopes import timed_zonotope_box, timed_zonotope_tube

_MOST = 20_000  # steps, or groups of them, that are followed before no bound is given
_STILL = 1e-7  # a box that moves by less in a step, without leak, counts as fixed
_NEAR = 0.1  # norms are first tried once the slopes exceed those of the certificate by less
_FLAT = 0.003  # no new norm is searched for until slopes have changed by more
_LOG_ERROR = 1e-12  # relative error allowed to logarithms and quotients of them
_RESTS = (0.1, 1e-2, 1e-3)  # shares of the box's width by which a zonotope may lag behind
# Shares of the decay that unequal leak rates allow.
_SHARES = np.array([[0.5], [0.7], [0.8], [0.9], [0.95], [0.98], [0.99]])
_WINDOWS = ((8, MAX_SERIES_UNITS), (32, 100))  # steps of a series, and its largest number of units
_REST = 1e-10  # a box that moves by less in a step, without leak, is no longer updated
_STRIDE = 0.04  # so many steps are combined that their number times the leak rate is below this


class Norm(NamedTuple):
    """Bounds of all differences that shrink from step to step, in boxes that hold from now on.

    If no unit's states differ by more than `apart` now, none differs by more than
    ``size(apart) * exp(k * log_rate)`` k steps after the next `late` ones. For several bounds at
    once, size and rate are arrays.
    """

    size: Callable[[Array], Any]
    log_rate: Any
    late: int = 0

    def steps_to(self, distances: Array, apart: Array) -> Array:
        """Return the number of steps until no difference exceeds each distance, rounded up."""
        logs = np.log(distances)
        size, rate = np.atleast_2d(np.log(self.size(apart) + TINY), self.log_rate)
        ratio = size.T - logs + _LOG_ERROR * (1 + np.abs(size.T) + np.abs(logs))
        k = np.ceil(ratio / (-rate.T * (1 - _LOG_ERROR)) * (1 + _LOG_ERROR))
        return self.late + np.maximum(k, 0.0).min(axis=0)


class Forgetting:
    """Computes the steps to given distances, from the boxes of all steps and from norms.

    Bounds of the drive are (n_units, period), with a period of 1 for a range of all steps. The
    proof `method` determines which norms are tried; those of full matrices are tried once the
    slopes are near `gains`, (n_units, period), the largest in the certificate's box. `inputs` is
    the set of drives, if the proof uses the inputs that units share: see `shared_inputs`.
    """

    def __init__(
        self,
        network: IntervalNetwork,
        drive_min: Array,
        drive_max: Array,
        method: str,
        gains: Array,
        inputs: tuple[Array, Array] | None = None,
    ) -> None:
        self.network, self.method, self.gains, self.inputs = network, method, gains, inputs
        self._low, self._high = drive_min, drive_max
        self.approach = Approach(network, drive_min, drive_max)
        self._of_moduli: list[Norm] = []  # the latest norms of either kind
        self._of_matrices: list[Norm] = []
        self._best_rate = np.inf  # least rate of all norms so far, in logarithms
        self._lyapunov_rate: float | None = None  # the latest rate proved by C7
        self._rests = list(_RESTS)
        self._near, self._next_search, self._flat = _NEAR, 0, _FLAT
        # the least and the largest slopes that full matrices were tried with
        self._slopes = np.full_like(gains, -np.inf), np.full_like(gains, np.inf)
        self._seek_norms()

    @OVERFLOWS
    def steps_to(self, distances: Array) -> Array:
        """Return a proved number of steps for each distance, infinity if none was found."""
        steps = np.full(distances.shape, np.inf)
        for _ in range(_MOST):
            steps = self._fewest(steps, distances)
            if self.approach.steps >= steps.max(initial=0):
                break
            if self._advance():
                continue
            # More strides would not help: search for norms again, then narrow boxes by zonotopes.
            if self._has_narrowed(_FLAT):
                self._seek_of_matrices()
            if self._best_rate < 0 or not self._narrow():
                break
        return self._fewest(steps, distances)

    def _fewest(self, steps: Array, distances: Array) -> Array:
        """Return the given numbers of steps, or smaller ones from the present bounds and norms.

        A norm remains valid in later boxes, where the differences that it starts from are smaller.
        """
        now, apart = self.approach.steps, self.approach.apart
        steps = np.where(apart.max() <= distances, np.minimum(steps, now), steps)
        for norm in self._of_moduli + self._of_matrices:
            steps = np.minimum(steps, now + norm.steps_to(distances, apart[:, 0]))
        return steps

    def _advance(self) -> bool:
        """Continue by a stride; return whether another stride may still improve the result."""
        approach, apart = self.approach, self.approach.apart
        approach.advance()
        self._seek_norms()
        share = 1 - (1 - self.network.leak.min()) ** approach.stride
        rate = float(np.log((approach.apart / apart).max())) / approach.stride
        if rate >= self._best_rate:  # a norm shrinks faster: only a narrower box gives a better one
            return self._has_narrowed(_FLAT)
        return approach.moved > _STILL or rate < -_STILL * share

    def _narrow(self) -> bool:
        """Narrow the boxes by zonotopes; return False if that is done already or not possible."""
        approach, net = self.approach, self.network
        if not self._rests or net.n_units > MAX_DENSE_UNITS:
            return False
        rest = self._rests.pop(0)
        if approach.period > 1:
            self._rests.clear()
            drives, error = 0.5 * (self._low + self._high), 0.5 * (self._high - self._low)
            boxes, count = timed_zonotope_tube(
                net, approach.boxes, drives.T, error.max(axis=1) * (1 + 8 * EPS) + TINY
            )
            steps = (count + 1) * approach.period if count else 0
        else:
            box, steps = timed_zonotope_box(net, approach.box, self.inputs, rest)
            boxes = [box]
        if not steps:
            return False
        low, high = np.array([[box.z_low, box.z_high] for box in boxes]).transpose(1, 2, 0)
        approach.narrow(low, high, steps)
        self._next_search = 0
        self._seek_norms()
        self._seek_of_matrices()
        return True

    def _seek_norms(self) -> None:
        """Search for norms that shrink in the present boxes, if the search is due."""
        approach = self.approach
        if approach.steps >= self._next_search:
            self._next_search = 2 * approach.steps + approach.stride
            found = self._over_moduli() if approach.period > 1 else self._in_moduli()
            self._of_moduli = self._useful(found) or self._of_moduli
        excess = float((approach.largest_slope - self.gains).max())
        flat = self._flat if self._of_matrices or excess <= 0 else _FLAT
        if excess <= self._near and self._has_narrowed(flat):
            self._seek_of_matrices()

    def _seek_of_matrices(self) -> None:
        """Search for norms that need full matrices."""
        approach, most = self.approach, MAX_DENSE_UNITS
        self._near = max(float((approach.largest_slope - self.gains).max()), 0.0) / 3
        self._slopes = approach.least_slope, approach.largest_slope
        if self.method != "max_norm" and self.network.n_units <= most:
            best = self._best_rate
            found = self._over_period() if approach.period > 1 else self._in_box()
            self._of_matrices = self._useful(found) or self._of_matrices
            self._flat = _FLAT if self._best_rate < best else 4 * self._flat

    def _useful(self, found: list[Norm]) -> list[Norm]:
        """Return the norms with finite bounds of the present differences."""
        found = [norm for norm in found if np.all(norm.size(self.approach.apart[:, 0]) < np.inf)]
        self._best_rate = min([self._best_rate, *(np.min(norm.log_rate) for norm in found)])
        return found

    def _has_narrowed(self, flat: float) -> bool:
        """Whether the ranges of slopes have narrowed since full matrices were last tried."""
        (least, largest), now = self._slopes, self.approach
        moved = max((now.least_slope - least).max(), (largest - now.largest_slope).max())
        left = min(-self._best_rate / float(self.network.leak.min()), 1.0)  # 1 - r without leak
        return bool(moved >= flat * (left if left > 0 else 1.0) * min(largest.max(), 1.0))

    def _in_moduli(self) -> list[Norm]:
        """Return the norm of theorem C2 in the box of a range of drives."""
        r, v = max_norm_rate(self.network, self.approach.box.largest_slope)
        return _norm(self.network.leaky_rate(r), lambda apart: (apart / v).max() * v.max())

    def _over_moduli(self) -> list[Norm]:
        """Return the norm from the weights' moduli over the boxes of a cycle."""
        boxes = self.approach.boxes
        return self._by_period(boxes, *cycle_rate(self.network, boxes))

    def _in_box(self) -> list[Norm]:
        """Return norms of full matrices in the box of a range of drives."""
        net, box = self.network, self.approach.box
        found: list[Norm] = []
        if self.method == "two_norm":
            found = self._of_two_norm(*two_norm_rate(net, box.largest_slope))
            return found or self._of_weights_alone()
        rate, P = lyapunov_proof(net, box, known=self._lyapunov_rate)
        if P is not None:
            self._lyapunov_rate = rate
            found = _norm(rate, _quadratic_size(P, unit_bounds(P).max()))
        elif self._lyapunov_rate is not None:
            return []
        for n_steps, most_units in _WINDOWS:
            if self.method == "series" and not found and net.n_units <= most_units:
                found = self._of_series([box] * n_steps, n_steps)
        return found or self._of_weights_alone()

    def _of_weights_alone(self) -> list[Norm]:
        """Return the norm that is proved for all slopes up to the largest."""
        net = self.network
        alone = weights_proof(net, float(self.approach.largest_slope.max()))
        if alone is None or alone.weights is None:
            return []
        weights = alone.weights
        if alone.method == "two_norm":
            r = 1 - (1 - alone.rate) / float(net.leak.min()) * (1 - _LOG_ERROR)
            return self._of_two_norm(r, weights)
        if alone.method == "lyapunov":
            return _norm(alone.rate, _quadratic_size(weights, unit_bounds(weights).max()))
        return _norm(alone.rate, lambda apart: (apart / weights).max() * weights.max())

    def _of_two_norm(self, r: float, P: Array) -> list[Norm]:
        """Return the norm if ``||P D W e||_2 <= r ||P e||_2`` for all slopes D in the box.

        For unequal leak rates the norm is summed over time with weights s^-t, s < 1: there unit i
        is a filter of gain a_i / (s - 1 + a_i), and its leaky decay adds up to a geometric series.
        """
        leak, least = self.network.leak, P.min()
        if np.ptp(leak) == 0:
            rate = self.network.leaky_rate(r)
            return _norm(rate, lambda apart: np.linalg.norm(P * apart) / least)
        if not r < 1:
            return []
        below = _SHARES * float(leak.min()) * (1 - r)  # this is 1 - s, a row for each s
        left = (1 - r * (leak / (leak - below)).max(axis=1)) * (1 - _LOG_ERROR)
        below, left = below[left > _LOG_ERROR], left[left > _LOG_ERROR]
        decay = np.sqrt((leak - below) * (2 - below - leak)) / (1 - below)
        if not len(below):
            return []
        return _norm(
            1 - below[:, 0],
            lambda apart: np.linalg.norm(P * apart / decay, axis=1) / (left * least),
        )

    def _over_period(self) -> list[Norm]:
        """Return norms of full matrices over the boxes of a cycle."""
        boxes = self.approach.boxes
        if self.method == "lyapunov":
            return self._of_norms(boxes)
        return self._of_series(boxes) if self.network.n_units <= MAX_SERIES_UNITS else []

    def _of_norms(self, boxes: list[Box]) -> list[Norm]:
        """Return quadratic norms that shrink over the steps of a period."""
        found = cycle_lyapunov(self.network, boxes, cheaply=True, known=self._lyapunov_rate)
        if not found.rate < 1 and self._lyapunov_rate is None:
            found = cycle_lyapunov(self.network, boxes)
        if found.rate < 1 and found.closing == 1:
            self._lyapunov_rate = found.rate
        if not found.rate < 1 or found.norms is None:
            return []
        first, *others = found.norms
        same = all(P is first for P in others)
        largest = max(unit_bounds(P).max() for P in ([first] if same else found.norms))
        return _norm(found.rate, _quadratic_size(first, largest), late=len(boxes) - 1)

    def _of_series(self, boxes: list[Box], window: int = 8) -> list[Norm]:
        """Return the norm from the series about the mean slopes."""
        start = np.ones(self.network.n_units)
        return self._by_period(boxes, *series_cycle_norm(self.network, boxes, start, window=window))

    def _by_period(self, boxes: list[Box], r: float, v: Array) -> list[Norm]:
        """Return the norm if ``max_i |e_i| / v_i`` shrinks by r over each period of the boxes.

        The first period begins at most a period from now, and the last one may be incomplete.
        """
        if not r < 1:
            return []
        leak, period = self.network.leak, len(boxes)
        after, largest = v, v.max()
        for box in boxes:
            after = (1 - leak) * after + leak * (box.largest_slope * (self.network.A @ after))
            largest = max(largest, after.max())
        largest *= (1 + (float(self.network.row_sizes.max()) + 16) * EPS) ** period
        late = (period - 1) + (period - 1 if self.approach.period > 1 else 0)
        return _norm(r, lambda apart: (apart / v).max() * largest, late, period)


def _quadratic_size(P: Array, largest: Any) -> Callable[[Array], Any]:
    """Return a function that bounds ``largest * sqrt(e' P e)``, given bounds of every ``|e_i|``."""
    return lambda apart: largest_norm(P, apart) * largest


def _norm(rate: Any, size: Callable[[Array], Any], late: int = 0, period: int = 1) -> list[Norm]:
    """Return a list of one norm if all its rates over a period are below 1, else an empty list."""
    if not np.all(rate < 1):
        return []
    return [Norm(size, np.log(np.maximum(rate, TINY)) / period, late)]


class Approach:
    """Boxes of all trajectories, and bounds of their differences, from any state, step by step.

    The arrays are (n_units, period): column t is for steps at phase t, whatever the phase of the
    start. The bounds hold for all steps from `steps` on, since a longer trajectory is also one with
    a later start: each may be intersected with earlier ones. `low`, `high` bound the states,
    `apart` the difference of two trajectories under one input; `moved` is how far the ends of the
    box moved in the last step, without leak. Other bounds are of pre-activations and slopes before
    the present step. The drive of `network` is not used.
    """

    def __init__(self, network: IntervalNetwork, drive_min: Array, drive_max: Array) -> None:
        self.network, self.steps = network, 0
        size = np.maximum(np.abs(drive_min), np.abs(drive_max)).max(axis=1)
        self._centre = 0.5 * drive_min + 0.5 * drive_max + network.bias[:, None]
        self._radius = 0.5 * drive_max - 0.5 * drive_min + network.rounding(size)[:, None]
        enclosure = network.enclosure
        self.low = np.full_like(drive_min, enclosure.low)
        self.high = np.full_like(drive_min, enclosure.high)
        width = enclosure.high - enclosure.low
        exact = enclosure.low + width == enclosure.high and enclosure.high - width == enclosure.low
        self.apart = np.full_like(drive_min, width if exact else width * (1 + 4 * EPS))
        self.z_low = np.full_like(drive_min, -np.inf)
        self.z_high = np.full_like(drive_min, np.inf)
        self.stride, self._kept, self._share = _stride(network.leak, drive_min.shape[1])
        self._margin = 4 * EPS * max(abs(enclosure.low), abs(enclosure.high)) + TINY
        self._slack = 1 + (float(network.row_sizes.max()) + 16) * EPS
        self.moved = np.inf
        self._bound_z()

    @property
    def period(self) -> int:
        """Number of steps after which the drive's intervals recur."""
        return self.low.shape[1]

    @property
    def box(self) -> Box:
        """The present box of a drive without a period."""
        fields = self.low, self.high, self.z_low, self.z_high, self.least_slope, self.largest_slope
        return Box(*(field[:, 0] for field in fields))

    @property
    def boxes(self) -> list[Box]:
        """The present boxes of all phases."""
        fields = self.low, self.high, self.z_low, self.z_high, self.least_slope, self.largest_slope
        return [Box(*columns) for columns in zip(*(field.T for field in fields), strict=True)]

    def advance(self) -> None:
        """Advance the bounds by `stride` steps; boxes that hardly move stay, and remain valid."""
        pushed = self.largest_slope * (self.network.A @ self.apart)
        apart = (self._kept * self.apart + self._share * pushed) * self._slack + TINY
        self.steps += self.stride
        if self.moved <= _REST:
            self.apart = np.minimum(self.apart, _next(apart))
            return
        below, above = self.network.enclosure.values(self.z_low, self.z_high)
        low = np.maximum(
            self.low, _next(self._kept * self.low + self._share * below - self._margin)
        )
        high = np.minimum(
            self.high, _next(self._kept * self.high + self._share * above + self._margin)
        )
        self.moved = float(
            max((low - self.low).max(), (self.high - high).max()) / self._share.min()
        )
        self.low, self.high = low, high
        self.apart = np.minimum(np.minimum(self.apart, _next(apart)), self._widths())
        self._bound_z()

    def narrow(self, z_low: Array, z_high: Array, steps: int) -> None:
        """Intersect with bounds of the pre-activations that hold `steps` steps later."""
        self.steps += steps
        self.moved = np.inf
        self.z_low = np.maximum(self.z_low, z_low)
        self.z_high = np.minimum(self.z_high, z_high)
        self._bound_z()

    def _bound_z(self) -> None:
        """Bound the pre-activations and the slopes in the present boxes."""
        net = self.network
        z = net.W @ (0.5 * self.low + 0.5 * self.high) + self._centre
        reach = net.A @ (0.5 * self.high - 0.5 * self.low) + self._radius
        self.z_low = np.maximum(self.z_low, z - reach)
        self.z_high = np.minimum(self.z_high, z + reach)
        self.least_slope, self.largest_slope = net.enclosure.slopes(self.z_low, self.z_high)

    def _widths(self) -> Array:
        return (self.high - self.low) * (1 + 4 * EPS)


def _next(columns: Array) -> Array:
    """Move the result of each phase to the next phase."""
    return np.roll(columns, 1, axis=1) if columns.shape[1] > 1 else columns


def _stride(leak: Array, period: int) -> tuple[int, Array, Array]:
    """Return a number of steps m to combine, (1 - a)^m and 1 - (1 - a)^m.

    While f(z) stays within an interval, m steps bring a unit as close to it as one step with leak
    rate 1 - (1 - a)^m, here rounded down.
    """
    a = leak[:, None]
    m = max(int(_STRIDE / a.max()), 1) if period == 1 else 1
    if m == 1:
        return 1, 1 - a, a
    share = -np.expm1(m * np.log1p(-a)) * (1 - 16 * EPS)
    return m, (1 - share) * (1 + 4 * EPS), share
