"""A filter over the labels of an echo state network: `ESNClassifier(transition="auto")`."""

import copy
import functools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

from reservoir import ESNClassifier, load, save
from reservoir.readouts.label_filter import (
    LabelFilter,
    LabelledSequence,
    class_frequencies,
    fitted_filter,
    neutral_filter,
    transitions,
)
from reservoir.readouts.temperature import probabilities

pytestmark = pytest.mark.one_engine

MEMORYLESS = {"n_units": 30, "leak_rate": 1.0, "spectral_radius": 0.0}


def hidden_states(n_rows, n_classes=3, stay=0.97, noise=1.0, seed=0):
    """Return noisy levels of a Markov chain, and its states."""
    rng = np.random.default_rng([5, seed])
    y = np.empty(n_rows, dtype=int)
    y[0] = 0
    for t in range(1, n_rows):
        y[t] = y[t - 1] if rng.random() < stay else rng.integers(n_classes)
    return (y + noise * rng.standard_normal(n_rows))[:, None], y


def fitted(*args, **options):
    """Return a filtered network without memory, and rows after those of its training."""
    clf, X, y = _fitted(*args, **options)
    return copy.deepcopy(clf), X, y


@functools.cache
def _fitted(n_classes=3, seed=0, **options):
    X, y = hidden_states(1500, n_classes, seed=seed)
    settings = {**MEMORYLESS, "random_state": seed, "transition": "auto", **options}
    clf = ESNClassifier(**settings).fit(X[:1000], y[:1000])
    return clf, X[1000:], y[1000:]


# --- the filter


def some_filter(n_classes, rng):
    frequencies = rng.dirichlet(np.ones(n_classes))
    return LabelFilter(frequencies, rng.dirichlet(np.ones(n_classes), n_classes), 0.4)


def naive(scores, temperature, one):
    """Filter row by row with the formula as it stands."""
    shares, p, rows = probabilities(scores, temperature), None, []
    for q in shares:
        prior = one.frequencies if p is None else one.transition.T @ p
        p = np.array(
            [a * (b / c) ** one.power for a, b, c in zip(prior, q, one.frequencies, strict=True)]
        )
        p = p / p.sum()
        rows.append(p)
    return np.array(rows)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_filter_is_the_formula(n_classes, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    one = some_filter(n_classes, rng)
    scores = rng.normal(size=(50, 1 if n_classes == 2 else n_classes))
    start = np.zeros(n_classes)
    found, end = one.run(scores, 0.7, start)
    np.testing.assert_allclose(probabilities(found, 0.7), naive(scores, 0.7, one), atol=1e-12)
    first, between = one.run(scores[:20], 0.7, start)
    second, last = one.run(scores[20:], 0.7, between)
    np.testing.assert_allclose(np.vstack([first, second]), found, atol=1e-12)
    np.testing.assert_allclose(last, end, atol=1e-12)


def test_without_power_and_transitions_nothing_is_filtered():
    rng = np.random.default_rng(0)
    scores, one = rng.normal(size=(9, 3)), neutral_filter(3)
    found, end = one.run(scores, 0.7, np.zeros(3))
    np.testing.assert_array_equal(found, scores)
    assert not end.any()
    # the same filter by its formula
    close = LabelFilter(one.frequencies, one.transition, np.nextafter(1.0, 0.0))
    filtered = close.run(scores, 0.7, np.zeros(3))[0]
    np.testing.assert_allclose(probabilities(filtered, 0.7), probabilities(scores, 0.7), atol=1e-12)


def test_extreme_scores_stay_finite():
    one = LabelFilter(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]]), 1.0)
    scores = np.array([[1e6], [-1e6], [1e6]])
    found, end = one.run(scores, 1.0, np.zeros(2))
    assert np.isfinite(found).all()
    assert np.isfinite(end).all()
    assert (np.sign(found) == np.sign(scores)).all()


def test_pairs_are_counted_within_sequences_by_their_weights():
    shares = np.full((4, 2), 0.5)
    scored = np.ones(4, dtype=bool)
    first = LabelledSequence(shares, np.array([0, 0, 1, 1]), np.array([1.0, 1, 2, 1]), scored)
    second = LabelledSequence(shares, np.array([0, 1, 1, 0]), np.array([1.0, 0, 1, 1]), scored)
    frequencies = class_frequencies([first, second], 2)
    # weights 4 and 4 in 7 rows, and half an average row each
    np.testing.assert_allclose(frequencies, [0.5, 0.5])
    # 0-0: 1, 0-1: 2, 1-1: 1, then 1-0: 1; the row of weight 0 is in no pair; one average pair more
    counts = np.array([[1.0, 2.0], [1.0, 1.0]]) + 0.5 * 5 / 4
    expected = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(transitions([first, second], frequencies), expected)


