"""What predict_proba is worth: log loss, Brier score and calibration error on data not seen.

Usage:

    python examples/benchmarks/probabilities.py [--seeds 5] [--only TEXT ...]

Next symbols: `ESNClassifier` says which one of 27 comes next, in a source whose own probabilities
are known (each symbol depends on the two before it), and which character, in the help texts that
come with Python (`pydoc_data.topics`; they differ a little between versions). Whole series:
`ESNSequenceClassifier` on generated gestures with three times the usual noise, from few series and
from many, and on Japanese Vowels where aeon is installed. Rows called "at temperature 1" are the
softmax of the same scores as they are. A seed draws source or gestures, and the network.

Log loss is in bits per case. The Brier score is the squared distance of the probabilities from
what came, 0 to 2. The calibration error is the mean distance of confidence from accuracy, over 15
bins of confidence of equal width. Tables give means over the seeds, of the log loss with their
standard deviation, and the median processor time of a fit. Needs scikit-learn 1.8 or newer.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from _timing import machine
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from reservoir import ESNClassifier, ESNSequenceClassifier
from reservoir.datasets import gestures

Array = np.ndarray
N_SYMBOLS = 27
N_TEXT, N_TEXT_TEST, N_WASHOUT = 20_000, 10_000, 100
N_TEST = 1000
FITTED, RAW = "at the fitted temperature", "the same scores at temperature 1"


class Scores(NamedTuple):
    """What probabilities reached on the cases of one test set."""

    bits: float
    brier: float
    calibration: float
    accuracy: float
    seconds: float = float("nan")


def rate(proba: Array, truth: Array, seconds: float = float("nan")) -> Scores:
    """Rate probabilities, (n_cases, n_classes), by the columns of what came, (n_cases,)."""
    said = proba[np.arange(len(truth)), truth]
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    bins = np.minimum((sure * 15).astype(int), 14)
    gaps = np.bincount(bins, sure - right, minlength=15)
    return Scores(
        float(-np.log2(np.maximum(said, 1e-15)).mean()),
        float((np.square(proba).sum(axis=1) - 2 * said + 1).mean()),
        float(np.abs(gaps).sum() / len(truth)),
        float(right.mean()),
        seconds,
    )


def raw_softmax(scores: Array) -> Array:
    """Return the softmax of scores as they are; one column is the second class of two."""
    return softmax(np.column_stack([-scores, scores]) if scores.ndim == 1 else scores, axis=1)


# --- next symbols ---------------------------------------------------------------------------------


def source(seed: int) -> tuple[Array, Array]:
    """Return symbols, each drawn given the two before it, and the probabilities it was drawn by."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(N_SYMBOLS, 0.1), size=(N_SYMBOLS, N_SYMBOLS))
    symbols, known = np.zeros(N_TEXT + N_TEXT_TEST + 1, int), []
    for t in range(len(symbols)):
        known.append(table[symbols[t - 2], symbols[t - 1]])
        symbols[t] = rng.choice(N_SYMBOLS, p=known[-1])
    return symbols, np.array(known)


def english(seed: int) -> tuple[Array, None]:
    """Return the characters of a text, the rare ones as one symbol; `seed` is not used."""
    topics = pydoc_data.topics.topics
    text = " ".join(" ".join(topics[name].split()) for name in sorted(topics))
    _, symbols = np.unique(list(text[: N_TEXT + N_TEXT_TEST + 1]), return_inverse=True)
    counts = np.bincount(symbols[:N_TEXT], minlength=symbols.max() + 1)
    number = np.cumsum(counts >= 20) * (counts >= 20)  # 0 for the rare ones
    return number[symbols], None


