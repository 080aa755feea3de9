"""Closed loops of one source of features with many linear readouts, all advanced side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reservoir._typing import Array
from reservoir.dynamics.feature_source import FeatureSource
from reservoir.dynamics.fed_back import changed

_HUGE = 1e30  # bound that keeps diverging loops finite, also in float32


def run_path_loops(
    source: FeatureSource,
    coefs: Array,
    intercepts: Array,
    states: Array,
    inputs: Array,
    n_steps: int,
    *,
    exog: Callable[[int], Array] | None = None,
    clip: Any = None,
    increments: bool = False,
) -> Array:
    """Run one closed loop for each pair of start and readout, all side by side.

    Return (n_steps, n_readouts, n_starts, n_outputs), before clipping, maybe infinite or NaN.
    `coefs` are (n_readouts, n_outputs, width), `inputs` of first steps (n_starts, n_features):
    columns fed back, then exogenous ones. ``exog(k)``, (n_starts, n_exog), is of step k >= 1.
    `clip` bounds or maps what is fed back. If `increments`, predictions are added to the first
    columns of the input.
    """
    n_readouts, n_outputs, width = coefs.shape
    n_starts = len(states)
    transposed = np.ascontiguousarray(coefs.transpose(0, 2, 1))
    limited = _limiter(clip)
    # one row per pair of readout and start, so that each step is one call and one matrix product
    state = np.tile(states, (n_readouts, 1))
    given = np.tile(np.asarray(inputs, source.dtype), (n_readouts, 1))
    rows = np.empty((n_steps, n_readouts, n_starts, n_outputs))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_steps):
            features, state = source.advance(state, given)
            out = np.matmul(features.reshape(n_readouts, n_starts, width), transposed)
            out += intercepts[:, None]
            if increments:
                out += given[:, :n_outputs].reshape(out.shape)
            rows[k] = out
            given[:, :n_outputs] = limited(np.nan_to_num(out).reshape(-1, n_outputs))
            if exog is not None and k + 1 < n_steps:
                given[:, n_outputs:] = np.tile(exog(k + 1), (n_readouts, 1))
    return rows


def _limiter(clip: Any) -> Callable[[Array], Array]:
    """Return a function that maps finite outputs, (n_rows, n_outputs), to the values fed back."""
    if callable(clip):
        return lambda rows: np.array([changed(clip, row) for row in rows])
    low, high = clip if clip is not None else (-_HUGE, _HUGE)
    return lambda rows: np.clip(rows, low, high)


def run_source_loops(
    source: FeatureSource,
    readouts: Sequence[tuple[Array, Array]],
    n_steps: int,
    *,
    initial_states: Array,
    initial_outputs: Array,
    exog: Array | None = None,
    clip: Any = None,
) -> Array:
    """Run loops of linear readouts side by side; results are as from `run_one_by_one`."""
    source.check_can_loop()  # a source that cannot forecast must not be chosen by forecasts
    source, states = source.trimmed(initial_states)
    inputs = initial_outputs if exog is None else np.hstack([initial_outputs, exog[:, 0]])
    return run_path_loops(
        source,
        np.stack([np.asarray(coef, source.dtype) for coef, _ in readouts]),
        np.stack([np.asarray(intercept, source.dtype) for _, intercept in readouts]),
        states,
        inputs,
        n_steps,
        exog=None if exog is None else lambda k: exog[:, k],
        clip=clip,
    )


def mean_log_errors(rows: Array, followed: Array, spread: Array) -> Array:
    """Return each loop's mean of `log_errors` over known steps, (n_readouts, n_starts).

    `rows` are predictions, (n_steps, n_readouts, n_starts, n_outputs); `followed`, (n_steps,
    n_starts, n_outputs), is NaN where unknown, and known at one step of each loop at least.
    """
    known = np.logical_not(np.isnan(followed).any(axis=2))
    logs = log_errors(rows, followed[:, None], spread)
    return np.mean(logs, axis=0, where=known[:, None])


def log_errors(
    rows: Array, followed: Array, spread: Array, *, low: float = 1e-9, high: float = 1.0
) -> Array:
    """Return the decimal logarithm of the error at each step, with errors clipped to bounds.

    Errors of chaotic systems grow exponentially, so that all steps have about the same weight in
    the mean of the logarithms. The result, (n_steps, ...), is of the root mean squared error over
    outputs, the last axis, in units of `spread`, the standard deviations of the training targets;
    log10(high) if a row is not finite. `followed` broadcasts with `rows`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.sqrt((((rows - followed) / spread) ** 2).mean(axis=-1))
    return np.log10(np.clip(np.nan_to_num(error, nan=high, posinf=high), low, high))
