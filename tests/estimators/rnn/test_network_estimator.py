"""Trained networks as estimators: sequences, states, purity, chunks, weights, searches."""

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score

from reservoir import RNNRegressor
from reservoir.model_selection import stack_sequences
from reservoir.training.bptt import predict
from reservoir.training.cells import LSTMCell

pytestmark = pytest.mark.both_engines

CELLS = ("rnn", "leaky", "lstm", "gru")
LENGTHS = (30, 43, 21, 35)


def sequences(seed=0, lengths=LENGTHS):
    rng = np.random.default_rng(seed)
    Xs = [rng.uniform(-1, 1, (n, 2)) for n in lengths]
    return Xs, [X[:, 0] * 0.5 + np.append(0, X[:-1, 1]) for X in Xs]


def series(n=200, n_outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    Y = np.sin(X[:, :1]) + np.vstack([np.zeros((2, 1)), X[:-2, :1]]) * np.arange(1, n_outputs + 1)
    return X, (Y[:, 0] if n_outputs == 1 else Y)


def make(cls=RNNRegressor, **params):
    """A network with the cheapest start from data; tests of the starts have their own file."""
    options = {"n_units": 7, "init": "esn", "max_iter": 2, "washout": 5, "random_state": 0}
    return cls(**options | params)


def containers(Xs, ys):
    table, y, _ = stack_sequences(Xs, ys)
    packed_X, packed_y = np.empty(len(Xs), object), np.empty(len(ys), object)
    packed_X[:], packed_y[:] = Xs, ys
    yield table, y, {"sequence_column": 0}
    yield np.roll(table, -1, axis=1), y, {"sequence_column": -1}
    yield tuple(Xs), tuple(ys), {}
    yield packed_X, packed_y, {}


def same_params(one, other, **tolerance):
    assert one.keys() == other.keys()
    for name in one:
        if tolerance:
            np.testing.assert_allclose(one[name], other[name], err_msg=name, **tolerance)
        else:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def outputs_of(rnn, X, state=None):
    """One sequence through the network's own functions."""
    start = None if state is None else np.asarray(state)[None]
    rows, end = predict(rnn.network_, rnn.params_, X[:, None], start)
    return rows[:, 0], end[0]


# -------------------------------------------------------------------------- sequences


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS)
def test_every_container_trains_the_same_network(cell):
    Xs, ys = sequences()
    plain = make(cell=cell).fit(list(Xs), list(ys))
    expected = [outputs_of(plain, X)[0][:, 0] for X in Xs]  # each from zeros
    for X, y, params in containers(Xs, ys):
        rnn = make(cell=cell, **params).fit(X, y)
        same_params(rnn.params_, plain.params_)
        assert rnn.loss_curve_ == plain.loss_curve_
        rows = rnn.predict(X)
        if params:
            np.testing.assert_allclose(rows, np.concatenate(expected), atol=1e-12)
            assert rnn.score(X, y) == pytest.approx(plain.score(list(Xs), list(ys)))
            continue
        assert type(rows) is (list if isinstance(X, tuple) else type(X))
        for part, reference in zip(rows, expected, strict=True):
            np.testing.assert_allclose(part, reference, atol=1e-12)


def test_state_does_not_leak_from_one_sequence_to_the_next():
    Xs, ys = sequences()
    rnn = make(init="least_squares", max_iter=0).fit(list(Xs), list(ys))
    glued = outputs_of(rnn, np.vstack(Xs))[0][:, 0]
    assert np.abs(glued - np.concatenate(rnn.predict(list(Xs)))).max() > 1e-3
    leaked = make(init="least_squares", max_iter=0).fit(np.vstack(Xs), np.concatenate(ys))
    assert not np.allclose(leaked.params_["W"], rnn.params_["W"])


def test_the_loss_is_that_of_the_sequences_one_by_one():
    Xs, ys = sequences()
    rnn = make(max_iter=0, washout=5).fit(list(Xs), list(ys))
    errors = [(outputs_of(rnn, X)[0][:, 0] - y)[5:] ** 2 for X, y in zip(Xs, ys, strict=True)]
    np.testing.assert_allclose(rnn.loss_curve_, [np.concatenate(errors).mean()])
    assert rnn.best_loss_ == rnn.loss_curve_[0]


def test_three_dimensional_arrays():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (5, 40, 2))
    y = X[:, :, 0] * 0.5
    rnn = make().fit(X, y)
    same_params(rnn.params_, make().fit(list(X), list(y)).params_)
    assert rnn.predict(X).shape == (5, 40)
    assert make().fit(X, y[:, :, None]).predict(X).shape == (5, 40, 1)
    assert rnn.states(X).shape == (5, 40, 7)
    _, states = rnn.predict(X, return_state=True)
    assert states.shape == (5, 7)
    weights = np.ones((5, 40))
    weights[2] = 0
    others = [0, 1, 3, 4]
    weighed = make(max_iter=0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        weighed.loss_curve_, np.mean((weighed.predict(X) - y)[others, 5:] ** 2)
    )


# -------------------------------------------------------------------------- one series

