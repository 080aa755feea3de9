"""Attracting cycles of the closed loop of a fitted model: closed curves, and their multipliers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import KroghInterpolator
from scipy.optimize import brentq

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count
from reservoir.stability.loop_of import Loop, loop_of
from reservoir.stability.measures._cycle_search import accepted, newton_step
from reservoir.stability.measures._limit_cycles import LimitCycleError
from reservoir.stability.measures._multipliers import floquet_multipliers
from reservoir.stability.measures._qr_method import Lengths, exponents_along

_BEFORE, _AFTER = 3, 4  # points that are interpolated: so many before a crossing's step, and after
_WEIGHTS = KroghInterpolator(np.arange(-_BEFORE, _AFTER + 1), np.eye(_BEFORE + _AFTER + 1))
_SHORTEST = _BEFORE + _AFTER + 1  # the least steps of a turn that are interpolated
_OBSERVED = (1000, 2000, 4000, 8000)  # steps after the transient, until the loop has returned
_RETURNED = 1e-3  # largest gap between returns that Newton's method closes, in ranges of the points
_CROSSINGS = 64  # the last crossings that are compared
_NEAR = 0.1  # largest distance of a cycle from the run, in ranges of the points
_REPEATED = 1e-6  # largest gap of a cycle of whole steps, relative to the largest number
_NEWTON_STEPS = 20
_NEUTRAL = 1e-6  # nearer to 1, a multiplier is that along a curve


@dataclass(frozen=True, eq=False, repr=False)
class LoopCycle:
    """An attracting cycle of a closed loop: a closed curve, a fixed point, or points in turn.

    Attributes
    ----------
    states : array of shape (ceil(period) + 1, n_states + n_outputs)
        Row t is the state after t steps, as in `state_` (past rows first, if the model has lags),
        then the outputs. The last row is at most a step past the first.
    outputs : array of shape (ceil(period) + 1, n_outputs)
        The outputs alone, in the units of y.
    period : float, steps
        Duration of a turn, which need not be a whole number; 1 for a fixed point.
    multipliers : complex array of shape (n_states + n_outputs,), or (10,) if there are more than \
