"""`certify`: prove that a network forgets its initial state, for all inputs in a range.

First a box is found that every trajectory enters, then the proofs in `PROOFS` are tried inside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_number
from reservoir._workers import threads_for
from reservoir.dynamics import Reservoir
from reservoir.dynamics.held_reservoir import as_reservoir, training_of
from reservoir.stability._arguments import as_pair
from reservoir.stability._drive_ranges import drive_range, drive_terms, shared_inputs
from reservoir.stability.proofs._boxes import Box, interval_box
from reservoir.stability.proofs._certificate import Certificate, no_certificate
from reservoir.stability.proofs._interval_network import (
    MAX_DENSE_UNITS,
    IntervalNetwork,
    is_manageable,
    read_network,
)
from reservoir.stability.proofs._lyapunov import MOST_UNITS, lyapunov_proof
from reservoir.stability.proofs._max_norm import max_norm_proof
from reservoir.stability.proofs._resolution import resolution
from reservoir.stability.proofs._series_rate import series_proof
from reservoir.stability.proofs._two_norm import two_norm_proof
from reservoir.stability.proofs._weights_alone import weights_proof
from reservoir.stability.proofs._zonotopes import zonotope_box


class Proof(NamedTuple):
    """A method to prove that a network contracts inside a box; `theorem` is its name in the pages.

    ``rate(network, box)`` returns the proved rate per step, rounded up (1 or more if nothing is
    proved), and the weights v of the norm ``max_i |e_i| / v_i`` that shrinks, of a Euclidean norm
    for "two_norm", the matrix of a quadratic norm for "lyapunov", or None. `lengths` says whether a
    proof for the longest step extends to shorter ones (`IntervalNetwork.rate_of_all`): with "equal
    leaks" it does if all units have one leak rate, by the triangle inequality.
    """

    theorem: str
    rate: Callable[[IntervalNetwork, Box], tuple[float, Array | None]]
    dense: bool  # whether it forms n_units x n_units matrices
    most_units: int = MAX_DENSE_UNITS  # up to which "auto" and "thorough" try it
    lengths: str = "no"

    def covers(self, network: IntervalNetwork) -> bool:
        """Whether the method applies to a network, whose steps may differ in length."""
        lengths = network.lengths
        if lengths is None or self.lengths == "yes":
            return True
        return lengths.together and self.lengths == "equal leaks"


# In the order in which "auto" and "thorough" try them: the cheapest first.
PROOFS = {
    "max_norm": Proof(
        "C2: contraction in a weighted maximum norm", max_norm_proof, False, sys.maxsize, "yes"
    ),
    "two_norm": Proof(
        "C3: contraction in a weighted Euclidean norm",
        two_norm_proof,
        False,
        sys.maxsize,
        "equal leaks",
    ),
    "series": Proof("C4: series of the linearisation", series_proof, dense=True),
    "lyapunov": Proof(
        "C7: contraction in a quadratic norm", lyapunov_proof, True, MOST_UNITS, "equal leaks"
    ),
}


def certify(
    reservoir: Any,
    drive_min: ArrayLike | None = None,
    drive_max: ArrayLike | None = None,
    *,
    method: str = "auto",
    input_range: tuple[ArrayLike, ArrayLike] | None = None,
    output_range: tuple[ArrayLike, ArrayLike] | None = None,
    step_range: tuple[float, float] | None = None,
) -> Certificate:
    """Prove the echo state property of an open reservoir for all given inputs in a range.

    The proof is computed for the given network, at any spectral radius, rounding included. It is
    sufficient, not necessary: a network that is not certified may still have the property.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        Its activation must have an enclosure. No box bounds the states of an unbounded activation
        (relu, leaky_relu, softplus, identity): the proof then uses bounds of its slopes over all
        states, and holds for every drive.
    drive_min, drive_max : float or array of shape (n_units,), optional
        Bounds of the drive p = W_in u, the bias excluded, at every step. `drive_range` computes
        them from bounds of the inputs. With feedback weights p = W_in u + W_fb y, with y given
        (teacher forcing); the closed loop is another network: see `certify_loop`. By default they
        are those of `input_range` and `output_range`.
    method : {"auto", "thorough", "max_norm", "two_norm", "series", "lyapunov"}, default="auto"
        "auto" tries a weighted maximum norm, a weighted Euclidean norm, the series of the
        linearisation (up to 3000 units), a quadratic norm that uses the signs of W ("lyapunov", up
        to 1000 units), then what `echo_state_conditions` proves for W alone, and takes the first
        that succeeds. "thorough" also follows zonotopes for a tighter box, up to 3000 units: it
        takes several times as long, and needs memory for some twelve dense n_units x n_units
        matrices.
    input_range, output_range : (low, high), optional
        Bounds of the inputs, numbers or arrays of shape (n_features,), and of outputs that are fed
        back through W_fb, from which the drive's bounds were computed. With them "thorough" uses
        the fact that the units share their inputs. It may then prove more, but only for such
        inputs: the certificate's ``shared`` is then True. If no bound is given, they are
        those of an estimator's inputs in training, and of its targets if these are fed back. A
        `Reservoir` does not know them, nor does an estimator from a file of an earlier version.
    step_range : (shortest, longest), optional
        Lengths of steps, above 0, in units of the step that the leak rate is given for: the proof
        then covers any sequence of lengths in between, as in ``run(..., dt=)``, and `rate` is for
        the slowest sequence. By default all steps have length 1. With `step_range` "auto" tries a
        weighted maximum norm and, if all leak rates are equal, the Euclidean and the quadratic norm
        and the conditions on W alone: with different leak rates these would prove nothing, not even
        for an orthogonal W of radius 0.99 (see C9). `resolution` is then None and `steps_to` is not
        available, since the rounding errors of a step depend on its length.

    Returns
    -------
    Certificate

    Raises
    ------
    UnboundedActivationError
        If the activation has no enclosure, that is, no known bounds over intervals; a subclass of
        ValueError.
    TypeError, ValueError
        If a bound is NaN, infinite or of a wrong shape, or a lower bound exceeds the upper one; if
        a name is not known; if inputs in `input_range` exceed the bounds of the drive; if
        "thorough", "series" or "lyapunov" is requested for more than 3000 units; if `step_range` is
        not 0 < shortest <= longest < infinity, or is combined with "thorough", "series" or, with
        different leak rates, "two_norm" or "lyapunov".

    Notes
    -----
    Theorems C1 to C4, C7 and C9 of the page on stability. In short: a box that every trajectory
    enters bounds the slopes d of the activation. The network contracts if ``diag(d)|W|`` has a
    spectral radius below 1, if ``P diag(d) W P^-1`` has a norm below 1 for a diagonal P, if the
    series about the mean slopes converges, or if ``e' P e`` shrinks under all slopes for some full
    P. With slopes of 1 the first two are the known conditions on W alone [1]_, [2]_, and the last
    is a numerical radius below 1 in a scaling of the units. If "two_norm" proves contraction for
    unequal leak rates, differences need not shrink at each step. For one unit `bias_bounds` proves
    more: it also covers a gain of 1, and gains below -1.

    The theorems are about the exact map. `Certificate.resolution` is the distance that trajectories
    may keep in floating point: chains of units with steep slopes amplify rounding errors, so that
    trajectories may stay far apart for ever although a proof holds. It assumes that the terms of
    W_in u are no larger than the drive's bounds; if large terms cancel in that sum, give
    `input_range`.

    A network that is not certified may be certified by ``method="thorough"`` with `input_range`,
    for one periodic input (`certify_cycle`), with another bias (`stable_bias`), or for a smaller
    radius or range (`largest_certified`).

    References
    ----------
    .. [1] Jaeger (2001), GMD Report 148, proposition 3.
    .. [2] Yildiz, Jaeger and Kiebel (2012), "Re-visiting the echo state property", Neural Networks
       35, theorem 4.1.
    .. [3] Rump (2006), "Verification of positive definiteness", BIT 46.

    Examples
    --------
    A network of spectral radius 3 that forgets its initial state, because the biases saturate it:

    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import certify
    >>> W = np.full((2, 2), 1.5)
    >>> bool(certify(Reservoir(W, np.ones((2, 1)), [-3.5, -3.5]), -0.5, 0.5))
    True
    >>> bool(certify(Reservoir(W, np.ones((2, 1)), [-0.7, -0.7]), -0.5, 0.5))
    False

    A fitted network, for inputs within the range of those in training:

    >>> from reservoir import ESNRegressor
    >>> X = np.sin(np.arange(200.0))[:, None]
    >>> esn = ESNRegressor(20, spectral_radius=0.3, random_state=0).fit(X[:-1], X[1:])
    >>> proof = certify(esn)
    >>> proof.holds, proof.covers_inputs(X), proof.covers_inputs(2 * X)
    (True, True, False)

    Steps from a tenth to five times the usual length, in any order:

    >>> slow = Reservoir(0.8 * np.eye(2), np.ones((2, 1)), [0.0, 0.0], leak_rate=0.5)
    >>> found = certify(slow, -1.0, 1.0, step_range=(0.1, 5.0))
    >>> found.holds, found.covers_steps([0.1, 5.0, 2.5]), found.covers_steps(6.0)
    (True, True, False)
    """
    check_method(method)
    made, steps = as_reservoir(reservoir), None
    if drive_min is None and drive_max is None:
        if input_range is None:
            input_range, output_range = _ranges_in_training(reservoir, output_range)
        low, high = _drive_bounds(made, input_range, output_range)
    elif drive_min is None or drive_max is None:
        raise TypeError("drive_min and drive_max belong together. Give both, or an input_range.")
    else:
        low, high = drive_min, drive_max  # type: ignore[assignment]
    network = read_network(reservoir, low, high, unbounded=True)
    if step_range is not None:
        steps = _read_steps(step_range)
        network = network.with_steps(*steps)
        _check_lengths(network, method, steps)
    # Only the drive's bounds are known.
    if input_range is None and output_range is None:
        found = certify_network(network, method)
        terms = np.maximum(np.abs(network.drive_min), np.abs(network.drive_max))
    # The range of the inputs is known, too: their drives must be within the drive's bounds.
    else:
        of_inputs, of_outputs, shared = shared_inputs(made, input_range, output_range)
        network = _widened(network, reservoir, of_inputs, of_outputs)
        found = certify_network(network, method, shared)
        found = replace(found, input_range=of_inputs, output_range=of_outputs)
        terms = drive_terms(made, of_inputs, of_outputs)
    with threads_for(network.n_units):
        floor = resolution(found, network, made, terms)
    return replace(found, resolution=floor, reservoir=made, step_range=steps)


def _ranges_in_training(model: Any, output_range: Any) -> tuple[Any, Any]:
    """Return the ranges of the inputs and, if they are not given, the outputs in training."""
    inputs, outputs, _ = training_of(model)
    if inputs is None:
        raise TypeError(
            f"{type(model).__name__} has no record of the range of its inputs in training. Give "
            "input_range, or drive_min and drive_max."
        )
    return inputs, outputs if output_range is None else output_range


def _drive_bounds(reservoir: Reservoir, input_range: Any, output_range: Any) -> tuple[Array, Array]:
    """Return the bounds of the drive of inputs and outputs within their ranges."""
    shared_inputs(reservoir, input_range, output_range)  # checks them
    low, high = (None, None) if output_range is None else output_range
    return drive_range(reservoir, *input_range, feedback_low=low, feedback_high=high)


def _read_steps(step_range: Any) -> Array:
    """Return the shortest and the longest step, checked."""
    shortest, longest = as_pair("step_range", step_range)
    shortest = check_number("step_range[0]", shortest, low=0.0, low_open=True)
    longest = check_number("step_range[1]", longest, low=0.0, low_open=True)
    if shortest > longest:
        raise ValueError(
            f"step_range={step_range!r}: the shortest step {shortest:g} exceeds the longest one "
            f"{longest:g}. Swap them."
        )
    return np.array([shortest, longest])


def _check_lengths(network: IntervalNetwork, method: str, steps: Array) -> None:
    """Raise if a method proves nothing for steps of different lengths."""
    if method == "auto" or (method in PROOFS and PROOFS[method].covers(network)):
        return
    if method in PROOFS and PROOFS[method].lengths == "equal leaks":
        raise ValueError(
            f"method={method!r} with step_range needs the same leak rate in all units: with "
            "different leak rates it proves nothing for steps of several lengths. Use "
            "method='auto' or 'max_norm', or one leak rate."
        )
    raise ValueError(
        f"method={method!r} proves nothing for steps of several lengths, and step_range is "
        f"({steps[0]:g}, {steps[1]:g}). Use method='auto', or omit step_range."
    )


def _widened(
    network: IntervalNetwork, reservoir: Any, of_inputs: Array, of_outputs: Array | None
) -> IntervalNetwork:
    """Return the network with its drive's bounds widened to include all drives of `of_inputs`.

    Raises ValueError if those drives exceed the given bounds by more than rounding.
    """
    feedback = {}
    if of_outputs is not None:
        feedback = {"feedback_low": of_outputs[0], "feedback_high": of_outputs[1]}
    low, high = drive_range(reservoir, of_inputs[0], of_inputs[1], **feedback)
    slack = 1e-9 * (np.abs(low) + np.abs(high))
    if (low < network.drive_min - slack).any() or (high > network.drive_max + slack).any():
        bounds = "drive_min, drive_max = reservoir.stability.drive_range(model, *input_range)"
        remedy = f" Use `{bounds}`." if of_outputs is None else ""
        raise ValueError(
            "input_range exceeds drive_min and drive_max: the drives of such inputs are not within "
            f"these bounds.{remedy}"
        )
    return replace(
        network,
        drive_min=np.minimum(low, network.drive_min),
        drive_max=np.maximum(high, network.drive_max),
    )


def certify_network(
    network: IntervalNetwork, method: str = "auto", inputs: tuple[Array, Array] | None = None
) -> Certificate:
    """Certify a checked network; `inputs` is the drive's centre and shared generators, if known."""
    check_size(network, method)
    if not is_manageable(network):
        return no_certificate(network)
    with threads_for(network.n_units):
        return _certified(network, method, inputs)