def test_the_filter_with_the_least_log_loss_of_held_out_rows_is_chosen(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    sequences = []
    for seed, n_rows in enumerate((300, 1700, 40)):
        X, y = hidden_states(n_rows, seed=[global_random_seed, seed])
        shares = np.exp(-0.5 * (X - np.arange(3)) ** 2)
        shares /= shares.sum(axis=1, keepdims=True)
        sequences.append(LabelledSequence(shares, y, np.ones(n_rows), rng.random(n_rows) < 0.8))
    chosen = fitted_filter(sequences)

    def loss(one):
        total = 0.0
        for shares, labels, weights, scored in sequences:
            scores = one.run(np.log(shares), 1.0, np.zeros(3))[0]
            right = probabilities(scores, 1.0)[np.arange(len(labels)), labels]
            total -= float(np.log(right) @ (weights * scored))
        return total

    independent = LabelFilter(chosen.frequencies, np.tile(chosen.frequencies, (3, 1)), 1.0)
    assert not chosen.is_neutral
    assert loss(chosen) < loss(independent)
    for power in (0.5, 1.0):
        other = LabelFilter(chosen.frequencies, chosen.transition, power)
        assert loss(chosen) <= loss(other) + 1e-3 * loss(other)  # pieces restart, whole ones do not


# --- what it brings


def test_labels_that_last_are_found_without_memory(global_random_seed):
    gains = []  # in accuracy, in log loss: a thousand rows of twenty stays lose in six seeds of 100
    for seed in range(global_random_seed, global_random_seed + 5):
        clf, X, y = fitted(seed=seed)
        X_train, y_train = hidden_states(1500, seed=seed)
        plain = clone(clf).set_params(transition=None).fit(X_train[:1000], y_train[:1000])
        losses = [log_loss(y, one.predict_proba(X)) for one in (clf, plain)]
        gains.append([clf.score(X, y) - plain.score(X, y), losses[1] - losses[0]])
    assert (np.median(gains, axis=0) > 0.03).all()


@pytest.mark.slow
def test_labels_without_persistence_are_not_worse_than_noise(global_random_seed):
    gains = []
    for seed in range(global_random_seed, global_random_seed + 5):
        X, y = hidden_states(1500, stay=0.0, seed=seed)
        both = [
            ESNClassifier(**MEMORYLESS, random_state=seed, transition=transition)
            .fit(X[:1000], y[:1000])
            .predict_proba(X[1000:])
            for transition in (None, "auto")
        ]
        plain, filtered = (log_loss(y[1000:], shares) for shares in both)
        gains.append(plain - filtered)
    assert np.mean(gains) > -0.01


# --- runs


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_chunks_and_sessions_equal_the_whole(n_classes, dtype):
    clf, X, _y = fitted(n_classes, dtype=dtype)
    close = {"rtol": 0, "atol": 1e-12 if dtype == "float64" else 1e-5}
    whole, session, state, chunks, steps = clf.predict_proba(X), clf.stream(), "last", [], []
    for rows in np.split(X, [1, 90, 91, 300]):
        found, state = clf.predict_proba(rows, initial_state=state, return_state=True)
        chunks.append(found)
        steps.append(session.predict_proba(rows))
        np.testing.assert_allclose(session.state, state, **close)
    np.testing.assert_allclose(np.vstack(chunks), whole, **close)
    np.testing.assert_allclose(np.vstack(steps), whole, **close)
    assert state.shape == (30 + n_classes,) == clf.state_.shape
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[whole.argmax(axis=1)])
    # rows of training, then those that follow
    both = np.vstack([hidden_states(1500, n_classes)[0][:1000], X])
    np.testing.assert_allclose(
        clf.predict_proba(both, initial_state="zeros")[1000:], whole, **close
    )


def test_a_state_of_the_units_alone_begins_a_sequence():
    clf, X, _ = fitted()
    fresh = clf.predict_proba(X, initial_state="zeros")
    np.testing.assert_array_equal(clf.predict_proba(X, initial_state=np.zeros(30)), fresh)
    np.testing.assert_array_equal(clf.predict_proba(X, initial_state=np.zeros((1, 30))), fresh)
    with pytest.raises(ValueError, match=r"initial_state must be .* shape \(31,\)"):
        clf.predict(X, initial_state=np.zeros(31))
    assert clf.states(X).shape == (len(X), 30)


def test_the_filter_restarts_in_each_sequence():
    parts = [hidden_states(n, seed=n) for n in (400, 90, 700)]
    clf = ESNClassifier(**MEMORYLESS, random_state=0, transition="auto")
    clf.fit([X for X, _ in parts], [y for _, y in parts])
    together = clf.predict_proba([X for X, _ in parts])
    for (X, _), found in zip(parts, together, strict=True):
        np.testing.assert_allclose(clf.predict_proba(X), found, rtol=0, atol=1e-12)


