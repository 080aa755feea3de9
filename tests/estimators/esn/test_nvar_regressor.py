"""Next-generation reservoir computing: terms, fits, chunks, forecasts, errors."""

import itertools
import warnings

import joblib
import numpy as np
import pytest
from numpy.polynomial import chebyshev
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
)

from reservoir import ESNRegressor, NVARRegressor, forecast
from reservoir._tables import Sequences
from reservoir.datasets import henon, lorenz, narma
from reservoir.dynamics.polynomial_lags import LaggedPolynomials, count_terms
from reservoir.estimators.forecasting.predictor import forecaster_of
from reservoir.model_selection import ClosedLoopSearchCV, make_forecast_pairs, stack_sequences

X, Y = narma(500, random_state=0)
KINDS = [
    {"n_lags": 1, "degree": 1},
    {"n_lags": 3, "skip": 2, "degree": 2},
    {"n_lags": 2, "degree": 4, "basis": "chebyshev"},
    {"n_lags": 1, "degree": 5, "basis": "chebyshev"},
]


def lagged(rows, n_lags, skip, first=None):
    """The rows that are seen at each step, the present one first; before row 0 they are like it."""
    first = rows[0] if first is None else first
    table = [
        np.concatenate([rows[t - k * skip] if t >= k * skip else first for k in range(n_lags)])
        for t in range(len(rows))
    ]
    return np.array(table)


def products(table, degree, power):
    """All products up to a total degree, in scikit-learn's order; ``power(v, k)`` is a factor."""
    columns = []
    for d in range(1, degree + 1):
        for chosen in itertools.combinations_with_replacement(range(table.shape[1]), d):
            factors = [power(table[:, j], chosen.count(j)) for j in set(chosen)]
            columns.append(np.prod(factors, axis=0))
    return np.array(columns).T


def by_hand(rows, *, n_lags=2, skip=1, degree=2, basis="monomial", low=None, high=None, first=None):
    table = lagged(rows, n_lags, skip, first)
    if basis == "monomial":
        return products(table, degree, lambda v, k: v**k)
    low, high = (np.tile(end, n_lags) for end in (low, high))
    table = (2 * table - low - high) / (high - low)
    return products(table, degree, lambda v, k: chebyshev.chebval(v, np.eye(k + 1)[k]))


def source_of(rows, n_lags=2, skip=1, degree=2, basis="monomial"):
    return LaggedPolynomials.for_inputs(
        [rows], n_lags=n_lags, skip=skip, degree=degree, basis=basis
    )


def features_of(source, rows):
    blocks = source.iter_features(rows, source.initial_state_of(rows[0]))
    return np.concatenate([features.copy() for _, features, _ in blocks])


# --- terms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize(("n_lags", "skip"), [(1, 1), (2, 1), (3, 4)])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_monomials_equal_scikit_learns(n_features, n_lags, skip, degree):
    rows = np.random.default_rng(0).normal(size=(600, n_features))
    source = source_of(rows, n_lags, skip, degree)
    table = lagged(rows, n_lags, skip)
    theirs = PolynomialFeatures(degree, include_bias=False).fit(table)
    ours = features_of(source, rows)
    assert ours.shape == (600, count_terms(n_lags * n_features, degree))
    np.testing.assert_allclose(ours, theirs.transform(table), rtol=1e-12)
    names = [f"x{j}" for j in range(n_features)]
    seen = [f"{name}[t-{k * skip}]" if k else name for k in range(n_lags) for name in names]
    assert source.names(names) == list(theirs.get_feature_names_out(seen))


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize(("n_lags", "skip", "degree"), [(1, 1, 10), (2, 3, 3), (3, 1, 2)])
def test_chebyshev_terms_equal_numpys(n_features, n_lags, skip, degree):
    rows = np.random.default_rng(0).uniform(-3, 7, size=(300, n_features))
    low, high = rows.min(axis=0), rows.max(axis=0)
    source = source_of(rows, n_lags, skip, degree, "chebyshev")
    expected = by_hand(
        rows, n_lags=n_lags, skip=skip, degree=degree, basis="chebyshev", low=low, high=high
    )
    np.testing.assert_allclose(features_of(source, rows), expected, rtol=0, atol=1e-12)
    assert np.abs(expected).max() <= 1 + 1e-12
    if (n_features, degree) == (3, 10):
        assert source.width == 285


