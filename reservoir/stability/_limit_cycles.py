"""Limit cycles under a periodic drive: fixed points of the period map, and their multipliers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, gmres

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_count
from reservoir.stability._stepping import (
    Drive,
    Tangent,
    read_drive_series,
    read_state,
    spread_states,
)

DENSE_UNITS = 1000  # up to here all multipliers, from the dense product of Jacobians
_NEWTON_UNITS = 200  # up to here Newton's matrix is formed
_N_LEADING = 10
_N_RESTARTS = 4
_ACCEPTED = 1e-10  # residual, relative to the largest state
# Two cycles a distance d apart, just after they split, have a multiplier 1 - O(d^2), so that
# rounding moves each by eps / d^2: below d = eps^(1/3) they cannot be told apart.
SAME = float(np.finfo(float).eps ** (1 / 3))


class LimitCycleError(ValueError):
    """No cycle was found to the accuracy that is promised; a subclass of ValueError."""


@dataclass(frozen=True, eq=False, repr=False)
class LimitCycle:
    """A periodic response to a periodic drive.

    Attributes
    ----------
    states : array of shape (multiple * period, n_units)
        Row t is the state after step t, so that the last row is the fixed point of the period
        map: the state before ``inputs[0]``.
    multipliers : complex array of shape (n_units,), or of fewer above 1000 units
        Floquet multipliers, the eigenvalues of the product of the step Jacobians over the cycle,
        by descending modulus.
    stable : bool
        Whether all multipliers lie inside the unit circle: the cycle attracts what is near. A
        computed fact about this cycle, no proof that it attracts everything.
    residual : float
        Largest difference between the fixed point and its image.
    multiple : int
        How many periods of the drive the cycle takes: 1, or more for a subharmonic cycle.

    Examples
    --------
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import find_limit_cycle
    >>> cycle = find_limit_cycle(Reservoir([[0.5]], [[1.0]], [0.0]), [[1.0], [-1.0]])
    >>> cycle.states.shape, cycle.multiple, abs(cycle.multipliers).round(3)
    ((2, 1), 1, array([0.101]))
    """

    states: Array
    multipliers: Array
    stable: bool
    residual: float
    multiple: int

    def __repr__(self) -> str:
        return (
            f"LimitCycle(states={self.states.shape}, multiple={self.multiple}, "
            f"stable={self.stable}, largest multiplier={np.abs(self.multipliers).max():.4g}, "
            f"residual={self.residual:.1e})"
        )


def find_limit_cycle(
    reservoir: Any,
    inputs: ArrayLike,
    *,
    multiple: int = 1,
    initial_state: ArrayLike | None = None,
    feedback: ArrayLike | None = None,
    n_transient: int = 100,
    random_state: RandomState = None,
) -> LimitCycle:
    """Find a cycle of the network under a periodic drive, stable or not.

    The cycle is a fixed point of the map over `multiple` periods of the drive. After the transient
    it is solved for by Newton's method with analytic Jacobians (Powell's hybrid method up to 200
    units, Newton-Krylov above), then refined until rounding ends it. Where that fails, the cycle
    is followed from weights of zero up to W [2]_, and then other initial states are tried.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        float32 is computed in float64.
    inputs : array of shape (period, n_features)
        One period of the drive. A row of zeros for an autonomous network.
    multiple : int, periods of the drive, default=1
        How many periods the cycle may take. If the one that is found closes after fewer, that
        shorter cycle is returned, and its `multiple` says so.
    initial_state : array of shape (n_units,), optional
        Where the search begins; zeros by default.
    feedback : array of shape (period, n_outputs), optional
        What is fed back in each step; required if the reservoir has feedback weights.
    n_transient : int, periods of the drive, default=100
        Played before Newton's method takes over, rounded up to whole multiples. The default
        brings it close to an attractor; 0 keeps near `initial_state`, which is how unstable
        cycles are found.
    random_state : None, int, Generator or RandomState, default=None
        For other initial states where the first fails; not used if `initial_state` is given.

    Returns
    -------
    LimitCycle

    Raises
    ------
    LimitCycleError
        If no cycle is found; with the least residual that was reached.
    TypeError, ValueError
        If shapes disagree, an input is NaN or infinite, or a count is out of range.

    Notes
    -----
    A cycle that is found is one of possibly many (`sample_attractors` looks for others), and it
    may be unstable: look at `stable`. From zeros an autonomous network without bias stays at
    zero, stable or not; give another `initial_state`. With a bounded activation there is always a
    cycle of multiple 1 (Brouwer's theorem), but in a strongly chaotic network, where all cycles
    are unstable, it may not be found.

    Up to 1000 units all multipliers are computed, above the ten of largest modulus (Arnoldi). A
    subharmonic cycle nearer than 6e-6 to one of fewer periods is taken for that: in double
    precision they cannot be told apart.

    References
    ----------
    .. [1] Y. A. Kuznetsov, "Elements of Applied Bifurcation Theory", 3rd ed., Springer 2004,
       sections 1.5 and 10.2.
    .. [2] E. L. Allgower and K. Georg, "Numerical Continuation Methods", Springer 1990, chapter 2.

    Examples
    --------
    A negative gain under a constant drive, a subharmonic cycle of two steps:

    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import find_limit_cycle
    >>> unit = Reservoir([[-3.78]], [[1.0]], [2.0])
    >>> cycle = find_limit_cycle(unit, [[0.0]], multiple=2)
    >>> cycle.states.ravel().round(5)
    array([ 0.99997, -0.94468])
    >>> cycle.multiple, cycle.stable, cycle.residual < 1e-13
    (2, True, True)
    """
    drive = read_drive_series(reservoir, "inputs", inputs, feedback)
    multiple = check_count("multiple", multiple)
    n_transient = check_count("n_transient", n_transient, minimum=0)
    start = read_state(drive.reservoir, initial_state)
    generator = as_generator(random_state)
    n_rounds = -(-n_transient // multiple)
    whole = drive.repeated(multiple)
    least, n_starts = np.inf, 0
    for x, n in _starts(whole, start, n_rounds, None if initial_state is not None else generator):
        point, residual = _search(whole, x, n)
        if accepted(point, residual):
            states, multiple, residual = closed_cycle(drive, point, multiple)
            tangent = drive.repeated(multiple).tangent(states[-1], states)
            multipliers = floquet_multipliers(tangent)
            stable = bool(abs(multipliers[0]) < 1)
            return LimitCycle(states, multipliers, stable, residual, multiple)
        least, n_starts = min(least, residual), n_starts + 1
    raise LimitCycleError(
        f"No cycle of multiple={multiple} times {len(drive)} steps was found: the least residual "
        f"was {least:.2g} from {n_starts} initial state(s), {_ACCEPTED:g} is required. Give an "
        "initial_state nearer to the cycle, raise n_transient (for an unstable cycle: 0), or try "
        "another multiple; a chaotic or diverging response has no stable cycle."
    )


def _starts(
    drive: Drive, start: Array, n_rounds: int, generator: np.random.Generator | None
) -> Iterator[tuple[Array, int]]:
    """Yield where to search from, and how many rounds of transient to play before.

    With a generator, where the search may leave the start: after it the cycle that weaker and
    weaker weights lead to, then chance.
    """
    yield start, n_rounds
    if generator is not None:
        yield _continued(drive), 0
        for x in spread_states(drive.reservoir, _N_RESTARTS + 1, generator)[1:]:
            yield x, n_rounds


def accepted(point: Array, residual: float) -> bool:
    """Whether a residual is small enough for a cycle."""
    return residual <= _ACCEPTED * max(1.0, float(np.abs(point).max()))


def _search(drive: Drive, x: Array, n_rounds: int) -> tuple[Array, float]:
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

    if len(x) > _NEWTON_UNITS:
        # the inner Jacobian-vector products are differences here; polish has analytic ones
        solver = {"method": "gmres", "inner_maxiter": 100}  # less leaves the steps too inexact
        options = {"maxiter": 25, "jac_options": solver}
        return optimize.root(gap, x, method="krylov", tol=1e-6, options=options).x

    def jacobian(x: Array) -> Array:
        return drive.tangent(x, drive.states(x)).matrix() - np.eye(len(x))

    return optimize.root(gap, x, method="hybr", jac=jacobian, tol=1e-9).x


def _continued(drive: Drive) -> Array:
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
    if n <= _NEWTON_UNITS:
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


def floquet_multipliers(tangent: Tangent, *, leading: bool = False) -> Array:
    """Return the eigenvalues of a product of Jacobians by descending modulus.

    All of them up to 1000 units, ten above or if only the `leading` ones are asked for.
    """
    n = len(tangent.kept)
    if n <= (_NEWTON_UNITS if leading else DENSE_UNITS):
        values = np.linalg.eigvals(tangent.matrix()).astype(complex)
    else:
        values = _leading(tangent, n)
    return values[np.argsort(-np.abs(values), kind="stable")]


def _leading(tangent: Tangent, n: int) -> Array:
    start = np.random.default_rng(0).standard_normal((n, 3 * _N_LEADING))
    image = tangent.apply(start)
    if np.abs(image).max() > 1e-100:  # else Arnoldi's first vector is zero to rounding
        operator = LinearOperator((n, n), matvec=tangent.apply, dtype=float)
        with contextlib.suppress(ArpackNoConvergence, ArpackError):
            return eigs(operator, k=_N_LEADING, v0=start[:, 0], return_eigenvectors=False)
    # a nearly nilpotent product: its range holds all that is left of a block of vectors
    for _ in range(3):
        basis, _ = np.linalg.qr(image)
        image = tangent.apply(basis)
    values = np.linalg.eigvals(basis.T @ image).astype(complex)
    return values[np.argsort(-np.abs(values), kind="stable")][:_N_LEADING]
