"""Functions that fill gaps in a series from both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from reservoir._tables.frames import is_pandas, n_dimensions, n_levels, read_one
from reservoir._typing import Array, ArrayLike
from reservoir._validation import (
    check_choice,
    check_count,
    check_instance,
    check_numbers,
)
from reservoir._validation.index import index_of, warn_if_irregular
from reservoir._validation.order import check_index
from reservoir.dynamics.fed_back import as_limits, changed
from reservoir.estimators.forecasting.forecast import forecast
from reservoir.estimators.forecasting.loop_trials import run_trials
from reservoir.estimators.progress import widened

__all__ = ["fill_gap", "fill_gaps"]


_N_ORIGINS = 16  # loops by which each direction is scored
_WARM_UP = 30  # rows before the origin of such a loop
_LOST = 1e100  # squared error of a loop that has diverged


def fill_gap(
    forward: Any,
    backward: Any,
    n_steps: int,
    *,
    before: ArrayLike,
    after: ArrayLike,
    exog: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    clip: Any = True,
) -> Array:
    """Fill the gap between two segments of a series, from both sides.

    One model runs forwards into the gap from the rows before it; another, trained on the reversed
    series, runs backwards from the rows after it. The result is the weighted mean of both runs, in
    which each has its largest weight where it begins.

    Parameters
    ----------
    forward, backward : fitted ESNRegressor, NVARRegressor, RNNRegressor, or a wrapper of one
        Trained to predict their own next inputs, on arrays: `forward` on
        ``make_forecast_pairs(y, exog=exog)``, `backward` on
        ``make_forecast_pairs(y[::-1], exog=exog[::-1])``. The supported wrappers are those of
        `reservoir.forecast`.
    n_steps : int
        Number of rows in the gap.
    before : array of shape (n_before,) or (n_before, n_outputs)
        The rows before the gap, in the order of time; at least one.
    after : array of shape (n_after,) or (n_after, n_outputs)
        The rows after the gap, in the order of time; at least one.
    exog : array of shape (n_before + n_steps + n_after, n_exog), optional
        Exogenous variables, which are known in all rows, including the gap.
    weights : array of shape (n_steps,) or (n_steps, n_outputs), values in [0, 1], optional
        Weight of the backward run in each row; by default (k + 1) / (n_steps + 1) in row k.
    clip : bool, (low, high) or callable, default=True
        Bounds of the feedback, as in `reservoir.forecast`; True keeps it near the training targets.

    Returns
    -------
    array of shape (n_steps,) or (n_steps, n_outputs)

    Raises
    ------
    ValueError
        If n_steps < 1; if `before` or `after` has no rows or a missing value; if `exog` has another
        number of rows; if `weights` has another shape or a value outside [0, 1]; or if
        `reservoir.forecast` raises it.

    Warns
    -----
    RuntimeWarning
        As `reservoir.forecast`.

    See Also
    --------
    fill_gaps : Fits the models, and fills all gaps of a series at once.

    Notes
    -----
    For a random walk the mean weighted by distance is the expectation given both ends. Schuster and
    Paliwal (1997, section II) average the outputs of two networks that were trained in the two
    directions of time.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor, fill_gap
    >>> from reservoir.model_selection import make_forecast_pairs
    >>> series = np.sin(0.3 * np.arange(600))
    >>> known = series[:400]
    >>> model = ESNRegressor(100, random_state=0)
    >>> forward = model.fit(*make_forecast_pairs(known))
    >>> backward = ESNRegressor(100, random_state=0).fit(*make_forecast_pairs(known[::-1]))
    >>> filled = fill_gap(forward, backward, 50, before=series[400:450], after=series[500:])
    >>> bool(abs(filled - series[450:500]).max() < 0.05)
    True
    """
    n_steps = check_count("n_steps", n_steps)
    sides = {"before": _known_rows("before", before), "after": _known_rows("after", after)}
    first, last = sides["before"], sides["after"]
    if first.shape[1:] != last.shape[1:]:
        raise ValueError(
            f"before has shape {first.shape}, but after has shape {last.shape}. The shapes may "
            "differ only in the number of rows."
        )
    n_rows = len(first) + n_steps + len(last)
    known = None if exog is None else _known_rows("exog", exog, n_rows)
    gap = np.full((n_steps, *first.shape[1:]), np.nan)
    rows = np.concatenate([first, gap, last])
    place = slice(len(first), len(first) + n_steps)
    ahead = run_into(forward, rows, known, place, clip)
    back = run_into(backward, rows[::-1], _reversed(known), mirrored(place, n_rows), clip)
    share = _by_distance(ahead) if weights is None else _shares(weights, ahead)
    return _blended(ahead, back[::-1], share)


def fill_gaps(
    y: Any,
    model: Any,
    *,
    exog: Any = None,
    weights: str = "error",
    clip: Any = True,
    min_rows: int = 30,
    n_context: int = 1000,
) -> Any:
    """Fill the missing values of a series, from both sides of each gap.

    The known values are standardised, and two copies of the model are fitted on all segments
    without a gap, one forwards in time, one backwards. Both are run into each gap, and their
    results are averaged with weights that depend on the error of each after the same number of
    steps. A gap at the beginning or at the end of the series is filled from one side.

    Parameters
    ----------
    y : array of shape (n_samples,) or (n_samples, n_outputs), Series or DataFrame
        Rows at equal steps of time; missing values are NaN. A row with any missing value belongs to
        a gap: its other values are kept, but the loops do not use them. Columns without missing
        values belong in `exog`.
    model : ESNRegressor, NVARRegressor or RNNRegressor, or a search for one
        Fitted, on a list of segments, to predict the next row. It is cloned and not changed.
    exog : array of shape (n_samples,) or (n_samples, n_exog), Series or DataFrame, optional
        Known variables of every row, including rows in gaps.
    weights : {"error", "distance"}, default="error"
        "error": the weight of each direction in a row is the inverse of its squared error after
        the same number of steps, measured in loops of the length of the longest gap from up to 16
        origins in the known segments. "distance": the mean of `fill_gap`; also used if gaps are too
        long for such loops. A dissipative system cannot be run backwards for long, but "distance"
        weights both directions equally.
    clip : bool, (low, high) or callable, default=True
        Bounds of the feedback, as in `reservoir.forecast`, in the units of y; True keeps it near
        the known values. It is applied to the filled values as well.
    min_rows : int, default=30
        Shorter segments between two gaps are not used for training.
    n_context : int, default=1000
        Maximum number of rows next to a gap on which the network warms up before it fills the gap;
        earlier gaps among them contain the values filled in the same direction.

    Returns
    -------
    array, Series or DataFrame
        A copy of y, in floating point, without missing values; known values are unchanged.

    Raises
    ------
    ValueError
        If a value is infinite, no segment has `min_rows` rows, `exog` has another number of rows, a
        missing value, or another index than y, or the model rejects the data.
    TypeError
        If the model does not support a list of segments, such as a Pipeline or ESNForecaster, or if
        y is no table, or is masked, sparse or of dates.

    Warns
    -----
    RuntimeWarning
        As `reservoir.forecast`.
    UserWarning
        If the index of y is not regular.

    See Also
    --------
    fill_gap : Fills one gap with fitted models.
    ESNForecaster : Forecasts series that have missing values without filling them.

    Notes
    -----
    To measure the accuracy, remove known values and compare. If `exog` largely determines the
    values in the gaps, a model that predicts them from `exog` alone, without a loop, is often
    better (``missing_targets="skip"``).

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import ESNRegressor, fill_gaps
    >>> series = np.sin(0.3 * np.arange(600))
    >>> y = series.copy()
    >>> y[300:340] = np.nan
    >>> filled = fill_gaps(y, ESNRegressor(100, random_state=0))
    >>> bool(abs(filled - series).max() < 0.05)
    True
    """
    check_choice("weights", weights, ("error", "distance"))
    min_rows = check_count("min_rows", min_rows, minimum=2)
    n_context = check_count("n_context", n_context)
    rows = _rows("y", y, allow_nan=True)
    index = index_of(y)
    if index is not None:
        check_index("y", index, continues=True)
        warn_if_irregular("y", index, np.array([0]))
    known = None if exog is None else _known_rows("exog", exog, len(rows))
    _check_same_index(index, index_of(exog))
    missing = np.asarray(np.isnan(rows.reshape(len(rows), -1)).any(axis=1))
    if missing.any():
        _check_model(model)
        segments = _segments(missing, min_rows)
        units = _Units.of(rows[~missing])
        longest = max(gap.stop - gap.start for gap in runs_of(missing))
        scaled, clip = units.scaled(rows), units.clip(clip)
        bounded = bounds_of_rows(clip, scaled[~missing])
        task = OneDirection(
            model, segments, clip, bounded, n_context, longest * (weights == "error")
        )
        known = None if known is None else _Units.of(known).scaled(known)
        ahead, errors = task.filled(scaled, known, missing)
        turned, errors_back = task.reversed(len(rows)).filled(
            scaled[::-1], _reversed(known), missing[::-1]
        )
        back = turned[::-1]
        for gap in runs_of(missing):
            share = _by_error(errors, errors_back, ahead[gap])
            found = units.back(_blended(ahead[gap], back[gap], share))
            rows[gap] = np.where(np.isnan(rows[gap]), found, rows[gap])
    return _wrapped(y, rows)


class _Units(NamedTuple):
    """Means and standard deviations of columns, for standardisation and its inverse."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, rows: Array) -> _Units:
        """Return the units of known rows; the scale of a constant column is 1."""
        deviation = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def scaled(self, rows: Array) -> Array:
        """Return standardised rows."""
        return (rows - self.mean) / self.scale

    def back(self, rows: Array) -> Array:
        """Return standardised rows in the original units."""
        return rows * self.scale + self.mean

    def clip(self, clip: Any) -> Any:
        """Return `clip` for standardised rows."""
        if callable(clip):
            return lambda row: self.scaled(np.asarray(clip(self.back(row)), dtype=np.float64))
        if clip is None or isinstance(clip, (bool, np.bool_)):
            return clip
        low, high = as_limits(clip, np.size(self.mean), np.float64)  # type: ignore[misc]
        return self.scaled(low), self.scaled(high)


