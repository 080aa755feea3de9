"""Base class of estimators whose rows are time steps: sessions, output containers, HTML."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir._validation import check_choice
from reservoir.dynamics.held_reservoir import Training
from reservoir.estimators.describe import Described
from reservoir.estimators.progress import Progress
from reservoir.estimators.reading import CONFIG, DataReader, require_pandas
from reservoir.estimators.stream import Stream
from reservoir.estimators.targets import TargetCoding

_Self = TypeVar("_Self", bound="TimeSeriesEstimator")


class TimeSeriesEstimator(BaseEstimator):
    """An estimator whose rows are time steps.

    When it is fitted, `_reader` reads X and y, and `_model` contains what was learned from them.
    """

    _reader: DataReader
    _model: Any
    classes_: Any  # of classifiers

    @abstractmethod
    def _coding(self) -> TargetCoding:
        """Return the coding of the targets."""

    @abstractmethod
    def _predictor(self) -> Any:
        """Return the fitted model, ready to run."""

    @property
    def training_(self) -> Training:
        """Range of the inputs in training, and whether `forecast` runs the network in closed loop.

        `stability.certify` and other functions of the reservoir read it.
        """
        return self._progress.training(self._reader.clock)

    @property
    def _progress(self) -> Progress:
        """Position of the model in its data."""
        progress: Progress = self._model.progress
        return progress

    def set_output(self: _Self, *, predict: str | None = None) -> _Self:
        """Set the container of the results of `predict` and `forecast`.

        Parameters
        ----------
        predict : {"default", "pandas"} or None, default=None
            Container of the results. "pandas": a Series or a DataFrame with the index of X (for a
            forecast, the continuation of the index at its frequency) and with the column names of y
            in fit. "default": arrays. None leaves the setting unchanged.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `predict` is none of these values.
        ImportError
            If pandas is not installed.

        Notes
        -----
        The setting also applies to `predict_proba` and `decision_function` of classifiers, whose
        columns are the classes. If X has no index, rows are numbered from 0; a collection keeps its
        type, with a Series or DataFrame per sequence, except that a 3-D array stays an array.
        Clones, saved copies and searches keep the setting. In a pipeline set it on the estimator,
        ``pipe[-1].set_output(predict="pandas")``; scalers before it return arrays, without an
        index, unless the pipeline has ``set_output(transform="pandas")``.

        Examples
        --------
        >>> import pandas as pd
        >>> from reservoir import ESNRegressor
        >>> from reservoir.datasets import mackey_glass
        >>> from reservoir.model_selection import make_forecast_pairs
        >>> days = pd.date_range("2024-01-01", periods=500, freq="D")
        >>> series = pd.Series(mackey_glass(500, random_state=0).ravel(), days, name="level")
        >>> X, y = make_forecast_pairs(series)
        >>> esn = ESNRegressor(50, random_state=0).set_output(predict="pandas").fit(X, y)
        >>> esn.forecast(2).index.strftime("%d %B %Y").tolist()  # the series ends on 14 May
        ['15 May 2025', '16 May 2025']
        """
        if predict is None:
            return self
        check_choice("predict", predict, ("default", "pandas"))
        if predict == "pandas":
            require_pandas()
        setattr(self, CONFIG, {**getattr(self, CONFIG, {}), "predict": predict})
        return self

    def predict(self, X: Any, *, initial_state: Any = None, return_state: bool = False) -> Any:
        """Predict one row of outputs, or one label, for each row of X.

        A trained network with ``target="last"`` predicts one row or label for each sequence. The
        estimator is not changed: the same call returns the same result. Each of several sequences
        is predicted as it would be alone, up to rounding. An echo state network with
        ``feedback=True`` runs in closed loop: its outputs are fed back.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or sequences
        initial_state : {"last", "zeros", "steady"} or array, optional
            The state before the first row; by default the parameter `initial_state` of the
            estimator.
        return_state : bool, default=False
            Whether to return the state at the end of the run as well.

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs), as y in fit; or sequences
        state : array of the shape of `state_`, or one row per sequence
            The state at the end of the run; only if `return_state`.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, as in `fit`.

        Warns
        -----
        UserWarning
            If ``initial_state="last"`` and the index shows that X does not begin right after
            training; the run then starts from "steady". If more than a fifth of the rows are
            outside the training range of a column by more than half its width.
        """
        return self._run_by(self._predicts_by, X, initial_state, return_state=return_state)

    def _run_by(
        self,
        by: Callable[[], tuple[Any, Any]],
        X: Any,
        initial_state: Any,
        *,
        per_class: bool = False,
        return_state: bool = False,
    ) -> Any:
        """Return outputs for X, computed and decoded by a method such as `_predicts_by`."""
        predictor = self._predictor()
        if return_state:
            self._check_steps("return_state=True")
        names = np.asarray(self.classes_).tolist() if per_class else None
        return predictor.predict(X, initial_state, *by(), names=names, return_state=return_state)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions, or the accuracy of labels, over all rows of all sequences.

        With ``missing_targets="skip"`` rows whose target is missing are skipped. (The scorers of
        scikit-learn cannot skip them: use `reservoir.model_selection.washout_scorer` instead.)

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. If X has lost its index, as after a scaler in a pipeline, the index of y
            shows whether the rows follow those of training (``initial_state="last"``).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the index of y does not match that of X, or no row has a target.
        """
        skip = getattr(self, "missing_targets", "raise") == "skip"
        score: float = self._predictor().score(X, y, sample_weight, skip_missing=skip)
        return score

    def stream(
        self,
        initial_state: Any = "last",
        *,
        score_forgetting: float = 0.999,
        callback: Callable[[Stream], Any] | None = None,
    ) -> Stream:
        """Return a session that keeps its state from chunk to chunk, and can learn online.

        Parameters
        ----------
        initial_state : {"last", "zeros", "steady"} or array, default="last"
            The state before the first row, as in `predict`.
        score_forgetting : float in (0, 1], default=0.999
            Factor by which each row multiplies the weights of earlier rows in `Stream.score_`.
        callback : callable, optional
            ``callback(session)`` is called after each `Stream.learn`.

        Returns
        -------
        Stream
            A session with `predict`, `predict_proba` (for classifiers), `learn`, `score_`, `state`
            and `reset`. The estimator is not changed.
        """
        self._check_fitted()
        self._check_steps("stream")
        return Stream(self, initial_state, score_forgetting=score_forgetting, callback=callback)

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _check_steps(self, what: str) -> None:
        """Raise if the estimator has no states row by row, which `what` needs."""

    def _check_same_outputs(self, targets: list[Array]) -> None:
        """Check that a chunk has as many outputs as the earlier ones."""
        n_outputs = targets[0].shape[1]
        if n_outputs != self._model.n_outputs:
            raise ValueError(
                f"y has {n_outputs} outputs, but in earlier calls it had {self._model.n_outputs}."
            )

    @property
    def _is_new(self) -> bool:
        """Whether the estimator has seen no data yet."""
        return "_model" not in vars(self)

    def _predicts_by(self) -> tuple[Any, Any]:
        """Return the decoder of outputs, and the function for the outputs (None: the default)."""
        return self._reader.targets.decode, None

    # ------------------------------------------------------------------ in a notebook

    _description = Described._description
    _repr_html_inner = Described._repr_html_inner
    _repr_mimebundle_ = Described._repr_mimebundle_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = isinstance(self, RegressorMixin)
        return tags
