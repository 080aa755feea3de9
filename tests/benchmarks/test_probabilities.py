"""The benchmark of probabilities: its ratings, and data of known probabilities."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from helpers import benchmark_scripts

with benchmark_scripts():
    import probabilities as benchmark


def drawn(n, n_classes=4, seed=0):
    """Probabilities, and classes drawn by them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.5), size=n)
    return proba, (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def test_ratings_are_what_they_are_called():
    proba, truth = drawn(500)
    found = benchmark.rate(proba, truth)
    assert found.bits == pytest.approx(log_loss(truth, proba) / np.log(2))
    assert found.brier == pytest.approx(np.mean(((proba - np.eye(4)[truth]) ** 2).sum(axis=1)))
    assert found.accuracy == np.mean(proba.argmax(axis=1) == truth)
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    gap = 0.0
    for low in np.arange(15) / 15:
        here = (sure >= low) & (sure < low + 1 / 15)
        if here.any():
            gap += here.mean() * abs(sure[here].mean() - right[here].mean())
    assert found.calibration == pytest.approx(gap)


def test_probabilities_that_classes_were_drawn_by_are_calibrated():
    """Each of 15 bins is off by the error of a share alone."""
    found = [benchmark.rate(*drawn(4000, seed=seed)).calibration for seed in range(10)]
    assert np.mean(found) < 15 * 0.5 / np.sqrt(4000 * 15) < 0.04


def test_the_known_source_draws_by_what_it_says():
    symbols, known = benchmark.source(0)
    said = known[np.arange(len(symbols)), symbols]
    entropy = -np.sum(known * np.log2(np.maximum(known, 1e-300)), axis=1)
    surprise = -np.log2(said) - entropy
    assert abs(surprise.mean()) < 4 * surprise.std() / np.sqrt(len(symbols))
