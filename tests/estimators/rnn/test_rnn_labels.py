"""Trained networks: labels, and targets for whole sequences."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.utils import compute_sample_weight

from reservoir import RNNClassifier, RNNRegressor
from reservoir.estimators.rnn import network_estimator, training_run
from reservoir.model_selection import stack_sequences
from reservoir.training.bptt import predict

pytestmark = pytest.mark.both_engines

CELLS = ("rnn", "leaky", "lstm", "gru")


def sums(n=40, seed=0, lengths=(5, 15)):
    """Sequences, and the mean of their first column."""
    rng = np.random.default_rng(seed)
    Xs = [rng.uniform(-1, 1, (rng.integers(*lengths), 2)) for _ in range(n)]
    return Xs, np.array([X[:, 0].mean() for X in Xs])


def per_step(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    total = X[:, 0] + np.append(0, X[:-1, 1])
    return X, np.array(["down", "flat", "up"])[np.digitize(total, [-0.4, 0.4])]


def make(cls, **params):
    return cls(**{"n_units": 8, "init": "esn", "max_iter": 3, "random_state": 0, **params})


def last_outputs(rnn, Xs):
    return np.stack([predict(rnn.network_, rnn.params_, X[:, None])[0][-1, 0] for X in Xs])


# -------------------------------------------------------------------------- one target a sequence


@pytest.mark.parametrize("cell", CELLS)
class TestLast:
    @pytest.mark.fast_cases(1)
    def test_numbers(self, cell):
        Xs, y = sums(30)
        rnn = make(RNNRegressor, cell=cell, target="last", max_iter=20, learning_rate_init=0.01)
        rnn.fit(Xs, y)
        assert rnn.predict(Xs).shape == y.shape
        np.testing.assert_allclose(rnn.predict(Xs), last_outputs(rnn, Xs)[:, 0], atol=1e-12)
        np.testing.assert_allclose(rnn.best_loss_, np.mean((rnn.predict(Xs) - y) ** 2))
        assert rnn.score(Xs, y) == pytest.approx(r2_score(y, rnn.predict(Xs)))
        assert rnn.score(Xs, y) > 0.5
        assert rnn.washout_.tolist() == [0] * len(Xs)
        several = clone(rnn).fit(Xs, np.column_stack([y, -y]))
        assert several.predict(Xs).shape == (len(Xs), 2)
        assert clone(rnn).fit(Xs, y[:, None]).predict(Xs).shape == (len(Xs), 1)

    @pytest.mark.fast_cases(1)
    def test_containers(self, cell):
        Xs, y = sums()
        table, _, _ = stack_sequences(Xs, [X[:, 0] for X in Xs])
        plain = make(RNNRegressor, cell=cell, target="last").fit(Xs, y)
        by_id = make(RNNRegressor, cell=cell, target="last", sequence_column=0).fit(table, y)
        packed = np.empty(len(Xs), object)
        packed[:] = Xs
        objects = make(RNNRegressor, cell=cell, target="last").fit(packed, y)
        for other, X in ((by_id, table), (objects, packed)):
            np.testing.assert_array_equal(other.params_["W"], plain.params_["W"])
            np.testing.assert_array_equal(other.predict(X), plain.predict(Xs))
        same = np.stack([X[:5] for X in Xs])
        cube = make(RNNRegressor, cell=cell, target="last").fit(same, y)
        rows = make(RNNRegressor, cell=cell, target="last").fit(list(same), y)
        np.testing.assert_array_equal(cube.predict(same), rows.predict(list(same)))

    @pytest.mark.fast_cases(1)
    def test_weights(self, cell):
        Xs, y = sums()
        weights = np.ones(len(Xs))
        weights[::3] = 0
        wild = np.where(weights > 0, y, 100.0)
        one, two = (
            make(RNNRegressor, cell=cell, target="last").fit(Xs, target, sample_weight=weights)
            for target in (y, wild)
        )
        np.testing.assert_array_equal(one.predict(Xs), two.predict(Xs))
        assert one.score(Xs, y, sample_weight=weights) == two.score(Xs, wild, weights)

    @pytest.mark.fast_cases(1)
    def test_labels(self, cell):
        Xs, values = sums(60)
        y = np.where(values > 0, "up", "down")
        clf = make(RNNClassifier, cell=cell, target="last", max_iter=20, learning_rate_init=0.01)
        clf.fit(Xs, y)
        assert clf.classes_.tolist() == ["down", "up"]
        assert clf.predict(Xs).shape == y.shape
        proba = clf.predict_proba(Xs)
        np.testing.assert_allclose(proba, last_outputs(clf, Xs), atol=1e-12)
        np.testing.assert_allclose(clf.best_loss_, log_loss(y, proba), rtol=1e-6)
        np.testing.assert_array_equal(clf.predict(Xs), clf.classes_[proba.argmax(1)])
        assert clf.decision_function(Xs).shape == (60,)
        np.testing.assert_array_equal(clf.decision_function(Xs) > 0, clf.predict(Xs) == "up")
        assert clf.score(Xs, y) == accuracy_score(y, clf.predict(Xs)) > 0.8
        _, states = clf.predict(Xs, return_state=True)
        assert states.shape == (60, clf.network_.cell.state_size)


def test_long_sequences_are_learned_through_and_through():
    """With a target at the end alone the gradient must reach the first row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.05, 0.05, (24, 120, 1))
    y = np.where(np.arange(24) % 2, "b", "a")
    X[:, 0, 0] = np.where(y == "b", 1, -1)
    clf = RNNClassifier(
        6, target="last", init="orthogonal", solver="lbfgs", max_iter=100, random_state=0
    )
    assert clf.fit(X, y).score(X, y) == 1.0


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("few", [1, 2, 5])
def test_early_stopping_leaves_each_class_something_to_learn_from(few, monkeypatch):
    """As long as others can be held out; and as many are held out as asked for."""
    seen = []

    def watched(estimator, network, params, data, validation, generator, **options):
        seen.append((np.stack(list(data.targets)), np.stack(list(validation.targets))))
        return run(estimator, network, params, data, validation, generator, **options)

    run = training_run.run_training
    monkeypatch.setattr(network_estimator, "run_training", watched)
    X, y = list(np.zeros((20, 3, 1))), np.where(np.arange(20) < few, "rare", "usual")
    for seed in range(15):
        make(
            RNNClassifier,
            target="last",
            early_stopping=True,
            validation_fraction=0.3,
            init="orthogonal",
            max_iter=0,
            random_state=seed,
        ).fit(X, y)
        learned, held = seen[-1]
        assert len(held) == 6
        assert (learned.sum(axis=0) > 0).all()
    assert any((held.sum(axis=0) > 0).all() for _, held in seen) == (few > 1)


