"""Which network, and which way to train it, keeps what it read for long: success by length.

Usage: ``python examples/benchmarks/long_memory.py [--task NAME ...] [--method TEXT ...] [--length T
...] [--seeds N] [--minutes M] [--give-up N] [--jobs N] [--radius R ...] [--orthogonal] [--rates R
...] [--out FILE] [--kept]``

Tasks: the adding problem and the temporal order problem (Hochreiter and Schmidhuber 1997), lengths
drawn from T to 1.1 T. All networks have 50 units, in single precision, and 10,000 sequences to
learn from. After each epoch (of Hessian-free: each iteration) 2000 others say whether to stop: when
99.5 % of them are answered rightly, within .04 (adding) or by the right label (temporal order).
Solved is a task if 99 % of 10,000 sequences that were not looked at before are. A run ends unsolved
after M minutes of processor time, whatever the method, tests aside; by default 2. The first three
seeds of all lengths come first: a method that solves none of them is given up there, and not tried
with longer sequences (``--give-up 0``: never).

``--radius`` draws the plain network with that spectral radius, 15 connections per unit, instead of
orthogonal (Galvan 2016, figure 1); with ``--orthogonal`` that start stands beside them.
``--rates`` prints what each learning rate comes to, on seeds from 100 on, which are in no table;
those of `METHODS` were chosen so at T = 50, among .0005, .001, .002, .003 and .01. Adam clips the
norm of the gradient at 1. ``--out`` keeps each run in a table of comma-separated values and does
not run again what stands there with the same rate and the same M; ``--kept`` runs nothing, and
prints what stands there of what is asked for.

Printed are one line for each run (not with ``--kept``); the share of seeds that solved the task,
the updates that they took, medians, the number of weights, and milliseconds of processor time for
an update at the shortest length; and how many updates the simplex direction takes beside the plain
gradient, on the seeds that both solve.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from reservoir.datasets import adding, temporal_order
from reservoir.training.bptt import Network, predict
from reservoir.training.cells import Cell, GRUCell, LSTMCell, SCRNCell, SimpleCell
from reservoir.training.controls import Control
from reservoir.training.gradient_control import GradientControl
from reservoir.training.hessian_free import train_hessian_free
from reservoir.training.initializers import initialize
from reservoir.training.loop_engines import using
from reservoir.training.omega import Omega
from reservoir.training.optimizers import adam
from reservoir.training.starts import start
from reservoir.training.temporal_gradients import SimplexDirection
from reservoir.training.trainer import Data, train

N_UNITS, N_TRAINED, N_LOOKED_AT, N_TESTED = 50, 10_000, 2000, 10_000
BATCH, WITHIN, PROMISING, ENOUGH = 50, 0.04, 0.995, 0.99
DTYPE = np.float32
LABELS = ("XX", "XY", "YX", "YY")
TASKS = ("adding", "temporal_order")


@dataclass(frozen=True)
class Method:
    """A network and a way to train it."""

    cell: Callable[[int], Cell] = SimpleCell
    init: str = "orthogonal"
    control: Control | None = None
    rates: tuple[float, ...] = (0.001, 0.001)  # of each task; Hessian-free has none
    structural: float | None = None  # the damping of Hessian-free
    radius: float | None = None  # of a start drawn as in Pascanu et al.

    def rate(self, task: str) -> float:
        """Return the learning rate for a task; NaN where there is none."""
        return self.rates[TASKS.index(task)] if self.structural is None else np.nan


METHODS = {
    "Adam, orthogonal": Method(rates=(0.001, 0.002)),
    "Adam, reservoir": Method(init="esn"),
    "LSTM": Method(LSTMCell, rates=(0.003, 0.003)),
    "GRU": Method(GRUCell, rates=(0.01, 0.003)),
    "SCRN": Method(SCRNCell, rates=(0.001, 0.003)),
    "Omega": Method(control=Omega(1.0), rates=(0.0005, 0.002)),
    "gradient control": Method(control=GradientControl(0.1), rates=(0.001, 0.002)),
    "simplex direction": Method(control=SimplexDirection(), rates=(0.0005, 0.002)),
    "Hessian-free, structural": Method(structural=0.1),
    "Hessian-free": Method(structural=0.0),
}


class Result(NamedTuple):
    """What one run came to."""

    task: str
    length: int
    method: str
    rate: float
    radius: float
    seed: int
    solved: bool
    right: float
    n_updates: int
    seconds: float
    minutes: float


# Galvan (2016): updates without and with the simplex direction
PRINTED = {"adding": (1_807_466, 1_630_666), "temporal_order": (2_164_800, 1_010_000)}


class Ended(Exception):
    """Training may end: the task is solved, or its time is over."""


def draw(task: str, n: int, lengths: int | tuple[int, int], seed: int) -> Data:
    """Return sequences as data for training, of lengths between two, or from T to 1.1 T."""
    make = adding if task == "adding" else temporal_order
    if isinstance(lengths, int):
        lengths = (lengths, lengths + lengths // 10)
    X, y = make(n, length=lengths, random_state=seed)
    Y = y[:, None] if task == "adding" else (y[:, None] == np.array(LABELS)).astype(float)
    inputs = [sequence.astype(DTYPE) for sequence in X]
    return Data(inputs, list(Y.astype(DTYPE)), last=True)


def share_right(network: Network, params: Any, data: Data) -> float:
    """Return the share of sequences that are answered rightly."""
    right = []
    for index in data.by_length(500):
        batch, _ = data.batch(index)
        outputs, _ = predict(network, params, batch.inputs, lengths=batch.lengths)
        last = outputs[batch.lengths - 1, np.arange(len(index))]
        Y = np.stack([data.targets[i] for i in index])
        if network.loss == "mse":
            right.append(np.abs(last - Y)[:, 0] < WITHIN)
        else:
            right.append(last.argmax(axis=1) == Y.argmax(axis=1))
    return float(np.concatenate(right).mean())


def build(task: str, method: Method, data: Data) -> Network:
    """Return the network of a method, as large as the data ask."""
    output, loss = ("identity", "mse") if task == "adding" else ("softmax", "cross_entropy")
    n_features, n_outputs = data.inputs[0].shape[1], len(data.targets[0])
    return Network(method.cell(N_UNITS), n_features, n_outputs, output, loss)


def begin(method: Method, network: Network, data: Data, seed: int) -> Any:
    """Return weights to start from."""
    if method.init == "esn":
        some = slice(2000)
        return start(
            network,
            data.inputs[some],
            data.targets[some],
            scheme="esn",
            target="last",
            random_state=seed,
        ).params
    if method.radius is not None:
        drawn: dict[str, Any] = {"scheme": "spectral", "spectral_radius": method.radius}
        return initialize(network.weights(), **drawn, dtype=DTYPE, random_state=seed)
    return initialize(network.weights(), method.init, dtype=DTYPE, random_state=seed)


def watch(
    network: Network, others: Data, minutes: float
) -> tuple[Callable[[Any], None], list[Any]]:
    """Return a report that ends training in time, and what it saw: weights, epochs, seconds."""
    begun, looked = time.process_time(), 0.0
    seen: list[Any] = []

    def look(done: Any) -> None:
        nonlocal looked
        tick = time.process_time()
        seen[:] = [done.params, done.n_epochs, tick - begun - looked]
        promising = share_right(network, done.params, others) >= PROMISING
        looked += time.process_time() - tick
        if promising or seen[2] > 60 * minutes:
            raise Ended

    return look, seen


def run(task: str, length: int, name: str, method: Method, seed: int, minutes: float) -> Result:
    """Train once, until the task is solved or the time is over."""
    data, others = draw(task, N_TRAINED, length, seed), draw(task, N_LOOKED_AT, length, 1000 + seed)
    network = build(task, method, data)
    look, seen = watch(network, others, minutes)
    with suppress(Ended), threadpool_limits(1), using("auto"):
        params = begin(method, network, data, seed)
        options: dict[str, Any] = {"max_iter": 10**6, "n_iter_no_change": 10**6, "report": look}
        if method.structural is None:
            options |= {"batch_size": BATCH, "control": method.control, "random_state": seed}
            train(network, params, data, adam(method.rate(task)), **options)
        else:
            options |= {"batch_size": 250, "gradient_size": 1000, "curvature_size": 250}
            options |= {"structural_damping": method.structural, "random_state": seed}
            train_hessian_free(network, params, data, **options)
    right = share_right(network, seen[0], draw(task, N_TESTED, length, 2000 + seed))
    n_updates = seen[1] * (N_TRAINED // BATCH if method.structural is None else 1)
    radius = np.nan if method.radius is None else method.radius
    solved = right >= ENOUGH
    of = (task, length, name, method.rate(task), radius, seed)
    return Result(*of, solved, right, n_updates, seen[2], minutes)


# --- many runs ----------------------------------------------------------------------------------


def read(path: Path) -> list[Result]:
    """Return the runs that a file holds."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        kinds: tuple[Callable[[str], Any], ...] = (
            str,
            int,
            str,
            float,
            float,
            int,
            lambda word: word == "True",
            float,
            int,
            float,
            float,
        )
        rows = list(csv.reader(file))[1:]
        return [
            Result(*(kind(word) for kind, word in zip(kinds, row, strict=True))) for row in rows
        ]