def _blended(ahead: Array, back: Array, share: Array) -> Array:
    """Return the mean of two runs into a gap, with weight `share` for the second; ignore NaN."""
    both = (1 - share) * ahead + share * back
    return np.where(np.isnan(back), ahead, np.where(np.isnan(ahead), back, both))


def _by_distance(rows: Array) -> Array:
    """Return the weight of the backward run in each row of a gap, by distance."""
    n = len(rows)
    return (np.arange(1, n + 1) / (n + 1)).reshape(-1, *[1] * (rows.ndim - 1))


def _by_error(ahead: Array | None, back: Array | None, rows: Array) -> Array:
    """Return the weight of the backward run in each row of a gap, by mean squared errors."""
    if ahead is None or back is None:
        return _by_distance(rows)
    tiny = np.finfo(float).tiny  # both may be perfect
    first, second = ahead[: len(rows)] + tiny, back[: len(rows)][::-1] + tiny
    return first / (first + second)


def _shares(weights: Any, rows: Array) -> Array:
    """Return weights as shares of the shape of a gap, after checks."""
    share = check_numbers("weights", weights).astype(np.float64)
    if share.shape not in ((len(rows),), rows.shape) or not ((share >= 0) & (share <= 1)).all():
        raise ValueError(
            f"weights must be between 0 and 1, of shape ({len(rows)},) or {rows.shape}; got shape "
            f"{share.shape} and values between {share.min(initial=np.inf):.6g} and "
            f"{share.max(initial=-np.inf):.6g}."
        )
    return share.reshape(len(rows), -1) if rows.ndim == 2 else share