def test_the_only_sequence_of_a_class_is_not_held_out():
    rng, labels = np.random.default_rng(0), np.array([1, -1, *np.zeros(18, dtype=int)])
    for _ in range(100):
        kept, out = training_run._draw_held_out(20, 0.3, rng, labels)
        assert 0 in kept
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, out])), np.arange(20))
    kept, out = training_run._draw_held_out(3, 0.4, rng, np.arange(3))  # none to spare
    assert (len(kept), len(out)) == (2, 1)


def test_last_with_early_stopping():
    Xs, y = sums(40)
    rnn = make(RNNRegressor, target="last", early_stopping=True, max_iter=10).fit(Xs, y)
    assert len(rnn.validation_loss_curve_) == len(rnn.loss_curve_) == rnn.n_iter_ + 1
    assert rnn.best_loss_ == min(rnn.validation_loss_curve_)
    with pytest.raises(ValueError, match="at least two sequences"):
        make(RNNRegressor, target="last", early_stopping=True).fit(Xs[:1], y[:1])


@pytest.mark.slow
def test_grid_search_over_three_dimensional_arrays():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 7, 2))
    y = X.mean(axis=1)[:, 0]
    labels = np.where(y > 0, "up", "down")
    for model, target in (
        (make(RNNRegressor, init="auto", target="last"), y),
        (make(RNNClassifier, init="auto", target="last"), labels),
    ):
        search = GridSearchCV(model, {"n_units": [4, 8]}, cv=3, error_score="raise")
        search.fit(X, target)
        assert search.predict(X).shape == (60,)
        assert search.best_score_ > 0.5
    rows = cross_val_predict(make(RNNRegressor, init="auto", target="last"), X, y, cv=KFold(3))
    assert np.corrcoef(rows, y)[0, 1] > 0.8


