"""Cycles of closed loops: closed curves whose multipliers are known, whole steps, refusals."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from reservoir import ESNRegressor, NVARRegressor, force_train
from reservoir.datasets import henon
from reservoir.stability import LimitCycleError, LoopCycle, find_loop_cycle, loop_exponents
from reservoir.stability.measures import _cycle_search, _loop_cycles, _multipliers

pytestmark = pytest.mark.both_engines


def fitted(model, *sequences):
    return model.fit([rows[:-1] for rows in sequences], [rows[1:] for rows in sequences])


def spiral(turn, gain=0.02, n=400, start=(0.3, 0.0)):
    """Rows that turn by an angle and approach the unit circle: the radius r -> r (1 + g - g r^2).

    The period is 2 pi / turn, and a deviation from the circle is multiplied by 1 - 2 g per step.
    """
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    rows = [np.array(start)]
    for _ in range(n):
        rows.append((1 + gain - gain * rows[-1] @ rows[-1]) * matrix @ rows[-1])
    return np.array(rows)


def cubic(rows, make=lambda model: model):
    return make(NVARRegressor(n_lags=1, degree=3, alpha=0)).fit(rows[:-1], rows[1:])


def wave(n=600, period=25.5):
    return np.sin(2 * np.pi * np.arange(n) / period)[:, None]


def small(**changes):
    options = {"n_units": 30, "n_lags": 1, "alpha": 1e-6, "random_state": 0}
    return ESNRegressor(**(options | changes))


# --- closed curves whose period and multipliers are known ---------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("period", [300.7, 63.2, 20.0, 25.0000001])
def test_a_cubic_map_has_the_cycle_of_its_equation(period):
    cycle = find_loop_cycle(cubic(spiral(2 * np.pi / period)))
    assert isinstance(cycle, LoopCycle)
    assert cycle.period == pytest.approx(period, rel=1e-6)
    assert cycle.multipliers[0] == 1
    assert cycle.multipliers[1].real == pytest.approx(0.96**period, rel=1e-3, abs=1e-10)
    assert len(cycle.multipliers) == 2
    assert cycle.stable
    assert cycle.residual < 1e-12
    np.testing.assert_allclose(np.linalg.norm(cycle.outputs, axis=1), 1, atol=1e-6)
    assert len(cycle.outputs) == len(cycle.states) == np.ceil(cycle.period) + 1


def test_interpolation_is_as_accurate_as_stated():
    for period, error in ((60.5, 1e-10), (20.3, 2e-7), (10.3, 5e-5)):
        outputs = find_loop_cycle(cubic(spiral(2 * np.pi / period)), n_transient=200).outputs
        assert abs(np.linalg.norm(outputs[0]) - 1) < error
    with pytest.raises(LimitCycleError, match=r"turns in 6\.3 steps; at least 8 are required"):
        find_loop_cycle(cubic(spiral(2 * np.pi / 6.3)))


def test_a_cycle_of_a_pipeline_is_in_the_units_of_y():
    rows = [5.0, -200.0] + [0.1, 30.0] * spiral(0.1)
    plain, scaled = cubic(rows), cubic(rows, lambda m: make_pipeline(StandardScaler(), m))
    mixed = cubic(rows, lambda m: make_pipeline(MinMaxScaler((-1, 2)), m))
    cycles = [find_loop_cycle(model, n_transient=100) for model in (plain, scaled, mixed)]
    for cycle in cycles:
        assert cycle.period == pytest.approx(20 * np.pi, rel=1e-6)
        radius = np.linalg.norm((cycle.outputs - [5.0, -200.0]) / [0.1, 30.0], axis=1)
        np.testing.assert_allclose(radius, 1, atol=1e-5)
        np.testing.assert_array_equal(cycle.states[:, -2:], cycle.outputs)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))  # few other loops settle too slowly for a cycle
@pytest.mark.parametrize("n_lags", [1, 3])
def test_rows_of_a_cycle_are_states_and_outputs_of_the_loop(n_lags, seed):
    model = small(n_units=50, n_lags=n_lags, random_state=seed)
    model.fit(wave()[:-1], wave()[1:])
    cycle = find_loop_cycle(model)
    assert cycle.period == pytest.approx(25.5, rel=1e-2)
    assert cycle.states.shape == (np.ceil(cycle.period) + 1, model.state_.size + 1)
    # the loop continues from a row as forecast does from its outputs
    after, before = cycle.outputs[1 - len(cycle.outputs) :], cycle.states[0]
    rows = model.forecast(len(after), context=before[-1:, None], initial_state=cycle.states[0, :-1])
    np.testing.assert_allclose(rows, after, atol=1e-8)


def test_a_loop_through_feedback_weights_has_a_cycle():
    options = {"feedback": True, "leak_rate": 0.3, "alpha": 0.1}
    model = force_train(small(n_units=50, **options), wave(900, 40.5)[:, 0], n_test=0)
    cycle = find_loop_cycle(model)
    assert cycle.period == pytest.approx(40.5, rel=1e-2)
    assert cycle.states.shape[1] == 51
    assert cycle.stable


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("period", [25.5, 25.37])
def test_a_linear_oscillator_has_the_cycle_of_its_run(period):
    model = NVARRegressor(n_lags=2, degree=1, alpha=0)
    rows = wave(300, period)
    cycle = find_loop_cycle(model.fit(rows[:-1], rows[1:]))
    assert cycle.period == pytest.approx(period, rel=1e-6)
    assert not cycle.stable
    assert abs(cycle.multipliers[1]) == pytest.approx(1, abs=1e-6)
    assert np.abs(cycle.outputs).max() > 0.99


def van_der_pol(mu, start, n):
    def slope(_, s):
        return [s[1], mu * (1 - s[0] ** 2) * s[1] - s[0]]

    options = {"t_eval": 0.1 * np.arange(n + 1), "rtol": 1e-10, "atol": 1e-11, "method": "DOP853"}
    return solve_ivp(slope, (0, 0.1 * n), start, **options).y.T


def check_van_der_pol(mu, period, multiplier, n_lags, seed, n_units=200):
    radii, turns = np.linspace(0.5, 3.5, 12), 2.4 * np.arange(12)
    starts = np.c_[radii * np.cos(turns), radii * np.sin(turns)]
    cycle = van_der_pol(mu, [2, 0], 1500)[500:]
    model = ESNRegressor(
        n_units, n_lags=n_lags, input_scaling=0.5, alpha=1e-10, washout=20, random_state=seed
    )
    fitted(model, *(van_der_pol(mu, start, 300) for start in starts), cycle)
    found = find_loop_cycle(model, context=cycle)
    assert found.period == pytest.approx(period, rel=1e-5)
    assert found.multipliers[1] == pytest.approx(multiplier, rel=0.01)
    assert found.stable
    assert found.residual < 1e-12
    return model, cycle


@pytest.mark.slow_cases("values")
@pytest.mark.parametrize(
    "mu, period, multiplier", [(0.3, 63.184432, 0.148650), (0.4, 63.457433, 0.077033)]
)
@pytest.mark.parametrize("n_lags", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_network_has_the_cycle_of_van_der_pol(mu, period, multiplier, n_lags, seed):
    check_van_der_pol(mu, period, multiplier, n_lags, seed)


@pytest.mark.slow
def test_a_small_network_has_the_cycle_of_van_der_pol():
    model, context = check_van_der_pol(0.3, 63.184432, 0.148650, 1, 0, n_units=100)
    exponents = loop_exponents(model, 2, 630, context=context, washout=200, random_state=0)
    assert np.exp(63.184 * exponents[1]) == pytest.approx(0.14865, rel=0.05)


def test_large_networks_form_no_matrix(monkeypatch):
    model = small(n_lags=2).fit(wave()[:-1], wave()[1:])
    dense = find_loop_cycle(model)
    monkeypatch.setattr(_cycle_search, "NEWTON_UNITS", 10)
    monkeypatch.setattr(_multipliers, "DENSE_UNITS", 10)
    thin = find_loop_cycle(model)
    assert len(thin.multipliers) == 10
    assert thin.period == pytest.approx(dense.period, abs=1e-9)
    np.testing.assert_allclose(
        np.abs(thin.multipliers[:3]), np.abs(dense.multipliers[:3]), atol=1e-6
    )


# --- loops at rest, and cycles of whole steps ---------------------------------------------------


@pytest.mark.parametrize("r, period, multiplier", [(2.8, 1, -0.8), (3.2, 2, 0.16), (3.5, 4, -0.03)])
def test_the_logistic_map_has_cycles_of_whole_steps(r, period, multiplier):
    x = [0.3]
    for _ in range(30):
        x.append(r * x[-1] * (1 - x[-1]))
    X = np.array(x)[:, None]
    cycle = find_loop_cycle(NVARRegressor(n_lags=1, degree=2, alpha=0).fit(X[:-1], X[1:]))
    assert cycle.period == period
    assert cycle.outputs.shape == cycle.states.shape == (period + 1, 1)
    assert cycle.outputs[-1] == pytest.approx(cycle.outputs[0], abs=1e-12)
    assert cycle.multipliers[0].real == pytest.approx(multiplier, abs=1e-3)
    assert cycle.stable


def test_a_decaying_loop_has_a_fixed_point():
    rows = 0.95 ** np.arange(200)[:, None] * wave(200, 30) + 3
    model = NVARRegressor(n_lags=2, degree=1, alpha=0).fit(rows[:-1], rows[1:])
    cycle = find_loop_cycle(model)
    assert cycle.period == 1
    np.testing.assert_allclose(cycle.outputs, 3, atol=1e-6)
    np.testing.assert_allclose(np.abs(cycle.multipliers[:2]), 0.95, atol=1e-6)


# --- refusals -----------------------------------------------------------------------------------


def test_several_sequences_need_a_context():
    model = fitted(small(), wave(300), wave(200))
    with pytest.raises(ValueError, match="forecast needs a context"):
        find_loop_cycle(model)
    assert find_loop_cycle(model, context=wave(100)).period == pytest.approx(25.5, rel=1e-2)


def test_a_chaotic_loop_tells_its_exponent(monkeypatch):
    monkeypatch.setattr(_loop_cycles, "_OBSERVED", (1000,))
    X = henon(1000)
    model = NVARRegressor(n_lags=1, degree=2).fit(X[:-1], X[1:])
    with pytest.raises(LimitCycleError, match=r"miss by .* first exponent is 0\.4\d* per step"):
        find_loop_cycle(model)


def test_a_loop_that_settles_too_slowly_is_told(monkeypatch):
    monkeypatch.setattr(_loop_cycles, "_OBSERVED", (1000,))
    model = cubic(spiral(0.1, gain=1e-6, n=2000))
    with pytest.raises(LimitCycleError, match=r"after 62\.8\d*, 62\.8\d* steps, miss by"):
        find_loop_cycle(model, n_transient=0)


def test_a_loop_without_return_is_told():
    rows = 1 - 0.9999 ** np.arange(300.0)[:, None]
    model = NVARRegressor(n_lags=1, degree=1, alpha=0).fit(rows[:-1], rows[1:])
    with pytest.raises(LimitCycleError, match=r"crossed its mean upwards [01] times in 8000 steps"):
        find_loop_cycle(model, n_transient=0)


def test_a_loop_that_diverges_names_its_step():
    rows = 1.1 ** np.arange(60.0)[:, None]
    model = NVARRegressor(n_lags=1, degree=1, alpha=0).fit(rows[:-1], rows[1:])
    for n_transient in (0, 10_000):
        with pytest.raises(LimitCycleError, match=r"diverged at step 36\d\d: .* A larger alpha"):
            find_loop_cycle(model, n_transient=n_transient)


def test_other_models_are_refused():
    with pytest.raises(TypeError, match="must be a fitted estimator"):
        find_loop_cycle("esn")
    with pytest.raises(ValueError, match="n_transient=-1"):
        find_loop_cycle(small(), n_transient=-1)
    with pytest.raises(ValueError, match="Exponents and cycles need a closed loop without other"):
        find_loop_cycle(small().fit(np.c_[wave(), wave()][:-1], wave()[1:]))
