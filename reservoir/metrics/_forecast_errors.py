"""Forecast error measures: scaled errors, errors in per cent, of quantiles and of intervals."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, root_mean_squared_error
from sklearn.utils.validation import _check_sample_weight

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_count, check_number
from reservoir.metrics._errors import as_table, check_same_shape


def mase(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    y_train: ArrayLike,
    season: int = 1,
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Mean absolute scaled error: in units of the naive forecast's error in the training data.

    The mean absolute error, divided by the mean absolute error of the seasonal naive forecast
    within the training series, ``mean |y[t] - y[t - season]|``. Below 1, the forecast is better
    than naive forecasts one season ahead are on average. Series of any unit and level can be
    compared and averaged.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Forecasts.
    y_train : array-like of shape (n_train,) or (n_train, n_outputs)
        The series before the forecast, more than `season` rows. Differences with a NaN are
        excluded from the scale.
    season : int, rows, default=1
        Length of the season: 12 for months, 4 for quarters. With 1 the scale is the mean absolute
        step from one row to the next.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
        Each output has a separate scale.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the error; the scale has none.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"

    Raises
    ------
    ValueError
        If shapes differ, `y_true` or `y_pred` is not finite, `y_train` has too few rows, or one of
        its columns repeats exactly every season, so that the scale is zero.

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
    truth, forecast = _pair(y_true, y_pred, multioutput)
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
    """Root mean squared scaled error: `mase` with squares, the measure of the M5 competition.

    The root mean squared error, divided by the root mean squared error of the seasonal naive
    forecast within the training series. For a series that is zero most of the time, the mean
    absolute error is smallest for the forecast zero; the squared error, and with it this measure,
    is smallest for the mean.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Forecasts.
    y_train : array-like of shape (n_train,) or (n_train, n_outputs)
        The series before the forecast, more than `season` rows. M5 begins at the first row that is
        not zero: cut the series there to compare with it. Differences with a NaN are excluded from
        the scale.
    season : int, rows, default=1
        Length of the season; M5 uses 1.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the error; the scale has none.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"

    Raises
    ------
    ValueError
        As for `mase`.

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
    truth, forecast = _pair(y_true, y_pred, multioutput)
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

    The mean of ``200 |y_true - y_pred| / (|y_true| + |y_pred|)``, as in the M3 and M4 competitions.
    A row where both are zero counts as 0, a row where only one of them is zero as 200, however
    small the other is: for series with zeros, or with values of both signs, use `mase`.

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
        In per cent.

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
    truth, forecast = _pair(y_true, y_pred, multioutput)
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

    An error is weighted by `quantile` where the truth is above the forecast, and by
    ``1 - quantile`` where it is below; the mean over rows is smallest for the true quantile. The
    lower bound of a 90 % interval is a forecast of the quantile 0.05, the upper bound of 0.95. This
    is `sklearn.metrics.mean_pinball_loss`, whose `alpha` is the quantile.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Forecasts of the quantile.
    quantile : float in (0, 1)
        Level of the quantile; 0.5 is the median, and gives half the mean absolute error.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"
        In the units of the target.

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
    truth, forecast = _pair(y_true, y_pred, multioutput)
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
    """Share of targets inside their interval, bounds included.

    Intervals are calibrated if this is close to their nominal level: of n independent targets, the
    share inside 90 % intervals has a standard error of ``sqrt(0.9 * 0.1 / n)``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    low, high : array-like of the same shape
        Bounds; infinite ones are open.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float in [0, 1], or ndarray of shape (n_outputs,) for "raw_values"

    Raises
    ------
    ValueError
        If shapes differ, a target is not finite, a bound is NaN, or a lower bound is above the
        upper one.

    Examples
    --------
    >>> from reservoir.metrics import coverage
    >>> coverage([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0])
    0.75
    """
    _check_multioutput(multioutput)
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


def _pair(
    y_true: ArrayLike, y_pred: ArrayLike, multioutput: str | ArrayLike
) -> tuple[Array, Array]:
    """Return targets and forecasts as tables of one shape."""
    _check_multioutput(multioutput)
    truth, forecast = as_table("y_true", y_true), as_table("y_pred", y_pred)
    check_same_shape(truth, forecast)
    return truth, forecast


def _check_multioutput(multioutput: str | ArrayLike) -> None:
    if isinstance(multioutput, str):
        check_choice("multioutput", multioutput, ("raw_values", "uniform_average"))


def _mean(
    values: Array, multioutput: str | ArrayLike, sample_weight: ArrayLike | None
) -> float | Array:
    """Return the mean over the rows, by column or averaged over columns."""
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, values, ensure_non_negative=True)
    means = np.average(values, axis=0, weights=weights)
    if isinstance(multioutput, str):
        return means if multioutput == "raw_values" else float(means.mean())
    factors = np.asarray(multioutput, dtype=float)
    if factors.shape != means.shape:
        raise ValueError(
            f"multioutput has shape {factors.shape}; with one weight per output it is "
            f"{means.shape}."
        )
    return float(np.average(means, weights=factors))


def _seasonal_differences(y_train: ArrayLike, season: int, n_outputs: int) -> Array:
    """Return the errors of the seasonal naive forecast within the training series, row by row.

    Unknown differences are NaN; each column has a known one that is not zero.
    """
    season = check_count("season", season)
    train = as_table("y_train", y_train, finite="allow-nan")
    if train.shape[1] != n_outputs:
        raise ValueError(
            f"y_train has {train.shape[1]} columns and y_true {n_outputs}; they must agree."
        )
    if len(train) <= season:
        raise ValueError(
            f"season={season} needs more than {season} rows of y_train, and it has {len(train)}. "
            "Give a longer training series, or a smaller season."
        )
    steps = train[season:] - train[:-season]
    for column, values in enumerate(steps.T):
        if not np.any(values[~np.isnan(values)]):
            raise ValueError(
                f"Column {column} of y_train has no two known values {season} rows apart that "
                "differ, so errors have no scale. Use an unscaled error, or a longer y_train."
            )
    return steps
