"""Optimizers with settings, schedules, clipping and curricula as parameters of the estimators."""

import pickle
import re

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from reservoir import RNNClassifier, RNNRegressor, load, save
from reservoir.datasets import narma
from reservoir.training._objective import Objective
from reservoir.training.bptt import Network
from reservoir.training.cells import GRUCell, SimpleCell
from reservoir.training.curricula import EasyFirst, GrowingLength
from reservoir.training.initializers import initialize
from reservoir.training.optimizers import OPTIMIZERS, Optimizer, adam, is_built_in, momentum, sgd
from reservoir.training.schedules import SCHEDULES, get_schedule, linear
from reservoir.training.trainer import Data, train

pytestmark = pytest.mark.one_engine

X, y = narma(80, random_state=0)
Xs, ys = [X[:30], X[30:50], X[50:]], [y[:30], y[30:50], y[50:]]


def halving(epoch):
    """Return a rate that halves every epoch."""
    return 0.01 * 0.5**epoch


def early(inputs, targets):
    """Return a difficulty."""
    return float(targets[0, 0])


def make(cls=RNNRegressor, **params):
    options = {"n_units": 5, "init": "orthogonal", "max_iter": 4, "random_state": 0}
    return cls(**options | params)


def same(model, other):
    for name, array in model.params_.items():
        np.testing.assert_array_equal(array, other.params_[name])


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_is_its_name_with_its_numbers(name, tmp_path):
    named = make(solver=name, learning_rate_init=0.01).fit(X, y)
    built = make(solver=OPTIMIZERS[name](0.01)).fit(X, y)
    same(named, built)
    assert built.solver_ == name
    save(built, tmp_path / "rnn.npz")
    again = load(tmp_path / "rnn.npz")
    assert again.solver == built.solver
    np.testing.assert_array_equal(again.predict(X), built.predict(X))
    same(clone(again).fit(X, y), built)
    save(built.partial_fit(X[:20], y[:20]), tmp_path / "rnn.npz")
    again = load(tmp_path / "rnn.npz")
    same(again.partial_fit(X[20:40], y[20:40]), built.partial_fit(X[20:40], y[20:40]))


def test_settings_of_an_optimizer_count(tmp_path):
    slow, fast = (make(solver=momentum(0.001, decay)).fit(X, y) for decay in (0.5, 0.99))
    assert slow.loss_curve_[1:] != fast.loss_curve_[1:]
    settings = adam(0.02, beta1=0.8, warmup=3)
    assert (
        repr(settings)
        == "adam(learning_rate=0.02, beta1=0.8, beta2=0.999, epsilon=1e-08, warmup=3)"
    )
    rnn = make(solver=settings).fit(X, y)
    network, start = rnn.network_, make(max_iter=0).fit(X, y).params_
    weights = np.ones(len(X))
    weights[: rnn.washout_[0]] = 0
    data = Data([X], [y[:, None]], [weights])
    done = train(network, start, data, settings, max_iter=4, truncation=50, refit=True)
    np.testing.assert_allclose(done.losses, rnn.loss_curve_, rtol=1e-12)
    save(rnn, tmp_path / "rnn.npz")
    assert load(tmp_path / "rnn.npz").solver == settings


