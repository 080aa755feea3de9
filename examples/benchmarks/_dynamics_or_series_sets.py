"""The series of `dynamics_or_series.py`: random ones, real ones, rows of dynamical systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _dysts_systems import DATA, load_systems
from _series_sets import shipped
from scipy.signal import lfilter

Array = np.ndarray
AHEAD = 128  # rows that follow each case
LENGTHS = (60, 1000)  # shortest and longest random series
CONTEXTS = (256, 512, 1000)  # rows of systems and maps


@dataclass(frozen=True)
class Case:
    """Rows that are known, and the rows that follow them.

    Attributes
    ----------
    kind : str
        Law of a random series; "real", or what of which system is observed.
    name : str
    past : array of shape (n_rows, n_columns)
    future : array of shape (n_later, n_columns)
        What is to be forecast, with the noise of observations.
    season : int
        Rows of the season, 1 for none.
    """

    kind: str
    name: str
    past: Array
    future: Array
    season: int = 1


# --- random series --------------------------------------------------------------------------------


def random_series(numbers: range) -> Iterator[Case]:
    """Yield random series of every law with the given numbers."""
    for kind, law in LAWS.items():
        for number in numbers:
            rng = np.random.default_rng([list(LAWS).index(kind), number])
            n_rows = int(np.exp(rng.uniform(*np.log(LENGTHS))))
            season = int(rng.choice([4, 7, 12]))
            rows = law(rng, n_rows + AHEAD + 100, season)
            rows = rows.reshape(len(rows), -1)[100:]
            told = season if kind.startswith("season") and number % 2 else 1
            yield Case(kind, f"{kind} {number}", rows[:n_rows], rows[n_rows:], told)


def _autoregression(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    return lfilter([1], [1, -rng.uniform(-0.9, 0.99)], rng.normal(size=n_rows))


def _cycle(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    modulus, length = rng.uniform(0.8, 0.995), rng.uniform(4, 40)
    coef = [1, -2 * modulus * np.cos(2 * np.pi / length), modulus**2]
    return lfilter([1], coef, rng.normal(size=n_rows))


def _mixed(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    left, right = [1, *rng.uniform(-0.8, 0.8, 2)], [1, -rng.uniform(-0.9, 0.95)]
    return lfilter(left, right, rng.normal(size=n_rows))


def _seasonal(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    profile = rng.uniform(0.5, 5) * rng.normal(size=season)
    return profile[np.arange(n_rows) % season] + _autoregression(rng, n_rows, season)


def _seasonal_walk(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    profile = rng.uniform(0.5, 10) * rng.normal(size=season)
    return profile[np.arange(n_rows) % season] + rng.normal(size=n_rows).cumsum()


def _trend(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    slope = rng.uniform(-0.1, 0.1)
    return slope * np.arange(n_rows) + _autoregression(rng, n_rows, season)


def _changing_variance(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    last, share = rng.uniform(0.05, 0.4), rng.uniform(0.3, 0.55)
    draws, rows, variance = rng.normal(size=n_rows), np.empty(n_rows), 1.0
    for i in range(n_rows):
        rows[i] = np.sqrt(variance) * draws[i]
        variance = 1 - last - share + last * rows[i] ** 2 + share * variance
    return rows.cumsum() if rng.random() < 0.5 else rows


def _random_variance(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    logs = lfilter([1], [1, -0.97], 0.2 * rng.normal(size=n_rows))
    return (np.exp(logs) * rng.normal(size=n_rows)).cumsum()


def _threshold(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    low, high, noise = rng.uniform(0.3, 1.0), rng.uniform(-0.9, 0.4), rng.normal(size=n_rows)
    rows = np.zeros(n_rows)
    for i in range(1, n_rows):
        last = rows[i - 1]
        rows[i] = (low * last + 1 if last < 0 else high * last - 0.5) + noise[i]
    return rows


def _bilinear(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    own, cross, noise = rng.uniform(0.2, 0.7), rng.uniform(0.1, 0.4), rng.normal(size=n_rows)
    rows = np.zeros(n_rows)
    for i in range(1, n_rows):
        rows[i] = own * rows[i - 1] + cross * rows[i - 1] * noise[i - 1] + noise[i]
    return rows


def _counts(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    logs = lfilter([1], [1, -0.95], 0.2 * rng.normal(size=n_rows))
    return rng.poisson(np.exp(rng.uniform(-0.5, 3) + logs)).astype(float)


def _twice(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    steps = lfilter([1], [1, -rng.uniform(0, 0.9)], rng.normal(size=n_rows))
    return steps.cumsum().cumsum()


def _waves(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    t, lengths = np.arange(n_rows), rng.uniform(8, 120, 3)
    waves = np.sin(2 * np.pi * t[:, None] / lengths + rng.uniform(0, 6, 3)).sum(axis=1)
    return waves + rng.choice([0.02, 0.1, 0.5]) * rng.normal(size=n_rows)


def _bounded(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    rest = lfilter([1], [1, -rng.uniform(0.7, 0.99)], rng.normal(size=n_rows))
    return 1 / (1 + np.exp(-rest))


def _smooth(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    """Noise passed through several slow filters, without noise of observations."""
    rows = rng.normal(size=n_rows)
    for _ in range(rng.integers(2, 5)):
        rows = lfilter([1], [1, -rng.uniform(0.6, 0.95)], rows)
    return rows


def _vector(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    n_columns = int(rng.integers(2, 5))
    matrix = rng.normal(size=(n_columns, n_columns))
    matrix *= rng.uniform(0.5, 0.98) / np.abs(np.linalg.eigvals(matrix)).max()
    rows, noise = np.zeros((n_rows, n_columns)), rng.normal(size=(n_rows, n_columns))
    for i in range(1, n_rows):
        rows[i] = matrix @ rows[i - 1] + noise[i]
    return rows


def _walks(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    mixed = rng.normal(size=(n_rows, 3)) @ (np.eye(3) + rng.uniform(0, 1, (3, 3)))
    return mixed.cumsum(axis=0)


def _rotation(rng: np.random.Generator, n_rows: int, season: int) -> Array:
    """A damped rotation of two columns that noise drives: a linear system, well sampled."""
    angle, modulus = 2 * np.pi / rng.uniform(8, 60), rng.uniform(0.9, 0.999)
    turn = modulus * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    rows, noise = np.zeros((n_rows, 2)), rng.normal(size=(n_rows, 2))
    for i in range(1, n_rows):
        rows[i] = turn @ rows[i - 1] + noise[i]
    return rows


LAWS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "white": lambda rng, n_rows, season: rng.normal(size=n_rows),
    "walk": lambda rng, n_rows, season: rng.normal(size=n_rows).cumsum(),
    "autoregression": _autoregression,
    "cycle": _cycle,
    "mixed": _mixed,
    "season": _seasonal,
    "season and walk": _seasonal_walk,
    "trend": _trend,
    "changing variance": _changing_variance,
    "random variance": _random_variance,
    "threshold": _threshold,
    "bilinear": _bilinear,
    "counts": _counts,
    "summed twice": _twice,
    "waves": _waves,
    "bounded": _bounded,
    "smooth": _smooth,
    "vector": _vector,
    "joint walks": _walks,
    "rotation": _rotation,
}


def real_series() -> Iterator[Case]:
    """Yield the series of the library, each cut at twelve places."""
    for one in shipped():
        values = one.values.to_numpy(float)[:, None]
        rows = np.isfinite(values[:, 0])
        values = values[len(values) - np.argmin(rows[::-1]) :] if not rows.all() else values
        for end in np.linspace(0.4 * len(values), len(values) - AHEAD // 4, 12).astype(int):
            past, future, name = values[:end], values[end : end + AHEAD], f"{one.name} {end}"
            yield Case("real", name, past, future, one.season)
            if one.season > 1:
                yield Case("real, season untold", name, past, future)


# --- dynamics -------------------------------------------------------------------------------------


def systems(*, every: int, begin: int, end: int, folder: Path = DATA) -> Iterator[Case]:
    """Yield rows of systems: all variables and the first, fine or coarse, clean or with noise."""
    for i, system in enumerate(load_systems(folder=folder)):
        if not len(system.rows) or i % every != begin:
            continue
        rng = np.random.default_rng(i)
        for which in ("all", "first"):
            stride, context = int(rng.choice([1, 2])), int(rng.choice(CONTEXTS))
            noise = float(rng.choice([0.0, 0.01, 0.05], p=[0.6, 0.2, 0.2]))
            first = end // stride - context
            rows = system.rows[::stride][first : first + context + AHEAD]
            rows = _observed(rows if which == "all" else rows[:, :1], noise, rng)
            name = f"{system.name} {stride} {context}"
            kind = f"{which}, {100 * noise:.0f} %"
            yield Case(kind, name, rows[:context], rows[context:])


def maps(numbers: range) -> Iterator[Case]:
    """Yield rows of maps, clean or with noise."""
    for k, (name, law) in enumerate(MAPS.items()):
        for number in numbers:
            rng = np.random.default_rng([k, number])
            context = int(rng.choice([128, *CONTEXTS]))
            noise = float(rng.choice([0.0, 0.01, 0.05]))
            rows = _observed(law(rng, context + AHEAD + 200)[200:], noise, rng)
            kind = f"map, {100 * noise:.0f} %"
            yield Case(kind, f"{name} {context}", rows[:context], rows[context:])


def _observed(rows: Array, noise: float, rng: np.random.Generator) -> Array:
    return rows + noise * rows.std(axis=0) * rng.normal(size=rows.shape)


def _iterated(step: Callable[[Array], Array], start: Array, n_rows: int) -> Array:
    rows = np.empty((n_rows, len(start)))
    for i in range(n_rows):
        rows[i] = start = step(start)
    return rows


def _logistic(rng: np.random.Generator, n_rows: int) -> Array:
    growth = rng.uniform(3.7, 4)
    return _iterated(lambda x: growth * x * (1 - x), rng.uniform(0.2, 0.8, 1), n_rows)


def _henon(rng: np.random.Generator, n_rows: int) -> Array:
    rows = _iterated(
        lambda x: np.array([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]]), rng.uniform(0, 0.1, 2), n_rows
    )
    return rows if rng.random() < 0.5 else rows[:, :1]


def _ikeda(rng: np.random.Generator, n_rows: int) -> Array:
    def step(x: Array) -> Array:
        angle = 0.4 - 6 / (1 + x @ x)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return np.array([1.0, 0.0]) + 0.85 * turn @ x

    return _iterated(step, rng.uniform(0, 0.1, 2), n_rows)


def _tent(rng: np.random.Generator, n_rows: int) -> Array:
    top = rng.uniform(0.3, 0.7)

    def step(x: Array) -> Array:
        return np.where(x < top, x / top, (1 - x) / (1 - top))

    return _iterated(step, rng.uniform(0.1, 0.9, 1), n_rows)


def _coupled(rng: np.random.Generator, n_rows: int) -> Array:
    share = rng.uniform(0.05, 0.3)

    def step(x: Array) -> Array:
        new = 3.9 * x * (1 - x)
        return (1 - share) * new + share * np.roll(new, 1)

    return _iterated(step, rng.uniform(0.2, 0.8, 4), n_rows)


MAPS = {
    "logistic": _logistic,
    "Henon": _henon,
    "Ikeda": _ikeda,
    "tent": _tent,
    "coupled": _coupled,
}
