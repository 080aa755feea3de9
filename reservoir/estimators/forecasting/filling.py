"""Gaps in a series: filled between what is known on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_choice, check_count, check_numbers, code
from reservoir._validation.index import index_of, warn_if_irregular
from reservoir._validation.kinds import check_dense, check_no_text, check_numeric
from reservoir._validation.order import Handling, check_order
from reservoir.dynamics.fed_back import as_limits, changed
from reservoir.estimators.forecasting.forecast import forecast
from reservoir.estimators.forecasting.loop_trials import run_trials
from reservoir.estimators.progress import widened

__all__ = ["fill_gap", "fill_gaps"]


_N_PLACES = 16  # loops by which each direction is judged
_SETTLED = 30  # rows that a loop hears before it is judged
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
    """Fill the gap between two stretches of a series, from both sides.

    One model runs from what was before into the gap, another, which has learned the series from
    its end to its beginning, from what came after back into it. Their mean is weighted so that each
    counts most where it begins.

    Parameters
    ----------
    forward, backward : fitted ESNRegressor, NVARRegressor, RNNRegressor, or what holds one
        Trained to predict their own next inputs, on arrays: `forward` on
        ``make_forecast_pairs(y, exog=exog)``, `backward` on
        ``make_forecast_pairs(y[::-1], exog=exog[::-1])``. What may be around them is what
        `reservoir.forecast` walks.
    n_steps : int
        Rows of the gap.
    before : array of shape (n_before,) or (n_before, n_outputs)
        The rows before the gap, in the order of time; at least one.
    after : array of shape (n_after,) or (n_after, n_outputs)
        The rows behind it, in the order of time; at least one.
    exog : array of shape (n_before + n_steps + n_after, n_exog), optional
        What is known in all these rows, the gap's among them.
    weights : array of shape (n_steps,) or (n_steps, n_outputs), shares in [0, 1], optional
        What the backward run counts in each row; by default (k + 1) / (n_steps + 1) in row k.
    clip : bool, (low, high) or callable, default=True
        What is fed back, as in `reservoir.forecast`; True holds it near the training targets.

    Returns
    -------
    array of shape (n_steps,) or (n_steps, n_outputs)

    Raises
    ------
    ValueError
        If n_steps < 1, `before` or `after` has no rows or a value that is missing, `exog` has
        another number of rows, `weights` another shape or a share outside [0, 1], or as
        `reservoir.forecast`.

    Warns
    -----
    RuntimeWarning
        As `reservoir.forecast`.

    See Also
    --------
    fill_gaps : All gaps of a series at once, with models that are fitted for it.

    Notes
    -----
    For a random walk the mean by distance is the expectation given both ends. Schuster and Paliwal
    (1997, section II) merge the outputs of two networks that were trained in the two directions of
    time by their mean.

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
            f"before has shape {first.shape} and after {last.shape}; they must agree but for the "
            "number of rows."
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

    The known values are standardised, and two copies of the model are fitted on all stretches
    without a gap, one in the order of time, one against it. Both are run into each gap, and their
    mean is weighted by how well each of them does after so many steps. A gap at the beginning or at
    the end of the series is filled from its one side.

    Parameters
    ----------
    y : array of shape (n_samples,) or (n_samples, n_outputs), Series or DataFrame
        Rows at equal steps of time; NaN is what is missing. A row in which any value is missing
        belongs to a gap: its other values are kept, but the loops do not see them. Columns that
        stay known throughout belong to `exog`.
    model : ESNRegressor, NVARRegressor or RNNRegressor, or a search for one
        What is to be fitted, on a list of stretches, to predict the next row. It is cloned, and
        remains as it is.
    exog : array of shape (n_samples,) or (n_samples, n_exog), Series or DataFrame, optional
        What is known of every row, those in gaps among them.
    weights : {"error", "distance"}, default="error"
        "error": each direction counts by the inverse of its squared error after so many steps,
        which is measured in loops of the longest gap's length, begun at up to 16 places of the
        known stretches; of gaps that are too long for that, as "distance", which is the mean of
        `fill_gap`. What goes forward in time by forgetting its past cannot be run backwards for
        long, and "distance" trusts both directions alike.
    clip : bool, (low, high) or callable, default=True
        What is fed back, as in `reservoir.forecast`, in the units of y; True holds it near the
        known values. What is filled in goes through it as well.
    min_rows : int, default=30
        Shorter stretches between two gaps are not learned from.
    n_context : int, default=1000
        At most so many rows next to a gap are listened to before it is filled; earlier gaps among
        them are as they were filled in the same direction.

    Returns
    -------
    array, Series or DataFrame
        A copy of y, in floating point, without missing values; what was known is unchanged.

    Raises
    ------
    ValueError
        If a value is infinite, no stretch has `min_rows` rows, `exog` has another number of rows, a
        value that is missing, or another index than y, or the model refuses the data.
    TypeError
        If the model cannot learn from a list of stretches, such as a Pipeline or ESNForecaster.

    Warns
    -----
    RuntimeWarning
        As `reservoir.forecast`.
    UserWarning
        If the index of y is not regular.

    See Also
    --------
    fill_gap : One gap, with models that are fitted already.
    ESNForecaster : Forecasts series that have missing values without filling them.

    Notes
    -----
    How good it is, is told by gaps of one's own, cut where values are known. Where much else is
    known in the gaps, a model that reads the values off that, without any loop, is often better
    (``missing_targets="skip"``).

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
    index = index_of(y)
    if index is not None:
        beside: tuple[str, ...] = () if exog is None else ("exog",)
        handling = partial(Handling, "y", beside, index_of(exog) is not None)
        check_order("y", index, np.array([0]), handling, continues=True)
        warn_if_irregular("y", index, np.array([0]))
    rows = _rows("y", y)
    known = None if exog is None else _known_rows("exog", exog, len(rows))
    _check_same_index(index, index_of(exog))
    missing = np.asarray(np.isnan(rows.reshape(len(rows), -1)).any(axis=1))
    if missing.any():
        _check_model(model)
        stretches = _stretches(missing, min_rows)
        units = _Units.of(rows[~missing])
        longest = max(gap.stop - gap.start for gap in runs_of(missing))
        scaled, clip = units.scaled(rows), units.hold(clip)
        hold = hold_of(clip, scaled[~missing])
        task = OneDirection(model, stretches, clip, hold, n_context, longest * (weights == "error"))
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
    """Means and standard deviations of columns, which are taken out and put back."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, rows: Array) -> _Units:
        """Return the units of known rows; a constant column keeps its scale."""
        deviation = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def scaled(self, rows: Array) -> Array:
        """Return standardised rows."""
        return (rows - self.mean) / self.scale

    def back(self, rows: Array) -> Array:
        """Return standardised rows in their own units."""
        return rows * self.scale + self.mean

    def hold(self, clip: Any) -> Any:
        """Return `clip` for standardised rows."""
        if callable(clip):
            return lambda row: self.scaled(np.asarray(clip(self.back(row)), dtype=np.float64))
        if clip is None or isinstance(clip, (bool, np.bool_)):
            return clip
        low, high = as_limits(clip, np.size(self.mean), np.float64)  # type: ignore[misc]
        return self.scaled(low), self.scaled(high)


def _blended(ahead: Array, back: Array, share: Array) -> Array:
    """Return the mean of two sides of a gap, of which `share` is the second's; or the only side."""
    both = (1 - share) * ahead + share * back
    return np.where(np.isnan(back), ahead, np.where(np.isnan(ahead), back, both))


