"""The networks of the two signature pictures: the claims of their pages for several seeds."""

import numpy as np
import pytest

from reservoir import ESNRegressor
from reservoir.building import build_reservoir
from reservoir.dynamics import Reservoir, run, step_jacobian
from reservoir.stability import certify, certify_loop, drive_range, find_limit_cycle

pytestmark = pytest.mark.one_engine


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_the_certified_cycle_attracts_within_the_proved_bands(seed):
    n_units, period = 200, 80
    phase = 2 * np.pi * np.arange(period) / period
    inputs = (np.sin(phase) + 0.4 * np.sin(2 * phase + 2.4))[:, None] / 1.4
    network = build_reservoir(
        n_units,
        1,
        topology="orthogonal",
        spectral_radius=0.99,
        leak_rate=0.3,
        input_scaling=0.2,
        bias_scaling=0.0,
        random_state=seed,
    )
    certificate = certify(network, *drive_range(network, -1.0, 1.0))
    assert certificate
    # the Euclidean norm, and no slope larger than in the box: the rate holds from the first step
    assert np.ptp(certificate.weights) == 0
    assert certificate.gains.min() >= 1
    cycle = find_limit_cycle(network, inputs, n_transient=10)
    shrinks = certificate.rate**period
    assert abs(cycle.multipliers[0]) <= shrinks < 0.8
    # the farthest starts there are: corners of the cube of states
    rng = np.random.default_rng(seed)
    for start in [np.sign(cycle.states[-1]), *rng.choice([-1.0, 1.0], (3, n_units))]:
        states = run(network, np.tile(inputs, (4, 1)), initial_state=start)
        gaps = np.linalg.norm(states - np.tile(cycle.states, (4, 1)), axis=1)
        steps = np.arange(1, 4 * period + 1)
        assert (gaps <= 2 * np.sqrt(n_units) * certificate.rate**steps).all()
        assert gaps[-1] < 0.1


def hearts(n_points):
    angle = 2 * np.pi * np.arange(n_points) / n_points
    y = 13 * np.cos(angle) - 5 * np.cos(2 * angle) - 2 * np.cos(3 * angle) - np.cos(4 * angle)
    return np.c_[16 * np.sin(angle) ** 3, y] / 16


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_loop_returns_to_its_heart(seed):
    period, n_units = 100, 200
    y = np.tile(hearts(period), (20, 1))
    esn = ESNRegressor(
        n_units,
        topology="orthogonal",
        spectral_radius=0.99,
        leak_rate=0.3,
        input_scaling=0.3,
        include_input=False,
        washout=500,
        alpha=1e-8,
        random_state=seed,
    ).fit(y[:-1], y[1:])
    network = esn.reservoir_
    assert certify(network, *drive_range(network, y.min(axis=0), y.max(axis=0)))
    assert not certify_loop(esn)  # it does not come to rest, so that nothing can prove that it does
    # The loop as a network without inputs draws what the loop of the estimator does.
    W, bias = network.W + network.W_in @ esn.coef_, network.bias + network.W_in @ esn.intercept_
    loop = Reservoir(W, np.zeros((n_units, 1)), bias, leak_rate=0.3)
    states = run(loop, np.zeros((10 * period, 1)), initial_state=run(network, y)[-1])
    drawn = states @ esn.coef_.T + esn.intercept_
    # its state has heard the last point once more than the estimator's has
    np.testing.assert_allclose(drawn[:-1], esn.forecast(10 * period)[1:], atol=1e-6)
    # Over a round all multipliers are inside the circle, but that of the phase, which is 1.
    product = np.eye(n_units)
    for state in states[-period:]:
        product = step_jacobian(loop, state, np.zeros(1)) @ product
    moduli = np.sort(np.abs(np.linalg.eigvals(product)))[::-1]
    assert moduli[0] == pytest.approx(1, abs=1e-6)
    assert moduli[1] < 0.9
    # Pushed outwards and inwards, it comes back to the curve.
    last = states[-period:]
    centre, curve = last.mean(axis=0), hearts(20000)
    for share in (0.2, 1.7):
        start = centre + share * (last[30] - centre)
        rows = run(loop, np.zeros((15 * period, 1)), initial_state=start)[-10:]
        rows = rows @ esn.coef_.T + esn.intercept_
        assert np.linalg.norm(rows[:, None] - curve, axis=2).min(axis=1).max() < 0.02