@pytest.mark.parametrize("options", KINDS)
def test_steps_side_by_side_and_blocks_are_the_same_to_the_bit(options):
    rows = np.random.default_rng(0).normal(size=(1300, 2))
    source = source_of(rows, **options)
    expected = features_of(source, rows)
    states = np.stack([source.initial_state_of(rows[0])] * 3)
    for t in range(40):
        features, states = source.advance(states, np.stack([rows[t]] * 3))
        np.testing.assert_array_equal(features, expected[[t, t, t]])
    state, parts = source.initial_state_of(rows[0]), []
    for a, b in ((0, 1), (1, 3), (3, 700), (700, 1300)):
        for _, features, end in source.iter_features(rows[a:b], state):
            parts.append(features.copy())
            state = end
    np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_names_read_as_an_equation():
    table = {"u": [0.1, 0.5, 0.3, 0.2] * 3, "id": [7] * 12, "v": [1.0, 2.0, 4.0, 3.0] * 3}
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table)
    model = NVARRegressor(1, sequence_column="id").fit(frame, frame["u"])
    assert model.get_feature_names_out().tolist() == ["u", "v", "u^2", "u v", "v^2"]
    model = NVARRegressor(1, sequence_column=-2).fit(frame.to_numpy(), frame["u"])
    assert model.get_feature_names_out(["a", "b", "c"])[1] == "c"
    model = NVARRegressor(2, skip=5, basis="chebyshev").fit(X, Y)
    assert model.get_feature_names_out().tolist() == [
        "T1(x0)", "T1(x0[t-5])", "T2(x0)", "T1(x0) T1(x0[t-5])", "T2(x0[t-5])"
    ]  # fmt: skip


# --- fits and chunks -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", KINDS)
def test_a_fit_is_a_ridge_on_the_terms(options):
    model = NVARRegressor(alpha=1e-3, **options).fit(X[:400], Y[:400])
    n_past = (model.n_lags - 1) * model.skip
    assert model.washout_.tolist() == [n_past]
    low, high = X[:400].min(axis=0), X[:400].max(axis=0)
    table = by_hand(X, low=low, high=high, **options)
    ridge = Ridge(1e-3).fit(table[n_past:400], Y[n_past:400])
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-8)
    said = model.predict(X[400:])
    np.testing.assert_allclose(said, ridge.predict(table[400:]), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.state_, X[400 - n_past : 400].ravel())
    stream = model.stream()
    parts = [stream.predict(X[400:401]), stream.predict(X[401:450]), stream.predict(X[450:])]
    np.testing.assert_allclose(np.concatenate(parts), said, rtol=0, atol=1e-13)
    # a fresh start, rows of zeros, rows of one's own
    cold = model.predict(X[:50], initial_state="steady")
    np.testing.assert_allclose(cold, ridge.predict(table[:50]), rtol=0, atol=1e-9)
    given = model.predict(X[400:], initial_state=X[400 - n_past : 400].ravel())
    np.testing.assert_array_equal(given, said)
    zero = by_hand(X[:50], low=low, high=high, first=np.zeros(1), **options)
    np.testing.assert_allclose(
        model.predict(X[:50], initial_state="zeros"), ridge.predict(zero), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("washout", ["auto", 20])
def test_any_split_equals_one_fit(options, washout):
    scaled = X / np.abs(X).max()
    low, high = scaled.argmin(), scaled.argmax()
    rows = np.concatenate([scaled[[low, high]], scaled])  # the first chunk spans the range
    y = np.concatenate([Y[[low, high]], Y])
    whole = NVARRegressor(washout=washout, **options).fit(rows, y)
    parts = NVARRegressor(washout=washout, **options)
    for a, b in ((0, 3), (3, 4), (4, 200), (200, len(rows))):
        parts.partial_fit(rows[a:b], y[a:b])
    np.testing.assert_allclose(parts.predict(rows[:99]), whole.predict(rows[:99]), atol=1e-8)
    np.testing.assert_array_equal(parts.state_, whole.state_)


def test_sequences_start_fresh_and_workers_change_nothing():
    Xs, ys = [X[:100], X[100:300], X[300:]], [Y[:100], Y[100:300], Y[300:]]
    model = NVARRegressor(3, skip=2, alpha=1e-3).fit(Xs, ys)
    table = np.concatenate([by_hand(part, n_lags=3, skip=2)[4:] for part in Xs])
    ridge = Ridge(1e-3).fit(table, np.concatenate([part[4:] for part in ys]))
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-8)
    rows = model.predict(Xs)
    np.testing.assert_allclose(rows[1], ridge.predict(by_hand(Xs[1], n_lags=3, skip=2)), atol=1e-9)
    with joblib.parallel_config(backend="threading"):
        one, two = (NVARRegressor(n_jobs=n).fit(Xs * 20, ys * 20) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    stacked, targets, _ = stack_sequences(Xs, ys)
    by_id = NVARRegressor(3, skip=2, alpha=1e-3, sequence_column=0).fit(stacked, targets)
    np.testing.assert_allclose(by_id.coef_, model.coef_, rtol=0, atol=1e-12)


def test_float32():
    wide, narrow = (NVARRegressor(dtype=d, alpha=1e-3).fit(X, Y) for d in ("float64", "float32"))
    assert narrow.predict(X).dtype == narrow.state_.dtype == np.float32
    np.testing.assert_allclose(narrow.predict(X), wide.predict(X), rtol=0, atol=1e-4)


def test_targets_that_are_missing_are_left_out():
    y = Y.copy()
    y[[50, 60, 61]] = np.nan
    model = NVARRegressor(missing_targets="skip", alpha=1e-3).fit(X, y)
    keep = np.flatnonzero(~np.isnan(y))[1:]
    ridge = Ridge(1e-3).fit(by_hand(X)[keep], y[keep])
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0, atol=1e-8)
    assert 0 < model.score(X, y) <= 1
    with pytest.raises(ValueError, match="missing_targets"):
        NVARRegressor().fit(X, y)


