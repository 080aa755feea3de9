"""Trained networks say so where inputs are too large for them."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import RNNClassifier, RNNRegressor
from reservoir.datasets import mackey_glass
from reservoir.estimators.rnn._large_inputs import warn_of_large_inputs
from reservoir.training.cells import bidirectional, stacked
from reservoir.training.trainer import Data

pytestmark = pytest.mark.one_engine
SAID = r"inputs hold most units at their bounds: \|W_in u \+ bias\| is \d.*StandardScaler"


def series(scale):
    rows = mackey_glass(606, random_state=0).ravel()
    rows = (rows - rows.mean()) / rows.std()
    return scale * rows[:-6, None], rows[6:]


@pytest.mark.parametrize(
    "params",
    [
        {"init": "orthogonal"},
        {"init": "glorot", "activation": "logistic"},
        {"cell": "lstm", "init": "orthogonal"},
        {"cell": "scrn"},
        {"cell": "gated_feedback"},
        {"cell": stacked("gru", "rnn", readout_shortcuts=True)},
        {"cell": bidirectional("rnn"), "initial_state": "zeros"},
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


def test_the_remedy_helps():
    X, y = series(1000.0)
    for seed in range(3):
        rnn = RNNRegressor(20, init="orthogonal", max_iter=20, random_state=seed)
        with pytest.warns(UserWarning, match=SAID):
            bare = rnn.fit(X, y).score(X, y)
        assert 1 - make_pipeline(StandardScaler(), rnn).fit(X, y).score(X, y) < 0.2 * (1 - bare)


@pytest.mark.parametrize("mean", [0.0, 1e5])
def test_large_inputs_that_do_no_harm_are_left_alone(mean):
    X, y = series(1000.0)
    X = X + mean
    for params in (
        {},  # the start from data scales its weights
        {"init": "esn"},
        {"cell": "lstm"},  # gates that stand open are not held there by inputs
        {"cell": "gru", "init": "esn"},
        {"init": "orthogonal", "activation": "relu"},  # no bounds
        {"init": "orthogonal", "activation": "softplus"},
        {"cell": "scrn", "activation": "identity"},
    ):
        RNNRegressor(12, max_iter=2, random_state=0, **params).fit(X, y)
    # codes are no sizes
    codes = np.random.default_rng(0).integers(0, 200, (300, 1))
    RNNClassifier(8, init="orthogonal", n_symbols=200, max_iter=1).fit(codes, codes.ravel() % 2)


def test_some_rows_of_all_lengths_are_looked_at():
    seen = []

    class Rows(np.ndarray):
        def __getitem__(self, item):
            seen.append(len(range(len(self))[item]))
            return np.asarray(self)[item]

    X, y = series(1000.0)
    network = RNNRegressor(4, init="orthogonal", max_iter=1).fit(X / 1000, y).network_
    params = {name: np.ones(shape) for name, shape in network.shapes().items()}
    for n_sequences, n_rows in ((1, 5000), (3, 999), (400, 7), (3000, 1)):
        seen.clear()
        rows = np.full((n_rows, 1), 1000.0).view(Rows)
        data = Data([rows] * n_sequences, [None] * n_sequences)
        with pytest.warns(UserWarning, match=SAID):
            assert warn_of_large_inputs(network, params, data)
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
