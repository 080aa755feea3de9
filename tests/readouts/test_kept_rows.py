"""Fits of few rows, which are kept, equal fits from sums."""

import pickle
import warnings

import joblib
import numpy as np
import pytest

import reservoir
from reservoir import ESNClassifier, ESNRegressor, NVARRegressor
from reservoir.readouts.few_rows import block_of
from reservoir.readouts.ridge import RidgeReadout
from reservoir.readouts.sums import SumError

pytestmark = pytest.mark.one_engine

N, T = 120, 50
CLASSES = np.array(["a", "b", "c"])


@pytest.fixture
def data(global_random_seed):
    """Inputs, a target that remembers them with noise, and weights; 2 T rows."""
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(2 * T, 2))
    y = np.convolve(X[:, 0], 0.7 ** np.arange(8))[: 2 * T] + rng.normal(size=2 * T)
    weights = rng.uniform(0.1, 2.0, size=2 * T)
    weights[3:6] = 0.0
    return X, y, weights


def labels_of(y, n_classes=3):
    return CLASSES[np.digitize(y, [-0.5, 0.5][: n_classes - 1])]


def with_gap(y):
    return np.where(np.arange(len(y)) % 7 == 3, np.nan, y)


def two(y):
    return np.stack([y, np.roll(y, 1) + y**2], axis=1)


def from_sums(monkeypatch, fit):
    """Return what a fit makes if no rows are kept."""
    with monkeypatch.context() as patch:
        patch.setattr(RidgeReadout, "_keeps_rows", lambda *args: False)
        return fit()


def is_kept(model):
    return model._model.readout.rows is not None


def same(one, other, X, tolerance=1e-9):
    """Assert that two fits have the same penalties and outputs, up to rounding."""
    for name in ("alpha_", "n_lags_", "input_alpha_", "alpha_selection_", "alphas_"):
        assert np.array_equal(getattr(one, name, None), getattr(other, name, None)), name
    close = {"rtol": tolerance, "atol": tolerance}
    assert one.coef_.dtype == other.coef_.dtype
    assert one.coef_.shape == other.coef_.shape
    for name in ("training_error_", "temperature_"):
        np.testing.assert_allclose(getattr(one, name, 0), getattr(other, name, 0), **close)
    outputs = "decision_function" if isinstance(one, ESNClassifier) else "predict"
    np.testing.assert_allclose(getattr(one, outputs)(X), getattr(other, outputs)(X), **close)


