"""How cost and memory grow: with the units, the steps and the number of sequences.

Usage: ``python examples/benchmarks/growth.py [--quick] [--out DIR]`` prints a table for each:

- N from 100 to 100,000 units, 10 connections per row: states, block by block, nothing stored
- T from 1000 to 1,000,000 steps: fit of an ESNRegressor of 300 units
- 1 to 1000 sequences of 1000 steps: the same fit

Every size runs in a process of its own on one BLAS thread, after calls that load and
compile; memory is the peak above what was held before, input included in the latter. Writes
DIR/growth.csv and DIR/growth.png.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _memory import in_child, measure
from _timing import Report, machine

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.dynamics import iter_states

N_UNITS, N_STEPS = 300, 1000  # of the fits; of one sequence
UNITS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
STEPS = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
SEQUENCES = (1, 3, 10, 30, 100, 300, 1000)


def load() -> None:
    """Load and compile what a fit needs, on a small network: long enough to be worth kernels."""
    rows = np.random.default_rng(0).uniform(-1, 1, (20_000, 1))
    esn = ESNRegressor(50, alpha=1e-6, washout=100, random_state=1)
    esn.fit(rows, rows[:, 0])
    esn.fit(list(rows.reshape(20, 1000, 1)), list(rows.reshape(20, 1000)))


def states(n_units: int, n_connections: float) -> dict[str, float]:
    """Seconds and MB of a state run of about `n_connections`, unscaled weights."""
    network = build_reservoir(n_units, 1, spectral_radius=None, leak_rate=0.5, random_state=0)
    n_steps = int(min(50_000, max(100, n_connections // (10 * n_units))))
    X = np.random.default_rng(0).uniform(-1, 1, (n_steps, 1))

    def drive() -> None:
        for _ in iter_states(network, X):
            pass

    load()
    seconds, megabytes = measure(drive)
    held = sum(part.nbytes for part in (network.W.data, network.W.indices, network.W.indptr)) / 1e6
    return {"seconds": seconds, "MB": megabytes, "n_steps": n_steps, "MB of W": held}


def fit(n_steps: int, n_sequences: int) -> dict[str, float]:
    """Seconds and MB of a fit on sequences of equal length, several of them as a list."""
    rows = np.random.default_rng(0).uniform(-1, 1, (n_sequences, n_steps, 1))
    X: Any = list(rows) if n_sequences > 1 else rows[0]
    y: Any = [np.roll(x[:, 0], 1) for x in X] if n_sequences > 1 else np.roll(X[:, 0], 1)
    load()
    esn = ESNRegressor(N_UNITS, alpha=1e-6, washout=100, random_state=0)
    seconds, megabytes = measure(lambda: esn.fit(X, y))
    held = 8e-6 * N_UNITS * n_steps * n_sequences
    return {"seconds": seconds, "MB": megabytes, "MB of all states": held}


def table(
    report: Report, title: str, axis: str, sizes: tuple[int, ...], run: Callable[[int], Any]
) -> None:
    """Measure every size, print it, and keep it."""
    print(f"\n{title}")
    for i, size in enumerate(sizes):
        figures = run(size)
        if i == 0:
            print(f"{axis:>10s}" + "".join(f"{name:>18s}" for name in figures))
        print(f"{size:10d}" + "".join(f"{figure:18.4g}" for figure in figures.values()), flush=True)
        report.rows.append({"axis": axis, "size": size, **figures})


def cost_of_states(n_units: int, budget: float) -> dict[str, float]:
    figures = in_child("growth", "states", n_units, budget)
    microseconds = 1e6 * figures["seconds"] / figures["n_steps"]
    per_connection = 1e3 * microseconds / (10 * n_units)
    return {"us/step": microseconds, "ns/connection": per_connection, **figures}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, default=Path("benchmark_results"), metavar="DIR")
    arguments = parser.parse_args()
    few = slice(0, 3 if arguments.quick else None)
    budget = 2e7 if arguments.quick else 1e9
    print(machine())
    report = Report("growth", arguments.out)
    table(
        report,
        "states, 10 connections per row",
        "N",
        UNITS[few],
        lambda n_units: cost_of_states(n_units, budget),
    )
    table(
        report,
        f"fit of {N_UNITS} units, one sequence",
        "T",
        STEPS[few],
        lambda n_steps: in_child("growth", "fit", n_steps, 1),
    )
    table(
        report,
        f"fit of {N_UNITS} units, sequences of {N_STEPS} steps",
        "sequences",
        SEQUENCES[few],
        lambda n_sequences: in_child("growth", "fit", N_STEPS, n_sequences),
    )
    report.write()
    try:
        from _plots import growth_figure, save
    except ImportError as reason:
        print(f"no plot: {reason}")
    else:
        save(growth_figure(report.rows), arguments.out / "growth.png")


if __name__ == "__main__":
    main()
