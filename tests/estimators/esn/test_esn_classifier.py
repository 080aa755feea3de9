"""ESNClassifier: labels, scores, and probabilities at a temperature fitted on held-out rows."""

import itertools

import joblib
import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import accuracy_score, log_loss

import reservoir
from reservoir import ESNClassifier
from reservoir.datasets import sine_square
from reservoir.dynamics import run
from reservoir.model_selection import stack_sequences
from reservoir.readouts.row_sample import CAPACITY, RowSample
from reservoir.readouts.selection import Runs
from reservoir.readouts.temperature import fitted_temperature

pytestmark = pytest.mark.both_engines


def three_waves(n, seed=0):
    """Noisy waves of three periods that take turns, and which one it is."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(rng.integers(0, 3, n // 20 + 1), 20)[:n]
    phase = np.cumsum(2 * np.pi / np.array([5.0, 7.0, 11.0])[labels])
    return (np.sin(phase) + 0.5 * rng.normal(size=n))[:, None], labels


class TestClassifier:
    @staticmethod
    def data(n=600, n_classes=3, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (n, 2))
        point = np.column_stack([X[:, 0], np.concatenate([[0], X[:-1, 1]])])  # now, one step ago
        angle = 2 * np.pi * np.arange(n_classes) / n_classes
        y = np.argmax(point @ np.array([np.cos(angle), np.sin(angle)]), axis=1)
        return X, np.array(["low", "mid", "top"])[y]

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_scores_labels_and_probabilities_agree(self, n_classes, global_random_seed):
        X, y = self.data(2400, n_classes=n_classes, seed=global_random_seed)
        clf = ESNClassifier(100, random_state=global_random_seed).fit(X[:2000], y[:2000])
        labels, scores = clf.predict(X[2000:]), clf.decision_function(X[2000:])
        proba = clf.predict_proba(X[2000:])
        assert accuracy_score(y[2000:], labels) > 0.85
        assert clf.score(X[2000:], y[2000:]) == accuracy_score(y[2000:], labels)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        np.testing.assert_array_equal(clf.predict_log_proba(X[2000:]), np.log(proba))
        logs, state = clf.predict_log_proba(X[2000:], return_state=True)
        np.testing.assert_array_equal(logs, np.log(proba))
        assert state.shape == (100,)
        assert np.array_equal(clf.classes_[proba.argmax(axis=1)], labels)
        if n_classes == 2:
            assert scores.shape == (400,)
            assert np.array_equal(clf.classes_[(scores > 0).astype(int)], labels)
            odds = np.log(proba[:, 1] / proba[:, 0])
            np.testing.assert_allclose(odds, 2 * scores / clf.temperature_, atol=1e-9)
        else:
            assert np.array_equal(clf.classes_[scores.argmax(axis=1)], labels)

    def test_ridge_on_signs_is_scikit_learns(self):
        from sklearn.linear_model import RidgeClassifier

        X, y = self.data()
        clf = ESNClassifier(50, alpha=0.1, washout=0, random_state=0).fit(X, y)
        H = np.hstack([clf.states(X, initial_state="zeros"), X])
        reference = RidgeClassifier(0.1).fit(H, y)
        scores = clf.decision_function(X, initial_state="zeros")
        np.testing.assert_allclose(scores, reference.decision_function(H), atol=1e-8)

    @pytest.mark.parametrize("class_weight", ["balanced", {"low": 5.0}])
    def test_class_weight(self, class_weight):
        from sklearn.linear_model import RidgeClassifier

        X, y = self.data()
        clf = ESNClassifier(
            50, alpha=0.1, washout=0, class_weight=class_weight, random_state=0
        ).fit(X, y)
        H = np.hstack([clf.states(X, initial_state="zeros"), X])
        reference = RidgeClassifier(0.1, class_weight=class_weight).fit(H, y)
        scores = clf.decision_function(X, initial_state="zeros")
        np.testing.assert_allclose(scores, reference.decision_function(H), atol=1e-8)
        with pytest.raises(ValueError, match="partial_fit"):
            clf.partial_fit(X, y)

    def test_own_readout(self):
        X, y = self.data()
        clf = ESNClassifier(50, readout=LogisticRegression(max_iter=1000), random_state=0)
        clf.fit(X[:400], y[:400])
        H = np.hstack([clf.states(X[400:]), X[400:]])
        assert np.array_equal(clf.predict(X[400:]), clf.readout_.predict(H))
        np.testing.assert_array_equal(clf.predict_proba(X[400:]), clf.readout_.predict_proba(H))
        logs = np.log(clf.readout_.predict_proba(H))
        np.testing.assert_array_equal(clf.predict_log_proba(X[400:]), logs)
        assert not hasattr(ESNClassifier(readout=Ridge()), "predict_proba")
        assert not hasattr(ESNClassifier(readout=Ridge()), "predict_log_proba")
        online = ESNClassifier(50, readout=SGDClassifier(random_state=0), random_state=0)
        online.partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
        assert online.predict(X).shape == y.shape

    def test_feedback_of_scores(self, global_random_seed):
        X, y = self.data(seed=global_random_seed)
        options = {"feedback": True, "feedback_scaling": 0.1, "random_state": global_random_seed}
        clf = ESNClassifier(50, **options)
        clf.fit(X[:400], y[:400])
        assert clf.score(X[400:], y[400:]) > 0.8
        assert clf.state_.shape == (53,)


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
    """Scores of eight parts of equal weight, each under ridges fitted on all other rows."""
    scores = np.empty_like(targets)
    inner = np.searchsorted(np.cumsum(weights), weights.sum() * np.arange(1, 8) / 8 + 1e-6, "right")
    ends = [0, *inner, len(features)]
    for start, end in itertools.pairwise(ends):
        rest = np.delete(np.arange(len(features)), slice(start, end))
        for k, alpha in enumerate(np.broadcast_to(alphas, targets.shape[1])):
            ridge = Ridge(alpha, fit_intercept=fit_intercept, solver="svd")
            ridge.fit(features[rest], targets[rest, k], weights[rest])
            scores[start:end, k] = ridge.predict(features[start:end])
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
def test_the_temperature_is_that_of_fits_without_each_part(n_classes, options):
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
    expected = fitted_temperature(scores, columns[used], weights[used], in_order=True)
    if getattr(clf, "alpha_selection_", None) == "halves":
        # scores of rows in the other half may be further too large
        centre = 0.0 if n_classes == 2 else columns.mean()
        own = best_factor([(scores - centre, columns[used] - centre, weights[used])])
        parts, ends = np.array(Runs().cut([len(y)], [20])[0]).T
        part = np.repeat(parts, np.diff(ends, prepend=0))[used]
        halves = [scores_of_half(*given, part == k, clf.alpha_, clf.fit_intercept) for k in (0, 1)]
        expected *= max(min(own, 1.0) / min(max(best_factor(halves), 0.01), 1.0), 1.0)
    assert clf.temperature_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n_units", [1, 2, 3])
def test_few_units_are_enough_for_its_defaults(n_units):
    X, y = three_waves(80)
    clf = ESNClassifier(n_units, random_state=0).fit(X, y)
    leaks = np.broadcast_to(clf.reservoir_.leak_rate, n_units)
    np.testing.assert_array_equal(leaks, [1.0, 0.3, 0.1][:n_units])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("shares", [(0.85, 0.15), (0.7, 0.2, 0.1)])
def test_labels_that_nothing_tells_get_their_shares(shares):
    """Penalties are judged by scores as `predict` compares them: noise leaves the largest class."""
    right, losses = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(600, 3)), rng.choice(len(shares), 600, p=shares)
        clf = ESNClassifier(60, random_state=seed).fit(X[:300], y[:300])
        right.append(clf.score(X[300:], y[300:]) - np.mean(y[300:] == 0))
        given = clf.predict_proba(X[300:])[np.arange(300), y[300:]]
        losses.append(-np.log(given).mean() - entropy(shares))
    assert np.mean(right) > -0.01
    assert np.mean(losses) < 0.15


def best_factor(parts):
    """Return the factor by which deviations of scores have the least squared error."""
    scores, targets, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return np.sum(weights[:, None] * scores * targets) / np.sum(weights[:, None] * scores**2)


def scores_of_half(features, targets, weights, scored, alpha, fit_intercept):
    """Return deviations of a half's scores and targets from the classes' mean, and weights."""
    others = ~scored
    ridge = Ridge(alpha, fit_intercept=fit_intercept, solver="svd")
    ridge.fit(features[others], targets[others], weights[others])
    centre = 0.0 if targets.shape[1] == 1 else targets.mean()
    scores = ridge.predict(features[scored]).reshape(scored.sum(), -1)
    return scores - centre, targets[scored] - centre, weights[scored]


def test_it_depends_neither_on_workers_nor_on_chunks(tmp_path):
    Xs, ys = zip(*(three_waves(200 + 40 * i, seed=i) for i in range(15)), strict=True)
    network = ESNClassifier(30, washout=10, random_state=0)
    clf = network.fit(list(Xs), list(ys))
    for n_jobs in (1, 2):
        again = ESNClassifier(30, washout=10, random_state=0, n_jobs=n_jobs)
        with joblib.parallel_config("threading"):
            assert again.fit(list(Xs), list(ys)).temperature_ == clf.temperature_
    table, labels, _ = stack_sequences(list(Xs), list(ys))
    for n_rows in (490, 4000):
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
        each.partial_fit(table[:200], labels[:200], new_sequence=True)
    assert loaded.temperature_ == chunks.temperature_


def calibration_error(y, proba, n_bins=10):
    """Mean distance of the confidence from the accuracy, over bins of confidence."""
    right, sure = proba.argmax(axis=1) == y, proba.max(axis=1)
    bins = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    gaps = [abs((right - sure)[bins == k].sum()) for k in range(n_bins)]
    return sum(gaps) / len(y)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_probabilities_of_new_rows_are_as_probable_as_said(dtype):
    """Better by a temperature in most series, and not much worse in the others."""
    gains, errors, shares = [], [], []
    for seed in range(9):
        X, y = three_waves(4000, seed)
        clf = ESNClassifier(60, dtype=dtype, random_state=seed).fit(X[:2500], y[:2500])
        proba = clf.predict_proba(X[2500:])
        assert proba.dtype == dtype
        raw = np.exp(clf.decision_function(X[2500:]))
        raw /= raw.sum(axis=1, keepdims=True)
        gains.append(log_loss(y[2500:], raw) - log_loss(y[2500:], proba))
        errors.append(calibration_error(y[2500:], proba))
        shares.append(errors[-1] / calibration_error(y[2500:], raw))
    assert min(gains) > -0.01
    assert np.median(gains) > 0.02
    assert np.median(errors) < 0.05
    assert np.median(shares) < 0.5


@pytest.mark.parametrize(("selection", "most"), [("auto", 0.05), ("gcv", 0.5)])
def test_few_runs_of_labels_are_no_reason_to_be_sure(selection, most, global_random_seed):
    """A hidden Markov chain of two states, whose runs last for 20 to 33 rows, seen in noise."""
    excess = []
    for k in range(7):
        rng = np.random.default_rng([global_random_seed, k])
        y, drawn = np.zeros(900, dtype=int), rng.random(900)
        drawn[100] = 1.0  # one change at least among the rows that are learned
        for t in range(1, len(y)):
            y[t] = y[t - 1] ^ (drawn[t] > (0.97, 0.95)[y[t - 1]])
        X = y[:, None] + 1.2 * rng.normal(size=(len(y), 1))
        clf = ESNClassifier(150, alpha_selection=selection, random_state=k).fit(X[:200], y[:200])
        shares = np.tile(np.bincount(y[:200]) / 200, (700, 1))
        losses = (log_loss(y[200:], p) for p in (clf.predict_proba(X[200:]), shares))
        excess.append(np.subtract(*losses))
    assert np.median(excess) < most


def test_labels_without_error_are_not_certain(global_random_seed):
    X, y = sine_square(2000, random_state=global_random_seed)
    clf = ESNClassifier(100, random_state=global_random_seed).fit(X[:1500], y[:1500])
    proba = clf.predict_proba(X[1500:])
    assert 0 < proba.min() < 0.01
    assert log_loss(y[1500:], proba) < 0.05
