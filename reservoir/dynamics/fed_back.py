"""Values that a closed loop feeds back: its outputs, clipped or changed by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir._validation import as_plain, check_unmasked


def as_limits(clip: Any, n_outputs: int, dtype: Any) -> tuple[Array, Array] | None:
    """Return the bounds `clip` as two arrays (low, high), after checks; None if `clip` is None."""
    if clip is None:
        return None
    check_unmasked("clip", clip)
    try:
        low, high = (as_plain("clip", end, dtype) for end in clip)
    except (TypeError, ValueError):
        raise ValueError(f"clip={clip!r} must be a pair (low, high) of numbers.") from None
    fits = all(end.shape in ((), (n_outputs,)) for end in (low, high))
    if not fits or not (low <= high).all():
        raise ValueError(
            f"clip={clip!r} must be a pair (low, high) of numbers or of arrays of shape "
            f"({n_outputs},), with low <= high."
        )
    return low, high


def as_hold(clip: Any, n_outputs: int, dtype: Any) -> Callable[[Array], Array]:
    """Return a function that maps outputs, (n_outputs,), to the values that are fed back."""
    if callable(clip):
        return lambda output: changed(clip, output)
    limits = as_limits(clip, n_outputs, dtype)
    if limits is None:
        return lambda output: output
    return lambda output: np.clip(output, *limits)


def changed(clip: Callable[[Array], Any], output: Array) -> Array:
    """Return ``clip(outputs)`` after checks; the function receives a copy that it may change.

    Raise ValueError if it returns a wrong shape, or values that are not finite for finite outputs.
    """
    fed = np.asarray(clip(output.copy()), dtype=output.dtype)
    if fed.shape != output.shape:
        raise ValueError(
            f"The function clip must return the {output.size} values to feed back, as an array of "
            f"shape {output.shape}; got {fed.shape}."
        )
    if not np.isfinite(fed).all() and np.isfinite(output).all():
        j = int(np.argmin(np.isfinite(fed)))
        raise ValueError(
            f"The function clip returned {fed[j]} for output {j}, which is {output[j]:.6g}. Values "
            "that are fed back must be finite."
        )
    return fed


def one_step_late(before: Array, outputs: Array) -> Array:
    """Return the output that each step of a run receives: that of the previous step.

    `before`, (n_outputs,), is the output before the first step; `outputs`, (n_steps, n_outputs),
    are those of the steps, in training the targets (teacher forcing).
    """
    return np.vstack([before, outputs[:-1]])
