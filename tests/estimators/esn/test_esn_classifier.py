"""ESNClassifier's probabilities: scores at a temperature fitted on rows left out."""

import joblib
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

import reservoir
from reservoir import ESNClassifier
from reservoir.datasets import sine_square
from reservoir.dynamics import run
from reservoir.model_selection import stack_sequences
from reservoir.readouts.row_sample import CAPACITY, RowSample
from reservoir.readouts.temperature import fitted_temperature

pytestmark = pytest.mark.both_engines


def three_waves(n, seed=0):
    """Noisy waves of three periods that take turns, and which one it is."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(rng.integers(0, 3, n // 20 + 1), 20)[:n]
    phase = np.cumsum(2 * np.pi / np.array([5.0, 7.0, 11.0])[labels])
    return (np.sin(phase) + 0.5 * rng.normal(size=n))[:, None], labels


# --- the rows that are kept --------------------------------------------------------------------


def sampled(n, blocks, seed=0):
    """What is kept of n rows that come in blocks, into several samples that are merged."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, n, blocks - 1))
    parts = np.split(np.arange(n), cuts)
    samples = [RowSample() for _ in range(3)]
    for k in rng.permutation(len(parts)):
        rows = parts[k]
        samples[rng.integers(3)].add(rows, rows[:, None] * 1.0, rows[:, None] * 2.0)
    total = RowSample()
    for sample in samples:
        total.merge(sample)
    return total


@pytest.mark.parametrize("n", [3, CAPACITY, CAPACITY + 1, 100_000])
def test_blocks_orders_and_merges_do_not_matter_to_what_is_kept(n):
    first = sampled(n, 1)
    numbers, features, targets, weights = first.rows()
    assert min(n, 0.4 * CAPACITY) <= len(numbers) <= CAPACITY
    assert np.array_equal(features[:, 0], numbers)
    assert np.array_equal(targets[:, 0], 2 * numbers)
    assert np.array_equal(weights, np.ones(len(numbers)))
    for seed in range(5):
        again = sampled(n, 30, seed)
        assert again.level == first.level
        assert np.array_equal(again.rows()[0], numbers)


def test_what_is_kept_has_no_period():
    numbers, *_ = sampled(200_000, 1).rows()
    for period in (2, 3, 8, 10, 64):
        counts = np.bincount(numbers % period, minlength=period)
        expected = len(numbers) / period
        assert ((counts - expected) ** 2 / expected).sum() < period + 4 * np.sqrt(2 * period)
    assert abs(numbers.mean() / 200_000 - 0.5) < 4 / np.sqrt(12 * len(numbers))


# --- the temperature ---------------------------------------------------------------------------


def left_out_scores(features, targets, weights, alphas, fit_intercept):
    """Scores of each row under a ridge fitted on all others; a penalty for each output."""
    scores = np.empty_like(targets)
    for i in range(len(features)):
        rest = np.arange(len(features)) != i
        for k, alpha in enumerate(np.broadcast_to(alphas, targets.shape[1])):
            ridge = Ridge(alpha, fit_intercept=fit_intercept, solver="svd")
            ridge.fit(features[rest], targets[rest, k], weights[rest])
            scores[i, k] = ridge.predict(features[i : i + 1])[0]
    return scores


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"alpha": [1e-3, 1.0, 10.0]},
        {"alpha": [1e-3, 1.0, 10.0], "alpha_per_target": True},
        {"solver": "qr"},
        {"solver": "qr", "alpha": [1e-3, 1.0]},
        {"alpha": 1e-9, "solver": "qr"},
        {"include_input": False, "class_weight": "balanced"},
    ],
)
def test_the_temperature_is_that_of_fits_without_each_row(n_classes, options):
    X, y = three_waves(80)
    y = np.minimum(y, n_classes - 1)
    weights = np.random.default_rng(0).integers(0, 3, len(y)) * 0.7
    clf = ESNClassifier(20, washout=20, random_state=0, **options).fit(X, y, weights)
    states = run(clf.reservoir_, X)
    features = np.hstack([states, X]) if clf.include_input else states
    columns = 2.0 * (y[:, None] == clf.classes_) - 1
    columns = columns[:, 1:] if n_classes == 2 else columns
    if clf.class_weight:
        weights = weights * (len(y) / np.bincount(y) / n_classes)[y]
    used = np.flatnonzero(weights * (np.arange(len(y)) >= 20))
    given = features[used], columns[used], weights[used]
    scores = left_out_scores(*given, clf.alpha_, clf.fit_intercept)
    expected = fitted_temperature(scores, columns[used], weights[used])
    assert clf.temperature_ == pytest.approx(expected, rel=1e-6)