def test_search_over_the_options():
    grid = [
        {"solver": ["adam", adam(0.01, beta1=0.8), momentum(0.001, 0.99)]},
        {"learning_rate": ["linear", halving], "clip_value": [None, 0.1]},
    ]
    search = GridSearchCV(make(max_iter=2), grid, cv=TimeSeriesSplit(2)).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    plans = {"curriculum": [None, EasyFirst(2, first=0.5), GrowingLength(2, first=10)]}
    search = GridSearchCV(make(max_iter=4, solver="adam"), plans, cv=2).fit(
        np.stack([X[:40]] * 4), [y[:40]] * 4
    )
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_schedules_by_name_and_by_callable(tmp_path):
    for name in SCHEDULES:
        named = make(learning_rate=name, learning_rate_init=0.01).fit(X, y)
        given = make(learning_rate=get_schedule(name, 0.01, 4)).fit(X, y)
        same(named, given)
    line = linear(0.1, 100)
    assert [line(t) for t in (0, 50, 100, 200)] == [0.1, 0.05, 0.0, 0.0]
    rnn = make(learning_rate=halving).fit(X, y)
    seen = []
    make(learning_rate=lambda epoch: seen.append(epoch) or halving(epoch)).fit(X, y)
    assert seen[0] == 0
    assert max(seen) < 4
    joblib.dump(rnn, tmp_path / "rnn.joblib")
    same(joblib.load(tmp_path / "rnn.joblib"), rnn)
    with pytest.raises(TypeError, match=r"learning_rate=<function halving.*Use joblib\.dump"):
        save(rnn, tmp_path / "rnn.npz")
    with pytest.raises(TypeError, match=r"solver=adam\(learning_rate=<function.*Use joblib\.dump"):
        save(make(solver=adam(halving)).fit(X, y), tmp_path / "rnn.npz")
    with pytest.raises(ValueError, match=r"learning_rate\(0\)=-1"):
        make(learning_rate=lambda epoch: -1).fit(X, y)


def test_an_optimizer_of_another_rule(tmp_path):
    own = Optimizer("signs", signs, nothing, 0.001)
    assert not is_built_in(own)
    rnn = make(solver=own).fit(X, y)
    assert rnn.solver_ == "signs"
    same(pickle.loads(pickle.dumps(rnn)), rnn)
    rnn.partial_fit(X[:20], y[:20])
    with pytest.raises(TypeError, match=r"solver=signs\(learning_rate=0.001\) cannot be written"):
        save(rnn, tmp_path / "rnn.npz")


def signs(gradient, rate, n):
    """Return a step of equal size for every weight."""
    return rate * np.sign(gradient), ()


def nothing(weights):
    """Return no slots."""
    return ()


@pytest.mark.parametrize("norm", [None, 0.1])
def test_components_are_clipped_before_the_norm(norm):
    network = Network(SimpleCell(4), 1, 1)
    params = initialize(network.shapes(), "orthogonal", random_state=0)
    rng = np.random.default_rng(0)
    grads = {name: rng.normal(size=array.shape) for name, array in params.items()}
    plain = Objective(network).gradient(params, grads)
    clipped = Objective(network, clip_norm=norm, clip_value=0.3).gradient(params, grads)
    expected = np.clip(plain, -0.3, 0.3)
    if norm:
        expected *= norm / np.linalg.norm(expected)
    np.testing.assert_allclose(clipped, expected, rtol=1e-12)
    grads["coef"] = grads["coef"] * np.inf
    assert not np.isfinite(Objective(network, clip_value=0.3).gradient(params, grads)).all()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cls", [RNNRegressor, RNNClassifier])
def test_clipping_and_curricula_reach_training_and_are_saved(cls, tmp_path):
    targets = ys if cls is RNNRegressor else [values > y.mean() for values in ys]
    for options in (
        {"clip_value": 1e-3, "clip_norm": None},
        {"curriculum": EasyFirst(2, first=0.4)},
        {"curriculum": GrowingLength(2, first=10)},
    ):
        base = make(cls, solver="sgd", learning_rate_init=0.1).fit(Xs, targets)
        rnn = make(cls, solver="sgd", learning_rate_init=0.1, **options).fit(Xs, targets)
        assert rnn.loss_curve_[1] != base.loss_curve_[1]
        save(rnn, tmp_path / "rnn.npz")
        again = load(tmp_path / "rnn.npz")
        assert {name: getattr(again, name) for name in options} == options
        same(clone(again).fit(Xs, targets), rnn)
    rnn.set_params(curriculum=EasyFirst(2, difficulty=early)).fit(Xs, targets)
    with pytest.raises(TypeError, match="difficulty=<function early"):
        save(rnn, tmp_path / "rnn.npz")


