"""Consistency: whether responses from different initial states are correlated."""

from __future__ import annotations

from typing import Any

import numpy as np

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import check_count
from reservoir.stability.measures._trajectories import (
    Convergence,
    read_comparison,
    side_by_side,
)

_CONSISTENT = 0.99  # above this no transient has lowered the result
_FLAT = 1e-10  # a unit that varies by less than this share of its size counts as constant
_ROUNDED = 1e-13  # and so does one that varies by less than this, at rest at zero


def consistency(
    reservoir: Any,
    X: ArrayLike,
    *,
    n_initial_states: int = 10,
    washout: int | str = "auto",
    feedback: ArrayLike | None = None,
    random_state: RandomState = None,
) -> float:
    """Compute the consistency of a reservoir: the correlation of its responses to given inputs.

    Each unit's responses from different initial states are correlated over time, pair by pair;
    the mean over pairs and units is 1 if all responses agree, and near 0 if they are unrelated.

    Parameters
    ----------
    reservoir : Reservoir or fitted estimator
        A float32 reservoir is converted to float64.
    X : array of shape (n_samples, n_features)
        The inputs that drive the reservoir.
    n_initial_states : int, at least 2, default=10
        Number of initial states: zeros, corners of the activation's range and uniform states.
    washout : int or "auto", rows, default="auto"
        Number of rows at the start, the transient, that are not counted; "auto" is min(100,
        n_samples // 10).
    feedback : array of shape (n_samples, n_outputs), optional
        Outputs that are fed back at each step; required if the reservoir has feedback weights.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the initial states.

    Returns
    -------
    float in [-1, 1]

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, X contains NaN or infinity, or washout leaves fewer than two rows.

    Warns
    -----
    RuntimeWarning
        If the responses still converge after `washout`, which lowers the result.

    Notes
    -----
    If a unit is constant (to within 1e-10 of its size, or 1e-13) in one of two responses, their
    correlation is undefined: it counts as 1 if the unit is the same constant in both, else as 0.
    Correlation ignores offsets: responses that follow the drive equally around different levels
    are consistent; `echo_state_index` distinguishes them.

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
    drive, starts, skip = read_comparison(reservoir, X, n, washout, feedback, random_state)
    check_count("n_initial_states", n, size=2 * n * drive.reservoir.n_units)
    moments, convergence = _Moments(n, drive.reservoir.n_units), Convergence()
    for begin, block in side_by_side(drive, starts):
        block = block[:, max(0, skip - begin) :]
        if block.shape[1]:
            moments.add(block)
            convergence.add(block)
    found = moments.correlation()
    if found < _CONSISTENT:
        convergence.warn_of_transient(skip)
    return found


class _Moments:
    """Sums of each unit's responses and of their products, from which correlations are computed.

    Rows are added block by block. The state in the first row is subtracted from all rows, so that
    the variance of units that vary little is not lost to cancellation.
    """

    def __init__(self, n: int, n_units: int) -> None:
        self.shift: Array | None = None
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
        # Means, covariances and standard deviations of each unit's responses.
        n = self.n_rows
        means = self.shift[:, 0].T + self.sums / n
        covariance = self.products / n - self.sums[:, :, None] * self.sums[:, None, :] / n**2
        spread = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
        # Pairs in which both vary, and pairs of equal constants.
        flat = np.maximum(_FLAT * np.abs(means).max(axis=1, keepdims=True), _ROUNDED)
        varies = spread > flat
        both = varies[:, :, None] & varies[:, None, :]
        neither = ~(varies[:, :, None] | varies[:, None, :])
        equal = np.abs(means[:, :, None] - means[:, None, :]) <= 4 * flat[:, :, None]
        # The mean correlation over all pairs of responses.
        scale = spread[:, :, None] * spread[:, None, :]
        ratio = np.divide(covariance, scale, out=(neither & equal).astype(float), where=both)
        first, second = np.triu_indices(ratio.shape[1], 1)
        return float(np.clip(ratio[:, first, second], -1.0, 1.0).mean())
