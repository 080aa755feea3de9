"""One label per series: ESNSequenceClassifier beside MiniRocket, the model space, and 1-NN DTW.

Usage:

    python examples/benchmarks/sequences.py [NAME ...] [--resamples 10] [--jobs N] [--only TEXT ...]
    python examples/benchmarks/sequences.py [NAME ...] --seeds N [--only TEXT ...]
    python examples/benchmarks/sequences.py --many

Needs `aeon`; the data sets named by default come with it, others are loaded by its loader.
Resample 0 is the published split; the others draw anew, class by class, as many training series as
it has, the same for every method, and number and seed are one. Series of different lengths are
padded for the methods that need equal ones: with zeros, or by their last value where the name of
the method says so. `s each` is the median processor time of fit and predict on one thread, after a
run of the method that compiles what it needs. The last rows are the mean over data sets of the
difference to MiniRocket (zeros) with its standard error.

`--seeds` keeps to the published split, and fits with the seeds 0 to N - 1. `--many` needs no aeon:
ESNSequenceClassifier, with the defaults and with one direction, on noisy sines of one channel, a
thousand of a thousand steps and ten thousand of a hundred: processor time of fit and of predicting
another thousand, and by how much fit raises the largest memory of the process, which is a new one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _timing import machine
from joblib import Parallel, delayed
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from reservoir import ESNSequenceClassifier
from reservoir.building import build_reservoir
from reservoir.dynamics import run_many

Array = np.ndarray
Series = list[Array]  # each of shape (n_steps, n_channels)
Method = Callable[[Series, Array, Series, int], Array]
PENALTIES = np.logspace(-3, 3, 13)
REFERENCE = "MiniRocket, zeros"
SETS = (
    "JapaneseVowels",
    "BasicMotions",
    "ArrowHead",
    "GunPoint",
    "ItalyPowerDemand",
    "OSULeaf",
    "PickupGestureWiimoteZ",
    "ACSF1",
)


@dataclass(frozen=True)
class Outcome:
    """What one method reached on one resample of one data set."""

    name: str
    method: str
    accuracy: float
    seconds: float


# --- data -----------------------------------------------------------------------------------------


def load(name: str) -> tuple[Series, Array, Series, Array]:
    """Return training series, their labels, test series, and theirs, as published."""
    from aeon.datasets import load_classification

    parts = []
    for split in ("train", "test"):
        series, labels = load_classification(name, split=split)
        parts += [[np.asarray(one, dtype=float).T for one in series], np.asarray(labels)]
    return tuple(parts)


def resample(data: tuple[Series, Array, Series, Array], seed: int) -> tuple:
    """Return the published split for seed 0, else a new one with as many of each class."""
    train, train_labels, test, test_labels = data
    if seed == 0:
        return data
    rng = np.random.default_rng(seed)
    series, labels = train + test, np.concatenate([train_labels, test_labels])
    inside = np.zeros(len(labels), dtype=bool)
    for label in np.unique(train_labels):
        of_class = rng.permutation(np.flatnonzero(labels == label))
        inside[of_class[: np.sum(train_labels == label)]] = True
    kept, left = np.flatnonzero(inside), np.flatnonzero(~inside)
    return [series[i] for i in kept], labels[kept], [series[i] for i in left], labels[left]


def padded(series: Series, n_steps: int, mode: str) -> Array:
    """Return an array (n_series, n_channels, n_steps), as aeon reads it."""
    rows = [np.pad(one, ((0, n_steps - len(one)), (0, 0)), mode=mode) for one in series]
    return np.stack(rows).transpose(0, 2, 1)


# --- methods --------------------------------------------------------------------------------------


def ours(train: Series, labels: Array, test: Series, seed: int) -> Array:
    """Classify by the library's estimator, all defaults."""
    return ESNSequenceClassifier(random_state=seed).fit(train, labels).predict(test)


