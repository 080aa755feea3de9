"""Sums near the largest float: what saturates is let pass, what cancels is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from reservoir._typing import Array, Matrix
from reservoir.activations import get_activation

if TYPE_CHECKING:
    from reservoir.dynamics.reservoir import Reservoir


def may_overflow(
    reservoir: Reservoir, X: Array, feedback: Array | None, state: Array, noise: float
) -> bool:
    """Whether sums of inputs and states within the unit range might leave that of floating point.

    The states of an unbounded activation may do so in any case.
    """
    largest = 50 * noise + 1.0  # no normal deviate is 50 standard deviations out
    for array in (X, state, feedback):
        if array is not None:
            largest = max(largest, float(array.max(initial=0.0)), -float(array.min(initial=0.0)))
    return not largest * reservoir._largest_row_sum < room(reservoir)


def room(reservoir: Reservoir) -> float:
    """Return what sums of moduli must stay below."""
    return float(np.finfo(reservoir.dtype).max) / 4  # as a double: it is compared with others


def check_states(
    reservoir: Reservoir,
    before: Array,
    X: Array,
    feedback: Array | None,
    block: Array,
    start: int,
) -> None:
    """Refuse states that are not finite, or that came of a sum of which nothing is known.

    The first row of `block` follows the state `before`; `start` is its number in the series.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # one pass; no state is larger than its root
        largest = float(np.sqrt(np.einsum("ij,ij->", block, block)))
        small = largest * reservoir._largest_row_sum < room(reservoir)
    if small and not may_overflow(reservoir, X, feedback, before, 0.0):
        return
    states = np.concatenate([before[None], block[:-1]])
    units = cancelling_units(reservoir, states, X, feedback)
    if (units >= 0).any():
        row = int(np.argmax(units >= 0))
        _check_finite(reservoir, block[:row], start)  # an earlier step is named first
        raise _not_finite(reservoir, start + row, _cancels(int(units[row])))
    _check_finite(reservoir, block, start)


def _check_finite(reservoir: Reservoir, block: Array, start: int) -> None:
    finite = np.isfinite(block).all(axis=1)
    if not finite.all():
        raise _not_finite(reservoir, start + int(np.argmin(finite)))


def _not_finite(reservoir: Reservoir, step: int, why: str = "") -> ValueError:
    activation = get_activation(reservoir.activation)
    remedy = "Scale the inputs down"
    if not activation.bounded:
        remedy += ", lower the spectral radius, or use a bounded activation such as 'tanh'"
    return ValueError(
        f"The states are not finite from step {step} on (activation={activation.name!r}, "
        f"dtype={reservoir.dtype}){why}. {remedy}."
    )


def _cancels(unit: int) -> str:
    return f": what unit {unit} receives is infinity less infinity"


def refuse_cancelling(
    reservoir: Reservoir, x: Array, u: Array, y_prev: Array | None, *, step: int | None = None
) -> None:
    """Refuse one step in which a unit receives infinity less infinity."""
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
    """Return for each row a unit whose terms overflow on both sides of zero, -1 if there is none.

    Such a sum is infinity, minus infinity or NaN, by the order of its terms and the engine: with
    fused multiply-adds it need not even become NaN. Where only one side overflows the sum has that
    side's sign in any order, and a bounded activation saturates.
    """
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
    """Return the sums of the positive terms of M times each row, and those of the negative ones."""
    up, down = _clipped(M), _clipped(-M)
    more, less = np.maximum(rows, 0).T, np.maximum(-rows, 0).T
    return (up @ more + down @ less).T, (up @ less + down @ more).T


def _clipped(M: Matrix) -> Matrix:
    return M.maximum(0) if sp.issparse(M) else np.maximum(M, 0)
