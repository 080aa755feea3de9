"""What certificates cost, how tight they are, and what they buy.

Usage: ``python examples/benchmarks/certificates.py [time] [tight] [memory] [degrees] [radii]
[conditions] [rotations] [cycles] [forgetting] [floor]`` prints tables: seconds per certificate; the
smallest certified bias of each method against the simplest one, and against the smallest at which
sampling finds a single response; memory capacity with no bias, with parts of the certified one and
with designed ones; steps until the start is forgotten, by the margin of the design; the largest
spectral radius that is certified without a bias, that which each condition on the weights proves,
and that at which slopes chosen by an adversary break it; the same under one periodic input;
orthogonal weights and rings, and seconds; how far apart rounding keeps random starts of a
certified delay line, and what the certificate says of it. Seeds are printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eig
from threadpoolctl import threadpool_limits

from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run, run_many
from reservoir.metrics import memory_capacity
from reservoir.stability import (
    certify,
    certify_cycle,
    drive_range,
    echo_state_conditions,
    stable_bias,
)

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
    """Print processor seconds for one certificate and for a design."""
    print("\nprocessor seconds, medians of 5; 10 connections, W at 1.2 / sqrt(10) times N(0, 1)")
    print(f"{'units':>6} {'maximum norm':>13} {'auto, fails':>12} {'stable_bias':>12}")
    for n in (100, 300, 1000, 3000, 10_000):
        res = build_reservoir(n, 1, spectral_radius=None, input_scaling=0.5, random_state=0)
        res = replace(res, W=res.W * (1.2 / np.sqrt(10)))
        low, high = drive_range(res, *RANGE)
        made = on_ray(res, 0)
        simple, failing = [], []
        for _ in range(5):
            start = time.process_time()
            certify(made(2.0), low, high, method="max_norm")
            simple.append(time.process_time() - start)
            start = time.process_time()
            certify(made(0.3), low, high)
            failing.append(time.process_time() - start)
        start = time.process_time()
        stable_bias(res.W, low, high, random_state=0)
        design = time.process_time() - start
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
    for name in ("two_norm", "series", "lyapunov", "thorough"):
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
            smallest = stable_bias(
                res.W, low, high, objective="magnitude", margin=0.0, random_state=seed
            )
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


def cycles(n_seeds: int = 3) -> None:
    """Print the largest radius certified under one period of ten random inputs, without bias."""
    print(f"\nlargest radius, 50 units, 10 connections, one period of 10; mean of {n_seeds} seeds")
    methods = ("max_norm", "series", "lyapunov", "thorough")
    print(f"{'drive':>6}{'leak':>6}" + "".join(f"{name:>10}" for name in methods))
    for scale in (0.2, 1.0, 5.0):
        for leak in (1.0, 0.3):
            table = []
            for seed in range(n_seeds):
                res = build_reservoir(
                    50,
                    1,
                    spectral_radius=1.0,
                    input_scaling=scale,
                    leak_rate=leak,
                    random_state=seed,
                )
                period = np.random.default_rng(seed).uniform(-1, 1, (10, 1))
                table.append([_largest_cycle_radius(res, period, method) for method in methods])
            row = np.mean(table, axis=0)
            print(f"{scale:6.1f}{leak:6.1f}" + "".join(f"{value:10.2f}" for value in row))


def _largest_cycle_radius(res: Reservoir, period: np.ndarray, method: str) -> float:
    """Return the largest factor of W, of radius 1, for which a cycle is certified."""

    def holds(inverse: float) -> bool:
        return certify_cycle(replace(res, W=res.W / inverse), period, method=method).holds

    return 1 / least(holds, 0.25, 5.0)


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


def greatest(holds: Callable[[float], bool], low: float, high: float, steps: int = 7) -> float:
    """Return the greatest number that holds, from below, to 1 / 128 of the range; NaN if none."""
    if not holds(low):
        return np.nan
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def unbiased(n: int, degree: int, seed: int, drive: float, **options: object) -> Reservoir:
    """Return a network of spectral radius 1 without bias."""
    settings = {"spectral_radius": 1.0, "input_scaling": drive, "bias_scaling": 0.0}
    return build_reservoir(n, 1, in_degree=degree, random_state=seed, **settings, **options)


def radii(n_seeds: int = 10) -> None:
    """Print the largest spectral radius that is certified without a bias."""
    print(
        "\nlargest certified spectral radius without bias, 100 units, inputs within 1 times drive"
    )
    print(f"mean (least) of seeds 0 to {n_seeds - 1}; below the true one by 1/160 at most")
    columns = (("two_norm", 0.2), ("lyapunov", 0.2), ("auto", 0.2), ("thorough", 0.2))
    columns = (*columns, ("thorough", 0.05))
    names = [f"{method} {drive}" for method, drive in columns]
    print(f"{'connections':>12}" + "".join(f"{name:>16}" for name in names))
    for degree in (2, 10, 100):
        table = [
            [_largest_radius(degree, seed, drive, method) for method, drive in columns]
            for seed in range(n_seeds)
        ]
        pairs = zip(np.mean(table, axis=0), np.min(table, axis=0), strict=True)
        print(
            f"{degree:12d}" + "".join(f"{f'{a:.3f} ({b:.3f})':>16}" for a, b in pairs), flush=True
        )


def _largest_radius(degree: int, seed: int, drive: float, method: str) -> float:
    res = unbiased(100, degree, seed, drive)
    low, high = drive_range(res, *RANGE)

    def holds(radius: float) -> bool:
        made = replace(res, W=res.W * radius)
        return certify(made, low, high, method=method, input_range=RANGE).holds

    return greatest(holds, 0.3, 1.1)


def rotations() -> None:
    """Print the seconds of certificates of orthogonal weights, rings and random networks."""
    print(
        "\nprocessor seconds of certify, method auto, inputs within 1 times .2; medians of 3 runs"
    )
    print(f"{'units':>6}{'orthogonal .99':>18}{'ring .99':>18}{'random .65':>18}{'random .9':>18}")
    for n in (100, 300, 1000):
        kinds = [({"topology": "orthogonal"}, 0.99), ({"topology": "ring"}, 0.99)]
        cells = []
        for options, radius in [*kinds, ({}, 0.65), ({}, 0.9)]:
            res = unbiased(n, 10, 0, 0.2, **options)
            res = replace(res, W=res.W * radius)
            low, high = drive_range(res, *RANGE)
            taken = []
            for _ in range(3):
                start = time.process_time()
                found = certify(res, low, high)
                taken.append(time.process_time() - start)
            cells.append(f"{np.median(taken):.3f} {found.method if found.holds else 'fails'}")
        print(f"{n:6d}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def conditions(n_seeds: int = 5) -> None:
    """Print the spectral radius up to which each condition on the weights proves the property."""
    print("\nlargest spectral radius that a condition on the weights alone proves, 100 units")
    print(f"mean of seeds 0 to {n_seeds - 1}; broken: some slopes in [0, 1] make states part")
    names = ("abs_radius", "spectral_norm", "diagonal_schur", "numerical_radius", "broken")
    print(f"{'connections':>12}" + "".join(f"{name:>18}" for name in names))
    for degree in (2, 5, 10, 20, 100):
        table = []
        for seed in range(n_seeds):
            W = unbiased(100, degree, seed, 0.2).W
            found = echo_state_conditions(W)
            proved = [1 / getattr(found, name) for name in names[:-1]]
            table.append([*proved, 1 / growth_under_chosen_slopes(W, seed)])
        row = np.mean(table, axis=0)
        print(f"{degree:12d}" + "".join(f"{value:18.3f}" for value in row), flush=True)


def growth_under_chosen_slopes(W: object, seed: int, n_rounds: int = 40) -> float:
    """Return the growth rate per step under the worst periodic slopes in [0, 1] that are found.

    Slopes of one, two and four steps ascend the modulus of the leading eigenvalue of the product of
    the matrices D W: in turn the slopes of a step go to the end that the derivative by them says.
    """
    dense = np.asarray(W.toarray() if hasattr(W, "toarray") else W)
    rng = np.random.default_rng(seed)
    worst = 0.0
    for period in (1, 1, 2, 2, 4, 4):
        slopes = (rng.random((period, len(dense))) < 0.8).astype(float)
        for k in range(n_rounds):
            product = np.eye(len(dense))
            for d in slopes:
                product = d[:, None] * (dense @ product)
            values, lefts, rights = eig(product, left=True, right=True)
            lead = int(np.argmax(np.abs(values)))
            worst = max(worst, float(np.abs(values[lead]) ** (1 / period)))
            turned = _steeper(dense, slopes, values[lead], lefts[:, lead].conj(), rights[:, lead])
            # at first half of them, drawn at random: they depend on each other
            which = rng.random(slopes.shape) < (0.5 if k < n_rounds // 2 else 1.0)
            slopes = np.where(which, turned, slopes)
    return worst


def _steeper(
    W: np.ndarray, slopes: np.ndarray, value: complex, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Return the slopes, some of them moved to where the eigenvalue's modulus grows."""
    scale = value * (left @ right)
    before = [right]
    for d in slopes:
        before.append(d * (W @ before[-1]))
    moved = slopes.astype(float)
    for k in reversed(range(len(slopes))):
        gradient = (left * (W @ before[k]) / scale).real
        moved[k] = np.where(gradient > 0, 1.0, 0.0)
        left = W.T @ (slopes[k] * left)
    return moved


