"""What estimators of whole sequences have in common in aeon's interface and in sktime's."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from reservoir._typing import Array
from reservoir.model_selection import from_channels_first

TAGS = {"capability:multivariate": True, "capability:unequal_length": True}


def check_params(cls: Any) -> list[dict[str, Any]]:
    """Return parameters for a library's own checks: without gaps in the data, and with them."""
    return [{"estimator": cls(10, random_state=0, missing_values=how)} for how in ("raise", "hold")]


def time_first(X: Any) -> Any:
    """Return sequences with time first; data frames have it so, arrays have channels first."""
    if isinstance(X, list) and hasattr(X[0], "to_numpy"):
        return [frame.to_numpy(dtype=float) for frame in X]
    return from_channels_first(X)


class Adapted:
    """What all kinds share; it stands in front of a library's base class."""

    set_tags: Any  # a method of that class

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()
        takes_gaps = get_tags(estimator).input_tags.allow_nan
        self.set_tags(**{"capability:missing_values": takes_gaps})

    def _fit(self, X: Any, y: Any = None) -> Any:
        self.estimator_ = clone(self.estimator).fit(time_first(X), y)
        return self


class Predicting(Adapted):
    """A classifier or a regressor."""

    def _predict(self, X: Any) -> Array:
        return self.estimator_.predict(time_first(X))


class Classifying(Predicting):
    """A classifier; where it has no probabilities, the library makes them of its predictions."""

    def _predict_proba(self, X: Any) -> Array:
        if hasattr(self.estimator_, "predict_proba"):
            return self.estimator_.predict_proba(time_first(X))
        return super()._predict_proba(X)  # type: ignore[misc]
