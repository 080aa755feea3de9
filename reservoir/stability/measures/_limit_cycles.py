"""Limit cycles under a periodic drive, stable or not, and their Floquet multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_count
from reservoir.stability.measures._cycle_search import (
    ACCEPTED,
    accepted,
    closed_cycle,
    continued,
    settled_point,
)
from reservoir.stability.measures._multipliers import floquet_multipliers
from reservoir.stability.measures._trajectories import (
    Drive,
    read_drive_series,
    read_state,
    spread_states,
)

_N_RESTARTS = 4


class LimitCycleError(ValueError):
    """No cycle was found to the required accuracy; a subclass of ValueError."""


@dataclass(frozen=True, eq=False, repr=False)
class LimitCycle:
    """A periodic response to a periodic drive.

    Attributes
    ----------
    states : array of shape (multiple * period, n_units)
        Row t is the state after step t. The last row is the state before ``inputs[0]``, a fixed
        point of the map over the whole cycle.
    multipliers : complex array of shape (n_units,), or (10,) if there are more than 1000 units
        Floquet multipliers, the eigenvalues of the product of the step Jacobians over the cycle,
        by descending modulus.
    stable : bool
        Whether all multipliers are inside the unit circle: then the cycle attracts nearby states.
        This is computed, not proved, and does not extend to states far away.
    residual : float
        Largest difference, in any unit, between the fixed point and its image.
    multiple : int
        Number of periods of the drive that the cycle takes: 1, or more for a subharmonic cycle.

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
    """Find a cycle of the open reservoir under a periodic drive, stable or not.

    The loop of an estimator that forecasts is another network, which may oscillate where the open
    reservoir is at rest. The cycle is a fixed point of the map over `multiple` periods of the
    drive. After the transient it is solved for by Newton's method with analytic Jacobians (Powell's
    hybrid method up to 200 units, Newton-Krylov above), then refined down to rounding. If that
    fails, the cycle is continued from zero weights to W [2]_, and then other initial states are
    tried.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A float32 reservoir is converted to float64.
    inputs : array of shape (period, n_features)
        One period of the inputs; a single row of zeros for an autonomous network.
    multiple : int, periods of the drive, default=1
        Number of periods that the cycle may take. If the cycle closes after fewer, that shorter
        cycle is returned, with its own `multiple`.
    initial_state : array of shape (n_units,), optional
        Start of the search; zeros by default.
    feedback : array of shape (period, n_outputs), optional
        Outputs that are fed back at each step; required if the reservoir has feedback weights.
    n_transient : int, periods of the drive, default=100
        Periods to run before Newton's method begins, rounded up to whole multiples. The default
        brings the state close to an attractor; with 0 the search stays near `initial_state`, which
        finds unstable cycles.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing other initial states if the first one fails; not used if `initial_state` is
        given.

    Returns
    -------
    LimitCycle

    Raises
    ------
    LimitCycleError
        If no cycle is found; the message contains the least residual that was reached.
    TypeError, ValueError
        If shapes disagree, an input is NaN or infinite, or a count is out of range.

    Warns
    -----
    UserWarning
        If the drive is constant and an estimator was trained to predict its next input.

    Notes
    -----
    There may be other cycles (`sample_attractors` searches for them), and the one that is found may
    be unstable: check `stable`. An autonomous network without bias that starts at zero stays at
    zero, stable or not; give another `initial_state`. With a bounded activation there is always a
    cycle of multiple 1 (Brouwer's theorem), but it may not be found in a strongly chaotic network,
    where all cycles are unstable.

    Up to 1000 units all multipliers are computed, above only the ten of largest modulus (Arnoldi).
    A subharmonic cycle nearer than 6e-6 to a cycle of fewer periods is replaced by the latter: in
    double precision they cannot be distinguished.

    References
    ----------
    .. [1] Y. A. Kuznetsov, "Elements of Applied Bifurcation Theory", 3rd ed., Springer 2004,
       sections 1.5 and 10.2.
    .. [2] E. L. Allgower and K. Georg, "Numerical Continuation Methods", Springer 1990, chapter 2.

    Examples
    --------
    A unit of negative gain under a constant drive has a subharmonic cycle of two steps:

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
    size = 2 * len(drive) * (drive.X.shape[1] + drive.reservoir.n_units)
    multiple = check_count("multiple", multiple, size=size)
    n_transient = check_count("n_transient", n_transient, minimum=0)
    start = read_state(drive.reservoir, initial_state)
    generator = as_generator(random_state)
    n_rounds = -(-n_transient // multiple)
    whole = drive.repeated(multiple)
    least, n_starts = np.inf, 0
    # Search from one start after the other, until a cycle is found.
    for x, n in _starts(whole, start, n_rounds, None if initial_state is not None else generator):
        point, residual = settled_point(whole, x, n)
        if accepted(point, residual):
            states, multiple, residual = closed_cycle(drive, point, multiple)
            tangent = drive.repeated(multiple).tangent(states[-1], states)
            multipliers = floquet_multipliers(tangent.apply, len(point))
            stable = bool(abs(multipliers[0]) < 1)
            return LimitCycle(states, multipliers, stable, residual, multiple)
        least, n_starts = min(least, residual), n_starts + 1
    raise LimitCycleError(
        f"No cycle of multiple={multiple} times {len(drive)} steps was found: the least residual "
        f"was {least:.2g} from {n_starts} initial state(s); {ACCEPTED:g} is required. Give an "
        "initial_state nearer to the cycle, raise n_transient (or set it to 0 for an unstable "
        "cycle), or try another multiple; a chaotic or diverging response has no stable cycle."
    )


def _starts(
    drive: Drive, start: Array, n_rounds: int, generator: np.random.Generator | None
) -> Iterator[tuple[Array, int]]:
    """Yield initial states of the search, each with the rounds of transient to run first.

    The first is `start`. With a generator, the end of the continuation from zero weights and some
    random states follow; without one, because the caller gave the start, it is the only one.
    """
    yield start, n_rounds
    if generator is not None:
        yield continued(drive), 0
        for x in spread_states(drive.reservoir, _N_RESTARTS + 1, generator)[1:]:
            yield x, n_rounds
