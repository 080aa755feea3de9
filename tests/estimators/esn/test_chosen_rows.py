"""`n_lags="auto"` and `input_alpha="auto"`: rows of the input that are received where they help."""

import copy
import pickle

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.linear_model import Ridge

from reservoir import ESNRegressor, force_train, load, save
from reservoir.datasets import lorenz96, mackey_glass, narma
from reservoir.readouts import input_rows
from reservoir.stability import certify_loop

pytestmark = pytest.mark.one_engine
BEFORE = {"n_lags": 1, "input_alpha": None}


def esn(**params):
    return ESNRegressor(**{"n_units": 30, "washout": 20, "random_state": 0, **params})


def filtered(n, seed=0, n_columns=1):
    """Return an input, and targets that are linear in its last eight rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    y = lfilter(rng.normal(size=8), [1], X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, np.column_stack([y, X[:, -1] ** 2])


def held_out(model, Y):
    """Return the least held-out error, in variances of the targets."""
    return (model.alpha_scores_ / Y[20:].var(axis=0)).mean(axis=1).min()


def test_a_filter_is_learned(global_random_seed):
    X, Y = filtered(1000, global_random_seed)
    X, new, y, later = X[:500], X[500:], Y[:500, 0], Y[500:, 0]
    model = esn().fit(X, y)
    assert 8 <= model.n_lags_ <= 20
    assert model.coef_.shape == (30 + model.n_lags_,)
    assert model.score(new, later) > 0.8
    assert model.score(new, later) > esn(**BEFORE).fit(X, y).score(new, later) + 0.05


@pytest.mark.parametrize(("n", "n_columns", "most"), [(149, 1, 12), (2000, 1, 20), (2000, 12, 6)])
def test_rows_are_limited_by_those_learned_and_by_columns(n, n_columns, most):
    X, Y = filtered(n, n_columns=n_columns)
    assert esn().fit(X, Y).n_lags_ == most


@pytest.mark.filterwarnings("ignore:The closed loop:RuntimeWarning")
@pytest.mark.parametrize("n", [200, 700])
def test_loops_of_clean_systems_keep_their_digits(n, global_random_seed):
    """Older rows predict better there by one step, and worse in closed loop."""
    series = mackey_glass(n, random_state=global_random_seed)
    model = esn().fit(series[:-1], series[1:])
    before = esn(**BEFORE).fit(series[:-1], series[1:])
    assert (model.n_lags_, model.input_alpha_) == (1, model.alpha_)
    for name in ("coef_", "intercept_", "alpha_", "alphas_", "alpha_scores_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(before, name))
    np.testing.assert_array_equal(model.forecast(50), before.forecast(50))
    np.testing.assert_array_equal(model.predict(series[-5:]), before.predict(series[-5:]))


def test_loops_in_which_the_input_alone_would_grow_keep_one_row(monkeypatch, global_random_seed):
    """Far outside the learned range states are constant, and rows of the input alone remain."""
    series = lorenz96(200, n_features=10, washout=200, random_state=global_random_seed)
    series = (series - series.mean(axis=0)) / series.std(axis=0)
    X, y = series[:-1], 100 * series[1:]
    model, before = esn(n_units=300).fit(X, y), esn(n_units=300, **BEFORE).fit(X, y)
    monkeypatch.setattr(input_rows, "_MOST_GROWTH", np.inf)
    free = esn(n_units=300).fit(X, y)

    def growth(fitted):
        return np.abs(np.linalg.eigvals(fitted.coef_[:, -10:] / 100)).max()

    grows = growth(free) > max(1.2, growth(before))  # in 96 of 100 seeds
    np.testing.assert_array_equal(model.coef_, (before if grows else free).coef_)
    assert grows or global_random_seed > 0
    no_loop = esn(n_units=300).fit(X, np.roll(y, 1, axis=1))
    assert no_loop.input_alpha_ < no_loop.alpha_


OTHERS = {
    "a number": {"alpha": 1e-3},
    "a readout": {"readout": Ridge(1e-3)},
    "forgetting": {"forgetting": 0.999},
    "closed loops": {"alpha_selection": "forecast"},
    "no input": {"include_input": False},
    "both directions": {"bidirectional": True},
    "no penalty": {"alpha": [0.0, 1e-3]},
}


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", OTHERS)
def test_elsewhere_it_is_the_fit_of_one_row(name):
    X, Y = filtered(300)
    Y = Y if name != "closed loops" else np.roll(X, -1, axis=0)
    model, before = esn(**OTHERS[name]).fit(X, Y), esn(**OTHERS[name], **BEFORE).fit(X, Y)
    assert model.n_lags_ == before.n_lags_ == 1
    np.testing.assert_allclose(model.predict(X), before.predict(X), rtol=0, atol=1e-12)


def test_a_loop_trained_by_force_receives_one_row():
    rows = np.sin(0.05 * np.arange(2000))
    loop = force_train(esn(n_units=100, spectral_radius=1.5, feedback=True), rows)
    assert (loop.n_lags, loop.n_lags_, loop.forecast(9).shape) == ("auto", 1, (9,))


RULES = {
    "default": {},
    "other penalties": {"alpha": [1e-6, 1e-2, 1.0, 1e2]},
    "given penalty": {"input_alpha": 0.5},
    "given rows": {"n_lags": 9},
    "both given": {"n_lags": 9, "input_alpha": 0.5, "alpha": 1e-2},
    "one penalty": {"input_alpha": None},
    "per target": {"alpha_per_target": True},
    "per target, given": {"alpha_per_target": True, "input_alpha": 0.5},
    "gcv": {"alpha_selection": "gcv"},
    "neighbours": {"alpha_selection": "reml_ar1"},
    "qr": {"solver": "qr"},
    "no intercept": {"fit_intercept": False},
    "feedback": {"feedback": True, "feedback_scaling": 0.1},
    "squares": {"augment": "square"},
    "every second row": {"skip": 2},
    "single precision": {"dtype": "float32"},
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", RULES)
def test_any_split_is_one_fit_and_files_continue(name, tmp_path):
    X, Y = filtered(400)
    Y[50:53, 0] = np.nan if name == "default" else 0.0
    w = np.random.default_rng(1).uniform(0, 2, size=400)
    params = RULES[name] | ({"missing_targets": "skip"} if name == "default" else {})
    whole, parts = esn(**params).fit(X, Y, w), esn(**params)
    assert whole.n_lags_ > 1
    for a, b in ((0, 5), (5, 6), (6, 150), (150, 290)):
        parts.partial_fit(X[a:b], Y[a:b], w[a:b])
    save(parts, tmp_path / "esn.npz")
    tolerance = 1e-3 if name == "single precision" else 1e-6
    for one in (load(tmp_path / "esn.npz"), pickle.loads(pickle.dumps(parts)), parts):
        one.partial_fit(X[290:], Y[290:], w[290:])
        assert one.n_lags_ == whole.n_lags_
        np.testing.assert_allclose(one.input_alpha_, whole.input_alpha_)
        np.testing.assert_allclose(one.predict(X), whole.predict(X), rtol=0, atol=tolerance)
    again = load(save(whole, tmp_path / "whole.npz") or tmp_path / "whole.npz")
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


@pytest.mark.parametrize("name", ["default", "given rows", "both given", "per target, given", "qr"])
def test_the_solution_is_ridge_under_both_penalties(name):
    X, Y = filtered(500)
    model = esn(**RULES[name]).fit(X, Y)
    past = [np.vstack([np.repeat(X[:1], k, axis=0), X[: 500 - k]]) for k in range(model.n_lags_)]
    H = np.hstack([model.states(X, initial_state="zeros"), *past])[20:]
    H, T = H - H.mean(axis=0), Y[20:] - Y[20:].mean(axis=0)
    alpha, of_inputs = (np.broadcast_to(a, 2) for a in (model.alpha_, model.input_alpha_))
    for k in range(2):
        penalty = np.diag(np.where(np.arange(H.shape[1]) < 30, alpha[k], of_inputs[k]))
        right = np.linalg.solve(H.T @ H + penalty, H.T @ T[:, k])
        np.testing.assert_allclose(model.coef_[k], right, rtol=1e-5, atol=1e-7)


def test_free_runs_use_the_weights_of_both_penalties():
    """Two penalties that are almost without effect give the loops of one."""
    series = mackey_glass(500, random_state=0)
    params = {"alpha": [1e-7], "alpha_selection": "forecast", "n_lags": 3}
    one = esn(input_alpha=None, **params).fit(series[:-1], series[1:])
    two = esn(input_alpha=1e-9, **params).fit(series[:-1], series[1:])
    np.testing.assert_allclose(np.log(two.alpha_scores_), np.log(one.alpha_scores_), rtol=0.3)
    assert two.input_alpha_ == 1e-9


def test_two_penalties_are_taken_only_where_they_help():
    X, Y = filtered(500)
    model, before = esn().fit(X, Y), esn(**BEFORE).fit(X, Y)
    assert held_out(model, Y) < held_out(before, Y) - 3e-4
    assert model.input_alpha_ != model.alpha_
    noise = np.random.default_rng(0).normal(size=(500, 1))
    assert esn().fit(X, noise).n_lags_ == 1


def test_recurrent_networks_and_certificates_of_chosen_rows(global_random_seed):
    """Where older rows are chosen they raise or warn, as with a number; elsewhere they do not."""
    noise = np.random.default_rng(global_random_seed).normal(size=(300, 1))
    series = lfilter([1], [1, 0, 0, 0, 0, 0, -0.9], noise, axis=0)
    model, before = (esn(**p).fit(series[:-1], series[1:]) for p in ({}, BEFORE))
    assert model.n_lags_ > 1
    with pytest.raises(TypeError, match=f"n_lags_={model.n_lags_} rows"):
        certify_loop(model)
    with pytest.warns(UserWarning, match=f"n_lags_={model.n_lags_} rows.*held-out errors of"):
        found = model.to_rnn()
    np.testing.assert_allclose(found.predict(series), before.to_rnn().predict(series), atol=1e-9)
    clean = mackey_glass(200, random_state=global_random_seed)
    model = esn().fit(clean[:-1], clean[1:])
    assert model.n_lags_ == 1
    np.testing.assert_allclose(model.to_rnn().predict(clean), model.predict(clean), atol=1e-9)
    assert certify_loop(model).method


def test_a_notebook_shows_the_rows_in_use():
    X, Y = filtered(300)
    model = esn().fit(X, Y)
    assert f"the readout receives {model.n_lags_} rows, 1 apart" in model._repr_html_()
    assert "the readout receives" not in esn().fit(X, np.roll(X, 7, axis=0) * 0 + 1)._repr_html_()


def test_sequences_of_few_rows_are_not_refused():
    X, Y = filtered(400)
    Xs, Ys = (np.split(each, [3, 100, 110, 300]) for each in (X, Y))
    model = esn(washout=2).fit(Xs, Ys)
    assert model.n_lags_ > 1
    chunks = esn(washout=2)
    for rows, targets in zip(Xs, Ys, strict=True):
        chunks.partial_fit(rows, targets, new_sequence=True)
    for n_jobs in (1, 2):
        other = esn(washout=2, n_jobs=n_jobs).fit(Xs, Ys)
        np.testing.assert_array_equal(other.coef_, model.coef_)
    np.testing.assert_allclose(chunks.coef_, model.coef_, rtol=0, atol=1e-8)
    assert ESNRegressor(5, random_state=0).fit(X[:4], Y[:4]).n_lags_ == 1


def test_a_session_learns_under_both_penalties():
    X, Y = filtered(600)
    model = esn().fit(X[:300], Y[:300])
    fixed = {"n_lags": model.n_lags_, "alpha": model.alpha_, "input_alpha": model.input_alpha_}
    expected = esn(**fixed).fit(X[:300], Y[:300]).partial_fit(X[300:400], Y[300:400])
    session = model.stream()
    for a in range(300, 400, 9):
        session.learn(X[a : a + 9][: 400 - a], Y[a : a + 9][: 400 - a])
    found = session.to_estimator()
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-7)
    np.testing.assert_allclose(session.predict(X[400:410]), expected.predict(X[400:410]), atol=1e-7)
    whole = copy.deepcopy(found).partial_fit(X[400:], Y[400:])
    np.testing.assert_allclose(whole.predict(X), esn().fit(X, Y).predict(X), rtol=0, atol=1e-6)


def test_earlier_objects_lack_the_parameters():
    X, Y = narma(300, random_state=0)
    model = esn(**BEFORE).fit(X, Y)
    state = {key: value for key, value in model.__getstate__().items() if key not in BEFORE}
    state = {key: value for key, value in state.items() if key not in ("n_lags_", "input_alpha_")}
    again = ESNRegressor.__new__(ESNRegressor)
    again.__setstate__(state)
    assert (again.n_lags, again.input_alpha) == (1, None)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.partial_fit(X, Y)
    np.testing.assert_array_equal(again.coef_, model.partial_fit(X, Y).coef_)
