"""Trained networks as estimators: sequences, states, purity, chunks, weights, labels, forecasts."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from reservoir import RNNClassifier, RNNRegressor, forecast
from reservoir.model_selection import stack_sequences
from reservoir.training.bptt import predict
from reservoir.training.cells import LSTMCell

CELLS = ("rnn", "leaky", "lstm", "gru")
LENGTHS = (40, 63, 31, 55)


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
    return cls(**{"n_units": 7, "max_iter": 2, "washout": 5, "random_state": 0, **params})


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
    rnn = make(max_iter=0).fit(list(Xs), list(ys))
    glued = outputs_of(rnn, np.vstack(Xs))[0][:, 0]
    assert np.abs(glued - np.concatenate(rnn.predict(list(Xs)))).max() > 1e-3
    leaked = make(max_iter=0).fit(np.vstack(Xs), np.concatenate(ys))
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
    fewer = make(max_iter=0).fit(X[others], y[others])
    np.testing.assert_allclose(
        weighed.loss_curve_, np.mean((weighed.predict(X) - y)[others, 5:] ** 2)
    )
    assert weighed.loss_curve_[0] < 3 * fewer.loss_curve_[0]


def test_pandas():
    pd = pytest.importorskip("pandas")
    Xs, ys = sequences()
    frames = [pd.DataFrame(X, columns=["a", "b"]) for X in Xs]
    stacked = pd.concat(frames, keys=[f"run {k}" for k in range(len(Xs))])
    y = pd.Series(np.concatenate(ys), index=stacked.index)
    plain = make().fit(list(Xs), list(ys))
    rnn = make().fit(stacked, y)
    same_params(rnn.params_, plain.params_)
    assert list(rnn.feature_names_in_) == ["a", "b"]
    by_name = stacked.assign(run=stacked.index.get_level_values(0)).reset_index(drop=True)
    rnn = make(sequence_column="run").fit(by_name, y.to_numpy())
    same_params(rnn.params_, plain.params_)
    np.testing.assert_allclose(rnn.predict(by_name), np.concatenate(plain.predict(list(Xs))))
    with pytest.raises(ValueError, match="feature names should match"):
        rnn.predict(by_name.rename(columns={"a": "c"}))
    with pytest.raises(ValueError, match="MultiIndex"):
        make(sequence_column="a").fit(stacked, y)
    names = np.where(np.concatenate(ys) > 0, "up", "down")
    labels = make(RNNClassifier).fit(stacked, pd.Series(names, index=stacked.index))
    assert set(labels.predict(stacked)) <= {"up", "down"}


def test_shuffled_ids_are_refused():
    X, y, _ = stack_sequences(*sequences())
    order = np.random.default_rng(0).permutation(len(X))
    with pytest.raises(ValueError, match=r"id .* returns in row .* adjacent"):
        make(sequence_column=0).fit(X[order], y[order])


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
}


@pytest.mark.parametrize("params", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("n_outputs", [1, 2])
class TestRegressor:
    def data(self, params, n_outputs):
        X, y = series(n_outputs=n_outputs)
        return X, (y / 8 if params.get("output") == "tanh" else y)

    def test_fit_twice_is_fit_once(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X, y)
        once = rnn.predict(X)
        assert np.array_equal(rnn.fit(X, y).predict(X), once)
        assert np.array_equal(clone(rnn).fit(X, y).predict(X), once)
        assert len(rnn.loss_curve_) == rnn.n_iter_ + 1
        assert rnn.best_loss_ == min(rnn.loss_curve_) == rnn.loss_curve_[rnn.best_epoch_]

    def test_predict_changes_nothing(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X, y)
        before = pickle.dumps(rnn)
        first = rnn.predict(X[:50])
        rnn.states(X[:50])
        rnn.score(X, y)
        assert np.array_equal(first, rnn.predict(X[:50]))
        assert pickle.dumps(rnn) == before

    def test_stream_in_chunks_is_one_run(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X[:100], y[:100])
        whole = rnn.predict(X[100:])
        stream = rnn.stream()
        chunks = [stream.predict(X[a:b]) for a, b in itertools.pairwise([100, 101, 140, 200])]
        atol = 1e-5 if "dtype" in params else 1e-12
        np.testing.assert_allclose(np.concatenate(chunks), whole, rtol=0, atol=atol)
        stream.reset()
        np.testing.assert_array_equal(stream.predict(X[100:101]), chunks[0])

    def test_return_state_goes_on(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X[:100], y[:100])
        atol = 1e-5 if "dtype" in params else 1e-12
        for start in (None, "zeros", "last", "steady", np.full_like(rnn.state_, 0.1)):
            _, state = rnn.predict(X[100:150], initial_state=start, return_state=True)
            rest = rnn.predict(X[150:], initial_state=state)
            whole = rnn.predict(X[100:], initial_state=start)
            np.testing.assert_allclose(rest, whole[50:], rtol=0, atol=atol)

    def test_the_state_after_fit_is_where_training_ended(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X, y)
        _, end = outputs_of(rnn, X.astype(rnn.params_["W"].dtype))
        np.testing.assert_allclose(rnn.state_, end, atol=1e-6)
        np.testing.assert_array_equal(
            rnn.predict(X), rnn.predict(X, initial_state=rnn.state_)
        )  # "last"

    def test_copies_predict_identically(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X, y)
        for again in (pickle.loads(pickle.dumps(rnn)), copy.deepcopy(rnn)):
            assert np.array_equal(again.predict(X), rnn.predict(X))
        other = make(**params).set_params(**rnn.get_params()).fit(X, y)
        same_params(other.params_, rnn.params_)

    def test_outputs_keep_the_dimensions_of_y(self, params, n_outputs):
        X, y = self.data(params, n_outputs)
        rnn = make(**params).fit(X, y)
        assert rnn.predict(X).shape == y.shape
        assert rnn.predict(X).dtype == rnn.states(X).dtype == np.dtype(rnn.dtype)
        assert rnn.states(X).shape == (len(X), 7)
        column = make(**params).fit(X, y.reshape(len(y), -1))
        assert column.predict(X).shape == (len(X), n_outputs)
        same_params(column.params_, rnn.params_)


def test_joblib(tmp_path):
    joblib = pytest.importorskip("joblib")
    X, y = series()
    rnn = make().fit(X, y)
    joblib.dump(rnn, tmp_path / "rnn")
    assert np.array_equal(joblib.load(tmp_path / "rnn").predict(X), rnn.predict(X))


def test_last_applies_to_one_sequence_only():
    Xs, ys = sequences()
    one = make().fit([Xs[0]], [ys[0]])
    table = make().fit(Xs[0], ys[0])
    np.testing.assert_array_equal(one.predict([Xs[1]])[0], table.predict(Xs[1]))
    zeros = one.predict(Xs[1], initial_state="zeros")
    assert not np.allclose(zeros, one.predict(Xs[1]), atol=1e-9)
    several = one.predict([Xs[1], Xs[2]])
    np.testing.assert_allclose(several[0], zeros, rtol=0, atol=1e-13)
    many = make().fit(list(Xs), list(ys))
    np.testing.assert_array_equal(many.predict(Xs[1]), many.predict(Xs[1], initial_state="zeros"))


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


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("init", ["least_squares", "glorot"])
def test_rows_of_weight_zero_drive_but_are_not_learned(cell, init):
    X, y = series()
    weights = np.ones(len(X))
    weights[50:90] = 0
    wild = y.copy()
    wild[50:90] = 1e3
    kept = make(cell=cell, init=init).fit(X, wild, sample_weight=weights)
    same_params(make(cell=cell, init=init).fit(X, y, sample_weight=weights).params_, kept.params_)
    other = X.copy()
    other[89] += 1.0  # drives what comes after
    moved = make(cell=cell, init=init).fit(other, wild, sample_weight=weights)
    assert not np.array_equal(moved.params_["W"], kept.params_["W"])


def test_weights_are_relative():
    X, y = series()
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
    assert make(washout="auto").fit(*sequences()).washout_.tolist() == [4, 6, 3, 5]


# -------------------------------------------------------------------------- forecasts


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
    def test_is_the_loop_that_predict_gives_step_by_step(self, waves, params):
        Z = in_range(waves, params)
        rnn = forecaster(**params).fit(Z[:399], Z[1:400])
        state, u = rnn.state_, Z[399]
        for row in rnn.forecast(20):
            u, state = outputs_of(rnn, u[None], state)
            u = u[0]
            np.testing.assert_allclose(row, u, atol=1e-9)

    @pytest.mark.parametrize("initial_state", [None, "zeros", "last", "steady"])
    def test_row_0_with_context_is_what_predict_says(self, waves, params, initial_state):
        Z = in_range(waves, params)
        rnn = forecaster(**params).fit(Z[:399], Z[1:400])
        options = {"context": Z[399:450], "initial_state": initial_state}
        rows, state = rnn.forecast(3, return_state=True, **options)
        expected = rnn.predict(Z[399:450], initial_state=initial_state)[-1]
        np.testing.assert_array_equal(rows[0], expected)
        again = rnn.forecast(2, context=rows[-1:], initial_state=state)
        np.testing.assert_allclose(again, rnn.forecast(5, **options)[3:], atol=1e-9)

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


@pytest.mark.parametrize("cell", CELLS)
def test_forecasts_that_are_refused(waves, cell):
    with pytest.raises(ValueError, match=r"y\[0, 0\]=0, but X\[1, 0\]=0\.198669"):
        forecaster(cell=cell, max_iter=0).fit(waves[:300], waves[:300]).forecast(5)
    with pytest.raises(ValueError, match="n_steps=0 must be at least 1"):
        forecaster(cell=cell, max_iter=0).fit(waves[:299], waves[1:300]).forecast(0)
    several = forecaster(cell=cell, max_iter=0).fit([waves[:299]] * 2, [waves[1:300]] * 2)
    with pytest.raises(ValueError, match="needs context"):
        several.forecast(3)
    assert several.forecast(3, context=waves[300:350]).shape == (3, 2)
    with pytest.raises(NotFittedError):
        forecaster(cell=cell).forecast(3)


@pytest.mark.parametrize(
    "params", [{"activation": "identity"}, {"cell": "lstm"}], ids=["rnn", "lstm"]
)
def test_loops_that_diverge_say_so(params):
    growing = 1.5 ** np.arange(60)
    rnn = make(**params, max_iter=0).fit(growing[:-1, None], growing[1:])
    rnn.params_["coef"] = rnn.params_["coef"] * 0 + 1e12
    rnn.params_["coef"][0, 0] = 1e308
    with pytest.warns(RuntimeWarning, match=r"diverged at step \d+") as caught:
        rows = rnn.forecast(500)
    assert caught[0].filename == __file__
    assert rows.shape == (500,)
    assert np.isfinite(rows).all()


# -------------------------------------------------------------------------- scikit-learn's tools


def test_cross_validation_by_time_goes_on_from_the_end_of_training():
    X, y = series()
    split = TimeSeriesSplit(3)
    scores = cross_val_score(make(), X, y, cv=split)
    for score, (train, test) in zip(scores, split.split(X), strict=True):
        rnn = make().fit(X[train], y[train])
        assert score == rnn.score(X[test], y[test])
        whole = outputs_of(rnn, np.vstack([X[train], X[test]]))[0][len(train) :, 0]
        np.testing.assert_allclose(rnn.predict(X[test]), whole, atol=1e-12)


def test_searches_give_the_same_bits_on_several_workers():
    X, y = series()
    grid = {"learning_rate_init": [1e-3, 1e-2], "cell": ["rnn", "gru"]}
    one, two = (
        GridSearchCV(make(), grid, cv=TimeSeriesSplit(2), n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )
    same_params(one.best_estimator_.params_, two.best_estimator_.params_)


def test_parameters_are_only_stored():
    for cls in (RNNRegressor, RNNClassifier):
        given = cls(cell="gru", alpha=0.5, init="he")
        assert given.get_params() == clone(given).get_params()
        assert (given.cell, given.alpha, given.init) == ("gru", 0.5, "he")
        with pytest.raises(TypeError, match="lerning_rate"):
            cls(lerning_rate="step")
        with pytest.raises(ValueError, match="Invalid parameter 'units'"):
            cls().set_params(units=5)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_states_of_every_kind(seed):
    X, y = series()
    one, two = (make(random_state=np.random.RandomState(seed)).fit(X, y) for _ in range(2))
    same_params(one.params_, two.params_)
    generator = np.random.default_rng(seed)
    before = generator.bit_generator.state
    first, second = (make(random_state=generator).fit(X, y) for _ in range(2))
    assert not np.array_equal(first.params_["W"], second.params_["W"])
    assert generator.bit_generator.state == before
