"""The search for a bias: gradients along the surface of one certified rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array
from reservoir.activations import Activation
from reservoir.stability._rounding import row_sums
from reservoir.stability.proofs._boxes import Box, interval_box
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._max_norm import max_norm_rate, perron_bound

RATE = 0.98  # of the norms without leak that a design aims at: a margin against its own rounding
_STEPS = 60
_ROUNDS = 300  # of the fixed-point iterations for gradients, which contract
_LOOSE = 1e-5  # where a search may stop narrowing a box: still a box
_SATURATED = 3.0  # beyond what a unit can receive: a slope below .01 for tanh
_STEP = 1e-5  # of central differences in z


@dataclass
class BiasSearch:
    """Gradient search over the bias, along the surface of one certified rate."""

    network: IntervalNetwork
    activation: Activation
    generator: np.random.Generator

    def __post_init__(self) -> None:
        net = self.network
        self.Wt = sp.csr_array(net.W.T) if sp.issparse(net.W) else net.W.T.copy()
        self.At = abs(self.Wt)
        middle = 0.5 * (net.enclosure.low + net.enclosure.high)
        self.mid_drive = 0.5 * net.drive_min + 0.5 * net.drive_max
        # what each unit receives where its bias is zero and all others are in the middle
        self.offset = self.mid_drive + net.W @ np.full(net.n_units, middle)

    def rate(self, bias: Array) -> float:
        return max_norm_bound(self.network.biased(bias), _LOOSE)

    def scaled(self, bias: Array) -> Array:
        """Return the multiple of a bias at which the rate is the design's, or just below."""
        points: list[tuple[float, float]] = []  # logarithms of factors near 1 and of their rates
        x = 0.0
        for _ in range(6):
            r = self.rate(np.exp(x) * bias)
            y = float(np.log(max(r, 1e-300) / RATE))
            if -0.01 <= y <= 0:
                return np.exp(x) * bias
            points.append((x, y))
            steepness = -2.0
            if len(points) > 1 and points[-1][0] != points[-2][0]:
                (x0, y0), (x1, y1) = points[-2:]
                steepness = (y1 - y0) / (x1 - x0)
            if not -50 < steepness < -0.2 or abs(y) > 1:
                break
            x = float(np.clip(x - (y + 0.004) / steepness, -0.3, 0.3))
        return bisected(lambda factor: self.rate(factor * bias) <= RATE, 0.5, 2.0) * bias

    def start(self, reinforcing: bool) -> Array:
        """Return the least certified bias on a ray: signs times the sums of |W| over the rows.

        With opposing signs what a unit receives from the others works against its bias.
        """
        net = self.network
        size = row_sums(net.A)
        signs = self.generator.choice([-1.0, 1.0], net.n_units)
        forced = np.abs(self.offset) > 0.25 * size
        signs[forced] = np.sign(self.offset[forced])
        wanted = 1.0 if reinforcing else -1.0
        for _ in range(40):
            field = wanted * (net.W @ signs + self.Wt @ signs)
            turn = (field * signs < 0) & ~forced & (self.generator.random(net.n_units) < 0.3)
            if not turn.any():
                break
            signs[turn] *= -1

        def on_ray(t: float) -> Array:
            return signs * np.maximum(t * size - signs * self.offset, 0.0)

        return on_ray(bisected(lambda t: self.rate(on_ray(t)) <= RATE, 0.01, 4.0, 0.002))

    def limited(self, bias: Array) -> Array:
        """Hold biases where their unit is saturated whatever it receives: more changes nothing."""
        reach = row_sums(self.network.A) + 0.5 * (self.network.drive_max - self.network.drive_min)
        limit = reach + _SATURATED / self.activation.lipschitz
        return np.clip(bias, -limit - self.offset, limit - self.offset)

    def ascend(self) -> Array:
        """Return a certified bias of large mean slope."""
        b = self.start(reinforcing=False)
        best, best_b, step = self.slope(b)[0], b, 0.3
        for _ in range(_STEPS):
            _, gradient = self.slope(b)
            normal = self.rate_gradient(b)
            squared = normal @ normal
            if squared > 0:
                gradient = gradient - (gradient @ normal / squared) * normal
            largest = np.max(np.abs(gradient))
            if not np.isfinite(largest) or largest == 0.0:
                break
            b = self.scaled(self.limited(b + step * np.mean(np.abs(b)) / largest * gradient))
            value = self.slope(b)[0]
            if value > best:
                best, best_b = value, b
            else:
                b, step = best_b, 0.6 * step
            if step < 0.003:
                break
        return best_b

    def descend(self) -> Array:
        """Return a certified bias of small mean modulus."""
        b = self.start(reinforcing=True)
        best, step = float(np.mean(np.abs(b))), 0.25
        for _ in range(_STEPS):
            effect = self.rate_gradient(b) * b  # of a relative change of each entry
            share = np.abs(b) / np.sum(np.abs(b))
            if not np.isfinite(effect).all() or abs(effect.sum()) < 1e-12:
                break
            direction = share - effect / effect.sum()
            largest = np.max(np.abs(direction))
            if largest == 0.0:
                break
            trial = self.scaled(b * np.exp(-step / largest * direction))
            value = float(np.mean(np.abs(trial)))
            if value < best * (1 - 1e-4):
                best, b = value, trial
            else:
                step *= 0.6
            if step < 0.01:
                break
        return b

    def slope(self, b: Array) -> tuple[float, Array]:
        """Return the mean slope at the fixed point of the middle drive, and its gradient."""
        c, f, slope_of = b + self.mid_drive, self.activation.function, self.activation.derivative
        x = f(c)
        for _ in range(_ROUNDS):
            new = f(self.network.W @ x + c)
            change = np.max(np.abs(new - x))
            x = new
            if change < 1e-10:
                break
        z = self.network.W @ x + c
        slopes = slope_of(z)
        bend = (slope_of(z + _STEP) - slope_of(z - _STEP)) / (2 * _STEP) / len(b)
        adjoint = _fixed_point(lambda v: bend + self.Wt @ (slopes * v), bend)
        return float(np.mean(slopes)), adjoint

    def rate_gradient(self, b: Array) -> Array:
        """Return the gradient of the logarithm of form 1's bound, by the adjoint of the box."""
        net = self.network.biased(b)
        box = interval_box(net, tol=_LOOSE)
        M = scaled_rows(box.largest_slope, net.A)
        _, x = perron_bound(M)
        _, y = perron_bound(sp.csr_array(M.T) if sp.issparse(M) else M.T)
        by_slope = y * (net.A @ x)
        by_slope = by_slope / max(float(y @ (M @ x)), 1e-300)
        to_low, to_high = self._slope_bends(box)
        at_low = self.activation.derivative(box.z_low)
        at_high = self.activation.derivative(box.z_high)
        given = np.array([by_slope * to_low, by_slope * to_high])

        # dz = K diag(f') dz + db for both ends of z: v = given + diag(f') K' v
        def transposed(v: Array) -> Array:
            together, apart = self.Wt @ (v[0] + v[1]), self.At @ (v[0] - v[1])
            return given + 0.5 * np.array(
                [at_low * (together + apart), at_high * (together - apart)]
            )

        return _fixed_point(transposed, given).sum(axis=0)

    def _slope_bends(self, box: Box) -> tuple[Array, Array]:
        """Return how the largest slope changes with either end of z."""
        of = self.network.enclosure.slopes
        h = _STEP
        ends = box.z_low, np.maximum(box.z_high, box.z_low + 2 * h)
        low = (of(ends[0] + h, ends[1])[1] - of(ends[0] - h, ends[1])[1]) / (2 * h)
        high = (of(ends[0], ends[1] + h)[1] - of(ends[0], ends[1] - h)[1]) / (2 * h)
        return low, high


def max_norm_bound(network: IntervalNetwork, tol: float = 1e-9) -> float:
    """Return the bound of form 1."""
    return max_norm_rate(network, interval_box(network, tol=tol).largest_slope)[0]


def bisected(holds: Callable[[float], bool], low: float, high: float, tol: float = 0.005) -> float:
    """Return a number that holds, near the least one if all above it hold; `high` may grow."""
    while not holds(high):
        low, high = high, 2 * high
        if high > 1e9:
            raise ValueError(
                "No bias was found that is certified: W or the drive is too large for floating "
                "point. Scale W down."
            )
    while high / low > 1 + tol:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _fixed_point(step: Callable[[Array], Array], v: Array) -> Array:
    """Iterate an affine contraction; the last iterate where it does not settle."""
    for _ in range(_ROUNDS):
        new = step(v)
        if not np.isfinite(new).all():
            return v
        done = np.max(np.abs(new - v)) <= 1e-8 * np.max(np.abs(new))
        v = new
        if done:
            break
    return v
