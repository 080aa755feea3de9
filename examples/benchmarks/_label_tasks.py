"""The tasks of `labels.py`: a label at each row, drawn from a seed.

Each task has recordings to learn from and others to label; a single recording is continued. Which
tasks are there to choose defaults by, and which to report, was written down in `REPORT` before
anything was measured; every family has members in both parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from reservoir.datasets import (
    gestures,
    load_co2,
    load_el_nino,
    load_sunspots,
    lorenz,
    mackey_glass,
    sine_square,
    weather_and_load,
)

Array = np.ndarray
DATA = 2000  # added to a seed: data and networks must not be drawn from one stream


class Labelled(NamedTuple):
    """Recordings to learn from, and others to label."""

    X: list[Array]
    y: list[Array]
    X_new: list[Array]
    y_new: list[Array]


class Task(NamedTuple):
    """A place in the tables, and the function that draws the data of a seed."""

    reported: bool
    family: str
    draw: Callable[[int], Labelled]


def cut(X: Array, y: Array, n_train: int) -> Labelled:
    """Return one recording, cut in two."""
    X = X.reshape(len(X), -1).astype(float)
    return Labelled([X[:n_train]], [y[:n_train]], [X[n_train:]], [y[n_train:]])


def rng_of(seed: int) -> np.random.Generator:
    """Return the generator of the data of a seed."""
    return np.random.default_rng(DATA + seed)


def chain(rng: np.random.Generator, n_rows: int, shares: Array, stay: float) -> Array:
    """Return states that last for 1 / (1 - stay) rows on average; `shares` are of what follows."""
    states = np.empty(n_rows, dtype=int)
    state = int(rng.integers(len(shares)))
    for t in range(n_rows):
        if rng.random() > stay:
            weights = np.where(np.arange(len(shares)) == state, 0, shares)
            state = int(rng.choice(len(shares), p=weights / weights.sum()))
        states[t] = state
    return states


# --- hidden states --------------------------------------------------------------------------------


def levels(
    seed: int, n_rows: int, n_states: int, stay: float, noise: float, n_columns: int = 1
) -> Labelled:
    """Noisy levels: each state has its own, one apart in each column."""
    rng = rng_of(seed)
    states = chain(rng, n_rows + 2000, np.ones(n_states), stay)
    means = np.stack([rng.permutation(n_states) for _ in range(n_columns)], axis=1)
    X = means[states] + noise * rng.standard_normal((len(states), n_columns))
    return cut(X, states, n_rows)


def rare_level(seed: int, n_rows: int) -> Labelled:
    """A level that holds in 3 % of the rows, in noise."""
    rng = rng_of(seed)
    switch = np.where(np.arange(2) == 0, 0.002, 0.06)
    states = np.empty(n_rows + 3000, dtype=int)
    state = 0
    for t in range(len(states)):
        state = 1 - state if rng.random() < switch[state] else state
        states[t] = state
    return cut(1.5 * states + rng.standard_normal(len(states)), states, n_rows)


def regimes(seed: int, n_rows: int, coefs: Array, sizes: Array, stay: float) -> Labelled:
    """Autoregressions of order 1, whose coefficient and noise depend on the state."""
    rng = rng_of(seed)
    states = chain(rng, n_rows + 2000, np.ones(len(coefs)), stay)
    x, drawn = np.zeros(len(states)), rng.standard_normal(len(states))
    for t in range(1, len(states)):
        x[t] = coefs[states[t]] * x[t - 1] + sizes[states[t]] * drawn[t]
    return cut(x, states, n_rows)


def cycles(seed: int, n_rows: int, lengths: Array, noise: float) -> Labelled:
    """Noisy waves whose frequency depends on the state."""
    rng = rng_of(seed)
    states = chain(rng, n_rows + 2000, np.ones(len(lengths)), 0.985)
    phase = np.cumsum(2 * np.pi / lengths[states])
    return cut(np.sin(phase) + noise * rng.standard_normal(len(states)), states, n_rows)


# --- shapes and events ----------------------------------------------------------------------------


def shapes(seed: int, n_rows: int, noise: float) -> Labelled:
    """A wave that is a sine or a square, with noise."""
    X, y = sine_square(n_rows + 2000, random_state=DATA + seed)
    return cut(X + noise * rng_of(seed).standard_normal(X.shape), y, n_rows)


def last_two(seed: int, n_rows: int) -> Labelled:
    """Pulses of two kinds, one row in ten: the order of the last two, four labels."""
    rng = rng_of(seed)
    kinds = np.where(rng.random(n_rows + 3000) < 0.1, rng.choice([-1, 1], n_rows + 3000), 0)
    last, before = 0, 0
    y = np.empty(len(kinds), dtype=int)
    for t, kind in enumerate(kinds):
        if kind:
            before, last = last, int(kind > 0)
        y[t] = 2 * before + last
    return cut(kinds + 0.1 * rng.standard_normal(len(kinds)), y, n_rows)


def recent(seed: int, n_rows: int, window: int) -> Labelled:
    """Whether a pulse came within the last rows."""
    rng = rng_of(seed)
    pulses = rng.random(n_rows + 3000) < 0.04
    y = lfilter(np.ones(window), [1.0], pulses.astype(float)) > 0
    return cut(pulses + 0.2 * rng.standard_normal(len(pulses)), y.astype(int), n_rows)


def delayed(seed: int, n_rows: int, first: int, second: int) -> Labelled:
    """Whether two earlier bits differ."""
    bits = rng_of(seed).integers(0, 2, n_rows + 2000)
    y = np.roll(bits, first) ^ np.roll(bits, second)
    return cut(2.0 * bits - 1, y, n_rows)


def rhythm(seed: int, n_rows: int) -> Labelled:
    """A heartbeat whose beats come at even or uneven distances, with rare extra beats."""
    rng = rng_of(seed)
    x, y = np.zeros(n_rows + 3000), np.zeros(n_rows + 3000, dtype=int)
    t, uneven = 0, False
    while t < len(x) - 40:
        uneven = rng.random() < (0.03 if not uneven else 0.97)
        step = int(rng.integers(9, 26)) if uneven else int(rng.integers(16, 19))
        x[t : t + 3] += [0.5, 1.5, -0.4]
        y[t : t + step] = int(uneven)
        t += step
    return cut(x + 0.1 * rng.standard_normal(len(x)), y, n_rows)


# --- recordings -----------------------------------------------------------------------------------


def steps(seed: int, n_people: int, seconds: int) -> Labelled:
    """A sensor at the belt: somebody stands, walks, climbs or comes down; people of their own."""
    rng = rng_of(seed)
    X, y = zip(*[_one_person(rng, seconds) for _ in range(n_people + 3)], strict=True)
    return Labelled(list(X[:n_people]), list(y[:n_people]), list(X[n_people:]), list(y[n_people:]))


def _one_person(rng: np.random.Generator, seconds: int) -> tuple[Array, Array]:
    n_rows, pace, strength = 25 * seconds, rng.uniform(1.6, 2.1), rng.uniform(0.8, 1.3)
    y = np.repeat(rng.integers(0, 4, n_rows // 60 + 1), 60)[:n_rows]
    phase = np.cumsum(2 * np.pi * pace / 25 + rng.normal(0, 0.04, n_rows))
    saw = np.sin(np.outer(phase, [1, 2, 3])) @ [1, 1 / 2, 1 / 3]
    vertical = np.select([y == 0, y == 1, y == 2], [0, 1.2 * np.sin(phase), saw], -saw)
    forward = np.select([y == 0, y == 1], [0, 1], 0.8) * np.cos(phase)
    X = strength * np.c_[1.8 * vertical, forward] + rng.normal(0, 0.5, (n_rows, 2))
    return X, y


def gesture_steps(seed: int) -> Labelled:
    """Recordings of gestures, each row labelled with its gesture."""
    X, y = gestures(160, random_state=DATA + seed)
    each = [np.full(len(rows), label) for rows, label in zip(X, y, strict=True)]
    X = [np.asarray(rows, dtype=float) for rows in X]
    return Labelled(X[:100], each[:100], X[100:], each[100:])


# --- dynamics and shipped series ------------------------------------------------------------------


def wing(seed: int, ahead: int, noise: float) -> Labelled:
    """On which wing the Lorenz system will be, seen from z alone or with noise from x."""
    rows = lorenz(6000, dt=0.02, random_state=DATA + seed)
    y = (np.roll(rows[:, 0], -ahead) > 0).astype(int)[:-ahead]
    X = rows[:-ahead, :1] / 8 + noise * rng_of(seed).standard_normal((len(y), 1))
    return cut(X, y, 4000)


def rising(seed: int, n_rows: int) -> Labelled:
    """Whether Mackey-Glass will be higher in fifteen steps, with noise."""
    x = mackey_glass(n_rows + 2015, random_state=DATA + seed).ravel()
    y = (x[15:] > x[:-15]).astype(int)
    noisy = 3 * (x - x.mean()) + 0.1 * rng_of(seed).standard_normal(len(x))
    return cut(noisy[:-15], y, n_rows)


def maps(seed: int, n_rows: int) -> Labelled:
    """Logistic maps of three parameters that take turns, with noise."""
    rng = rng_of(seed)
    states, x = chain(rng, n_rows + 2000, np.ones(3), 0.97), 0.4
    rows = np.empty(len(states))
    for t, state in enumerate(states):
        x = (3.6, 3.8, 4.0)[state] * x * (1 - x)
        x = min(max(x, 1e-6), 1 - 1e-6)
        rows[t] = x
    return cut(2 * rows - 1 + 0.1 * rng.standard_normal(len(rows)), states, n_rows)


def phase_of_year(seed: int) -> Labelled:
    """The season of the year, from weekly CO2 less its mean of a year, with noise."""
    x = load_co2().ravel()
    x = x[52:] - lfilter(np.ones(52) / 52, [1.0], x)[52:]
    y = ((np.arange(len(x)) % 52.18) / 13.05).astype(int).clip(0, 3)
    noisy = (x - x.mean()) / x.std() + 0.5 * rng_of(seed).standard_normal(len(x))
    return cut(noisy, y, 1400)


def sunspot_phase(seed: int) -> Labelled:
    """Whether the activity of the sun rises, of the next three years against the last three."""
    x = np.sqrt(load_sunspots().ravel())
    smooth = np.convolve(x, np.ones(3) / 3, "valid")
    y = (smooth[3:] > smooth[:-3]).astype(int)
    X = (x[2:-3] - x.mean()) / x.std() + 0.1 * rng_of(seed).standard_normal(len(y))
    return cut(X, y, 200)


def warm(seed: int) -> Labelled:
    """Whether the sea will be warmer or colder than usual in three months, or neither."""
    x = load_el_nino().ravel()
    months = np.arange(len(x)) % 12
    anomaly = x - np.array([x[months == m].mean() for m in range(12)])[months]
    y = np.digitize(anomaly[3:], [-0.5, 0.5])
    X = anomaly[:-3] + 0.05 * rng_of(seed).standard_normal(len(y))
    return cut(X, y, 500)


def weekend(seed: int) -> Labelled:
    """Whether it is a day of the weekend, from daily load, with what the weather does."""
    _, load = weather_and_load(1400, random_state=DATA + seed)[:2]
    x = np.asarray(load, dtype=float).ravel()
    x = (x - x.mean()) / x.std()
    y = (np.arange(len(x)) % 7 >= 5).astype(int)
    return cut(x, y, 900)


AR = (np.array([0.9, 0.0, 0.6, -0.7]), np.array([0.4, 1.0, 1.6, 0.7]))
REPORT = {
    "levels, 4 states",
    "levels, rare",
    "regimes, 2 of variance",
    "waves, 2 lengths",
    "pulse within 15 rows",
    "steps, 4 people",
    "sine or square, noise",
    "Lorenz wing ahead",
    "sunspots rising",
}
_ALL: dict[str, tuple[str, Callable[[int], Labelled]]] = {
    "levels, 3 states": ("levels", lambda s: levels(s, 2000, 3, 0.97, 1.0)),
    "levels, 4 states": ("levels", lambda s: levels(s, 2000, 4, 0.97, 1.0)),
    "levels, 300 rows": ("levels", lambda s: levels(s, 300, 3, 0.97, 0.7)),
    "levels, 3 columns": ("levels", lambda s: levels(s, 8000, 5, 0.95, 2.0, 3)),
    "levels, slow": ("levels", lambda s: levels(s, 10_000, 3, 0.995, 2.0)),
    "levels, rare": ("levels", lambda s: rare_level(s, 6000)),
    "regimes, 4 of AR(1)": ("regimes", lambda s: regimes(s, 2000, *AR, 0.98)),
    "regimes, 30,000 rows": ("regimes", lambda s: regimes(s, 30_000, *AR, 0.98)),
    "regimes, 2 of variance": (
        "regimes",
        lambda s: regimes(s, 3000, np.zeros(2), np.array([0.6, 1.4]), 0.98),
    ),
    "maps, 3 parameters": ("regimes", lambda s: maps(s, 3000)),
    "waves, 3 lengths": ("shapes", lambda s: cycles(s, 3000, np.array([9, 12, 18]), 0.3)),
    "waves, 2 lengths": ("shapes", lambda s: cycles(s, 1000, np.array([15, 20]), 0.3)),
    "sine or square": ("shapes", lambda s: shapes(s, 1500, 0.0)),
    "sine or square, noise": ("shapes", lambda s: shapes(s, 1500, 0.3)),
    "order of two pulses": ("events", lambda s: last_two(s, 3000)),
    "pulse within 15 rows": ("events", lambda s: recent(s, 3000, 15)),
    "pulse within 8 rows": ("events", lambda s: recent(s, 1000, 8)),
    "two bits differ": ("events", lambda s: delayed(s, 2000, 2, 4)),
    "heartbeat": ("events", lambda s: rhythm(s, 6000)),
    "steps, 8 people": ("recordings", lambda s: steps(s, 8, 60)),
    "steps, 4 people": ("recordings", lambda s: steps(s, 4, 60)),
    "gestures": ("recordings", gesture_steps),
    "Lorenz wing ahead": ("dynamics", lambda s: wing(s, 15, 0.05)),
    "Mackey-Glass rising": ("dynamics", lambda s: rising(s, 2000)),
    "CO2, quarter of the year": ("shipped", phase_of_year),
    "sunspots rising": ("shipped", sunspot_phase),
    "El Nino in three months": ("shipped", warm),
    "weekend by load": ("shipped", weekend),
}
TASKS = {name: Task(name in REPORT, family, draw) for name, (family, draw) in _ALL.items()}
