"""Errors of forecasts: the normalised root mean squared error, and the valid prediction time."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import root_mean_squared_error
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from reservoir._typing import Array, ArrayLike
from reservoir._validation import as_plain, check_choice, check_number, check_real
from reservoir._validation.kinds import check_has_rows, check_numeric, na_as_nan


def nrmse(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    normalization: str = "std",
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Normalised root mean squared error, in units of the target's standard deviation or range.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Predictions.
    normalization : {"std", "range"}, default="std"
        Whether to divide by the standard deviation of the target or by its range. "std" is the
        population standard deviation, so that the square of the result is the NMSE of the
        literature and equals 1 - R^2: 0 is a perfect prediction, and 1 is as good as predicting the
        mean.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
        The error of each output is divided by that output's standard deviation or range first.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, both in the error and in the standard deviation.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"
        The normalised error.

    Raises
    ------
    ValueError
        If shapes differ, a value is NaN or infinite, or an output of `y_true` is constant.

    References
    ----------
    .. [1] Lukosevicius and Jaeger (2009), "Reservoir computing approaches to recurrent neural
       network training", Computer Science Review 3, 127-149, section 2.

    Examples
    --------
    >>> from reservoir.metrics import nrmse
    >>> round(nrmse([1.0, 2.0, 3.0, 4.0], [1.1, 2.1, 3.1, 4.1]), 4)
    0.0894
    >>> nrmse([1.0, 2.0, 3.0, 4.0], [2.5, 2.5, 2.5, 2.5])
    1.0
    """
    check_choice("normalization", normalization, ("std", "range"))
    truth, forecast = read_pair(y_true, y_pred, multioutput, sample_weight)
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, truth, ensure_non_negative=True)
    # dividing both series first keeps the squares in range
    spread = _spread(truth, weights, normalization)
    with np.errstate(over="ignore"):  # an error beyond the largest float is inf
        return root_mean_squared_error(
            truth / spread, forecast / spread, sample_weight=weights, multioutput=multioutput
        )


def valid_time(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    threshold: float = 0.3,
    dt: float = 1.0,
    lyapunov_time: float | None = None,
    scale: ArrayLike | None = None,
) -> float:
    """Return the valid prediction time: how long a forecast of a chaotic series stays accurate.

    The error at a step is ``e(t) = sqrt(mean_j ((y_pred[t, j] - y_true[t, j]) / scale[j])**2)``:
    the root mean square over channels of the errors, each in units of its channel's standard
    deviation. The valid time is k dt / lyapunov_time, where k is the number of steps before the
    first step with ``e(t) > threshold``.

    Parameters
    ----------
    y_true : array-like of shape (n_steps,) or (n_steps, n_features)
        The true continuation; row 0 is the first step that was forecast.
    y_pred : array-like of the same shape
        The forecast. A value that is not finite counts as an error above the threshold, so that
        forecasts that diverge can be evaluated.
    threshold : float, default=0.3
        Largest tolerated error, in standard deviations. Publications use 0.2 to 0.5.
    dt : float, time units of the system, default=1.0
        Time between two rows.
    lyapunov_time : float, time units of the system, default=None
        The Lyapunov time of the system, in multiples of which the result is expressed; see
        `reservoir.datasets.LYAPUNOV_TIME` for examples. If None, the result is in the time units of
        the system, which are steps if `dt` is 1.
    scale : array-like of shape (n_features,), default=None
        Standard deviation of each channel. If None, it is computed from `y_true`. This is a poor
        estimate if `y_true` is only a few Lyapunov times long: pass the standard deviation of the
        training series instead.

    Returns
    -------
    float
        The valid time. If the error never exceeds the threshold, the result is the duration of
        `y_true`, which is a lower bound of the valid time.

    Raises
    ------
    ValueError
        If shapes differ, `y_true` contains NaN or inf, a parameter is outside its range, or a
        channel is constant and `scale` is not given.

    References
    ----------
    .. [1] Vlachas, Pathak, Hunt, Sapsis, Girvan, Ott and Koumoutsakos (2020), "Backpropagation
       algorithms and reservoir computing in recurrent neural networks for the forecasting of
       complex spatiotemporal dynamics", Neural Networks 126, 191-217 (valid prediction time).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir.metrics import valid_time
    >>> y = np.array([1.0, -1.0, 1.0, -1.0])
    >>> valid_time(y, y + [0.0, 0.1, 0.2, 0.5], dt=0.5)
    1.5
    """
    threshold = check_number("threshold", threshold, low=0.0, low_open=True)
    dt = check_number("dt", dt, low=0.0, low_open=True)
    unit = 1.0 if lyapunov_time is None else lyapunov_time
    unit = check_number("lyapunov_time", unit, low=0.0, low_open=True)
    truth, forecast = as_table("y_true", y_true), as_table("y_pred", y_pred, finite=False)
    check_same_shape(truth, forecast)
    # the unit of the error of each channel
    if scale is None:
        spread = _spread(truth, None, "std")
    else:
        spread = np.atleast_1d(as_plain("scale", scale, float))
        if spread.shape != truth.shape[1:] or not (np.isfinite(spread) & (spread > 0)).all():
            raise ValueError(
                f"scale={scale!r} must contain one positive finite number per channel; y_true has "
                f"{truth.shape[1]} channels."
            )
    # the first step beyond the threshold
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.sqrt((((forecast - truth) / spread) ** 2).mean(axis=1))
    beyond = np.flatnonzero(~(error <= threshold))  # NaN is beyond
    steps = int(beyond[0]) if beyond.size else len(truth)
    return steps * dt / unit


