"""What stands around a network in scikit-learn's wrappers, and the maps it amounts to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from reservoir._typing import Array
from reservoir.estimators.forecasting.forecaster import Forecaster, forecaster_of


class Chain(NamedTuple):
    """A network, the steps before its inputs and the steps behind its outputs.

    `inputs` are applied in order with transform, `outputs` in order with inverse_transform. What
    stands before the names of the network's parameters in those of the whole is the `prefix`; None
    where the whole cannot set them.
    """

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    network: Forecaster
    one_dimensional: bool
    innermost: Any
    prefix: str | None = ""

    @property
    def outermost(self) -> Any:
        """What the user's X goes to first."""
        return self.inputs[0] if self.inputs else self.innermost

    def below(self, name: str) -> Chain:
        """Return the chain as part of a whole, whose parameter `name` it is."""
        return self._replace(prefix=None if self.prefix is None else f"{name}__{self.prefix}")


def walk(model: Any) -> Chain:
    """Return the network inside a model, and the steps around it."""
    if hasattr(model, "best_estimator_"):
        return walk(model.best_estimator_)._replace(prefix=None)
    if hasattr(model, "refit") and hasattr(model, "cv_results_"):
        raise ValueError(
            f"{type(model).__name__} was fitted with refit=False, so it holds no network. Use "
            "refit=True, or fit the best parameters yourself."
        )
    if isinstance(model, FrozenEstimator):
        return walk(model.estimator)._replace(prefix=None)
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        inner = walk(last).below(name)
        steps = tuple(s for _, s in model.steps[:-1] if s is not None and s != "passthrough")
        return inner._replace(inputs=steps + inner.inputs)
    if isinstance(model, TransformedTargetRegressor):
        inner = walk(model.regressor_).below("regressor")
        one = model._training_dim == 1  # scikit-learn squeezes one column before the regressor
        return inner._replace(outputs=(*inner.outputs, model.transformer_), one_dimensional=one)
    network = forecaster_of(model)
    return Chain((), (), network, network.one_dimensional, model)


class Affine(NamedTuple):
    """``x -> scale * x + offset``, column by column."""

    scale: Array
    offset: Array

    def __call__(self, rows: Array) -> Array:
        return self.scale * rows + self.offset

    def after(self, first: Affine) -> Affine:
        """Return the map that applies `first`, then this one."""
        return Affine(self.scale * first.scale, self.scale * first.offset + self.offset)

    def inverse(self) -> Affine:
        """Return the map back."""
        return Affine(1 / self.scale, -self.offset / self.scale)

    def columns(self, index: Any) -> Affine:
        """Return the map of some of the columns."""
        return Affine(self.scale[index], self.offset[index])


def affine(step: Any, n_columns: int) -> Affine | None:
    """Return a scaler as a map column by column; None for any other transformer."""
    one, zero = np.ones(n_columns), np.zeros(n_columns)
    if type(step) is StandardScaler:
        scale = 1 / step.scale_ if step.with_std else one
        return Affine(scale, -step.mean_ * scale if step.with_mean else zero)
    if type(step) is RobustScaler:
        scale = 1 / step.scale_ if step.with_scaling else one
        return Affine(scale, -step.center_ * scale if step.with_centering else zero)
    if type(step) is MinMaxScaler and not step.clip:
        return Affine(step.scale_, step.min_)
    if type(step) is MaxAbsScaler and not getattr(step, "clip", False):
        return Affine(1 / step.scale_, zero)
    return None


def compose(steps: tuple[Any, ...], n_columns: int, *, inverse: bool = False) -> Affine | None:
    """Return steps in order (or their inverses in order) as one map; None if one is not affine."""
    total = Affine(np.ones(n_columns), np.zeros(n_columns))
    for step in steps:
        found = affine(step, n_columns)
        if found is None:
            return None
        total = (found.inverse() if inverse else found).after(total)
    return total