def _by_distance(rows: Array) -> Array:
    """Return what the backward run counts in each row of a gap, by how near it is."""
    n = len(rows)
    return (np.arange(1, n + 1) / (n + 1)).reshape(-1, *[1] * (rows.ndim - 1))


def _by_error(ahead: Array | None, back: Array | None, rows: Array) -> Array:
    """Return what the backward run counts in each row of a gap, by mean squares after n steps."""
    if ahead is None or back is None:
        return _by_distance(rows)
    tiny = np.finfo(float).tiny  # both may be perfect
    first, second = ahead[: len(rows)] + tiny, back[: len(rows)][::-1] + tiny
    return first / (first + second)


def _shares(weights: Any, rows: Array) -> Array:
    """Return weights as shares that fit the rows of a gap, after checks."""
    share = check_numbers("weights", weights).astype(np.float64)
    if share.shape not in ((len(rows),), rows.shape) or not ((share >= 0) & (share <= 1)).all():
        raise ValueError(
            f"weights must be shares between 0 and 1, of shape ({len(rows)},) or {rows.shape}; got "
            f"{share.shape}, between {share.min(initial=np.inf):.6g} and "
            f"{share.max(initial=-np.inf):.6g}."
        )
    return share.reshape(len(rows), -1) if rows.ndim == 2 else share


