"""How far outputs of a closed loop may go before a forecast is not to be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from reservoir._typing import Array
from reservoir._validation import caller_level

_FAR = 10.0  # widths of the training range beyond it: no forecast that is worth anything goes there
_ROUNDING = 1e-9  # a range narrower than this share of its largest number is that of a constant
_NOTHING = np.array([[np.inf], [-np.inf]])  # the range of no targets
_OF_CONSTANT = 0.1  # of a constant's size: what stands for the width of its range


def reach_of(targets: Sequence[Array], before: Array | None = None) -> Array:
    """Return the least and the largest target of each output, (2, n_outputs).

    `before` is what earlier chunks reached. Targets that are missing do not count.
    """
    low, high = before if before is not None else _NOTHING
    for part in targets:
        low = np.fmin(np.fmin.reduce(part, axis=0), low)
        high = np.fmax(np.fmax.reduce(part, axis=0), high)
    return np.array([low, high], dtype=np.float64)


def width_of(reach: Array) -> Array:
    """Return how wide the range of each output is; of a constant, a tenth of its size, or 1."""
    low, high = reach
    size = np.abs(reach).max(axis=0)
    floor = np.where(size > 0, _OF_CONSTANT * size, 1.0)
    with np.errstate(over="ignore"):
        width = high - low
    return np.where(width > _ROUNDING * size, width, floor)


def widened(reach: Array) -> Array:
    """Return a range with its own width added on both sides."""
    width = width_of(reach)
    return np.array([reach[0] - width, reach[1] + width])


def warn_of_leaving(
    rows: Array,
    reach: Array,
    *,
    n_sound: int,
    sequence: int | None = None,
    clipped: bool = False,
) -> bool:
    """Say so where rows leave the range of the training targets by far, or the loop diverged.

    Parameters
    ----------
    rows : array of shape (n_steps, n_outputs)
    reach : array of shape (2, n_outputs)
        The range, in the units of the rows; NaN or infinite where it is not known.
    n_sound : int
        The step at which the loop left what floating point can hold, or the number of steps.
    sequence : int, optional
        Which one it was.
    clipped : bool, default=False
        Whether what was fed back went through `clip`.

    Returns
    -------
    bool
        Whether there was anything to say.
    """
    left = _first_outside(rows[:n_sound], reach)
    diverged = n_sound < len(rows)
    if left is None and not diverged:
        return False
    # one warning that says both, where both are true
    which = "" if sequence is None else f" of sequence {sequence}"
    text = []
    if diverged:
        text.append(
            f"The closed loop{which} diverged at step {n_sound}: it left the range of numbers "
            "whose squares are finite. The rows from there on repeat the last output before it."
        )
    if left is not None:
        k, j = left
        name = f" {j}" if rows.shape[1] > 1 else ""
        text.append(
            f"The closed loop{which} left the range of the training targets at step {k}: output"
            f"{name} is {rows[k, j]:.6g}, and the targets were between {reach[0, j]:.6g} and "
            f"{reach[1, j]:.6g}. The rows from there on are not to be trusted."
        )
    text.append(
        "Scaled data (StandardScaler), a larger alpha, noise in training or a smaller spectral "
        "radius often help"
        + (
            "; what was fed back went through clip, and that was not enough."
            if clipped
            else "; clip=True in forecast holds what is fed back near those targets."
        )
    )
    warnings.warn(" ".join(text), RuntimeWarning, stacklevel=caller_level())
    return True


def _first_outside(rows: Array, reach: Array) -> tuple[int, int] | None:
    """Return row and column of the first output that is ten widths or more outside."""
    with np.errstate(over="ignore", invalid="ignore"):
        room = _FAR * width_of(reach)
        outside = (rows < reach[0] - room) | (rows > reach[1] + room)
    if not outside.any():
        return None
    k = int(np.argmax(outside.any(axis=1)))
    return k, int(np.argmax(outside[k]))
