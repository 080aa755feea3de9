"""Parameters that shape a model cannot be changed between chunks; the others are read each time."""

import copy
import pickle
from dataclasses import fields

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from sklearn.base import clone

from reservoir import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNClassifier,
    RNNRegressor,
    force_train,
    load,
    save,
)
from reservoir._validation.scalars import is_same

pytestmark = pytest.mark.one_engine

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = {True: (X[:, 0] > 0).astype(int), False: X[:, 0].copy()}
SMALL = {"n_units": 5, "random_state": 0}
TRAINED = {**SMALL, "n_units": 4, "init": "esn"}
LEARNERS = [
    ESNRegressor(**SMALL),
    ESNClassifier(**SMALL),
    NVARRegressor(),
    RNNRegressor(**TRAINED),
    RNNClassifier(**TRAINED),
]
# what each call reads, or fit alone
READ = {"alpha", "alpha_selection", "alpha_per_target", "forgetting", "readout", "fit_intercept"}
READ |= {"solver", "n_jobs", "initial_state", "verbose", "missing_targets", "class_weight"}
OF_FIT = {"max_iter", "batch_size", "curriculum", "early_stopping", "validation_fraction", "tol"}
OF_FIT |= {"n_iter_no_change", "warm_start", "refit_readout"}
READ_BY_TRAINED = {"verbose", "missing_targets", "class_weight", "initial_state"} | OF_FIT
NAMED = {"dtype": "float32", "random_state": 7, "washout": 3, "target": "last"}


def learn(model, rows=slice(None)):
    return model.partial_fit(X[rows], Y[hasattr(model, "predict_proba")][rows])


def other(name, value):
    """Return another value of a parameter, valid or not: a change is noticed before its check."""
    if name in NAMED:
        return NAMED[name]
    if isinstance(value, bool):
        return not value
    return 0.37 if isinstance(value, float) else 3 if isinstance(value, int) else "changed"


@pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
def test_each_parameter_that_shapes_a_model_raises_in_the_next_chunk(model):
    model = learn(clone(model), slice(0, 40))
    read = READ_BY_TRAINED if isinstance(model, (RNNRegressor, RNNClassifier)) else READ
    found = set()
    before = pickle.dumps(model)
    for each in fields(model):
        one, value = copy.copy(model), getattr(model, each.name)
        one.set_params(**{each.name: other(each.name, value)})
        try:
            learn(one, slice(40, None))
        except (ValueError, TypeError) as error:
            if f"but the model was fitted with {each.name}=" in str(error):
                found.add(each.name)
    every = {each.name for each in fields(model)}
    # these two have a message of their own: states of later rows, and a filter over whole sequences
    assert found | {"bidirectional", "transition"} & every == every - read
    assert pickle.dumps(model) == before


def test_what_each_call_reads_may_change():
    esn = learn(ESNRegressor(**SMALL), slice(0, 30))
    esn.set_params(alpha=1.0, forgetting=0.9, n_jobs=1, initial_state="zeros", solver="cholesky")
    assert learn(esn, slice(30, 60)).alpha_ == 1.0
    rnn = RNNRegressor(**TRAINED, max_iter=1, solver="lbfgs").fit(X, Y[False])
    # fit has not begun to learn online: the solver is free until a chunk does
    learn(rnn.set_params(solver="adam", learning_rate_init=0.01, max_iter=5))
    with pytest.raises(ValueError, match=r"learning_rate_init=0\.1, but .*_init=0\.01"):
        learn(rnn.set_params(learning_rate_init=0.1))
    assert rnn.fit(X, Y[False]).n_iter_ > 0  # fit takes any


def frozen():
    return scipy.stats.uniform(-1, 2)


def outer(n_units, n_features, *, random_state):
    return np.ones((n_units, n_features))


ARRAY = np.array([0.1, 0.2])


@pytest.mark.parametrize(
    ("one", "same", "differs"),
    [
        (ARRAY, ARRAY.copy(), ARRAY[:1]),
        ((0.5, 0.3), [0.5, 0.3], (0.5, 0.2)),
        (0.5, np.float64(0.5), None),
        (1, np.int64(1), 1.0),  # a count of connections, and a density
        (True, np.True_, 1),
        ("last", "last", ARRAY),
        ("float32", np.dtype("float32"), np.float64),
        (sp.csr_array(np.eye(2)), sp.csr_array(np.eye(2)), sp.csr_array(2 * np.eye(2))),
        (sp.csr_array(np.eye(2)), sp.csr_array(np.eye(2)), np.eye(2)),
        (frozen(), frozen(), scipy.stats.uniform(-1, 3)),
        (frozen(), pickle.loads(pickle.dumps(frozen())), scipy.stats.norm()),
        (outer, outer, np.ones),
        ({"a": ARRAY}, {"a": ARRAY.copy()}, {"a": ARRAY[::-1]}),
        ([{"a": 1}, [1, 2]], [{"a": 1}, [1, 2]], [{"a": 1}, [1, 3]]),
        (ESNRegressor(5), ESNRegressor(5), ESNRegressor(6)),
        (np.random.default_rng(0), np.random.default_rng(0), np.random.default_rng(1)),
        (RNG, RNG, 0),
    ],
)
def test_values_of_parameters_are_compared_by_what_they_mean(one, same, differs):
    assert is_same(one, same)
    assert is_same(same, one)
    assert not is_same(one, differs)
    assert not is_same(differs, one)


