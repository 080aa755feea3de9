"""The core of `ESNForecaster` against naive versions: stored features, single loops, medians."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from reservoir.building import build_reservoir
from reservoir.datasets import henon, lorenz
from reservoir.dynamics import run, step
from reservoir.dynamics.closed_loop import LoopRun
from reservoir.dynamics.features import DrivenReservoir
from reservoir.dynamics.past_inputs import LaggedSource
from reservoir.estimators.reporting import not_reported
from reservoir.loops.bank_search import Search
from reservoir.loops.loop_design import LoopDesign, NetworkPlan, RadialPlan, Trajectories
from reservoir.loops.network_bank import bank_for, design_of, diagnose, scores_of
from reservoir.loops.network_trial import NetworkTrial, accumulate, run_ensemble, states_at

pytestmark = pytest.mark.one_engine

ALPHAS = np.array([1e-8, 1e-5, 1e-2])
CLIP = (np.full(2, -5.0), np.full(2, 5.0))
PLANS = {
    "plain": NetworkPlan(20, 0.4, 0.3),
    "squares and a leak": NetworkPlan(15, 0.3, 0.5, 0.5, 0.4, "square"),
    "lags": NetworkPlan(15, 0.2, 0.3, augment="square", n_lags=3, skip=2),
}


def series(n_exog=0, lengths=(260, 150, 9)):
    rng = np.random.default_rng(0)
    levels = [rng.normal(size=(n, 2)).cumsum(axis=0) / 5 for n in lengths]
    return Trajectories(levels, [rng.normal(size=(n, n_exog)) for n in lengths])


def naive_features(plan, data, i, seed):
    """Return what a readout sees of a trajectory, with rows of the past written out."""
    source = plan.build(data, seed)
    inner = source.source if isinstance(source, LaggedSource) else source
    rows = np.hstack([data.levels[i][:-1], data.exog[i][1:]])
    lagged = np.hstack([rows[np.maximum(np.arange(len(rows)) - k * plan.skip, 0)]
                        for k in range(plan.n_lags)])  # fmt: skip
    states = run(inner.reservoir, lagged, engine="numpy")
    squares = [states**2] if plan.augment == "square" else []
    return np.hstack([states, *squares, lagged])


def naive_ridge(H, Y, alpha):
    """Return coef and intercept by least squares on rows that stand for the penalty."""
    H, Y, mean_h, mean_y = H - H.mean(0), Y - Y.mean(0), H.mean(0), Y.mean(0)
    penalty = np.sqrt(alpha * len(H)) * np.eye(H.shape[1])
    coef = np.linalg.lstsq(
        np.vstack([H, penalty]), np.vstack([Y, np.zeros((len(penalty), Y.shape[1]))]), rcond=None
    )[0].T
    return coef, mean_y - coef @ mean_h


def rows_of(blocks):
    return [(i, t) for pieces in blocks for i, low, high in pieces for t in range(low, high)]


# --- where networks learn, and where loops begin -------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_blocks_divide_the_rows_and_loops_have_room(seed):
    rng = np.random.default_rng(seed)
    lengths = [int(n) for n in rng.integers(2, 60, size=rng.integers(1, 12))] + [60]
    washout, n_steps, n_blocks = (int(n) for n in (rng.integers(0, 9), rng.integers(1, 30), 4))
    design = LoopDesign.of(
        lengths,
        washout=washout,
        n_steps=n_steps,
        n_starts=8,
        n_blocks=n_blocks,
        n_starts_per_block=6,
    )
    everything = [(i, t) for i, n in enumerate(lengths) for t in range(washout, n - 1)]
    assert rows_of(design.blocks) == everything
    sizes = [len(rows_of([block])) for block in design.blocks]
    assert max(sizes) - min(sizes) <= 1
    assert design.recycled
    assert all(design.left_out)
    assert design.recycled == sorted(set(design.recycled))
    assert all(washout <= t <= lengths[i] - 1 - n_steps for i, t in design.recycled)
    for k, (block, places) in enumerate(zip(design.blocks, design.left_out, strict=True)):
        n_own = design.n_steps_left_out(k)
        assert 1 <= n_own <= n_steps
        inside = set(rows_of([block]))
        assert all((i, t + n_own - 1) in inside and (i, t) in inside for i, t in places)


def test_exogenous_columns_go_in_a_step_ahead():
    data = series(n_exog=1)
    np.testing.assert_array_equal(data.inputs[1][:, 2], data.exog[1][1:, 0])
    np.testing.assert_array_equal(data.inputs[1][:, :2], data.levels[1][:-1])
    np.testing.assert_allclose(
        data.inputs[1][:, :2] + data.increments[1], data.levels[1][1:], rtol=1e-12
    )
    assert data.known_after([(1, 4)], 2)[0] == data.exog[1][7]
    np.testing.assert_array_equal(data.followed([(0, 3)], 4)[:, 0], data.levels[0][4:8])


def test_a_stretch_is_the_end_of_the_trajectories_or_of_the_longest():
    lengths = [500, 300, 301]
    data = Trajectories([np.full((n, 1), n) for n in lengths], [np.zeros((n, 0)) for n in lengths])
    assert [len(level) for level in data.last_rows(400).levels] == [99, 301]
    assert [len(level) for level in data.last_rows(302).levels] == [301]  # one row is no step
    short = Trajectories(
        [np.zeros((900, 1)), *[np.zeros((5, 1))] * 80],
        [np.zeros((900, 0)), *[np.zeros((5, 0))] * 80],
    )
    assert [len(level) for level in short.last_rows(300).levels] == [300]


# --- networks that see rows of the past ----------------------------------------------------------


@pytest.mark.parametrize("n_rows", [3, 700])
def test_lags_are_rows_of_the_past_written_out(n_rows):
    reservoir = build_reservoir(10, 6, random_state=0)
    inner = DrivenReservoir(reservoir, include_input=True)
    source = LaggedSource(inner, n_lags=3, skip=2)
    rows = np.random.default_rng(0).normal(size=(n_rows, 2))
    assert (source.n_features, source.n_past, source.state_size) == (2, 4, 18)
    lagged = np.hstack([rows[np.maximum(np.arange(n_rows) - back, 0)] for back in (0, 2, 4)])
    expected = np.hstack([run(reservoir, lagged, engine="numpy"), lagged])
    found = np.empty_like(expected)
    for start, features, state in source.iter_features(rows, source.initial_state_of(rows[0])):
        found[start : start + len(features)] = features
        end = state
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    # step by step, two runs side by side
    states = np.tile(source.initial_state_of(rows[0]), (2, 1))
    for row, wanted in zip(rows, expected, strict=True):
        features, states = source.advance(states, np.tile(row, (2, 1)))
        np.testing.assert_allclose(features, [wanted, wanted], rtol=0, atol=1e-14)
    np.testing.assert_allclose(states[0], end, rtol=0, atol=1e-14)
    # in closed loop, where each output is the first column of the next row
    coef, last = np.random.default_rng(1).normal(size=(1, source.width)) / 9, np.array([0.3])
    loop = {"initial_state": end, "initial_output": last, "exog": rows[:3, 1:]}
    outputs, after, n_valid = source.run_loop((coef, np.zeros(1)), LoopRun(3, **loop))
    state = end[None]
    for output, known in zip(outputs, rows[:, 1], strict=False):
        features, state = source.advance(state, np.array([[*last, known]]))
        last = coef @ features[0]
        np.testing.assert_allclose(output, last, rtol=0, atol=1e-14)
    np.testing.assert_allclose(after, state[0], rtol=0, atol=1e-14)
    assert n_valid == 3


# --- fits ----------------------------------------------------------------------------------------


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("all_digits", [False, True], ids=["Gram", "QR"])
@pytest.mark.parametrize("n_exog", [0, 1])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_fits_equal_least_squares_on_stored_features(plan, n_exog, all_digits):
    data = series(n_exog)
    alphas = np.array([1e-13, *ALPHAS]) if all_digits else ALPHAS
    design = design_of(data, [plan], leave_out=True)
    trial = NetworkTrial(plan, 3, data, design, alphas, leave_out=True)
    H = [naive_features(plan, data, i, 3) for i in range(3)]
    Y = [np.diff(level, axis=0) for level in data.levels]
    squares = np.zeros(len(alphas))
    for k in range(-1, 4):
        fitted = [b for j, b in enumerate(design.blocks) if j != k]
        h, y = (np.array([part[i][t] for i, t in rows_of(fitted)]) for part in (H, Y))
        for a, alpha in enumerate(alphas):
            coef, intercept = naive_ridge(h, y, alpha)
            mine = trial.fits[k + 1][0][a], trial.fits[k + 1][1][a]
            # what is said is determined well, single weights need not be
            for i in range(3):
                expected, found = H[i] @ coef.T + intercept, H[i] @ mine[0].T + mine[1]
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
            for i, t in rows_of([design.blocks[k]]) if k >= 0 else []:
                squares[a] += ((H[i][t] @ coef.T + intercept - Y[i][t]) ** 2).sum()
    n_values = 2 * len(rows_of(design.blocks))
    np.testing.assert_allclose(trial.one_step, np.sqrt(squares / n_values), rtol=1e-6)


@pytest.mark.parametrize("k", range(4))
def test_a_fit_that_leaves_a_block_out_has_not_seen_it(k):
    plan, data = replace(PLANS["plain"], spectral_radius=0.0), series(lengths=(200,))
    design = design_of(data, [plan], leave_out=True)
    first = NetworkTrial(plan, 0, data, design, ALPHAS, leave_out=True)
    ((_, low, high),) = design.blocks[k]
    other = data.levels[0].copy()
    # without memory, what lies strictly inside the block touches no other row
    other[low + 1 : high] = np.random.default_rng(1).normal(size=(high - low - 1, 2))
    second = NetworkTrial(plan, 0, Trajectories([other], data.exog), design, ALPHAS, leave_out=True)
    for j in range(5):
        change = np.abs(first.fits[j][0] - second.fits[j][0]).max(axis=(1, 2))
        if j == k + 1:  # the same, up to rounding that a small penalty magnifies
            assert (change[1:] < 1e-9).all()
        else:
            assert (change > 0.1).all()


def test_no_step_across_the_boundary_of_two_trajectories_is_learned():
    plan = PLANS["plain"]
    data = series(lengths=(200, 150))
    design = design_of(data, [plan], leave_out=False)
    (sums,) = accumulate(plan.build(data, 0), data, design, all_digits=False)
    assert sums.n_samples == sum(n - 1 - design.washout for n in (200, 150))


# --- radial units --------------------------------------------------------------------------------

RADIAL = RadialPlan(10**6, 0.7, 3.0, n_lags=4, skip=2)


def naive_kernel(plan, one, other, n_columns):
    """Return the Gaussian kernel of lagged rows, whose weights fall with their age."""
    weights = np.repeat(np.exp(-np.arange(plan.n_lags) * plan.skip / plan.memory), n_columns)
    squares = (weights * (one[:, None] - other) ** 2).sum(axis=2) / weights.sum()
    return np.exp(-squares / (2 * plan.width**2))


def test_radial_units_answer_by_the_distance_of_lagged_rows():
    data = series(n_exog=1, lengths=(60, 40))
    source = RADIAL.build(data, 0)
    lagged = [
        np.hstack([rows[np.maximum(np.arange(len(rows)) - k, 0)] for k in (0, 2, 4, 6)])
        for rows in data.inputs
    ]
    # one around each row that has its past behind it
    everywhere = np.vstack([rows[6:] for rows in lagged])
    units = source.source
    assert source.width == len(everywhere) == 53 + 33
    np.testing.assert_allclose(units.centres / units.scaling, everywhere, rtol=1e-12)
    expected = naive_kernel(RADIAL, lagged[1], everywhere, 3)
    state = source.initial_state_of(data.inputs[1][0])
    ((_, found, end),) = source.iter_features(data.inputs[1], state)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    states = state[None]
    for row, wanted in zip(data.inputs[1], expected, strict=True):
        features, states = source.advance(states, row[None])
        np.testing.assert_allclose(features[0], wanted, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(states[0], end)


@pytest.mark.parametrize("n_exog", [0, 1])
def test_radial_units_are_fitted_by_kernel_ridge_regression(n_exog):
    data = series(n_exog, lengths=(80, 50))
    plan = replace(RADIAL, width=0.4)
    design = design_of(data, [plan], leave_out=True)
    trial = NetworkTrial(plan, 0, data, design, ALPHAS, leave_out=True)
    rows = [np.hstack([u[np.maximum(np.arange(len(u)) - k, 0)] for k in (0, 2, 4, 6)])
            for u in data.inputs]  # fmt: skip
    for k in range(-1, 4):
        fitted = rows_of([block for j, block in enumerate(design.blocks) if j != k])
        seen = np.array([rows[i][t] for i, t in fitted])
        targets = np.array([data.increments[i][t] for i, t in fitted])
        kernel = naive_kernel(plan, seen, seen, data.n_inputs)
        others = naive_kernel(plan, rows[0], seen, data.n_inputs)
        ((_, features, _),) = trial.source.iter_features(
            data.inputs[0], trial.source.initial_state_of(data.inputs[0][0])
        )
        ones = np.ones((len(seen), 1))
        for a, alpha in enumerate(ALPHAS):
            # the dual problem, with an intercept that is not penalised
            penalised = kernel + alpha * len(seen) * np.eye(len(seen))
            system = np.block([[penalised, ones], [ones.T, np.zeros((1, 1))]])
            dual = np.linalg.solve(system, np.vstack([targets, np.zeros((1, 2))]))
            expected = others @ dual[:-1] + dual[-1]
            found = features @ trial.fits[k + 1][0][a].T + trial.fits[k + 1][1][a]
            # units that the others tell are left out; rows outside the blocks are units as well
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(targets).max())


def test_radial_units_stand_apart_and_are_no_more_than_asked_for():
    rows = np.sin(0.1 * np.arange(900))[:, None]
    data = Trajectories([rows], [np.zeros((900, 0))])
    plan = RadialPlan(500, 0.7, 4.0, n_lags=5)
    centres = plan.build(data, 0).source.centres
    assert len(centres) < 40  # a period of 63 rows, again and again
    few = replace(plan, n_units=7).build(data, 0).source.centres
    assert len(few) == 7
    every = RadialPlan(500, 0.7, 4.0, n_lags=5).build(data, 1).source.centres
    np.testing.assert_array_equal(every, centres)


# --- loops ---------------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_exog", [0, 1])
def test_scores_equal_loops_run_one_by_one(n_exog):
    plan, data = PLANS["plain"], series(n_exog, lengths=(200, 90))
    design = design_of(data, [plan], leave_out=True, n_steps=15)
    trial = NetworkTrial(plan, 0, data, design, ALPHAS, leave_out=True)
    reservoir = trial.source.reservoir
    states = [run(reservoir, rows, engine="numpy") for rows in data.inputs]

    def errors(fit, places, n_steps):
        table = np.empty((n_steps, len(ALPHAS), len(places)))
        for a in range(len(ALPHAS)):
            for s, (i, t) in enumerate(places):
                state, level = states[i][t - 1], data.levels[i][t]
                for k in range(n_steps):
                    given = np.concatenate([level, data.exog[i][t + 1 + k]])
                    state = step(reservoir, state, given)
                    out = level + fit[0][a] @ np.concatenate([state, given]) + fit[1][a]
                    error = np.sqrt(np.mean((out - data.levels[i][t + 1 + k]) ** 2))
                    table[k, a, s] = np.log10(np.clip(error, 1e-9, 1))
                    level = np.clip(out, *CLIP)
        return table

    recycled = errors(trial.fits[0], design.recycled, 15)
    np.testing.assert_allclose(trial.recycled_errors(CLIP), recycled, atol=1e-9)
    blocks = [
        errors(trial.fits[k + 1], design.left_out[k], design.n_steps_left_out(k)) for k in range(4)
    ]
    for found, expected in zip(trial.left_out_errors(CLIP), blocks, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    bank = replace(bank_for(data, diagnose(data, 0)), least_error=1e-2, leave_out=True)
    scores = scores_of(trial, bank, CLIP)
    np.testing.assert_allclose(scores[0], -np.maximum(recycled, -2).mean(axis=(0, 2)))
    means = [np.maximum(block, -2).mean(axis=(0, 2)) for block in blocks]
    np.testing.assert_allclose(scores[1], -np.mean(means, axis=0))


def test_states_at_places_are_those_of_whole_runs():
    data = series(lengths=(600, 90))
    source = PLANS["plain"].build(data, 0)
    states = [run(source.reservoir, rows, engine="numpy") for rows in data.inputs]
    places = [(0, 0), (0, 5), (0, 599), (1, 1), (1, 89)]
    found = states_at(source, data, places)
    np.testing.assert_array_equal(found[0], np.zeros(20))
    for (i, t), state in list(zip(places, found, strict=True))[1:]:
        np.testing.assert_allclose(state, states[i][t - 1], rtol=0, atol=1e-14)


def test_an_ensemble_feeds_back_the_median_within_bounds():
    data = series(n_exog=1, lengths=(300,))
    members = []
    for seed, plan in enumerate([*PLANS.values(), PLANS["plain"]]):
        design = design_of(data, [plan], leave_out=False)
        trial = NetworkTrial(plan, seed, data, design, ALPHAS, leave_out=False)
        members.append(trial.member(1))
    places = [(0, 120), (0, 299)]
    starts = [states_at(m.source, data, places) for m in members]
    exog = np.random.default_rng(1).normal(size=(40, 2, 1))
    clip = (np.array([-0.5, -9.0]), np.array([0.5, 9.0]))
    rows = data.levels[0][[120, 299]]
    found = run_ensemble(members, starts, rows, 40, exog=exog, clip=clip)
    for i, level in enumerate(rows):
        states, n_free = [each[i] for each in starts], 40
        for k in range(40):
            said = []
            for m, member in enumerate(members):
                given = np.concatenate([level, exog[k, i]])[None]
                ((_, features, states[m]),) = member.source.iter_features(given, states[m])
                said.append(features[0] @ member.coef.T + member.intercept)
            level = level + np.median(said, axis=0)
            if n_free == 40 and ((level < clip[0]) | (level > clip[1])).any():
                n_free = k
            level = np.clip(level, *clip)
            np.testing.assert_allclose(found.levels[k, i], level, rtol=0, atol=1e-8)
        assert found.n_free[i] == n_free < 40
        for mine, theirs in zip(found.states, states, strict=True):
            np.testing.assert_allclose(mine[i], theirs, rtol=0, atol=1e-8)


def test_outputs_that_are_not_finite_stop_no_loop():
    data = series(lengths=(100,))
    design = design_of(data, [PLANS["plain"]], leave_out=False)
    member = NetworkTrial(PLANS["plain"], 0, data, design, ALPHAS, leave_out=False).member(0)
    member = replace(member, intercept=np.array([np.nan, np.inf]))
    start, exog = [np.zeros((1, 20))], np.zeros((5, 1, 0))
    ran = run_ensemble([member], start, np.zeros((1, 2)), 5, exog=exog, clip=CLIP)
    np.testing.assert_array_equal(ran.levels[:, 0], np.tile([0.0, 5.0], (5, 1)))
    assert ran.n_free == [0]


# --- the search ----------------------------------------------------------------------------------


def standardised(rows):
    rows = rows.reshape(len(rows), -1)
    return Trajectories([(rows - rows.mean(0)) / rows.std(0)], [np.zeros((len(rows), 0))])


def search(data, **params):
    bounds = (np.full(data.n_outputs, -9.0), np.full(data.n_outputs, 9.0))
    options = {"plans": None, "n_members": 3, "n_steps": None, "seed": 0, "n_jobs": None}
    return Search(data, bounds, **options | {"report": not_reported} | params)


@pytest.mark.slow
def test_the_diagnosis_estimates_what_is_observed_and_the_noise():
    orbit, plane = lorenz(600, dt=0.05, random_state=0), henon(600, random_state=0)
    noise = np.random.default_rng(0).normal(size=orbit.shape)
    for rows, observed in (
        (orbit, "all"),
        (orbit[:, :1], "some"),
        (plane, "all"),
        (plane[:, :1], "some"),
        (orbit + 0.8 * noise, "all"),
    ):
        assert diagnose(standardised(rows), 0).observed == observed
    # one step's error is about that of the noise where it is large, and vanishes without
    assert 0.05 < diagnose(standardised(orbit + 0.8 * noise), 0).noise < 0.3
    assert diagnose(standardised(orbit), 0).noise < 1e-4
    assert 0.9 < diagnose(standardised(noise), 0).noise < 1.2


def test_an_ensemble_has_the_given_size():
    noisy = standardised(np.random.default_rng(0).normal(size=(200, 1)).cumsum(axis=0))
    plans = [NetworkPlan(10, 0.4, 0.3), NetworkPlan(12, 0.0, 0.8)]
    chosen = search(noisy, plans=plans, n_members=5).run()
    units = [len(member.source.reservoir.bias) for member in chosen.members]
    assert units == [chosen.plan.n_units] * 5
    # the same network never sits twice
    weights = [member.source.reservoir.bias.tobytes() for member in chosen.members]
    assert len(set(weights)) == 5


@pytest.mark.slow
def test_hidden_variables_select_radial_units_unless_lags_suffice():
    flow = standardised(lorenz(300, dt=0.1, random_state=0)[:, 0])
    chosen = search(flow, n_members=5).run()
    assert isinstance(chosen.plan, RadialPlan)
    assert len(chosen.members) == 5
    # pairs of network and penalty, each of them once, by loops in rows left out alone
    readouts = {(member.source.width, member.coef.tobytes()) for member in chosen.members}
    assert len(readouts) == 5
    assert np.isnan(chosen.results["score"]).all()
    assert chosen.score == chosen.results["score_left_out"].max()
    assert sorted(chosen.results["rank"]) == list(range(1, len(chosen.results["rank"]) + 1))
    past = max((plan.n_lags - 1) * plan.skip for plan in bank_for(flow, chosen.diagnosis).plans)
    assert past < 30  # a tenth of the rows
    # two rows tell the next one to all digits: reservoirs go further
    chosen = search(standardised(henon(200, random_state=0)[:, 0])).run()
    assert isinstance(chosen.plan, NetworkPlan)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_rows", [2500, 3500])
def test_own_networks_keep_their_size_on_long_series(n_rows):
    data = standardised(henon(n_rows, random_state=0))
    chosen = search(data, plans=[NetworkPlan(10, 0.0, 0.3)], n_members=2).run()
    assert chosen.plan == NetworkPlan(10, 0.0, 0.3)
    assert [member.source.width for member in chosen.members] == [12, 12]


def test_memory_does_not_grow_with_the_length():
    plan = NetworkPlan(40, 0.4, 0.3, augment="square", n_lags=2)
    peaks = []
    for n_rows in (3000, 25_000):
        rows = np.random.default_rng(0).normal(size=(n_rows, 1))
        data = Trajectories([rows], [np.zeros((n_rows, 0))])
        design = design_of(data, [plan], leave_out=True)
        data.inputs, data.increments  # noqa: B018 (they are of the size of the data)
        tracemalloc.start()
        accumulate(plan.build(data, 0), data, design, all_digits=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # states alone would take 41 numbers for each further row, and features 82
    assert peaks[1] - peaks[0] < 10 * 8 * 22_000
