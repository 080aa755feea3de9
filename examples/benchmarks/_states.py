"""The jobs that run states: sparse, float32, many sequences, dense."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from _peers import RADIUS, STATES, Another
from _reference import BATCH, KINDS, SCALAR, CNetwork, build
from _timing import OURS, OURS_DIAGONALS, OURS_NUMPY, LeftOut, Report, first_calls, interleave

from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run, run_many
from reservoir.dynamics.feature_source import Run
from reservoir.dynamics.features import DrivenReservoir

Array = np.ndarray
LEAK_RATE = 0.5
# A call yields at most so many numbers, 24 MB: the C library then reuses memory, where a larger
# array would be mapped afresh for each call and cost everybody the same time once more.
MAX_STATES = 3_000_000
MAX_STEPS = 20_000
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
CHECKED_STEPS = 200


class Size(NamedTuple):
    """Units, connections per row, steps."""

    n_units: int
    in_degree: int
    n_steps: int


def make(
    size: Size, dtype: str = "float64", topology: str = "random_sparse"
) -> tuple[Reservoir, Array]:
    """A sparse reservoir (radius about 0.9, not searched for) and an input in [-1, 1]."""
    network = build_reservoir(
        size.n_units,
        1,
        topology=topology,
        in_degree=size.in_degree,
        spectral_radius=None,
        input_scaling=0.5,
        leak_rate=LEAK_RATE,
        random_state=0,
    )
    W = network.W * (RADIUS / np.sqrt(size.in_degree * np.mean(network.W.data**2)))
    network = Reservoir(W, network.W_in, network.bias, leak_rate=LEAK_RATE).astype(dtype)
    return network, inputs(size.n_steps, dtype)


def inputs(n_steps: int, dtype: str, n_sequences: int | None = None) -> Array:
    shape = (n_steps, 1) if n_sequences is None else (n_sequences, n_steps, 1)
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(dtype)


def steps_for(n_units: int, n_connections: int, budget: float) -> int:
    """Steps that cost about `budget` connections and fit into MAX_STATES."""
    return int(max(20, min(MAX_STEPS, MAX_STATES // n_units, budget // n_connections)))


def our_states(network: Reservoir) -> dict[str, Callable[[Array], Array]]:
    return {
        name: lambda X, engine=engine: run(network, X, engine=engine)
        for name, engine in ((OURS, "numba"), (OURS_NUMPY, "numpy"))
    }


def our_diagonals(size: Size, dtype: str) -> Another:
    """States of ours where the connections lie on diagonals, as many per row."""
    network, _ = make(size, dtype, "diagonals")
    note = f"another W: {size.in_degree} diagonals"
    return Another(lambda X: run(network, X, engine="numba"), note, network)


class Field:
    """Who takes part in a job: builds the C code once, and checks everybody before the clock."""

    def __init__(self, report: Report, n_rounds: int) -> None:
        self.report, self.n_rounds = report, n_rounds
        self.c = build()
        self.shown = False
        print(self.c.message)

    def c_networks(self, network: Reservoir) -> dict[str, CNetwork]:
        return {
            kind: CNetwork(library, network)
            for (kind, dtype), library in self.c.libraries.items()
            if dtype == network.dtype.name and (sp.issparse(network.W) or kind == SCALAR)
        }

    def contenders(self, network: Reservoir, peers: Iterable[str]) -> dict[str, Any]:
        """Everybody's ``states(X)``, or the exception that says why not."""
        found: dict[str, Any] = dict(our_states(network))
        found |= {kind: c.run for kind, c in self.c_networks(network).items()}
        return found | {name: _states_of(name, network) for name in peers}

    def measure(
        self,
        title: str,
        jobs: dict[str, Any],
        truth: Callable[[], Array],
        checked: Callable[[Callable[..., Any]], Array],
        data: Any,
        **table: Any,
    ) -> None:
        """Compare ``checked(job)`` with ``truth()``, then time ``job(data)`` in turns."""
        expected = truth()
        notes: dict[str, str] = {}
        sound: dict[str, Callable[[], Any]] = {}
        first: dict[str, float] = {}
        for name, job in jobs.items():
            start = time.perf_counter()
            complaint = _complaint(job, checked, expected)
            first[name] = time.perf_counter() - start
            if complaint:
                notes[name] = f"left out, {complaint}"
                continue
            sound[name] = lambda job=job: job(data)
            if isinstance(job, Another):
                notes[name] = job.note
        first_calls(sound)
        seconds = interleave(sound, self.n_rounds)
        self.report.table(title, seconds, notes=notes, **table)
        if not self.shown:
            self.shown = True
            late = {name: first[name] for name in sound if first[name] > 0.1}
            slow = [
                f"{name} {taken:.1f} s"
                for name, taken in late.items()
                if taken > 3 * np.median(seconds[name])
            ]
            print(f"first call, not counted: {', '.join(slow) or 'nobody took long'}")


