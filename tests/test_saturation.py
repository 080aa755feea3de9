"""Reservoirs whose units stand still at their bounds."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import ESNClassifier, ESNRegressor, ReservoirTransformer, load, save
from reservoir.datasets import load_co2, mackey_glass, narma
from reservoir.estimators._saturation import Extent, n_saturated
from reservoir.model_selection import make_forecast_pairs

STILL = r"units stand still at the bounds of (tanh|logistic).*StandardScaler.*input_scaling"


@pytest.fixture(scope="module")
def pairs():
    series = load_co2()
    return make_forecast_pairs(series[np.isfinite(series)][-600:, None])


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
@pytest.mark.parametrize("seed", range(5))
def test_unscaled_data_are_told(pairs, seed, activation):
    """Of CO2 in ppm, 99 units of 100 stand still, and the network is a model of one lag."""
    X, y = pairs
    esn = ESNRegressor(100, activation=activation, random_state=seed)
    with pytest.warns(UserWarning, match=STILL) as caught:
        esn.fit(X, y)
    assert [w.filename for w in caught] == [__file__]
    states = esn.states(X)[60:]
    lower = -1.0 if activation == "tanh" else 0.0
    near = 0.01 * (1 - lower)
    still = ((states > 1 - near).all(axis=0) | (states < lower + near).all(axis=0)).sum()
    said = int(str(caught[0].message).split()[0])
    assert still <= said <= still + 2  # one row in eight is looked at
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


@pytest.mark.parametrize("how", LEARN)
def test_however_it_learns(pairs, how):
    esn = ESNRegressor(50, random_state=0)
    with pytest.warns(UserWarning, match=STILL) as caught:
        LEARN[how](esn, *pairs)
    assert len(caught) == 1  # once, however many chunks


def test_other_estimators(pairs):
    X, y = pairs
    with pytest.warns(UserWarning, match=STILL):
        ESNClassifier(50, random_state=0).fit(X, (y > y.mean()).ravel())
    with pytest.warns(UserWarning, match=STILL):
        ReservoirTransformer(50, random_state=0).fit_transform(X)
    with pytest.warns(UserWarning, match=r"y or feedback_scaling likewise"):
        ESNRegressor(50, feedback=True, random_state=0).fit(0 * X, y)


@pytest.mark.parametrize("leak_rate", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("seed", range(5))
def test_what_moves_is_left_alone(pairs, seed, leak_rate):
    for X, y in (
        make_forecast_pairs(mackey_glass(500, random_state=seed)),
        narma(500, random_state=seed),
        make_forecast_pairs(np.random.default_rng(seed).normal(size=(500, 3))),
    ):
        for scaling in (0.1, 1.0, 3.0):
            esn = ESNRegressor(60, leak_rate=leak_rate, input_scaling=scaling, random_state=seed)
            esn.fit(X, y)
    # certified biases saturate by design, and unbounded units have no bounds to stand at
    ESNRegressor(60, bias="stable", spectral_radius=2.0, random_state=seed).fit(X, y)
    ReservoirTransformer(60, bias="stable", spectral_radius=2.0).fit_transform(X)
    ESNRegressor(60, activation="relu", spectral_radius=0.5, random_state=seed).fit(*pairs)


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


def test_extents():
    rng = np.random.default_rng(0)
    states = np.tanh(rng.normal(size=(1000, 7)))
    states[:, 2], states[:, 4] = 0.995, -0.999
    states[:, 5] *= 1.0  # moves
    whole, parts = Extent.of_nothing(7), Extent.of_nothing(7)
    whole.add(states)
    for block in np.split(states, 10):
        part = Extent.of_nothing(7)
        part.add(block)
        parts.merge(part)
    assert whole.n_rows == 125
    assert n_saturated(whole, "tanh") == n_saturated(parts, "tanh") == 2
    assert n_saturated(whole, "identity") == 0
    few = Extent.of_nothing(7)
    few.add(states[:0])
    assert few.n_rows == 0
    few.add(states[:30])
    assert few.n_rows == 30
