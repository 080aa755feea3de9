"""Estimators of whole sequences in aeon's interface; imported inside `as_aeon` alone."""

from __future__ import annotations

from typing import Any, ClassVar

from aeon.classification import BaseClassifier
from aeon.regression import BaseRegressor
from aeon.transformations.collection import BaseCollectionTransformer
from sklearn.base import clone
from sklearn.utils import get_tags

from reservoir._typing import Array
from reservoir.estimators import ESNSequenceClassifier, ESNSequenceRegressor, ReservoirFeatures
from reservoir.model_selection import from_channels_first

_TAGS = {
    "X_inner_type": ["np-list", "numpy3D"],
    "capability:multivariate": True,
    "capability:unequal_length": True,
}


def _test_params(cls: Any) -> list[dict[str, Any]]:
    """Return parameters for aeon's own checks: without gaps in the data, and with them."""
    return [{"estimator": cls(10, random_state=0, missing_values=how)} for how in ("raise", "hold")]


class _Adapted:
    """What the three kinds share; it stands in front of aeon's base class."""

    set_tags: Any  # a method of that class

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()
        takes_gaps = get_tags(estimator).input_tags.allow_nan
        self.set_tags(**{"capability:missing_values": takes_gaps})

    def _fit(self, X: Any, y: Any = None) -> Any:
        self.estimator_ = clone(self.estimator).fit(from_channels_first(X), y)
        return self


class _Predicting(_Adapted):
    def _predict(self, X: Any) -> Array:
        return self.estimator_.predict(from_channels_first(X))


class AeonClassifier(_Predicting, BaseClassifier):
    """A classifier of whole sequences, as one of aeon's.

    Parameters
    ----------
    estimator : scikit-learn classifier

    Examples
    --------
    >>> from reservoir import ESNSequenceClassifier
    >>> from reservoir.interop import as_aeon
    >>> as_aeon(ESNSequenceClassifier(100))
    AeonClassifier(estimator=ESNSequenceClassifier(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = _TAGS

    def _predict_proba(self, X: Any) -> Array:
        if hasattr(self.estimator_, "predict_proba"):
            return self.estimator_.predict_proba(from_channels_first(X))
        return super()._predict_proba(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return _test_params(ESNSequenceClassifier)


class AeonRegressor(_Predicting, BaseRegressor):
    """A regressor of whole sequences, as one of aeon's.

    Parameters
    ----------
    estimator : scikit-learn regressor

    Examples
    --------
    >>> from reservoir import ESNSequenceRegressor
    >>> from reservoir.interop import as_aeon
    >>> as_aeon(ESNSequenceRegressor(100))
    AeonRegressor(estimator=ESNSequenceRegressor(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = _TAGS

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return _test_params(ESNSequenceRegressor)


class AeonTransformer(_Adapted, BaseCollectionTransformer):
    """A transformer that gives one row per sequence, as one of aeon's.

    Parameters
    ----------
    estimator : scikit-learn transformer

    Examples
    --------
    >>> from reservoir import ReservoirFeatures
    >>> from reservoir.interop import as_aeon
    >>> as_aeon(ReservoirFeatures(100))
    AeonTransformer(estimator=ReservoirFeatures(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = {**_TAGS, "output_data_type": "Tabular"}

    def _transform(self, X: Any, y: Any = None) -> Any:
        return self.estimator_.transform(from_channels_first(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return _test_params(ReservoirFeatures)
