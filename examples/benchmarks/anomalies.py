"""Anomalies: scores of one-step forecasts beside an isolation forest on lags.

Usage: ``python examples/benchmarks/anomalies.py [--seeds 20] [--jobs N]``

Six generated series of 2,000 rows, and the three that the library ships (real series contain odd
rows of their own, which nobody has labelled). The first half is without inserted anomalies and is
learned from. In the second half five anomalies are inserted, in units of the standard deviation of
one-step differences: spikes (one row, 4 to 8), bursts of noise (10 rows, 3), shifts of the level
(10 rows, 4 to 8) and flat stretches (10 rows of one value); each kind in a copy of its own.

Methods: `anomaly_scores` of `ESNRegressor()` as it comes, whose one-step forecasts are of rows it
has not learned from, without and with ``skip=3`` (skipped rows count as scores of 0); the same
scores of a ridge regression on 20 lags; and an isolation forest on windows of 20 rows, the last one
being the row that is scored. Printed is the average precision of rows, the mean over seeds with its
standard error, and the seconds of processor time of one series.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from _timing import machine
from joblib import Parallel, delayed
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import RidgeCV
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, datasets
from reservoir.metrics import anomaly_scores

Array = np.ndarray
N_ROWS, N_LAGS, N_INSERTED, LENGTH = 2000, 20, 5, 10
KINDS = ("spike", "burst", "shift", "flat")


def autoregression(rng: np.random.Generator) -> Array:
    """Return a damped oscillation that noise keeps going."""
    y, noise = np.zeros(N_ROWS), rng.standard_normal(N_ROWS)
    for t in range(2, N_ROWS):
        y[t] = 1.6 * y[t - 1] - 0.8 * y[t - 2] + noise[t]
    return y


def seasons(rng: np.random.Generator) -> Array:
    """Return two seasons with noise."""
    t = np.arange(N_ROWS)
    return np.sin(t / 4) + 0.5 * np.sin(t / 37) + 0.1 * rng.standard_normal(N_ROWS)


def pulses(rng: np.random.Generator) -> Array:
    """Return pulses at regular times, as in a heartbeat, with noise."""
    t = np.arange(N_ROWS) + rng.integers(50)
    return np.exp(-0.5 * ((t % 50 - 25) / 3) ** 2) + 0.05 * rng.standard_normal(N_ROWS)


def volatile(rng: np.random.Generator) -> Array:
    """Return a random walk towards 0 whose noise doubles and halves."""
    size = np.exp(np.sin(np.arange(N_ROWS) / 150))
    y, noise = np.zeros(N_ROWS), size * rng.standard_normal(N_ROWS)
    for t in range(1, N_ROWS):
        y[t] = 0.95 * y[t - 1] + noise[t]
    return y


def mackey_glass(rng: np.random.Generator) -> Array:
    """Return a chaotic series with a little noise."""
    y = datasets.mackey_glass(N_ROWS, random_state=int(rng.integers(2**31)))
    return np.ravel(y) + 0.02 * rng.standard_normal(N_ROWS)


def lorenz(rng: np.random.Generator) -> Array:
    """Return the first variable of the Lorenz system with a little noise."""
    rows = datasets.lorenz(N_ROWS, dt=0.05, random_state=int(rng.integers(2**31)))
    return rows[:, 0] + 0.2 * rng.standard_normal(N_ROWS)


SERIES: dict[str, Callable[[np.random.Generator], Array]] = {
    "oscillation": autoregression,
    "two seasons": seasons,
    "pulses": pulses,
    "changing noise": volatile,
    "Mackey-Glass": mackey_glass,
    "Lorenz": lorenz,
    "CO2": lambda rng: np.ravel(datasets.load_co2()),
    "El Nino": lambda rng: np.ravel(datasets.load_el_nino()),
    "sunspots": lambda rng: np.ravel(datasets.load_sunspots()),
}


def inserted(y: Array, kind: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return a copy with anomalies in its second half, and which rows they are."""
    y, labels = y.copy(), np.zeros(len(y), dtype=bool)
    middle, unit = len(y) // 2, np.diff(y).std()
    length = 1 if kind == "spike" else LENGTH
    room = (len(y) - middle - N_LAGS) // N_INSERTED
    for k in range(N_INSERTED):
        first = middle + N_LAGS + k * room + int(rng.integers(max(room - 2 * length, 1)))
        rows = slice(first, first + length)
        labels[rows] = True
        if kind == "burst":
            y[rows] += 3 * unit * rng.standard_normal(len(y[rows]))
        elif kind == "flat":
            y[rows] = y[first]
        else:
            y[rows] += rng.choice([-1, 1]) * rng.uniform(4, 8) * unit
    return y, labels