def _states_of(name: str, network: Reservoir) -> Any:
    try:
        return STATES[name](network)
    except LeftOut as reason:
        return reason


def _complaint(job: Any, checked: Callable[..., Any], expected: Array) -> str:
    """Why `job` does not take part; empty if its states are right."""
    if isinstance(job, Exception):
        return str(job)
    try:
        found = np.asarray(checked(job))
    except ImportError as reason:  # an engine that is not there
        return str(reason)
    if isinstance(job, Another):
        if job.network is None:  # its weights are not known
            return "" if np.isfinite(found).all() else "its outputs are not finite"
        expected = checked(partial(run, job.network, engine="numpy"))
    if found.shape != expected.shape:
        return f"its states have shape {found.shape}, not {expected.shape}"
    error = float(np.abs(found - expected).max())
    return "" if error < TOLERANCE[expected.dtype.name] else f"its states are off by {error:.0e}"


def sparse_case(field: Field, size: Size, peers: Iterable[str], dtype: str, series: str) -> None:
    """One size: everybody on one sequence."""
    network, X = make(size, dtype)
    # ours one after the other: both write into memory that was in use just before
    (first, job), *others = field.contenders(network, peers).items()
    jobs = {first: job, OURS_DIAGONALS: our_diagonals(size, dtype), **dict(others)}
    field.measure(
        f"N = {size.n_units}, {size.in_degree} per row, {size.n_steps} steps, {dtype}",
        jobs,
        lambda: run(network, X[:CHECKED_STEPS], engine="numpy"),
        lambda job: job(X[:CHECKED_STEPS]),
        X,
        unit="us/step",
        scale=1e6 / size.n_steps,
        series=series,
        dtype=dtype,
        **size._asdict(),
    )


def sized(n_units: int, in_degree: int, budget: float) -> Size:
    return Size(n_units, in_degree, steps_for(n_units, n_units * in_degree, budget))


def states(report: Report, n_rounds: int, quick: bool) -> Path | None:
    """Sparse state runs over N, and over T at N = 300; draws FOLDER/states.png."""
    field = Field(report, n_rounds)
    budget = 3e6 if quick else 5e7
    peers = ["reservoirpy", "PyRCN", "xesn", "echoes", "rclib", "ResDAG"]
    sizes = [(100, 10), (300, 10), (1000, 10), (3000, 10), (10_000, 10)]
    wide = [(1000, 100), (10_000, 100)]
    for n_units, in_degree in (sizes[:3] + wide[:1]) if quick else sizes + wide:
        sparse_case(field, sized(n_units, in_degree, budget), peers, "float64", "N")
    for n_steps in (100, 1000) if quick else (100, 300, 1000, 3000, 10_000, 30_000):
        sparse_case(field, Size(300, 10, n_steps), peers, "float64", "T")
    return draw(report)


def draw(report: Report) -> Path | None:
    try:
        from _plots import save, states_figure
    except ImportError as reason:
        print(f"no plot: {reason}")
        return None
    return save(states_figure(report.rows), report.folder / "states.png")


def float32(report: Report, n_rounds: int, quick: bool) -> None:
    """Sparse state runs in both precisions."""
    field = Field(report, n_rounds)
    sizes = [(300, 10), (1000, 10), (1000, 100), (10_000, 10), (10_000, 100)]
    for n_units, in_degree in sizes[:2] if quick else sizes:
        size = sized(n_units, in_degree, 3e6 if quick else 5e7)
        for dtype in ("float64", "float32"):
            sparse_case(field, size, STATES, dtype, dtype)