def _segments(missing: Array, min_rows: int) -> list[slice]:
    """Return the segments of known rows that are long enough for training."""
    known = list(runs_of(~missing))
    long_enough = [s for s in known if s.stop - s.start >= min_rows]
    if not long_enough:
        longest = max((s.stop - s.start for s in known), default=0)
        raise ValueError(
            f"No segment of y without a missing value has min_rows={min_rows} rows for training: "
            f"the longest has {longest}. Lower min_rows, or interpolate short gaps first."
        )
    return long_enough


def _check_model(model: Any) -> None:
    """Check that the model can be trained on lists of segments."""
    check_instance("model", model)
    name = type(model).__name__
    if isinstance(model, (Pipeline, TransformedTargetRegressor)):
        raise TypeError(
            f"fill_gaps needs the network itself, but got a {name}, whose steps do not accept a "
            "list of segments. fill_gaps standardises the series; for other transformations use "
            "fill_gap."
        )
    if not hasattr(model, "fit") or has_fit_parameter(model, "exog"):
        raise TypeError(
            "fill_gaps needs an ESNRegressor, NVARRegressor or RNNRegressor, or a search for one; "
            f"got {name}."
        )


def _reversed(rows: Array | None) -> Array | None:
    return None if rows is None else rows[::-1]


