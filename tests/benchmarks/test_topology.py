"""The benchmark of topologies: it varies only the topology, and compares like with like."""

import numpy as np
import pytest

from helpers import benchmark_scripts
from reservoir import ESNForecaster
from reservoir.datasets import lorenz
from reservoir.scaling import spectral_radius

pytest.importorskip("pandas")
pytestmark = pytest.mark.one_engine

with benchmark_scripts():
    import _topology_tasks as tasks
    import topology


@pytest.fixture
def forecaster_networks(monkeypatch):
    """Every reservoir that ESNForecaster builds, under the contender that is set last."""
    built = []

    def noted(*args, **settings):
        built.append(build(*args, **settings))
        return built[-1]

    build = tasks.build_reservoir
    for module in (tasks.loop_design, tasks.recursive_ridge):
        monkeypatch.setattr(module, "build_reservoir", build)  # put back when the test is over
    monkeypatch.setattr(tasks, "build_reservoir", noted)
    return built


def forecast():
    search = [{"n_units": 20, "spectral_radius": radius} for radius in (0.3, 0.8)]
    model = ESNForecaster(search=search, n_networks=1, random_state=0)
    return model.fit(lorenz(100, random_state=0)).forecast(20)


def test_the_default_contender_is_the_forecaster_as_it_comes(forecaster_networks):
    as_it_comes = forecast()
    assert not forecaster_networks
    tasks.built_with(tasks.CONTENDERS[topology.DEFAULT])
    np.testing.assert_array_equal(forecast(), as_it_comes)
    assert forecaster_networks


def test_other_contenders_change_the_topology_and_the_longest_memory(forecaster_networks):
    tasks.built_with(tasks.CONTENDERS["ring at .99"])
    forecast()
    radii = {}
    for network in forecaster_networks:
        radii.setdefault(round(spectral_radius(network.W), 9), []).append(network)
    assert {0.0, 0.3, 0.99} < set(radii)
    assert max(radii) == 0.99
    assert all(net.W.nnz == net.n_units for r, nets in radii.items() if r for net in nets)


def records(losses):
    """Return records of problem -> losses by seed, in two groups."""
    return [
        tasks.Record(group, problem, seed, loss, loss)
        for group in ("one", "two")
        for problem, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds)
    ]


def test_losses_are_compared_by_problem_and_seed():
    default = records({"a": [1.0, 10.0, 100.0], "b": [2.0, 2.0, 2.0]})
    own = records({"b": [1.0, 1.0, 2.0], "a": [2.0, 20.0, 800.0]})  # in another order
    ratios = topology.log_ratios(own, default)
    np.testing.assert_allclose(np.exp(sorted(topology.within("one", ratios))), [0.5, 2.0])
    means = [2 ** (-2 / 3), 2 ** (5 / 3)]
    np.testing.assert_allclose(np.exp(sorted(topology.over_bank(ratios))), means)


def test_a_single_problem_is_compared_by_seed():
    ratios = topology.log_ratios(records({"a": [1.0, 2.0, 6.0]}), records({"a": [1.0, 1.0, 2.0]}))
    np.testing.assert_allclose(np.exp(topology.within("two", ratios)), [1.0, 2.0, 3.0])


def test_verdicts_ask_for_more_than_chance():
    logs = np.random.default_rng(0).normal(size=40)
    assert topology.verdict(logs) == "no clear difference"
    assert topology.verdict(np.zeros(40)) == "no clear difference"
    assert topology.verdict(logs - 1.0) == "better"
    assert topology.verdict(logs + 1.0) == "worse"


def test_the_default_falls_only_where_a_topology_is_better_on_every_bank(capsys):
    names = [name for name in tasks.CONTENDERS if name != topology.DEFAULT]
    said = {bank: dict.fromkeys(names, "better") for bank in ("protocols", "chaos")}
    said["sequences"] = dict.fromkeys(names, "worse")  # whose default is another one
    topology.conclude(said)
    assert "better than random, 10 per row on every bank: orthogonal," in capsys.readouterr().out
    said["chaos"] = dict.fromkeys(names, "no clear difference")
    topology.conclude(said)
    assert "the default stays" in capsys.readouterr().out