@pytest.mark.parametrize("cls", [RNNRegressor, RNNClassifier])
def test_targets_of_the_wrong_shape(cls):
    Xs, y = sums()
    y = y > 0 if cls is RNNClassifier else y
    per_row = [np.full(len(X), v) for X, v in zip(Xs, y, strict=True)]
    for wrong in (y[:-1], np.zeros((40, 2, 2))):
        with pytest.raises(ValueError, match=r"y has shape \("):
            make(cls, target="last").fit(Xs, wrong)
    with pytest.raises(ValueError, match=r"inhomogeneous|sequence"):
        make(cls, target="last").fit(Xs, per_row)
    with pytest.raises(ValueError, match="X contains 40 sequence"):
        make(cls, target="last").fit(Xs, y, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match=r'one for each row.*target="last"'):
        make(cls).fit(Xs, y)
    with pytest.raises(ValueError, match=r"requires y to be passed"):
        make(cls, target="last").fit(Xs, None)
    with pytest.raises(ValueError, match=r"target='final' is not known.*'last'"):
        make(cls, target="final").fit(Xs, y)


def test_what_needs_a_target_at_every_step():
    Xs, y = sums()
    rnn = make(RNNRegressor, target="last").fit(Xs, y)
    with pytest.raises(ValueError, match='target="last"'):
        rnn.forecast(3, context=Xs[0])
    with pytest.raises(ValueError, match="target='last'"):
        rnn.partial_fit(Xs, y)


# -------------------------------------------------------------------------- labels per step


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("params", [{}, {"loss": "hinge"}, {"cell": "gru"}, {"dtype": "float32"}])
def test_labels_per_step(params):
    X, y = per_step()
    clf = make(RNNClassifier, washout=10, max_iter=10, **params).fit(X[:200], y[:200])
    assert clf.classes_.tolist() == ["down", "flat", "up"]
    assert clf.score(X[200:], y[200:]) > 0.7
    scores = clf.decision_function(X)
    assert scores.shape == (300, 3)
    np.testing.assert_array_equal(clf.classes_[scores.argmax(1)], clf.predict(X))
    if params.get("loss") == "hinge":
        assert not hasattr(clf, "predict_proba")
        assert not hasattr(clf, "predict_log_proba")
        return
    proba = clf.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(clf.predict_log_proba(X), np.log(proba))
    np.testing.assert_allclose(np.exp(scores), proba, rtol=1e-4)
    fresh = clf.predict_proba(X[:200], initial_state="zeros")
    np.testing.assert_allclose(clf.best_loss_, log_loss(y[10:200], fresh[10:]), rtol=1e-4)


def test_streams_and_containers_of_labels():
    X, y = per_step()
    clf = make(RNNClassifier).fit(X[:200], y[:200])
    stream = clf.stream()
    rows = [stream.predict(X[200:230]), stream.predict(X[230:])]
    np.testing.assert_array_equal(np.concatenate(rows), clf.predict(X[200:]))
    several = make(RNNClassifier, max_iter=10).fit([X[:150], X[150:]], [y[:150], y[150:]])
    assert [len(p) for p in several.predict([X[:20], X[20:50]])] == [20, 30]
    assert several.score([X[:150], X[150:]], [y[:150], y[150:]]) > 0.7


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("target", ["step", "last"])
def test_class_weights_are_sample_weights(target):
    if target == "step":
        X, y = per_step()
        y = np.where(y == "up", "up", "other")
    else:
        X, values = sums(60)
        y = np.where(values > 0.1, "up", "other")
    plain = make(RNNClassifier, target=target).fit(X, y)
    for given in ("balanced", {"up": 5.0, "other": 0.5}):
        by_class = make(RNNClassifier, target=target, class_weight=given).fit(X, y)
        by_row = make(RNNClassifier, target=target).fit(
            X, y, sample_weight=compute_sample_weight(given, y)
        )
        np.testing.assert_array_equal(by_class.params_["W"], by_row.params_["W"])
        assert not np.array_equal(by_class.params_["W"], plain.params_["W"])
        both = make(RNNClassifier, target=target, class_weight=given)
        doubled = both.fit(X, y, sample_weight=np.full(len(y), 2.0))
        np.testing.assert_allclose(doubled.best_loss_, by_class.best_loss_, rtol=1e-2)


