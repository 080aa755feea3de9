"""Dicts of weights by name, and their conversion to and from a single vector."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reservoir._typing import Array

Params = dict[str, Array]


def flatten(params: Params, names: Iterable[str] | None = None) -> tuple[Array, Params]:
    """Copy all weights into one vector, and return it with views into it by name.

    A change of a view changes the vector, and the reverse. `names` is the order in the vector, by
    default the order of `params`. Raises a TypeError unless the weights are all float64 or all
    float32, and a ValueError if `names` does not contain exactly their names.
    """
    order = list(params) if names is None else list(names)
    if set(order) != set(params):
        raise ValueError(f"The names must be {sorted(order)}; got {sorted(params)}.")
    dtypes = {np.dtype(array.dtype) for array in params.values()}
    if len(dtypes) > 1 or not dtypes <= {np.dtype(np.float64), np.dtype(np.float32)}:
        listed = ", ".join(f"{name}: {array.dtype}" for name, array in params.items())
        raise TypeError(f"All weights must be float64, or all float32; got {listed}.")
    if not order:
        return np.zeros(0), {}
    vector = np.concatenate([params[name].ravel() for name in order])
    return vector, unflatten(vector, {name: params[name] for name in order})


def unflatten(vector: Array, like: Params) -> Params:
    """Return views into a vector, with the names and shapes of `like`; the sizes must be equal."""
    size = sum(array.size for array in like.values())
    if vector.shape != (size,):
        raise ValueError(f"The vector must have shape ({size},); got {vector.shape}.")
    views, start = {}, 0
    for name, array in like.items():
        views[name] = vector[start : start + array.size].reshape(array.shape)
        start += array.size
    return views


def global_norm(params: Params) -> float:
    """Return the root of the sum of squares over all weights, without overflow or underflow.

    The result is infinite or NaN if one of the weights is.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = sum(float(np.vdot(array, array)) for array in params.values())
    if 1e-30 < squares < np.inf:  # even in float32, squares that underflowed are negligible
        return float(np.sqrt(squares))
    largest = float(
        np.max([np.abs(array).max(initial=0.0) for array in params.values()], initial=0.0)
    )
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    scaled = (array.astype(np.float64) / largest for array in params.values())
    return largest * float(np.sqrt(sum(float(np.vdot(array, array)) for array in scaled)))


def all_finite(params: Params) -> bool:
    """Return whether all weights are finite."""
    return all(bool(np.isfinite(array).all()) for array in params.values())
