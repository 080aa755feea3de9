"""Closed loops of trained networks: alone, with context, exogenous inputs, in wrappers."""

import pickle

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from reservoir import RNNRegressor, forecast
from reservoir.training.bptt import predict
from reservoir.training.cells import LSTMCell

pytestmark = pytest.mark.both_engines

CELLS = ("rnn", "leaky", "lstm", "gru")


def make(**params):
    options = {"n_units": 7, "init": "esn", "max_iter": 2, "washout": 5, "random_state": 0}
    return RNNRegressor(**options | params)


def outputs_of(rnn, X, state=None):
    """One sequence through the network's own functions."""
    start = None if state is None else np.asarray(state)[None]
    rows, end = predict(rnn.network_, rnn.params_, X[:, None], start)
    return rows[:, 0], end[0]


@pytest.fixture(scope="module")
def waves():
    t = np.arange(500)
    return np.column_stack([np.sin(0.2 * t), np.cos(0.2 * t) * np.sin(0.031 * t)])


LOOPS = {
    "rnn": {},
    "leaky": {"cell": "leaky"},
    "lstm": {"cell": "lstm"},
    "gru": {"cell": "gru"},
    "peephole": {"cell": LSTMCell(30, peephole=True), "init": "glorot", "solver": "lbfgs"},
    "tanh": {"output": "tanh"},
    "logistic": {"output": "logistic", "loss": "mse"},
    "input": {"include_input": True},
    "lstm, tanh, input": {"cell": "lstm", "output": "tanh", "include_input": True},
}


def forecaster(**params):
    return make(**{"n_units": 30, "max_iter": 3, "washout": 50, **params})


def in_range(waves, params):
    return (waves + 1) / 2.5 if params.get("output") == "logistic" else waves * 0.9


@pytest.mark.parametrize("params", LOOPS.values(), ids=LOOPS)
class TestForecast:
    @pytest.mark.fast_cases(2)
    def test_is_the_loop_that_predict_gives_step_by_step(self, waves, params):
        Z = in_range(waves, params)
        rnn = forecaster(**params).fit(Z[:399], Z[1:400])
        state, u = rnn.state_, Z[399]
        for row in rnn.forecast(20):
            u, state = outputs_of(rnn, u[None], state)
            u = u[0]
            np.testing.assert_allclose(row, u, atol=1e-9)

    @pytest.mark.fast_cases(1)
    @pytest.mark.parametrize("initial_state", [None, "zeros", "last", "steady"])
    def test_row_0_with_context_equals_predict(self, waves, params, initial_state):
        Z = in_range(waves, params)
        rnn = forecaster(**params).fit(Z[:399], Z[1:400])
        options = {"context": Z[399:450], "initial_state": initial_state}
        rows, state = rnn.forecast(3, return_state=True, **options)
        expected = rnn.predict(Z[399:450], initial_state=initial_state)[-1]
        np.testing.assert_array_equal(rows[0], expected)
        again = rnn.forecast(2, context=rows[-1:], initial_state=state)
        np.testing.assert_allclose(again, rnn.forecast(5, **options)[3:], atol=1e-9)

    @pytest.mark.fast_cases(2)
    def test_exogenous_columns_come_last(self, waves, params):
        Z = in_range(waves, params)
        X = np.hstack([Z[:-1, :1], Z[1:, 1:]])
        rnn = forecaster(**params).fit(X[:399], Z[1:400, 0])
        rows = rnn.forecast(20, exog=Z[400:420, 1:])
        assert rows.shape == (20,)
        state, u = rnn.state_, Z[399, 0]
        for row, e in zip(rows, Z[400:420, 1], strict=True):
            out, state = outputs_of(rnn, np.array([[u, e]]), state)
            u = out[0, 0]
            np.testing.assert_allclose(row, u, atol=1e-9)
        context = X[399:430]
        after = rnn.forecast(4, context=context, exog=Z[430:433, 1])
        np.testing.assert_array_equal(after[0], rnn.predict(context)[-1])

    @pytest.mark.fast_cases(1)
    def test_wrappers_give_the_loop_that_predict_gives(self, waves, params):
        z = in_range(waves, params)[:, 0]
        inside = MinMaxScaler((0.1, 0.9)) if "output" in params else StandardScaler()
        for wrap in (
            lambda rnn: make_pipeline(StandardScaler(), rnn),
            lambda rnn: TransformedTargetRegressor(rnn, transformer=inside),
            lambda rnn: TransformedTargetRegressor(
                make_pipeline(FunctionTransformer(lambda x: 2 * x + 1), rnn), transformer=inside
            ),
        ):
            model = wrap(forecaster(**params)).fit(z[:399, None], z[1:400])
            context = z[350:400]
            for row in forecast(model, 4, context=context[:, None]):
                np.testing.assert_allclose(row, model.predict(context[:, None])[-1], rtol=1e-6)
                context = np.append(context, row)


