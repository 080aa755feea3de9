"""Closed loops of pipelines whose steps keep states, compared with rows one by one."""

import pickle

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    StandardScaler,
)

from reservoir import (
    ESNRegressor,
    NVARRegressor,
    ReservoirTransformer,
    RNNRegressor,
    forecast,
    load,
    save,
)
from reservoir.datasets import mackey_glass
from reservoir.estimators.progress import Progress
from reservoir.model_selection import ClosedLoopSearchCV, PerStep

pytestmark = pytest.mark.both_engines

N = 200  # training rows


@pytest.fixture(scope="module")
def series():
    slow = np.sin(0.05 * np.arange(300))
    return np.column_stack([mackey_glass(300, random_state=0)[:, 0], slow])


def states(n_units=12, seed=0, **params):
    return ReservoirTransformer(n_units, leak_rate=0.6, random_state=seed, **params)


def esn(**params):
    return ESNRegressor(12, washout=20, random_state=5, **params)


class RowByRow:
    """A fitted pipeline that follows rows, as its steps do in sessions of their own."""

    def __init__(self, model):
        self.model = getattr(model, "best_estimator_", model)
        if isinstance(self.model, Pipeline):
            self.parts = [RowByRow(step) for _, step in self.model.steps]
        elif isinstance(self.model, FeatureUnion):
            self.parts = [RowByRow(step) for _, step in self.model.transformer_list]
        elif isinstance(self.model, ColumnTransformer):
            self.parts = [RowByRow(step) for _, step, _ in self.model.transformers_]
        elif isinstance(self.model, TransformedTargetRegressor):
            self.parts = [RowByRow(self.model.regressor_)]
        elif hasattr(self.model, "stream"):
            self.session = self.model.stream()

    def __call__(self, row):
        model = self.model
        if isinstance(model, Pipeline):
            for part in self.parts:
                row = part(row)
            return row
        if isinstance(model, (FeatureUnion, ColumnTransformer)):
            every = [slice(None)] * len(self.parts)
            columns = getattr(model, "transformers_", None)
            columns = every if columns is None else [c for _, _, c in columns]
            weights = list((model.transformer_weights or {"": 1.0}).values())
            found = [part(row[:, c]) for part, c in zip(self.parts, columns, strict=True)]
            return np.hstack([weights[-1] * found[0], *found[1:]])
        if isinstance(model, TransformedTargetRegressor):
            return model.transformer_.inverse_transform(self.parts[0](row).reshape(1, -1))
        if hasattr(self, "session"):
            name = "transform" if hasattr(model, "transform") else "predict"
            return getattr(self.session, name)(row)
        return model.transform(row) if hasattr(model, "transform") else model.predict(row)


def by_rows(model, n_steps, *, last=None, context=None, exog):
    follow, rows = RowByRow(model), []
    if context is not None:
        for row in context:
            last = follow(row[None])
        rows.append(np.ravel(last)[0])
    for e in exog:
        last = follow(np.concatenate([np.ravel(last), e])[None])
        rows.append(np.ravel(last)[0])
    return np.array(rows)


MODELS = {
    "deep": make_pipeline(states(), states(9, 1), Ridge(1e-3)),
    "single precision": make_pipeline(
        states(dtype="float32"), states(9, 1, dtype="float32"), Ridge(1e-3)
    ),
    "scaled": TransformedTargetRegressor(
        make_pipeline(StandardScaler(), states(), StandardScaler(), Ridge(1e-3)),
        transformer=MinMaxScaler(),
    ),
    "scaled targets behind": make_pipeline(
        states(), TransformedTargetRegressor(Ridge(1e-3), transformer=StandardScaler())
    ),
    "logarithms behind": make_pipeline(
        states(), TransformedTargetRegressor(Ridge(1e-3), func=np.log, inverse_func=np.exp)
    ),
    "network behind": make_pipeline(MinMaxScaler(), states(), StandardScaler(), esn(alpha=1e-3)),
    "polynomials behind": make_pipeline(
        states(2), StandardScaler(), NVARRegressor(2, degree=2, alpha=0.1)
    ),
    "union": make_pipeline(
        StandardScaler(),
        FeatureUnion(
            [("rows", "passthrough"), ("deep", make_pipeline(states(5), states(6, 1)))],
            transformer_weights={"rows": 0.5},
        ),
        StandardScaler(),
        ElasticNet(1e-3),
    ),
    "columns": make_pipeline(
        make_column_transformer(
            (make_pipeline(StandardScaler(), states(7)), [0]), ("passthrough", [1, 0])
        ),
        states(8, 3),
        PCA(4),
        Ridge(1e-3),
    ),
    "nested": make_pipeline(
        FunctionTransformer(np.log1p),
        make_pipeline(StandardScaler(), states(6)),
        make_pipeline(FunctionTransformer(np.tanh), TransformedTargetRegressor(esn())),
    ),
    "nested twice": make_pipeline(
        states(7), TransformedTargetRegressor(make_pipeline(states(6, 1), Ridge(1e-3)))
    ),
    "no linear readout": make_pipeline(states(5), KernelRidge(0.1, kernel="rbf", gamma=0.05)),
    "search": GridSearchCV(
        make_pipeline(states(), Ridge()), {"ridge__alpha": [1e-3]}, cv=TimeSeriesSplit(2)
    ),
}


