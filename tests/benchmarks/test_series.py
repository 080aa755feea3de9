"""The benchmark of series with trends and seasons: its data and its measures."""

import numpy as np
import pytest

from helpers import benchmark_scripts

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.one_engine

with benchmark_scripts():
    import _intermittent as intermittent
    import _series_methods as methods
    import _series_sets as sets
    import _short_seasons as short_seasons
    import series


def line(n_rows=60, season=4):
    """A straight line with a season on it, from below zero, so that nothing takes logarithms."""
    import pandas as pd

    t = np.arange(n_rows)
    dates = pd.period_range("2000Q1", periods=n_rows, freq="Q")
    return sets.OneSeries("line", pd.Series(t - 20 + 5.0 * (t % season == 0), dates), season)


def test_origins_begin_at_sixty_per_cent_and_end_a_horizon_before_the_last_row():
    assert series.origins_of(100, 12, 6) == [60, 65, 71, 76, 82, 88]
    assert series.origins_of(20, 12, 6) == []


def test_models_alone_know_a_line_with_a_season():
    one = line()
    for name in (
        "seasonal naive with drift",
        "linear autoregression alone",
        "linear, averaged ARI models alone",
    ):
        said = methods.methods()[name](one.values.iloc[:48], 4, 12)
        np.testing.assert_allclose(said, one.values.iloc[48:], atol=0.2, err_msg=name)
    naive = methods.seasonal_naive(one.values.iloc[:48], 4, 12)
    np.testing.assert_allclose(naive[:4], one.values.iloc[44:48])


@pytest.mark.slow
def test_every_method_is_measured(capsys):
    """The seasonal naive forecast has ratio 1, and misses a line by its slope."""
    chosen = methods.methods()
    for name in [each for each in chosen if "statsmodels" in each or "statsforecast" in each]:
        del chosen[name]
    outcomes = series.measure(line(), chosen, (4, 8), 1)
    assert [each.method for each in outcomes] == [*chosen, *chosen]
    assert all(np.isfinite([each.error, each.beyond]).all() for each in outcomes)
    assert series.ratios(outcomes, methods.NAIVE, 4) == {"line": 1.0}
    naive = [each.error for each in outcomes if each.method == methods.NAIVE]
    np.testing.assert_allclose(naive, [1.0, 1.5])
    assert series.ratios(outcomes, methods.OURS, 4)["line"] < 0.5
    outcomes += [series.Outcome("other", e.method, e.horizon, 1.0, 0.0, 0.0) for e in outcomes]
    series.table(outcomes)
    series.table_by_series(outcomes)
    assert len(capsys.readouterr().out.splitlines()) == len(chosen) + 2 + 2 * 4


def test_forecasts_beyond_the_range_are_measured_in_its_widths():
    assert series.beyond_range(np.array([-1.0, 5.0]), np.array([0.0, 2.0])) == 1.5
    assert series.beyond_range(np.array([0.5]), np.array([0.0, 2.0])) == 0


@pytest.mark.parametrize("seed", range(3))
def test_naive_intervals_of_noise_hold_what_they_promise(seed):
    rows = np.random.default_rng(seed).normal(size=4000)
    found = series.NaiveIntervals(1).fit(np.cumsum(rows)).forecast(9, [0.8])
    halves = (found[:, 2] - found[:, 1]) / 2
    np.testing.assert_allclose(halves, 1.2816 * np.sqrt(np.arange(1, 10)), rtol=0.05)


@pytest.mark.slow
def test_intervals_are_measured():
    found = series.intervals(sets.generated("seasonal", 0, n_rows=80), 1, 12)
    for shares_and_scores in found.values():
        assert shares_and_scores.shape == (2, 2)
        assert (np.diff(shares_and_scores, axis=0) >= 0).all()


def test_the_interval_score_is_the_width_and_the_distance_of_values_outside():
    table = pd.DataFrame({"truth": [1.0, 5.0], "lower 80%": [0.0, 0.0], "upper 80%": [2.0, 3.0]})
    share, score = series.score_of(table, 0.8)
    assert share == 0.5
    assert score == pytest.approx((2 + 3 + 2 / 0.2 * 2) / 2)


