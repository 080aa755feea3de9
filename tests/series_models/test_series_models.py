"""Models of series: each equals its formula and uses only the past; gaps are filled."""

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from helpers import naive
from helpers.series import AHEAD, data_of, history_of, seasonal
from reservoir.dynamics import run
from reservoir.estimators.reporting import not_reported
from reservoir.series_models.ari import ARI
from reservoir.series_models.candidates import Candidate, candidates_for, seen_periods
from reservoir.series_models.direct_network import DirectNetwork
from reservoir.series_models.ensemble import Ensemble
from reservoir.series_models.gaps import fill_gaps
from reservoir.series_models.growth_sums import GrowthSums, MaskedSums
from reservoir.series_models.history import History
from reservoir.series_models.intermittent import IntermittentDemand
from reservoir.series_models.lags import Differences, LagSource
from reservoir.series_models.recursive_ridge import Autoregression, LoopNetwork, states_before
from reservoir.series_models.rolling import RollingForecasts, roll, shares_by
from reservoir.series_models.seasonal_naive import LastSeason
from reservoir.series_models.series_data import Bounds
from reservoir.series_models.theta import FittedTheta, Theta, season_beside_line

pytestmark = pytest.mark.one_engine


def bounds_of(data):
    return Bounds.of(data.values, data.positive, 1.0)


MODELS = {
    "naive": LastSeason(12),
    "naive, last value": LastSeason(1),
    "theta": Theta(12),
    "ARI": ARI(12),
    "intermittent demand": IntermittentDemand(),
    "autoregression": Autoregression(),
    "autoregression on levels": Autoregression(0),
    "network": LoopNetwork(n_networks=2),
    "network on levels": LoopNetwork(0, n_networks=1),
    "network on seasonal differences": LoopNetwork(12, n_networks=1),
    "direct network": DirectNetwork(),
}

# ------------------------------------------------------------------------------- each its formula