def next_symbols(draw: Callable[[int], tuple[Array, Array | None]], seed: int) -> dict[str, Scores]:
    """Learn which symbol comes next, and rate what is said of those of the rest of the text."""
    symbols, known = draw(seed)
    n_symbols = symbols.max() + 1
    X, y = np.eye(n_symbols)[symbols[:-1]], symbols[1:]
    start = time.process_time()
    clf = ESNClassifier(
        500,
        leak_rate=1.0,
        bias_scaling=0.1,
        alpha=1e-6,
        washout=N_WASHOUT,
        random_state=seed,
    ).fit(X[:N_TEXT], y[:N_TEXT])
    seconds = time.process_time() - start
    truth = np.searchsorted(clf.classes_, y[N_TEXT:])
    share = np.bincount(y[:N_TEXT], minlength=n_symbols)[clf.classes_] / N_TEXT
    found = {
        FITTED: rate(clf.predict_proba(X[N_TEXT:]), truth, seconds),
        RAW: rate(raw_softmax(clf.decision_function(X[N_TEXT:])), truth),
        "how frequent each symbol is": rate(np.tile(share, (len(truth), 1)), truth),
    }
    if known is not None:
        found["what the source draws by"] = rate(known[N_TEXT + 1 :], y[N_TEXT:])
    return found


# --- whole series ---------------------------------------------------------------------------------


def of_series(train: list[Array], labels: Array, test: list[Array], truth: Array, seed: int) -> Any:
    """Rate the classifier, and other ways to probabilities, on series with labels."""
    clf = ESNSequenceClassifier(random_state=seed)
    others = {
        "readout=LogisticRegression()": ESNSequenceClassifier(
            readout=LogisticRegression(max_iter=1000), random_state=seed
        ),
        "CalibratedClassifierCV, sigmoid": CalibratedClassifierCV(clf, method="sigmoid", cv=5),
        "CalibratedClassifierCV, temperature": CalibratedClassifierCV(
            clf, method="temperature", cv=5
        ),
    }
    found = {}
    for name, each in {FITTED: clf, **others}.items():
        start = time.process_time()
        each.fit(train, labels)
        seconds = time.process_time() - start
        columns = np.searchsorted(each.classes_, truth)
        found[name] = rate(each.predict_proba(test), columns, seconds)
        if name == FITTED:
            found[RAW] = rate(raw_softmax(each.decision_function(test)), columns)
    return found


def of_gestures(n_train: int, seed: int) -> dict[str, Scores]:
    """Rate on generated gestures, of which there are `n_train` to learn from."""
    X, y = gestures(n_train + N_TEST, noise=1.5, random_state=seed)
    return of_series(X[:n_train], y[:n_train], X[n_train:], y[n_train:], seed)


def of_vowels(seed: int) -> dict[str, Scores]:
    """Rate on Japanese Vowels, as published."""
    from aeon.datasets import load_japanese_vowels

    parts = []
    for split in ("train", "test"):
        series, labels = load_japanese_vowels(split=split)
        parts += [[np.asarray(one, float).T for one in series], np.asarray(labels)]
    return of_series(*parts, seed)


# --- tables ---------------------------------------------------------------------------------------

TASKS: dict[str, Callable[[int], dict[str, Scores]]] = {
    "next of 27 symbols, known source": lambda seed: next_symbols(source, seed),
    "next character, help texts": lambda seed: next_symbols(english, seed),
    "gestures, 80 series": lambda seed: of_gestures(80, seed),
    "gestures, 400 series": lambda seed: of_gestures(400, seed),
    "Japanese Vowels, 270 series": of_vowels,
}


def rows(found: list[dict[str, Scores]]) -> Iterator[str]:
    """Yield a line for each way to probabilities."""
    for name in found[0]:
        each = np.array([one[name] for one in found])
        bits, brier, gap, right, _ = each.mean(axis=0)
        took = "" if np.isnan(each[0, -1]) else f"{np.median(each[:, -1]):8.2f}"
        yield (
            f"  {name:38s}{bits:7.3f} +- {each[:, 0].std():.3f}{brier:8.3f}{gap:8.3f}"
            f"{100 * right:8.1f}{took}"
        )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="tasks whose name holds one"
    )
    options = parser.parse_args()
    print(machine())
    for task, measure in TASKS.items():
        if not any(text in task for text in options.only):
            continue
        try:
            with threadpool_limits(1):
                found = [measure(seed) for seed in range(options.seeds)]
        except ModuleNotFoundError as error:
            if error.name != "aeon":
                raise
            print(f"\n{task}: left out, aeon is not installed")
            continue
        head = f"{'bits':>7s}{'':9s}{'Brier':>8s}{'calib.':>8s}{'right %':>8s}{'fit, s':>8s}"
        print(f"\n{task:40s}{head}")
        print(*rows(found), sep="\n", flush=True)


if __name__ == "__main__":
    main()
