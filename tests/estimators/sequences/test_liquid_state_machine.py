"""Spiking networks: equal to a naive simulation, wired as in the paper; spike patterns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reservoir import LiquidStateMachine, datasets
from reservoir.dynamics.spiking import SpikingNetwork

X, y = datasets.spike_patterns(24, n_channels=3, n_steps=60, random_state=0)
PENALTIES = np.logspace(-1, 4, 11)


def machine(**params):
    return LiquidStateMachine(**({"n_units": 45, "random_state": 0} | params))


def naive_spikes(network, rows):
    """One unit after the other, with numbers."""
    W, W_in = network.W.toarray(), network.W_in.toarray()
    kept, moved = np.exp(-1 / network.synapse_time), 1 - np.exp(-1 / network.membrane_time)
    current, voltage = [0.0] * len(W), [network.reset] * len(W)
    silent, fired, out = [0] * len(W), [False] * len(W), []
    for u in rows:
        now = []
        for i in range(len(W)):
            arrived = sum(W[i, j] for j in range(len(W)) if fired[j])
            arrived += sum(W_in[i, k] * u[k] for k in range(len(u)))
            current[i] = kept * current[i] + arrived
            voltage[i] += moved * (network.background + current[i] - voltage[i])
            if silent[i]:
                silent[i] -= 1
                voltage[i] = network.reset
            now.append(voltage[i] >= 1)
            if now[-1]:
                voltage[i], silent[i] = network.reset, network.refractory[i]
        fired = now
        out.append(now)
    return np.array(out)


def test_spikes_are_those_of_the_equations(global_random_seed):
    model = machine(random_state=global_random_seed, recurrent_scaling=0.2).fit(X)
    for rows, spikes in zip(X[:3], model.spikes(X[:3]), strict=True):
        np.testing.assert_array_equal(spikes, naive_spikes(model.network_, rows))
        assert 0.01 < spikes.mean() < 0.5


@pytest.mark.parametrize(("excite", "inhibit"), [(3, 2), (0, 5)])
def test_units_are_silent_after_they_fired(excite, inhibit):
    model = machine(refractory_time=(excite, inhibit), input_density=1.0, inhibitory=0.4)
    spikes = model.fit([np.full((61, 1), 1e9)]).spikes([np.full((61, 1), 1e9)])[0]
    inhibits = model.network_.refractory == inhibit
    assert inhibits.sum() == 18
    for unit in range(45):
        gaps = np.diff(np.flatnonzero(spikes[:, unit]))
        silent = inhibit if inhibits[unit] else excite
        assert gaps.min() == gaps.max() == silent + 1  # no more current makes it any faster


def test_one_spike_raises_the_voltage_as_the_equation_says():
    # by hand: a unit that hears one input of strength w first reaches its threshold at step k
    for w, first in [(0.5, None), (2.0, 1), (10.0, 0)]:
        network = SpikingNetwork(
            sp.csr_array((1, 1)), sp.csr_array([[w]]), np.array([3]), 30.0, 3.0
        )
        rows = np.zeros((1, 40, 1))
        rows[0, 0] = 1
        kept, moved = np.exp(-1 / 3), 1 - np.exp(-1 / 30)
        voltage = 0.9 + moved * w * np.array([1.0, kept + 1 - moved])
        assert first is None or (voltage >= 1).argmax() == first
        spikes = network.spikes(rows)[0, :, 0]
        assert spikes.any() == (first is not None)
        assert first is None or spikes.argmax() == first


def test_connections_are_those_of_the_paper(global_random_seed):
    network = machine(n_units=450, random_state=global_random_seed).fit(X).network_
    W = network.W.toarray()
    inhibits = network.refractory == 2
    assert inhibits.sum() == 90
    assert (W[:, inhibits] <= 0).all()
    assert (W[:, ~inhibits] >= 0).all()
    assert not W.diagonal().any()
    points = np.array([(i // 9, i // 3 % 3, i % 3) for i in range(450)])
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    for sender, receiver, C, strength in [
        (False, False, 0.3, 30),
        (False, True, 0.2, 60),
        (True, False, 0.4, -19),
        (True, True, 0.1, -19),
    ]:
        block = np.ix_(inhibits == receiver, inhibits == sender)
        near = (distance[block] > 0) & (distance[block] < 4)
        expected = (C * np.exp(-((distance[block] / 2) ** 2)))[near].sum()
        found = np.count_nonzero(W[block][near])
        assert abs(found - expected) < 5 * np.sqrt(expected)
        weights = W[block][W[block] != 0]
        mean = 0.1 * strength / 15  # exponential: the standard deviation is the mean
        assert abs(weights.mean() / mean - 1) < 5 / np.sqrt(len(weights))
    heard = np.count_nonzero(network.W_in.toarray()) / (450 * 3)
    assert heard == pytest.approx(0.3, abs=0.065)


def test_activity_ends_with_the_input_unless_connections_are_strong(global_random_seed):
    burst = np.zeros((1, 300, 4))
    burst[:, :50] = np.random.default_rng(global_random_seed).random((1, 50, 4)) < 0.1

    def fires_on(scaling):
        model = LiquidStateMachine(random_state=global_random_seed, recurrent_scaling=scaling).fit(
            burst
        )
        spikes = model.spikes(burst)[0]
        assert spikes[:50].any()
        return bool(spikes[200:].any())

    assert not fires_on(0.1)
    assert fires_on(0.5)


def test_features_are_pooled_filtered_spikes():
    model = machine(pool=("last", "mean", "max"), filter_time=20.0).fit(X)
    features = model.transform(X)
    assert list(model.get_feature_names_out()[[0, 45, 134]]) == [
        "last_unit0",
        "mean_unit0",
        "max_unit44",
    ]
    for row, spikes in zip(features, model.spikes(X), strict=True):
        states = np.zeros((61, 45))
        for t, fired in enumerate(spikes):
            states[t + 1] = np.exp(-1 / 20) * states[t] + fired
        np.testing.assert_allclose(model.filtered(spikes), states[1:], atol=1e-12)
        np.testing.assert_allclose(row[:45], states[-1], atol=1e-12)
        np.testing.assert_allclose(row[45:90], states[1:].mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(row[90:], states[1:].max(axis=0), atol=1e-12)


def test_series_do_not_depend_on_those_beside_them(monkeypatch):
    ragged = [rows[: 20 + i] for i, rows in enumerate(X)]
    model = machine().fit(ragged)
    together = model.transform(ragged)
    np.testing.assert_array_equal(together, np.vstack([model.transform([rows]) for rows in ragged]))
    monkeypatch.setattr("reservoir.estimators.sequences.liquid_state_machine._BATCH_STEPS", 100)
    np.testing.assert_array_equal(model.transform(ragged), together)


def test_rows_that_are_series_and_types():
    features = machine().fit_transform(X)
    np.testing.assert_array_equal(clone(machine()).fit(X[:2]).transform(X), features)
    one = machine().fit(X[:, :, 0])  # one series per row
    np.testing.assert_array_equal(one.transform(X[:, :, 0]), machine().fit_transform(X[:, :, :1]))
    single = machine(dtype="float32").fit_transform(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, features, rtol=1e-6, atol=1e-6)


def test_errors_and_valid_values():
    for params, message in [
        ({"inhibitory": 1.5}, r"inhibitory=1.5 must be finite and in \[0, 1\]"),
        ({"membrane_time": 0}, r"membrane_time=0 must be finite and in \(0, inf"),
        ({"recurrent_scaling": -1}, "recurrent_scaling=-1 must be finite"),
        ({"refractory_time": 3}, r"refractory_time=3 must be a pair of steps"),
        ({"refractory_time": (3, -1)}, "refractory_time=-1 must be at least 0"),
        ({"pool": "quantiles"}, 'Use "last", "mean", "std", "max" or "min"'),
        ({"n_units": 0}, "n_units=0 must be at least 1"),
    ]:
        model = machine(**params)
        with pytest.raises(ValueError, match=message):
            model.fit(X)
        assert not hasattr(model, "network_")
    huge = machine(input_density=1.0).fit_transform(np.full((2, 9, 3), [1e308, -1e308, 1e308]))
    assert np.isfinite(huge).all()
    assert not machine().fit_transform(np.zeros((2, 9, 3))).any()  # the background alone is silent
    assert machine(n_units=1, input_density=0.0).fit_transform(X).shape == (24, 2)


def test_it_uses_more_than_counts(global_random_seed):
    X, y = datasets.spike_patterns(400, jitter=2, random_state=global_random_seed)

    def wrong(features):
        ridge = make_pipeline(StandardScaler(), RidgeClassifierCV(PENALTIES))
        return 1 - ridge.fit(features[:200], y[:200]).score(features[200:], y[200:])

    kept = np.exp(-1 / 30)
    alone = lfilter([1.0], [1.0, -kept], X[:, :, 0], axis=1)
    heard = wrong(LiquidStateMachine(random_state=global_random_seed).fit_transform(X))
    assert heard < 0.1
    assert heard < 0.1 * wrong(np.stack([alone[:, -1], alone.mean(axis=1)], axis=1))


# ---------------------------------------------------------------- the patterns


def test_spike_patterns():
    X, y = datasets.spike_patterns(2000, n_channels=2, random_state=0)
    assert X.shape == (2000, 200, 2)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X.sum(axis=1), 8)  # counts say nothing
    labels, counts = np.unique(y, return_counts=True)
    assert labels.tolist() == list(range(8))
    np.testing.assert_allclose(counts / 2000, 1 / 8, atol=0.04)
    np.testing.assert_array_equal(X, datasets.spike_patterns(2000, n_channels=2, random_state=0)[0])
    assert not np.array_equal(X, datasets.spike_patterns(2000, n_channels=2, random_state=1)[0])


@pytest.mark.slow
def test_spike_patterns_jitter():
    X, y = datasets.spike_patterns(200, jitter=0, random_state=0)
    for label in range(8):
        same = X[y == label]
        np.testing.assert_array_equal(same, np.broadcast_to(same[0], same.shape))
    X, y = datasets.spike_patterns(
        20_000, n_templates=2, n_spikes=1, n_steps=1000, jitter=6.0, random_state=3
    )
    times = X[:, :, 0].argmax(axis=1)
    for label in (0, 1):
        assert times[y == label].std() == pytest.approx(6.0, rel=0.05)
    X, _ = datasets.spike_patterns(50, n_steps=5, jitter=1000.0, random_state=0)
    np.testing.assert_array_equal(X.sum(axis=1), 8)


def test_errors_of_spike_patterns():
    for word in "random_state", "References":
        assert word in datasets.spike_patterns.__doc__
    with pytest.raises(ValueError, match="n_series=0 must be at least 1"):
        datasets.spike_patterns(0)
    with pytest.raises(ValueError, match="n_templates=1 must be at least 2"):
        datasets.spike_patterns(5, n_templates=1)
    with pytest.raises(ValueError, match="jitter=-1"):
        datasets.spike_patterns(5, jitter=-1)
