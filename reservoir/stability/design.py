"""Biases that are certified, and the largest certified radius or input scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_choice, check_number
from reservoir.activations import Activation, get_activation
from reservoir.scaling import spectral_radius
from reservoir.stability._arguments import (
    as_reservoir,
    enclosure_of,
    read_leak,
    read_matrix,
    read_range,
)
from reservoir.stability._bias_search import RATE, BiasSearch, bisected, max_norm_bound
from reservoir.stability._rounding import LARGEST, is_small
from reservoir.stability.proofs._certificate import Certificate
from reservoir.stability.proofs._certify import (
    METHODS,
    certify,
    certify_network,
    check_size,
    leaky_rate,
)
from reservoir.stability.proofs._interval_network import IntervalNetwork


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
    network = IntervalNetwork(W, abs(W), low, high, bias, leak, enclosure_of(activation))
    check_size(network, method)
    if not is_small(network.A) or not max(np.abs(low).max(), np.abs(high).max()) < LARGEST:
        raise ValueError(
            f"The sums over the rows of |W| and the drive must be below {LARGEST:g}, beyond which "
            "nothing is certified. Scale W or the inputs down."
        )
    # none is needed; a search by form 1 knows of no more than its own proof
    if max_norm_bound(network) <= RATE or certify_network(network, method).holds:
        return bias
    search = BiasSearch(network, get_activation(activation), as_generator(random_state))
    found = search.ascend() if objective == "slope" else search.descend()
    return _smallest_multiple(network, found, method)


def _smallest_multiple(network: IntervalNetwork, bias: Array, method: str) -> Array:
    """Return the smallest multiple of a certified bias that the given method still certifies."""
    target = leaky_rate(RATE, network.leak)

    def holds(factor: float) -> bool:
        return certify_network(network.biased(factor * bias), method).rate <= target

    if not holds(1.0):  # the search went by form 1; the method asked for may prove less
        bias = bisected(holds, 1.0, 2.0) * bias
    elif method != "max_norm":
        bias = bisected(holds, 0.25, 1.0) * bias
    return bias


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