def _certified(
    network: IntervalNetwork, method: str, inputs: tuple[Array, Array] | None
) -> Certificate:
    """Return the best certificate of the proofs that the method includes."""
    box = interval_box(network)
    best = _attempt(network, box, method)
    # Conditions on W alone: steps of several lengths need equal leak rates, as in C3 and C7.
    usable = PROOFS["two_norm"].covers(network)
    if method not in PROOFS and not best.holds and usable:
        alone = weights_proof(network, float(box.largest_slope.max()))
        best = best if alone is None else _certificate(network, box, *alone)
    if method == "thorough" and not best.holds and network.enclosure.bounded:
        narrow = _attempt(network, zonotope_box(network, box, inputs), method)
        # Every trajectory ends up in a narrowed box, but may leave it for a while after starting
        # in it: so no norm is known to shrink at each step.
        if narrow.rate < best.rate:
            shared = narrow.holds and inputs is not None
            best = replace(narrow, weights=None, shared=shared)
    return best


def check_method(method: str) -> None:
    """Check that a method is known."""
    check_choice("method", method, ("auto", "thorough", *PROOFS))


def check_size(network: IntervalNetwork, method: str) -> None:
    """Raise if a method needs dense matrices of too many units."""
    dense = method == "thorough" or (method in PROOFS and PROOFS[method].dense)
    if dense and network.n_units > MAX_DENSE_UNITS:
        raise ValueError(
            f"method={method!r} needs dense matrices of n_units={network.n_units}; it is available "
            f'up to {MAX_DENSE_UNITS} units. Use method="auto" or "max_norm".'
        )


def _attempt(network: IntervalNetwork, box: Box, method: str) -> Certificate:
    """Return the certificate of the first proof that succeeds, else the one of the least rate."""
    names = [method]
    if method not in PROOFS:
        names = [
            name
            for name, proof in PROOFS.items()
            if network.n_units <= proof.most_units and proof.covers(network)
        ]
    best: Certificate | None = None
    for name in names:
        found = _certificate(network, box, name, *PROOFS[name].rate(network, box))
        if best is None or found.rate < best.rate:
            best = found
        if best.holds:
            break
    assert best is not None
    return best


def _certificate(
    network: IntervalNetwork, box: Box, method: str, rate: float, weights: Array | None
) -> Certificate:
    """Return the result of a proof as a certificate."""
    rate = network.rate_of_all(rate)
    return Certificate(
        holds=bool(rate < 1),
        rate=float(rate),
        method=method,
        theorem=PROOFS[method].theorem if rate < 1 else "none",
        box=np.array([box.low, box.high]),
        gains=box.largest_slope,
        weights=weights if rate < 1 else None,
        drive_min=network.drive_min,
        drive_max=network.drive_max,
    )
