"""Reservoirs whose units are saturated, flip between their bounds, or grow without bounds."""

import contextlib
import copy
import itertools
import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from reservoir import (
    ESNClassifier,
    ESNRegressor,
    ReservoirFeatures,
    ReservoirTransformer,
    force_train,
    load,
    save,
)
from reservoir.datasets import (
    henon,
    load_co2,
    load_el_nino,
    load_sunspots,
    logistic_map,
    lorenz,
    lorenz96,
    mackey_glass,
    multiple_superposed_oscillators,
    narma,
    roessler,
)
from reservoir.dynamics import Reservoir, iter_states, run
from reservoir.dynamics.saturation import Activity, Steps, rows_to_look_at
from reservoir.model_selection import make_forecast_pairs

pytestmark = pytest.mark.both_engines

STILL = r"units are stuck at the bounds of (tanh|logistic).*StandardScaler.*input_scaling"
FLIP = r"units flip between the bounds of (tanh|logistic)"


@pytest.fixture(scope="module")
def pairs():
    series = load_co2()
    return make_forecast_pairs(series[np.isfinite(series)][-600:, None])


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_unscaled_data_warn(pairs, global_random_seed, activation):
    """Of CO2 in ppm nearly all units stand still, and the network is a model of one lag."""
    X, y = pairs
    esn = ESNRegressor(100, activation=activation, random_state=global_random_seed)
    with pytest.warns(UserWarning, match=STILL) as caught:
        esn.fit(X, y)
    assert [w.filename for w in caught] == [__file__]
    said = int(re.search(r"(\d+) % of their activations", str(caught[0].message))[1])
    states, lower = esn.states(X)[60:], -1.0 if activation == "tanh" else 0.0
    near = 5e-4 * (1 - lower)
    share = 100 * ((states > 1 - near) | (states < lower + near)).mean()
    assert abs(said - share) < 3  # a sample of the steps
    assert said > 85
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
    fed_back = r"outputs that are fed back\. .* scale y .*feedback_scaling"
    with pytest.warns(UserWarning, match=fed_back):
        ESNRegressor(50, feedback=True, random_state=0).fit(0 * X, y)
    with pytest.warns(UserWarning, match=fed_back):
        force_train(
            ESNRegressor(50, feedback=True, random_state=0),
            1e4 * np.sin(np.arange(300.0)),
            n_test=0,
        )
    series = np.lib.stride_tricks.sliding_window_view(y.ravel(), 50)[::10, None].swapaxes(1, 2)
    with pytest.warns(UserWarning, match='are stuck.*scaling="standard"'):
        ReservoirFeatures(50, scaling=None, differences=False, random_state=0).fit(series)
    ReservoirFeatures(50, random_state=0).fit(series)


@pytest.mark.slow
@pytest.mark.parametrize("leak_rate", [1.0, 0.3, 0.05])
def test_units_that_move_do_not_warn(pairs, global_random_seed, leak_rate):
    for X, y in (
        make_forecast_pairs(mackey_glass(500, random_state=global_random_seed)),
        narma(500, random_state=global_random_seed),
        make_forecast_pairs(np.random.default_rng(global_random_seed).normal(size=(500, 3))),
    ):
        for scaling in (0.1, 3.0):
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


def test_a_model_that_warned_does_not_warn_after_loading(pairs, tmp_path):
    X, y = pairs
    esn = ESNRegressor(50, washout=0, random_state=0).partial_fit(X[:5], y[:5])
    save(esn, tmp_path / "before.npz")
    with pytest.warns(UserWarning, match=STILL):
        load(tmp_path / "before.npz").partial_fit(X[5:30], y[5:30])
    with pytest.warns(UserWarning, match=STILL):
        esn.partial_fit(X[5:30], y[5:30])
    save(esn, tmp_path / "after.npz")
    load(tmp_path / "after.npz").partial_fit(X[30:60], y[30:60])


@pytest.mark.fast_cases(4)
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


