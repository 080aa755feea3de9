"""Analogues: past rows are found, followed and scored as a naive version does."""

import warnings

import numpy as np
import pytest

from reservoir import ESNForecaster, load, save
from reservoir.datasets import lorenz
from reservoir.dynamics.analogue import Analogue
from reservoir.estimators.reporting import not_reported
from reservoir.loops.analogue_plan import AnaloguePlan
from reservoir.loops.bank_search import Search
from reservoir.loops.loop_design import LoopDesign, Trajectories
from reservoir.loops.network_bank import bank_for, diagnose, rivals_of
from reservoir.loops.network_trial import states_at
from reservoir.loops.path_loops import log_errors, run_path_loops

pytestmark = pytest.mark.one_engine

CLIP = (np.full(2, -9.0), np.full(2, 9.0))


def trajectories(*levels):
    return Trajectories(list(levels), [np.zeros((len(level), 0)) for level in levels])


def spikes(n_rows, seed=0):
    """Return a series of spikes at random rows that repeats itself in 110 rows."""
    rng = np.random.default_rng(seed)
    period = np.zeros((110, 2))
    period[rng.permutation(110)[:12]] = rng.random((12, 2))
    return np.tile(period, (n_rows // 110 + 1, 1))[:n_rows]


def continuation(rows, n_steps, source, states=None):
    """Return the loop that continues `rows`."""
    data = trajectories(np.vstack([rows, rows[-1:]]))
    states = states_at(source, data, [(0, len(rows) - 1)])
    coef, intercept = np.eye(rows.shape[1])[None], np.zeros((1, rows.shape[1]))
    loops = run_path_loops(source, coef, intercept, states, rows[-1:], n_steps, increments=True)
    return loops[:, 0, 0]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_lags", [4, 1])
def test_the_rows_after_the_most_similar_ones_are_repeated(n_lags):
    rows = lorenz(400, dt=0.05, random_state=0)[:, :2]
    distances = {
        end: sum(((rows[end - k] - rows[-1 - k]) ** 2).sum() for k in range(n_lags))
        for end in range(n_lags - 1, len(rows) - 1)
    }
    least = [
        end
        for end in list(distances)[1:-1]
        if distances[end] <= min(distances[end - 1], distances[end + 1])
    ]
    found = min(least, key=distances.__getitem__)
    n_steps = len(rows) - 1 - found
    expected = rows[found + 1 : found + 1 + n_steps]
    source = AnaloguePlan(n_lags).member(trajectories(rows)).source
    np.testing.assert_allclose(continuation(rows, n_steps, source), expected, atol=1e-12)


def test_rows_just_before_the_last_one_are_no_analogue():
    rows = np.column_stack([np.arange(50.0), np.zeros(50)])
    rows[10:13, 0] = [48.0, 49.5, 48.5]  # less similar to 49 than row 48, but not near in time
    source = AnaloguePlan(1).member(trajectories(rows)).source
    assert source.nearest(rows[-1:]) == 11


def test_an_analogue_ends_with_its_trajectory_and_the_next_one_follows():
    first, second = spikes(200), spikes(90, seed=1) + 9
    source = AnaloguePlan(60).member(trajectories(first, second)).source
    assert not source.followed[[199, 289]].any()
    expected = spikes(500)[200:]  # the analogue ends after 110 rows, twice
    np.testing.assert_allclose(continuation(first, 300, source), expected, atol=1e-12)


def test_states_do_not_depend_on_rows_before_the_memory():
    rows, later = spikes(180), spikes(30, seed=1)
    source = AnaloguePlan(5).member(trajectories(rows)).source
    ways = [np.vstack([before, later]) for before in (rows, rows[:3] + 1)]
    np.testing.assert_array_equal(*[continuation(way, 20, source) for way in ways])
    *_, (start, features, state) = source.iter_features(later, source.initial_state_of(later[0]))
    assert start == len(later) - 1
    assert features.shape == (1, 2)
    assert state.shape == (source.state_size,)


def test_the_score_is_of_loops_that_repeat_only_rows_outside_their_block():
    rows = lorenz(300, dt=0.05, random_state=0)[:, :2] / 8
    data, plan = trajectories(rows), AnaloguePlan(3)
    design = LoopDesign.of(
        [300], washout=20, n_steps=30, n_starts=8, n_blocks=4, n_starts_per_block=3
    )
    means = []
    for k, places in enumerate(design.left_out):
        (_, low, high), n_steps = design.blocks[k][0], design.n_steps_left_out(k)
        source = plan.member(data, design.blocks[k]).source
        shown = np.flatnonzero(source.followed) + 1
        assert not np.any((shown >= low) & (shown <= high))
        for _, t in places:
            found = continuation(rows[: t + 1], n_steps, source)[:, None]
            errors = log_errors(found, rows[t + 1 : t + 1 + n_steps, None], np.ones(2))
            means.append((k, np.maximum(errors, -2).mean()))
    of_blocks = [np.mean([mean for block, mean in means if block == k]) for k in range(4)]
    assert plan.score(data, design, 1e-2, CLIP) == pytest.approx(-np.mean(of_blocks))


# --- other models where networks are poor ---------------------------------------------------------


def searched(rows, **settings):
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    options = {"plans": None, "n_members": 2, "n_steps": None, "seed": 0, "n_jobs": None}
    options |= {"report": not_reported} | settings
    clip = np.full((2, rows.shape[1]), [[-9.0], [9.0]])
    return Search(trajectories(rows), tuple(clip), **options).run()


@pytest.mark.slow
def test_a_series_that_repeats_itself_is_repeated():
    choice = searched(spikes(450))
    assert isinstance(choice.plan, AnaloguePlan)
    assert len(choice.members) == 1
    results = choice.results
    assert sorted(results["rank"]) == list(range(1, len(results["rank"]) + 1))
    best = int(np.argmin(results["rank"]))
    assert results["score_left_out"][best] == np.nanmax(results["score_left_out"]) == choice.score
    assert results["n_lags"][best] == choice.plan.n_lags
    assert np.isnan([results[name][best] for name in ("alpha", "n_units", "width")]).all()
    for name in ("spectral_radius", "width"):  # networks and radial units were tried, too
        assert (~np.isnan(results[name])).any()


def test_where_networks_are_good_nothing_else_is_tried():
    rows = lorenz(300, dt=0.05, random_state=0)
    assert "width" not in searched(rows).results


def test_short_series_and_own_networks_have_no_rivals():
    for rows, known in ((spikes(150), 0), (spikes(450), 1)):
        data = Trajectories([rows], [np.zeros((len(rows), known))])
        rivals = rivals_of(bank_for(data, diagnose(data, 0)), data, 0.4)
        analogues = [isinstance(bank.plans[0], AnaloguePlan) for bank in rivals]
        assert not any(analogues)
        assert bool(rivals) == bool(known)


@pytest.mark.slow
def test_forecasts_by_an_analogue_go_on_after_rows_and_are_saved(tmp_path):
    series = spikes(420)
    model = ESNForecaster(search="dynamics", random_state=0).fit(series[:330])
    assert list(model.best_params_) == ["n_lags"]
    np.testing.assert_allclose(model.forecast(60), series[330:390], atol=1e-9)
    model.update(series[330:345])
    np.testing.assert_allclose(model.forecast(60), series[345:405], atol=1e-9)
    np.testing.assert_allclose(model.forecast(20, context=series[:150]), series[150:170], atol=1e-9)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded._fits[0].members[0].source, Analogue)
    np.testing.assert_array_equal(loaded.forecast(30), model.forecast(30))
    paths = model.simulate(15, n_paths=5, random_state=0)
    assert np.isfinite(np.asarray(paths)).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_values_that_recur_by_chance_are_not_repeated(seed):
    """A repeated row of counts is often exactly right, which says nothing of its other errors."""
    y = (np.random.default_rng(seed).random(300) < 0.3).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no network does better than the mean
        model = ESNForecaster(search="dynamics", random_state=0).fit(y)
    assert "n_units" in model.best_params_  # a network, or radial units
