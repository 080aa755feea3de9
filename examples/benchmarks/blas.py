"""What OpenBLAS's choice of kernels costs: dsyrk, the heart of a fit, under several core types.

Usage: ``python examples/benchmarks/blas.py [n_units]`` (by default 1000) times 512 rows of states
going into a Gram matrix, in a process per core type, on one thread, in turns; medians of five
processes. A core type that the build does not know is named in the first column only.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
from _command_line import run_main

CORES = ("as it picks", "Haswell", "SkylakeX", "Zen")
PROGRAM = """
import sys, time
import numpy as np
from scipy.linalg import blas
from threadpoolctl import threadpool_info
n = int(sys.argv[1])
H = np.random.default_rng(0).normal(size=(512, n))
C = np.zeros((n, n), order="F")
times = []
for _ in range(9):
    start = time.perf_counter()
    blas.dsyrk(1.0, H.T, 1.0, C, overwrite_c=True)
    times.append(time.perf_counter() - start)
names = {info.get("architecture") for info in threadpool_info() if info["user_api"] == "blas"}
print(np.median(times), *sorted(map(str, names)))
"""


def one(core: str, n_units: int) -> tuple[float, str]:
    """Return the seconds of one product in a fresh process, and the kernels it ran on."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    if core != CORES[0]:
        environment["OPENBLAS_CORETYPE"] = core
    command = [sys.executable, "-c", PROGRAM, str(n_units)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds, *names = done.stdout.split()
    return float(seconds), ", ".join(names)


def main(n_units: int = 1000, n_rounds: int = 5) -> None:
    """Measure and print."""
    found: dict[str, list[tuple[float, str]]] = {core: [] for core in CORES}
    for _ in range(n_rounds):
        for core, results in found.items():
            results.append(one(core, n_units))
    unit = np.median([seconds for seconds, _ in found[CORES[0]]])
    for core, results in found.items():
        seconds = np.median([value for value, _ in results])
        rate = 512 * n_units**2 / seconds / 1e9
        print(
            f"{core:12s} ran {results[0][1]:10s} {1e3 * seconds:7.2f} ms {rate:6.1f} GFlop/s "
            f"{seconds / unit:5.2f} x"
        )


if __name__ == "__main__":
    run_main(main)
