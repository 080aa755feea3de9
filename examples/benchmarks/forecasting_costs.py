"""What digits and choice cost: QR against Gram, ten penalties, the bank of `ESNForecaster`, memory.

Usage: ``python examples/benchmarks/forecasting_costs.py [accumulate] [penalties] [bank] [memory]``
prints one table for each (all by default): medians of processor time over rounds taken in turns,
on one BLAS thread, as ratios to the first row. Memory is the peak above what the process held,
the series included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
from _command_line import run_main
from _memory import in_child, measure
from _timing import machine
from threadpoolctl import threadpool_limits

import reservoir
from reservoir import ESNRegressor
from reservoir.datasets import lorenz

BLOCK = 512  # rows of states that an accumulator gets at a time
PENALTIES = np.logspace(-24, -6, 10)
LENGTHS = (10_000, 100_000, 1_000_000)


def compare(title: str, jobs: Mapping[str, Callable[[], object]], n_rounds: int = 7) -> None:
    """Print the median processor time of every job, and its ratio to the first one's."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    with threadpool_limits(1):
        for job in jobs.values():
            job()  # loads and compiles
        for _ in range(n_rounds):
            for name, job in jobs.items():
                start = time.process_time()
                job()
                seconds[name].append(time.process_time() - start)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    unit = next(iter(medians.values()))
    print(f"\n{title}; medians of {n_rounds} rounds")
    for name, median in medians.items():
        print(f"{name:52s}{median:9.4f} s {median / unit:7.2f} x", flush=True)


def accumulate(n_rows: int = 10_000) -> None:
    """Sums over given rows, for the readouts of 100 to 1000 units on three coordinates."""
    from reservoir.readouts import GramAccumulator, QRAccumulator

    rng = np.random.default_rng(0)
    for n_features in (103, 303, 503, 1003):
        H, Y = np.tanh(rng.normal(size=(n_rows, n_features))), rng.normal(size=(n_rows, 3))

        def take(kind: type, H: np.ndarray = H, Y: np.ndarray = Y) -> object:
            sums = kind(H.shape[1], 3)
            for start in range(0, n_rows, BLOCK):
                sums.update(H[start : start + BLOCK], Y[start : start + BLOCK])
            return sums

        compare(
            f"accumulate {n_rows} rows of {n_features} features and 3 targets",
            {
                "Gram": lambda take=take: take(GramAccumulator),
                "QR": lambda take=take: take(QRAccumulator),
            },
        )


def penalties(n_rows: int = 10_000, n_units: int = 500) -> None:
    """Whole fits, states included: the solver, and ten penalties in the place of one."""
    series = lorenz(n_rows + 1, random_state=0) / 10

    def fit(**settings: object) -> object:
        # a search of penalties alone: by default it also tries earlier rows of the input
        model = ESNRegressor(n_units, leak_rate=1.0, n_lags=1, random_state=0, **settings)
        return model.fit(series[:-1], series[1:])

    compare(
        f"fit of {n_units} units to {n_rows} rows of Lorenz-63",
        {
            "cholesky, one penalty": lambda: fit(solver="cholesky", alpha=1e-6),
            "cholesky, ten penalties by GCV": lambda: fit(
                solver="cholesky", alpha=np.logspace(-10, -1, 10), alpha_selection="gcv"
            ),
            "qr, one penalty": lambda: fit(solver="qr", alpha=1e-20),
            "qr, ten penalties by GCV": lambda: fit(
                solver="qr", alpha=PENALTIES, alpha_selection="gcv"
            ),
        },
    )


def bank() -> None:
    """The forecaster that chooses, against one network of a size in its bank."""
    for n_rows, n_units in ((512, 150), (5120, 300)):
        series = lorenz(n_rows, random_state=0) / 10

        def one(series: np.ndarray = series, n_units: int = n_units) -> object:
            esn = ESNRegressor(n_units, solver="qr", alpha=1e-20, random_state=0)
            return esn.fit(series[:-1], series[1:]).forecast(500)

        def chosen(series: np.ndarray = series) -> object:
            return reservoir.ESNForecaster(random_state=0).fit(series).forecast(500)

        compare(
            f"fit to {n_rows} rows of Lorenz-63 and forecast 500",
            {f"one network, {n_units} units, qr": one, "ESNForecaster as it comes": chosen},
            n_rounds=5,
        )


def peak(model: str, n_rows: int) -> float:
    """Peak memory of a fit to so many rows, in MB above what was held before."""
    series = np.tile(lorenz(10_000, random_state=0) / 10, (-(-n_rows // 10_000), 1))[:n_rows]

    def fit(rows: np.ndarray) -> object:
        if model == "ESNForecaster":
            return reservoir.ESNForecaster(random_state=0).fit(rows)
        return ESNRegressor(300, solver=model, alpha=1e-6, random_state=0).fit(rows[:-1], rows[1:])

    fit(series[:5000])  # loads what is lazy
    return measure(lambda: fit(series))[1]


def memory() -> None:
    """Print the peak of fits to series of different lengths, each in a process of its own."""
    print("\npeak memory of a fit / MB above the series (300 units, three coordinates)")
    print(f"{'':20s}" + "".join(f"{n_rows:>12,d}" for n_rows in LENGTHS))
    for model in ("cholesky", "qr", "ESNForecaster"):
        peaks = [in_child("forecasting_costs", "peak", model, n_rows) for n_rows in LENGTHS]
        print(f"{model:20s}" + "".join(f"{value:12.1f}" for value in peaks), flush=True)


PARTS = {"accumulate": accumulate, "penalties": penalties, "bank": bank, "memory": memory}


def main(*wanted: str) -> None:
    """Print the tables that were asked for."""
    print(machine())
    for name in wanted or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    run_main(main)
