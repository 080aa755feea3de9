"""Closed loops: alone, with context, with exogenous inputs, and in scikit-learn's wrappers."""

import ast
import re

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR

from reservoir import ESNRegressor, NVARRegressor, RNNRegressor, forecast
from reservoir.datasets import henon, lorenz, mackey_glass
from reservoir.dynamics import step
from reservoir.estimators.forecasting.pipeline import Layout, walk
from reservoir.model_selection import PerStep

pytestmark = pytest.mark.both_engines

PARAMS = {"leak_rate": 0.3, "washout": 100, "random_state": 0}


@pytest.fixture(scope="module")
def waves():
    t = np.arange(900)
    return np.column_stack([np.sin(0.2 * t), np.cos(0.2 * t) * np.sin(0.031 * t)])


def network(**params):
    return ESNRegressor(60, **{**PARAMS, **params})


def by_hand(esn, state, u, n_steps, exog=None):
    """The slow, obvious closed loop."""
    coef, intercept = np.atleast_2d(esn.coef_), np.atleast_1d(esn.intercept_)
    rows = []
    for k in range(n_steps):
        full = u if exog is None else np.append(u, exog[k])
        state = step(esn.reservoir_, state, full)
        features = np.append(state, full) if esn.include_input else state
        u = coef @ features + intercept
        rows.append(u)
    return np.array(rows)


HORIZONS = {
    "ESN": network(),
    "ESN in single precision": network(dtype="float32"),
    "ESN with squares": network(augment="square", solver="qr", alpha=1e-12),
    "NVAR": NVARRegressor(3, degree=2),
    "RNN": RNNRegressor(10, cell="leaky", init="orthogonal", max_iter=1),
    "GRU": RNNRegressor(10, cell="gru", init="orthogonal", max_iter=1),
    "pipeline": make_pipeline(StandardScaler(), network()),
    "by rows": make_pipeline(FunctionTransformer(np.tanh), network()),
}


@pytest.mark.fast_cases(4)
@pytest.mark.filterwarnings("ignore:The closed loop:RuntimeWarning")
@pytest.mark.parametrize("name", HORIZONS)
def test_more_steps_change_none_of_the_first(name):
    rows = henon(300, random_state=0)
    known = 0.1 * np.random.default_rng(0).normal(size=(300, 2))
    X = np.hstack([rows[:-1], known[1:]])
    model = HORIZONS[name].fit(X[:150], rows[1:151])

    def ahead(n_steps, **options):
        n_known = n_steps - ("context" in options)
        return forecast(model, n_steps, exog=known[151:][:n_known], **options)

    for options in ({}, {"clip": True}, {"context": X[100:120]}):
        whole = ahead(90, **options)
        for n_steps in (1, 2, 65):
            np.testing.assert_array_equal(ahead(n_steps, **options), whole[:n_steps])


@pytest.mark.parametrize("include_input", [True, False])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_is_the_loop_by_hand(waves, include_input, n_outputs):
    Z = waves[:, :n_outputs]
    esn = network(include_input=include_input, n_lags=1).fit(Z[:699], Z[1:700])
    expected = by_hand(esn, esn.state_, Z[699], 40)
    np.testing.assert_allclose(esn.forecast(40), expected, atol=1e-9)
    np.testing.assert_allclose(expected[:5], Z[700:705], atol=0.05)


def test_exogenous_columns_come_last(waves):
    Z, E = waves[:, :1], waves[:, 1:]
    X = np.hstack([Z[:-1], E[1:]])  # exog row k enters with the input that yields row k
    esn = network(n_lags=1).fit(X[:699], Z[1:700])
    expected = by_hand(esn, esn.state_, Z[699], 40, E[700:])
    rows = esn.forecast(40, exog=E[700:740])
    np.testing.assert_allclose(rows, expected, atol=1e-9)
    np.testing.assert_array_equal(esn.forecast(40, exog=E[700:740, 0]), rows)
    context = X[699:750]
    after = esn.forecast(10, context=context, exog=E[750:759])
    np.testing.assert_allclose(after[0], esn.predict(context)[-1], atol=1e-12)
    np.testing.assert_allclose(after[:3, 0], Z[750:753, 0], atol=0.05)