# far above rounding errors
PENALTIES = {"alpha": [1e-2, 1.0, 1e2], "input_alpha": None}
#: Parameters, and the targets made from y.
CASES = {
    "penalties": ({"alpha": [1e-2, 1.0, 1e2]}, None),
    "one penalty": ({"alpha": 0.1}, None),
    "no intercept": (PENALTIES | {"fit_intercept": False}, None),
    "gcv": (PENALTIES | {"alpha_selection": "gcv"}, None),
    "reml": (PENALTIES | {"alpha_selection": "reml"}, None),
    "blocked": (PENALTIES | {"alpha_selection": "blocked"}, None),
    "holdout": (PENALTIES | {"alpha_selection": "holdout"}, None),
    "missing": (PENALTIES | {"missing_targets": "skip"}, with_gap),
    "outputs": (PENALTIES, two),
    "a penalty each": (PENALTIES | {"alpha_per_target": True}, two),
    "lags": ({"n_lags": 4, "alpha": [0.1, 1.0], "input_alpha": 0.01}, None),
    "no input": (PENALTIES | {"include_input": False}, None),
    "both directions": (PENALTIES | {"bidirectional": True}, None),
    "float32": (PENALTIES | {"dtype": "float32"}, None),
    "squares": (PENALTIES | {"augment": "square"}, None),
    "noise": (PENALTIES | {"noise": 1e-3}, None),
}


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("case", CASES)
def test_a_regressor_is_that_of_sums(case, data, monkeypatch):
    X, y, _ = data
    options, targets = CASES[case]
    y = y[:T] if targets is None else targets(y[:T])

    def fit():
        return ESNRegressor(N, random_state=0, **options).fit(X[:T], y)

    kept = fit()
    assert is_kept(kept)
    same(kept, from_sums(monkeypatch, fit), X[T:], 1e-5 if case == "float32" else 1e-9)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_default_path_is_that_of_sums(bidirectional, data, monkeypatch):
    """It is that of the features' squares, whatever stands for them."""
    X, y, _ = data

    def fit():
        model = ESNRegressor(N, input_alpha=None, bidirectional=bidirectional, random_state=0)
        return model.fit(X[:T] * 1e3, 1e3 * y[:T])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # units saturate
        kept, sums = fit(), from_sums(monkeypatch, fit)
    assert np.array_equal(kept.alphas_, sums.alphas_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("transition", [None, "auto"])
def test_a_classifier_is_that_of_sums(n_classes, transition, data, monkeypatch):
    """Its temperature and its filter over labels, too."""
    X, y, weights = data

    def fit():
        model = ESNClassifier(N, transition=transition, alpha=[1e-2, 1.0, 1e2], random_state=0)
        return model.fit(X[:T], labels_of(y[:T], n_classes), weights[:T])

    kept, sums = fit(), from_sums(monkeypatch, fit)
    assert is_kept(kept)
    same(kept, sums, X[T:])
    np.testing.assert_allclose(kept.predict_proba(X[T:]), sums.predict_proba(X[T:]), atol=1e-9)


def test_sequences_and_workers(data, monkeypatch):
    """Sequences are merged in order, whichever worker ran them; weights are those of rows."""
    X, y, weights = data
    monkeypatch.setattr("reservoir.estimators.esn.readout_training._BATCH_ROWS", 15)
    Xs, ys, ws = (np.array_split(each[:T], 5) for each in (X, y, weights))

    def fit(n_jobs=None):
        model = ESNRegressor(N, washout=2, alpha=[0.1, 1.0], n_jobs=n_jobs, random_state=0)
        return model.fit(Xs, ys, ws)

    kept = fit()
    assert is_kept(kept)
    assert len(kept._model.readout.rows) > 1
    same(kept, from_sums(monkeypatch, fit), X[T:])
    with joblib.parallel_backend("threading"):
        assert np.array_equal(kept.coef_, fit(n_jobs=2).coef_)


def test_polynomials_are_those_of_sums(data, monkeypatch):
    X, y, _ = data

    def fit():
        return NVARRegressor(5, degree=3, alpha=[1e-2, 1.0]).fit(X[:T], y[:T])

    kept = fit()
    assert is_kept(kept)
    same(kept, from_sums(monkeypatch, fit), X[T:])


def test_penalties_chosen_by_loops_are_those_of_sums(data, monkeypatch):
    """Loops run with coefficients of the features; later ones with other penalties, too."""
    series = np.sin(0.3 * np.arange(T + 1))[:, None] + 0.1 * data[0][: T + 1]

    def fit():
        model = ESNRegressor(N, alpha_selection="forecast", random_state=0)
        return model.fit(series[:-1], series[1:])

    kept, sums = fit(), from_sums(monkeypatch, fit)
    assert is_kept(kept)
    same(kept, sums, series)
    found, known = (model._predictor().readout_path([0.1, 1.0]) for model in (kept, sums))
    for one, other in zip(found, known, strict=True):
        for mine, its in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-8, atol=1e-9)


def test_the_search_of_one_row_narrows_the_kept_rows(data, monkeypatch):
    X, _, _ = data

    def fit():
        model = ESNRegressor(N, n_lags=3, alpha=0.1, random_state=0)
        with pytest.warns(UserWarning, match="solved again for one row"):
            return model.fit(X[:T], X[1 : T + 1])._of_one_row()

    kept = fit()
    assert is_kept(kept)
    same(kept, from_sums(monkeypatch, fit), X[T:])


