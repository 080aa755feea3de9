"""One label per series: features of a reservoir, or a network with every weight trained?

Usage: ``python examples/benchmarks/trained_or_not.py [n_train] [max_iter] [n_seeds] [names]`` (by
default 160, 200, 3 and "echo state,gru"; "lstm" and "rnn" are known as well) prints accuracy on 400
generated gestures and seconds of processor time for fit, seed by seed, compilation excluded. The
trained networks get standardised channels; with 1600 sequences an epoch takes about a second.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _command_line import run_main
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNSequenceClassifier, RNNClassifier
from reservoir.datasets import gestures

N_TEST = 400


def classifier(name: str, max_iter: int, seed: int) -> Any:
    """Return the classifier of a name."""
    if name == "echo state":
        return ESNSequenceClassifier(random_state=seed)
    return RNNClassifier(
        50,
        cell=name,
        target="last",
        init="orthogonal",
        learning_rate_init=0.01,
        max_iter=max_iter,
        random_state=seed,
    )


def main(
    n_train: int = 160, max_iter: int = 200, n_seeds: int = 3, names: str = "echo state,gru"
) -> None:
    """Measure and print."""
    for name in names.split(","):
        warm, labels = gestures(32, random_state=0)
        classifier(name, 1, 0).fit(warm, labels)  # compiles
        results = []
        for seed in range(n_seeds):
            X, y = gestures(n_train + N_TEST, random_state=seed)
            scaler = StandardScaler().fit(np.concatenate(X[:n_train]))
            X = [scaler.transform(rows) for rows in X]
            start = time.process_time()
            fitted = classifier(name, max_iter, seed).fit(X[:n_train], y[:n_train])
            seconds = time.process_time() - start
            results.append((fitted.score(X[n_train:], y[n_train:]), seconds))
            print(f"{name} {seed}: {results[-1][0]:.3f}, {seconds:.1f} s", flush=True)
        accuracy, seconds = np.median(results, axis=0)
        print(f"{name}, {n_train} sequences, median: {accuracy:.3f}, {seconds:.1f} s")


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
