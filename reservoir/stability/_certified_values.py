"""Find a certified bias, and the largest certified spectral radius or input scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_choice, check_number
from reservoir.activations import Activation, get_activation
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.scaling import spectral_radius
from reservoir.stability._arguments import enclosure_of, read_leak, read_matrix, read_range
from reservoir.stability._bias_search import RATE, BiasSearch, bisected, max_norm_bound
from reservoir.stability._rounding import LARGEST, OVERFLOWS, is_small, row_sums
from reservoir.stability.proofs._certificate import Certificate
from reservoir.stability.proofs._certify import (
    PROOFS,
    certify,
    certify_network,
    check_method,
    check_size,
)
from reservoir.stability.proofs._interval_network import IntervalNetwork

_QUICK = ("max_norm", "two_norm", "series")  # proofs cheap enough for each step of a search


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
    if max_norm_bound(network) <= RATE or certify_network(network, method).holds:
        return bias
    # Search, then find the smallest multiple that the method certifies.
    search = BiasSearch(wide, get_activation(activation), as_generator(random_state))
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
        factor = bisected(holds, 1.0, 2.0)
    elif method != "max_norm":
        factor = bisected(holds, 0.25, 1.0)
    if not both_hold(factor):
        factor = bisected(both_hold, factor, 2 * factor)
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