def test_scores_of_classes_are_not_filtered():
    clf, X, _ = fitted()
    plain = clone(clf).set_params(transition=None)
    X_train, y_train = hidden_states(1500)
    plain.fit(X_train[:1000], y_train[:1000])
    np.testing.assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=1e-10)
    assert clf.temperature_ == pytest.approx(plain.temperature_)
    assert not hasattr(plain, "transition_")


def test_a_session_learns_and_keeps_the_filter():
    clf, X, y = fitted()
    session = clf.stream()
    session.predict(X[:50])
    state = session.state.copy()
    session.learn(X[:50], y[:50])
    np.testing.assert_allclose(session.state, state, rtol=0, atol=1e-12)
    one = session.to_estimator()
    np.testing.assert_array_equal(one.transition_, clf.transition_)
    np.testing.assert_allclose(
        one.predict_proba(X[50:]), session.predict_proba(X[50:]), rtol=0, atol=1e-12
    )


# --- settings


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 1e-3},
        {"alpha": 1e-3, "solver": "qr"},
        {"alpha_selection": "gcv"},
        {"alpha_selection": "blocked"},
        {"alpha_selection": "holdout"},
        {"alpha_per_target": True},
        {"class_weight": "balanced"},
        {"bidirectional": True, "initial_state": "zeros"},
        {"noise": 1e-3},
        {"washout": 200},
    ],
)
def test_any_selection_has_rows_to_choose_by(options):
    clf, X, y = fitted(**options)
    assert clf.transition_.shape == (3, 3)
    assert (np.diag(clf.transition_) > 0.5).all()
    np.testing.assert_allclose(clf.transition_.sum(axis=1), 1.0)
    assert 0 < clf.transition_power_ <= 1
    shares = clf.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert clf.score(X, y) > 0.6


def test_too_few_rows_for_two_halves_are_not_filtered():
    X, y = hidden_states(12, stay=0.5)
    clf = ESNClassifier(5, washout=0, random_state=0, transition="auto").fit(X, y)
    assert clf.transition_power_ == 1
    np.testing.assert_allclose(clf.transition_, 1 / len(clf.classes_))
    plain = clone(clf).set_params(transition=None).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-10)


def test_rows_of_weight_zero_count_no_transitions():
    X, y = hidden_states(1000)
    weights = np.ones(1000)
    weights[500:] = 0.0
    settings = {**MEMORYLESS, "random_state": 0, "transition": "auto", "alpha": 1e-2}
    one = ESNClassifier(**settings).fit(X, y, weights)
    changed = np.where(weights > 0, y, 0)
    other = ESNClassifier(**settings).fit(X, changed, weights)
    np.testing.assert_array_equal(one.transition_, other.transition_)


def test_a_saved_session_filters_the_same(tmp_path):
    clf, X, _ = fitted(n_classes=2)
    session = clf.stream()
    session.predict(X[:20])
    save(session, tmp_path / "session.npz")
    np.testing.assert_array_equal(
        load(tmp_path / "session.npz").predict_proba(X[20:]), session.predict_proba(X[20:])
    )


def test_a_search_chooses_between_none_and_auto():
    X, y = hidden_states(600)
    clf = ESNClassifier(**MEMORYLESS, random_state=0, initial_state="zeros")
    search = GridSearchCV(clf, {"transition": [None, "auto"]}, cv=2).fit(X, y)
    assert search.best_params_ == {"transition": "auto"}


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readout": LogisticRegression()}, "readout=LogisticRegression"),
        ({"feedback": True}, "feedback=True"),
        ({"time_column": 0}, "time_column=0"),
        ({"forgetting": 0.99}, "forgetting=0.99"),
    ],
)
def test_what_cannot_be_filtered_is_refused_by_name(options, message):
    X, y = hidden_states(100)
    X = np.column_stack([np.arange(100.0), X])
    clf = ESNClassifier(5, transition="auto", **options)
    with pytest.raises(ValueError, match=f'transition="auto" cannot be combined with {message}'):
        clf.fit(X, y)


def test_chunks_of_training_and_other_values_are_refused():
    X, y = hidden_states(100)
    with pytest.raises(ValueError, match=r"needs fit: partial_fit keeps no rows"):
        ESNClassifier(5, transition="auto").partial_fit(X, y)
    for value in ("on", True, 0.5):
        with pytest.raises(ValueError, match=r'transition=.* must be None or "auto"'):
            ESNClassifier(5, transition=value).fit(X, y)
    clf, X, y = fitted()
    with pytest.raises(ValueError, match="needs fit"):
        clf.partial_fit(X, y)