@pytest.mark.fast_cases(3)
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
        with pytest.warns(UserWarning, match="driven by the bias.*lower bias_scaling"):
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


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("leak_rate", [1.0, 0.3, "per unit"])
def test_the_record_is_that_of_the_formula(leak_rate, noise):
    """In blocks of any size: activations of the rows looked at, and what drove the units there."""
    rng = np.random.default_rng(0)
    leak = rng.uniform(0.1, 1, 20) if isinstance(leak_rate, str) else leak_rate
    W, W_fb = 3 * rng.normal(size=(20, 20)), rng.normal(size=(20, 1))
    res = Reservoir(W, rng.normal(size=(20, 1)), rng.normal(size=20), leak_rate=leak, W_fb=W_fb)
    X, Y, start = rng.normal(size=(50, 1)), rng.normal(size=(50, 1)), rng.uniform(-1, 1, 20)
    states = run(res, X, initial_state=start, feedback=Y)
    if noise:
        blocks = iter_states(
            res, X, initial_state=start, feedback=Y, noise=noise, generator=rng, out=states
        )
        assert sum(len(block) for _, block in blocks) == 50
    before = np.vstack([start, states[:-1]])
    values = np.tanh(before @ W.T + X @ res.W_in.T + res.bias + Y @ W_fb.T)
    for size, skip in itertools.product((1, 7, 50), (0, 13, 49, 60)):
        activity, last, looked = Activity(20), start, []
        for k in range(0, 50, size):
            rows = slice(k, k + size)
            n_rows = max(min(size, 50 - k) - max(skip - k, 0), 0)
            looked += list(
                rows_to_look_at(n_rows, activity.n_rows, activity.n_looked) + max(k, skip)
            )
            steps = Steps(states[rows], last, X[rows], Y[rows], res.leak_rate, noise > 0)
            activity.add(res, skip - k, steps)
            last = states[rows][-1]
        assert (activity.n_rows, activity.n_looked) == (max(50 - skip, 0), len(looked))
        np.testing.assert_array_equal(activity.high, (values[looked] > 0.999).sum(axis=0))
        np.testing.assert_array_equal(activity.low, (values[looked] < -0.999).sum(axis=0))
        np.testing.assert_allclose(activity.inputs, np.sum(X[looked] ** 2))
        np.testing.assert_allclose(activity.received, np.sum(Y[looked] ** 2))


def test_few_rows_are_all_looked_at_and_of_many_each_29th():
    assert list(rows_to_look_at(9, 0, 0)) == list(range(9))
    assert list(rows_to_look_at(60, 0, 0)) == list(range(0, 60, 6))
    assert list(rows_to_look_at(100, 4096, 64)) == [22, 51, 80]  # rows 4118, ...: of 29
    assert list(rows_to_look_at(1, 4096, 64)) == []
    assert list(rows_to_look_at(100, 1000, 64)) == []  # of eight blocks of 512 rows one


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("how", ["leak", "noise", "sequences", "classes", "session", "states"])
@pytest.mark.parametrize("factor", [1, 1e4])
def test_units_that_flip_warn(how, factor):
    """Centred inputs times 10,000: the mean of each unit is far from its bounds, its values not."""
    X, y = narma(600, random_state=0)
    X, esn = factor * (X - X.mean()), ESNRegressor(50, random_state=0)
    warned = pytest.warns(UserWarning, match=FLIP) if factor > 1 else contextlib.nullcontext()
    with warned:
        if how == "leak":
            assert factor == 1 or abs(esn.set_params(leak_rate=0.3).fit(X, y).states(X)).max() > 0.9
        elif how == "noise":
            esn.set_params(noise=0.1).fit(X, y)
        elif how == "sequences":
            esn.fit([X[:300], X[300:]], [y[:300], y[300:]])
        elif how == "classes":
            ESNClassifier(50, random_state=0).fit(X, y > y.mean())
        elif how == "states":
            ReservoirTransformer(50, random_state=0).fit_transform(X)
        else:
            session = esn.fit(X / factor, y).stream()
            for t in range(0, 100, 5):
                session.learn(X[t : t + 5], y[t : t + 5])


