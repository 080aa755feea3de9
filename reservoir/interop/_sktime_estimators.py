"""Estimators of whole sequences in sktime's interface; imported inside `as_sktime` alone."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sktime.classification.base import BaseClassifier
from sktime.regression.base import BaseRegressor
from sktime.transformations.base import BaseTransformer

from reservoir._typing import Array
from reservoir.estimators import ESNSequenceClassifier, ESNSequenceRegressor, ReservoirFeatures
from reservoir.model_selection import from_channels_first

_TAGS = {
    # an array as it is, every other panel as a list of data frames, which may differ in length
    "X_inner_mtype": ["df-list", "numpy3D"],
    "capability:multivariate": True,
    "capability:unequal_length": True,
}


def _time_first(X: Any) -> Any:
    """Return a panel as sequences: an array with channels first, or a list of data frames."""
    if isinstance(X, np.ndarray):
        return from_channels_first(X)
    return [frame.to_numpy(dtype=float) for frame in X]


def _test_params(cls: Any) -> list[dict[str, Any]]:
    """Return parameters for sktime's own checks: without gaps in the data, and with them."""
    return [{"estimator": cls(10, random_state=0, missing_values=how)} for how in ("raise", "hold")]


class _Adapted:
    """What the three kinds share; it stands in front of sktime's base class."""

    set_tags: Any  # a method of that class

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()
        takes_gaps = get_tags(estimator).input_tags.allow_nan
        self.set_tags(**{"capability:missing_values": takes_gaps})

    def _fit(self, X: Any, y: Any = None) -> Any:
        self.estimator_ = clone(self.estimator).fit(_time_first(X), y)
        return self


class _Predicting(_Adapted):
    def _predict(self, X: Any) -> Array:
        return self.estimator_.predict(_time_first(X))


class SktimeClassifier(_Predicting, BaseClassifier):
    """A classifier of whole sequences, as one of sktime's.

    Parameters
    ----------
    estimator : scikit-learn classifier

    Examples
    --------
    >>> from reservoir import ESNSequenceClassifier
    >>> from reservoir.interop import as_sktime
    >>> as_sktime(ESNSequenceClassifier(100))
    SktimeClassifier(estimator=ESNSequenceClassifier(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = {**_TAGS, "capability:predict_proba": True}

    def _predict_proba(self, X: Any) -> Array:
        if hasattr(self.estimator_, "predict_proba"):
            return self.estimator_.predict_proba(_time_first(X))
        return super()._predict_proba(X)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's own checks; `parameter_set` is not used."""
        return _test_params(ESNSequenceClassifier)


class SktimeRegressor(_Predicting, BaseRegressor):
    """A regressor of whole sequences, as one of sktime's.

    Parameters
    ----------
    estimator : scikit-learn regressor

    Examples
    --------
    >>> from reservoir import ESNSequenceRegressor
    >>> from reservoir.interop import as_sktime
    >>> as_sktime(ESNSequenceRegressor(100))
    SktimeRegressor(estimator=ESNSequenceRegressor(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = _TAGS

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's own checks; `parameter_set` is not used."""
        return _test_params(ESNSequenceRegressor)


class SktimeTransformer(_Adapted, BaseTransformer):
    """A transformer that gives one row per sequence, as one of sktime's.

    Parameters
    ----------
    estimator : scikit-learn transformer

    Examples
    --------
    >>> from reservoir import ReservoirFeatures
    >>> from reservoir.interop import as_sktime
    >>> as_sktime(ReservoirFeatures(100))
    SktimeTransformer(estimator=ReservoirFeatures(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = {
        **_TAGS,
        "scitype:transform-input": "Series",
        "scitype:transform-output": "Primitives",
        "scitype:instancewise": False,
        "fit_is_empty": False,
    }

    def _transform(self, X: Any, y: Any = None) -> Any:
        import pandas as pd

        table = self.estimator_.transform(_time_first(X))
        if isinstance(table, pd.DataFrame):
            return table
        return pd.DataFrame(table, columns=self.estimator_.get_feature_names_out())

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's own checks; `parameter_set` is not used."""
        return _test_params(ReservoirFeatures)
