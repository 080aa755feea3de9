"""The reservoir of a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reservoir._validation import code
from reservoir.dynamics.reservoir import Reservoir

# how to access the part with a reservoir, for estimators that contain other estimators
_PARTS: dict[str, Callable[[Any], Any]] = {
    "[-1]": lambda model: model[-1],
    ".features_": lambda model: model.features_,
    ".regressor_": lambda model: model.regressor_,
    ".best_estimator_": lambda model: model.best_estimator_,
}


def as_reservoir(model: Any) -> Reservoir:
    """Return the reservoir of a model, which is a `Reservoir` itself or a fitted estimator.

    The reservoir of an estimator is its attribute `reservoir_`.

    Raises
    ------
    TypeError
        If the model is of another type, is not fitted, or has no reservoir (a gated network, for
        example).
    """
    reservoir = getattr(model, "reservoir_", model)
    if isinstance(reservoir, Reservoir):
        return reservoir
    if not hasattr(model, "fit"):
        raise TypeError(
            "reservoir must be a reservoir.dynamics.Reservoir, or a fitted estimator with an "
            f"attribute reservoir_; got {type(model).__name__}."
        )
    kind = type(model).__name__
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise TypeError(f"{kind} has no reservoir_ before it is fitted: call fit first.") from None
    found = [access for access, part in _PARTS.items() if _has_reservoir(part, model)]
    if found:
        raise TypeError(
            f"{kind} contains an estimator that has the reservoir: pass that one, "
            f"{code(f'model = model{found[0]}')}."
        )
    cell = f"(cell={model.cell!r})" if hasattr(model, "cell") else ""
    raise TypeError(
        f"{kind}{cell} has no reservoir. ESNRegressor, ESNClassifier, ReservoirTransformer and "
        "ReservoirFeatures have one, and so do trained networks with the cells 'rnn' and 'leaky'."
    )


def _has_reservoir(part: Callable[[Any], Any], model: Any) -> bool:
    """Whether a part of the model, found by the function `part`, has a reservoir."""
    try:
        return isinstance(part(model).reservoir_, Reservoir)
    except (AttributeError, KeyError, TypeError):
        return False