def test_the_column_is_named():
    """By its name or its number in X, ids and times counted; where a few do most of it."""
    X, y = narma(300, random_state=0)
    rng = np.random.default_rng(0)
    large, esn = 1e3 * rng.normal(size=(300, 1)), ESNRegressor(50, random_state=0)
    with pytest.warns(UserWarning, match="are stuck.*column 1 of X"):
        esn.fit(np.hstack([X, np.full_like(X, 70.0)]), y)
    ids, times = np.repeat([[0.0], [1.0]], 150, axis=0), np.tile(np.arange(150.0), 2)[:, None]
    esn.set_params(sequence_column=0, time_column=2, leak_rate=0.5)
    with pytest.warns(UserWarning, match=r"most of all column 3 of X\."):
        esn.fit(np.hstack([ids, X, times, large]), y)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "ppm": large[:, 0], "b": X[:, 0]})
    with pytest.warns(UserWarning, match=r"most of all column 'ppm' of X\."):
        ESNRegressor(50, random_state=0).fit(frame, y)
    with pytest.warns(UserWarning, match=r"the inputs\. "):  # all of them alike
        ESNRegressor(50, random_state=0).fit(1e3 * rng.normal(size=(300, 3)), y)
    with pytest.warns(UserWarning, match=r"column 1 of y\. "):
        ESNRegressor(50, feedback=True, random_state=0).fit(X, np.column_stack([y, large]))
    targets = pd.DataFrame({"small": y, "ppm": large[:, 0]})
    with pytest.warns(UserWarning, match=r"column 'ppm' of y\. "):
        ESNRegressor(50, feedback=True, random_state=0).fit(frame[["a"]], targets)
    labels = pd.Series(np.arange(300) % 3, name="label")  # fed back in a column of each
    with pytest.warns(UserWarning, match="outputs that are fed back"):
        ESNClassifier(50, feedback=True, feedback_scaling=1e3, random_state=0).fit(X, labels)


SERIES = {
    "lorenz": lorenz,
    "roessler": roessler,
    "lorenz96": lambda n, random_state: lorenz96(n, n_features=8, random_state=random_state),
    "mackey_glass": mackey_glass,
    "henon": henon,
    "logistic_map": logistic_map,
    "narma": lambda n, random_state: np.column_stack(
        narma(n, saturated=True, random_state=random_state)
    ),
    "sines": lambda n, random_state: multiple_superposed_oscillators(n).reshape(n, -1),
    "co2": lambda n, random_state: filled(load_co2())[-n:, None],
    "sunspots": lambda n, random_state: load_sunspots().reshape(-1, 1),
    "el_nino": lambda n, random_state: filled(load_el_nino())[-n:, None],
}


def filled(series):
    return series[np.isfinite(series)]


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("options", [{}, {"leak_rate": 0.1}, {"feedback": True}], ids=str)
@pytest.mark.parametrize("name", SERIES)
def test_shipped_series_after_a_scaler_do_not_warn(name, options, global_random_seed):
    X, y = make_forecast_pairs(SERIES[name](600, random_state=global_random_seed))
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    esn = ESNRegressor(50, random_state=global_random_seed, **options)
    make_pipeline(StandardScaler(), esn).fit(X, y)


def test_units_that_drive_one_another_warn():
    X, y = narma(300, random_state=0)
    with pytest.warns(UserWarning, match="driven by one another.*lower spectral_radius"):
        ESNRegressor(50, spectral_radius=50.0, random_state=0).fit(X, y)


# ------------------------------------------------------------ units without bounds


def in_chunks(esn, X, y):
    for t in range(0, len(X), 5):
        esn.partial_fit(X[t : t + 5], y[t : t + 5])


def transformer_of(esn):
    names = ("n_units", "spectral_radius", "activation", "random_state", "initial_state")
    return ReservoirTransformer(**{name: getattr(esn, name) for name in names})