@pytest.mark.parametrize("initial_state", [None, "zeros", "last", "steady"])
def test_row_0_with_context_equals_predict(waves, initial_state):
    esn = network().fit(waves[:699], waves[1:700])
    context = waves[699:760]
    rows, state = esn.forecast(3, context=context, initial_state=initial_state, return_state=True)
    assert np.array_equal(rows[0], esn.predict(context, initial_state=initial_state)[-1])
    assert np.array_equal(esn.forecast(1, context=context, initial_state=initial_state), rows[:1])
    again = esn.forecast(2, context=rows[-1:], initial_state=state)
    longer = esn.forecast(5, context=context, initial_state=initial_state)
    np.testing.assert_allclose(again, longer[3:], atol=1e-9)


def test_forecast_is_pure(waves):
    esn = network().fit(waves[:699], waves[1:700])
    assert np.array_equal(esn.forecast(20), esn.forecast(20))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dimensions_and_dtype_are_ys(waves, dtype):
    one = network(dtype=dtype).fit(waves[:-1, :1], waves[1:, 0]).forecast(5)
    column = network(dtype=dtype).fit(waves[:-1, :1], waves[1:, :1]).forecast(5)
    assert (one.shape, column.shape) == ((5,), (5, 1))
    assert one.dtype == column.dtype == np.dtype(dtype)


class TestFeedbackWeights:
    def fit(self, waves, **params):
        esn = network(feedback=True, feedback_scaling=0.5, **params)
        return esn.fit(waves[:700, 1:], waves[:700, 0])

    def test_forecast_is_predict(self, waves):
        esn = self.fit(waves)
        E = waves[700:760, 1:]
        assert np.array_equal(esn.forecast(60, exog=E), esn.predict(E))
        rows = esn.forecast(31, context=E[:30], exog=E[30:])
        np.testing.assert_allclose(rows, esn.predict(E)[29:], atol=1e-12)

    def test_predict_is_the_loop_by_hand(self, waves):
        esn = self.fit(waves, n_lags=1)
        state, y = esn.state_[:60], esn.state_[60:]
        assert y == waves[699, 0]  # the last target
        for u, row in zip(waves[700:730, 1:], esn.predict(waves[700:730, 1:]), strict=True):
            state = step(esn.reservoir_, state, u, y)
            y = np.atleast_1d(esn.coef_ @ np.append(state, u) + esn.intercept_)
            np.testing.assert_allclose(row, y[0], atol=1e-10)

    def test_scaled_exogenous_inputs(self, waves):
        E = 100 + 7 * waves[:, 1:]
        pipe = make_pipeline(
            StandardScaler(),
            TransformedTargetRegressor(
                network(feedback=True, feedback_scaling=0.5), transformer=StandardScaler()
            ),
        ).fit(E[:700], 5 + 3 * waves[:700, 0])
        rows = forecast(pipe, 50, exog=E[700:750])
        np.testing.assert_allclose(rows, pipe.predict(E[700:750]), atol=1e-9)


def nrmse(rows, truth):
    return np.sqrt(np.mean((rows - truth) ** 2)) / np.std(truth)


WRAPPERS = {
    "pipeline": lambda esn: make_pipeline(StandardScaler(), esn),
    "minmax": lambda esn: make_pipeline(MinMaxScaler((-1, 1)), esn),
    "robust, maxabs": lambda esn: make_pipeline(RobustScaler(), MaxAbsScaler(), esn),
    "targets": lambda esn: TransformedTargetRegressor(esn, transformer=StandardScaler()),
    "both": lambda esn: TransformedTargetRegressor(
        make_pipeline(StandardScaler(), esn), transformer=StandardScaler()
    ),
    "the other way round": lambda esn: make_pipeline(
        StandardScaler(), TransformedTargetRegressor(esn, transformer=RobustScaler())
    ),
    "nested targets": lambda esn: TransformedTargetRegressor(
        TransformedTargetRegressor(esn, transformer=StandardScaler()), transformer=MinMaxScaler()
    ),
    "function, row by row": lambda esn: make_pipeline(
        FunctionTransformer(lambda x: 2 * x + 1), esn
    ),
    "log targets": lambda esn: TransformedTargetRegressor(esn, func=np.log, inverse_func=np.exp),
    "search": lambda esn: GridSearchCV(
        make_pipeline(StandardScaler(), esn),
        {"esnregressor__leak_rate": [0.3]},
        cv=TimeSeriesSplit(3),
    ),
    "frozen": lambda esn: esn,
}


