"""Is it worth holding sequences out to stop by, where there are few to learn from?

Usage: ``python examples/benchmarks/small_sets.py [sizes] [epochs] [--seeds N]`` (by default both,
8 seeds) prints the area under the receiver operating characteristic on 2000 new sequences, with
`early_stopping` (a tenth is held out) and without, and the difference: means over seeds from 0,
and standard errors.

- sizes: by how many sequences there are to learn from; 100 epochs at a rate of .003, init="esn".
- epochs: 140 sequences, by the start, the learning rate and the most epochs.

A generated cohort: a patient has 5 to 20 visits, each with six values, autoregressions with a
common part; a hidden burden adds up, and fades by a tenth per visit, where two values are high
together. The label says whether it ends above that of half of all patients, in noise: the best
score knows the burden and not the noise. A network of 32 units, Adam.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from reservoir import RNNClassifier

N_TEST = 2000


def cohort(n: int, seed: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return visits, labels, and the burden that they come from."""
    rng = np.random.default_rng(seed)
    visits, burdens = [], np.empty(n)
    for k in range(n):
        n_visits = rng.integers(5, 21)
        level, common, burden = rng.normal(size=6), 0.0, 0.0
        rows = np.empty((n_visits, 6))
        for row in rows:
            common = 0.8 * common + 0.6 * rng.normal()
            level = 0.7 * level + 0.5 * rng.normal(size=6)
            row[:] = level + common
            burden = 0.9 * burden + max(row[0], 0.0) * max(row[1], 0.0)
        visits.append(rows)
        burdens[k] = np.log1p(burden)
    noisy = burdens + 0.5 * burdens.std() * rng.normal(size=n)
    return visits, (noisy > np.median(noisy)).astype(int), burdens


def compare(label: str, n: int, n_seeds: int, **options: object) -> None:
    """Print one line: both ways to train, on each seed."""
    found = []
    for seed in range(n_seeds):
        X, y, burden = cohort(n + N_TEST, seed)
        scores = [burden[n:]]
        for stop in (True, False):
            clf = RNNClassifier(
                32, target="last", early_stopping=stop, random_state=seed, **options
            )
            scores.append(clf.fit(X[:n], y[:n]).predict_proba(X[n:])[:, 1])
        found.append([roc_auc_score(y[n:], score) for score in scores])
    best, held, plain = np.array(found).T
    gap = held - plain
    error = gap.std(ddof=1) / np.sqrt(n_seeds)
    means = f"{held.mean():10.3f}{plain.mean():12.3f}{gap.mean():+12.3f} ± {error:.3f}"
    print(f"{label:32s}{means}{best.mean():10.3f}", flush=True)


def cases(part: str) -> Iterable[tuple[str, int, dict[str, object]]]:
    """Yield what is compared: a label, how many sequences, and options."""
    if part == "sizes":
        for n in (70, 140, 300, 600, 1000, 2000):
            yield f"{n} sequences", n, {"init": "esn", "learning_rate_init": 0.003, "max_iter": 100}
        return
    for init in ("esn", "orthogonal"):
        for rate in (0.001, 0.003, 0.01):
            for epochs in (10, 30, 100):
                options = {"init": init, "learning_rate_init": rate, "max_iter": epochs}
                yield f"{init}, rate {rate:g}, {epochs} epochs", 140, options


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", default=["sizes", "epochs"])
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    for part in options.parts:
        print(f"{part:32s}{'held out':>10s}{'without':>12s}{'difference':>20s}{'best':>10s}")
        for label, n, given in cases(part):
            compare(label, n, options.seeds, **given)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
