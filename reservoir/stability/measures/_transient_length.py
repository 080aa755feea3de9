"""The transient length: the number of steps until the initial state is forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import check_count, check_number
from reservoir.stability.measures._trajectories import read_comparison, side_by_side

_FIRST_ROWS = 32  # of the first block, while the length of the transient is unknown
_MERGED = 1e-13  # smaller differences, relative to the largest state, are rounding


def transient_length(
    reservoir: Any,
    X: ArrayLike,
    *,
    tol: float = 1e-6,
    n_initial_states: int = 10,
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
) -> int:
    """Return the number of steps in which a reservoir under given inputs forgets its start.

    This is the required washout. It is a heuristic: the result is for this drive and for the drawn
    initial states, which include zeros and corners.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A float32 reservoir is converted to float64.
    X : array of shape (n_samples, n_features)
        The inputs that drive the reservoir.
    tol : float, default=1e-6
        Trajectories agree if no unit differs by more than `tol` between any two of them.
    n_initial_states : int, at least 2, default=10
        Number of initial states: zeros, corners of the activation's range and uniform states.
    feedback : array of shape (n_samples, n_outputs), optional
        Outputs that are fed back at each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the initial states.

    Returns
    -------
    int
        First row from which all trajectories agree up to the end of X.

    Raises
    ------
    ValueError
        If the trajectories do not agree at the end of X, shapes disagree, X contains NaN or
        infinity, or a parameter is out of range.
    TypeError
        If a parameter has the wrong type.

    Notes
    -----
    All trajectories are run until they agree to rounding (1e-13 of the largest state). From there
    on only the two that are farthest apart are run: the remaining differences are rounding, and if
    the drive amplifies them above `tol` again, it does so between these two as well. Once the two
    are equal bit by bit they stay so, and the remaining rows of X are skipped.

    References
    ----------
    .. [1] H. Jaeger, "The 'echo state' approach to analysing and training recurrent neural
       networks", GMD Report 148, 2001, definition 3 and section 3.1 (state forgetting, washout).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import transient_length
    >>> linear = Reservoir([[0.5]], [[1.0]], [0.0], activation="identity")
    >>> transient_length(linear, np.zeros((100, 1)), tol=0.1)  # 2 * 0.5 ** 5 = 0.0625
    4
    """
    n = check_count("n_initial_states", n_initial_states, minimum=2)
    tol = check_number("tol", tol, low=0.0, low_open=True)
    drive, starts, _ = read_comparison(reservoir, X, n, 0, feedback, random_state, least=1)
    # `length` is the first row after the last at which two states differ by more than tol.
    length, spread, begin = 0, np.inf, 0
    while begin < len(drive) and spread > 0:
        for row, block in side_by_side(drive, starts, begin=begin, first_rows=_FIRST_ROWS):
            spreads = (block.max(axis=0) - block.min(axis=0)).max(axis=1)
            apart = np.flatnonzero(spreads > tol)
            if len(apart):
                length = row + int(apart[-1]) + 1
            spread, ends, begin = float(spreads[-1]), block[:, -1], row + block.shape[1]
            # Equal to rounding: continue with two trajectories only.
            merged = spread <= _MERGED * max(1.0, float(np.abs(ends).max()))
            if spread == 0 or (merged and len(ends) > 2):
                starts = _farthest_two(ends)
                break
    if length == len(drive):
        raise ValueError(
            f"The states from {n} initial states do not agree to tol={tol:g} within n_samples="
            f"{len(drive)} rows: at the end they differ by {spread:.2g}. Give a longer X or a "
            "larger tol; if that does not help, the reservoir lacks the echo state property under "
            "this drive: lower the spectral radius, or use a stable bias."
        )
    return length


def _farthest_two(states: Array) -> Array:
    """Return the two states that differ the most in one unit, of shape (2, n_units)."""
    unit = int(np.argmax(states.max(axis=0) - states.min(axis=0)))
    return states[[int(np.argmin(states[:, unit])), int(np.argmax(states[:, unit]))]]
