"""Hessian-free training on tasks of long memory, with structural damping and without.

A plain tanh network of 50 units, drawn orthogonal, is trained on 1000 sequences whose lengths are
drawn from T to 1.1 T: the adding problem and the temporal order problem (Hochreiter and Schmidhuber
1997). Solved is a task if at least 99 % of 10 000 new sequences are answered rightly: within .04
(adding), by the right label (temporal order). 2000 others say, after each iteration, when to look
at these.

    python long_memory.py                          # both tasks, T = 50 and 100, three seeds
    python long_memory.py --task adding --length 50 --seeds 10

One line for each run: the share of right answers, iterations, seconds.
"""

from __future__ import annotations

import argparse
import time
from contextlib import suppress

import numpy as np

from reservoir.datasets import adding, temporal_order
from reservoir.training.bptt import Network, predict
from reservoir.training.cells import SimpleCell
from reservoir.training.hessian_free import train_hessian_free
from reservoir.training.initializers import initialize
from reservoir.training.trainer import Data

N_UNITS, N_TRAINED, N_CURVATURE = 50, 1000, 250
WITHIN, ENOUGH = 0.04, 0.99
LABELS = ("XX", "XY", "YX", "YY")


class Ended(Exception):
    """Training may end: the task is solved, or its time is over."""


def draw(task, n, length, seed):
    """Return sequences as data for training."""
    make = adding if task == "adding" else temporal_order
    X, y = make(n, length=(length, length + length // 10), random_state=seed)
    Y = y[:, None] if task == "adding" else (y[:, None] == np.array(LABELS)).astype(float)
    return Data(X, list(Y), last=True)


def share_right(network, params, data):
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


def run(task, length, seed, structural, max_iter, minutes):
    """Train once; return the share of right answers, iterations and seconds."""
    data, others = draw(task, N_TRAINED, length, seed), draw(task, 2000, length, 1000 + seed)
    test = draw(task, 10_000, length, 2000 + seed)
    output, loss = ("identity", "mse") if task == "adding" else ("softmax", "cross_entropy")
    n_features, n_outputs = data.inputs[0].shape[1], len(data.targets[0])
    network = Network(SimpleCell(N_UNITS), n_features, n_outputs, output, loss)
    params = initialize(network.shapes(), "orthogonal", random_state=seed)
    begun, seen = time.perf_counter(), []

    def look(done):
        seen[:] = [done.params, done.n_epochs]
        promising = share_right(network, done.params, others) >= ENOUGH
        if promising and share_right(network, done.params, test) >= ENOUGH:
            raise Ended
        if time.perf_counter() - begun > 60 * minutes:
            raise Ended

    with suppress(Ended):
        train_hessian_free(
            network,
            params,
            data,
            max_iter=max_iter,
            batch_size=250,
            curvature_size=N_CURVATURE,
            structural_damping=structural,
            n_iter_no_change=max_iter,
            random_state=seed,
            report=look,
        )
    seconds = time.perf_counter() - begun
    return share_right(network, seen[0], test), seen[1], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", nargs="+", default=["adding", "temporal_order"])
    parser.add_argument("--length", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--structural", type=float, nargs="+", default=[0.1, 0.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=20.0, help="for one run, at most")
    args = parser.parse_args()
    for seed in range(args.seeds):
        for length in args.length:
            for task in args.task:
                for structural in args.structural:
                    share, n_iter, seconds = run(
                        task, length, seed, structural, args.max_iter, args.minutes
                    )
                    print(
                        f"{task:14s} T={length} seed={seed} structural={structural:g} "
                        f"right={share:.4f} solved={share >= ENOUGH} iterations={n_iter} "
                        f"seconds={seconds:.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
