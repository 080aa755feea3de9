"""Warnings of trained networks about inputs that are too large."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import RNNClassifier, RNNRegressor
from reservoir.datasets import mackey_glass
from reservoir.estimators.rnn.training_run import warn_of_large_inputs
from reservoir.model_selection import PerStep
from reservoir.training.bptt import Network
from reservoir.training.cells import (
    SimpleCell,
    StackedCell,
    TimedLeakyCell,
    Weight,
    bidirectional,
    stacked,
)
from reservoir.training.trainer import Data

pytestmark = pytest.mark.one_engine
SAID = r"X is too large for this network: its columns alone drive \d+% .* Scale X \(StandardScaler"


def series(scale):
    rows = mackey_glass(606, random_state=0).ravel()
    rows = (rows - rows.mean()) / rows.std()
    return scale * rows[:-6, None], rows[6:]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "params",
    [
        {"init": "orthogonal"},
        {"init": "glorot", "activation": "logistic"},
        {"cell": "lstm", "init": "orthogonal"},
        {"cell": "scrn", "init": "orthogonal"},
        {"cell": "gated_feedback", "init": "orthogonal"},
        {"cell": stacked("gru", "rnn", readout_shortcuts=True), "init": "orthogonal"},
        {"cell": bidirectional("rnn"), "init": "orthogonal", "initial_state": "zeros"},
    ],
)
def test_random_weights_under_large_inputs(params):
    for scale in (1.0, 1000.0):
        X, y = series(scale)
        rnn = RNNRegressor(12, max_iter=2, random_state=0, **params)
        if scale == 1.0:
            rnn.fit(X, y)
            continue
        with pytest.warns(UserWarning, match=SAID):
            rnn.fit(X, y)
        make_pipeline(StandardScaler(), rnn).fit(X, y)  # the remedy is silent


@pytest.mark.slow
def test_the_remedy_helps():
    X, y = series(1000.0)
    for seed in range(3):
        rnn = RNNRegressor(20, init="orthogonal", max_iter=20, random_state=seed)
        with pytest.warns(UserWarning, match=SAID):
            bare = rnn.fit(X, y).score(X, y)
        assert 1 - make_pipeline(StandardScaler(), rnn).fit(X, y).score(X, y) < 0.2 * (1 - bare)


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.0, 1e5])
def test_large_inputs_that_do_no_harm_are_left_alone(mean):
    X, y = series(1000.0)
    X = X + mean
    rate = 0.1 / np.median(np.abs(X))  # steps are short
    for params in (
        {},  # the start from data scales its weights
        {"init": "esn"},
        {"cell": "lstm"},  # gates that stand open are not held there by inputs
        {"cell": "gru", "init": "esn"},
        {"init": "orthogonal", "activation": "relu"},  # no bounds
        {"init": "orthogonal", "activation": "softplus"},
        {"cell": "scrn", "activation": "identity"},
    ):
        RNNRegressor(12, max_iter=2, learning_rate_init=rate, random_state=0, **params).fit(X, y)
    # codes are no sizes
    codes = np.random.default_rng(0).integers(0, 200, (300, 1))
    clf = RNNClassifier(8, init="orthogonal", n_symbols=200, max_iter=1, random_state=0)
    clf.fit(codes, codes.ravel() % 2)


LONG = r"X is too large for learning_rate_init=0.001: one update changes .* by up to 1\.\d"


def labelled(seed, n=60):
    """Sequences of two frequencies under noise, and which of them it was."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    waves = np.sin(np.arange(20) * (0.5 + 0.3 * y[:, None]))[..., None]
    return list(waves + rng.normal(size=(n, 20, 2))), y


