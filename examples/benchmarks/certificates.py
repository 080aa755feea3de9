"""What certificates cost, how tight they are, and what they buy.

Usage: ``python examples/benchmarks/certificates.py [time] [tight] [memory] [degrees]
[forgetting]``
prints tables: seconds per certificate; the smallest certified bias of each method against the
simplest one, and against the smallest at which sampling finds a single response; memory capacity
with no bias, with parts of the certified one and with designed ones; steps until the start is
forgotten, by the margin of the design. Seeds are printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run, run_many
from reservoir.metrics import memory_capacity
from reservoir.stability import certify, certify_cycle, drive_range, stable_bias

RANGE = (-1.0, 1.0)  # of the one input


def on_ray(res: Reservoir, seed: int) -> Callable[[float], Reservoir]:
    """Return t -> the reservoir with bias t times random signs times the rows' sums of |W|."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], res.n_units)
    ray = signs * np.asarray(abs(res.W).sum(axis=1)).ravel()
    return lambda t: replace(res, bias=t * ray)


def least(holds: Callable[[float], bool], low: float, high: float, tol: float = 0.01) -> float:
    """Return the least multiple that holds, by bisection; NaN if the largest does not."""
    if not holds(high):
        return np.nan
    while high / low > 1 + tol:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(high)


def times() -> None:
    """Print seconds for one certificate and for a design."""
    print("\nseconds, medians of 5; 10 connections per row, W at 1.2 / sqrt(10) times N(0, 1)")
    print(f"{'units':>6} {'maximum norm':>13} {'auto, fails':>12} {'stable_bias':>12}")
    for n in (100, 300, 1000, 3000, 10_000):
        res = build_reservoir(n, 1, spectral_radius=None, input_scaling=0.5, random_state=0)
        res = replace(res, W=res.W * (1.2 / np.sqrt(10)))
        low, high = drive_range(res, *RANGE)
        made = on_ray(res, 0)
        simple, failing = [], []
        for _ in range(5):
            start = time.perf_counter()
            certify(made(2.0), low, high, method="max_norm")
            simple.append(time.perf_counter() - start)
            start = time.perf_counter()
            certify(made(0.3), low, high)
            failing.append(time.perf_counter() - start)
        start = time.perf_counter()
        stable_bias(res.W, low, high, random_state=0)
        design = time.perf_counter() - start
        print(f"{n:6d} {np.median(simple):13.4f} {np.median(failing):12.3f} {design:12.2f}")


def one_response(res: Reservoir, seed: int) -> bool:
    """Whether sampling finds one response: six drives, twelve starts each."""
    rng = np.random.default_rng(seed)
    leak = float(np.min(res.leak_rate))
    n_steps = int(400 / leak)
    u = [
        np.ones(n_steps),
        -np.ones(n_steps),
        np.zeros(n_steps),
        rng.uniform(-1, 1, n_steps),
        rng.choice([-1.0, 1.0], n_steps),
        np.resize(rng.uniform(-1, 1, 7), n_steps),
    ]
    starts = rng.choice([-1.0, 1.0], (12, res.n_units))
    for drive in u:
        ends = run_many(res, [drive[:, None]] * 12, initial_states=starts)
        if np.ptp([states[-1] for states in ends], axis=0).max() > 1e-3:
            return False
    return True


def tightness(n_networks: int) -> None:
    """Print the smallest certified bias, relative to the maximum norm's."""
    rows: dict[tuple[str, float], list[dict[str, float]]] = {}
    for seed in range(n_networks):
        rng = np.random.default_rng(seed)
        small = bool(seed % 2)
        n = int(rng.integers(2, 9)) if small else int(rng.choice([50, 100, 200]))
        leak = float(rng.choice([1.0, 0.3]))
        res = build_reservoir(
            n,
            1,
            in_degree=n if small else int(rng.integers(5, 11)),
            weights=str(rng.choice(["normal", "uniform"])),
            spectral_radius=rng.uniform(0.8, 1.5),
            input_scaling=float(rng.choice([0.2, 0.5])),
            leak_rate=leak,
            random_state=seed,
        )
        row = _tightness_of(res, seed, rng.uniform(-1, 1, (10, 1)))
        rows.setdefault(("2 to 8 units, dense" if small else "50 to 200, sparse", leak), [])
        rows[("2 to 8 units, dense" if small else "50 to 200, sparse", leak)].append(row)
    print(
        "\nsmallest certified bias / that of the maximum norm, medians; "
        f"seeds 0 to {n_networks - 1}"
    )
    names = list(next(iter(rows.values()))[0])
    print(f"{'networks':28}" + "".join(f"{name:>18}" for name in names))
    for (kind, leak), found in sorted(rows.items()):
        values = np.array([[row[name] for name in names] for row in found])
        middle = np.nanmedian(values, axis=0)
        head = f"{kind}, leak {leak} ({len(found)})"
        print(f"{head:28}" + "".join(f"{value:18.3f}" for value in middle))


