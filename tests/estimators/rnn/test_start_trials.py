"""Trials of starts: with one target per sequence, init="auto" selects the start."""

import numpy as np
import pytest
from scipy.stats import t
from sklearn.base import clone

from helpers.toys.decaying_cell import Decay
from reservoir import RNNClassifier, RNNRegressor
from reservoir.datasets import temporal_order
from reservoir.estimators.rnn import network_estimator, start_trials
from reservoir.training.trainer import Data, Training

pytestmark = pytest.mark.both_engines

CANDIDATES = ("least_squares", "esn", "orthogonal")


def last_marked(n, seed):
    """Say the value of the last of three marked rows: a reservoir knows it, at once."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(15, 25, n):
        values, marks = rng.uniform(-1, 1, length), np.zeros(length)
        where = rng.choice(length, 3, replace=False)
        marks[where] = 1
        X.append(np.column_stack([values, marks]))
        y.append(values[where.max()])
    return X, np.array(y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_what_random_weights_do_not_learn_is_begun_from_a_reservoir(seed):
    X, y = last_marked(300, seed)
    found = {}
    for init in ("auto", "orthogonal"):
        rnn = RNNRegressor(24, target="last", init=init, max_iter=30, random_state=0)
        found[init] = rnn.set_params(learning_rate_init=0.01).fit(X[:150], y[:150])
    assert found["auto"].init_ in ("least_squares", "esn")
    assert found["orthogonal"].score(X[150:], y[150:]) < 0.2
    assert found["auto"].score(X[150:], y[150:]) > 0.8


HELD = np.linspace(1.0, 2.0, 5)  # losses of five sequences under random weights
TIES = np.array([-1.0, 1.0, -1.0, 1.0, 0.5])


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("least_squares", "esn", "chosen"),
    [
        (HELD - 0.1, HELD + 1, "least_squares"),  # ahead on each
        (HELD - 0.1, HELD - 0.2, "esn"),  # both are: the one of least loss
        (HELD + TIES - 0.3, HELD + TIES, "orthogonal"),  # on average, not clearly
        (HELD, HELD + 0.1, "orthogonal"),
        (np.full(5, np.nan), np.full(5, np.inf), "orthogonal"),
    ],
)
def test_random_weights_give_way_to_what_is_clearly_ahead(least_squares, esn, chosen, monkeypatch):
    losses, tried, n_epochs = iter([least_squares, esn, HELD]), [], []

    def pretended(estimator, network, params, data, validation, generator, *, solver, began=None):
        assert solver == "adam"
        n_epochs.append((estimator.max_iter, estimator.n_iter_no_change))
        if len(tried) < 3:
            tried.append({name: array + 1 for name, array in params.items()})
            return Training(tried[-1], [9.0, 0.5], [9.0, 1.0], best_epoch=1)
        np.testing.assert_array_equal(params["W"], tried[CANDIDATES.index(chosen)]["W"])
        return Training(params, [1.0])

    monkeypatch.setattr(start_trials, "run_training", pretended)
    monkeypatch.setattr(network_estimator, "run_training", pretended)
    monkeypatch.setattr(start_trials, "_losses", lambda network, params, data: next(losses))
    X, y = last_marked(20, 0)
    rnn = RNNRegressor(6, target="last", max_iter=96, random_state=0).fit(X, y)
    assert n_epochs == [(12, 13)] * 3 + [(96, 10)]  # no plateau ends a trial
    assert rnn.init_ == chosen
    weights = tried[CANDIDATES.index(chosen)]["W_in"]
    np.testing.assert_array_equal(rnn.params_["W_in"], weights)


def test_clearly_ahead_is_a_paired_t_test():
    rng = np.random.default_rng(0)
    for n in (3, 20, 200):
        of, noise = rng.uniform(1, 2, n), rng.normal(size=n)
        noise -= noise.mean()
        error = noise.std(ddof=1) / np.sqrt(n)
        quantile = t.isf(0.025, n - 1)
        for gain, ahead in ((0.99 * quantile * error, False), (1.01 * quantile * error, True)):
            losses = of - gain + noise
            assert start_trials._is_better(losses, of, np.ones(n)) == ahead
            assert start_trials._is_better(losses, of, np.full(n, 0.3)) == ahead
            # sequences of weight 0 say nothing
            more = [np.append(array, 99.0) for array in (losses, of, np.ones(n))]
            more[2][-1] = 0.0
            assert start_trials._is_better(*more) == ahead
    # of noise one in forty are ahead, however few there are; about so many whatever the weights
    for weights, most in (
        (np.ones(3), 0.035),
        (np.ones(25), 0.035),
        (np.append(1.0, np.full(24, 0.01)), 0.06),
        (rng.exponential(size=25) ** 3, 0.06),
    ):
        n = len(weights)
        draws = rng.normal(size=(1000, n))
        found = [start_trials._is_better(noise, np.zeros(n), weights) for noise in draws]
        assert np.mean(found) < most
    assert not start_trials._is_better(np.array([1.0, 0.0]), np.full(2, 3.0), np.array([1.0, 0.0]))
    assert start_trials._is_better(of, np.append(of[1:], np.inf), np.ones(n))  # overflow


def test_losses_by_sequence_are_those_of_the_whole():
    X, y = last_marked(30, 0)
    rnn = RNNRegressor(6, target="last", max_iter=1, random_state=0).fit(X, y)
    data = Data(X, list(y[:, None]), last=True)
    each = start_trials._losses(rnn.network_, rnn.params_, data)
    np.testing.assert_allclose(each, (rnn.predict(X) - y) ** 2)


@pytest.mark.slow
def test_training_continues_from_the_best_weights_of_the_trial():
    X, y = temporal_order(120, length=20, random_state=0)
    options = {"target": "last", "max_iter": 12, "learning_rate_init": 0.01, "random_state": 1}
    one = RNNClassifier(12, **options).fit(X, y)
    assert one.init_ in CANDIDATES
    assert one.n_iter_ <= 12
    assert one.get_params()["init"] == "auto"
    assert one.get_params()["max_iter"] == 12
    again = clone(one).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), again.predict_proba(X))
    assert again.init_ == one.init_
    # what the trial has learned is not lost
    named = RNNClassifier(12, init=one.init_, **options).fit(X, y)
    assert one.loss_curve_[0] < named.loss_curve_[0]


def test_the_trial_compares_by_sequences_that_it_did_not_learn_from(monkeypatch):
    seen = []

    def watched(estimator, network, params, data, validation, generator, **options):
        assert not estimator.verbose
        assert estimator.max_iter == 10
        rows = [np.concatenate([np.ravel(X) for X in part.inputs]) for part in (data, validation)]
        assert not np.isin(*rows).any()
        labels = np.argmax([*data.targets, *validation.targets], axis=1)
        seen.append((estimator.init, len(data), len(validation), np.bincount(labels).tolist()))
        assert np.argmax(validation.targets, axis=1).sum() == 5  # a quarter of each class
        return run(estimator, network, params, data, validation, generator, **options)

    run = start_trials.run_training
    monkeypatch.setattr(start_trials, "run_training", watched)
    rng = np.random.default_rng(0)
    X, y = list(rng.normal(size=(40, 9, 1))), np.repeat([0, 1], 20)
    RNNClassifier(6, target="last", max_iter=11, verbose=True, random_state=0).fit(X, y)
    assert seen == [(name, 30, 10, [20, 20]) for name in CANDIDATES]


def test_the_trial_reports_its_result(caplog):
    X, y = last_marked(20, 0)
    rnn = RNNRegressor(6, target="last", max_iter=3, verbose=True, random_state=0).fit(X, y)
    lines = [line for line in caplog.messages if "Trial" in line]
    losses = {line.split("'")[1]: float(line.split("loss ")[1].split()[0]) for line in lines}
    assert tuple(losses) == CANDIDATES
    assert f"continues from init={rnn.init_!r}" in caplog.text


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "options",
    [
        {"init": "esn"},
        {"max_iter": 0},
        {"cell": Decay(6)},  # the starts from data do not know it
    ],
)
def test_nothing_is_tried_where_nothing_can_be_chosen(options, monkeypatch):
    monkeypatch.setattr(start_trials, "run_training", None)
    X, y = last_marked(20, 0)
    rnn = RNNRegressor(6, target="last", **{"max_iter": 1, "random_state": 0} | options)
    rnn.fit(X, y)
    default = {"init": "esn", "cell": "orthogonal", "max_iter": "least_squares"}
    assert rnn.init_ == default[next(iter(options))]
    few = RNNRegressor(6, target="last", max_iter=1, random_state=0).fit(X[:11], y[:11])
    assert few.init_ == "least_squares"
    steps = RNNRegressor(6, max_iter=1, random_state=0).fit(X, [rows[:, 0] ** 2 for rows in X])
    assert steps.init_ == "least_squares"


@pytest.mark.slow
def test_what_is_odd_about_sequences_does_not_stop_the_trial():
    X, y = last_marked(24, 1)
    labels = np.where(y > 0, "up", "down").astype(object)
    labels[3] = "once"  # cannot be in both parts
    clf = RNNClassifier(6, target="last", max_iter=2, random_state=0).fit(X, labels)
    assert set(clf.predict(X)) <= {"up", "down", "once"}
    assert clf.init_ in CANDIDATES
    hinge = RNNClassifier(6, target="last", loss="hinge", max_iter=2, random_state=0)
    assert hinge.fit(X, y > 0).init_ in CANDIDATES
    weights = np.zeros(24)
    weights[:2] = 1.0  # nothing left to compare by, or to learn from
    rnn = RNNRegressor(6, target="last", max_iter=2, random_state=0)
    assert rnn.fit(X, y, sample_weight=weights).init_ == "least_squares"
    stopped = RNNRegressor(6, target="last", max_iter=2, early_stopping=True, random_state=0)
    assert stopped.fit(X, y).init_ in CANDIDATES
    half = RNNRegressor(6, target="last", max_iter=2, dtype="float32", random_state=0).fit(X, y)
    assert {array.dtype for array in half.params_.values()} == {np.dtype(np.float32)}


def test_the_start_that_was_used_is_named():
    X, y = last_marked(20, 0)
    rnn = RNNRegressor(6, target="last", max_iter=2, random_state=0).fit(X, y)
    assert f"init='auto', which is {rnn.init_!r}" in rnn._description()["Training"]
    online = RNNRegressor(6, random_state=0).partial_fit(X[0], X[0][:, 0])
    assert online.init_ == "least_squares"
    given = RNNRegressor(6, init=RNNRegressor(6, max_iter=1), max_iter=1).fit(X[0], X[0][:, 0])
    assert given.init_ is None