@pytest.mark.slow
@pytest.mark.parametrize("init", ["esn", "least_squares", "orthogonal"])
def test_a_gru_with_its_reset_gate_within_is_an_estimators_cell(init, tmp_path):
    cells = [GRUCell(5), GRUCell(5, reset_after=False)]
    found = [make(cell=cell, init=init).fit(X, y) for cell in cells]
    assert "bias_recurrent" in found[0].params_
    assert "bias_recurrent" not in found[1].params_
    assert found[1].best_loss_ < found[1].loss_curve_[0] or init != "orthogonal"
    save(found[1], tmp_path / "rnn.npz")
    again = load(tmp_path / "rnn.npz")
    assert again.cell == cells[1]
    np.testing.assert_array_equal(again.predict(X), found[1].predict(X))
    search = GridSearchCV(
        make(init=init, max_iter=2), {"cell": cells}, cv=TimeSeriesSplit(2), refit=False
    )
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


def test_the_reset_gate_within_the_product_is_what_texts_print():
    cell = GRUCell(3, reset_after=False)
    rng = np.random.default_rng(0)
    params = {name: rng.normal(size=shape) for name, shape in cell.shapes(2).items()}
    inputs = rng.normal(size=(6, 1, 2))
    h = np.zeros(3)
    for u, state in zip(inputs[:, 0], cell.forward(params, inputs).states[1:, 0], strict=True):
        into = np.split(params["W_in"] @ u + params["bias"], 3)
        U = np.split(params["W"], 3)
        reset, update = (1 / (1 + np.exp(-(into[k] + U[k] @ h))) for k in range(2))
        h = update * h + (1 - update) * np.tanh(into[2] + U[2] @ (reset * h))
        np.testing.assert_allclose(state, h, rtol=1e-12)


def test_a_trial_of_starts_uses_all_the_data():
    short = [np.full((6, 1), k / 16) for k in range(16)]
    labels = np.arange(16) % 2
    plan = EasyFirst(10, first=0.5)
    clf = make(RNNClassifier, init="auto", target="last", curriculum=plan, max_iter=12)
    assert set(clf.fit(short, labels).start_results_)


@pytest.mark.parametrize(
    "params, kind, message",
    [
        ({"solver": adam(), "learning_rate_init": 0.1}, ValueError, "a learning rate of its own"),
        ({"solver": sgd(), "learning_rate": "step"}, ValueError, "learning_rate='step' would have"),
        ({"learning_rate": halving, "learning_rate_init": 0.1}, ValueError, "returns the rate"),
        ({"learning_rate": "lineal"}, ValueError, "Did you mean 'linear'"),
        ({"learning_rate": None}, ValueError, "learning_rate=None is not known"),
        ({"solver": Optimizer("lbfgs", signs, nothing, 0.1)}, ValueError, "the name of another"),
        ({"clip_value": 0.0}, ValueError, "clip_value=0.0"),
        ({"clip_value": "1"}, TypeError, "clip_value must be a number"),
        ({"clip_value": 1.0, "solver": "lbfgs"}, ValueError, "is for solvers of gradient steps"),
        ({"curriculum": EasyFirst(2), "solver": "lbfgs"}, ValueError, "uses all data at once"),
        ({"curriculum": "easy"}, TypeError, "such as EasyFirst"),
        ({"curriculum": EasyFirst(4)}, ValueError, "Set a larger max_iter"),
    ],
)
def test_errors(params, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        make(**params).fit(X, y)


def test_messages_name_what_sets_the_rate():
    X, y = narma(120, random_state=0)
    with pytest.warns(UserWarning, match=r"Lower the learning rate of solver=sgd\(learning_rate"):
        make(solver=sgd(1e6), clip_norm=None, activation="relu", init="normal").fit(X, y)
