"""How many steps pass until any two trajectories under the same input are close: theorem C8.

From the widest box, the activation's range, every step narrows a box that holds all trajectories,
and by the slopes in that box a vector of bounds of their differences. Where these bounds do not
shrink by themselves, because the moduli of the weights do not contract, or shrink for very many
steps, a norm that contracts in the present box says the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS, TINY
from reservoir.stability.proofs._approach import Approach
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
_STILL = 1e-7  # a box that moves by less in a step, without leak, moves no more
_NEAR = 0.1  # norms are first tried where the slopes exceed those of the certificate by less
_FLAT = 0.01  # slopes that have changed by less are not worth another norm
_LOG_ERROR = 1e-12  # relative error allowed to logarithms and quotients of them
_RESTS = (0.1, 1e-2, 1e-3)  # shares of the box's width that a zonotope is late by
_SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)  # of the decay that unequal leak rates allow
_WINDOWS = ((8, MAX_SERIES_UNITS), (32, 100))  # steps of a series, and up to so many units


class Tail(NamedTuple):
    """From `begin` steps on, k steps later, no difference exceeds exp(log_size + k log_rate)."""

    begin: int
    log_size: float
    log_rate: float

    def steps_to(self, distances: Array) -> Array:
        """Return after how many steps no difference exceeds each distance, rounded up."""
        logs = np.log(distances)
        ratio = self.log_size - logs + _LOG_ERROR * (1 + abs(self.log_size) + np.abs(logs))
        k = np.ceil(ratio / (-self.log_rate * (1 - _LOG_ERROR)) * (1 + _LOG_ERROR))
        return self.begin + np.maximum(k, 0.0)


class Forgetting:
    """The steps to given distances, from the boxes of all steps and from norms.

    Parameters
    ----------
    network : IntervalNetwork
    drive_min, drive_max : arrays of shape (n_units, period)
        Bounds of the drive at each phase of the period, which is 1 for a range of all steps.
    method : str
        What the certificate was proved by; it decides which norms are tried.
    gains : array of shape (n_units, period)
        The largest slopes in the certificate's box: norms of full matrices are tried as the slopes
        come near.
    inputs : (centre, generators), optional
        The set of drives, if the proof rests on what the units share: see `shared_inputs`.
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
        self.tails: list[Tail] = []
        self._rests = list(_RESTS)
        self._near, self._next_norm = _NEAR, 0
        self._slopes = np.full_like(gains, np.inf)  # those that full matrices were tried with
        self._seek_tails()

    @OVERFLOWS
    def steps_to(self, distances: Array) -> Array:
        """Return a proved number of steps for each distance; infinity where none was found."""
        steps = np.full(distances.shape, np.inf)
        for _ in range(_MOST):
            reached = self.approach.apart.max() <= distances
            steps[reached] = np.minimum(steps[reached], self.approach.steps)
            if self.approach.steps >= self._by_tails(steps, distances).max():
                break
            moves, rate = self._advance()
            outrun = bool(self.tails) and rate >= min(tail.log_rate for tail in self.tails)
            if outrun and not self._is_steeper():
                break
            if not moves:
                if self._is_steeper():
                    self._seek_dense_tails()
                if self.tails or not self._narrow():
                    break
        return self._by_tails(steps, distances)

    def _by_tails(self, steps: Array, distances: Array) -> Array:
        """Return the numbers of steps, or what norms say where that is less."""
        return np.min([steps, *(tail.steps_to(distances) for tail in self.tails)], axis=0)

    def _advance(self) -> tuple[bool, float]:
        """Go on; return whether anything moves, and the logarithm of the slowest unit's rate."""
        approach = self.approach
        low, high, apart = approach.low, approach.high, approach.apart
        approach.advance()
        self._seek_tails()
        share = 1 - (1 - self.network.leak.min()) ** approach.stride
        moved = max((approach.low - low).max(), (high - approach.high).max())
        rate = float(np.log((approach.apart / apart).max())) / approach.stride
        return bool(moved > _STILL * share or rate < -_STILL * share), rate

    def _narrow(self) -> bool:
        """Narrow the boxes by zonotopes; False where that has been done, or cannot be."""
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
        self._next_norm = 0
        self._seek_tails()
        self._seek_dense_tails()
        return True

    def _seek_tails(self) -> None:
        """Look for norms that contract in the present boxes, if it is time to."""
        approach = self.approach
        if approach.steps >= self._next_norm:
            self._next_norm = 2 * approach.steps + approach.stride
            found = self._over_moduli() if approach.period > 1 else self._of_moduli()
            self._keep(found)
        if (approach.largest_slope - self.gains).max() <= self._near:
            self._seek_dense_tails()

    def _seek_dense_tails(self) -> None:
        """Look for norms that need full matrices."""
        approach, most = self.approach, MAX_DENSE_UNITS
        self._near = float((approach.largest_slope - self.gains).max()) / 3
        self._slopes = approach.largest_slope
        if self.method != "max_norm" and self.network.n_units <= most:
            self._keep(self._over_period() if approach.period > 1 else self._of_box())

    def _keep(self, found: list[Tail]) -> None:
        self.tails += [tail for tail in found if tail.log_size < np.inf]

    def _is_steeper(self) -> bool:
        """Whether full matrices were tried with slopes that are larger than the present ones."""
        return bool((self._slopes - self.approach.largest_slope).max() >= _FLAT)

    def _of_moduli(self) -> list[Tail]:
        """Return what theorem C2 says in the box of a range of drives."""
        r, v = max_norm_rate(self.network, self.approach.box.largest_slope)
        size = (self.approach.apart[:, 0] / v).max() * v.max()
        return self._tail(self.network.leaky_rate(r), size)

    def _over_moduli(self) -> list[Tail]:
        """Return what the moduli say over the boxes of a cycle."""
        boxes = self.approach.boxes
        r, v = cycle_rate(self.network, boxes)
        return self._by_period(boxes, r, v) if r < 1 else []

    def _of_box(self) -> list[Tail]:
        """Return what norms of full matrices say in the box of a range of drives."""
        net, box, apart = self.network, self.approach.box, self.approach.apart[:, 0]
        found: list[Tail] = []
        if self.method == "two_norm":
            found = self._of_two_norm(*two_norm_rate(net, box.largest_slope))
            return found or self._of_weights_alone()
        rate, matrix = lyapunov_proof(net, box)
        if matrix is not None:
            found = self._tail(rate, largest_norm(matrix, apart) * unit_bounds(matrix).max())
        for n_steps, most_units in _WINDOWS:
            if self.method == "series" and not found and net.n_units <= most_units:
                found = self._of_series([box] * n_steps, n_steps)
        return found or self._of_weights_alone()

    def _of_weights_alone(self) -> list[Tail]:
        """Return what is proved for all slopes up to the largest."""
        net, apart = self.network, self.approach.apart[:, 0]
        alone = weights_proof(net, float(self.approach.largest_slope.max()))
        if alone is None or alone.weights is None:
            return []
        if alone.method == "two_norm":
            r = 1 - (1 - alone.rate) / float(net.leak.min()) * (1 - _LOG_ERROR)
            return self._of_two_norm(r, alone.weights)
        if alone.method == "lyapunov":
            size = largest_norm(alone.weights, apart) * unit_bounds(alone.weights).max()
            return self._tail(alone.rate, size)
        return self._tail(alone.rate, (apart / alone.weights).max() * alone.weights.max())

    def _of_two_norm(self, r: float, P: Array) -> list[Tail]:
        """Return what follows if ``||P D W e||_2 <= r ||P e||_2`` for all slopes D in the box.

        For unequal leak rates the norm is summed over time with weights s^-t, s < 1: there unit i
        is a filter of gain a_i / (s - 1 + a_i), and its own decay sums up to a geometric series.
        """
        leak, weighted = self.network.leak, P * self.approach.apart[:, 0]
        if np.ptp(leak) == 0:
            return self._tail(self.network.leaky_rate(r), np.linalg.norm(weighted) / P.min())
        found: list[Tail] = []
        for share in _SHARES if r < 1 else ():
            below = share * float(leak.min()) * (1 - r)  # this is 1 - s
            left = (1 - r * float((leak / (leak - below)).max())) * (1 - _LOG_ERROR)
            decay = np.sqrt((leak - below) * (2 - below - leak)) / (1 - below)
            if left > _LOG_ERROR:
                found += self._tail(1 - below, np.linalg.norm(weighted / decay) / (left * P.min()))
        return found

    def _over_period(self) -> list[Tail]:
        """Return what norms of full matrices say over the boxes of a cycle."""
        boxes = self.approach.boxes
        if self.method == "lyapunov":
            return self._of_norms(boxes)
        return self._of_series(boxes) if self.network.n_units <= MAX_SERIES_UNITS else []

    def _of_norms(self, boxes: list[Box]) -> list[Tail]:
        """Return what quadratic norms say that shrink over the steps of a period."""
        found = cycle_lyapunov(self.network, boxes, cheaply=True)
        if not found.rate < 1:
            found = cycle_lyapunov(self.network, boxes)
        if not found.rate < 1 or found.norms is None:
            return []
        first, *others = found.norms
        same = all(P is first for P in others)
        largest = max(unit_bounds(P).max() for P in ([first] if same else found.norms))
        size = largest_norm(first, self.approach.apart[:, 0]) * largest
        return self._tail(found.rate, size, late=len(boxes) - 1)

    def _of_series(self, boxes: list[Box], window: int = 8) -> list[Tail]:
        """Return what the series about the mean slopes say."""
        start = np.ones(self.network.n_units)
        r, v = series_cycle_norm(self.network, boxes, start, window=window)
        return self._by_period(boxes, r, v) if r < 1 else []

    def _by_period(self, boxes: list[Box], r: float, v: Array) -> list[Tail]:
        """Return what follows if ``max_i |e_i| / v_i`` shrinks by r over each period of the boxes.

        The first period begins within a period of now, and the last one may be cut off.
        """
        leak, period = self.network.leak, len(boxes)
        size = (self.approach.apart[:, 0] / v).max()
        largest = v.max()
        for box in boxes:
            v = (1 - leak) * v + leak * (box.largest_slope * (self.network.A @ v))
            largest = max(largest, v.max())
        slack = 1 + (float(self.network.row_sizes.max()) + 16) * EPS
        late = (period - 1) + (period - 1 if self.approach.period > 1 else 0)
        return self._tail(r, size * largest * slack**period, late, period)

    def _tail(self, rate: float, size: Any, late: int = 0, period: int = 1) -> list[Tail]:
        """Return one tail, or none unless the rate over a period is below 1."""
        if not rate < 1:
            return []
        log_rate = float(np.log(max(rate, TINY))) / period
        return [Tail(self.approach.steps + late, float(np.log(size + TINY)), log_rate)]
