"""What choosing the penalty costs a fit: processor time, memory, size of the fitted model.

Usage: ``python examples/benchmarks/rule_costs.py [rules] [inputs]`` prints medians over interleaved
rounds on one BLAS thread.

- rules (the default): for networks of 100 and 1,000 units and several numbers of rows, seconds of
  a fit under one penalty, the other rules in units of that; and the peak of a fit above what is
  there before, and the pickled model, in MB. One input, white, and a target of lags and noise.
- inputs: the default network, which may receive the last rows of the input, beside one that
  receives the present row (``n_lags=1, input_alpha=None``): seconds and peak of a fit, saved file.
  White inputs, and targets that are filters of them, with noise.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _memory import in_child, measure
from _timing import machine
from threadpoolctl import threadpool_limits

from reservoir import ESNRegressor, save

RULES = ("halves", "blocked", "reml", "reml_ar1", "gcv")
SIZES = ((100, 200), (100, 1000), (100, 10_000), (300, 600), (300, 3000), (1000, 2000))
LARGE = ((1000, 10_000), (2000, 4000))
HELD = ((100, 1000), (100, 100_000), (1000, 1000), (1000, 100_000))
ONE_ROW = {"n_lags": 1, "input_alpha": None}
LENGTHS, COLUMNS = (300, 3000, 30_000), (1, 5, 12, 64)


def data(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 1))
    return X, np.convolve(X[:, 0], [1, 0.5, 0.2])[:n_rows] + rng.normal(size=n_rows)


def network(n_units: int, rule: str) -> ESNRegressor:
    """Return a network under one penalty, or under a rule."""
    how = {"alpha": 1e-6} if rule == "one penalty" else {"alpha_selection": rule}
    # the search for rows of the input is not timed here
    return ESNRegressor(n_units, random_state=0, **ONE_ROW, **how)


def costs(n_units: int, n_rows: int, n_rounds: int) -> dict[str, float]:
    """Return medians of the processor time of a fit by rule."""
    X, y = data(n_rows)
    seconds: dict[str, list[float]] = {rule: [] for rule in ("one penalty", *RULES)}
    for rule in seconds:
        network(20, rule).fit(X[:100], y[:100])  # loads what is lazy
    for _ in range(n_rounds):
        for rule, values in seconds.items():
            start = time.process_time()
            network(n_units, rule).fit(X, y)
            values.append(time.process_time() - start)
    return {rule: float(np.median(values)) for rule, values in seconds.items()}


def held(n_units: int, n_rows: int, rule: str) -> tuple[float, float]:
    """Return the peak of a fit above what is there before, and the size of the model, in MB."""
    warm = data(20_000)
    network(100, rule).fit(*warm)  # loads what is lazy, compiled kernels among it
    X, y = data(n_rows)
    model = network(n_units, rule)
    with threadpool_limits(1):
        _, peak = measure(lambda: model.fit(X, y))
    return peak, len(pickle.dumps(model)) / 1e6


def rows_of_costs() -> Iterator[str]:
    """Yield the lines of the first table."""
    yield "fit under one penalty / s, by rule in units of that"
    yield f"{'units':>6} {'rows':>7} {'seconds':>9}" + "".join(f"{rule:>10}" for rule in RULES)
    for n_units, n_rows in (*SIZES, *LARGE):
        found = costs(n_units, n_rows, 3 if (n_units, n_rows) in LARGE else 15)
        one = found["one penalty"]
        ratios = "".join(f"{found[rule] / one:10.2f}" for rule in RULES)
        yield f"{n_units:6d} {n_rows:7d} {one:9.4f}{ratios}"


def rows_of_memory() -> Iterator[str]:
    """Yield the lines of the second table."""
    yield "peak of a fit / fitted model, MB"
    names = ("one penalty", "halves")
    yield f"{'units':>6} {'rows':>7}" + "".join(f"{name:>22}" for name in names)
    for n_units, n_rows in HELD:
        cells = [in_child("rule_costs", "held", n_units, n_rows, name) for name in names]
        line = "".join(f"{peak:13.1f} / {size:6.2f}" for peak, size in cells)
        yield f"{n_units:6d} {n_rows:7d}{line}"


def cost_of_inputs(n_rows: int, n_columns: int, n_outputs: int) -> list[list[float]]:
    """Return seconds, MB of the peak and of the file, and `n_lags_`, of one row and of the default.

    Outputs are as many of the columns through a filter of eight rows, plus noise.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    filtered = [np.convolve(x, rng.normal(size=8))[:n_rows] for x in X.T[:n_outputs]]
    Y = np.stack(filtered, axis=1) + rng.normal(size=(n_rows, n_outputs))
    models = [ESNRegressor(random_state=0, **how) for how in (ONE_ROW, {})]
    for model in models:
        model.fit(*data(20_000))  # loads what is lazy, compiled kernels among it
    seconds: list[list[float]] = [[], []]
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        peaks = [measure(lambda one=one: one.fit(X, Y))[1] for one in models]
        for _ in range(9 if n_rows < LENGTHS[-1] else 3):
            for values, model in zip(seconds, models, strict=True):
                start = time.process_time()
                model.fit(X, Y)
                values.append(time.process_time() - start)
        path = Path(folder) / "model.npz"
        sizes = []
        for model in models:
            save(model, path)
            sizes.append(path.stat().st_size / 1e6)
    medians = map(np.median, seconds)
    return [
        [float(median), peak, size, model.n_lags_]
        for median, peak, size, model in zip(medians, peaks, sizes, models, strict=True)
    ]


def rows_of_inputs() -> Iterator[str]:
    """Yield the lines of the table of inputs."""
    yield "one row of the input, default, ratio: seconds of a fit; MB of its peak, of the file"
    titles = "".join(f"{title:>25}" for title in ("seconds", "peak", "file"))
    yield f"{'rows':>6} {'columns':>8} {'outputs':>8}{titles} {'chosen':>7}"
    for n_rows in LENGTHS:
        for n_columns in COLUMNS:
            for n_outputs in sorted({1, n_columns}):
                found = in_child("rule_costs", "cost_of_inputs", n_rows, n_columns, n_outputs)
                cells = "".join(
                    f"{one:9.{digits}f}{other:9.{digits}f}{other / max(one, 1e-9):7.2f}"
                    for one, other, digits in zip(*found, (4, 1, 2), strict=False)
                )
                yield f"{n_rows:6d} {n_columns:8d} {n_outputs:8d}{cells} {found[1][3]:7d}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", default=["rules"], choices=["rules", "inputs"])
    parts = parser.parse_args().parts
    print(machine())
    if "rules" in parts:
        with threadpool_limits(1):
            for line in rows_of_costs():
                print(line, flush=True)
        print()
        for line in rows_of_memory():
            print(line, flush=True)
    if "inputs" in parts:
        for line in rows_of_inputs():
            print(line, flush=True)


if __name__ == "__main__":
    main()
