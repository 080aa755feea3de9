"""Estimators of whole sequences in aeon's interface; imported only inside `as_aeon`."""

from __future__ import annotations

from typing import Any, ClassVar

from aeon.classification import BaseClassifier
from aeon.regression import BaseRegressor
from aeon.transformations.collection import BaseCollectionTransformer

from reservoir.estimators import ESNSequenceClassifier, ESNSequenceRegressor, ReservoirFeatures
from reservoir.interop._sequence_adapter import (
    TAGS,
    Adapted,
    Classifying,
    Predicting,
    check_params,
    time_first,
)

_TAGS = {**TAGS, "X_inner_type": ["np-list", "numpy3D"]}


class AeonClassifier(Classifying, BaseClassifier):
    """Classifier of whole sequences with aeon's interface.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The classifier to adapt.

    Examples
    --------
    >>> from reservoir import ESNSequenceClassifier
    >>> from reservoir.interop import as_aeon
    >>> as_aeon(ESNSequenceClassifier(100))
    AeonClassifier(estimator=ESNSequenceClassifier(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = _TAGS

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return check_params(ESNSequenceClassifier)


class AeonRegressor(Predicting, BaseRegressor):
    """Regressor of whole sequences with aeon's interface.

    Parameters
    ----------
    estimator : scikit-learn regressor
        The regressor to adapt.

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
        return check_params(ESNSequenceRegressor)


class AeonTransformer(Adapted, BaseCollectionTransformer):
    """Transformer that returns one row per sequence, with aeon's interface.

    Parameters
    ----------
    estimator : scikit-learn transformer
        The transformer to adapt.

    Examples
    --------
    >>> from reservoir import ReservoirFeatures
    >>> from reservoir.interop import as_aeon
    >>> as_aeon(ReservoirFeatures(100))
    AeonTransformer(estimator=ReservoirFeatures(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = {**_TAGS, "output_data_type": "Tabular"}

    def _transform(self, X: Any, y: Any = None) -> Any:
        return self.estimator_.transform(time_first(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return check_params(ReservoirFeatures)
