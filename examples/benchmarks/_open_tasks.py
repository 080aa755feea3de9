"""The tasks of `as_it_comes.py`: rows to learn from, rows to predict, drawn from a seed.

A `Rows` task is a regression, row by row, of one sequence or of many; what is scored follows the
rows to learn from, or is made of other sequences. A `FreeRun` learns one row ahead and then goes on
alone from three origins. Noise lies on the rows to learn from only: white, or an autoregression of
.9 (`"AR"`), in units of the clean target's standard deviation; what is scored is the clean target,
of real series what was observed. In free runs the rows before an origin are noisy as well.

Every family of tasks has members in both parts: those to choose by and those to report. Which is
which was written down, in `CHOOSE` and `REPORT`, before anything was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from reservoir.datasets import (
    gestures,
    henon,
    load_co2,
    load_el_nino,
    load_sunspots,
    logistic_map,
    lorenz,
    lorenz96,
    mackey_glass,
    memory_capacity_input,
    multiple_superposed_oscillators,
    narma,
    patient_visits,
    roessler,
    weather_and_load,
)

Array = np.ndarray
DATA = 1000  # added to a seed: data and networks must not be drawn from one stream
RUN_UP = 200  # rows of generated filters that are dropped
MEMORY = 0.9  # of autocorrelated noise
ORIGINS = 3


@dataclass(frozen=True)
class Rows:
    """Sequences to learn from, and others to predict; a single one is continued by the other.

    Tables of inputs and of targets have two dimensions. `scaled`: inputs are of order 10 to 1,000,
    and a scaler stands before the network. `last` holds forecasts that need no model.
    """

    X: list[Array]
    y: list[Array]
    X_new: list[Array]
    y_new: list[Array]
    scaled: bool = False
    last: list[Array] | None = None


@dataclass(frozen=True)
class FreeRun:
    """A series with its noise, how many rows to learn from, and clean rows behind each origin.

    `near` says over how many rows the error is taken. With a `threshold`, in standard deviations
    of the clean rows to learn from, the loss counts the steps until a run is as far off.
    """

    series: Array
    n_train: int
    truths: list[Array] = field(repr=False)
    origins: list[int]
    deviation: Array
    near: int
    threshold: float | None
    season: int
    scaled: bool


class Task(NamedTuple):
    """A place in the tables, and the function that draws the data of a seed."""

    reported: bool
    kind: str
    draw: Callable[[int], Rows | FreeRun]


# --- noise and pieces -----------------------------------------------------------------------------

Noise = tuple[str, float] | None


def with_noise(y: Array, noise: Noise, rng: np.random.Generator) -> Array:
    """Return y plus white or autocorrelated noise, in standard deviations of its columns."""
    if noise is None:
        return y
    law, size = noise
    drawn = rng.standard_normal((RUN_UP + len(y), *y.shape[1:]))
    if law == "AR":
        drawn = np.sqrt(1 - MEMORY**2) * lfilter([1], [1, -MEMORY], drawn, axis=0)
    return y + size * y.std(axis=0) * drawn[RUN_UP:]


def cut(
    X: Array,
    clean: Array,
    n_train: int,
    rng: np.random.Generator,
    noise: Noise = None,
    **more: bool,
) -> Rows:
    """Return a task whose first rows are learned from."""
    X, clean = X.reshape(len(X), -1), clean.reshape(len(clean), -1)
    noisy = with_noise(clean[:n_train], noise, rng)
    return Rows([X[:n_train]], [noisy], [X[n_train:]], [clean[n_train:]], **more)


# --- from inputs to outputs -----------------------------------------------------------------------


def narma_rows(
    order: int, n_train: int, noise: Noise, seed: int, *, n_new: int = 1000, unit: float = 1.0
) -> Rows:
    """NARMA; draws that diverge are drawn again. `unit` scales the inputs, which get an offset."""
    rng = np.random.default_rng([DATA, seed])
    while True:
        try:
            X, y = narma(n_train + n_new, order=order, random_state=rng)
            break
        except ValueError:
            continue
    X = X if unit == 1.0 else 5 * unit + unit * X
    return cut(X, y, n_train, rng, noise, scaled=unit != 1.0)


def _wiener(u: Array) -> Array:
    x = lfilter([1], [1, -1.6, 0.8], u[:, 0])
    x /= x.std()
    return np.tanh(x) + 0.3 * x**2


def _hammerstein(u: Array) -> Array:
    return lfilter([1, 0.5], [1, -1.2, 0.5], u[:, 0] ** 2 + u[:, 0])


def _volterra(u: Array) -> Array:
    a = lfilter([1, 0.8, 0.4, 0.2], [1], u[:, 0])
    return a + 0.5 * a * lfilter([0, 0.5, 1, -0.7, 0.3], [1], u[:, 0])


def _bilinear(u: Array) -> Array:
    y = np.zeros(len(u))
    for t in range(1, len(u)):
        y[t] = (0.6 + 0.2 * u[t - 1, 0]) * y[t - 1] + 0.5 * u[t, 0]
    return y


def _slow(u: Array) -> Array:
    """A tank: inputs that are held for 20 rows, a time constant of 50, a curved gauge."""
    level = lfilter([0.02], [1, -0.98], np.tanh(2 * u[:, 0]))
    return level + 0.5 * level**2


def _five(u: Array) -> Array:
    """Two filters and a product of lags of four inputs; the fifth has no part."""
    a = lfilter([1], [1, -0.8], u[:, 0])
    b = lfilter([1, 0.5, 0.25], [1], u[:, 1])
    c = np.concatenate([np.zeros(4), u[:-4, 2]]) * np.concatenate([np.zeros(2), u[:-2, 3]])
    return np.tanh(a) + 0.5 * b + 0.5 * c


SYSTEMS: dict[str, tuple[Callable[[Array], Array], int]] = {
    "wiener": (_wiener, 1),
    "hammerstein": (_hammerstein, 1),
    "volterra": (_volterra, 1),
    "bilinear": (_bilinear, 1),
    "slow": (_slow, 1),
    "five": (_five, 5),
}


def filter_rows(name: str, n_train: int, noise: Noise, seed: int, *, n_new: int = 1000) -> Rows:
    """White inputs of order 1 through a system."""
    rng = np.random.default_rng([DATA, seed])
    run, n_inputs = SYSTEMS[name]
    n = RUN_UP + n_train + n_new
    u = rng.standard_normal((n, n_inputs))
    if name == "slow":
        u = np.repeat(u[: n // 20 + 1], 20, axis=0)[:n]
    y = run(u)
    return cut(u[RUN_UP:], y[RUN_UP:], n_train, rng, noise)


def load_rows(n_train: int, seed: int, *, n_new: int = 365) -> Rows:
    """The electric load of a day from sixteen variables of its weather, in their units."""
    X, load, _ = weather_and_load(n_train + n_new, random_state=DATA + seed)
    clean = weather_and_load(n_train + n_new, noise=0, random_state=DATA + seed)[1]
    X, load, clean = X[:, 3:], load[:, None], clean[:, None]
    new = slice(n_train, None)
    return Rows([X[:n_train]], [load[:n_train]], [X[new]], [clean[new]], scaled=True)


# --- rows ahead -----------------------------------------------------------------------------------


def flow(name: str, n: int, seed: int) -> Array:
    """Return a chaotic series, each column with mean 0 and standard deviation 1."""
    made = {
        "mackey-glass": partial(mackey_glass),
        "lorenz": partial(lorenz, dt=0.02),
        "roessler": partial(roessler, dt=0.1),
        "lorenz96": partial(lorenz96, n_features=10),
        "henon": henon,
        "logistic": logistic_map,
    }
    x = made[name](n, random_state=DATA + seed)
    return (x - x.mean(axis=0)) / x.std(axis=0)


def ahead(
    x: Array, steps: int, n_train: int, rng: np.random.Generator, noise: Noise = None, **more: bool
) -> Rows:
    """Return the task to say the first column of a series some rows ahead from all its columns."""
    task = cut(x[:-steps], x[steps:, :1], n_train, rng, noise, **more)
    return Rows(**{**vars(task), "last": [rows[:, :1] for rows in task.X_new]})


def flow_ahead(
    name: str,
    steps: int,
    n_train: int,
    noise: Noise,
    seed: int,
    *,
    n_columns: int | None = 1,
    n_new: int = 1000,
) -> Rows:
    """Chaos, some rows ahead, from its first column or from all."""
    x = flow(name, n_train + n_new + steps, seed)[:, :n_columns]
    return ahead(x, steps, n_train, np.random.default_rng([DATA, seed]), noise)


def real(name: str) -> Array:
    """Return a series that ships with the package; "differences" of it where the name says so."""
    load = {"co2": load_co2, "el nino": load_el_nino, "sunspots": load_sunspots}
    x = load[name.removesuffix(" differences")]()
    return np.diff(x, axis=0) if name.endswith("differences") else x


def real_ahead(name: str, steps: int, n_train: int, n_new: int, seed: int) -> Rows:
    """A stretch of a real series, whose place the seed draws."""
    rng = np.random.default_rng([DATA, seed])
    x, n = real(name), n_train + n_new + steps
    start = rng.integers(len(x) - n + 1)
    return ahead(x[start : start + n], steps, n_train, rng, scaled=True)


def load_ahead(steps: int, n_train: int, seed: int, *, n_new: int = 365) -> Rows:
    """The electric load some days ahead from today's load and weather."""
    X, load, _ = weather_and_load(n_train + n_new + steps, random_state=DATA + seed)
    x = np.hstack([load[:, None], X[:, 3:]])
    return ahead(x, steps, n_train, np.random.default_rng([DATA, seed]), scaled=True)


