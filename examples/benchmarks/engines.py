"""What the choice of an engine rests on: NumPy's cost per step, and what loading kernels costs.

Usage: ``python examples/benchmarks/engines.py`` prints the measured cost of a step on the NumPy
engine beside the model that ``engine="auto"`` uses, the time per step of both engines, and the
seconds that the first call of a kernel takes in a fresh process: with nothing compiled yet, and
with the compiled code on the disk. Takes half a minute.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from _command_line import run_main
from threadpoolctl import threadpool_limits

from reservoir.dynamics import Reservoir, iter_states
from reservoir.dynamics.engines import numpy_seconds_per_step

CASES = [(50, 10), (100, 10), (300, 10), (1000, 10), (1000, 100), (3000, 10), (10_000, 10)]
FIRST_CALL = """
import time
import numpy as np
from reservoir.building import build_reservoir
from reservoir.dynamics import run
net = build_reservoir(100, 1, random_state=0)
X = np.zeros((10, 1))
start = time.perf_counter()
run(net, X, engine="numba")
print(time.perf_counter() - start)
"""


def network(n_units: int, in_degree: int) -> Reservoir:
    """Return a sparse random reservoir, its radius about .9 by the circular law."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, n_units, n_units * in_degree)
    rows = np.repeat(np.arange(n_units), in_degree)
    data = rng.normal(size=columns.size) * 0.9 / np.sqrt(in_degree)
    W = sp.csr_array((data, (rows, columns)), shape=(n_units, n_units))
    return Reservoir(W, rng.uniform(-1, 1, (n_units, 1)), np.zeros(n_units), leak_rate=0.3)


def seconds(job: Callable[[], object], rounds: int = 5) -> float:
    """Return the median time of a job, after a first run that is not counted."""
    job()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def run_blocks(net: Reservoir, X: np.ndarray, engine: str) -> None:
    """Run over a series and keep nothing."""
    for _ in iter_states(net, X, engine=engine):
        pass


def main() -> None:
    """Measure and print."""
    numba = importlib.util.find_spec("numba") is not None
    print(f"{'units':>6} {'per row':>7} {'model, us':>10} {'NumPy, us':>10} {'numba, us':>10}")
    with threadpool_limits(1):
        for n_units, in_degree in CASES:
            net = network(n_units, in_degree)
            n_steps = max(500, 2_000_000 // n_units) if n_units < 3000 else 512
            X = np.random.default_rng(1).normal(size=(n_steps, 1))
            measured = [
                1e6 * seconds(lambda e=e, net=net, X=X: run_blocks(net, X, e)) / n_steps
                for e in ("numpy", "numba")[: 1 + numba]
            ]
            model = 1e6 * numpy_seconds_per_step(net)
            print(
                f"{n_units:6d} {in_degree:7d} {model:10.2f} "
                + " ".join(f"{m:10.2f}" for m in measured)
            )
    if not numba:
        print("numba is not installed: no kernels to load")
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", FIRST_CALL]
        for name in ("first call, nothing compiled", "first call, compiled code on the disk"):
            done = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True
            )
            print(f"{name}: {float(done.stdout):.2f} s")


if __name__ == "__main__":
    run_main(main)
