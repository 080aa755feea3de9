"""Scores of anomalies: errors of one-step forecasts over their usual size."""

from __future__ import annotations

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count
from reservoir.metrics._errors import as_table, check_same_shape
from reservoir.metrics.robust_deviation import robust_deviation

_LEAST = 10  # rows from which a usual size is taken: of n rows no score exceeds 0.8 n
_HIGH = 0.99  # quantile above which a score says that the network has received a spike
_BLOCK = 4096  # rows whose windows are sorted together


def anomaly_scores(
    y: ArrayLike, forecasts: ArrayLike, *, window: int | None = None, skip: int = 0
) -> Array:
    """Scores of anomalies: absolute errors of one-step forecasts over their usual size.

    The usual size is a robust standard deviation: that of normal errors with the same median or
    the same mean absolute error, the greater of the two. So a few anomalies do not hide each other.
    A row is suspicious if its score is above a quantile of the scores of rows without anomalies,
    such as ``np.nanquantile(scores, 0.999)``; of normal errors 3 in 1000 exceed 3.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Observed rows; NaN where a value is missing.
    forecasts : array-like of the same shape
        The forecast of each row from the rows before it.
    window : int, rows, default=None
        Number of rows before each row, at least 10, from which the usual size is taken, for series
        whose noise changes; the first `window` rows share one size, and a row after more gaps than
        values in the window is scored by the size of all rows, as all rows are by default.
    skip : int, rows, default=0
        Number of rows after each of the highest 1 % of the scores that get NaN: the network has
        received the spike as input, so that its next forecasts are wrong as well.

    Returns
    -------
    ndarray of shape (n_samples,)
        The scores, at least 0; of several outputs the largest. NaN where all values or forecasts of
        a row are missing, and in rows that are skipped.

    Raises
    ------
    ValueError
        If shapes differ, a value is infinite, `window` is below 10 or exceeds the number of rows,
        `skip` is negative, no row has a value and a forecast, or fewer than 10 have.

    Notes
    -----
    To score rows as they arrive, keep the last 301 rows and forecasts, for example, and take the
    last of their scores with ``window=300``.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.metrics import anomaly_scores
    >>> y = np.sin(np.arange(200) / 5) + np.random.default_rng(0).normal(0, 0.1, 200)
    >>> y[150] += 1
    >>> scores = anomaly_scores(y[1:], y[:-1], skip=1)
    >>> int(np.nanargmax(scores)) + 1, bool(np.isnan(scores[150]))
    (150, True)

    The last row alone, as it would be scored when it arrives:

    >>> last = anomaly_scores(y[-101:], y[-102:-1], window=100)[-1]
    >>> bool(last == anomaly_scores(y[1:], y[:-1], window=100)[-1])
    True
    """
    truth = as_table("y", y, finite="allow-nan")
    other = as_table("forecasts", forecasts, finite="allow-nan")
    check_same_shape(truth, other, "forecasts")
    n_skipped = check_count("skip", skip, minimum=0)
    errors = np.abs(truth - other)
    if not np.isfinite(errors).any():
        raise ValueError("No row has both a value of y and a forecast: there is nothing to score.")
    _check_known(np.isfinite(errors).sum(axis=0))
    overall = robust_deviation(errors[None])[0]
    usual = overall
    if window is not None:
        usual = _usual_before(errors, _checked(window, len(errors)), overall)
    # a stretch without any error has no size of its own
    usual = np.where(usual > 0, usual, overall)
    scores = np.divide(errors, usual, out=np.zeros_like(errors), where=(errors > 0) & (usual > 0))
    scores = np.where(np.isnan(errors), -np.inf, scores).max(axis=1)
    scores[np.isneginf(scores)] = np.nan
    return _without_echoes(scores, n_skipped)


def _check_known(counts: Array) -> None:
    """Raise if an output has errors, but of too few rows for a usual size."""
    few = np.flatnonzero((counts > 0) & (counts < _LEAST))
    if len(few):
        raise ValueError(
            f"Output {few[0]} has {counts[few[0]]} rows with a value of y and a forecast; the "
            f"usual size of errors needs {_LEAST}. To score rows as they arrive, pass the latest, "
            "such as 301 with window=300, and take the last score."
        )


def _checked(window: int, n_rows: int) -> int:
    count = check_count("window", window, minimum=_LEAST)
    if count > n_rows:
        raise ValueError(f"window={count} is longer than y, which has {n_rows} rows. Lower it.")
    return count


def _usual_before(errors: Array, window: int, overall: Array) -> Array:
    """Return the usual size in the `window` rows before each row, or overall if most are gaps."""
    n_rows = len(errors)
    usual = np.empty_like(errors)
    usual[:window] = robust_deviation(errors[None, :window])[0]
    views = np.lib.stride_tricks.sliding_window_view(errors, window, axis=0)
    for first in range(window, n_rows, _BLOCK):
        last = min(first + _BLOCK, n_rows)
        parts = views[first - window : last - window]  # (n, n_outputs, window)
        few = np.isfinite(parts).sum(axis=2) < window / 2
        usual[first:last] = np.where(few, overall, robust_deviation(np.moveaxis(parts, 2, 1)))
    return usual


def _without_echoes(scores: Array, skip: int) -> Array:
    """Return scores with NaN in the rows after each of the highest."""
    if skip:
        high = scores > np.nanquantile(scores, _HIGH)
        t = 0
        while t < len(scores):
            if high[t]:
                scores[t + 1 : t + 1 + skip] = np.nan
                t += skip
            t += 1
    return scores
