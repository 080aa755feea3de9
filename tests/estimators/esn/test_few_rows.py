"""About as many rows as columns under a small penalty, where errors are largest."""

import warnings

import numpy as np
import pytest

from reservoir import ESNClassifier, ESNRegressor, NVARRegressor
from reservoir.datasets import narma

pytestmark = pytest.mark.both_engines

FEW = "The readout has {} columns, {} effective rows, and the single penalty"
OPTIONS = {"leak_rate": 1.0, "alpha": 1e-6, "washout": 0, "random_state": 0}


def data(n, seed=0):
    X, y = narma(n, saturated=True, random_state=seed)
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
                esn = ESNRegressor(100, leak_rate=1.0, alpha=alpha, washout=0, random_state=seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    each.append(esn.fit(X[:n], y[:n]).score(X[n:], y[n:]))
            scores[name, ratio] = np.median(each)
    assert scores["one", 1.0] < scores["one", 0.25] - 1
    assert scores["one", 1.0] < scores["one", 4.0] - 3
    assert scores["path", 1.0] > scores["one", 1.0] + 2


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(("n", "is_told"), [(60, False), (85, True), (102, True), (140, False)])
def test_it_warns_between_bounds(n, is_told):
    X, y = data(200)
    with pytest.warns(UserWarning, match=FEW.format(102, n)) if is_told else no_warning():
        ESNRegressor(100, **OPTIONS).fit(X[:n], y[:n])
    with pytest.warns(UserWarning, match=FEW.format(102, n)) if is_told else no_warning():
        ESNClassifier(100, **OPTIONS).fit(X[:n], y[:n] > 0)
    # the remedy, a penalty that is large, or one for qr
    ESNRegressor(100, **OPTIONS | {"alpha": np.logspace(-8, 2, 11)}).fit(X[:n], y[:n])
    ESNRegressor(100, **OPTIONS | {"alpha": 1.0}).fit(X[:n], y[:n])
    with pytest.warns(UserWarning, match=FEW.format(102, n)) if is_told else no_warning():
        ESNRegressor(100, **OPTIONS | {"alpha": 1e-12}).fit(X[:n], y[:n])
    with pytest.warns(UserWarning, match=FEW.format(102, n)) if is_told else no_warning():
        ESNRegressor(100, **OPTIONS | {"alpha": [1e-6]}).fit(X[:n], y[:n])  # nothing to choose from


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


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(("noise", "is_told"), [(0.0, False), (0.5, False), (3.0, True)])
def test_fast_forgetting_warns_if_it_matters(noise, is_told, global_random_seed):
    """200 rows remembered by 202 columns: much is learned of targets with little noise."""
    X, y = data(2000, global_random_seed)
    y = y + noise * np.random.default_rng(global_random_seed).normal(size=2000)
    options = {"leak_rate": 1.0, "alpha": 1e-6, "forgetting": 0.995}
    options["random_state"] = global_random_seed
    messages = told(lambda: ESNRegressor(200, **options).fit(X[:1000], y[:1000]))
    found = ["remembers about 200 rows for 202 columns" in each for each in messages]
    assert found == [True] * is_told
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = ESNRegressor(200, **options).fit(X[:1000], y[:1000]).stream(score_forgetting=1.0)
    for t in range(1000, 2000, 20):
        session.predict(X[t : t + 20])
        session.learn(X[t : t + 20], y[t : t + 20])
    assert (session.score_ < 0) == is_told
    for calmer in ({"alpha": np.logspace(-8, 0, 9)}, {"forgetting": 0.9995}, {"n_units": 50}):
        assert (
            told(lambda c=calmer: ESNRegressor(**({"n_units": 200} | options | c)).fit(X, y)) == []
        )


def test_chunks_warn_once_and_only_when_attributes_are_read():
    X, y = data(300)

    def learn(looks):
        esn = ESNRegressor(100, **OPTIONS)
        for t in range(0, 300, 5):
            esn.partial_fit(X[t : t + 5], y[t : t + 5])
            if looks(t):
                assert np.isfinite(esn.coef_).all()

    assert told(lambda: learn(lambda t: t > 200)) == []
    (message,) = told(lambda: learn(lambda t: True))
    assert " 85 effective rows," in message
    (message,) = told(lambda: learn(lambda t: t in (100, 110)))
    assert " 105 effective rows," in message
