"""How good a network is on its own outputs: loops from given states, and what followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array

Advance = Callable[[Array, Array], tuple[Array, Array]]
_HUGE = 1e30  # what is lost stays finite, in float32 too
_WORST = 1.5  # standard deviations: errors beyond say no more


class LoopScore(NamedTuple):
    """What loops have come to: the less, the better.

    Attributes
    ----------
    n_lost : int
        Loops that left the range they were to stay in.
    error : float
        Root of the mean squared error, in standard deviations, cut off where it says no more.
    """

    n_lost: int
    error: float


class Baseline(NamedTuple):
    """What outputs are measured by, each array of shape (n_outputs,).

    Attributes
    ----------
    low, high : arrays
        The range of the targets.
    width : array
        How wide it is; 1, or the size of the targets, where they are constant.
    spread : array
        The standard deviation of the targets, 1 where they are constant.
    """

    low: Array
    high: Array
    width: Array
    spread: Array

    @classmethod
    def of(cls, targets: Sequence[Array]) -> Baseline:
        """Return the yardstick of targets, arrays of shape (n_samples, n_outputs)."""
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
    """Run loops side by side on their own outputs.

    Parameters
    ----------
    advance : callable
        ``advance(inputs, state)``, a step: the outputs, (n_loops, n_outputs), and the next state.
    inputs : array of shape (n_loops, n_features)
        Of the first step: outputs first, exogenous columns behind them. Changed in place.
    state : array of shape (n_loops, state_size)
    n_steps : int
    n_outputs : int
    exog : callable, optional
        ``exog(k)`` are the exogenous columns of step k, counted from 1.

    Returns
    -------
    array of shape (n_steps, n_loops, n_outputs)
        What is fed back is finite; what is returned may not be.
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
    rows: Array, followed: Sequence[Array], yardstick: Baseline, *, leeway: float = 1.0
) -> LoopScore:
    """Compare loops with what followed in the data.

    Parameters
    ----------
    rows : array of shape (n_steps, n_loops, n_outputs)
    followed : sequence of arrays of shape (n_scored, n_outputs)
        For each loop, of any length up to n_steps.
    yardstick : Baseline
    leeway : float, default=1.0
        Widths of the range that a loop may leave it by.

    Returns
    -------
    LoopScore
    """
    low, high, width, spread = yardstick
    outside = np.maximum(low - rows, rows - high) / width
    lost = ~(outside <= leeway).all(axis=(0, 2))
    errors = [(rows[: len(true), k] - true) / spread for k, true in enumerate(followed)]
    far = np.nan_to_num(np.abs(np.concatenate(errors)), nan=_WORST)
    return LoopScore(int(lost.sum()), float(np.sqrt(np.mean(np.minimum(far, _WORST) ** 2))))