def test_a_search_in_a_pipeline():
    pipe = make_pipeline(StandardScaler(), NVARRegressor())
    grid = {"nvarregressor__n_lags": [1, 4], "nvarregressor__basis": ["monomial", "chebyshev"]}
    search = GridSearchCV(pipe, grid, cv=TimeSeriesSplit(3)).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["nvarregressor__n_lags"] == 4


# --- forecasts -----------------------------------------------------------------------------------


def loop_by_hand(model, rows, n_steps, options, exog=None, clip=None, scale=None):
    """The rows of a forecast: the terms of all rows so far, read out, appended."""
    rows, said = list(rows), []
    low, high = (None, None) if scale is None else scale
    for k in range(n_steps):
        seen = by_hand(np.array(rows[-20:]), low=low, high=high, **options)[-1]
        new = np.atleast_2d(model.coef_) @ seen + model.intercept_
        said.append(new)
        fed = new if clip is None else np.clip(new, *clip)
        if k + 1 < n_steps:
            rows.append(fed if exog is None else np.concatenate([fed, exog[k]]))
    return np.array(said)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("options", KINDS)
def test_a_forecast_is_the_loop_by_hand(options):
    series = lorenz(500, random_state=0) / 20
    inputs, targets = make_forecast_pairs(series)
    model = NVARRegressor(alpha=1e-4, **options).fit(inputs, targets)
    scale = inputs.min(axis=0), inputs.max(axis=0)
    expected = loop_by_hand(model, series, 20, options, scale=scale)
    rows, state = model.forecast(20, return_state=True)
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-9)
    # goes on where it ended; listens to a context; is held in bounds
    n_past = state.size // 3
    np.testing.assert_array_equal(state, np.vstack([series, rows])[-1 - n_past : -1].ravel())
    listened = model.forecast(5, context=inputs[:200], initial_state="steady")
    last = model.predict(inputs[:200], initial_state="steady")[-1]
    np.testing.assert_allclose(listened[0], last, rtol=0, atol=1e-12)
    bounds = series[-1] - 0.01, series[-1] + 0.01
    held = model.forecast(6, clip=bounds)
    expected = loop_by_hand(model, series, 6, options, clip=bounds, scale=scale)
    np.testing.assert_allclose(held, expected, rtol=0, atol=1e-9)


def test_exogenous_columns_are_lagged_like_the_others():
    u, v = narma(400, random_state=1)
    series = np.column_stack([v, u[:, 0]])
    model = NVARRegressor(3, alpha=1e-3).fit(series[:299], v[1:300, None])
    exog = u[300:320]
    rows = model.forecast(20, exog=u[299:319])
    expected = loop_by_hand(
        model, np.vstack([series[:299], [v[299], u[299, 0]]]), 20, {"n_lags": 3}, exog=exog
    )
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"exog of shape \(20, 1\)"):
        model.forecast(20)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