def mini_rocket(mode: str) -> Method:
    """Return MiniRocket with its defaults; short series are padded."""

    def classify(train: Series, labels: Array, test: Series, seed: int) -> Array:
        from aeon.classification.convolution_based import MiniRocketClassifier

        longest = max(9, *(len(one) for one in train + test))  # its kernels have nine taps
        clf = MiniRocketClassifier(random_state=seed, n_jobs=1)
        return clf.fit(padded(train, longest, mode), labels).predict(padded(test, longest, mode))

    return classify


def model_space(train: Series, labels: Array, test: Series, seed: int) -> Array:
    """Classify by the ridge that predicts the next reduced state (Bianchi et al. 2020)."""
    rows = np.concatenate(train)
    centre, width = rows.mean(0), rows.std(0) + 1e-12
    scaled = [(one - centre) / width for one in train + test]
    reservoir = build_reservoir(
        450,
        rows.shape[1],
        spectral_radius=0.6,
        input_scaling=0.1,
        in_degree=112,
        random_state=seed,
    )
    states = run_many(reservoir, scaled)
    seen = np.concatenate(states[: len(train)])
    middle = seen.mean(0)
    basis = np.linalg.eigh(np.cov(seen.T))[1][:, :-76:-1]
    features = np.array([next_state_model((one - middle) @ basis) for one in states])
    clf = make_pipeline(StandardScaler(), RidgeClassifierCV(PENALTIES))
    return clf.fit(features[: len(train)], labels).predict(features[len(train) :])


def next_state_model(states: Array, alpha: float = 10.0) -> Array:
    """Return the coefficients and intercept of the ridge from each state to the next."""
    now, then = states[:-1], states[1:]
    inputs, outputs = now - now.mean(0), then - then.mean(0)
    gram = inputs.T @ inputs + alpha * np.eye(states.shape[1])
    coef = np.linalg.solve(gram, inputs.T @ outputs)
    return np.append(coef.ravel(), then.mean(0) - now.mean(0) @ coef)


def nearest_by_dtw(train: Series, labels: Array, test: Series, seed: int) -> Array:
    """Classify by the nearest series, dynamic time warping in a window of a tenth."""
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    clf = KNeighborsTimeSeriesClassifier(distance="dtw", distance_params={"window": 0.1})
    longest = max(len(one) for one in train + test)  # bare lengths reach 1 % less on vowels
    clf.fit(padded(train, longest, "constant"), labels)
    return clf.predict(padded(test, longest, "constant"))


METHODS: dict[str, Method] = {
    "ESNSequenceClassifier": ours,
    REFERENCE: mini_rocket("constant"),
    "MiniRocket, last value": mini_rocket("edge"),
    "model space (Bianchi et al. 2020)": model_space,
    "1-NN DTW, window 0.1": nearest_by_dtw,
}


# --- many sequences -------------------------------------------------------------------------------


def sines(n_series: int, n_steps: int, seed: int) -> tuple[Array, Array]:
    """Return noisy sines of one channel, (n_series, n_steps, 1), and which of eight periods."""
    rng = np.random.default_rng(seed)
    labels, phases = np.arange(n_series) % 8, rng.uniform(0, 2 * np.pi, (n_series, 1))
    clean = np.sin(np.arange(n_steps) * (0.1 + 0.02 * labels[:, None]) + phases)
    return (clean + rng.normal(size=clean.shape))[:, :, None], labels


def fit_many(n_series: int, n_steps: int, bidirectional: bool) -> None:
    """Print what a classifier of so many sequences costs."""
    with threadpool_limits(1):
        clf = ESNSequenceClassifier(bidirectional=bidirectional, random_state=0)
        clf.fit(*sines(40, n_steps, 2))  # compiles
        train, test = sines(n_series, n_steps, 0), sines(1000, n_steps, 1)
        before, start = peak(), time.process_time()
        clf.fit(*train)
        fitted, after = time.process_time(), peak()
        right = 100 * clf.score(*test)
        scored = time.process_time()
    print(
        f"{n_series:>8d}{n_steps:>8d}{'both' if bidirectional else 'one':>12s}"
        f"{fitted - start:>10.1f}{scored - fitted:>10.1f}{after - before:>10.0f}{right:>8.1f}",
        flush=True,
    )


