"""The job `steps`: a step by the layout of W, and fits, here, in C, and in an earlier revision.

Every round is a process of its own, so that compiled code lies elsewhere in memory each time; with
an earlier revision the two take turns. What runs in these processes has to run there, too.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _fits import esn_of
from _memory import in_child
from _reference import SCALAR, CNetwork, build
from _timing import Report

import reservoir
from reservoir.dynamics import Reservoir, iter_many, iter_states, run, run_many

Array = np.ndarray
HERE = Path(reservoir.__file__).resolve().parent.parent
RADIUS, LEAK_RATE, ALPHA = 0.9, 0.5, 1e-6
LAYOUTS = ("random 1", "random 10", "diagonals 10", "ring")
SIZES, BATCH_SIZES = (104, 304, 1000, 10_000), (100, 300, 1000)
MAX_STATES, MAX_STEPS = 3_000_000, 20_000  # as in `_states`
FIT_ROWS = {100: 131_072, 300: 32_768, 1000: 16_384}
LANES = {"float64": 32, "float32": 64}  # sequences side by side
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
CHECKED_STEPS, TIMINGS = 50, 5
OURS, C = "ours", "C"


# --- what a process measures ----------------------------------------------------------------------


def measure(source: str, quick: bool) -> list[tuple[str, str, float]]:
    """Return (case, who, microseconds per step and sequence), for the package in `source`."""
    if Path(reservoir.__file__).resolve().parent.parent != Path(source):
        raise RuntimeError(f"the package of {reservoir.__file__} was found first")
    libraries = build([SCALAR]).libraries
    found = []
    for dtype in ("float64", "float32"):
        library = libraries.get((SCALAR, dtype))
        for case, jobs, n_steps in cases(dtype, library, quick):
            for who, seconds in interleave(jobs).items():
                found.append((f"{case}, {dtype}", who, seconds / n_steps * 1e6))
    return found


def interleave(jobs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median of processor seconds of each job, taken in turns after a first call."""
    seconds: dict[str, list[float]] = {who: [] for who in jobs}
    for _ in range(1 + TIMINGS):
        for who, job in jobs.items():
            start = time.process_time()
            result = job()
            seconds[who].append(time.process_time() - start)
            del result  # freed outside the clock
    return {who: float(np.median(taken[1:])) for who, taken in seconds.items()}