def test_pipelines_fold_scalers_and_call_other_transformers(basis):
    series = lorenz(600, washout=200, random_state=0)
    inputs, targets = make_forecast_pairs(series)
    scaler = StandardScaler().fit(inputs)
    network = NVARRegressor(2, basis=basis, alpha=1e-4)
    scaled = make_forecast_pairs(scaler.transform(series))
    bare = scaler.inverse_transform(clone(network).fit(*scaled).forecast(15))
    both = TransformedTargetRegressor(
        make_pipeline(FunctionTransformer(scaler.transform), network),
        transformer=StandardScaler().fit(inputs),
    ).fit(inputs, targets)
    # one affine map, and row by row
    alone = make_pipeline(StandardScaler(), network).fit(inputs, targets)
    np.testing.assert_allclose(forecast(alone, 15), bare, rtol=0, atol=1e-6)
    np.testing.assert_allclose(forecast(both, 15), bare, rtol=0, atol=1e-6)
    curved = make_pipeline(PowerTransformer(), network).fit(inputs, targets)
    rows = forecast(curved, 5)
    np.testing.assert_allclose(rows[0], curved.predict(targets[-1:])[0], rtol=0, atol=1e-8)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("options", KINDS)
def test_a_search_in_closed_loop_starts_where_training_did(options):
    inputs, targets = make_forecast_pairs(lorenz(300, washout=200, random_state=0) / 20)
    model = NVARRegressor(**options).fit(inputs, targets)
    forecaster, one = forecaster_of(model), Sequences((inputs,), "table")
    before = model._model.source.initial_state_of(inputs[0])
    n_past = (model.n_lags - 1) * model.skip
    states = forecaster.states_at([(0, 0), (0, 1), (0, 200)], one)
    for row, state in zip((0, 1, 200), states, strict=True):
        known = np.concatenate([before, inputs[:row].ravel()])
        np.testing.assert_array_equal(state, known[known.size - 3 * n_past :])
    grid = [{"alpha": [1e-6, 1e-2]}, {"basis": ["chebyshev"], "alpha": [1e-6, 1e-2]}]
    search = ClosedLoopSearchCV(model, grid, horizon=30).fit(inputs, targets)
    assert options["degree"] == 1 or search.best_params_["alpha"] == 1e-6
    assert np.isfinite(search.best_estimator_.forecast(20)).all()


def test_a_custom_readout_closes_the_loop():
    inputs, targets = make_forecast_pairs(lorenz(500, random_state=0) / 20)
    ours = NVARRegressor(2, alpha=1e-3).fit(inputs, targets).forecast(10)
    theirs = NVARRegressor(2, readout=Ridge(1e-3)).fit(inputs, targets).forecast(10)
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-8)


def test_a_diverging_loop_repeats_its_last_good_output():
    inputs, targets = make_forecast_pairs(1.1 ** np.arange(30)[:, None])
    model = NVARRegressor(1, alpha=1e-8).fit(inputs, targets)
    model.coef_ = model.coef_ * 2.0
    with pytest.warns(RuntimeWarning, match="diverged at step"):
        rows, state = model.forecast(2000, return_state=True)
    assert np.isfinite(rows).all()
    assert np.isfinite(state).all()
    np.testing.assert_array_equal(rows[-1], rows[-2])


def test_the_henon_map_is_found(global_random_seed):
    inputs, targets = make_forecast_pairs(henon(300, random_state=global_random_seed))
    model = NVARRegressor(1, alpha=1e-12).fit(inputs[:200], targets[:200])
    found = dict(zip(model.get_feature_names_out(), model.coef_[0], strict=True))
    assert found["x0^2"] == pytest.approx(-1.4, abs=1e-6)
    assert found["x1"] == pytest.approx(1.0, abs=1e-6)
    assert np.abs(model.forecast(20) - targets[200:220]).max() < 1e-2


def test_lorenz_is_forecast_for_several_lyapunov_times(global_random_seed):
    series = lorenz(1500, random_state=global_random_seed)
    inputs, targets = make_forecast_pairs(series[:1001])
    pipe = make_pipeline(StandardScaler(), NVARRegressor(2, degree=3)).fit(inputs, targets)
    one_step = np.abs(pipe.predict(series[1000:-1]) - series[1001:]).max(axis=0)
    assert (one_step < 1e-2 * series.std(axis=0)).all()
    rows = forecast(pipe, 300, clip=True)
    far = np.sqrt((((rows - series[1001:1301]) / series.std(axis=0)) ** 2).mean(axis=1))
    assert (far[:150] < 0.3).all()  # a Lyapunov time is 55 steps


