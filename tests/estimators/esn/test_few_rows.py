"""About as many rows as columns under a small penalty: where errors are at their largest."""

import warnings

import numpy as np
import pytest

from reservoir import ESNClassifier, ESNRegressor, NVARRegressor
from reservoir.datasets import narma

pytestmark = pytest.mark.both_engines

FEW = "The readout has {} columns, rows that count for {}, and the single penalty"
OPTIONS = {"washout": 0, "random_state": 0}


def data(n, seed=0):
    X, y = narma(n, random_state=seed)
    return (X - X.mean()) / X.std(), (y - y.mean()) / y.std()


def told(function):
    """Return what warnings say while a function runs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in caught]


@pytest.mark.slow
def test_errors_are_largest_there_and_the_remedy_helps(global_random_seed):
    """On new rows R^2 is better with a quarter as many rows, with four times as many, by a path."""
    scores = {}
    for name, alpha in (("one", 1e-6), ("path", np.logspace(-8, 2, 11))):
        for ratio in (0.25, 1.0, 4.0):
            n = int(ratio * 102)
            each = []
            for seed in range(global_random_seed, global_random_seed + 5):
                X, y = data(n + 500, seed)
                esn = ESNRegressor(100, alpha=alpha, washout=0, random_state=seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    each.append(esn.fit(X[:n], y[:n]).score(X[n:], y[n:]))
            scores[name, ratio] = np.median(each)
    assert scores["one", 1.0] < scores["one", 0.25] - 1
    assert scores["one", 1.0] < scores["one", 4.0] - 3
    assert scores["path", 1.0] > scores["one", 1.0] + 2


@pytest.mark.parametrize(("n", "is_told"), [(60, False), (85, True), (102, True), (140, False)])
def test_it_is_told_between_bounds(n, is_told):
    X, y = data(200)
    with pytest.warns(UserWarning, match=FEW.format(102, n)) if is_told else no_warning():
        ESNRegressor(100, **OPTIONS).fit(X[:n], y[:n])
    with pytest.warns(UserWarning, match=FEW.format(102, n)) if is_told else no_warning():
        ESNClassifier(100, alpha=1e-6, **OPTIONS).fit(X[:n], y[:n] > 0)
    # the remedy, a penalty that is large, or one for qr
    ESNRegressor(100, alpha=np.logspace(-8, 2, 11), **OPTIONS).fit(X[:n], y[:n])
    ESNRegressor(100, alpha=1.0, **OPTIONS).fit(X[:n], y[:n])
    with pytest.warns(UserWarning, match=FEW.format(102, n)) if is_told else no_warning():
        ESNRegressor(100, alpha=1e-12, **OPTIONS).fit(X[:n], y[:n])


def no_warning():
    return warnings.catch_warnings()


def test_weights_and_forgetting_count():
    X, y = data(600)
    weights = np.where(np.arange(600) % 6 == 0, 1.0, 1e-3)  # 100 rows of 600 count
    with pytest.warns(UserWarning, match=FEW.format(102, 101)):
        ESNRegressor(100, **OPTIONS).fit(X, y, weights)
    with pytest.warns(UserWarning, match=FEW.format(102, 99)):  # (1 + f) / (1 - f)
        ESNRegressor(100, forgetting=0.98, **OPTIONS).fit(X, y)
    ESNRegressor(100, forgetting=0.99, **OPTIONS).fit(X, y)
    # lags of the input: 1 + 2 + 3 columns and an intercept
    with pytest.warns(UserWarning, match=FEW.format(6, 7)):
        NVARRegressor(n_lags=2, alpha=1e-9, washout=1).fit(X[:8], y[:8])


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_a_session_that_does_no_good_is_doubted(noise, global_random_seed):
    """100 rows remembered by 102 columns: targets without noise are learned, noise is not."""
    X, y = data(900, global_random_seed)
    y = y + noise * np.random.default_rng(global_random_seed).normal(size=900)
    one = ESNRegressor(100, washout=0, random_state=global_random_seed).fit(X[:500], y[:500])
    messages, scores_of = {}, {}
    for forgetting in (0.99, 0.999):
        session = one.stream()
        session.forgetting, scores = forgetting, scores_of.setdefault(forgetting, [])

        def learn(session=session, scores=scores):
            for t in range(500, 900, 10):
                session.predict(X[t : t + 10])
                scores.append(session.learn(X[t : t + 10], y[t : t + 10]).score_)

        messages[forgetting] = told(learn)
    assert messages[0.999] == []
    worst = min(scores_of[0.99][10:])
    assert (messages[0.99] != []) == (worst < 0)
    if noise:
        (message,) = messages[0.99]
        assert "remembers some 100 rows for the readout's 102 columns" in message


def test_chunks_are_told_of_once_and_only_if_somebody_looks():
    X, y = data(300)

    def learn(looks):
        esn = ESNRegressor(100, **OPTIONS)
        for t in range(0, 300, 5):
            esn.partial_fit(X[t : t + 5], y[t : t + 5])
            if looks(t):
                assert np.isfinite(esn.coef_).all()

    assert told(lambda: learn(lambda t: t > 200)) == []
    (message,) = told(lambda: learn(lambda t: True))
    assert "rows that count for 85," in message
    (message,) = told(lambda: learn(lambda t: t in (100, 110)))
    assert "rows that count for 105," in message
