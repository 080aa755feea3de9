"""The benchmarks of chaotic systems: the accuracy of the reference solutions, and the measures."""

import argparse

import numpy as np
import pytest

from helpers import benchmark_scripts
from reservoir import ESNForecaster, ESNRegressor, NVARRegressor
from reservoir.datasets import lorenz
from reservoir.dynamics import run_closed_loop

pytestmark = pytest.mark.one_engine

with benchmark_scripts():
    import _chaos_methods as methods
    import _dysts_systems as systems
    import _lorenz_truth as truth
    import chaos
    import forecasting_costs as costs


@pytest.mark.slow
def test_the_truth_holds_for_sixty_lyapunov_times():
    """Another order and step, the same start: they part only where 128 bits end."""
    used = {"order": 40, "bits": 128, "substeps": 1}
    other = {"order": 26, "bits": 128, "substeps": 2}
    assert truth.agreement(0, 70 * truth.STEPS_PER_UNIT, used, other) > 60


def test_the_truth_is_the_flow_of_lorenz():
    from scipy.integrate import solve_ivp

    rows = truth.lorenz_truth(300, 1, spin_up=0)

    def flow(_, u):
        x, y, z = u
        return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]

    times = np.arange(300) / truth.STEPS_PER_UNIT
    other = solve_ivp(
        flow, (0, times[-1]), rows[0], method="DOP853", t_eval=times, rtol=1e-13, atol=1e-13
    )
    np.testing.assert_allclose(rows, other.y.T, atol=1e-8)


@pytest.mark.slow
def test_the_exponent_is_the_published_one():
    rates = [truth.exponent(seed, 100) for seed in range(3)]
    standard_error = np.std(rates, ddof=1) / np.sqrt(3)
    assert abs(np.mean(rates) - truth.EXPONENT) < 3 * standard_error
    assert standard_error < 0.03


@pytest.mark.slow
def test_doubles_end_where_the_report_says():
    """A model that is perfect but for rounding is valid for 26 to 37 Lyapunov times."""
    for seed in range(3):
        rows = truth.lorenz_truth(2500, seed)
        found = truth.rounded_model(rows[0], 2499)
        error = np.sqrt((((found - rows[1:]) / rows.std(axis=0)) ** 2).mean(axis=1))
        valid = int((error > 0.3).argmax()) / truth.STEPS_PER_UNIT * truth.EXPONENT
        assert 24 < valid < 40


