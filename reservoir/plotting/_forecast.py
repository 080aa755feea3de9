"""A forecast with the observed rows, or after the history."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reservoir._typing import Array, ArrayLike
from reservoir._validation import check_count, check_number, index_of
from reservoir.estimators.series.parts import drawn_of
from reservoir.plotting._picture import Picture
from reservoir.plotting._plot_arguments import (
    as_numbers,
    columns,
    names_of,
    stamps_of,
    times_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORECAST = (
    "forecast"  # gid of the curves of forecasts, by which later ones on the same axes differ
)
_HISTORY = 4  # rows of history before the forecast of a model, per row of the forecast
_FEW_ROWS = 24  # but at least this many

_BOUND = re.compile(r"(lower|upper) (.+)%")
_SPELLED = re.compile(r"(?:.* )?(forecast|(?:lower|upper) \S+%)")
_LOWER = re.compile(r"(.*) lower \S+%")
_SIDES = ("lower", "upper")


def forecast(
    y_true: Any,
    y_pred: Any,
    *,
    start: int | None = None,
    coverage: float | Sequence[float] | None = None,
    exog: Any = None,
    series: Any = None,
    index: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    legend: bool | str = True,
    line_kw: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a forecast together with the observed rows, or after them, and mark where it starts.

    Observed rows are a broad grey line, the forecast a thin line, its start a dotted vertical line;
    intervals are bands around the forecast, of which the widest is the lightest. Several outputs
    are stacked, each scaled to the range of its observed rows. With pandas input the horizontal
    axis shows the dates. A second forecast on the same axes gets another colour and dash.

    Parameters
    ----------
    y_true : array, Series or DataFrame of shape (n_samples,) or (n_samples, n_outputs), or model
        The observed rows, including those before the forecast that should be shown. They may end
        where the forecast starts. Or a fitted `reservoir.ESNForecaster`: its last rows are drawn.
    y_pred : array, Series or DataFrame of shape (n_steps,) or (n_steps, n_outputs), dict, or int
        The forecast. It may continue after the end of the observed rows. With intervals, the result
        of `reservoir.ESNForecaster.forecast`: a DataFrame with the columns "forecast", "lower 90%",
        "upper 90%" (for several outputs under the name of each), or an array as described for
        `coverage`. A dict contains several forecasts by name. After a model it is the number of
        rows to forecast.
    start : int, default=None
        The row of `y_true` that ``y_pred[0]`` forecasts. By default it is determined by the indexes
        if both have one; otherwise the forecast ends with the observed rows.
    coverage : float in (0, 1), or a list of them, default=None
        The coverages of the intervals in an array `y_pred`, which is then of shape (n_steps, 1 + 2
        * n_coverages) or (n_steps, n_outputs, 1 + 2 * n_coverages): the forecast first, then a
        lower and an upper bound for each coverage. After a model, the coverages to compute.
    exog : array, DataFrame or dict, default=None
        Known inputs of the forecast rows, for a model that was fitted with such inputs.
    series : id, default=None
        The id of the series to draw, for a model that was fitted to several.
    index : array of shape (max(n_samples, start + n_steps),), default=None
        The time of each row: numbers or dates. By default the pandas index, or the row numbers.
    labels : list of n_outputs str, default=None
        Names of the outputs. By default the pandas column names.
    legend : bool or "outside", default=True
        Whether to draw a legend: in a new figure above the axes, in given axes inside them, with
        "outside" to their right.
    line_kw : dict, default=None
        Properties of the forecasts, as of `matplotlib.lines.Line2D`.
    ax : matplotlib Axes, default=None
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `exog` is given without a model, or `ax` has three dimensions.
    ValueError
        If the numbers of columns differ, `start`, `index` or `labels` do not match the data,
        `y_pred` continues after `y_true` at unknown dates, or its columns are not a "forecast" with
        pairs of bounds; or if the model was fitted to several series, and `series` is none of
        them.

    Examples
    --------
    >>> import numpy as np
    >>> from reservoir import plotting
    >>> y = np.sin(0.2 * np.arange(120))
    >>> ax = plotting.forecast(y, 0.9 * y[80:])
    >>> ax.get_legend_handles_labels()[1]
    ['observed', 'forecast', 'start of the forecast']
    >>> guess = 0.9 * y[80:]
    >>> bounds = np.column_stack([guess, guess - 0.2, guess + 0.2])
    >>> ax = plotting.forecast(y[:80], bounds, start=80, coverage=0.9)
    >>> ax.get_legend_handles_labels()[1]
    ['observed', 'forecast', '90 % interval', 'start of the forecast']

    Two forecasts by name, and the forecast of a fitted model:

    >>> ax = plotting.forecast(y, {"network": 0.9 * y[80:], "last value": np.full(40, y[79])})
    >>> ax.get_legend_handles_labels()[1]
    ['observed', 'network', 'last value', 'start of the forecast']
    >>> from reservoir import ESNForecaster
    >>> from reservoir.datasets import load_sunspots
    >>> model = ESNForecaster(random_state=0).fit(load_sunspots(as_frame=True)["sunspots"])
    >>> ax = plotting.forecast(model, 20, coverage=0.9)
    """
    numbers = None
    if hasattr(y_true, "forecast"):
        n_steps = check_count("y_pred", y_pred)
        y_true, y_pred, first = _rows_of(y_true, n_steps, exog, coverage, series)
        coverage = coverage if _parts_of(y_pred) is None else None
        if start is None and index is None and stamps_of(y_true) is None:
            start = len(y_true)
            numbers = np.arange(first, first + len(y_true) + n_steps)
    elif exog is not None or series is not None:
        name = "series" if exog is None else "exog"
        raise TypeError(f"{name} is for a model: give a fitted ESNForecaster, or omit {name}.")
    truth = columns("y_true", y_true)
    named = dict(y_pred) if isinstance(y_pred, Mapping) else {"": y_pred}
    guesses = {name: read_guess(each, coverage) for name, each in named.items()}
    for name, guess in guesses.items():
        _check_columns(f"y_pred[{name!r}]" if name else "y_pred", guess, truth)
    times = numbers if index is None else index
    spans = {
        name: times_of_both(len(truth), len(guess.values), start, times, (y_true, named[name]))
        for name, guess in guesses.items()
    }
    known = labels if labels is not None else names_in(y_true)
    names = names_of(known, truth.shape[1])
    picture = Picture(ax, legend, line_kw)
    if len(names) > 1:
        truth, stacked = _stacked(truth, list(guesses.values()))
        guesses = dict(zip(guesses, stacked, strict=True))
        picture.label_bands(names)
    elif known is not None:
        picture.ax.set_ylabel(names[0])
    before = next(iter(spans.values()))[0]
    _draw_observed(picture, before, truth)
    for name, guess in guesses.items():
        _draw_forecast(picture, name, spans[name][1], guess)
    starts = {times[0] for _, times in spans.values()}
    _mark_start(picture, {first for first in starts if first > before[0]})
    dated = before.dtype.kind == "M"
    picture.horizon("time" if dated or index is not None else "time step", before)
    return picture.finish()


