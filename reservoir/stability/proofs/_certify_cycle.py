"""`certify_cycle`: prove that a periodic input leads to one limit cycle, from any start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir.activations.enclosures import EPS
from reservoir.stability._arguments import as_reservoir
from reservoir.stability._drive_ranges import drive_terms, periodic_drive
from reservoir.stability.proofs._boxes import tube
from reservoir.stability.proofs._certificate import Certificate, no_certificate
from reservoir.stability.proofs._cycle_rates import MAX_SERIES_UNITS, cycle_rate, series_cycle_rate
from reservoir.stability.proofs._interval_network import is_manageable, read_network
from reservoir.stability.proofs._resolution import cycle_resolution
from reservoir.stability.proofs._zonotopes import zonotope_tube

_METHODS = ("auto", "thorough", "max_norm", "series")
_THEOREMS = {
    "max_norm": "C5: contraction over the tube of a cycle",
    "series": "C5: series over the tube of a cycle",
}


def certify_cycle(
    reservoir: Any,
    inputs: ArrayLike,
    *,
    feedback: ArrayLike | None = None,
    method: str = "auto",
) -> Certificate:
    """Prove that a periodic input leads to one limit cycle of its period, from any start.

    It covers this one input, where `certify` covers every input in a range. The box follows the
    drive through its period, so that smaller biases are enough.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
    inputs : array of shape (period, n_features)
        One period of the input; one row is a constant input.
    feedback : array of shape (period, n_outputs), optional
        What each step receives as previous output; required with feedback weights.
    method : {"auto", "thorough", "max_norm", "series"}, default="auto"
        "auto" multiplies bounds of the Jacobians' absolute values over the period, as "max_norm"
        does. "series" is the series about the mean slopes, within windows of a few steps.
        "thorough" also follows zonotopes, and tries both. The last two take up to 500 units.

    Returns
    -------
    Certificate
        If it holds, the response has the input's period and attracts every trajectory; the rate is
        per step, the geometric mean over the period, and the resolution the largest of the phases.

    Raises
    ------
    UnboundedActivationError
        As `certify`.
    TypeError, ValueError
        If the inputs have a wrong shape, no row or NaN; or a name is not known.

    Notes
    -----
    Theorem C5 of the page on stability. If the map composed over the period contracts, it has one
    fixed point by Banach's theorem, and the cycle goes through it. (Bay 2017, prop. 3.3, asks for a
    contraction at each phase alone, which is not enough.)

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import certify_cycle
    >>> res = Reservoir([[3.78]], [[1.0]], [-3.2])
    >>> drive = np.sin(2 * np.pi * np.arange(5) / 5)[:, None]
    >>> certificate = certify_cycle(res, drive)
    >>> certificate.holds, certificate.box.shape
    (True, (5, 2, 1))
    """
    # The drive of each step, and what rounding may have done to it.
    check_choice("method", method, _METHODS)
    reservoir = as_reservoir(reservoir)
    if method != "max_norm" and method != "auto":
        _check_cycle_size(reservoir.n_units, method)
    drives = periodic_drive(reservoir, inputs, feedback)
    network = read_network(reservoir, drives.min(axis=0), drives.max(axis=0))
    terms = drive_terms(reservoir, *_as_doubles(inputs, feedback))
    error = (reservoir.n_features + reservoir.n_outputs + 4) * EPS * terms
    if not is_manageable(network):
        return no_certificate(network)
    # The boxes of the steps, and the contraction over a period by one or several proofs.
    boxes = tube(network, drives, error)
    r, v = cycle_rate(network, boxes)
    weights: Array | None = v
    rates = {"max_norm": r}
    if method == "series":
        rates = {"series": series_cycle_rate(network, boxes, v)}
    elif method == "thorough" and r >= 1:
        boxes, weights = zonotope_tube(network, boxes, drives, error), None
        rates["max_norm"], v = cycle_rate(network, boxes)
        rates["series"] = series_cycle_rate(network, boxes, v)
    # The best of them, as a rate per step.
    chosen = min(rates, key=lambda name: rates[name])
    rate = rates[chosen]
    if rate < 1:  # the root is rounded up
        rate = min(rate ** (1 / len(drives)) * (1 + EPS * (8 + abs(np.log(rate)))), 1.0)
    found = Certificate(
        holds=bool(rates[chosen] < 1),
        rate=float(rate),
        method=chosen,
        theorem=_THEOREMS[chosen] if rates[chosen] < 1 else "none",
        box=np.array([[box.low, box.high] for box in boxes]),
        gains=np.array([box.largest_slope for box in boxes]),
        weights=weights if chosen == "max_norm" and rate < 1 else None,
        drive_min=drives - error,
        drive_max=drives + error,
    )
    floor = cycle_resolution(found, network, reservoir, drives, terms)
    return replace(found, resolution=floor, reservoir=reservoir)


def _as_doubles(inputs: ArrayLike, feedback: ArrayLike | None) -> tuple[Array, Array | None]:
    """Return inputs and feedback, which have been checked, as arrays of doubles."""
    outputs = None if feedback is None else np.asarray(feedback, dtype=float)
    return np.asarray(inputs, dtype=float), outputs


def _check_cycle_size(n_units: int, method: str) -> None:
    """Refuse too many units for the dense products of a window."""
    if n_units > MAX_SERIES_UNITS:
        raise ValueError(
            f"method={method!r} over a cycle forms dense products: n_units={n_units} exceeds "
            f'{MAX_SERIES_UNITS}. Use method="max_norm".'
        )
