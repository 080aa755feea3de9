"""Errors of trained networks: their messages, and an unchanged estimator."""

import contextlib
import pickle
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from reservoir import RNNClassifier, RNNRegressor
from reservoir.training.cells import LSTMCell

pytestmark = pytest.mark.both_engines

X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
y = X[:, 0] * 0.5 + np.append(0, X[:-1, 1])
CELLS = ("rnn", "leaky", "lstm", "gru")


def make(cls=RNNRegressor, **params):
    return cls(**{"n_units": 5, "init": "esn", "max_iter": 2, "random_state": 0, **params})


PARAMETERS = [
    ({"n_units": 0}, ValueError, "n_units=0 must be at least 1"),
    ({"cell": "rn"}, ValueError, "cell='rn' is not known"),
    ({"cell": "elman"}, ValueError, "Known: 'gated_feedback', 'gru', 'leaky', 'lstm'"),
    ({"cell": LSTMCell(4)}, ValueError, "cell has n_units=4, but the estimator has n_units=5"),
    ({"activation": "tahn"}, ValueError, "Did you mean 'tanh'?"),
    (
        {"cell": "gru", "activation": "relu"},
        ValueError,
        "is used only by cell='rnn', 'leaky', 'scrn'",
    ),
    ({"cell": "leaky", "leak_rate": 0.0}, ValueError, "leak_rate"),
    ({"loss": "rmse"}, ValueError, "loss='rmse' is not known"),
    ({"init": "xavier"}, ValueError, "Known: 'auto', 'esn', 'glorot', 'he'"),
    ({"solver": "adma"}, ValueError, "Did you mean 'adam'"),
    ({"solver": None}, ValueError, "Known: 'adadelta', 'adagrad', 'adam', 'auto', 'hessian_free'"),
    ({"learning_rate_init": 0.0}, ValueError, "learning_rate_init=0.0 must be finite and in (0"),
    ({"learning_rate": "adaptive"}, ValueError, "Known: 'constant', 'cosine', 'exponential'"),
    ({"max_iter": -1}, ValueError, "max_iter=-1 must be at least 0"),
    ({"batch_size": 0}, ValueError, "batch_size=0 must be at least 1"),
    ({"batch_size": None}, ValueError, 'a number of sequences, or to "auto"'),
    ({"batch_size": "all"}, ValueError, "Known: 'auto'"),
    ({"truncation": 0}, ValueError, "truncation=0 must be at least 1"),
    ({"truncation": 20, "solver": "lbfgs"}, ValueError, 'Use truncation="auto"'),
    ({"clip_norm": 0.0}, ValueError, "clip_norm=0.0"),
    ({"include_input": 1}, TypeError, "include_input must be True or False; got 1"),
    ({"validation_fraction": 0.0}, ValueError, "validation_fraction=0.0"),
    ({"validation_fraction": 1.0}, ValueError, "validation_fraction=1.0"),
    ({"n_iter_no_change": 0}, ValueError, "n_iter_no_change=0"),
    ({"online": "rtl"}, ValueError, "Did you mean 'rtrl'"),
    ({"online_window": 0}, ValueError, "online_window=0"),
    ({"washout": -1}, ValueError, "washout=-1 must be at least 0"),
    ({"washout": 60}, ValueError, "washout=60 leaves nothing to fit: X has n_samples=60"),
    ({"washout": "measured"}, ValueError, 'set an integer or "auto"'),
    ({"initial_state": np.zeros(3)}, ValueError, "got shape (3,)"),
    ({"initial_state": np.full(5, np.nan)}, ValueError, "initial_state contains NaN"),
    ({"random_state": -1}, ValueError, "random_state=-1"),
]


@pytest.mark.parametrize(
    "params, kind, message",
    PARAMETERS,
    ids=[f"{next(iter(p))}-{k}" for k, (p, *_) in enumerate(PARAMETERS)],
)
def test_parameters(params, kind, message):
    for act in ("fit", "partial_fit"):
        if act == "partial_fit" and params.get("solver") == "lbfgs":
            continue
        if act == "partial_fit" and params.get("washout") == 60:
            continue  # more rows may come
        rnn = make(**params)
        before = pickle.dumps(vars(rnn))
        with pytest.raises(kind, match=re.escape(message)):
            getattr(rnn, act)(X, y)
        assert pickle.dumps(vars(rnn)) == before
    if "loss" not in params:
        with pytest.raises((ValueError, TypeError)):
            make(RNNClassifier, **params).fit(X, y > 0)


