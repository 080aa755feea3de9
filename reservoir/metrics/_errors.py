"""Errors of forecasts: the normalised root mean squared error, and the valid prediction time."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import root_mean_squared_error
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_number
from reservoir._validation.kinds import check_dense, check_has_rows, check_no_text


def nrmse(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    normalization: str = "std",
    multioutput: str | ArrayLike = "uniform_average",
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """Normalised root mean squared error: in units of the target's standard deviation or range.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    y_pred : array-like of the same shape
        Predictions.
    normalization : {"std", "range"}, default="std"
        Divide by the standard deviation of the target, or by its range. The former is the
        population standard deviation, so that the square is the NMSE of the literature and equals
        1 - R^2: 0 is perfect, 1 is as good as predicting the mean.
    multioutput : {"raw_values", "uniform_average"} or array-like of shape (n_outputs,), \
default="uniform_average"
        As in scikit-learn: one value per output, their mean, or their mean with these weights.
        Each output is first divided by its spread.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the error and in the standard deviation.

    Returns
    -------
    float, or ndarray of shape (n_outputs,) for "raw_values"

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
    if isinstance(multioutput, str):
        check_choice("multioutput", multioutput, ("raw_values", "uniform_average"))
    truth, forecast = as_table("y_true", y_true), as_table("y_pred", y_pred)
    check_same_shape(truth, forecast)
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
    """Return the valid prediction time: how long a chaotic forecast stays close to the truth.

    The error at a step is ``e(t) = sqrt(mean_j ((y_pred[t, j] - y_true[t, j]) / scale[j])**2)``,
    the root mean square over the channels of the error in units of each channel's standard
    deviation. The valid time is k dt / lyapunov_time, k the number of steps before the first one
    with ``e(t) > threshold``.

    Parameters
    ----------
    y_true : array-like of shape (n_steps,) or (n_steps, n_features)
        The true continuation; row 0 is the first step that was forecast.
    y_pred : array-like of the same shape
        The forecast. A value that is not finite counts as an error above the threshold, so
        forecasts that diverge can be measured.
    threshold : float, default=0.3
        Largest tolerated error, in standard deviations. Publications use 0.2 to 0.5.
    dt : float, time units of the system, default=1.0
        Time between two rows.
    lyapunov_time : float, time units of the system, default=None
        The Lyapunov time, in which the result is expressed; for instance from
        `reservoir.datasets.LYAPUNOV_TIME`. None gives the result in the time units of the system
        (in steps, if dt is 1).
    scale : array-like of shape (n_features,), default=None
        Standard deviation of each channel. None computes it from `y_true`, which is a poor estimate
        if `y_true` is only a few Lyapunov times long: compute it from the training series.

    Returns
    -------
    float
        If the error never exceeds the threshold, the length of `y_true`: the valid time is then
        at least that.

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
        spread = np.atleast_1d(np.asarray(scale, dtype=float))
        if spread.shape != truth.shape[1:] or not (np.isfinite(spread) & (spread > 0)).all():
            raise ValueError(
                f"scale={scale!r} must contain one positive finite number per channel; y_true has "
                f"{truth.shape[1]}."
            )
    # the first step beyond the threshold
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.sqrt((((forecast - truth) / spread) ** 2).mean(axis=1))
    beyond = np.flatnonzero(~(error <= threshold))  # NaN is beyond
    steps = int(beyond[0]) if beyond.size else len(truth)
    return steps * dt / unit


def check_same_shape(truth: Array, other: Array, name: str = "y_pred") -> None:
    """Check that a table, called `name` in messages, has the shape of the targets."""
    if truth.shape != other.shape:
        raise ValueError(
            f"y_true has shape {truth.shape}, {name} {other.shape}: they must agree. Truncate the "
            "longer one."
        )


def _spread(truth: Array, weights: Array | None, normalization: str) -> Array:
    """Return the standard deviation or the range of each column, for `normalization` as in `nrmse`.

    Columns are divided by their largest modulus first, so that squares cannot overflow.
    """
    check_no_constant_column(truth if weights is None else truth[weights > 0], "y_true")
    if normalization == "range":
        return np.ptp(truth if weights is None else truth[weights > 0], axis=0)
    largest = np.abs(truth).max(axis=0)
    scaled = truth / largest
    centred = scaled - np.average(scaled, axis=0, weights=weights)
    return largest * np.sqrt(np.average(centred**2, axis=0, weights=weights))


def as_table(name: str, values: ArrayLike, *, finite: bool | str = True) -> Array:
    """Return values of shape (n,) or (n, n_columns) as a float64 array of two dimensions.

    `finite`: whether to reject NaN and infinity; "allow-nan" rejects infinity only.
    """
    check_has_rows(name, values, "(n,) or (n, n_columns)")
    check_dense(name, values)
    check_no_text(name, values, "For labels use the metrics of scikit-learn.")
    table = check_array(
        values, dtype=np.float64, ensure_2d=False, ensure_all_finite=finite, input_name=name
    )
    if table.ndim not in (1, 2):
        raise ValueError(f"{name} has shape {table.shape}; (n,) or (n, n_columns) is required.")
    return table.reshape(len(table), -1)


def check_no_constant_column(table: Array, name: str) -> None:
    """Check that no column is constant, without a spread to measure errors in."""
    constant = np.flatnonzero(np.ptp(table, axis=0) == 0.0)
    if constant.size:
        raise ValueError(
            f"Column {constant[0]} of {name} is constant ({table[0, constant[0]]:g}), so it has "
            "no spread to measure errors in. Drop it, or use a longer series."
        )
