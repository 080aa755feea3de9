"""The benchmarks of streams with drift: their tasks and their measures."""

import numpy as np
import pytest

from helpers import benchmark_scripts

pytestmark = pytest.mark.one_engine

with benchmark_scripts():
    import _drift_methods as methods
    import _drift_tasks as tasks
    import drift
    import online

SIZE = {"n_units": 20, "n_fit": 200, "n_rows": 150}


def test_tasks_are_drawn_from_their_seeds_and_standardised():
    for name in tasks.TASKS:
        one, again, other = (tasks.draw(name, seed, 200, 300) for seed in (3, 3, 4))
        assert one.X.shape == (500, 1)
        assert one.y.shape == (500,)
        np.testing.assert_array_equal(one.y, again.y)
        assert not np.array_equal(one.y, other.y)
        np.testing.assert_allclose([one.y[:200].mean(), one.y[:200].std()], [0, 1], atol=1e-12)


def test_the_constant_plant_is_the_only_one_that_one_fit_is_good_for():
    """Least squares on products of lags knows the plant; after a drift it does not."""
    for name in ("constant", "jump", "creep", "season", "sensor scale"):
        task = tasks.draw(name, 0, 2000, 2000)
        lagged = np.lib.stride_tricks.sliding_window_view(task.X[:, 0], tasks.N_LAGS)
        i, j = np.triu_indices(tasks.N_LAGS)
        H = np.hstack([np.ones((len(lagged), 1)), lagged, lagged[:, i] * lagged[:, j]])
        y = task.y[tasks.N_LAGS - 1 :]
        coef = np.linalg.lstsq(H[:1900], y[:1900], rcond=None)[0]
        part = slice(2500, 4000) if name == "sensor scale" else slice(3000, 4000)
        error = np.std(y[part] - H[part] @ coef) / np.std(y[part])
        assert (error < 0.6) == (name == "constant"), (name, error)


def test_mackey_glass_is_that_of_the_data_sets():
    """Before its delay changes; Heun's steps are good to 1e-3 for a while."""
    from reservoir.datasets import mackey_glass

    class Still(np.random.Generator):
        def uniform(self, *args):
            return 0.0

    found = tasks._mackey_glass(np.full(20, 17.0), Still(np.random.PCG64(0)), run_up=0)
    wanted = mackey_glass(121, washout=0)[6::6, 0]
    np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_without_forgetting_all_ways_are_one_ridge_on_all_rows(global_random_seed):
    """Each has its own sums, states and order of predicting and learning: errors must be equal."""
    task = tasks.draw("creep", global_random_seed, 200, 300)
    made = methods.ways({**drift.SETTINGS, "forgetting": 1.0, "window": 10_000})
    alike = [name for name in made if name.endswith(("learn, forgetting 1", "Squares, 1"))]
    errors = {
        name: drift.prequential(task, made[name], 20, global_random_seed, 50)[0]
        for name in ("fit once", "partial_fit", "SlidingWindow", methods.REFERENCE, *alike)
    }
    assert len(alike) == 2
    for name in ("SlidingWindow", methods.REFERENCE, *alike):
        np.testing.assert_allclose(errors[name], errors["partial_fit"], atol=1e-6, err_msg=name)
    # the others have learned meanwhile
    assert np.abs(errors["fit once"] - errors["partial_fit"]).max() > 0.1


def test_the_table_has_all_methods_relative_to_the_reference():
    made = {
        name: make
        for name, make in methods.ways(drift.SETTINGS).items()
        if name in (methods.REFERENCE, "LMS", "fit once") or "lags" in name
    }
    errors = drift.measure(made, ["jump", "new regime"], range(2), chunk=25, **SIZE)
    table = drift.relative(errors)
    assert table["fit once"]["jump"][0] == pytest.approx(
        np.mean(np.divide(errors["fit once"]["jump"], errors[methods.REFERENCE]["jump"]))
    )
    assert 0 < table[methods.REFERENCE]["jump"][0] == np.mean(errors[methods.REFERENCE]["jump"])
    assert np.isfinite([list(row.values()) for row in table.values()]).all()
    assert len(drift.lines(errors)) == len(made) + 1


@pytest.mark.slow
def test_settings_are_chosen_among_values(capsys):
    drift.print_choices([100], ["lags"], chunk=50, **SIZE)
    printed = capsys.readouterr().out
    assert f"{drift.SETTINGS['lags']:g} " in printed
    assert "nan" not in printed


def test_every_way_has_a_cost(capsys):
    found = online.table(15, 25, [""], 1)
    assert len(found) >= 7
    assert min(found.values()) > 0
    assert len(capsys.readouterr().out.splitlines()) >= len(found) + 2


def test_a_long_stream_is_reported_ten_times():
    found = online.long_stream(200, 10, 0.99, 3)
    assert [rows for rows, _, _ in found] == list(range(20, 201, 20))
    assert np.isfinite(found).all()
