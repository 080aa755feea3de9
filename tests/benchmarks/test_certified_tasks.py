"""The benchmark of certified networks: its tasks and its scores."""

import sys

import numpy as np
import pytest

from helpers import benchmark_scripts
from reservoir import ESNRegressor
from reservoir.datasets import lorenz
from reservoir.dynamics import Reservoir, run
from reservoir.metrics import memory_capacity, nrmse
from reservoir.stability import certify, drive_range

pytestmark = pytest.mark.both_engines

with benchmark_scripts():
    import _certified_networks as networks
    import certified_tasks as benchmark


@pytest.mark.slow
def test_what_is_certified_remembers_most():
    """The claim of the table, at a weak and at a strong drive, on one seed."""
    for drive, least in ((0.05, 2.5), (1.0, 1.15)):
        usual, proved = benchmark.memory_of("random, .9", drive, 0)
        assert not proved
        for name in ("orthogonal, .99", "ring, .99"):
            capacity, proved = benchmark.memory_of(name, drive, 0)
            assert proved
            assert capacity > least * usual


@pytest.mark.slow
def test_capacity_is_that_of_the_library():
    network = benchmark.memory_network("ring, .99", 0.2, 0)
    u = networks.memory_input(0)
    found = networks.capacity(run(network, u[:, None]), u)
    assert found == pytest.approx(memory_capacity(network, X=u, max_lag=200), rel=1e-9)


@pytest.mark.slow
def test_a_delay_line_remembers_longest_and_forgets_its_start_soonest():
    """The claim of the page: 1.6 times as much as any other network with a proof."""
    capacity, proved = benchmark.memory_of("delay line, .99", 0.2, 0)
    assert proved
    assert capacity > 97
    assert capacity > 1.6 * benchmark.memory_of("orthogonal, .99", 0.2, 0)[0]
    line = benchmark.memory_network("delay line, .99", 0.2, 0)
    assert certify(line, *drive_range(line, -1, 1)).steps_to(1e-6) == 110


@pytest.mark.slow
def test_lags_are_the_latest_inputs():
    """Without weights the states are the bias alone: the readout has inputs and nothing else."""
    nothing = Reservoir(np.zeros((2, 2)), np.zeros((2, 1)), np.zeros(2))
    one, six = (
        networks.task_errors(nothing, 0, [1e-10], ["uniform"], n_lags)["sin(pi u(t-5))"][0]
        for n_lags in (1, 6)
    )
    assert six < 0.7 < 0.99 < one


def test_noise_inside_enters_the_recurrence_and_noise_that_is_seen_does_not():
    network = benchmark.memory_network("random, .9", 0.2, 0)
    u = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    clean = run(network, u)
    inside = networks.noisy_states(network, u, 0, seen=0.0, inner=1e-3)
    seen = networks.noisy_states(network, u, 0, seen=1e-3, inner=0.0)
    before = np.arctanh(inside[1:]) - inside[:-1] @ network.W.T - u[1:] @ network.W_in.T
    for noise in (before, seen - clean):
        assert noise.std() == pytest.approx(1e-3, rel=0.02)
    assert (inside - clean).std() > 1.2e-3  # what came in goes on


@pytest.mark.slow
def test_targets_are_what_they_are_called():
    drawn = networks.draw_tasks(3)
    u, y = drawn["uniform"]
    np.testing.assert_array_equal(y[8:, 0], np.sin(np.pi * u[3:-5, 0]))
    np.testing.assert_array_equal(y[8:, 1], u[3:-5, 0] * u[:-8, 0])
    u, y = drawn["mackey_glass"]
    np.testing.assert_array_equal(y[:-84, 0], u[84:, 0])
    u, y = drawn["lorenz"]
    np.testing.assert_array_equal(y[:-25, 0], u[25:, 0])
    orbit = lorenz(len(u) + 25, random_state=3)[: len(u)]
    np.testing.assert_array_equal(y[:, 1], orbit[:, 2])
    assert abs(np.corrcoef(u[:, 0], orbit[:, 0])[0, 1]) == pytest.approx(1)
    u, y = drawn["narma"]
    past = 0.3 * y[9:-1, 0] + 0.05 * y[9:-1, 0] * sum(
        y[9 - k : len(y) - 1 - k, 0] for k in range(10)
    )
    v = (u[:, 0] + 1) / 4
    np.testing.assert_allclose(y[10:, 0], past + 1.5 * v[1:-9] * v[10:] + 0.1)
    assert all(np.abs(u).max() <= 1 for u, _ in drawn.values())


