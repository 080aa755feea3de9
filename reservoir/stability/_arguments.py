"""Validate the arguments that functions of this package share: matrices, bounds, leak rates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, ArrayLike, Matrix
from reservoir._validation import as_array, as_plain, caller_level, check_unmasked, dense
from reservoir.activations import Activation, Enclosure, get_activation
from reservoir.dynamics.held_reservoir import training_of
from reservoir.dynamics.reservoir import as_leak


class UnboundedActivationError(ValueError):
    """Nothing can be certified, because the activation is unbounded or has no enclosure."""


def enclosure_of(activation: str | Activation, *, unbounded: bool = False) -> Enclosure:
    """Return the activation's enclosure: bounds of the function and its slopes over intervals.

    Raises UnboundedActivationError if the activation has none, or, unless `unbounded`, if its
    range is unbounded.
    """
    found = get_activation(activation)
    enclosure = found.enclosure
    if enclosure is None or not (unbounded or enclosure.bounded):
        if found.bounded or unbounded:
            raise UnboundedActivationError(
                f"activation={found.name!r} has no enclosure: a certificate needs bounds of f and "
                "f' over intervals. Give an Activation with an Enclosure (reservoir.activations)."
            )
        raise UnboundedActivationError(
            f"activation={found.name!r} is unbounded: no box bounds its states, and this function "
            "needs one. Use 'tanh' or 'logistic', or a bounded Activation with an enclosure. "
            "certify needs no box: it proves what the slopes alone allow, for a W whose norm is "
            "below 1, such as an orthogonal W of radius 0.99."
        )
    return enclosure


def warn_of_open_loop(model: Any, X: Array) -> None:
    """Warn if a constant drive X of an estimator's reservoir may be meant as its closed loop."""
    if training_of(model).predicts_next_input and (X[:1] == X).all():
        warnings.warn(
            f"The drive is constant, and {type(model).__name__} was trained to predict its next "
            "input: the result is of the open reservoir, not of its closed loop, which `forecast` "
            "runs.",
            UserWarning,
            stacklevel=caller_level(),
        )


def as_real(name: str, value: Any) -> Array:
    """Return real numbers as an array of doubles; raise TypeError if they are not real numbers."""
    check_unmasked(name, value)
    array = as_array(name, value)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be real: a number or an array of numbers; got {type(value).__name__} of "
            f"dtype {array.dtype}."
        )
    return array.astype(float)


def as_pair(name: str, value: Any) -> tuple[Any, Any]:
    """Return the two items of (low, high)."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair (low, high); got {value!r}.") from None
    return low, high


def as_double(W: Matrix) -> Matrix:
    """Return W in double precision; a sparse W with more than half its entries becomes dense."""
    if sp.issparse(W):
        W = sp.csr_array(W, dtype=float)
        return dense(W) if W.nnz > W.shape[0] ** 2 / 2 else W
    return np.asarray(W, dtype=float)


def read_matrix(W: Any) -> Matrix:
    """Return a square, finite W in double precision; a number is the weight of a single unit."""
    if not sp.issparse(W):
        W = as_plain("W", W)
        if W.ndim == 0:
            W = W.reshape(1, 1)
    if W.dtype.kind not in "biuf":
        raise TypeError(f"W must be a real matrix; got dtype {W.dtype}.")
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not W.shape[0]:
        raise ValueError(f"W must be square with at least one unit; got shape {W.shape}.")
    if sp.issparse(W):
        W = sp.csr_array(W, dtype=float)
        W.sum_duplicates()
    values = W.data if sp.issparse(W) else W
    if not np.isfinite(values).all():
        raise ValueError("W contains NaN or infinity.")
    return as_double(W)


def read_leak(leak_rate: ArrayLike, n_units: int) -> Array:
    """Return the leak rates as an array of shape (n_units,)."""
    leak = as_leak(as_real("leak_rate", leak_rate), n_units, np.float64)
    return np.broadcast_to(np.asarray(leak), (n_units,))


def read_range(drive_min: ArrayLike, drive_max: ArrayLike, n_units: int) -> tuple[Array, Array]:
    """Return the bounds of the drive as arrays of shape (n_units,)."""
    low = read_drive("drive_min", drive_min, n_units)
    high = read_drive("drive_max", drive_max, n_units)
    if (low > high).any():
        unit = int(np.argmax(low > high))
        raise ValueError(
            f"drive_min={low[unit]:g} exceeds drive_max={high[unit]:g} (unit {unit}): the drive's "
            "lower bound must not exceed its upper bound. Swap them."
        )
    return low, high


def read_drive(name: str, value: ArrayLike, n_units: int) -> Array:
    """Return a finite array of shape (n_units,) from a number or an array of that shape."""
    bound = as_real(name, value)
    if bound.shape not in ((), (n_units,)):
        raise ValueError(
            f"{name} must be a number or have shape (n_units={n_units},); got {bound.shape}: one "
            "entry per unit, not per input (drive_range computes bounds of the drive from bounds "
            "of u)."
        )
    if not np.isfinite(bound).all():
        raise ValueError(f"{name} contains NaN or infinity; it must be finite.")
    return np.broadcast_to(bound, (n_units,)).copy()


def read_ends(
    of_low: str, of_high: str, n_columns: int, low: Any, high: Any
) -> tuple[Array, Array]:
    """Return the checked lower and upper bounds of a box, each of shape (n_columns,)."""
    ends = []
    for name, value in ((of_low, low), (of_high, high)):
        end = as_real(name, value)
        if end.shape not in ((), (n_columns,)) or not np.isfinite(end).all():
            raise ValueError(
                f"{name}={value!r} must be finite: a number or an array of shape ({n_columns},)."
            )
        ends.append(np.broadcast_to(end, (n_columns,)))
    below, above = ends
    if (below > above).any():
        raise ValueError(f"{of_low}={low!r} exceeds {of_high}={high!r}. Swap them.")
    return below, above
