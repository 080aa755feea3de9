"""Find a certified bias, and the largest certified spectral radius or input scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_choice, check_number
from reservoir.activations import Activation, get_activation
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.scaling import spectral_radius
from reservoir.stability._arguments import enclosure_of, read_leak, read_matrix, read_range
from reservoir.stability._rounding import LARGEST, OVERFLOWS, is_small, row_sums
from reservoir.stability.proofs._boxes import Box, interval_box
from reservoir.stability.proofs._certificate import Certificate
from reservoir.stability.proofs._certify import (
    PROOFS,
    certify,
    certify_network,
    check_method,
    check_size,
)
from reservoir.stability.proofs._diagonal_scaling import scaled_rows
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._max_norm import max_norm_rate, perron_bound

_QUICK = ("max_norm", "two_norm", "series")  # proofs cheap enough for each step of a search
RATE = 0.98  # target rate of a design: the margin below 1 covers later rounding
_STEPS = 60  # gradient steps, at most
_ROUNDS = 300  # of fixed-point iterations
_LOOSE = 1e-5  # accuracy of boxes in the search; a box that is not fully narrowed is still valid
_SATURATED = 3.0  # a pre-activation at which a unit is saturated: tanh has a slope below .01
_STEP = 1e-5  # of central differences in z


def stable_bias(
    W: Any,
    drive_min: ArrayLike,
    drive_max: ArrayLike,
    *,
    objective: str = "slope",
    margin: float = 0.01,
    method: str = "auto",
    leak_rate: ArrayLike = 1.0,
    activation: str | Activation = "tanh",
    random_state: RandomState = None,
) -> Array:
    """Find a bias with which a reservoir is certified for all inputs in a range.

    The returned bias has been certified as by `certify`; the search for it is a heuristic. The
    smallest bias is not the best: some units keep steep slopes and others saturate, which shortens
    the memory. By default the mean slope of the activations is maximised instead.

    Parameters
    ----------
    W : array or sparse array of shape (n_units, n_units)
        Recurrent weights, of any spectral radius.
    drive_min, drive_max : float or array of shape (n_units,)
        Bounds of the drive p = W_in u, the bias excluded.
    objective : {"slope", "magnitude"}, default="slope"
        "slope" maximises the mean slope of the activations, at the fixed point under a constant
        drive at the midpoint of its range; "magnitude" minimises the mean absolute value of the
        bias.
    margin : float, not negative, default=0.01
        Fraction by which the range of the drive is widened on both sides before the bias is
        certified, relative to the width of a unit's total input (its drive plus the recurrent
        input). With 0 the bias may be at a fold, where the box is about to become wide: then states
        need many more steps to enter it than the rate suggests (see `Certificate.steps_to`).
    method : {"auto", "thorough", "max_norm", "two_norm", "series", "lyapunov"}, default="auto"
        Proof that `certify` uses for the result; the search itself uses the maximum norm.
    leak_rate : float or array of shape (n_units,), per step, default=1.0
        The leak rates.
    activation : str or Activation, default="tanh"
        The activation, which must have a bounded enclosure.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the random signs from which the search starts.

    Returns
    -------
    array of shape (n_units,)
        The bias. It is zero if none is needed, because `method` certifies the network without a
        bias for the given range.

    Raises
    ------
    UnboundedActivationError
        If the activation is unbounded or has no enclosure; a subclass of ValueError.
    TypeError, ValueError
        If `certify` would raise one, or W is so large that sums overflow.

    Notes
    -----
    The search begins with biases of the form t s, where s contains the row sums of ``|W|`` with
    random signs: they are certified for large t, and bisection finds the smallest t. From
    there the objective is ascended along the surface on which the proved rate is constant.
    Gradients are computed from the adjoints of two fixed-point equations: the state's, for the mean
    slope, and the box's, for the rate. Bisection assumes that a larger bias is certified wherever a
    smaller one is. This need not be so, so the result is certified again.

    Examples
    --------
    Spectral radius 1.5, certified for every drive within 0.2:

    >>> import numpy as np
    >>> from reservoir.building import build_reservoir
    >>> from reservoir.stability import certify, stable_bias
    >>> W = build_reservoir(50, 1, spectral_radius=1.5, random_state=0).W
    >>> b = stable_bias(W, -0.2, 0.2, random_state=0)
    >>> from reservoir.dynamics import Reservoir
    >>> certify(Reservoir(W, np.ones((50, 1)), b), -0.2, 0.2).holds
    True
    """
    check_choice("objective", objective, ("slope", "magnitude"))
    check_method(method)
    margin = check_number("margin", margin, low=0.0)
    W = read_matrix(W)
    n_units = W.shape[0]
    low, high = read_range(drive_min, drive_max, n_units)
    leak = read_leak(leak_rate, n_units)
    bias = np.zeros(n_units)
    network = IntervalNetwork(W, abs(W), low, high, bias, leak, enclosure_of(activation))
    check_size(network, method)
    wide = _widened(network, margin)
    largest = max(np.abs(wide.drive_min).max(), np.abs(wide.drive_max).max())
    if not is_small(network.A) or not largest < LARGEST:
        raise ValueError(
            f"The row sums of |W| and the drive must be below {LARGEST:g}; nothing larger is "
            "certified. Scale W or the inputs down."
        )
    # No bias may be needed, by the proof that the search uses or by the requested one.
    if _max_norm_bound(network) <= RATE or certify_network(network, method).holds:
        return bias
    # Search, then find the smallest multiple that the method certifies.
    search = _BiasSearch(wide, get_activation(activation), as_generator(random_state))
    found = search.ascend() if objective == "slope" else search.descend()
    return _smallest_multiple(network, wide, found, method)


@OVERFLOWS
def _widened(network: IntervalNetwork, margin: float) -> IntervalNetwork:
    """Return a network whose drive has a wider range, by a fraction of each unit's total input."""
    low, high = network.drive_min, network.drive_max
    span = network.enclosure.high - network.enclosure.low
    more = margin * (high - low + span * row_sums(network.A))
    return replace(network, drive_min=low - more, drive_max=high + more)


