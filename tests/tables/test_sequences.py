"""Many sequences of different lengths: every container, and scikit-learn's tools on them."""

import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from reservoir import ESNClassifier, ESNRegressor, ESNSequenceClassifier, ReservoirTransformer
from reservoir.building import build_reservoir
from reservoir.dynamics import run
from reservoir.model_selection import PerStep, stack_sequences, washout_scorer

pytestmark = pytest.mark.both_engines

LENGTHS = (80, 131, 97, 60, 110, 90)


@pytest.fixture(scope="module")
def data():
    """A task that only a fresh start solves well: sequences begin with a large outlier."""
    rng = np.random.default_rng(0)
    Xs = [rng.uniform(-1, 1, (n, 2)) for n in LENGTHS]
    ys = [X[:, 0] * 0.5 + np.append(0, X[:-1, 1]) for X in Xs]
    return Xs, ys


PARAMS = {"n_units": 40, "leak_rate": 1.0, "washout": 10, "alpha": 1e-4, "random_state": 0}


def naive_coef(Xs, ys, feedback=False, washout=10):
    """Each sequence run on its own, from zeros; scikit-learn's Ridge on what is stored."""
    reservoir = build_reservoir(40, 2, n_outputs=int(feedback), random_state=0)
    rows, targets = [], []
    for X, y in zip(Xs, ys, strict=True):
        fed = np.append(0, y[:-1])[:, None] if feedback else None
        rows.append(np.hstack([run(reservoir, X, feedback=fed), X])[washout:])
        targets.append(y[washout:])
    return Ridge(1e-4).fit(np.vstack(rows), np.concatenate(targets)).coef_


def containers(Xs, ys):
    table, y, _ = stack_sequences(Xs, ys)
    packed_X, packed_y = np.empty(len(Xs), object), np.empty(len(ys), object)
    packed_X[:], packed_y[:] = Xs, ys
    yield "ids", table, y, {"sequence_column": 0}
    yield "last column", np.roll(table, -1, axis=1), y, {"sequence_column": -1}
    yield "list", list(Xs), list(ys), {}
    yield "objects", packed_X, packed_y, {}


@pytest.mark.parametrize("feedback", [False, True])
def test_each_sequence_starts_fresh_in_every_container(data, feedback):
    expected = naive_coef(*data, feedback=feedback)
    leaked = naive_coef([np.vstack(data[0])], [np.concatenate(data[1])], feedback=feedback)
    assert np.abs(expected - leaked).max() > 1e-3  # what a leak of state would give
    for name, X, y, params in containers(*data):
        esn = ESNRegressor(**PARAMS, feedback=feedback, **params).fit(X, y)
        np.testing.assert_allclose(esn.coef_, expected, atol=1e-8, err_msg=name)


def test_prediction_starts_fresh_and_keeps_the_container(data):
    Xs, ys = data
    one_by_one = ESNRegressor(**PARAMS).fit(Xs, ys)
    expected = [one_by_one.predict(X) for X in Xs]  # several were fitted: each starts from zeros
    for name, X, y, params in containers(*data):
        out = ESNRegressor(**PARAMS, **params).fit(X, y).predict(X)
        if name in ("ids", "last column"):
            np.testing.assert_allclose(out, np.concatenate(expected), atol=1e-12)
            continue
        assert type(out) is type(X)
        for rows, reference in zip(out, expected, strict=True):
            np.testing.assert_allclose(rows, reference, atol=1e-12)


def test_three_dimensional_arrays(data):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (5, 60, 2))
    y = X[:, :, 0] * 0.5
    esn = ESNRegressor(**PARAMS).fit(X, y)
    np.testing.assert_allclose(esn.coef_, naive_coef(X, y), atol=1e-8)
    assert esn.predict(X).shape == (5, 60)
    assert ESNRegressor(**PARAMS).fit(X, y[:, :, None]).predict(X).shape == (5, 60, 1)
    assert ReservoirTransformer(7).fit_transform(X).shape == (5, 60, 7)
    assert esn.states(X).shape == (5, 60, 40)
    weights = np.ones((5, 60))
    weights[2] = 0
    others = [0, 1, 3, 4]
    weighed = ESNRegressor(**PARAMS).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighed.coef_, naive_coef(X[others], y[others]), atol=1e-8)


