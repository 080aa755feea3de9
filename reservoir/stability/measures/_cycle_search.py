"""The search for a cycle: a fixed point of the map over one or more periods of the drive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import optimize
from scipy.sparse.linalg import LinearOperator, gmres

from reservoir._typing import Array
from reservoir.stability.measures._trajectories import Drive

NEWTON_UNITS = 200  # up to so many units the matrix of Newton's method is formed
ACCEPTED = 1e-10  # largest residual of a cycle, relative to the largest state
# Two cycles a distance d apart, just after they split, have a multiplier 1 - O(d^2), so that
# rounding moves each by eps / d^2: below d = eps^(1/3) they cannot be distinguished.
SAME = float(np.finfo(float).eps ** (1 / 3))


def accepted(point: Array, residual: float) -> bool:
    """Whether the residual of a fixed point is small enough for a cycle."""
    return residual <= ACCEPTED * max(1.0, float(np.abs(point).max()))


def settled_point(drive: Drive, x: Array, n_rounds: int) -> tuple[Array, float]:
    """Search for a fixed point from x, after `n_rounds` rounds of transient.

    Returns the point and its residual, which is infinite if the states overflow.
    """
    try:
        for _ in range(n_rounds):
            before, x = x, drive.states(x)[-1]
            if np.abs(x - before).max() <= 1e-15:
                break
        residual = float(np.abs(drive.states(x)[-1] - x).max())
        return polish(drive, x if residual < 1e-3 else _root(drive, x))
    except (
        ValueError
    ):  # the arguments have been checked, so that it means states that are not finite
        return x, np.inf


def _root(drive: Drive, x: Array) -> Array:
    """Return an approximate fixed point of the period map, by Newton's method with safeguards."""

    def gap(x: Array) -> Array:
        return drive.states(x)[-1] - x

    if len(x) > NEWTON_UNITS:
        # SciPy approximates Jacobian-vector products by differences; `polish` has analytic ones.
        # With fewer inner iterations the steps are too inexact.
        solver = {"method": "gmres", "inner_maxiter": 100}
        options = {"maxiter": 25, "jac_options": solver}
        return optimize.root(gap, x, method="krylov", tol=1e-6, options=options).x

    def jacobian(x: Array) -> Array:
        return drive.tangent(x, drive.states(x)).matrix() - np.eye(len(x))

    return optimize.root(gap, x, method="hybr", jac=jacobian, tol=1e-9).x


def continued(drive: Drive) -> Array:
    """Follow the cycle from W = 0, where it is known, towards W, and return the last point.

    W is multiplied by a gain that grows from 0 to 1 (numerical continuation); the next guess is on
    the secant through the last two cycles. The continuation ends early where the cycle folds back.
    """
    reservoir = drive.reservoir
    x = np.zeros(reservoir.n_units)
    gain, step, speed = 0.0, 0.25, np.zeros(reservoir.n_units)
    while gain < 1 and step > 1e-3:
        new = min(1.0, gain + step)
        scaled = Drive(replace(reservoir, W=reservoir.W * new), drive.X, drive.feedback)
        guess = x + speed * (new - gain) if gain > 0 else scaled.states(x)[-1]
        try:
            point, residual = polish(scaled, guess, n_iter=10)
        except ValueError:  # the states left the range of floats
            residual = np.inf
        if residual < np.inf and accepted(point, residual):
            speed = (point - x) / (new - gain) if gain > 0 else speed
            x, gain, step = point, new, 1.5 * step
        else:
            step /= 2
    return x


def polish(drive: Drive, x: Array, *, n_iter: int = 50) -> tuple[Array, float]:
    """Return the fixed point near x and its residual, by Newton's method down to rounding."""
    states = drive.states(x)
    best, residual = x, float(np.abs(states[-1] - x).max())
    for _ in range(n_iter):
        if residual <= np.finfo(float).eps:
            break
        step = newton_step(drive.tangent(best, states).apply, states[-1] - best)
        if step is None:
            break
        x = best + step
        new = drive.states(x)
        change = float(np.abs(new[-1] - x).max())
        if not change < residual:
            break
        best, residual, states = x, change, new
    # Where the map contracts, a few plain steps are more accurate than the rounded Newton steps.
    for _ in range(3):
        x = states[-1]
        states = drive.states(x)
        change = float(np.abs(states[-1] - x).max())
        if not change < residual:
            break
        best, residual = x, change
    return best, residual


def newton_step(apply: Callable[[Array], Array], gap: Array) -> Array | None:
    """Return the solution of (I - M) step = gap, `apply` being M times; None if singular."""
    n = len(gap)
    if n <= NEWTON_UNITS:
        try:
            step = np.linalg.solve(np.eye(n) - apply(np.eye(n)), gap)
        except np.linalg.LinAlgError:
            return None
    else:
        operator = LinearOperator((n, n), matvec=lambda v: v - apply(v), dtype=float)
        step, _ = gmres(operator, gap, rtol=1e-8, atol=0.0, restart=60, maxiter=3)
    return step if np.isfinite(step).all() else None


def closed_cycle(drive: Drive, point: Array, multiple: int) -> tuple[Array, int, float]:
    """Return the states, the multiple and the residual of the cycle through a fixed point.

    `point` is fixed under the map over `multiple` periods, each of them `drive`. A cycle may close
    after fewer periods than were searched: the shortest is returned.
    """
    # Search for a shorter cycle through the point.
    period = len(drive)
    ends = drive.repeated(multiple).states(point)[period - 1 :: period]
    scale = max(1.0, float(np.abs(ends).max()))
    for k in range(1, multiple):
        if multiple % k == 0 and np.abs(ends[k - 1] - point).max() <= SAME * scale:
            shorter, residual = polish(drive.repeated(k), point)
            if accepted(shorter, residual) and np.abs(shorter - point).max() <= 10 * SAME * scale:
                point, multiple = shorter, k
                break
    states = drive.repeated(multiple).states(point)
    residual = float(np.abs(states[-1] - point).max())
    states[-1] = point  # the last state and the point agree to within the residual
    return states, multiple, residual
