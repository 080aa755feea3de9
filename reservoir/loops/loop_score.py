"""Scores of networks in closed loop, from a comparison of loops with the data that followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array, ArrayLike

Advance = Callable[[Array, Array], tuple[Array, Array]]
_HUGE = 1e30  # bound that keeps diverging loops finite, also in float32
_WORST = 1.5  # standard deviations at which errors are clipped: larger errors are equally bad


class LoopScore(NamedTuple):
    """Score of closed loops; smaller is better.

    `n_lost` loops left the permitted range. `error` is root mean squared, of errors in standard
    deviations, and clipped.
    """

    n_lost: int
    error: float


class Baseline(NamedTuple):
    """Range and scale of the targets, with which outputs are compared, as arrays (n_outputs,).

    `width` is ``high - low``; for a constant target, its modulus, but at least 1. `spread` is the
    standard deviation; 1 for a constant target.
    """

    low: Array
    high: Array
    width: Array
    spread: Array

    @classmethod
    def of(cls, targets: Sequence[Array]) -> Baseline:
        """Return the baseline for targets, given as arrays of shape (n_samples, n_outputs)."""
        every = np.concatenate([np.asarray(Y, dtype=np.float64) for Y in targets])
        low, high, spread = every.min(axis=0), every.max(axis=0), every.std(axis=0)
        width = high - low
        width = np.where(width > 0, width, np.maximum(np.abs(high), 1.0))
        return cls(low, high, width, np.where(spread > 0, spread, 1.0))


def run_loops(
    advance: Advance,
    inputs: Array,
    state: Array,
    n_steps: int,
    n_outputs: int,
    exog: Callable[[int], Array] | None = None,
) -> Array:
    """Run closed loops side by side, and return their outputs, (n_steps, n_loops, n_outputs).

    ``advance(inputs, state)`` takes one step of all loops and returns outputs and next state.
    `inputs`, (n_loops, n_features), are those of the first step, the columns fed back and then
    exogenous ones; they are changed in place. ``exog(k)`` returns the exogenous columns of step k,
    from k = 1 on. Outputs may be infinite or NaN, although the values that are fed back are finite.
    """
    rows = np.empty((n_steps, len(inputs), n_outputs))
    for k in range(n_steps):
        outputs, state = advance(inputs, state)
        rows[k] = outputs
        inputs[:, :n_outputs] = np.clip(np.nan_to_num(outputs), -_HUGE, _HUGE)
        if exog is not None and k + 1 < n_steps:
            inputs[:, n_outputs:] = exog(k + 1)
    return rows


def score_loops(
    rows: Array, followed: Sequence[Array], baseline: Baseline, *, leeway: ArrayLike = 1.0
) -> LoopScore:
    """Return the score of loops, compared with the data that followed.

    `rows` are (n_steps, n_loops, n_outputs), the data that `followed` each loop (n_scored,
    n_outputs), with n_scored at most n_steps. `leeway`, which broadcasts with `rows`, is how far a
    loop may leave the range of the targets, in multiples of its width.
    """
    low, high, width, spread = baseline
    outside = np.maximum(low - rows, rows - high) / width
    lost = ~(outside <= leeway).all(axis=(0, 2))
    errors = [(rows[: len(true), k] - true) / spread for k, true in enumerate(followed)]
    far = np.nan_to_num(np.abs(np.concatenate(errors)), nan=_WORST)
    return LoopScore(int(lost.sum()), float(np.sqrt(np.mean(np.minimum(far, _WORST) ** 2))))