1000
        Floquet multipliers by descending modulus: the factors by which small deviations grow in a
        turn. On a closed curve the first is the 1 along the curve; a fixed point and a cycle of
        whole steps have no such 1.
    stable : bool
        Whether all other multipliers are inside the unit circle, by more than 1e-6, the accuracy
        of a multiplier of 1: a linear oscillator has cycles of all sizes, and none is stable.
    residual : float
        Largest difference, in any entry, between the first row and its return.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor
    >>> from reservoir.stability import find_loop_cycle
    >>> wave = np.sin(2 * np.pi * np.arange(600) / 25.5)[:, None]
    >>> esn = ESNRegressor(50, n_lags=1, alpha=1e-6, random_state=0).fit(wave[:-1], wave[1:])
    >>> cycle = find_loop_cycle(esn)
    >>> cycle.outputs.shape, round(cycle.period, 3)
    ((27, 1), 25.5)
    """

    states: Array
    outputs: Array
    period: float
    multipliers: Array
    stable: bool
    residual: float

    @property
    def on_curve(self) -> int:
        """1 if the cycle is a closed curve, whose first multiplier is the 1 along it, else 0."""
        return int(self.multipliers[0] == 1)

    def __repr__(self) -> str:
        largest = np.abs(self.multipliers[:2]).round(4).tolist()
        return (
            f"LoopCycle(states={self.states.shape}, period={self.period:.6g}, "
            f"stable={self.stable}, largest multipliers={largest}, residual={self.residual:.1e})"
        )


@dataclass(frozen=True, eq=False)
class _Turn:
    """A run from a point to its return, which is the weighted mean of consecutive points.

    `first` is the index of the first of these points. `speed`, on a closed curve, is the velocity
    at the return, relative to that of the coordinate `section`, whose level defines the return.
    """

    loop: Loop
    points: Array
    first: int
    period: float
    weights: Array
    section: int = 0
    speed: Array | None = None

    @property
    def gap(self) -> Array:
        """The difference between the return and the first point."""
        last = self.first + len(self.weights)
        return self.weights @ self.points[self.first : last] - self.points[0]

    @property
    def residual(self) -> float:
        """The largest difference in any entry."""
        return float(np.abs(self.gap).max())

    def apply(self, V: Array) -> Array:
        """Return the derivative of the return by the first point, times V."""
        moved = V.reshape(len(V), -1)
        out = np.zeros_like(moved)
        for t in range(1, self.first + len(self.weights)):
            moved = self.loop.tangent(self.points[t - 1], moved)[1]
            if t >= self.first:
                out = out + self.weights[t - self.first] * moved
        if self.speed is not None:  # the return is later or earlier: back to the section
            out = out - np.outer(self.speed, out[self.section])
        return out.reshape(V.shape)

    def cycle(self, multipliers: Array) -> LoopCycle:
        """Return the result: the rows of one turn and their multipliers."""
        points = self.points[: int(np.ceil(self.period)) + 1]
        outputs = self.loop.outputs(points)
        states = np.hstack([points[:, : -outputs.shape[1]], outputs])
        others = multipliers if self.speed is None else multipliers[1:]
        stable = bool((np.abs(others) < 1 - _NEUTRAL).all())
        return LoopCycle(states, outputs, self.period, multipliers, stable, self.residual)


def find_loop_cycle(
    model: Any, *, context: ArrayLike | None = None, n_transient: int = 1000
) -> LoopCycle:
    """Find the attracting cycle of a fitted model's closed loop.

    The loop is the one that `forecast` runs. It oscillates on a closed curve whose period is not a
    whole number of steps, so no state of a run repeats itself: the states of a run are interpolated
    where an output passes its mean, and the return to there is solved for by Newton's method, with
    the exact derivatives of the steps. A loop at rest has a fixed point, of period 1, and some
    loops repeat themselves after a whole number of steps. `find_limit_cycle` finds cycles of a
    network under a given drive instead.

    Parameters
    ----------
    model : fitted ESNRegressor, NVARRegressor or RNNRegressor, or a Pipeline,
        TransformedTargetRegressor or search that contains one
        As in `loop_exponents`.
    context : array of shape (n_context, n_features), optional
        Rows to warm up on, as in `forecast`. By default the loop starts at the end of training;
        after training on several sequences a context is required.
    n_transient : int, steps, default=1000
        Steps to run before the search. Then the loop is observed for another 1000 to 8000, until
        it returns.

    Returns
    -------
    LoopCycle

    Raises
    ------
    LimitCycleError
        If the loop diverges, or does not return or settle in these steps; the message contains
        what was observed.
    TypeError, ValueError
        If the model cannot run in closed loop, or its loop has no derivatives, as in
        `loop_exponents`; or if `n_transient` is out of range.

    See Also
    --------
    loop_exponents : Rates of growth, of loops without a cycle, too.

    Notes
    -----
    The cycle is the one to which this run leads; there may be others, and unstable ones are not
    searched for. Eight points are interpolated, with a relative error of about 1e-11 for a sine of
    60 steps a turn, 1e-7 at 20 and 3e-5 at 10; shorter turns than 8 steps are refused.

    The multipliers are the loop's. They are the system's where the data contain how it returns to
    its cycle, from several starts: of a network of 200 units taught twelve transients of a Van der
    Pol oscillator, the second multiplier is right within 1 % for mu = 0.3 and 0.4, where 15 % and
    8 % of a deviation survive a turn. For mu = 1 less than a thousandth survives, which is hardly
    in the data. Do not rely on the multiplier then, nor after training on the cycle alone.

    Up to 200 entries of a point a matrix of the size of W is formed in Newton's method, and up to
    1000 all multipliers are computed, above only the ten of largest modulus.

    References
    ----------
    .. [1] Y. A. Kuznetsov, "Elements of Applied Bifurcation Theory", 3rd ed., Springer 2004,
       section 1.5.

    Examples
    --------
    Polynomials of one lag contain the logistic map, here with a cycle of two steps:

    >>> import numpy as np
    >>> from reservoir import NVARRegressor
    >>> from reservoir.stability import find_loop_cycle
    >>> x = [0.3]
    >>> for _ in range(30):
    ...     x.append(3.2 * x[-1] * (1 - x[-1]))
    >>> X = np.array(x)[:, None]
    >>> cycle = find_loop_cycle(NVARRegressor(n_lags=1, degree=2, alpha=0).fit(X[:-1], X[1:]))
    >>> cycle.period, cycle.multipliers.real.round(2), cycle.stable
    (2.0, array([0.16]), True)
    """
    n_transient = check_count("n_transient", n_transient, minimum=0)
    loop = loop_of(model, context)
    point = loop.start
    for t in range(n_transient):
        point = _following(loop, point, t)
    points, before = point[None], n_transient
    for n in _OBSERVED:
        points = np.concatenate([points, _run(loop, points[-1], n - len(points) + 1, before)[1:]])
        before = n_transient + n
        found = _whole_cycle(loop, points) or _closed_curve(loop, points)
        if found is not None:
            return found
    raise LimitCycleError(_observed(loop, points))


def _following(loop: Loop, point: Array, t: int) -> Array:
    """Return the point after step t; raise if the loop diverges."""
    with np.errstate(over="ignore", invalid="ignore"):
        point = loop.step(point)
        if not np.dot(point, point) < np.inf:
            raise LimitCycleError(
                f"The loop diverged at step {t}: its values exceed 1e154, so that it has no cycle. "
                "A larger alpha, noise in training or a smaller spectral radius often helps."
            )
    return point


def _run(loop: Loop, point: Array, n: int, t: int = 0) -> Array:
    """Return a point and the n points after it, of shape (n + 1, size); t counts earlier steps."""
    points = np.empty((n + 1, len(point)))
    points[0] = point
    for k in range(n):
        points[k + 1] = _following(loop, points[k], t + k)
    return points


def _solved(turn_from: Callable[[Array], _Turn | None], point: Array) -> _Turn | None:
    """Return the turn that closes, near that from a point, by Newton's method; None for none."""
    best = turn_from(point)
    if best is None:
        return None
    # A step may lead to where the loop diverges: then there is no cycle near the last turn.
    with contextlib.suppress(LimitCycleError), np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_NEWTON_STEPS):
            step = newton_step(best.apply, best.gap)
            new = None if step is None else turn_from(best.points[0] + step)
            if new is None or not new.residual < best.residual:
                break
            best = new
    return best if accepted(best.points[0], best.residual) else None


