"""Proofs that a network forgets its start: for all inputs in a range, or for one cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice
from reservoir.activations._enclosures import EPS
from reservoir.dynamics._open_loop import as_feedback, as_series
from reservoir.stability._boxes import Box, interval_box, tube
from reservoir.stability._cycle_rates import MAX_SERIES_UNITS, cycle_rate, series_cycle_rate
from reservoir.stability._network import (
    Network,
    as_double,
    as_real,
    as_reservoir,
    drive_range,
    read_network,
    shared_inputs,
)
from reservoir.stability._rates import (
    LARGEST,
    MAX_DENSE_UNITS,
    is_small,
    leaky_rate,
    max_norm_rate,
    norm_rate,
    perron_scaling,
    scaled_rows,
    series_rate,
)
from reservoir.stability._zonotopes import zonotope_box, zonotope_tube

METHODS = ("auto", "thorough", "max_norm", "two_norm", "series")
_THEOREMS = {
    "max_norm": "C2: contraction in a weighted maximum norm",
    "two_norm": "C3: contraction in a weighted Euclidean norm",
    "series": "C4: series of the linearisation",
}
_CYCLE_METHODS = ("auto", "thorough", "max_norm", "series")
_CYCLE_THEOREMS = {
    "max_norm": "C5: contraction over the tube of a cycle",
    "series": "C5: series over the tube of a cycle",
}


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What was proved of a network, and for which inputs; true if it holds.

    Attributes
    ----------
    holds : bool
        Whether the echo state property is proved: any two trajectories under the same admissible
        input approach each other, from any start. False means not proved, not disproved.
    rate : float, per step
        Proved factor: differences decay at every rate above it, up to a constant and after the
        states have come into the box. 1 or more, or infinite, where nothing is proved.
    method : {"max_norm", "two_norm", "series"}
        What proved it; where it does not hold, what came nearest of what was tried.
    theorem : str
        Its name in the documentation; "none" where it does not hold.
    box : array of shape (2, n_units), of a cycle (period, 2, n_units)
        Bounds of every unit's state in the end, lower then upper; for a cycle before each step.
    gains : array of shape (n_units,), of a cycle (period, n_units)
        Largest slope of the activation inside the box.
    weights : array of shape (n_units,) or None
        The norm that shrinks. max_norm: ``max_i |e_i| / weights_i`` shrinks by `rate` at every step
        inside the box (of a cycle: over every period that starts before step 0). two_norm:
        ``||weights * e||_2`` does so if all leak rates are equal. None where the proof is of the
        long run only: by series, or where zonotopes have narrowed the box.
    drive_min, drive_max : arrays of shape (n_units,), of a cycle (period, n_units)
        The range of p = W_in u [+ W_fb y] that it covers. A closed loop is covered only while what
        is fed back keeps the drive inside.
    input_range : array of shape (2, n_features) or None
        The range of the inputs that it covers, if it was given, or made by an estimator.
    output_range : array of shape (2, n_outputs) or None
        The same for outputs that are fed back through W_fb.
    shared : bool
        Whether the proof rests on the units sharing their inputs: then it covers drives that
        inputs of `input_range` make, and no others.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import certify
    >>> res = Reservoir([[3.78]], [[1.0]], [-3.0])
    >>> certify(res, -1.0, 1.0)
    Certificate(holds=True, rate=0..., method='max_norm', theorem='C2: contraction in ...')
    """

    holds: bool
    rate: float
    method: str
    theorem: str
    box: Array
    gains: Array
    weights: Array | None
    drive_min: Array
    drive_max: Array
    input_range: Array | None = None
    output_range: Array | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return (
            f"Certificate(holds={self.holds}, rate={self.rate:.6g}, method={self.method!r}, "
            f"theorem={self.theorem!r})"
        )

    def covers(self, drive: ArrayLike) -> bool:
        """Whether every row of a drive lies in the certified range.

        Parameters
        ----------
        drive : array of shape (n_units,) or (n_samples, n_units)
            p = W_in u, the bias excluded.

        Returns
        -------
        bool
            False if the certificate does not hold.

        Raises
        ------
        ValueError
            If the shape does not fit, or the certificate is `shared`: ask `covers_inputs` then.
        """
        p = as_real("drive", drive)
        n_units = self.drive_min.shape[-1]
        if p.ndim not in (1, 2) or p.shape[-1] != n_units:
            raise ValueError(f"drive must have {n_units} columns, one per unit; got {p.shape}.")
        if self.shared:
            raise ValueError(
                "This certificate covers drives that inputs within input_range make, and no other "
                "drives: use covers_inputs(X)."
            )
        return self.holds and bool(((p >= self.drive_min) & (p <= self.drive_max)).all())

    def covers_inputs(self, X: ArrayLike) -> bool:
        """Whether every row of inputs lies in the range that the certificate was made for.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        bool
            False if the certificate does not hold.

        Raises
        ------
        ValueError
            If the certificate knows of no range of inputs, or X has another number of columns.
        """
        u = as_real("X", X)
        if self.input_range is None:
            raise ValueError(
                "This certificate knows the range of the drive only: make it by "
                "certify(..., input_range=(low, high)), or ask covers(drive)."
            )
        if u.ndim != 2 or u.shape[1] != self.input_range.shape[1]:
            raise ValueError(
                f"X must have shape (n_samples, {self.input_range.shape[1]}); got {u.shape}."
            )
        inside = (u >= self.input_range[0]) & (u <= self.input_range[1])
        return self.holds and bool(inside.all())


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
        about five times as long.
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
    if input_range is None and output_range is None:
        return certify_network(network, method)
    of_inputs, of_outputs, shared = shared_inputs(
        as_reservoir(reservoir), input_range, output_range
    )
    network = _reaching(network, reservoir, of_inputs, of_outputs)
    found = certify_network(network, method, shared)
    return replace(found, input_range=of_inputs, output_range=of_outputs)


