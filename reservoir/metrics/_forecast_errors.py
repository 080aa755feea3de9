"""Error measures of point forecasts, of quantile forecasts and of interval forecasts."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, root_mean_squared_error
from sklearn.utils.validation import _check_sample_weight

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_count, check_number
from reservoir.metrics._errors import as_table, check_averaging, check_same_shape, read_pair


def mase(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    y_train: ArrayLike,
    season: int = 1,
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Mean absolute scaled error: the error relative to naive forecasts of the training series.

    It is the mean absolute error divided by the mean absolute error of the seasonal naive forecast
    within the training series, ``mean |y[t] - y[t - season]|``. A value below 1 means that the
    forecast is better than the average naive forecast one season ahead. The errors of series with
    different units and levels can be compared and averaged.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Forecasts.
    y_train : array-like of shape (n_train,) or (n_train, n_outputs)
        The series before the forecast, with more than `season` rows. Differences that involve a NaN
        are excluded from the scale.
    season : int, rows, default=1
        Length of the season, for example 12 for monthly and 4 for quarterly data. With 1, the scale
        is the mean absolute difference between consecutive rows.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
        Each output has a separate scale.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the error; the scale is not weighted.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"
        The scaled error.

    Raises
    ------
    ValueError
        If shapes differ, `y_true` or `y_pred` is not finite, `y_train` has too few rows, or a
        column of `y_train` repeats exactly every season, so that the scale is zero.

    References
    ----------
    .. [1] Hyndman and Koehler (2006), "Another look at measures of forecast accuracy",
       International Journal of Forecasting 22, 679-688.

    Examples
    --------
    >>> from reservoir.metrics import mase
    >>> mase([5.0, 6.0], [5.5, 6.5], y_train=[1.0, 2.0, 3.0, 4.0])
    0.5
    """
    truth, forecast = read_pair(y_true, y_pred, multioutput, sample_weight)
    scale = np.nanmean(np.abs(_seasonal_differences(y_train, season, truth.shape[1])), axis=0)
    with np.errstate(over="ignore"):  # an error beyond the largest float is inf
        return mean_absolute_error(
            truth / scale, forecast / scale, sample_weight=sample_weight, multioutput=multioutput
        )