@pytest.mark.filterwarnings("ignore:The readout has .* columns:UserWarning")
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_a_wrapper_costs_nothing(wrap, global_random_seed):
    """Within 5 % of a network whose weights are scaled so that nothing needs a wrapper.

    The series is standardised before, so that the plain network sees what the wrapped one sees.
    """
    series = mackey_glass(2200, random_state=global_random_seed)[:, 0]
    train, test = series[:1500], series[1500:1584]
    params = {"alpha": 1e-7, "random_state": global_random_seed}
    mean, std = train[:-1].mean(), train[:-1].std()
    z = (train - mean) / std
    plain = ESNRegressor(300, leak_rate=0.3, **params).fit(z[:-1, None], z[1:])
    reference = nrmse(plain.forecast(84) * std + mean, test)
    wrapped = wrap(ESNRegressor(300, leak_rate=0.3, **params)).fit(train[:-1, None], train[1:])
    if wrap is WRAPPERS["frozen"]:
        wrapped = FrozenEstimator(wrapped)
    assert reference < 0.1
    same_scale = ("pipeline", "both", "search")
    if wrap in [WRAPPERS[name] for name in same_scale]:
        # "both" has the same inputs and penalises the targets in other units
        error = nrmse(forecast(wrapped, 84), test)
        assert abs(error - reference) < 0.05 * reference
    else:  # another network: from several starts, and before chaos makes much of its errors
        errors = [
            nrmse(forecast(wrapped, 42, context=series[k - 200 : k, None]), series[k : k + 42])
            for k in range(1500, 2200, 140)
        ]
        assert np.median(errors) < 0.2


@pytest.mark.filterwarnings("ignore:The readout has .* columns:UserWarning")
@pytest.mark.filterwarnings("ignore:The units .* the bounds of:UserWarning")  # without a scaler
def test_a_wrapper_gives_the_loop_that_predict_gives_step_by_step():
    series = mackey_glass(600, random_state=0)[:, 0] * 50 + 300
    for wrap in WRAPPERS.values():
        model = wrap(network()).fit(series[:499, None], series[1:500])
        rows = forecast(model, 5, context=series[400:500, None])
        context = series[400:500]
        for row in rows:  # predict is pure, so the whole history is played again at each step
            np.testing.assert_allclose(row, model.predict(context[:, None])[-1], rtol=1e-6)
            context = np.append(context, row)


def test_multivariate_pipeline_with_exog_and_ids():
    Z = lorenz(1200, random_state=0) * [1, 2, 3] + 5
    E = np.sin(0.1 * np.arange(1200))[:, None] * 40
    X = np.hstack([np.full((1199, 1), 7.0), Z[:-1], E[1:]])
    pipe = make_pipeline(StandardScaler(), network(sequence_column=0)).fit(X[:1000], Z[1:1001])
    plain = make_pipeline(StandardScaler(), network()).fit(X[:1000, 1:], Z[1:1001])
    rows = forecast(pipe, 20, exog=E[1001:1021])
    np.testing.assert_allclose(rows, forecast(plain, 20, exog=E[1001:1021]), rtol=1e-9)
    np.testing.assert_allclose(rows[0], Z[1001], rtol=0.05)


def test_scalers_within_wrappers_are_folded_into_the_loop(waves):
    """They were called for each row: 50 times slower, with the rows that they give."""
    rows = waves * [1.0, 3.0] + [3, -4]
    two = (MinMaxScaler((-1, 2)), StandardScaler())
    plain = make_pipeline(*two, network()).fit(rows[:699], rows[1:700])
    scalers = {
        "per step": PerStep(make_pipeline(two[0], "passthrough", two[1])),
        "frozen": FrozenEstimator(plain[:-1]),
    }
    for name, scaler in scalers.items():
        model = make_pipeline(scaler, network()).fit(rows[:699], rows[1:700])
        assert Layout(walk(model)).fed_back() is not None, name
        np.testing.assert_allclose(forecast(model, 20), forecast(plain, 20), rtol=1e-9)
    clipped = make_pipeline(PerStep(MinMaxScaler(clip=True)), network())
    clipped.fit(rows[:699], rows[1:700])
    assert Layout(walk(clipped)).fed_back() is None
    assert np.isfinite(forecast(clipped, 3)).all()


