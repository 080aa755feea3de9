"""After partial_fit the ridge is solved once, when one of its attributes is first read."""

import copy
import io
import pickle
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDRegressor
from sklearn.utils.validation import check_is_fitted

from reservoir import ESNClassifier, ESNRegressor, NVARRegressor, load, save
from reservoir.datasets import mackey_glass, sine_square
from reservoir.model_selection import make_forecast_pairs
from reservoir.readouts.ridge import RidgeReadout

pytestmark = pytest.mark.one_engine

X, Y = make_forecast_pairs(mackey_glass(300, random_state=0))


def esn(**params):
    return ESNRegressor(12, **{"alpha": 1e-6, "random_state": 0, **params})


@pytest.fixture
def solved(monkeypatch):
    """The readouts that were solved, in order."""
    calls, solve = [], RidgeReadout.solve

    def counted(self):
        calls.append(self)
        return solve(self)

    monkeypatch.setattr(RidgeReadout, "solve", counted)
    return calls


READERS = {
    "coef_": lambda model, path: model.coef_,
    "intercept_": lambda model, path: model.intercept_,
    "hasattr": lambda model, path: hasattr(model, "alpha_"),
    "predict": lambda model, path: model.predict(X),
    "score": lambda model, path: model.score(X, Y),
    "forecast": lambda model, path: model.forecast(3),
    "stream": lambda model, path: model.stream().predict(X[:3]),
    "to_rnn": lambda model, path: model.to_rnn(),
    "save": lambda model, path: save(model, path / "model.npz"),
    "pickle": lambda model, path: pickle.dumps(model),
    "joblib": lambda model, path: joblib.dump(model, io.BytesIO()),
    "copy": lambda model, path: copy.copy(model),
    "deepcopy": lambda model, path: copy.deepcopy(model),
}


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize("reader", READERS)
def test_solved_by_whoever_reads_first_and_once(reader, solved, tmp_path):
    model = esn()
    for start in range(0, 300, 60):
        model.partial_fit(X[start : start + 60], Y[start : start + 60])
    check_is_fitted(model)
    assert model.n_features_in_ == 1
    assert not solved
    before = dict(vars(model))
    READERS[reader](model, tmp_path)
    assert len(solved) == 1
    READERS[reader](model, tmp_path)
    READERS["predict"](model, tmp_path)
    assert len(solved) == 1
    # reading changes nothing that the estimator holds
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())
    np.testing.assert_allclose(model.coef_, esn(washout=6).fit(X, Y).coef_, rtol=0, atol=1e-6)


def test_fit_solves_at_once_and_forgets_what_was_unsolved(solved):
    model = esn().partial_fit(X[:100], Y[:100]).fit(X, Y)
    assert len(solved) == 1
    assert "coef_" in vars(model)
    np.testing.assert_array_equal(model.coef_, esn().fit(X, Y).coef_)
    model.partial_fit(X[:50], Y[:50])
    assert "coef_" not in vars(model)
    assert len(solved) == 2


@pytest.mark.parametrize("cls", [ESNRegressor, ESNClassifier, NVARRegressor])
def test_copies_hold_plain_attributes_and_continue(cls, tmp_path):
    U, labels = sine_square(300, random_state=0)
    target = labels if cls is ESNClassifier else Y
    data = U if cls is ESNClassifier else X
    params = {"increments": True} if cls is NVARRegressor else {"n_units": 12, "random_state": 0}
    model = cls(alpha=[1e-6, 1e-2], **params).partial_fit(data[:200], target[:200])
    save(model, tmp_path / "model.npz")
    again = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]
    for other in [*again, load(tmp_path / "model.npz")]:
        held = set(vars(other)) & set(RidgeReadout.fitted)
        of_one = {
            "temperature_": ESNClassifier,
            "n_lags_": ESNRegressor,
            "input_alpha_": ESNRegressor,
        }
        others = {name for name, one in of_one.items() if cls is not one}
        assert held == set(RidgeReadout.fitted) - others
        np.testing.assert_array_equal(other.predict(data), model.predict(data))
    for other in [*again, load(tmp_path / "model.npz")]:
        other.partial_fit(data[200:], target[200:])
    model.partial_fit(data[200:], target[200:])  # after its copies: none shares its sums
    whole = cls(alpha=[1e-6, 1e-2], washout=int(model.washout_[0]), **params).fit(data, target)
    for other in [*again, model]:
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_allclose(other.coef_, whole.coef_, rtol=0, atol=1e-6)
        assert other.alpha_ == whole.alpha_


def test_the_parameters_of_the_call_count():
    alphas = np.array([1e-3, 1e-1])
    model = esn(alpha=alphas).partial_fit(X, Y)
    alphas[:] = 100.0
    model.set_params(alpha=1e-12, fit_intercept=False, solver="qr")
    expected = esn(alpha=[1e-3, 1e-1]).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.alpha_scores_, expected.alpha_scores_)
    # and none of those before it
    model = esn(alpha=[1e-3, 1e-1]).partial_fit(X[:200], Y[:200])
    model.set_params(alpha=1e-5).partial_fit(X[200:], Y[200:])
    assert model.alpha_ == 1e-5
    assert not hasattr(model, "alpha_scores_")