def lagged(y: Array, n_lags: int) -> Array:
    """Return windows of `n_lags` rows, one per row from the last of the first window on."""
    return np.lib.stride_tricks.sliding_window_view(y, n_lags)


def of_network(y: Array, middle: int, seed: int, skip: int = 0) -> Array:
    """Return the scores of an echo state network's one-step errors in the second half."""
    X, ahead = y[:-1, None], y[1:]
    model = ESNRegressor(random_state=seed).fit(X[: middle - 1], ahead[: middle - 1])
    scores = anomaly_scores(y[middle:], model.predict(X)[middle - 1 :], skip=skip)
    return np.nan_to_num(scores)


def of_ridge(y: Array, middle: int, seed: int) -> Array:
    """Return the scores of the one-step errors of a ridge regression on lags."""
    X, ahead = lagged(y[:-1], N_LAGS), y[N_LAGS:]
    model = RidgeCV(np.logspace(-6, 3, 10)).fit(X[: middle - N_LAGS], ahead[: middle - N_LAGS])
    return anomaly_scores(y[middle:], model.predict(X[middle - N_LAGS :]))


def of_forest(y: Array, middle: int, seed: int) -> Array:
    """Return the scores of an isolation forest on windows."""
    X = lagged(y, N_LAGS)
    model = IsolationForest(random_state=seed).fit(X[: middle - N_LAGS + 1])
    return -model.score_samples(X[middle - N_LAGS + 1 :])


METHODS: dict[str, Callable[[Array, int, int], Array]] = {
    "network": of_network,
    "network, skip=3": lambda y, middle, seed: of_network(y, middle, seed, skip=3),
    "ridge on 20 lags": of_ridge,
    "isolation forest": of_forest,
}


def measure(name: str, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return average precision and seconds of each method, by kind of anomaly."""
    rng = np.random.default_rng([seed, list(SERIES).index(name)])
    y = SERIES[name](rng)
    y, found = (y - y.mean()) / y.std(), {}
    for kind in KINDS:
        changed, labels = inserted(y, kind, rng)
        middle = len(y) // 2
        for method, scores_of in METHODS.items():
            with threadpool_limits(1):
                start = time.process_time()
                scores = scores_of(changed, middle, seed)
                seconds = time.process_time() - start
            found[method, kind] = average_precision_score(labels[middle:], scores), seconds
    return found


Outcomes = dict[tuple[str, int], dict[tuple[str, str], tuple[float, float]]]


def row(title: str, outcomes: Outcomes, names: list[str], kinds: list[str], place: int) -> str:
    """Return a line: for each method the mean over series and kinds, with its error over seeds."""
    seeds, cells = sorted({seed for _, seed in outcomes}), []
    for method in METHODS:
        means = [
            np.mean([outcomes[name, seed][method, kind][place] for name in names for kind in kinds])
            for seed in seeds
        ]
        error = np.std(means, ddof=1) / np.sqrt(len(seeds))
        cells.append(f"{np.mean(means):13.3f} {error:6.3f}")
    return f"{title:16s}" + "".join(cells)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    print(machine())
    jobs = [(name, seed) for name in SERIES for seed in range(options.seeds)]
    found = Parallel(options.jobs)(delayed(measure)(*job) for job in jobs)
    outcomes = dict(zip(jobs, found, strict=True))
    names, kinds = list(SERIES), list(KINDS)
    print(f"\n{'average precision':16s}" + "".join(f"{method:>20s}" for method in METHODS))
    for name in names:
        print(row(name, outcomes, [name], kinds, 0))
    for kind in kinds:
        print(row(kind, outcomes, names, [kind], 0))
    print(row("mean", outcomes, names, kinds, 0))
    print(row("seconds", outcomes, names, kinds, 1))


if __name__ == "__main__":
    main()