def test_a_step_that_mixes_columns_goes_row_by_row(waves):
    Z = waves @ np.array([[1.0, 0.4], [0.3, 2.0]]) + [3, -4]
    pipe = make_pipeline(PCA(whiten=True), network()).fit(Z[:699], Z[1:700])
    rows = forecast(pipe, 10)
    np.testing.assert_allclose(rows, Z[700:710], atol=0.1)
    context = Z[:700]
    for row in forecast(pipe, 4, context=context):
        np.testing.assert_allclose(row, pipe.predict(context)[-1], rtol=1e-6)
        context = np.vstack([context, row])


def test_names_are_kept():
    pd = pytest.importorskip("pandas")
    series = pd.DataFrame({"level": mackey_glass(900, random_state=0)[:, 0] * 50})
    pipe = Pipeline([("scale", PowerTransformer()), ("esn", network())])
    pipe.fit(series[:699], series["level"].to_numpy()[1:700])
    truth = series["level"].to_numpy()[700:720]
    np.testing.assert_allclose(forecast(pipe, 20), truth, rtol=0.1)


class TestRefusals:
    def test_the_step_of_a_pipeline_names_the_function(self, waves):
        pipe = make_pipeline(StandardScaler(), network()).fit(
            waves[:699] * 9 + 4, waves[1:700] * 9 + 4
        )
        with pytest.raises(ValueError, match=r"reservoir\.forecast\(pipe, n_steps\)"):
            pipe[-1].forecast(5)

    def test_targets_that_are_not_the_next_input(self, waves):
        esn = network().fit(waves[:700], waves[:700])
        with pytest.raises(ValueError, match=r"y\[0, 0\]=0, but X\[1, 0\]=0\.198669"):
            esn.forecast(5)
        pipe = make_pipeline(StandardScaler(), network()).fit(waves[:700], waves[:700])
        with pytest.raises(ValueError, match=r"y\[t\] == X\[t\+1\]"):
            forecast(pipe, 5)

    def test_one_row_that_differs_is_found(self, waves):
        y = waves[1:700].copy()
        y[345, 1] += 1e-3
        with pytest.raises(ValueError, match=r"y\[345, 1\]"):
            network().fit(waves[:699], y).forecast(5)

    @pytest.mark.filterwarnings("ignore:The units .* the bounds of:UserWarning")  # by the offset
    @pytest.mark.parametrize("scale, offset", [(1e-9, 0), (200, 101_325)])
    @pytest.mark.parametrize("lag", [0, 2])
    def test_a_lag_is_found_despite_an_offset_or_small_units(self, scale, offset, lag):
        Z = scale * np.sin(0.002 * np.arange(500))[:, None] + offset
        esn = network(alpha=1e-3 * scale**2).fit(Z[:400], Z[lag : 400 + lag])
        with pytest.raises(ValueError, match=r"y\[t\] == X\[t\+1\]"):
            esn.forecast(5)
        pipe = make_pipeline(StandardScaler(), network()).fit(Z[:400], Z[lag : 400 + lag])
        with pytest.raises(ValueError, match=r"y\[t\] == X\[t\+1\]"):
            forecast(pipe, 5)

    def test_a_search_without_refit(self, waves):
        search = GridSearchCV(network(), {"leak_rate": [0.3]}, cv=TimeSeriesSplit(2), refit=False)
        with pytest.raises(ValueError, match="refit=False"):
            forecast(search.fit(waves[:699], waves[1:700]), 3)

    def test_across_chunks(self, waves):
        esn = network()
        esn.partial_fit(waves[:300], waves[1:301]).partial_fit(waves[300:699], waves[301:700])
        np.testing.assert_allclose(esn.forecast(2), waves[700:702], atol=0.05)
        esn.partial_fit(waves[:100], waves[1:101])  # goes on from a row that is not the next
        with pytest.raises(ValueError, match=r"y\[-1, 0\].*X\[0, 0\]"):
            esn.forecast(2)

    def test_dimensions(self, waves):
        with pytest.raises(ValueError, match="y has 2 columns and X has 1"):
            network().fit(waves[:699, :1], waves[1:700]).forecast(5)
        esn = network().fit(waves[:699], waves[1:700, 0])
        with pytest.raises(ValueError, match=r"Pass exog of shape \(5, 1\)"):
            esn.forecast(5)
        with pytest.raises(ValueError, match=r"exog must have shape \(5, 1\); got \(4, 1\)"):
            esn.forecast(5, exog=np.zeros((4, 1)))
        with pytest.raises(ValueError, match=r"shape \(4, 1\).*comes from the context"):
            esn.forecast(5, context=waves[:9], exog=np.zeros((5, 1)))
        with pytest.raises(ValueError, match="exog contains NaN"):
            esn.forecast(2, exog=[[np.nan], [0]])

    @pytest.mark.parametrize("n_steps", [0, -3])
    def test_n_steps(self, waves, n_steps):
        with pytest.raises(ValueError, match=f"n_steps={n_steps} must be at least 1"):
            network().fit(waves[:699], waves[1:700]).forecast(n_steps)

    def test_several_sequences_need_context(self, waves):
        esn = network().fit([waves[:300], waves[300:600]], [waves[1:301], waves[301:601]])
        with pytest.raises(ValueError, match="needs a context"):
            esn.forecast(3)
        rows = esn.forecast(3, context=waves[600:700])
        np.testing.assert_allclose(rows, waves[700:703], atol=0.05)

    def test_models_without_a_network(self, waves):
        with pytest.raises(TypeError, match="LinearRegression"):
            forecast(LinearRegression().fit(waves, waves), 3)
        with pytest.raises(NotFittedError):
            forecast(network(), 3)

    def test_a_step_with_memory(self, waves):
        memory = FunctionTransformer(lambda X: np.cumsum(X, axis=0) / 100)
        pipe = make_pipeline(memory, network()).fit(waves[:699], waves[1:700])
        for context in (None, waves[:50]):
            with pytest.raises(ValueError, match="FunctionTransformer transforms a single row"):
                forecast(pipe, 3, context=context)
        with pytest.raises(TypeError, match="got Ridge"):
            forecast(make_pipeline(StandardScaler(), Ridge()).fit(waves[:-1], waves[1:]), 3)