def states_of(esn, X, y):
    transformer_of(esn).fit_transform(X)


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("learn", [ESNRegressor.fit, in_chunks, states_of])
@pytest.mark.parametrize("activation", ["identity", "relu", "softplus"])
def test_growth_warns_and_the_remedy_works(activation, learn, global_random_seed):
    X, y = narma(1500, saturated=True, random_state=global_random_seed)
    options = {"activation": activation, "washout": 0, "random_state": global_random_seed}
    options["leak_rate"] = 1.0
    esn = ESNRegressor(50, spectral_radius=1.0, initial_state="zeros", **options)
    size = np.zeros(1)
    while size[-1] < 1e20:
        esn.spectral_radius *= 1.05
        size = abs(run(transformer_of(esn).fit(X[:2]).reservoir_, X[:1000])).max(axis=1)
    n = int(np.argmax(size > 1e20))
    with pytest.warns(UserWarning, match=f"{activation} is unbounded") as caught:
        learn(esn, X[:n], y[:n])
    (message,) = [str(w.message) for w in caught if "is unbounded" in str(w.message)]
    told = float(re.search(r"leak_rate W is (\S+)\. ", message)[1])
    assert told == pytest.approx(esn.spectral_radius, rel=1e-3)
    value = float(re.search(r"spectral_radius=(\S+)", message)[1])
    esn = ESNRegressor(50, spectral_radius=value, **options).fit(X, y)
    assert abs(esn.states(X)).max() < 100


@pytest.mark.fast_cases("values")
@pytest.mark.parametrize("activation", ["identity", "relu"])
@pytest.mark.parametrize("leak_rate", [1.0, 0.01])
@pytest.mark.parametrize("drive", ["growing", "decaying", "a blow", "late", "random walk"])
def test_healthy_states_may_follow_what_drives_them(drive, leak_rate, activation):
    rng, t = np.random.default_rng(0), np.arange(3000.0)
    u = {
        "growing": np.exp(t / 200),
        "decaying": np.exp(-t / 200),
        "a blow": 1e4 * (t == 1500) + rng.normal(size=3000),
        "late": (t > 2000) * 50.0,
        "random walk": 10 * np.cumsum(rng.normal(size=3000)),
    }[drive]
    esn = ESNRegressor(50, leak_rate=leak_rate, activation=activation, random_state=0)
    for washout in (0, "auto"):
        esn.set_params(washout=washout).fit(u[:-1, None], u[1:])


def test_an_integrator_that_settles_is_left_alone():
    """It takes 100,000 steps from zero to its rest, and grows 4,000 times on the way."""
    X = np.ones((200_000, 1))
    options = {"leak_rate": 1e-5, "bias_scaling": 0.0, "washout": 0, "random_state": 0}
    ESNRegressor(5, activation="identity", **options).fit(X, np.arange(200_000.0))


def test_a_copy_of_a_record_is_its_own():
    """A fit that fails, or a worker, must not move the counts of the estimator."""
    res = Reservoir(np.zeros((3, 3)), np.ones((3, 1)), np.zeros(3))
    record = Activity(3)
    for each in (record.low, record.high):
        each.setflags(write=False)
    other, X = copy.copy(record), np.full((5, 1), 9.0)
    other.add(res, 0, Steps(run(res, X), np.zeros(3), X, None, 1.0, noisy=False))
    assert other.high.sum() == 15
    assert record.high.sum() == 0


def test_records_go_through_files_and_pickles(tmp_path):
    X, y = narma(200, random_state=0)
    X = 1e4 * (X - X.mean())
    for options in ({}, {"activation": "identity", "spectral_radius": 1.2}):
        esn = ESNRegressor(20, washout=0, random_state=0, **options).partial_fit(X[:5], y[:5])
        save(esn, tmp_path / "esn.npz")
        record = vars(load(tmp_path / "esn.npz")._model.activity)
        assert record.keys() == vars(esn._model.activity).keys()
        assert all(
            np.array_equal(record[name], value) for name, value in vars(esn._model.activity).items()
        )
