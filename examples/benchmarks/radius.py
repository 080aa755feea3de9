"""Which spectral radius, and which penalty, for how long a forecast of a chaotic system.

Usage: ``python examples/benchmarks/radius.py [radius] [leaky] [penalty] [--seeds N]``: all
by default, over the seeds 0 to 4; fifteen minutes on one core.

Each seed draws an orbit, the noise and the network. It is fitted on 2000 rows and forecasts 1200
from five places behind them, 300 rows apart, having listened to the 200 rows before each. Noise is
Gaussian, in standard deviations of the column, on the rows of the fit and on those it listens to;
forecasts are compared with the orbit without noise. Valid time: Lyapunov times until the root mean
square over the columns of error / standard deviation exceeds 0.3; the median over seeds and places.

- radius: `ESNForecaster` with one network of 150 units, input scaling .3, bias 1, states and their
  squares, whose penalty it finds itself; all variables are given, or the first alone.
- leaky: the same with a leak rate of .3, the first variable alone.
- penalty: `ESNRegressor`, 300 units, radius .05, input scaling .3, bias 1, on standardised rows,
  all variables, `alpha` a multiple of the number of rows, forecasts with ``clip=True``.

Lorenz: dt .02; Roessler: dt .2; Mackey-Glass: tau 17, dt 2; Thomas (b = .18, exponent .0349; Sprott
2003, appendix A): dt .3.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _timing import machine
from scipy.integrate import solve_ivp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNForecaster, ESNRegressor, forecast
from reservoir.datasets import LYAPUNOV_TIME, lorenz, mackey_glass, roessler
from reservoir.metrics import valid_time
from reservoir.model_selection import make_forecast_pairs

Array = np.ndarray
N_FIT, N_STEPS, N_CONTEXT, GAP, N_PLACES = 2000, 1200, 200, 300, 5
N_ROWS = N_FIT + (N_PLACES - 1) * GAP + N_STEPS
RADII = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.1)
FEW_RADII = (0.05, 0.4, 0.8, 1.1)
PENALTIES = (1e-30, 1e-25, 1e-20, 1e-16, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2)
NOISES = {"radius": (0.0, 0.01), "leaky": (0.0, 0.01), "penalty": (0.0, 1e-6, 1e-4, 0.01)}
DIGITS: dict[str, Any] = {"rtol": 1e-13, "atol": 1e-13}


def thomas(n_samples: int, dt: float, seed: int) -> Array:
    """Thomas' cyclically symmetric flow, x' = sin y - b x, b = .18, after 1000 rows."""

    def slope(t: float, s: Array) -> Array:
        return np.sin(np.roll(s, -1)) - 0.18 * s

    start = np.array([1.0, 0.0, 0.5]) + np.random.default_rng(seed).uniform(-0.1, 0.1, 3)
    times = dt * np.arange(1000, 1000 + n_samples)
    solved = solve_ivp(slope, (0, times[-1]), start, method="DOP853", t_eval=times, **DIGITS)
    return solved.y.T


@dataclass(frozen=True)
class System:
    """An orbit for each seed, and how many of its rows a Lyapunov time takes."""

    orbit: Callable[[int], Array]
    rows_per_time: float


SYSTEMS = {
    "Lorenz": System(
        lambda seed: lorenz(N_ROWS, dt=0.02, random_state=seed, **DIGITS),
        LYAPUNOV_TIME["lorenz"] / 0.02,
    ),
    "Roessler": System(
        lambda seed: roessler(N_ROWS, dt=0.2, random_state=seed, **DIGITS),
        LYAPUNOV_TIME["roessler"] / 0.2,
    ),
    "Thomas": System(lambda seed: thomas(N_ROWS, 0.3, seed), 1 / 0.0349 / 0.3),
    "Mackey-Glass": System(
        lambda seed: mackey_glass(N_ROWS, dt=2.0, random_state=seed),
        LYAPUNOV_TIME["mackey_glass"] / 2.0,
    ),
}


def by_radius(
    radius: float, seen: Array, seed: int, leak_rate: float = 1.0
) -> Callable[[Array], Array]:
    """Return forecasts from a context by one network of this spectral radius."""
    network = {
        "n_units": 150,
        "spectral_radius": radius,
        "input_scaling": 0.3,
        "leak_rate": leak_rate,
        "augment": "square",
    }
    model = ESNForecaster(search=[network], n_networks=1, random_state=seed).fit(seen)
    return lambda context: model.forecast(N_STEPS, context=context)


def leaky(radius: float, seen: Array, seed: int) -> Callable[[Array], Array]:
    """Return forecasts from a context by one network of this spectral radius that leaks."""
    return by_radius(radius, seen, seed, leak_rate=0.3)


def by_penalty(alpha: float, seen: Array, seed: int) -> Callable[[Array], Array]:
    """Return forecasts from a context by a network under this penalty per row."""
    esn = ESNRegressor(
        300,
        spectral_radius=0.05,
        leak_rate=1.0,
        input_scaling=0.3,
        bias_scaling=1.0,
        include_input=True,
        alpha=alpha * len(seen),
        random_state=seed,
    )
    model = make_pipeline(StandardScaler(), esn).fit(*make_forecast_pairs(seen))
    return lambda context: forecast(model, N_STEPS, context=context, clip=True)


TABLES: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "radius": (by_radius, RADII),
    "leaky": (leaky, FEW_RADII),
    "penalty": (by_penalty, PENALTIES),
}


def valid_times(
    network: Callable[..., Callable[[Array], Array]],
    values: tuple[float, ...],
    system: System,
    columns: slice,
    noise: float,
    seeds: int,
) -> Array:
    """Return the valid times of each value: an array (n_values, n_seeds * N_PLACES)."""
    times: list[list[float]] = [[] for _ in values]
    for seed in range(seeds):
        orbit = system.orbit(seed)[:, columns]
        scale = orbit[:N_FIT].std(axis=0)
        rows = orbit + noise * scale * np.random.default_rng(seed).normal(size=orbit.shape)
        for found, value in zip(times, values, strict=True):
            run = network(value, rows[:N_FIT], seed)
            for start in range(N_FIT, N_FIT + N_PLACES * GAP, GAP):
                truth = orbit[start : start + N_STEPS]
                guess = run(rows[start - N_CONTEXT : start])
                found.append(valid_time(truth, guess, scale=scale) / system.rows_per_time)
    return np.array(times)


def table(which: str, cases: list[tuple[str, slice, str]], seeds: int) -> None:
    """Print the median valid times of all cases, a row for each, a column for each value."""
    network, values = TABLES[which]
    print(f"\n| {which} | noise | " + " | ".join(f"{value:g}" for value in values) + " |")
    print("|---|---|" + "---|" * len(values))
    for name, columns, seen in cases:
        for noise in NOISES[which]:
            times = valid_times(network, values, SYSTEMS[name], columns, noise, seeds)
            medians = " | ".join(f"{median:.1f}" for median in np.median(times, axis=1))
            print(f"| {name}{seen} | {noise:g} | {medians} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    every, first = slice(None), slice(0, 1)
    flows = ["Lorenz", "Roessler", "Thomas"]
    cases = {
        "radius": [(name, every, ", all variables") for name in flows]
        + [(name, first, ", the first alone") for name in [*flows, "Mackey-Glass"]],
        "leaky": [(n, first, ", the first alone") for n in ("Lorenz", "Roessler", "Mackey-Glass")],
        "penalty": [(name, every, "") for name in flows],
    }
    start = time.process_time()
    print(machine())
    print(f"median valid time, Lyapunov times, seeds 0 to {options.seeds - 1}, {N_PLACES} places")
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of loops that leave the data
        for which in options.tables or TABLES:
            table(which, cases[which], options.seeds)
    print(f"\n{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
