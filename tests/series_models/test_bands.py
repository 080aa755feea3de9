"""Bands and sample paths: their coverage, their growth with the horizon, finite values."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reservoir.series_models.bands import Bands

N_VALIDATED, N_AHEAD = 8, 24
COVERAGES = (0.8, 0.95)


def walk(rng, n_rows):
    """Return a random walk, and its forecasts from each row."""
    values = np.cumsum(rng.normal(size=n_rows))
    return values, lambda row, n_steps: np.full(n_steps, values[row - 1])


def autoregression(rng, n_rows):
    """Return an AR(1) about 5, and its forecasts."""
    values = np.zeros(n_rows)
    for t, drawn in enumerate(rng.normal(size=n_rows)):
        values[t] = 0.7 * values[t - 1] + drawn if t else drawn
    return values, lambda row, n_steps: values[row - 1] * 0.7 ** np.arange(1, n_steps + 1)


def growing_season(rng, n_rows):
    """Return a positive series whose logarithm has a trend, a season and noise."""
    logs = 0.01 * np.arange(n_rows) + np.sin(np.pi * np.arange(n_rows) / 6)
    values = np.exp(logs + 0.2 * rng.normal(size=n_rows))
    return values, lambda row, n_steps: np.exp(
        0.01 * np.arange(row, row + n_steps) + np.sin(np.pi * np.arange(row, row + n_steps) / 6)
    )


def counts(rng, n_rows):
    """Return Poisson counts about 4, and their mean as forecast."""
    values = rng.poisson(4, size=n_rows).astype(float)
    return values, lambda row, n_steps: np.full(n_steps, 4.0)


def rolled(values, forecast, n_known, first=60, stride=2, n_steps=N_VALIDATED):
    """Return forecasts at origins up to a row, what followed, and the origins."""
    origins = np.arange(first, n_known, stride)
    point = np.array([forecast(row, n_steps) for row in origins])
    seen = np.concatenate([values[:n_known], np.full(n_steps, np.nan)])
    followed = np.array([seen[row : row + n_steps] for row in origins])
    return point[..., None], followed[..., None], origins


def bands_of(process, seed, n_known=150, first=60):
    """Return bands of one series, the forecast behind its known rows, and what follows."""
    values, forecast = process(np.random.default_rng(seed), n_known + N_AHEAD)
    positive = np.array([(values > 0).all()])
    learned = Bands.of(*rolled(values, forecast, n_known, first), positive)
    return learned, forecast(n_known, N_AHEAD)[:, None], values[n_known:, None]


def coverage_of(process, n_series, **known):
    """Return coverages at each horizon, (n_series, n_coverages, n_steps)."""
    hits = []
    for seed in range(n_series):
        learned, point, truth = bands_of(process, seed, **known)
        low, high = np.moveaxis(learned.around(point, COVERAGES), 1, 0)
        hits.append(((truth >= low) & (truth <= high))[..., 0])
    return np.array(hits)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("process", [walk, autoregression, growing_season])
def test_bands_have_their_coverage_on_many_series(process):
    hits = coverage_of(process, 200)
    near = hits[..., :N_VALIDATED].mean(axis=2)
    error = near.std(axis=0) / np.sqrt(len(near))
    # the tails are those of Student's t, which is more than the law of a process asks for
    assert np.all(near.mean(axis=0) > COVERAGES - 2 * error), near.mean(axis=0)
    assert np.all(near.mean(axis=0) < np.add(COVERAGES, [0.04, 0.03])), near.mean(axis=0)
    # beyond them the growth of the errors is a guess
    far = hits[..., N_VALIDATED:].mean(axis=(0, 2))
    assert np.all(np.abs(far - COVERAGES) < [0.07, 0.035]), far


def test_bands_widen_beyond_the_validated_horizons_for_want_of_windows():
    """Errors of constant size: the scale hardly grows, but fewer windows are that long."""
    errors = np.random.default_rng(0).normal(size=(40, 4, 1))
    learned = Bands.of(np.zeros_like(errors), errors, np.arange(20, 60), np.array([False]))
    width = learned.around(np.zeros((80, 1)), [0.95])[0, 1, :, 0] / learned._scales(80)[:, 0]
    assert np.all(np.diff(width) > -1e-12)
    np.testing.assert_allclose(width[:4], width[0])
    # from 12 degrees of freedom to 2, that is
    ratio = stats.t.ppf(0.975, 2) / stats.t.ppf(0.975, 12)
    assert width[-1] / width[0] == pytest.approx(ratio, rel=1e-3)  # quantiles are interpolated


@pytest.mark.slow
def test_bands_of_counts_have_at_least_their_coverage():
    """A count that lies on the edge of the others is inside: somewhat more than must be."""
    found = coverage_of(counts, 200)[..., :N_VALIDATED].mean(axis=(0, 2))
    assert np.all(found > COVERAGES)
    assert np.all(found < [0.88, 0.98])


@pytest.mark.slow
@pytest.mark.parametrize("first", [130, 147, 149])
def test_few_origins_make_wider_bands_that_still_cover(first):
    n_seen = min(150 - first, N_VALIDATED)
    found = coverage_of(walk, 200, first=first)[..., :n_seen].mean(axis=(0, 2))
    # for want of errors they hold more, never much less
    assert np.all(found > np.subtract(COVERAGES, 0.03)), found
    assert found[0] < 0.93


def test_bands_are_nested_symmetric_and_never_narrower_farther_out():
    for seed in range(10):
        learned, point, _ = bands_of(walk, seed)
        found = learned.around(point, [0.1, 0.5, 0.8, 0.81, 0.95, 0.99, 0.9999])
        assert np.all(np.diff(found[:, 0], axis=0) < 0)
        assert np.all(np.diff(found[:, 1], axis=0) > 0)
        np.testing.assert_allclose(point - found[:, 0], found[:, 1] - point, atol=1e-12)
        assert np.all(np.diff(found[:, 1] - found[:, 0], axis=1) >= 0)


def test_the_scale_grows_as_the_process_does():
    walking = [bands_of(walk, seed, n_known=1000)[0].growths[0] for seed in range(20)]
    noise = [bands_of(counts, seed, n_known=1000)[0].growths[0] for seed in range(20)]
    assert abs(np.mean(walking) - 0.5) < 0.05
    assert np.mean(noise) < 0.15


def test_the_extended_scale_of_a_random_walk_is_its_root_law():
    scales = [bands_of(walk, seed, n_known=2000)[0]._scales(100)[:, 0] for seed in range(10)]
    expected = np.sqrt(2 / np.pi * np.arange(1, 101))
    np.testing.assert_allclose(np.mean(scales, axis=0), expected, rtol=0.12)


def bands_of_weeks(seed, size, n_rows=207, seasons=(7.0, 365.25), zero=()):
    """Return bands of errors that are `size` times larger in every seventh row, from row 60 on.

    Otherwise each row of a week has the same seven sizes, one after the other.
    """
    rng, rows = np.random.default_rng(seed), np.arange(n_rows)
    errors = rng.permutation(np.arange(1.0, 8))[(rows + rows // 7) % 7]
    errors *= rng.choice([-1, 1], n_rows)
    errors[6::7] *= size
    errors[list(zero)] = 0
    values = 100 + errors
    rolling = rolled(values, lambda row, n_steps: np.full(n_steps, 100.0), n_rows, stride=1)
    return Bands.of(*rolling, np.array([False]), seasons=seasons)


def test_phases_with_larger_errors_have_wider_bands(global_random_seed):
    learned, point = bands_of_weeks(global_random_seed, 30.0), np.full((21, 1), 100.0)
    scales = learned._scales(21)[:, 0] / learned.phases[0][np.arange(21) % 7]
    for first in range(207, 214):
        widths = np.diff(learned.around(point, [0.95], first)[0, :, :, 0], axis=0)[0] / scales
        is_wide = (first + np.arange(21)) % 7 == 6
        assert widths[is_wide].min() > 2 * widths[~is_wide].max()
        drawn = learned.paths(point, 400, np.random.default_rng(first), first)[..., 0] - 100
        spread = drawn.std(axis=0) / scales
        assert spread[is_wide].min() > 1.5 * spread[~is_wide].max()
    same = (learned.around(point, COVERAGES, first) for first in (207, 214))
    assert np.array_equal(*same)


@pytest.mark.parametrize(
    "case",
    [{"size": 1.0}, {"size": 10.0, "n_rows": 87}, {"size": 1.0, "zero": range(60, 207)}],
    ids=["errors of one size", "less than four weeks", "no errors"],
)
def test_phases_whose_errors_are_alike_change_no_bit(case, global_random_seed):
    with_seasons = bands_of_weeks(global_random_seed, **case)
    without, point = bands_of_weeks(global_random_seed, **case, seasons=()), np.full((9, 1), 100.0)
    for first in (150, 153):
        found = (each.around(point, COVERAGES, first) for each in (with_seasons, without))
        assert np.array_equal(*found)


def test_the_season_with_the_clearest_differences_counts():
    """Errors of weeks with rows that are not known, beside a season of five rows."""
    assert len(bands_of_weeks(0, 10.0, seasons=(5.0, 7.0, 14.0)).phases[0]) == 7
    assert len(bands_of_weeks(0, 10.0, seasons=(5.0,)).phases[0]) == 1
    followed = np.random.default_rng(0).normal(size=(90, 1, 1))
    followed[6::7] = np.nan  # this phase is never known
    followed[5::7] *= 10
    phases = Bands.of(
        0 * np.nan_to_num(followed), followed, np.arange(90), [False], seasons=(7,)
    ).phases
    assert phases[0][6] == 1.0
    assert phases[0].argmax() == 5


def test_growing_errors_widen_the_bands_of_later_steps_but_not_the_first():
    errors = np.random.default_rng(0).normal(size=(7, 4, 1))
    errors[:, 1:] *= 2  # noise that does not grow from the second horizon on
    origins = np.arange(20, 27)  # 10 rows in all: two and a half windows
    arguments = (np.zeros_like(errors), errors, origins, np.array([False]))
    plain, other = Bands.of(*arguments), Bands.of(*arguments, grows=True)
    trust = 2.5 / (2.5 + 1)
    growing = plain.scales[0][0] * np.arange(1, 5) ** 0.75
    expected = np.maximum(plain.scales[0], plain.scales[0] ** trust * growing ** (1 - trust))
    np.testing.assert_allclose(other.scales[0], expected)
    assert other.growths[0] > 0.7 > 0.5 > plain.growths[0]
    bands, wider = (each.around(np.zeros((4, 1)), [0.5, 0.95])[:, 1] for each in (plain, other))
    np.testing.assert_array_equal(wider[:, 0], bands[:, 0])
    assert (wider[:, 3] > 1.05 * bands[:, 3]).all()
    # exact forecasts of the first step say nothing about growth
    errors[:, 0] = 0
    np.testing.assert_array_equal(
        Bands.of(*arguments, grows=True).scales, Bands.of(*arguments).scales
    )


def test_bands_of_exact_forecasts_are_finite_at_any_coverage():
    exact = Bands.of(np.ones((5, 2, 1)), np.ones((5, 2, 1)), np.arange(5, 10), np.array([False]))
    asked = np.nextafter([0, 1], [1, 0])
    np.testing.assert_array_equal(exact.around(np.ones((3, 1)), asked), np.ones((2, 2, 3, 1)))


def test_long_windows_widen_bands_as_few_degrees_of_freedom_do():
    errors = np.random.default_rng(0).normal(size=(30, 2, 1))
    arguments = (np.zeros_like(errors), errors, np.arange(10, 40), np.array([False]))
    plain, short, long = (Bands.of(*arguments, window=window) for window in (0, 2, 31))
    assert plain.freedom == short.freedom == 3 * 31 / 2  # rows 10 to 40 were forecast
    assert long.freedom == 3
    point = np.zeros((2, 1))
    assert (long.around(point, [0.8, 0.95]) > 1.1 * plain.around(point, [0.8, 0.95]))[:, 1].all()


def test_many_normal_errors_give_the_quantiles_of_the_normal_law():
    rng = np.random.default_rng(0)
    followed = rng.normal(size=(20_000, 1, 1))
    learned = Bands.of(np.zeros_like(followed), followed, np.arange(1, 20_001), np.array([False]))
    asked = [0.2, 0.5, 0.8, 0.95, 0.99]
    high = learned.around(np.zeros((1, 1)), asked)[:, 1, 0, 0]
    np.testing.assert_allclose(high, stats.norm.ppf((1 + np.array(asked)) / 2), rtol=0.03)


def test_other_units_give_the_same_bands_in_these():
    values, forecast = growing_season(np.random.default_rng(3), 200)
    point, followed, origins = rolled(values, forecast, 150)
    ahead = forecast(150, N_AHEAD)[:, None]
    for positive in (True, False):
        one = Bands.of(point, followed, origins, np.array([positive]))
        other = Bands.of(1000 * point, 1000 * followed, origins, np.array([positive]))
        np.testing.assert_allclose(
            other.around(1000 * ahead, COVERAGES), 1000 * one.around(ahead, COVERAGES)
        )


def test_positive_series_stay_positive_where_errors_are_ratios():
    learned, point, _ = bands_of(growing_season, 0)
    assert learned.log.all()
    assert np.all(learned.around(point, [0.99, 0.9999]) > 0)
    assert np.all(learned.paths(point, 500, np.random.default_rng(0)) > 0)


def test_the_data_choose_between_differences_and_ratios():
    rng = np.random.default_rng(0)
    point = np.exp(np.linspace(0, 3, 60))[:, None, None] * np.ones((60, 5, 1))
    drawn = 0.1 * rng.normal(size=point.shape)
    origins = np.arange(60)
    for followed, ratios in ((point * np.exp(drawn), True), (point + drawn, False)):
        assert Bands.of(point, followed, origins, np.array([True])).log[0] == ratios
        assert not Bands.of(point, followed, origins, np.array([False])).log[0]
    # a forecast below 0 has no logarithm
    point[3, 2] = -1.0
    assert not Bands.of(point, np.abs(point) * np.exp(drawn), origins, np.array([True])).log[0]


def test_a_forecast_without_errors_has_bands_without_width():
    point = np.arange(40.0).reshape(10, 4, 1)
    learned = Bands.of(point, point, np.arange(10), np.array([False]))
    ahead = np.arange(9.0)[:, None]
    assert np.array_equal(learned.around(ahead, [0.95])[0], [ahead, ahead])
    drawn = learned.paths(ahead, 3, np.random.default_rng(0))
    assert np.array_equal(drawn, np.broadcast_to(ahead, drawn.shape))


@pytest.mark.parametrize("later", [1.0, 3.0])
def test_later_errors_weigh_more(later):
    """Of two sizes, half of the errors each, the later one is nearer to three fifths."""
    sizes = np.repeat([4.0 - later, later], 20)[:, None, None]
    followed = sizes * np.random.default_rng(0).choice([-1.0, 1.0], sizes.shape)
    bands = Bands.of(np.zeros((40, 1, 1)), followed, np.arange(60, 100), np.array([False]))
    for coverage in (0.45, 0.55):
        assert bands.around(np.zeros((1, 1)), [coverage])[0, 1] == pytest.approx(later, abs=0.3)


def test_errors_of_one_size_are_the_middle_band():
    point = np.zeros((1000, 4, 1))
    learned = Bands.of(point, point + 2, 4 * np.arange(1000), np.array([False]))
    for high in learned.around(np.zeros((4, 1)), [0.5, 0.95])[:, 1]:
        np.testing.assert_allclose(high, 2, rtol=0.01)


def test_one_origin_is_enough_for_a_wide_band(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    followed = rng.normal(size=(1, 6, 1))
    learned = Bands.of(np.zeros((1, 6, 1)), followed, np.array([30]), np.array([False]))
    high = learned.around(np.zeros((12, 1)), [0.95])[0, 1]
    assert np.all(np.isfinite(high))
    assert high[:6].mean() > 2.5 * np.abs(followed).mean()
    assert np.isfinite(learned.paths(np.zeros((12, 1)), 50, rng)).all()


def test_a_single_step_has_no_variance_in_common_with_others():
    for seed in range(20):
        followed = np.random.default_rng(seed).normal(size=(5, 1, 1))
        assert Bands.of(0 * followed, followed, np.arange(5), np.array([False])).common == 0


def test_a_single_step_and_a_single_value_are_enough():
    learned = Bands.of(np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.array([9]), np.array([False]))
    assert np.isfinite(learned.around(np.zeros((5, 1)), [0.5, 0.99])).all()
    assert np.isfinite(learned.paths(np.zeros((5, 1)), 4, np.random.default_rng(0))).all()


def test_unknown_values_give_no_nan():
    rng = np.random.default_rng(1)
    followed = rng.normal(size=(12, 6, 2))
    followed[rng.random(followed.shape) < 0.4] = np.nan
    followed[:, 2] = np.nan
    followed[:, 5, 0] = np.nan
    learned = Bands.of(np.zeros_like(followed), followed, np.arange(12), np.zeros(2, dtype=bool))
    assert np.isfinite(learned.around(np.zeros((10, 2)), COVERAGES)).all()
    assert np.isfinite(learned.paths(np.zeros((10, 2)), 20, rng)).all()


def test_equal_seeds_give_equal_paths_and_others_do_not():
    learned, point, _ = bands_of(walk, 0)
    first, again, other = (
        learned.paths(point, 5, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_more_steps_change_none_of_the_first():
    learned, point, _ = bands_of(walk, 0)
    point = np.concatenate([point, point])  # beyond what was validated, too
    paths = learned.paths(point, 5, np.random.default_rng(0))
    bands = learned.around(point, [0.5, 0.99])
    for n_steps in range(1, len(point), 5):
        some = learned.paths(point[:n_steps], 5, np.random.default_rng(0))
        np.testing.assert_allclose(some, paths[:, :n_steps], rtol=1e-14)
        some = learned.around(point[:n_steps], [0.5, 0.99])
        np.testing.assert_allclose(some, bands[:, :, :n_steps], rtol=1e-14)


@pytest.mark.parametrize("process", [walk, growing_season])
def test_paths_are_spread_like_the_bands(process, global_random_seed):
    learned, point, _ = bands_of(process, global_random_seed)
    drawn = learned.paths(point, 4000, np.random.default_rng(global_random_seed))
    for coverage in (0.5, 0.8, 0.95):
        low, high = learned.around(point, [coverage])[0]
        inside = ((drawn >= low) & (drawn <= high)).mean(axis=0)
        error = np.sqrt(coverage * (1 - coverage) / len(drawn))
        assert np.all(np.abs(inside - coverage) < 4.5 * error)


def test_paths_of_a_walk_depend_on_each_other_as_walks_do():
    learned = [bands_of(walk, seed, n_known=3000)[0] for seed in range(5)]
    found = np.mean(
        [
            np.corrcoef(
                stats.rankdata(
                    b.paths(np.zeros((32, 1)), 2000, np.random.default_rng(0))[..., 0], axis=0
                ).T
            )
            for b in learned
        ],
        axis=0,
    )
    steps = np.arange(1, 33)
    expected = np.sqrt(np.minimum.outer(steps, steps) / np.maximum.outer(steps, steps))
    np.testing.assert_allclose(found, expected, atol=0.1)


@pytest.mark.parametrize("common", [0.0, 0.8])
def test_sums_of_paths_vary_as_sums_of_errors_do(common, global_random_seed):
    """Of errors that are independent, and of errors with a part that whole trajectories share."""
    rng, ratios = np.random.default_rng(global_random_seed), []
    for _ in range(8):
        drawn = rng.normal(size=(24, 1)), rng.normal(size=(24, 12))
        errors = 1e3 * (np.sqrt(common) * drawn[0] + np.sqrt(1 - common) * drawn[1])[..., None]
        learned = Bands.of(np.zeros_like(errors), errors, 20 + 3 * np.arange(24), np.array([False]))
        sums = learned.paths(np.zeros((12, 1)), 400, rng)[..., 0].sum(axis=1)
        ratios.append(sums.std() / 1e3)
    expected = np.sqrt(12 * (1 - common) + 144 * common)
    assert 0.8 * expected < np.median(ratios) < 1.3 * expected


def test_files_of_earlier_versions_keep_their_paths():
    learned, point, _ = bands_of(walk, 0)
    earlier = replace(learned, common=None)
    share = 5 / (5 + learned.freedom.mean())
    paths = (
        each.paths(point, 3, np.random.default_rng(0))
        for each in (earlier, replace(learned, common=share))
    )
    assert np.array_equal(*paths)


def test_paths_of_joint_columns_keep_their_dependence(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    mixing = np.array([[1.0, 0.0], [-0.8, 0.6]])
    followed = rng.normal(size=(1200, 3, 2)) @ mixing.T
    learned = Bands.of(np.zeros_like(followed), followed, 3 * np.arange(1200), np.zeros(2, bool))
    drawn = learned.paths(np.zeros((6, 2)), 4000, rng)
    there = np.corrcoef(followed.reshape(-1, 2).T)[0, 1]  # -.8, but for the draw
    for step in range(6):
        assert abs(np.corrcoef(drawn[:, step].T)[0, 1] - there) < 0.03
    assert abs(np.corrcoef(drawn[:, 0, 0], drawn[:, 2, 0])[0, 1]) < 0.1


def test_bands_of_joint_columns_are_those_of_each():
    rng = np.random.default_rng(2)
    followed = rng.normal(size=(30, 4, 2)) * [1.0, 5.0] + [0.0, 100.0]
    point = np.full(followed.shape, [0.0, 100.0])
    positive, origins = np.array([False, True]), np.arange(30)
    joint = Bands.of(point, followed, origins, positive).around(point[0], COVERAGES)
    for j in range(2):
        part = (point[..., [j]], followed[..., [j]], origins, positive[[j]])
        assert np.array_equal(Bands.of(*part).around(point[0][:, [j]], COVERAGES), joint[..., [j]])


def test_bands_survive_pickling():
    learned, point, _ = bands_of(walk, 0)
    again = pickle.loads(pickle.dumps(learned))
    assert np.array_equal(again.around(point, COVERAGES), learned.around(point, COVERAGES))


@pytest.mark.parametrize("coverage", [0.0, 1.0, 95.0, -0.1, np.nan])
def test_a_coverage_outside_0_and_1_raises(coverage):
    learned, point, _ = bands_of(walk, 0)
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        learned.around(point, [0.8, coverage])


def test_a_forecast_not_positive_raises_where_errors_are_ratios():
    learned, point, _ = bands_of(growing_season, 0)
    with pytest.raises(ValueError, match="falls to 0 in a column that had only positive values"):
        learned.around(0 * point, [0.8])
    with pytest.raises(ValueError, match="Clip the forecast above 0"):
        learned.paths(-point, 3, np.random.default_rng(0))


def test_columns_of_which_nothing_is_known_raise():
    followed = np.full((3, 4, 2), np.nan)
    followed[..., 0] = 1.0
    with pytest.raises(ValueError, match=r"columns \[1\]"):
        Bands.of(np.zeros((3, 4, 2)), followed, np.arange(3), np.zeros(2, bool))