def test_forecast_through_a_search(waves):
    z = waves[:, 0] * 3 + 7
    search = GridSearchCV(
        make_pipeline(StandardScaler(), forecaster(max_iter=0)),
        {"rnnregressor__n_units": [20, 30]},
        cv=TimeSeriesSplit(3),
    ).fit(z[:399, None], z[1:400])
    best = search.best_estimator_
    np.testing.assert_array_equal(forecast(search, 20), forecast(best, 20))
    np.testing.assert_allclose(forecast(search, 5), z[400:405], atol=0.05)
    with pytest.raises(ValueError, match=r"reservoir\.forecast\(pipe, n_steps\)"):
        best[-1].forecast(5)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_forecasts_are_pure_and_of_ys_kind(waves, cell, dtype):
    one = forecaster(cell=cell, dtype=dtype).fit(waves[:-1, :1], waves[1:, 0])
    before = pickle.dumps(one)
    rows = one.forecast(5)
    assert np.array_equal(one.forecast(5), rows)
    assert pickle.dumps(one) == before
    column = forecaster(cell=cell, dtype=dtype).fit(waves[:-1, :1], waves[1:, :1]).forecast(5)
    assert (rows.shape, column.shape) == ((5,), (5, 1))
    assert rows.dtype == column.dtype == np.dtype(dtype)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("cell", CELLS)
def test_forecasts_that_raise(waves, cell):
    with pytest.raises(ValueError, match=r"y\[0, 0\]=0, but X\[1, 0\]=0\.198669"):
        forecaster(cell=cell, max_iter=0).fit(waves[:300], waves[:300]).forecast(5)
    with pytest.raises(ValueError, match="n_steps=0 must be at least 1"):
        forecaster(cell=cell, max_iter=0).fit(waves[:299], waves[1:300]).forecast(0)
    several = forecaster(cell=cell, max_iter=0).fit([waves[:299]] * 2, [waves[1:300]] * 2)
    with pytest.raises(ValueError, match="needs a context"):
        several.forecast(3)
    assert several.forecast(3, context=waves[300:350]).shape == (3, 2)
    with pytest.raises(NotFittedError):
        forecaster(cell=cell).forecast(3)


@pytest.mark.parametrize(
    "params", [{"activation": "identity"}, {"cell": "lstm"}], ids=["rnn", "lstm"]
)
def test_loops_that_diverge_warn(params):
    growing = 1.5 ** np.arange(60)
    rnn = make(**params, max_iter=0).fit(growing[:-1, None], growing[1:])
    rnn.params_["coef"] = rnn.params_["coef"] * 0 + 1e12
    rnn.params_["coef"][0, 0] = 1e308
    with pytest.warns(RuntimeWarning, match=r"diverged at step \d+") as caught:
        rows = rnn.forecast(500)
    assert caught[0].filename == __file__
    assert rows.shape == (500,)
    assert np.isfinite(rows).all()


def test_probabilities_are_not_fed_back():
    """A loop on probabilities forgets a periodic word; drawing from them keeps it."""
    symbols = np.eye(3)[np.resize([0, 1, 1, 2], 400)]
    for seed in range(3):
        rnn = make(n_units=20, output="softmax", max_iter=5, random_state=seed)
        rnn.fit(symbols[:-1], symbols[1:])
        pipe = make_pipeline(FunctionTransformer(), rnn)
        for run in (
            lambda rnn=rnn: rnn.forecast(5),
            lambda rnn=rnn: rnn.forecast(1, context=symbols[:9]),
            lambda rnn=rnn: forecast(rnn, 5),
            lambda pipe=pipe: forecast(pipe, 1, context=symbols[:9]),
        ):
            with pytest.raises(
                ValueError, match=r'output="softmax" the.*draw the symbols of this network yourself'
            ):
                run()
        row, state = symbols[-1:], rnn.state_  # as the message says
        for k in range(40):
            p, state = rnn.predict(row, initial_state=state, return_state=True)
            row = np.eye(3)[p.argmax(axis=1)]
            np.testing.assert_array_equal(row[0], symbols[k % 4])


def test_one_target_per_sequence_raises_in_the_function(waves):
    rnn = make(target="last", washout=0).fit([waves[:20], waves[5:30]], waves[[20, 30]])
    with pytest.raises(ValueError, match='target="last"'):
        forecast(rnn, 3, context=waves[:20])
