"""The mean of all rows, and the test of independence that decides whether it is tried."""

import numpy as np
import pytest
from scipy import signal, stats

from reservoir.estimators.reporting import not_reported
from reservoir.series_models.candidates import candidates_for
from reservoir.series_models.ensemble import learn
from reservoir.series_models.gaps import fill_gaps
from reservoir.series_models.mean_of_rows import MeanOfRows, may_be_independent
from reservoir.series_models.series_data import SeriesData

pytestmark = pytest.mark.one_engine


def data_of(values, seasons=()):
    values = np.asarray(values, dtype=float).reshape(len(values), -1)
    return fill_gaps(values, np.zeros((len(values), 0)), seasons)


def noise(n_rows, seed, n_outputs=1):
    return 50 + np.random.default_rng(seed).normal(size=(n_rows, n_outputs))


@pytest.mark.parametrize(("n_rows", "missing"), [(30, 0.0), (100, 0.3)])
def test_independent_rows_pass_as_often_as_the_level_says(n_rows, missing, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    passed = 0
    for _ in range(200):
        observed = rng.random((n_rows, 1)) >= missing
        values = np.where(observed, rng.normal(size=(n_rows, 1)), 3.0)
        passed += may_be_independent(
            SeriesData(values, observed, np.zeros((n_rows, 0)), (), np.zeros(1, bool))
        )
    # 6 to 7 % are rejected, because the distribution holds for many rows
    assert stats.binomtest(passed, 200, 0.935).pvalue > 1e-4


def test_the_test_is_that_of_ljung_and_box_for_ranks():
    # lags 1 to 8, a fifth of 40 rows
    values = np.tile([1.0, 0, 0, 0, 0, -1, 0, 0, 0, 0], 4)
    correlations = {k: (values[k:] @ values[:-k]) / 8 for k in range(1, 9)}
    statistic = 40 * 42 * sum(r**2 / (40 - k) for k, r in correlations.items())
    assert may_be_independent(data_of(values)) == (stats.chi2.sf(statistic, 8) > 0.05)
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(30):
        y = signal.lfilter([1], [1, -0.25], rng.normal(size=100))
        rest = stats.rankdata(y) - 50.5
        r = np.array([rest[k:] @ rest[:-k] for k in range(1, 11)]) / (rest @ rest)
        p = stats.chi2.sf(100 * 102 * (r**2 / (100 - np.arange(1, 11))).sum(), 10)
        assert may_be_independent(data_of(y)) == (p > 0.05)
        p_values.append(p)
    assert min(p_values) < 0.05 < max(p_values)


def test_an_outlier_does_not_hide_that_rows_depend_on_each_other(global_random_seed):
    walk = noise(60, global_random_seed) - 50
    walk = walk.cumsum(axis=0)
    walk[30] += 10 * walk.std()
    assert not may_be_independent(data_of(walk))


def test_a_season_beyond_ten_rows_shows(global_random_seed):
    months = np.random.default_rng(0).permutation(np.repeat([0.0, 1.0], 6))
    values = np.tile(months, 5)[:, None] + 0.1 * noise(60, global_random_seed)
    assert not may_be_independent(data_of(values, (12.0,)))


def test_the_mean_is_tried_only_on_rows_that_may_be_independent():
    def names_of(data, **options):
        return [candidate.name for candidate in candidates_for(data, 1, **options)]

    plain = data_of(noise(100, 0))
    assert "mean" in names_of(plain)
    assert "mean" not in names_of(plain, independent=False)
    assert "mean" not in names_of(plain, intermittent=True)  # that model contains the mean
    for values in (noise(19, 0), np.full(40, 3.0), np.cumsum(noise(40, 0) - 50)):
        assert "mean" not in names_of(data_of(values))
    for n_rows in (41, 42):  # 30 pairs of rows a season apart
        found = names_of(data_of(noise(n_rows, 0), (12.0, 52.0)))
        assert ("mean" in found) == (n_rows == 42)
    assert "mean" in names_of(data_of(1e9 + noise(100, 0)))
    both = np.column_stack([noise(100, 0), np.arange(100.0)])
    assert "mean" not in names_of(data_of(both))


def test_noise_is_forecast_by_its_mean():
    values = noise(100, 3)
    data = data_of(values, (7.0,))
    options = {"n_networks": 1, "n_steps": 8, "widths": 1.0, "seed": 0, "report": not_reported}
    learned = learn(data, **options)
    share = dict(zip([c.name for c in learned.candidates], learned.shares, strict=True))["mean"]
    assert share > 0.5
    ahead = data.with_room(128)
    said = learned.ensemble.forecast(ahead, np.array([100]), 28)[0]
    assert np.sqrt(np.square(said - 50).mean()) < 0.3
    model = MeanOfRows().fit(data.history(False))
    said = model.forecast(data.history(False), np.array([1, 60, 100]), 2)
    means = [values[:n].mean() for n in (1, 60, 100)]
    np.testing.assert_allclose(said[..., 0], np.repeat(means, 2).reshape(3, 2))


def test_before_the_first_value_of_a_column_the_mean_is_this_value():
    values = noise(40, 0, n_outputs=2)
    values[:25, 1] = np.nan
    history = data_of(values).history(False)
    said = MeanOfRows().fit(history).forecast(history, np.array([20, 30]), 1)[:, 0, 1]
    np.testing.assert_allclose(said, [values[25, 1], values[25:30, 1].mean()])