def _rows_of(
    model: Any, n_steps: int, exog: Any, coverage: Any, series: Any
) -> tuple[Any, Any, int]:
    """Return the last rows of a fitted forecaster, its forecast, and the first row's number."""
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(type(model), "last_rows_"):
        raise TypeError(
            f"y_true is a {type(model).__name__}, which does not keep its last rows. Give a fitted "
            "ESNForecaster, or arrays: the observed rows and the forecast."
        )
    check_is_fitted(model)
    rows, guess = drawn_of(model, series, n_steps, exog, coverage)
    by_position = getattr(rows, "iloc", rows)  # older pandas slice an index of floats by label
    shown = by_position[-max(_HISTORY * n_steps, _FEW_ROWS) :]
    return shown, guess, len(rows) - len(shown)


def _check_columns(name: str, guess: Guess, truth: Array) -> None:
    if truth.shape[1] != guess.values.shape[1]:
        raise ValueError(
            f"{name} has {guess.values.shape[1]} columns, but y_true has {truth.shape[1]}. Both "
            "need the same number of columns."
        )


def _draw_observed(picture: Picture, times: Array, truth: Array) -> None:
    drawn = "observed" in picture.ax.get_legend_handles_labels()[1]
    for j, column in enumerate(truth.T):
        label = "_observed" if j or drawn else "observed"
        picture.line(times, column, **picture.theme.observed, label=label)


