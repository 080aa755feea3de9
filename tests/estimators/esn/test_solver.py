"""The parameter `solver` of echo state estimators: the sums of a fit, and their results."""

import itertools

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from helpers import naive
from reservoir import ESNClassifier, ESNRegressor
from reservoir.datasets import lorenz, sine_square
from reservoir.readouts import GramAccumulator, QRAccumulator

pytestmark = pytest.mark.one_engine


def kind_in(model):
    """Return the class of the sums that a fitted model keeps."""
    return type(model._model.readout.total())


@pytest.fixture(scope="module")
def flow():
    """Lorenz's rows, of deviation 1, and what is to be added to each for the next."""
    series = lorenz(3000, washout=200, rtol=1e-13, atol=1e-13, random_state=0)
    series = (series - series.mean(axis=0)) / series.std(axis=0)
    return series[:-1], np.diff(series, axis=0)


def esn(**params):
    return ESNRegressor(
        spectral_radius=0.05, input_scaling=0.3, bias_scaling=2.0, random_state=0,
        **{"n_units": 60, "alpha": 1e-26, "washout": 20, **params},
    )  # fmt: skip


@pytest.mark.fast_cases(8)
@pytest.mark.parametrize("cls", [ESNRegressor, ESNClassifier])
@pytest.mark.parametrize(
    ("alpha", "dtype", "solver", "expected"),
    [
        (1e-6, "float64", "auto", GramAccumulator),
        (1e-11, "float64", "auto", GramAccumulator),
        (0.99e-11, "float64", "auto", QRAccumulator),
        (0.0, "float64", "auto", QRAccumulator),
        ([1.0, 1e-20], "float64", "auto", QRAccumulator),
        ([1e-10, 1.0], "float64", "auto", GramAccumulator),
        (1e-20, "float32", "auto", GramAccumulator),
        (1e-20, "float64", "cholesky", GramAccumulator),
        (1e-3, "float32", "qr", QRAccumulator),
    ],
)
def test_auto_looks_at_penalties_and_precision_alone(cls, alpha, dtype, solver, expected):
    X, y = sine_square(300, random_state=0)
    one = {"n_lags": 1} if cls is ESNRegressor else {}
    model = cls(10, alpha=alpha, dtype=dtype, solver=solver, random_state=0, **one).fit(X, y)
    assert kind_in(model) is expected
    options = {"classes": [0, 1]} if cls is ESNClassifier else {}
    chunk = clone(model).partial_fit(X[:1], y[:1], **options)
    assert chunk._model.readout.solver == model._model.readout.solver  # one row tells the same
    assert model.get_params()["solver"] == solver
    assert model.coef_.dtype == dtype


@pytest.mark.slow
def test_without_noise_the_residual_is_smaller_by_orders_of_magnitude(flow):
    """The published gain in short: the same network and data, a thousand times fewer errors."""
    X, y = flow
    rms = {}
    for solver in ("cholesky", "qr"):
        model = esn(n_units=300, solver=solver).fit(X, y)
        rms[solver] = np.std((model.predict(X, initial_state="zeros") - y)[20:])
    assert rms["qr"] < 1e-3 * rms["cholesky"]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_equals_least_squares_on_stored_states(flow, weighted):
    X, y = flow
    weights = np.random.default_rng(0).uniform(0, 2, len(X)) if weighted else None
    model = esn(alpha=1e-14).fit(X, y, weights)
    H = np.hstack([model.states(X, initial_state="zeros"), X])[20:]
    w = None if weights is None else weights[20:]
    coef, intercept = naive.ridge(H, y[20:], 1e-14, weights=w)
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-6 * np.abs(coef).max())
    residual = y[20:] - H @ coef.T - intercept
    found = y[20:] - H @ model.coef_.T - model.intercept_
    np.testing.assert_allclose(found, residual, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-26, [1e-26, 1e-20, 1e-14]])
@pytest.mark.parametrize("cuts", [(1000, 2000), (7, 8, 500, 2500)])
def test_any_split_of_the_rows_equals_one_fit(flow, alpha, cuts):
    X, y = flow
    whole, parts = esn(alpha=alpha).fit(X, y), esn(alpha=alpha)
    for a, b in itertools.pairwise((0, *cuts, len(X))):
        parts.partial_fit(X[a:b], y[a:b])
    assert parts.alpha_ == whole.alpha_
    expected = whole.predict(X, initial_state="zeros")
    np.testing.assert_allclose(parts.predict(X, initial_state="zeros"), expected, atol=1e-12)


def test_chunks_keep_to_the_solver_of_the_first(flow):
    X, y = flow
    small = esn().partial_fit(X[:300], y[:300]).set_params(alpha=1e-3)
    small.partial_fit(X[300:600], y[300:600])
    assert kind_in(small) is QRAccumulator
    expected = esn(alpha=1e-3, solver="qr").fit(X[:600], y[:600])
    np.testing.assert_allclose(small.coef_, expected.coef_, rtol=0, atol=1e-10)
    large = esn(alpha=1e-3).partial_fit(X[:10], y[:10])  # washout: nothing is kept yet
    large.set_params(alpha=1e-20).partial_fit(X[10:300], y[10:300])
    assert kind_in(large) is GramAccumulator
    before = large.coef_.copy()
    message = r"solver='qr' cannot continue the sums .*='cholesky'\. Use fit, solver='cholesky' or"
    with pytest.raises(ValueError, match=message):
        large.set_params(solver="qr").partial_fit(X[300:400], y[300:400])
    np.testing.assert_array_equal(large.coef_, before)
    large.set_params(solver="cholesky").partial_fit(X[300:400], y[300:400])
    assert kind_in(large.set_params(solver="qr").fit(X, y)) is QRAccumulator


