"""scikit-learn's tools that choose rows without regard to time, on rows of a time series.

Part "folds" of `labels.py` prints what they cost: the default folds of a classifier, in a search
for a leak rate and in a calibration, and two ensembles that draw rows at random. The task of labels
is the sign of the sum of the last five inputs, whose mean drifts, so that the shares of the classes
do; that of numbers is NARMA10.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostRegressor
from sklearn.linear_model import RANSACRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, TimeSeriesSplit

from reservoir import ESNClassifier, ESNRegressor
from reservoir.datasets import narma

Array = np.ndarray
N_ROWS, N_TRAIN, N_LAST = 3000, 2400, 5
LEAKS = [1.0, 0.3, 0.1]
FOLDS = {
    "the default, StratifiedKFold": None,
    "KFold(5)": KFold(5),
    "TimeSeriesSplit(5)": TimeSeriesSplit(5),
}


def drifting(seed: int) -> tuple[Array, Array]:
    """Return inputs whose mean drifts, and the label at each row."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(N_ROWS, 1)) + np.linspace(-1, 1, N_ROWS)[:, None]
    return u, (np.convolve(u[:, 0], np.ones(N_LAST))[:N_ROWS] > 0).astype(int)


def gaps_in_folds(X: Array, y: Array) -> list[int]:
    """Return in how many places the rows to learn from are interrupted, for each default fold."""
    folds = StratifiedKFold(5).split(X, y)
    return [int(np.sum(np.diff(rows) > 1)) for rows, _ in folds]


def labels_of(seed: int) -> dict[str, Any]:
    """Return the figures of one seed: accuracies, chosen leaks, log losses, gaps."""
    X, y = drifting(seed)
    rows, later = slice(N_TRAIN), slice(N_TRAIN, None)
    network = ESNClassifier(100, random_state=seed)
    found: dict[str, Any] = {"gaps": gaps_in_folds(X[rows], y[rows])}
    for name, folds in FOLDS.items():
        search = GridSearchCV(network, {"leak_rate": LEAKS}, cv=folds).fit(X[rows], y[rows])
        found[name] = search.score(X[later], y[later]), search.best_params_["leak_rate"]
    network.set_params(leak_rate=1.0)
    for name, model in (
        ("as it comes", network),
        ("CalibratedClassifierCV", CalibratedClassifierCV(network)),
        ("CalibratedClassifierCV, KFold(5)", CalibratedClassifierCV(network, cv=KFold(5))),
    ):
        shares = model.fit(X[rows], y[rows]).predict_proba(X[later])
        found[f"log loss, {name}"] = log_loss(y[later], shares)
    return found


def numbers_of(seed: int) -> dict[str, float]:
    """Return R^2 of new rows for the network alone and in two ensembles."""
    X, y = narma(2000, random_state=seed)
    network = ESNRegressor(100, leak_rate=1.0, random_state=seed)
    models = {
        "as it comes": network,
        "AdaBoostRegressor": AdaBoostRegressor(network, n_estimators=10, random_state=seed),
        "RANSACRegressor": RANSACRegressor(network, min_samples=0.5, random_state=seed),
    }
    return {name: m.fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) for name, m in models.items()}


def compare(n_seeds: int) -> None:
    """Print the figures, over seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = [labels_of(seed) for seed in range(n_seeds)]
        numbers = [numbers_of(seed) for seed in range(n_seeds)]
    gaps = [n for found in labels for n in found["gaps"]]
    print(f"places where the default folds interrupt the rows: {min(gaps)} to {max(gaps)}")
    print("leak rate chosen by a search   mean accuracy   worst   seeds with leak rate 1")
    for name in FOLDS:
        scores, leaks = zip(*(found[name] for found in labels), strict=True)
        right = sum(leak == 1.0 for leak in leaks)
        print(f"  {name:28s} {np.mean(scores):.3f}           {min(scores):.3f}   {right}")
    print("log loss of new rows, mean")
    for name in (name for name in labels[0] if name.startswith("log loss")):
        print(f"  {name.removeprefix('log loss, '):34s} {np.mean([f[name] for f in labels]):.3f}")
    print("R^2 of new rows of NARMA10, mean")
    for name in numbers[0]:
        print(f"  {name:34s} {np.mean([found[name] for found in numbers]):.2f}")