@pytest.mark.slow
def test_steps_that_are_too_long_after_starts_from_data():
    gained = []
    for seed in range(5):
        X, y = labelled(seed)
        new, labels = labelled(seed + 100, 200)
        X, new = [1000 * rows for rows in X], [1000 * rows for rows in new]
        network = RNNClassifier(20, target="last", init="esn", max_iter=40, random_state=seed)
        scaled = make_pipeline(PerStep(StandardScaler()), network)  # silent
        remedied = scaled.fit(X, y).score(new, labels)
        # by their steps, or by where these have led
        with pytest.warns(UserWarning, match=rf"{LONG}|{SAID}"):
            gained.append(remedied - network.fit(X, y).score(new, labels))
    assert np.mean(gained) > 0


@pytest.mark.slow
def test_when_steps_are_too_long():
    X, y = series(1500.0)
    common = {"init": "esn", "solver": "adam", "max_iter": 2, "random_state": 0}
    for solver in ("adam", "nadam", "rmsprop", "adagrad"):
        with pytest.warns(UserWarning, match=LONG):
            RNNRegressor(12, **{**common, "solver": solver}).fit(X, y)
    # a lower rate, no steps, steps that follow the size of the gradient
    RNNRegressor(12, learning_rate_init=1e-5, **common).fit(X, y)
    RNNRegressor(12, init="esn", max_iter=0, random_state=0).fit(X, y)
    for solver in ("auto", "sgd", "lbfgs", "hessian_free", "least_squares"):
        RNNRegressor(12, **{**common, "solver": solver}).fit(X, y)
    # more columns are farther away, an outlier is not where the data are
    wide = np.repeat(X / 10, 100, axis=1)
    with pytest.warns(UserWarning, match=LONG):
        RNNRegressor(12, **common).fit(wide, y)
    rows = X / 1500
    rows[100:110] *= 1e5
    RNNRegressor(12, **common).fit(rows, y)


def test_steps_of_units_without_bounds_may_be_long():
    data = Data([np.full((20, 2), 1000.0)], [None])
    for activation in ("tanh", "logistic", "relu", "softplus"):
        network, params = ones(SimpleCell(6, activation), 2)
        quiet = {name: 0 * array for name, array in params.items()}
        if activation in ("relu", "softplus"):
            assert not warn_of_large_inputs(network, quiet, data, rate=1e-3)
            continue
        assert not warn_of_large_inputs(network, quiet, data, rate=1e-4)
        with pytest.warns(UserWarning, match=LONG):
            warn_of_large_inputs(network, quiet, data, rate=1e-3)


def test_learning_online_from_large_inputs():
    X, y = series(1500.0)
    with pytest.warns(UserWarning, match=SAID):
        RNNRegressor(12, init="orthogonal", random_state=0).partial_fit(X[:200], y[:200])
    for online in ("bptt", "rtrl"):
        network = RNNRegressor(12, init="esn", online=online, random_state=0)
        grown = pytest.warns(ConvergenceWarning, match="The loss grew to")  # from 1 to a million
        with pytest.warns(UserWarning, match=LONG), grown:
            network.partial_fit(X[:200], y[:200])
        with pytest.warns(ConvergenceWarning, match="The loss grew to"):  # LONG once is enough
            network.partial_fit(X[200:400], y[200:400])
    network = RNNRegressor(12, init="least_squares", online="least_squares", random_state=0)
    network.partial_fit(X[:200], y[:200])