@pytest.mark.parametrize("kind", ["cycle", "integrated cycle", "cycle and season"])
def test_generated_cycles_have_a_length_of_5_to_20_rows(kind):
    lengths = []
    for number in range(40):
        one = sets.cyclic(kind, number)
        assert 60 <= len(one.values) <= 120
        values = one.values.to_numpy()
        if kind == "integrated cycle":
            values = np.diff(values)
        values = values - values.mean()
        if one.season > 1:
            values -= [values[k % 4 :: 4].mean() for k in range(len(values))]
        power = np.abs(np.fft.rfft(values, 1024)) ** 2
        lengths.append(1024 / max(1, np.argmax(power)))
    assert 6 < np.median(lengths) < 18
    assert np.mean((np.array(lengths) > 3.5) & (np.array(lengths) < 40)) > 0.8


def test_smooth_series_and_damped_trends_have_small_second_differences():
    for number in range(20):
        for kind, least in (("smooth", 3), ("damped trend", 0.2)):
            values = sets.cyclic(kind, number).values.to_numpy()
            assert values.std() > least * np.diff(values, 2).std()


@pytest.mark.parametrize("kind", sets.GENERATED)
def test_generated_series_are_what_their_names_say(kind):
    one = sets.generated(kind, 3, n_rows=400)
    values = one.values.to_numpy()
    np.testing.assert_array_equal(values, sets.generated(kind, 3, n_rows=400).values)
    assert len(values) == 400
    if kind == "counts":
        assert (values >= 0).all()
        np.testing.assert_array_equal(values, np.round(values))
    if kind == "integrated":
        assert np.diff(values).std() < 1.2


def test_the_fifteen_are_dated(statsmodels):
    found = sets.fifteen()
    assert len(found) == 15
    assert all(one.values.notna().all() and one.values.index.freq for one in found)


@pytest.mark.parametrize("law", intermittent.LAWS)
def test_intermittent_series_are_continued_by_futures_of_their_law(law):
    drawn = [intermittent.demand(law, number) for number in range(20)]
    assert all(np.mean(past == 0) > 0.5 and np.count_nonzero(past) > 1 for past, _ in drawn)
    assert all(len(np.unique(futures, axis=0)) > 1 for _, futures in drawn)
    of_past, of_futures = np.mean([[np.mean(past > 0), np.mean(f > 0)] for past, f in drawn], 0)
    assert (of_futures < 0.5 * of_past) == (law == "ending")


def test_methods_of_intermittent_demand_know_equal_intervals():
    past = np.zeros(40)
    past[3::4] = 2.0
    for name, factor in (("Croston", 1), ("Syntetos and Boylan (SBA)", 0.95), ("zero", 0)):
        said = intermittent.METHODS[name](past, 1)
        np.testing.assert_allclose(said, np.full((12, 1), factor * 0.5))


@pytest.mark.slow
def test_ours_without_is_as_if_the_series_were_not_intermittent():
    past, _ = intermittent.demand("independent", 0)
    found = [method(past, 1) for method in (intermittent.ours, intermittent.ours_without)]
    assert (found[0] != found[1]).any()
    np.testing.assert_array_equal(intermittent.ours(past, 1), found[0])


@pytest.mark.parametrize("number", range(7))
def test_drawn_loads_begin_on_each_weekday_and_are_lower_on_free_days(number):
    one = short_seasons.load(14, number)
    assert one.past.index[0].day_of_week == number
    assert len(one.past) == 14 * 24
    assert len(one.future) == 168
    by_day = one.past.groupby(one.past.index.day_of_week).mean()
    assert by_day[5:].max() < by_day[:5].mean()


def naive_errors(past, future):
    """Errors of the last season and of the last value."""
    rows = np.stack([past[-len(future) :], np.full(len(future), past[-1])])
    return np.abs(rows - future).mean(axis=1)


@pytest.mark.parametrize("freq", short_seasons.FREQUENCIES)
def test_short_series_have_one_and_a_half_to_three_and_a_half_seasons(freq):
    season = short_seasons.FREQUENCIES[freq]
    drawn = [short_seasons.short(freq, "additive", number) for number in range(40)]
    lengths = [len(one.past) / season for one in drawn]
    assert 1.5 <= min(lengths) < 2
    assert 3 < max(lengths) <= 3.5
    # the season comes back, unlike in a walk
    walks = [short_seasons.short(freq, "walk", number) for number in range(40)]
    against = []
    for group in (drawn, walks):
        errors = [naive_errors(one.past.to_numpy(), one.future) for one in group]
        against.append(np.exp(np.mean(np.diff(np.log(errors)))))
    assert against[0] > 1 > against[1]


@pytest.mark.slow
def test_short_seasons_are_measured(capsys, monkeypatch):
    monkeypatch.setattr(short_seasons, "LOADS", (13,))
    short_seasons.table(1, 0, 1)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 2 + 12
    assert all("1.000" in row for row in rows)  # the last season, to which errors are relative
