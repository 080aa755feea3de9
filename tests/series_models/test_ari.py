"""Averages of ARI models: equality with loops, and series that they should continue."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from reservoir import ESNForecaster
from reservoir.series_models.ari import ARI
from reservoir.series_models.history import History


def history_of(levels, observed=None, seasons=()):
    observed = np.ones(levels.shape, bool) if observed is None else observed
    return History(levels, observed, np.zeros((len(levels), 0)), seasons)


def continuation(levels, n_steps, period=1):
    history = history_of(levels[:, None])
    fitted = ARI(period).fit(history)
    return fitted.forecast(history, np.array([len(levels)]), n_steps)[0, :, 0]


def differences(path, d):
    return np.diff(path, d) if d else np.asarray(path)


def fit_naively(levels, observed, n_lags, d, p):
    """Coefficients of lags 1 to p of differences and their mean, from a table of rows."""
    rows = differences(levels, d)
    table, targets, every = [], [], []
    for i in range(n_lags, len(rows)):
        if observed[i : i + d + 1].all():
            table.append([*(rows[i - k] for k in range(1, p + 1)), 1.0])
            every.append([rows[i - k] ** 2 for k in range(1, n_lags + 1)])
            targets.append(rows[i])
    X, y = np.array(table), np.array(targets)
    penalty = np.append(0.3 * np.arange(1, p + 1) * np.mean(every), (1e-6, 10.0, 0.0)[d])
    if d == 2:
        X, penalty = X[:, :-1], penalty[:-1]
    found = np.linalg.solve(X.T @ X + np.diag(penalty), X.T @ y)
    return found[:p], 0.0 if d == 2 else found[-1]


def continue_naively(levels, coef, mean, d, n_steps):
    path = list(levels)
    for _ in range(n_steps):
        rows = differences(path, d)
        change = mean + sum(a * rows[-k] for k, a in enumerate(coef, 1))
        before = {0: 0.0, 1: path[-1], 2: 2 * path[-1] - path[-2]}[d]
        path.append(before + change)
    return np.array(path[len(levels) :])


def forecast_naively(levels, observed, n_fitted, n_steps):
    """Weigh all models by their errors from rolling origins, and continue them."""
    mean, spread = (
        levels[:n_fitted][observed[:n_fitted]].mean(),
        levels[:n_fitted][observed[:n_fitted]].std(),
    )
    unit, n_lags = (levels - mean) / spread, min(6, n_fitted // 4)
    first, ahead = max(n_lags + 4, int(0.4 * n_fitted)), min(8, n_fitted // 5)
    cuts = sorted({int(each) for each in np.linspace(first, n_fitted - 1, 8)})
    errors, paths = [], []
    for d in range(3):
        for p in range(n_lags + 1):
            sizes = []
            for origin in range(first, n_fitted, max(1, ahead // 4)):
                cut = max(each for each in cuts if each <= origin)
                fit = fit_naively(unit[:cut], observed[:cut], n_lags, d, p)
                said = continue_naively(unit[:origin], *fit, d, ahead)
                last = min(origin + ahead, n_fitted)
                wrong = np.abs(said[: last - origin] - unit[origin:last])
                sizes += list(wrong[observed[origin:last]])
            errors.append(np.mean(sizes))
            fit = fit_naively(unit[:n_fitted], observed[:n_fitted], n_lags, d, p)
            paths.append(continue_naively(unit, *fit, d, n_steps))
    shares = np.array(errors) ** -15.0
    shares /= shares.sum()
    shares[shares < 0.01] = 0.0
    return shares @ np.array(paths) / shares.sum() * spread + mean


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("n_rows", [17, 35])
def test_the_average_equals_one_by_tables_and_loops(n_rows, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    levels = 100 + rng.normal(size=(n_rows, 2)).cumsum(axis=0)
    levels[:, 1] = levels[:, 1].cumsum()
    observed = np.ones(levels.shape, bool)
    observed[[n_rows // 2, n_rows - 2], 1] = False
    history, n_fitted = history_of(levels, observed), n_rows - 3
    said = ARI(1).fit(history.until(n_fitted)).forecast(history, np.array([n_fitted, n_rows]), 5)
    for j in range(2):
        for i, origin in enumerate((n_fitted, n_rows)):
            expected = forecast_naively(levels[:origin, j], observed[:origin, j], n_fitted, 5)
            assert_allclose(said[i, :, j], expected, rtol=1e-7)


def test_a_cycle_by_two_lags_is_forecast_almost_as_well_as_by_its_true_coefficients():
    coef, regret = np.array([1.5, -0.9]), []
    for seed in range(12):
        steps = np.random.default_rng(seed).normal(size=300)
        levels = np.zeros(300)
        for i in range(2, 300):
            levels[i] = coef @ levels[i - 2 : i][::-1] + steps[i]
        best = continue_naively(levels, coef, 0.0, 0, 12)
        regret.append(np.abs(continuation(levels, 12) - best).mean() / levels.std())
    assert np.mean(regret) < 0.2  # 0.6 for the mean of the levels


def test_a_straight_line_is_continued(global_random_seed):
    slope, start = np.random.default_rng(global_random_seed).normal(size=2)
    rows = np.arange(40)
    line = 10 * start + slope * rows
    assert_allclose(continuation(line[:25], 15), line[25:], atol=1e-6 * np.ptp(line))


@pytest.mark.parametrize("n_rows", [20, 60])
def test_a_parabola_is_continued_further_than_its_tangent(n_rows):
    parabola = (np.arange(n_rows + 8.0) - 8) ** 2
    said, truth = continuation(parabola[:n_rows], 8), parabola[n_rows:]
    tangent = parabola[n_rows - 1] + np.arange(1, 9) * np.diff(parabola)[n_rows - 2]
    assert np.abs(said - truth).mean() < 0.3 * np.abs(tangent - truth).mean()


def test_growth_that_fades_is_forecast_to_fade():
    rows = 100 * (1 - 0.9 ** np.arange(60))
    said, tangent = continuation(rows[:20], 40), rows[19] + (rows[19] - rows[18]) * np.arange(1, 41)
    assert np.abs(said - rows[20:]).max() < 0.1 * np.abs(tangent - rows[20:]).max()


@pytest.mark.parametrize("sign", [1, -1])
def test_an_unstable_model_neither_overflows_nor_returns(sign):
    rows = sign * 1.5 ** np.arange(30)
    said = sign * continuation(rows, 5_000)
    assert (np.diff(said) >= 0).all()
    assert said[0] > sign * rows[-1]
    assert said.max() <= sign * rows.mean() + 20.1 * rows.std()


def test_a_season_is_added(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    profile = 20 * rng.permutation(4)
    rows = profile[np.arange(72) % 4] + 0.3 * rng.normal(size=72).cumsum()
    said, flat = continuation(rows[:60], 12, 4), continuation(rows[:60], 12)
    assert np.abs(said - rows[60:]).mean() < 4
    assert not np.allclose(said, flat)


@pytest.mark.slow
@pytest.mark.one_engine
def test_smooth_series_give_it_a_great_share_of_their_average():
    shares = []
    for seed in range(6):
        values = 100 + np.random.default_rng(seed).normal(size=50).cumsum().cumsum()
        model = ESNForecaster(season=1, search="series", random_state=0).fit(values)
        table = model.search_results_
        shares.append(table["share"][table["model"] == "ARI"].sum())
    assert np.mean(shares) > 0.25