def cases(
    dtype: str, library: Any, quick: bool
) -> Iterator[tuple[str, dict[str, Callable[[], Any]], int]]:
    """Yield title, jobs, and how many steps each takes, over all sequences."""
    for layout in LAYOUTS:
        for n_units in SIZES[:2] if quick else SIZES:
            network = network_of(layout, n_units, dtype)
            n_steps = 200 if quick else min(MAX_STEPS, MAX_STATES // n_units)
            c = None if library is None else CNetwork(library, network, layout in LAYOUTS[2:])
            yield f"{layout}, N = {n_units}", single(network, n_steps, c), n_steps
    for n_units in BATCH_SIZES[:1] if quick else BATCH_SIZES:
        network, n_sequences = network_of("random 10", n_units, dtype), LANES[dtype]
        n_steps = 100 if quick else MAX_STATES // (n_units * n_sequences)
        c = None if library is None else CNetwork(library, network)
        jobs = many(network, inputs(n_steps, dtype, n_sequences), c)
        yield f"{n_sequences} sequences, N = {n_units}", jobs, n_steps * n_sequences
        n_steps = (3200 if quick else FIT_ROWS[n_units]) // n_sequences
        jobs = fits(network, inputs(n_steps, dtype, n_sequences))
        yield f"fit of {n_sequences} sequences, N = {n_units}", jobs, n_steps * n_sequences


def network_of(layout: str, n_units: int, dtype: str) -> Reservoir:
    """Return a network of radius about .9 whose connections lie as `layout` says."""
    rng, rows = np.random.default_rng(5), np.arange(n_units)[:, None]
    if layout == "random 1":
        columns = rng.permutation(n_units)[:, None]
    elif layout == "random 10":
        columns = np.array([rng.choice(n_units, 10, replace=False) for _ in range(n_units)])
    else:
        ring = layout == "ring"
        offsets = np.array([-1]) if ring else 1 + rng.permutation(n_units - 1)[:10]
        columns = (rows + offsets) % n_units
    in_degree = columns.shape[1]
    weights = rng.normal(0, RADIUS / np.sqrt(in_degree), columns.size)
    starts = np.arange(n_units + 1) * in_degree
    W = sp.csr_array((weights, np.sort(columns, axis=1).ravel(), starts), (n_units, n_units))
    W_in, bias = rng.uniform(-0.5, 0.5, (n_units, 1)), rng.uniform(-0.1, 0.1, n_units)
    return Reservoir(W, W_in, bias, leak_rate=LEAK_RATE).astype(dtype)


def inputs(n_steps: int, dtype: str, n_sequences: int) -> Array:
    shape = (n_sequences, n_steps, 1)
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(dtype)


def check(network: Reservoir, states: Array, X: Array) -> None:
    """Compare the first states of a sequence with NumPy's."""
    expected = run(network, X[:CHECKED_STEPS], engine="numpy")
    error = float(np.abs(states[:CHECKED_STEPS] - expected).max())
    if error > TOLERANCE[expected.dtype.name]:
        raise RuntimeError(f"states are off by {error:.0e}")


def single(network: Reservoir, n_steps: int, c: CNetwork | None) -> dict[str, Callable[[], Any]]:
    """Return state runs of one sequence, checked; into memory that is there already."""
    X = inputs(n_steps, network.dtype.name, 1)[0]
    states = np.zeros((n_steps, network.n_units), network.dtype)
    jobs: dict[str, Callable[[], Any]] = {
        OURS: lambda: list(iter_states(network, X, out=states, engine="numba"))
    }
    if c is not None:
        jobs[C] = lambda: c.run(X, out=states)
    for job in jobs.values():
        states[:] = np.nan
        job()
        check(network, states, X)
    return jobs


def many(network: Reservoir, X: Array, c: CNetwork | None) -> dict[str, Callable[[], Any]]:
    """Return state runs of many sequences at once, checked; into memory that is there already.

    Here it is that of a block, which `iter_many` uses again and again, as a fit does.
    """
    check(network, run_many(network, list(X), engine="numba")[-1], X[-1])

    def blocks() -> None:
        for _ in iter_many(network, list(X), engine="numba"):
            pass

    jobs: dict[str, Callable[[], Any]] = {OURS: blocks}
    if c is not None:
        states = np.zeros((*X.shape[:2], network.n_units), network.dtype)
        jobs[C] = lambda: c.run_batch(X, out=states)
        check(network, jobs[C]()[-1], X[-1])
    return jobs


def fits(network: Reservoir, X: Array) -> dict[str, Callable[[], Any]]:
    """Return the fit of many sequences, the input of three steps ago to be told."""
    esn = esn_of(network, alpha=ALPHA, washout=20, dtype=network.dtype.name)
    y = np.roll(X, 3, axis=1)
    return {OURS: lambda: esn.fit(list(X), list(y))}


# --- rounds and the table -------------------------------------------------------------------------


def steps(report: Report, n_rounds: int, quick: bool, before: str | None = None) -> None:
    """Measure every case in `n_rounds` processes, the package of revision `before` in turns."""
    figures: dict[str, dict[str, list[float]]] = {}
    with contextlib.ExitStack() as stack:
        versions = {"now": HERE}
        if before is not None:
            versions = {"before": stack.enter_context(package_of(before)), **versions}
        for _ in range(n_rounds):
            for version, source in versions.items():
                place = {"PYTHONPATH": str(source), "PYTHONSAFEPATH": "1"}
                for case, who, taken in in_child("_steps", "measure", str(source), quick, **place):
                    column = version if who == OURS else who
                    figures.setdefault(case, {}).setdefault(column, []).append(taken)
    if before is not None:
        print(f"before: {before}")
    table(report, figures)


@contextlib.contextmanager
def package_of(revision: str) -> Iterator[Path]:
    """Unpack the package as it was in a revision, for as long as it is wanted."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder).resolve()
        command = ["git", "-C", str(HERE), "archive", "--output", str(target / "package.tar")]
        subprocess.run([*command, revision, "reservoir"], check=True)
        subprocess.run(["tar", "-xf", "package.tar"], cwd=target, check=True)
        yield target


def table(report: Report, figures: dict[str, dict[str, list[float]]]) -> None:
    """Print medians over the processes, their quotients, and the slowest process over the median.

    `times` is how many times as fast it is now, `to C` how many times as long as C it takes.
    """
    heads = ("before", "now", "times", "C", "to C", "slowest")
    print(f"\n{'us a step and sequence':42s}" + "".join(f"{head:>9s}" for head in heads))
    for case, found in figures.items():
        medians = {column: float(np.median(taken)) for column, taken in found.items()}
        now, earlier, c = (medians.get(column) for column in ("now", "before", C))
        assert now is not None
        values = {
            "before": earlier,
            "now": now,
            "times": earlier and earlier / now,
            C: c,
            "to C": c and now / c,
            "slowest": max(found["now"]) / now,
        }
        cells = "".join(" " * 9 if values[h] is None else f"{values[h]:9.3g}" for h in heads)
        print(f"{case:42s}{cells}".rstrip(), flush=True)
        report.rows.append({"job": report.job, "case": case, **values})
