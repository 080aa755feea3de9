"""The next character of a text: an LSTM of 128 units beside counts of what followed (n-grams).

Usage: ``python examples/benchmarks/text.py [n_seeds] [n_epochs]`` (5 and 24 by default) learns from
100,000 characters of Python's own documentation (``pydoc_data.topics`` of the standard library;
versions of Python differ a little) and prints bits per character of the 10,000 that follow: for
letters counted after the last 0 to 5 (Witten and Bell 1991), and for the network, by its learning
rate, mean and standard deviation over the seeds; then what the first network writes at three
temperatures, to the error stream. Bay (2017, section 6.1) prints samples alone, of plays. The
script `characters` compares networks of equal size. Ten minutes on one core.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pydoc_data import topics

import numpy as np
from _command_line import run_main
from threadpoolctl import threadpool_limits

from reservoir import RNNClassifier

N_TRAIN, N_TEST, N_PASSAGES, RATES = 100_000, 10_000, 32, (0.003, 0.01)


def n_gram_bits(codes, n_letters, longest):
    """Return bits per character of counts after the last `longest` letters, and fewer, mixed."""
    counts = [defaultdict(Counter) for _ in range(longest + 1)]
    for t in range(longest, N_TRAIN):
        for n, table in enumerate(counts):
            table[tuple(codes[t - n : t])][codes[t]] += 1
    bits = 0.0
    for t in range(N_TRAIN, len(codes)):
        p = 1.0 / n_letters
        for n, table in enumerate(counts):
            seen = table.get(tuple(codes[t - n : t]))
            if seen:
                total = sum(seen.values())
                p = (seen[codes[t]] + len(seen) * p) / (total + len(seen))
        bits -= np.log2(p)
    return bits / (len(codes) - N_TRAIN)


def network_bits(network, codes):
    """Return bits per character of the text behind the training text."""
    first = N_TRAIN - 200  # the end of the training text warms the state up
    said = network.predict_proba(codes[first:-1, None], initial_state="zeros")[-N_TEST:]
    columns = np.searchsorted(network.classes_, codes[N_TRAIN:])
    return float(-np.log2(said[np.arange(N_TEST), columns]).mean())


def main(n_seeds: int = 5, n_epochs: int = 24) -> None:
    text = "".join(topics.topics[name] for name in sorted(topics.topics))[: N_TRAIN + N_TEST]
    letters, codes = np.unique(list(text), return_inverse=True)
    print(f"{len(letters)} symbols")
    for longest in range(6):
        print(
            f"last {longest} letters: {n_gram_bits(codes, len(letters), longest):.3f}", flush=True
        )
    passages = codes[:N_TRAIN].reshape(N_PASSAGES, -1)
    writer = None
    for rate in RATES:
        found = []
        for seed in range(n_seeds):
            network = RNNClassifier(
                128,
                cell="lstm",
                init="orthogonal",
                n_symbols=len(letters),
                learning_rate_init=rate,
                max_iter=n_epochs,
                n_iter_no_change=n_epochs,
                dtype="float32",
                random_state=seed,
            ).fit(list(passages[:, :-1, None]), list(passages[:, 1:]))
            found.append(network_bits(network, codes))
            writer = network if seed == 0 else writer
        spread = np.std(found, ddof=min(1, n_seeds - 1))
        print(f"LSTM, rate {rate}: {np.mean(found):.3f} +- {spread:.3f}", flush=True)
    for temperature in (0.3, 0.7, 1.0):
        drawn = writer.sample(
            300, context=codes[N_TRAIN - 200 : N_TRAIN], temperature=temperature, random_state=0
        )
        written = f"--- temperature {temperature}", "".join(letters[drawn])
        print(*written, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    with threadpool_limits(1):
        run_main(main)