def _rows(name: str, values: Any, *, allow_nan: bool) -> Array:
    """Return the values of one series, with as many axes as the user passed."""
    rows = read_one(name, values, allow_nan=allow_nan, fill="All of its rows must be known.")
    if n_levels(values) > 1:
        raise ValueError(
            f"The index of {name} has several levels, but one series is needed. Pass one by one."
        )
    return rows[:, 0] if n_dimensions(values) == 1 else rows


def _known_rows(name: str, values: Any, n_rows: int | None = None) -> Array:
    """Return rows without missing values; 2-D if a number of rows is given."""
    rows = _rows(name, values, allow_nan=False)
    if n_rows is None:
        return rows
    if len(rows) != n_rows:
        raise ValueError(
            f"{name} has {len(rows)} rows, but the series has {n_rows}. Both need the "
            "same number of rows."
        )
    return rows.reshape(n_rows, -1)


def _check_same_index(index: Any, other: Any) -> None:
    """Check that exogenous rows have the index of y or, if it has none, that they are in order."""
    if index is None and other is not None:
        check_index("exog", other, continues=True)
    if index is not None and other is not None and not index.equals(other):
        row = int(np.argmin(np.asarray(index == other)))
        raise ValueError(
            f"exog and y have different indices, first in row {row}: {other[row]} and "
            f"{index[row]}. Take the rows of y, `exog.loc[y.index]`, or, if the rows correspond, "
            "its index, `exog.set_axis(y.index)`."
        )


def _wrapped(y: Any, rows: Array) -> Any:
    """Return rows in the container of y."""
    if not is_pandas(y):
        return rows
    labels = {"columns": y.columns} if rows.ndim == 2 else {"name": y.name}
    return type(y)(rows, index=y.index, **labels)