def _smallest_multiple(
    network: IntervalNetwork, wide: IntervalNetwork, bias: Array, method: str
) -> Array:
    """Return the smallest multiple of a bias that the given method certifies, for both networks.

    The second has a wider range: wherever it is certified, so is the first, but possibly by another
    proof, with a rate nearer to 1.
    """
    target = network.leaky_rate(RATE)
    # Only the cheap proofs of "auto": a quadratic norm would allow hardly smaller biases.
    methods = _QUICK if method == "auto" else (method,)

    def holds(factor: float) -> bool:
        biased = wide.biased(factor * bias)
        return any(
            certify_network(biased, one).rate <= target
            for one in methods
            if one not in PROOFS or biased.n_units <= PROOFS[one].most_units
        )

    def both_hold(factor: float) -> bool:
        narrow = certify_network(network.biased(factor * bias), method)
        return narrow.rate <= target and holds(factor)

    # The search has used the maximum norm: another method may prove less, or more.
    factor = 1.0
    if not holds(1.0):
        factor = _bisected(holds, 1.0, 2.0)
    elif method != "max_norm":
        factor = _bisected(holds, 0.25, 1.0)
    if not both_hold(factor):
        factor = _bisected(both_hold, factor, 2 * factor)
    return factor * bias


class LargestCertified(NamedTuple):
    """The largest value that was certified, and its certificate.

    Attributes
    ----------
    value : float
        The largest value that was certified.
    certificate : Certificate
        The certificate for this value.

    Examples
    --------
    >>> from reservoir.stability import LargestCertified
    >>> LargestCertified._fields
    ('value', 'certificate')
    """

    value: float
    certificate: Certificate