@pytest.mark.slow
def test_all_digits_of_a_flow_without_noise(global_random_seed):
    series = lorenz(3500, random_state=global_random_seed)
    inputs, targets = make_forecast_pairs(series[:2501])
    errors = {}
    for solver, alpha in (("cholesky", 1e-9), ("auto", 1e-27 * 2500)):
        model = NVARRegressor(1, degree=10, basis="chebyshev", solver=solver, alpha=alpha)
        model.fit(inputs, targets)
        assert model.coef_.shape == (3, 285)
        errors[solver] = np.median(np.abs(model.predict(series[2500:-1]) - series[2501:]))
    rows = model.forecast(900, clip=True)
    far = np.sqrt((((rows - series[2501:3401]) / series.std(axis=0)) ** 2).mean(axis=1))
    assert errors["auto"] < 1e-2 * errors["cholesky"]
    assert errors["auto"] < 1e-9  # of which the series itself, as it is integrated, has 2e-10
    assert (far[:800] < 0.3).all()  # 14 Lyapunov times and more


# --- increments ----------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("options", KINDS)
def test_increments_are_a_ridge_about_the_input(options):
    inputs, targets = make_forecast_pairs(lorenz(300, washout=200, random_state=0) / 20 + 1)
    model = NVARRegressor(alpha=1e-2, increments=True, **options).fit(inputs, targets)
    n_past = (model.n_lags - 1) * model.skip
    table = by_hand(inputs, low=inputs.min(axis=0), high=inputs.max(axis=0), **options)[n_past:]
    ridge = Ridge(1e-2).fit(table, (targets - inputs)[n_past:])
    said = ridge.predict(table) + inputs[n_past:]
    np.testing.assert_allclose(model.predict(inputs)[n_past:], said, rtol=0, atol=1e-8)
    # one output, that of the first column; chunks; penalties of a path
    one = NVARRegressor(alpha=1e-2, increments=True, **options).fit(inputs, targets[:, 0])
    np.testing.assert_allclose(one.coef_, model.coef_[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.intercept_, model.intercept_[0], rtol=0, atol=1e-9)
    model.set_params(alpha=[1e-2], increments=False)  # what it learns was decided in fit
    ((coef, intercept),) = forecaster_of(model).readout_path([1e-2])
    np.testing.assert_allclose(coef, model.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(intercept, model.intercept_, rtol=0, atol=1e-9)


def test_increments_in_chunks_in_single_precision_and_without_an_intercept():
    inputs, targets = make_forecast_pairs(lorenz(300, random_state=0) / 20)
    options = {"n_lags": 2, "alpha": 1e-3, "increments": True}
    whole = NVARRegressor(**options).fit(inputs, targets)
    parts = NVARRegressor(**options)
    for a, b in ((0, 1), (1, 2), (2, 120), (120, 300)):
        parts.partial_fit(inputs[a:b], targets[a:b])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-9)
    narrow = NVARRegressor(dtype="float32", **options).fit(inputs, targets)
    assert narrow.coef_.dtype == narrow.predict(inputs).dtype == np.float32
    np.testing.assert_allclose(narrow.predict(inputs), whole.predict(inputs), rtol=0, atol=1e-3)
    bare = NVARRegressor(fit_intercept=False, basis="chebyshev", **options).fit(inputs, targets)
    assert np.abs(bare.predict(inputs) - targets)[1:].max() < 0.01
    with pytest.raises(
        ValueError, match=r"y has 3 columns, but X has 1.*must contain the variables"
    ):
        NVARRegressor(increments=True).fit(inputs[:, :1], targets)
    with pytest.raises(ValueError, match="increments=True is a parameter of the built-in ridge"):
        NVARRegressor(increments=True, readout=Ridge()).fit(inputs, targets)


def test_increments_hold_a_flow_for_longer(global_random_seed):
    """A strong penalty draws next values to the mean, and increments to none."""
    flow = lorenz(1500, washout=200, random_state=global_random_seed)
    rows = StandardScaler().fit_transform(flow)
    inputs, targets = make_forecast_pairs(rows[:1001])
    errors = []
    for increments in (False, True):
        model = NVARRegressor(2, degree=3, alpha=0.1, increments=increments).fit(inputs, targets)
        errors.append(np.abs(model.predict(rows[1000:-1]) - rows[1001:]).mean())
    assert errors[1] < 0.5 * errors[0]


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"n_lags": 0}, ValueError, "n_lags=0 must be at least 1"),
        ({"n_lags": 2.5}, TypeError, "n_lags must be an integer"),
        ({"skip": 0}, ValueError, "skip=0 must be at least 1"),
        ({"degree": 0}, ValueError, "degree=0 must be at least 1"),
        ({"basis": "legendre"}, ValueError, "monomial"),
        ({"increments": 2}, TypeError, "increments"),
        (
            {"n_lags": 40, "degree": 4},
            ValueError,
            "give 135750 terms for 1 inputs; a readout is solved for at most",
        ),
        ({"washout": "measured"}, ValueError, "compares runs of a reservoir"),
        ({"washout": 500}, ValueError, "leaves nothing to fit"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"initial_state": np.zeros(5)}, ValueError, "initial_state must be"),
        ({"dtype": "int8"}, ValueError, "dtype"),
    ],
)
def test_bad_parameters_raise(params, error, match):
    with pytest.raises(error, match=match):
        NVARRegressor(**params).fit(X, Y)