class OneDirection(NamedTuple):
    """Gaps filled in one direction of time: a model runs into each from the rows before it.

    It is trained on `segments`; `n_scored` is the length of the loops that measure its errors; if
    it is 0, errors are not measured.
    """

    model: Any
    segments: list[slice]
    clip: Any
    bounded: Callable[[Array], Array]
    n_context: int
    n_scored: int

    def reversed(self, n_rows: int) -> OneDirection:
        """Return the task for rows in reverse order."""
        return self._replace(segments=[mirrored(s, n_rows) for s in reversed(self.segments)])

    def filled(
        self, rows: Array, known: Array | None, missing: Array
    ) -> tuple[Array, Array | None]:
        """Fill every gap in the order of the rows; a gap without rows before it stays NaN.

        The second result is the mean squared errors by number of steps, (n_scored,) or (n_scored,
        n_outputs), or None.
        """
        pairs = [_pairs(rows[s], None if known is None else known[s]) for s in self.segments]
        X, y = [X for X, _ in pairs], [y for _, y in pairs]
        fitted = clone(self.model).fit(X, y)
        rows = rows.copy()
        first = int(np.argmin(missing))  # a gap at the beginning has no rows before it
        for gap in runs_of(missing):
            if gap.start < first:
                continue
            window = slice(max(first, gap.start - self.n_context), gap.stop)
            place = slice(gap.start - window.start, gap.stop - window.start)
            seen = None if known is None else known[window]
            rows[gap] = self.bounded(run_into(fitted, rows[window], seen, place, self.clip))
        return rows, self._errors(fitted, X, y)

    def _errors(self, fitted: Any, X: list[Array], y: list[Array]) -> Array | None:
        """Return mean squared errors of loops within the segments; None if these are too short."""
        n_steps = self.n_scored
        places = [(i, t) for i, rows in enumerate(y) for t in range(_WARM_UP, len(rows) - n_steps)]
        if not n_steps or not places:
            return None
        picked = np.unique(np.linspace(0, len(places) - 1, _N_ORIGINS).astype(int))
        places = [places[k] for k in picked]
        predicted = run_trials(fitted, X, y, places, n_steps, clip=self.clip)
        assert predicted is not None
        truth = np.stack([y[i][t : t + n_steps] for i, t in places], axis=1)
        with np.errstate(over="ignore"):
            squares = (predicted[:, 0].reshape(truth.shape) - truth) ** 2
        # diverged loops get a finite, very large error, and errors must not decrease with steps
        squares = np.where(squares < _LOST, squares, _LOST)
        return np.maximum.accumulate(squares.mean(axis=1), axis=0)


def run_into(model: Any, rows: Array, known: Array | None, gap: slice, clip: Any) -> Array:
    """Return a model's forecast of a gap from the rows before it."""
    n_steps = gap.stop - gap.start
    before = rows[: gap.start].reshape(gap.start, -1)
    if known is None:
        return forecast(model, n_steps, context=before, clip=clip)
    context = np.hstack([before, known[1 : gap.start + 1]])
    exog = known[gap.start + 1 : gap.stop]
    return forecast(model, n_steps, context=context, exog=exog, clip=clip)


def _pairs(rows: Array, known: Array | None) -> tuple[Array, Array]:
    """Return inputs and targets one step ahead, of one segment."""
    X = rows[:-1].reshape(len(rows) - 1, -1)
    return (X if known is None else np.hstack([X, known[1:]])), rows[1:]


def bounds_of_rows(clip: Any, known: Array) -> Callable[[Array], Array]:
    """Return the function that applies `clip` to the rows of a loop before they fill a gap."""
    if clip is None or (isinstance(clip, (bool, np.bool_)) and not clip):
        return lambda rows: rows
    if callable(clip):
        return lambda rows: np.array([changed(clip, np.atleast_1d(row)) for row in rows]).reshape(
            rows.shape
        )
    if isinstance(clip, (bool, np.bool_)):
        clip = widened(np.array([known.min(axis=0), known.max(axis=0)]))
    return lambda rows: np.clip(rows, *clip)


def runs_of(mask: Array) -> Iterator[slice]:
    """Yield the slices of consecutive True."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    for start, stop in edges.reshape(-1, 2):
        yield slice(int(start), int(stop))


def mirrored(place: slice, n_rows: int) -> slice:
    """Return the slice of the same rows in reverse order."""
    return slice(n_rows - place.stop, n_rows - place.start)