def _whole_cycle(loop: Loop, points: Array) -> LoopCycle | None:
    """Return the cycle of whole steps at the end of a run, or the fixed point; None for none."""
    last = points[-1]
    scale = max(1.0, float(np.abs(last).max()))
    near = np.flatnonzero(np.abs(points[-2::-1] - last).max(axis=1) <= _REPEATED * scale)
    if not near.size:
        return None
    k = int(near[0]) + 1
    turn = _solved(lambda z: _Turn(loop, _run(loop, z, k), k, float(k), np.ones(1)), last)
    if turn is None or np.abs(turn.points[0] - last).max() > _RETURNED * scale:
        return None
    multipliers = floquet_multipliers(turn.apply, len(last))
    # A multiplier of 1 belongs to a closed curve, whose period is near a whole number.
    return turn.cycle(multipliers) if abs(multipliers[0]) < 1 - _NEUTRAL else None


def _closed_curve(loop: Loop, points: Array) -> LoopCycle | None:
    """Return the attracting closed curve on which a run ends; None for none."""
    section, level, times, crossings = _crossings(loop, points)
    span = np.ptp(points, axis=0).max()
    largest = _RETURNED * span
    for m, gap in enumerate(_gaps(crossings), start=1):
        if gap > largest:
            continue
        largest = gap / 2  # a curve of several returns is one that they miss by much less
        period = times[-1] - times[-1 - m]
        if period < _SHORTEST:
            raise LimitCycleError(
                f"The loop turns in {period:.3g} steps; at least {_SHORTEST} are required to "
                "interpolate its curve. Fit a model to rows at shorter time steps."
            )
        turn_from = partial(_turn, loop, section, level, period)
        turn = _solved(turn_from, crossings[-1])
        if turn is None or np.abs(turn.points[0] - crossings[-1]).max() > _NEAR * span:
            # a loop with cycles of all sizes, none of which attracts: the one of this run
            turn = turn_from(crossings[-1])
            if turn is None or turn.residual > _REPEATED * span:
                continue
        # The return map has an eigenvalue of 0 in place of the 1 along the curve.
        others = floquet_multipliers(turn.apply, len(crossings[-1]))[:-1]
        if not others.size or abs(others[0]) < 1 + _NEUTRAL:
            return turn.cycle(np.append(1.0 + 0.0j, others))
    return None


