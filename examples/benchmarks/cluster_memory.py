"""Peak memory of the workers of a cluster: it does not grow with the number of partitions.

Usage: ``python examples/benchmarks/cluster_memory.py [n_units] [rows_per_partition]`` (by default
1000 and 1500) needs the extra `cluster`. It fits 8, 32 and 128 partitions with a new cluster of two
processes each, and prints the largest peak of a worker above what it held before the fit (Linux).
"""

from __future__ import annotations

from pathlib import Path

import dask.array as da
from _command_line import run_main
from dask.distributed import Client, LocalCluster

from reservoir import ESNRegressor


def peak_mb() -> float:
    """Largest resident size of this process so far, in MB."""
    # `resource` counts what the parent process held before it started this one
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def main(n_units: int = 1000, n_rows: int = 1500) -> None:
    """Fit with each number of partitions, and print the peaks."""
    for n in (8, 32, 128):
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            u = da.random.default_rng(0).uniform(-1, 1, n * n_rows, chunks=n_rows)
            esn = ESNRegressor(n_units, alpha=1e-6, random_state=0)
            client.run(__import__, "reservoir")
            before = client.run(peak_mb)
            esn.fit(u[:, None], u)
            after = client.run(peak_mb)
            peak = max(after[worker] - before[worker] for worker in after)
            print(f"{n} partitions of {n_rows} rows, {n_units} units: {peak:.0f} MB a worker")


if __name__ == "__main__":
    run_main(main)
