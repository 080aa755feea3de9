"""Sequence estimators and forecasters in the interfaces of aeon and sktime, and their data."""

import doctest
import inspect
import pickle
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from reservoir import (
    ESNForecaster,
    ESNRegressor,
    ESNSequenceClassifier,
    ESNSequenceRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
)
from reservoir.building import build_reservoir
from reservoir.dynamics import run
from reservoir.interop import as_aeon, as_sktime
from reservoir.model_selection import from_channels_first

pytestmark = pytest.mark.one_engine

kinds = pytest.mark.parametrize(
    "cls", [ESNSequenceClassifier, ESNSequenceRegressor, ReservoirFeatures]
)


@pytest.fixture(
    params=[
        pytest.param("aeon", marks=pytest.mark.aeon),
        pytest.param("sktime", marks=pytest.mark.sktime),
    ]
)
def library(request):
    """Name either library, where it is there."""
    request.getfixturevalue(request.param)
    return request.param


@pytest.fixture
def adapt(library):
    return {"aeon": as_aeon, "sktime": as_sktime}[library]


def cases(n=24, seed=0, *, equal=False):
    """Return noisy waves of two channels, channels first, and which of three speeds each has."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    Xs = []
    for label in y:
        X = 0.2 * rng.normal(size=(2, 25 if equal else rng.integers(20, 35))).cumsum(axis=1)
        X[1] = np.sin(np.arange(X.shape[1]) * (0.3 + 0.3 * label) + rng.uniform(0, 6))
        Xs.append(X)
    return (np.stack(Xs) if equal else Xs), y


def make(cls, **options):
    return cls(**({"n_units": 20, "random_state": 0} | options))


def theirs(library, X):
    """Return cases as a library has them: a list of arrays for aeon, of data frames for sktime."""
    if library == "aeon" or isinstance(X, np.ndarray):
        return X
    pd = pytest.importorskip("pandas")
    return [pd.DataFrame(item.T, columns=["a", "b"]) for item in X]


def outputs(model, X):
    """Return, as arrays, all that a fitted model says of X."""
    methods = ("predict", "predict_proba", "transform")
    return [np.asarray(getattr(model, m)(X)) for m in methods if hasattr(model, m)]


# --- what they demand of estimators ------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@kinds
def test_aeons_estimator_checks(aeon, cls):
    from aeon.testing.estimator_checking import check_estimator

    results = check_estimator(type(as_aeon(cls())))
    assert len(results) > 20
    assert {name: found for name, found in results.items() if found != "PASSED"} == {}


@pytest.mark.filterwarnings("ignore")
@kinds
def test_sktimes_estimator_checks(sktime, cls):
    from sktime.utils.estimator_checks import check_estimator

    results = check_estimator(type(as_sktime(cls())), verbose=0)
    assert len(results) > 60
    assert {name: found for name, found in results.items() if found != "PASSED"} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_sktimes_forecaster_checks(sktime):
    from sktime.utils.estimator_checks import check_estimator

    results = check_estimator(type(as_sktime(ESNForecaster())), verbose=0)
    assert len(results) > 300
    assert {name: found for name, found in results.items() if found != "PASSED"} == {}


# --- the same numbers as without ---------------------------------------------------------------


@kinds
@pytest.mark.parametrize("equal", [False, True])
def test_the_adapted_estimator_equals_the_original(library, adapt, cls, equal):
    (X, y), (new, _) = cases(equal=equal), cases(9, seed=1, equal=equal)
    target = y if cls is ESNSequenceClassifier else y + 0.5
    alone = make(cls).fit(from_channels_first(X), target)
    adapted = adapt(make(cls)).fit(theirs(library, X), target)
    expected = outputs(alone, from_channels_first(new))
    for model in (adapted, pickle.loads(pickle.dumps(adapted))):
        found = outputs(model, theirs(library, new))
        assert len(found) == len(expected) == (2 if cls is ESNSequenceClassifier else 1)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_labels_of_any_type_and_a_readout_without_probabilities(library, adapt):
    X, y = cases()
    X, labels = theirs(library, X), np.array(["slow", "medium", "fast"])[y]
    clf = adapt(make(ESNSequenceClassifier, readout=RidgeClassifierCV())).fit(X, labels)
    assert set(clf.predict(X)) <= set(labels)
    hard = clf.predict_proba(X)
    assert np.array_equal(clf.classes_[hard.argmax(axis=1)], clf.predict(X))
    assert set(np.unique(hard)) == {0.0, 1.0}


def test_gaps_are_taken_where_the_estimator_takes_them(library, adapt):
    X, y = cases(equal=True)
    X[3, 0, 5:8] = np.nan
    taking = adapt(make(ESNSequenceClassifier, missing_values="hold")).fit(X, y)
    alone = make(ESNSequenceClassifier, missing_values="hold").fit(from_channels_first(X), y)
    assert np.array_equal(taking.predict_proba(X), alone.predict_proba(from_channels_first(X)))
    refusing = adapt(make(ESNSequenceClassifier))
    with pytest.raises(ValueError, match="missing values"):
        refusing.fit(X, y)
    # set later, from outside
    refusing.set_params(estimator__missing_values="hold").fit(X, y)
    assert np.array_equal(refusing.predict_proba(X), taking.predict_proba(X))


# --- in their world, and in scikit-learn's -----------------------------------------------------


def test_searches_reach_inside(library, adapt):
    X, y = cases(30, equal=True)
    grid, options = {"estimator__leak_rate": [1.0, 1e-9]}, {}
    if library == "sktime":  # its estimators have searches of their own
        from sktime.classification.model_selection import TSCGridSearchCV as Search
    else:
        Search, options = GridSearchCV, {"error_score": "raise"}
    search = Search(adapt(make(ESNSequenceClassifier)), grid, cv=2, **options)
    assert search.fit(X, y).best_params_ == {"estimator__leak_rate": 1.0}
    assert search.best_score_ > 0.6


@pytest.mark.parametrize("equal", [False, True])
def test_scikit_learn_takes_what_as_aeon_returns(aeon, equal):
    X, y = cases(60, equal=equal)
    clf = as_aeon(make(ESNSequenceClassifier))
    assert cross_val_score(clf, X, y, cv=2, error_score="raise").min() > 0.6
    assert CalibratedClassifierCV(clf, cv=2).fit(X, y).predict_proba(X).shape == (60, 3)
    slow = as_aeon(make(ESNSequenceClassifier, leak_rate=0.1))
    stack = StackingClassifier([("fast", clf), ("slow", slow)], cv=2).fit(X, y)
    assert stack.score(X, y) > 0.9
    assert clone(clf).get_params()["estimator__n_units"] == 20


def test_features_work_in_pipelines_of_aeon(aeon):
    from aeon.pipeline import make_pipeline as make_aeon_pipeline
    from aeon.transformations.collection.unequal_length import Truncator

    X, y = cases(60)
    features = as_aeon(make(ReservoirFeatures))
    logistic = LogisticRegression(max_iter=2000)
    piped = make_aeon_pipeline(features, logistic).fit(X, y)
    alone = make_pipeline(make(ReservoirFeatures), logistic).fit(from_channels_first(X), y)
    assert np.array_equal(piped.predict(X), alone.predict(from_channels_first(X)))
    assert piped.score(X, y) > 0.9
    cut = make_aeon_pipeline(Truncator(15), as_aeon(make(ESNSequenceClassifier))).fit(X, y)
    assert cut.score(X, y) > 0.9


def test_features_work_in_pipelines_of_sktime(sktime):
    X, y = cases(60, equal=True)
    piped = as_sktime(make(ReservoirFeatures)) * LogisticRegression(max_iter=2000)
    assert piped.fit(X, y).score(X, y) > 0.9
    names = as_sktime(make(ReservoirFeatures)).fit_transform(X).columns
    alone = make(ReservoirFeatures).fit(from_channels_first(X))
    assert list(names) == list(alone.get_feature_names_out())


def test_panels_of_sktime_need_no_adapter(sktime):
    from sktime.datatypes import convert

    X, y = cases()
    panel = convert(theirs("sktime", X), "df-list", "pd-multiindex", as_scitype="Panel")
    read = make(ESNSequenceClassifier).fit(panel, y).predict_proba(panel)
    adapted = as_sktime(make(ESNSequenceClassifier)).fit(panel, y).predict_proba(panel)
    alone = make(ESNSequenceClassifier).fit(from_channels_first(X), y)
    np.testing.assert_array_equal(read, alone.predict_proba(from_channels_first(X)))
    np.testing.assert_array_equal(adapted, read)


def test_aeons_own_adapter_serves_one_channel_of_one_length(aeon):
    from aeon.classification.sklearn import SklearnClassifierWrapper

    X, y = cases(equal=True)
    flat = X[:, 1]
    wrapped = SklearnClassifierWrapper(make(ESNSequenceClassifier)).fit(flat, y)
    ours = as_aeon(make(ESNSequenceClassifier)).fit(flat, y)
    assert np.array_equal(wrapped.predict_proba(flat), ours.predict_proba(flat))


@pytest.mark.parametrize("columns", [1, 2])
def test_forecasts_of_sktime_are_ours(sktime, columns):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(columns)
    months = pd.period_range("2000-01", periods=60, freq="M")
    y = pd.DataFrame(rng.normal(size=(60, columns)).cumsum(0), months, list("ab")[:columns])
    y = y["a"] if columns == 1 else y
    known = pd.DataFrame({"x": rng.normal(size=60)}, months)
    model = ESNForecaster(search="series", n_networks=1, random_state=0)
    past, later, ahead = slice(0, 45), slice(45, 50), slice(50, 54)
    alone = model.fit(y[past], known[past])
    adapted = as_sktime(model).fit(y[past], X=known[past])
    adapted.update(y[later], X=known[later])
    alone.update(y[later], known[later])
    fh = [1, 4]
    steps = np.array(fh) - 1
    point = alone.forecast(4, known[ahead]).iloc[steps]
    said = adapted.predict(fh, X=known[ahead])
    assert said.index.equals(point.index)
    np.testing.assert_array_equal(said, point)
    bands = alone.forecast(4, known[ahead], coverage=[0.5, 0.9]).iloc[steps].to_numpy()
    bands = bands.reshape(2, columns, 5)
    intervals = adapted.predict_interval(fh, X=known[ahead], coverage=[0.9, 0.5])
    np.testing.assert_array_equal(
        intervals.to_numpy().reshape(2, columns, 4), bands[..., [3, 4, 1, 2]]
    )
    quantiles = adapted.predict_quantiles(fh, X=known[ahead], alpha=[0.95, 0.5, 0.25])
    np.testing.assert_array_equal(
        quantiles.to_numpy().reshape(2, columns, 3), bands[..., [4, 0, 1]]
    )


# --- what is refused, and the examples ---------------------------------------------------------


@pytest.mark.parametrize("adapter", [as_aeon, as_sktime])
def test_what_is_no_estimator_of_sequences_raises(adapter, monkeypatch):
    for wrong in (ESNSequenceClassifier, 3, None, KMeans):
        with pytest.raises(TypeError, match="must be a classifier, a regressor or a transformer"):
            adapter(wrong)
    if adapter is as_aeon:
        with pytest.raises(TypeError, match="of whole sequences"):
            adapter(ESNForecaster())
    name = adapter.__name__.removeprefix("as_")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"pip install {name}"):
        adapter(make(ESNSequenceClassifier))


def test_the_examples_hold(library, adapt):
    module = sys.modules[type(adapt(make(ReservoirFeatures))).__module__]
    found = doctest.DocTestFinder().find(module)
    if library == "sktime":
        module = sys.modules[type(as_sktime(ESNForecaster())).__module__]
        found += doctest.DocTestFinder().find(module)
    text = inspect.getdoc(adapt).replace("# doctest: +SKIP", "")
    found.append(doctest.DocTestParser().get_doctest(text, {}, adapt.__name__, None, 0))
    runner = doctest.DocTestRunner()
    for test in found:
        runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 12


# --- aeon and sktime without adapters -----------------------------------------------------------


def collection(n_cases=6, n_channels=2, n_steps=40):
    """Return cases as aeon and sktime have them in NumPy: channels before time."""
    return np.random.default_rng(0).normal(size=(n_cases, n_channels, n_steps))


def test_panels_of_sktime_are_sequences(sktime):
    from sktime.datatypes import convert

    X = collection()
    panel = convert(X, from_type="numpy3D", to_type="pd-multiindex", as_scitype="Panel")
    y = panel.iloc[:, 0].groupby(level=0).shift(1).fillna(0.0)
    esn = ESNRegressor(20, washout=5, random_state=0).fit(panel, y)
    arrays = list(X.swapaxes(1, 2))
    shifted = [np.append(0.0, rows[:-1, 0]) for rows in arrays]
    plain = ESNRegressor(20, washout=5, random_state=0).fit(arrays, shifted)
    np.testing.assert_array_equal(esn.coef_, plain.coef_)
    np.testing.assert_array_equal(
        np.ravel(esn.predict(panel)), np.concatenate(plain.predict(arrays))
    )


@pytest.mark.filterwarnings("ignore:unsafe cast:Warning")  # in aeon's own kernels
def test_collections_of_aeon_go_through_a_reservoir_and_back(aeon):
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    X, labels = collection(n_cases=12), np.repeat(["a", "b"], 6)
    X[6:] = np.cumsum(X[6:], axis=2)
    states = ReservoirTransformer(10, random_state=0).fit_transform(X.swapaxes(1, 2))
    assert states.shape == (12, 40, 10)
    nearest = KNeighborsTimeSeriesClassifier(distance="euclidean")
    assert nearest.fit(states.swapaxes(1, 2), labels).score(states.swapaxes(1, 2), labels) > 0.8


@pytest.mark.usefixtures("aeon")
def test_kernels_run_on_the_numba_that_aeon_allows():
    reservoir = build_reservoir(50, 2, random_state=0)
    X = collection(1, 2, 300)[0].T
    compiled, plain = (run(reservoir, X, engine=engine) for engine in ("numba", "numpy"))
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12)
