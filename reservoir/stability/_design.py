"""Biases that are certified, and the largest certified radius or input scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_choice, check_number
from reservoir.activations import Activation, get_activation
from reservoir.scaling import spectral_radius
from reservoir.stability._boxes import Box, interval_box
from reservoir.stability._certificate import Certificate
from reservoir.stability._certificates import METHODS, certify, certify_network, check_size
from reservoir.stability._network import (
    Network,
    as_reservoir,
    enclosure_of,
    read_leak,
    read_matrix,
    read_range,
    row_sums,
)
from reservoir.stability._rates import (
    LARGEST,
    is_small,
    leaky_rate,
    max_norm_rate,
    perron_bound,
    scaled_rows,
)

RATE = 0.98  # of the norms without leak that a design aims at: a margin against its own rounding
_STEPS = 60
_ROUNDS = 300  # of the fixed-point iterations for gradients, which contract
_LOOSE = 1e-5  # where a search may stop narrowing a box: still a box
_SATURATED = 3.0  # beyond what a unit can receive: a slope below .01 for tanh
_STEP = 1e-5  # of central differences in z


def stable_bias(
    W: Any,
    drive_min: ArrayLike,
    drive_max: ArrayLike,
    *,
    objective: str = "slope",
    margin: float = 0.0,
    method: str = "auto",
    leak_rate: ArrayLike = 1.0,
    activation: str | Activation = "tanh",
    random_state: RandomState = None,
) -> Array:
    """Find a bias with which a reservoir is certified for all inputs in a range.

    What comes back has been certified by `certify`; how it was found is a heuristic. The smallest
    bias is the wrong aim: it keeps some units steep and saturates others, and the memory goes with
    them. The default ascends the mean slope of the activations instead.

    Parameters
    ----------
    W : array or sparse array of shape (n_units, n_units)
        Recurrent weights, of any spectral radius.
    drive_min, drive_max : float or array of shape (n_units,)
        Bounds of the drive p = W_in u, the bias excluded.
    objective : {"slope", "magnitude"}, default="slope"
        "slope": the largest mean slope at the fixed point of the middle drive; "magnitude": the
        smallest mean modulus of the bias.
    margin : float, not negative, default=0.0
        Widens the range of the drive on both sides by this share of its width.
    method : {"auto", "thorough", "max_norm", "two_norm", "series"}, default="auto"
        How `certify` proves the end point; the search itself uses the maximum norm.
    leak_rate : float or array of shape (n_units,), per step, default=1.0
    activation : str or Activation, default="tanh"
        With an enclosure, as for `certify`.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the signs that the search starts from.

    Returns
    -------
    array of shape (n_units,)
        Zero where no bias is needed: where `certify` holds by `method` without one.

    Raises
    ------
    UnboundedActivationError
        If nothing is known of the activation on intervals; a subclass of ValueError.
    TypeError, ValueError
        As `certify`; if W is so large that sums overflow.

    Notes
    -----
    A ray of signs times the rows' sums of ``|W|`` is certified far out; bisection finds where it
    begins to be. From there the objective is ascended along the surface of constant rate, the
    gradients by the adjoints of the box's and of the fixed point's equations. Bisection assumes
    that a larger bias is certified where a smaller one is, which need not be so: the end point is
    certified again.

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
    check_choice("method", method, METHODS)
    margin = check_number("margin", margin, low=0.0)
    W = read_matrix(W)
    n_units = W.shape[0]
    low, high = read_range(drive_min, drive_max, n_units)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = low - margin * (high - low), high + margin * (high - low)
    leak = read_leak(leak_rate, n_units)
    bias = np.zeros(n_units)
    network = Network(W, abs(W), low, high, bias, leak, enclosure_of(activation))
    check_size(network, method)
    if not is_small(network.A) or not max(np.abs(low).max(), np.abs(high).max()) < LARGEST:
        raise ValueError(
            f"The sums over the rows of |W| and the drive must be below {LARGEST:g}, beyond which "
            "nothing is certified. Scale W or the inputs down."
        )
    # none is needed; a search by form 1 knows of no more than its own proof
    if _rate(network) <= RATE or certify_network(network, method).holds:
        return bias
    search = _Search(network, get_activation(activation), as_generator(random_state))
    found = search.ascend() if objective == "slope" else search.descend()
    return _shrunk(network, found, method)


def _rate(network: Network, tol: float = 1e-9) -> float:
    """Return the bound of form 1."""
    return max_norm_rate(network, interval_box(network, tol=tol).largest_slope)[0]


def _shrunk(network: Network, bias: Array, method: str) -> Array:
    """Return the smallest multiple of a certified bias that the given method still certifies."""
    target = leaky_rate(RATE, network.leak)

    def holds(factor: float) -> bool:
        return certify_network(network.biased(factor * bias), method).rate <= target

    if not holds(1.0):  # the search went by form 1; the method asked for may prove less
        bias = _bisected(holds, 1.0, 2.0) * bias
    elif method != "max_norm":
        bias = _bisected(holds, 0.25, 1.0) * bias
    return bias


def _bisected(holds: Callable[[float], bool], low: float, high: float, tol: float = 0.005) -> float:
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


@dataclass
class _Search:
    """Gradient search over the bias, along the surface of one certified rate."""

    network: Network
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
        return _rate(self.network.biased(bias), _LOOSE)

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
        return _bisected(lambda factor: self.rate(factor * bias) <= RATE, 0.5, 2.0) * bias

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

        return on_ray(_bisected(lambda t: self.rate(on_ray(t)) <= RATE, 0.01, 4.0, 0.002))

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


class LargestCertified(NamedTuple):
    """The largest value that was certified, and its certificate.

    Attributes
    ----------
    value : float
    certificate : Certificate

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
    """Find the largest spectral radius, or input scaling, that is certified with the bias at hand.

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
        ``value``: the spectral radius of the scaled W (to the accuracy of `spectral_radius`, 1e-6:
        leave a margin if you build anew), or the factor of the input weights; infinite if even 2^40
        times the present one is certified, and 0.0 with a certificate that does not hold if not
        even 2^-40 of it is. ``certificate``: of that value.

    Raises
    ------
    TypeError, ValueError
        As `certify`; if the spectral radius of W is 0, so that no factor changes it.

    Notes
    -----
    The value is certified; that no larger one is, is a heuristic: bisection assumes that what is
    certified at a value is so below it.

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
                "The spectral radius of W is 0, and no factor changes it. Use "
                'parameter="input_scaling".'
            )

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
    """Return a factor that holds and the next that does not, of powers of 2 about 1."""
    if holds(1.0):
        for k in range(1, 41):
            if not holds(2.0**k):
                return 2.0 ** (k - 1), 2.0**k
        return 2.0**40, None
    for k in range(1, 41):
        if holds(2.0**-k):
            return 2.0**-k, 2.0 ** (1 - k)
    return None, 2.0**-40
