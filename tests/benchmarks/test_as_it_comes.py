"""The benchmark of default settings: its tasks and its scores."""

import sys

import numpy as np
import pytest

from helpers import benchmark_scripts
from reservoir import ESNRegressor

pytestmark = pytest.mark.one_engine

with benchmark_scripts():
    import _open_models as models
    import _open_tasks as tasks
    import as_it_comes as benchmark

SLOW = ("lorenz", "roessler", "30000")  # to draw


def test_two_thirds_are_there_to_choose_by_and_every_kind_is_in_both_parts():
    n_chosen, n_reported, n_apart = (
        sum(len(names) for part in parts for names in part.values())
        for parts in ([tasks.CHOOSE], [tasks.REPORT], tasks.APART.values())
    )
    assert n_chosen + n_reported >= 36
    assert n_reported == pytest.approx((n_chosen + n_reported) / 3, abs=1)
    assert tasks.CHOOSE.keys() == tasks.REPORT.keys()
    assert len(tasks.TASKS) == n_chosen + n_reported + n_apart


def arrays_of(task):
    if isinstance(task, tasks.FreeRun):
        return [task.series, *task.truths]
    return [*task.X, *task.y, *task.X_new, *task.y_new, *(task.last or [])]


QUICK = [n for n in tasks.TASKS if not any(word in n for word in SLOW)]


@pytest.mark.fast_cases(20)
@pytest.mark.parametrize(
    "name", [n for n in QUICK if not n.startswith("real") or n.endswith("+12")]
)
def test_tasks_are_drawn_from_their_seeds(name):
    draw = tasks.TASKS[name].draw
    one, again, other = draw(3), draw(3), draw(4)
    for mine, same in zip(arrays_of(one), arrays_of(again), strict=True):
        np.testing.assert_array_equal(mine, same)
        assert mine.ndim == 2
        assert np.isfinite(mine).all()
    assert not np.array_equal(arrays_of(one)[-1], arrays_of(other)[-1])
    if isinstance(one, tasks.Rows):
        for X, y in ((one.X, one.y), (one.X_new, one.y_new)):
            assert [len(rows) for rows in X] == [len(rows) for rows in y]
        large = np.abs(np.concatenate(one.X)).max() > 10
        assert one.scaled == large or name.startswith(("co2 differences", "real"))


@pytest.mark.parametrize("law, correlation", [("white", 0.0), ("AR", 0.9)])
def test_what_is_scored_is_clean(law, correlation, global_random_seed):
    """The noise is as large as it is called, and as autocorrelated, on the rows to learn from."""
    clean, noisy = (
        tasks.filter_rows("hammerstein", 4000, noise, global_random_seed)
        for noise in (None, (law, 0.5))
    )
    np.testing.assert_array_equal(clean.X[0], noisy.X[0])
    np.testing.assert_array_equal(clean.y_new[0], noisy.y_new[0])
    noise = noisy.y[0][:, 0] - clean.y[0][:, 0]
    assert noise.std() == pytest.approx(0.5 * clean.y[0].std(), rel=0.3)
    assert np.corrcoef(noise[1:], noise[:-1])[0, 1] == pytest.approx(correlation, abs=0.1)


def test_targets_are_rows_that_follow(global_random_seed):
    task = tasks.flow_ahead("henon", 3, 50, None, global_random_seed, n_columns=None)
    x, y = (np.concatenate([a[0], b[0]]) for a, b in ((task.X, task.X_new), (task.y, task.y_new)))
    np.testing.assert_array_equal(y[:-3, 0], x[3:, 0])
    np.testing.assert_array_equal(task.last[0], task.X_new[0][:, :1])
    run = tasks.flow_run("logistic", 50, 20, 5, global_random_seed, noise=("white", 0.1))
    assert run.origins == [50, 250, 450]
    for origin, truth in zip(run.origins, run.truths, strict=True):
        noise = run.series[origin : origin + 20] - truth
        assert 0 < noise.std() < 0.3


# --- scores ---------------------------------------------------------------------------------------


def test_scores_of_rows():
    task = tasks.narma_rows(10, 50, ("white", 1.0), 0)
    (truth,) = task.y_new
    perfect = models.score(task, [truth], 2.0)
    assert perfect == models.Score(1.0, None, 2.0)
    assert perfect.loss == models.LEAST_LOSS
    half = models.score(task, [truth + 0.5 * truth.std()], 0.0)
    assert half.r2 == pytest.approx(0.75)
    assert half.loss == pytest.approx(0.5)
    astray = models.score(task, [np.full_like(truth, np.nan)], 0.0)
    assert (astray.r2, astray.loss) == (models.WORST_R2, models.MOST_LOSS)
    assert models.score_model("bilinear, 60, white .1", 0, models.MEAN, None).r2 <= 0
    assert models.score_model("bilinear, 60, white .1", 0, models.NAIVE, None) is None