@pytest.mark.fast_cases(4)
@pytest.mark.filterwarnings("ignore:The closed loop:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Rows beyond what was learned:UserWarning")  # in the search
@pytest.mark.parametrize("name", MODELS)
def test_a_loop_is_rows_one_by_one(series, name):
    X = np.column_stack([series[:-1, 0], np.maximum(series[1:, 1], -0.9)])
    model, known = MODELS[name].fit(X[:N], series[1 : N + 1, 0]), X[:, 1:]
    tolerance = {"rtol": 0, "atol": 2e-4 if name == "single precision" else 1e-9}
    # after training
    rows = forecast(model, 9, exog=known[N : N + 9])
    wanted = by_rows(model, 9, last=series[N, 0], exog=known[N : N + 9])
    np.testing.assert_allclose(rows, wanted, **tolerance)
    # after contexts of several lengths
    contexts = [X[N : N + 30], X[N : N + 41]]
    exog = [known[N + len(C) :][:8] for C in contexts]
    found = forecast(model, 9, context=contexts, exog=exog)
    for ours, C, E in zip(found, contexts, exog, strict=True):
        np.testing.assert_allclose(ours, by_rows(model, 9, context=C, exog=E), **tolerance)
        np.testing.assert_allclose(ours[0], model.predict(C)[-1], **tolerance)
        np.testing.assert_array_equal(ours, forecast(model, 9, context=C, exog=E))
    # saved
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(forecast(again, 9, exog=known[N : N + 9]), rows)


def test_saved_transformers_keep_the_last_target(series, tmp_path):
    X, y = series[:N, :1], series[1 : N + 1, 0]
    pipe = make_pipeline(states(), Ridge(1e-3)).fit(X, y)
    rows = forecast(pipe, 4)
    save(pipe[0], tmp_path / "states")
    pipe.steps[0] = ("states", load(tmp_path / "states"))
    np.testing.assert_array_equal(forecast(pipe, 4), rows)


def test_sparse_rows_may_be_between(series):
    X, y = series[:N, :1], series[1 : N + 1, 0]
    bins = KBinsDiscretizer(4, encode="onehot", strategy="uniform")
    pipe = make_pipeline(bins, TruncatedSVD(3, random_state=0), states(), Ridge(1e-3)).fit(X, y)
    rows = forecast(pipe, 3, context=X[:60])
    assert rows[0] == pytest.approx(pipe.predict(X[:60])[-1], abs=1e-12)


def test_loops_are_clipped_and_diverge_as_those_of_networks(series):
    y = series[:, 0]
    pipe = make_pipeline(states(), Ridge(1e-3)).fit(y[:N, None], y[1 : N + 1])
    held = forecast(pipe, 5, clip=(0.8, 0.9))
    np.testing.assert_array_equal(held, forecast(pipe, 5, clip=lambda v: np.clip(v, 0.8, 0.9)))
    assert not np.allclose(held, forecast(pipe, 5, clip=True))
    growing = 1.5 ** np.arange(60)
    linear = make_pipeline(
        make_union("passthrough", states(3, activation="identity")), Ridge(1e-9)
    ).fit(growing[:-1, None], growing[1:])
    with pytest.warns(RuntimeWarning, match=r"diverged at step \d+"):
        rows = forecast(linear, 2000)
    assert np.isfinite(rows).all()


def test_searches_by_closed_loops_run_them(series):
    y = series[:, 0]
    pipe = make_pipeline(StandardScaler(), states(initial_state="zeros"), Ridge())
    search = ClosedLoopSearchCV(pipe, {"ridge__alpha": [1e-4, 1e4]}, horizon=10)
    search.fit(y[:N, None], y[1 : N + 1])
    assert search.best_params_ == {"ridge__alpha": 1e-4}
    np.testing.assert_array_equal(
        search.forecast(3), forecast(search.best_estimator_, 3, clip=search.clip)
    )


def test_frames_keep_their_index(series):
    pd = pytest.importorskip("pandas")
    hours = pd.RangeIndex(1000, 1300)
    frame = pd.DataFrame({"level": series[:, 0]}, index=hours)
    X, y = frame[:-1], frame["level"].shift(-1)[:-1]
    front = make_union("passthrough", states()).set_output(transform="pandas")
    pipe = make_pipeline(front, esn()).fit(X[:N], y[:N])
    pipe[-1].set_output(predict="pandas")
    with pytest.warns(UserWarning, match="does not follow"):  # starts anew, as predict does
        rows = forecast(pipe, 3, context=X[N + 20 : N + 60])
    with pytest.warns(UserWarning, match="does not follow"):
        predicted = pipe.predict(X[N + 20 : N + 60])
    assert rows.iloc[0] == pytest.approx(predicted.iloc[-1], abs=1e-12)
    assert rows.index[0] == 1000 + N + 60