def test_it_depends_neither_on_workers_nor_on_chunks(tmp_path):
    Xs, ys = zip(*(three_waves(500 + 100 * i, seed=i) for i in range(15)), strict=True)
    network = ESNClassifier(30, washout=10, random_state=0)
    clf = network.fit(list(Xs), list(ys))
    for n_jobs in (1, 2):
        again = ESNClassifier(30, washout=10, random_state=0, n_jobs=n_jobs)
        with joblib.parallel_config("threading"):
            assert again.fit(list(Xs), list(ys)).temperature_ == clf.temperature_
    table, labels, _ = stack_sequences(list(Xs), list(ys))
    for n_rows in (1234, 10_000):
        chunks = ESNClassifier(30, washout=10, random_state=0, sequence_column=0)
        for begin in range(0, len(table), n_rows):
            rows = slice(begin, begin + n_rows)
            chunks.partial_fit(table[rows], labels[rows], classes=[0, 1, 2])
        assert chunks.temperature_ == pytest.approx(clf.temperature_, rel=1e-9)
    # a chunk after loading goes on as before
    reservoir.save(chunks, tmp_path / "clf.npz")
    loaded = reservoir.load(tmp_path / "clf.npz")
    assert loaded.temperature_ == chunks.temperature_
    for each in (loaded, chunks):
        each.partial_fit(table[:300], labels[:300], new_sequence=True)
    assert loaded.temperature_ == chunks.temperature_


def calibration_error(y, proba, n_bins=10):
    """Mean distance of the confidence from the accuracy, over bins of confidence."""
    right, sure = proba.argmax(axis=1) == y, proba.max(axis=1)
    bins = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    gaps = [abs((right - sure)[bins == k].sum()) for k in range(n_bins)]
    return sum(gaps) / len(y)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_probabilities_of_new_rows_are_as_probable_as_said(dtype):
    """Better by a temperature in most series, and not much worse in the others."""
    gains, errors, shares = [], [], []
    for seed in range(9):
        X, y = three_waves(6000, seed)
        clf = ESNClassifier(100, dtype=dtype, random_state=seed).fit(X[:4000], y[:4000])
        proba = clf.predict_proba(X[4000:])
        assert proba.dtype == dtype
        raw = np.exp(clf.decision_function(X[4000:]))
        raw /= raw.sum(axis=1, keepdims=True)
        gains.append(log_loss(y[4000:], raw) - log_loss(y[4000:], proba))
        errors.append(calibration_error(y[4000:], proba))
        shares.append(errors[-1] / calibration_error(y[4000:], raw))
    assert min(gains) > -0.01
    assert np.median(gains) > 0.02
    assert np.median(errors) < 0.05
    assert np.median(shares) < 0.5


def test_labels_without_error_are_not_certain(global_random_seed):
    X, y = sine_square(2000, random_state=global_random_seed)
    clf = ESNClassifier(100, random_state=global_random_seed).fit(X[:1500], y[:1500])
    proba = clf.predict_proba(X[1500:])
    assert 0 < proba.min() < 0.01
    assert log_loss(y[1500:], proba) < 0.05


def test_a_network_saved_before_there_was_a_temperature_says_what_it_said():
    X, y = three_waves(500)
    clf = ESNClassifier(20, random_state=0).fit(X, y)
    del clf.temperature_
    raw = np.exp(clf.decision_function(X))
    np.testing.assert_allclose(clf.predict_proba(X), raw / raw.sum(axis=1, keepdims=True))
