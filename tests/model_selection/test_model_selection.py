"""Splits, scores and containers for series."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, make_scorer, mean_squared_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from reservoir.model_selection import ContextSplit, PerStep, stack_sequences, washout_scorer


def moving_sum(X, length):
    """Sum of the last rows, from zeros: a reservoir that forgets after `length` rows."""
    padded = np.concatenate([np.zeros(length - 1), np.asarray(X, dtype=float)[:, -1]])
    return np.convolve(padded, np.ones(length), mode="valid")


class FromZeros(RegressorMixin, BaseEstimator):
    """Predicts scale * moving sum; starts from zeros at each sequence."""

    def __init__(self, length=5, sequence_column=None):
        self.length = length
        self.sequence_column = sequence_column

    def fit(self, X, y):
        states, targets = self._states(X), y
        if isinstance(states, list):
            states, targets = np.concatenate(states), np.concatenate(list(y))
        self.scale_ = states @ targets / (states @ states)
        return self

    def _states(self, X):
        if isinstance(X, list) or (isinstance(X, np.ndarray) and X.dtype == object):
            return [moving_sum(x, self.length) for x in X]
        if self.sequence_column is None:
            return moving_sum(X, self.length)
        ids = np.asarray(X)[:, self.sequence_column]
        cut = np.flatnonzero(np.diff(ids)) + 1
        return np.concatenate([moving_sum(x, self.length) for x in np.split(np.asarray(X), cut)])

    def predict(self, X):
        states = self._states(X)
        if isinstance(states, list):
            return [self.scale_ * s for s in states]
        return self.scale_ * states


class LabelsFromZeros(ClassifierMixin, FromZeros):
    def fit(self, X, y):
        y = np.concatenate(list(y)) if isinstance(X, list) else y
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        states = self._states(X)
        return [s - 2.5 for s in states] if isinstance(states, list) else states - 2.5

    def predict(self, X):
        scores = self.decision_function(X)
        if isinstance(scores, list):
            return [self.classes_[(s > 0).astype(int)] for s in scores]
        return self.classes_[(scores > 0).astype(int)]


def long_series(n_samples, seed=0, length=5):
    """Inputs, and targets whose memory reaches across every split."""
    u = np.random.default_rng(seed).uniform(size=n_samples + length - 1)
    X = u[length - 1 :, None]
    return X, 2.0 * np.convolve(u, np.ones(length), mode="valid")


# ---------------------------------------------------------------- ContextSplit


@pytest.mark.parametrize("cv", [TimeSeriesSplit(4), TimeSeriesSplit(3, gap=7), KFold(5), 4])
@pytest.mark.parametrize("context", [0, 3, 1000])
def test_context_split_prepends_rows(cv, context):
    X = np.zeros((60, 1))
    wrapped = ContextSplit(cv, context)
    plain = KFold(cv) if isinstance(cv, int) else cv
    splits = list(wrapped.split(X))
    assert len(splits) == wrapped.get_n_splits(X) == plain.get_n_splits(X)
    for (train, test), (train0, test0) in zip(splits, plain.split(X), strict=True):
        np.testing.assert_array_equal(train, train0)
        assert len(test) == len(test0) + min(context, test0[0])
        np.testing.assert_array_equal(test, np.arange(test0[-1] - len(test) + 1, test0[-1] + 1))


def test_context_split_stays_inside_groups():
    groups = np.repeat([0, 1, 2], [10, 20, 10])
    X = np.zeros((40, 1))
    for cv in GroupKFold(3), LeaveOneGroupOut():
        for (_, test), (_, test0) in zip(
            ContextSplit(cv, 5).split(X, groups=groups), cv.split(X, groups=groups), strict=True
        ):
            np.testing.assert_array_equal(test, test0)
    bounded = list(ContextSplit(KFold(4), 7).split(X, groups=groups))
    assert [test[0] for _, test in bounded] == [0, 10, 13, 30]
    halves = [(np.arange(10), np.r_[12:20, 25:30, 33:40])]
    (_, test), *_ = ContextSplit(halves, 100).split(X, groups=np.repeat([0, 1, 2, 3], 10))
    np.testing.assert_array_equal(test, np.r_[10:20, 20:30, 30:40])
    with pytest.raises(ValueError, match=r"split 0 fall into 2 blocks .* in 1 groups"):
        list(ContextSplit([(np.arange(5), np.r_[6:8, 9:11])], 2).split(X, groups=np.zeros(40)))


def test_context_split_follows_the_protocol():
    cv = ContextSplit(TimeSeriesSplit(3), context=7)
    text = "".join(repr(cv).split())
    assert text.startswith("ContextSplit(context=7,cv=TimeSeriesSplit(")
    for other in copy.deepcopy(cv), clone(cv, safe=False), pickle.loads(pickle.dumps(cv)):
        assert other.context == 7
        assert len(list(other.split(np.zeros((20, 1))))) == 3
    clone(GridSearchCV(LinearRegression(), {}, cv=cv))


def test_errors_of_context_split():
    X = np.zeros((20, 1))
    with pytest.raises(ValueError, match="Use a cv without shuffling"):
        list(ContextSplit(KFold(3, shuffle=True, random_state=0)).split(X))
    with pytest.raises(ValueError, match="context=-1 must be at least 0"):
        list(ContextSplit(KFold(3), -1).split(X))
    with pytest.raises(TypeError, match="empty after one pass"):
        ContextSplit(iter([(np.arange(5), np.arange(5, 9))])).get_n_splits()


def test_context_makes_estimators_from_zeros_right(global_random_seed):
    X, y = long_series(200, global_random_seed)
    cv = TimeSeriesSplit(4)
    start_up = cross_val_score(FromZeros(), X, y, cv=cv)
    warm = cross_val_score(
        FromZeros(), X, y, cv=ContextSplit(cv, 10), scoring=washout_scorer(None, 10)
    )
    for train, test in cv.split(X):  # no start inside the rows that are scored
        rows = FromZeros().fit(X[train], y[train]).predict(X)[test]
        assert warm[len(train) // 40 - 1] == pytest.approx(r2_score(y[test], rows), rel=1e-12)
    assert (warm > start_up).all()


# ---------------------------------------------------------------- washout_scorer


@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_squared_error", make_scorer(r2_score)])
def test_washout_scorer_equals_the_score_of_the_rest(scoring):
    X, y = long_series(100)
    model = FromZeros().fit(X, y)
    expected = r2_score(y[10:], model.predict(X)[10:])
    if scoring == "neg_mean_squared_error":
        expected = -mean_squared_error(y[10:], model.predict(X)[10:])
    assert washout_scorer(scoring, 10)(model, X, y) == pytest.approx(expected, rel=1e-12)
    plain = model.score(X, y)
    if scoring != "neg_mean_squared_error":
        assert washout_scorer(scoring, 0)(model, X, y) == pytest.approx(plain, rel=1e-12)


def containers():
    parts = [long_series(n, seed) for seed, n in enumerate([40, 25, 60, 31])]
    Xs, ys = [X for X, _ in parts], [y for _, y in parts]
    packed = np.empty((2, 4), dtype=object)
    packed[0], packed[1] = Xs, ys
    table = stack_sequences(Xs, ys)
    return {
        "list": (FromZeros(), Xs, ys),
        "object array": (FromZeros(), packed[0], packed[1]),
        "id column": (FromZeros(sequence_column=0), table[0], table[1]),
        "pipeline": (make_pipeline(MinMaxScaler((0, 3)), FromZeros(sequence_column=0)), *table[:2]),
        "target transform": (TransformedTargetRegressor(FromZeros(sequence_column=0)), *table[:2]),
    }


@pytest.mark.parametrize("name", containers())
def test_washout_scorer_trims_every_sequence(name):
    model, X, y = containers()[name]
    model.fit(X, y)
    predictions, targets = model.predict(X), y
    if len(X) > 4:
        cut = np.cumsum([40, 25, 60])
        predictions, targets = np.split(predictions, cut), np.split(y, cut)
    expected = r2_score(
        np.concatenate([t[6:] for t in targets]), np.concatenate([p[6:] for p in predictions])
    )
    assert washout_scorer("r2", 6)(model, X, y) == pytest.approx(expected, rel=1e-12)
    assert washout_scorer(None, 6)(model, X, y) == pytest.approx(expected, rel=1e-12)


def test_washout_scorer_with_three_dimensions_and_weights():
    X = np.random.default_rng(0).uniform(size=(3, 20, 1))
    y = np.stack([2 * moving_sum(x, 5) for x in X])
    y[:, :4] += 100.0
    model = FromZeros()
    model.scale_ = 2.0
    model.predict = lambda X: np.stack([2 * moving_sum(x, 5) for x in X])
    assert washout_scorer("r2", 4)(model, X, y) == pytest.approx(1.0)
    weights = np.ones((3, 20))
    weights[:, 4] = 0.0
    y[:, 4] += 100.0
    assert washout_scorer("r2", 4)(model, X, y) < 0.9
    assert washout_scorer("r2", 4)(model, X, y, sample_weight=weights) == pytest.approx(1.0)


@pytest.mark.parametrize("as_table", [True, False])
def test_search_over_sequences(as_table, global_random_seed):
    parts = [
        long_series(n, [global_random_seed, k]) for k, n in enumerate([40, 25, 60, 31, 50, 45])
    ]
    X, y, groups = [X for X, _ in parts], [y for _, y in parts], None
    model, cv = FromZeros(), KFold(3)
    if as_table:
        X, y, groups = stack_sequences(X, y)
        model, cv = FromZeros(sequence_column=0), GroupKFold(3)
    search = GridSearchCV(
        model, {"length": [2, 5, 9]}, cv=cv, scoring=washout_scorer("r2", 10), n_jobs=1
    )
    search.fit(X, y, groups=groups)
    assert search.best_params_ == {"length": 5}
    several = cross_validate(
        model,
        X,
        y,
        groups=groups,
        cv=cv,
        scoring=washout_scorer(["r2", "neg_mean_squared_error"], 10),
    )
    assert several["test_r2"].mean() == pytest.approx(search.best_score_)


def test_search_with_context_clones_and_pickles():
    X, y = long_series(150)
    search = GridSearchCV(
        FromZeros(),
        {"length": [2, 5]},
        cv=ContextSplit(TimeSeriesSplit(3), 10),
        scoring=washout_scorer("r2", 10),
    )
    search = pickle.loads(pickle.dumps(clone(search)))
    assert search.fit(X, y).best_params_ == {"length": 5}


def test_washout_scorer_for_classifiers():
    X, total = long_series(80)
    y = np.where(total > 5.0, "high", "low")
    model = LabelsFromZeros().fit(X, y)
    y_pred = model.predict(X)[8:]
    expected = accuracy_score(y[8:], y_pred)
    assert washout_scorer(None, 8)(model, X, y) == expected
    assert washout_scorer("accuracy", 8)(model, [X, X], [y, y]) == expected
    assert washout_scorer("roc_auc", 8)(model, X, y) == pytest.approx(0.0)
    logistic = LogisticRegression().fit(X, y)
    expected = -log_loss(y[8:], logistic.predict_proba(X)[8:])
    assert washout_scorer("neg_log_loss", 8)(logistic, X, y) == pytest.approx(expected)


def test_washout_scorer_accepts_own_callables():
    X, y = long_series(50)
    model = FromZeros().fit(X, y)

    def longest_error(estimator, X, y):
        return -np.abs(estimator.predict(X) - y).max()

    expected = -np.abs(model.predict(X) - y)[5:].max()
    assert washout_scorer(longest_error, 5)(model, X, y) == expected


def test_washout_scorer_with_frames():
    pd = pytest.importorskip("pandas")
    X, y = long_series(30)
    frame = pd.DataFrame({"id": np.repeat([0, 1], 15), "u": X[:, 0]})
    model = FromZeros(sequence_column=0).fit(frame, y)
    expected = r2_score(
        np.r_[y[4:15], y[19:]], np.r_[model.predict(frame)[4:15], model.predict(frame)[19:]]
    )
    assert washout_scorer("r2", 4)(model, frame, pd.Series(y)) == pytest.approx(expected)
    by_name = washout_scorer("r2", 4, sequence_column="id")
    assert by_name(model, frame, y) == pytest.approx(expected)
    assert repr(by_name) == "washout_scorer('r2', washout=4, sequence_column=id)"
    indexed = frame.set_index([frame["id"], np.arange(30)])[["u"]]
    plain = LinearRegression().fit(indexed, y)
    p = plain.predict(indexed)
    expected = r2_score(np.r_[y[4:15], y[19:]], np.r_[p[4:15], p[19:]])
    assert washout_scorer("r2", 4)(plain, indexed, y) == pytest.approx(expected)


def test_errors_of_washout_scorer():
    X, y = long_series(30)
    model = FromZeros().fit(X, y)
    with pytest.raises(ValueError, match="washout=30 leaves no rows to score: test sequence 0 has"):
        washout_scorer("r2", 30)(model, X, y)
    with pytest.raises(ValueError, match="test sequence 1 has n_samples=5"):
        washout_scorer("r2", 6)(model, [X, X[:5]], [y, y[:5]])
    with pytest.raises(ValueError, match="For one label per sequence use scikit-learn's scorer"):
        washout_scorer("r2", 3)(model, [X, X], [0, 1])
    with pytest.raises(ValueError, match="not a valid scoring value"):
        washout_scorer("r3", 3)
    with pytest.raises(TypeError, match="washout must be an integer"):
        washout_scorer("r2", 2.5)
    pipe = make_pipeline(FunctionOfColumn(1), FromZeros(sequence_column=0))
    with pytest.raises(ValueError, match="several values of sequence_column"):
        washout_scorer("r2", 3)(pipe, X, y)


class FunctionOfColumn(BaseEstimator):
    def __init__(self, sequence_column):
        self.sequence_column = sequence_column

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


# ---------------------------------------------------------------- stack_sequences


def test_stack_sequences():
    Xs = [np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)]
    ys = [np.ones((3, 2)), np.zeros((4, 2))]
    X, y, groups = stack_sequences(Xs, ys)
    np.testing.assert_array_equal(X[:, 0], [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(X[:, 1:], np.concatenate(Xs))
    np.testing.assert_array_equal(y, np.concatenate(ys))
    np.testing.assert_array_equal(groups, [0, 0, 0, 1, 1, 1, 1])
    assert X.dtype == np.float64
    assert groups.dtype.kind == "i"
    X2, none, groups2 = stack_sequences(np.zeros((3, 5, 2)))
    assert none is None
    assert X2.shape == (15, 3)
    assert list(np.bincount(groups2)) == [5, 5, 5]
    assert stack_sequences([[[1.0]], [[2.0]]], [["a"], ["b"]])[1].tolist() == ["a", "b"]
    cv = LeaveOneGroupOut()
    assert cross_val_predict(LinearRegression(), X2, groups2, groups=groups2, cv=cv).shape == (15,)


def test_stack_sequences_with_frames():
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}), pd.DataFrame({"a": [5.0], "b": [6]})]
    X, y, _ = stack_sequences(frames, [pd.Series([1, 2]), pd.Series([3])])
    assert list(X.columns) == ["sequence", "a", "b"]
    assert X["sequence"].tolist() == [0.0, 0.0, 1.0]
    assert y.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"Xs\[1\] and Xs\[0\] have different column names"):
        stack_sequences([frames[0], frames[1].rename(columns={"a": "c"})])


def test_errors_of_stack_sequences():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="Xs contains 0 sequences; at least 1"):
        stack_sequences([])
    with pytest.raises(ValueError, match=r"Xs\[0\] has shape \(3,\).*reshape\(-1, 1\)"):
        stack_sequences([np.zeros(3)])
    with pytest.raises(ValueError, match=r"Xs\[1\] has no rows .* \(0, 2\)"):
        stack_sequences([X, X[:0]])
    with pytest.raises(ValueError, match="same number of columns"):
        stack_sequences([X, X[:, :1]])
    with pytest.raises(ValueError, match=r"ys\[0\] has 2 rows, but Xs\[0\] has 3"):
        stack_sequences([X], [[1, 2]])
    with pytest.raises(ValueError, match="ys contains 1 sequences; Xs contains 2"):
        stack_sequences([X, X], [[1, 2, 3]])
    with pytest.raises(ValueError, match="Repeat the label of a whole sequence"):
        stack_sequences([X, X], [0, 1])


# ---------------------------------------------------------------- PerStep


@parametrize_with_checks([PerStep(StandardScaler()), PerStep(PCA(n_components=1))])
def test_sklearn_checks(estimator, check):
    check(estimator)


def sequences():
    rng = np.random.default_rng(0)
    return [rng.normal(3.0, 2.0, size=(n, 2)) for n in (5, 9, 4)]


@pytest.mark.parametrize("container", ["list", "tuple", "object", "array", "table"])
def test_per_step_keeps_the_container(container):
    Xs = sequences()
    if container == "array":
        Xs = [x[:4] for x in Xs]
    whole = np.concatenate(Xs)
    X = {"list": list, "tuple": tuple, "array": np.stack, "table": np.concatenate}.get(
        container, lambda parts: np.array([*parts, None], dtype=object)[:-1]
    )(Xs)
    model = PerStep(StandardScaler()).fit(X)
    Z = model.transform(X)
    expected = StandardScaler().fit_transform(whole)
    if container == "table":
        np.testing.assert_allclose(Z, expected)
    else:
        np.testing.assert_allclose(np.concatenate(list(Z)), expected)
        assert len(Z) == 3
    assert isinstance(Z, np.ndarray) == isinstance(X, np.ndarray)
    if isinstance(X, np.ndarray):
        assert Z.dtype == X.dtype
        assert Z.shape == X.shape
    back = model.inverse_transform(Z)
    for a, b in zip(back, X, strict=True):
        np.testing.assert_allclose(a, b)
    assert model.n_features_in_ == 2
    assert model.get_feature_names_out().tolist() == ["x0", "x1"]


def test_per_step_changes_the_number_of_columns():
    X = np.stack([x[:4] for x in sequences()])
    assert PerStep(PCA(1)).fit_transform(X).shape == (3, 4, 1)
    labels = np.array([[["a"], ["b"]], [["c"], ["a"]]])
    assert PerStep(OneHotEncoder()).fit_transform(labels).shape == (2, 2, 3)
    y = np.arange(10.0)
    table = np.column_stack([y, np.ones(10), -y])
    kept = PerStep(SelectKBest(f_regression, k=1)).fit(table, y + np.sin(y))
    assert kept.transform(table).shape == (10, 1)


def test_per_step_output_of_frames():
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(x, columns=["a", "b"]) for x in sequences()]
    model = PerStep(StandardScaler()).set_output(transform="pandas").fit(frames)
    out = model.transform(frames)
    assert all(list(frame.columns) == ["a", "b"] for frame in out)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert isinstance(clone(model).fit(frames).transform(frames)[0], pd.DataFrame)
    assert PerStep(StandardScaler()).fit(frames).set_output(transform="pandas").transform(
        frames[0]
    ).shape == (5, 2)
    assert PerStep(StandardScaler()).fit_transform(np.zeros((2, 3, 4))).shape == (2, 3, 4)


def test_per_step_in_a_pipeline_over_lists(global_random_seed):
    parts = [long_series(n, [global_random_seed, k]) for k, n in enumerate([40, 25, 60, 31])]
    X, y = [X for X, _ in parts], [y for _, y in parts]
    pipe = make_pipeline(PerStep(MinMaxScaler()), FromZeros())
    scores = cross_val_score(pipe, X, y, cv=KFold(2), scoring=washout_scorer("r2", 5))
    for score, (train, test) in zip(scores, KFold(2).split(X), strict=True):
        scaler = MinMaxScaler().fit(np.concatenate([X[i] for i in train]))
        scaled = [scaler.transform(x) for x in X]
        model = FromZeros().fit([scaled[i] for i in train], [y[i] for i in train])
        said = [model.predict([scaled[i]])[0][5:] for i in test]
        expected = r2_score(np.concatenate([y[i][5:] for i in test]), np.concatenate(said))
        assert score == pytest.approx(expected, rel=1e-12)


def test_errors_of_per_step():
    with pytest.raises(ValueError, match=r"Sequence 1 of X has shape \(4, 3\)"):
        PerStep(StandardScaler()).fit([np.zeros((4, 2)), np.zeros((4, 3))])
    with pytest.raises(ValueError, match="n_sequences=0"):
        PerStep(StandardScaler()).fit(np.zeros((0, 4, 2)))
    with pytest.raises(AttributeError):
        PerStep(SelectKBest()).predict  # noqa: B018

    class Halves(FunctionOfColumn):
        def transform(self, X):
            return X[::2]

    with pytest.raises(ValueError, match="Sequence 0 has 4 rows but its transform has 2"):
        PerStep(Halves(0)).fit([np.zeros((4, 2))]).transform([np.zeros((4, 2))])
