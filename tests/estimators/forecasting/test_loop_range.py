"""Closed loops that leave the range of the training targets: warnings, and clipping."""

import warnings

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from reservoir import ESNClassifier, ESNRegressor, RNNRegressor, forecast
from reservoir.datasets import lorenz, mackey_glass, narma
from reservoir.estimators.esn.readout_model import ReadoutModel
from reservoir.estimators.progress import range_of_targets, width_of
from reservoir.model_selection import make_forecast_pairs

pytestmark = pytest.mark.both_engines

SEEDS = range(5)


def pairs_of_noise(seed, n=400):
    return make_forecast_pairs(np.random.default_rng(seed).normal(size=(n, 1)))


def what_it_says(call):
    """Return a call's result, and the warnings it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    assert all(w.category is RuntimeWarning and w.filename == __file__ for w in caught)
    return result, [str(w.message) for w in caught]


def is_far(rows, y, widths=10):
    low, high = y.min(axis=0), y.max(axis=0)
    room = widths * (high - low)
    return (rows < low - room) | (rows > high + room)


@pytest.mark.filterwarnings("ignore:The readout has .* columns:UserWarning")
@pytest.mark.filterwarnings("ignore:The units .* the bounds of:UserWarning")  # no scaler
@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_forecast_that_leaves_the_data_warns_once(seed, engine, monkeypatch):
    """A network fitted to noise went to 4.5e63 without a word, one fitted to Lorenz to 6.9e9."""
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(ReadoutModel, "engine", engine)
    strayed = 0
    flow = lorenz(600, washout=200, random_state=seed)
    for X, y in (pairs_of_noise(seed), make_forecast_pairs(flow)):
        esn = ESNRegressor(300, alpha=1e-6, random_state=seed).fit(X, y)
        rows, said = what_it_says(lambda esn=esn: esn.forecast(500))
        far = is_far(rows.reshape(500, -1), y.reshape(len(y), -1)).any(axis=1)
        assert len(said) == far.any()
        if said:
            step = int(np.argmax(far))
            assert f"training targets at step {step}: output" in said[0]
            assert "clip=True" in said[0]
        strayed += far.any()
        held, _ = what_it_says(lambda esn=esn: esn.forecast(500, clip=True))
        assert not is_far(held, y, widths=100).any()
    if seed in (0, 1, 3, 4):
        assert strayed


def test_loops_that_stay_do_not_warn():
    X, y = make_forecast_pairs(mackey_glass(1000, random_state=0))
    for seed in SEEDS:
        esn = ESNRegressor(200, leak_rate=0.3, random_state=seed).fit(X, y)
        assert what_it_says(lambda esn=esn: esn.forecast(200))[1] == []


def test_the_value_and_the_step_are_named_and_divergence_too():
    growing = 1.5 ** np.arange(60.0)
    esn = ESNRegressor(10, activation="identity", washout=5, random_state=0)
    esn.fit(growing[:-1, None], growing[1:])
    rows, (said,) = what_it_says(lambda: esn.forecast(5000))
    low, high = growing[1], growing[-1]
    step = int(np.argmax(rows > high + 10 * (high - low)))
    assert f"at step {step}: output is {rows[step]:.6g}" in said
    assert f"between {low:.6g} and {high:.6g}" in said
    assert "diverged at step" in said


def test_the_range_is_that_of_all_chunks():
    X, y = pairs_of_noise(3)
    X, y = 0.01 * X, 0.01 * y
    for last, expected in ((1.0, 0), (0.0, 1)):  # one target of 1 makes the range wide
        esn = ESNRegressor(50, washout=0, random_state=0)
        ends = y.copy()
        ends[-1] = last  # no input follows it
        esn.partial_fit(X, ends).partial_fit(X, y, new_sequence=True)
        esn.coef_, esn.intercept_ = 0 * esn.coef_, 0 * esn.intercept_ + 5.0
        assert len(what_it_says(lambda esn=esn: esn.forecast(3))[1]) == expected


@pytest.mark.parametrize("constant", [0.0, 5.0, -3e6])
def test_constant_targets_have_a_floor(constant):
    X = np.full((60, 1), constant)
    size = abs(constant) or 1.0
    esn = ESNRegressor(20, input_scaling=1 / size, random_state=0).fit(X, X[:, 0])
    assert what_it_says(lambda: esn.forecast(20))[1] == []
    esn.intercept_ = esn.intercept_ + 30 * size
    assert len(what_it_says(lambda: esn.forecast(5))[1]) == 1


def test_ranges():
    Y = np.array([[1.0, np.nan], [3.0, 7.0], [np.nan, 7.0]])
    reach = range_of_targets([Y[:2], Y[2:]])
    np.testing.assert_array_equal(reach, [[1, 7], [3, 7]])
    np.testing.assert_array_equal(
        range_of_targets([np.array([[1, np.nan], [np.nan, 4], [3, 2]])]), [[1, 2], [3, 4]]
    )
    np.testing.assert_array_equal(
        range_of_targets([np.array([[9.0, 0.0]])], reach), [[1, 0], [9, 7]]
    )
    np.testing.assert_allclose(width_of(reach), [2, 0.7])
    rounded = np.array([[5.0], [5.0 * (1 + 1e-14)]])
    np.testing.assert_allclose(width_of(rounded), [0.5])


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_feedback_networks_are_watched_too(seed):
    X, y = narma(500, random_state=seed)
    esn = ESNRegressor(50, feedback=True, random_state=seed).fit(X, y)
    far = X.copy()
    esn.coef_ = 30 * esn.coef_  # a loop that runs away
    for call in (
        lambda: esn.predict(far),
        lambda: esn.forecast(len(far), exog=far),
        lambda: esn.states(far),
        lambda: esn.score(far, y),
    ):
        _, said = what_it_says(call)
        assert len(said) == 1
        assert "left the range of the training targets" in said[0]
    _, (said,) = what_it_says(lambda: esn.predict([far, far]))
    assert "of sequence 0" in said


def test_a_classifier_with_feedback_is_watched_too():
    X, _ = narma(300, random_state=0)
    labels = (X[:, 0] > X.mean()).astype(int)
    esn = ESNClassifier(40, feedback=True, random_state=0).fit(X, labels)
    assert what_it_says(lambda: esn.predict(X))[1] == []
    esn.coef_ = 1e3 * esn.coef_
    assert len(what_it_says(lambda: esn.predict(X))[1]) == 1


@pytest.mark.parametrize("scaled", ["log", "mixed", "affine"])
def test_the_range_is_in_the_units_that_are_returned(scaled):
    """Ten widths of a logarithm are a factor of millions."""
    t = np.arange(400)
    series = np.array([150.0, 1.0]) * np.exp(np.sin(0.3 * t[:, None] + np.array([0.0, 1.5])))
    transformer = {
        "log": FunctionTransformer(np.log, np.exp),
        "mixed": PCA(2),
        "affine": MinMaxScaler((-3, -2)),
    }[scaled]
    X, y = make_forecast_pairs(series)
    inner = make_pipeline(StandardScaler(), ESNRegressor(50, alpha=1e-3, random_state=0))
    model = TransformedTargetRegressor(inner, transformer=transformer, check_inverse=False)
    model.fit(X, y)
    rows, said = what_it_says(lambda: forecast(model, 50))
    assert said == []
    esn = model.regressor_[-1]
    low, high = transformer.fit(y).transform(y).min(axis=0), transformer.transform(y).max(axis=0)
    esn.coef_ = 0 * esn.coef_
    esn.intercept_ = high + (2.5 if scaled == "log" else 30) * (high - low)
    rows, said = what_it_says(lambda: forecast(model, 50))
    assert is_far(rows, y).any()
    assert len(said) == 1


# --- what is fed back -----------------------------------------------------------------------


def stepwise(esn, n_steps, low, high, exog=None):
    """The loop as anyone would write it, with `predict` alone."""
    fed, state, rows = np.atleast_1d(esn._model.progress.last_output), esn.state_, []
    for k in range(n_steps):
        u = np.clip(fed, low, high)
        u = u if exog is None else np.concatenate([u, exog[k]])
        row, state = esn.predict(u[None], initial_state=state, return_state=True)
        rows.append(row[0])
        fed = np.atleast_1d(row[0])
    return np.array(rows)


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("kind", ["esn", "rnn", "leaky", "lstm", "gru"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_clipped_loops_equal_the_obvious_one(kind, seed, engine, monkeypatch):
    if engine == "numba":
        pytest.importorskip("numba")
        monkeypatch.setattr(ReadoutModel, "engine", "numba")
    rng = np.random.default_rng(seed)
    walk = 0.2 * np.cumsum(rng.normal(size=(300, 2)), axis=0)
    series = np.hstack([walk, rng.normal(size=(300, 1))])
    X, y = series[:-1], series[1:, :2]
    if kind == "esn":
        model = ESNRegressor(30, random_state=seed, alpha=1e-3).fit(X, y)
        model.coef_ = 1.3 * model.coef_
    else:
        model = RNNRegressor(6, cell=kind, init="glorot", max_iter=0, random_state=seed).fit(X, y)
        model.params_["coef"] *= 10
    exog = rng.normal(size=(40, 1))
    low, high = y.min(axis=0), y.max(axis=0)
    width = high - low
    cases = [(True, low - width, high + width), ((low, high - 1), low, high - 1)]
    if kind != "esn":
        cases.append(((-0.1, 0.1), -0.1, 0.1))
    for clip, a, b in cases:
        rows, _ = what_it_says(lambda clip=clip: model.forecast(40, exog=exog, clip=clip))
        np.testing.assert_allclose(rows, stepwise(model, 40, a, b, exog), rtol=1e-9, atol=1e-9)
    free, _ = what_it_says(lambda: model.forecast(40, exog=exog))
    assert not np.allclose(free, rows)
    wide = model.forecast(3, exog=exog[:3], clip=(-np.inf, np.inf))
    np.testing.assert_allclose(wide, free[:3], rtol=1e-12)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("scaling", ["affine", "negative", "log", "target", "both"])
def test_a_pair_is_in_the_units_of_y(scaling):
    t = np.arange(200)
    series = np.exp(0.5 * np.sin(0.3 * t)) * 100
    X, y = make_forecast_pairs(series)
    negative = FunctionTransformer(np.negative, np.negative)
    log = FunctionTransformer(np.log, np.exp)
    esn = ESNRegressor(50, random_state=0)
    model = {
        "affine": make_pipeline(StandardScaler(), esn),
        "negative": make_pipeline(negative, StandardScaler(), esn),
        "log": make_pipeline(log, esn),
        "target": TransformedTargetRegressor(esn, transformer=log),
        "both": TransformedTargetRegressor(make_pipeline(StandardScaler(), esn), transformer=log),
    }[scaling]
    if scaling in ("target", "log"):  # the network itself sees the series, or its target, as it is
        X, y = X / 100, y / 100
    model.fit(X, y)
    free = forecast(model, 60)
    low, high = np.quantile(free, [0.3, 0.7])
    rows = forecast(model, 60, clip=(low, high))
    assert not np.allclose(rows, free)
    fed, expected = [], [y[-1]]
    for _ in range(60):  # a run from the end of training over all that was fed back so far
        fed.append(np.clip(expected[-1], low, high))
        expected.append(model.predict(np.array(fed)[:, None])[-1])
    np.testing.assert_allclose(rows, expected[1:], rtol=1e-6)
    constant = forecast(model, 120, clip=(high, high))
    assert np.ptp(constant[100:]) < 1e-3 * high  # held at one value, it comes to rest
    np.testing.assert_allclose(
        forecast(model, 60, clip=(free.min() - 1e-9, free.max() * 2)), free, rtol=1e-6
    )


def test_ranges_through_feedback_weights():
    X, y = narma(400, random_state=0)
    model = TransformedTargetRegressor(
        ESNRegressor(40, feedback=True, random_state=0), transformer=StandardScaler()
    ).fit(X, y)
    exog = narma(60, random_state=1)[0]
    free = forecast(model, 60, exog=exog)
    np.testing.assert_allclose(forecast(model, 60, exog=exog, clip=True), free)
    half = np.median(free)
    inner = model.regressor_
    end = model.transformer_.transform([[half]])[0, 0]
    scaled = inner.forecast(60, exog=exog, clip=(-np.inf, end))
    np.testing.assert_allclose(
        forecast(model, 60, exog=exog, clip=(-np.inf, half)),
        model.transformer_.inverse_transform(scaled[:, None])[:, 0],
    )
    assert not np.allclose(scaled, inner.forecast(60, exog=exog))


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("ends", [(0.0, np.inf), (-np.inf, 4.0), (0.0, 4.0), (1.5, 2.5)])
@pytest.mark.parametrize("how", ["log", "negative", "power", "quantile", "falling scale"])
def test_ranges_through_feedback_weights_and_curved_targets(how, ends):
    """The same pairs hold what is fed back; where it is inside, nothing changes."""
    X, y = narma(400, random_state=0)
    y = 1 + y * 2
    transformer = {
        "log": FunctionTransformer(np.log, np.exp),
        "negative": FunctionTransformer(np.negative, np.negative),
        "power": PowerTransformer(),
        "quantile": QuantileTransformer(n_quantiles=20, output_distribution="normal"),
        "falling scale": make_pipeline(
            FunctionTransformer(np.negative, np.negative), StandardScaler()
        ),
    }[how]
    esn = ESNRegressor(40, feedback=True, alpha=1e-2, random_state=0)
    model = TransformedTargetRegressor(esn, transformer=transformer, check_inverse=False)
    model.fit(X, y)
    exog = narma(60, random_state=1)[0]
    rows, free = forecast(model, 60, exog=exog, clip=ends), forecast(model, 60, exog=exog)
    outside = (free < ends[0]) | (free > ends[1])
    first = int(np.argmax(outside)) if outside.any() else 60
    np.testing.assert_allclose(rows[: first + 1], free[: first + 1], rtol=1e-9)
    assert ends != (1.5, 2.5) or not np.allclose(rows, free)
    if ends == (1.5, 2.5):  # inside the targets: the network's own range is that of the ends
        inside = np.sort(model.transformer_.transform(np.array(ends)[:, None])[:, 0])
        inner = model.regressor_.forecast(60, exog=exog, clip=tuple(inside))
        np.testing.assert_allclose(
            rows, model.transformer_.inverse_transform(inner[:, None])[:, 0], rtol=1e-6
        )


@pytest.mark.parametrize("bad", [(1.0, 0.0), (np.nan, 1.0), ([0, 0], [1, 1]), "yes", 3, (1,)])
def test_what_is_no_range_raises(bad):
    X, y = pairs_of_noise(0)
    for model in (ESNRegressor(10), RNNRegressor(4, max_iter=0, cell="gru", init="glorot")):
        model.fit(X, y[:, 0])
        with pytest.raises(ValueError, match="clip="):
            model.forecast(3, clip=bad)


def test_a_network_from_a_reservoir_keeps_its_range():
    esn = ESNRegressor(10, n_lags=1, random_state=0).fit(*pairs_of_noise(0))
    rnn = esn.to_rnn()
    np.testing.assert_allclose(rnn.forecast(3, clip=True), esn.forecast(3, clip=True))


@pytest.mark.usefixtures("torch")
def test_without_targets_there_is_no_range():
    rnn = ESNRegressor(10, leak_rate=1.0, n_lags=1, random_state=0).fit(*pairs_of_noise(0)).to_rnn()
    rnn = RNNRegressor.from_torch(rnn.to_torch())
    with pytest.raises(ValueError, match=r"clip=\(low, high\)"):
        rnn.forecast(3, context=pairs_of_noise(0)[0], clip=True)