def _reaching(
    network: Network, reservoir: Any, of_inputs: Array, of_outputs: Array | None
) -> Network:
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
    network: Network, method: str = "auto", inputs: tuple[Array, Array] | None = None
) -> Certificate:
    """`certify` on what has been checked."""
    check_size(network, method)
    if not _is_manageable(network):
        return _no_certificate(network)
    box = interval_box(network)
    best = _attempt(network, box, method)
    if method == "thorough" and not best.holds:
        narrow = _attempt(network, zonotope_box(network, box, inputs), method)
        if narrow.rate < best.rate:  # narrowed boxes hold trajectories in the end, not all the way
            shared = narrow.holds and inputs is not None
            best = replace(narrow, weights=None, shared=shared)
    return best


def _is_manageable(network: Network) -> bool:
    """Whether weights, drive and bias are far from where sums and products overflow."""
    vectors = network.drive_min, network.drive_max, network.bias
    return is_small(network.A) and all((np.abs(v) < LARGEST).all() for v in vectors)


def check_size(network: Network, method: str) -> None:
    if network.n_units > MAX_DENSE_UNITS and method not in ("auto", "max_norm"):
        raise ValueError(
            f"method={method!r} needs dense matrices of n_units={network.n_units}; it is offered "
            f'up to {MAX_DENSE_UNITS}. Use method="auto" or "max_norm".'
        )


def _attempt(network: Network, box: Box, method: str) -> Certificate:
    """Try the methods in turn; return the first success, else the failure of least rate."""
    gains, leak = box.largest_slope, network.leak

    def max_norm() -> tuple[float, Array | None]:
        r, v = max_norm_rate(network, gains)
        return leaky_rate(r, leak), v

    def two_norm() -> tuple[float, Array | None]:
        P = perron_scaling(scaled_rows(gains, network.A), max_norm_rate(network, gains)[1])
        return leaky_rate(norm_rate(gains, network.W, P), leak), P

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
    network: Network, box: Box, method: str, rate: float, weights: Array | None
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


def _no_certificate(network: Network) -> Certificate:
    """Return what is left to say where sums over the weights overflow."""
    ends = np.array([network.enclosure.low, network.enclosure.high])
    box = np.repeat(ends[:, None], network.n_units, axis=1)
    slopes = network.enclosure.slopes(np.full(1, -1e300), np.full(1, 1e300))[1]
    return Certificate(
        holds=False,
        rate=np.inf,
        method="max_norm",
        theorem="none",
        box=box,
        gains=np.repeat(slopes, network.n_units),
        weights=None,
        drive_min=network.drive_min,
        drive_max=network.drive_max,
    )