@pytest.mark.full_starts
def test_a_rare_class_counts_when_balanced(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(1000, 1))
    y = np.where(X[:, 0] + rng.normal(size=1000) > 2.2, "rare", "common")
    options = {"init": "auto", "random_state": global_random_seed}
    plain = make(RNNClassifier, **options).fit(X, y)
    balanced = make(RNNClassifier, class_weight="balanced", **options).fit(X, y)
    found = [(clf.predict(X)[y == "rare"] == "rare").mean() for clf in (plain, balanced)]
    assert found[1] > found[0] + 0.2


def test_labels_that_raise():
    X, y = per_step()
    with pytest.raises(ValueError, match=r"one class only \('up'\)"):
        make(RNNClassifier).fit(X, np.full(300, "up"))
    with pytest.raises(ValueError, match="Unknown label type"):
        make(RNNClassifier).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"loss='mse' is not known.*'cross_entropy', 'hinge'"):
        make(RNNClassifier, loss="mse").fit(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        make(RNNClassifier, class_weight="equal").fit(X, y)
    clf = make(RNNClassifier, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"continues with the classes \['down', 'flat', 'up'\]"):
        clf.fit(X, np.where(y == "flat", "level", y))
    assert clf.classes_.tolist() == ["down", "flat", "up"]


class TestPartialFit:
    def test_warm_start_is_checked_in_fit_only(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        y = X[:, 0] > 0
        rnn = RNNClassifier(4, random_state=0).partial_fit(X[:20], y[:20], classes=[False, True])
        rnn.set_params(warm_start="yes").partial_fit(X[20:], y[20:])
        with pytest.raises(TypeError, match="warm_start must be True or False; got 'yes'"):
            rnn.fit(X, y)

    def test_classes_are_named_once(self):
        X, y = per_step()
        few = y != "flat"
        clf = make(RNNClassifier)
        clf.partial_fit(X[few][:100], y[few][:100], classes=["up", "flat", "down"])
        clf.partial_fit(X, y)
        assert clf.predict_proba(X).shape == (300, 3)
        with pytest.raises(ValueError, match="differ from the classes of the first call"):
            clf.partial_fit(X, y, classes=["up", "down"])
        two = make(RNNClassifier).partial_fit(X[few][:100], y[few][:100])
        with pytest.raises(ValueError, match=r"label 'flat', which is not among.*classes="):
            two.partial_fit(X, y)
        with pytest.raises(ValueError, match="class_weight='balanced' is not supported"):
            make(RNNClassifier, class_weight="balanced").partial_fit(X, y)

    @pytest.mark.fast_cases(1)
    @pytest.mark.parametrize("online", ["bptt", "rtrl", "least_squares"])
    @pytest.mark.parametrize("loss", ["auto", "hinge"])
    def test_it_learns(self, online, loss):
        X, y = per_step(1500)
        clf = make(
            RNNClassifier,
            online=online,
            loss=loss,
            init="glorot",
            learning_rate_init=0.02,
            truncation=10,
        )
        for rows in np.split(np.arange(1200), 12):
            clf.partial_fit(X[rows], y[rows])
        assert clf.score(X[1200:], y[1200:]) > 0.7


def shapes_of_waves(n, rng):
    y, t = rng.integers(0, 2, n), np.arange(40)
    waves = np.sin(rng.uniform(0.2, 0.6, (n, 1)) * t + rng.uniform(0, 6.3, (n, 1)))
    waves = np.where(y[:, None] == 1, np.sign(waves), waves)
    return (waves + 0.2 * rng.standard_normal(waves.shape))[:, :, None], y


def early_sign(n, rng):
    y, X = rng.integers(0, 2, n), rng.uniform(-1, 1, (n, 10, 1))
    X[:, 2, 0] = np.where(y, 1, -1) * rng.uniform(0.2, 1, n)
    return X, y


def sign_of_mean(n, rng):
    X = rng.standard_normal((n, 30, 2))
    return X, (X[:, -10:].sum((1, 2)) > 0).astype(int)


@pytest.mark.full_starts
@pytest.mark.slow
@pytest.mark.parametrize("task", [shapes_of_waves, early_sign, sign_of_mean])
def test_the_start_alone_learns_labels_at_the_end(task, global_random_seed):
    scores = []
    for seed in range(global_random_seed, global_random_seed + 3):
        rng = np.random.default_rng(seed)
        X, y = task(300, rng)
        X_test, y_test = task(500, rng)
        start = RNNClassifier(32, target="last", max_iter=0, random_state=seed).fit(X, y)
        scores.append(start.score(X_test, y_test))
    assert np.median(scores) > 0.8