def _draw_forecast(picture: Picture, name: str, times: Array, guess: Guess) -> None:
    """Draw a forecast and its bands in a style that no other forecast on the axes has."""
    drawn = {line.get_gid() for line in picture.ax.get_lines()}
    k = sum(str(gid).startswith(_FORECAST) for gid in drawn)
    # never solid and without markers, as the observed rows are
    style = picture.theme.curve(k + 1) | {"color": picture.theme.colour(k)}
    style |= {"gid": f"{_FORECAST} {k}", "zorder": 2.5}
    label = name or ("forecast" if k == 0 else f"forecast {k + 1}")
    colour = style["color"]
    for j, column in enumerate(guess.values.T):
        shown = f"_{label}" if j else label
        picture.line(times, column, **picture.subject(style, shown))
    for depth, (share, low, high) in enumerate(guess.bounds):
        title = f"{label}: {share}" if name or k else share
        for j in range(low.shape[1]):
            shown = f"_{title}" if j else title
            picture.band(times, low[:, j], high[:, j], colour, 0.12 + 0.14 * depth, shown)


def _mark_start(picture: Picture, starts: set[Any]) -> None:
    label = "start of the forecast"
    if label in picture.ax.get_legend_handles_labels()[1]:
        label = "_start"
    for first in starts:
        picture.ax.axvline(first, label=label, **picture.theme.mark)
        label = "_start"


def _stacked(truth: Array, guesses: list[Guess]) -> tuple[Array, list[Guess]]:
    """Return outputs scaled into bands of height 1, by the range of the truth and the intervals."""
    with np.errstate(invalid="ignore"):
        low, high = np.nanmin(truth, axis=0), np.nanmax(truth, axis=0)
    room = high - low  # intervals may widen a band by at most this on either side
    for _, lower, upper in (bound for guess in guesses for bound in guess.bounds):
        low = np.fmin(low, np.fmax(np.nanmin(lower, axis=0), low - room))
        high = np.fmax(high, np.fmin(np.nanmax(upper, axis=0), high + room))
    height = np.where(high > low, high - low, 1.0) / 0.8
    middle, offset = (low + high) / 2, -np.arange(truth.shape[1])

    def scaled(rows: Array) -> Array:
        return (rows - middle) / height + offset

    scaled_guesses = [
        Guess(
            scaled(guess.values),
            [(name, scaled(lower), scaled(upper)) for name, lower, upper in guess.bounds],
        )
        for guess in guesses
    ]
    return scaled(truth), scaled_guesses


class Guess(NamedTuple):
    """A forecast, (n_steps, n_outputs), and its intervals, each with lower and upper bounds.

    The interval of the highest coverage comes first; its string is the name in the legend.
    """

    values: Array
    bounds: list[tuple[str, Array, Array]]


def read_guess(y_pred: Any, coverage: float | Sequence[float] | None) -> Guess:
    """Return a forecast and its intervals, identified by DataFrame columns or by `coverage`."""
    parts = _parts_of(y_pred)
    if parts is not None:
        values, levels = parts
    elif coverage is None:
        return Guess(columns("y_pred", y_pred), [])
    else:
        levels = [
            check_number("coverage", level, low=0.0, high=1.0, low_open=True, high_open=True)
            for level in np.atleast_1d(np.asarray(coverage, dtype=object))
        ]
        values = as_numbers("y_pred", y_pred)
        if values.ndim == 2:
            values = values[:, None]
        n_parts = 1 + 2 * len(levels)
        if values.ndim != 3 or values.shape[2] != n_parts or values.size == 0:
            raise ValueError(
                f"y_pred has shape {np.shape(y_pred)}; with coverage={coverage!r} it must be "
                f"(n_steps, {n_parts}) or (n_steps, n_outputs, {n_parts}): the forecast, then a "
                "lower and an upper bound for each coverage."
            )
    bounds = [
        (f"{100 * level:.6g} % interval", values[:, :, 1 + 2 * k], values[:, :, 2 + 2 * k])
        for k, level in enumerate(levels)
    ]
    order = sorted(range(len(levels)), key=lambda k: -levels[k])
    return Guess(values[:, :, 0], [bounds[k] for k in order])


