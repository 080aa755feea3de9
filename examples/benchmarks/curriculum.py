"""Short sequences first: does a curriculum bring memory over many steps sooner?

Usage: ``python examples/benchmarks/curriculum.py [--task NAME ...] [--method NAME ...] [--length T]
[--seeds N] [--minutes M] [--epochs N]`` (by default temporal order, a plain network and a GRU,
T = 100, 5 seeds, 2 minutes and a curriculum of 10 epochs). Networks, learning rates, tests and
what counts as solved are those of ``long_memory.py``; a run ends after M minutes of processor time.
The 10,000 sequences to learn from have

- "the lengths asked for": T to 1.1 T, as those to test on;
- "all lengths": 10 to 1.1 T;
- "short ones first": the same, `EasyFirst` with a tenth in the first epoch, the shortest, and all
  from the epoch behind the curriculum on.

Printed are a line for each run, and runs solved with their median of seconds.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

import numpy as np
from long_memory import (
    BATCH,
    ENOUGH,
    METHODS,
    N_LOOKED_AT,
    N_TESTED,
    N_TRAINED,
    TASKS,
    Ended,
    begin,
    build,
    draw,
    share_right,
    watch,
)
from threadpoolctl import threadpool_limits

from reservoir.training.curricula import EasyFirst
from reservoir.training.loop_engines import using
from reservoir.training.optimizers import adam
from reservoir.training.trainer import train

PLAIN = [name for name, m in METHODS.items() if m.control is None and m.structural is None]
WAYS = ("the lengths asked for", "all lengths", "short ones first")
SHORTEST = 10


def run(
    task: str, length: int, name: str, way: str, seed: int, minutes: float, n_epochs: int
) -> tuple[bool, float, int, float]:
    """Train once; return whether that solved it, the share right, epochs and seconds."""
    method = METHODS[name]
    first = length if way == WAYS[0] else SHORTEST
    data = draw(task, N_TRAINED, (first, length + length // 10), seed)
    asked = (length, length + length // 10)
    others = draw(task, N_LOOKED_AT, asked, 1000 + seed)
    network = build(task, method, data)
    look, seen = watch(network, others, minutes)
    options: dict[str, Any] = {"max_iter": 10**6, "n_iter_no_change": 10**6, "report": look}
    if way == WAYS[2]:
        options["curriculum"] = EasyFirst(n_epochs)
    with suppress(Ended), threadpool_limits(1), using("auto"):
        params = begin(method, network, data, seed)
        optimizer = adam(method.rate(task))
        train(network, params, data, optimizer, batch_size=BATCH, random_state=seed, **options)
    right = share_right(network, seen[0], draw(task, N_TESTED, asked, 2000 + seed))
    return right >= ENOUGH, right, seen[1], seen[2]


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--task", nargs="+", default=["temporal_order"], choices=TASKS)
    parser.add_argument("--method", nargs="+", default=["Adam, orthogonal", "GRU"], choices=PLAIN)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--epochs", type=int, default=10, help="of the curriculum")
    args = parser.parse_args()
    for task in args.task:
        for name in args.method:
            summary = []
            for way in WAYS:
                found = []
                for seed in range(args.seeds):
                    of = (task, args.length, name, way, seed, args.minutes, args.epochs)
                    found.append(run(*of))
                    solved, right, n_epochs, seconds = found[-1]
                    print(
                        f"{task}, {name}, {way}, seed {seed}: "
                        f"{'solved' if solved else 'not solved'}, {100 * right:.1f} % right, "
                        f"{n_epochs} epochs, {seconds:.0f} s",
                        flush=True,
                    )
                won = [seconds for solved, _, _, seconds in found if solved]
                median = f", median {np.median(won):.0f} s" if won else ""
                summary.append(f"{way}: {len(won)} of {len(found)}{median}")
            print(f"{task}, T = {args.length}, {name}: " + "; ".join(summary), flush=True)


if __name__ == "__main__":
    main()