def dense(report: Report, n_rounds: int, quick: bool) -> None:
    """State runs with a dense W."""
    field = Field(report, n_rounds)
    for n_units in (100, 300) if quick else (100, 300, 1000):
        W = np.random.default_rng(0).normal(size=(n_units, n_units)) * 0.9 / np.sqrt(n_units)
        other, _ = make(Size(n_units, 10, 1))
        network = Reservoir(W, other.W_in, other.bias, leak_rate=LEAK_RATE)
        n_steps = steps_for(n_units, n_units**2, 3e6 if quick else 5e8)
        X = inputs(n_steps, "float64")
        field.measure(
            f"N = {n_units}, dense, {n_steps} steps",
            field.contenders(network, STATES),
            lambda network=network, X=X: run(network, X[:CHECKED_STEPS], engine="numpy"),
            lambda job, X=X: job(X[:CHECKED_STEPS]),
            X,
            unit="us/step",
            scale=1e6 / n_steps,
            n_units=n_units,
            in_degree=n_units,
            n_steps=n_steps,
        )


def watch(report: Report, n_rounds: int, quick: bool) -> None:
    """Features with and without the record from which `fit` tells that units are saturated."""
    for n_units, leak_rate in ((50, 1.0), (100, 1.0), (100, LEAK_RATE), (500, LEAK_RATE)):
        network = build_reservoir(n_units, 1, leak_rate=leak_rate, random_state=0)
        source = DrivenReservoir(network)
        X = inputs(2000 if quick else 50_000, "float64")

        def features(watched: bool, source: Any = source, X: Array = X) -> None:
            run = Run(activity=source.activity() if watched else None)
            for _ in source.iter_features(X, np.zeros(source.state_size), run):
                pass

        jobs = {OURS: partial(features, False), "with the record": partial(features, True)}
        first_calls(jobs)
        report.table(
            f"N = {n_units}, leak rate {leak_rate}, {len(X)} steps",
            interleave(jobs, 3 * n_rounds),
            unit="us/step",
            scale=1e6 / len(X),
            n_units=n_units,
        )


def batch(report: Report, n_rounds: int, quick: bool) -> None:
    """32 sequences at once and one by one; the first two rows are ours at once."""
    field = Field(report, n_rounds)
    sizes = [(100, 10), (300, 10), (1000, 10), (1000, 100)]
    for n_units, in_degree in sizes[:2] if quick else sizes:
        n_connections = n_units * in_degree * BATCH
        n_steps = steps_for(n_units * BATCH, n_connections, 3e6 if quick else 5e7)
        size = Size(n_units, in_degree, n_steps)
        network, _ = make(size)
        X = inputs(n_steps, "float64", BATCH)
        field.measure(
            f"{BATCH} sequences of {n_steps} steps, N = {n_units}, {in_degree} per row",
            batch_jobs(field, network),
            lambda network=network, X=X: np.array([run(network, x, engine="numpy") for x in X]),
            lambda job, X=X: job(X),
            X,
            unit="us/step",
            scale=1e6 / (n_steps * BATCH),
            n_sequences=BATCH,
            **size._asdict(),
        )


def batch_jobs(field: Field, network: Reservoir) -> dict[str, Any]:
    """Everybody's way to run many sequences at once, then everybody one by one."""
    together: dict[str, Any] = {}
    for name, engine in ((OURS, "numba"), (OURS_NUMPY, "numpy")):
        together[name] = _run_many(network, engine)
    for kind, c in field.c_networks(network).items():
        if kind == SCALAR:  # there is nothing to gather
            together["C, at once"] = c.run_batch
    alone = field.contenders(network, STATES)
    if not isinstance(alone["reservoirpy"], Exception):
        reservoirpy = alone.pop("reservoirpy")
        together["reservoirpy, list"] = lambda X: reservoirpy(list(X))
    together |= {name: alone.pop(name) for name in ("PyRCN, torch", "ResDAG")}
    one_by_one = {
        f"{name}, one by one": job if isinstance(job, Exception) else _each(job)
        for name, job in alone.items()
        if name not in KINDS or name == SCALAR
    }
    return together | one_by_one


def _run_many(network: Reservoir, engine: str) -> Any:
    return lambda X: run_many(network, list(X), engine=engine)


def _each(job: Callable[[Array], Array]) -> Callable[[Array], Any]:
    if isinstance(job, Another):
        return replace(job, run=_each(job.run))
    return lambda X: [job(x) for x in X]
