"""Guards against overflow in the sum that a unit receives, W x + W_in u + bias + W_fb y.

A sum that overflows on one side of zero is harmless with a bounded activation, which saturates. A
sum with infinite terms of both signs is undefined: such inputs raise an error that names the step
and the unit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, Matrix
from reservoir.activations import get_activation

if TYPE_CHECKING:
    from reservoir.dynamics.reservoir import Reservoir


# doubles, because they are compared with doubles
_ROOM = {np.dtype(dtype): float(np.finfo(dtype).max) / 4 for dtype in (np.float32, np.float64)}


class StatesError(ValueError):
    """Error for states that are not finite from `step` on.

    `reason` is the cause and the remedy, which end the message. `series` is the name of the series
    in the message; None if there is only one.
    """

    def __init__(self, step: int, reason: str, series: str | None = None) -> None:
        super().__init__(step, reason, series)
        self.step, self.reason, self.series = step, reason, series

    def __str__(self) -> str:
        where = "" if self.series is None else f"In {self.series}: "
        return f"{where}The states are not finite from step {self.step} on {self.reason}"


def may_overflow(
    reservoir: Reservoir, X: Array, feedback: Array | None, state: Array, noise: float
) -> bool:
    """Whether the sum that a unit receives might overflow while the states stay within [-1, 1].

    The result is True if an array contains NaN or infinity. The sum is bounded by the largest input
    times the largest row sum of the weights. `noise` is the standard deviation of the state noise.
    States of an unbounded activation may grow beyond [-1, 1] and overflow even if the result is
    False.
    """
    given = (X, state) if feedback is None else (X, state, feedback)
    # the normal case takes one pass: the root of the sum of squares bounds every entry; with NaN,
    # or if the sum overflows, the comparison is false
    squares = sum(float(np.vdot(array, array)) for array in given)
    noise = 50 * noise + 1.0  # no normal deviate exceeds 50 standard deviations
    if (math.sqrt(squares) + noise) * reservoir._largest_row_sum < room(reservoir):
        return False
    return exceeds_room(reservoir, max(noise, *map(largest_of, given)))


def largest_of(array: Array) -> float:
    """Return the largest modulus, 0 without entries; infinity if any entry is not finite."""
    largest = max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))
    return np.inf if largest != largest else largest


def exceeds_room(reservoir: Reservoir, largest: float) -> bool:
    """Whether sums might overflow for states in [-1, 1] and inputs of moduli up to `largest`."""
    return not max(largest, 1.0) * reservoir._largest_row_sum < room(reservoir)


def room(reservoir: Reservoir) -> float:
    """Return the bound that sums of moduli must not reach: a quarter of the largest float."""
    return _ROOM[reservoir.dtype]


def check_states(
    reservoir: Reservoir,
    before: Array,
    X: Array,
    feedback: Array | None,
    block: Array,
    start: int,
) -> None:
    """Raise if states are not finite or result from a sum with infinite terms of both signs.

    `before` is the state before the first row of `block`, which has the states after the steps; `X`
    and `feedback` are the inputs of these steps and the outputs fed back, or None. `start` is the
    index of the block's first row in the series, for the message.
    """
    # the normal case takes one pass: the root of the sum of squares bounds every state
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.sqrt(np.einsum("ij,ij->", block, block)))
        small = largest * reservoir._largest_row_sum < room(reservoir)
    if small and not may_overflow(reservoir, X, feedback, before, 0.0):
        return
    # otherwise find the first step that went wrong, and why
    states = np.concatenate([before[None], block[:-1]])
    units = cancelling_units(reservoir, states, X, feedback)
    if (units >= 0).any():
        row = int(np.argmax(units >= 0))
        _check_finite(reservoir, block[:row], start)  # an earlier failure is reported instead
        raise _not_finite(reservoir, start + row, _cancels(int(units[row])))
    _check_finite(reservoir, block, start)


def _check_finite(reservoir: Reservoir, block: Array, start: int) -> None:
    finite = np.isfinite(block).all(axis=1)
    if not finite.all():
        raise _not_finite(reservoir, start + int(np.argmin(finite)))


def _not_finite(reservoir: Reservoir, step: int, why: str = "") -> StatesError:
    activation = get_activation(reservoir.activation)
    remedy = "Scale the inputs down"
    if not activation.bounded:
        remedy += ", lower the spectral radius, or use a bounded activation such as 'tanh'"
    reason = f"(activation={activation.name!r}, dtype={reservoir.dtype}){why}. {remedy}."
    return StatesError(step, reason)


def _cancels(unit: int) -> str:
    return f": the sum that unit {unit} receives is infinity minus infinity"


def check_sums_defined(
    reservoir: Reservoir, x: Array, u: Array, y_prev: Array | None, *, step: int | None = None
) -> None:
    """Raise if a unit's sum has infinite terms of both signs in one step.

    `x`, `u` and `y_prev` are the state, the input and the previous output, as in the function
    `reservoir.dynamics.step`; `step` is the number of the step, for the message.
    """
    received = None if y_prev is None else y_prev[None]
    unit = int(cancelling_units(reservoir, x[None], u[None], received)[0])
    if unit >= 0:
        which = "the step" if step is None else f"step {step}"
        raise ValueError(
            f"The state after {which} is not finite (dtype={reservoir.dtype}){_cancels(unit)}. "
            "Scale the inputs down."
        )


def cancelling_units(
    reservoir: Reservoir, states: Array, X: Array, feedback: Array | None
) -> Array:
    """Return, for each row, a unit whose positive and negative terms both overflow; -1 if none.

    Whether the sum of such a unit is infinity, minus infinity or NaN depends on the order of its
    terms, and therefore on the engine. If only terms of one sign overflow, the sum has this sign in
    any order, and a bounded activation saturates. `states`, (rows, n_units), are those before each
    step.
    """
    # for each unit, the sum of its positive terms and the sum of the moduli of its negative terms
    positive = np.tile(np.maximum(reservoir.bias, 0), (len(X), 1))
    negative = np.tile(np.maximum(-reservoir.bias, 0), (len(X), 1))
    parts = [(reservoir.W, states), (reservoir.W_in, X)]
    if feedback is not None and reservoir.W_fb is not None:
        parts.append((reservoir.W_fb, feedback))
    with np.errstate(over="ignore", invalid="ignore"):
        for M, rows in parts:
            above, below = _sides(M, rows)
            positive += above
            negative += below
        both = ~np.isfinite(positive) & ~np.isfinite(negative)
    return np.where(both.any(axis=1), both.argmax(axis=1), -1)


def _sides(M: Matrix, rows: Array) -> tuple[Array, Array]:
    """Return the products of M with each row, split into positive and negative terms.

    The result is two non-negative arrays of shape (n_rows, n_units), whose difference is
    ``rows @ M.T``.
    """
    up, down = _clipped(M), _clipped(-M)
    more, less = np.maximum(rows, 0).T, np.maximum(-rows, 0).T
    return (up @ more + down @ less).T, (up @ less + down @ more).T


def _clipped(M: Matrix) -> Matrix:
    return M.maximum(0) if sp.issparse(M) else np.maximum(M, 0)
