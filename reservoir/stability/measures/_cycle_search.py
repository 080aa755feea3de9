"""Fixed points of the map over a period: Newton's method and continuation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import optimize
from scipy.sparse.linalg import LinearOperator, gmres

from reservoir._typing import Array
from reservoir.stability.measures._tangents import Tangent
from reservoir.stability.measures._trajectories import Drive

NEWTON_UNITS = 200  # up to here Newton's matrix is formed
ACCEPTED = 1e-10  # residual, relative to the largest state
# Two cycles a distance d apart, just after they split, have a multiplier 1 - O(d^2), so that
# rounding moves each by eps / d^2: below d = eps^(1/3) they cannot be told apart.
SAME = float(np.finfo(float).eps ** (1 / 3))


def accepted(point: Array, residual: float) -> bool:
    """Whether a residual is small enough for a cycle."""
    return residual <= ACCEPTED * max(1.0, float(np.abs(point).max()))


def settled_point(drive: Drive, x: Array, n_rounds: int) -> tuple[Array, float]:
    """Return a point and its residual, infinite if the states left the range of floats."""
    try:
        for _ in range(n_rounds):
            before, x = x, drive.states(x)[-1]
            if np.abs(x - before).max() <= 1e-15:
                break
        residual = float(np.abs(drive.states(x)[-1] - x).max())
        return polish(drive, x if residual < 1e-3 else _root(drive, x))
    except ValueError:  # the input has been checked: the states are not finite
        return x, np.inf


def _root(drive: Drive, x: Array) -> Array:
    """Return about where the period map has a fixed point: Newton's method, globalised."""

    def gap(x: Array) -> Array:
        return drive.states(x)[-1] - x

    if len(x) > NEWTON_UNITS:
        # the inner Jacobian-vector products are differences here; polish has analytic ones
        solver = {"method": "gmres", "inner_maxiter": 100}  # less leaves the steps too inexact
        options = {"maxiter": 25, "jac_options": solver}
        return optimize.root(gap, x, method="krylov", tol=1e-6, options=options).x

    def jacobian(x: Array) -> Array:
        return drive.tangent(x, drive.states(x)).matrix() - np.eye(len(x))

    return optimize.root(gap, x, method="hybr", jac=jacobian, tol=1e-9).x


def continued(drive: Drive) -> Array:
    """Follow the cycle from W = 0, where it is explicit, as far towards W as it goes.

    Continuation in the gain, with a secant for the next guess; it ends at a fold.
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
    """Return the fixed point near x and its residual: Newton's method until rounding ends it."""
    states = drive.states(x)
    best, residual = x, float(np.abs(states[-1] - x).max())
    for _ in range(n_iter):
        if residual <= np.finfo(float).eps:
            break
        step = _newton_step(drive.tangent(best, states), states[-1] - best)
        if step is None:
            break
        x = best + step
        new = drive.states(x)
        change = float(np.abs(new[-1] - x).max())
        if not change < residual:
            break
        best, residual, states = x, change, new
    for _ in range(3):  # where the map contracts it ends nearer than the solver's rounding
        x = states[-1]
        states = drive.states(x)
        change = float(np.abs(states[-1] - x).max())
        if not change < residual:
            break
        best, residual = x, change
    return best, residual


def _newton_step(tangent: Tangent, gap: Array) -> Array | None:
    """Solve (I - M) step = gap; None if M has the multiplier 1."""
    n = len(gap)
    if n <= NEWTON_UNITS:
        try:
            step = np.linalg.solve(np.eye(n) - tangent.matrix(), gap)
        except np.linalg.LinAlgError:
            return None
    else:
        operator = LinearOperator((n, n), matvec=lambda v: v - tangent.apply(v), dtype=float)
        step, _ = gmres(operator, gap, rtol=1e-8, atol=0.0, restart=60, maxiter=3)
    return step if np.isfinite(step).all() else None


def closed_cycle(drive: Drive, point: Array, multiple: int) -> tuple[Array, int, float]:
    """Return the states, the multiple and the residual of the cycle through a fixed point.

    Parameters
    ----------
    drive : Drive
        One period.
    point : array of shape (n_units,)
        A fixed point of the map over `multiple` periods.
    multiple : int
        Shortened if the cycle closes before.
    """
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
    states[-1] = point  # the fixed point itself: both are within the residual
    return states, multiple, residual