def test_a_series_shorter_than_its_lags_raises():
    with pytest.raises(ValueError, match=r"use 12 rows before .* X has n_samples=12"):
        NVARRegressor(5, skip=3).fit(X[:12], Y[:12])
    with pytest.raises(ValueError, match="sequence 1 has n_samples=3"):
        NVARRegressor(5).fit([X[:50], X[:3]], [Y[:50], Y[:3]])
    NVARRegressor(5, washout=0).fit([X[:50], X[:3]], [Y[:50], Y[:3]])


def test_what_means_nothing_here_is_no_parameter():
    params = NVARRegressor().get_params()
    absent = set(ESNRegressor().get_params()) - set(params)
    assert absent >= {
        "n_units", "spectral_radius", "bias", "augment", "feedback", "feedback_scaling", "noise",
        "include_input", "random_state",
    }  # fmt: skip
    with pytest.raises(TypeError, match="feedback"):
        NVARRegressor(feedback=True)


def test_constant_columns_are_centred_and_do_no_harm():
    rows = np.column_stack([X[:, 0], np.full(500, 3.1e5), np.full(500, 0.1) + 0.2 - 0.3])
    model = NVARRegressor(2, degree=3, basis="chebyshev", alpha=1e-6).fit(rows[:400], Y[:400])
    alone = NVARRegressor(2, degree=3, basis="chebyshev", alpha=1e-6).fit(X[:400], Y[:400])
    np.testing.assert_allclose(model.input_range_[:, 1], [3.1e5 - 1, 3.1e5 + 1])
    # products with the powers of a constant count a term more than once: a smaller penalty
    ours, theirs = model.predict(rows[400:]), alone.predict(X[400:])
    assert np.abs(ours - theirs).max() < 1e-3 * np.ptp(theirs)
    assert not hasattr(model.set_params(basis="monomial").fit(X, Y), "input_range_")


def test_overflow_is_named():
    with pytest.raises(ValueError, match=r"terms overflow, first for x0\^2"):
        NVARRegressor(1).fit(X * 1e100, Y)
    with pytest.raises(ValueError, match="squares of X overflow in column 0"):
        NVARRegressor(2, degree=1).fit(X * 1e160, Y)
    model = NVARRegressor(2, degree=5, basis="chebyshev").fit(X, Y)
    with pytest.raises(ValueError, match="output of row 3 overflows"):
        model.predict(np.array([[0.1], [0.2], [0.1], [1e200]]))


def test_an_index_that_does_not_follow_starts_fresh():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2024-01-01", periods=500, freq="D")
    frame = pd.DataFrame({"u": X[:, 0]}, index=dates)
    model = NVARRegressor(3).fit(frame[:300], Y[:300])
    with pytest.warns(UserWarning, match="does not follow"):
        later = model.predict(frame[400:])
    np.testing.assert_array_equal(later, model.predict(frame[400:], initial_state="steady"))
    # where one row is seen there is nothing to begin
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NVARRegressor(1).fit(frame[:300], Y[:300]).predict(frame[400:])
