"""What a closed loop feeds back: its outputs, held in a range or changed by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reservoir._typing import Array


def as_limits(clip: Any, n_outputs: int, dtype: Any) -> tuple[Array, Array] | None:
    """Return the bounds in `clip` as arrays (low, high), after checks; None if `clip` is None."""
    if clip is None:
        return None
    try:
        low, high = (np.array(end, dtype=dtype) for end in clip)
    except (TypeError, ValueError):
        raise ValueError(f"clip={clip!r} must be a pair (low, high) of numbers.") from None
    fits = all(end.shape in ((), (n_outputs,)) for end in (low, high))
    if not fits or not (low <= high).all():
        raise ValueError(
            f"clip={clip!r} must be (low, high), numbers or arrays of shape ({n_outputs},), with "
            "low <= high."
        )
    return low, high


def as_hold(clip: Any, n_outputs: int, dtype: Any) -> Callable[[Array], Array]:
    """Return what makes of outputs, (n_outputs,), the ones that are fed back."""
    if callable(clip):
        return lambda output: changed(clip, output)
    limits = as_limits(clip, n_outputs, dtype)
    if limits is None:
        return lambda output: output
    return lambda output: np.clip(output, *limits)


def changed(clip: Callable[[Array], Any], output: Array) -> Array:
    """Return what a function makes of outputs, after checks; it gets a copy, which it may change.

    Raises
    ------
    ValueError
        If it returns another shape, or a value that is not finite where the outputs are.
    """
    fed = np.asarray(clip(output.copy()), dtype=output.dtype)
    if fed.shape != output.shape:
        raise ValueError(
            f"clip, a function, must return what is fed back in place of {output.size} outputs: "
            f"shape {output.shape}; got {fed.shape}."
        )
    if not np.isfinite(fed).all() and np.isfinite(output).all():
        j = int(np.argmin(np.isfinite(fed)))
        raise ValueError(
            f"clip, a function, made {fed[j]} of output {j}, {output[j]:.6g}; what is fed back "
            "must be finite."
        )
    return fed


def one_step_late(before: Array, outputs: Array) -> Array:
    """Return what each step of a run receives of the outputs: those of the step before it.

    Parameters
    ----------
    before : array of shape (n_outputs,)
        The output before the first step.
    outputs : array of shape (n_steps, n_outputs)
        In training the targets: the teacher.

    Returns
    -------
    array of shape (n_steps, n_outputs)
    """
    return np.vstack([before, outputs[:-1]])