def _crossings(loop: Loop, points: Array) -> tuple[int, float, Array, Array]:
    """Return the section of a run, its upward crossings' times, and the points interpolated there.

    The section is where the output that varies most passes its mean.
    """
    n_outputs = loop.outputs(points[:1]).shape[1]
    section = int(np.argmax(points[:, -n_outputs:].std(axis=0))) - n_outputs
    level = float(points[:, section].mean())
    steps = _upward(points[:, section] - level)
    found = [_interpolation(points[:, section] - level, k) for k in steps]
    times = np.array([k + tau for k, (tau, _) in zip(steps, found, strict=True)])
    crossings = [
        w @ points[k - _BEFORE : k + _AFTER + 1] for k, (_, w) in zip(steps, found, strict=True)
    ]
    return section, level, times, np.array(crossings)


def _upward(values: Array) -> Array:
    """Return the steps before the last upward crossings of zero, with enough values around them."""
    steps = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    return steps[(steps >= _BEFORE) & (steps < len(values) - _AFTER)][-_CROSSINGS:]


def _interpolation(values: Array, k: int) -> tuple[float, Array]:
    """Return the time after step k at which values are zero, and the weights of interpolation."""
    around = values[k - _BEFORE : k + _AFTER + 1]
    tau = brentq(lambda s: float(_WEIGHTS(s) @ around), 0.0, 1.0, xtol=1e-15)
    return tau, _WEIGHTS(tau)


def _gaps(crossings: Array) -> list[float]:
    """Return how far the last two crossings are from those m before, for m = 1, 2, ..."""
    n = len(crossings)
    return [
        float(np.abs(crossings[-2:] - crossings[-2 - m : n - m]).max()) for m in range(1, n - 1)
    ]


def _turn(loop: Loop, section: int, level: float, period: float, point: Array) -> _Turn | None:
    """Return the turn from a point on the section, of about a period; None for none."""
    slack = 2 + int(0.05 * period)
    points = _run(loop, point, int(period) + slack + _AFTER + 1)
    values = points[:, section] - level
    steps = _upward(values)
    steps = steps[np.abs(steps + 0.5 - period) <= slack]
    if not steps.size:
        return None
    k = int(steps[np.argmin(np.abs(steps + 0.5 - period))])
    tau, weights = _interpolation(values, k)
    first = k - _BEFORE
    velocity = _WEIGHTS.derivative(tau) @ points[first : first + len(weights)]
    if velocity[section] == 0:
        return None
    return _Turn(loop, points, first, k + tau, weights, section, velocity / velocity[section])


def _observed(loop: Loop, points: Array) -> str:
    """Return the message for a loop without a cycle."""
    section, _, times, crossings = _crossings(loop, points)
    n = len(points) - 1
    gaps = _gaps(crossings)
    if not gaps:
        seen = (
            f"an output crossed its mean upwards {len(times)} times in {n} steps and moved by "
            f"{np.ptp(points[:, section]):.2g}"
        )
    else:
        m = int(np.argmin(gaps)) + 1
        periods = ", ".join(f"{times[k] - times[k - m]:.6g}" for k in (-2, -1))
        seen = f"its last returns, after {periods} steps, miss by {gaps[m - 1]:.2g}"
        exponent = exponents_along(loop.tangent, points[-1], Lengths(1, 2000, 100, 1.0), 0)[0]
        seen += f", and its first exponent is {exponent:.2g} per step"
    return (
        f"The loop has no cycle: {seen}. Raise n_transient if it settles slowly; if the exponent "
        "is positive it is chaotic."
    )
