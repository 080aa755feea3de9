"""The reference protocols, over seeds, against their published figures (docs/results/index.md)."""

import importlib.util
import inspect

import numpy as np
import pytest

from helpers import ROOT

pytestmark = pytest.mark.both_engines

SCRIPT = ROOT / "examples" / "benchmarks" / "protocols.py"
if not SCRIPT.exists():
    pytest.skip("needs the checkout", allow_module_level=True)
spec = importlib.util.spec_from_file_location("protocols", SCRIPT)
protocols = importlib.util.module_from_spec(spec)
spec.loader.exec_module(protocols)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "settings, n_units, published, std",
    [
        ("cycle with jumps", 50, 0.142, 0.014),
        ("more bias", 100, 0.111, 0.025),
        ("more bias", 200, 0.067, 0.015),
    ],
)
def test_narma10_beats_the_published_error(settings, n_units, published, std):
    params = protocols.SETTINGS[settings]
    errors = [protocols.narma10(n_units, seed, **params) for seed in range(5)]
    assert np.mean(errors) < published
    assert max(errors) < published + 2 * std


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "name, published",
    [("ring, linear", 48.8), ("ring, tanh", 45.9), ("random, 10 per row, tanh", 24.6)],
)
def test_memory_capacity_is_the_published_one_and_at_most_n(name, published):
    totals = [protocols.memory(seed, **protocols.RESERVOIRS[name]) for seed in range(10)]
    assert abs(np.mean(totals) - published) < 2 * np.std(totals)
    assert max(totals) <= 50


@pytest.mark.slow
def test_mackey_glass_free_run():
    errors = [protocols.mackey_glass_free_run(seed, 1e-10) for seed in range(5)]
    assert np.median(errors) < 1e-6
    assert max(errors) < 3e-6


@pytest.mark.slow
def test_lorenz_valid_time():
    times = [protocols.lorenz_valid_time(seed) for seed in range(5)]
    assert np.mean(times) > 6.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lorenz", "roessler"])
def test_polynomials_of_degree_4_are_ahead_on_both_flows(name):
    """As docs/results/chaos.md says: a reservoir is not the best model of these two."""
    ours, theirs = (
        [protocols.flow_valid_time(name, run, seed, **options) for seed in range(3)]
        for run, options in (
            (protocols.esn_free_run, {}),
            (protocols.polynomial_free_run, {"lags": 2, "degree": 4}),
        )
    )
    assert np.mean(theirs) > np.mean(ours) + 1
    assert np.min(theirs) > np.min(ours)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lags, degree", [(1, 2), (2, 2), (2, 3)])
def test_a_polynomial_finds_a_polynomial_map(seed, lags, degree):
    from reservoir.datasets import henon

    series = henon(420, random_state=seed)
    rows = protocols.polynomial_free_run(
        series[:401], 19, seed, lags=lags, degree=degree, alpha=1e-12
    )
    np.testing.assert_allclose(rows[:10], series[401:411], atol=1e-3)


def test_monomials():
    rows = np.array([[2.0, 3.0, 5.0]])
    expected = [1, 2, 3, 5, 4, 6, 10, 9, 15, 25]
    np.testing.assert_array_equal(protocols.monomials(rows, 2)[0], expected)
    widths = {(2, 2): 28, (3, 2): 55, (2, 3): 84, (3, 3): 220, (2, 4): 210}
    for (lags, degree), width in widths.items():
        assert protocols.monomials(np.zeros((1, 3 * lags)), degree).shape == (1, width)


@pytest.mark.slow
def test_a_fit_of_a_million_steps_needs_little_memory():
    import re
    import subprocess
    import sys

    script = SCRIPT.with_name("memory.py")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert int(re.search(r"peak (\d+) MB", run.stdout).group(1)) < 300


def test_the_peak_of_a_fit_does_not_grow_with_the_series():
    import tracemalloc

    from reservoir import ESNRegressor

    lengths, peaks = (2_000, 20_000), []
    for n_steps in lengths:
        X = np.random.default_rng(0).uniform(-1, 1, (n_steps, 1))
        esn = ESNRegressor(200, random_state=0)
        tracemalloc.start()
        esn.fit(X, X[:, 0])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    states = 8 * 200 * (lengths[1] - lengths[0])
    assert peaks[1] - peaks[0] < 0.1 * states


def test_the_peer_takes_the_settings_that_both_are_given():
    inspect.signature(protocols.reservoirpy_model).bind(500, 0, **protocols.SAME)