def test_outputs_of_regressors():
    with pytest.raises(ValueError, match="Known: 'identity', 'logistic', 'softmax', 'tanh'"):
        make(output="sigmoid").fit(X, y)
    with pytest.raises(TypeError, match="refit_readout must be True or False"):
        make(refit_readout=0).fit(X, y)
    for output, loss in (("identity", "bce"), ("tanh", "cross_entropy"), ("softmax", "hinge")):
        with pytest.raises(ValueError, match=f"loss='{loss}' needs output="):
            make(output=output, loss=loss).fit(X, y)


@pytest.mark.parametrize("act", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "output, bad, message",
    [
        ("tanh", 1.5, r"values in \[-1, 1\]; y contains 1.5 in row 7"),
        ("logistic", -0.25, r"values in \[0, 1\]; y contains -0.25 in row 7"),
        ("softmax", 0.5, "rows that sum to 1; row 7 of y sums to 1.5"),
    ],
)
def test_targets_out_of_reach(act, output, bad, message):
    target = np.column_stack([np.ones(60), np.zeros(60)])
    target[7, 1] = bad
    target = target if output == "softmax" else target[:, 1]
    with pytest.raises(ValueError, match=message):
        getattr(make(output=output), act)(X, target)
    with pytest.raises(ValueError, match=r"hinge.* targets -1 and 1; y contains 0"):
        getattr(make(loss="hinge"), act)(X, np.zeros(60))


def test_weights():
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|inf"):
            make(target="last").fit([X, X], [0.5, value])
    inside = np.append(np.ones(20), np.zeros(40))
    with pytest.raises(ValueError, match="weight 0 or is in the washout"):
        make(washout=20).fit(X, y, sample_weight=inside)
    for dtype in ("float32", "float64"):
        rows = [make(dtype=dtype, init="orthogonal").fit(X, y, np.full(60, w)).predict(X)
                for w in (1.0, 1e-60, 1e300)]  # fmt: skip
        np.testing.assert_allclose(rows[1], rows[0], atol=1e-3)
        np.testing.assert_allclose(rows[2], rows[0], atol=1e-3)


def test_before_and_after_fit():
    for cls in (RNNRegressor, RNNClassifier):
        for act in ("predict", "states", "predict_proba", "decision_function"):
            if hasattr(cls, act):
                with pytest.raises(NotFittedError):
                    getattr(cls(), act)(X)
        with pytest.raises(NotFittedError):
            cls().stream()
    rnn = make().fit(X, y)
    with pytest.raises(ValueError, match="X has 1 features, but RNNRegressor is expecting 2"):
        rnn.predict(X[:, :1])
    with pytest.raises(ValueError, match=r"shape \(5,\).*got shape \(2, 5\)"):
        rnn.predict(X, initial_state=np.zeros((2, 5)))
    with pytest.raises(AttributeError, match="LSTMCell is not a reservoir"):
        _ = make(cell="lstm").fit(X, y).reservoir_
    assert rnn.reservoir_.n_units == 5


