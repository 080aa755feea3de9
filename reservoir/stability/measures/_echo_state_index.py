"""The echo-state index: how far apart responses from different initial states stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import ArrayLike, RandomState
from reservoir._validation import check_count
from reservoir.stability.measures._trajectories import (
    Convergence,
    read_comparison,
    side_by_side,
)

_COUNTS = 1e-2  # a smaller index says that the responses agree, whatever a transient adds


def echo_state_index(
    reservoir: Any,
    X: ArrayLike,
    *,
    n_initial_states: int = 10,
    washout: int | str = "auto",
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
) -> float:
    """Compute the echo-state index of a reservoir: the distance of its responses to given inputs.

    It is the mean distance from the response that starts at zero. This is a heuristic. With the
    echo state property the index is zero, to rounding; but zero proves nothing: a second response
    is missed if none of the initial states leads to it.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A float32 reservoir is converted to float64.
    X : array of shape (n_samples, n_features)
        The inputs that drive the reservoir.
    n_initial_states : int, default=10
        Number of initial states that are compared with the zero start: corners of the activation's
        range and uniform states.
    washout : int or "auto", rows, default="auto"
        Number of rows at the start, the transient, that are not counted; "auto" is min(100,
        n_samples // 10).
    feedback : array of shape (n_samples, n_outputs), optional
        Outputs that are fed back at each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the initial states.

    Returns
    -------
    float
        Mean Euclidean distance over rows and initial states.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, X contains NaN or infinity, or washout leaves fewer than two rows.

    Warns
    -----
    RuntimeWarning
        If the responses still converge after `washout`, which raises the result above 0.01.

    References
    ----------
    .. [1] C. Gallicchio, "Chasing the echo state property", 2018, arXiv:1811.10892.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import echo_state_index
    >>> X = 0.1 * np.sin(np.arange(300.0))[:, None]
    >>> units = [Reservoir([[w]], [[1.0]], [0.0]) for w in (0.5, 1.5)]
    >>> [round(echo_state_index(unit, X, random_state=0), 2) > 0 for unit in units]
    [False, True]
    """
    n = check_count("n_initial_states", n_initial_states)
    drive, starts, skip = read_comparison(reservoir, X, n + 1, washout, feedback, random_state)
    total, convergence = 0.0, Convergence()
    for begin, block in side_by_side(drive, starts):
        block = block[:, max(0, skip - begin) :]
        if block.shape[1]:
            convergence.add(block)
            total += float(np.linalg.norm(block[1:] - block[0], axis=2).sum())
    index = total / ((len(starts) - 1) * (len(drive) - skip))
    if index > _COUNTS:
        convergence.warn_of_transient(skip)
    return index