def _stretches(missing: Array, min_rows: int) -> list[slice]:
    """Return where there are enough known rows in a run to learn from."""
    known = list(runs_of(~missing))
    long_enough = [s for s in known if s.stop - s.start >= min_rows]
    if not long_enough:
        longest = max((s.stop - s.start for s in known), default=0)
        raise ValueError(
            f"No stretch of y without a missing value has min_rows={min_rows} rows to learn from: "
            f"the longest has {longest}. Lower min_rows, or fill short gaps by a line first."
        )
    return long_enough


def _check_model(model: Any) -> None:
    """Refuse what does not learn from a list of stretches, inputs and targets."""
    name = type(model).__name__
    if isinstance(model, (Pipeline, TransformedTargetRegressor)):
        raise TypeError(
            f"fill_gaps needs the network itself, and got a {name}, whose steps take no list of "
            "stretches. Series are standardised here; for anything else use fill_gap."
        )
    if not hasattr(model, "fit") or has_fit_parameter(model, "exog"):
        raise TypeError(
            "fill_gaps needs an ESNRegressor, NVARRegressor or RNNRegressor, or a search for one; "
            f"got {name}."
        )


def _reversed(rows: Array | None) -> Array | None:
    return None if rows is None else rows[::-1]


def _rows(name: str, values: Any) -> Array:
    """Return a copy of a series in double precision, NaN for what is missing."""
    check_dense(name, values)
    check_no_text(name, values, "Where text stands for a value that is missing, NaN must stand.")
    rows = np.array(values, dtype=np.float64)
    if rows.ndim not in (1, 2) or not rows.size:
        raise ValueError(
            f"{name} must have shape (n_samples,) or (n_samples, n_columns), with at least a row "
            f"and a column; got {rows.shape}."
        )
    if np.isinf(rows).any():
        at = tuple(int(i) for i in np.argwhere(np.isinf(rows))[0])
        raise ValueError(f"{name} has {rows[at]} in row {at[0]}; missing values are NaN.")
    return rows


def _known_rows(name: str, values: Any, n_rows: int | None = None) -> Array:
    """Return rows in which nothing may be missing; with a number of rows always 2-D."""
    check_numeric(name, values, has_ids=True)
    rows = _rows(name, values)
    if np.isnan(rows).any():
        at = int(np.argwhere(np.isnan(rows))[0, 0])
        raise ValueError(f"{name} has a missing value in row {at}; all of its rows must be known.")
    if n_rows is None:
        return rows
    if len(rows) != n_rows:
        raise ValueError(f"{name} has {len(rows)} rows; it must have one for each of {n_rows}.")
    return rows.reshape(n_rows, -1)


def _check_same_index(index: Any, other: Any) -> None:
    """Refuse exogenous rows that are told to be of other times."""
    if index is not None and other is not None and not index.equals(other):
        row = int(np.argmin(np.asarray(index == other)))
        there = other.is_unique and index.isin(other).all()
        remedy = f"If its rows are those of y: {code('exog = exog.set_axis(y.index)')}"
        if there:
            remedy = f"Take the rows of y: {code('exog = exog.loc[y.index]')}"
        raise ValueError(
            f"exog and y have different indices, first in row {row}: {other[row]} and "
            f"{index[row]}. {remedy}."
        )