@pytest.mark.parametrize("period", [1, 4, 12])
@pytest.mark.parametrize("drift", [True, False])
def test_the_seasonal_naive_forecast_is_the_last_season_and_the_mean_growth(period, drift):
    levels = seasonal(50, n_outputs=2)
    said = (
        LastSeason(period, drift)
        .fit(history_of(levels))
        .forecast(history_of(levels), np.array([30, 50]), 30)
    )
    growth = sum(levels[i] - levels[i - period] for i in range(period, 50)) / (50 - period)
    for place, rows in zip((30, 50), said, strict=True):
        path = list(levels[:place])
        for row in rows:
            path.append(path[-period] + growth * drift)
            np.testing.assert_allclose(row, path[-1], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize(
    "levels, share",
    [([0, 1, 2, 3, 4], 1), ([0, 1, 0, 3, 4], 1 - 8 / 3 / 4), ([0, 1, 0, 1, 0.5], 0), ([2] * 5, 1)],
)
def test_an_uncertain_drift_of_few_rows_is_shrunk(levels, share, scale):
    levels = np.array(levels, float)[:, None] * scale
    (row,) = LastSeason(1).fit(history_of(levels)).forecast(history_of(levels), np.array([5]), 2)
    growth = (levels[-1] - levels[0]) / 4
    np.testing.assert_allclose(row, levels[-1] + share * growth * [[1], [2]], rtol=1e-12)


def test_theta_is_exponential_smoothing_of_what_the_season_leaves_and_half_the_slope():
    levels, period = seasonal(70), 12
    fitted = Theta(period).fit(history_of(levels))
    y = levels[:, 0]
    # classical decomposition, with a centred moving average of 2 x 12 rows
    rest = {i: [] for i in range(period)}
    for t in range(6, 64):
        average = (y[t - 6] / 2 + y[t - 5 : t + 6].sum() + y[t + 6] / 2) / 12
        rest[t % period].append(y[t] - average)
    profile = np.array([np.mean(rest[i]) for i in range(period)])
    profile -= profile.mean()
    np.testing.assert_allclose(fitted.profiles[:, 0], profile, rtol=0, atol=1e-12)
    adjusted = y - np.resize(profile, 70)
    slope = np.cov(np.arange(70), adjusted)[0, 1] / np.var(np.arange(70), ddof=1)
    assert fitted.slopes[0] == pytest.approx(slope)

    def smooth(alpha):
        level, squares, path = adjusted[0], 0.0, []
        for value in adjusted:
            squares += (value - level) ** 2
            level = alpha * value + (1 - alpha) * level
            path.append(level)
        return path, squares

    alpha = fitted.smoothings[0]
    assert smooth(alpha)[1] <= min(smooth(a)[1] for a in np.linspace(0.02, 1, 50)) * (1 + 1e-5)
    said = fitted.forecast(history_of(levels), np.array([50, 70]), 20)[..., 0]
    for place, rows in zip((50, 70), said, strict=True):
        for h, value in enumerate(rows):
            drift = slope / 2 * (h + (1 - (1 - alpha) ** place) / alpha)
            expected = smooth(alpha)[0][place - 1] + drift + profile[(place + h) % period]
            assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n_rows", "period"), [(120, 12), (90, 7), (61, 1), (40, 4)])
def test_theta_equals_statsmodels(statsmodels, n_rows, period):
    from statsmodels.tsa.forecasting.theta import ThetaModel

    levels = seasonal(n_rows, max(period, 2), seed=n_rows)
    seasonally = {"deseasonalize": period > 1, "use_test": False, "method": "additive"}
    theirs = ThetaModel(levels[:, 0], period=period, **seasonally).fit()
    fitted = Theta(period).fit(history_of(levels))
    assert fitted.smoothings[0] == pytest.approx(theirs.params["alpha"], abs=5e-3)
    assert fitted.slopes[0] == pytest.approx(theirs.params["b0"])
    with_theirs = replace(fitted, smoothings=np.array([theirs.params["alpha"]]))
    for ours, tolerance in ((with_theirs, 1e-12), (fitted, 1e-3)):
        said = ours.forecast(history_of(levels), np.array([n_rows]), 20)[0, :, 0]
        np.testing.assert_allclose(said, theirs.forecast(20), rtol=tolerance)


def test_theta_takes_off_a_season_only_where_there_is_one(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    found = [Theta(12).fit(history_of(rng.normal(size=(120, 1)))).profiles.any() for _ in range(40)]
    assert sum(found) <= 10  # 4 expected at 90 %
    assert Theta(12).fit(history_of(seasonal(36))).profiles.any()
    assert not Theta(12).fit(history_of(seasonal(35))).profiles.any()


def calendar_of(row, seasons, most):
    columns = []
    for season in seasons:
        for k in range(1, min(6, int(season // 2)) + 1):
            if len(columns) + 2 <= most:
                angle = 2 * np.pi * k * row / season
                both = [np.sin(angle), np.cos(angle)]
                columns += both if 2 * k < season else both[1:]
    return columns


def terms_naively(history, row, lag, most):
    """What is known of a row: the calendar, known inputs, and their differences."""
    before = history.known[max(row - lag, 0)]
    calendar = calendar_of(history.first + row, history.seasons, most) if lag < 2 else []
    change = history.known[row] - before if lag else []
    return np.concatenate([calendar, history.known[row], change])


def differences_naively(history, lag):
    levels = history.levels
    rows = np.array([levels[t] - (levels[t - lag] if lag else 0) for t in range(lag, len(levels))])
    return rows.mean(axis=0), rows.std(axis=0), (rows - rows.mean(axis=0)) / rows.std(axis=0)


def undone(path, said, mean, spread, lag):
    """Return the level that a difference leads to."""
    return said * spread + mean + (path[-lag] if lag else 0)


@pytest.mark.parametrize("lag", [0, 1, 4])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_an_autoregression_equals_a_ridge_on_a_table_and_a_loop(lag, n_outputs):
    levels = seasonal(60, 4, n_outputs=n_outputs)
    history = history_of(levels, (4.0,), n_known=2, first=3)
    said = Autoregression(lag).fit(history, 0).forecast(history, np.array([60]), 15)[0]
    mean, spread, rows = differences_naively(history, lag)
    n_lags = 8  # two seasons
    table, targets = [], []
    for i in range(n_lags - 1, len(rows) - 1):
        lags = [rows[i - k] for k in range(n_lags)]
        table.append(np.concatenate([*lags, terms_naively(history, i + 1 + lag, lag, 15)]))
        targets.append(rows[i + 1])
    coef, intercept = naive.ridge(np.array(table), np.array(targets), 1.0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    low, high = low - (high - low), high + (high - low)
    path, told = list(levels), list(rows)
    for step in range(15):
        features = np.concatenate(
            [*told[: -n_lags - 1 : -1], terms_naively(history, 60 + step, lag, 15)]
        )
        told.append(np.clip(coef @ features + intercept, low, high))
        path.append(undone(path, told[-1], mean, spread, lag))
    np.testing.assert_allclose(said, path[60:], rtol=0, atol=1e-8)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("lag", [0, 1, 4])
def test_a_network_in_closed_loop_equals_one_stepped_by_hand(lag):
    levels = seasonal(40, 4, n_outputs=2)
    history = history_of(levels, (4.0,), n_known=1)
    fitted = LoopNetwork(lag, n_networks=3).fit(history, 5)
    said = fitted.forecast(history, np.array([40]), 6)[0]
    mean, spread, rows = differences_naively(history, lag)
    terms = np.array([terms_naively(history, t, lag, 10) for t in range(lag + 1, 46)])
    inputs = np.hstack([rows, terms[: len(rows)]])
    low, high = rows.min(axis=0), rows.max(axis=0)
    low, high = low - (high - low), high + (high - low)
    paths = []
    for source, *_ in fitted.members:
        net = source.reservoir
        weights, leak = (net.W, net.W_in, net.bias), net.leak_rate
        states = naive.open_loop(*weights, inputs, leak=leak)
        features = np.hstack([states, inputs])
        coef, intercept = naive.ridge(features[8:-1], rows[9:], 1.0)  # a fifth is washed out
        path, state, given = list(levels), states[-2], inputs[-1]
        for step in range(6):
            state = naive.open_loop(*weights, [given], leak=leak, x0=state)[0]
            out = np.clip(coef @ [*state, *given] + intercept, low, high)
            path.append(undone(path, out, mean, spread, lag))
            given = np.concatenate([out, terms_naively(history, 41 + step, lag, 10)])
        paths.append(path[40:])
    np.testing.assert_allclose(said, np.median(paths, axis=0), rtol=0, atol=1e-8)
    assert len({path[-1][0] for path in paths}) == 3


def test_a_direct_network_equals_a_ridge_for_each_horizon():
    levels = seasonal(60, 4)
    history = history_of(levels, (4.0,))
    fitted = DirectNetwork().fit(history, 2)
    said = fitted.forecast(history, np.array([45, 60]), 5)[..., 0]
    mean, spread, rows = differences_naively(history, 1)
    inputs = np.hstack([rows, [terms_naively(history, t, 1, 15) for t in range(2, 61)]])
    net = fitted.source.reservoir
    states = naive.open_loop(net.W, net.W_in, net.bias, inputs, leak=net.leak_rate)
    features, y = np.hstack([states, inputs]), levels[:, 0]
    for h in range(1, 6):
        learned = np.arange(12, 59 - h)  # up to the last one for which h more rows are known
        growth = (y[learned + 1 + h] - y[learned + 1] - h * mean) / spread
        coef, intercept = naive.ridge(features[learned], growth[:, None], 10.0)
        for k, place in enumerate((45, 60)):
            out = (coef @ features[place - 2] + intercept)[0]
            assert said[k, h - 1] == pytest.approx(y[place - 1] + out * spread[0] + h * mean[0])


@pytest.mark.parametrize("period", [1, 4])
def test_beyond_a_third_of_the_rows_the_direct_network_repeats_its_last_season(period):
    levels = seasonal(64, 4)
    seasons = (4.0,) if period > 1 else ()
    history = history_of(levels, seasons)
    fitted = DirectNetwork().fit(history, 0)
    n_said = (64 - 1 - 12) // 3
    said = fitted.forecast(history, np.array([64]), 40)[0, :, 0]
    drift = np.diff(levels[:, 0]).mean()
    np.testing.assert_allclose(
        said[n_said:], said[n_said - period : -period] + period * drift, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        said[:n_said], fitted.forecast(history, np.array([64]), n_said)[0, :, 0], atol=1e-9
    )


@pytest.mark.parametrize("lag", [0, 1, 12])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_differences_are_undone_from_any_place(lag, n_outputs):
    levels = seasonal(60, n_outputs=n_outputs)
    differences = Differences.of(levels, lag)
    rows = differences.take(levels)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0), 1)
    places = np.arange(max(lag, 1), 40)
    ahead = rows[places[:, None] - lag + np.arange(20)]
    again = differences.undo(levels, places, ahead)
    np.testing.assert_allclose(again, levels[places[:, None] + np.arange(20)], rtol=1e-12)


def test_a_source_of_lags_continues_from_its_state():
    source = LagSource(3, 2, 1)
    rows = np.arange(18.0).reshape(6, 3)
    ((_, whole, end),) = source.iter_features(rows, source.initial_state_of(rows[0]))
    np.testing.assert_array_equal(whole[3], [9, 10, 6, 7, 3, 4, 11])
    ((_, first, state),) = source.iter_features(rows[:4], source.initial_state_of(rows[0]))
    ((_, rest, last),) = source.iter_features(rows[4:], state)
    np.testing.assert_array_equal(np.vstack([first, rest]), whole)
    np.testing.assert_array_equal(last, end)
    stepped, after = source.advance(np.tile(state, (2, 1)), rows[[4, 4]])
    np.testing.assert_array_equal(stepped, rest[[0, 0]])
    np.testing.assert_array_equal(source.advance(after, rows[[5, 5]])[1], np.tile(end, (2, 1)))


@pytest.mark.parametrize("n_lags", [1, 3, 7])
def test_states_of_lags_need_only_the_rows_before(n_lags):
    source, rows = LagSource(n_lags, 2, 1), np.random.default_rng(0).normal(size=(23, 3))
    for positions in ([0, 1, 9], [5, 22], [22]):
        found = states_before(source, rows, np.array(positions))
        for state, at in zip(found, positions, strict=True):
            expected = source.initial_state_of(rows[0])
            for _, _, end in source.iter_features(rows[:at], expected):
                expected = end
            np.testing.assert_array_equal(state, expected)


def test_readouts_of_a_direct_network_are_solved_once(monkeypatch):
    """They are not saved, and a shorter forecast uses those of a longer one."""
    history, ends = history_of(seasonal(60)), np.array([60])
    fitted = DirectNetwork().fit(history, 0)
    before = pickle.dumps(fitted)
    short, long = (fitted.forecast(history, ends, n) for n in (2, 6))
    assert pickle.dumps(fitted) == before
    monkeypatch.setattr(GrowthSums, "solve", None)
    np.testing.assert_array_equal(fitted.forecast(history, ends, 2), short)
    np.testing.assert_array_equal(fitted.forecast(history, ends, 6), long)
    np.testing.assert_array_equal(long[:, :2], short)


@pytest.mark.parametrize("n_lags", [1, 3, 7])
def test_blocks_of_lags_are_those_of_all_rows_at_once(n_lags, monkeypatch):
    """Also where a block is shorter than the lags."""
    source = LagSource(n_lags, 2, 1)
    rows = np.random.default_rng(0).normal(size=(23, 3))
    ((_, whole, end),) = source.iter_features(rows, source.initial_state_of(rows[0]))
    monkeypatch.setattr("reservoir.series_models.lags._BLOCK", 4)
    blocks = list(source.iter_features(rows, source.initial_state_of(rows[0])))
    starts, parts, states = zip(*blocks, strict=True)
    assert starts == tuple(range(0, 23, 4))
    np.testing.assert_array_equal(np.vstack(parts), whole)
    np.testing.assert_array_equal(states[-1], end)


def test_sums_with_gaps_equal_a_ridge_for_each_target():
    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(40, 5)), rng.normal(size=(40, 4))
    observed = rng.random((40, 4)) < 0.6
    observed[:, 2], observed[:, 3] = observed[:, 0], False
    sums = MaskedSums(5, observed)
    sums.update(features[:17], np.where(observed, targets, np.nan)[:17], 0)
    sums.update(features[17:], np.where(observed, targets, np.nan)[17:], 17)
    coef, intercept = sums.solve(0.5)
    for k in range(3):
        seen = observed[:, k]
        expected = naive.ridge(features[seen], targets[seen, k : k + 1], 0.5)
        np.testing.assert_allclose(coef[k], expected[0][0], atol=1e-12)
        assert intercept[k] == pytest.approx(expected[1][0])
    assert not coef[3].any()


OBSERVED = {
    "all": lambda rng, n: np.ones(n, bool),
    "few missing": lambda rng, n: rng.random(n) > 0.05,
    "many missing": lambda rng, n: rng.random(n) > 0.6,
    "a long gap": lambda rng, n: np.abs(np.arange(n) - n // 2) > 15,
    "the end missing": lambda rng, n: np.arange(n) < n - 12,
    "every second row": lambda rng, n: np.arange(n) % 2 == 0,
    "one row in seven": lambda rng, n: np.arange(n) % 7 == 3,
    "none": lambda rng, n: np.zeros(n, bool),
}


@pytest.mark.parametrize("which", OBSERVED)
def test_growths_are_learned_on_the_rows_that_each_horizon_has(which):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        features, levels = rng.normal(size=(118, 6)), 9 + rng.normal(size=(120, 2)).cumsum(axis=0)
        features[:, 3], features[:, 4] = features[:, 2], 4.0  # dependent, and constant
        observed = OBSERVED[which](rng, 120)
        sums = GrowthSums(6, levels, observed, 5, 40)
        for start, stop in ((0, 50), (50, 51), (51, 118)):
            sums.update(features[start:stop], start)
        coef, intercept = sums.solve(0.5)
        for h in range(1, 41):
            rows = np.arange(5, 119 - h)
            rows = rows[observed[rows + 1] & observed[rows + 1 + h]]
            if len(rows):
                growth = levels[rows + 1 + h] - levels[rows + 1]
                expected = naive.ridge(features[rows], growth, 0.5)
                np.testing.assert_allclose(coef[h - 1].T, expected[0], atol=1e-9)
                np.testing.assert_allclose(intercept[h - 1], expected[1], atol=1e-9)
            else:
                assert not coef[h - 1].any()
                assert not intercept[h - 1].any()


# ----------------------------------------------------------------------- forecasts from any place


def test_the_bits_of_an_average_do_not_depend_on_the_steps():
    data = data_of(1e6 + seasonal(60, n_outputs=2), ())
    for seed in range(5):
        shares = np.random.default_rng(seed).dirichlet(np.ones(11))
        members = [Candidate("", False, LastSeason(k)).fit(data, 0) for k in range(1, 12)]
        average = Ensemble(members, shares, bounds_of(data))
        whole = average.run(data, 40)[0]
        for n_steps in (1, 2, 3, 8, 17):
            np.testing.assert_array_equal(average.run(data, n_steps)[0], whole[:n_steps])
            some = average.forecast(data, np.array([60]), n_steps)[0]
            np.testing.assert_array_equal(some, whole[:n_steps])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_more_steps_change_none_of_the_first(name, share):
    levels, places = 1e5 + seasonal(90, n_outputs=2), np.array([70, 90])
    observed = np.random.default_rng(0).random((90, 2)) >= share
    history = replace(history_of(levels, n_known=1), observed=observed)
    fitted = MODELS[name].fit(history, 0)
    whole = fitted.forecast(history, places, AHEAD)
    for n_steps in (1, 2, 7, 24, 33):
        some = fitted.forecast(history, places, n_steps)
        leeway = 1e-12 * np.ptp(levels, axis=0).min() + 1e-15 * levels.max()
        np.testing.assert_allclose(some, whole[:, :n_steps], rtol=0, atol=leeway)


@pytest.mark.parametrize("name", MODELS)
def test_many_places_at_once_equal_one_at_a_time_and_know_the_past_alone(name):
    levels = seasonal(90, n_outputs=2)
    history = history_of(levels, n_known=1)
    fitted = MODELS[name].fit(history.until(60), 0)
    places = np.array([40, 60, 61, 75, 90])
    said = fitted.forecast(history, places, 10)
    assert said.shape == (5, 10, 2)
    other = np.array(levels)
    for rows, place in zip(said, places, strict=True):
        one = np.array([place])
        alone = fitted.forecast(history.until(int(place)), one, 10)[0]
        np.testing.assert_allclose(alone, rows, rtol=1e-10)
        # what follows is not known, what came before is
        other[place:] += 7
        np.testing.assert_allclose(
            fitted.forecast(replace(history, levels=other), one, 10)[0], rows, rtol=1e-10
        )
        other[:] = levels
        other[place - 1] += 1
        changed = fitted.forecast(replace(history, levels=other), one, 12)[0]
        assert (changed != fitted.forecast(history, one, 12)[0]).any()
        other[:] = levels


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_forecast(name):
    history, place = history_of(seasonal(60)), np.array([60])
    said = [MODELS[name].fit(history, seed).forecast(history, place, 5) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(said[0], said[1])
    assert ("network" in name) == (said[0] != said[2]).any()


@pytest.mark.parametrize("name", MODELS)
def test_places_with_too_few_rows_before_them_raise(name):
    fitted, history = MODELS[name].fit(history_of(seasonal(60)), 0), history_of(seasonal(60))
    with pytest.raises(ValueError, match="begins at row 0, but this model needs") as caught:
        fitted.forecast(history, np.array([0]), 3)
    least = int(re.search(r"needs at least (\d+)", str(caught.value))[1])
    assert least <= MODELS[name].min_rows
    assert np.isfinite(fitted.forecast(history.until(least), np.array([least]), 3)).all()
    with pytest.raises(ValueError, match=f"begins at row {least - 1}, "):
        fitted.forecast(history, np.array([least - 1, 60]), 3)


def test_until_keeps_what_is_known_beforehand():
    data = data_of(seasonal(30), n_known=2)
    part = data.until(20)
    assert (part.n_rows, part.known.shape) == (20, (30 + AHEAD, 2))
    assert part.history(log=False).until(10).known.shape == (30 + AHEAD, 2)


def test_the_calendar_counts_from_the_first_row():
    levels = seasonal(48)
    whole, behind = history_of(levels), history_of(levels[7:], first=7)
    np.testing.assert_allclose(whole.calendar(48, 50)[7:], behind.calendar(41, 50), atol=1e-12)
    assert whole.calendar(5, 50).shape == (5, 11)  # the sine of the fastest pair is zero
    assert whole.calendar(5, 5).shape == (5, 4)


def determined(seed):
    """A series that two known inputs determine, and the 100 rows of it that are history."""
    known = np.random.default_rng(seed).normal(size=(140, 2))
    levels = known @ [[2.0], [-1.0]] + 5
    return levels, History(levels[:100], np.ones((100, 1), bool), known, ())


@pytest.mark.parametrize("lag", [0, 1, 12])
def test_a_series_that_known_inputs_determine_is_forecast_to_rounding(lag, global_random_seed):
    levels, history = determined(global_random_seed)
    said = Autoregression(lag, alpha=1e-12).fit(history, 0).forecast(history, np.array([100]), 40)
    np.testing.assert_allclose(said[0], levels[100:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("lag", [0, 1, 12])
def test_a_penalty_costs_little_where_known_inputs_determine_a_series(lag):
    errors = []
    for seed in range(20):  # differences let errors add up: 0.01 to 0.5 by lag 1
        levels, history = determined(seed)
        said = Autoregression(lag).fit(history, 0).forecast(history, np.array([100]), 40)
        errors.append(np.abs(said[0] - levels[100:]).mean() / levels.std())
    assert np.median(errors) < 0.2


def test_a_sine_is_forecast_by_all_that_learn_phases():
    wave = np.sin(2 * np.pi * np.arange(144) / 12)[:, None]
    history = history_of(wave[:120])
    for name, model in MODELS.items():
        said = model.fit(history, 0).forecast(history, np.array([120]), 24)[0]
        if name not in ("naive, last value", "intermittent demand"):
            assert np.abs(said - wave[120:]).max() < 0.15, name
            # phases are counted from the number of the first row
            later = history_of(wave[31:115], first=31)
            for fitted in (model.fit(history, 0), model.fit(later, 0)):
                said = fitted.forecast(later, np.array([84]), 24)[0]
                assert np.abs(said - wave[115:139]).max() < 0.15, name


# ---------------------------------------------------------------------------------- rolling origins


def rolled(data, n_steps=8, names=None):
    candidates = [c for c in candidates_for(data, 1) if names is None or c.name in names]
    return candidates, roll(candidates, data, n_steps, bounds_of(data), 0, not_reported)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("gaps", [False, True])
def test_rolling_origins_do_not_look_ahead(gaps):
    values = seasonal(100)
    if gaps:
        values[np.random.default_rng(3).random(100) < 0.25] = np.nan
        values[[0, 30, 31, 32, 70, 71]] = [[9.0], *[[np.nan]] * 5]
    changed = np.array(values)
    changed[80:] = np.where(np.isnan(changed[80:]), np.nan, 2 * changed[80:] + 5)
    known = np.zeros((100 + AHEAD, 0))
    data, other = (fill_gaps(rows, known, (12.0,)) for rows in (values, changed))
    candidates = candidates_for(data, 1)
    first, second = (
        roll(candidates, each, 8, bounds_of(data), 0, not_reported) for each in (data, other)
    )
    before = first.origins <= 80
    assert 3 < before.sum() < len(before)
    np.testing.assert_array_equal(first.predicted[:, before], second.predicted[:, before])
    assert (first.predicted[:, ~before] != second.predicted[:, ~before]).any(axis=(1, 2, 3)).all()


def test_rolling_origins_compare_with_what_followed_and_was_observed():
    values = seasonal(60)
    data = data_of(values)
    observed = np.array(data.observed)
    observed[50] = False
    data = replace(data, observed=observed)
    candidates, found = rolled(data, 8, ["naive, period 1"])
    assert found.origins[0] == 33
    assert found.origins[-1] == 58
    for origin, rows in zip(found.origins, found.followed, strict=True):
        for step, value in enumerate(rows[:, 0]):
            known = origin + step < 60 and origin + step != 50
            assert value == values[origin + step] if known else np.isnan(value)
    part = candidates[0].fit(data.until(int(found.origins[0])), 0)
    expected = part.forecast(data, found.origins[:1], 8, bounds_of(data))
    np.testing.assert_array_equal(found.predicted[0, :1], expected)


def forecasts_that_err(errors):
    """Forecasts of as many models, (n_models, n_outputs) mean absolute errors."""
    errors = np.asarray(errors, dtype=float)
    followed = np.random.default_rng(0).normal(size=(6, 3, errors.shape[1]))
    said = followed + errors[:, None, None] * np.array([1, -1, 1])[:, None]
    followed = np.where(np.random.default_rng(1).random(followed.shape) < 0.2, np.nan, followed)
    return RollingForecasts(np.arange(6), said, followed)


def test_weights_fall_with_the_error_and_sum_to_one():
    found = forecasts_that_err([[1.0], [2.0], [4.0], [np.nan]])
    np.testing.assert_allclose(found.errors(), [1, 2, 4, np.inf])
    np.testing.assert_allclose(found.errors(typical=True), [1, 2, 4, np.inf])
    power = 4 + 1.5 * (np.log(8 / 3) - 2)  # 8 rows by forecasts of 3 steps
    expected = np.array([1, 2**-power, 4**-power, 0])
    np.testing.assert_allclose(found.weights(), expected / expected.sum())
    np.testing.assert_allclose(found.weights([2, 1, 1, 1])[:2], [1 / (2 + 2**-power)] * 2)
    favoured = expected * [1, 3, 1, 1]
    np.testing.assert_allclose(found.weights(1, [1, 3, 1, 1]), favoured / favoured.sum())
    combined = found.combined(found.weights())
    expected = np.tensordot(found.weights()[:3], found.predicted[:3], 1)
    np.testing.assert_allclose(combined, expected)
    assert np.isfinite(combined).all()
    # each output in units of the best error in it
    both = forecasts_that_err([[1.0, 300.0], [2.0, 100.0]])
    np.testing.assert_allclose(both.errors(), [2, 1.5])
    np.testing.assert_allclose(both.errors(typical=True), [2, 1.5])


def test_typical_errors_are_means_of_roots_at_each_horizon():
    rng = np.random.default_rng(0)
    followed = rng.normal(size=(5, 3, 1))
    errors = rng.exponential(size=(4, 5, 3, 1))
    said = followed + errors
    followed[3:, 2] = followed[4, 1] = np.nan  # beyond the last row
    found = RollingForecasts(np.array([10, 11, 12, 13, 14]), said, followed)
    assert found.n_windows == 5 / 3
    shares = 0.5 ** np.array([1, 0.75, 0.5, 0.25, 0])
    at_horizons = []
    for step, n_known in enumerate((5, 4, 3)):
        roots = np.sqrt(errors[:, :n_known, step, 0])
        at_horizons.append(np.average(roots, axis=1, weights=shares[:n_known]) ** 2)
    expected = np.prod(at_horizons, axis=0)
    expected = (expected / expected.min()) ** (1 / 3)
    np.testing.assert_allclose(found.errors(typical=True), expected)


def test_one_exact_horizon_does_not_decide():
    # whole numbers, of which the second model meets one horizon exactly
    errors = np.array([[[1.0, 1, 1, 1]], [[0.0, 3, 3, 3]]])[..., None]
    followed = np.arange(20.0).reshape(5, 4, 1)
    found = RollingForecasts(np.arange(5), followed + errors, followed)
    np.testing.assert_allclose(found.errors(typical=True), [1, (0.05 * 27) ** 0.25])


def test_more_windows_make_weights_differ_more():
    ratios = []
    for n_windows in (1, 1e-3, 10, 1000, 1e12):
        one, other = shares_by(np.array([1.0, 2.0]), n_windows)
        ratios.append(np.log2(one / other))
    expected = 4 + 1.5 * (np.log([1, 1e-3, 10, 1000, 1e12]) - 2)
    np.testing.assert_allclose(ratios, np.clip(expected, 0.5, 20))


def test_exact_forecasts_share_the_weight_among_themselves():
    np.testing.assert_allclose(
        forecasts_that_err([[0.0], [0.0], [1.0], [1e-15]]).weights(),
        [1 / 3, 1 / 3, 0, 1 / 3],
        atol=1e-15,
    )
    # each exact in another output
    each = forecasts_that_err([[0.0, 1.0], [1.0, 0.0]]).weights()
    assert each.sum() == pytest.approx(1)
    assert (each > 0).all()
    np.testing.assert_allclose(forecasts_that_err([[1.0], [1.0]]).weights(), [0.5, 0.5])
    nothing = forecasts_that_err([[1.0], [3.0]])
    nothing = replace(nothing, followed=np.full_like(nothing.followed, np.nan))
    np.testing.assert_allclose(nothing.weights(), [0.5, 0.5])
    with pytest.raises(ValueError, match="No model could be fitted to the first 0 rows"):
        forecasts_that_err([[np.nan], [np.nan]]).weights()


def test_what_needs_more_rows_is_left_out():
    data = data_of(seasonal(18))
    candidates, found = rolled(data)
    short = [c.model.min_rows > found.origins[0] for c in candidates]
    assert 0 < sum(short) < len(short)
    np.testing.assert_array_equal(found.weights() == 0, short)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("n_rows", (18, 24, 36, 48, 80))
def test_seasons_are_compared_from_one_and_a_half_periods_on(n_rows):
    data = data_of(seasonal(n_rows))
    assert seen_periods(data) == [1, 12]
    assert seen_periods(data.until(17)) == [1]
    candidates, found = rolled(data)
    naive = next(i for i, c in enumerate(candidates) if c.name == "naive, period 12")
    assert np.isfinite(found.predicted[naive]).all()
    names = {c.name for c in candidates}
    # the first fit of 80 rows sees more than three periods, and can test for the season
    assert {"theta, season assumed", "naive, period 12, no drift"} <= names or n_rows == 80
    assert ("theta, season assumed" in names) == (n_rows < 80)


@pytest.mark.parametrize("n_rows", (18, 24, 31))
def test_a_season_beside_a_line_is_found_in_fewer_than_three_periods(n_rows):
    profile = np.random.default_rng(n_rows).normal(size=12)
    profile -= profile.mean()
    t = np.arange(n_rows)
    found = season_beside_line(5 + 0.3 * t + profile[t % 12], 12)
    np.testing.assert_allclose(found, profile, atol=1e-12)


# -------------------------------------------------------------------------------------- odd series

ODD = {
    "constant": lambda n: np.full(n, 7.0),
    "zeros": lambda n: np.zeros(n),
    "two values": lambda n: np.arange(n) % 3 == 0,
    "one jump": lambda n: np.arange(n) > n // 2,
    "huge": lambda n: 5e299 * (1 + np.sin(np.arange(n)) / 2),
    "tiny": lambda n: 1e-300 * (1 + np.sin(np.arange(n)) / 2),
    "huge and tiny": lambda n: 10.0 ** (290 * np.sin(np.arange(n))),
    "counts": lambda n: np.random.default_rng(0).poisson(0.5, n),
    "a line": lambda n: 3.0 * np.arange(n),
    "far from zero": lambda n: 1e12 + np.sin(np.arange(n)),
    "exponential": lambda n: np.exp(np.arange(n)),
}


@pytest.mark.fast_cases(6)
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("n_rows", [4, 5, 9, 13, 22, 40])
def test_odd_and_short_series_give_numbers_and_no_warnings(name, n_rows):
    values = np.asarray(ODD[name](n_rows), dtype=float)[:, None]
    data = data_of(values, (4.0,))
    bounds = bounds_of(data)
    candidates, found = rolled(data, 3)
    weights = found.weights()
    assert weights.sum() == pytest.approx(1)
    assert np.isfinite(found.combined(weights)).all()
    for candidate in candidates:
        if candidate.model.min_rows <= n_rows:
            said = candidate.fit(data, 0).forecast(data, np.array([n_rows]), 20, bounds)
            assert np.isfinite(said).all(), candidate
            if name in ("constant", "zeros"):
                np.testing.assert_allclose(said, values[0, 0], rtol=1e-9)
            if (
                name == "a line"
                and n_rows > 9
                and not candidate.log
                and "level" not in candidate.name
                and "no drift" not in candidate.name
            ):
                assert said[0, 0, 0] == pytest.approx(3.0 * n_rows, rel=0.2), candidate


def test_averages_apart_do_not_depend_on_the_errors_of_their_fit():
    rng = np.random.default_rng(0)
    followed = rng.normal(size=(9, 4, 2))
    said = followed + rng.normal(size=(3, 9, 4, 2)) * rng.uniform(0.5, 2, size=(3, 9, 1, 1))
    said[2, 0] = np.nan  # a model that could not be fitted to the first rows
    found = RollingForecasts(np.arange(9), said, followed)
    apart = found.combined_apart([3, 2, 4], [1.0, 1.25, 1.0], [3.0, 1.0, 1.0])
    for part in (slice(0, 3), slice(3, 5), slice(5, 9)):
        others = np.delete(np.arange(9), np.r_[part])
        rest = RollingForecasts(others, said[:2, others], followed[others])
        weights = rest.weights([1.0, 1.25], [3.0, 1.0])
        np.testing.assert_allclose(apart[part], np.tensordot(weights, said[:2, part], 1))
    # two fits are too few to leave one out
    together = found.combined(found.weights([1.0, 1.25, 1.0]))
    np.testing.assert_array_equal(found.combined_apart([5, 4], [1.0, 1.25, 1.0]), together)


@pytest.mark.slow
def test_models_have_no_units():
    for scale in (1e300, 1e-290):
        data = data_of(seasonal(60, n_outputs=2))
        scaled = replace(data, values=data.values * scale)
        one, other = rolled(data)[1], rolled(scaled)[1]
        np.testing.assert_allclose(other.predicted / scale, one.predicted, rtol=1e-6)


def test_fewer_than_four_rows_raise():
    with pytest.raises(ValueError, match="needs at least 4 rows; got 3"):
        rolled(data_of(seasonal(3)))


# -------------------------------------------------------------------------------------------- gaps


def with_gaps(values, kind, seed=0):
    hidden = np.zeros(len(values), bool)
    if kind == "random":
        hidden = np.random.default_rng(seed).random(len(values)) < 0.3
    elif kind == "longer than a season":
        hidden[len(values) * 2 // 3 :][:20] = True
    else:
        hidden[-8:] = True
    hidden[0] = False
    return np.where(hidden[:, None], np.nan, values)


def filled(values, seasons=(12.0,), **options):
    return fill_gaps(values, np.zeros((len(values) + AHEAD, 0)), seasons, **options)


def interpolated(values):
    rows, column = np.arange(len(values)), values[:, 0]
    known = np.isfinite(column)
    line = np.interp(rows, rows[known], column[known])
    return replace(data_of(line[:, None]), observed=known[:, None])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", ["random", "longer than a season", "at the end"])
def test_with_gaps_forecasts_are_nearly_as_good_as_without(kind):
    names, errors = ("theta", "autoregression", "direct network"), []
    for seed in range(6):
        noise = np.random.default_rng(seed).normal(size=(180, 1))
        whole = seasonal(180, seed=seed, step=0.05) + 0.3 * noise
        hidden = with_gaps(whole[:168], kind, seed)
        sets = [data_of(whole[:168]), filled(hidden), interpolated(hidden)]
        gaps = np.isnan(hidden)
        away = [np.abs((each.values - whole[:168])[gaps]).mean() for each in sets]
        assert away[1] < 0.6 * away[2]
        errors.append([])
        for data in sets:
            candidates = [c for c in candidates_for(data, 1) if c.name in names and c.log]
            said = [
                c.fit(data, 0).forecast(data, np.array([168]), 12, bounds_of(data))[0]
                for c in candidates
            ]
            errors[-1].append(np.abs(np.array(said) - whole[168:]).mean())
    complete, by_models, by_lines = np.exp(np.log(errors).mean(axis=0))
    assert by_models < 1.2 * complete
    assert by_models < by_lines if kind == "longer than a season" else by_models < 0.8 * by_lines


def test_values_stay_and_gaps_are_marked():
    values = with_gaps(seasonal(60, n_outputs=2), "random")
    values[40:45, 1] = np.nan
    data = filled(values, first=5)
    np.testing.assert_array_equal(data.observed, np.isfinite(values))
    np.testing.assert_array_equal(data.values[data.observed], values[data.observed])
    assert np.isfinite(data.values).all()
    assert data.positive.all()
    assert data.first == 5
    again = filled(values, first=5)
    np.testing.assert_array_equal(data.values, again.values)
    negative = filled(values - 1000)
    assert not negative.positive.any()
    whole = seasonal(60)
    np.testing.assert_array_equal(filled(whole).values, whole)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("begin", [1, 20, 50])
def test_a_column_may_begin_later_than_others(begin):
    values = seasonal(80, n_outputs=2)
    values[:begin, 1] = np.nan
    data = filled(values)
    assert np.isfinite(data.values).all()
    reach = np.nanmax(values[:, 1]) - np.nanmin(values[:, 1])
    assert np.abs(data.values[:begin, 1] - values[begin, 1]).max() <= 2 * reach
    _, found = rolled(data)
    assert np.isfinite(found.errors()).all()
    fitted = Autoregression().fit(data.history(log=True), 0)
    assert np.isfinite(fitted.forecast(data.history(log=True), np.array([80]), 10)).all()


@pytest.mark.parametrize("model", [Autoregression(), LoopNetwork(n_networks=1), DirectNetwork()])
def test_what_was_not_observed_is_no_target(model):
    levels = seasonal(80)
    history = history_of(levels)
    blind = replace(history, observed=np.zeros((80, 1), bool))
    said = model.fit(blind, 0).forecast(blind, np.array([80]), 3)[0]
    drift = np.diff(levels, axis=0).mean()
    np.testing.assert_allclose(said, levels[-1] + drift * np.arange(1, 4)[:, None])


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_horizons_of_a_direct_network_are_learned_where_both_ends_are_observed(share):
    levels, place = seasonal(90), np.array([90])
    observed = np.random.default_rng(0).random((90, 1)) >= share
    history = replace(history_of(levels, ()), observed=observed)
    fitted = DirectNetwork(alpha=1e-3).fit(history, 0)
    said = fitted.forecast(history, place, 6)[0, :, 0]
    y, seen, told = levels[:, 0], observed[:, 0], observed[1:, 0] & observed[:-1, 0]
    mean, spread = np.diff(y)[told].mean(), np.diff(y)[told].std()
    inputs = (np.diff(levels, axis=0) - mean) / spread
    net = fitted.source.reservoir
    features = np.hstack([run(net, inputs), inputs])
    for h in range(1, 7):
        learned = np.arange(18, 89 - h)
        rows = learned[seen[learned + 1] & seen[learned + 1 + h]]
        growth = (y[rows + 1 + h] - y[rows + 1] - h * mean) / spread
        coef, intercept = naive.ridge(features[rows], growth[:, None], 1e-3)
        out = (coef @ features[88] + intercept)[0]
        assert said[h - 1] == pytest.approx(y[89] + out * spread + h * mean, rel=1e-7)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("n_rows", [5, 12, 40])
def test_gaps_in_odd_and_short_series(name, n_rows):
    values = np.asarray(ODD[name](n_rows), dtype=float)[:, None]
    for hidden in ([1], [n_rows - 1], [0, n_rows // 2]):
        gappy = np.array(values)
        gappy[hidden] = np.nan
        data = filled(gappy, (4.0,))
        assert np.isfinite(data.values).all()
        if name in ("constant", "zeros"):
            np.testing.assert_allclose(data.values, values, rtol=1e-9)


def test_values_that_leave_no_room_raise():
    with pytest.raises(ValueError, match=r"magnitude 2e\+305, .* at most 1e\+300"):
        filled(np.array([1.0, 2.0, -2e305, 4.0])[:, None])


def test_too_few_values_raise():
    values = seasonal(100, n_outputs=2)
    values[4:, 1] = np.nan
    with pytest.raises(ValueError, match=r"Column 1 of y has 4 values in 100 rows.*at least 5"):
        filled(values)
    with pytest.raises(ValueError, match=r"^y has 0 values in 30 rows.*at least 3"):
        filled(np.full((30, 1), np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values[4:6, 1] = 30.0
        assert np.isfinite(filled(values).values).all()


def test_a_candidate_forecasts_in_units():
    data = data_of(np.exp(0.02 * np.arange(40.0))[:, None], ())
    said = Candidate("naive", True, LastSeason(1)).fit(data, 0)
    wide = Bounds.of(data.values, data.positive, 50.0)
    rows = said.forecast(data, np.array([40]), 20, wide)[0, :, 0]
    np.testing.assert_allclose(rows, np.exp(0.02 * np.arange(40, 60)))
    held = said.forecast(data, np.array([40]), 20, Bounds.of(data.values, data.positive, 0.0))
    assert held.max() == data.values.max()


def test_fitted_theta_keeps_columns_apart():
    levels = seasonal(60, n_outputs=3)
    whole = Theta(12).fit(history_of(levels))
    for k in range(3):
        alone = Theta(12).fit(history_of(levels[:, k : k + 1]))
        assert isinstance(alone, FittedTheta)
        np.testing.assert_array_equal(whole.profiles[:, k], alone.profiles[:, 0])
        assert whole.smoothings[k] == alone.smoothings[0]