def arrays_in(value):
    """Return the bytes of all arrays in an object."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(arrays_in, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(arrays_in, value))
    return arrays_in(vars(value)) if hasattr(value, "__dict__") else 0


@pytest.mark.parametrize("kind", [ESNRegressor, ESNClassifier])
def test_rows_are_kept_once_up_to_half_as_many_as_features(kind, data):
    """A sample of a classifier's rows is taken from them; above that, there are sums."""
    X, y, _ = data
    y = labels_of(y) if kind is ESNClassifier else y
    few, more = (kind(N, random_state=0).fit(X[:n], y[:n]) for n in (N // 2, N // 2 + 3))
    features = few._model.readout.n_rows * (N + 40) * 8
    assert is_kept(few)
    assert arrays_in(few._model.readout) < 1.2 * features
    assert not is_kept(more)
    assert more._model.readout.parts


@pytest.mark.parametrize(
    "options",
    [{"forgetting": 0.99}, {"solver": "qr"}, {"alpha_selection": "reml_ar1"}, {"alpha": 1e-13}],
)
def test_other_readouts_and_chunks_have_sums(options, data):
    X, y, _ = data
    assert not is_kept(ESNRegressor(N, random_state=0, **options).fit(X[:T], y[:T]))
    assert not is_kept(ESNRegressor(N, random_state=0).partial_fit(X[:T], y[:T]))


def chunk(model, X, y):
    return model.partial_fit(X, y)


def session(model, X, y):
    return model.stream().learn(X, y).to_estimator()


def forgetting_session(model, X, y):
    begun = model.stream()
    begun.forgetting = 0.95
    return begun.learn(X, y).forget(0.9).to_estimator()


def merged(model, X, y):
    return model.merge(type(model)(**model.get_params()).fit(X, y))


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("classify", [False, True])
@pytest.mark.parametrize("then", [chunk, session, forgetting_session, merged])
def test_later_rows_are_added_to_sums(then, classify, data, monkeypatch):
    X, y, _ = data
    y = labels_of(y) if classify else y

    def fit():
        kind = ESNClassifier if classify else ESNRegressor
        model = kind(N, washout=0, alpha=[0.1, 1.0], random_state=0)
        return then(model.fit(X[:T], y[:T]), X[T:], y[T:])

    found = fit()
    assert not is_kept(found)
    known = from_sums(monkeypatch, fit)
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-7, atol=1e-9)
    assert np.array_equal(found.alpha_, known.alpha_)
    if classify:
        assert found.temperature_ == pytest.approx(known.temperature_, rel=1e-7)


def test_a_session_leaves_the_kept_rows_as_they_are(data):
    X, y, _ = data
    model = ESNRegressor(N, random_state=0).fit(X[:T], y[:T])
    before = pickle.dumps(model)
    model.stream().learn(X[T:], y[T:])
    model._predictor().readout_path([1.0])
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("kind", [ESNRegressor, ESNClassifier])
def test_saved_rows_are_loaded(kind, data, tmp_path):
    """A saved fit continues as the fit would; so does a session."""
    X, y, _ = data
    y = labels_of(y) if kind is ESNClassifier else y
    model = kind(N, dtype="float32", random_state=0).fit(X[:T], y[:T])
    reservoir.save(model, tmp_path / "model")
    loaded = reservoir.load(tmp_path / "model")
    assert is_kept(loaded)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    begun = model.stream().learn(X[T:], y[T:])
    reservoir.save(begun, tmp_path / "session")
    again = reservoir.load(tmp_path / "session").to_estimator()
    assert np.array_equal(again.coef_, begun.to_estimator().coef_)
    for one in model, loaded:
        one.partial_fit(X[T:], y[T:])
    assert np.array_equal(loaded.coef_, model.coef_)


@pytest.mark.parametrize("rows", ["equal", "one", "constant column"])
def test_rows_that_span_less_than_their_number(rows, data, monkeypatch):
    X, y, _ = data
    X = X[:T].copy()
    if rows == "constant column":
        X[:, 1] = 1.5
    if rows == "equal":
        X[:] = X[:1]
    n = 1 if rows == "one" else T

    def fit():
        model = ESNRegressor(N, washout=T - n, initial_state="zeros", alpha=1.0, random_state=0)
        return model.fit(X, y[:T])

    same(fit(), from_sums(monkeypatch, fit), X)


def test_no_rows_raise(data):
    X, *_ = data
    with pytest.raises(ValueError, match="No rows to fit"):
        ESNRegressor(N, missing_targets="skip", random_state=0).fit(X[:T], np.full(T, np.nan))


def test_squares_that_overflow_raise_as_rows_arrive(data):
    X, y, _ = data
    X = X.copy()
    X[5, 1] = 1e200
    with pytest.raises(ValueError, match=r"squares of X overflow in column 1"):
        ESNRegressor(N, random_state=0).fit(X[:T], y[:T])
    with pytest.raises(SumError, match=r"^Y contains"):
        block_of(np.arange(2), np.ones((2, 3)), np.full((2, 1), 1e200), None, False)


def test_inputs_of_other_size_are_reported(data):
    """The warning that sums lose small columns is that of kept rows."""
    X, y, _ = data
    X = X * [1.0, 1e-9]
    with pytest.warns(UserWarning, match="differ in size"):
        ESNRegressor(N, random_state=0).fit(X[:T], y[:T])
