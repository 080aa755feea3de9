"""The next character of a text: networks of equal size, in bits per character.

Usage: ``python examples/benchmarks/characters.py [names] [n_seeds] [n_weights] [rates] [max_iter]``
(by default all networks below, 1, 40000, "0.003,0.01" and 30) trains each on 100,000 characters of
Python's own documentation (``pydoc_data.topics`` of the standard library; versions of Python differ
a little) and prints bits per character of the 10,000 that follow. The units of each are as many as
give about ``n_weights`` weights, readout included. A tenth of the training text chooses the epoch,
and which of the learning rates. The text is played as 32 sequences side by side, from random
weights; a character is a one-hot row. Dropout leaves out a quarter. One seed of all takes half an
hour on one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pydoc_data import topics
from typing import Any

import numpy as np
from _command_line import run_main
from threadpoolctl import threadpool_limits

from reservoir import RNNClassifier
from reservoir.training.bptt import Network
from reservoir.training.cells import (
    Cell,
    DeepTransitionCell,
    FeedforwardCell,
    GatedFeedbackCell,
    GRUCell,
    LSTMCell,
    SCRNCell,
    SimpleCell,
    StackedCell,
)

N_TRAIN, N_TEST, N_SEQUENCES = 100_000, 10_000, 32


def two_layers(n_units: int, **options: Any) -> Cell:
    """Return two GRU layers, one on top of the other."""
    return StackedCell((GRUCell(n_units), GRUCell(n_units)), **options)


NETWORKS: dict[str, Callable[[int], Cell]] = {
    "rnn": SimpleCell,
    "scrn": SCRNCell,
    "scrn, learned decay": lambda n: SCRNCell(n, learn_decay=True),
    "lstm": LSTMCell,
    "gru": GRUCell,
    "stacked, rnn": lambda n: StackedCell((SimpleCell(n), SimpleCell(n))),
    "stacked, lstm": lambda n: StackedCell((LSTMCell(n), LSTMCell(n))),
    "stacked, gru": two_layers,
    "stacked, gru, input shortcuts": lambda n: two_layers(n, input_shortcuts=True),
    "stacked, gru, readout shortcuts": lambda n: two_layers(n, readout_shortcuts=True),
    "stacked, gru, dropout": lambda n: two_layers(n, dropout=0.25),
    "stacked, gru, dropout, same mask": lambda n: two_layers(n, dropout=0.25, same_mask=True),
    "deep input, gru": lambda n: StackedCell((FeedforwardCell(n), GRUCell(n))),
    "deep output, gru": lambda n: StackedCell((GRUCell(n), FeedforwardCell(n))),
    "deep transition, rnn": lambda n: DeepTransitionCell(n, (n,)),
    "deep transition with shortcut, rnn": lambda n: DeepTransitionCell(n, (n,), shortcut=True),
    "gated feedback, rnn": GatedFeedbackCell,
    "gated feedback, lstm": lambda n: GatedFeedbackCell(n, kind="lstm"),
    "gated feedback, gru": lambda n: GatedFeedbackCell(n, kind="gru"),
}


def n_weights_of(cell: Cell, n_symbols: int) -> int:
    """Return how many weights a network has, readout included."""
    shapes = Network(cell, n_symbols, n_symbols).shapes()
    return sum(int(np.prod(shape)) for shape in shapes.values())


def of_size(make: Callable[[int], Cell], n_weights: int, n_symbols: int) -> Cell:
    """Return the cell of a sort whose network has as near to so many weights as can be."""
    return min(
        (make(n) for n in range(2, 300)),
        key=lambda cell: abs(n_weights_of(cell, n_symbols) - n_weights),
    )


def bits(fitted: RNNClassifier, codes: np.ndarray, one_hot: np.ndarray) -> float:
    """Return bits per character of the text behind the training text."""
    # the end of the training text warms the state up
    first = N_TRAIN - 200
    shares = fitted.predict_proba(one_hot[first:-1])[N_TRAIN - 1 - first :]
    column = np.searchsorted(fitted.classes_, codes[N_TRAIN:])
    return float(-np.log2(shares[np.arange(len(shares)), column]).mean())


def main(
    names: str = ";".join(NETWORKS),
    n_seeds: int = 1,
    n_weights: int = 40_000,
    rates: str = "0.003,0.01",
    max_iter: int = 30,
) -> None:
    """Measure and print; names are separated by semicolons."""
    text = "".join(topics.topics[name] for name in sorted(topics.topics))[: N_TRAIN + N_TEST]
    symbols, codes = np.unique(list(text), return_inverse=True)
    one_hot = np.eye(len(symbols), dtype=np.float32)[codes]
    sequences = list(one_hot[:N_TRAIN].reshape(N_SEQUENCES, -1, len(symbols))[:, :-1])
    targets = list(codes[:N_TRAIN].reshape(N_SEQUENCES, -1)[:, 1:])
    print(f"{len(symbols)} symbols")
    for name in names.split(";"):
        cell = of_size(NETWORKS[name], n_weights, len(symbols))
        found = []
        for seed in range(n_seeds):
            start = time.process_time()
            tried = [
                RNNClassifier(
                    cell.n_units,
                    cell=cell,
                    init="orthogonal",
                    learning_rate_init=float(rate),
                    max_iter=max_iter,
                    early_stopping=True,
                    n_iter_no_change=5,
                    dtype="float32",
                    random_state=seed,
                ).fit(sequences, targets)
                for rate in rates.split(",")
            ]
            best = min(tried, key=lambda fitted: fitted.best_loss_)
            found.append(bits(best, codes, one_hot))
            print(
                f"{name}, {cell.n_units} units, {n_weights_of(cell, len(symbols))} weights, seed "
                f"{seed}: {found[-1]:.3f} bits, rate {best.learning_rate_init}, {best.n_iter_} "
                f"epochs, {time.process_time() - start:.0f} s",
                flush=True,
            )
        print(f"{name}: median {np.median(found):.3f} bits per character", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