def peak() -> float:
    """Return the largest memory that this process has had, in MB (ru_maxrss is in KiB on Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def many() -> None:
    """Print the costs of many sequences, each row by a process of its own."""
    print(
        f"\n{'series':>8s}{'steps':>8s}{'directions':>12s}{'s fit':>10s}{'s predict':>10s}"
        f"{'MB fit':>10s}{'right':>8s}"
    )
    for n_series, n_steps in ((1000, 1000), (10_000, 100)):
        for bidirectional in (True, False):
            case = (n_series, n_steps, bidirectional)
            process = multiprocessing.get_context("spawn").Process(target=fit_many, args=case)
            process.start()
            process.join()


# --- runs and tables ------------------------------------------------------------------------------


def measure(name: str, methods: list[str], n_resamples: int) -> list[Outcome]:
    """Run the methods in turns on the resamples of one data set."""
    data, outcomes = load(name), []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in methods:  # compiles
            METHODS[method](*data[:2], data[2][:2], 0)
        for seed in range(n_resamples):
            train, labels, test, truth = resample(data, seed)
            for method in methods:
                start = time.process_time()
                found = METHODS[method](train, labels, test, seed)
                seconds = time.process_time() - start
                accuracy = 100 * float(np.mean(found == truth))
                outcomes.append(Outcome(name, method, accuracy, seconds))
    return outcomes


def by_seeds(name: str, methods: list[str], n_seeds: int) -> None:
    """Print what the methods reach on the published split with several seeds."""
    train, labels, test, truth = load(name)
    print(f"\n{name + ', published split':40s}{'mean':>10s}{'worst':>8s}   of {n_seeds} seeds")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in methods:
            found = [METHODS[method](train, labels, test, seed) for seed in range(n_seeds)]
            rates = [100 * np.mean(each == truth) for each in found]
            print(f"  {method:38s}{np.mean(rates):10.1f}{np.min(rates):8.1f}", flush=True)


def accuracies(outcomes: list[Outcome], name: str, method: str) -> Array:
    """Return the accuracies of a method on a data set, in the order of the resamples."""
    return np.array([o.accuracy for o in outcomes if (o.name, o.method) == (name, method)])


def table(outcomes: list[Outcome], names: list[str], methods: list[str]) -> None:
    """Print the methods on every data set, then their differences to the reference."""
    for name in names:
        print(f"\n{name:40s}{'published':>10s}{'mean':>8s}{'worst':>8s}{'s each':>9s}")
        for method in methods:
            found = accuracies(outcomes, name, method)
            seconds = [o.seconds for o in outcomes if (o.name, o.method) == (name, method)]
            print(
                f"  {method:38s}{found[0]:10.1f}{found.mean():8.1f}{found.min():8.1f}"
                f"{np.median(seconds):9.3f}"
            )
    if len(names) < 2 or REFERENCE not in methods:
        return
    print(f"\n{'over data sets: mean':40s}{'mean':>10s}   difference to {REFERENCE}")
    of_reference = np.array([accuracies(outcomes, name, REFERENCE).mean() for name in names])
    for method in methods:
        means = np.array([accuracies(outcomes, name, method).mean() for name in names])
        gain = means - of_reference
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        print(f"  {method:38s}{means.mean():10.2f}   {gain.mean():+.2f} +- {error:.2f}")


def options_of_command() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(SETS), metavar="NAME", help="data sets")
    parser.add_argument("--resamples", type=int, default=10, metavar="N")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds on the published split")
    parser.add_argument("--many", action="store_true", help="thousands of generated sequences")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="methods whose name holds one"
    )
    return parser.parse_args()


def main() -> None:
    """Run what the command line asks for."""
    options = options_of_command()
    print(machine())
    if options.many:
        many()
        return
    methods = [name for name in METHODS if any(text in name for text in options.only)]
    if options.seeds:
        for name in options.names:
            by_seeds(name, methods, options.seeds)
        return
    jobs = (delayed(measure)(name, methods, options.resamples) for name in options.names)
    outcomes = [outcome for found in Parallel(options.jobs)(jobs) for outcome in found]
    table(outcomes, options.names, methods)


if __name__ == "__main__":
    main()