def _tightness_of(res: Reservoir, seed: int, period: np.ndarray) -> dict[str, float]:
    low, high = drive_range(res, *RANGE)
    made = on_ray(res, seed)
    base = least(lambda t: certify(made(t), low, high, method="max_norm").holds, 0.005, 20.0)
    row = {}
    for name in ("two_norm", "series", "thorough"):
        row[name] = least(
            lambda t, name=name: certify(made(t), low, high, method=name, input_range=RANGE).holds,
            0.02 * base,
            1.02 * base,
        )
    for name, method in (("cycle", "max_norm"), ("cycle, thorough", "thorough")):
        row[name] = least(
            lambda t, method=method: certify_cycle(made(t), period, method=method).holds,
            0.02 * base,
            1.02 * base,
        )
    t = base  # downwards, for sampling need not be monotone
    while t > 0.01 * base and one_response(made(t * 0.9), seed):
        t *= 0.9
    row["sampled"] = t
    return {name: value / base for name, value in row.items()}


def memory(n_seeds: int = 5) -> None:
    """Print memory capacity against the bias."""
    print(
        f"\nmemory capacity, 100 units, input U(-1, 1) times 0.2; mean of seeds 0 to {n_seeds - 1}"
    )
    names = ("none", "half of least", "least certified", "random signs", "slope")
    print(f"{'radius':>7}" + "".join(f"{name:>17}" for name in names))
    u = np.random.default_rng(0).uniform(-1, 1, 9000)
    for radius in (0.9, 1.2, 1.5):
        table = []
        for seed in range(n_seeds):
            res = build_reservoir(
                100, 1, spectral_radius=radius, input_scaling=0.2, random_state=seed
            )
            low, high = drive_range(res, *RANGE)
            smallest = stable_bias(res.W, low, high, objective="magnitude", random_state=seed)
            made = on_ray(res, seed)
            factor = least(lambda t: certify(made(t), low, high).holds, 0.01, 10.0)  # noqa: B023
            biases = (
                np.zeros(100),
                0.5 * smallest,
                smallest,
                made(factor).bias,
                stable_bias(res.W, low, high, random_state=seed),
            )
            for bias in biases[2:]:
                assert certify(replace(res, bias=bias), low, high).holds
            table.append([memory_capacity(replace(res, bias=bias), X=u) for bias in biases])
        print(f"{radius:7.1f}" + "".join(f"{value:17.1f}" for value in np.mean(table, axis=0)))


def degrees(n_seeds: int = 3) -> None:
    """Print memory capacity against the number of connections per unit."""
    print(f"\nmemory capacity, 100 units, radius 1.3, input scaling 0.2; mean of {n_seeds} seeds")
    print(f"{'connections':>12}{'no bias':>12}{'slope':>12}{'mean slope':>12}")
    u = np.random.default_rng(0).uniform(-1, 1, 9000)
    for in_degree in (2, 5, 10, 20, 50, 100):
        table = []
        for seed in range(n_seeds):
            res = build_reservoir(
                100,
                1,
                in_degree=in_degree,
                spectral_radius=1.3,
                input_scaling=0.2,
                random_state=seed,
            )
            low, high = drive_range(res, *RANGE)
            bias = stable_bias(res.W, low, high, random_state=seed)
            steady = run(replace(res, bias=bias), np.zeros((500, 1)))[-1]
            table.append(
                [
                    memory_capacity(replace(res, bias=np.zeros(100)), X=u),
                    memory_capacity(replace(res, bias=bias), X=u),
                    np.mean(1 - steady**2),
                ]
            )
        row = np.mean(table, axis=0)
        print(f"{in_degree:12d}{row[0]:12.1f}{row[1]:12.1f}{row[2]:12.2f}")


