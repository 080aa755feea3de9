"""Contraction in a quadratic norm that uses the signs of W: theorem C7.

Two states of the network under the same input differ by e, and after a step by (I - a) e + a q with
q = D W e, D a diagonal of slopes between two bounds. This module searches in floating point for
the P of a norm ``sqrt(e' P e)`` that shrinks; `is_proved` of `_quadratic_form.py` proves that it
does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.linalg import lapack

from reservoir._typing import Array
from reservoir.activations.enclosures import EPS
from reservoir.stability._rounding import OVERFLOWS
from reservoir.stability.proofs._boxes import Box
from reservoir.stability.proofs._interval_network import IntervalNetwork
from reservoir.stability.proofs._quadratic_form import Step, is_proved, mirrored
from reservoir.stability.proofs._turning_scaling import is_within_reach, turning_scaling
from reservoir.stability.proofs._unit_scalings import good_scaling

MOST_UNITS = 1000  # up to so many units "auto" tries this norm: that takes some seconds
SLACK = 1e-4  # the matrices are chosen for inputs larger by this share, to allow for rounding
FLOOR = 1e-7  # least eigenvalue of the forcing term, relative to its mean, so that P is definite
SHRINKS = 1e-4  # the weakest contraction that is tried: 1 - s, per step at leak 1
_ROUNDS = 10  # of doubling: 2^10 steps of the Riccati recursion; proofs take five to eight
_SLOWEST = 2.0**-20  # least leak rate for which rounds are added, one for each halving
_LEAST_ENTRY = 1e-290  # smaller entries of P may have been rounded
_REFRESHED = 100  # up to so many units P is computed again for a known rate
_SEARCHED = 400  # up to so many units the search for the rate has five more attempts, else one


class _Found(NamedTuple):
    """P of units scaled by `powers`; only its lower triangle is used."""

    P: Array
    powers: Array


def lyapunov_proof(
    network: IntervalNetwork, box: Box, near: float | None = None, known: float | None = None
) -> tuple[float, Array | None]:
    """Return the proved rate per step inside the box, and P of the norm that shrinks: theorem C7.

    P is None if units differ so much in scale that its entries overflow or underflow. Given a rate
    `near`, a slightly weaker rate is tried first, and returned if it is proved; this is for a box
    slightly wider than a certificate's. Given a rate `known`, which has been proved in a wider box,
    the search begins there.
    """
    step = step_in(network, box)
    leak = step.B
    shrinks = None if near is None else 0.9 * (1 - near)
    proved = None if known is None else (1 - known) * (1 - 1e-12)
    # A proof at leak 1 extends to all equal leaks, and is the best conditioned.
    if np.ptp(leak) == 0:
        without = step._replace(A=np.zeros_like(leak), B=np.ones_like(leak))
        found, P = least_rate(
            without,
            SHRINKS,
            None if shrinks is None else shrinks / leak[0],
            proved=None if proved is None else proved / leak[0],
        )
        rate = network.leaky_rate(found)
        if rate < 1 or leak[0] == 1:
            return rate, P
    found, P = least_rate(step, SHRINKS * float(leak.min()), shrinks, proved=proved)
    return found * (1 + 4 * EPS), P


def step_in(network: IntervalNetwork, box: Box) -> Step:
    """Return a step of the network, with the slopes of a box."""
    W = network.W.toarray() if sp.issparse(network.W) else network.W
    leak = np.array(network.leak)
    return Step(1 - leak, leak, W, np.maximum(box.least_slope, 0.0), box.largest_slope)


def least_rate(
    step: Step,
    weakest: float,
    shrinks: float | None = None,
    scaling: Array | None = None,
    proved: float | None = None,
) -> tuple[float, Array | None]:
    """Return the least rate s that a short search proves, and P; infinity if none is below 1.

    `weakest` is the weakest contraction 1 - s that is tried; `shrinks` is one that is tried first,
    and returned if proved. `scaling`, (n,), is from `good_scaling`; by default for the weights
    times the largest slopes, or another one if it fails narrowly: then A and B must be diagonal.
    `proved` is a contraction found for wider slopes, from which the search continues upwards as
    finely as bisection; if no more is proved, few units get a new P for it, whose constant is
    smaller.
    """
    steepest = step.largest[:, None] * step.K
    fixed, scaling = scaling is not None, good_scaling(steepest) if scaling is None else scaling
    if shrinks is not None:
        found = contraction(step, 1 - shrinks, scaling)
        if found is not None:
            return 1 - shrinks, _written(found)
    n_halvings = 5 if len(scaling) <= _SEARCHED else 1
    if proved is not None:
        ratio, best = weakest ** -(0.5**n_halvings), None
        while proved * ratio < 1:  # a rate is positive
            found = contraction(step, 1 - proved * ratio, scaling)
            if found is None:
                break
            best, proved = found, proved * ratio
        if best is None and len(scaling) <= _REFRESHED:
            best = contraction(step, 1 - proved, scaling)
        return (np.inf, None) if best is None else (1 - proved, _written(best))
    low, high = weakest, 1.0
    best = contraction(step, 1 - low, scaling)
    if best is None and not fixed and is_within_reach(steepest, step.B, scaling, 1.0):
        scaling = turning_scaling(steepest, step.B, scaling)
        best = contraction(step, 1 - low, scaling)
    if best is None:
        return np.inf, None
    for _ in range(n_halvings):
        middle = float(np.sqrt(low * high))
        found = contraction(step, 1 - middle, scaling)
        low, high = (low, middle) if found is None else (middle, high)
        best = best if found is None else found
    return 1 - low, _written(best)


def _written(found: _Found) -> Array | None:
    """Return P in the original scale of the units, or None."""
    norms = unscaled([found.P], found.powers)
    return None if norms is None else norms[0]


def unscaled(norms: list[Array], powers: Array) -> list[Array] | None:
    """Return each P in the original scale of the units, ``diag(powers) P diag(powers)``.

    All are also multiplied by a common power of two. None if this is not possible without rounding.
    Only the lower triangles are used.
    """
    with np.errstate(over="ignore", under="ignore"):
        largest = max(float((np.diagonal(P) * powers * powers).max()) for P in norms)
        if not 0 < largest < np.inf:
            return None
        exponents = np.frexp(powers)[1]
        factors = exponents[:, None] + exponents - int(np.frexp(largest)[1])
        made = []
        for P in map(mirrored, norms):  # multiplied once: intermediate products might be rounded
            made.append(np.ldexp(P, factors))
            rounded = (np.abs(made[-1]) < _LEAST_ENTRY) & (P != 0)
            if rounded.any() or not np.isfinite(made[-1]).all():
                return None
    return made


def split_scaling(scaling: Array) -> tuple[Array, Array]:
    """Return a scaling as powers of two, which are exact, and the remaining factors."""
    powers = np.exp2(np.round(scaling / np.log(2)))
    return powers, np.exp(scaling) / powers


@OVERFLOWS
def contraction(step: Step, s: float, scaling: Array) -> _Found | None:
    """Return a P for which ``e' P e`` is proved to shrink by s^2 at every step, or None.

    `scaling`, (n,), are logarithms of a scaling of the units, from `good_scaling`.
    """
    powers, rest = split_scaling(scaling)
    scaled, rest = step.scaled(powers), rest[: len(step.K)]
    if not scaled.is_manageable:
        return None
    P = _riccati(scaled, s, rest)
    if P is None or not is_proved(scaled, s * s, P, P, (s * rest) ** 2):
        return None
    return _Found(P, powers)


def _riccati(step: Step, s: float, rest: Array) -> Array | None:
    """Return the P required by the bounds of the slopes, in floating point; None if there is none.

    With the midpoint of the slopes included in the linear part, P solves the Riccati equation of
    the bounded real lemma, by structured doubling (Chu, Fan, Lin and Wang 2004).
    """
    n = len(step.A)
    of_outputs = rest[:, None] * uncertain_part(step)
    of_inputs = step.B / (rest * s * (1 - SLACK))
    A, H = linear_part(step) / s, forcing(of_outputs)
    G = -(of_inputs @ of_inputs.T) if of_inputs.ndim > 1 else np.diag(-(of_inputs**2))
    slowest = max(float(step.B.min()), _SLOWEST) if step.B.ndim == 1 else 1.0
    for _ in range(_ROUNDS + int(np.ceil(-np.log2(slowest)))):
        # H only grows: once an input has too large a gain on its own unit, there is no solution.
        gains = of_inputs**2 * np.diagonal(H) if of_inputs.ndim == 1 else 0.0
        if not np.all(gains < 1):
            return None
        *_, solved, info = lapack.dgesv(np.eye(n) + G @ H, np.hstack([A, G]))
        if info != 0:
            return None
        more = A.T @ (H @ solved[:, :n])
        G = G + A @ solved[:, n:] @ A.T
        H = H + 0.5 * (more + more.T)
        G = 0.5 * (G + G.T)
        A = A @ solved[:, :n]
        if not linalg.norm(more, check_finite=False) > 1e-10 * linalg.norm(H, check_finite=False):
            break
    return H if np.isfinite(H).all() else None


def linear_part(step: Step) -> Array:
    """Return the step's matrix at the midpoints of the slopes' intervals."""
    middle = 0.5 * (step.least + step.largest)
    if step.A.ndim == 1:
        return np.diag(step.A) + (step.B * middle)[:, None] * step.K
    return step.A + step.B @ (middle[:, None] * step.K)


def uncertain_part(step: Step) -> Array:
    """Return the rows of K, each times half the width of its slope's interval."""
    return (0.5 * (step.largest - step.least))[:, None] * step.K


def forcing(of_outputs: Array) -> Array:
    """Return the constant term of the Riccati equation, with a floor that makes it definite."""
    H = of_outputs.T @ of_outputs
    H[np.diag_indices(len(H))] += FLOOR * (np.trace(H) / len(H) + 1)
    return H
