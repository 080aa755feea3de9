"""Distances between the climates of two series: spectra, and distributions of rows."""

from __future__ import annotations

import numpy as np
from scipy.signal import welch
from scipy.stats import wasserstein_distance

from reservoir._typing import Array, ArrayLike, RandomState
from reservoir._validation import as_generator, check_count
from reservoir.metrics._errors import as_table, check_no_constant_column

_PARTS = 8  # the shorter series has this many segments, and as many that overlap them by half
_FEWEST_ROWS = 16


def power_spectrum_distance(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the Hellinger distance between the power spectra of two series.

    It compares climates: how the power of each channel is distributed over frequencies, whatever
    the phases. The rows need not correspond, and the series may differ in length. The spectra are
    averages over segments (Welch's method, Hann window), each an eighth of the shorter series, and
    normalised to sum 1 [1]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The reference: a long stretch of the true series, at least 16 rows.
    y_pred : array-like of shape (n_other,) or (n_other, n_outputs)
        The series that is compared, such as a long forecast, with the same time between rows.

    Returns
    -------
    float in [0, 1]
        The mean over channels of ``sqrt(1 - sum_k sqrt(p[k] q[k]))``. It is 0 for equal spectra,
        and 1 for spectra without a common frequency, also if a channel of `y_pred` is constant.

    Raises
    ------
    ValueError
        If the numbers of columns differ, a series has fewer than 16 rows, a value is NaN or
        infinite, or a channel of `y_true` is constant.

    Notes
    -----
    Two finite stretches of the same series differ, too: compare a distance with that between two
    stretches of the reference. Spectra lose the distribution of the rows; see
    `sliced_wasserstein`.

    References
    ----------
    .. [1] Mikhaeil, Monfared and Durstewitz (2022), "On the difficulty of learning chaotic dynamics
       with RNNs", NeurIPS 35 (Hellinger distance between power spectra).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.metrics import power_spectrum_distance
    >>> t = np.arange(400)
    >>> slow = np.sin(0.2 * t)
    >>> others = np.sin(0.2 * t + 1), np.sin(0.8 * t)
    >>> [round(power_spectrum_distance(slow, other), 2) for other in others]
    [0.0, 0.98]
    """
    truth, other = _read_climates(y_true, y_pred)
    n_rows = min(len(truth), len(other))
    if n_rows < _FEWEST_ROWS:
        raise ValueError(
            f"A spectrum needs at least {_FEWEST_ROWS} rows; y_true has {len(truth)} and y_pred "
            f"has {len(other)}. Use longer series."
        )
    size = max(_FEWEST_ROWS // 2, n_rows // _PARTS)
    overlap = np.sqrt(_spectra(truth, size) * _spectra(other, size)).sum(axis=0)
    return float(np.sqrt(np.maximum(1.0 - overlap, 0.0)).mean())


def sliced_wasserstein(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    n_projections: int = 50,
    random_state: RandomState = None,
) -> float:
    """Return the sliced Wasserstein distance between the rows of two series.

    It compares climates: where in state space the rows are, whatever their order. The rows need
    not correspond, and the series may differ in length. Rows, in units of the standard deviations
    of `y_true`, are projected onto random directions; the result is the mean, over directions, of
    the distances in one dimension [1]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The reference: a long stretch of the true series.
    y_pred : array-like of shape (n_other,) or (n_other, n_outputs)
        The series that is compared, such as a long forecast.
    n_projections : int, default=50
        Number of random directions.
    random_state : None, int, Generator or RandomState, default=None
        Seed for drawing the directions.

    Returns
    -------
    float
        The mean distance by which values move along a direction, in standard deviations of
        `y_true`; 0 for equal rows. With one column it is the Wasserstein distance itself.

    Raises
    ------
    ValueError
        If the numbers of columns differ, a value is NaN or infinite, a column of `y_true` is
        constant, or `n_projections` is below 1.

    Notes
    -----
    Two finite stretches of the same series differ, too: compare a distance with that between two
    stretches of the reference.

    References
    ----------
    .. [1] Bonneel, Rabin, Peyre and Pfister (2015), "Sliced and Radon Wasserstein barycenters of
       measures", Journal of Mathematical Imaging and Vision 51, 22-45.

    Examples
    --------
    >>> from reservoir.metrics import sliced_wasserstein
    >>> sliced_wasserstein([-1.0, 1.0], [1.5, -0.5], random_state=0)
    0.5
    """
    n_projections = check_count("n_projections", n_projections)
    truth, other = _read_climates(y_true, y_pred)
    spread = truth.std(axis=0)
    directions = as_generator(random_state).standard_normal((n_projections, truth.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    # for each direction, the projections of all rows
    pairs = zip(directions @ (truth / spread).T, directions @ (other / spread).T, strict=True)
    return float(np.mean([wasserstein_distance(a, b) for a, b in pairs]))


def _read_climates(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, Array]:
    """Return two series as tables with the same columns; none of the reference is constant."""
    truth, other = as_table("y_true", y_true), as_table("y_pred", y_pred)
    if truth.shape[1] != other.shape[1]:
        raise ValueError(
            f"y_true has {truth.shape[1]} columns, but y_pred has {other.shape[1]}. Both need the "
            "same columns."
        )
    check_no_constant_column(truth, "y_true")
    return truth, other


def _spectra(rows: Array, size: int) -> Array:
    """Return the spectrum of each column from segments of `size` rows, with sum 1, or zeros."""
    largest = np.abs(rows).max(axis=0)
    scaled = rows / np.where(largest > 0, largest, 1.0)  # squares must not overflow
    power = welch(scaled, nperseg=size, axis=0)[1]
    total = power.sum(axis=0)
    return np.asarray(power / np.where(total > 0, total, 1.0))
