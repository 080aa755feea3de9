"""`certify_cycle`: prove that a periodic input leads to one limit cycle from any state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir._workers import threads_for
from reservoir.activations.enclosures import EPS
from reservoir.dynamics.held_reservoir import as_reservoir
from reservoir.stability._arguments import warn_of_open_loop
from reservoir.stability._drive_ranges import drive_terms, periodic_drive
from reservoir.stability.proofs._boxes import Box, tube
from reservoir.stability.proofs._certificate import Certificate, no_certificate
from reservoir.stability.proofs._cycle_rates import MAX_SERIES_UNITS, cycle_rate, series_cycle_rate
from reservoir.stability.proofs._interval_network import (
    IntervalNetwork,
    is_manageable,
    read_network,
)
from reservoir.stability.proofs._lyapunov_cycle import (
    CHEAP_UNITS,
    MAX_CYCLE_UNITS,
    CycleNorms,
    cycle_lyapunov,
)
from reservoir.stability.proofs._resolution import cycle_resolution
from reservoir.stability.proofs._zonotopes import zonotope_tube

_METHODS = ("auto", "thorough", "max_norm", "series", "lyapunov")
_MOST_UNITS = {
    "thorough": MAX_SERIES_UNITS,
    "series": MAX_SERIES_UNITS,
    "lyapunov": MAX_CYCLE_UNITS,
}
_THEOREMS = {
    "max_norm": "C5: contraction over the tube of a cycle",
    "series": "C5: series over the tube of a cycle",
    "lyapunov": "C5: quadratic norms over the tube of a cycle",
}


def certify_cycle(
    reservoir: Any,
    inputs: ArrayLike,
    *,
    feedback: ArrayLike | None = None,
    method: str = "auto",
) -> Certificate:
    """Prove that a periodic input leads an open reservoir to one limit cycle from any state.

    The proof covers only this input, whereas `certify` covers every input in a range. The box
    follows the drive through its period, so smaller biases are enough.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
    inputs : array of shape (period, n_features)
        One period of the input; one row is a constant input.
    feedback : array of shape (period, n_outputs), optional
        The previous output, which each step receives; required if the reservoir has feedback
        weights.
    method : {"auto", "thorough", "max_norm", "series", "lyapunov"}, default="auto"
        "max_norm" multiplies bounds of the Jacobians' absolute values over the period. "lyapunov"
        searches for quadratic norms, which use the signs of W: one norm for all steps, then a
        separate norm for each step; up to 1000 units. "auto" tries "max_norm", then "lyapunov" up
        to 300 units, with separate norms if that takes at most about a second
        (``period * n_units ** 3 <= 3e7``). "series" is the series about the mean slopes, within
        windows of a few steps. "thorough" tries all three and also follows zonotopes; "thorough"
        and "series" support up to 500 units.

    Returns
    -------
    Certificate
        If it holds, the response has the input's period and attracts every trajectory; the rate is
        per step, the geometric mean over the period, and the resolution the largest over the steps.

    Raises
    ------
    UnboundedActivationError
        If the activation is unbounded or has no enclosure; a subclass of ValueError.
    TypeError, ValueError
        If the inputs have a wrong shape, no rows or NaN; or a name is not known.

    Notes
    -----
    Theorem C5 of the page on stability, with the quadratic norms of C7. If the map composed over
    the period contracts, it has one fixed point by Banach's theorem, and the cycle passes through
    it. (Bay 2017, prop. 3.3, requires only a contraction at each phase, which is not sufficient.)

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
    # The drive of each step, and a bound of its rounding error.
    check_choice("method", method, _METHODS)
    model, reservoir = reservoir, as_reservoir(reservoir)
    _check_cycle_size(reservoir.n_units, method)
    drives = periodic_drive(reservoir, inputs, feedback)
    warn_of_open_loop(model, drives)
    network = read_network(reservoir, drives.min(axis=0), drives.max(axis=0))
    terms = drive_terms(reservoir, *_as_doubles(inputs, feedback))
    error = (reservoir.n_features + reservoir.n_outputs + 4) * EPS * terms
    if not is_manageable(network):
        return no_certificate(network)
    # The boxes of the steps, and the contraction over a period by one or several proofs.
    with threads_for(network.n_units):
        boxes = tube(network, drives, error)
        best = _attempt(network, boxes, method)
        if method == "thorough" and not best.rate < 1:
            boxes = zonotope_tube(network, boxes, drives, error)
            best = _attempt(network, boxes, "narrowed")
    holds = best.rate < 1
    found = Certificate(
        holds=holds,
        rate=float(best.rate),
        method=best.method,
        theorem=_THEOREMS[best.method] if holds else "none",
        box=np.array([[box.low, box.high] for box in boxes]),
        gains=np.array([box.largest_slope for box in boxes]),
        weights=best.weights if holds else None,
        drive_min=drives - error,
        drive_max=drives + error,
    )
    with threads_for(network.n_units):
        floor = cycle_resolution(found, network, reservoir, drives, terms, best.norms)
    return replace(found, resolution=floor, reservoir=reservoir)


class _Proof(NamedTuple):
    """The result of one proof: the rate per step, and the norm that shrinks, if any."""

    method: str
    rate: float
    weights: Array | None = None
    norms: CycleNorms | None = None


def _attempt(network: IntervalNetwork, boxes: list[Box], method: str) -> _Proof:
    """Return the proof of the least rate per step, among the proofs of the method.

    "narrowed" is for boxes narrowed by zonotopes, in which no norm shrinks from the start.
    """
    steps = len(boxes)
    rate, v = cycle_rate(network, boxes)
    tried = [_Proof("max_norm", _per_step(rate, steps), v)]
    if method in ("series", "narrowed"):
        by_series = series_cycle_rate(network, boxes, v)
        tried.append(_Proof("series", _per_step(by_series, steps)))
    fails = all(not proof.rate < 1 for proof in tried)
    if method == "lyapunov" or (fails and _is_tried(network, method)):
        norms = cycle_lyapunov(network, boxes, cheaply=method != "lyapunov")
        weights = None if norms.norms is None else norms.norms[0]
        tried.append(_Proof("lyapunov", norms.rate, weights, norms))
    if method in ("series", "lyapunov"):
        tried = tried[-1:]
    best = min(tried, key=lambda proof: proof.rate)
    return best if method != "narrowed" else best._replace(weights=None, norms=None)


def _is_tried(network: IntervalNetwork, method: str) -> bool:
    """Whether quadratic norms are tried if no cheaper proof holds."""
    return method in ("thorough", "narrowed") or (
        method == "auto" and network.n_units <= CHEAP_UNITS
    )


def _per_step(rate: float, n_steps: int) -> float:
    """Return the rate per step, the geometric mean, rounded up; 1 or more is returned unchanged."""
    if not rate < 1:
        return rate
    return float(min(rate ** (1 / n_steps) * (1 + EPS * (8 + abs(np.log(rate)))), 1.0))


def _as_doubles(inputs: ArrayLike, feedback: ArrayLike | None) -> tuple[Array, Array | None]:
    """Return inputs and feedback, which have been checked, as arrays of doubles."""
    outputs = None if feedback is None else np.asarray(feedback, dtype=float)
    return np.asarray(inputs, dtype=float), outputs


def _check_cycle_size(n_units: int, method: str) -> None:
    """Raise if there are too many units for dense matrices."""
    most = _MOST_UNITS.get(method, n_units)
    if n_units > most:
        raise ValueError(
            f"method={method!r} over a cycle forms dense products: n_units={n_units} exceeds "
            f'{most}. Use method="max_norm".'
        )
