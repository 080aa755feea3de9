"""What a path of ridge penalties costs: one eigendecomposition, against scikit-learn's RidgeCV.

Usage: ``python examples/benchmarks/penalty_path.py [n_rows] [n_columns]`` (by default 10,000 and
500) prints medians over interleaved rounds on one BLAS thread, as ratios to one ridge fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from _command_line import run_main
from sklearn.linear_model import Ridge, RidgeCV
from threadpoolctl import threadpool_limits

from reservoir.readouts import GramAccumulator, ridge_path


def main(n_rows: int = 10_000, n_columns: int = 500, n_rounds: int = 5) -> None:
    """Measure and print."""
    rng = np.random.default_rng(0)
    H = np.tanh(rng.normal(size=(n_rows, 20)) @ rng.normal(size=(20, n_columns)) * 0.3)
    H += 0.1 * rng.normal(size=H.shape)
    y = H[:, 0] + rng.normal(size=n_rows)
    alphas = np.logspace(-6, 3, 10)

    def gram() -> GramAccumulator:
        return GramAccumulator(n_columns, 1).update(H, y)

    jobs: dict[str, Callable[[], object]] = {
        "one penalty, from the Gram matrix": lambda: gram().solve(1.0),
        "ten penalties by GCV, from the Gram matrix": lambda: ridge_path(gram(), alphas),
        "one penalty, scikit-learn's Ridge": lambda: Ridge(1.0).fit(H, y),
        "ten penalties, scikit-learn's RidgeCV": lambda: RidgeCV(alphas).fit(H, y),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    with threadpool_limits(1):
        for _ in range(n_rounds):
            for name, job in jobs.items():
                start = time.perf_counter()
                job()
                seconds[name].append(time.perf_counter() - start)
    unit = np.median(seconds["one penalty, from the Gram matrix"])
    print(f"{n_rows} rows, {n_columns} columns, one thread, medians of {n_rounds} rounds")
    for name, values in seconds.items():
        print(f"{name:44s} {np.median(values):7.3f} s  {np.median(values) / unit:6.2f} x")


if __name__ == "__main__":
    run_main(main)