# --- memory ---------------------------------------------------------------------------------------


def delays(longest: int, n_train: int, noise: Noise, seed: int, *, n_new: int = 1000) -> Rows:
    """White noise, and what it was 1 to `longest` rows ago: the memory capacity's task."""
    rng = np.random.default_rng([DATA, seed])
    X, y = memory_capacity_input(n_train + n_new, max_lag=longest, random_state=rng)
    return cut(X, y, n_train, rng, noise)


def products(lags: list[tuple[int, int]], n_train: int, seed: int, *, n_new: int = 1000) -> Rows:
    """White noise, and products of two of its past values."""
    rng = np.random.default_rng([DATA, seed])
    u = rng.uniform(-1, 1, RUN_UP + n_train + n_new)
    y = np.stack([np.roll(u, i) * np.roll(u, j) for i, j in lags], axis=1)
    return cut(u[RUN_UP:], y[RUN_UP:], n_train, rng)


def symbols(n_kinds: int, lag: int, n_train: int, seed: int, *, n_new: int = 1000) -> Rows:
    """One of several symbols at each row, one column for each, and which it was `lag` rows ago."""
    rng = np.random.default_rng([DATA, seed])
    rows = np.eye(n_kinds)[rng.integers(n_kinds, size=lag + n_train + n_new)]
    return cut(rows[lag:], rows[:-lag], n_train, rng)


