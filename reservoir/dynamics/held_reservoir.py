"""The reservoir of a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reservoir._typing import Array
from reservoir.dynamics.reservoir import Reservoir

# how to access the part with a reservoir, for estimators that contain other estimators
_PARTS: dict[str, Callable[[Any], Any]] = {
    "[-1]": lambda model: model[-1],
    ".features_": lambda model: model.features_,
    ".regressor_": lambda model: model.regressor_,
    ".best_estimator_": lambda model: model.best_estimator_,
}


class Training(NamedTuple):
    """Training of an estimator, its attribute `training_`, as functions of its reservoir see it.

    Attributes
    ----------
    input_range : array of shape (2, n_features) or None
        The lowest and the highest input of the reservoir; None in files of earlier versions.
    output_range : array of shape (2, n_outputs) or None
        The same of the targets, if they were fed back through feedback weights.
    predicts_next_input : bool
        Whether each target was the next input: `forecast` then runs the network in closed loop.
    """

    input_range: Array | None = None
    output_range: Array | None = None
    predicts_next_input: bool = False


def training_of(model: Any) -> Training:
    """Return the training of an estimator; of a reservoir, nothing is known."""
    return getattr(model, "training_", Training())


def as_reservoir(model: Any) -> Reservoir:
    """Return the reservoir of a model, which is a `Reservoir` or an estimator with `reservoir_`.

    Raise TypeError for other types, an estimator that is not fitted, or one without a reservoir (a
    gated network, for example).
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
            f"{kind} contains an estimator that has the reservoir: pass that one, model{found[0]}."
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
