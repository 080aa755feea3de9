"""Proofs that a network forgets its start, for all inputs in a range."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir.activations.enclosures import EPS
from reservoir.stability._arguments import as_reservoir
from reservoir.stability._drive_ranges import drive_range, drive_terms, shared_inputs
from reservoir.stability.proofs._boxes import Box, interval_box
from reservoir.stability.proofs._certificate import Certificate, no_certificate
from reservoir.stability.proofs._interval_network import (
    MAX_DENSE_UNITS,
    IntervalNetwork,
    is_manageable,
    read_network,
)
from reservoir.stability.proofs._max_norm import max_norm_rate
from reservoir.stability.proofs._resolution import resolution
from reservoir.stability.proofs._series_rate import series_rate
from reservoir.stability.proofs._two_norm import two_norm_rate
from reservoir.stability.proofs._zonotopes import zonotope_box

METHODS = ("auto", "thorough", "max_norm", "two_norm", "series")
_THEOREMS = {
    "max_norm": "C2: contraction in a weighted maximum norm",
    "two_norm": "C3: contraction in a weighted Euclidean norm",
    "series": "C4: series of the linearisation",
}


def certify(
    reservoir: Any,
    drive_min: ArrayLike,
    drive_max: ArrayLike,
    *,
    method: str = "auto",
    input_range: tuple[ArrayLike, ArrayLike] | None = None,
    output_range: tuple[ArrayLike, ArrayLike] | None = None,
) -> Certificate:
    """Prove that a network has the echo state property for all inputs in a range.

    The proof is computed for the network at hand, at any spectral radius, rounding included. It is
    sufficient, not necessary: a network that is not certified may have the property all the same.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        With tanh or logistic units, or another bounded activation that has an enclosure.
    drive_min, drive_max : float or array of shape (n_units,)
        Bounds of the drive p = W_in u, the bias excluded, at every step. `drive_range` makes them
        from bounds of the inputs. With feedback weights p = W_in u + W_fb y, with y given
        (teacher forcing); a loop on own outputs is another network: see `certify_loop`.
    method : {"auto", "thorough", "max_norm", "two_norm", "series"}, default="auto"
        "auto" takes the first that succeeds of a weighted maximum norm, a weighted Euclidean norm
        and the series of the linearisation, the last two up to 3000 units. "thorough" follows
        zonotopes for a tighter box, also up to 3000 units: some twelve matrices of memory, and
        several times as long.
    input_range, output_range : (low, high), optional
        Bounds of the inputs, numbers or arrays of shape (n_features,), and of outputs that are fed
        back through W_fb: those that the drive's bounds come from. With them "thorough" knows that
        the units share their inputs, and may prove more, of such inputs only (``shared``).

    Returns
    -------
    Certificate

    Raises
    ------
    UnboundedActivationError
        If nothing is known of the activation on intervals; a subclass of ValueError.
    TypeError, ValueError
        If the bounds are crossed, NaN, infinite or of a wrong shape, or a name is not known; if
        inputs of `input_range` leave the bounds of the drive; if "thorough", "two_norm" or "series"
        is asked for more than 3000 units.

    Notes
    -----
    Theorems C1 to C4 of the page on stability. In short: a box that every trajectory enters bounds
    the slopes d of the activation, and the network contracts if ``diag(d)|W|`` has spectral radius
    below 1, if ``P diag(d) W P^-1`` has norm below 1 for a diagonal P, or if the series about the
    mean slopes converges. With slopes of 1 these are the known conditions on W alone [1]_, [2]_.
    Where two_norm proves it for unequal leak rates, differences need not shrink at each step. For
    one unit `bias_bounds` knows more: gains of 1 and below -1.

    The theorems are of the exact map. What a run in floating point makes of them is
    `Certificate.resolution`: steep chains of units carry rounding errors on, and trajectories may
    stay far apart for ever where a proof holds. It takes the terms of the drive to be no larger
    than its bounds; where large inputs cancel in W_in u, give `input_range`.

    A network that is not certified may be by ``method="thorough"`` with `input_range`, for one
    periodic input (`certify_cycle`), with another bias (`stable_bias`), or for a smaller radius or
    range (`largest_certified`).

    References
    ----------
    .. [1] Jaeger (2001), GMD Report 148, proposition 3.
    .. [2] Yildiz, Jaeger and Kiebel (2012), "Re-visiting the echo state property", Neural Networks
       35, theorem 4.1.
    .. [3] Rump (2006), "Verification of positive definiteness", BIT 46.

    Examples
    --------
    A network of spectral radius 3 that forgets its start, because the biases saturate it:

    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import certify
    >>> W = np.full((2, 2), 1.5)
    >>> bool(certify(Reservoir(W, np.ones((2, 1)), [-3.5, -3.5]), -0.5, 0.5))
    True
    >>> bool(certify(Reservoir(W, np.ones((2, 1)), [-0.7, -0.7]), -0.5, 0.5))
    False
    """
    check_choice("method", method, METHODS)
    network = read_network(reservoir, drive_min, drive_max)
    made = as_reservoir(reservoir)
    if input_range is None and output_range is None:
        found = certify_network(network, method)
        terms = np.maximum(np.abs(network.drive_min), np.abs(network.drive_max))
        return replace(found, resolution=resolution(found, network, made, terms))
    of_inputs, of_outputs, shared = shared_inputs(made, input_range, output_range)
    network = _reaching(network, reservoir, of_inputs, of_outputs)
    found = certify_network(network, method, shared)
    terms = drive_terms(made, of_inputs, of_outputs)
    floor = resolution(found, network, made, terms)
    return replace(found, input_range=of_inputs, output_range=of_outputs, resolution=floor)


def _reaching(
    network: IntervalNetwork, reservoir: Any, of_inputs: Array, of_outputs: Array | None
) -> IntervalNetwork:
    """Return the network with a drive that holds all that the inputs make, to the last digit."""
    feedback = {}
    if of_outputs is not None:
        feedback = {"feedback_low": of_outputs[0], "feedback_high": of_outputs[1]}
    low, high = drive_range(reservoir, of_inputs[0], of_inputs[1], **feedback)
    slack = 1e-9 * (np.abs(low) + np.abs(high))
    if (low < network.drive_min - slack).any() or (high > network.drive_max + slack).any():
        raise ValueError(
            "input_range reaches beyond drive_min and drive_max: the drives of such inputs are not "
            "within the bounds. Take drive_min, drive_max = drive_range(reservoir, low, high)."
        )
    return replace(
        network,
        drive_min=np.minimum(low, network.drive_min),
        drive_max=np.maximum(high, network.drive_max),
    )


def certify_network(
    network: IntervalNetwork, method: str = "auto", inputs: tuple[Array, Array] | None = None
) -> Certificate:
    """`certify` on what has been checked."""
    check_size(network, method)
    if not is_manageable(network):
        return no_certificate(network)
    box = interval_box(network)
    best = _attempt(network, box, method)
    if method == "thorough" and not best.holds:
        narrow = _attempt(network, zonotope_box(network, box, inputs), method)
        if narrow.rate < best.rate:  # narrowed boxes hold trajectories in the end, not all the way
            shared = narrow.holds and inputs is not None
            best = replace(narrow, weights=None, shared=shared)
    return best


def check_size(network: IntervalNetwork, method: str) -> None:
    if network.n_units > MAX_DENSE_UNITS and method not in ("auto", "max_norm"):
        raise ValueError(
            f"method={method!r} needs dense matrices of n_units={network.n_units}; it is offered "
            f'up to {MAX_DENSE_UNITS}. Use method="auto" or "max_norm".'
        )


def _attempt(network: IntervalNetwork, box: Box, method: str) -> Certificate:
    """Try the methods in turn; return the first success, else the failure of least rate."""
    gains, leak = box.largest_slope, network.leak

    def max_norm() -> tuple[float, Array | None]:
        r, v = max_norm_rate(network, gains)
        return leaky_rate(r, leak), v

    def two_norm() -> tuple[float, Array | None]:
        r, P = two_norm_rate(network, gains)
        return leaky_rate(r, leak), P

    def series() -> tuple[float, Array | None]:
        start = max_norm_rate(network, gains)[1]
        return series_rate(network, box.least_slope, gains, start), None

    ways = {"max_norm": max_norm, "two_norm": two_norm, "series": series}
    names = [method] if method in ways else list(ways)
    if network.n_units > MAX_DENSE_UNITS:
        names = ["max_norm"]
    best: Certificate | None = None
    for name in names:
        rate, weights = ways[name]()
        if best is None or rate < best.rate:
            best = _certificate(network, box, name, rate, weights)
        if best.holds:
            break
    assert best is not None
    return best


def _certificate(
    network: IntervalNetwork, box: Box, method: str, rate: float, weights: Array | None
) -> Certificate:
    return Certificate(
        holds=bool(rate < 1),
        rate=float(rate),
        method=method,
        theorem=_THEOREMS[method] if rate < 1 else "none",
        box=np.array([box.low, box.high]),
        gains=box.largest_slope,
        weights=weights if rate < 1 else None,
        drive_min=network.drive_min,
        drive_max=network.drive_max,
    )


def leaky_rate(r: float, leak: Array) -> float:
    """Return 1 - a_min (1 - r), rounded up; with r above 1 the largest leak counts."""
    a = leak.min() if r < 1 else leak.max()
    return float(1 - a * (1 - r)) + 4 * EPS if np.isfinite(r) else np.inf