def parity(n_bits: int, n_train: int, seed: int, *, n_new: int = 1000) -> Rows:
    """Signs, and the product of the last few."""
    rng = np.random.default_rng([DATA, seed])
    u = rng.choice([-1.0, 1.0], size=n_bits + n_train + n_new)
    y = np.prod([np.roll(u, k) for k in range(n_bits)], axis=0)
    return cut(u[n_bits:], y[n_bits:], n_train, rng)


# --- many sequences -------------------------------------------------------------------------------


def split(X: list[Array], y: list[Array], clean: list[Array], n: int, **more: bool) -> Rows:
    """Return the task to learn from the first n sequences."""
    return Rows(X[:n], y[:n], X[n:], clean[n:], **more)


def levels(n_sequences: int, seed: int, *, n_new: int = 100) -> Rows:
    """Filters of 20 rows; the noise is a level for each sequence, and white."""
    rng = np.random.default_rng([DATA, seed])
    X = list(rng.standard_normal((n_sequences + n_new, 20, 1)))
    clean = [lfilter([1], [1, -0.7], u, axis=0) for u in X]
    y = [c + rng.standard_normal() + 0.3 * rng.standard_normal((20, 1)) for c in clean]
    return split(X, y, clean, n_sequences)


def sums(n_sequences: int, seed: int, *, n_new: int = 100) -> Rows:
    """10 to 40 rows of a number and a mark, and the sum of what was marked so far; white noise."""
    rng = np.random.default_rng([DATA, seed])
    lengths = rng.integers(10, 41, n_sequences + n_new)
    marks = [rng.random(n) < 0.2 for n in lengths]
    X = [np.stack([rng.uniform(size=len(mark)), mark], axis=1) for mark in marks]
    clean = [np.cumsum(np.prod(x, axis=1))[:, None] for x in X]
    y = [c + 0.3 * rng.standard_normal(c.shape) for c in clean]
    return split(X, y, clean, n_sequences)