def largest_certified(
    reservoir: Any,
    drive_min: ArrayLike,
    drive_max: ArrayLike,
    *,
    parameter: str = "spectral_radius",
    method: str = "auto",
    tol: float = 1e-3,
) -> LargestCertified:
    """Find the largest spectral radius, or input scaling, that is certified of an open reservoir.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
    drive_min, drive_max : float or array of shape (n_units,)
        Bounds of the drive p = W_in u, the bias excluded, for the reservoir as it is.
    parameter : {"spectral_radius", "input_scaling"}, default="spectral_radius"
        "spectral_radius" multiplies W; "input_scaling" multiplies the drive.
    method : str, default="auto"
        As in `certify`.
    tol : float, at least 1e-12, default=1e-3
        Relative accuracy of the bisection.

    Returns
    -------
    LargestCertified
        ``value`` is the spectral radius of the scaled W, or the factor of the input weights. The
        radius has the accuracy of `spectral_radius`, 1e-6: use a slightly smaller one to build a
        new reservoir. The value is infinite if even 2^40 times the present value is certified, and
        0.0 if not even 2^-40 times the present value is. ``certificate`` is for this value; it does
        not hold if the value is 0.

    Raises
    ------
    TypeError, ValueError
        If `certify` would raise one, or the spectral radius of W is 0, so that no factor changes
        it.

    Notes
    -----
    The value is certified; that it is the largest is not proved: bisection assumes that all values
    smaller than a certified one are certified, too.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import critical_bias, largest_certified
    >>> unit = Reservoir([[1.0]], [[1.0]], [2.5])
    >>> value, certificate = largest_certified(unit, 0.0, 0.0)
    >>> certificate.holds, bool(critical_bias(value) < 2.5)
    (True, True)
    """
    check_choice("parameter", parameter, ("spectral_radius", "input_scaling"))
    tol = check_number("tol", tol, low=1e-12)
    reservoir = as_reservoir(reservoir)
    low, high = read_range(drive_min, drive_max, reservoir.n_units)
    unit = 1.0
    if parameter == "spectral_radius":
        unit = spectral_radius(reservoir.W)
        if unit == 0.0:
            raise ValueError(
                "The spectral radius of W is 0, so no factor changes it. Use "
                'parameter="input_scaling".'
            )

    # The certificate at a factor, and the largest factor at which it holds, by bisection.
    def at(factor: float) -> Certificate:
        if parameter == "input_scaling":
            return certify(reservoir, factor * low, factor * high, method=method)
        scaled = replace(reservoir, W=reservoir.W.astype(float) * factor)
        return certify(scaled, low, high, method=method)

    good, bad = _bracket(lambda factor: at(factor).holds)
    if good is None:
        return LargestCertified(0.0, at(2.0**-40))
    if bad is None:
        return LargestCertified(np.inf, at(good))
    while bad / good > 1 + tol:
        middle = float(np.sqrt(good * bad))
        good, bad = (middle, bad) if at(middle).holds else (good, middle)
    return LargestCertified(good * unit, at(good))


def _bracket(holds: Callable[[float], bool]) -> tuple[float | None, float | None]:
    """Return a power of 2 that holds and the next larger one, which does not.

    The search begins at 1 and ends at 2^40 or 2^-40; a bound that is not found is None.
    """
    if holds(1.0):
        for k in range(1, 41):
            if not holds(2.0**k):
                return 2.0 ** (k - 1), 2.0**k
        return 2.0**40, None
    for k in range(1, 41):
        if holds(2.0**-k):
            return 2.0**-k, 2.0 ** (1 - k)
    return None, 2.0**-40


@dataclass
class _BiasSearch:
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
        return _max_norm_bound(self.network.biased(bias), _LOOSE)

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
        return _bisected(lambda factor: self.rate(factor * bias) <= RATE, 0.5, 2.0) * bias

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

        return on_ray(_bisected(lambda t: self.rate(on_ray(t)) <= RATE, 0.01, 4.0, 0.002))

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


def _max_norm_bound(network: IntervalNetwork, tol: float = 1e-9) -> float:
    """Return the rate r of theorem C2, without leak, in a box that is narrowed down to `tol`."""
    return max_norm_rate(network, interval_box(network, tol=tol).largest_slope)[0]


def _bisected(holds: Callable[[float], bool], low: float, high: float, tol: float = 0.005) -> float:
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