@pytest.mark.parametrize("seed", range(3))
def test_symmetric_valid_steps_against_its_definition(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 3))
    found = rows + np.linspace(0, 1, 40)[:, None] * rng.normal(size=(40, 3))
    steps = 0
    for n in range(1, 41):
        ratios = np.abs(rows[:n] - found[:n]) / (np.abs(rows[:n]) + np.abs(found[:n]))
        if 200 * ratios.mean() > 30:
            break
        steps = n
    assert 0 < steps < 40
    assert chaos.symmetric_valid_steps(rows, found) == steps
    assert chaos.symmetric_valid_steps(rows, rows) == 40
    found[steps // 2] = np.nan
    assert chaos.symmetric_valid_steps(rows, found) == steps // 2


def test_the_nearest_motif_repeats_a_period():
    t = np.arange(300)[:, None]
    rows = np.sin(2 * np.pi * t / 25 + [0.0, 1.0])
    found = methods.nearest_motif(rows[:200], 100, period=25)
    np.testing.assert_allclose(found, rows[200:], atol=1e-12)


def test_linear_autoregression_continues_with_a_linear_recurrence():
    t = np.arange(260)[:, None]
    rows = np.cos(0.3 * t) * [1.0, 2.0] + np.sin(0.7 * t + [0.1, 0.4]) + 3
    found = methods.linear_autoregression(rows[:200], 60)
    np.testing.assert_allclose(found, rows[200:], atol=1e-8)


def test_increments_are_added_up_in_closed_loop():
    """A readout that has learnt increments, with 1 added where the input goes on as it is."""
    rows = lorenz(500, random_state=0) / 10
    esn = ESNRegressor(30, n_lags=1, random_state=0).fit(rows[:-1], np.diff(rows, axis=0))
    found = methods.forecast_increments(esn, rows[-1], 20)
    coef = esn.coef_.copy()
    coef[:, -3:] += np.eye(3)  # features end with the input
    added, _ = run_closed_loop(
        esn.reservoir_,
        (coef, esn.intercept_),
        20,
        initial_state=esn.state_,
        initial_output=rows[-1],
        include_input=True,
    )
    np.testing.assert_allclose(found, added, rtol=1e-9)


def test_a_loop_that_diverges_ends_with_nan():
    rows = np.exp2(np.arange(50.0))[:, None]
    model = NVARRegressor(1, degree=1, alpha=0.0).fit(rows[:-1], np.diff(rows, axis=0))
    found = methods.forecast_increments(model, np.array([1.0]), 40)
    np.testing.assert_allclose(found[:19, 0], np.exp2(np.arange(1, 20)), rtol=1e-6)
    assert np.isnan(found[19:]).all()


@pytest.mark.slow
def test_every_method_is_measured_on_a_window():
    """No method refuses it."""
    rows = lorenz(800, random_state=0)
    system = systems.System("Lorenz", rows, truth.EXPONENT, 0.02, "given")
    options = argparse.Namespace(
        points_per_period=30, end=[400], context=250, horizon=100, noise=0.01, one=False
    )
    names = list(methods.dysts_methods(30))
    outcomes = chaos.dysts_system(system, names, options)
    assert [outcome.method for outcome in outcomes] == names
    assert {outcome.case for outcome in outcomes} == {"Lorenz 400"}
    assert not any(outcome.refusal for outcome in outcomes)
    assert all(0 <= outcome.lyapunov_times <= 100 * 0.02 * truth.EXPONENT for outcome in outcomes)


@pytest.mark.slow
def test_every_method_is_measured_on_lorenz():
    """Digits are worth as much as the tables say, already on one short series."""
    outcomes = chaos.lorenz_start(0, 2000, methods.LORENZ)
    assert [outcome.method for outcome in outcomes] == list(methods.LORENZ)
    assert not any(outcome.refusal for outcome in outcomes)
    times = {outcome.method: outcome.lyapunov_times for outcome in outcomes}
    gram, qr = "500 units of the protocol, Gram, 1e-8", "500 units of the protocol, QR, 1e-27 T"
    assert times[qr] > 1.5 * times[gram]
    assert times["ESNForecaster as it comes"] > 1.5 * times[gram]


@pytest.mark.slow
def test_costs_are_ratios_to_the_first_row(capsys):
    costs.accumulate(600)
    costs.penalties(600, 30)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.endswith(" x")]
    assert len(rows) == 2 * 4 + 4
    assert [float(row.split()[-2]) for row in rows[::2]][:4] == [1.0] * 4


def test_windows_hold_what_options_say():
    rows = lorenz(800, random_state=0)
    system = systems.System("Lorenz", rows, truth.EXPONENT, 0.02, "given")
    seen, coming = chaos.window(system, 600, 512, 100, noise=0.0, one=True)
    assert seen.shape == (512, 1)
    assert coming.shape == (100, 1)
    np.testing.assert_allclose([seen.mean(), seen.std()], [0, 1], atol=1e-12)
    back = rows[88:600, 0]
    np.testing.assert_allclose(coming[:, 0] * back.std() + back.mean(), rows[600:700, 0])
    noisy, clean = chaos.window(system, 600, 512, 100, noise=0.01, one=False)
    assert np.abs(noisy[:, 0] - seen[:, 0]).std() < 0.02
    assert clean.shape == (100, 3)


def test_a_system_of_dysts_is_integrated():
    pytest.importorskip("dysts")
    system = systems.integrate("Lorenz", 30, 60)
    assert system.rows.shape == (60, 3)
    assert system.method == "dop853 at 1e-12"
    assert 0.8 < system.exponent < 1.0


@pytest.mark.slow
def test_a_system_that_other_models_forecast_well_for_eight_rows_is_dynamics():
    pytest.importorskip("dysts")
    rows = systems.integrate("MultiChua", 30, 7420).rows[-512:]
    assert ESNForecaster(random_state=0).fit(rows).kind_ == "dynamics"
