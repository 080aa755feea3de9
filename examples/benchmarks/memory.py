"""Peak memory of a fit: it depends on the number of units, not on the number of steps.

Usage: ``python examples/benchmarks/memory.py [n_steps] [n_units]`` (by default 1,000,000 and 500)
prints the peak above what the process held before the fit, its input included.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from _command_line import run_main

from reservoir import ESNRegressor


def peak_mb() -> float:
    """Largest resident size of this process so far, in MB (Linux counts KiB, macOS bytes)."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main(n_steps: int = 1_000_000, n_units: int = 500) -> None:
    """Fit once and print peak and duration."""
    X = np.random.default_rng(0).uniform(-1, 1, (n_steps, 1))
    y = np.append(0.0, X[:-1, 0])
    esn = ESNRegressor(n_units, random_state=0).fit(X[:20_000], y[:20_000])  # loads what is lazy
    before, start = peak_mb(), time.perf_counter()
    esn.fit(X, y)
    seconds = time.perf_counter() - start
    states = 8e-6 * n_steps * n_units
    print(
        f"{n_steps} steps, {n_units} units: peak {peak_mb() - before:.0f} MB above the input, "
        f"{seconds:.0f} s (the state matrix, never stored, would be {states:.0f} MB)"
    )


if __name__ == "__main__":
    run_main(main)