def _parts_of(y_pred: Any) -> tuple[Array, list[float]] | None:
    """Return the values and coverages of a DataFrame with named bounds; None for other input."""
    if not hasattr(y_pred, "columns"):
        return None
    several = getattr(y_pred.columns, "nlevels", 1) == 2
    names = [str(name[-1] if several else name) for name in y_pred.columns]
    # of a table with a column of times: "a", "a lower 90%", ...
    points = {found[1] for name in names if (found := _LOWER.fullmatch(name))}
    names = [f"{name} forecast" if name in points else name for name in names]
    spelled = [_SPELLED.fullmatch(name) for name in names]  # "a forecast", in frames of polars
    if points or all(spelled):
        names = [each[1] if each else name for name, each in zip(names, spelled, strict=True)]
    if "forecast" not in names:
        return None
    n_outputs = names.count("forecast")
    part = names[: len(names) // n_outputs]
    bounds = [_BOUND.fullmatch(name) for name in part[1:]]
    wanted = ["forecast", *[f"{side} {b[2]}%" for b in bounds[::2] if b for side in _SIDES]]
    if part != wanted or names != part * n_outputs:
        raise ValueError(
            f"y_pred has the columns {names}; for each output they must be 'forecast', and then "
            "'lower 90%' and 'upper 90%' for each coverage. Give the forecast of one series, "
            "without ids and times."
        )
    values = as_numbers("y_pred", y_pred).reshape(len(y_pred), n_outputs, len(part))
    return values, [float(b[2]) / 100 for b in bounds[::2] if b]


def times_of_both(
    n_truth: int, n_guess: int, start: int | None, index: ArrayLike | None, tables: Sequence[Any]
) -> tuple[Array, Array]:
    """Return the times of the truth and of the forecast, (n_truth,) and (n_guess,).

    The user's `start` and `index` take precedence over the indexes of `tables`, (y_true, y_pred).
    """
    of_truth, of_guess = (None if index is not None else stamps_of(table) for table in tables)
    # both have times: the forecast is drawn at its own, which need not be times of the truth
    if start is None and of_guess is not None:
        numbered = of_truth is None and index_of(tables[0]) is not None
        own = np.arange(n_truth) if numbered else of_truth
        if own is not None and (own.dtype.kind == "M") == (of_guess.dtype.kind == "M"):
            return own, of_guess
    first = n_truth - n_guess if start is None else start
    if not 0 <= first <= n_truth:
        raise ValueError(
            f"start={start} puts the forecast's first row at row {first} of y_true, but that must "
            f"be in [0, {n_truth}]. Set start to the row of y_true that y_pred[0] forecasts."
        )
    n_rows = max(n_truth, first + n_guess)
    if of_truth is None:
        times = times_of(index, n_rows)
    elif n_rows > n_truth:
        raise ValueError(
            f"y_pred ends {n_rows - n_truth} rows after y_true, and the times of these rows are "
            "unknown. Pass y_pred with an index of the same kind as y_true, or pass all times as "
            "index."
        )
    else:
        times = of_truth
    return times[:n_truth], times[first : first + n_guess]


def names_in(table: Any) -> list[str] | None:
    """Return the column names of a table of pandas or polars, or None if it has no names."""
    if hasattr(table, "columns"):
        names = list(table.columns)
        return None if names == list(range(len(names))) else [str(name) for name in names]
    name = getattr(table, "name", None)
    return [str(name)] if name not in (None, "") and hasattr(table, "to_numpy") else None
