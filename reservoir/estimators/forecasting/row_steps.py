"""Steps of pipelines as functions of single rows: affine maps, and transformers without memory."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from reservoir._tables.frames import take_rows
from reservoir._typing import Array
from reservoir.dynamics.chained import RowFunction

_CHECKED = 8  # last rows that are transformed once more, one by one


class Affine(NamedTuple):
    """``x -> scale * x + offset``, column by column."""

    scale: Array
    offset: Array

    def __call__(self, rows: Array) -> Array:
        """Return mapped rows."""
        return self.scale * rows + self.offset

    def after(self, first: Affine) -> Affine:
        """Return the map that applies `first`, then this one."""
        return Affine(self.scale * first.scale, self.scale * first.offset + self.offset)

    def inverse(self) -> Affine:
        """Return the inverse map."""
        return Affine(1 / self.scale, -self.offset / self.scale)

    def columns(self, index: Any) -> Affine:
        """Return the map of some of the columns."""
        return Affine(self.scale[index], self.offset[index])


@singledispatch
def affine(step: Any, n_columns: int) -> Affine | None:
    """Return a scaler as an affine map of columns; None for any other transformer.

    What contains a scaler and maps each row as it does is registered, by higher packages too.
    """
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
    if type(step) is FunctionTransformer and step.func is None and step.inverse_func is None:
        return Affine(one, zero)  # what scikit-learn makes of "passthrough"
    return None


@affine.register
def _(step: FrozenEstimator, n_columns: int) -> Affine | None:
    return affine(step.estimator, n_columns)


def compose(steps: tuple[Any, ...], n_columns: int, *, inverse: bool = False) -> Affine | None:
    """Return steps (or their inverses) as one map; None if one is not affine."""
    total = Affine(np.ones(n_columns), np.zeros(n_columns))
    for step in steps:
        found = affine(step, n_columns)
        if found is None:
            return None
        total = (found.inverse() if inverse else found).after(total)
    return total


def folded(fed: Affine, readout: Any) -> Any:
    """Return a readout of the feedback: the outputs after the scalers."""
    if callable(readout):
        return lambda features: fed(readout(features))
    coef, intercept = readout
    return fed.scale[:, None] * coef, fed(intercept)


def with_names(step: Any, rows: Any) -> Any:
    """Return rows with the feature names that a step was fitted with, if there are any."""
    names = getattr(step, "feature_names_in_", None)
    if names is None or hasattr(rows, "columns"):
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def row_function(step: Any) -> RowFunction:
    """Return a transformer as a source, which transforms each row by itself."""
    n_columns = getattr(step, "n_features_in_", 0)
    found = affine(step, n_columns)
    if found is not None:
        return RowFunction(found.__call__, n_columns, found.scale)

    def function(rows: Array) -> Array:
        return as_rows(step.transform(with_names(step, rows)))

    return RowFunction(function, n_columns, name=type(step).__name__)


def as_rows(values: Any) -> Array:
    """Return what a transformer returned as an array, (n_rows, n_columns)."""
    return np.asarray(values.toarray() if issparse(values) else values)


def check_without_memory(step: Any, table: Any, rows: Any) -> None:
    """Check that a step transforms the last rows of a table one by one as it did all of them."""
    if affine(step, getattr(step, "n_features_in_", 0)) is not None:
        return
    together = as_rows(rows)
    table = table if hasattr(table, "shape") else np.asarray(table)
    n, k = table.shape[0], min(_CHECKED, table.shape[0])
    try:
        each = (take_rows(table, slice(i, i + 1)) for i in range(n - k, n))
        alone = [as_rows(step.transform(row)) for row in each]
        same = len(together) == n and np.allclose(np.concatenate(alone), together[n - k :])
    except ValueError:  # it needs several rows, or returns other columns
        same = False
    if not same:
        raise ValueError(
            f"{type(step).__name__} transforms a single row differently from the same row among "
            "its neighbours, so rows cannot be fed back one by one. Use steps without memory; the "
            "memory of a ReservoirTransformer is kept from row to row."
        )
