"""What is measured between trajectories: echo-state index, consistency, transient length."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_count, check_number
from reservoir.stability._stepping import (
    Drive,
    read_drive_series,
    read_washout,
    side_by_side,
    spread_states,
)

_FLAT = 1e-10  # what varies by less than this share of its size is constant
_FIRST_ROWS = 32
_MERGED = 1e-13  # differences of this size, relative to the states, are rounding


def echo_state_index(
    reservoir: Any,
    X: ArrayLike,
    *,
    n_initial_states: int = 10,
    washout: int | str = "auto",
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
) -> float:
    """Echo-state index: mean distance between the responses from zero and from other states.

    Heuristic. Zero, to rounding, is what the echo state property asks for; but a second response
    whose basin holds none of the initial states is not seen.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        float32 is computed in float64.
    X : array of shape (n_samples, n_features)
        The drive.
    n_initial_states : int, default=10
        States to compare with the zero start: corners of the activation's range and uniform ones.
    washout : int or "auto", rows, default="auto"
        Rows that are given to the transient; "auto" is min(100, n_samples // 10).
    feedback : array of shape (n_samples, n_outputs), optional
        What is fed back in each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        For the initial states.

    Returns
    -------
    float
        Euclidean distance, mean over rows and initial states.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, X is NaN or infinite, or washout leaves no row.

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
    n = check_count("n_initial_states", n_initial_states) + 1
    drive, starts, skip = _read(reservoir, X, n, washout, feedback, random_state)
    total = 0.0
    for begin, block in side_by_side(drive, starts):
        block = block[:, max(0, skip - begin) :]
        total += float(np.linalg.norm(block[1:] - block[0], axis=2).sum())
    return total / ((len(starts) - 1) * (len(drive) - skip))


def consistency(
    reservoir: Any,
    X: ArrayLike,
    *,
    n_initial_states: int = 10,
    washout: int | str = "auto",
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
) -> float:
    """Consistency: mean correlation between responses to the same drive.

    Each unit's responses from different initial states are correlated over time, pair by pair;
    the mean over pairs and units is 1 if all respond alike, and near 0 if each goes its own way.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        float32 is computed in float64.
    X : array of shape (n_samples, n_features)
        The drive.
    n_initial_states : int, at least 2, default=10
        Zeros, corners of the activation's range and uniform states.
    washout : int or "auto", rows, default="auto"
        Rows that are given to the transient; "auto" is min(100, n_samples // 10).
    feedback : array of shape (n_samples, n_outputs), optional
        What is fed back in each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        For the initial states.

    Returns
    -------
    float in [-1, 1]

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, X is NaN or infinite, or washout leaves fewer than two rows.

    Notes
    -----
    Where a unit does not vary (by more than 1e-10 of its size) in one of two responses there is no
    correlation: it counts as 1 if it is the same constant in both, else as 0. Correlation ignores
    offsets: responses that follow the drive alike around different levels are consistent, and
    `echo_state_index` tells them apart.

    References
    ----------
    .. [1] A. Uchida, R. McAllister and R. Roy, "Consistency of nonlinear system response to complex
       drive signals", Physical Review Letters 93, 2004.
    .. [2] T. Lymburn, A. Khor, T. Stemler, D. Correa, M. Small and T. Juengling, "Consistency in
       echo-state networks", Chaos 29, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.dynamics import Reservoir
    >>> from reservoir.stability import consistency
    >>> unit = Reservoir([[0.5]], [[1.0]], [0.0])
    >>> round(consistency(unit, np.sin(np.arange(300.0))[:, None], random_state=0), 6)
    1.0
    """
    n = check_count("n_initial_states", n_initial_states, minimum=2)
    drive, starts, skip = _read(reservoir, X, n, washout, feedback, random_state)
    if len(drive) - skip < 2:
        raise ValueError(
            f"washout={skip} leaves {len(drive) - skip} of n_samples={len(drive)} rows; a "
            "correlation needs 2. Lower it."
        )
    moments = _Moments(n, drive.reservoir.n_units)
    for begin, block in side_by_side(drive, starts):
        if begin + block.shape[1] > skip:
            moments.add(block[:, max(0, skip - begin) :])
    return moments.correlation()


class _Moments:
    """Sums of responses and their products, unit by unit, from which correlations come."""

    def __init__(self, n: int, n_units: int) -> None:
        self.shift: Array | None = None  # near the mean: what varies little must not cancel
        self.n_rows = 0
        self.sums = np.zeros((n_units, n))
        self.products = np.zeros((n_units, n, n))

    def add(self, block: Array) -> None:
        """Add rows of all responses, of shape (n, rows, n_units)."""
        if self.shift is None:
            self.shift = block[:, :1].copy()
        block = np.ascontiguousarray((block - self.shift).transpose(2, 0, 1))
        self.sums += block.sum(axis=2)
        self.products += block @ block.transpose(0, 2, 1)
        self.n_rows += block.shape[2]

    def correlation(self) -> float:
        """Return the mean correlation over all pairs and units."""
        assert self.shift is not None
        n = self.n_rows
        means = self.shift[:, 0].T + self.sums / n
        covariance = self.products / n - self.sums[:, :, None] * self.sums[:, None, :] / n**2
        spread = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
        flat = _FLAT * np.abs(means).max(axis=1, keepdims=True)
        varies = spread > flat
        both = varies[:, :, None] & varies[:, None, :]
        neither = ~(varies[:, :, None] | varies[:, None, :])
        equal = np.abs(means[:, :, None] - means[:, None, :]) <= 4 * flat[:, :, None]
        scale = spread[:, :, None] * spread[:, None, :]
        ratio = np.divide(covariance, scale, out=(neither & equal).astype(float), where=both)
        first, second = np.triu_indices(ratio.shape[1], 1)
        return float(np.clip(ratio[:, first, second], -1.0, 1.0).mean())


def transient_length(
    reservoir: Any,
    X: ArrayLike,
    *,
    tol: float = 1e-6,
    n_initial_states: int = 10,
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
) -> int:
    """Return how many steps it takes until the initial state is forgotten: the washout needed.

    Heuristic: what is measured are the initial states that are drawn, zeros and corners among
    them, under this drive.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        float32 is computed in float64.
    X : array of shape (n_samples, n_features)
        The drive.
    tol : float, default=1e-6
        The states agree if no unit differs by more between any two trajectories.
    n_initial_states : int, at least 2, default=10
        Zeros, corners of the activation's range and uniform states.
    feedback : array of shape (n_samples, n_outputs), optional
        What is fed back in each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        For the initial states.

    Returns
    -------
    int
        The first row from which on all trajectories agree, to the end of X.

    Raises
    ------
    ValueError
        If they do not agree at the end of X; or shapes disagree, X is NaN or infinite, or a
        parameter is out of range.
    TypeError
        If a parameter has another type.

    Notes
    -----
    All trajectories are played until they agree to rounding (1e-13 of the largest state); from
    there on the two that are farthest apart stand for all, for what is left between any two is
    rounding, which only an expanding drive would raise above `tol`, and it does so in these two as
    in any. Once these two are equal bit by bit they stay so, and the rest of X is not played.

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
    drive, starts, _ = _read(reservoir, X, n, 0, feedback, random_state)
    length, spread, begin = 0, np.inf, 0
    while begin < len(drive) and spread > 0:
        for row, block in side_by_side(drive, starts, begin=begin, first_rows=_FIRST_ROWS):
            spreads = (block.max(axis=0) - block.min(axis=0)).max(axis=1)
            apart = np.flatnonzero(spreads > tol)
            if len(apart):
                length = row + int(apart[-1]) + 1
            spread, ends, begin = float(spreads[-1]), block[:, -1], row + block.shape[1]
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
    unit = int(np.argmax(states.max(axis=0) - states.min(axis=0)))
    return states[[int(np.argmin(states[:, unit])), int(np.argmax(states[:, unit]))]]


def _read(
    reservoir: Any, X: Any, n_states: int, washout: Any, feedback: Any, random_state: Any
) -> tuple[Drive, Array, int]:
    """Check what the comparisons of trajectories share; return drive, initial states, washout."""
    drive = read_drive_series(reservoir, "X", X, feedback)
    skip = read_washout(washout, len(drive))
    return drive, spread_states(drive.reservoir, n_states, as_generator(random_state)), skip
