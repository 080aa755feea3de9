"""What `Certificate.steps_to` costs for the random networks that attack it.

Usage: ``python examples/benchmarks/forgetting_time.py [--networks 200] [--seed 0]`` draws networks
of 1 to 200 units as ``tests/helpers/certificate_fuzz.py`` does, a third of them under a periodic
drive, certifies them by methods drawn at random, and prints for each size processor seconds until
the steps to 1e-1, 1e-3, 1e-6 and 1e-9 are proved: median, largest, and of which method the largest
is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from helpers.certificate_fuzz import BOUNDED, DISTANCES, certified, random_network

from reservoir.stability import Certificate, certify_cycle

SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200)
CYCLES = ("auto", "max_norm", "series", "thorough", "lyapunov")  # methods of periodic drives


def certificates(n_units: int, n_networks: int, seed: int) -> Iterator[Certificate]:
    """Yield the certificates that hold."""
    rng = np.random.default_rng([seed, n_units])
    for k in range(n_networks):
        reservoir, G = random_network(rng, n_units, BOUNDED)
        if k % 3:
            found = certified(rng, reservoir, G)
        else:
            reservoir = replace(reservoir, bias=reservoir.bias * rng.uniform(0.1, 1))
            inputs = rng.choice([-1.0, 1.0, 0.3], (int(rng.integers(1, 6)), n_units))
            found = certify_cycle(reservoir, inputs, method=CYCLES[rng.integers(len(CYCLES))])
        if found:
            yield found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=200, help="drawn of each size")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{options.networks} networks of each size, seed {options.seed}; processor seconds")
    print(f"{'units':>6} {'certified':>10} {'none proved':>12} {'median':>8} {'largest':>8}")
    for n_units in SIZES:
        seconds, names, n_refused = [], [], 0
        for found in certificates(n_units, options.networks, options.seed):
            distances = DISTANCES[(found.resolution or 0.0) <= DISTANCES]
            begin = time.process_time()
            try:
                found.steps_to(distances)
            except ValueError:  # no number is proved: the time counts all the same
                n_refused += 1
            seconds.append(time.process_time() - begin)
            names.append(found.method)
        if seconds:
            median, worst = np.median(seconds), int(np.argmax(seconds))
            print(
                f"{n_units:6} {len(seconds):10} {n_refused:12} {median:8.4f} "
                f"{seconds[worst]:8.4f} {names[worst]}",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