def nonnegative(seed: int) -> tuple[Reservoir, tuple[np.ndarray, np.ndarray]]:
    """Return a network of nonnegative weights, 2 to 30 units, and the range of its drive."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 31))
    W = rng.random((n, n)) * (rng.random((n, n)) < min(1.0, 10 / n)) + 0.1 * np.eye(n, k=1)
    W[-1, 0] += 0.1  # a ring, so that the radius is not zero
    W *= rng.uniform(1.2, 4) / np.abs(np.linalg.eigvals(W)).max()
    drive = np.full(n, rng.choice([0.0, 0.2]))
    return Reservoir(W, drive[:, None], np.zeros(n)), (-drive, drive)


def forgetting_of(
    res: Reservoir, drives: tuple[np.ndarray, np.ndarray], margin: float, seed: int
) -> tuple[Reservoir, float, float]:
    """Return a network as designed, its proved steps to 1e-6, and those that its rate says."""
    bias = stable_bias(res.W, *drives, margin=margin, leak_rate=res.leak_rate, random_state=seed)
    made = replace(res, bias=bias)
    found = certify(made, *drives)
    return made, found.steps_to(1e-6), np.ceil(np.log(1e-6 / 2) / np.log(found.rate))


def forgetting(n_networks: int = 60, n_seeds: int = 10) -> None:
    """Print how long forgetting takes, and what the margin from the fold costs in memory."""
    margins = (0.0, 0.005, 0.01, 0.02, 0.05)
    print("\nproved steps to 1e-6 (by the rate alone), by the margin of stable_bias")
    print(f"{'':32}" + "".join(f"{margin:>14}" for margin in margins))
    zero = np.zeros(1)
    for leak in (1.0, 0.3, 0.05):
        unit = Reservoir([[3.78]], [[1.0]], zero, leak_rate=leak)
        found = [forgetting_of(unit, (zero, zero), margin, 0)[1:] for margin in margins]
        _print_steps(f"one unit, 3.78, leak {leak}", found)
    many = np.array(
        [
            [forgetting_of(*nonnegative(seed), margin, seed)[1:] for margin in margins]
            for seed in range(n_networks)
        ]
    )
    _print_steps(f"{n_networks} nonnegative, median", np.median(many, axis=0))
    ratio = many[..., 0] / many[..., 1]
    for name, values in (("median", np.median(ratio, axis=0)), ("largest", ratio.max(axis=0))):
        print(f"{f'  steps / rate, {name}':32}" + "".join(f"{value:14.1f}" for value in values))
    u = np.random.default_rng(0).uniform(-1, 1, 9000)
    for radius in (0.9, 1.2, 1.5):
        steps, capacity = [], []
        for seed in range(n_seeds):
            res = build_reservoir(
                100, 1, spectral_radius=radius, input_scaling=0.2, random_state=seed
            )
            drives = drive_range(res, *RANGE)
            made = [forgetting_of(res, drives, margin, seed) for margin in margins]
            steps.append([counts for _, *counts in made])
            capacity.append([memory_capacity(network, X=u) for network, *_ in made])
        _print_steps(f"random, radius {radius}, median", np.median(steps, axis=0))
        values = np.mean(capacity, axis=0)
        print(f"{'  memory capacity, mean':32}" + "".join(f"{value:14.2f}" for value in values))


def _print_steps(name: str, pairs: ArrayLike) -> None:
    columns = [f"{f'{steps:.0f} ({rate:.0f})':>14}" for steps, rate in np.asarray(pairs)]
    print(f"{name:32}" + "".join(columns), flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "parts", nargs="*", default=["time", "tight", "memory", "degrees", "forgetting"]
    )
    parser.add_argument("--networks", type=int, default=200)
    options = parser.parse_args()
    with threadpool_limits(1):
        if "time" in options.parts:
            times()
        if "tight" in options.parts:
            tightness(options.networks)
        if "memory" in options.parts:
            memory()
        if "degrees" in options.parts:
            degrees()
        if "forgetting" in options.parts:
            forgetting()


if __name__ == "__main__":
    main()