def test_a_nested_list_of_numbers_is_one_table(data):
    X, y = data[0][0], data[1][0]
    nested = ESNRegressor(**PARAMS).fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(nested.coef_, ESNRegressor(**PARAMS).fit(X, y).coef_)


def test_pandas(data):
    pd = pytest.importorskip("pandas")
    Xs, ys = data
    frames = [pd.DataFrame(X, columns=["a", "b"]) for X in Xs]
    stacked = pd.concat(frames, keys=[f"run {k}" for k in range(len(Xs))])
    y = pd.Series(np.concatenate(ys), index=stacked.index)
    expected = naive_coef(Xs, ys)
    esn = ESNRegressor(**PARAMS).fit(stacked, y)
    np.testing.assert_allclose(esn.coef_, expected, atol=1e-8)
    assert list(esn.feature_names_in_) == ["a", "b"]

    by_name = stacked.assign(run=stacked.index.get_level_values(0)).reset_index(drop=True)
    esn = ESNRegressor(**PARAMS, sequence_column="run").fit(by_name, y.to_numpy())
    np.testing.assert_allclose(esn.coef_, expected, atol=1e-8)  # ids of text, in the last column
    assert esn.n_features_in_ == 3
    assert esn.predict(by_name).shape == (len(by_name),)

    pipe = make_pipeline(StandardScaler(), ESNRegressor(**PARAMS))
    with pytest.raises(ValueError, match=r"MultiIndex.*set_output"):
        pipe.fit(stacked, y)
    kept = pipe.set_output(transform="pandas").fit(stacked, y)[-1].coef_
    scaler = StandardScaler().fit(np.vstack(Xs))
    np.testing.assert_allclose(kept, naive_coef([scaler.transform(X) for X in Xs], ys), atol=1e-8)
    with pytest.raises(ValueError, match="MultiIndex"):
        ESNRegressor(sequence_column="a").fit(stacked, y)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_ids_survive_a_pipeline(data, scaler):
    Xs, ys = data
    X, y, _ = stack_sequences(Xs, ys)
    pipe = make_pipeline(scaler, ESNRegressor(**PARAMS, sequence_column=0)).fit(X, y)
    scaled = [scaler.__class__().fit(np.vstack(Xs)).transform(part) for part in Xs]
    np.testing.assert_allclose(pipe[-1].coef_, naive_coef(scaled, ys), atol=1e-8)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_median_absolute_error"])
def test_cross_validation_by_ids_is_cross_validation_by_lists(data, scoring):
    """Also the test that would fail if state leaked: a naive loop over fresh starts."""
    from sklearn.metrics import get_scorer

    Xs, ys = data
    X, y, groups = stack_sequences(Xs, ys)
    by_ids = cross_val_score(
        make_pipeline(StandardScaler(), ESNRegressor(**PARAMS, sequence_column=0)),
        X,
        y,
        groups=groups,
        cv=LeaveOneGroupOut(),
        scoring=scoring,
    )
    by_lists = cross_val_score(
        make_pipeline(PerStep(StandardScaler()), ESNRegressor(**PARAMS)),
        Xs,
        ys,
        cv=KFold(len(Xs)),
        scoring=washout_scorer(scoring, 0),
    )
    np.testing.assert_allclose(by_ids, by_lists, rtol=1e-6)
    metric = get_scorer(scoring)
    for k, score in enumerate(by_ids):
        others = [i for i in range(len(Xs)) if i != k]
        scaler = StandardScaler().fit(np.vstack([Xs[i] for i in others]))
        scaled = [scaler.transform(part) for part in Xs]
        coef = naive_coef([scaled[i] for i in others], [ys[i] for i in others])
        H = np.hstack([run(build_reservoir(40, 2, random_state=0), scaled[k]), scaled[k]])
        rows = np.vstack(
            [
                np.hstack([run(build_reservoir(40, 2, random_state=0), scaled[i]), scaled[i]])[10:]
                for i in others
            ]
        )
        intercept = np.mean(np.concatenate([ys[i][10:] for i in others]) - rows @ coef)
        expected = metric._sign * metric._score_func(ys[k], H @ coef + intercept)
        np.testing.assert_allclose(score, expected, rtol=1e-6)