def test_free_runs_of_chaos_count_steps():
    task = tasks.flow_run("logistic", 50, 30, 4, 0)
    off = [truth.copy() for truth in task.truths]
    for run, first in zip(off, (6, 9, 30), strict=True):
        run[first:] += 0.31 * task.deviation
    found = models.score(task, off, 0.0)
    assert found.steps == 15  # the third never leaves the truth
    assert found.loss == 1 / 16
    assert found.r2 == 1.0  # of the first four rows
    off[0][:2] += task.deviation
    assert models.score(task, off, 0.0).r2 == pytest.approx(1 - 2 / 12)


@pytest.mark.slow
def test_the_ridge_sees_twenty_rows_of_its_sequence():
    rng = np.random.default_rng(0)
    u = rng.standard_normal((400, 1))
    y = np.concatenate([np.zeros((19, 1)), u[:-19]])
    one = tasks.Rows([u[:300]], [y[:300]], [u[300:]], [y[300:]])
    many = tasks.Rows(*(list(a.reshape(-1, 40, 1)) for a in (u[:200], y[:200], u[200:], y[200:])))
    for task, rows in ((one, slice(0, None)), (many, slice(19, None))):
        predicted, _ = models.rival(task, models.RIDGE, 0)
        for found, truth in zip(predicted, task.y_new, strict=True):
            if task is one:
                np.testing.assert_allclose(found[rows], truth[rows], atol=1e-5)
            assert found.shape == truth.shape
    assert models.score_model("three sines, 300, clean", 0, models.RIDGE, None).r2 > 0.99


def test_the_network_continues_from_the_end_of_training():
    settings = {"n_units": 20, "alpha": 1.0, "random_state": 0}
    task = tasks.season_run(60, ("white", 0.1), 0)
    runs, _ = models.network(task, settings)
    esn = ESNRegressor(**settings).fit(task.series[:59], task.series[1:60])
    np.testing.assert_allclose(runs[0][:, 0], esn.forecast(36).ravel(), rtol=1e-6)
    scaled, _ = models.network(tasks.real_run("co2", 100, 20, 52, 0), settings)
    assert [run.shape for run in scaled] == [(20, 1)] * 3
    for name in ("levels, 10 sequences of 20", "visits +1, 100 patients"):
        task = tasks.TASKS[name].draw(0)
        predicted, _ = models.network(task, settings)
        assert [rows.shape for rows in predicted] == [rows.shape for rows in task.y_new]


def test_errors_of_a_model_get_the_worst_score():
    found = models.score_model("bilinear, 60, white .1", 0, "", {"alpha": -1.0})
    assert "alpha" in found.refused
    assert found.loss == models.MOST_LOSS


# --- tables ---------------------------------------------------------------------------------------


def test_what_is_kept_is_not_measured_again(tmp_path, monkeypatch):
    calls = []

    def counted(task, seed, model, settings):
        calls.append((task, seed, model))
        return None if model == models.NAIVE else models.Score(0.5, None, 0.1)

    monkeypatch.setattr(benchmark, "score_model", counted)
    path = tmp_path / "kept.jsonl"
    names = list(tasks.TASKS)[:2]
    few = {"own": {"alpha": 1e-3}, models.NAIVE: None}
    first = benchmark.measure(few, names, 2, 1, benchmark.Kept(path))
    assert len(calls) == 8
    more = {**few, "the same": {"alpha": 1e-3, "n_units": 300}, "new": {"n_units": 30}}
    again = benchmark.measure(more, names, 3, 1, benchmark.Kept(path))
    assert len(calls) == 8 + 2 * 2 + 2 * 3  # one model more of two seeds, all of a third seed
    assert first.items() <= again.items()
    assert again[names[0], 2, "the same"] == again[names[0], 2, "own"]


def test_models_are_compared_by_task_and_seed():
    score, ridge, mean = models.Score, benchmark.RIDGE, benchmark.MEAN
    made = {
        ("a", 0, "own"): score(0.5, 4.0),
        ("a", 1, "own"): score(0.5, 0.0),
        ("b", 0, "own"): score(-0.21),
        ("b", 1, "own"): score(-0.21),
    }
    for seed in range(2):
        made["a", seed, ridge] = score(0.52, 1.0)
        made["b", seed, ridge] = score(0.99)
        for task in "ab":
            made[task, seed, mean] = score(-0.02 if seed else -0.2)
    np.testing.assert_allclose(benchmark.ratios(made, "own", ["a", "b"]), [1.2, 11.0])
    assert benchmark.geometric_mean(np.array([2.0, 8.0])) == "4.000"
    assert benchmark.behind(made, "own", ridge, ["a", "b"]) == (["b"], 0.5)
    assert benchmark.behind(made, "own", mean, ["a", "b"]) == (["b"], 0.25)


@pytest.mark.slow
def test_all_tables_are_printed(monkeypatch, capsys):
    wanted = ["narma10, 80", "bilinear, 60", "logistic, 500"]
    monkeypatch.setattr(sys, "argv", ["as_it_comes.py", "--seeds", "1", "--tasks", *wanted])
    benchmark.main()
    printed = capsys.readouterr().out
    assert "nan" not in printed
    for words in ("median", "worst", "seconds", "to choose by", "to report", "behind mean: narma"):
        assert words in printed
    assert "refused" not in printed