def rmsse(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    y_train: ArrayLike,
    season: int = 1,
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Root mean squared scaled error, the measure of the M5 competition: `mase` for squared errors.

    It is the root mean squared error divided by the root mean squared error of the seasonal naive
    forecast within the training series. For a series that is zero most of the time, a forecast of
    zero minimises the mean absolute error; a forecast of the mean minimises the squared error, and
    therefore this measure.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Forecasts.
    y_train : array-like of shape (n_train,) or (n_train, n_outputs)
        The series before the forecast, with more than `season` rows. In M5, each series begins at
        its first row that is not zero: remove the rows before it for comparable results.
        Differences that involve a NaN are excluded from the scale.
    season : int, rows, default=1
        Length of the season; M5 uses 1.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the error; the scale is not weighted.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"
        The scaled error.

    Raises
    ------
    ValueError
        In the same cases as `mase`.

    References
    ----------
    .. [1] Makridakis, Spiliotis and Assimakopoulos (2022), "M5 accuracy competition: results,
       findings, and conclusions", International Journal of Forecasting 38, 1346-1364, equation 1.

    Examples
    --------
    >>> from reservoir.metrics import rmsse
    >>> rmsse([5.0, 6.0], [5.0, 9.0], y_train=[1.0, 4.0, 1.0, 4.0])
    0.7071067811865476
    """
    truth, forecast = read_pair(y_true, y_pred, multioutput, sample_weight)
    steps = _seasonal_differences(y_train, season, truth.shape[1])
    largest = np.nanmax(np.abs(steps), axis=0)  # dividing by it first keeps the squares in range
    scale = largest * np.sqrt(np.nanmean((steps / largest) ** 2, axis=0))
    with np.errstate(over="ignore"):
        return root_mean_squared_error(
            truth / scale, forecast / scale, sample_weight=sample_weight, multioutput=multioutput
        )


def smape(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Symmetric mean absolute percentage error, from 0 to 200 per cent.

    It is the mean of ``200 |y_true - y_pred| / (|y_true| + |y_pred|)``, as in the M3 and M4
    competitions. A row in which both values are zero counts as 0. A row in which only one of them
    is zero counts as 200, however small the other value is: for series with zeros, or with values
    of both signs, use `mase`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Forecasts.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"
        The error in per cent.

    Raises
    ------
    ValueError
        If shapes differ, or a value is NaN or infinite.

    References
    ----------
    .. [1] Makridakis (1993), "Accuracy measures: theoretical and practical concerns",
       International Journal of Forecasting 9, 527-529.
    .. [2] Makridakis and Hibon (2000), "The M3-Competition: results, conclusions and
       implications", International Journal of Forecasting 16, 451-476.

    Examples
    --------
    >>> from reservoir.metrics import smape
    >>> smape([100.0, 0.0], [300.0, 0.0])
    50.0
    """
    truth, forecast = read_pair(y_true, y_pred, multioutput, sample_weight)
    # halves: the sum of two finite numbers may be infinite
    size = np.abs(truth) / 2 + np.abs(forecast) / 2
    ratio = np.zeros_like(size)
    np.divide(np.abs(truth / 2 - forecast / 2), size, out=ratio, where=size > 0)
    return _mean(200 * ratio, multioutput, sample_weight)


def pinball(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    quantile: float,
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Pinball loss: the error measure of quantile forecasts.

    Absolute errors are weighted by `quantile` where the target is above the forecast, and by
    ``1 - quantile`` where the target is below it; their mean over rows is smallest for the true
    quantile. The lower bound of a 90 % interval is a forecast of the quantile 0.05, and the upper
    bound is a forecast of the quantile 0.95. The measure equals
    `sklearn.metrics.mean_pinball_loss` with `alpha` set to `quantile`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Forecasts of the quantile.
    quantile : float in (0, 1)
        Level of the quantile. For 0.5, the median, the loss is half the mean absolute error.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"
        The loss, in the units of the target.

    Raises
    ------
    ValueError
        If shapes differ, a value is NaN or infinite, or `quantile` is not between 0 and 1.

    Examples
    --------
    >>> from reservoir.metrics import pinball
    >>> pinball([1.0, 1.0], [0.0, 2.0], quantile=0.75)
    0.5
    """
    quantile = check_number("quantile", quantile, low=0.0, high=1.0, low_open=True, high_open=True)
    truth, forecast = read_pair(y_true, y_pred, multioutput, sample_weight)
    return mean_pinball_loss(
        truth, forecast, alpha=quantile, sample_weight=sample_weight, multioutput=multioutput
    )


def coverage(
    y_true: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Coverage of interval forecasts: the fraction of targets that are within their interval.

    Targets at a bound count as within the interval. Intervals are calibrated if the coverage is
    close to their nominal level: for n independent targets, the coverage of 90 % intervals has a
    standard error of ``sqrt(0.9 * 0.1 / n)``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    low, high : array-like of the same shape
        Lower and upper bounds of the intervals. An interval with an infinite bound is unbounded on
        that side.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float in [0, 1], or ndarray of shape (n_outputs,) for "raw_values"
        The coverage.

    Raises
    ------
    ValueError
        If shapes differ, a target is not finite, a bound is NaN, or a lower bound is above the
        upper bound.

    Examples
    --------
    >>> from reservoir.metrics import coverage
    >>> coverage([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0])
    0.75
    """
    check_averaging(multioutput, sample_weight)
    truth = as_table("y_true", y_true)
    bounds = []
    for name, values in (("low", low), ("high", high)):
        bound = as_table(name, values, finite=False)
        check_same_shape(truth, bound, name)
        if np.isnan(bound).any():
            row = int(np.argwhere(np.isnan(bound))[0, 0])
            raise ValueError(f"{name} is NaN in row {row}. Drop this row from all three arrays.")
        bounds.append(bound)
    crossed = np.argwhere(bounds[0] > bounds[1])
    if crossed.size:
        row, column = crossed[0]
        raise ValueError(
            f"low={bounds[0][row, column]:g} is above high={bounds[1][row, column]:g} in row "
            f"{row}, column {column}. Swap them, or sort the bounds row by row."
        )
    inside = (bounds[0] <= truth) & (truth <= bounds[1])
    return _mean(inside.astype(float), multioutput, sample_weight)


def _mean(
    values: Array, multioutput: str | ArrayLike, sample_weight: ArrayLike | None
) -> float | Array:
    """Return the mean over rows for each column, or its average over columns."""
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, values, ensure_non_negative=True)
    means = np.average(values, axis=0, weights=weights)
    if isinstance(multioutput, str):
        return means if multioutput == "raw_values" else float(means.mean())
    factors = as_plain("multioutput", multioutput, float)
    if factors.shape != means.shape:
        raise ValueError(
            f"multioutput has shape {factors.shape}, but one weight per output is required: shape "
            f"{means.shape}."
        )
    return float(np.average(means, weights=factors))


def _seasonal_differences(y_train: ArrayLike, season: int, n_outputs: int) -> Array:
    """Return the errors of the seasonal naive forecast within the training series, row by row.

    Differences that involve a NaN are NaN. Raise if a column has no other difference that is not
    zero.
    """
    season = check_count("season", season)
    train = as_table("y_train", y_train, finite="allow-nan")
    if train.shape[1] != n_outputs:
        raise ValueError(
            f"y_train has {train.shape[1]} columns, but y_true has {n_outputs}. Both need the same "
            "number of columns."
        )
    if len(train) <= season:
        raise ValueError(
            f"season={season} needs more than {season} rows in y_train, which has {len(train)}. "
            "Pass a longer training series, or use a smaller season."
        )
    steps = train[season:] - train[:-season]
    for column, values in enumerate(steps.T):
        if not np.any(values[~np.isnan(values)]):
            raise ValueError(
                f"Column {column} of y_train has no two known values {season} rows apart that "
                "differ, so errors cannot be scaled. Use an unscaled error, or a longer y_train."
            )
    return steps