def test_a_function_without_a_name_is_the_same_only_as_itself():
    def made():
        return lambda n, random_state: np.eye(n)

    one = made()
    assert is_same(one, one)
    assert not is_same(one, made())


def test_an_array_that_its_owner_changes_is_noticed():
    rates = np.full(5, 0.4)
    esn = learn(ESNRegressor(5, leak_rate=rates, random_state=0), slice(0, 30))
    rates[0] = 0.9
    with pytest.raises(ValueError, match=r"leak_rate=array.* Set it back, or call fit\."):
        learn(esn, slice(30, 60))


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_a_generator_stays_the_same_though_a_fit_draws_from_it(kind, tmp_path):
    esn = learn(ESNRegressor(5, random_state=kind(0)), slice(0, 30))
    joblib.dump(esn, tmp_path / "esn.joblib")
    for one in (esn, copy.deepcopy(esn), joblib.load(tmp_path / "esn.joblib")):
        learn(one, slice(30, 60))
    if kind is np.random.default_rng:
        save(esn, tmp_path / "esn.npz")
        learn(load(tmp_path / "esn.npz"))


def forget(model):
    """Make a fitted model that of a file of an earlier version, without fixed parameters."""
    if isinstance(model, ESNForecaster):
        del model._fixed
        return
    model._reader = copy.copy(model._reader)
    del model._reader.fixed
    if isinstance(model, RNNRegressor):
        model._model = copy.copy(model._model)
        del model._model.online_fixed


SERIES = np.sin(np.arange(40.0))
LATER = {
    "readout": (lambda: learn(ESNRegressor(**SMALL)), "leak_rate", learn),
    "trained": (lambda: learn(RNNRegressor(**TRAINED)), "clip_norm", learn),
    "session": (
        lambda: learn(ESNRegressor(**SMALL)),
        "n_lags",
        lambda model: model.stream().learn(X[:1], [0.5]),
    ),
    "series": (
        lambda: ESNForecaster(search="series", horizon=1, n_networks=1).fit(SERIES),
        "season",
        lambda model: model.update(np.sin(np.arange(40.0, 43.0))),
    ),
}


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("name", LATER)
def test_files_keep_what_is_fixed(name, earlier, tmp_path):
    make, parameter, use = LATER[name]
    model = make()
    value = getattr(model, parameter)
    if earlier:
        forget(model)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz").set_params(**{parameter: 5})
    for each in (again, None):
        # a second file, of a model whose parameter was changed
        if each is None:
            save(again, tmp_path / "model.npz")
            each = load(tmp_path / "model.npz")
        with pytest.raises(ValueError, match=f"{parameter}=5, but .* with {parameter}="):
            use(each)
    use(again.set_params(**{parameter: value}))


def test_a_session_and_force_train_learn_with_the_fitted_parameters():
    esn = ESNRegressor(5, feedback=True, random_state=0).fit(X, Y[False]).set_params(n_units=9)
    session = esn.stream()
    session.predict(X[:2])  # runs as `predict` does, which reads no such parameter
    for call in (
        lambda: session.learn(X[2:3], Y[False][2:3]),
        lambda: force_train(esn, Y[False], exog=X),
    ):
        with pytest.raises(ValueError, match="n_units=9, but the model was fitted with n_units=5"):
            call()
    rnn = learn(RNNRegressor(**TRAINED)).set_params(online="rtrl")
    with pytest.raises(ValueError, match="online='rtrl', but the model was fitted with"):
        rnn.stream().learn(X[:1], Y[False][:1])
    session = RNNRegressor(**TRAINED, max_iter=1, solver="adam").fit(X, Y[False]).stream()
    learned = session.learn(X[:1], Y[False][:1]).to_estimator().set_params(l1=0.5)
    with pytest.raises(ValueError, match=r"l1=0\.5, but the model was fitted with l1=0\.0"):
        learn(learned)


def test_a_transformer_follows_chunks_with_the_fitted_parameters():
    states = ReservoirTransformer(5, random_state=0).partial_fit(X[:30])
    with pytest.raises(ValueError, match="n_units=9, but the model was fitted with n_units=5"):
        states.set_params(n_units=9).partial_fit(X[30:])
    assert states.set_params(n_units=5, initial_state="zeros").partial_fit(X[30:]) is states