def test_grid_search_by_ids_and_by_lists(data):
    Xs, ys = data
    X, y, groups = stack_sequences(Xs, ys)
    grid = {"esnregressor__spectral_radius": [0.1, 0.9], "esnregressor__leak_rate": [0.5, 1.0]}
    by_ids = GridSearchCV(
        make_pipeline(StandardScaler(), ESNRegressor(**PARAMS, sequence_column=0)),
        grid,
        cv=GroupKFold(3),
        scoring="neg_mean_absolute_error",
    ).fit(X, y, groups=groups)
    by_lists = GridSearchCV(
        make_pipeline(PerStep(StandardScaler()), ESNRegressor(**PARAMS)),
        grid,
        cv=[
            (np.unique(groups[train]).astype(int), np.unique(groups[test]).astype(int))
            for train, test in GroupKFold(3).split(X, y, groups)
        ],
        scoring=washout_scorer("neg_mean_absolute_error", 0),
    ).fit(Xs, ys)
    np.testing.assert_allclose(
        by_ids.cv_results_["mean_test_score"], by_lists.cv_results_["mean_test_score"], rtol=1e-6
    )
    assert by_ids.best_params_ == by_lists.best_params_
    assert by_ids.predict(X).shape == y.shape
    assert len(by_lists.predict(Xs)) == len(Xs)


def test_cross_val_predict_by_ids(data):
    X, y, groups = stack_sequences(*data)
    esn = ESNRegressor(**PARAMS, sequence_column=0)
    rows = cross_val_predict(esn, X, y, groups=groups, cv=LeaveOneGroupOut())
    assert rows.shape == y.shape
    assert np.corrcoef(rows, y)[0, 1] > 0.95


def test_classifiers_take_sequences(data):
    Xs, ys = data
    labels = [np.where(y > 0, "up", "down") for y in ys]
    X, y, groups = stack_sequences(Xs, labels)
    clf = ESNClassifier(40, sequence_column=0, random_state=0)
    scores = cross_val_score(clf, X, y, groups=groups, cv=GroupKFold(3), scoring="accuracy")
    assert scores.min() > 0.85
    by_list = ESNClassifier(40, random_state=0).fit(Xs, labels)
    assert by_list.score(Xs, labels) == clf.fit(X, y).score(X, y)
    proba = by_list.predict_proba(Xs)
    assert [part.shape for part in proba] == [(n, 2) for n in LENGTHS]


class TestPartialFit:
    @pytest.mark.parametrize("splits", [[40], [80], [5, 90, 211, 300, 301]])
    def test_ids_may_be_split_anywhere(self, data, splits):
        X, y, _ = stack_sequences(*data)
        parts = ESNRegressor(**PARAMS, sequence_column=0)
        for rows in np.split(np.arange(len(X)), splits):
            parts.partial_fit(X[rows], y[rows])
        whole = ESNRegressor(**PARAMS, sequence_column=0).fit(X, y)
        np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-10)

    def test_an_id_that_returns_in_a_later_chunk(self, data):
        X, y, _ = stack_sequences(*data)
        esn = ESNRegressor(**PARAMS, sequence_column=0).partial_fit(X, y)
        with pytest.raises(ValueError, match="occurs again after its sequence ended in an earlier"):
            esn.partial_fit(X[:80], y[:80])

    def test_lists_and_new_sequence(self, data):
        Xs, ys = data
        whole = ESNRegressor(**PARAMS).fit(Xs, ys)
        items = ESNRegressor(**PARAMS)
        tables = ESNRegressor(**PARAMS)
        for X, y in zip(Xs, ys, strict=True):
            items.partial_fit([X], [y])
            tables.partial_fit(X, y, new_sequence=True)
        np.testing.assert_allclose(items.coef_, whole.coef_, atol=1e-10)
        np.testing.assert_allclose(tables.coef_, whole.coef_, atol=1e-10)


