"""The reservoir that a fitted estimator holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reservoir._validation import code
from reservoir.dynamics.reservoir import Reservoir

# where estimators that are made of others hold the one that has a reservoir
_PARTS: dict[str, Callable[[Any], Any]] = {
    "[-1]": lambda model: model[-1],
    ".features_": lambda model: model.features_,
    ".regressor_": lambda model: model.regressor_,
    ".best_estimator_": lambda model: model.best_estimator_,
}


def as_reservoir(model: Any) -> Reservoir:
    """Return the reservoir: the model itself, or the `reservoir_` of a fitted estimator.

    Raises
    ------
    TypeError
        If it is something else, is not fitted, or holds none, as gated networks do.
    """
    reservoir = getattr(model, "reservoir_", model)
    if isinstance(reservoir, Reservoir):
        return reservoir
    if not hasattr(model, "fit"):
        raise TypeError(
            "reservoir must be a reservoir.dynamics.Reservoir, or a fitted estimator that holds "
            f"one as reservoir_; got {type(model).__name__}."
        )
    kind = type(model).__name__
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise TypeError(
            f"{kind} holds no reservoir_ before it is fitted: call fit first."
        ) from None
    holders = [place for place, part in _PARTS.items() if _holds_one(part, model)]
    if holders:
        raise TypeError(
            f"{kind} has a part that holds the reservoir: give that, "
            f"{code(f'model = model{holders[0]}')}."
        )
    cell = f"(cell={model.cell!r})" if hasattr(model, "cell") else ""
    raise TypeError(
        f"{kind}{cell} has no reservoir: of trained networks the cells 'rnn' and 'leaky' are one, "
        "and ESNRegressor, ESNClassifier, ReservoirTransformer and ReservoirFeatures hold one."
    )


def _holds_one(part: Callable[[Any], Any], model: Any) -> bool:
    """Whether a model has a part, and that a reservoir."""
    try:
        return isinstance(part(model).reservoir_, Reservoir)
    except (AttributeError, KeyError, TypeError):
        return False
