"""The gradient of one batch by back-propagation through time, beside torch.

Usage: ``python examples/benchmarks/training.py [--seconds S] [--quick]`` prints a table: forwards,
loss and gradient of all weights of a recurrent layer under a linear readout with squared errors,
8 inputs, 8 outputs, one thread; NumPy's loops, compiled loops and torch (``RNN``, ``LSTM`` or
``GRU``, then ``Linear``) in turns, medians. Without torch its columns stay empty. Takes two to
three minutes, with ``--quick`` half a minute.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _timing import machine, version
from threadpoolctl import threadpool_limits

from reservoir import _kernels
from reservoir.training.bptt import Batch, Network, loss_and_gradient
from reservoir.training.cells import Cell, GRUCell, LSTMCell, SimpleCell
from reservoir.training.loop_engines import numpy_seconds, using

Array = np.ndarray
SIZES = [(32, 1, 1000), (32, 32, 100), (128, 1, 500), (128, 32, 100), (512, 32, 50)]
CELLS: dict[str, Callable[[int], Cell]] = {"RNN": SimpleCell, "LSTM": LSTMCell, "GRU": GRUCell}
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
N_FEATURES = N_OUTPUTS = 8


def data(sizes: tuple[int, int, int], dtype: str) -> tuple[Array, Array]:
    """Return inputs and targets."""
    _, n_sequences, n_steps = sizes
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2, n_steps, n_sequences, N_FEATURES)).astype(dtype)
    return X, y


def ours(kind: str, sizes: tuple[int, int, int], dtype: str, engine: str) -> Callable[[], Any]:
    """Return the job of `reservoir.training`."""
    n_units, n_sequences, n_steps = sizes
    X, y = data(sizes, dtype)
    batch = Batch(X, np.full(n_sequences, n_steps), y.reshape(-1, N_OUTPUTS))
    network = Network(CELLS[kind](n_units), N_FEATURES, N_OUTPUTS)
    rng, bound = np.random.default_rng(1), n_units**-0.5
    params = {
        name: rng.uniform(-bound, bound, shape).astype(dtype)
        for name, shape in network.shapes().items()
    }

    def job() -> Any:
        with using(engine):
            return loss_and_gradient(network, params, batch)

    return job


def theirs(torch: Any, kind: str, sizes: tuple[int, int, int], dtype: str) -> Callable[[], Any]:
    """Return the job of torch."""
    X, y = map(torch.tensor, data(sizes, dtype))
    layer = getattr(torch.nn, kind)(N_FEATURES, sizes[0]).to(X.dtype)
    readout = torch.nn.Linear(sizes[0], N_OUTPUTS).to(X.dtype)
    weights = [*layer.parameters(), *readout.parameters()]

    def job() -> None:
        for weight in weights:
            weight.grad = None
        states, _ = layer(X)
        torch.nn.functional.mse_loss(readout(states), y).backward()

    return job


def medians(jobs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return milliseconds of each job, taken in turns: at least three times."""
    for job in jobs.values():  # what is compiled or loaded on the first call
        job()
    times: dict[str, list[float]] = {name: [] for name in jobs}
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(next(iter(times.values()))) < 3:
        for name, job in jobs.items():
            start = time.perf_counter()
            result = job()
            times[name].append(time.perf_counter() - start)
            del result
    return {name: 1e3 * float(np.median(sample)) for name, sample in times.items()}


def cases(quick: bool) -> Iterator[tuple[str, tuple[int, int, int], str]]:
    for kind in CELLS:
        for sizes in SIZES[: 3 if quick else None]:
            for dtype in ("float32", "float64"):
                yield kind, sizes, dtype


def load_torch() -> Any:
    """Return torch on one thread, None where it is missing."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.5, help="time for a row of the table")
    parser.add_argument("--quick", action="store_true", help="the three small sizes, less time")
    arguments = parser.parse_args()
    torch, compiled = load_torch(), _kernels.load()
    print(machine())
    print(f"torch {version('torch') or 'is missing: its columns stay empty'}")
    print("\nms per batch; last columns: torch over NumPy and over compiled loops")
    print("model, of the NumPy column: the loops alone, as the choice of an engine reckons\n")
    columns = ("NumPy", "model", "compiled", "torch", "/NumPy", "/compiled")
    head = f"{'cell':5s}{'units, sequences, steps':>24s}{'dtype':>9s}"
    print(head + "".join(f"{name:>10s}" for name in columns))
    with threadpool_limits(1):
        for kind, sizes, dtype in cases(arguments.quick):
            jobs = {"NumPy": ours(kind, sizes, dtype, "numpy")}
            if compiled:
                jobs["compiled"] = ours(kind, sizes, dtype, "numba")
            if torch is not None:
                jobs["torch"] = theirs(torch, kind, sizes, dtype)
            found = medians(jobs, 0.5 if arguments.quick else arguments.seconds)
            n_units, n_sequences, n_steps = sizes
            found["model"] = 1e3 * numpy_seconds((n_steps, n_sequences, GATES[kind] * n_units))
            if torch is not None:
                for name in jobs:
                    found[f"/{name}"] = found["torch"] / found[name]
            row = "".join(f"{found[c]:10.2f}" if c in found else " " * 10 for c in columns)
            print(f"{kind:5s}{', '.join(map(str, sizes)):>24s}{dtype:>9s}{row}", flush=True)


if __name__ == "__main__":
    main()
