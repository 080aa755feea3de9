"""Reservoirs whose units stand still at their bounds."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer, load, save
from reservoir.datasets import load_co2, mackey_glass, narma
from reservoir.dynamics import Reservoir, run
from reservoir.dynamics.saturation import Activity, at_bounds
from reservoir.model_selection import make_forecast_pairs

pytestmark = pytest.mark.both_engines

STILL = r"units stand still at the bounds of (tanh|logistic).*StandardScaler.*input_scaling"


@pytest.fixture(scope="module")
def pairs():
    series = load_co2()
    return make_forecast_pairs(series[np.isfinite(series)][-600:, None])


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_unscaled_data_are_told(pairs, global_random_seed, activation):
    """Of CO2 in ppm, 99 units of 100 stand still, and the network is a model of one lag."""
    X, y = pairs
    esn = ESNRegressor(100, activation=activation, random_state=global_random_seed)
    with pytest.warns(UserWarning, match=STILL) as caught:
        esn.fit(X, y)
    assert [w.filename for w in caught] == [__file__]
    states = esn.states(X)[60:]
    lower = -1.0 if activation == "tanh" else 0.0
    near = 0.01 * (1 - lower)
    still = ((states > 1 - near).all(axis=0) | (states < lower + near).all(axis=0)).sum()
    said = int(str(caught[0].message).split()[0])
    assert still <= said <= 100  # those that leave their bound for a step or two as well
    assert still > 90
    # as advised
    make_pipeline(StandardScaler(), esn).fit(X, y)
    esn.set_params(input_scaling=1e-3, bias_scaling=0.0).fit(X, y)


LEARN = {
    "readout": lambda esn, X, y: esn.set_params(readout=Ridge()).fit(X, y),
    "several": lambda esn, X, y: esn.fit([X[:300], X[300:]], [y[:300], y[300:]]),
    "parallel": lambda esn, X, y: esn.set_params(n_jobs=2).fit([X] * 20, [y] * 20),
    "partial": lambda esn, X, y: [esn.partial_fit(X[i : i + 4], y[i : i + 4]) for i in range(400)],
    "noise": lambda esn, X, y: esn.set_params(noise=1e-3).fit(X, y),
    "float32": lambda esn, X, y: esn.set_params(dtype="float32").fit(X, y),
}


# to share out jobs is slow: processes start
@pytest.mark.parametrize(
    "how", [pytest.param(h, marks=[pytest.mark.slow] * (h == "parallel")) for h in LEARN]
)
def test_however_it_learns(pairs, how):
    esn = ESNRegressor(50, random_state=0)
    with pytest.warns(UserWarning, match=STILL) as caught:
        LEARN[how](esn, *pairs)
    assert len(caught) == 1  # once, however many chunks


def test_the_users_line_is_named_through_scikit_learn(pairs):
    X, y = pairs
    pipe = make_pipeline(FunctionTransformer(), ESNRegressor(50, random_state=0))
    with pytest.warns(UserWarning, match=STILL) as caught:
        cross_val_score(pipe, X, y, cv=TimeSeriesSplit(2))
    assert {w.filename for w in caught} == {__file__}


def test_other_estimators(pairs):
    X, y = pairs
    with pytest.warns(UserWarning, match=STILL):
        ESNClassifier(50, random_state=0).fit(X, (y > y.mean()).ravel())
    with pytest.warns(UserWarning, match=STILL):
        ReservoirTransformer(50, random_state=0).fit_transform(X)
    with pytest.warns(UserWarning, match=r"y or feedback_scaling likewise"):
        ESNRegressor(50, feedback=True, random_state=0).fit(0 * X, y)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("leak_rate", [1.0, 0.3, 0.05])
def test_what_moves_is_left_alone(pairs, global_random_seed, leak_rate):
    for X, y in (
        make_forecast_pairs(mackey_glass(500, random_state=global_random_seed)),
        narma(500, random_state=global_random_seed),
        make_forecast_pairs(np.random.default_rng(global_random_seed).normal(size=(500, 3))),
    ):
        for scaling in (0.1, 1.0, 3.0):
            esn = ESNRegressor(
                60, leak_rate=leak_rate, input_scaling=scaling, random_state=global_random_seed
            )
            esn.fit(X, y)
    # certified biases saturate by design, and unbounded units have no bounds to stand at
    for kind in (ESNRegressor, ReservoirTransformer):
        with pytest.warns(UserWarning, match="a bias that costs memory"):
            kind(60, bias="stable", spectral_radius=2.0, random_state=global_random_seed).fit(X, y)
    ESNRegressor(60, activation="relu", spectral_radius=0.5, random_state=global_random_seed).fit(
        *pairs
    )


def test_who_has_spoken_is_silent_after_loading(pairs, tmp_path):
    X, y = pairs
    esn = ESNRegressor(50, washout=0, random_state=0).partial_fit(X[:5], y[:5])
    save(esn, tmp_path / "before.npz")
    with pytest.warns(UserWarning, match=STILL):
        load(tmp_path / "before.npz").partial_fit(X[5:30], y[5:30])
    with pytest.warns(UserWarning, match=STILL):
        esn.partial_fit(X[5:30], y[5:30])
    save(esn, tmp_path / "after.npz")
    load(tmp_path / "after.npz").partial_fit(X[30:60], y[30:60])


@pytest.mark.parametrize("n_rows", [30, 400])
@pytest.mark.parametrize("leak_rate", [1.0, 0.3, 0.1, 0.01])
def test_long_ways_from_zero_hide_nothing(leak_rate, n_rows):
    """With a small leak the states are on their way to the bounds for longer than the series."""
    U = 350 + 10 * np.sin(0.1 * np.arange(n_rows))[:, None]
    esn = ESNRegressor(100, leak_rate=leak_rate, random_state=0)
    for washout in (0, 5):
        with pytest.warns(UserWarning, match=STILL):
            esn.set_params(washout=washout).fit(U[:-1], U[1:])
    sequences = [U[:20], U[5:25], U[10:30]]
    with pytest.warns(UserWarning, match=STILL):
        esn.set_params(washout=0).fit(sequences, sequences)
    with pytest.warns(UserWarning, match=STILL):
        ReservoirTransformer(100, leak_rate=leak_rate, random_state=0).fit_transform(U)


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("leak_rate", [1.0, 0.3])
def test_noise_and_rows_coded_as_zero_hide_nothing(pairs, noise, leak_rate):
    X, y = pairs
    esn = ESNRegressor(100, leak_rate=leak_rate, noise=noise, random_state=0)
    with pytest.warns(UserWarning, match=STILL):
        esn.fit(X, y)
    holes = X.copy()
    holes[[100, 257, 400]] = 0
    for missing in (holes, np.vstack([np.zeros((10, 1)), X[10:]])):
        with pytest.warns(UserWarning, match=STILL):
            esn.set_params(noise=0.0).fit(missing, y)


def test_the_bias_is_named_where_it_is_the_bias():
    X, y = narma(300, random_state=0)
    for options in ({"bias": np.full(50, 4.0)}, {"bias": "bernoulli", "bias_scaling": 10.0}):
        with pytest.warns(UserWarning, match="the bias holds them.*Lower bias_scaling"):
            ESNRegressor(50, random_state=0, **options).fit(X, y)


def test_inputs_of_few_values_are_left_alone(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    binary = (rng.random((400, 1)) < 0.5).astype(float)
    one_hot = np.eye(50)[rng.integers(50, size=400)]
    events = np.where(rng.random((400, 1)) < 0.02, 1000.0, 0.0)
    offset = 3 + 3 * rng.normal(size=(400, 1))
    for X in (binary, one_hot, events, offset):
        for options in ({}, {"leak_rate": 0.01}, {"activation": "logistic"}):
            ESNRegressor(60, random_state=global_random_seed, **options).fit(
                X, rng.normal(size=400)
            )
            ESNRegressor(60, random_state=global_random_seed, **options).fit(
                X[:15], rng.normal(size=15)
            )


@pytest.mark.parametrize("leak_rate", [1.0, 0.3, "per unit"])
def test_the_sum_of_activations_is_that_of_the_formula(leak_rate):
    rng = np.random.default_rng(0)
    leak = rng.uniform(0.1, 1, 20) if isinstance(leak_rate, str) else leak_rate
    W = 0.2 * rng.normal(size=(20, 20))
    res = Reservoir(W, rng.normal(size=(20, 1)), rng.normal(size=20), leak_rate=leak)
    X, start = rng.normal(size=(50, 1)), rng.uniform(-1, 1, 20)
    states = run(res, X, initial_state=start)
    before = np.vstack([start, states[:-1]])
    values = np.tanh(before @ W.T + X @ res.W_in.T + res.bias)
    for skip in (0, 1, 13, 49, 50, 60):
        activity, last = Activity.of_nothing(20), start
        for k in range(0, 50, 7):
            block = states[k : k + 7]
            activity.add_behind(skip - k, block, last, res.leak_rate)
            last = block[-1]
        assert activity.n_steps == max(50 - skip, 0)
        np.testing.assert_allclose(activity.total, values[skip:].sum(axis=0), atol=1e-12)


def test_bounds():
    values = np.array([0.99, -0.99, 0.5, 0.0, 1.0])
    assert at_bounds(values, "tanh") == 3
    assert at_bounds(values, "logistic") == 4  # -.99 is below its bound of 0
    assert at_bounds(values, "identity") == 0