def test_chunks_move_the_end_of_a_transformer(series):
    y = series[:, 0]
    pipe = make_pipeline(states(), Ridge(1e-3)).fit(y[:N, None], y[1 : N + 1])
    pipe[0].partial_fit(y[N : N + 20, None], y[N + 1 : N + 21])
    wanted = by_rows(pipe, 4, last=y[N + 20], exog=np.zeros((4, 0)))
    np.testing.assert_allclose(forecast(pipe, 4), wanted, rtol=0, atol=1e-9)
    pipe[0].partial_fit(y[N + 20 : N + 30, None])
    with pytest.raises(ValueError, match="last training target is NaN"):
        forecast(pipe, 4)


def test_pipelines_of_several_sequences(series):
    X, y = series[:N, :1], series[1 : N + 1, 0]
    pipe = make_pipeline(states(), esn()).fit([X, X[:90]], [y, y[:90]])
    with pytest.raises(ValueError, match="needs a context"):
        forecast(pipe, 3)
    context = X[20:60]
    rows = forecast(pipe, 4, context=context)
    for k, row in enumerate(rows):  # all is played again at each step
        played = np.append(context, rows[:k])[:, None]
        np.testing.assert_allclose(pipe.predict(played)[-1], row, rtol=0, atol=1e-9)


class TestRefusals:
    @pytest.fixture
    def data(self, series):
        return series[:N, :1], series[1 : N + 1, 0]

    def test_what_is_not_trained_for_the_loop(self, data):
        X, y = data
        for front in (
            states(),
            make_union("passthrough", make_pipeline(StandardScaler(), states())),
        ):
            pipe = make_pipeline(StandardScaler(), front, Ridge()).fit(X, X[:, 0])
            with pytest.raises(ValueError, match=r"needs y\[t\] == X\[t\+1\]"):
                forecast(pipe, 3)
        swapped = np.column_stack([np.cos(0.1 * np.arange(N)), X[:, 0]])
        pipe = make_pipeline(states(), Ridge()).fit(swapped, y)
        with pytest.raises(ValueError, match="first columns of X"):
            forecast(pipe, 3, exog=np.zeros((3, 1)))

    def test_transformers_without_targets(self, data):
        X, y = data
        pipe = make_pipeline(states(), Ridge()).fit(X, y)
        pipe[0]._progress = Progress(0)  # as in files of earlier versions
        with pytest.raises(ValueError, match="saved by an earlier version"):
            forecast(pipe, 3)
        pipe = make_pipeline(states().fit(X), Ridge().fit(np.zeros((9, 12)), np.zeros(9)))
        with pytest.raises(ValueError, match="fitted without y"):
            forecast(pipe, 3)

    @pytest.mark.parametrize("context", [False, True])
    def test_other_memory(self, data, context):
        X, y = data
        memory = FunctionTransformer(lambda rows: np.cumsum(rows, axis=0) / 100)
        for steps in ((states(), memory), (states(), StandardScaler(), memory)):
            pipe = make_pipeline(*steps, Ridge()).fit(X, y)
            with pytest.raises(ValueError, match="FunctionTransformer transforms a single row"):
                forecast(pipe, 3, context=X[:20] if context else None)
        for steps in ((memory, states()), (make_union(memory, states()),)):
            pipe = make_pipeline(*steps, Ridge()).fit(X, y)
            with pytest.raises(ValueError, match="FunctionTransformer transforms a single row"):
                forecast(pipe, 3, context=X[:20] if context else None)

    def test_parts_that_cannot_follow_rows(self, data):
        X, y = data
        for pipe, message in (
            (make_pipeline(states(), RNNRegressor(3, max_iter=1)), "RNNRegressor behind them"),
            (make_pipeline(states(), esn(feedback=True)), "has feedback weights"),
            (make_pipeline(PerStep(states()), Ridge()), "PerStep contains a ReservoirTransformer"),
            (
                make_pipeline(states(), esn(bidirectional=True)),
                "states that do not depend on later",
            ),
        ):
            with pytest.raises(ValueError, match=message):
                forecast(pipe.fit(X, y), 3)
        labels = make_pipeline(states(), LogisticRegression()).fit(X, y > y.mean())
        with pytest.raises(TypeError, match="got LogisticRegression"):
            forecast(labels, 3)
        timed = make_pipeline(states(time_column=1), Ridge())
        timed.fit(np.column_stack([X[:, 0], np.arange(N)]), y)
        with pytest.raises(ValueError, match="time"):
            forecast(timed, 3, exog=np.zeros((3, 1)))

    def test_ids(self, data):
        X, y = data
        ids = np.insert(X, 0, 4.0, axis=1)
        pipe = make_pipeline(states(sequence_column=0), Ridge()).fit(ids, y)
        plain = make_pipeline(states(), Ridge()).fit(X, y)
        np.testing.assert_array_equal(forecast(pipe, 3), forecast(plain, 3))
        inner = make_column_transformer(("passthrough", [0]), (states(sequence_column=0), [0, 1]))
        pipe = make_pipeline(inner, esn(sequence_column=0)).fit(ids, y)
        with pytest.raises(ValueError, match="sequence_column"):
            forecast(pipe, 3)