def certify_cycle(
    reservoir: Any,
    inputs: ArrayLike,
    *,
    feedback: ArrayLike | None = None,
    method: str = "auto",
) -> Certificate:
    """Prove that a periodic input leads to one limit cycle of its period, from any start.

    Weaker than `certify`, which covers every input in a range, and therefore possible with smaller
    biases: the box follows the drive through its period.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
    inputs : array of shape (period, n_features)
        One period of the input; one row is a constant input.
    feedback : array of shape (period, n_outputs), optional
        What each step receives as previous output; required with feedback weights.
    method : {"auto", "thorough", "max_norm", "series"}, default="auto"
        "auto" multiplies bounds of the Jacobians' moduli over the period; "thorough" also follows
        zonotopes and tries the series about the mean slopes, within windows of a few steps, up to
        500 units.

    Returns
    -------
    Certificate
        If it holds, the response has the input's period and attracts every trajectory; the rate is
        per step, the geometric mean over the period.

    Raises
    ------
    UnboundedActivationError
        As `certify`.
    TypeError, ValueError
        If the inputs have a wrong shape, no row or NaN; or a name is not known.

    Notes
    -----
    Theorem C5 of the page on stability. A contraction of the map composed over the period has one
    fixed point by Banach's theorem, which is the cycle (Bay 2017, prop. 3.3, says so of each phase
    alone, which is not enough).

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
    check_choice("method", method, _CYCLE_METHODS)
    reservoir = as_reservoir(reservoir)
    if method != "max_norm" and method != "auto":
        _check_cycle_size(reservoir.n_units, method)
    drives = periodic_drive(reservoir, inputs, feedback)
    network = read_network(reservoir, drives.min(axis=0), drives.max(axis=0))
    error = _drive_error(reservoir, inputs, feedback)
    if not _is_manageable(network):
        return _no_certificate(network)
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
    chosen = min(rates, key=lambda name: rates[name])
    rate = rates[chosen]
    if rate < 1:  # rounded up: a root is not exact
        rate = min(rate ** (1 / len(drives)) * (1 + EPS * (8 + abs(np.log(rate)))), 1.0)
    return Certificate(
        holds=bool(rates[chosen] < 1),
        rate=float(rate),
        method=chosen,
        theorem=_CYCLE_THEOREMS[chosen] if rates[chosen] < 1 else "none",
        box=np.array([[box.low, box.high] for box in boxes]),
        gains=np.array([box.largest_slope for box in boxes]),
        weights=weights if chosen == "max_norm" and rate < 1 else None,
        drive_min=drives,
        drive_max=drives,
    )


def _check_cycle_size(n_units: int, method: str) -> None:
    if n_units > MAX_SERIES_UNITS:
        raise ValueError(
            f"method={method!r} over a cycle forms dense products: n_units={n_units} exceeds "
            f'{MAX_SERIES_UNITS}. Use method="max_norm".'
        )


def _drive_error(reservoir: Any, inputs: ArrayLike, feedback: ArrayLike | None) -> Array:
    """Return what rounding may have done to `periodic_drive`, the largest over the period."""
    sizes = np.abs(np.asarray(inputs, dtype=float)) @ abs(as_double(reservoir.W_in)).T
    if feedback is not None:
        sizes = sizes + np.abs(np.asarray(feedback, dtype=float)) @ abs(as_double(reservoir.W_fb)).T
    n_terms = reservoir.n_features + reservoir.n_outputs + 4
    return n_terms * EPS * np.asarray(sizes).max(axis=0)


def periodic_drive(reservoir: Any, inputs: ArrayLike, feedback: ArrayLike | None) -> Array:
    """Return p over one period in double precision, the bias excluded."""
    X = as_series("inputs", inputs, reservoir.n_features, np.float64)
    if len(X) == 0:
        raise ValueError("inputs has no rows; one period of the input has at least 1.")
    given = as_feedback(reservoir, feedback, len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        drives = np.asarray((reservoir.W_in.astype(float) @ X.T).T)
        if given is not None:
            drives = drives + given.astype(float) @ reservoir.W_fb.T.astype(float)
    if not np.isfinite(drives).all():
        raise ValueError("The drive W_in u overflows: scale the input weights or the inputs down.")
    return drives