def movements(steps: int, n_sequences: int, seed: int, *, n_new: int = 60) -> Rows:
    """A hand's accelerations, m/s^2, and the first of them some rows later."""
    n = n_sequences + n_new
    felt, _ = gestures(n, random_state=DATA + seed)
    true, _ = gestures(n, noise=0, random_state=DATA + seed)
    X = [rows[:-steps] for rows in felt]
    y, clean = ([rows[steps:, :1] for rows in of] for of in (felt, true))
    task = split(X, y, clean, n_sequences, scaled=True)
    return Rows(**{**vars(task), "last": [rows[:, :1] for rows in task.X_new]})


def visits(n_patients: int, seed: int, *, n_new: int = 200) -> Rows:
    """Four to twenty visits of a patient, and the activity of the disease at the next one."""
    found, _ = patient_visits(n_patients + n_new, random_state=DATA + seed)
    y = [rows[1:, 3:4] for rows in found]
    task = split([rows[:-1] for rows in found], y, y, n_patients, scaled=True)
    return Rows(**{**vars(task), "last": [rows[:, 3:4] for rows in task.X_new]})


# --- free runs ------------------------------------------------------------------------------------


def free_run(
    clean: Array,
    n_train: int,
    horizon: int,
    seed: int,
    noise: Noise = None,
    *,
    near: int,
    threshold: float | None = 0.3,
    season: int = 1,
    scaled: bool = False,
) -> FreeRun:
    """Return the free runs of a series from the end of its first rows and from two later ones."""
    series = with_noise(clean, noise, np.random.default_rng([DATA, seed]))
    room = len(clean) - horizon - n_train
    origins = [n_train + k * room // (ORIGINS - 1) for k in range(ORIGINS)]
    truths = [clean[i : i + horizon] for i in origins]
    deviation = clean[:n_train].std(axis=0)
    return FreeRun(series, n_train, truths, origins, deviation, near, threshold, season, scaled)


def flow_run(
    name: str,
    n_train: int,
    horizon: int,
    near: int,
    seed: int,
    *,
    noise: Noise = None,
    n_columns: int | None = None,
) -> FreeRun:
    """Chaos, all of its columns or the first ones."""
    x = flow(name, n_train + 400 + horizon, seed)[:, :n_columns]
    return free_run(x, n_train, horizon, seed, noise, near=near)


def waves(n_kinds: int, n_train: int, noise: Noise, seed: int) -> FreeRun:
    """Superposed sines of unrelated periods, 100 rows alone."""
    x = multiple_superposed_oscillators(
        n_train + 200, n_oscillators=n_kinds, random_state=DATA + seed
    )
    return free_run(x, n_train, 100, seed, noise, near=100, threshold=None)


def season_run(n_train: int, noise: Noise, seed: int) -> FreeRun:
    """A profile of 12 rows that repeats, on a level, 36 rows alone."""
    rng = np.random.default_rng([DATA, seed, 1])
    x = 3 + np.resize(rng.standard_normal(12), n_train + 72)[:, None]
    return free_run(x, n_train, 36, seed, noise, near=36, threshold=None, season=12)


def real_run(name: str, n_train: int, horizon: int, season: int, seed: int) -> FreeRun:
    """A stretch of a real series, whose place the seed draws."""
    x, n = real(name), n_train + 2 * horizon
    start = np.random.default_rng([DATA, seed]).integers(len(x) - n + 1)
    part = x[start : start + n]
    options = {"near": horizon, "threshold": None, "season": season, "scaled": True}
    return free_run(part, n_train, horizon, seed, **options)


def load_run(n_train: int, seed: int) -> FreeRun:
    """The electric load, 28 days alone."""
    x = weather_and_load(n_train + 56, random_state=DATA + seed)[1][:, None]
    options = {"near": 28, "threshold": None, "season": 7, "scaled": True}
    return free_run(x, n_train, 28, seed, **options)


# --- the list -------------------------------------------------------------------------------------

NEAR, FAR = [(0, 2), (1, 3), (2, 5)], [(1, 4), (3, 8), (6, 10)]

# kind -> name (family, rows to learn from, noise) -> how it is drawn
CHOOSE: dict[str, dict[str, Callable[[int], Rows | FreeRun]]] = {
    "regression": {
        "narma10, 80, AR .5": partial(narma_rows, 10, 80, ("AR", 0.5)),
        "narma10, 200, white 1": partial(narma_rows, 10, 200, ("white", 1.0)),
        "narma10 by 1000, 2000, clean": partial(narma_rows, 10, 2000, None, unit=1000.0),
        "wiener, 200, white .3": partial(filter_rows, "wiener", 200, ("white", 0.3)),
        "hammerstein, 600, AR .5": partial(filter_rows, "hammerstein", 600, ("AR", 0.5)),
        "volterra, 2000, white .1": partial(filter_rows, "volterra", 2000, ("white", 0.1)),
        "bilinear, 300, clean": partial(filter_rows, "bilinear", 300, None),
        "slow plant, 1000, AR 1": partial(filter_rows, "slow", 1000, ("AR", 1.0)),
        "five inputs, 400, white .3": partial(filter_rows, "five", 400, ("white", 0.3)),
        "weather to load, 1500": partial(load_rows, 1500),
        "narma10, 30000, AR 1": partial(narma_rows, 10, 30_000, ("AR", 1.0)),
    },
    "ahead": {
        "mackey-glass +10, 80, white 1": partial(flow_ahead, "mackey-glass", 10, 80, ("white", 1)),
        "mackey-glass +50, 3000, clean": partial(flow_ahead, "mackey-glass", 50, 3000, None),
        "mackey-glass +10, 600, AR 1": partial(flow_ahead, "mackey-glass", 10, 600, ("AR", 1)),
        "lorenz x +10, 300, white .3": partial(flow_ahead, "lorenz", 10, 300, ("white", 0.3)),
        "roessler x +20, 1000, AR .3": partial(flow_ahead, "roessler", 20, 1000, ("AR", 0.3)),
        "logistic +1, 150, white .1": partial(flow_ahead, "logistic", 1, 150, ("white", 0.1)),
        "lorenz96 +3, 2000, clean": partial(flow_ahead, "lorenz96", 3, 2000, None, n_columns=None),
        "sunspots +1, 200": partial(real_ahead, "sunspots", 1, 200, 80),
        "el nino +6, 480": partial(real_ahead, "el nino", 6, 480, 120),
        "co2 +26, 1000": partial(real_ahead, "co2", 26, 1000, 300),
        "co2 differences +1, 1000": partial(real_ahead, "co2 differences", 1, 1000, 300),
        "henon x +1, 200, clean": partial(flow_ahead, "henon", 1, 200, None),
        "sunspots +6, 200": partial(real_ahead, "sunspots", 6, 200, 80),
    },
    "memory": {
        "delays 1-40, 1000, clean": partial(delays, 40, 1000, None),
        "products of lags, 1000, clean": partial(products, NEAR, 1000),
        "narma30, 2000, clean": partial(narma_rows, 30, 2000, None),
        "symbols 4 rows ago, 300": partial(symbols, 4, 4, 300),
        "parity of 3 signs, 500": partial(parity, 3, 500),
        "symbols 8 rows ago, 1000": partial(symbols, 3, 8, 1000),
    },
    "sequences": {
        "levels, 10 sequences of 20": partial(levels, 10),
        "marked sums, 100 sequences": partial(sums, 100),
        "movements +1, 30 sequences": partial(movements, 1, 30),
    },
    "free run": {
        "logistic, 500, clean": partial(flow_run, "logistic", 500, 30, 5),
        "lorenz, 2000, clean": partial(flow_run, "lorenz", 2000, 500, 50),
        "mackey-glass, 1500, clean": partial(flow_run, "mackey-glass", 1500, 600, 100),
        "roessler, 1500, white .01": partial(
            flow_run, "roessler", 1500, 600, 60, noise=("white", 0.01)
        ),
        "five sines, 400, white .1": partial(waves, 5, 400, ("white", 0.1)),
        "season of 12, 120, white .3": partial(season_run, 120, ("white", 0.3)),
        "co2 by weeks, 1000, 52": partial(real_run, "co2", 1000, 52, 52),
        "sunspots, 200, 11": partial(real_run, "sunspots", 200, 11, 11),
        "mackey-glass, 1500, white .01": partial(
            flow_run, "mackey-glass", 1500, 600, 100, noise=("white", 0.01)
        ),
        "three sines, 300, clean": partial(waves, 3, 300, None),
    },
}
REPORT: dict[str, dict[str, Callable[[int], Rows | FreeRun]]] = {
    "regression": {
        "narma10, 600, AR 1": partial(narma_rows, 10, 600, ("AR", 1.0)),
        "narma10 by 1000, 200, white .1": partial(narma_rows, 10, 200, ("white", 0.1), unit=1000.0),
        "wiener, 2000, AR .3": partial(filter_rows, "wiener", 2000, ("AR", 0.3)),
        "volterra, 200, white 1": partial(filter_rows, "volterra", 200, ("white", 1.0)),
        "bilinear, 60, white .1": partial(filter_rows, "bilinear", 60, ("white", 0.1)),
        "slow plant, 30000, white .3": partial(filter_rows, "slow", 30_000, ("white", 0.3)),
        "five inputs, 1500, AR .5": partial(filter_rows, "five", 1500, ("AR", 0.5)),
        "weather to load, 400": partial(load_rows, 400),
    },
    "ahead": {
        "mackey-glass +10, 200, AR .5": partial(flow_ahead, "mackey-glass", 10, 200, ("AR", 0.5)),
        "lorenz x +25, 1500, clean": partial(flow_ahead, "lorenz", 25, 1500, None),
        "el nino +1, 480": partial(real_ahead, "el nino", 1, 480, 120),
        "co2 +4, 1000": partial(real_ahead, "co2", 4, 1000, 300),
        "load +7 with weather, 1000": partial(load_ahead, 7, 1000),
    },
    "memory": {
        "delays 1-15, 300, white .3": partial(delays, 15, 300, ("white", 0.3)),
        "products of far lags, 3000, clean": partial(products, FAR, 3000),
    },
    "sequences": {
        "levels, 50 sequences of 20": partial(levels, 50),
        "visits +1, 100 patients": partial(visits, 100),
    },
    "free run": {
        "henon, 1000, clean": partial(flow_run, "henon", 1000, 40, 5),
        "lorenz x, 3000, clean": partial(flow_run, "lorenz", 3000, 500, 50, n_columns=1),
        "el nino, 480, 24": partial(real_run, "el nino", 480, 24, 12),
        "load by days, 700, 28": partial(load_run, 700),
    },
}
# the shipped series at every horizon, as they are and their differences; no defaults were chosen
# by this list, but some tasks of CHOOSE are of the same series
REAL: dict[str, dict[str, Callable[[int], Rows | FreeRun]]] = {
    "real series": {
        f"real {name}{kind} +{steps}": partial(real_ahead, name + kind, steps, n_train, n_new)
        for name, n_train, n_new in (
            ("sunspots", 200, 80),
            ("el nino", 480, 120),
            ("co2", 1000, 300),
        )
        for kind in ("", " differences")
        for steps in (1, 3, 6, 12)
    }
}
# closed loops of what ships with the package and of a system of ten columns, with few rows too
LOOPS: dict[str, dict[str, Callable[[int], Rows | FreeRun]]] = {
    "loops": {
        f"loop of {name}, {n_train}": partial(real_run, name, n_train, horizon, season)
        for name, lengths, horizon, season in (
            ("sunspots", (100, 200), 11, 11),
            ("el nino", (120, 480), 24, 12),
            ("co2", (200, 1000), 52, 52),
        )
        for n_train in lengths
    }
    | {f"loop of load, {n_train}": partial(load_run, n_train) for n_train in (200, 700)}
    | {
        f"loop of lorenz96, {n_train}, {noise:g}": partial(
            flow_run, "lorenz96", n_train, 300, 30, noise=("white", noise) if noise else None
        )
        for n_train in (200, 400, 2000)
        for noise in (0.0, 0.01, 0.1)
    }
}
APART = {"real": REAL, "loops": LOOPS}  # parts of the benchmark with tasks of their own
TASKS = {
    name: Task(reported, kind, draw)
    for reported, part in ((False, CHOOSE), (True, REPORT), (True, REAL), (True, LOOPS))
    for kind, of_kind in part.items()
    for name, draw in of_kind.items()
}