def test_streams_follow_one_sequence(data):
    Xs, ys = data
    X, y, _ = stack_sequences(Xs, ys)
    stream = ESNRegressor(**PARAMS, sequence_column=0).fit(X, y).stream()
    stream.predict(X[:50])
    with pytest.raises(ValueError, match="this chunk contains 2 sequence"):
        stream.predict(X[70:90])


class TestRefusals:
    def test_shuffled_ids(self, data):
        X, y, _ = stack_sequences(*data)
        order = np.random.default_rng(0).permutation(len(X))
        with pytest.raises(ValueError, match=r"id .* appears again in row .* adjacent"):
            ESNRegressor(sequence_column=0).fit(X[order], y[order])

    def test_lengths_that_disagree(self, data):
        Xs, ys = data
        with pytest.raises(ValueError, match="Sequence 1 of X has n_samples=131, but item 1 of y"):
            ESNRegressor().fit(Xs[:2], [ys[0], ys[1][:-1]])
        with pytest.raises(ValueError, match="X contains 2 sequences, but y contains 1"):
            ESNRegressor().fit(Xs[:2], ys[:1])
        with pytest.raises(
            ValueError, match="X contains 2 sequences, but sample_weight contains 1"
        ):
            ESNRegressor().fit(Xs[:2], ys[:2], sample_weight=[np.ones(80)])

    def test_outputs_that_disagree(self, data):
        Xs, ys = data
        with pytest.raises(ValueError, match="need the same number of outputs"):
            ESNRegressor().fit(Xs[:2], [ys[0], ys[1][:, None]])

    def test_too_short_for_the_washout(self, data):
        message = (
            "washout=97 must be shorter than every training sequence, but sequence 0 has "
            'n_samples=80. Lower it or use washout="auto".'
        )
        with pytest.raises(ValueError, match=re.escape(message)):
            ESNRegressor(washout=97).fit(*data)

    @pytest.mark.parametrize(
        "column, kind, message",
        [
            (3, ValueError, "outside X, which has 3 columns"),
            (-4, ValueError, "outside X"),
            ("run", ValueError, "no column names"),
            (1.0, TypeError, "an int or a column name"),
            (True, TypeError, "an int or a column name"),
        ],
    )
    def test_columns_that_are_not_there(self, data, column, kind, message):
        X, y, _ = stack_sequences(*data)
        with pytest.raises(kind, match=message):
            ESNRegressor(sequence_column=column).fit(X, y)

    def test_ids_that_are_nan(self, data):
        X, y, _ = stack_sequences(*data)
        X[100, 0] = np.nan
        with pytest.raises(ValueError, match=r"no id in row 100 of column .* Give each row the id"):
            ESNRegressor(sequence_column=0).fit(X, y)


def test_large_float32_ids_stay_apart(data):
    """As float32, 2**24 and 2**24 + 1 are one number; ids are read before any cast."""
    Xs, ys = data
    X, y, _ = stack_sequences(Xs, ys)
    X[:, 0] += 2**24
    esn = ESNRegressor(**PARAMS, sequence_column=0, dtype="float32").fit(X, y)
    reference = ESNRegressor(**PARAMS, dtype="float32").fit(Xs, ys)
    np.testing.assert_array_equal(esn.coef_, reference.coef_)


@pytest.mark.parametrize("ids", [[0.0, np.nan, 2.0], ["a", None, "b"]])
@pytest.mark.parametrize("twice", [False, True])
def test_a_missing_id_in_a_multiindex_raises(ids, twice):
    pd = pytest.importorskip("pandas")
    rows = [np.repeat(np.array(ids, dtype=object), 5), np.tile(np.arange(5), 3)]
    index = pd.MultiIndex.from_arrays([rows[0], *rows] if twice else rows)
    X = pd.DataFrame({"x": np.arange(15.0)}, index)
    for model in (ESNRegressor(5), ESNSequenceClassifier(5)):
        with pytest.raises(ValueError, match=r"X has no id in row 5 of its index"):
            model.fit(X, np.arange(15) % 2)
