"""Kinds of networks with and without a proof, the tasks they are compared on, and their scores.

Every kind is searched over the same draws: a setting holds the place of the spectral radius in the
kind's own range, and values that all kinds share.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from reservoir.building import build_reservoir
from reservoir.datasets import LYAPUNOV_TIME, lorenz, mackey_glass, narma
from reservoir.dynamics import Reservoir, run, run_closed_loop
from reservoir.metrics import nrmse, valid_time
from reservoir.readouts import GramAccumulator
from reservoir.stability import certify, drive_range
from reservoir.topologies import delay_line

Array = np.ndarray

# --- networks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A way to build networks: topology, range of the radius, bias.

    `proved` leaves settings out of the search whose networks are not certified. The readout sees
    the latest `n_lags` inputs. Instead of a radius, which is 0, a delay line has a weight.
    """

    topology: str
    radius: tuple[float, float]
    bias: str = "uniform"
    proved: bool = False
    n_lags: int = 1


KINDS = {
    "random, as drawn": Kind("random_sparse", (0.3, 1.3)),
    "orthogonal": Kind("orthogonal", (0.3, 0.99)),
    "ring": Kind("ring", (0.3, 0.99)),
    "random, proved as drawn": Kind("random_sparse", (0.3, 0.8), proved=True),
    'random, bias="stable"': Kind("random_sparse", (0.9, 1.5), bias="stable"),
    "orthogonal, 20 lags": Kind("orthogonal", (0.3, 0.99), n_lags=20),
    "delay line": Kind("delay_line", (0.3, 0.99)),
}