def keep(path: Path, result: Result) -> None:
    """Add a run to a file."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([Result._fields] * new + [result])


def key(result: Result) -> tuple[Any, ...]:
    """Return what tells a run from the others."""
    given = (str(result.rate), str(result.radius))  # NaN is not itself
    return (*result[:3], *given, result.seed, result.minutes)


def names_of(args: argparse.Namespace) -> list[str]:
    """Return the methods that were asked for."""
    return [n for n in METHODS if not args.method or any(text in n for text in args.method)]


def stages(args: argparse.Namespace) -> list[tuple[int, range]]:
    """Return lengths and seeds in the order in which they are run."""
    first = min(args.give_up, args.seeds)
    lengths = sorted(args.length)
    rest = [range(seed, seed + 1) for seed in range(first, args.seeds)]
    return [(n, range(first)) for n in lengths if first] + [(n, s) for s in rest for n in lengths]


def given_up(found: list[Result], wanted: tuple[Any, ...], enough: int) -> bool:
    """Say whether a method has solved none of the first seeds, of this length or a shorter one."""
    task, length, name, method = wanted[:4]
    runs = [r for r in found if (r.task, r.method) == (task, name) and r.length <= length]
    runs = [r for r in runs if str(r.radius) == str(method.radius or np.nan)]
    solved = {n: [r.solved for r in runs if r.length == n] for n in {r.length for r in runs}}
    return any(len(shares) >= enough and not any(shares) for shares in solved.values())


def all_runs(args: argparse.Namespace) -> Iterable[Result]:
    """Yield the runs that were asked for, those that a file holds without running them again."""
    radii = [None, *args.radius] if args.orthogonal or not args.radius else args.radius
    known = {key(result): result for result in (read(args.out) if args.out else [])}
    found: list[Result] = []
    for length, seeds in stages(args):
        wanted = [
            (task, length, name, replace(METHODS[name], radius=radius), seed, args.minutes)
            for seed in seeds
            for task in args.task
            for name in names_of(args)
            for radius in radii
        ]
        if args.give_up and not args.kept:
            wanted = [w for w in wanted if not given_up(found, w, args.give_up)]
        keys = [(*w[:3], str(w[3].rate(w[0])), str(w[3].radius or np.nan), *w[4:]) for w in wanted]
        if args.kept:
            keys = [k for k in keys if k in known]
        left = [w for w, k in zip(wanted, keys, strict=False) if k not in known and not args.kept]
        workers = Parallel(args.jobs, return_as="generator_unordered")
        for result in workers(delayed(run)(*w) for w in left):
            if args.out:
                keep(args.out, result)
            known[key(result)] = result
        found += [known[k] for k in keys]
        yield from (known[k] for k in keys)


def called(method: str, radius: float) -> str:
    """Return what a method is called where it may start with a given radius."""
    if np.isnan(radius):
        return method
    return f"{method.removesuffix(', orthogonal')}, radius {radius:g}"


def line(result: Result) -> str:
    """Return a run in words."""
    return (
        f"{result.task}, T = {result.length}, {called(result.method, result.radius)}, "
        f"seed {result.seed}: "
        f"{'solved' if result.solved else 'not solved'}, {100 * result.right:.1f} % right, "
        f"{result.n_updates} updates, {result.seconds:.0f} s"
    )


def table(results: list[Result]) -> None:
    """Print the share of seeds that solved each task, and the updates that they took."""
    for task in dict.fromkeys(r.task for r in results):
        of_task = [r for r in results if r.task == task]
        lengths = sorted({r.length for r in of_task})
        minutes = f"{of_task[0].minutes:g} minutes of processor time"
        print(f"\n{task}: runs that solved it within {minutes} / runs; median updates of those")
        heads = "".join(f"{f'T = {length}':>18s}" for length in lengths)
        print(f"{'':30s}{'weights':>8s}{'ms':>9s}{heads}")
        for name, radius in dict.fromkeys((r.method, str(r.radius)) for r in of_task):
            label = called(name, float(radius))
            cells = []
            for length in lengths:
                runs = [r for r in of_task if r[1:3] == (length, name) and str(r.radius) == radius]
                won = [r.n_updates for r in runs if r.solved]
                updates = f"{np.median(won):.0f}" if won else "-"
                cells.append(f"{f'{len(won)}/{len(runs)}':>10s}{updates:>8s}" if runs else 18 * " ")
            shapes = build(task, METHODS[name], draw(task, 1, 20, 0)).shapes().values()
            n_weights = sum(prod(shape) for shape in shapes)
            took = [
                1000 * r.seconds / r.n_updates
                for r in of_task
                if r.n_updates and r[1:3] == (lengths[0], name)
            ]
            cost = f"{np.median(took):.1f}" if took else ""
            print(f"{label:30s}{n_weights:8d}{cost:>9s}{''.join(cells)}", flush=True)
        compare(of_task)


def compare(results: list[Result]) -> None:
    """Print how many updates the simplex direction takes, where it and the gradient succeed."""
    solved = [r for r in results if r.solved and np.isnan(r.radius)]
    plain, simplex = (
        {(r.length, r.seed): r.n_updates for r in solved if r.method == name}
        for name in ("Adam, orthogonal", "simplex direction")
    )
    ratios = [simplex[both] / plain[both] for both in plain.keys() & simplex.keys()]
    without, with_it = PRINTED[results[0].task]
    said = f"{np.median(ratios):.2f}, of {len(ratios)} seeds" if ratios else "none solved by both"
    print(f"updates with the simplex direction over those without: {said}")
    print(f"  printed (Galvan 2016): {with_it} / {without} = {with_it / without:.2f}")


def choose(args: argparse.Namespace) -> None:
    """Print what each learning rate comes to, on seeds of its own."""
    for name in names_of(args):
        if METHODS[name].structural is not None:
            continue
        for rate in args.rates:
            made = replace(METHODS[name], rates=(rate,) * len(TASKS))
            for task in args.task:
                for seed in range(100, 100 + args.seeds):
                    found = run(task, args.length[0], name, made, seed, args.minutes)
                    print(f"rate {rate}: {line(found)}", flush=True)


def main() -> None:
    """Read the arguments; run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--task", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--method", nargs="+", default=[], help="parts of names of methods")
    parser.add_argument("--length", type=int, nargs="+", default=[50, 100, 150, 200])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=2.0, help="of processor time for one run")
    parser.add_argument("--give-up", type=int, default=3, help="after so many seeds in vain")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--radius", type=float, nargs="+", default=[])
    parser.add_argument("--orthogonal", action="store_true", help="beside --radius")
    parser.add_argument("--rates", type=float, nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kept", action="store_true", help="run nothing")
    args = parser.parse_args()
    if args.rates:
        return choose(args)
    results = []
    for result in all_runs(args):
        results.append(result)
        if not args.kept:
            print(line(result), flush=True)
    table(results)
    return None


if __name__ == "__main__":
    main()
