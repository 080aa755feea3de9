"""Regressors that learn row by row: against batch fits and recursions, alone and in networks."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from test_penalised_factor import data, ridge

from reservoir import ESNRegressor, load, save
from reservoir.model_selection import stack_sequences
from reservoir.readouts import LMS, RecursiveLeastSquares, SlidingWindow

pytestmark = pytest.mark.one_engine

KINDS = [RecursiveLeastSquares(forgetting=0.99), LMS(), SlidingWindow(30)]
EACH = pytest.mark.parametrize("model", KINDS, ids=lambda model: type(model).__name__)


def assert_close(got, expected, Y, rtol=1e-8):
    assert (np.abs(got - expected) <= rtol * Y.std(axis=0)).all()


def learned(model, H, Y, sizes, weights=None):
    """Learn by partial_fit in chunks of the sizes given, again and again."""
    start, k = 0, 0
    while start < len(H):
        part = slice(start, start + sizes[k % len(sizes)])
        model.partial_fit(H[part], Y[part], None if weights is None else weights[part])
        start, k = part.stop, k + 1
    return model


# --- what all of them share --------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("sizes", [[1], [7, 40]])
def test_any_split_of_the_rows_is_one_fit(model, sizes):
    H, Y = data(100, 8)
    weights = np.random.default_rng(2).integers(0, 3, 100).astype(float)
    whole = clone(model).fit(H, Y, weights)
    parts = learned(clone(model), H, Y, sizes, weights)
    assert_close(parts.predict(H), whole.predict(H), Y)
    np.testing.assert_allclose(H @ whole.coef_.T + whole.intercept_, whole.predict(H))
    assert_close(clone(model).fit(-H, Y).fit(H, Y, weights).predict(H), whole.predict(H), Y)


@EACH
def test_outputs_learn_side_by_side(model):
    H, Y = data(60, 5, n_outputs=3)
    together = clone(model).fit(H, Y)
    assert together.coef_.shape == (3, 5)
    assert together.intercept_.shape == (3,)
    for k in range(3):
        alone = clone(model).fit(H, Y[:, k])
        assert alone.coef_.shape == (5,)
        assert alone.predict(H).shape == (60,)
        assert isinstance(alone.intercept_, float)
        np.testing.assert_allclose(alone.predict(H), together.predict(H)[:, k], rtol=1e-9)
    with pytest.raises(ValueError, match=r"y has shape \(60,\), but earlier rows had 3 output"):
        together.partial_fit(H, Y[:, 0])


@EACH
def test_a_chunk_that_raises_changes_nothing(model):
    H, Y = data(60, 5)
    model = clone(model).fit(H, Y)
    before = model.predict(H)
    bad = H.copy()
    bad[3, 2] = 1e200
    with pytest.raises(ValueError, match=r"H contains .* column 2"):
        model.partial_fit(bad, Y)
    bad = Y.copy()
    bad[7, 1] = 1e200
    with pytest.raises(ValueError, match=r"Y contains .* column 1"):
        model.partial_fit(H, bad)
    np.testing.assert_array_equal(model.predict(H), before)
    with pytest.raises(ValueError, match=r"No rows to fit"):
        clone(model).fit(H, Y, np.zeros(60))
    model.partial_fit(H, Y, np.zeros(60))
    np.testing.assert_array_equal(model.predict(H), before)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RecursiveLeastSquares(alpha=0.0), r"alpha=0 must be above 0: with fewer rows"),
        (SlidingWindow(10, alpha=0), r"alpha=0 must be above 0: with fewer rows"),
        (RecursiveLeastSquares(forgetting=1.1), r"forgetting=1.1 must be in \(0, 1\].* 1 - 1/n"),
        (RecursiveLeastSquares(forgetting=0.0), r"forgetting=0.0 must be"),
        (LMS(learning_rate=1.5), r"learning_rate=1.5 must be finite and in \(0, 1\]"),
        (LMS(epsilon=0.0), r"epsilon=0.0 must be"),
        (SlidingWindow(0), r"n_rows"),
    ],
)
def test_parameters_out_of_bounds_raise(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*data(10, 2))


@pytest.mark.fast_cases(3)
@EACH
@pytest.mark.parametrize("trip", ["npz", "pickle"])
def test_what_is_saved_continues_to_the_bit(model, trip, tmp_path):
    H, Y = data(120, 6)
    X = np.random.default_rng(0).uniform(-1, 1, (120, 1))
    alone = clone(model).fit(H[:70], Y[:70])
    inside = ESNRegressor(20, readout=clone(model), random_state=0).fit(X[:70], Y[:70])
    for one, U in ((alone, H), (inside, X)):
        if trip == "npz":
            save(one, tmp_path / "model.npz")
            again = load(tmp_path / "model.npz")
        else:
            again = pickle.loads(pickle.dumps(one))
        np.testing.assert_array_equal(again.predict(U), one.predict(U))
        one.partial_fit(U[70:], Y[70:])
        again.partial_fit(U[70:], Y[70:])
        np.testing.assert_array_equal(again.predict(U), one.predict(U))


@EACH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_readout_of_a_network(model, dtype):
    X = np.random.default_rng(0).uniform(-1, 1, (90, 2))
    Y = np.column_stack([X[:, 0], np.append(0, X[:-1, 1])])
    Y[40, 0] = np.nan
    T, Z, _ = stack_sequences([X, X[:50]], [Y, Y[:50]])
    options = {"sequence_column": 0, "washout": 5, "random_state": 0, "dtype": dtype}
    esn = ESNRegressor(15, readout=model, missing_targets="skip", **options).fit(T, Z)
    states = esn.states(T)
    features = np.hstack([states, T[:, 1:]]) if states.shape[1] == 15 else states
    steps = np.concatenate([np.arange(90), np.arange(50)])
    seen = (steps >= 5) & ~np.isnan(Z).any(axis=1)
    alone = clone(model).fit(features[seen], Z[seen])
    rtol = 1e-3 if dtype == "float32" else 1e-8
    assert_close(esn.predict(T)[5:90], alone.predict(features)[5:90], Z[seen], rtol)
    assert esn.predict(T).dtype == (np.float32 if dtype == "float32" else np.float64)


@EACH
def test_a_network_continues_with_it(model):
    X = np.random.default_rng(0).uniform(-1, 1, (90, 2))
    y = X[:, 0] + np.append(0, X[:-1, 1])
    whole = ESNRegressor(15, readout=model, washout=5, random_state=0).fit(X, y)
    parts = ESNRegressor(15, readout=model, washout=5, random_state=0)
    for part in (slice(0, 30), slice(30, 31), slice(31, 90)):
        parts.partial_fit(X[part], y[part], new_sequence=part.start == 0)
    np.testing.assert_allclose(parts.readout_.coef_, whole.readout_.coef_, rtol=1e-6)


# --- recursive least squares -------------------------------------------------------------------


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("alpha", [1e-6, 1e-10])
@pytest.mark.parametrize("case", ["plain", "offset", "dependent"])
def test_after_100_000_rows_it_is_the_ridge_of_all(case, alpha):
    rng = np.random.default_rng(3)
    H, Y = data(100_000, 8)
    if case == "dependent":
        H = np.hstack([H[:, :2]] * 4) + 1e-6 * H
    reference = Ridge(alpha, solver="svd").fit(H - H.mean(axis=0), Y)
    offset = 1e4 if case == "offset" else 0.0
    model = learned(RecursiveLeastSquares(alpha=alpha), H + offset, Y, [1, 2, 997])
    rows = rng.integers(0, len(H), 1000)
    # what was added rounds the features, to 1e-12
    expected = reference.predict(H[rows] - H.mean(axis=0))
    assert_close(model.predict(H[rows] + offset), expected, Y)


def test_it_is_the_covariance_recursion_where_that_is_accurate():
    H, Y = data(300, 6, n_outputs=1)
    P, w = np.eye(6) / 0.1, np.zeros(6)  # Haykin 2014, table 10.1
    model = RecursiveLeastSquares(alpha=0.1, fit_intercept=False)
    for h, y in zip(H, Y[:, 0], strict=True):
        gain = P @ h / (1 + h @ P @ h)
        w = w + gain * (y - w @ h)
        P = P - np.outer(gain, h @ P)
        model.partial_fit(h[None], [y])
        np.testing.assert_allclose(model.coef_, w, rtol=1e-7, atol=1e-9)


def test_constant_input_winds_nothing_up():
    H, Y = np.tile([1.0, -2.0, 0.5, 0.0], (100_000, 1)), data(100_000, 1)[1]
    model = learned(RecursiveLeastSquares(forgetting=0.99), H, Y, [500])
    penalties = model._factor.penalties
    assert (penalties >= 0.1 * 0.99e-6 * (1 - 1e-9)).all()
    assert (penalties <= 1e-6 * (1 + 1e-9)).all()
    before = model.predict(H[:1])
    new = np.array([[1.0, -2.0, 0.5, 1.0]])
    model.partial_fit(new, before + 0.1)
    # the row that is new in one direction is learned there, and what was known stays known
    np.testing.assert_allclose(model.predict(new), before + 0.1, rtol=1e-4)
    np.testing.assert_allclose(model.predict(H[:1]), before, atol=1e-5)
    assert np.abs(model.coef_).max() < 10


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("forgetting", "n_times"), [(0.99, 100), (0.5, 10)])
def test_a_million_rows_leave_it_finite(forgetting, n_times):
    H, Y = data(10_000, 4)
    model = RecursiveLeastSquares(forgetting=forgetting)
    for _ in range(n_times):
        model.partial_fit(H, Y)
    weights = forgetting ** np.arange(len(H))[::-1].astype(float)
    C, c = ridge(H, Y, model._factor.penalties, weights)
    assert_close(model.predict(H), H @ C.T + c, Y)


def test_forgetting_may_change_between_calls():
    H, Y = data(60, 4)
    model = RecursiveLeastSquares().partial_fit(H[:40], Y[:40])
    model.set_params(forgetting=0.9).partial_fit(H[40:], Y[40:])
    weights = 0.9 ** np.arange(60.0)[::-1].clip(max=20)
    C, c = ridge(H, Y, model._factor.penalties, weights)
    assert_close(model.predict(H), H @ C.T + c, Y)
    with pytest.raises(ValueError, match=r"alpha=1\.0, but the model was fitted with alpha=1e-06"):
        model.set_params(alpha=1.0).partial_fit(H, Y)


# --- least mean squares ------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_lms_takes_the_steps_of_its_definition(fit_intercept):
    H, Y = data(50, 4, n_outputs=1)
    model = LMS(learning_rate=0.3, epsilon=0.01, fit_intercept=fit_intercept).fit(H, Y)
    w = np.zeros(5)
    for h, y in zip(H, Y[:, 0], strict=True):
        x = np.append(h, float(fit_intercept))
        w += 0.3 * (y - w @ x) * x / (0.01 + x @ x)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), w, atol=1e-12)


@pytest.mark.parametrize("learning_rate", [0.2, 1.0])
def test_lms_counts_weights_as_repetitions(learning_rate):
    H, Y = data(40, 4)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    weighted = LMS(learning_rate=learning_rate).fit(H, Y, weights)
    repeated = LMS(learning_rate=learning_rate).fit(
        np.repeat(H, weights, axis=0), np.repeat(Y, weights, axis=0)
    )
    np.testing.assert_allclose(weighted.predict(H), repeated.predict(H), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_lms_without_intercept_knows_no_units(seed, unit):
    H, _ = data(2000, 4, seed=seed)
    C = np.random.default_rng(seed).normal(size=4)
    model = LMS(fit_intercept=False, epsilon=1e-12).fit(unit * H, H @ C)
    np.testing.assert_allclose(unit * model.coef_, C, rtol=1e-4, atol=1e-4)


def test_parameters_of_a_readout_may_change_between_chunks():
    """They reach the copy that learns; what a session has set stays; alpha cannot change."""
    X, y = np.random.default_rng(0).standard_normal((2, 120, 1))
    esn = ESNRegressor(10, readout=RecursiveLeastSquares(forgetting=0.99), random_state=0)
    esn.partial_fit(X[:60], y[:60, 0])
    esn.set_params(readout__forgetting=0.5).partial_fit(X[60:80], y[60:80, 0])
    assert esn.readout_.forgetting == 0.5
    session = esn.stream()
    session.forgetting = 0.9
    own = session.to_estimator().partial_fit(X[80:100], y[80:100, 0])
    assert own.readout_.forgetting == 0.9
    with pytest.raises(ValueError, match="alpha"):
        esn.set_params(readout__alpha=1.0).partial_fit(X[100:], y[100:, 0])
    assert esn.readout_.alpha == 1e-6
