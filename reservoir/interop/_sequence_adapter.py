"""Parts shared by the adapters of sequence estimators to aeon and to sktime."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from reservoir._typing import Array
from reservoir.model_selection import from_channels_first

TAGS = {"capability:multivariate": True, "capability:unequal_length": True}


def check_params(cls: Any) -> list[dict[str, Any]]:
    """Return parameters for a library's own checks, with `missing_values` "raise" and "hold"."""
    return [{"estimator": cls(10, random_state=0, missing_values=how)} for how in ("raise", "hold")]


def time_first(X: Any) -> Any:
    """Return sequences with time first; arrays are transposed, DataFrames already have it first."""
    if isinstance(X, list) and hasattr(X[0], "to_numpy"):
        return [frame.to_numpy(dtype=float) for frame in X]
    return from_channels_first(X)


class Adapted:
    """Base of all adapters; it precedes a library's base class in the list of bases."""

    set_tags: Any  # a method of the library's base class

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()
        takes_gaps = get_tags(estimator).input_tags.allow_nan
        self.set_tags(**{"capability:missing_values": takes_gaps})

    def _fit(self, X: Any, y: Any = None) -> Any:
        self.estimator_ = clone(self.estimator).fit(time_first(X), y)
        return self


class Predicting(Adapted):
    """Base of classifiers and regressors."""

    def _predict(self, X: Any) -> Array:
        return self.estimator_.predict(time_first(X))


class Classifying(Predicting):
    """Base of classifiers; without `predict_proba` the library derives probabilities."""

    def _predict_proba(self, X: Any) -> Array:
        if hasattr(self.estimator_, "predict_proba"):
            return self.estimator_.predict_proba(time_first(X))
        return super()._predict_proba(X)  # type: ignore[misc]
