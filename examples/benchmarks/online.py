"""What a row costs that is predicted, and then learned from.

Usage: ``python examples/benchmarks/online.py [--units N ...] [--chunk ROWS ...] [--only TEXT ...]``
prints microseconds of processor time per row on one thread: medians of rounds in which all take
turns. The network's own step is in the first rows of a table; the others learn on its states, which
are given to them: ours, reservoirpy's nodes and river's linear models, where these are installed.

``--rows 1000000`` learns from a stream of that many rows instead, of a plant that is replaced every
1000 rows, and prints the memory that the process holds, and the error, ten times on the way; units
and chunk are the first of those named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from _drift_methods import (
    Chunks,
    Contender,
    Once,
    Regressor,
    ReservoirpyNode,
    Rows,
    Session,
    esn,
    river_bayes,
    river_sgd,
    rows_of,
)
from _drift_tasks import Task, draw
from _memory import resident_mb
from _timing import LeftOut, machine, version
from threadpoolctl import threadpool_limits

from reservoir.readouts import LMS, RecursiveLeastSquares, SlidingWindow

Array = np.ndarray
ALPHA, FORGETTING, WINDOW = 0.01, 0.999, 1000
BLOCK = 50  # rows in a round, as one chunk or one by one


class Unasked(Chunks):
    """`partial_fit` of which no prediction is asked, so that nothing has to be solved."""

    def predict(self, rows: Rows) -> Array:
        return np.zeros(len(rows.y))


def contenders(n_units: int) -> dict[str, Callable[[], Contender]]:
    """All ways by name."""
    options: dict[str, Any] = {"alpha": ALPHA, "forgetting": FORGETTING}

    def network(**changes: Any) -> Any:
        return esn(n_units, 0, **{**options, **changes})

    def on_states(model: Any) -> Contender:
        return Regressor(model)

    return {
        "stream().predict alone": lambda: Once(network()),
        "predict, learn of stream()": lambda: Session(network()),
        "partial_fit alone": lambda: Unasked(network()),
        "predict, partial_fit": lambda: Chunks(network()),
        "RecursiveLeastSquares": lambda: on_states(RecursiveLeastSquares(**options)),
        "SlidingWindow": lambda: on_states(SlidingWindow(WINDOW, alpha=ALPHA)),
        "LMS": lambda: on_states(LMS()),
        "reservoirpy, RLS": lambda: on_states(ReservoirpyNode("RLS", **options)),
        "reservoirpy, LMS": lambda: on_states(ReservoirpyNode("LMS", learning_rate=1e-3)),
        "river, LinearRegression": lambda: on_states(river_sgd(1e-3)),
        "river, Bayesian, no forgetting": lambda: on_states(river_bayes(None)),
        "river, Bayesian, smoothing": lambda: on_states(river_bayes(FORGETTING)),
    }


def cost(
    made: Mapping[str, Contender], rows: Rows, n_fit: int, chunk: int, n_rounds: int
) -> dict[str, list[float]]:
    """Return seconds of processor time per row, of each round."""
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for contender in made.values():
        contender.start(rows[:n_fit])
    for block in range(n_rounds + 1):  # the first one warms up
        first = n_fit + block * BLOCK
        for name, contender in made.items():
            start = time.process_time()
            for now in range(first, first + BLOCK, chunk):
                contender.predict(rows[now : now + chunk])
                contender.learn(rows[now : now + chunk])
            seconds[name].append((time.process_time() - start) / BLOCK)
    return {name: values[1:] for name, values in seconds.items()}


def table(n_units: int, chunk: int, only: list[str], n_rounds: int) -> dict[str, float]:
    """Print and return medians, in microseconds per row."""
    n_fit = max(WINDOW + 100, 2 * n_units)
    rows = rows_of(draw("creep", 0, n_fit, (n_rounds + 1) * BLOCK), n_units, 0)
    made = {}
    for name, make in contenders(n_units).items():
        if not any(text in name for text in only):
            continue
        if name == "river, Bayesian, smoothing" and n_units > 300:
            print(f"{name}: left out, it inverts a matrix at each row")
            continue
        try:
            made[name] = make()
        except LeftOut as reason:
            print(f"{name}: left out, {reason}")
    found = {
        name: 1e6 * float(np.median(values))
        for name, values in cost(made, rows, n_fit, chunk, n_rounds).items()
    }
    print(f"\n{n_units} units, chunks of {chunk}, {n_rounds} rounds of {BLOCK} rows: us per row")
    for name, value in found.items():
        print(f"{name:34s}{value:12.1f}", flush=True)
    return found


def long_stream(
    n_rows: int, n_units: int, forgetting: float, chunk: int
) -> list[tuple[int, float, float]]:
    """Predict and learn; return rows, MB held and NRMSE since the last entry, ten times.

    The plant is replaced every 1000 rows.
    """
    n_fit, part = 1000, n_rows // 10
    first = draw("constant", 0, n_fit, BLOCK)
    esn_ = esn(n_units, 0, alpha=ALPHA, forgetting=forgetting)
    stream = esn_.fit(first.X[:n_fit], first.y[:n_fit]).stream()
    found = []
    for tenth in range(10):
        squares = variance = 0.0
        for block in range(0, part, 1000):
            task: Task = draw("constant", 1 + tenth * n_rows + block, 100, min(1000, part - block))
            X, y = task.X[100:], task.y[100:]
            for now in range(0, len(y), chunk):
                here = slice(now, now + chunk)
                squares += float(np.sum((stream.predict(X[here]) - y[here]) ** 2))
                stream.learn(X[here], y[here])
            variance += float(np.sum((y - y.mean()) ** 2))
        found.append(((tenth + 1) * part, resident_mb(), float(np.sqrt(squares / variance))))
        print("{:12d} rows{:10.1f} MB    NRMSE {:.3f}".format(*found[-1]), flush=True)
    return found


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, nargs="+", default=[100, 300, 1000], metavar="N")
    parser.add_argument("--chunk", type=int, nargs="+", default=[1, 50], metavar="ROWS")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="in the name")
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    parser.add_argument("--rows", type=int, metavar="N", help="the long stream, of N rows")
    parser.add_argument("--forgetting", type=float, default=0.99, help="of the long stream")
    options = parser.parse_args()
    print(machine())
    print(f"river {version('river') or 'not installed'}")
    with threadpool_limits(1):
        if options.rows:
            n_units, chunk = options.units[0], options.chunk[0]
            print(f"{n_units} units, forgetting {options.forgetting}, chunks of {chunk}")
            start = time.process_time()
            long_stream(options.rows, n_units, options.forgetting, chunk)
            print(f"{1e6 * (time.process_time() - start) / options.rows:.1f} us per row")
            return
        for n_units in options.units:
            for chunk in options.chunk:
                table(n_units, chunk, options.only, options.rounds)


if __name__ == "__main__":
    main()
