"""A search that fits candidates and scores them in closed loop."""

from __future__ import annotations

import copy
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array, RandomState
from reservoir._validation import (
    caller_level,
    check_count,
    check_instance,
    check_n_jobs,
    check_number,
    check_switch,
)
from reservoir._workers import run_jobs
from reservoir.estimators.forecasting import forecast
from reservoir.estimators.parameters import with_other_names
from reservoir.model_selection._candidates import (
    Group,
    Outcome,
    Params,
    Trial,
    groups_of,
    read_candidates,
)
from reservoir.model_selection._loop_places import LoopData, rounds_of
from reservoir.model_selection._loop_scoring import read_scoring
from reservoir.model_selection._scoring import sequence_column_of


def _best_has(name: str) -> Callable[[Any], bool]:
    """Return a check for `available_if`: whether the best estimator has a method.

    Before fit, the check uses the unfitted `estimator`.
    """

    def check(search: ClosedLoopSearchCV) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


class ClosedLoopSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search for the parameters with the best closed-loop forecasts.

    The error of one-step predictions is a poor guide to forecasts of many steps: a network may be
    accurate on the training data, and diverge from it as soon as its outputs are fed back. Here
    each candidate is fitted and runs closed loops from several origins in the data, which are
    scored against the targets there [1]_. The best one is fitted again on all rows.

    Parameters
    ----------
    estimator : ESNRegressor, RNNRegressor, or a Pipeline or TransformedTargetRegressor around one
        Any unfitted estimator that `reservoir.forecast` supports.
    candidates : dict, or list of dicts
        The values of each parameter to try: a list, a distribution (an object with ``rvs``, which
        requires `n_iter`) or a single value. All combinations are tried, or `n_iter` that are
        drawn. A list of dicts is a list of such grids.
    horizon : int, steps
        Number of steps of each loop.
    n_starts : int, default=8
        Number of loops; with ``strategy="rolling"`` the number of fits, each followed by one loop
        in every sequence.
    strategy : {"recycle", "holdout", "rolling"}, default="recycle"
        "recycle": fit on all rows, with loops from equispaced origins among them; the default,
        because it withholds no data, and a closed loop is a real test even on rows that were used
        for teacher-forced training. "holdout": fit on the first four fifths of each sequence, with
        loops in the last fifth. "rolling": fit on growing parts of each sequence, the first at
        least a half, with loops from their ends.
    scoring : str, callable or None, default=None
        None means minus the mean of log10(error) over the steps; the error is the root mean square
        over outputs, each divided by the standard deviation of the training targets, and is clipped
        to [1e-9, 1]. Errors of chaotic systems grow exponentially, so logarithms give all steps
        equal weight. A string names a regression metric of scikit-learn, such as
        "neg_root_mean_squared_error". A function is called as ``scoring(y_true, y_pred)`` for each
        loop, with arrays of shape (horizon, n_outputs) in the units of y, and returns a number,
        greater for better. Both receive 1e30 where a loop diverged.
    n_iter : int, default=None
        Number of candidates to draw; None tries all combinations.
    refit : bool, default=True
        Whether the best candidate is fitted again on all rows.
    clip : bool, (low, high) or callable, default=False
        As in `reservoir.forecast`, for the loops and for `forecast`.
    washout : int or "auto", rows, default="auto"
        No loop starts in the first `washout` rows of a sequence. "auto" is a tenth of the sequence,
        at most 100.
    error_score : "raise" or number, default=nan
        Score of a candidate whose fit or loop fails, which `fit` warns about; a score of NaN ranks
        last. "raise" raises the error instead.
    n_jobs : int, default=None
        Number of networks fitted in parallel. Results are bit-identical for all values, because
        each fit uses one BLAS thread.
    random_state : int, Generator, RandomState or None, default=None
        Seed for drawing candidates. The networks use the estimator's `random_state`.

    Attributes
    ----------
    best_estimator_ : estimator
        The best candidate, fitted on all rows; only if ``refit=True``.
    best_params_ : dict
        Parameters of the best candidate.
    best_score_ : float
        Mean score of the best candidate.
    best_index_ : int
        Position of the best candidate in `cv_results_`.
    cv_results_ : dict of arrays
        As in `sklearn.model_selection.GridSearchCV`: "params", "param_*", "mean_test_score",
        "std_test_score", "rank_test_score", "split0_test_score" and so on (one for each loop; with
        "rolling" for each fit), "mean_fit_time", "mean_score_time" and their standard deviations.
        The time of a fit that candidates share is divided among them.
    n_splits_ : int
        Number of scores of each candidate: `n_starts`.
    refit_time_ : float, seconds
        Time of the final fit on all rows; only if ``refit=True``.

    See Also
    --------
    forecast_scorer : Closed loops in the searches of scikit-learn.
    reservoir.ESNForecaster : The same selection among built-in candidates.
    reservoir.plotting.closed_loop_search : Draws `cv_results_`.

    Notes
    -----
    Candidates that differ only in the ridge penalty (`alpha`, also inside a pipeline) share one
    fit, with the smallest of their penalties: its sums over rows give the coefficients for all, and
    their loops are advanced together. With ``solver="auto"`` the smallest penalty thus determines
    the solver for all of them. The best candidate is refitted with its own penalty.

    Set the estimator's `random_state`: without it, the refitted network differs from the selected
    one.

    A loop starts in the state that the network reaches after the preceding rows, which are run as
    in training; with ``feedback=True`` this run is teacher-forced.

    References
    ----------
    .. [1] A. Racca and L. Magri, "Robust optimization and validation of echo state networks for
       learning chaotic dynamics", Neural Networks 142, 2021, pp. 252-268.

    Examples
    --------
    >>> from reservoir import ESNRegressor
    >>> from reservoir.datasets import mackey_glass
    >>> from reservoir.model_selection import ClosedLoopSearchCV, make_forecast_pairs
    >>> series = mackey_glass(1600, random_state=0)
    >>> X, y = make_forecast_pairs(series[:1500])
    >>> search = ClosedLoopSearchCV(
    ...     ESNRegressor(100, random_state=0),
    ...     {"leak_rate": [0.3, 1.0], "alpha": [1e-8, 1e-5, 1e-2]},
    ...     horizon=50,
    ... ).fit(X, y)
    >>> search.best_params_
    {'alpha': 1e-08, 'leak_rate': 0.3}
    >>> bool(abs(search.forecast(100) - series[1500:]).max() < 0.1)
    True
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        horizon: int,
        n_starts: int = 8,
        strategy: str = "recycle",
        scoring: Any = None,
        n_iter: int | None = None,
        refit: bool = True,
        clip: Any = False,
        washout: Any = "auto",
        error_score: Any = np.nan,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.horizon = horizon
        self.n_starts = n_starts
        self.strategy = strategy
        self.scoring = scoring
        self.n_iter = n_iter
        self.refit = refit
        self.clip = clip
        self.washout = washout
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, **fit_params: Any) -> ClosedLoopSearchCV:
        """Try all candidates, and fit the best one on all rows.

        Parameters
        ----------
        X, y
            As in the estimator's `fit`, with ``y[t] == X[t+1]`` in the first columns of X
            (`make_forecast_pairs`): one table, a list of tables, or a table with an id column or a
            MultiIndex.
        **fit_params
            Passed to the estimator's `fit`. Values with one entry per row of X, or one item per
            sequence if X is a list, are split together with X.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If a parameter is invalid, the data have fewer than `n_starts` origins followed by
            `horizon` rows, or no candidate could be fitted and run.

        Warns
        -----
        FitFailedWarning
            If the fit of a candidate failed, and `error_score` is a number.
        UserWarning
            If a candidate could not be run in closed loop, and `error_score` is a number.
        """
        check_instance("estimator", self.estimator)
        candidates = self._check()
        score = read_scoring(self.scoring)
        data = LoopData(X, y, sequence_column_of(self.estimator))
        rounds = rounds_of(self.strategy, data.lengths, self.horizon, self.n_starts, self.washout)
        trial = Trial(data, rounds, score, self.horizon, self.clip, self.error_score, fit_params)
        models = [self._candidate(params) for params in candidates]
        outcomes = self._try_all(trial, models, candidates)
        self.n_splits_ = self.n_starts
        self.cv_results_ = _results(candidates, outcomes, self._failed(outcomes))
        scores = self.cv_results_["mean_test_score"]
        if np.isnan(scores).all():
            raise ValueError(
                f"None of the {len(scores)} candidates has a score: each failed in some loop, or "
                f"scoring={self.scoring!r} returned NaN. Use other candidates or another scoring."
            )
        self.best_index_ = int(np.nanargmax(scores))
        self.best_params_ = candidates[self.best_index_]
        self.best_score_ = float(scores[self.best_index_])
        self.__dict__.pop("best_estimator_", None)
        if self.refit:
            start = time.perf_counter()
            best = self._candidate(self.best_params_)
            self.best_estimator_ = best.fit(X, y, **fit_params)
            self.refit_time_ = time.perf_counter() - start
        return self

    def _check(self) -> list[Params]:
        """Check all parameters that need no data, and return the candidates."""
        check_count("horizon", self.horizon)
        check_count("n_starts", self.n_starts)
        check_switch("refit", self.refit)
        check_n_jobs(self.n_jobs)
        if isinstance(self.error_score, str):
            if self.error_score != "raise":
                raise ValueError(f'error_score={self.error_score!r} must be a number, or "raise".')
        elif not (isinstance(self.error_score, float) and np.isnan(self.error_score)):
            check_number("error_score", self.error_score)
        return read_candidates(self.candidates, self.n_iter, self.random_state)

    def _candidate(self, params: Params) -> Any:
        own = {name: clone(value, safe=False) for name, value in params.items()}
        return clone(self.estimator).set_params(**own)

    def _try_all(
        self, trial: Trial, models: list[Any], candidates: list[Params]
    ) -> dict[tuple[int, int], Outcome]:
        """Return the outcome of each candidate in each round."""
        outcomes: dict[tuple[int, int], Outcome] = {}
        groups = groups_of(candidates)
        while groups:
            tasks = [(group, k) for group in groups for k in range(len(trial.rounds))]
            jobs = [(models[group.members[0]], k, _shared(group, candidates)) for group, k in tasks]
            results = run_jobs(trial, jobs, self.n_jobs)
            for (group, k), found in zip(tasks, results, strict=True):
                # only one outcome if the members turn out not to share a fit, or if the fit failed
                for i, outcome in zip(group.members, found, strict=False):
                    outcomes[i, k] = outcome
            # members without an outcome are tried again, each with its own fit
            complete = Counter(i for i, _ in outcomes)
            groups = [Group([i]) for i in range(len(models)) if complete[i] < len(trial.rounds)]
        return outcomes

    def _failed(self, outcomes: dict[tuple[int, int], Outcome]) -> float:
        """Warn of failed trials and return their score; raise a ValueError if all have failed."""
        failed = [one for one in outcomes.values() if one.error is not None]
        if len(failed) == len(outcomes):
            raise ValueError(
                f"All {len(failed)} trials failed, the first with {failed[0].error} "
                "(error_score='raise' shows the traceback.)"
            )
        for stage, what, category in (
            ("fit", "be fitted", FitFailedWarning),
            ("run", "run in closed loop", UserWarning),
        ):
            errors = [one.error for one in failed if one.stage == stage]
            if errors:
                warnings.warn(
                    f"{len(errors)} of {len(outcomes)} trials could not {what}; their score is "
                    f"error_score={self.error_score}. The first failed with {errors[0]} "
                    "(error_score='raise' shows the traceback.)",
                    category,
                    stacklevel=caller_level(),
                )
        return np.nan if isinstance(self.error_score, str) else float(self.error_score)

    # ------------------------------------------------------------------ the best estimator

    def _best(self, method: str) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{method} needs the best candidate fitted on all rows, but refit=False. Use "
                "refit=True, or fit an estimator with best_params_."
            )
        return self.best_estimator_

    @available_if(_best_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict the target of each row with the best estimator.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        y : as in `fit`
        """
        return self._best("predict").predict(X)

    @available_if(_best_has("score"))
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the `score` of the best estimator: R^2 of its one-step predictions.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        float
        """
        known = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._best("score").score(X, y, **known)

    @with_other_names
    def forecast(
        self, n_steps: int, *, context: Any = None, exog: Any = None, clip: Any = None
    ) -> Array:
        """Forecast with the best estimator, including any pipeline around its network.

        Parameters
        ----------
        n_steps, context, exog
            As in `reservoir.forecast`.
        clip : bool, (low, high) or callable, optional
            As in `reservoir.forecast`; by default the parameter `clip` of the search.

        Returns
        -------
        array of shape (n_steps,) or (n_steps, n_outputs)
        """
        clip = self.clip if clip is None else clip
        return forecast(self._best("forecast"), n_steps, context=context, exog=exog, clip=clip)

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in fit."""
        return self._attribute("n_features_in_")

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns seen in fit."""
        return self._attribute("feature_names_in_")

    def _attribute(self, name: str) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} has no {name}: it has no fitted model.")
        return getattr(self.best_estimator_, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.regressor_tags = copy.deepcopy(inner.regressor_tags)
        tags.target_tags = copy.deepcopy(inner.target_tags)
        tags.input_tags = copy.deepcopy(inner.input_tags)
        return tags


def _shared(group: Group, candidates: list[Params]) -> tuple[str, list[float]] | None:
    """Return the parameter in which the members of a group differ, with its values."""
    name = group.name
    return None if name is None else (name, [float(candidates[i][name]) for i in group.members])


def _results(
    candidates: list[Params], outcomes: dict[tuple[int, int], Outcome], failed: float
) -> dict[str, Any]:
    """Return `cv_results_` from the outcome of each candidate in each round."""
    n_candidates, n_rounds = len(candidates), 1 + max(k for _, k in outcomes)
    n_scores = max(len(one.scores) for one in outcomes.values())
    scores = np.full((n_candidates, n_rounds, n_scores), failed)
    times = np.empty((2, n_candidates, n_rounds))
    for (i, k), one in outcomes.items():
        times[:, i, k] = one.fit_time, one.score_time
        if one.error is None:
            scores[i, k] = one.scores
    splits = scores.reshape(n_candidates, -1)
    results: dict[str, Any] = {}
    for name, values in zip(("fit_time", "score_time"), times, strict=True):
        results[f"mean_{name}"], results[f"std_{name}"] = values.mean(axis=1), values.std(axis=1)
    for name in sorted({name for params in candidates for name in params}):
        column = np.ma.masked_all(n_candidates, dtype=object)
        for i, params in enumerate(candidates):
            if name in params:
                column[i] = params[name]
        results[f"param_{name}"] = column
    results["params"] = candidates
    for j, of_split in enumerate(splits.T):
        results[f"split{j}_test_score"] = of_split.copy()
    mean = splits.mean(axis=1)
    results["mean_test_score"], results["std_test_score"] = mean, splits.std(axis=1)
    order = np.where(np.isnan(mean), -np.inf, mean)
    results["rank_test_score"] = rankdata(-order, method="min").astype(np.int32)
    return results
