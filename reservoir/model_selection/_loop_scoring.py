"""Scores of closed loops, and a scorer for scikit-learn's searches."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer

from reservoir._typing import Array
from reservoir._validation import check_count
from reservoir.estimators.forecasting.loop_trials import run_trials
from reservoir.loops.path_loops import mean_log_errors
from reservoir.model_selection._loop_places import LoopData, equispaced
from reservoir.model_selection._scoring import sequence_column_of

_LARGEST = 1e30  # metrics receive this instead of values that have diverged

Scoring = Callable[[Array, Array, Array], Array]


def read_scoring(scoring: Any) -> Scoring:
    """Return the function that scores loops; greater is better.

    It is ``score(rows, followed, spread)``, of shape (n_readouts, n_starts), where `rows` are
    (horizon, n_readouts, n_starts, n_outputs), `followed` (horizon, n_starts, n_outputs) with NaN
    for missing targets, and `spread`, (n_outputs,), is the scale of the errors.
    """
    if scoring is None:
        return _log_accuracy
    if isinstance(scoring, str):
        return _ByMetric(_Named(scoring))
    if not callable(scoring):
        raise TypeError(
            f"scoring={scoring!r} must be None, the name of a regression metric of scikit-learn, "
            "or a function of y_true and y_pred."
        )
    try:
        inspect.signature(scoring).bind(None, None)
    except TypeError:
        raise TypeError(
            f"scoring={scoring!r} must take two arrays, y_true and y_pred, and return a number, "
            "greater for better. Instead of a scorer made by make_scorer, pass its metric or its "
            "name."
        ) from None
    except ValueError:  # a builtin without a signature
        pass
    return _ByMetric(scoring)


def _log_accuracy(rows: Array, followed: Array, spread: Array) -> Array:
    """Return minus the mean logarithm of the error over the known steps."""
    return -mean_log_errors(rows, followed, spread)


class _ByMetric:
    """Scores each loop separately, with a function of targets and outputs."""

    def __init__(self, metric: Callable[[Array, Array], Any]) -> None:
        self.metric = metric

    def __call__(self, rows: Array, followed: Array, spread: Array) -> Array:
        # metrics of scikit-learn reject NaN and infinities; squares of 1e30 are still finite
        rows = np.nan_to_num(rows, nan=_LARGEST, posinf=_LARGEST, neginf=-_LARGEST)
        rows = np.clip(rows, -_LARGEST, _LARGEST)
        known = np.logical_not(np.isnan(followed).any(axis=2))
        scores = np.empty(rows.shape[1:3])
        for k, i in np.ndindex(scores.shape):
            there = known[:, i]
            scores[k, i] = self.metric(followed[there, i], rows[there, k, i])
        return scores


class _Fixed(RegressorMixin, BaseEstimator):
    """An estimator that predicts given rows, for scorers of scikit-learn."""

    def __init__(self, rows: Any = None) -> None:
        self.rows = rows

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        """Return the stored rows of predictions, whatever X is."""
        return self.rows


class _Named:
    """A metric that is given by the name of a scikit-learn scorer."""

    def __init__(self, name: str) -> None:
        self.name = name
        truth = np.array([[0.1], [0.5], [0.3]])
        try:
            get_scorer(name)(_Fixed(truth), truth, truth)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"scoring={name!r} is not the name of a regression metric of scikit-learn, such as "
                f"'neg_root_mean_squared_error' or 'r2': {error}"
            ) from error

    def __call__(self, truth: Array, rows: Array) -> Any:
        return get_scorer(self.name)(_Fixed(rows), truth, truth)


def forecast_scorer(
    horizon: int,
    *,
    n_starts: int = 8,
    scoring: Any = None,
    clip: Any = False,
    washout: Any = "auto",
) -> Callable[..., float]:
    """Make a scorer that runs the estimator in closed loop from origins in the test rows.

    `ClosedLoopSearchCV` makes its own splits; this scorer is for the splits of `GridSearchCV`,
    `cross_val_score` and others: `sklearn.model_selection.TimeSeriesSplit` for estimators that
    continue from the end of training (``initial_state="last"``), `ContextSplit` for others, or
    `sklearn.model_selection.GroupKFold` over whole sequences. The network warms up on the test rows
    before each origin, from the initial state of `predict`.

    Parameters
    ----------
    horizon : int, steps
        Number of steps of each loop.
    n_starts : int, default=8
        Number of loops, from equispaced origins in each test set.
    scoring : str, callable or None, default=None
        As in `ClosedLoopSearchCV`; errors are divided by the standard deviation of the targets in
        the test set.
    clip : bool, (low, high) or callable, default=False
        As in `reservoir.forecast`.
    washout : int or "auto", rows, default="auto"
        No loop starts in the first `washout` rows of a test sequence; with `ContextSplit`, set it
        to at least the `context`. "auto" is a tenth of the sequence, at most 100.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)``, which returns the mean score over the loops; greater is better.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid; when called, if the estimator cannot forecast, or the test set
        has fewer than `n_starts` origins followed by `horizon` rows.

    See Also
    --------
    ClosedLoopSearchCV : A search that trains networks with several penalties only once.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
    >>> from reservoir import ESNRegressor
    >>> from reservoir.datasets import mackey_glass
    >>> from reservoir.model_selection import forecast_scorer, make_forecast_pairs
    >>> X, y = make_forecast_pairs(mackey_glass(1500, random_state=0))
    >>> search = GridSearchCV(
    ...     ESNRegressor(100, random_state=0),
    ...     {"leak_rate": [0.1, 0.5, 1.0]},
    ...     cv=TimeSeriesSplit(2),
    ...     scoring=forecast_scorer(50, n_starts=4),
    ... )
    >>> search.fit(X, y).best_params_
    {'leak_rate': 0.5}
    """
    check_count("horizon", horizon)
    check_count("n_starts", n_starts)
    read_scoring(scoring)
    if not isinstance(washout, str):
        check_count("washout", washout, minimum=0)
    elif washout != "auto":
        raise ValueError(f'washout={washout!r} must be an integer or "auto".')
    return _ForecastScorer(horizon, n_starts, scoring, clip, washout)


class _ForecastScorer:
    """The scorer that `forecast_scorer` returns: a class, so that it can be pickled and printed."""

    def __init__(self, horizon: int, n_starts: int, scoring: Any, clip: Any, washout: Any) -> None:
        self.horizon, self.n_starts = horizon, n_starts
        self.scoring, self.clip, self.washout = scoring, clip, washout

    def __repr__(self) -> str:
        return (
            f"forecast_scorer({self.horizon}, n_starts={self.n_starts}, scoring={self.scoring!r}, "
            f"clip={self.clip!r}, washout={self.washout!r})"
        )

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        data = LoopData(X, y, sequence_column_of(estimator))
        places = equispaced(
            data.lengths, self.horizon, self.n_starts, self.washout, where="the test set"
        )
        followed = data.followed(places, self.horizon)
        rows = run_trials(
            estimator, X, y, places, self.horizon, clip=self.clip, as_in_training=False
        )
        assert rows is not None
        return float(read_scoring(self.scoring)(rows, followed, data.spread(None)).mean())
