"""The search of `stable_bias`: gradient steps along the surface of constant proved rate.

Throughout this module the rate is r of theorem C2, the bound of the maximum norm without leak.
"""

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

RATE = 0.98  # target rate of a design: the margin below 1 covers later rounding
_STEPS = 60  # gradient steps, at most
_ROUNDS = 300  # of fixed-point iterations
_LOOSE = 1e-5  # accuracy of boxes in the search; a box that is not fully narrowed is still valid
_SATURATED = 3.0  # a pre-activation at which a unit is saturated: tanh has a slope below .01
_STEP = 1e-5  # of central differences in z


@dataclass
class BiasSearch:
    """Gradient search over the biases of a network at which its rate is RATE.

    The bias of `network` is ignored. `generator` draws the signs that the search starts from.
    """

    network: IntervalNetwork
    activation: Activation
    generator: np.random.Generator

    def __post_init__(self) -> None:
        net = self.network
        self.Wt = sp.csr_array(net.W.T) if sp.issparse(net.W) else net.W.T.copy()
        self.At = abs(self.Wt)
        middle = 0.5 * (net.enclosure.low + net.enclosure.high)
        self.mid_drive = 0.5 * net.drive_min + 0.5 * net.drive_max
        # The pre-activations without bias if all states are at the midpoint of their range.
        self.offset = self.mid_drive + net.W @ np.full(net.n_units, middle)

    def rate(self, bias: Array) -> float:
        """Return the rate that is proved with a bias."""
        return max_norm_bound(self.network.biased(bias), _LOOSE)

    def scaled(self, bias: Array) -> Array:
        """Return the multiple of a bias at which the rate is RATE, or just below."""
        # A secant search over pairs of log(factor) and log(rate / RATE); it takes few evaluations.
        points: list[tuple[float, float]] = []
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
        # If the secant search fails, bisection.
        return bisected(lambda factor: self.rate(factor * bias) <= RATE, 0.5, 2.0) * bias

    def start(self, reinforcing: bool) -> Array:
        """Return the smallest certified bias on a ray.

        With the biases of the ray, the total inputs of units would be t s, t > 0, for states at the
        midpoint of their range; s are the row sums of |W| with signs. A unit saturates near the end
        of its range that its sign names, and drives the others accordingly: its recurrent input
        adds to its bias if `reinforcing`, and opposes it otherwise.
        """
        # Random signs, except where the drive alone determines them.
        net = self.network
        size = row_sums(net.A)
        signs = self.generator.choice([-1.0, 1.0], net.n_units)
        forced = np.abs(self.offset) > 0.25 * size
        signs[forced] = np.sign(self.offset[forced])
        # Flip wrong signs, a random part of them at a time: flipping all at once may oscillate.
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
        """Clip biases that saturate their unit for any input: larger ones would change nothing."""
        reach = row_sums(self.network.A) + 0.5 * (self.network.drive_max - self.network.drive_min)
        limit = reach + _SATURATED / self.activation.lipschitz
        return np.clip(bias, -limit - self.offset, limit - self.offset)

    def ascend(self) -> Array:
        """Return a certified bias of large mean slope."""
        b = self.start(reinforcing=False)
        best, best_b, step = self.slope(b)[0], b, 0.3
        # Steps along the surface of constant rate: the gradient of the mean slope, without its part
        # along the gradient of the rate; then back onto the surface by a factor.
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
            # Keep an improvement; else return to the best bias and take smaller steps.
            value = self.slope(b)[0]
            if value > best:
                best, best_b = value, b
            else:
                b, step = best_b, 0.6 * step
            if step < 0.003:
                break
        return best_b

    def descend(self) -> Array:
        """Return a certified bias of small mean absolute value."""
        b = self.start(reinforcing=True)
        best, step = float(np.mean(np.abs(b))), 0.25
        for _ in range(_STEPS):
            # The effect of a relative change of each entry on the rate, and on the mean.
            effect = self.rate_gradient(b) * b
            share = np.abs(b) / np.sum(np.abs(b))
            if not np.isfinite(effect).all() or abs(effect.sum()) < 1e-12:
                break
            # Shrink entries that count for more in the mean than in the rate, and grow the others.
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
        """Return the mean slope at the midpoint of the drive, and its gradient with respect to b.

        The slopes are taken at the fixed point x = f(W x + c) without leak, where c is bias plus
        drive.
        """
        # The fixed point.
        c, f, slope_of = b + self.mid_drive, self.activation.function, self.activation.derivative
        x = f(c)
        for _ in range(_ROUNDS):
            new = f(self.network.W @ x + c)
            change = np.max(np.abs(new - x))
            x = new
            if change < 1e-10:
                break
        # The derivatives of the slopes, and the adjoint of the fixed-point equation.
        z = self.network.W @ x + c
        slopes = slope_of(z)
        bend = (slope_of(z + _STEP) - slope_of(z - _STEP)) / (2 * _STEP) / len(b)
        adjoint = _fixed_point(lambda v: bend + self.Wt @ (slopes * v), bend)
        return float(np.mean(slopes)), adjoint

    def rate_gradient(self, b: Array) -> Array:
        """Return the gradient of log(rate) with respect to the bias.

        The rate is the Perron root of diag(d)|W|, and its gradient with respect to the largest
        slopes d follows from the left and right Perron vectors. The slopes depend on the bounds of
        the box, which are a fixed point of interval arithmetic: its adjoint equation gives the
        gradient with respect to the bias.
        """
        # The gradient with respect to the largest slopes.
        net = self.network.biased(b)
        box = interval_box(net, tol=_LOOSE)
        M = scaled_rows(box.largest_slope, net.A)
        _, x = perron_bound(M)
        _, y = perron_bound(sp.csr_array(M.T) if sp.issparse(M) else M.T)
        by_slope = y * (net.A @ x)
        by_slope = by_slope / max(float(y @ (M @ x)), 1e-300)
        # The gradient with respect to both bounds of z.
        to_low, to_high = self._slope_bends(box)
        at_low = self.activation.derivative(box.z_low)
        at_high = self.activation.derivative(box.z_high)
        given = np.array([by_slope * to_low, by_slope * to_high])

        # The bounds of z change with the bias by dz = K diag(f') dz + db, where K is the map from
        # the bounds of the box to the bounds of z; the adjoint equation is v = given + diag(f') K'
        # v.
        def transposed(v: Array) -> Array:
            together, apart = self.Wt @ (v[0] + v[1]), self.At @ (v[0] - v[1])
            return given + 0.5 * np.array(
                [at_low * (together + apart), at_high * (together - apart)]
            )

        return _fixed_point(transposed, given).sum(axis=0)

    def _slope_bends(self, box: Box) -> tuple[Array, Array]:
        """Return the derivatives of the largest slopes with respect to both bounds of z."""
        of = self.network.enclosure.slopes
        h = _STEP
        ends = box.z_low, np.maximum(box.z_high, box.z_low + 2 * h)
        low = (of(ends[0] + h, ends[1])[1] - of(ends[0] - h, ends[1])[1]) / (2 * h)
        high = (of(ends[0], ends[1] + h)[1] - of(ends[0], ends[1] - h)[1]) / (2 * h)
        return low, high


def max_norm_bound(network: IntervalNetwork, tol: float = 1e-9) -> float:
    """Return the rate r of theorem C2, without leak, in a box that is narrowed down to `tol`."""
    return max_norm_rate(network, interval_box(network, tol=tol).largest_slope)[0]


def bisected(holds: Callable[[float], bool], low: float, high: float, tol: float = 0.005) -> float:
    """Return a number for which `holds` is true, by bisection.

    It is near the smallest such number if `holds` is true for all larger numbers. `high` is doubled
    until `holds(high)` is true; `tol` is the relative accuracy.
    """
    while not holds(high):
        low, high = high, 2 * high
        if high > 1e9:
            raise ValueError(
                "No certified bias was found: W or the drive is too large for floating point. "
                "Scale W down."
            )
    while high / low > 1 + tol:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _fixed_point(step: Callable[[Array], Array], v: Array) -> Array:
    """Return the fixed point of an affine contraction; the last finite iterate if there is none."""
    for _ in range(_ROUNDS):
        new = step(v)
        if not np.isfinite(new).all():
            return v
        done = np.max(np.abs(new - v)) <= 1e-8 * np.max(np.abs(new))
        v = new
        if done:
            break
    return v
