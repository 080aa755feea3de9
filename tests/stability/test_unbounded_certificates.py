"""Certificates of networks with unbounded units: proved by slopes alone, for every drive."""

import numpy as np
import pytest

from reservoir import plotting
from reservoir.activations import ACTIVATIONS
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run
from reservoir.estimators import ESNRegressor
from reservoir.stability import certify, largest_certified

UNBOUNDED = ("relu", "leaky_relu", "softplus", "identity")
pytestmark = pytest.mark.one_engine


@pytest.mark.parametrize("name", UNBOUNDED)
def test_enclosures_hold_the_function_and_its_slope(name):
    activation, rng = ACTIVATIONS[name], np.random.default_rng(0)
    low = rng.normal(scale=3, size=2000)
    high = low + 10 ** rng.uniform(-6, 1, 2000)
    below, above = activation.enclosure.values(low, high)
    least, largest = activation.enclosure.slopes(low, high)
    for dtype in (np.float64, np.float32):
        share = 0.0 if dtype is np.float64 else 3e-7
        for t in np.linspace(0, 1, 9):
            z = (low + t * (high - low)).astype(dtype)
            value = activation.function(z).astype(float)
            assert (below - share * (1 + np.abs(low)) <= value).all()
            assert (value <= above + share * (1 + np.abs(high))).all()
            slope = activation.derivative(z).astype(float)
            inside = (low <= z) & (z <= high)
            assert ((least - share <= slope) & (slope <= largest + share))[inside].all()
    ends = activation.enclosure.slopes(np.array([-np.inf]), np.array([np.inf]))
    assert [float(end[0]) for end in ends] == pytest.approx(
        [activation.derivative(np.array([-800.0]))[0], 1.0], abs=1e-8
    )
    assert not activation.enclosure.bounded


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", UNBOUNDED)
@pytest.mark.parametrize("leak", [1.0, 0.3])
def test_what_the_numerical_radius_allows_is_certified_and_forgets(name, leak):
    """Where the norm is far above 1 and the slopes may be anything in [0, 1]."""
    reservoir = build_reservoir(
        60, 1, in_degree=10, spectral_radius=0.68, activation=name, leak_rate=leak, random_state=0
    )
    assert not certify(reservoir, -1, 1, method="two_norm")
    found = certify(reservoir, -1, 1, method="lyapunov")
    assert found
    assert found.rate < 1
    assert found.resolution is None
    assert np.isinf(found.box[1]).all()
    assert certify(reservoir, -1, 1)
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-50, 50, (int(np.log(1e-12) / np.log(found.rate)), 1))
    starts = rng.normal(size=(3, 60)) * 10
    ends = [run(reservoir, inputs, initial_state=start)[-1] for start in starts]
    assert np.ptp(ends, axis=0).max() < 1e-8 * np.abs(ends).max()


def test_linear_networks_are_certified_up_to_radius_one():
    W = np.array([[0.0, 50.0], [-0.018, 0.0]])  # norm 50, radius .949
    linear = Reservoir(W, np.ones((2, 1)), np.zeros(2), activation="identity")
    assert certify(linear, -1, 1, method="lyapunov")
    value, found = largest_certified(linear, -1, 1, method="lyapunov")
    assert found
    assert 0.99 < value < 1
    relu = Reservoir(W, np.ones((2, 1)), np.zeros(2), activation="relu")
    assert certify(relu, -1, 1)
    assert not certify(Reservoir(1.06 * W, np.ones((2, 1)), np.zeros(2), activation="relu"), -1, 1)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_diverges_is_never_certified(name):
    rng = np.random.default_rng(1)
    n_refused = 0
    for _ in range(12):
        n = int(rng.integers(1, 5))
        W = np.abs(rng.normal(size=(n, n)))  # non-negative: all slopes may be 1 at once
        W *= rng.uniform(0.5, 1.5) / np.abs(np.linalg.eigvals(W)).max()
        reservoir = Reservoir(W, np.ones((n, 1)), np.zeros(n), activation=name)
        for method in ("max_norm", "two_norm", "series", "lyapunov", "thorough"):
            found = certify(reservoir, -1, 1, method=method)
            if np.abs(np.linalg.eigvals(W)).max() >= 1:
                assert not found
                n_refused += 1
    assert n_refused > 15


def test_a_network_of_relus_keeps_its_bias_and_needs_no_box():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 1))
    given = {"activation": "relu", "bias": "stable", "random_state": 0}
    kept = ESNRegressor(40, topology="orthogonal", spectral_radius=0.95, **given).fit(X, X[:, 0])
    assert kept.certificate_
    with pytest.raises(ValueError, match=r"'relu' is unbounded.*orthogonal"):
        ESNRegressor(40, spectral_radius=1.5, **given).fit(X, X[:, 0])
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="box"):
        plotting.certificate(kept.certificate_)


def test_no_number_of_steps_is_proved_without_a_box():
    found = certify(Reservoir([[0.5]], [[1.0]], [0.0], activation="relu"), -1, 1)
    with pytest.raises(ValueError, match="bounded"):
        found.steps_to(0.1)
