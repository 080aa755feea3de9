"""Scores of a backtest: metrics by name or function, and the season of scaled errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from reservoir._typing import Array
from reservoir._validation import as_array, check_choice, check_number, index_of
from reservoir._validation.frequencies import frequency_text, seasons_of
from reservoir._validation.index import frequency, is_time, kind_of
from reservoir.metrics import coverage, mase, pinball, rmsse, smape

_LARGEST = 1e30  # metrics receive this instead of values that have diverged
_PERIODS = "period["
SCALED = ("mase", "rmsse")  # metrics that need a training series, and a season


class Case(NamedTuple):
    """One forecast of one column; `score` drops the rows without a true value.

    `truth`, `guess` and the lower and upper `bounds`, by coverage, are (n_known,). Scales are
    computed from `train`, (n_train,), the rows before the origin, with the `season`, in rows.
    """

    truth: Array
    guess: Array
    bounds: dict[float, tuple[Array, Array]]
    train: Array
    season: int


Metric = Callable[[Case], Any]


def _pinball_of_bounds(case: Case) -> Any:
    """Return the mean pinball loss of all bounds, each at its own quantile."""
    losses: list[Any] = [
        pinball(case.truth, bound, quantile=(1 + side * level) / 2)
        for level, pair in case.bounds.items()
        for side, bound in zip((-1, 1), pair, strict=True)
    ]
    return np.mean(losses)


METRICS: dict[str, Metric] = {
    "mase": lambda case: mase(case.truth, case.guess, y_train=case.train, season=case.season),
    "rmsse": lambda case: rmsse(case.truth, case.guess, y_train=case.train, season=case.season),
    "smape": lambda case: smape(case.truth, case.guess),
    "mae": lambda case: mean_absolute_error(case.truth, case.guess),
    "rmse": lambda case: root_mean_squared_error(case.truth, case.guess),
    "pinball": _pinball_of_bounds,
}


def read_metrics(metrics: Any, coverages: Sequence[float]) -> dict[str, Metric]:
    """Return metrics by name, followed by the coverage and the width of each interval."""
    given = [metrics] if isinstance(metrics, str) or callable(metrics) else list(metrics)
    found: dict[str, Metric] = {}
    for metric in given:
        if callable(metric):
            name = getattr(metric, "__name__", type(metric).__name__)
            read = _called(metric)
        else:
            name = check_choice("metrics", metric, tuple(METRICS))
            read = METRICS[name]
        if name in found:
            raise ValueError(f"metrics contains {name!r} twice. Omit one, or rename a function.")
        if name == "pinball" and not coverages:
            raise ValueError('metrics contains "pinball", which needs intervals. Give coverage.')
        found[name] = read
    for level in coverages:
        found[f"coverage {level:.6g}"] = _share_inside(level)
        found[f"width {level:.6g}"] = _mean_width(level)
    if not found:
        raise ValueError('metrics is empty. Give at least one, for instance "mase".')
    return found


def _called(metric: Callable[[Array, Array], Any]) -> Metric:
    return lambda case: metric(case.truth, case.guess)


def _share_inside(level: float) -> Metric:
    return lambda case: coverage(case.truth, *case.bounds[level])


def _mean_width(level: float) -> Metric:
    return lambda case: np.mean(case.bounds[level][1] - case.bounds[level][0])


def score(metrics: dict[str, Metric], case: Case) -> dict[str, float]:
    """Return each metric of a forecast, or NaN for all if no true value is known."""
    known = ~np.isnan(case.truth)
    if not known.any():
        return dict.fromkeys(metrics, np.nan)
    # metrics of scikit-learn reject NaN and infinities; squares of 1e30 are still finite
    guess = np.clip(
        np.nan_to_num(case.guess, nan=_LARGEST, posinf=_LARGEST, neginf=-_LARGEST),
        -_LARGEST,
        _LARGEST,
    )
    bounds = {level: (low[known], high[known]) for level, (low, high) in case.bounds.items()}
    case = case._replace(truth=case.truth[known], guess=guess[known], bounds=bounds)
    return {name: float(metric(case)) for name, metric in metrics.items()}


def read_coverages(given: Any) -> list[float]:
    """Return the coverages as a list, which is empty if none are given."""
    if given is None:
        return []
    several = as_array("coverage", given).ndim > 0
    levels = [
        check_number("coverage", level, low=0.0, high=1.0, low_open=True, high_open=True)
        for level in (given if several else [given])
    ]
    if not levels or len(set(levels)) < len(levels):
        raise ValueError(f"coverage={given!r} must contain at least one number, and none twice.")
    return levels


def season_of(y: Any) -> int:
    """Return the length, in rows, of the shortest season of y; 1 if the index has no frequency.

    A season that is not a whole number of rows (52.18 weeks a year) is rounded if it differs by at
    most 1 %.
    """
    index = index_of(y)
    kind = None if index is None else kind_of(index)
    if kind is None or not is_time(kind):
        return 1
    if kind.startswith(_PERIODS):  # the ordinals of period[2h] differ by 2
        name = kind.removeprefix(_PERIODS)[:-1].lstrip("0123456789")
        found = seasons_of(name, frequency(index) or 1)
    else:
        text = frequency_text(index)
        found = () if text is None else seasons_of(text)
    if not found or abs(found[0] - round(found[0])) > 0.01 * found[0]:
        return 1
    return round(found[0])
