"""Exponents and climates of closed loops: which of them are the system's, and which the network's?

Lorenz: 6000 rows at dt .02, divided by one standard deviation; exponents over 20,000 steps per
unit of time. Climates: 10,000 rows in closed loop against 10,000 rows of the system, beside the
distances of these from later stretches of 10,000 rows, the floor. Henon: 1000 rows, exponents per
step. A row of a table has the least and the greatest value over the seeds. Seconds are processor
times on one BLAS thread.

    python examples/benchmarks/loop_exponents.py [--n-seeds 5]
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from reservoir import ESNRegressor, NVARRegressor
from reservoir.datasets import henon, lorenz
from reservoir.metrics import power_spectrum_distance, sliced_wasserstein
from reservoir.stability import (
    flow_exponents,
    kaplan_yorke_dimension,
    loop_exponents,
    map_exponents,
)

DT, N_TRAINED, N_CLIMATE = 0.02, 6000, 10_000
NETWORK = {"n_units": 300, "n_lags": 1, "input_scaling": 0.3, "bias_scaling": 0.5, "alpha": 1e-8}
RETURNING = NETWORK | {"spectral_radius": 0.6, "leak_rate": 0.8}
MODELS = {
    "radius .6, leak .8": RETURNING,
    "the same, n_lags=2": RETURNING | {"n_lags": 2},
    "the same, n_lags=3": RETURNING | {"n_lags": 3},
    "radius .9, leak .8": RETURNING | {"spectral_radius": 0.9},
    "radius .9, leaks .5 and .3": NETWORK | {"spectral_radius": 0.9, "leak_rate": (0.5, 0.3)},
}
POLYNOMIALS = {"polynomials, degree 4": (1, 4), "linear, 3 lags": (3, 1)}
SMALL = {"n_units": 100, "n_lags": 1, "leak_rate": 1.0, "input_scaling": 0.3, "alpha": 1e-8}


def lorenz_slope(s):
    x, y, z = s.tolist()
    return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]


def lorenz_jacobian(s):
    x, y, z = s.tolist()
    return [[-10, 10, 0], [28 - z, -1, -x], [y, x, -8 / 3]]


def henon_map(s):
    return [1 - 1.4 * s[0] ** 2 + s[1], 0.3 * s[0]]


def henon_jacobian(s):
    return [[-2.8 * s[0], 1], [0.3, 0]]


def line(name, runs):
    """Print the least and the greatest of each value over the runs."""
    low, high = (np.round(end, 2) + 0.0 for end in (np.min(runs, axis=0), np.max(runs, axis=0)))
    cells = (f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True))
    print(f"{name:30}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def distances(truth, rows):
    """Return both distances between two stretches."""
    return power_spectrum_distance(truth, rows), sliced_wasserstein(truth, rows, random_state=0)


def lorenz_models():
    """Return name -> function of a seed that returns a fresh model."""
    models = {
        name: lambda seed, kw=kw: ESNRegressor(**kw, random_state=seed)
        for name, kw in MODELS.items()
    }
    for name, (n_lags, degree) in POLYNOMIALS.items():
        models[name] = lambda seed, n=n_lags, d=degree: NVARRegressor(
            n_lags=n, degree=d, alpha=1e-8
        )
    return models


def show_lorenz(n_seeds):
    rows = lorenz(N_TRAINED + (1 + n_seeds) * N_CLIMATE, dt=DT)
    rows = (rows - rows[:N_TRAINED].mean(axis=0)) / rows[:N_TRAINED].std()
    X = rows[:N_TRAINED]
    truth, *later = np.split(rows[N_TRAINED:], 1 + n_seeds)
    print(f"{'Lorenz':30}" + "".join(f"{h:>20}" for h in ("first", "second", "third", "dimension")))
    known = [
        flow_exponents(lorenz_slope, lorenz_jacobian, start, dt=DT, random_state=0)
        for start in np.random.default_rng(0).uniform(1, 2, (n_seeds, 3))
    ]
    line("the flow", [[*e, kaplan_yorke_dimension(e)] for e in known])
    climates, seconds = {}, []
    for name, model_of in lorenz_models().items():
        runs, apart = [], []
        for seed in range(n_seeds if "radius" in name or "same" in name else 1):
            model = model_of(seed).fit(X[:-1], X[1:])
            begin = time.process_time()
            found = loop_exponents(model, dt=DT, random_state=seed)
            if name == "radius .6, leak .8":
                seconds.append(time.process_time() - begin)
            runs.append([*found, kaplan_yorke_dimension(found)])
            apart.append(distances(truth, model.forecast(N_CLIMATE)))
        line(name, runs)
        climates[name] = apart
    print(f"\n{'climate':30}{'power spectrum':>20}{'sliced Wasserstein':>20}")
    line("the flow, later", [distances(truth, stretch) for stretch in later])
    for name, apart in climates.items():
        line(name, apart)
    print(f"\nseconds of loop_exponents, 300 units, 3 exponents: {np.median(seconds):.2f}")


def show_henon(n_seeds):
    X = henon(1000)
    print(f"\n{'Henon':30}{'first':>20}{'second':>20}")
    starts = np.random.default_rng(0).uniform(-0.1, 0.1, (n_seeds, 2))
    line("the map", [map_exponents(henon_map, henon_jacobian, s, random_state=0) for s in starts])
    polynomials = NVARRegressor(n_lags=1, degree=2).fit(X[:-1], X[1:])
    line("polynomials, degree 2", [loop_exponents(polynomials, 2, random_state=0)])
    for radius in (0.1, 0.6):
        runs = []
        for seed in range(n_seeds):
            model = ESNRegressor(**SMALL, spectral_radius=radius, random_state=seed)
            runs.append(loop_exponents(model.fit(X[:-1], X[1:]), 2, random_state=seed))
        line(f"100 units, radius {radius}", runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n-seeds", type=int, default=5)
    n_seeds = parser.parse_args().n_seeds
    warnings.simplefilter("ignore", RuntimeWarning)
    show_lorenz(n_seeds)
    show_henon(n_seeds)


if __name__ == "__main__":
    main()