def _wrapped(y: Any, rows: Array) -> Any:
    """Return rows as y was."""
    if not hasattr(y, "iloc"):
        return rows
    labels = {"columns": y.columns} if rows.ndim == 2 else {"name": y.name}
    return type(y)(rows, index=y.index, **labels)


class OneDirection(NamedTuple):
    """A model that is to fill gaps in one direction, where it learns, and what it is judged by.

    `n_judged` is the length of the loops by which errors are measured; 0 for none.
    """

    model: Any
    stretches: list[slice]
    clip: Any
    hold: Callable[[Array], Array]
    n_context: int
    n_judged: int

    def reversed(self, n_rows: int) -> OneDirection:
        """Return the task for rows in reverse order."""
        return self._replace(stretches=[mirrored(s, n_rows) for s in reversed(self.stretches)])

    def filled(
        self, rows: Array, known: Array | None, missing: Array
    ) -> tuple[Array, Array | None]:
        """Fill every gap in the order of the rows.

        Returns
        -------
        rows : array of shape (n_samples,) or (n_samples, n_outputs)
            NaN where nothing is before a gap.
        errors : array of shape (n_judged,) or (n_judged, n_outputs), or None
            Mean squares after so many steps.
        """
        pairs = [_pairs(rows[s], None if known is None else known[s]) for s in self.stretches]
        X, y = [X for X, _ in pairs], [y for _, y in pairs]
        fitted = clone(self.model).fit(X, y)
        rows = rows.copy()
        first = int(np.argmin(missing))  # nothing is before a gap at the beginning
        for gap in runs_of(missing):
            if gap.start < first:
                continue
            window = slice(max(first, gap.start - self.n_context), gap.stop)
            place = slice(gap.start - window.start, gap.stop - window.start)
            seen = None if known is None else known[window]
            rows[gap] = self.hold(run_into(fitted, rows[window], seen, place, self.clip))
        return rows, self._errors(fitted, X, y)

    def _errors(self, fitted: Any, X: list[Array], y: list[Array]) -> Array | None:
        """Return mean squares of loops within the stretches; None if there is no room for any."""
        n_steps = self.n_judged
        places = [(i, t) for i, rows in enumerate(y) for t in range(_SETTLED, len(rows) - n_steps)]
        if not n_steps or not places:
            return None
        picked = np.unique(np.linspace(0, len(places) - 1, _N_PLACES).astype(int))
        places = [places[k] for k in picked]
        said = run_trials(fitted, X, y, places, n_steps, clip=self.clip)
        assert said is not None
        truth = np.stack([y[i][t : t + n_steps] for i, t in places], axis=1)
        with np.errstate(over="ignore"):
            squares = (said[:, 0].reshape(truth.shape) - truth) ** 2
        # what was lost counts as very wrong, and errors do not become smaller again
        squares = np.where(squares < _LOST, squares, _LOST)
        return np.maximum.accumulate(squares.mean(axis=1), axis=0)


def run_into(model: Any, rows: Array, known: Array | None, gap: slice, clip: Any) -> Array:
    """Return what a model makes of a gap, from the rows before it."""
    n_steps = gap.stop - gap.start
    before = rows[: gap.start].reshape(gap.start, -1)
    if known is None:
        return forecast(model, n_steps, context=before, clip=clip)
    context = np.hstack([before, known[1 : gap.start + 1]])
    exog = known[gap.start + 1 : gap.stop]
    return forecast(model, n_steps, context=context, exog=exog, clip=clip)


def _pairs(rows: Array, known: Array | None) -> tuple[Array, Array]:
    """Return inputs and targets one step ahead, of one stretch."""
    X = rows[:-1].reshape(len(rows) - 1, -1)
    return (X if known is None else np.hstack([X, known[1:]])), rows[1:]


def hold_of(clip: Any, known: Array) -> Callable[[Array], Array]:
    """Return what makes of the rows of a loop those that are filled in."""
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
    """Yield the places of consecutive rows that are True."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    for start, stop in edges.reshape(-1, 2):
        yield slice(int(start), int(stop))


def mirrored(place: slice, n_rows: int) -> slice:
    """Return where rows are when all are taken in reverse order."""
    return slice(n_rows - place.stop, n_rows - place.start)