def said(network, params, X):
    """Say whether inputs, a table or a list of them, are said to be too large."""
    X = X if isinstance(X, list) else [X]
    data = Data(X, [None] * len(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert warn_of_large_inputs(network, params, data) == bool(caught)
    return bool(caught)


def ones(cell, n_features):
    network = Network(cell, n_features, 1)
    params = {name: np.ones(shape) for name, shape in network.shapes().items()}
    params = {name: 0 * array if array.ndim == 1 else array for name, array in params.items()}
    return network, params


def test_what_is_too_large():
    network, params = ones(SimpleCell(8), 1)
    for share, flat in ((0.45, False), (0.55, True)):  # of the rows
        X = np.where(np.arange(1000) < 1000 * share, 4.0, 1.0)[:, None]
        assert said(network, params, X) == flat
        assert not said(network, params, 0.74 * X)
        assert said(network, {**params, "W_in": 0.01 * params["W_in"]}, 100 * X) == flat
        assert not said(network, {**params, "bias": np.full(8, -2.0)}, X)
    outlier = np.random.default_rng(0).normal(size=(400, 1))
    outlier[200] = 1e6
    assert not said(network, params, outlier)
    # inputs of order 1 are left alone, whatever the weights
    assert not said(network, {**params, "W_in": np.full((8, 1), 1e3)}, np.ones((50, 1)))
    # the sun shines for twelve hours, the stride of a thousand even rows would be a day
    hour = np.arange(24 * 990) % 24
    assert said(network, params, np.where(hour < 22, 1000.0, 0.0)[:, None])
    assert said(network, params, np.where(hour < 1, 0.0, 1000.0)[:, None])


def test_only_weights_that_read_inputs_count():
    for n_units in (5, 6):  # as many as there are features, and one more
        network, params = ones(StackedCell((SimpleCell(n_units), SimpleCell(n_units))), 5)
        assert said(network, params, np.full((20, 5), 100.0))
        params["0.W_in"] *= 1e-4
        assert not said(network, params, np.full((20, 5), 100.0))
    # shortcuts stand behind the states
    cells = (SimpleCell(1), SimpleCell(9))
    network, params = ones(StackedCell(cells, input_shortcuts=True), 2)
    params["0.W_in"] *= 0.0
    assert said(network, params, np.full((20, 2), 100.0))
    params["1.W_in"][:, -2:] *= 0.0
    assert not said(network, params, np.full((20, 2), 100.0))
    # times are no columns
    network, params = ones(TimedLeakyCell(6, place=0), 2)
    X = np.column_stack([1000.0 * np.arange(1, 31), np.ones(30)])
    assert not said(network, params, X)
    X[:, 1] = 100.0
    assert said(network, params, X)


def test_custom_cells():
    class Gain(SimpleCell):
        """A weight of role "input" that is no matrix."""

        def weights(self, n_features):
            return {**super().weights(n_features), "gain": Weight((n_features,), "input")}

        def layer(self):
            return None

    network, params = ones(Gain(6), 2)
    assert said(network, params, np.full((20, 2), 100.0))
    unbounded = StackedCell((SimpleCell(6, "relu"), SimpleCell(6, "relu")))
    assert not said(*ones(unbounded, 2), np.full((20, 2), 100.0))

    class Several(Gain):
        activation = np.array(["tanh", "relu"])  # not a name

    cell = Several.__new__(Several)
    object.__setattr__(cell, "n_units", 6)
    assert not said(Network(cell, 2, 1), params, np.full((20, 2), 100.0))


def test_some_rows_of_all_lengths_are_looked_at(monkeypatch):
    seen = []
    monkeypatch.setattr(SimpleCell, "channels", lambda self, X: seen.append(len(X)) or X)
    network, params = ones(SimpleCell(4), 1)
    for n_sequences, n_rows in ((1, 5000), (3, 999), (400, 7), (3000, 1)):
        seen.clear()
        assert said(network, params, [np.full((n_rows, 1), 1000.0)] * n_sequences)
        assert min(500, n_sequences * n_rows) <= sum(seen) <= 1000


def test_one_target_per_sequence_as_it_comes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    X = [1000 * (rng.normal(size=(15, 2)) + label) for label in y]
    with pytest.warns(UserWarning, match=SAID):
        RNNClassifier(8, target="last", init="orthogonal", max_iter=5, random_state=0).fit(X, y)
    # one thing at a time: training that failed is said first
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        params = {"refit_readout": False, "learning_rate_init": 1e6, "max_iter": 3}
        RNNRegressor(8, cell="scrn", target="last", random_state=0, **params).fit(X, 1.0 * y)
    assert [warning.category for warning in caught] == [ConvergenceWarning]