def test_two_threads_that_predict_at_once_solve_once(monkeypatch):
    model = esn().partial_fit(X, Y)
    expected = esn().partial_fit(X, Y).predict(X)
    calls, solve = [], RidgeReadout.solve

    def slowly(self):
        calls.append(self)
        time.sleep(0.05)
        return solve(self)

    monkeypatch.setattr(RidgeReadout, "solve", slowly)
    found, barrier = {}, threading.Barrier(4)

    def predict(k):
        barrier.wait()
        found[k] = model.predict(X)

    threads = [threading.Thread(target=predict, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    for rows in found.values():
        np.testing.assert_array_equal(rows, expected)


def test_attributes_that_do_not_exist_raise():
    model = esn().partial_fit(X, Y)
    for name in ("coefs_", "readout_", "temperature_", "alpha_scores_", "_nothing"):
        assert not hasattr(model, name)
        with pytest.raises(
            AttributeError, match=f"'ESNRegressor' object has no attribute '{name}'"
        ):
            getattr(model, name)
    assert not hasattr(esn(), "coef_")
    assert not hasattr(clone(model), "coef_")
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_washout_rows_alone_leave_nothing_to_solve_for(solved):
    model = esn(washout=50).partial_fit(X[:30], Y[:30])
    assert not hasattr(model, "coef_")
    with pytest.raises(NotFittedError, match="only washout rows so far"):
        model.predict(X)
    assert not solved
    pickle.loads(pickle.dumps(model)).partial_fit(X[30:], Y[30:]).predict(X)


def test_rows_that_count_nothing_leave_nothing_to_solve_for():
    """It is said to be the weights' doing, or the targets', where the washout is over."""
    model = esn(washout=10).partial_fit(X[:30], Y[:30], sample_weight=np.zeros(30))
    with pytest.raises(NotFittedError, match="washout=10, and the other rows have weight 0"):
        model.predict(X)
    skipping = esn(washout=10, missing_targets="skip").partial_fit(X[:30], np.full(30, np.nan))
    with pytest.raises(NotFittedError, match="or no target"):
        skipping.stream()


@pytest.mark.parametrize("first_read", [False, True])
def test_a_call_that_fails_changes_nothing(first_read):
    model = esn().partial_fit(X[:200], Y[:200])
    expected = copy.deepcopy(model)
    if first_read:
        model.predict(X)
    before = dict(vars(model))
    bad = Y[200:].copy()
    bad[50] = 1e200  # squares overflow in the sums, which have been begun by then
    for fail, message in (
        (lambda: model.partial_fit(X[200:], np.where(bad > 1, np.nan, bad)), "NaN"),
        (lambda: model.partial_fit(X[200:], bad), "overflow"),
        (lambda: model.partial_fit(X[200:], Y[200:], -np.ones(99)), "sample_weight"),
        (lambda: model.set_params(alpha=-1.0).partial_fit(X[200:], Y[200:]), "alpha"),
        (lambda: model.set_params(alpha=[[1.0]]).partial_fit(X[200:], Y[200:]), "alpha"),
        (lambda: model.set_params(forgetting=2.0).partial_fit(X[200:], Y[200:]), "forgetting"),
    ):
        params = model.get_params()
        with pytest.raises(ValueError, match=message):
            fail()
        model.set_params(**{**params, "alpha": 1e-6, "forgetting": 1.0})
        assert vars(model).keys() == before.keys()
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    model.partial_fit(X[200:], Y[200:]), expected.partial_fit(X[200:], Y[200:])
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_errors_of_solving_come_when_solving_and_more_rows_may_follow():
    huge = 1e5 * sys.float_info.max**0.5 / 1e100 * np.ones(40)
    model = esn(dtype="float32", washout=0).partial_fit(X[:40], huge)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"coefficients overflow float32.*Scale y"):
            model.predict(X)
    with pytest.raises(ValueError, match="coefficients overflow"):
        hasattr(model, "coef_")
    model.set_params(forgetting=0.001).partial_fit(X[40:], Y[40:, 0])
    assert np.isfinite(model.predict(X)).all()


def test_readouts_of_the_users_own_learn_at_once():
    model = esn(readout=SGDRegressor(random_state=0)).partial_fit(X[:200], Y[:200])
    assert "readout_" in vars(model)
    first = model.readout_.t_
    assert model.partial_fit(X[200:], Y[200:]).readout_.t_ > first


@pytest.mark.parametrize("cls", [ESNRegressor, ESNClassifier, NVARRegressor])
def test_weights_of_rows_in_chunks_are_those_of_a_fit(cls):
    U, labels = sine_square(300, random_state=0)
    data, target = (U, labels) if cls is ESNClassifier else (X, Y[:, 0])
    weights = np.random.default_rng(0).uniform(0, 2, len(target))
    weights[::11] = 0
    params = {} if cls is NVARRegressor else {"n_units": 12, "random_state": 0}
    whole = cls(washout=10, **params).fit(data, target, weights)
    parts = cls(washout=10, **params)
    known = {"classes": [0, 1]} if cls is ESNClassifier else {}
    for a, b in ((0, 1), (1, 12), (12, 200), (200, len(target))):
        parts.partial_fit(data[a:b], target[a:b], sample_weight=weights[a:b], **known)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-7)
    plain = cls(washout=10, **params).fit(data, target)
    assert np.abs(plain.coef_ - whole.coef_).max() > 1e-5
    with pytest.raises(ValueError, match="sample_weight"):
        parts.partial_fit(data, target, sample_weight=weights[:5])