@pytest.mark.parametrize("selection", [None, "gcv", "blocked", "holdout"])
def test_n_jobs_changes_no_bit(selection):
    rng = np.random.default_rng(0)
    Xs = [rng.normal(size=(n, 2)) for n in (3000, 5500, 400, 8300, 2000)]
    ys = [np.cumsum(X, axis=0)[:, 0] for X in Xs]
    weights = [rng.uniform(0.5, 1.5, len(X)) for X in Xs]
    # few columns: threads that end together may leave another number of BLAS threads behind
    params = {"alpha": 1e-15, "n_lags": 1, "input_alpha": None}
    if selection:
        params |= {"alpha": [1e-15, 1e-3], "alpha_selection": selection}
    one = ESNRegressor(12, random_state=0, **params).fit(Xs, ys, weights)
    with joblib.parallel_config(backend="threading"):  # processes would have to start
        two = ESNRegressor(12, random_state=0, n_jobs=2, **params).fit(Xs, ys, weights)
    assert kind_in(one) is QRAccumulator
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


@pytest.mark.parametrize("selection", ["blocked", "holdout"])
@pytest.mark.parametrize("per_target", [False, True])
@pytest.mark.parametrize("least", [1e-12, 1e-6])  # by a triangular factor, and by a Gram matrix
def test_selection_scores_are_those_of_explicit_refits(selection, per_target, least):
    rng = np.random.default_rng(0)
    Xs = [rng.uniform(-1, 1, (n, 1)) for n in (120, 75, 201)]
    ys = [np.roll(X, 1) * [1, 0.1] + 0.2 * rng.normal(size=(len(X), 2)) for X in Xs]
    alphas = [least, 1e-4, 1e-1, 10.0]
    model = ESNRegressor(
        25, alpha=alphas, alpha_selection=selection, alpha_per_target=per_target, washout=7,
        n_lags=1, input_alpha=None, random_state=1,
    ).fit(Xs, ys)  # fmt: skip
    H = [np.hstack([s, X])[7:] for s, X in zip(model.states(Xs), Xs, strict=True)]
    Y = [part[7:] for part in ys]
    if selection == "holdout":
        held = [np.arange(len(h)) >= len(h) - round(0.2 * len(h)) for h in H]
        folds = [np.concatenate(held)]
    else:
        n = sum(map(len, H))
        ends = [round(n * k / 5) for k in range(6)]
        folds = [(np.arange(n) >= a) & (np.arange(n) < b) for a, b in itertools.pairwise(ends)]
    H, Y = np.vstack(H), np.concatenate(Y)
    assert kind_in(model) is (QRAccumulator if least < 1e-11 else GramAccumulator)
    expected = naive.block_scores(H, Y, alphas, [np.flatnonzero(fold) for fold in folds])
    np.testing.assert_allclose(model.alpha_scores_, expected, rtol=1e-8)
    best = expected if per_target else (expected / Y.var(axis=0)).sum(axis=1)
    np.testing.assert_array_equal(model.alpha_, np.array(alphas)[best.argmin(axis=0)])
    coef = np.stack([
        naive.ridge(H, Y, alpha)[0][k]
        for k, alpha in enumerate(np.broadcast_to(model.alpha_, 2))
    ])  # fmt: skip
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-9)


def test_rows_with_missing_targets_are_left_out(flow):
    X, y = flow
    gaps, weights = y.copy(), np.ones(len(y))
    gaps[100:200, 0], weights[100:200] = np.nan, 0.0
    skipped = esn(alpha=1e-14, missing_targets="skip").fit(X, gaps)
    weighed = esn(alpha=1e-14).fit(X, y, weights)
    assert kind_in(skipped) is QRAccumulator
    expected = weighed.predict(X, initial_state="zeros")
    np.testing.assert_allclose(skipped.predict(X, initial_state="zeros"), expected, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("cls", [ESNRegressor, ESNClassifier])
def test_where_a_gram_matrix_is_accurate_both_agree(cls, dtype):
    X, y = sine_square(600, random_state=0)
    gram, factor = (
        cls(30, alpha=1e-3, solver=solver, dtype=dtype, random_state=0).fit(X, y)
        for solver in ("cholesky", "qr")
    )
    atol = {"float64": 1e-9, "float32": 1e-4}[dtype]
    np.testing.assert_allclose(factor.coef_, gram.coef_, rtol=0, atol=atol)
    if cls is ESNClassifier:
        np.testing.assert_array_equal(factor.predict(X), gram.predict(X))


def test_unknown_solvers_raise_and_custom_readouts_need_none(flow):
    X, y = flow
    with pytest.raises(ValueError, match=r"solver='cholesy' is not known.*Did you mean 'cholesky'"):
        esn(solver="cholesy").fit(X, y)
    with pytest.raises(ValueError, match="alpha='small'"):
        esn(alpha="small").partial_fit(X, y)
    own = esn(readout=Ridge(1e-3), solver="qr").fit(X[:300], y[:300])
    np.testing.assert_array_equal(
        own.predict(X[300:400]), esn(readout=Ridge(1e-3)).fit(X[:300], y[:300]).predict(X[300:400])
    )


def test_overflow_is_named_by_its_column(flow):
    X, y = flow
    X = X.copy()
    X[500, 1] = 1e160
    with pytest.raises(ValueError, match="The squares of X overflow in column 1"):
        esn().fit(X, y)
    with pytest.raises(ValueError, match="The squares of y overflow in column 2"):
        esn().fit(flow[0], np.where(np.arange(3) == 2, 1e160, y))