@pytest.mark.slow
@pytest.mark.parametrize("source", ["narma", "lorenz"])
def test_errors_are_those_of_the_estimator(source):
    kind = networks.KINDS["orthogonal"]
    params = networks.parameters(kind, networks.draw_settings(1)[0])
    found = networks.task_errors(networks.build(params, 30, 1, 5), 5, [1e-6, 1e-2], [source])
    u, Y = networks.draw_tasks(5)[source]
    n_fit = networks.WASHOUT + networks.N_TRAIN
    for column, alpha in enumerate((1e-6, 1e-2)):
        esn = ESNRegressor(30, alpha=alpha, washout=networks.WASHOUT, random_state=5, **params)
        rows = esn.fit(u[:n_fit], Y[:n_fit]).predict(u[n_fit:])
        for k, task in enumerate(networks.TASKS[source]):
            assert found[task][column] == pytest.approx(nrmse(Y[n_fit:, k], rows[:, k]), rel=1e-4)


def test_the_search_takes_the_least_and_leaves_out_what_is_not_proved():
    """The better a setting the larger its radius: the best are at the ends of what is allowed."""
    first = networks.draw_settings(1)[0]
    settings = [first | {"radius": share, "in_degree": 10} for share in (0.0, 0.5, 1.0)]

    def score(network, seed):
        return {"task": [0.0, -float(abs(network.W).sum())]}

    best = {
        kind: benchmark.best_settings(kind, settings, [1.0, 2.0], score, (100, 1), 1)["task"]
        for kind in ("ring", "random, as drawn", "random, proved as drawn")
    }
    assert all(alpha == 2.0 for _, alpha in best.values())
    radii = {kind: params["spectral_radius"] for kind, (params, _) in best.items()}
    wanted = {"ring": 0.99, "random, as drawn": 1.3, "random, proved as drawn": 0.55}
    assert radii == pytest.approx(wanted)


@pytest.mark.slow
def test_a_free_run_of_lorenz_is_measured():
    kind = networks.KINDS["ring"]
    setting = networks.draw_settings(1)[0] | {"input_scaling": 0.3, "leak_rate": 1.0}
    network = networks.build(networks.parameters(kind, setting), 100, 3, 0)
    short, long = networks.valid_times(network, 0, [1e2, 1e-8], n_starts=2)
    assert 0 <= short < 1 < long < 14.6


@pytest.mark.slow
def test_the_command_prints_its_tables(capsys, monkeypatch):
    benchmark.memory_network.cache_clear()
    monkeypatch.setattr(sys, "argv", ["certified_tasks.py", "--seeds", "1", "--settings", "1"])
    # less of all than the figures on the page are measured with
    small = {"DRIVES": (0.05, 1.0), "SEARCH_SEEDS": (100,), "FREE_UNITS": 30}
    for name, value in small.items():
        monkeypatch.setattr(benchmark, name, value)
    monkeypatch.setattr(benchmark, "build", lambda params, _, *of: networks.build(params, 30, *of))
    monkeypatch.setattr(networks, "N_MEMORY", 500)
    benchmark.main()
    printed = capsys.readouterr().out
    for name, kind in networks.KINDS.items():
        runs_free = kind.n_lags == 1 and kind.topology != "delay_line"
        assert printed.count(f"\n{name:26s}") == (4 if runs_free else 2)
    for name in benchmark.MEMORIES:
        assert f"\n{name:46s}" in printed
    benchmark.memory_network.cache_clear()  # those are small
