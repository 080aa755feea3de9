"""What networks with a proof remember and solve, beside the usual random ones.

Usage: ``python examples/benchmarks/certified_tasks.py [memory] [tasks] [free]`` prints three tables
(all by default); each figure is the median over the seeds 0 to 9, with the least and the largest.
A seed draws the data and the network. "proved" says of how many networks `certify` proves, by
``method="auto"``, that they forget their start under every input within 1.

memory: capacity over 200 lags, 100 units, input U(-1, 1) times `input_scaling` (the drive), no bias
but where one is designed; 200 rows of washout, 4000 to fit with penalty 1e-12, 4000 to score.
Noise: normal, independent over units and steps, of standard deviation 1e-3, either on the states
that the readout sees, or inside the activation of each unit, so that later states have it as well.

tasks: 100 units, one input within 1, readout of [x, u, 1], "20 lags" with the inputs of the last 20
steps, no noise; NRMSE on 1200 rows after 200 of washout and 3000 to fit. NARMA10 from 4u - 1,
y(t + 1); sin(pi u(t-5)) and u(t-5) u(t-8) of u ~ U(-1, 1); Mackey-Glass (tau 17, dt 1) 84 steps
ahead; Lorenz (dt 0.02) from x alone: x 25 steps (0.45 Lyapunov times) ahead, and z at the same
step. Each input of a delay line enters the first unit of a line alone.

free: Lorenz from all three coordinates, one step ahead, on its own outputs; 300 units, readout of
[x, u, 1], 200 rows of washout, 4000 to fit; valid time until the root mean square over the
coordinates of error / standard deviation exceeds 0.3, mean of 6 starts behind the fit, 400 rows
apart. What is proved is of the driven network, not of the loop.

Settings are searched for each kind and task by the same random draws: 120 for `tasks`, each with
the penalties 1e-10, 1e-8, ... 1e-2; 40 for `free`, each with 1e-10, 1e-8, 1e-6. The best has the
least geometric mean of the NRMSE (the longest mean valid time) over the seeds 100 and 101. A draw
has:

- the spectral radius, uniform in the range of the kind: 0.3 to 1.3 for random networks as they are
  drawn; 0.3 to 0.99 for orthogonal ones and rings, and for the weight of delay lines; 0.3 to 0.8
  for random ones of which a proof is asked as they are drawn (settings without one at both seeds
  are left out); 0.9 to 1.5 for random ones with a designed bias;
- input scaling, log-uniform in 0.03 to 2;
- leak rate, 1 in half of the draws, else log-uniform in 0.1 to 1 (1 in a delay line);
- bias, uniform within a scale that is log-uniform in 0.01 to 1 (not where it is designed);
- connections per unit, log-uniform in 2 to 50 (random networks).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from _certified_networks import (
    ALPHAS,
    FREE_ALPHAS,
    FREE_UNITS,
    KINDS,
    TASKS,
    build,
    capacity,
    draw_settings,
    is_certified,
    memory_input,
    noisy_states,
    parameters,
    task_errors,
    valid_times,
)
from _timing import machine
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from reservoir.dynamics import Reservoir
from reservoir.stability import drive_range, largest_certified

SEARCH_SEEDS = (100, 101)
DRIVES = (0.05, 0.2, 0.5, 1.0)
Params = dict[str, Any]
Score = Callable[..., dict[str, list[float]]]

# --- memory ---------------------------------------------------------------------------------------

STABLE = {"bias": "stable", "drive_bounds": lambda res: drive_range(res, -1, 1)}
MEMORIES: dict[str, Params] = {
    "orthogonal, .99": {"topology": "orthogonal", "spectral_radius": 0.99},
    "ring, .99": {"topology": "ring", "spectral_radius": 0.99},
    "random, .9": {"spectral_radius": 0.9},
    "random, 1.0": {"spectral_radius": 1.0},
    "random, largest proved": {"spectral_radius": None},
    'random, .9, bias="stable"': {"spectral_radius": 0.9, **STABLE},
    'random, 1.2, bias="stable"': {"spectral_radius": 1.2, **STABLE},
    "delay line, .99": {"topology": "delay_line", "weight": 0.99, "spectral_radius": 0.0},
}
NOISES = {
    "noise seen, 1e-3": {"seen": 1e-3, "inner": 0.0},
    "noise inside, 1e-3": {"seen": 0.0, "inner": 1e-3},
}


@lru_cache(maxsize=512)
def memory_network(name: str, drive: float, seed: int) -> Reservoir:
    """Return a network of 100 units, without bias but where it is designed."""
    params = {"input_scaling": drive, "bias_scaling": 0.0, **MEMORIES[name]}
    if params["spectral_radius"] is None:
        drawn = build({**params, "spectral_radius": 0.9}, 100, 1, seed)
        largest = largest_certified(drawn, *drive_range(drawn, -1, 1)).value
        params["spectral_radius"] = largest * (1 - 1e-5)  # a radius is accurate to 1e-6
    return build(params, 100, 1, seed)


def memory_of(name: str, drive: float, seed: int, noise: str = "") -> tuple[float, bool]:
    """Return the capacity, and whether the network is certified."""
    network, u = memory_network(name, drive, seed), memory_input(seed)
    levels = NOISES.get(noise, {"seen": 0.0, "inner": 0.0})
    H = noisy_states(network, u[:, None], seed, **levels)
    return capacity(H, u), is_certified(network)


def memory(options: argparse.Namespace) -> None:
    """Print the table of capacities: one row per network and noise, one column per drive."""
    print("\nmemory capacity, 100 units, 200 lags: median (least to largest), proved")
    print(f"{'':46s}" + "".join(f"{f'drive {drive}':>26s}" for drive in DRIVES))
    rows = [(name, noise, DRIVES) for noise in ("", *NOISES) for name in options.networks]
    rows = [(name, noise, drives if not noise else DRIVES[:1]) for name, noise, drives in rows]
    for name, noise, drives in rows:
        cells = []
        for drive in drives:
            jobs = (delayed(memory_of)(name, drive, seed, noise) for seed in range(options.seeds))
            found = Parallel(options.jobs)(jobs)
            proved = sum(certified for _, certified in found)
            cells.append(f"{spread([total for total, _ in found], '.1f')}, {proved}")
        head = f"{name}, {noise}" if noise else name
        print(f"{head:46s}" + "".join(f"{cell:>26s}" for cell in cells), flush=True)


def spread(values: Sequence[float], form: str) -> str:
    """Return the median, and the least and the largest."""
    low, middle, high = np.min(values), np.median(values), np.max(values)
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


# --- tasks and free run ---------------------------------------------------------------------------


def search_scores(
    kind: str, setting: Mapping[str, float], n_units: int, n_features: int, score: Score
) -> dict[str, np.ndarray] | None:
    """Return task -> the mean over the search seeds of what is to be small, for each penalty.

    None where a proof is asked for and does not hold.
    """
    params, found = parameters(KINDS[kind], setting), []
    for seed in SEARCH_SEEDS:
        network = build(params, n_units, n_features, seed)
        if KINDS[kind].proved and not is_certified(network):
            return None
        found.append(score(network, seed))
    return {task: np.mean([one[task] for one in found], axis=0) for task in found[0]}


def test_score(
    params: Params, n_units: int, n_features: int, seed: int, score: Score
) -> tuple[float, bool]:
    """Return the score of one test seed, and whether its network is certified."""
    network = build(params, n_units, n_features, seed)
    [values] = score(network, seed).values()
    return values[0], is_certified(network)


def best_settings(
    kind: str,
    settings: Sequence[Mapping[str, float]],
    alphas: Sequence[float],
    score: Score,
    size: tuple[int, int],
    n_jobs: int,
) -> dict[str, tuple[Params, float]]:
    """Return task -> parameters and penalty that are best on the search seeds."""
    jobs = (delayed(search_scores)(kind, setting, *size, score) for setting in settings)
    scores = Parallel(n_jobs)(jobs)
    kept = [k for k, found in enumerate(scores) if found is not None]
    best = {}
    for task in scores[kept[0]] if kept else ():
        table = np.array([scores[k][task] for k in kept])
        row, column = np.unravel_index(np.nanargmin(table), table.shape)
        best[task] = (parameters(KINDS[kind], settings[kept[row]]), alphas[column])
    return best


def compare(
    title: str,
    rates: Mapping[str, Callable[[float, str], Score]],
    search: Callable[[str], dict[str, tuple[Params, float]]],
    size: tuple[int, int],
    options: argparse.Namespace,
) -> None:
    """Print what each kind's best settings reach on the test seeds, and the settings.

    ``rates[task](alpha, kind)`` is the score of a task that is printed.
    """
    print(f"\n{title}: median (least to largest), proved")
    chosen: dict[str, dict[str, tuple[Params, float]]] = {}
    values: dict[tuple[str, str], np.ndarray] = {}
    print(f"{'':26s}" + "".join(f"{task:>34s}" for task in rates))
    for kind in options.kinds:
        start, cells = time.process_time(), []
        chosen[kind] = search(kind)
        for task, (params, alpha) in chosen[kind].items():
            rate = rates[task](alpha, kind)
            jobs = (delayed(test_score)(params, *size, seed, rate) for seed in range(options.seeds))
            found, proofs = zip(*Parallel(options.jobs)(jobs), strict=True)
            values[kind, task] = np.array(found)
            cells.append(f"{spread(found, '.3g')}, {sum(proofs)}")
        print(f"{kind:26s}" + "".join(f"{cell:>34s}" for cell in cells), end="  ")
        print(f"[{time.process_time() - start:.0f} s]", flush=True)
    print("seeds in which a kind is below the first one:")
    for kind in chosen:
        below = [np.sum(values[kind, task] < values[options.kinds[0], task]) for task in rates]
        print(f"{kind:26s}" + "".join(f"{count:34d}" for count in below))
    print("settings:")
    for kind, best in chosen.items():
        for task, (params, alpha) in best.items():
            told = {name: _short(value) for name, value in params.items() if name != "drive_bounds"}
            print(f"  {kind}; {task}: {told | {'alpha': alpha}}")


def _short(value: Any) -> Any:
    return float(f"{value:.3g}") if isinstance(value, float) else value


def six_tasks(network: Reservoir, seed: int, *, n_lags: int = 1) -> dict[str, list[float]]:
    """Return task -> the logarithm of the NRMSE under each penalty."""
    found = task_errors(network, seed, n_lags=n_lags)
    return {task: list(np.log(errors)) for task, errors in found.items()}


def one_task(task: str, alpha: float, n_lags: int = 1) -> Score:
    """Return what rates one task under one penalty."""
    [source] = [name for name, asked in TASKS.items() if task in asked]

    def score(network: Reservoir, seed: int) -> dict[str, list[float]]:
        return {task: task_errors(network, seed, [alpha], [source], n_lags)[task]}

    return score


def tasks(options: argparse.Namespace) -> None:
    """Print the table of the six tasks."""
    names = [task for asked in TASKS.values() for task in asked]
    rates = {
        task: lambda alpha, kind, task=task: one_task(task, alpha, KINDS[kind].n_lags)
        for task in names
    }
    settings = draw_settings(options.settings)

    def search(kind: str) -> dict[str, tuple[Params, float]]:
        score = partial(six_tasks, n_lags=KINDS[kind].n_lags)
        return best_settings(kind, settings, ALPHAS, score, (100, 1), options.jobs)

    compare("NRMSE, 100 units", rates, search, (100, 1), options)


FREE = "Lorenz, free run"


def shortness(network: Reservoir, seed: int) -> dict[str, list[float]]:
    """Return minus the valid times: longer is better."""
    return {FREE: [-value for value in valid_times(network, seed)]}


def free(options: argparse.Namespace) -> None:
    """Print the table of the free run."""

    def rate(alpha: float, kind: str) -> Score:
        return lambda network, seed: {FREE: valid_times(network, seed, [alpha])}

    def search(kind: str) -> dict[str, tuple[Params, float]]:
        return best_settings(kind, settings, FREE_ALPHAS, shortness, size, options.jobs)

    def runs(kind: str) -> bool:
        return KINDS[kind].topology != "delay_line" and KINDS[kind].n_lags == 1

    options = argparse.Namespace(**{**vars(options), "kinds": [*filter(runs, options.kinds)]})
    size, settings = (FREE_UNITS, 3), draw_settings(max(1, options.settings // 3))
    title = f"valid time / Lyapunov time, {FREE_UNITS} units"
    compare(title, {FREE: rate}, search, size, options)


PARTS = {"memory": memory, "tasks": tasks, "free": free}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="test seeds")
    parser.add_argument("--settings", type=int, default=120, metavar="N", help="drawn per kind")
    parser.add_argument(
        "--kinds",
        nargs="+",
        default=list(KINDS),
        choices=KINDS,
        metavar="KIND",
        help=f"of {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--networks",
        nargs="+",
        default=list(MEMORIES),
        choices=MEMORIES,
        metavar="NETWORK",
        help=f"for memory, of {', '.join(MEMORIES)}",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)}")
    print(machine())
    with threadpool_limits(1):
        for part in options.parts:
            PARTS[part](options)


if __name__ == "__main__":
    main()