class TestDivergence:
    @pytest.fixture
    def esn(self):
        growing = 1.5 ** np.arange(60)
        return ESNRegressor(10, activation="identity", washout=5, random_state=0).fit(
            growing[:-1, None], growing[1:]
        )

    def test_it_stops_with_a_warning_that_names_the_step(self, esn):
        with pytest.warns(RuntimeWarning, match=r"diverged at step \d+") as caught:
            rows = esn.forecast(5000)
        assert caught[0].filename == __file__  # the user's line, not one of the package
        assert rows.shape == (5000,)
        assert np.isfinite(rows).all()

    def test_clip_is_advised_where_it_was_not_used(self, esn):
        with pytest.warns(
            RuntimeWarning, match="clip=True in forecast keeps the fed-back outputs near"
        ):
            esn.forecast(300)
        # what is fed back stays in the bounds; the outputs themselves go far beyond them
        limit = (-1e12, 1e12)
        with pytest.warns(RuntimeWarning, match="went through clip, and that was not"):
            esn.forecast(300, clip=limit)

    def test_row_by_row_too(self, esn):
        growing = 1.5 ** np.arange(60)
        pipe = make_pipeline(FunctionTransformer(np.positive), esn).fit(
            growing[:-1, None], growing[1:]
        )
        with pytest.warns(RuntimeWarning, match=r"diverged at step \d+"):
            rows = forecast(pipe, 5000)
        assert rows.shape == (5000,)
        assert np.isfinite(rows).all()


def test_scaled_targets_are_no_detour_at_all(global_random_seed):
    """A ridge readout is linear in its targets: scaling them must change nothing."""
    series = mackey_glass(900, random_state=global_random_seed)[:, 0] * 5
    plain = network().fit(series[:699, None], series[1:700])
    scaled = TransformedTargetRegressor(network(), transformer=StandardScaler())
    scaled.fit(series[:699, None], series[1:700])
    np.testing.assert_allclose(forecast(scaled, 50), plain.forecast(50), rtol=1e-6)


