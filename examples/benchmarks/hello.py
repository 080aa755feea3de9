"""Three units learn to write "hello" (Bay 2017, section 6.1, figure 6.3).

Usage: ``python examples/benchmarks/hello.py [n_seeds]`` (10 by default) trains networks of three
units for 40 epochs with Adagrad, one word an epoch, from the seeds 0, 1, ..., and prints for each
learning rate the negative log-likelihood of a letter (natural logarithm; median, and the largest)
and in how many of the seeds all four letters are right. The networks: a plain one, the same with
gradient control (singular values of its Jacobians held within .9 to 1.1, their root mean square
near 1), the plain one from the least-squares start that `RNNClassifier` takes by itself, and an
LSTM. A fifth is the plain one under steps of one size. Half a minute.
"""

from __future__ import annotations

import numpy as np
from _command_line import run_main
from threadpoolctl import threadpool_limits

from reservoir import RNNClassifier
from reservoir.training.gradient_control import GradientControl

LETTERS = ["e", "h", "l", "o"]
WORD = [LETTERS.index(letter) for letter in "hello"]
NETWORKS = {
    "plain, random weights": {"init": "glorot"},
    "with gradient control": {"init": "glorot", "gradient_control": GradientControl(weight=0.01)},
    "least-squares start": {},
    "LSTM, random weights": {"cell": "lstm", "init": "glorot"},
    "plain, steps of one size": {"init": "glorot", "solver": "sgd"},
}
RATES = (0.01, 0.03, 0.1, 0.3, 1.0)


def learned(rate: float, seed: int, **parameters: object) -> tuple[float, str]:
    """Return the negative log-likelihood of a letter, and what the network writes after an h."""
    X, y = np.array(WORD[:-1])[:, None], np.array(WORD[1:])
    network = RNNClassifier(
        3,
        **{"solver": "adagrad", **parameters},
        n_symbols=4,
        learning_rate_init=rate,
        max_iter=40,
        n_iter_no_change=40,
        early_stopping=False,
        washout=0,
        initial_state="zeros",
        random_state=seed,
    )
    probabilities = network.fit(X, y).predict_proba(X)
    right = probabilities[np.arange(4), np.searchsorted(network.classes_, y)]
    said = network.classes_[probabilities.argmax(axis=1)]
    return float(-np.log(right).mean()), "h" + "".join(LETTERS[k] for k in said)


def main(n_seeds: int = 10) -> None:
    print(f"{'learning rate':26s}" + "".join(f"{rate:>22g}" for rate in RATES))
    for name, parameters in NETWORKS.items():
        cells = []
        for rate in RATES:
            results = [learned(rate, seed, **parameters) for seed in range(n_seeds)]
            losses = [loss for loss, _ in results]
            right = sum(word == "hello" for _, word in results)
            cells.append(f"{np.median(losses):.3f} ({max(losses):.3f}) {right}/{n_seeds}")
        print(f"{name:26s}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
