"""Trained networks left to their own outputs: how far off, and how many leave the training range.

`RNNRegressor(64)` on series of several kinds, as it comes and with other starts, cells and noise;
forecasts of 100 and of 500 steps from the end of training. NRMSE over the training series' standard
deviation, median and worst over seeds; "left" counts forecasts of 500 steps that leave the training
range by more than its width; seconds of processor time of a fit, the median.

    python examples/benchmarks/rnn_loop.py                     # all series, 20 seeds
    python examples/benchmarks/rnn_loop.py mackey --seeds 5
    python examples/benchmarks/rnn_loop.py --quick             # starts alone, 3 seeds
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _timing import machine
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from reservoir import RNNRegressor
from reservoir.datasets import load_sunspots, lorenz, mackey_glass

HORIZON = 500
VARIANTS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "the start as drawn": {"init": "least_squares"},
    "reservoir, ridge readout": {"init": "esn"},
    "leaky": {"cell": "leaky"},
    "leaky, the start as drawn": {"cell": "leaky", "init": "least_squares"},
    "readout sees the input": {"include_input": True},
}
NOISES = (1e-4, 1e-3)  # on the inputs in training, in standard deviations


def standardised(series: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and variance 1."""
    series = np.asarray(series, dtype=np.float64).reshape(len(series), -1)
    return (series - series.mean(axis=0)) / series.std(axis=0)


def noisy_sine() -> np.ndarray:
    """A sine under noise."""
    noise = np.random.default_rng(0).standard_normal(1500)
    return (np.sin(0.2 * np.arange(1500)) + 0.1 * noise)[:, None]


#: name -> the series, and how many rows of it are for training
SERIES: dict[str, Callable[[], tuple[np.ndarray, int]]] = {
    "mackey": lambda: (mackey_glass(2500, random_state=0).reshape(-1, 1), 2000),
    "mackey, 400 rows": lambda: (mackey_glass(900, random_state=3).reshape(-1, 1), 400),
    "lorenz x": lambda: (standardised(lorenz(2500, random_state=0)[:, 0]), 2000),
    "sunspots": lambda: (standardised(load_sunspots()), 260),
    "sine": lambda: (noisy_sine(), 1000),
}


def run(series: np.ndarray, n_fit: int, seed: int, noise: float, **params: Any) -> list[float]:
    """Fit and forecast; return both errors, whether the range was left, and seconds."""
    train = series[:n_fit]
    low, high, spread = train.min(axis=0), train.max(axis=0), train.std(axis=0)
    X = train[:-1] + noise * spread * np.random.default_rng(seed).standard_normal(train[:-1].shape)
    tick = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rnn = RNNRegressor(64, random_state=seed, **params).fit(X, train[1:])
        seconds = time.process_time() - tick
        if noise:  # rows that are no pairs are not fed back by `forecast`
            rnn = clean_loop(rnn, train)
        rows = rnn.forecast(HORIZON).reshape(HORIZON, -1)
    left = ((rows < 2 * low - high) | (rows > 2 * high - low)).any()
    true = series[n_fit : n_fit + HORIZON]
    errors = (np.clip(rows[: len(true)], -1e9, 1e9) - true) / spread
    scores = [float(np.sqrt(np.mean(errors[:n] ** 2))) for n in (100, HORIZON)]
    return [*scores, float(left), seconds]


def clean_loop(rnn: RNNRegressor, train: np.ndarray) -> RNNRegressor:
    """Return a network with the same weights that has seen the series as it is."""
    again = RNNRegressor(64, init=FrozenEstimator(rnn), max_iter=0, cell=rnn.cell)
    return again.fit(train[:-1], train[1:])


def main() -> None:
    """Print a table per series."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("series", nargs="*", help=", ".join(SERIES))
    parser.add_argument("--quick", action="store_true", help="starts alone, three seeds")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    unknown = sorted(set(options.series) - set(SERIES))
    if unknown:
        parser.error(f"unknown series {unknown}; known: {', '.join(SERIES)}")
    seeds = range(3 if options.quick else options.seeds)
    more = {"max_iter": 0} if options.quick else {}
    cases = [(name, 0.0, params) for name, params in VARIANTS.items()]
    cases += [(f"inputs with noise {noise:g}", noise, {}) for noise in NOISES]
    print(machine())
    with threadpool_limits(1):
        for name in options.series or SERIES:
            series, n_fit = SERIES[name]()
            n_late = min(HORIZON, len(series) - n_fit)
            print(f"\n{name}: {n_fit} rows, seeds 0 to {seeds[-1]}; median / worst")
            print(f"{'':28s}{'100 steps':>18s}{f'{n_late} steps':>18s}{'left':>6s}{'seconds':>9s}")
            for label, noise, params in cases:
                found = np.array([run(series, n_fit, s, noise, **params, **more) for s in seeds])
                middle, worst = np.median(found, axis=0), found.max(axis=0)
                cells = "".join(f"{f'{middle[k]:.3g} / {worst[k]:.3g}':>18s}" for k in (0, 1))
                left = int(found[:, 2].sum())
                print(f"{label:28s}{cells}{left:6d}{middle[3]:9.2f}", flush=True)


if __name__ == "__main__":
    main()