def draw_settings(n_settings: int, seed: int = 0) -> list[dict[str, float]]:
    """Return settings; `radius` is a share of a kind's range, the others are parameters."""
    rng = np.random.default_rng(seed)

    def log_uniform(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return [
        {
            "radius": float(rng.uniform()),
            "input_scaling": log_uniform(0.03, 2.0),
            "leak_rate": 1.0 if rng.uniform() < 0.5 else log_uniform(0.1, 1.0),
            "bias_scaling": log_uniform(0.01, 1.0),
            "in_degree": round(log_uniform(2, 50)),
        }
        for _ in range(n_settings)
    ]


def parameters(kind: Kind, setting: Mapping[str, float]) -> dict[str, Any]:
    """Return what `build_reservoir` needs for a setting."""
    low, high = kind.radius
    found: dict[str, Any] = {name: value for name, value in setting.items() if name != "radius"}
    if kind.topology != "random_sparse":
        del found["in_degree"]
    if kind.bias == "stable":
        del found["bias_scaling"]
        found |= {"bias": "stable", "drive_bounds": lambda res: drive_range(res, -1, 1)}
    radius = low + setting["radius"] * (high - low)
    if kind.topology == "delay_line":
        return found | {"topology": "delay_line", "weight": radius, "leak_rate": 1.0}
    return {"topology": kind.topology, "spectral_radius": radius, **found}


def build(params: Mapping[str, Any], n_units: int, n_features: int, seed: int) -> Reservoir:
    """Return a network for inputs within 1."""
    if params.get("topology") == "delay_line":
        params = {**params, "spectral_radius": None, "input_weights": "heads"}
        params["topology"] = delay_line(n_units, weight=params.pop("weight"), n_lines=n_features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a bias that costs more than it brings
        return build_reservoir(n_units, n_features, random_state=seed, **params)


def is_certified(network: Reservoir) -> bool:
    """Whether the echo state property is proved for every input within 1."""
    return certify(network, *drive_range(network, -1, 1)).holds


# --- memory ---------------------------------------------------------------------------------------

N_LAGS, N_MEMORY = 200, 4000


def memory_input(seed: int) -> Array:
    """Return U(-1, 1), shape (n_rows,)."""
    return np.random.default_rng(seed).uniform(-1, 1, N_LAGS + 2 * N_MEMORY)


def noisy_states(network: Reservoir, u: Array, seed: int, *, seen: float, inner: float) -> Array:
    """Return states with noise: `seen` by the readout alone, `inner` inside the activation.

    Both are standard deviations of normal noise that is independent over units and steps.
    """
    rng = np.random.default_rng([seed, 1])
    if inner:
        # noise inside the activation is an input to each unit
        W_in = np.hstack([_dense(network.W_in), inner * np.eye(network.n_units)])
        u = np.hstack([u, rng.standard_normal((len(u), network.n_units))])
        network = Reservoir(network.W, W_in, network.bias, leak_rate=network.leak_rate)
    H = run(network, u)
    return H + seen * rng.standard_normal(H.shape) if seen else H


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def capacity(H: Array, u: Array, alpha: float = 1e-12) -> float:
    """Return the memory capacity that `metrics.memory_capacity` would find in these states."""
    lagged = np.lib.stride_tricks.sliding_window_view(u, N_LAGS + 1)[:, -2::-1]
    H, (train, test) = H[N_LAGS:], (slice(N_MEMORY), slice(N_MEMORY, 2 * N_MEMORY))
    solution = GramAccumulator(H.shape[1], N_LAGS).update(H[train], lagged[train]).solve(alpha)
    found = H[test] @ solution.coef.T
    a, b = found - found.mean(axis=0), lagged[test] - lagged[test].mean(axis=0)
    r2 = (a * b).sum(axis=0) ** 2 / ((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return float((r2 - (1 - r2) / (N_MEMORY - 2)).sum())


# --- six tasks ------------------------------------------------------------------------------------

WASHOUT, N_TRAIN, N_TEST = 200, 3000, 1200
N_ROWS = WASHOUT + N_TRAIN + N_TEST
ALPHAS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
TASKS = {  # input -> what is asked of it
    "narma": ["NARMA10"],
    "uniform": ["sin(pi u(t-5))", "u(t-5) u(t-8)"],
    "mackey_glass": ["Mackey-Glass +84"],
    "lorenz": ["Lorenz x +25", "Lorenz x to z"],
}


@lru_cache(maxsize=32)
def draw_tasks(seed: int) -> dict[str, tuple[Array, Array]]:
    """Return input -> u of shape (N_ROWS, 1), within 1, and targets of shape (N_ROWS, n_tasks)."""
    narma_u, narma_y = _narma(seed)
    u = np.random.default_rng([seed, 2]).uniform(-1, 1, N_ROWS + 8)
    glass = _within_one(mackey_glass(N_ROWS + 84, random_state=seed))[:, 0]
    flow = lorenz(N_ROWS + 25, random_state=seed)
    x, z = _within_one(flow)[:, 0], flow[:N_ROWS, 2]
    made = {
        "narma": (4 * narma_u[:, 0] - 1, [narma_y]),
        "uniform": (u[8:], [np.sin(np.pi * u[3:-5]), u[3:-5] * u[:-8]]),
        "mackey_glass": (glass[:N_ROWS], [glass[84:]]),
        "lorenz": (x[:N_ROWS], [x[25:], z]),
    }
    return {name: (u[:, None], np.stack(y, axis=1)) for name, (u, y) in made.items()}


def _narma(seed: int) -> tuple[Array, Array]:
    """Return NARMA10; a seed whose series diverges is replaced by seed + 1000."""
    try:
        return narma(N_ROWS, random_state=seed)
    except ValueError:
        return narma(N_ROWS, random_state=seed + 1000)


def _within_one(rows: Array) -> Array:
    low, high = rows.min(axis=0), rows.max(axis=0)
    return 2 * (rows - low) / (high - low) - 1


def task_errors(
    network: Reservoir,
    seed: int,
    alphas: Sequence[float] = ALPHAS,
    inputs: Sequence[str] = (),
    n_lags: int = 1,
) -> dict[str, list[float]]:
    """Return task -> the NRMSE on the test rows under each penalty, from states and inputs."""
    errors = {}
    for name in inputs or TASKS:
        u, Y = draw_tasks(seed)[name]
        # rows before the first are within the washout
        H = np.hstack([run(network, u), *(np.roll(u, lag, axis=0) for lag in range(n_lags))])
        train, test = slice(WASHOUT, WASHOUT + N_TRAIN), slice(WASHOUT + N_TRAIN, None)
        gram = GramAccumulator(H.shape[1], Y.shape[1]).update(H[train], Y[train])
        solutions = [gram.solve(alpha) for alpha in alphas]
        found = [H[test] @ solution.coef.T + solution.intercept for solution in solutions]
        for k, task in enumerate(TASKS[name]):
            errors[task] = [nrmse(Y[test, k], rows[:, k]) for rows in found]
    return errors


# --- the Lorenz system on its own outputs ---------------------------------------------------------

FREE_UNITS, FREE_TRAIN, FREE_STEPS, EVERY = 300, 4000, 900, 400
FREE_ALPHAS = (1e-10, 1e-8, 1e-6)


@lru_cache(maxsize=32)
def lorenz_rows(seed: int, n_starts: int) -> Array:
    """Return all three coordinates, each within 1."""
    n_rows = WASHOUT + FREE_TRAIN + EVERY * n_starts + FREE_STEPS
    return _within_one(lorenz(n_rows, random_state=seed))


def valid_times(
    network: Reservoir, seed: int, alphas: Sequence[float] = FREE_ALPHAS, n_starts: int = 6
) -> list[float]:
    """Return the mean valid time over the starts, in Lyapunov times, under each penalty."""
    rows = lorenz_rows(seed, n_starts)
    states = run(network, rows[:-1])
    train = slice(WASHOUT, WASHOUT + FREE_TRAIN)
    H = np.hstack([states[train], rows[train]])
    gram = GramAccumulator(H.shape[1], 3).update(H, rows[1:][train])
    return [
        float(np.mean(list(_loop_times(network, rows, states, gram.solve(alpha), n_starts))))
        for alpha in alphas
    ]


def _loop_times(
    network: Reservoir, rows: Array, states: Array, solution: Any, n_starts: int
) -> Iterator[float]:
    """Yield the valid time of a free run from each start, behind the rows of the fit."""
    scale = rows[WASHOUT : WASHOUT + FREE_TRAIN].std(axis=0)
    for start in range(n_starts):
        first = WASHOUT + FREE_TRAIN + EVERY * start
        found, _, _ = run_closed_loop(
            network,
            (solution.coef, solution.intercept),
            FREE_STEPS,
            initial_state=states[first - 1],
            initial_output=rows[first],
            include_input=True,
            return_steps=True,
        )
        truth = rows[first + 1 :][:FREE_STEPS]
        yield valid_time(
            truth[: len(found)],
            found,
            threshold=0.3,
            dt=0.02,
            lyapunov_time=LYAPUNOV_TIME["lorenz"],
            scale=scale,
        )
