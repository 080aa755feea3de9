"""What `topology.py` measures: four banks of tasks, each run with a given topology.

A bank is a function of (contender, number of seeds, every k-th system, folder of trajectories) that
yields records. Those in `ALONE` take a process for each contender, since `built_with` changes for
the whole process how the networks of `ESNForecaster` are made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _chaos_methods import FIRST_DEFAULTS, default_esn, esn_forecaster
from _dysts_systems import System, load_systems
from _series_sets import OneSeries, fifteen
from chaos import forecast, symmetric_valid_steps, window
from protocols import (
    BIASED,
    FLOWS,
    PLAIN,
    esn_free_run,
    flow_valid_time,
    mackey_glass_free_run,
    memory,
    narma10,
)
from sequences import SETS, load
from series import measure as measure_series
from series import with_seed
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, ESNSequenceClassifier
from reservoir.building import build_reservoir
from reservoir.datasets import mackey_glass
from reservoir.loops import loop_design
from reservoir.metrics import memory_capacity, nrmse
from reservoir.series_models import recursive_ridge

Array = np.ndarray
N_SEEDS = 20
LONG_MEMORY = 0.8  # radius from which a network of ESNForecaster is there to remember
CONTEXT, HORIZON, END = 512, 500, 5620
ORIGINS, SERIES_HORIZON = 3, 12


@dataclass(frozen=True)
class Contender:
    """A topology, and the spectral radius that goes with it; None leaves the radius as it comes."""

    topology: str
    radius: float | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """Return the parameters of an estimator that differ from what comes."""
        radius = {} if self.radius is None else {"spectral_radius": self.radius}
        return {"topology": self.topology, **radius}


DEFAULT = "random, 10 per row"
CONTENDERS = {
    DEFAULT: Contender("random_sparse"),
    "orthogonal": Contender("orthogonal"),
    "orthogonal at .99": Contender("orthogonal", 0.99),
    "ring": Contender("ring"),
    "ring at .99": Contender("ring", 0.99),
    "permutation": Contender("permutation"),
    "diagonals": Contender("diagonals"),
}


class Record(NamedTuple):
    """One figure of one network.

    `value` is what the field reports; `loss` is positive, and the lower the better: errors
    themselves, 1 / memory capacity, 1 / (1 + valid time in Lyapunov times).
    """

    group: str
    problem: str
    seed: int
    value: float
    loss: float


def measure(
    bank: str, names: list[str], n_seeds: int, every: int, data: str
) -> dict[str, list[Record]]:
    """Return the records of contenders on a bank; called in a process of its own."""
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        run = BANKS[bank]
        return {name: list(run(CONTENDERS[name], n_seeds, every, Path(data))) for name in names}


def built_with(contender: Contender) -> None:
    """Have `ESNForecaster` make its networks with this topology, from now on in this process.

    It searches radii from 0 to .8 itself: a contender's radius takes the place of .8.
    """

    def build(n_units: int, n_features: int, **settings: Any) -> Any:
        radius = settings["spectral_radius"]
        if contender.radius is not None and radius >= LONG_MEMORY:
            radius = contender.radius
        changed = {**settings, "topology": contender.topology, "spectral_radius": radius}
        return build_reservoir(n_units, n_features, **changed)

    loop_design.build_reservoir = build  # type: ignore[attr-defined]
    recursive_ridge.build_reservoir = build  # type: ignore[attr-defined]


# --- the protocols --------------------------------------------------------------------------------


def capacity_as_it_comes(seed: int, **changes: Any) -> float:
    """Memory capacity of 100 units, everything as it comes."""
    reservoir = build_reservoir(100, 1, random_state=seed, **changes)
    return float(memory_capacity(reservoir, random_state=seed))


def mackey_glass_ahead(seed: int, **changes: Any) -> float:
    """NRMSE 84 steps ahead of Mackey-Glass, 2000 steps to train, 500 to score."""
    series = mackey_glass(2600, random_state=seed)[:, 0]
    series = (series - series.mean()) / series.std()
    X, y = series[:-84, None], series[84:]
    esn = ESNRegressor(**FIRST_DEFAULTS, random_state=seed, **changes)
    esn.fit(X[:2000], y[:2000])
    return float(nrmse(y[2000:], esn.predict(X[2000:])))


def error(value: float) -> float:
    """Return the loss of an error: itself, between 1e-12 and, for loops that diverge, 10."""
    return min(max(value, 1e-12), 10.0)


def of_capacity(value: float) -> float:
    """Return the loss of a memory capacity."""
    return 1 / max(value, 1e-3)


def of_valid_time(value: float) -> float:
    """Return the loss of a valid time in Lyapunov times."""
    return 1 / (1 + value)


def protocol_tasks() -> dict[str, tuple[Callable[..., float], Callable[[float], float]]]:
    """Return name -> a function of (seed, topology, radius), and what makes a loss of its value."""

    def narma(settings: dict[str, Any]) -> Callable[..., float]:
        return lambda seed, **changes: narma10(100, seed, **{**settings, **changes})

    def glass(seed: int, **changes: Any) -> float:
        return mackey_glass_free_run(seed, 1e-8, 300, **changes)

    tasks: dict[str, tuple[Callable[..., float], Callable[[float], float]]] = {
        "NARMA10, as it comes": (narma({}), error),
        "NARMA10, radius .95": (narma(PLAIN), error),
        "NARMA10, more bias": (narma(BIASED), error),
        "memory, as it comes": (capacity_as_it_comes, of_capacity),
        "memory, 50 units, W_in +-.1": (partial(memory, input_weights="uniform"), of_capacity),
        "Mackey-Glass +84, as it comes": (mackey_glass_ahead, error),
        "Mackey-Glass, 500 steps, protocol": (glass, error),
    }
    for name in FLOWS:
        for how, run in (("as it comes", default_esn), ("protocol", esn_free_run)):
            task = partial(flow_task, name, run)
            tasks[f"{name.title()}, valid time, {how}"] = (task, of_valid_time)
    return tasks


def flow_task(name: str, run: Callable[..., Array], seed: int, **changes: Any) -> float:
    """Return the valid time of a free run on a flow; where it refuses to run, 0."""
    try:
        return flow_valid_time(name, run, seed, **changes)
    except (ValueError, FloatingPointError, np.linalg.LinAlgError):
        return 0.0


def protocols(contender: Contender, n_seeds: int, every: int, data: Path) -> Iterator[Record]:
    """Run each task with the seeds 0 to n_seeds - 1 of data and network."""
    for name, (task, loss) in protocol_tasks().items():
        for seed in range(n_seeds):
            value = task(seed, **contender.changes)
            yield Record(name, name, seed, value, loss(value))


# --- chaotic systems ------------------------------------------------------------------------------

# what is seen -> noise in standard deviations, whether the first coordinate is all there is
SEEN = {"all": (0.0, False), "all, noise 1 %": (0.01, False), "first": (0.0, True)}


def chaos(contender: Contender, n_seeds: int, every: int, data: Path) -> Iterator[Record]:
    """Forecast the systems of dysts; seeds are dealt to systems in turns, so that all take part.

    `ESNForecaster` has one seed for each system and what is seen of it, `ESNRegressor` four.
    """
    built_with(contender)
    systems = [one for one in load_systems(folder=data, every=every) if len(one.rows)]
    for i, system in enumerate(systems):
        for j, (what, (noise, one)) in enumerate(SEEN.items()):
            seen, truth = window(system, END, CONTEXT, HORIZON, noise=noise, one=one)
            first = len(SEEN) * i + j
            runs = [("ESNForecaster", esn_forecaster, first % n_seeds)]
            regressor = partial(default_esn, **contender.changes)
            runs += [
                ("ESNRegressor", regressor, (4 * first + k) % n_seeds)
                for k in range(min(4, n_seeds))
            ]
            for who, method, seed in runs:
                found = forecast(method, seen, HORIZON, seed)[0]
                value = valid_time_of(system, truth, found)
                yield Record(f"{who}, {what}", system.name, seed, value, of_valid_time(value))


def valid_time_of(system: System, truth: Array, found: Array) -> float:
    """Return the Lyapunov times for which the mean symmetric error is at most 30 %."""
    return symmetric_valid_steps(truth, found) * system.lyapunov_times_per_step


# --- series, and whole sequences ------------------------------------------------------------------


def series(contender: Contender, n_seeds: int, every: int, data: Path) -> Iterator[Record]:
    """Forecast the fifteen series 12 rows ahead from three origins, with two seeds for each."""
    built_with(contender)
    for i, one in enumerate(fifteen()):
        seeds = [(2 * i + k) % n_seeds for k in range(min(2, n_seeds))]
        for seed in seeds:
            value = mean_error(one, seed)
            yield Record(f"ESNForecaster, {SERIES_HORIZON} rows", one.name, seed, value, value)


def mean_error(one: OneSeries, seed: int) -> float:
    """Return the mean over the origins of the mean absolute scaled error."""
    chosen = {"ours": partial(with_seed, seed)}
    outcomes = measure_series(one, chosen, [SERIES_HORIZON], ORIGINS)
    return error(float(np.mean([each.error for each in outcomes])))


def sequences(contender: Contender, n_seeds: int, every: int, data: Path) -> Iterator[Record]:
    """Classify whole series, published splits; the loss counts half an error more than there is."""
    for name in SETS:
        train, labels, test, truth = load(name)
        for seed in range(n_seeds):
            clf = ESNSequenceClassifier(random_state=seed, **contender.changes)
            wrong = int(np.sum(clf.fit(train, labels).predict(test) != truth))
            yield Record(name, name, seed, wrong / len(truth), (wrong + 0.5) / len(truth))


BANKS: dict[str, Callable[[Contender, int, int, Path], Iterator[Record]]] = {
    "protocols": protocols,
    "chaos": chaos,
    "series": series,
    "sequences": sequences,
}
ALONE = ("chaos", "series")