class TestOutputsThatAreNotFirst:
    """The message names the column, and the order of columns that mends it."""

    def mended(self, caught, X):
        order = ast.literal_eval(re.search(r"the columns (\[.*\]),", str(caught.value))[1])
        return X[order] if hasattr(X, "iloc") else X[:, order]

    @pytest.mark.fast_cases(5)
    @pytest.mark.filterwarnings("ignore:The units .* the bounds of:UserWarning")  # without a scaler
    @pytest.mark.filterwarnings("ignore:The closed loop left the range:RuntimeWarning")
    @pytest.mark.parametrize("scaled", [False, True])
    @pytest.mark.parametrize("id_column", [None, 0, 1, 3])
    @pytest.mark.parametrize("n_outputs", [1, 2])
    def test_arrays(self, global_random_seed, scaled, id_column, n_outputs):
        rng = np.random.default_rng(global_random_seed)
        Z = 20 + 5 * rng.normal(size=(201, 3)).cumsum(axis=0)
        places = rng.permutation([(1,), (2,)] if n_outputs == 1 else [(2, 1), (1, 0), (0, 2)])[0]
        X, y = Z[:-1], Z[1:, places]
        if id_column is not None:
            X = np.insert(X, id_column, 7.0, axis=1)
        esn = ESNRegressor(20, sequence_column=id_column, random_state=0)
        model = make_pipeline(StandardScaler(), esn) if scaled else esn
        exog = np.zeros((4, 3 - n_outputs))
        with pytest.raises(ValueError, match="first columns of X, in the order of y") as caught:
            forecast(model.fit(X, y), 4, exog=exog)
        better = self.mended(caught, X)
        assert better.shape == X.shape
        if id_column is not None:
            assert (better[:, id_column] == 7.0).all()
        assert len(forecast(model.fit(better, y), 4, exog=exog)) == 4

    def test_names(self):
        pd = pytest.importorskip("pandas")
        rng = np.random.default_rng(0)
        df = pd.DataFrame(rng.normal(size=(61, 3)), columns=["temp", "load", "id"])
        df["id"] = 1
        X, y = df.iloc[:-1], df["load"].iloc[1:]
        for model in (
            ESNRegressor(20, sequence_column="id"),
            RNNRegressor(3, max_iter=1, sequence_column="id", random_state=0),
            TransformedTargetRegressor(
                make_pipeline(StandardScaler(), ESNRegressor(20, sequence_column=2)),
                transformer=StandardScaler(),
            ),
        ):
            exog = np.zeros((4, 1))
            with pytest.raises(ValueError, match=r"y\[t\] is X\[t\+1\] in column 'load'") as caught:
                forecast(model.fit(X, y), 4, exog=exog)
            better = self.mended(caught, X)
            assert list(better.columns) == ["load", "temp", "id"]
            assert len(forecast(model.fit(better, y), 4, exog=exog)) == 4

    def test_what_stands_nowhere_is_not_sought(self, waves):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 2))
        for y in (rng.normal(size=200), X[:, 1], np.append(X[1:, 0], 0.0) + 1e-3):
            with pytest.raises(ValueError, match="make_forecast_pairs") as caught:
                network(washout=0).fit(X, y).forecast(3, exog=np.zeros((3, 1)))
            assert "order of y" not in str(caught.value)


def test_context_is_named(waves):
    esn = network().fit(waves[:-1], waves[1:])
    pipe = make_pipeline(StandardScaler(), network()).fit(waves[:-1], waves[1:])
    for context, message in ((waves[:, 0], "Expected 2D"), (waves[:, :1], "X has 1 features")):
        with pytest.raises(ValueError, match=f"In context: {message}"):
            esn.forecast(3, context=context)
        with pytest.raises(ValueError, match=f"In context: {message}"):
            forecast(pipe, 3, context=context)


@pytest.mark.parametrize(
    "readout",
    [
        make_pipeline(StandardScaler(), KernelRidge(1e-3, kernel="rbf", gamma=1e-2)),
        make_pipeline(StandardScaler(), SVR(C=10.0, epsilon=1e-3)),
        MLPRegressor(hidden_layer_sizes=(10,), solver="lbfgs", max_iter=2000, random_state=0),
    ],
    ids=["kernel ridge", "SVR", "perceptron"],
)
def test_loops_of_readouts_that_are_not_linear_feed_on_their_own_outputs(readout):
    x = mackey_glass(401, random_state=0)
    esn = ESNRegressor(20, readout=readout, random_state=0).fit(x[:-1], x[1:])
    ran = np.ravel(esn.forecast(30))
    assert np.ptp(ran) > 0.05
    inputs = np.r_[x[-1], ran[:-1]].reshape(-1, 1)
    np.testing.assert_allclose(np.ravel(esn.predict(inputs)), ran, rtol=0, atol=1e-10)