def read_pair(
    y_true: ArrayLike, y_pred: ArrayLike, multioutput: Any, sample_weight: Any
) -> tuple[Array, Array]:
    """Return targets and forecasts as tables of the same shape, after checks of all arguments."""
    check_averaging(multioutput, sample_weight)
    truth, forecast = as_table("y_true", y_true), as_table("y_pred", y_pred)
    check_same_shape(truth, forecast)
    return truth, forecast


def check_averaging(multioutput: Any, sample_weight: Any) -> None:
    """Check the arguments that define an average: a name, and arrays without hidden values."""
    if isinstance(multioutput, str):
        check_choice("multioutput", multioutput, ("raw_values", "uniform_average"))
    for name, given in (("multioutput", multioutput), ("sample_weight", sample_weight)):
        check_real(name, given)


def check_same_shape(truth: Array, other: Array, name: str = "y_pred") -> None:
    """Raise if a table, which messages refer to as `name`, does not have the targets' shape."""
    if truth.shape != other.shape:
        raise ValueError(
            f"y_true has shape {truth.shape}, but {name} has shape {other.shape}. Both need the "
            "same shape: truncate the longer one."
        )


def _spread(truth: Array, weights: Array | None, normalization: str) -> Array:
    """Return the standard deviation or the range of each column; `normalization` is as in `nrmse`.

    For the standard deviation, columns are divided by their largest modulus first, so that squares
    cannot overflow.
    """
    check_no_constant_column(truth if weights is None else truth[weights > 0], "y_true")
    if normalization == "range":
        return np.ptp(truth if weights is None else truth[weights > 0], axis=0)
    largest = np.abs(truth).max(axis=0)
    scaled = truth / largest
    centred = scaled - np.average(scaled, axis=0, weights=weights)
    return largest * np.sqrt(np.average(centred**2, axis=0, weights=weights))


def as_table(name: str, values: ArrayLike, *, finite: bool | str = True) -> Array:
    """Return values of shape (n,) or (n, n_columns) as a two-dimensional float64 array.

    If `finite` is True, NaN and infinity raise; if it is "allow-nan", only infinity raises.
    """
    check_has_rows(name, values, "(n,) or (n, n_columns)")
    check_numeric(name, values, remedy="For class labels, use the metrics of scikit-learn.")
    options: Any = {"ensure_2d": False, "ensure_all_finite": finite, "input_name": name}
    table = check_array(na_as_nan(values), dtype=np.float64, allow_nd=True, **options)
    if table.ndim not in (1, 2):
        raise ValueError(f"{name} has shape {table.shape}; (n,) or (n, n_columns) is required.")
    return table.reshape(len(table), -1)


def check_no_constant_column(table: Array, name: str) -> None:
    """Raise if a column is constant, because errors cannot be scaled by its spread."""
    constant = np.flatnonzero(np.ptp(table, axis=0) == 0.0)
    if constant.size:
        raise ValueError(
            f"Column {constant[0]} of {name} is constant ({table[0, constant[0]]:g}), so errors "
            "cannot be scaled by its spread. Drop it, or use a longer series."
        )
