"""Estimators of whole sequences in sktime's interface; imported only inside `as_sktime`."""

from __future__ import annotations

from typing import Any, ClassVar

from sktime.classification.base import BaseClassifier
from sktime.regression.base import BaseRegressor
from sktime.transformations.base import BaseTransformer

from reservoir.estimators import ESNSequenceClassifier, ESNSequenceRegressor, ReservoirFeatures
from reservoir.interop._sequence_adapter import (
    TAGS,
    Adapted,
    Classifying,
    Predicting,
    check_params,
    time_first,
)

# arrays are passed unchanged, all other panels as lists of DataFrames, which may differ in length
_TAGS = {**TAGS, "X_inner_mtype": ["df-list", "numpy3D"]}


class SktimeClassifier(Classifying, BaseClassifier):
    """Classifier of whole sequences with sktime's interface.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The classifier to adapt.

    Examples
    --------
    >>> from reservoir import ESNSequenceClassifier
    >>> from reservoir.interop import as_sktime
    >>> as_sktime(ESNSequenceClassifier(100))
    SktimeClassifier(estimator=ESNSequenceClassifier(n_units=100))
    """

    _tags: ClassVar[dict[str, Any]] = {**_TAGS, "capability:predict_proba": True}

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's own checks; `parameter_set` is not used."""
        return check_params(ESNSequenceClassifier)


class SktimeRegressor(Predicting, BaseRegressor):
    """Regressor of whole sequences with sktime's interface.

    Parameters
    ----------
    estimator : scikit-learn regressor
        The regressor to adapt.

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
        return check_params(ESNSequenceRegressor)


class SktimeTransformer(Adapted, BaseTransformer):
    """Transformer that returns one row per sequence, with sktime's interface.

    Parameters
    ----------
    estimator : scikit-learn transformer
        The transformer to adapt.

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

        table = self.estimator_.transform(time_first(X))
        if isinstance(table, pd.DataFrame):
            return table
        return pd.DataFrame(table, columns=self.estimator_.get_feature_names_out())

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's own checks; `parameter_set` is not used."""
        return check_params(ReservoirFeatures)