# -------------------------------------------------------------------------- extreme data


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestExtremes:
    def check(self, rnn, X, y):
        rnn.fit(X, y)
        for rows in (rnn.predict(X), rnn.states(X), rnn.loss_curve_, rnn.best_loss_):
            assert np.isfinite(rows).all()
        assert all(np.isfinite(array).all() for array in rnn.params_.values())
        return rnn

    @pytest.mark.fast_cases(1)
    def test_sizes(self, cell, dtype):
        for n in (2, 3, 49, 50):
            self.check(make(cell=cell, dtype=dtype, init="auto"), X[:n], y[:n])
        self.check(make(cell=cell, dtype=dtype, n_units=1), X, y)
        many = np.random.default_rng(0).normal(size=(60, 64))
        rnn = self.check(make(cell=cell, dtype=dtype, n_units=4), X, many)
        assert rnn.predict(X).shape == (60, 64)
        self.check(make(cell=cell, dtype=dtype, init="glorot", washout=1), X[:2], y[:2])
        with pytest.raises(ValueError, match="at least 2 rows with a target"):
            make(cell=cell, dtype=dtype, washout=1).fit(X[:2], y[:2])

    @pytest.mark.fast_cases(1)
    @pytest.mark.parametrize("init", ["least_squares", "glorot"])
    def test_constants(self, cell, dtype, init):
        none, same = np.zeros((60, 2)), np.full((60, 2), 3.0)
        for given, target in (
            (same, y), (X, same[:, 0]), (same, same[:, 0]), (none, none[:, 0]),
        ):  # fmt: skip
            rnn = make(cell=cell, dtype=dtype, init=init)
            rnn = self.check(rnn, given, target)
            if target is not y and init == "least_squares":
                np.testing.assert_allclose(rnn.predict(given), target[0], atol=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e15])
    def test_units(self, cell, dtype, scale):
        """A fitted start sees its data at unit scale, whatever their units."""
        plain = make(cell=cell, dtype=dtype, init="auto", max_iter=0).fit(X, y)
        for given, target, units in ((X * scale, y, 1.0), (X, y * scale, scale)):
            for solver in ("auto", "adam"):
                large = given is not X and scale > 1 and solver == "adam"
                said = pytest.warns(UserWarning, match="X is too large for learning_rate_init")
                with said if large else contextlib.nullcontext():  # steps do not see units
                    rnn = make(cell=cell, dtype=dtype, init="auto", solver=solver)
                    self.check(rnn, given, target)
                if dtype == "float64":
                    start = rnn.loss_curve_[0] / units / units
                    assert 0.2 * plain.best_loss_ < start < 5 * plain.best_loss_ + 1e-10

    @pytest.mark.fast_cases(2)
    def test_squares_that_overflow(self, cell, dtype):
        large = 1e200 if dtype == "float64" else 1e30
        for act in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=rf"y reaches .*overflow {dtype}. Scale y"):
                getattr(make(cell=cell, dtype=dtype), act)(X, y * large)
        with pytest.raises(ValueError, match=r"X reaches|as float32"):
            make(cell=cell, dtype=dtype).fit(X * 1e200, y)
        rnn = make(cell=cell, dtype=dtype).fit(X, y)
        with pytest.raises(ValueError, match="y reaches"):
            rnn.partial_fit(X, y * large)


def test_inputs_that_overflow_after_training():
    rnn = make(activation="relu", init="he", n_units=20, max_iter=0).fit(X, y)
    for act in (rnn.predict, rnn.states):
        with pytest.raises(ValueError, match=r"(output|state) of row 0 overflows float64"):
            act(np.full((3, 2), 1e308))
        with pytest.raises(ValueError, match="row 0 of sequence 1"):
            act([X, np.full((3, 2), 1e308)])
    with pytest.warns(match="no fixed point"):
        make(activation="identity", init="normal", max_iter=0, n_units=300).fit(X, y).predict(
            X[:1], initial_state="steady"
        )


def test_a_loss_that_overflows_from_the_start():
    rnn = make(activation="identity", init="he", n_units=20)
    long = np.random.default_rng(0).normal(size=(2000, 1))
    with pytest.raises(ValueError, match="overflows even with the initial weights"):
        rnn.fit(long, long[:, 0])
    assert not hasattr(rnn, "params_")


# -------------------------------------------------------------------------- all or nothing


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cls", [RNNRegressor, RNNClassifier])
def test_a_fit_that_fails_changes_nothing(cls, monkeypatch):
    target = y if cls is RNNRegressor else y > 0
    rnn = make(cls, early_stopping=True).fit(X, target)
    rnn.partial_fit(X, target)
    before = pickle.dumps(rnn)

    def fail(*args, **kwargs):
        raise MemoryError

    for act, name in (
        ("fit", "reservoir.estimators.rnn.network_estimator.run_training"),
        ("fit", "reservoir.estimators.rnn.start_trials.starting_weights"),
        ("fit", "reservoir.estimators.rnn.network_model.NetworkModel.run"),
        ("partial_fit", "reservoir.training.online._learner.Descent.step"),
        ("partial_fit", "reservoir.estimators.progress.NextInputCheck.add"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(name, fail)
            with pytest.raises(MemoryError):
                getattr(rnn, act)(X[:40], target[:40])
            fresh = make(cls)
            empty = dict(vars(fresh))
            with pytest.raises(MemoryError):
                getattr(fresh, act)(X, target)
            assert vars(fresh) == empty
        assert pickle.dumps(rnn) == before
    with pytest.raises(ValueError, match="features"):
        rnn.partial_fit(X[:, :1], target)
    assert pickle.dumps(rnn) == before