VARIANTS = {
    "rnn": {},
    "leaky": {"cell": "leaky", "leak_rate": 0.5},
    "leak per unit": {"cell": "leaky", "leak_rate": np.linspace(0.1, 1, 7)},
    "lstm": {"cell": "lstm"},
    "peephole": {"cell": LSTMCell(7, peephole=True), "init": "glorot"},
    "gru": {"cell": "gru"},
    "float32": {"dtype": "float32"},
    "input": {"include_input": True, "output": "tanh"},
    "lbfgs": {"solver": "lbfgs", "max_iter": 5},
    "hessian_free": {"solver": "hessian_free", "max_iter": 3},
}


@pytest.mark.parametrize("params", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("n_outputs", [1, 2])
class TestRegressor:
    def data(self, params, n_outputs):
        X, y = series(n_outputs=n_outputs)
        return X, (y / 8 if params.get("output") == "tanh" else y)

    @pytest.mark.fast_cases(2)
    def test_the_best_epoch_has_the_least_loss(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X, y)
        assert len(rnn.loss_curve_) == rnn.n_iter_ + 1
        decides = getattr(rnn, "validation_loss_curve_", rnn.loss_curve_)
        assert rnn.best_loss_ == decides[rnn.best_epoch_]
        if rnn.best_epoch_:
            assert rnn.best_loss_ == min(decides)

    @pytest.mark.fast_cases(2)
    def test_the_state_after_fit_is_where_training_ended(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X, y)
        _, end = outputs_of(rnn, X.astype(rnn.params_["W"].dtype))
        np.testing.assert_allclose(rnn.state_, end, atol=1e-6)
        np.testing.assert_array_equal(
            rnn.predict(X), rnn.predict(X, initial_state=rnn.state_)
        )  # "last"


def test_steady_is_a_fixed_point():
    X, y = series()
    for cell in CELLS:
        rnn = make(cell=cell, init="glorot").fit(X, y)
        state = rnn.network_.cell.forward(
            rnn.params_, np.tile(X[:1, None], (3000, 1, 1)), None
        ).end[0]
        rows = rnn.predict(X[:20], initial_state="steady")
        np.testing.assert_allclose(rows, outputs_of(rnn, X[:20], state)[0][:, 0], atol=1e-9)


def test_initial_states_as_arrays_enter_training():
    X, y = series()
    start = np.linspace(-1, 1, 7)
    rnn = make(max_iter=0, washout=0, initial_state=start).fit(X, y)
    np.testing.assert_allclose(
        rnn.loss_curve_, np.mean((outputs_of(rnn, X, start)[0][:, 0] - y) ** 2)
    )
    with pytest.raises(ValueError, match=r"\(7,\).*got shape \(3,\)"):
        make(initial_state=np.zeros(3)).fit(X, y)
    with pytest.raises(ValueError, match=r"\(14,\).*got shape \(7,\)"):
        make(cell="lstm", initial_state=np.zeros(7)).fit(X, y)  # outputs, then cells
    with pytest.raises(ValueError, match="initial_state='first' is not known"):
        make(initial_state="first").fit(X, y)


def test_weights_are_relative():
    X, y = series(60)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    for init in ("esn", "glorot"):
        one = make(init=init).fit(X, y, sample_weight=weights)
        for factor in (8.0, 2.0**-60):
            other = make(init=init).fit(X, y, sample_weight=factor * weights)
            same_params(other.params_, one.params_, rtol=1e-6)
        plain = make(init=init).fit(X, y, sample_weight=np.full(len(X), 3.0))
        same_params(plain.params_, make(init=init).fit(X, y).params_, rtol=1e-6)
        again = make(init=init).fit(X, y, sample_weight=3)
        same_params(again.params_, plain.params_)


def test_washout_rows_are_not_learned():
    X, y = series()
    wild = y.copy()
    wild[:30] = 1e3
    one, other = (make(washout=30).fit(X, target) for target in (y, wild))
    same_params(one.params_, other.params_)
    assert one.washout_.tolist() == [30]
    assert make(washout="auto").fit(X, y).washout_.tolist() == [len(X) // 10]
    # several start from zeros in use, too: their first rows are learned
    assert make(washout="auto").fit(*sequences()).washout_.tolist() == [0] * 4


# -------------------------------------------------------------------------- scikit-learn's tools


def test_cross_validation_by_time_continues_from_the_end_of_training():
    X, y = series(120)
    split = TimeSeriesSplit(2)
    scores = cross_val_score(make(), X, y, cv=split)
    for score, (train, test) in zip(scores, split.split(X), strict=True):
        rnn = make().fit(X[train], y[train])
        assert score == rnn.score(X[test], y[test])
        whole = outputs_of(rnn, np.vstack([X[train], X[test]]))[0][len(train) :, 0]
        np.testing.assert_allclose(rnn.predict(X[test]), whole, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_searches_give_the_same_bits_on_several_workers(backend):
    X, y = series()
    grid = {"learning_rate_init": [1e-3, 1e-2], "cell": ["rnn", "gru"]}
    one = GridSearchCV(make(), grid, cv=TimeSeriesSplit(2)).fit(X, y)
    with joblib.parallel_backend(backend):
        two = GridSearchCV(make(), grid, cv=TimeSeriesSplit(2), n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )
    same_params(one.best_estimator_.params_, two.best_estimator_.params_)