def floor(n_starts: int = 24, n_steps: int = 2000, n_seeds: int = 3) -> None:
    """Print what rounding leaves of the differences in a delay line, and `resolution`."""
    print(f"\n{n_starts} starts, {n_steps} steps, the largest difference over the second half")
    print("units           " + "".join(f"{n:10d}" for n in (4, 8, 12, 16)))
    for dtype in (np.float64, np.float32):
        found, apart = [], []
        for n in (4, 8, 12, 16):
            bias = np.zeros(n)
            bias[:2] = np.arctanh(0.3), -3.0
            line = Reservoir(10.0 * np.eye(n, k=-1), np.ones((n, 1)), bias, leak_rate=0.3)
            line = line.astype(dtype)
            found.append(certify(line, -1e-20, 1e-20).resolution)
            apart.append(max(_lasting(line, n_starts, n_steps, seed) for seed in range(n_seeds)))
        name = np.dtype(dtype).name
        print(f"{name}, apart  " + "".join(f"{value:10.2g}" for value in apart))
        print(f"{name}, floor  " + "".join(f"{value:10.2g}" for value in found), flush=True)


def _lasting(res: Reservoir, n_starts: int, n_steps: int, seed: int) -> float:
    """Return by how much random starts differ in any unit over the second half of a run."""
    rng = np.random.default_rng(seed)
    X = 1e-20 * rng.choice([-1.0, 1.0], (n_steps, 1))
    starts = rng.uniform(-1, 1, (n_starts, res.n_units))
    runs = run_many(res, [X] * n_starts, initial_states=starts, engine="numpy")
    return float(np.ptp([states[n_steps // 2 :] for states in runs], axis=0).max())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = {"memory": memory, "degrees": degrees, "radii": radii, "rotations": rotations}
    known |= {"time": times, "conditions": conditions, "cycles": cycles}
    known |= {"forgetting": forgetting, "floor": floor}
    parser.add_argument("parts", nargs="*", default=[*known, "tight"])
    parser.add_argument("--networks", type=int, default=200)
    options = parser.parse_args()
    with threadpool_limits(1):
        if "tight" in options.parts:
            tightness(options.networks)
        for name, part in known.items():
            if name in options.parts:
                part()


if __name__ == "__main__":
    main()
