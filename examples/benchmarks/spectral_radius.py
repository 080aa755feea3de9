"""How often a spectral radius is wrong: ours, and ARPACK asked for one eigenvalue.

Usage: ``python examples/benchmarks/spectral_radius.py [n_units] [n_seeds]`` (by default 1000 and
20) prints, over sparse random matrices with 10 connections per row, how many radii are off by
more than 1e-6 relative to all eigenvalues of the dense matrix, the worst error, and the median
cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from _command_line import run_main
from scipy.sparse.linalg import ArpackNoConvergence, eigs

from reservoir.scaling import spectral_radius
from reservoir.topologies import random_sparse


def arpack_one(W: sp.csr_array) -> float:
    """Return |eigenvalue| as ARPACK gives it for k = 1, NaN where it does not converge."""
    try:
        v0 = np.random.default_rng(0).normal(size=W.shape[0])
        return float(np.abs(eigs(W, k=1, v0=v0, return_eigenvectors=False))[0])
    except ArpackNoConvergence:
        return np.nan


def main(n_units: int = 1000, n_seeds: int = 20) -> None:
    """Measure and print."""
    methods: dict[str, Callable[[sp.csr_array], float]] = {
        "reservoir.scaling.spectral_radius": spectral_radius,
        "scipy.sparse.linalg.eigs(k=1)": arpack_one,
    }
    errors: dict[str, list[float]] = {name: [] for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(n_seeds):
        W = random_sparse(n_units, random_state=seed)
        right = np.abs(np.linalg.eigvals(W.toarray())).max()
        for name, method in methods.items():
            start = time.perf_counter()
            radius = method(W)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(abs(radius - right) / right)
    print(f"{n_units} units, 10 connections per row, seeds 0 to {n_seeds - 1}")
    for name in methods:
        off = np.array(errors[name])
        wrong = int(np.sum(~(off <= 1e-6)))
        print(
            f"{name:36s} wrong {wrong:3d} of {n_seeds}, worst relative error "
            f"{np.nanmax(off):.1e}, median {np.median(seconds[name]):.3f} s"
        )


if __name__ == "__main__":
    run_main(main)
