"""Streams from a plant that stays as it is, or drifts in one of five ways.

A task is X and y of shapes (n_rows, 1) and (n_rows,), in order of time. The first `n_fit` rows come
before any drift (but for *season*, which begins with them); both columns are standardised by their
means and standard deviations there. All is drawn from the seed.

The plant of all tasks but *new regime* is a Volterra system: two filters of eight lags see the
input, ``v = g * u`` and ``w = h * u``, and ``y = tanh(1.5 v) + v w / 2 + noise``. The standard
deviation of the noise is a tenth of that of y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
N_LAGS = 8
NOISE = 0.1  # of the standard deviation of what is measured


@dataclass(frozen=True)
class Task:
    """Rows before the drift, and the stream behind them."""

    X: Array
    y: Array
    n_fit: int


def constant(n_fit: int, n_rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Nothing changes: what does forgetting cost?"""
    return _plant(np.zeros(n_fit + n_rows), rng)


def jump(n_fit: int, n_rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Both filters are replaced at once, three times."""
    times = np.arange(-n_fit, n_rows)
    return _plant(np.clip((4 * times) // n_rows, 0, 3), rng)


def creep(n_fit: int, n_rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The filters turn, throughout the stream, into others."""
    return _plant(np.clip(np.arange(-n_fit, n_rows) / n_rows, 0, 1), rng)


def season(n_fit: int, n_rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The filters turn to others and back, three times within the stream."""
    return _plant((1 - np.cos(6 * np.pi * np.arange(n_fit + n_rows) / n_rows)) / 2, rng)


def sensor_scale(n_fit: int, n_rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The plant stays; its input's sensor changes gain and offset, twice at once, then slowly."""
    X, y = _plant(np.zeros(n_fit + n_rows), rng)
    times = np.arange(-n_fit, n_rows) / n_rows
    gain = np.interp(times, [0.25, 0.25, 0.5, 0.5, 1], [1, 0.5, 0.5, 1.5, 1])
    offset = np.interp(times, [0.25, 0.25, 0.5, 0.5, 1], [0, 0.5, 0.5, -0.5, 0])
    return gain[:, None] * X + offset[:, None], y


def new_regime(n_fit: int, n_rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The Mackey-Glass equation, one value ahead, six time units apart: tau 17, then 30, then 17.

    The middle third of the stream has the delay that was never seen. X is measured with noise; y is
    the next measured value.
    """
    times = np.arange(-n_fit, n_rows + 1)
    unseen = (times >= n_rows // 3) & (times < 2 * n_rows // 3)
    series = _mackey_glass(np.where(unseen, 30.0, 17.0), rng)
    series = series + NOISE * 0.3 * series.std() * rng.standard_normal(len(series))
    return series[:-1, None], series[1:]


TASKS: dict[str, Callable[[int, int, np.random.Generator], tuple[Array, Array]]] = {
    "constant": constant,
    "jump": jump,
    "creep": creep,
    "season": season,
    "new regime": new_regime,
    "sensor scale": sensor_scale,
}


def draw(name: str, seed: int, n_fit: int = 1000, n_rows: int = 6000) -> Task:
    """Return a task, standardised by the rows before the stream."""
    if n_fit < 2 * N_LAGS:
        raise ValueError(f"n_fit={n_fit} must be at least {2 * N_LAGS}")
    X, y = TASKS[name](n_fit, n_rows, np.random.default_rng(seed))
    X = (X - X[:n_fit].mean()) / X[:n_fit].std()
    return Task(X, (y - y[:n_fit].mean()) / y[:n_fit].std(), n_fit)


def _plant(place: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of a plant that is at `place` among filters of equal length, drawn one by one.

    Between whole numbers it turns from one pair of filters to the next.
    """
    n_filters = int(np.ceil(place.max())) + 1
    filters = rng.standard_normal((n_filters, 2, N_LAGS)) * 0.7 ** np.arange(N_LAGS)
    filters /= np.linalg.norm(filters, axis=2, keepdims=True)
    u = rng.standard_normal(len(place) + N_LAGS - 1)
    lagged = np.lib.stride_tricks.sliding_window_view(u, N_LAGS)[:, ::-1]
    below = np.floor(place).astype(int)
    above = np.minimum(below + 1, n_filters - 1)
    angle = np.pi / 2 * (place - below)
    turned = (
        np.cos(angle)[:, None, None] * filters[below]
        + np.sin(angle)[:, None, None] * filters[above]
    )
    v, w = np.einsum("tfk,tk->ft", turned, lagged)
    y = np.tanh(1.5 * v) + v * w / 2
    return lagged[:, :1].copy(), y + NOISE * y.std() * rng.standard_normal(len(y))


def _mackey_glass(
    tau: Array, rng: np.random.Generator, *, spacing: int = 6, per_unit: int = 10, run_up: int = 100
) -> Array:
    """One value for each of `tau`, `spacing` time units apart, by Heun's steps of 1 / `per_unit`.

    The first `run_up` values, on the way to the attractor, are dropped.
    """
    longest = int(per_unit * tau.max())
    step = 1 / per_unit
    tau = np.concatenate([np.full(run_up, tau[0]), tau])
    x = np.full(longest + 1 + len(tau) * spacing * per_unit, 1.2 + rng.uniform(-0.1, 0.1))
    rates = 0.2 * x / (1 + x**10)  # of production, by the value that is delayed
    for t in range(longest, len(x) - 1):
        lag = int(per_unit * tau[(t - longest) // (spacing * per_unit)])
        first = rates[t - lag] - 0.1 * x[t]
        second = rates[t - lag + 1] - 0.1 * (x[t] + step * first)
        x[t + 1] = x[t] + step / 2 * (first + second)
        rates[t + 1] = 0.2 * x[t + 1] / (1 + x[t + 1] ** 10)
    return x[longest + (run_up + 1) * spacing * per_unit :: spacing * per_unit]
